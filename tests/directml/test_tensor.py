"""Tensor descriptions: the rules for every tensor of every operator."""

import functools
import re

import jax
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmljax import DataType, DescriptorError, TensorDesc, TensorFlags
from dmljax._check import public
from dmljax._directml.tensor import check_tensor, steps_over
from tests import oracles
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


# Errors of the constructor, which does not know the operator.
SEQUENCE = "must be a sequence of integers, one for each axis, not int."
BYTES = "total_tensor_size_in_bytes"
ALIGNMENT = "guaranteed_base_offset_alignment"
UNMADE = {
    "data_type is 'FLOAT32'; it...Write DataType.FLOAT32.": {"data_type": "FLOAT32"},
    "flags is 2; it must be one of NONE, OWNED_BY": {"flags": 2},
    f"sizes {SEQUENCE}": {"sizes": 6},
    f"strides {SEQUENCE}": {"strides": 0},
    "an element of sizes must be an integer": {"sizes": (2.0, 3)},
    "an element of sizes is about 2^16609; it must": {"sizes": [10**5000]},
    "an element of strides is True, a boolean": {"strides": (3, True)},
    f"{BYTES} must be an integer": {BYTES: 24.0},
    f"{ALIGNMENT} must be an integer": {ALIGNMENT: "4"},
}


@pytest.mark.parametrize("text", UNMADE)
def test_errors_of_the_constructor(text):
    is_value = re.search(r"FLOAT32|flags|2\^", text)
    error = DescriptorError if is_value else TypeError
    fields = {"data_type": 1, "sizes": (2, 3)} | UNMADE[text]
    assert_refused("TensorDesc", text, TensorDesc, error=error, **fields)


# THE RULES


def sized(*sizes, data_type="FLOAT32", **fields):
    return tensor(data_type, *sizes, **fields)


def of(data_type="FLOAT32", **fields):
    return tensor(data_type, 2, 3, **fields)


def total(size, *sizes, data_type="FLOAT32", strides=None):
    sizes = sizes or (2, 3)
    return tensor(data_type, *sizes, strides=strides, total_tensor_size_in_bytes=size)


def aligned(alignment, data_type="FLOAT32"):
    return of(data_type, guaranteed_base_offset_alignment=alignment)


NEED = "; its sizes and strides need at least"
STEP = ", with which elements may overlap; each stride of an output must step over"
# Wrapped at 32 bits, this size would be small.
WRAPPED = 65536 * 65535 * 8 % 2**32
REFUSED = [
    (of("UNKNOWN"), "data type UNKNOWN; its elements must have a type"),
    (sized(), "sizes {}; a tensor has 1 to 8 dimensions"),
    (sized(*[1] * 9), "sizes {1,1,1,1,1,1,1,1,1}; a tensor has 1 to 8"),
    (
        sized(65536, 65536, data_type="INT8"),
        "sizes {65536,65536}, 4294967296 elements; at most 4294967295 are allowed",
    ),
    (of(strides=(1,)), "sizes {2,3} and strides {1}; there must be a stride for each"),
    (of(strides=()), "sizes {2,3} and strides {}; there must be"),
    (total(23), f"TotalTensorSizeInBytes 23{NEED} 24"),
    (total(0), f"TotalTensorSizeInBytes 0{NEED} 24"),
    (total(WRAPPED, 65536, 65535, data_type="FLOAT64"), f"{NEED} {65536 * 65535 * 8}"),
    (total(8, 2, 2, strides=(2**30 - 1, 1)), f" 8{NEED} {2**32 + 4}"),
    (aligned(4, "FLOAT64"), "Alignment 4;...at least 8, the size of an element"),
    (aligned(2**32), "Alignment 4294967296;...of FLOAT32, and less than 2^32"),
]
symbol = jax.export.symbolic_shape("n")[0]
for n in (0, -2, symbol):
    text = f"sizes {{{n},3}}; each must be an integer of at least 1"
    REFUSED.append((sized(n, 3), text))
for n in (-3, 2**32, symbol):
    text = f"strides {{{n},1}}; each must be an integer in [0, 2^32)"
    REFUSED.append((of(strides=(n, 1)), text))
for n in (3, 12, 2, -4):
    text = f"GuaranteedBaseOffsetAlignment {n}; it must be 0 or a power of two of at"
    REFUSED.append((aligned(n), text))
# These are legal inputs.
REFUSED_OUTPUTS = [
    (of(strides=(0, 1)), f"sizes {{2,3}} and strides {{0,1}}{STEP}"),
    (of(strides=(2, 1)), f"sizes {{2,3}} and strides {{2,1}}{STEP}"),
    (of(strides=(2**32 - 1, 1)), "in a buffer of 4294967298 elements; the buffer of"),
    # No two elements share an offset, but to find this out is a subset sum.
    (sized(4, 3, strides=(3, 4)), f"sizes {{4,3}} and strides {{3,4}}{STEP}"),
    (total(2**40, strides=(3, 1)), "in a buffer of 274877906944 elements; the buffer"),
]
ACCEPTED_OUTPUTS = [
    sized(2, data_type="INT8", strides=(2**32 - 2,)),  # spans 2^32 - 1 elements
    total(4 * (2**32 - 1), strides=(3, 1)),
    total(2**40),  # a packed output ignores the size of its buffer
    aligned(0),
    aligned(4),
    aligned(2**31),
    of("UINT8", guaranteed_base_offset_alignment=1),
    of(flags=TensorFlags.OWNED_BY_DML),
    sized(*[1] * 8),
    sized(1, 1, 7, strides=(0, 0, 1)),  # the stride of an axis of size 1 is ignored
]
ACCEPTED = [
    *ACCEPTED_OUTPUTS,
    of(strides=(0, 0)),
    of(strides=(2**32 - 1, 1)),
    sized(65535, 65537, data_type="INT8"),  # 2^32 - 1 elements
    sized(9, 9, strides=(2**32 - 1, 2**32 - 1)),
    total(65536 * 65535 * 8, 65536, 65535, data_type="FLOAT64"),
    total(2**64 - 1),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[1])
def test_refused_tensors(case):
    item, text = case
    for output in (False, True):
        call = functools.partial(public(check_tensor), "X", output=output)
        assert_refused("CHECK_TENSOR", f"tensor 'X' has ...{text}", call, item)


@pytest.mark.parametrize("case", REFUSED_OUTPUTS, ids=lambda case: case[1])
def test_refused_outputs(case):
    item, text = case
    call = functools.partial(public(check_tensor), "X", item)
    assert_refused("CHECK_TENSOR", f"tensor 'X' has ...{text}", call, output=True)
    call(output=False)


def test_accepted_tensors():
    for item in ACCEPTED:
        check_tensor("X", item, output=item in ACCEPTED_OUTPUTS)


# STRIDES


axes = st.lists(
    st.tuples(st.integers(1, 5), st.integers(0, 24)), min_size=1, max_size=4
)


@given(axes)
def test_no_two_elements_share_an_offset_if_strides_step_over_smaller_axes(axes):
    """The fuzz has the reverse: it has outputs with axes in any order, and gaps."""
    sizes, strides = zip(*axes, strict=True)
    if steps_over(sizes, strides):
        assert not oracles.strides_overlap(sizes, strides)


# DERIVED FROM THE FIELDS


def test_lengths():
    for item, length in (
        (of(strides=(8, 2)), 13),
        (total(60, strides=(8, 2)), 15),
        (total(16, data_type="FLOAT16", strides=(4, 1)), 8),
        (total(8, data_type="UINT8", strides=(3, 1)), 8),
    ):
        assert item.buffer_length == length
    assert of().element_strides == (3, 1)
    assert of(strides=[1, 2]).element_strides == (1, 2)
