"""Makes model files with random damage, and says what an accepted one must give."""

import copy
import json
import random
from typing import Any

import numpy as np

from dmljax._model.format import Dispatch, Model
from tests import oracles
from tests.fuzz import expected
from tests.fuzz.descriptors import Maker

State = dict[str, np.ndarray]
SMALL = (0, 1, -1, 2, 3, 4, 7, 8, 16, 255, 256, 1000, 65535, 2**16)
LIMITS = (2**31 - 1, 2**31, -(2**31), 2**32 - 1, 2**32, 2**63, 2**64, 10**40)
OTHERS = (0.0, 0.5, -1.5, 1e38, 1e300, -0.0, True, False, None, "", "x", "nan", "inf")
TYPES = ("UINT8", "FLOAT16", "INT64", "UNKNOWN")
NAMES = ("EDGE", "WRAP", "deferred", "\x1b[2J\n")
PARTS = ([], {}, [1], [1, 2], [[]], {"name": "in"}, {"valueCount": 9, "value": 1})
# Values that take the place of others: limits of C's types, and other types.
VALUES = SMALL + LIMITS + OTHERS + TYPES + NAMES + PARTS
# What is put into the text.
PIECES = [b"", b"//", b"/*", b"*/", b"9" * 40, b"e9", b"null"]
PIECES += [bytes([byte]) for byte in b',]}[{"\\\n0-.\xff\x00 ']


def base_model(maker: Maker) -> dict[str, Any]:
    """Makes a valid model of one or two dispatches of random descriptors."""
    choose = maker.random
    resources: dict[str, Any] = {}
    dispatchables: dict[str, Any] = {}
    commands: list[dict[str, Any]] = []
    for number in range(choose.randint(1, 2)):
        desc = maker.desc()
        bindings = {}
        for field, tensor in desc.tensors().items():
            name = f"r{number}{field}"
            resources[name], binding = _resource(choose, name, tensor)
            bindings[field.title().replace("_", "")] = binding
        # Tensors that are bound here may be owned.
        first = {k: bindings.pop(k) for k in list(bindings) if choose.random() < 0.2}
        named = f"d{number}"
        dispatchables[named] = desc.to_json() | {"bindings": first}
        dispatch = {"type": "dispatch", "dispatchable": named, "bindings": bindings}
        commands.append(dispatch)
    for name in resources:
        if choose.random() < 0.3:
            verbose = choose.random() < 0.3
            commands.append({"type": "print", "resource": name, "verbose": verbose})
        if choose.random() < 0.2:
            path = f"{name}{choose.choice(('.bin', '.npy'))}"
            commands.append({"type": "writeFile", "resource": name, "targetPath": path})
    return {
        "resources": resources,
        "dispatchables": dispatchables,
        "commands": commands,
    }


def _resource(choose: random.Random, name: str, tensor: Any) -> tuple[Any, Any]:
    """Makes a resource for a tensor, of its own or of another type, and a binding."""
    own = choose.random() < 0.7
    data_type = tensor.data_type.name if own else choose.choice(("UINT8", "INT16"))
    width = np.dtype(data_type.lower()).itemsize
    before = choose.choice((0, 0, 0, 1, 3))
    needed = max(tensor.extent * tensor.dtype.itemsize, 1)
    needed = max(needed, tensor.total_tensor_size_in_bytes or 0)
    count = before + -(-needed // width)
    if choose.random() < 0.5 and count < 60:
        values: Any = [choose.choice((0, 0, 1, 2, 5, 100)) for _ in range(count)]
    else:
        delta = choose.choice((0, 1, 3))
        values = {"valueCount": count, "valueStart": 1, "valueDelta": delta}
    resource = {"initialValuesDataType": data_type, "initialValues": values}
    if choose.random() < 0.2:
        resource["sizeInBytes"] = count * width + 8
        resource["initialValuesOffsetInBytes"] = choose.choice((0, 4, 7))
    if tensor.guaranteed_base_offset_alignment:
        return resource, name  # the tensor begins at the first byte of the buffer
    binding = {"name": name, "elementOffset": before}
    return resource, binding if before or choose.random() < 0.2 else name


# Damage


def damaged(choose: random.Random, source: dict[str, Any]) -> bytes:
    """Returns the text of a model with some damage, and now and then without any."""
    model = copy.deepcopy(source)
    for _ in range(choose.choice((0, 1, 1, 1, 1, 2, 3))):
        _damage_value(choose, model)
    text = bytearray(json.dumps(model, ensure_ascii=False).encode("utf-8", "replace"))
    for _ in range(choose.choice((0, 0, 0, 0, 0, 0, 0, 1, 2, 5))):
        _damage_text(choose, text)
    return bytes(text)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Lists every place in a JSON value, as its container and its key."""
    found = []
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        found.append((value, key))
        if isinstance(item, (dict, list)):
            found += _places(item)
    return found


def _damage_value(choose: random.Random, model: dict[str, Any]) -> None:
    places = _places(model) or [({"x": 1}, "x")]
    parent, key = choose.choice(places)
    other, there = choose.choice(places)
    item = parent[key]
    kind = choose.randrange(6)
    numbers = [(p, k) for p, k in places if type(p[k]) in (int, float)]
    if kind <= 1 and numbers:
        parent, key = choose.choice(numbers)
        near = parent[key] + choose.choice((-1, 1, 4))
        limits = [value for value in VALUES if type(value) is int]
        parent[key] = choose.choice((near, near, parent[key] * 2, *limits))
    elif kind == 2:
        del parent[key]
    elif kind == 3 and isinstance(parent, dict):
        names = [key.lower(), key + "x", key[:-1], "Strides", "desc", ""]
        parent[choose.choice(names)] = parent.pop(key)
    elif kind == 3:
        parent[key:key] = copy.deepcopy([item] * choose.choice((1, 2, 9)))
    elif kind == 4:
        parent[key] = copy.deepcopy(other[there])
        other[there] = copy.deepcopy(item)
    else:
        parent[key] = copy.deepcopy(choose.choice(VALUES))


def _damage_text(choose: random.Random, text: bytearray) -> None:
    """Puts a piece in the place of some bytes, often of none."""
    begin = choose.randrange(len(text))
    end = begin + choose.choice((0, 0, 1, 1, 2, 9, len(text)))
    flipped = bytes([text[begin] ^ 1 << choose.randrange(8)])
    text[begin:end] = choose.choice([*PIECES, flipped, text[begin : begin + 20]])
    text += b" "


# What a model must give


def final_bytes(model: Model) -> dict[str, bytes]:
    """Computes by the oracles what the resources hold at the end."""
    initial = {name: r.content for name, r in model.resources.items()}
    state = copy.deepcopy(initial)
    for command in model.dispatches:
        _dispatch(command, initial, state)
    return {
        name: state[name][: resource.length * resource.dtype.itemsize].tobytes()
        for name, resource in model.resources.items()
    }


def _dispatch(command: Dispatch, initial: State, state: State) -> None:
    desc = command.desc
    inputs = []
    for field, tensor in desc.input_tensors().items():
        name, offset, owned = command.bindings[field]
        size = tensor.extent * tensor.dtype.itemsize
        buffer = (initial if owned else state)[name]
        elements = buffer[offset : offset + size].copy().view(tensor.dtype)
        inputs.append(oracles.strided_read(elements, tensor.sizes, tensor.strides))
    results = expected.logical_outputs(desc, inputs)
    outputs = desc.output_tensors().items()
    for (field, tensor), value in zip(outputs, results, strict=True):
        name, offset, _ = command.bindings[field]
        width = tensor.dtype.itemsize
        shaped = value.reshape(tensor.sizes)
        for coordinate in np.ndindex(tensor.sizes):
            place = offset + width * int(np.dot(coordinate, tensor.element_strides))
            element = np.frombuffer(shaped[coordinate].tobytes(), np.uint8)
            state[name][place : place + width] = element
