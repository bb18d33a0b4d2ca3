"""What model files do, and that a wrong one does nothing at all."""

import copy
import dataclasses
import json
import logging
import re
import sys
import threading
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dmljax
from dmljax import DataType, TensorDesc, TensorFlags
from dmljax._model import images as _images
from dmljax._model import parse as _model_parse
from dmljax._model import run as _model
from dmljax._pages.examples import EXAMPLES
from docs import make_models
from tests import oracles

DELETE = object()


def data(data_type, values, **more):
    return {"initialValuesDataType": data_type, "initialValues": values} | more


def tensor(data_type, *sizes, **more):
    return {"DataType": data_type, "Sizes": list(sizes)} | more


def pad(sizes=(3,), start=(1,), end=(1,), mode="EDGE", data_type="FLOAT32", **more):
    padded = map(sum, zip(start, sizes, end, strict=True))
    desc = {
        "InputTensor": tensor(data_type, *sizes),
        "OutputTensor": tensor(data_type, *padded),
        "PaddingMode": mode,
        "PaddingValue": 0,
        "DimensionCount": len(sizes),
        "StartPadding": list(start),
        "EndPadding": list(end),
    }
    return {"type": "DML_OPERATOR_PADDING", "desc": desc | more}


def dispatch(dispatchable, **bindings):
    return {"type": "dispatch", "dispatchable": dispatchable, "bindings": bindings}


def show(resource):
    return {"type": "print", "resource": resource}


def save(resource, path, **more):
    command = {"type": "writeFile", "resource": resource, "targetPath": str(path)}
    return command | more


def model(resources, dispatchables, *commands):
    return {
        "resources": resources,
        "dispatchables": dispatchables,
        "commands": list(commands),
    }


def padding_model():
    """Makes a model that pads, prints and writes. The tests of errors damage it."""
    return model(
        {
            "input": data("FLOAT32", [1, 2, 3]),
            "output": data("FLOAT32", {"valueCount": 5, "value": 0}),
        },
        {"pad": pad()},
        dispatch("pad", InputTensor="input", OutputTensor="output"),
        show("output"),
        save("output", "written.npy"),
    )


def edited(source, *path_and_value):
    """Returns a copy of the model with another value, or none, at a path of keys."""
    *path, last, value = path_and_value
    result = copy.deepcopy(source)
    parent = result
    for key in path:
        parent = parent[key]
    if value is DELETE:
        del parent[last]
    else:
        parent[last] = value
    return result


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Makes an empty folder the current directory of every test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def values_of(data_type, values, **more):
    """Returns what a resource holds, by a model that does nothing with it."""
    resources = {"r": data(data_type, values, **more)}
    return dmljax.run_model(model(resources, {}))["r"]


# Whole models


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_the_model_of_a_page_example_agrees_with_it(example, capsys):
    results = dmljax.run_model(make_models.FOLDER / f"{example.name}.json")
    expected = example.expected or example.printed
    lines = capsys.readouterr().out.splitlines()
    for field, array, line in zip(example.desc.outputs, expected, lines, strict=True):
        name = field.removesuffix("_tensor")
        flat = np.ravel(array)
        np.testing.assert_array_equal(results[name][: flat.size], flat)
        assert line.startswith(f"Resource '{name}': " + ", ".join(map(str, flat)))


def test_the_models_on_disk_are_the_ones_that_are_made():
    on_disk = {
        path.name: path.read_text() for path in make_models.FOLDER.glob("*.json")
    }
    assert on_disk == make_models.model_files()


def test_a_chain_of_four_operators(folder, capsys):
    (folder / "docs/models/out").mkdir(parents=True)
    results = dmljax.run_model(make_models.FOLDER / "chain.json")
    matrix = np.arange(1, 10, dtype=np.float32).reshape(3, 3)
    triangle = np.triu(np.pad(matrix, 1, mode="reflect"))
    np.testing.assert_array_equal(results["triangle"], triangle.ravel())
    count = np.count_nonzero(triangle)
    assert capsys.readouterr().out.splitlines()[1] == f"Resource 'count': {count}"
    coordinates = np.load("docs/models/out/coordinates.npy")
    np.testing.assert_array_equal(coordinates[:count], np.argwhere(triangle))


def test_the_oracle_agrees():
    """A model gives what the oracle gives, for sizes that no other test has."""
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    source = model(
        {
            "x": data("FLOAT32", values.ravel().tolist()),
            "y": data("FLOAT32", {"valueCount": 12 * 11, "value": 0}),
        },
        {"pad": pad((3, 4), (5, 0), (4, 7), mode="REFLECTION")},
        dispatch("pad", InputTensor="x", OutputTensor="y"),
    )
    expected = oracles.padding(values, (5, 0), (4, 7), mode="REFLECTION")
    np.testing.assert_array_equal(dmljax.run_model(source)["y"], expected.ravel())


def test_a_photograph(folder):
    image = pytest.importorskip("PIL.Image")
    (folder / "docs/models/out").mkdir(parents=True)
    dmljax.run_model(make_models.FOLDER / "photograph_edge.json")
    photograph = np.asarray(image.open(make_models.FOLDER / "astronaut.jpg"))
    padded = np.asarray(image.open("docs/models/out/edge.png"))
    pads = ((64, 64), (64, 64), (0, 0))
    np.testing.assert_array_equal(padded, np.pad(photograph, pads, mode="edge"))


def test_a_model_is_one_program(folder, caplog):
    (folder / "docs/models/out").mkdir(parents=True)
    parsed = _model_parse.parse_model(make_models.FOLDER / "chain.json")
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        run = _model.compile_model(parsed, None)
        run()
    finished = [m for m in caplog.messages if m.startswith("Finished XLA compilation")]
    assert len(finished) == 1
    assert "dmljax_model" in finished[0]


def test_a_dict_and_a_file_give_the_same(folder, capsys):
    source = padding_model()
    (folder / "m.json").write_text("\ufeff" + json.dumps(source), encoding="utf-8")
    from_file = dmljax.run_model(str(folder / "m.json"))
    source["resources"]["input"]["initialValues"] = (1, 2, 3)
    from_dict = dmljax.run_model(source)
    assert from_file.keys() == from_dict.keys() == {"input", "output"}
    for name, values in from_file.items():
        np.testing.assert_array_equal(values, from_dict[name])
    assert capsys.readouterr().out == "Resource 'output': 1, 1, 2, 3, 3\n" * 2


def test_a_resource_is_shown_as_it_is_at_the_command(capsys):
    source = padding_model()
    wrap = pad(mode="WRAP")
    source["dispatchables"]["wrap"] = wrap
    bindings = {"InputTensor": "input", "OutputTensor": "output"}
    source["commands"] = [
        show("output"),
        dispatch("pad", **bindings),
        {"type": "PRINT", "resource": "output", "verbose": True},
        save("output", "first.bin"),
        dispatch("wrap", **bindings),
        save("output", "second.bin"),
        show("output"),
    ]
    dmljax.run_model(source)
    assert capsys.readouterr().out.splitlines() == [
        "Resource 'output': 0, 0, 0, 0, 0",
        "Resource 'output':",
        "[0] 1 (0x3F800000)",
        "[1] 1 (0x3F800000)",
        "[2] 2 (0x40000000)",
        "[3] 3 (0x40400000)",
        "[4] 3 (0x40400000)",
        "Resource 'output': 3, 1, 2, 3, 1",
    ]
    assert np.fromfile("first.bin", "<f4").tolist() == [1, 1, 2, 3, 3]
    assert np.fromfile("second.bin", "<f4").tolist() == [3, 1, 2, 3, 1]


def test_elements_that_no_output_covers_stay():
    source = padding_model()
    source["resources"]["output"] = data("FLOAT32", {"valueCount": 12, "value": 7})
    source["resources"]["input"]["initialValues"] += [8, 9]
    source["dispatchables"]["pad"]["desc"]["OutputTensor"]["Strides"] = [2]
    source["commands"] = source["commands"][:1]
    output = dmljax.run_model(source)["output"]
    assert output.tolist() == [1, 7, 1, 7, 2, 7, 3, 7, 3, 7, 7, 7]


def test_elements_and_their_bytes_are_returned_by_one_program():
    """Without a barrier between them, XLA's compiler for GPUs ends the process."""
    desc = {
        "OutputTensor": tensor("UINT32", 1, 1, 2, 3),
        "ValueDataType": "UINT32",
        "Value": 5,
        "DiagonalFillBegin": 0,
        "DiagonalFillEnd": 1,
    }
    source = model(
        {
            "elements": data("UINT32", {"valueCount": 6, "value": 0}),
            "raw": data("UINT8", {"valueCount": 24, "value": 0}),
        },
        {"matrix": {"type": "DIAGONAL_MATRIX1", "desc": desc}},
        *(dispatch("matrix", OutputTensor=name) for name in ("elements", "raw")),
    )
    results = dmljax.run_model(source)
    assert results["elements"].tolist() == [5, 0, 0, 0, 5, 0]
    assert results["raw"].tobytes() == results["elements"].tobytes()
    parsed = _model_parse.parse_model(source)
    lowered = jax.jit(_model.program(parsed)).lower(_model.initial_state(parsed))
    lines = lowered.as_text().splitlines()
    converted = [n for n, line in enumerate(lines) if ".bitcast_convert" in line]
    assert len(converted) == 2  # the bytes are read as elements, and written
    assert all(".optimization_barrier" in lines[n - 1] for n in converted)


def test_an_input_is_read_before_it_is_overwritten():
    source = padding_model()
    source["resources"]["output"]["initialValues"] = [1, 2, 3, 4, 5]
    source["commands"] = [dispatch("pad", InputTensor="output", OutputTensor="output")]
    results = dmljax.run_model(source)
    assert results["output"].tolist() == [1, 1, 2, 3, 3]
    results["output"][0] = 9  # the array is the caller's, who may write to it


def test_int64_stays_exact_in_x64_mode(x64):
    desc = {
        "IndicesTensor": tensor("INT64", 2, 1),
        "ValuesTensor": tensor("INT64", 1, 2),
        "OutputTensor": tensor("INT64", 2, 2),
        "Axis": 1,
    }
    source = model(
        {
            "indices": data("INT64", [2**40, -1]),
            "values": data("INT64", [2**53 + 1, 2**63 - 1]),
            "output": data("INT64", {"valueCount": 4, "value": 0}),
        },
        {"hot": {"type": "ONE_HOT", "desc": desc}},
        dispatch(
            "hot", IndicesTensor="indices", ValuesTensor="values", OutputTensor="output"
        ),
    )
    off, on = 2**53 + 1, 2**63 - 1
    assert dmljax.run_model(source)["output"].tolist() == [off, off, off, on]


def test_fields_of_the_format_that_mean_nothing_here():
    source = padding_model() | {"$schema": "./_schema.json"}
    source["dispatchables"]["pad"] |= {
        "dmlCompileType": "DmlCompileOp",
        "executionFlags": ["NONE"],
    }
    source["resources"]["input"]["initialValuesOffsetInBytes"] = 0
    assert dmljax.run_model(source)["output"].tolist() == [1, 1, 2, 3, 3]


@pytest.mark.parametrize("device", ["cpu", "device"])
def test_the_device(device):
    chosen = jax.devices("cpu")[-1] if device == "device" else device
    assert dmljax.run_model(padding_model(), device=chosen)["output"][0] == 1
    parsed = _model_parse.parse_model(padding_model())
    results = _model.compile_model(parsed, _model.find_device(chosen))()
    found = jax.devices("cpu")[0] if device == "cpu" else chosen
    assert results.resources["output"].devices() == {found}


@pytest.mark.parametrize("device", ["npu", "tpu"])
def test_a_device_that_is_not_there(device):
    with pytest.raises(dmljax.ModelError, match=f"'{device}'.* this machine has .*cpu"):
        dmljax.run_model(padding_model(), device=device)


def test_a_device_that_jax_cannot_start(monkeypatch):
    devices = jax.local_devices

    def refuse(backend=None):
        if backend == "gpu":
            raise RuntimeError("the system is\nnot ready")
        return devices(backend=backend)

    monkeypatch.setattr(jax, "local_devices", refuse)
    with pytest.raises(dmljax.ModelError, match=r"JAX says: the system is not ready$"):
        dmljax.run_model(padding_model(), device="gpu")


# Bindings


@pytest.mark.parametrize(
    "binding",
    ["input", {"name": "input"}, ["input"], [{"name": "input", "shape": [3]}]],
)
def test_the_forms_of_a_binding(binding):
    bound = edited(padding_model(), "commands", 0, "bindings", "InputTensor", binding)
    assert dmljax.run_model(bound)["output"].tolist() == [1, 1, 2, 3, 3]


def test_bindings_of_the_dispatchable_serve_too():
    source = padding_model()
    del source["commands"][0]["bindings"]["InputTensor"]
    # The bindings of the command replace those of the dispatchable.
    bindings = {"InputTensor": "input", "OutputTensor": "input"}
    source["dispatchables"]["pad"]["bindings"] = bindings
    assert dmljax.run_model(source)["output"].tolist() == [1, 1, 2, 3, 3]


def test_an_optional_tensor_is_absent_or_null():
    desc = {
        "InputTensor": None,
        "OutputTensor": tensor("UINT8", 2, 2),
        "ValueDataType": "UINT8",
        "Value": 3,
        "DiagonalFillBegin": 0,
        "DiagonalFillEnd": 1,
    }
    source = model(
        {"output": data("UINT8", [9] * 4)},
        {"eye": {"Type": "DIAGONAL_MATRIX1", "Desc": desc}},
        dispatch("eye", InputTensor=None, OutputTensor="output"),
    )
    assert dmljax.run_model(source)["output"].tolist() == [3, 0, 0, 3]


# Descriptors in JSON


TENSOR = TensorDesc(DataType.FLOAT16, (2, 3))


def read_tensor(**fields):
    desc = pad((2, 3), (0, 0), (0, 0), data_type="FLOAT16")["desc"]
    desc["InputTensor"] = fields
    return dmljax.PaddingDesc.from_json(desc).input_tensor


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, TENSOR),
        ({"DataType": "DML_TENSOR_DATA_TYPE_FLOAT16"}, TENSOR),
        ({"DataType": 2, "DimensionCount": 2}, TENSOR),
        ({"Strides": [], "TotalTensorSizeInBytes": 0, "Flags": None}, TENSOR),
        ({"Strides": None, "TotalTensorSizeInBytes": None, "Flags": "NONE"}, TENSOR),
        ({"Type": "DML_TENSOR_TYPE_BUFFER", "Flags": 0}, TENSOR),
        ({"Flags": []}, TENSOR),
        ({"Flags": 1}, dataclasses.replace(TENSOR, flags=TensorFlags.OWNED_BY_DML)),
        (
            {"Flags": ["DML_TENSOR_FLAG_OWNED_BY_DML", "NONE"]},
            dataclasses.replace(TENSOR, flags=TensorFlags.OWNED_BY_DML),
        ),
        (
            {"Strides": [0, 1], "TotalTensorSizeInBytes": 8},
            dataclasses.replace(TENSOR, strides=(0, 1), total_tensor_size_in_bytes=8),
        ),
    ],
)
def test_the_forms_of_a_tensor(fields, expected):
    assert read_tensor(**(tensor("FLOAT16", 2, 3) | fields)) == expected


def test_a_tensor_in_a_tensor_desc():
    wrapped = read_tensor(Type="BUFFER", Desc=tensor("FLOAT16", 2, 3, DimensionCount=2))
    assert wrapped == TENSOR


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"DimensionCount": 3}, "DimensionCount' is 3, while .*Sizes' has 2 elements"),
        ({"Type": "IMAGE"}, "Type' is 'IMAGE'; it must be BUFFER"),
        ({"Flags": 2}, "Flags' is 2; it must be one of NONE, OWNED_BY_DML"),
        ({"Flags": ["MINE"]}, "Flags' is 'MINE'; it must be one of"),
        ({"DataType": "FLOAT8"}, "DataType' is 'FLOAT8'; it must be one of"),
        ({"DataType": "DML_TYPE_FLOAT16"}, "'DML_TYPE_FLOAT16'; it must be one of"),
        ({"DataType": True}, "DataType' is true"),
        ({"Sizes": [2, 3.0]}, r"Sizes' is 3.0; it must be an integer"),
        ({"Sizes": None}, "has no field 'Sizes', which is required"),
        ({"Size": [2]}, "unknown field 'Size'; its fields are DataType, Sizes"),
        ({"Desc": 3}, "unknown field 'Desc'"),
    ],
)
def test_a_wrong_tensor(fields, message):
    with pytest.raises(dmljax.DescriptorError, match=f"^PADDING: .*{message}"):
        read_tensor(**(tensor("FLOAT16", 2, 3) | fields))


@pytest.mark.parametrize(
    ("data_type", "value", "expected"),
    [
        ("FLOAT32", {"Float32": 1.5}, 1.5),
        ("FLOAT16", {"UInt16": 0x3E00}, 1.5),
        ("FLOAT16", {"UInt16": 0xBE00}, -1.5),
        ("UINT8", {"UInt8": 3}, 3),
        ("INT64", {"Int64": -(2**63)}, -(2**63)),
        ("FLOAT64", "-inf", -np.inf),
    ],
)
def test_the_forms_of_a_scalar_union(data_type, value, expected):
    fields = {"PaddingValueDataType": data_type, "PaddingValue": value}
    desc = dmljax.Padding1Desc.from_json(pad(data_type=data_type, **fields)["desc"])
    assert desc.padding_value == expected
    assert dmljax.Padding1Desc.from_json(desc.to_json()["desc"]) == desc


@pytest.mark.parametrize(
    ("data_type", "value", "message"),
    [
        ("UINT8", {"Int8": 3}, "with the one member 'UInt8'"),
        ("FLOAT16", {"UInt16": 2**16}, "the bits of the number"),
        ("FLOAT32", {}, "with the one member 'Float32'"),
        ("FLOAT32", {"Float32": "1"}, "must be a number"),
        ("FLOAT32", [1], "must be a number"),
    ],
)
def test_a_wrong_scalar_union(data_type, value, message):
    fields = {"PaddingValueDataType": data_type, "PaddingValue": value}
    with pytest.raises(dmljax.DescriptorError, match=message):
        dmljax.Padding1Desc.from_json(pad(data_type=data_type, **fields)["desc"])


def test_an_unknown_data_type_is_an_error_of_the_descriptor():
    unknown = TensorDesc(DataType.UNKNOWN, (2,))
    desc = dmljax.DiagonalMatrixDesc(unknown, 0, 1.0)
    with pytest.raises(
        dmljax.DescriptorError, match="'OutputTensor' has data type UNK"
    ):
        dmljax.create_operator(desc)


# Initial values


@pytest.mark.parametrize(
    ("data_type", "values", "expected"),
    [
        ("FLOAT32", [1, 2.5, "nan", "INF", "-Inf"], [1, 2.5, np.nan, np.inf, -np.inf]),
        ("FLOAT16", [65504, 65520, 1e-9], [65504, np.inf, 0]),
        ("DML_TENSOR_DATA_TYPE_UINT8", [0, 255], [0, 255]),
        ("INT8", [-128, 127], [-128, 127]),
        ("UINT32", [2**32 - 1], [2**32 - 1]),
        ("INT16", {"valueCount": 3, "value": -7}, [-7, -7, -7]),
        ("FLOAT32", {"valueCount": 2, "value": "nan"}, [np.nan, np.nan]),
        (
            "UINT8",
            {"valueCount": 4, "valueStart": 250, "valueDelta": 3},
            [250, 253, 0, 3],
        ),
        ("INT32", {"valueCount": 1, "valueStart": 5, "valueDelta": -1}, [5]),
        (
            "FLOAT16",
            {"valueCount": 5, "valueStart": 2046, "valueDelta": 1},
            [2046, 2047, 2048, 2048, 2048],  # every sum is rounded to the type
        ),
    ],
)
def test_initial_values(data_type, values, expected):
    name = data_type.removeprefix("DML_TENSOR_DATA_TYPE_").lower()
    result = values_of(data_type, values)
    assert result.dtype == name
    np.testing.assert_array_equal(result, np.array(expected, name))


def test_float64_stays_exact_in_x64_mode(x64):
    assert values_of("FLOAT64", [0.1, 1e300]).tolist() == [0.1, 1e300]


def test_size_in_bytes_makes_room_in_whole_elements():
    assert values_of("UINT16", [1, 2], sizeInBytes=9).tolist() == [1, 2, 0, 0]
    assert values_of("UINT16", [1], sizeInBytes=None).tolist() == [1]


@pytest.mark.parametrize(
    ("array", "data_type"),
    [
        (np.arange(6, dtype="<f4").reshape(2, 3), "FLOAT32"),
        (np.asfortranarray(np.arange(6, dtype=">i2").reshape(2, 3)), None),
        (np.array([0.5, np.inf], ">f2"), "UNKNOWN"),
        (np.array([True, False]), "UINT8"),
        (np.array(7, np.uint32), None),
    ],
)
def test_npy_files(folder, array, data_type):
    (folder / "models").mkdir()
    np.save(folder / "models/in.npy", array)
    resource = {"initialValues": {"sourcePath": "in.npy"}}
    if data_type:
        resource["initialValuesDataType"] = data_type
    source = model(
        {"r": resource}, {}, save("r", "out.npy", dimensions=[1, array.size])
    )
    (folder / "models/m.json").write_text(json.dumps(source))
    result = dmljax.run_model(folder / "models/m.json")["r"]
    np.testing.assert_array_equal(result, array.ravel())
    written = np.load("out.npy")
    assert written.shape == (1, array.size)
    assert written.dtype == result.dtype
    np.testing.assert_array_equal(written.ravel(), result)
    assert sorted(path.name for path in folder.iterdir()) == ["models", "out.npy"]


def test_raw_files(folder):
    array = np.array([1, -2, 3], ">i4")
    array.astype("<i4").tofile(folder / "in.dat")
    source = model(
        {"r": data("INT32", {"sourcePath": str(folder / "in.dat")})},
        {},
        save("r", "out.bin"),
        save("r", "in.dat"),
    )
    np.testing.assert_array_equal(dmljax.run_model(source)["r"], array)
    for name in ("out.bin", "in.dat"):
        np.testing.assert_array_equal(np.fromfile(name, "<i4"), array)


PIXELS = np.random.default_rng(0).integers(0, 256, (5, 7, 4), np.uint8)


def write_image(path, channels, **options):
    image = pytest.importorskip("PIL.Image")
    pixels = PIXELS[..., 0] if channels == 1 else PIXELS[..., :channels]
    image.fromarray(np.ascontiguousarray(pixels)).save(path, **options)
    return pixels.reshape(5, 7, channels).transpose(2, 0, 1)


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("data_type", ["UINT8", "FLOAT32", "FLOAT16"])
def test_images_go_through_unchanged(channels, data_type):
    planes = write_image("in.png", channels)
    dimensions = [channels, 5, 7] if channels == 1 else [1, channels, 5, 7]
    source = model(
        {"r": data(data_type, {"sourcePath": "in.png"})},
        {},
        save("r", "OUT.PNG", dimensions=dimensions),
    )
    result = dmljax.run_model(source)["r"]
    scale = 1 if data_type == "UINT8" else 255
    expected = (planes.ravel() / scale).astype(data_type.lower())
    np.testing.assert_array_equal(result, expected)
    source = model({"r": data("UINT8", {"sourcePath": "OUT.PNG"})}, {})
    np.testing.assert_array_equal(dmljax.run_model(source)["r"], planes.ravel())


def test_the_channel_order():
    planes = write_image("in.png", 4)
    source = model(
        {"r": data("UINT8", {"sourcePath": "in.png"}, channelOrder="BGR")},
        {},
        save("r", "same.png", dimensions=[4, 5, 7], channelOrder="BGR"),
    )
    result = dmljax.run_model(source)["r"]
    np.testing.assert_array_equal(result, planes[[2, 1, 0, 3]].ravel())
    source = model({"r": data("UINT8", {"sourcePath": "same.png"})}, {})
    np.testing.assert_array_equal(dmljax.run_model(source)["r"], planes.ravel())


def test_an_image_resampled_to_its_own_size_is_the_same():
    planes = write_image("in.png", 3)
    values = values_of("UINT8", {"sourcePath": "in.png"}, resampleSize=[1, 3, 5, 7])
    np.testing.assert_array_equal(values, planes.ravel())


@pytest.mark.parametrize("size", [[1, 1, 5, 7], [1, 3, 4, 6], [1, 4, 10, 2]])
def test_an_image_is_resampled(size):
    write_image("in.png", 4)
    values = values_of("FLOAT32", {"sourcePath": "in.png"}, resampleSize=size)
    assert values.shape == (np.prod(size),)
    assert values.min() >= 0
    assert values.max() <= 1


def test_other_kinds_of_images():
    image = pytest.importorskip("PIL.Image")
    colours = image.fromarray(np.ascontiguousarray(PIXELS[..., :3]))
    for mode, name, channels in [
        ("1", "bits.png", 1),
        ("P", "palette.png", 3),
        ("LA", "alpha.png", 4),
        ("CMYK", "cmyk.jpg", 3),
        ("L", "grey.jpeg", 1),
    ]:
        colours.convert(mode).save(name)
        source = {"sourcePath": name}
        assert values_of("UINT8", source).size == channels * 35
        assert values_of("UINT8", source, resampleSize=[1, 4, 5, 7]).size == 4 * 35


def test_written_floats_are_clipped_and_rounded():
    image = pytest.importorskip("PIL.Image")
    floats = ["nan", "-inf", "inf", -0.5, 1.5, 0.5, 0.001, 0.999]
    source = model(
        {"r": data("FLOAT32", floats)},
        {},
        save("r", "out.png", dimensions=[2, 4]),
        save("r", "out.jpg", dimensions=[1, 2, 4]),
    )
    dmljax.run_model(source)
    pixels = np.asarray(image.open("out.png")).ravel().tolist()
    assert pixels == [0, 0, 255, 0, 255, 128, 0, 255]
    with image.open("out.jpg") as written:
        assert written.format == "JPEG"


@pytest.mark.parametrize(
    ("data_type", "values", "text"),
    [
        ("UINT8", [65, 0], "65, 0"),
        ("INT8", [-65], "-65"),
        ("UINT32", [2**32 - 1], "4294967295"),
        ("FLOAT32", [1e6, 123456, 0.1, -0.0], "1e+06, 123456, 0.1, -0"),
        ("FLOAT16", ["nan", "inf", "-inf", 0.1], "nan, inf, -inf, 0.0999756"),
    ],
)
def test_what_is_printed(data_type, values, text, capsys):
    dmljax.run_model(model({"a b": data(data_type, values)}, {}, show("a b")))
    assert capsys.readouterr().out == f"Resource 'a b': {text}\n"


# Errors


def rejects(folder, capsys, source, *parts):
    """Asserts the parts of a message, and that nothing was printed or written."""
    before = sorted(folder.rglob("*"))
    with pytest.raises(dmljax.ModelError) as caught:
        dmljax.run_model(source)
    for part in parts:
        assert re.search(part, str(caught.value)), (part, str(caught.value))
    assert capsys.readouterr() == ("", "")
    assert sorted(folder.rglob("*")) == before


INPUT = ("resources", "input")
VALUES = (*INPUT, "initialValues")
TYPE = (*INPUT, "initialValuesDataType")
PAD = ("dispatchables", "pad")
DESC = (*PAD, "desc")
BINDINGS = ("commands", 0, "bindings")
DISPATCH = r"command 1 \(dispatch\): "
SAVE = r"command 3 \(writeFile\): "


@pytest.mark.parametrize(
    ("edit", "parts"),
    [
        # the top level
        (("resources", DELETE), ["^model: the field 'resources' is missing"]),
        (("dispatchables", []), ["'dispatchables' is .*; it must be an object"]),
        (("commands", {}), ["'commands' is {}; it must be a list"]),
        # resources
        ((*INPUT, 3), ["resource 'input': it is 3; it must be an object"]),
        ((*TYPE, DELETE), ["resource 'input': .*'initialValuesDataType' is missing"]),
        ((*TYPE, "UNKNOWN"), ["'initialValuesDataType' is missing or UNKNOWN"]),
        ((*TYPE, "FLOAT8"), ["'FLOAT8'", "one of FLOAT64, FLOAT32"]),
        ((*TYPE, "INT4"), ["'INT4'", "one of FLOAT64, FLOAT32"]),
        ((*TYPE, 1), ["'initialValuesDataType' is 1; it must be one of FLOAT64"]),
        ((*TYPE, "INT64"), ["resource 'input': ", "INT64, which needs JAX's x64 mode"]),
        ((*VALUES, DELETE), ["resource 'input': .*'initialValues' is missing"]),
        (
            (*VALUES, "deferred"),
            ["'initialValues' is 'deferred', which only ONNX disp"],
        ),
        ((*VALUES, []), ["the initial values have 0 elements; there must be 1 to"]),
        ((*VALUES, [1, "x", 3]), [r"initialValues\[1\] is 'x'; it must be a number"]),
        ((*VALUES, [1, 2, None]), [r"initialValues\[2\] is null"]),
        ((*VALUES, [True]), [r"initialValues\[0\] is true"]),
        ((*VALUES, [10**400]), ["too large for FLOAT32"]),
        ((*VALUES, {"valueCount": 3}), ["one of value, valueStart, sourcePath"]),
        (
            (*VALUES, {"valueCount": 3, "value": 1, "valueStart": 1}),
            ["must have one of value, valueStart, sourcePath"],
        ),
        ((*VALUES, {"value": 1}), ["'valueCount' is missing; it must be an integer"]),
        ((*VALUES, {"valueCount": 3.0, "value": 1}), ["'valueCount' is 3.0"]),
        ((*VALUES, {"valueCount": True, "value": 1}), ["'valueCount' is true"]),
        ((*VALUES, {"valueCount": 0, "value": 1}), ["'valueCount' is 0; .* 1 to 429"]),
        ((*VALUES, {"valueCount": 10**15, "value": 1}), ["is 1000000000000000; it"]),
        ((*VALUES, {"valueCount": 3, "valueStart": 1}), ["'valueDelta' is missing"]),
        ((*INPUT, "sizeInBytes", 11), ["'sizeInBytes' is 11, .* have 12 bytes"]),
        ((*INPUT, "sizeInBytes", 2**60), [f"'sizeInBytes' is {2**60}", "4294967295"]),
        ((*INPUT, "sizeInBytes", -1), ["'sizeInBytes' is -1"]),
        ((*INPUT, "sizeInBytes", "16"), ["'sizeInBytes' is '16'; .* an integer"]),
        # dispatchables
        ((*PAD, []), ["dispatchable 'pad': it is .*; it must be an object"]),
        ((*PAD, "type", DELETE), ["dispatchable 'pad': the field 'type' is missing"]),
        (
            (*PAD, "type", "DML_OPERATOR_GEMM"),
            [
                "'DML_OPERATOR_GEMM' is not an operator",
                "ELEMENT_WISE_IF, NONZERO",
                "PADDING1",
            ],
        ),
        ((*PAD, "desc", DELETE), ["dispatchable 'pad': the field 'desc' is missing"]),
        (
            (*DESC, "StartPadding", DELETE),
            ["^model, dispatchable 'pad': PADDING: 'desc' has no field 'StartPadding'"],
        ),
        ((*DESC, "PaddingMode", "MIRROR"), ["'desc.PaddingMode' is 'MIRROR'", "WRAP"]),
        ((*DESC, "PaddingMode", "DML_MODE_EDGE"), ["'DML_MODE_EDGE'; it must be one"]),
        ((*DESC, "PaddingValue", 10**400), ["'desc.PaddingValue' is 1000"]),
        ((*DESC, "PadingMode", "EDGE"), ["unknown field 'PadingMode'"]),
        ((*DESC, "OutputTensor", "Sizes", [6]), [r"'OutputTensor' has \{6\}, .*\{5\}"]),
        ((*DESC, "InputTensor", "DataType", "INT32"), ["INT32", "FLOAT32", "the same"]),
        ((*DESC, "InputTensor", "DataType", "UNKNOWN"), ["has data type UNKNOWN"]),
        ((*DESC, "OutputTensor", "Strides", [0]), ["PADDING: .*must not overlap"]),
        ((*DESC, "InputTensor", "Sizes", [0]), [r"sizes \{0\}; each .* at least 1"]),
        # commands
        (("commands", 1, 7), ["command 2: it is 7; it must be an object"]),
        (("commands", 1, "type", DELETE), ["command 2: the field 'type' is missing"]),
        (
            ("commands", 1, "type", "plot"),
            [r"command 2 \(plot\): .*commands are dispatch, print, writeFile"],
        ),
        (("commands", 1, "resource", "x"), ["resource 'x' is not .*'input', 'output'"]),
        (
            ("commands", 0, "dispatchable", "pud"),
            [DISPATCH + "the dispatchable 'pud' is not in the model; it has 'pad'"],
        ),
        (("commands", 0, "bindings", DELETE), [DISPATCH + "the field 'bindings' is m"]),
        (
            (*BINDINGS, "InputTensor", "x"),
            [DISPATCH + "the resource 'x' is not in the"],
        ),
        (
            (*BINDINGS, "InputTensor", DELETE),
            [DISPATCH + "tensor 'InputTensor' of 'pad': it has no binding"],
        ),
        (
            (*BINDINGS, "ATensor", "input"),
            ["'ATensor' of 'pad': there is no such tensor; .*: InputTensor, Output"],
        ),
        ((*BINDINGS, "InputTensor", ["input", "output"]), ["name of one resource"]),
        (
            (*DESC[:-1], "Desc", {}),
            ["'pad': it has both of the fields 'desc', 'Desc', which are the same"],
        ),
        (
            ("dispatchables", "pad", "Type", "EDGE"),
            ["'pad': it has both of the fields 'type', 'Type', which are the same"],
        ),
        (
            ("dispatchables", "pad", {"type": "PADDING", "Desc": {}}),
            ["PADDING: 'desc' has no field 'InputTensor', which is required"],
        ),
        (
            (*BINDINGS, "InputTensor", {"name": "input", "elementOffset": 1}),
            ["spans 3 elements of FLOAT32, .*'input' has 2 where it is bound"],
        ),
        (
            (*VALUES, [1, 2]),
            [
                DISPATCH
                + "tensor 'InputTensor' spans 3 elements of FLOAT32, .*'input' has 2"
            ],
        ),
        (
            (*DESC, "InputTensor", "TotalTensorSizeInBytes", 16),
            ["'InputTensor' has TotalTensorSizeInBytes 16, .*'input' has 12 bytes"],
        ),
        # files to write
        (
            ("commands", 2, "targetPath", "no/where.npy"),
            [SAVE + "targetPath 'no/where.npy' is in a folder that does not exist"],
        ),
        (
            ("commands", 2, "targetPath", "."),
            ["'.' is there already, and is not a file"],
        ),
        (("commands", 2, "targetPath", "/dev/null"), ["is not a file"]),
        (("commands", 2, "targetPath", "a\0b"), ["is not a path"]),
        (("commands", 2, "targetPath", DELETE), ["'targetPath' is missing"]),
        (
            ("commands", 2, "dimensions", [2, 3]),
            [
                SAVE
                + r"the field 'dimensions' is \{2,3\}, 6 elements, .* resource has 5"
            ],
        ),
        (("commands", 2, "dimensions", [-5, -1]), ["integers, each from 1 to"]),
        (("commands", 2, "dimensions", [5.0]), ["integers, each from 1 to"]),
    ],
)
def test_a_wrong_model_does_nothing(folder, capsys, edit, parts):
    rejects(folder, capsys, edited(padding_model(), *edit), *parts)


@pytest.mark.parametrize("value", [256, -1, 2.0, "nan", True, [1]])
def test_a_wrong_number_in_uint8_data(folder, capsys, value):
    rule = "UINT8 holds the integers 0 to 255"
    source = model({"r": data("UINT8", [0, value])}, {}, show("r"))
    shown = json.dumps(value).replace('"', "'")
    message = r"resource 'r': initialValues\[1\] is " + re.escape(f"{shown}; {rule}")
    rejects(folder, capsys, source, message)
    source = model({"r": data("UINT8", {"valueCount": 2, "value": value})}, {})
    rule = f"'value' is {shown}; " + (
        "it must be a number" if shown[0] in "t[" else rule
    )
    rejects(folder, capsys, source, re.escape(rule))


def test_two_outputs_in_one_resource(folder, capsys):
    desc = {
        "InputTensor": tensor("UINT8", 2),
        "OutputCountTensor": tensor("UINT32", 1),
        "OutputCoordinatesTensor": tensor("UINT32", 2, 1),
    }
    source = model(
        {"x": data("UINT8", [0, 1]), "out": data("UINT32", [0, 0])},
        {"nz": {"type": "NONZERO_COORDINATES", "desc": desc}},
        dispatch(
            "nz",
            InputTensor="x",
            OutputCountTensor="out",
            OutputCoordinatesTensor="out",
        ),
    )
    rejects(
        folder,
        capsys,
        source,
        "are bound to the same bytes of resource 'out'; they must",
    )


def test_a_total_size_counts_the_rounding_to_four_bytes():
    source = model(
        {"r": data("UINT8", [1, 2, 3, 4, 5]), "out": data("UINT8", [0] * 7)},
        {"pad": pad((5,), data_type="UINT8")},
        dispatch("pad", InputTensor="r", OutputTensor="out"),
    )
    source["dispatchables"]["pad"]["desc"]["InputTensor"]["TotalTensorSizeInBytes"] = 8
    assert dmljax.run_model(source)["out"].tolist() == [1, 1, 2, 3, 4, 5, 5]


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (b'{\n  "resources": }', ["is not JSON: line 2, column 16: Expecting value"]),
        (b"", ["is not JSON: line 1, column 1"]),
        (b"\xff\xfe", ["is not JSON: byte 0 is not UTF-8"]),
        (b"[1]", [r"its top level is \[1\]; it must be an object"]),
        (b'{"resources": {"a": 1, "a": 2}}', ["the name 'a' occurs twice"]),
        (b"1" * 5000, ["it has an integer of thousands of digits"]),
        (b"[" * 100_000, ["nested too deeply"]),
    ],
)
def test_a_file_that_is_no_model(folder, capsys, content, parts):
    (folder / "m.json").write_bytes(content)
    rejects(folder, capsys, folder / "m.json", r"^model '.*m\.json': ", *parts)


def test_a_model_that_is_no_file(folder, capsys):
    rejects(folder, capsys, folder / "none.json", "cannot be read: No such file")
    rejects(folder, capsys, folder, "cannot be read: Is a directory")


def test_a_dict_that_is_not_json(folder, capsys):
    source = edited(padding_model(), *VALUES, np.ones(3))
    rejects(folder, capsys, source, "^model: what it holds is not JSON")
    with pytest.raises(TypeError):
        dmljax.run_model(3)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.npy", None, "sourcePath 'none.npy' is not a file"),
        ("none.bin", None, "sourcePath 'none.bin' is not a file"),
        (".", None, "sourcePath '.' cannot be read: Is a directory"),
        ("a\0b", None, "is not a file"),
        ("raw.dat", b"12345", "has 5 bytes; they must be a multiple of 4"),
        ("raw.dat", b"", "have 0 elements"),
        ("bad.npy", b"no array", "sourcePath 'bad.npy' cannot be converted"),
        ("short.npy", "short", "sourcePath 'short.npy' cannot be converted"),
        ("pickle.npy", np.array([{}]), "cannot be converted: it holds Python objects"),
        ("complex.npy", np.ones(3, complex), "has type complex128; it must be one of"),
        ("text.npy", np.array(["a"]), "has type <U1; it must be one of"),
        ("other.npy", np.ones(3, np.int32), "INT32, while .* is FLOAT32; both"),
        (
            "bad.png",
            b"no image",
            "'bad.png' cannot be converted: cannot identify image file$",
        ),
        ("bad.png", "png", "sourcePath 'bad.png' cannot be converted"),
    ],
)
def test_a_wrong_source_file(folder, capsys, name, content, message):
    if isinstance(content, np.ndarray):
        np.save(name, content)
    elif content == "short":
        np.save(name, np.ones(100))
        (folder / name).write_bytes((folder / name).read_bytes()[:200])
    elif content == "png":
        write_image(name, 3)
        (folder / name).write_bytes((folder / name).read_bytes()[:80])
    elif content is not None:
        (folder / name).write_bytes(content)
    source = edited(padding_model(), *VALUES, {"sourcePath": name})
    rejects(folder, capsys, source, "^model, resource 'input': ", message)


def test_an_unreadable_source_file(folder, capsys, monkeypatch):
    (folder / "raw.bin").write_bytes(bytes(12))

    def refuse(path, flags):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("dmljax._model.limits._without_waiting", refuse)
    source = edited(padding_model(), *VALUES, {"sourcePath": "raw.bin"})
    rejects(folder, capsys, source, "'raw.bin' cannot be read: Permission denied")


def test_a_wide_npy_file_needs_x64_mode(folder, capsys):
    np.save("wide.npy", np.arange(3))
    source = model({"r": {"initialValues": {"sourcePath": "wide.npy"}}}, {})
    rejects(folder, capsys, source, "INT64, which needs JAX's x64 mode")
    with jax.enable_x64(True):
        assert dmljax.run_model(source)["r"].dtype == jnp.int64


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"initialValuesDataType": "INT32"}, "an image has data type INT32"),
        ({"resampleSize": [3, 5, 7]}, r"'resampleSize' is \{3,5,7\}"),
        ({"resampleSize": [2, 3, 5, 7]}, r"'resampleSize' is \{2,3,5,7\}"),
        ({"resampleSize": [1, 2, 5, 7]}, "with 1, 3 or 4 channels"),
        ({"resampleSize": [1, 3, 0, 7]}, "integers, each from 1 to"),
        ({"resampleMode": "crop"}, "'resampleMode' is 'crop'; it must be 'scale'"),
        ({"channelOrder": "GBR"}, "'channelOrder' is 'GBR'; .* one of RGB, BGR"),
    ],
)
def test_a_wrong_image_resource(folder, capsys, more, message):
    write_image("in.png", 3)
    source = model({"r": data("UINT8", {"sourcePath": "in.png"}) | more}, {})
    rejects(folder, capsys, source, "resource 'r': ", message)


def test_an_image_of_16_bits(folder, capsys):
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.ones((5, 7), np.uint16)).save("deep.png")
    source = model({"r": data("UINT8", {"sourcePath": "deep.png"})}, {})
    rejects(
        folder, capsys, source, "'deep.png' cannot be converted: .*more than 8 bits"
    )


@pytest.mark.parametrize(
    ("data_type", "name", "dimensions", "message"),
    [
        ("UINT8", "out.png", None, r"'dimensions' is \{12\}; for an image it must be"),
        ("UINT8", "out.png", [2, 6, 1], r"\{2,6,1\}; .* with 1, 3, 4 channels"),
        ("UINT8", "out.jpg", [4, 3, 1], r"\{4,3,1\}; .* with 1, 3 channels"),
        ("UINT8", "out.png", [2, 1, 2, 3], r"\{2,1,2,3\}; for an image"),
        ("UINT8", "out.png", [1, 1, 1, 3, 4], r"\{1,1,1,3,4\}; for an image"),
        ("INT32", "out.png", [3, 4], "an image has data type INT32"),
    ],
)
def test_an_image_that_cannot_be_written(
    folder, capsys, data_type, name, dimensions, message
):
    source = model(
        {"r": data(data_type, {"valueCount": 12, "value": 1})},
        {},
        save("r", name, dimensions=dimensions),
    )
    rejects(folder, capsys, source, r"command 1 \(writeFile\): ", message)


def test_a_file_that_fails_late_leaves_nothing(folder, capsys, monkeypatch):
    def refuse(path, values):
        raise OSError(28, "No space left on device")

    (folder / "kept.bin").write_bytes(b"kept")
    source = model(
        {"r": data("UINT8", {"valueCount": 70_000, "value": 1})},
        {},
        show("r"),
        save("r", "kept.bin"),
        save("r", "more.npy"),
    )
    monkeypatch.setattr("dmljax._model.output._to_npy", refuse)
    rejects(
        folder, capsys, source, r"command 3 \(writeFile\): it cannot be written: No"
    )
    assert (folder / "kept.bin").read_bytes() == b"kept"


def test_a_private_file_stays_private(folder):
    (folder / "written.npy").touch(0o600)
    dmljax.run_model(padding_model())
    status = (folder / "written.npy").stat()
    assert status.st_size > 0
    assert status.st_mode & 0o777 == 0o600


@pytest.mark.parametrize("method", ["write_bytes", "replace"])
def test_a_full_disk(folder, capsys, monkeypatch, method):
    def refuse(*paths):
        raise OSError(28, "No space left on device")

    target = "os.replace" if method == "replace" else "pathlib.Path.write_bytes"
    monkeypatch.setattr(target, refuse)
    source = padding_model()
    del source["commands"][1]
    rejects(folder, capsys, source, "cannot be written: No space left on device")


def test_images_without_pillow(folder, capsys, monkeypatch):
    write_image("in.png", 3)
    monkeypatch.setitem(sys.modules, "PIL", None)
    message = "images need Pillow, which is not installed: pip install pillow$"
    read = model({"r": data("UINT8", {"sourcePath": "in.png"})}, {})
    rejects(folder, capsys, read, message)
    save_it = save("r", "out.png", dimensions=[1, 1])
    rejects(folder, capsys, model({"r": data("UINT8", [1])}, {}, save_it), message)


def test_filters_of_warnings_are_restored_when_threads_use_images():
    entered, left = threading.Event(), threading.Event()
    before = list(warnings.filters)

    def first():
        with _images.codec("the first"):
            entered.set()
            left.wait(0.05)  # the second would enter here

    thread = threading.Thread(target=first)
    thread.start()
    entered.wait()
    with _images.codec("the second"):
        left.set()
        thread.join(0.05)
    thread.join()
    assert warnings.filters == before


@pytest.mark.parametrize(
    "setting",
    [jax.disable_jit, jax.debug_nans, jax.debug_infs],
    ids=lambda s: s.__name__,
)
def test_settings_for_debugging_do_not_change_a_model(setting):
    source = padding_model()
    source["resources"]["input"]["initialValues"] = ["nan", 2, "inf"]
    with setting(True):
        output = dmljax.run_model(source)["output"]
    nan, inf = np.nan, np.inf
    np.testing.assert_array_equal(output, [nan, nan, 2, inf, inf])


def test_what_the_device_refuses(monkeypatch):
    def refuse(*arguments):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")

    monkeypatch.setattr(jax, "device_put", refuse)
    with pytest.raises(dmljax.ModelError, match="model: the device could not run"):
        dmljax.run_model(padding_model())


def test_memory_runs_out(monkeypatch):
    def refuse(*arguments):
        raise MemoryError

    monkeypatch.setattr(np, "repeat", refuse)
    with pytest.raises(dmljax.ModelError, match="'output': there is not enough memory"):
        dmljax.run_model(padding_model())
