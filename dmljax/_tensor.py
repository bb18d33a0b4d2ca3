"""Tensor descriptions: data types, sizes, strides, bytes; and access through them."""

import contextlib
import dataclasses
import enum
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dmljax._check import require, show
from dmljax._overlap import overlap

# What every form of an operator returns, and what a form is: arrays and static
# attributes in, outputs out.
Outputs = tuple[jax.Array, ...]
Form = Callable[..., Outputs]

MAX_ELEMENTS = 2**32 - 1
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
MAX_RANK = 8


class DataType(enum.IntEnum):
    """DML_TENSOR_DATA_TYPE: the types of a tensor's elements, by DirectML's numbers.

    >>> DataType.FLOAT16.dtype, DataType["INT64"].dtype.itemsize
    (dtype('float16'), 8)
    """

    __module__ = "dmljax"
    C_PREFIX = enum.nonmember("DML_TENSOR_DATA_TYPE_")

    UNKNOWN = 0
    FLOAT32 = 1
    FLOAT16 = 2
    UINT32 = 3
    UINT16 = 4
    UINT8 = 5
    INT32 = 6
    INT16 = 7
    INT8 = 8
    FLOAT64 = 9
    UINT64 = 10
    INT64 = 11
    UINT4 = 12
    INT4 = 13

    @property
    def dtype(self) -> np.dtype:
        """The NumPy type of the same name."""
        return jnp.dtype(self.name.lower())


class TensorFlags(enum.IntFlag):
    """DML_TENSOR_FLAGS; OWNED_BY_DML is accepted and changes nothing here."""

    __module__ = "dmljax"

    NONE = 0
    OWNED_BY_DML = 1


@dataclasses.dataclass(frozen=True)
class TensorDesc:
    """DML_BUFFER_TENSOR_DESC: how a buffer is to be read as a tensor.

    The element at coordinate c lies at offset dot(c, strides) of the buffer. A stride
    of 0 broadcasts; any order and gaps are legal. Without strides the tensor is packed
    in row-major order.

    Attributes:
      data_type: the type of the elements.
      sizes: 1 to 8 sizes, each at least 1.
      strides: in elements, one for each size, none negative; None for packed.
      total_tensor_size_in_bytes: of the buffer; None for what sizes and strides imply.
      flags: NONE or OWNED_BY_DML.
      guaranteed_base_offset_alignment: 0, or a power of two in bytes.

    >>> matrix = TensorDesc(DataType.UINT8, (2, 3), strides=(1, 2))
    >>> matrix.implied_size_in_bytes  # 6 elements of one byte, rounded up to 4 bytes
    8
    """

    __module__ = "dmljax"

    data_type: DataType
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    total_tensor_size_in_bytes: int | None = None
    flags: TensorFlags = TensorFlags.NONE
    guaranteed_base_offset_alignment: int = 0

    def __post_init__(self) -> None:
        freeze = object.__setattr__
        freeze(self, "data_type", DataType(self.data_type))
        freeze(self, "sizes", _plain_integers(self.sizes))
        if self.strides is not None:
            freeze(self, "strides", _plain_integers(self.strides))
        freeze(self, "flags", TensorFlags(self.flags))

    @property
    def dtype(self) -> np.dtype:
        """The NumPy type of the elements."""
        return self.data_type.dtype

    @property
    def element_strides(self) -> tuple[int, ...]:
        """The strides in elements, also where the tensor is packed."""
        return packed_strides(self.sizes) if self.strides is None else self.strides

    @property
    def extent(self) -> int:
        """How many elements of a buffer the tensor spans."""
        axes = zip(self.sizes, self.element_strides, strict=True)
        return sum((size - 1) * stride for size, stride in axes) + 1

    @property
    def implied_size_in_bytes(self) -> int:
        """The bytes that sizes and strides need, rounded up to a multiple of 4."""
        return -(-self.extent * self.dtype.itemsize // 4) * 4

    @property
    def buffer_length(self) -> int:
        """How many elements the flat buffer of this tensor has as an output."""
        if self.total_tensor_size_in_bytes is None:
            return self.extent
        return self.total_tensor_size_in_bytes // self.dtype.itemsize


def _plain_integers(values: Iterable[Any]) -> tuple[Any, ...]:
    """NumPy's integers as Python's, which do not overflow; the rest for the checks."""
    return tuple(int(v) if isinstance(v, np.integer) else v for v in values)


def is_floating(dtype: np.dtype) -> bool:
    """Whether `dtype` is real floating point, the small floats included."""
    return jnp.issubdtype(dtype, jnp.floating)


def is_integer(dtype: np.dtype) -> bool:
    """Whether `dtype` is an integer type, the 4-bit ones included."""
    return jnp.issubdtype(dtype, jnp.integer)


def x64_enabled() -> bool:
    """Whether JAX has 64-bit types: whether its x64 mode is on."""
    return jax.dtypes.canonicalize_dtype(np.int64) == np.int64


@contextlib.contextmanager
def index_mode(*sizes: int) -> Iterator[np.dtype]:
    """A context with an integer type for indices up to these sizes, and that type.

    JAX has 64-bit integers only in its x64 mode, which the context turns on if needed.
    A symbolic size counts as less than 2^31, as it does for JAX.
    """
    wide = any(isinstance(size, int) and size >= 2**31 for size in sizes)
    with jax.enable_x64(wide or x64_enabled()):
        yield np.dtype(np.int64 if wide else np.int32)


def packed_strides(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a packed row-major tensor.

    >>> packed_strides((2, 3, 4))
    (12, 4, 1)
    """
    steps = itertools.accumulate(reversed(sizes[1:]), operator.mul, initial=1)
    return tuple(steps)[::-1]


def check_tensor(operator: str, name: str, tensor: TensorDesc, *, output: bool) -> None:
    """Enforces the rules that hold for every tensor of every operator."""

    def rule(condition: bool, text: str) -> None:
        require(operator, condition, f"tensor '{name}' {text}")

    rule(
        tensor.data_type is not DataType.UNKNOWN,
        "has data type UNKNOWN; its elements must have a type.",
    )
    sizes, strides = tensor.sizes, tensor.strides
    whole = all(type(size) is int and size >= 1 for size in sizes)
    rule(whole, f"has sizes {show(sizes)}; each must be an integer of at least 1.")
    rule(
        1 <= len(sizes) <= MAX_RANK,
        f"has {len(sizes)} dimensions; a tensor has 1 to {MAX_RANK}.",
    )
    rule(
        math.prod(sizes) <= MAX_ELEMENTS,
        f"has sizes {show(sizes)}, {show(math.prod(sizes))} elements; "
        f"at most {MAX_ELEMENTS} are allowed.",
    )
    if strides is not None:
        rule(
            len(strides) == len(sizes),
            f"has {len(strides)} strides {show(strides)} for {len(sizes)} sizes "
            f"{show(sizes)}; there must be one for each.",
        )
        rule(
            all(type(stride) is int and 0 <= stride < 2**32 for stride in strides),
            f"has strides {show(strides)}; each must be an integer in [0, 2^32).",
        )
        rule(
            not output or tensor.extent <= MAX_ELEMENTS,
            f"has sizes {show(sizes)} and strides {show(strides)}, which span "
            f"{show(tensor.extent)} elements of a buffer; an output spans at most "
            f"{MAX_ELEMENTS}.",
        )
        shared = overlap(sizes, strides) if output else False
        rule(
            shared is not None,
            f"has sizes {show(sizes)} and strides {show(strides)}, and whether its "
            "elements share an offset would take too long to find out; use strides "
            "that each step over all the smaller axes.",
        )
        rule(
            not shared,
            f"has sizes {show(sizes)} and strides {show(strides)}, so that elements "
            "share an offset; an output's elements must not overlap.",
        )
    _check_bytes(rule, tensor)


def _check_bytes(rule: Callable[[bool, str], None], tensor: TensorDesc) -> None:
    """The rules of the buffer that holds the tensor."""
    width, total = tensor.dtype.itemsize, tensor.total_tensor_size_in_bytes
    implied = tensor.implied_size_in_bytes
    rule(
        total is None or (type(total) is int and total >= implied),
        f"has TotalTensorSizeInBytes {show(total)}; its sizes and strides need an "
        f"integer of at least {show(implied)}.",
    )
    alignment = tensor.guaranteed_base_offset_alignment
    aligned = type(alignment) is int and (alignment & (alignment - 1) == 0)
    rule(
        aligned and (alignment == 0 or alignment >= width),
        f"has GuaranteedBaseOffsetAlignment {show(alignment)}; it must be 0 or a power "
        f"of two of at least {width}, the size of an element of "
        f"{tensor.data_type.name}.",
    )
    rule(
        tensor.flags in list(TensorFlags.__members__.values()),
        f"has Flags {show(int(tensor.flags))}; it must be 0, NONE, or 1, OWNED_BY_DML.",
    )


def read(tensor: TensorDesc, buffer: jax.Array) -> jax.Array:
    """The logical tensor, read from a flat buffer through the strides."""
    order, sizes = _stride_order(tensor)
    if _is_packed(tensor, order):
        dense = buffer[: math.prod(sizes)].reshape([sizes[i] for i in order])
        return dense.transpose(np.argsort(order))
    # 0 strides are broadcast, not gathered: their gradient is then a sum, not a
    # scatter-add whose order may change from run to run.
    axes = zip(sizes, tensor.element_strides, strict=True)
    distinct = tuple(1 if stride == 0 else size for size, stride in axes)
    unique = overlap(distinct, tensor.element_strides) is False
    with index_mode(tensor.extent) as integer:
        dense = buffer.at[_offsets(tensor, distinct, integer)].get(
            mode="promise_in_bounds", unique_indices=unique
        )
    return jnp.broadcast_to(dense, sizes)


def write(tensor: TensorDesc, values: jax.Array, buffer: jax.Array) -> jax.Array:
    """The flat buffer with the logical tensor written to it through the strides."""
    order, sizes = _stride_order(tensor)
    if _is_packed(tensor, order):
        dense = values.transpose(order).ravel()
        return lax.dynamic_update_slice(buffer, dense, (0,))
    with index_mode(tensor.extent) as integer:
        return buffer.at[_offsets(tensor, sizes, integer)].set(
            values, mode="promise_in_bounds", unique_indices=True
        )


def _stride_order(tensor: TensorDesc) -> tuple[list[int], tuple[int, ...]]:
    """The axes from the largest stride to the smallest, and the sizes."""
    strides = tensor.element_strides
    return sorted(range(len(strides)), key=lambda i: -strides[i]), tensor.sizes


def _is_packed(tensor: TensorDesc, order: list[int]) -> bool:
    """Whether the axes, taken in `order`, lie packed in the buffer."""
    strides = tuple(tensor.element_strides[i] for i in order)
    return strides == packed_strides(tuple(tensor.sizes[i] for i in order))


def _offsets(
    tensor: TensorDesc, sizes: tuple[int, ...], integer: np.dtype
) -> jax.Array:
    """dot(c, strides) for every coordinate c of `sizes`."""
    offsets = jnp.zeros(sizes, integer)
    for axis, stride in enumerate(tensor.element_strides):
        step = jnp.asarray(stride if sizes[axis] > 1 else 0, integer)
        offsets += lax.broadcasted_iota(integer, sizes, axis) * step
    return offsets
