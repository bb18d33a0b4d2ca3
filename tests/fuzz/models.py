"""Random model files, damage to them, and their expected results."""

import copy
import json

import numpy as np

from tests.fuzz import expected
from tests.fuzz.descriptors import ODD
from tests.model import models as m

# They take the place of other values: limits of C's types, and values of other types.
# JSON has no NumPy values, and `json` writes no integer of thousands of digits.
VALUES = [v for v in ODD if not isinstance(v, (np.generic, np.ndarray))]
VALUES.remove(10**5000)
VALUES += [10**40, 0.0, -1.5, 1e300, "", "x", "nan", "UINT8", "INT64", "UNKNOWN"]
VALUES += ["WRAP", "deferred", "\x1b[2J\n", [], {}, [1], [[]], {"name": "in"}]
# They take the place of some bytes of the text.
PIECES = [b"", b"//", b"/*", b"9" * 40, b"null", b",", b"]", b"{", b'"', b"\\", b"\xff"]
PIECES += [b"9" * 5000]

# VALID MODELS


def valid_model(maker):
    """Makes a model of one or two dispatches of random descriptors."""
    choose = maker.random
    resources = {}
    dispatchables = {}
    commands = []
    for number in range(choose.randint(1, 2)):
        desc = maker.desc()
        # The dispatchable has some of the bindings, because only those may be owned.
        first = {}
        bindings = {}
        for field, tensor in desc.tensors().items():
            name = f"r{number}{field}"
            chosen = first if choose.random() < 0.2 else bindings
            binding, resources[name] = _bound(choose, name, tensor)
            chosen[field.title().replace("_", "")] = binding
        named = f"d{number}"
        dispatchables[named] = desc.to_json() | {"bindings": first}
        path = choose.choice(("r.bin", "r.npy"))
        commands += [m.dispatch(named, **bindings), m.show(name), m.save(name, path)]
    return m.model(resources, dispatchables, *commands)


def _bound(choose, name, tensor):
    """Makes a binding for a tensor and its resource, whose data type may differ."""
    data_type = choose.choice((tensor.data_type.name, "UINT8", "INT16"))
    width = np.dtype(data_type.lower()).itemsize
    needed = tensor.extent * tensor.dtype.itemsize
    needed = max(needed, tensor.total_tensor_size_in_bytes or 0)
    # An aligned tensor begins at the first byte of the buffer.
    aligned = tensor.guaranteed_base_offset_alignment
    before = 0 if aligned else choose.choice((0, 1, 3))
    count = before + -(-needed // width)
    resource = m.data(data_type, m.line(count, 1, choose.choice((0, 1, 3))))
    return {"name": name, "elementOffset": before} if before else name, resource


# DAMAGE


def damaged(choose, model):
    """Returns the text of a model with some damage, and now and then without any."""
    for _ in range(choose.choice((0, 1, 1, 2))):
        _damage_value(choose, model)
    text = json.dumps(model, ensure_ascii=False).encode("utf-8", "replace")
    if choose.random() < 0.2:
        begin = choose.randrange(len(text))
        end = begin + choose.choice((0, 1, 9, len(text)))
        text = text[:begin] + choose.choice(PIECES) + text[end:]
    return text


def _damage_value(choose, model):
    """Changes a number, removes a value, or replaces a value."""
    places = _places(model)
    numbers = [(p, k) for p, k in places if type(p[k]) is int]
    parent, key = choose.choice(choose.choice((places, numbers or places)))
    value = parent[key]
    if choose.random() < 0.2:
        del parent[key]
    elif type(value) is int and choose.random() < 0.7:
        parent[key] += choose.choice((-1, 1, 4, value))
    else:
        copied, at = choose.choice(places)
        parent[key] = copy.deepcopy(choose.choice((copied[at], choose.choice(VALUES))))


def _places(value):
    """Lists every place in a JSON value, as its container and its key."""
    places = []
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        places.append((value, key))
        if isinstance(item, (dict, list)):
            places += _places(item)
    return places


# RESULTS


def _elements(tensor, buffer, offset):
    """The elements of a tensor in a buffer of bytes, as a view."""
    strides = [stride * tensor.dtype.itemsize for stride in tensor.element_strides]
    return np.ndarray(tensor.sizes, tensor.dtype, buffer, offset, strides)


def final_bytes(model):
    """Computes the final bytes of the resources by the oracles."""
    initial = {name: r.content for name, r in model.resources.items()}
    state = copy.deepcopy(initial)
    for command in model.dispatches.values():
        inputs = []
        for tensor, name, begin, _, owned in command.inputs:
            buffers = initial if owned else state
            inputs.append(_elements(tensor, buffers[name], begin))
        results = expected.logical_outputs(command.desc, inputs)
        for binding, value in zip(command.outputs, results, strict=True):
            tensor, name, begin, *_ = binding
            _elements(tensor, state[name], begin)[...] = value.reshape(tensor.sizes)
    return {
        name: state[name][: resource.values.nbytes].tobytes()
        for name, resource in model.resources.items()
    }
