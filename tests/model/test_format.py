"""The format: the fields of each object, and the values of each type."""

import json

import pytest

from tests.model import models as m

# The types as messages name them, and the fields of each by their paths.
TYPES = {
    "an object": "resources dispatchables pad.desc pad.bindings dispatch.bindings",
    "a list": "commands",
    "a list or an object": "input.initialValues",
    "a string": """
        $schema pad.type pad.dmlCompileType dispatch.type dispatch.dispatchable
        print.resource writeFile.resource writeFile.targetPath bindings.InputTensor.name
        bindings.InputTensor.format bindings.InputTensor.counter
    """,
    "true or false": "print.verbose",
    "a number, or for floats also 'nan', 'inf' or '-inf'": """
        output.initialValues.value input.initialValues.valueStart
        input.initialValues.valueDelta
    """,
    "an integer from 0 to 2^64 - 1": """
        input.initialValuesOffsetInBytes input.sizeInBytes
        input.initialValues.valueCount output.initialValues.valueCount
        bindings.InputTensor.elementOffset bindings.InputTensor.elementSizeInBytes
        bindings.InputTensor.elementCount bindings.InputTensor.elementStride
        bindings.InputTensor.counterOffsetBytes
    """,
    "a list of integers": "dispatch.threadGroupCount bindings.InputTensor.shape",
    "a list of integers, each from 1 to 2^32 - 1": """
        input.resampleSize writeFile.dimensions
    """,
    "'scale'": "input.resampleMode",
    "one of FLOAT64, FLOAT32": "input.initialValuesDataType",
    "one of NONE, ALLOW_HALF": "pad.executionFlags",
}
FIELDS = [(path, text) for text, paths in TYPES.items() for path in paths.split()]


@pytest.mark.parametrize(("path", "text"), FIELDS)
def test_each_field_has_a_type(path, text):
    """One type alone accepts a boolean."""
    model = m.edited(m.padding_model(), "input.initialValues", m.line(3, 1, 1))
    wrong = 1 if text == "true or false" else True
    message = m.refusal(m.edited(model, path, wrong))
    *_, key = path.split(".")
    assert f"the field '{key}' is {json.dumps(wrong)}; it must be {text}" in message


def test_ignored_fields():
    source = m.padding_model()
    for path, value in {
        "$schema": "./model.schema.json",
        "pad.dmlCompileType": "DmlCompileOp",
        "pad.executionFlags": ["NONE", "DML_EXECUTION_FLAG_DISABLE_META_COMMANDS"],
        "input.resampleMode": "scale",
        "dispatch.threadGroupCount": [1, 1, 1],
        "bindings.Absent": None,
        "bindings.InputTensor.format": "R32_FLOAT",
        "bindings.InputTensor.elementStride": 9,
        "bindings.InputTensor.shape": [7],
        "bindings.InputTensor.counter": "none",
        "bindings.InputTensor.counterOffsetBytes": 4,
    }.items():
        source = m.edited(source, path, value)
    assert m.output_of(source) == [1, 1, 2, 3, 3]
