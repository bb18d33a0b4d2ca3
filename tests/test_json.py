"""Descriptors are written to JSON and read from it."""

import dataclasses
import json
import math

import numpy as np
import pytest

from dmljax import (
    DataType,
    DiagonalMatrix1Desc,
    DiagonalMatrixDesc,
    Padding1Desc,
    PaddingDesc,
    PaddingMode,
    TensorFlags,
    create_operator,
)
from dmljax._operators import DESCRIPTORS
from dmljax._struct import c_name
from tests.checks import assert_refused
from tests.fuzz.descriptors import made
from tests.samples import INT32_MIN, tensor
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
        present = {
            c_name(field.name)
            for field in dataclasses.fields(desc)
            if getattr(desc, field.name) is not None
        }
        fields = DESCRIBED[name].fields.split()
        assert list(written["desc"]) == [one for one in fields if one in present]
        # Equal operators have the same bits, of NaN and of zeros too.
        assert create_operator(read_back(desc)) == create_operator(desc)


def test_numbers_keep_their_bits():
    for value in (math.nan, math.inf, -math.inf, -0.0, 1e-45, 0.1, 1e300):
        for desc in (
            dataclasses.replace(PAD, padding_value=value),
            dataclasses.replace(PAD, padding_value=np.float64(value)),
        ):
            plain = dataclasses.replace(PAD, padding_value=value)
            assert repr(read_back(desc)) == repr(plain)
    for value in (2**64 - 1, -(2**63), 0.1):
        desc = dataclasses.replace(FILL, value=value)
        assert read_back(desc) == desc
    whole = dataclasses.replace(FILL, value=np.int8(-7))
    assert type(read_back(whole).value) is int
    assert read_back(whole) == FILL
    least = DiagonalMatrixDesc(tensor("INT8", 2, 2), INT32_MIN, -math.inf)
    assert read_back(least) == least


def test_what_is_written_of_a_tensor():
    """Fields that have their defaults are left out."""
    assert FIELDS["InputTensor"] == {"DataType": "FLOAT32", "Sizes": [2]}
    full = tensor(
        *("UINT8", 2),
        strides=(1,),
        total_tensor_size_in_bytes=4,
        flags=TensorFlags.OWNED_BY_DML,
        guaranteed_base_offset_alignment=16,
    )
    assert DiagonalMatrixDesc(full, 0, 1.0).to_json()["desc"]["OutputTensor"] == {
        "DataType": "UINT8",
        "Sizes": [2],
        "Strides": [1],
        "TotalTensorSizeInBytes": 4,
        "Flags": "OWNED_BY_DML",
        "GuaranteedBaseOffsetAlignment": 16,
    }
    assert "InputTensor" not in FILL.to_json()["desc"]


# READING


def read(kind=PaddingDesc, **changes):
    return kind.from_json(FIELDS | changes)


def read_tensor(**fields):
    fields = {"DataType": "FLOAT16", "Sizes": [2, 3]} | fields
    given = {name: value for name, value in fields.items() if value != "absent"}
    return read(InputTensor=given).input_tensor


MATRIX = tensor("FLOAT16", 2, 3)
MINE = dataclasses.replace(MATRIX, flags=TensorFlags.OWNED_BY_DML)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, MATRIX),
        ({"DataType": "DML_TENSOR_DATA_TYPE_FLOAT16"}, MATRIX),
        ({"DataType": 2, "DimensionCount": 2}, MATRIX),
        ({"Strides": [], "TotalTensorSizeInBytes": 0, "Flags": None}, MATRIX),
        ({"Strides": None, "TotalTensorSizeInBytes": None, "Flags": "NONE"}, MATRIX),
        ({"Type": "DML_TENSOR_TYPE_BUFFER", "Flags": 0}, MATRIX),
        ({"Flags": [], "GuaranteedBaseOffsetAlignment": None}, MATRIX),
        ({"Flags": 1}, MINE),
        ({"Flags": ["DML_TENSOR_FLAG_OWNED_BY_DML", "NONE"]}, MINE),
        (
            {"Strides": [0, 1], "TotalTensorSizeInBytes": 8},
            dataclasses.replace(MATRIX, strides=(0, 1), total_tensor_size_in_bytes=8),
        ),
        (
            {
                "Type": "BUFFER",
                "Desc": {"DataType": "FLOAT16", "Sizes": [2, 3], "DimensionCount": 2},
                **dict.fromkeys(("DataType", "Sizes"), "absent"),
            },
            MATRIX,
        ),
    ],
)
def test_forms_of_a_tensor(fields, expected):
    assert read_tensor(**fields) == expected


@pytest.mark.parametrize(
    ("prefix", "kind", "holder", "field"),
    [
        ("DML_TENSOR_DATA_TYPE_", DataType, "input_tensor", "DataType"),
        ("DML_TENSOR_FLAG_", TensorFlags, "input_tensor", "Flags"),
        ("DML_PADDING_MODE_", PaddingMode, "padding_mode", "PaddingMode"),
    ],
)
def test_forms_of_an_enum(prefix, kind, holder, field):
    """Its short name, its full name, and its number."""
    for name, member in kind.__members__.items():
        for value in (name, f"{prefix}{name}", int(member)):
            if field == "PaddingMode":
                found = read(PaddingMode=value).padding_mode
            else:
                item = read_tensor(**{field: value})
                found = item.data_type if field == "DataType" else item.flags
            assert found is member


@pytest.mark.parametrize(
    ("data_type", "value", "expected"),
    [
        *(("FLOAT32", 9, 9), ("FLOAT32", {"Float32": 1.5}, 1.5), ("UINT8", 3, 3)),
        *(("FLOAT16", {"UInt16": 0x3E00}, 1.5), ("FLOAT16", {"UInt16": 0xBE00}, -1.5)),
        *(("UINT8", {"UInt8": 3}, 3), ("INT64", {"Int64": -(2**63)}, -(2**63))),
        *(("FLOAT64", "-inf", -math.inf), ("FLOAT64", {"Float64": 0.1}, 0.1)),
    ],
)
def test_forms_of_a_scalar_union(data_type, value, expected):
    fields = {"PaddingValueDataType": data_type, "PaddingValue": value}
    assert repr(read(Padding1Desc, **fields).padding_value) == repr(expected)


def test_forms_of_a_number():
    for text in ("nan", "NaN", "inf", "-inf", "Inf"):
        found = read(PaddingValue=text).padding_value
        assert repr(found) == text.lower()
    assert repr(read(PaddingValue=9).padding_value) == "9.0"


def test_a_tensor_that_is_null_is_absent():
    written = FILL.to_json()["desc"] | {"InputTensor": None}
    assert DiagonalMatrix1Desc.from_json(written) == FILL


NUMBER = "it must be a number, 'nan', 'inf' or '-inf'"
INTEGER = "it must be an integer of at most 64 bits"
MODES = "it must be one of CONSTANT, EDGE, REFLECTION, SYMMETRIC, WRAP"
TYPES = "it must be one of UNKNOWN, FLOAT32,"
OBJECT = "it must be an object with the fields of the C struct"
REFUSED = [
    ({"Padding": 1}, "'desc' has an unknown field 'Padding'; its fields are InputTen"),
    *(
        ({"PaddingMode": value}, f"field 'desc.PaddingMode' is {text}; {MODES}")
        for value, text in (
            *(("MIRROR", "'MIRROR'"), (5, "5"), (True, "true"), (1.0, "1.0")),
            ("DML_TENSOR_DATA_TYPE_EDGE", "'DML_TENSOR_DATA_TYPE_EDGE'"),
        )
    ),
    *(
        ({"PaddingValue": value}, f"field 'desc.PaddingValue' is {text}; {NUMBER}")
        for value, text in (
            *(("ten", "'ten'"), (True, "true"), ([1], "[1]"), (10**400, "1000...")),
        )
    ),
    *(
        ({name: None}, f"'desc' has no field '{name}', which is required")
        for name in FIELDS
    ),
    *(
        ({"DimensionCount": value}, f"field 'desc.DimensionCount' is {text}; {INTEGER}")
        for value, text in (
            *((2.0, "2.0"), (True, "true"), ("1", "'1'")),
            *((2**64, str(2**64)), (-(2**63) - 1, str(-(2**63) - 1))),
        )
    ),
    ({"StartPadding": 1}, "'desc.StartPadding' is 1; it must be a list of integers"),
    ({"StartPadding": [1, "0"]}, f"field 'desc.StartPadding' is '0'; {INTEGER}"),
    ({"InputTensor": []}, f"field 'desc.InputTensor' is []; {OBJECT}"),
]
ITEM = "field 'desc.InputTensor."
REFUSED_TENSORS = [
    (
        {"DataType": "absent"},
        "'desc.InputTensor' has no field 'DataType', which is req",
    ),
    ({"Sizes": None}, "'desc.InputTensor' has no field 'Sizes', which is required"),
    (
        {"DimensionCount": 3},
        f"{ITEM}DimensionCount' is 3, while...' has 2 elements; both",
    ),
    ({"DimensionCount": 2.0}, f"{ITEM}DimensionCount' is 2.0, while"),
    ({"DimensionCount": True}, f"{ITEM}DimensionCount' is true, while"),
    ({"Type": "IMAGE"}, f"{ITEM}Type' is 'IMAGE'; it must be BUFFER"),
    ({"Flags": 2}, f"{ITEM}Flags' is 2; it must be one of NONE, OWNED_BY_DML"),
    ({"Flags": ["MINE"]}, f"{ITEM}Flags' is 'MINE'; it must be one of NONE, OWNED"),
    ({"DataType": "FLOAT8"}, f"{ITEM}DataType' is 'FLOAT8'; {TYPES}"),
    (
        {"DataType": "DML_TYPE_FLOAT16"},
        f"{ITEM}DataType' is 'DML_TYPE_FLOAT16'; {TYPES}",
    ),
    ({"DataType": True}, f"{ITEM}DataType' is true; {TYPES}"),
    ({"Sizes": [2, 3.0]}, f"{ITEM}Sizes' is 3.0; {INTEGER}"),
    ({"Strides": [0.0]}, f"{ITEM}Strides' is 0.0; {INTEGER}"),
    ({"TotalTensorSizeInBytes": False}, f"{ITEM}TotalTensorSizeInBytes' is false;"),
    ({"Size": [2]}, "unknown field 'Size'; its fields are DataType, Sizes, Strides,"),
    ({"Desc": 3}, "unknown field 'Desc'; its fields are"),
    (
        {"Desc": {}},
        "'desc.InputTensor' has the fields 'DataType', 'Sizes' beside 'Desc'",
    ),
]
REFUSED_UNIONS = [
    (
        "UINT8",
        {"Int8": 3},
        "for UINT8 it must be a number, or an object with the one me",
    ),
    (
        "FLOAT16",
        {"UInt16": 2**16},
        "with the one member 'UInt16', the bits of the numb",
    ),
    (
        "FLOAT16",
        {"UInt16": 1.5},
        "with the one member 'UInt16', the bits of the number",
    ),
    (
        "FLOAT32",
        {},
        "is {}; for FLOAT32 it must be a number, or an object with the one",
    ),
    ("FLOAT32", {"Float32": 1, "Int8": 1}, "with the one member 'Float32'."),
    ("FLOAT32", {"Float32": "1"}, NUMBER),
]


def test_what_is_refused():
    for call, cases in ((read, REFUSED), (read_tensor, REFUSED_TENSORS)):
        for fields, text in cases:
            assert_refused("PADDING", text, call, **fields)
    for data_type, value, text in REFUSED_UNIONS:
        fields = {"PaddingValueDataType": data_type, "PaddingValue": value}
        assert_refused("PADDING1", text, read, Padding1Desc, **fields)


def test_what_is_no_object():
    for value, shown in ((None, "null"), ([], "[]"), ("desc", "'desc'"), (1, "1")):
        for name, desc in DESCRIPTORS.items():
            text = f"field 'desc' is {shown}; {OBJECT}"
            assert_refused(name, text, desc.from_json, value)
