"""Tensor descriptions: data types, sizes, strides, bytes; and access through them."""

import contextlib
import dataclasses
import enum
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dmljax._check import as_member, require, show, show_number
from dmljax._overlap import overlap

# What every form of an operator returns, and what a form is: arrays and static
# attributes in, outputs out.
Outputs = tuple[jax.Array, ...]
Form = Callable[..., Outputs]

# What is accepted for a list of sizes (an array has one dimension), and for a value.
Sizes = Sequence[int] | np.ndarray
Number = int | float | np.integer | np.floating

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

    if TYPE_CHECKING:  # wider than the fields, which hold what __post_init__ makes

        def __init__(
            self,
            data_type: DataType | int,
            sizes: Sizes,
            strides: Sizes | None = None,
            total_tensor_size_in_bytes: int | None = None,
            flags: TensorFlags | int = TensorFlags.NONE,
            guaranteed_base_offset_alignment: int = 0,
        ) -> None: ...

    def __post_init__(self) -> None:
        freeze = object.__setattr__
        data_type: Any = self.data_type
        data_type = as_member("TensorDesc", "data_type", data_type, DataType)
        freeze(self, "data_type", data_type)
        freeze(self, "sizes", _integers("sizes", self.sizes))
        if self.strides is not None:
            freeze(self, "strides", _integers("strides", self.strides))
        flags: Any = self.flags  # unknown ones are refused with the operator
        require(
            "TensorDesc",
            isinstance(flags, int) and not isinstance(flags, bool) and flags >= 0,
            f"flags is {flags!r}; it must be 0, NONE, or 1, OWNED_BY_DML.",
        )
        freeze(self, "flags", TensorFlags(flags))

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


def is_sequence(values: Any) -> bool:
    """Whether `values` may be a list of integers."""
    text = isinstance(values, (str, bytes))
    return isinstance(values, (Sequence, np.ndarray)) and not text


def _integers(name: str, values: Any) -> tuple[Any, ...]:
    """A field of integers as a tuple; its elements are checked with the operator."""
    if not is_sequence(values):
        raise TypeError(
            f"TensorDesc: {name} is {values!r}; it must be a sequence of integers, "
            "such as (2, 3)."
        )
    return plain_integers(values)


def plain_integers(values: Iterable[Any]) -> tuple[Any, ...]:
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
    rule(
        not output or strides is None or tensor.buffer_length <= MAX_ELEMENTS,
        f"has TotalTensorSizeInBytes {tensor.total_tensor_size_in_bytes}, a buffer of "
        f"{tensor.buffer_length} elements; an output spans at most {MAX_ELEMENTS}.",
    )


def _check_bytes(rule: Callable[[bool, str], None], tensor: TensorDesc) -> None:
    """The rules of the buffer that holds the tensor."""
    width, total = tensor.dtype.itemsize, tensor.total_tensor_size_in_bytes
    implied = tensor.implied_size_in_bytes
    rule(
        total is None or (type(total) is int and total >= implied),
        f"has TotalTensorSizeInBytes {show_number(total)}; its sizes and strides need "
        f"an integer of at least {implied}.",
    )
    rule(
        total is None or total < 2**64,
        f"has TotalTensorSizeInBytes {show_number(total)}; it must be a UINT64, less "
        "than 2^64.",
    )
    alignment = tensor.guaranteed_base_offset_alignment
    aligned = type(alignment) is int and (alignment & (alignment - 1) == 0)
    rule(
        aligned and (alignment == 0 or width <= alignment < 2**32),
        f"has GuaranteedBaseOffsetAlignment {show_number(alignment)}; it must be 0 or "
        f"a power of two of at least {width}, the size of an element of "
        f"{tensor.data_type.name}, and less than 2^32.",
    )
    rule(
        tensor.flags in list(TensorFlags.__members__.values()),
        f"has Flags {show(int(tensor.flags))}; it must be 0, NONE, or 1, OWNED_BY_DML.",
    )


def read(tensor: TensorDesc, buffer: jax.Array) -> jax.Array:
    """The logical tensor, read from a flat buffer through the strides."""
    corner = _corner(tensor)
    if corner:
        dense = lax.slice(corner.frame(buffer), [0] * len(corner.sizes), corner.kept)
        dense = dense.reshape([tensor.sizes[i] for i in corner.order])
        return dense.transpose(np.argsort(corner.order))
    # 0 strides are broadcast, not gathered: their gradient is then a sum, not a
    # scatter-add whose order may change from run to run.
    sizes = tensor.sizes
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
    corner = _corner(tensor)
    if corner:
        dense = values.transpose(corner.order).reshape(corner.kept)
        start = (0,) * len(corner.sizes)
        frame = lax.dynamic_update_slice(corner.frame(buffer), dense, start)
        return lax.dynamic_update_slice(buffer, frame.ravel()[: buffer.size], (0,))
    with index_mode(tensor.extent) as integer:
        return buffer.at[_offsets(tensor, tensor.sizes, integer)].set(
            values, mode="promise_in_bounds", unique_indices=True
        )


class _Corner(NamedTuple):
    """A tensor as the first elements, along each axis, of a packed array.

    Attributes:
      order: the tensor's axes in the order of the array's.
      kept: how many elements of each axis of the array belong to the tensor.
      sizes: of the array, `kept` and the gaps.
    """

    order: tuple[int, ...]
    kept: tuple[int, ...]
    sizes: tuple[int, ...]

    def frame(self, buffer: jax.Array) -> jax.Array:
        """The array, of which the buffer may lack the last gap, or hold more."""
        missing = math.prod(self.sizes) - buffer.size
        zero = jnp.zeros((), buffer.dtype)
        return lax.pad(buffer, zero, [(0, missing, 0)]).reshape(self.sizes)


def _corner(tensor: TensorDesc) -> _Corner | None:
    """The packed array of which the tensor is a corner, if gaps are at most half of it.

    Without gaps it is the tensor itself. Slices and pads take no index for each
    element, as a gather and a scatter do: on a CPU, padding from and to 4 KiB with gaps
    takes 12 us and not 38 (results/x86_64-cpu_calls.jsonl).
    """
    strides, sizes = tensor.element_strides, tensor.sizes
    ones = [axis for axis, size in enumerate(sizes) if size == 1]
    long = [axis for axis, size in enumerate(sizes) if size > 1]
    long.sort(key=lambda axis: -strides[axis])
    # From the innermost axis outwards; each stride is that of the axis within, `step`,
    # times the size of that axis in the array, of which `count` belong to the tensor.
    kept, whole, step, count = [], [], 1, 1
    for axis in reversed(long):
        inner, rest = divmod(strides[axis], step)
        if rest or inner < count:
            return None
        kept.append(count)
        whole.append(inner)
        step, count = strides[axis], sizes[axis]
    kept.append(count)
    whole.append(count)
    if math.prod(whole) > 2 * math.prod(kept):
        return None
    return _Corner((*ones, *long), tuple(kept[::-1]), tuple(whole[::-1]))


def _offsets(
    tensor: TensorDesc, sizes: tuple[int, ...], integer: np.dtype
) -> jax.Array:
    """dot(c, strides) for every coordinate c of `sizes`."""
    offsets = jnp.zeros(sizes, integer)
    for axis, stride in enumerate(tensor.element_strides):
        step = jnp.asarray(stride if sizes[axis] > 1 else 0, integer)
        offsets += lax.broadcasted_iota(integer, sizes, axis) * step
    return offsets
