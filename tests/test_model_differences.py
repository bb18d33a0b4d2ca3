"""The differences from DxDispatch: one test for each row of the documentation."""

import json
import re
from pathlib import Path

import jax
import numpy as np
import pytest

import dmljax
from tests.test_model import (
    data,
    dispatch,
    edited,
    model,
    padding_model,
    save,
    show,
)

PAGE = Path(__file__).parent.parent / "docs/model_files.md"
PAD = ("dispatchables", "pad")
INPUT = ("resources", "input")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*edit):
    """Runs the model of a padding after an edit."""
    return dmljax.run_model(edited(padding_model(), *edit))


def refused(message, *edit):
    with pytest.raises(dmljax.ModelError, match=message):
        run(*edit)


def test_every_row_has_a_test():
    section = PAGE.read_text().split("## Differences from DxDispatch")[1]
    section = section.split("\n## ")[0]
    titles = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)[1:]
    names = [f"test_{title.strip().replace(' ', '_')}" for title in titles]
    tests = [name for name in globals() if name.startswith("test_")]
    assert names == tests[1:]


def test_other_dispatchables():
    refused("type 'hlsl' is not an operator", *PAD, {"type": "hlsl"})


def test_deferred_values():
    refused("'deferred', which only ONNX", *INPUT, "initialValues", "deferred")


def test_wrap():
    assert run(*PAD, "desc", "PaddingMode", "WRAP")["output"].tolist() == [
        3,
        1,
        2,
        3,
        1,
    ]
    assert run(*PAD, "desc", "PaddingMode", 4)["output"].tolist() == [3, 1, 2, 3, 1]


def test_bytes_are_printed_as_numbers(capsys):
    dmljax.run_model(model({"r": data("UINT8", [65, 66])}, {}, show("r")))
    assert capsys.readouterr().out == "Resource 'r': 65, 66\n"


def test_resources_are_printed_whole(capsys):
    resource = data("UINT8", [1], sizeInBytes=3)
    dmljax.run_model(model({"r": resource}, {}, show("r")))
    assert capsys.readouterr().out == "Resource 'r': 1, 0, 0\n"


def test_raw_files_have_no_padding(folder):
    dmljax.run_model(model({"r": data("UINT8", [1, 2, 3])}, {}, save("r", "r.bin")))
    assert (folder / "r.bin").read_bytes() == b"\1\2\3"


def test_all_or_nothing(folder, capsys):
    refused("is not in the model", "commands", 2, "resource", "none")
    assert capsys.readouterr().out == ""
    assert not any(folder.iterdir())


def test_folders_are_not_made(folder):
    refused(
        "folder that does not exist; it is relative to '.*', and no folder is made",
        *("commands", 2, "targetPath", "no/written.npy"),
    )


def test_more_images(folder):
    image = pytest.importorskip("PIL.Image")
    image.new("L", (3, 2), 51).save("in.jpeg")
    for data_type, value in (("UINT8", 51), ("FLOAT64", 0.2)):
        with jax.enable_x64(data_type == "FLOAT64"):
            source = model({"r": data(data_type, {"sourcePath": "in.jpeg"})}, {})
            assert dmljax.run_model(source)["r"].tolist() == [value] * 6


def test_pixels_are_rounded():
    image = pytest.importorskip("PIL.Image")
    write = save("r", "out.png", dimensions=[1, 2])
    dmljax.run_model(model({"r": data("FLOAT32", [0.499, 0.999])}, {}, write))
    assert np.asarray(image.open("out.png")).tolist() == [[127, 255]]


def test_channel_order():
    image = pytest.importorskip("PIL.Image")
    image.new("RGB", (1, 1), (1, 2, 3)).save("in.png")
    resource = data("UINT8", {"sourcePath": "in.png"}, channelOrder="BGR")
    assert dmljax.run_model(model({"r": resource}, {}))["r"].tolist() == [3, 2, 1]


def test_unknown_fields():
    refused("no field 'comment'; the fields are", *INPUT, "comment", "mine")


def test_duplicate_names(folder):
    (folder / "m.json").write_text('{"resources": {"a": 1, "a": 2}}')
    with pytest.raises(dmljax.ModelError, match="the name 'a' occurs twice"):
        dmljax.run_model("m.json")


def test_text_after_the_model(folder):
    (folder / "m.json").write_text(json.dumps(padding_model()) + " more")
    with pytest.raises(dmljax.ModelError, match="Extra data"):
        dmljax.run_model("m.json")


def test_null():
    assert run(*INPUT, "sizeInBytes", None)["output"].tolist() == [1, 1, 2, 3, 3]


def test_numbers_for_enum_values():
    assert run(*PAD, "desc", "PaddingMode", 2)["output"].tolist() == [2, 1, 2, 3, 2]
    assert run(*PAD, "type", "padding")["output"].tolist() == [1, 1, 2, 3, 3]


def test_halves_in_mixed_lists():
    values = [{"type": "FLOAT16", "value": 1}]
    result = dmljax.run_model(model({"r": {"initialValues": values}}, {}))["r"]
    assert result.view(np.float16)[0] == 1


def test_numbers_past_the_largest_float(folder):
    text = json.dumps(padding_model()).replace("[1, 2, 3]", "[1, 2, 1e999]")
    (folder / "m.json").write_text(text)
    assert dmljax.run_model("m.json")["output"].tolist() == [1, 1, 2, np.inf, np.inf]


def test_element_count():
    binding = {"name": "input", "elementCount": 2}
    refused("spans 3 elements", "commands", 0, "bindings", "InputTensor", binding)


def test_bindings_of_a_dispatchable():
    source = padding_model()
    del source["commands"][0]["bindings"]["InputTensor"]
    source["dispatchables"]["pad"]["bindings"] = {"InputTensor": "input"}
    assert dmljax.run_model(source)["output"].tolist() == [1, 1, 2, 3, 3]


def test_alignment():
    source = padding_model()
    tensor = source["dispatchables"]["pad"]["desc"]["InputTensor"]
    tensor["GuaranteedBaseOffsetAlignment"] = 16
    source["resources"]["input"]["initialValues"] = [9, 1, 2, 3]
    binding = {"name": "input", "elementOffset": 1}
    source["commands"][0]["bindings"]["InputTensor"] = binding
    with pytest.raises(dmljax.ModelError, match=r"at byte 4, while .*Alignment 16"):
        dmljax.run_model(source)


def test_overlapping_outputs():
    refused("must not overlap", *PAD, "desc", "OutputTensor", "Strides", [0])


def test_rows_past_the_count():
    desc = {
        "InputTensor": {"DataType": "UINT8", "Sizes": [3]},
        "OutputCountTensor": {"DataType": "UINT32", "Sizes": [1]},
        "OutputCoordinatesTensor": {"DataType": "UINT32", "Sizes": [3, 1]},
    }
    resources = {
        "InputTensor": data("UINT8", [0, 0, 5]),
        "OutputCountTensor": data("UINT32", [9]),
        "OutputCoordinatesTensor": data("UINT32", [9, 9, 9]),
    }
    source = model(
        resources,
        {"nz": {"type": "NONZERO_COORDINATES", "desc": desc}},
        dispatch("nz", **{name: name for name in resources}),
    )
    assert dmljax.run_model(source)["OutputCoordinatesTensor"].tolist() == [2, 0, 0]
