"""Descriptors are written to JSON and read from it."""

import dataclasses
import json

import numpy as np
import pytest

from dmljax import (
    DataType,
    DiagonalMatrix1Desc,
    PaddingDesc,
    PaddingMode,
    TensorDesc,
    TensorFlags,
    create_operator,
)
from dmljax._directml.struct import c_name
from dmljax._operators import DESCRIPTORS
from tests.checks import assert_refused
from tests.fuzz.descriptors import made
from tests.samples import tensor
from tests.subjects import DESCRIBED

VECTOR = tensor("FLOAT32", 2)
PAD = PaddingDesc(VECTOR, VECTOR, PaddingMode.EDGE, 0.0, 1, (0,), (0,))
FIELDS = PAD.to_json()["desc"]
FILL = DiagonalMatrix1Desc(None, tensor("INT8", 2, 2), DataType.INT8, -7, 1, 0)


def read_back(desc):
    """Writes a descriptor to JSON without NaN, and reads it."""
    text = json.dumps(desc.to_json()["desc"], allow_nan=False)
    return type(desc).from_json(json.loads(text))


# WRITING


@pytest.mark.parametrize("name", DESCRIBED)
def test_nothing_is_lost(name, x64):
    for desc in made(name, 30):
        written = desc.to_json()
        assert written["type"] == f"DML_OPERATOR_{name}"
        present = [field for field, value in vars(desc).items() if value is not None]
        assert list(written["desc"]) == list(map(c_name, present))
        # Equal operators have the same bits, of NaN and of zeros too.
        assert create_operator(read_back(desc)) == create_operator(desc)


def test_numbers_of_numpy_become_those_of_python():
    for desc, field, value in (
        (PAD, "padding_value", np.float64(0.1)),
        (FILL, "value", np.int8(-7)),
    ):
        result = read_back(dataclasses.replace(desc, **{field: value}))
        assert result == dataclasses.replace(desc, **{field: value.item()})
        assert type(getattr(result, field)) is type(value.item())


def test_fields_of_a_written_tensor():
    """Fields that have their defaults are left out."""
    assert FIELDS["InputTensor"] == {"DataType": "FLOAT32", "Sizes": [2]}
    written = FILL.to_json()["desc"]
    assert "InputTensor" not in written
    assert DiagonalMatrix1Desc.from_json(written | {"InputTensor": None}) == FILL
    item = TensorDesc(DataType.UINT8, (2,), (1,), 4, TensorFlags.OWNED_BY_DML, 16)
    full = dataclasses.replace(FILL, input_tensor=item).to_json()
    assert full["desc"]["InputTensor"] == {
        "DataType": "UINT8",
        "Sizes": [2],
        "Strides": [1],
        "TotalTensorSizeInBytes": 4,
        "Flags": "OWNED_BY_DML",
        "GuaranteedBaseOffsetAlignment": 16,
    }


# READING


TENSOR = "desc.InputTensor"


def read(**changes):
    return PaddingDesc.from_json(FIELDS | changes)


def read_tensor(**fields):
    return read(
        InputTensor={"DataType": "FLOAT16", "Sizes": [2, 3]} | fields
    ).input_tensor


MATRIX = tensor("FLOAT16", 2, 3)
MINE = dataclasses.replace(MATRIX, flags=TensorFlags.OWNED_BY_DML)
BROADCAST = TensorDesc(DataType.FLOAT16, (2, 3), (0, 1), 8)


def test_forms_of_a_tensor():
    for fields, expected in (
        ({}, MATRIX),
        ({"DataType": 2}, MATRIX),
        ({"Strides": [], "TotalTensorSizeInBytes": 0, "Flags": None}, MATRIX),
        ({"Strides": None, "TotalTensorSizeInBytes": None, "Flags": "NONE"}, MATRIX),
        ({"Flags": 0}, MATRIX),
        ({"Flags": [], "GuaranteedBaseOffsetAlignment": None}, MATRIX),
        ({"Flags": ["DML_TENSOR_FLAG_OWNED_BY_DML", "NONE"]}, MINE),
        ({"Strides": [0, 1], "TotalTensorSizeInBytes": 8}, BROADCAST),
    ):
        assert read_tensor(**fields) == expected


def test_forms_of_an_enum():
    """Its short name, its full name, and its number."""
    for prefix, enum_type, read_member in (
        ("TENSOR_DATA_TYPE", DataType, lambda v: read_tensor(DataType=v).data_type),
        ("TENSOR_FLAG", TensorFlags, lambda v: read_tensor(Flags=v).flags),
        ("PADDING_MODE", PaddingMode, lambda v: read(PaddingMode=v).padding_mode),
    ):
        for name, member in enum_type.__members__.items():
            for value in (name, f"DML_{prefix}_{name}", int(member)):
                assert read_member(value) is member


def test_forms_of_a_number():
    assert read(PaddingValue=9).padding_value == 9
    for value in ("nan", "NaN", "inf", "-inf", "Inf"):
        assert repr(read(PaddingValue=value).padding_value) == value.lower()


MODES = "one of CONSTANT, EDGE, REFLECTION, SYMMETRIC, WRAP."  # and no list
OBJECT = "an object with the fields of the C struct"


@pytest.mark.parametrize(
    ("field", "values", "rule"),
    [
        ("PaddingMode", ["MIRROR", "edge", 5, True, 1.0, ["EDGE"]], MODES),
        (
            "PaddingValue",
            ["x", "Infinity", True, [1], {"A": 3}],
            "a number, or for floats also 'nan', 'inf' or '-inf'",
        ),
        ("DimensionCount", [2.0, True, "1"], "an integer."),
        ("StartPadding", [1, {}, [1, "0"]], "a list of integers"),
        ("InputTensor", [[], "x"], OBJECT),
        (
            "DataType",
            ["FLOAT8", "DML_PADDING_MODE_INT8", True],
            "one of UNKNOWN, FLOAT32,",
        ),
        ("TotalTensorSizeInBytes", [False, 8.0, []], "an integer."),
        ("Strides", [0, {}], "a list of integers"),
        ("Flags", [2, "MINE", {}, ["NONE", "MINE"]], "one of NONE, OWNED_BY_DML"),
    ],
)
def test_values_of_the_wrong_type(field, values, rule):
    call, path = (read, "desc") if field in FIELDS else (read_tensor, TENSOR)
    for value in values:
        shown = repr(value) if isinstance(value, str) else json.dumps(value)
        text = f"the field '{path}.{field}' is {shown[:50]}...; it must be {rule}"
        assert_refused("PADDING", text, call, **{field: value})


def test_wrong_fields():
    for call, path, name, fields in (
        (read, "desc", "Padding", "InputTensor, OutputTensor, Pad"),
        (read_tensor, TENSOR, "Desc", "DataType, Sizes"),
    ):
        text = f"there is no field '{path}.{name}'; the fields are {fields}"
        assert_refused("PADDING", text, call, **{name: {}})
    for name in FIELDS:
        text = f"the field 'desc.{name}' is null; it must be "
        assert_refused("PADDING", text, read, **{name: None})
    text = f"the field '{TENSOR}.DataType' is missing; it must be one of UNKNOWN, "
    assert_refused("PADDING", text, read, InputTensor={"Sizes": [2, 3]})
    for name, desc in DESCRIPTORS.items():
        text = f"the field 'desc' is null; it must be {OBJECT}"
        assert_refused(name, text, desc.from_json, None)
