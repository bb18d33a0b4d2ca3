"""Tensor descriptions: data types, sizes, strides, bytes, and the rules for them.

This module has the fields of a tensor, and the rules that are the same for every
operator. The ranks and types that an operator takes are in its support table. `strides`
reads a tensor from a buffer.
"""

import dataclasses
import enum
import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from dmljax._check import ArgumentError, naming, show
from dmljax._directml.struct import convert_fields
from dmljax._types import MAX_ELEMENTS, packed_strides


class DataType(enum.IntEnum):
    """Names the types of a tensor's elements, as DML_TENSOR_DATA_TYPE does.

    The values are DirectML's numbers. UNKNOWN, UINT4 and INT4 are here because the
    C header has them. No operator of this package takes them.

    >>> DataType.FLOAT16.dtype, DataType["INT64"].dtype.itemsize, DataType(1).name
    (dtype('float16'), 8, 'FLOAT32')
    """

    __module__ = "dmljax"
    # The prefix of the names in C, which model files may have.
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


class TensorFlags(enum.IntFlag, boundary=enum.STRICT):
    """Names the flags of a tensor, as DML_TENSOR_FLAGS does.

    OWNED_BY_DML lets DirectML keep a copy of a constant tensor, in any layout. Here the
    flag has a meaning only in model files: there an operator binds such a tensor, and
    the commands that run the operator may not bind it again.

    >>> TensorFlags.OWNED_BY_DML == 1
    True
    """

    __module__ = "dmljax"

    C_PREFIX = enum.nonmember("DML_TENSOR_FLAG_")

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
      total_tensor_size_in_bytes: the size of the buffer, in bytes, at least
        `implied_size_in_bytes`. None stands for the bytes that the strides span.
      flags: NONE or OWNED_BY_DML.
      guaranteed_base_offset_alignment: 0, or a number of bytes that is a power of two
        and not smaller than an element.

    Raises:
      DescriptorError: if the data type or a flag is unknown, or an integer needs more
        than 64 bits. ``create_operator`` enforces the other rules, because it knows the
        operator and whether the tensor is an output.
      TypeError: if a field has another type, such as sizes that are not integers.

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
        """Converts the fields to their types."""
        with naming("TensorDesc"):
            convert_fields(self)

    @property
    def dtype(self) -> np.dtype:
        """The NumPy type of the elements."""
        return self.data_type.dtype

    @property
    def element_strides(self) -> tuple[int, ...]:
        """The strides in elements. For a packed tensor, they follow from its sizes."""
        return packed_strides(self.sizes) if self.strides is None else self.strides

    @property
    def extent(self) -> int:
        """How many elements of a buffer the tensor spans, gaps included."""
        axes = zip(self.sizes, self.element_strides, strict=True)
        return sum((size - 1) * stride for size, stride in axes) + 1

    @property
    def implied_size_in_bytes(self) -> int:
        """The bytes that the strides span, rounded up to a multiple of 4."""
        # Python's integers can't overflow, unlike the 32-bit sums of other tools.
        return -(-self.extent * self.dtype.itemsize // 4) * 4

    @property
    def buffer_length(self) -> int:
        """How many elements the flat buffer of an output tensor has."""
        if self.total_tensor_size_in_bytes is None:
            return self.extent
        return self.total_tensor_size_in_bytes // self.dtype.itemsize


def steps_over(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether each stride steps over all elements of the axes with smaller strides.

    If so, no two elements share an offset. This holds for the usual layouts: packed,
    transposed, channels last, with gaps. For a few other layouts, such as sizes {4,3}
    with strides {3,4}, the answer is False although no elements share an offset: an
    exact answer is a subset sum, which takes exponential time in general.

    >>> steps_over((2, 3), (1, 2)), steps_over((2, 3), (2, 1))
    (True, False)
    """
    span = 0
    for stride, size in sorted(zip(strides, sizes, strict=True)):
        if size > 1:
            if stride <= span:
                return False
            span += stride * (size - 1)
    return True


def check_tensor(
    name: str,
    tensor: TensorDesc,
    *,
    output: bool,
) -> None:
    """Enforces the rules for every tensor of every operator.

    Args:
      name: the C name of the tensor, for messages.
      tensor: the tensor to check.
      output: whether the operator writes the tensor. This adds rules.
    """
    has = f"tensor '{name}' has"
    sizes = tensor.sizes
    if tensor.data_type is DataType.UNKNOWN:
        raise ArgumentError(f"{has} data type UNKNOWN; its elements must have a type.")
    if not all(type(size) is int and size >= 1 for size in sizes):
        raise ArgumentError(
            f"{has} sizes {show(sizes)}; each must be an integer of at least 1."
        )
    if not 1 <= len(sizes) <= 8:
        raise ArgumentError(
            f"{has} sizes {show(sizes)}; a tensor has 1 to 8 dimensions."
        )
    elements = math.prod(sizes)
    if elements > MAX_ELEMENTS:
        raise ArgumentError(
            f"{has} sizes {show(sizes)}, {show(elements)} elements; at most "
            f"{MAX_ELEMENTS} are allowed."
        )
    # The rules of strides. Packed strides always keep them.
    strides = tensor.element_strides
    both = f"sizes {show(sizes)} and strides {show(strides)}"
    if len(strides) != len(sizes):
        raise ArgumentError(f"{has} {both}; there must be a stride for each size.")
    if not all(type(stride) is int and 0 <= stride < 2**32 for stride in strides):
        raise ArgumentError(
            f"{has} strides {show(strides)}; each must be an integer in [0, 2^32)."
        )
    total = tensor.total_tensor_size_in_bytes
    implied = tensor.implied_size_in_bytes
    if total is not None and total < implied:
        raise ArgumentError(
            f"{has} TotalTensorSizeInBytes {total}; its sizes and strides need at "
            f"least {implied}."
        )
    itemsize = tensor.dtype.itemsize
    alignment = tensor.guaranteed_base_offset_alignment
    is_power = alignment & (alignment - 1) == 0 and itemsize <= alignment < 2**32
    if alignment and not is_power:
        raise ArgumentError(
            f"{has} GuaranteedBaseOffsetAlignment {alignment}; it must be 0 or a power "
            f"of two of at least {itemsize}, the size of an element of "
            f"{tensor.data_type.name}, and less than 2^32."
        )
    if not output:
        # Elements of an input may share offsets. Its extent has no limit, because only
        # its elements are read.
        return
    # Elements must not share an offset: no page defines the result.
    if not steps_over(sizes, strides):
        raise ArgumentError(
            f"{has} {both}, with which elements may overlap; each stride of an output "
            "must step over all axes with smaller strides."
        )
    # The buffer of an output is allocated, so its length has the limit of a tensor.
    if tensor.strides is not None and tensor.buffer_length > MAX_ELEMENTS:
        raise ArgumentError(
            f"{has} {both} in a buffer of {tensor.buffer_length} elements; the buffer "
            f"of an output has at most {MAX_ELEMENTS}."
        )
