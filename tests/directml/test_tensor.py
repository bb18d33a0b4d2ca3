"""Tensor descriptions: the rules for every tensor of every operator."""

import functools

import jax
import pytest

from dmljax import DataType, DescriptorError, TensorDesc, TensorFlags
from dmljax._check import public
from dmljax._directml.tensor import check_tensor
from tests.checks import assert_refused
from tests.samples import tensor

# DML_TENSOR_DATA_TYPE in order, typed a second time from the C header.
DATA_TYPES = (
    "UNKNOWN FLOAT32 FLOAT16 UINT32 UINT16 UINT8 INT32 INT16 INT8 FLOAT64 UINT64 "
    "INT64 UINT4 INT4"
)


def test_enums():
    assert [each.name for each in DataType] == DATA_TYPES.split()
    assert list(DataType) == list(range(14))
    assert all(each.dtype == each.name.lower() for each in list(DataType)[1:])
    flags = {name: int(flag) for name, flag in TensorFlags.__members__.items()}
    assert flags == {"NONE": 0, "OWNED_BY_DML": 1}


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("data_type", "FLOAT32", "is 'FLOAT32'; it...Write DataType.FLOAT32."),
        ("flags", 2, "is 2; it must be one of NONE, OWNED_BY"),
        ("sizes", [10**5000], "is about 2^16609; it must be an integer of at most 64"),
        ("sizes", (2.0, 3), "must be an integer"),
        ("strides", (3, True), "is True, a boolean"),
        ("strides", 0, "must be a sequence of integers, one for each axis, not int."),
        ("total_tensor_size_in_bytes", 24.0, "must be an integer"),
    ],
)
def test_errors_of_the_constructor(field, value, text):
    """It does not know the operator."""
    error = DescriptorError if "; it" in text else TypeError
    fields = {"data_type": 1, "sizes": (2, 3), field: value}
    assert_refused("TensorDesc", f"{field} {text}", TensorDesc, error=error, **fields)


# THE RULES


def of(data_type="FLOAT32", *sizes, **fields):
    return tensor(data_type, *(sizes or (2, 3)), **fields)


def total(size, *item, **fields):
    return of(*item, total_tensor_size_in_bytes=size, **fields)


def aligned(alignment, data_type="FLOAT32"):
    return of(data_type, guaranteed_base_offset_alignment=alignment)


NEED = "; its sizes and strides need at least"
STEP = ", with which elements may overlap; each stride of an output must step over"
# Wrapped at 32 bits, this size would be small.
LARGE = 65536 * 65535 * 8
(symbol,) = jax.export.symbolic_shape("n")
REFUSED = [
    (of("UNKNOWN"), "data type UNKNOWN; its elements must have a type"),
    (tensor("INT8"), "sizes {}; a tensor has 1 to 8 dimensions"),
    (of("INT8", *[1] * 9), "sizes {1,1,1,1,1,1,1,1,1}; a tensor has 1 to 8"),
    (
        of("INT8", 65536, 65536),
        "sizes {65536,65536}, 4294967296 elements; at most 4294967295 are allowed",
    ),
    (of(strides=(1,)), "sizes {2,3} and strides {1}; there must be a stride for each"),
    (of(strides=()), "sizes {2,3} and strides {}; there must be"),
    (total(23), f"TotalTensorSizeInBytes 23{NEED} 24"),
    (total(0), f"TotalTensorSizeInBytes 0{NEED} 24"),
    (total(LARGE % 2**32, "FLOAT64", 65536, 65535), f"{NEED} {LARGE}"),
    (total(8, strides=(2**30 - 1, 1)), f" 8{NEED} {2**32 + 8}"),
    (aligned(4, "FLOAT64"), "Alignment 4;...at least 8, the size of an element"),
    (aligned(2**32), "Alignment 4294967296;...of FLOAT32, and less than 2^32"),
]
for n in (0, symbol):
    text = f"sizes {{{n},3}}; each must be an integer of at least 1"
    REFUSED.append((of("INT8", n, 3), text))
for n in (-3, 2**32, symbol):
    text = f"strides {{{n},1}}; each must be an integer in [0, 2^32)"
    REFUSED.append((of(strides=(n, 1)), text))
for n in (12, 2, -4):
    text = f"GuaranteedBaseOffsetAlignment {n}; it must be 0 or a power of two of at"
    REFUSED.append((aligned(n), text))
# These are legal inputs.
REFUSED_OUTPUTS = [
    (of(strides=(0, 1)), f"sizes {{2,3}} and strides {{0,1}}{STEP}"),
    (of(strides=(2, 1)), f"sizes {{2,3}} and strides {{2,1}}{STEP}"),
    (of("INT8", 2, 2, 2, strides=(3, 2, 1)), f" strides {{3,2,1}}{STEP}"),
    (of(strides=(2**32 - 1, 1)), "in a buffer of 4294967298 elements; the buffer of"),
    # No two elements share an offset, but to find this out is a subset sum.
    (of("INT8", 4, 3, strides=(3, 4)), f"{{4,3}} and strides {{3,4}}{STEP}"),
    (total(2**40, strides=(3, 1)), "in a buffer of 274877906944 elements; the buffer"),
]
ACCEPTED_OUTPUTS = [
    of("INT8", 2, strides=(2**32 - 2,)),  # spans 2^32 - 1 elements
    total(4 * (2**32 - 1), strides=(3, 1)),
    total(2**40),  # a packed output ignores the size of its buffer
    aligned(4),
    aligned(2**31),
    aligned(1, "UINT8"),
    of("INT8", *[1] * 8),
    of("INT8", 1, 1, 7, strides=(0, 0, 1)),  # the stride of a size of 1 is ignored
]
ACCEPTED = [
    *ACCEPTED_OUTPUTS,
    *[item for item, _ in REFUSED_OUTPUTS],
    of("INT8", 65535, 65537),  # 2^32 - 1 elements
    total(LARGE, "FLOAT64", 65536, 65535),
    total(2**64 - 1),
]


@pytest.mark.parametrize("output", [False, True])
@pytest.mark.parametrize(("item", "text"), REFUSED)
def test_refused_tensors(item, text, output):
    call = functools.partial(public(check_tensor), "X", item, output=output)
    assert_refused("CHECK_TENSOR", f"tensor 'X' has ...{text}", call)


@pytest.mark.parametrize(("item", "text"), REFUSED_OUTPUTS)
def test_refused_outputs(item, text):
    test_refused_tensors(item, text, output=True)


def test_accepted_tensors():
    for item in ACCEPTED:
        check_tensor("X", item, output=item in ACCEPTED_OUTPUTS)


def test_the_length_of_a_buffer():
    assert total(16, "FLOAT16", strides=(4, 1)).buffer_length == 8
