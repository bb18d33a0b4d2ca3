"""The tables of the format: the fields of each object, and their kinds."""

import pytest

import dmljax
from tests.model import models as m

UNSIGNED = "an integer from 0 to 2^64 - 1"
SIZES = "a list of integers, each from 1 to 2^32 - 1"
NUMBER = "a number, or for floats also 'nan', 'inf' or '-inf'"
VALUES = "input.initialValues"


@pytest.mark.parametrize(
    ("path", "value", "kind"),
    [
        ("resources", [], "an object"),
        ("dispatchables", [], "an object"),
        ("commands", {}, "a list"),
        ("$schema", 1, "a string"),
        ("input.initialValuesDataType", "FLOAT8", "one of FLOAT64, FLOAT32"),
        ("input.initialValues", 1, "a list or an object"),
        ("input.initialValuesOffsetInBytes", -1, UNSIGNED),
        ("input.sizeInBytes", "16", UNSIGNED),
        ("input.resampleSize", [0], SIZES),
        ("input.resampleMode", "crop", "'scale'"),
        ("output.initialValues.value", True, NUMBER),
        ("output.initialValues.valueCount", 3.0, UNSIGNED),
        (VALUES, {"valueCount": 3, "valueStart": [1]}, NUMBER),
        (VALUES, {"valueCount": 3, "valueStart": 1, "valueDelta": {}}, NUMBER),
        (VALUES, {"sourcePath": 1}, "a string"),
        (VALUES, {"valueStart": 1, "valueCount": None}, UNSIGNED),
        ("pad.type", 1, "a string"),
        ("pad.desc", [], "an object"),
        ("pad.bindings", [], "an object"),
        ("pad.dmlCompileType", 1, "a string"),
        ("pad.executionFlags", ["FAST"], "one of NONE, ALLOW_HALF"),
        ("dispatch.type", 1, "a string"),
        ("dispatch.dispatchable", 1, "a string"),
        ("bindings", [], "an object"),
        ("dispatch.threadGroupCount", 1, "a list of integers"),
        ("print.resource", 1, "a string"),
        ("print.verbose", 1, "true or false"),
        ("writeFile.resource", 1, "a string"),
        ("writeFile.targetPath", 1, "a string"),
        ("writeFile.dimensions", [-5, -1], SIZES),
        ("bindings.InputTensor.name", 1, "a string"),
        ("bindings.InputTensor.elementOffset", -1, UNSIGNED),
        ("bindings.InputTensor.elementSizeInBytes", "4", UNSIGNED),
        ("bindings.InputTensor.elementCount", 1.0, UNSIGNED),
        ("bindings.InputTensor.format", 1, "a string"),
        ("bindings.InputTensor.elementStride", "4", UNSIGNED),
        ("bindings.InputTensor.shape", 1, "a list of integers"),
        ("bindings.InputTensor.counter", 1, "a string"),
        ("bindings.InputTensor.counterOffsetBytes", -1, UNSIGNED),
    ],
)
def test_each_field_has_a_kind(path, value, kind):
    message = m.refused(path, value)
    key = [*value][-1] if value and isinstance(value, dict) else path.split(".")[-1]
    assert f"the field '{key}' is " in message
    assert f"; it must be {kind}" in message


def test_fields_that_mean_nothing_here():
    source = m.padding_model()
    for path, value in {
        "$schema": "./model.schema.json",
        "pad.dmlCompileType": "DmlCompileOp",
        "pad.executionFlags": ["NONE", "DML_EXECUTION_FLAG_DISABLE_META_COMMANDS"],
        "dispatch.threadGroupCount": [1, 1, 1],
        "bindings.InputTensor.format": "R32_FLOAT",
        "bindings.InputTensor.elementStride": 9,
        "bindings.InputTensor.shape": [7],
        "bindings.InputTensor.counter": "none",
        "bindings.InputTensor.counterOffsetBytes": 4,
    }.items():
        source = m.edited(source, path, value)
    assert dmljax.run_model(source)["output"].tolist() == [1, 1, 2, 3, 3]
