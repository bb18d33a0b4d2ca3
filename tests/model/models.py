"""Small models, edits of them, and the messages of refused models."""

import copy
import functools
import operator

import pytest

import dmljax
from dmljax import PaddingDesc, PaddingMode
from tests import samples


def data(data_type, values, **more):
    return {"initialValuesDataType": data_type, "initialValues": values} | more


def zeros(data_type, count):
    return data(data_type, {"valueCount": count, "value": 0})


def line(count, start, delta):
    return {"valueDelta": delta, "valueStart": start, "valueCount": count}


def source(path, data_type="UINT8", **more):
    return data(data_type, {"sourcePath": path}, **more)


def pad(sizes=(3,), start=(1,), end=(1,), mode="EDGE", data_type="FLOAT32"):
    padded = [sum(parts) for parts in zip(start, sizes, end, strict=True)]
    desc = PaddingDesc(
        samples.tensor(data_type, *sizes),
        samples.tensor(data_type, *padded),
        PaddingMode[mode],
        0,
        len(sizes),
        start,
        end,
    )
    return desc.to_json()


def dispatch(dispatchable, **bindings):
    return {"type": "dispatch", "dispatchable": dispatchable, "bindings": bindings}


def show(resource, **more):
    return {"type": "print", "resource": resource} | more


def save(resource, path, **more):
    target = {"resource": resource, "targetPath": str(path)}
    return {"type": "writeFile"} | target | more


def model(resources, dispatchables, *commands):
    return {
        "resources": resources,
        "dispatchables": dispatchables,
        "commands": list(commands),
    }


def holding(resource, *commands):
    """A model with one resource, `r`, and no operators."""
    return model({"r": resource}, {}, *commands)


def values_of(resource):
    """The values of a resource, from a model that leaves it alone."""
    return dmljax.run_model(holding(resource))["r"]


def padding_model():
    """A model that pads, prints and writes. Its output is 1, 1, 2, 3, 3."""
    return model(
        {"input": data("FLOAT32", [1, 2, 3]), "output": zeros("FLOAT32", 5)},
        {"pad": pad()},
        dispatch("pad", InputTensor={"name": "input"}, OutputTensor="output"),
        show("output"),
        save("output", "written.npy"),
    )


def edited(original, path, value):
    """A copy of a model with another value at a path of keys, or with ... with none.

    A path of several keys begins with the name of a resource or of a dispatchable, with
    the type of a command, or with the bindings of the first one: `pad.desc.Axis`.
    """
    result = parent = copy.deepcopy(original)
    *keys, last = path.split(".")
    if keys:
        names = result | result["resources"] | result["dispatchables"]
        names |= {command["type"]: command for command in result["commands"]}
        parent = functools.reduce(operator.getitem, keys, names | result["commands"][0])
    if value is ...:
        del parent[last]
    else:
        parent[last] = value
    return result


def output_of(model):
    """The elements of the resource `output` after a model has run."""
    return dmljax.run_model(model)["output"].tolist()


def padded(path, value):
    """The output of the padding model after an edit."""
    return output_of(edited(padding_model(), path, value))


def refusal(model, **options):
    """The message that refuses a model: one line of fewer than 500 characters."""
    with pytest.raises(dmljax.ModelError) as caught:
        dmljax.run_model(model, **options)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 500
    return message


def refused_resource(resource, *commands):
    """The message that refuses a model with one resource."""
    return refusal(holding(resource, *commands))


def refused(path, value):
    """The message that refuses the padding model after an edit."""
    return refusal(edited(padding_model(), path, value))
