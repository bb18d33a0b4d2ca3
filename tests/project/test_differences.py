"""The differences from DxDispatch: one test for each row of the documentation."""

import json
import re

import jax
import numpy as np
import pytest

import dmljax
from dmljax._operators import DESCRIPTORS
from tests.model import models as m
from tests.project.texts import names_of_tests, section

pytestmark = pytest.mark.usefixtures("folder")
ALIGNMENT = "pad.desc.InputTensor.GuaranteedBaseOffsetAlignment"

# Edits of the model of a padding that are refused, and what they are refused with.
REFUSED = {
    "deferred values": (
        "input.initialValues",
        "deferred",
        "is 'deferred', which only ONNX dispatchables have; give the values.",
    ),
    "all or nothing": (
        "writeFile.resource",
        "none",
        "the resource 'none' is not in the model; it has 'input', 'output'.",
    ),
    "folders are not made": (
        "writeFile.targetPath",
        "no/written.npy",
        "targetPath 'no/written.npy' is in a folder that does not exist; it is",
    ),
    "unknown fields": ("input.comment", "mine", "there is no field 'comment'"),
    "other spellings": (
        "pad.desc.InputTensor.DimensionCount",
        1,
        "'desc.InputTensor' has an unknown field 'DimensionCount'; its fields are Data",
    ),
    "element count": ("bindings.InputTensor.elementCount", 2, "spans 3 elements of"),
    "overlapping outputs": ("pad.desc.OutputTensor.Strides", [0], "may overlap"),
}
PADDED = [1, 1, 2, 3, 3]
WRAPPED = [3, 1, 2, 3, 1]
# Edits that are accepted, and what the model then gives.
ACCEPTED = [
    ("wrap", "pad.desc.PaddingMode", "WRAP", WRAPPED),
    ("wrap", "pad.desc.PaddingMode", 4, WRAPPED),
    ("null", "input.sizeInBytes", None, PADDED),
    ("numbers for enum values", "pad.desc.PaddingMode", 2, [2, 1, 2, 3, 2]),
    ("numbers for enum values", "pad.type", "padding", PADDED),
]
# The tests of other rows, in tests/model/.
ELSEWHERE = {
    "bytes are printed as numbers": "test_what_is_printed",
    "pixels are rounded": "test_written_floats_are_clipped_and_rounded",
    "halves in mixed lists": "test_a_list_of_mixed_types",
    "halves are rounded": "test_initial_values",
    "rows past the count": "test_two_outputs_in_one_resource",
}


def test_every_row_has_a_test():
    table = section("docs/model_files.md", "Differences from DxDispatch")
    rows = set(re.findall(r"^\| (.+?) \|", table, re.MULTILINE)[1:])
    tested = set(REFUSED) | set(ELSEWHERE) | {row for row, *_ in ACCEPTED}
    assert tested <= rows
    names = {f"test_{row.replace(' ', '_')}" for row in rows - tested}
    names |= {"test_every_row_has_a_test", "test_refused", "test_accepted"}
    assert names == {name for name in globals() if name.startswith("test_")}
    assert set(ELSEWHERE.values()) <= names_of_tests()


@pytest.mark.parametrize("row", REFUSED)
def test_refused(row, folder, capsys):
    path, value, message = REFUSED[row]
    assert message in m.refused(path, value)
    assert capsys.readouterr().out == ""
    assert not any(folder.iterdir())


@pytest.mark.parametrize(("row", "path", "value", "expected"), ACCEPTED)
def test_accepted(row, path, value, expected):
    assert m.padded(path, value) == expected


@pytest.mark.parametrize("name", ["hlsl", "onnx", "DML_OPERATOR_GEMM"])
def test_other_dispatchables(name):
    """They are refused before any data is read."""
    other = m.edited(m.padding_model(), "pad", {"type": name, "sourcePath": "add.hlsl"})
    assert m.refusal(m.edited(other, "input.initialValues", "deferred")) == (
        f"model, dispatchable 'pad': the type '{name}' is not an operator of dmljax; "
        f"the operators are {', '.join(DESCRIPTORS)}."
    )


def test_resources_are_printed_whole(capsys):
    dmljax.run_model(m.holding(m.data("UINT8", [1], sizeInBytes=3), m.show("r")))
    assert capsys.readouterr().out == "Resource 'r': 1, 0, 0\n"


def test_raw_files_have_no_padding(folder):
    dmljax.run_model(m.holding(m.data("UINT8", [1, 2, 3]), m.save("r", "r.bin")))
    assert (folder / "r.bin").read_bytes() == b"\1\2\3"


def test_more_images():
    image = pytest.importorskip("PIL.Image")
    image.new("L", (3, 2), 51).save("in.jpeg")
    for data_type, value in (("UINT8", 51), ("FLOAT64", 0.2)):
        with jax.enable_x64(data_type == "FLOAT64"):
            values = m.values_of(m.source("in.jpeg", data_type))
            assert values.tolist() == [value] * 6


def test_duplicate_names(folder):
    (folder / "m.json").write_text('{"resources": {"a": 1, "a": 2}}')
    assert "the name 'a' occurs twice in one object." in m.refusal("m.json")


def test_text_after_the_model(folder):
    (folder / "m.json").write_text(json.dumps(m.padding_model()) + " more")
    assert "Extra data" in m.refusal("m.json")


def test_numbers_past_the_largest_float(folder):
    text = json.dumps(m.padding_model()).replace("[1, 2, 3]", "[1, 2, 1e999]")
    (folder / "m.json").write_text(text)
    assert dmljax.run_model("m.json")["input"].tolist() == [1, 2, np.inf]


def test_bindings_of_a_dispatchable():
    bound = m.edited(m.padding_model(), "pad.bindings", {"InputTensor": "input"})
    results = dmljax.run_model(m.edited(bound, "bindings.InputTensor", ...))
    assert results["output"].tolist() == PADDED


def test_alignment():
    moved = m.edited(m.padding_model(), "bindings.InputTensor.elementOffset", 1)
    moved = m.edited(moved, "input.initialValues", [9, 1, 2, 3])
    output = dmljax.run_model(m.edited(moved, ALIGNMENT, 4))["output"]
    assert output.tolist() == PADDED
    assert m.refusal(m.edited(moved, ALIGNMENT, 8)).endswith(
        "the binding of 'InputTensor' begins at byte 4, while the tensor has "
        "GuaranteedBaseOffsetAlignment 8; the first must be a multiple of the second."
    )
