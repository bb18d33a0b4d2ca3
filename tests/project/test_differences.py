"""The differences from DxDispatch: one test for each row of the documentation."""

import json
import pathlib
import re

import jax
import numpy as np
import pytest

import dmljax
from dmljax._operators import DESCRIPTORS
from tests.model import models as m

pytestmark = pytest.mark.usefixtures("folder")
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "model_files.md"
ALIGNMENT = "pad.desc.InputTensor.GuaranteedBaseOffsetAlignment"

# Edits of the model of a padding that are refused, and what they are refused with.
REFUSED = {
    "deferred values": (
        *("input.initialValues", "deferred"),
        "is 'deferred', which only ONNX dispatchables have; give the values.",
    ),
    "all or nothing": (
        *("writeFile.resource", "none"),
        "the resource 'none' is not in the model; it has 'input', 'output'.",
    ),
    "folders are not made": (
        *("writeFile.targetPath", "no/written.npy"),
        "targetPath 'no/written.npy' is in a folder that does not exist; it is",
    ),
    "unknown fields": ("input.comment", "mine", "there is no field 'comment'"),
    "element count": ("bindings.InputTensor.elementCount", 2, "spans 3 elements of"),
    "overlapping outputs": ("pad.desc.OutputTensor.Strides", [0], "must not overlap"),
}
# Edits that are accepted, and what the model then gives.
ACCEPTED = {
    "wrap": [
        ("pad.desc.PaddingMode", "WRAP", [3, 1, 2, 3, 1]),
        ("pad.desc.PaddingMode", 4, [3, 1, 2, 3, 1]),
    ],
    "null": [("input.sizeInBytes", None, [1, 1, 2, 3, 3])],
    "numbers for enum values": [
        ("pad.desc.PaddingMode", 2, [2, 1, 2, 3, 2]),
        ("pad.type", "padding", [1, 1, 2, 3, 3]),
    ],
}


def test_every_row_has_a_test():
    section = PAGE.read_text().split("## Differences from DxDispatch")[1]
    section = section.split("\n## ")[0]
    titles = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)[1:]
    rows = {title.strip().replace(" ", "_") for title in titles}
    tests = {name.removeprefix("test_") for name in globals() if "test_" in name[:5]}
    tables = {title.replace(" ", "_") for title in REFUSED | ACCEPTED}
    assert rows | {"every_row_has_a_test", "refused", "accepted"} == tests | tables


@pytest.mark.parametrize("title", REFUSED)
def test_refused(title, folder, capsys):
    path, value, message = REFUSED[title]
    assert message in m.refused(path, value)
    assert capsys.readouterr().out == ""
    assert not any(folder.iterdir())


@pytest.mark.parametrize("title", ACCEPTED)
def test_accepted(title):
    for path, value, expected in ACCEPTED[title]:
        assert m.padded(path, value) == expected


@pytest.mark.parametrize("name", ["hlsl", "onnx", "DML_OPERATOR_GEMM"])
def test_other_dispatchables(name):
    """They are refused before any data is read."""
    other = m.edited(m.padding_model(), "pad", {"type": name, "sourcePath": "add.hlsl"})
    assert m.refusal(m.edited(other, "input.initialValues", "deferred")) == (
        f"model, dispatchable 'pad': the type '{name}' is not an operator of dmljax; "
        f"the operators are {', '.join(DESCRIPTORS)}."
    )


def test_bytes_are_printed_as_numbers(capsys):
    dmljax.run_model(m.holding(m.data("UINT8", [65, 66]), m.show("r")))
    assert capsys.readouterr().out == "Resource 'r': 65, 66\n"


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


def test_pixels_are_rounded():
    image = pytest.importorskip("PIL.Image")
    command = m.save("r", "out.png", dimensions=[1, 2])
    dmljax.run_model(m.holding(m.data("FLOAT32", [0.499, 0.999]), command))
    assert np.asarray(image.open("out.png")).tolist() == [[127, 255]]


def test_channel_order():
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (1, 1), (1, 2, 3)).save("in.png")
    assert m.values_of(m.source("in.png", channelOrder="BGR")).tolist() == [3, 2, 1]


def test_duplicate_names(folder):
    (folder / "m.json").write_text('{"resources": {"a": 1, "a": 2}}')
    assert "the name 'a' occurs twice in one object." in m.refusal("m.json")


def test_text_after_the_model(folder):
    (folder / "m.json").write_text(json.dumps(m.padding_model()) + " more")
    assert "Extra data" in m.refusal("m.json")


def test_halves_in_mixed_lists():
    halves = m.values_of({"initialValues": [{"type": "FLOAT16", "value": 1}]})
    assert halves.view(np.float16).tolist() == [1]


def test_numbers_past_the_largest_float(folder):
    text = json.dumps(m.padding_model()).replace("[1, 2, 3]", "[1, 2, 1e999]")
    (folder / "m.json").write_text(text)
    assert dmljax.run_model("m.json")["input"].tolist() == [1, 2, np.inf]


def test_halves_are_rounded():
    halves = m.values_of(m.data("FLOAT16", [2051, 0.3]))
    assert halves.tolist() == [2052, 0.300048828125]


def test_bindings_of_a_dispatchable():
    bound = m.edited(m.padding_model(), "pad.bindings", {"InputTensor": "input"})
    results = dmljax.run_model(m.edited(bound, "bindings.InputTensor", ...))
    assert results["output"].tolist() == [1, 1, 2, 3, 3]


def test_alignment():
    moved = m.edited(m.padding_model(), "bindings.InputTensor.elementOffset", 1)
    moved = m.edited(moved, "input.initialValues", [9, 1, 2, 3])
    output = dmljax.run_model(m.edited(moved, ALIGNMENT, 4))["output"]
    assert output.tolist() == [1, 1, 2, 3, 3]
    assert m.refusal(m.edited(moved, ALIGNMENT, 8)).endswith(
        "the binding of 'InputTensor' begins at byte 4, while the tensor has "
        "GuaranteedBaseOffsetAlignment 8; the first must be a multiple of the second."
    )


def test_rows_past_the_count():
    resources = {
        "InputTensor": m.data("UINT8", [0, 0, 5]),
        "OutputCountTensor": m.zeros("UINT32", 1),
        "OutputCoordinatesTensor": m.data("UINT32", [9, 9, 9]),
    }
    run = m.dispatch("nz", **{name: name for name in resources})
    results = dmljax.run_model(m.model(resources, {"nz": m.nonzero(3)}, run))
    assert results["OutputCoordinatesTensor"].tolist() == [2, 0, 0]
