"""Resources and their initial values."""

import io
import json
import struct

import jax
import numpy as np
import pytest

import dmljax
from tests.model import models as m

TWICE = 1 + 2**-11 + 2**-40  # its nearest half is 1 + 2**-10


@pytest.mark.parametrize(
    ("data_type", "values", "expected"),
    [
        ("FLOAT32", [1, 2.5, "nan", "INF", "-Inf"], [1, 2.5, np.nan, np.inf, -np.inf]),
        ("FLOAT16", [65504, 65520, 1e-9, 10**300], [65504, np.inf, 0, np.inf]),
        # The nearest float32 lies between two halves, and rounds to the even half.
        ("FLOAT16", {"valueCount": 2, "value": TWICE}, [1, 1]),
        ("UINT8", m.line(4, 250, 3), [250, 253, 0, 3]),
        # NumPy warns of both, and users do not see it.
        ("FLOAT32", m.line(3, 3e38, 3e38), [3e38, np.inf, np.inf]),
        ("FLOAT32", m.line(2, "inf", "-inf"), [np.inf, np.nan]),
        # We round every sum to the type.
        ("FLOAT16", m.line(5, 2046, 1), [2046, 2047, 2048, 2048, 2048]),
    ],
)
def test_initial_values(data_type, values, expected):
    result = m.values_of(m.data(data_type, values))
    wanted = np.array(expected, data_type.lower())
    np.testing.assert_array_equal(result, wanted, strict=True)


# The size of the buffer

OFFSET = "initialValuesOffsetInBytes"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, [0x0201, 0x0403]),
        ({"sizeInBytes": 9}, [0x0201, 0x0403, 0, 0]),
        ({"sizeInBytes": 8, OFFSET: 3}, [0, 0x0100, 0x0302, 0x0004]),
    ],
)
def test_the_size_and_the_offset(more, expected):
    assert m.values_of(m.data("UINT16", [0x0201, 0x0403], **more)).tolist() == expected


# Elements of different types

INT8 = {"type": "INT8", "value": -1}
MIXED = [
    {"name": "count", "type": "UINT32", "value": 6},
    {"type": "DML_TENSOR_DATA_TYPE_FLOAT16", "value": 1.5},
    INT8,
    {"type": "FLOAT64", "value": "inf"},
]


def test_a_list_of_mixed_types(folder):
    resource = m.data("UNKNOWN", MIXED, sizeInBytes=20)
    results = dmljax.run_model(m.holding(resource, m.save("r", "r.bin")))
    packed = struct.pack("<Iebd", 6, 1.5, -1, np.inf) + bytes(5)
    assert results["r"].tolist() == list(packed)
    assert (folder / "r.bin").read_bytes() == packed
    for command in m.show("r"), m.save("r", "r.npy"), m.save("r", "r.png"):
        message = "their own types; only writeFile can show it, as raw data (.bin)."
        assert m.refused_resource(resource, command).endswith(message)


# Errors

INTEGERS = "UINT8 holds the integers 0 to 255."
FLOATS = "it must be a number, or for floats also 'nan', 'inf' or '-inf'."


@pytest.mark.parametrize(
    ("data_type", "values", "message"),
    [
        ("UINT8", [0, 256], f"initialValues[1] is 256; {INTEGERS}"),
        ("UINT8", [2.0], f"initialValues[0] is 2.0; {INTEGERS}"),
        ("UINT8", {"valueCount": 2, "value": 256}, f"'value' is 256; {INTEGERS}"),
        ("FLOAT32", [1, "x"], f"initialValues[1] is 'x'; {FLOATS}"),
        ("FLOAT32", [10**400], "characters), which is too large for FLOAT32."),
        ("UINT8", [], "the initial values have 0 elements; there must be at least on"),
        ("UINT8", m.line(1, 0, -1), f"the field 'valueDelta' is -1; {INTEGERS}"),
        ("UINT8", {"value": 1}, "field 'initialValues': the field 'valueCount' is m"),
        ("UINT8", {"valueCount": 3}, "has the fields 'valueCount'; it must have exa"),
        ("UINT8", {"value": 1, "valueStart": 1}, "of value, valueStart, sourcePath."),
        ("UINT8", [INT8], "'initialValuesDataType' is UINT8, while the initial"),
        (None, [1], "'initialValuesDataType' is missing or UNKNOWN; only a .npy file"),
        (None, [*MIXED, 7], "'r': initialValues[4]: it is 7; it must be an object."),
        (None, [INT8 | {"value": 128}], "initialValues[0]: the field 'value' is 128;"),
        (
            None,
            [INT8 | {"type": "UNKNOWN"}],
            "the field 'type' is UNKNOWN; it must be ",
        ),
    ],
)
def test_wrong_values(data_type, values, message):
    assert message in m.refused_resource(m.data(data_type, values))


# Files


@pytest.mark.parametrize(
    ("array", "data_type", "dtype"),
    [
        (np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3)), None, "int16"),
        (np.array([True, False]), "UINT8", "uint8"),
        (np.array(7, np.uint32), None, "uint32"),
    ],
)
def test_npy_files(array, data_type, dtype):
    with open("in.NPY", "wb") as file:
        np.save(file, array)
    result = m.values_of(m.source("in.NPY", data_type))
    np.testing.assert_array_equal(result, array.ravel().astype(dtype), strict=True)


def test_the_folder_of_a_source(folder):
    """The model's folder comes before the current directory. Raw data is little."""
    (folder / "models").mkdir()
    text = json.dumps(m.holding(m.source("in.bin", "UINT16")))
    (folder / "models/m.json").write_text(text)
    for name, first in ("in.bin", 1), ("models/in.bin", 3):
        (folder / name).write_bytes(bytes([first, 0, 2, 0]))
        assert dmljax.run_model("models/m.json")["r"].tolist() == [first, 2]


BOTH = "'initialValuesDataType' is FLOAT32; both must be the same."


def npy(array):
    """The content of a file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("no.npy", None, "npy' (in '.' or the current directory) cannot be read: No"),
        ("raw.dat", b"12345", "'raw.dat' has 5 bytes; they must be a multiple of 4"),
        ("a.npy", b"no array", "sourcePath 'a.npy' cannot be converted: "),
        ("a.npy", npy(np.array([{}])), "converted: Object arrays cannot be loaded"),
        ("a.npy", npy(np.zeros(1, "u1," * 99 + "u1")), " characters); it must be one"),
        ("a.npy", npy(np.int32([1])), f"'a.npy' has data type INT32, while {BOTH}"),
    ],
)
def test_a_wrong_source(folder, name, content, message):
    if content is not None:
        (folder / name).write_bytes(content)
    assert message in m.refused("input.initialValues", {"sourcePath": name})


def test_wide_values_in_x64_mode():
    """They stay exact. The fuzzer runs models with them."""
    np.save("wide.npy", [2**53 + 1])
    source = {"initialValues": {"sourcePath": "wide.npy"}}
    for resource in source, m.data("INT64", [2**53 + 1]):
        message = "'initialValues' has data type INT64, which needs JAX's x64 mode"
        assert message in m.refused_resource(resource)
        with jax.enable_x64(True):
            assert m.values_of(resource).tolist() == [2**53 + 1]
