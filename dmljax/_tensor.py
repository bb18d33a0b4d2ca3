"""Tensor descriptions: data types, sizes, strides, bytes, and the rules for them.

This file has what the page of every operator shares: a tensor's fields, and the rules
that do not depend on the operator. Which ranks and types an operator takes is in its
support table. How a tensor is read from a buffer is in `_strides`.
"""

import contextlib
import dataclasses
import enum
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from dmljax._check import as_member, counted, require, show, show_number
from dmljax._overlap import overlap

# A form is one way to compute an operator: a function of arrays and static attributes
# that returns the operator's outputs.
Outputs = tuple[jax.Array, ...]
Form = Callable[..., Outputs]
# Requires a condition of a tensor. The text goes behind the tensor's name.
Rule = Callable[[bool, str], None]

# The types of the arguments that stand for a list of sizes, and for a scalar. An array
# of sizes has one dimension.
Sizes = Sequence[int] | np.ndarray
Number = int | float | np.integer | np.floating

# DirectML's limits: it counts elements in 32 bits, and its attributes are INT32.
MAX_ELEMENTS = 2**32 - 1
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
LARGEST_DOUBLE = int(np.finfo(np.float64).max)
MAX_RANK = 8


class DataType(enum.IntEnum):
    """Names the types of a tensor's elements, as DML_TENSOR_DATA_TYPE does.

    The values are DirectML's numbers. UNKNOWN, UINT4 and INT4 are here because the
    C header has them. No operator of this package takes them.

    >>> DataType.FLOAT16.dtype, DataType["INT64"].dtype.itemsize, DataType(1).name
    (dtype('float16'), 8, 'FLOAT32')
    """

    __module__ = "dmljax"
    # What the C header puts before each name; the other enums follow a common rule.
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
        """The NumPy type of the same name; an error for UNKNOWN, which has none."""
        return jnp.dtype(self.name.lower())


class TensorFlags(enum.IntFlag):
    """Names the flags of a tensor, as DML_TENSOR_FLAGS does.

    OWNED_BY_DML lets DirectML keep a copy of a constant tensor, in any layout. dmljax
    accepts the flag, but it has no effect.

    >>> TensorFlags.OWNED_BY_DML == 1
    True
    """

    __module__ = "dmljax"

    NONE = 0
    OWNED_BY_DML = 1


@dataclasses.dataclass(frozen=True)
class TensorDesc:
    """Describes how a buffer is read as a tensor, as DML_BUFFER_TENSOR_DESC does.

    The element at coordinate c lies at offset dot(c, strides) of the buffer, counted in
    elements. A stride of 0 broadcasts. Strides may have any order and leave gaps.
    Without strides the tensor is packed in row-major order.

    Attributes:
      data_type: the type of the elements.
      sizes: 1 to 8 sizes, each at least 1, with a product below 2^32.
      strides: one stride for each size, in elements and not negative; None for a packed
        tensor. The elements of an output must not overlap.
      total_tensor_size_in_bytes: the size of the buffer, in bytes. None stands for the
        smallest size that is allowed, `implied_size_in_bytes`.
      flags: NONE or OWNED_BY_DML.
      guaranteed_base_offset_alignment: 0, or a number of bytes that is a power of two
        and not smaller than an element.

    Raises:
      DescriptorError: if the data type is unknown, or if the flags are not an integer.
        ``create_operator`` enforces the other rules, because it knows the operator and
        whether the tensor is an output.
      TypeError: if the sizes or the strides are not a sequence.

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

    # Callers may pass more types than the fields have: __post_init__ converts them. A
    # type checker learns that from this signature, which is not there at run time.
    if TYPE_CHECKING:

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
        freeze = object.__setattr__  # the way to set a field of a frozen dataclass
        data_type: Any = self.data_type
        data_type = as_member("TensorDesc", "data_type", data_type, DataType)
        freeze(self, "data_type", data_type)
        freeze(self, "sizes", _integers("sizes", self.sizes))
        for name in ("total_tensor_size_in_bytes", "guaranteed_base_offset_alignment"):
            freeze(self, name, plain_integer(getattr(self, name)))
        if self.strides is not None:
            freeze(self, "strides", _integers("strides", self.strides))
        # Unknown flags are kept here and refused by check_tensor, whose message names
        # the operator and the tensor.
        flags = plain_integer(self.flags)
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
        """The strides in elements. Those of a packed tensor follow from its sizes."""
        return packed_strides(self.sizes) if self.strides is None else self.strides

    @property
    def extent(self) -> int:
        """The number of elements of a buffer that the tensor spans, gaps included."""
        axes = zip(self.sizes, self.element_strides, strict=True)
        return sum((size - 1) * stride for size, stride in axes) + 1

    @property
    def implied_size_in_bytes(self) -> int:
        """The bytes that sizes and strides need, rounded up to a multiple of 4."""
        # Python's integers do not overflow, as the 32-bit sums of other tools do.
        return -(-self.extent * self.dtype.itemsize // 4) * 4

    @property
    def buffer_length(self) -> int:
        """The number of elements of the flat buffer that an output tensor returns."""
        if self.total_tensor_size_in_bytes is None:
            return self.extent
        return self.total_tensor_size_in_bytes // self.dtype.itemsize


def is_sequence(values: Any) -> bool:
    """Whether `values` may be a list of integers."""
    if isinstance(values, np.ndarray):
        return values.ndim > 0
    text = isinstance(values, (str, bytes))  # which are sequences as well
    return isinstance(values, Sequence) and not text


def _integers(name: str, values: Any) -> tuple[Any, ...]:
    """Returns a field of integers as a tuple. `check_tensor` checks the elements."""
    if not is_sequence(values):
        raise TypeError(
            f"TensorDesc: {name} is {values!r}; it must be a sequence of integers, "
            "such as (2, 3)."
        )
    return tuple(map(plain_integer, values))


def plain_integer(value: Any) -> Any:
    """Returns an integer of NumPy or JAX as Python's, which has a hash and no overflow.

    Anything else stays as it is, so that the checks can name it.
    """
    array = isinstance(value, (np.generic, np.ndarray, jax.Array))
    known = array and not isinstance(value, jax.core.Tracer)
    return int(value) if known and not value.ndim and is_integer(value.dtype) else value


def check_int32(operator: str, name: str, value: int) -> None:
    """Requires that an attribute is an INT of the C struct."""
    require(
        operator,
        INT32_MIN <= value <= INT32_MAX,
        f"{name} is {show_number(value)}; it must be an INT32, {INT32_MIN} to "
        f"{INT32_MAX}.",
    )


def is_floating(dtype: np.dtype) -> bool:
    """Whether `dtype` is a real floating-point type, including those of 4 and 8 bits.

    NumPy's own `issubdtype` does not know these types.
    """
    return jnp.issubdtype(dtype, jnp.floating)


def is_integer(dtype: np.dtype) -> bool:
    """Whether `dtype` is an integer type, including those of 4 bits."""
    return jnp.issubdtype(dtype, jnp.integer)


def x64_enabled() -> bool:
    """Whether JAX has 64-bit types: whether its x64 mode is on."""
    return jax.dtypes.canonicalize_dtype(np.int64) == np.int64


@contextlib.contextmanager
def index_mode(*sizes: int) -> Iterator[np.dtype]:
    """Makes a context in which indices up to these sizes have the type that it yields.

    The type is int32, or int64 if a size needs it. JAX has 64-bit integers only in its
    x64 mode, which the context then turns on. A symbolic size counts as less than 2^31,
    as it does for JAX.
    """
    # int32 is the default because 64-bit arithmetic is slow on GPUs and TPUs.
    wide = any(isinstance(size, int) and size >= 2**31 for size in sizes)
    with jax.enable_x64(wide or x64_enabled()):
        yield np.dtype(np.int64 if wide else np.int32)


def packed_strides(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the strides of a packed row-major tensor.

    >>> packed_strides((2, 3, 4))
    (12, 4, 1)
    """
    steps = itertools.accumulate(reversed(sizes[1:]), operator.mul, initial=1)
    return tuple(steps)[::-1]


def check_tensor(operator: str, name: str, tensor: TensorDesc, *, output: bool) -> None:
    """Enforces the rules that hold for every tensor of every operator.

    Args:
      operator: the name of the operator, for messages.
      name: the C name of the tensor, for messages.
      tensor: what is checked.
      output: whether the operator writes the tensor, which adds rules.
    """

    def rule(condition: bool, text: str) -> None:
        require(operator, condition, f"tensor '{name}' {text}")

    rule(
        tensor.data_type is not DataType.UNKNOWN,
        "has data type UNKNOWN; its elements must have a type.",
    )
    sizes = tensor.sizes
    whole = all(type(size) is int and size >= 1 for size in sizes)
    rule(whole, f"has sizes {show(sizes)}; each must be an integer of at least 1.")
    rule(
        1 <= len(sizes) <= MAX_RANK,
        f"has {counted(len(sizes), 'dimension')}; a tensor has 1 to {MAX_RANK}.",
    )
    rule(
        math.prod(sizes) <= MAX_ELEMENTS,
        f"has sizes {show(sizes)}, {show(math.prod(sizes))} elements; "
        f"at most {MAX_ELEMENTS} are allowed.",
    )
    if tensor.strides is not None:
        _check_strides(rule, tensor, output=output)
    _check_bytes(rule, tensor)
    rule(
        not output or tensor.strides is None or tensor.buffer_length <= MAX_ELEMENTS,
        f"has TotalTensorSizeInBytes {tensor.total_tensor_size_in_bytes}, a buffer of "
        f"{tensor.buffer_length} elements; an output spans at most {MAX_ELEMENTS}.",
    )


def _check_strides(rule: Rule, tensor: TensorDesc, *, output: bool) -> None:
    """Enforces the rules for strides."""
    sizes, strides = tensor.sizes, tensor.element_strides
    rule(
        len(strides) == len(sizes),
        f"has {counted(len(strides), 'stride')} {show(strides)} for "
        f"{counted(len(sizes), 'size')} {show(sizes)}; there must be one for each.",
    )
    rule(
        all(type(stride) is int and 0 <= stride < 2**32 for stride in strides),
        f"has strides {show(strides)}; each must be an integer in [0, 2^32).",
    )
    # The buffer of an output is allocated, so its length is limited like a tensor's.
    # An input may span more, because only its own elements are read.
    rule(
        not output or tensor.extent <= MAX_ELEMENTS,
        f"has sizes {show(sizes)} and strides {show(strides)}, which span "
        f"{show(tensor.extent)} elements of a buffer; an output spans at most "
        f"{MAX_ELEMENTS}.",
    )
    # No page of DirectML says what an output holds where two elements share an offset,
    # so it is an error here. An input may overlap itself.
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


def _check_bytes(rule: Rule, tensor: TensorDesc) -> None:
    """Enforces the rules for the buffer that holds the tensor."""
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
