"""Tensor descriptions: the rules for every tensor of every operator."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmljax import DataType, DescriptorError, TensorDesc, TensorFlags
from dmljax._check import public
from dmljax._directml.tensor import check_tensor, steps_over
from tests import oracles
from tests.checks import assert_refused
from tests.samples import tensor

HUGE = 10**5000
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
SEQUENCE = "it must be a sequence of integers, such as (2, 3)."
UNMADE = [
    ({"data_type": "FLOAT32"}, "data_type is 'FLOAT32';...Write DataType.FLOAT32."),
    ({"data_type": 99}, "data_type is 99; it must be one of UNKNOWN, FLOAT32"),
    ({"strides": 1}, f"strides is 1; {SEQUENCE}"),
    ({"strides": 0}, f"strides is 0; {SEQUENCE}"),
    ({"sizes": "2" * 300_000}, f"... (300002 characters); {SEQUENCE}"),
]
for n in (-1, 2, 3, "1", True):
    UNMADE.append(({"flags": n}, f"flags is {n!r}; it must be one of NONE, OWNED_BY"))
for n in (6, "23", np.array(3), None):
    UNMADE.append(({"sizes": n}, f"sizes is {n!r}; {SEQUENCE}"))


def test_errors_of_the_constructor():
    for changes, text in UNMADE:
        error = TypeError if SEQUENCE in text else DescriptorError
        fields = {"data_type": 1, "sizes": (2, 3)} | changes
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


BYTES = "TotalTensorSizeInBytes"
NEED = "; its sizes and strides need an integer of at least"
ALIGNMENT = "GuaranteedBaseOffsetAlignment"
OVERLAP = ", with which elements may overlap; each stride of an output must step over"
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
    (sized(*[2**16] * 4), f"{2**64} elements; at most 4294967295 are"),
    (sized(HUGE), "sizes {about 2^16609}, about 2^16609 elements;"),
    (of(strides=(1,)), "sizes {2,3} and strides {1}; there must be a stride for each"),
    (of(strides=()), "sizes {2,3} and strides {}; there must be"),
    (total(23), f"{BYTES} 23{NEED} 24"),
    (total(0), f"{BYTES} 0{NEED} 24"),
    (total(24.0), f"{BYTES} 24.0{NEED} 24"),
    (total("24", strides=(3, 1)), f"{BYTES} '24'{NEED} 24"),
    (total(True, 1, data_type="UINT8"), f"{BYTES} True{NEED} 4"),
    (total(WRAPPED, 65536, 65535, data_type="FLOAT64"), f"{NEED} {65536 * 65535 * 8}"),
    (total(8, 2, 2, strides=(2**30 - 1, 1)), f"{BYTES} 8{NEED} {2**32 + 4}"),
    (total(2**64), f"{BYTES} {2**64}; it must be a UINT64, less than 2^64"),
    (total(HUGE), f"{BYTES} about 2^16609; it must be a UINT64"),
    (aligned(4, "FLOAT64"), f"{ALIGNMENT} 4;...at least 8, the size of an element"),
    (aligned(2**32), f"{ALIGNMENT} 4294967296;...of FLOAT32, and less than 2^32"),
]
for n in (0, -2, 2.0, "2", True):
    text = f"sizes {{{n},3}}; each must be an integer of at least 1"
    REFUSED.append((sized(n, 3), text))
for n in (-3, 2**32, 3.0, True):
    text = f"strides {{{n},1}}; each must be an integer in [0, 2^32)"
    REFUSED.append((of(strides=(n, 1)), text))
for n in (3, 12, 2, 1, -4, 4.0, True):
    text = f"{ALIGNMENT} {n}; it must be 0 or a power of two of at least 4"
    REFUSED.append((aligned(n), text))
# These are legal inputs.
REFUSED_OUTPUTS = [
    (of(strides=(0, 1)), f"sizes {{2,3}} and strides {{0,1}}{OVERLAP}"),
    (sized(2, 3, strides=(2, 1)), f"sizes {{2,3}} and strides {{2,1}}{OVERLAP}"),
    (
        of(strides=(2**32 - 1, 1)),
        "sizes {2,3} and strides {4294967295,1}, which span 4294967298 elements of a "
        "buffer; an output spans at most 4294967295",
    ),
    # No two elements share an offset, but to find this out is a subset sum.
    (sized(4, 3, strides=(3, 4)), f"sizes {{4,3}} and strides {{3,4}}{OVERLAP}"),
    (
        total(2**40, strides=(3, 1)),
        f"{BYTES} 1099511627776, a buffer of 274877906944 elements; an output spans at",
    ),
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
    assert_refused("CHECK_TENSOR", f"tensor 'X' has {text}", call, output=True)
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
