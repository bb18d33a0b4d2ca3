"""A model is checked as a whole: its parts, their names, and their needs."""

import json
import math
import os

import numpy as np
import pytest

import dmljax
from dmljax._operators import DESCRIPTORS
from tests.model import models as m
from tests.samples import tensor

# Where a model comes from


def test_a_dict_and_a_file_give_the_same(folder, capsys):
    source = m.padding_model()
    text = json.dumps(source).replace("[1, 2, 3]", "[1, 2, 1e999]")
    (folder / "m.json").write_text(f"\ufeff{text}", encoding="utf-8")
    source["resources"]["input"]["initialValues"] = (1, 2, "inf")
    for each in (source, "m.json", folder / "m.json"):
        output = dmljax.run_model(each)["output"]
        assert output.tolist() == [1, 1, 2, math.inf, math.inf]
        output[0] = 9  # the array belongs to the caller, who may write to it
    assert capsys.readouterr().out == "Resource 'output': 1, 1, 2, inf, inf\n" * 3


def test_content_that_is_no_model(folder):
    (folder / "m.json").write_text("[1]")
    assert "model 'm.json': its top level is [1]; it must be" in m.refusal("m.json")
    (folder / "m.json").write_text("[" * 100_000)
    assert m.refusal(folder / "m.json").endswith("m.json': it is nested too deeply.")
    assert "model: its content is not JSON: " in m.refusal({"commands": np.ones(3)})
    for wrong in (None, b"m.json", [{}]):  # None would be standard input
        with pytest.raises(TypeError, match="it must be the path of a file, or a dict"):
            dmljax.run_model(wrong)
    circular = {}
    circular["commands"] = circular
    assert "model: its content is not JSON: Circular" in m.refusal(circular)
    twice = {"resources": {1: 2, "1": 3}}
    assert "model: the name '1' occurs twice" in m.refusal(twice)


# Wrong parts

TARGET = "writeFile.targetPath"
LONG = "x" * 1_000_000
BOUND = "bindings.InputTensor"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("resources", ..., "the field 'resources' is missing; it must be an object"),
        (
            "resources.input",
            3,
            "model, resource 'input': it is 3; it must be an object.",
        ),
        (
            "input.sizeInBytes",
            0,
            "12 bytes and begin at byte 0, while the buffer has 0 b",
        ),
        ("input.initialValuesOffsetInBytes", 2, "'sizeInBytes' must be at least 14."),
        ("pad.type", ..., "dispatchable 'pad': the field 'type' is missing; it must"),
        ("pad.\x1b[2J", 1, r"there is no field '\x1b[2J'; the fields are type, desc,"),
        (
            "pad.desc",
            ...,
            "the field 'desc.InputTensor' is missing; it must be an obje",
        ),
        ("pad.bindings", {"A": "x"}, "'pad': the resource 'x' is not in the model; it"),
        ("pad.desc.OutputTensor.Sizes", [6], "PADDING: mismatched tensor sizes"),
        ("commands", [7], "model, command 1: it is 7; it must be an object."),
        ("print.type", "\x1b", r"2 (\x1b): there is no such command; the commands are"),
        ("dispatch.dispatchable", "x", "the dispatchable 'x' is not in the model; it"),
        ("bindings.InputTensor", ..., "'InputTensor' of 'pad': it has no binding; "),
        ("bindings.A", "input", "bound to a resource: InputTensor, OutputTensor."),
        ("pad.desc.InputTensor.TotalTensorSizeInBytes", 16, "s 16 bytes (TotalTens"),
        ("output.initialValues.valueCount", -1, "it must be an integer from 0 to 2^64"),
        (
            "output.initialValues.valueCount",
            2**64,
            "it must be an integer from 0 to 2^",
        ),
        (
            "output.initialValues.valueCount",
            2**64 - 1,
            f"it has {2**64 - 1} elements, ",
        ),
        ("output.sizeInBytes", 2**52, f"it has {2**50} elements, and there is room"),
        ("input.initialValuesDataType", "INT4", "is 'INT4'; it must be one of FLOAT64"),
        (
            "writeFile.dimensions",
            [0],
            "is [0]; it must be a list of integers, each from",
        ),
        ("writeFile.dimensions", [2**32], "it must be a list of integers, each from 1"),
        (
            "writeFile.dimensions",
            [2, 3],
            "'dimensions' is {2,3}, 6 elements, while the",
        ),
        (
            "writeFile.dimensions",
            [1] * 64 + [5],
            "a .npy file has at most 64 dimensions",
        ),
        (TARGET, "/dev/null", "is there already, and is not a file."),
        # Python gives the reason, in words that depend on its version.
        (TARGET, "a\0b", r"'a\x00b' cannot be written: "),
        (TARGET, "x" * 300, "x' cannot be written: File name too long."),
        (
            TARGET,
            "/dev/null/r.npy",
            "is in a folder that does not exist; it is relative",
        ),
        # Long values are shortened.
        (f"resources.{LONG}", 1, "xxx... (1000000 characters)': it is 1; it must be"),
        ("input.sizeInBytes", 10**4000, "'sizeInBytes' is 1000"),
        ("writeFile.dimensions", [2**32 - 1] * 999, "(999 elements)}, about 2^"),
        (BOUND, "x", "command 1 (dispatch): the resource 'x' is not in the model"),
        (BOUND, ["input", "output"], "it must be the name of one resource, or an obj"),
        (f"{BOUND}.name", ..., "the binding of 'InputTensor': the field 'name' is mi"),
        (f"{BOUND}.elementOffset", 1, "needs 12 bytes (3 elements of FLOAT32), while"),
        (f"{BOUND}.elementOffset", 9, "'input' has 0 where it is bound; it must have"),
        (f"{BOUND}.elementCount", 4, "'InputTensor' reaches to byte 16, while resour"),
    ],
)
def test_a_wrong_part(path, value, message, capsys):
    """Then nothing is printed or written."""
    assert message in m.refused(path, value)
    assert capsys.readouterr().out == ""
    assert not os.listdir()


def test_a_long_list_of_names_is_shortened():
    names = {f"r{n}": m.data("UINT8", [n]) for n in range(200)}
    assert "'r11', ... (200 in all)" in m.refusal(m.model(names, {}, m.show("x")))


# Dispatchables


def test_other_dispatchables():
    """They are refused before any data is read."""
    shader = {"type": "hlsl", "sourcePath": "add.hlsl"}
    other = m.edited(m.padding_model(), "dispatchables.pad", shader)
    assert m.refusal(m.edited(other, "input.initialValues", "deferred")) == (
        "model, dispatchable 'pad': the type 'hlsl' is not an operator of dmljax; "
        f"the operators are {', '.join(DESCRIPTORS)}."
    )


def test_fields_beside_the_type():
    beside = m.pad()["desc"] | {"type": "PADDING", "desc": None, "dmlCompileType": "x"}
    assert m.padded("dispatchables.pad", beside) == [1, 1, 2, 3, 3]
    assert "there is no field 'desc.x'" in m.refused(
        "dispatchables.pad", beside | {"x": 1}
    )


def test_bindings_of_a_command_replace_those_of_the_dispatchable():
    bindings = {"InputTensor": "output", "OutputTensor": "output"}
    assert m.padded("pad.bindings", bindings) == [1, 1, 2, 3, 3]
    owned = "pad.desc.InputTensor.Flags", "OWNED_BY_DML"
    assert m.padded(*owned) == [1, 1, 2, 3, 3]
    source = m.edited(m.padding_model(), "pad.bindings", bindings)
    source = m.edited(source, "pad.desc.OutputTensor.Flags", "OWNED_BY_DML")
    assert m.output_of(source) == [1, 1, 2, 3, 3]
    message = "tensor 'InputTensor' of 'pad' has the flag OWNED_BY_DML, and the dispa"
    assert message in m.refusal(m.edited(source, *owned))


# Bindings

WIDTH = "elementSizeInBytes"
VIEW = {"name": "in", "elementOffset": 1}


@pytest.mark.parametrize(
    ("data_type", "values", "more", "expected"),
    [
        ("UINT8", [9, 9, 1, 0, 2, 0], {"elementCount": 2, WIDTH: 2}, [1, 8, 2]),
        # Fault: elements are read at once, although the first begins in another.
        ("UINT16", [256, 512, 0], {WIDTH: 1}, [1, 8, 2]),
        # Fault: elements are read at once, although the last two are rounded bytes.
        ("UINT16", [9, 9, 1], {"elementOffset": 2}, [1, 8, 0]),
    ],
)
def test_a_tensor_in_a_buffer(data_type, values, more, expected):
    """The tensor has two elements of UINT16, in at least 4 bytes.

    The elements of the output have a gap, which keeps its values.
    """
    resources = {"in": m.data(data_type, values), "out": m.data("UINT16", [7, 8, 9])}
    pad = m.pad((2,), (0,), (0,), data_type="UINT16")
    dispatch = m.dispatch("pad", InputTensor=[VIEW | more], OutputTensor="out")
    source = m.model(resources, {"pad": pad}, dispatch)
    source = m.edited(source, "pad.desc.InputTensor.TotalTensorSizeInBytes", 4)
    source = m.edited(source, "pad.desc.OutputTensor.Strides", [2])
    assert dmljax.run_model(source)["out"].tolist() == expected


@pytest.mark.parametrize(
    ("count", "coordinates", "expected"),
    [(1, 3, [9, 2, 0, 0, 0, 2, 0, 0, 0]), (1, 2, None), (5, 0, None)],
)
def test_two_outputs_in_one_resource(count, coordinates, expected):
    """They may touch, and must not overlap."""
    desc = dmljax.NonzeroCoordinatesDesc(
        tensor("UINT8", 3),
        # A tensor spans its elements. Only they are written.
        tensor("UINT32", 1, total_tensor_size_in_bytes=8),
        tensor("UINT32", 3, 1),
    )
    dispatch = m.dispatch(
        "nz",
        InputTensor="in",
        OutputCountTensor={"name": "out", "elementOffset": count},
        OutputCoordinatesTensor={"name": "out", "elementOffset": coordinates},
    )
    resources = {"in": m.data("UINT8", [5, 0, 7]), "out": m.data("UINT16", [9] * 9)}
    source = m.model(resources, {"nz": desc.to_json()}, dispatch)
    if expected:
        assert dmljax.run_model(source)["out"].tolist() == expected
    else:
        assert "are bound to the same part of resource 'out'; " in m.refusal(source)


def test_alignment():
    source = m.edited(m.padding_model(), f"{BOUND}.elementOffset", 1)
    source = m.edited(source, "input.sizeInBytes", 16)
    alignment = "pad.desc.InputTensor.GuaranteedBaseOffsetAlignment"
    dmljax.run_model(m.edited(source, alignment, 4))
    message = "begins at byte 4, while the tensor has GuaranteedBaseOffsetAlignment 8;"
    assert message in m.refusal(m.edited(source, alignment, 8))
