"""The JSON Schema accepts what is read, and refuses what is refused by a table."""

import json

import jsonschema
import pytest

from dmljax._model.schema import model_schema
from docs import make_models
from tests.model import models as m
from tests.model.test_values import MIXED


@pytest.fixture(scope="module")
def valid():
    """Whether the JSON Schema accepts a model."""
    schema = model_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema).is_valid


def full_model():
    """A model with every form of every object that is read."""
    full = m.edited(m.padding_model(), "$schema", "model.schema.json")
    line = {"valueCount": 3, "valueStart": 1, "valueDelta": "inf"}
    full["resources"] |= {
        "mixed": m.data(None, MIXED),
        "line": m.data("FLOAT32", line),
        "image": m.source("a.png", resampleSize=[1, 3, 5, 7]),
    }
    desc = full["dispatchables"]["pad"]["desc"]
    union = {"PaddingValueDataType": "FLOAT32", "PaddingValue": {"Float32": "nan"}}
    flagged = desc["InputTensor"] | {"DimensionCount": 1, "Flags": ["NONE"]}
    wrapped = {"Type": "BUFFER", "Desc": flagged}
    full["dispatchables"] |= {
        "beside": {"Type": "PADDING", **desc},
        "union": {"type": "DML_OPERATOR_PADDING1", "Desc": desc | union},
        "wrapped": {"type": "PADDING", "desc": desc | {"InputTensor": wrapped}},
    }
    binding = [{"name": "input", "elementOffset": 1}]
    full["commands"] += [
        m.show("output", verbose=True) | {"type": "PRINT"},
        m.dispatch("pad", InputTensor=binding, Extra=None),
    ]
    return full


def test_the_schema_accepts_every_form_and_the_models_of_the_documentation(valid):
    assert valid(full_model())
    for text in make_models.model_files().values():
        assert valid(json.loads(text))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("resource", {}),
        ("input.sizeInByte", 1),
        ("input.sizeInBytes", -1),
        ("input.initialValues", "deferred"),
        ("input.initialValues", []),
        ("input.initialValues", {"valueCount": 1}),
        ("mixed.initialValues", [{"type": "INT8"}]),
        ("pad.type", "hlsl"),
        ("pad", {"desc": {}}),
        ("pad", {"type": "PADDING"}),
        ("pad.desc.PaddingMode", "MIRROR"),
        ("pad.desc.Axis", 1),
        ("pad.desc.OutputTensor.Sizes", [2.5]),
        ("pad.desc.OutputTensor.Type", "IMAGE"),
        ("pad.desc.OutputTensor.Flags", [7]),
        ("beside.Axis", 1),
        ("beside.StartPadding", None),
        ("union.Desc.PaddingValue", {}),
        ("bindings.InputTensor", {"elementOffset": 1}),
        ("bindings.InputTensor", ["input", "input"]),
        ("bindings", None),
        ("print.type", "plot"),
        ("print.verbose", 1),
    ],
)
def test_the_schema_refuses_what_is_refused(valid, path, value):
    wrong = m.edited(full_model(), path, value)
    assert not valid(wrong)
    m.refusal(wrong)
