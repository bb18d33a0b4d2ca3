"""Random model files, and damage to them."""

import copy
import json

import numpy as np

from dmljax._directml.struct import c_name
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


def valid_model(desc):
    """Makes a model of a descriptor. Every tensor has a resource of bytes."""
    resources = {}
    for field, tensor in desc.tensors().items():
        size = tensor.total_tensor_size_in_bytes or tensor.implied_size_in_bytes
        step = field not in desc.outputs  # an output has zeros in its gaps
        values = m.line(-(-size // 8) * 8, 3 * step, 7 * step)
        resources[c_name(field)] = m.data("UINT8", values)
    dispatch = m.dispatch("d", **{name: name for name in resources})
    *_, name = resources
    commands = dispatch, m.show(name), m.save(name, "r.bin")
    return m.model(resources, {"d": desc.to_json()}, *commands)


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
