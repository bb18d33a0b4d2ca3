"""Descriptors are written to JSON and read from it."""

import dataclasses
import json
import random

import numpy as np
import pytest

from dmljax import (
    DataType,
    DiagonalMatrix1Desc,
    TensorFlags,
    create_operator,
)
from dmljax._directml.struct import c_name
from dmljax._operators import DESCRIPTORS
from tests.checks import assert_refused
from tests.fuzz.descriptors import Maker
from tests.samples import tensor
from tests.subjects import DESCRIBED, padding

PAD = padding.DESC
FIELDS = PAD.to_json()["desc"]
MATRIX = PAD.input_tensor
MINE = dataclasses.replace(MATRIX, flags=TensorFlags.OWNED_BY_DML)
FILL = DiagonalMatrix1Desc(None, tensor("INT8", 2, 2), DataType.INT8, -7, 1, 0)


def read_back(desc):
    """Writes a descriptor to JSON without NaN, and reads it."""
    text = json.dumps(desc.to_json()["desc"], allow_nan=False)
    return type(desc).from_json(json.loads(text))


# WRITING


@pytest.mark.parametrize("name", DESCRIBED)
def test_nothing_is_lost(name, x64):
    maker = Maker(random.Random(name))
    for _ in range(30):
        desc = DESCRIBED[name].make(maker)
        written = desc.to_json()
        assert written["type"] == f"DML_OPERATOR_{name}"
        present = [field for field, value in vars(desc).items() if value is not None]
        assert list(written["desc"]) == list(map(c_name, present))
        # Equal operators have the same bits, of NaN and of zeros too.
        assert create_operator(read_back(desc)) == create_operator(desc)


@pytest.mark.parametrize("value", [np.float64(0.1), np.int8(-7)])
def test_numbers_of_numpy_become_those_of_python(value):
    desc = dataclasses.replace(FILL, value=value)
    result = read_back(desc)
    assert result == desc
    assert type(result.value) is type(value.item())


def test_fields_of_a_written_tensor():
    """Fields that have their defaults are left out."""
    assert FIELDS["InputTensor"] == {"DataType": "FLOAT32", "Sizes": [2, 3]}
    written = dataclasses.replace(PAD, input_tensor=MINE).to_json()["desc"]
    assert written["InputTensor"] == FIELDS["InputTensor"] | {"Flags": "OWNED_BY_DML"}


# READING


def read(**changes):
    return type(PAD).from_json(FIELDS | changes)


def read_tensor(**fields):
    return read(InputTensor=FIELDS["InputTensor"] | fields).input_tensor


def test_an_optional_tensor_may_be_null():
    written = FILL.to_json()["desc"]
    assert DiagonalMatrix1Desc.from_json(written | {"InputTensor": None}) == FILL


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"Strides": [], "TotalTensorSizeInBytes": 0, "Flags": 0}, MATRIX),
        ({"Strides": None, "TotalTensorSizeInBytes": None, "Flags": []}, MATRIX),
        ({"GuaranteedBaseOffsetAlignment": None}, MATRIX),
        ({"Flags": ["DML_TENSOR_FLAG_OWNED_BY_DML", "NONE"]}, MINE),
        ({"Strides": [0, 1]}, dataclasses.replace(MATRIX, strides=(0, 1))),
    ],
)
def test_forms_of_a_tensor(fields, expected):
    assert read_tensor(**fields) == expected


@pytest.mark.parametrize("mode", ["EDGE", "DML_PADDING_MODE_EDGE", 1])
@pytest.mark.parametrize("data_type", ["FLOAT32", "DML_TENSOR_DATA_TYPE_FLOAT32", 1])
def test_forms_of_an_enum(mode, data_type):
    """Its short name, its full name, and its number."""
    source = FIELDS["InputTensor"] | {"DataType": data_type}
    assert read(PaddingMode=mode, InputTensor=source) == PAD


def test_forms_of_a_number():
    assert read(PaddingValue=9).padding_value == 9
    for value in ("NaN", "inf", "-inf"):
        assert repr(read(PaddingValue=value).padding_value) == value.lower()


# No flags: no list.
MODES = "one of CONSTANT, EDGE, REFLECTION, SYMMETRIC, WRAP."
OBJECT = "an object with the fields of the C struct"
NUMBER = "a number, or for floats also 'nan', 'inf' or '-inf'"


@pytest.mark.parametrize(
    ("field", "values", "rule"),
    [
        ("PaddingMode", ["edge", 5, True, 1.0, ["EDGE"], None], MODES),
        ("PaddingValue", ["Infinity", True, {"A": 3}], NUMBER),
        ("DimensionCount", [2.0, True, "1", None], "an integer."),
        ("StartPadding", [1, [1, "0"]], "a list of integers"),
        ("InputTensor", [[], "x", None], OBJECT),
        ("DataType", ["DML_PADDING_MODE_INT8", True], "one of UNKNOWN, FLOAT32,"),
        ("TotalTensorSizeInBytes", [False, 8.0, []], "an integer."),
        ("Flags", [2, ["NONE", "MINE"]], "one of NONE, OWNED_BY_DML, or a"),
    ],
)
def test_values_of_the_wrong_type(field, values, rule):
    is_tensors = field not in FIELDS
    path = "desc.InputTensor" if is_tensors else "desc"
    for value in values:
        shown = repr(value) if isinstance(value, str) else json.dumps(value)
        text = f"the field '{path}.{field}' is {shown[:50]}...; it must be {rule}"
        call = read_tensor if is_tensors else read
        assert_refused("PADDING", text, call, **{field: value})


def test_wrong_fields():
    text = "there is no field 'desc.Padding'; the fields are InputTensor, OutputTensor"
    assert_refused("PADDING", text, read, Padding={})
    text = "no field 'desc.InputTensor.Desc'; the fields are DataType, Sizes"
    assert_refused("PADDING", text, read_tensor, Desc={})
    text = "field 'desc.InputTensor.DataType' is missing; it must be one of UNKNOWN, "
    assert_refused("PADDING", text, read, InputTensor={"Sizes": [2, 3]})
    for name, desc in DESCRIPTORS.items():
        text = f"the field 'desc' is null; it must be {OBJECT}"
        assert_refused(name, text, desc.from_json, None)
