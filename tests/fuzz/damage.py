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

# Values that take the place of others: limits of C's types, and other types.
VALUES = (
    *(0, 1, -1, 2, 3, 4, 7, 8, 16, 255, 256, 1000, 65535, 2**16),
    *(2**31 - 1, 2**31, -(2**31), 2**32 - 1, 2**32, 2**63, 2**64, 10**40),
    *(0.0, 0.5, -1.5, 1e38, 1e300, -0.0, True, False, None, "", "x", "nan", "inf"),
    *("UINT8", "FLOAT16", "INT64", "UNKNOWN", "EDGE", "WRAP", "deferred", "\x1b[2J\n"),
    *([], {}, [1], [1, 2], [[]], {"name": "in"}, {"valueCount": 9, "value": 1}),
)


def base_model(maker: Maker) -> dict[str, Any]:
    """Makes a valid model of one to three dispatches of random descriptors."""
    choose = maker.random
    resources: dict[str, Any] = {}
    dispatchables: dict[str, Any] = {}
    commands: list[Any] = []
    for number in range(choose.randint(1, 2)):
        desc = maker.desc()
        bindings = {}
        for field, tensor in desc.tensors().items():
            # The name of the field in the C struct.
            name, key = f"r{number}{field}", field.title().replace("_", "")
            resources[name], bindings[key] = _resource(choose, name, tensor)
        dispatchables[f"d{number}"] = desc.to_json()
        commands.append(
            {"type": "dispatch", "dispatchable": f"d{number}", "bindings": bindings}
        )
    for name in resources:
        if choose.random() < 0.3:
            verbose = choose.random() < 0.3
            commands.append({"type": "print", "resource": name, "verbose": verbose})
        if choose.random() < 0.2:
            target = f"{name}{choose.choice(('.bin', '.npy'))}"
            write = {"type": "writeFile", "resource": name, "targetPath": target}
            commands.append(write)
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
        choose.choice(STRUCTURAL)(choose, model)
    text = bytearray(json.dumps(model, ensure_ascii=False).encode("utf-8", "replace"))
    if choose.random() < 0.3:
        for _ in range(choose.choice((1, 1, 2, 5))):
            choose.choice(TEXTUAL)(choose, text)
    return bytes(text)


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Lists every place in a JSON value, as its container and its key."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        found.append((value, key))
        if isinstance(item, (dict, list)):
            _places(item, found)
    return found


def _replace(choose: random.Random, model: dict[str, Any]) -> None:
    parent, key = choose.choice(_places(model, []) or [({}, "x")])
    parent[key] = copy.deepcopy(choose.choice(VALUES))


def _number(choose: random.Random, model: dict[str, Any]) -> None:
    """Puts another number in the place of one."""
    places = [(p, k) for p, k in _places(model, []) if type(p[k]) in (int, float)]
    for parent, key in [choose.choice(places)] if places else []:
        near = parent[key] + choose.choice((-1, 1, 4))
        limits = [value for value in VALUES if type(value) is int]
        parent[key] = choose.choice((near, near, parent[key] * 2, *limits))


def _remove(choose: random.Random, model: dict[str, Any]) -> None:
    for parent, key in [choose.choice(_places(model, []) or [({"x": 1}, "x")])]:
        del parent[key]


def _rename(choose: random.Random, model: dict[str, Any]) -> None:
    places = [(p, k) for p, k in _places(model, []) if isinstance(p, dict)]
    for parent, key in [choose.choice(places)] if places else []:
        name = choose.choice((key.lower(), key + "x", key[:-1], "Strides", "desc", ""))
        parent[name] = parent.pop(key)


def _swap(choose: random.Random, model: dict[str, Any]) -> None:
    places = _places(model, [])
    if len(places) > 1:
        (first, i), (second, j) = choose.sample(places, 2)
        first[i], second[j] = copy.deepcopy(second[j]), copy.deepcopy(first[i])


def _repeat(choose: random.Random, model: dict[str, Any]) -> None:
    places = [(p, k) for p, k in _places(model, []) if isinstance(p, list)]
    for parent, key in [choose.choice(places)] if places else []:
        parent[key:key] = copy.deepcopy([parent[key]] * choose.choice((1, 2, 9)))


STRUCTURAL = (_replace, _number, _number, _remove, _rename, _swap, _repeat)


def _flip(choose: random.Random, text: bytearray) -> None:
    text[choose.randrange(len(text))] ^= 1 << choose.randrange(8)


def _put(choose: random.Random, text: bytearray) -> None:
    pieces = (b",", b"]", b"}", b"[", b"{", b'"', b"//", b"/*", b"*/", b"\\", b"\n")
    pieces += (b"0", b"9" * 40, b"e9", b"-", b".", b"null", b"\xff", b"\x00", b" ")
    place = choose.randrange(len(text) + 1)
    text[place:place] = choose.choice(pieces)


def _cut(choose: random.Random, text: bytearray) -> None:
    begin = choose.randrange(len(text))
    del text[begin : begin + choose.choice((1, 1, 2, 9, len(text)))]
    text += b" "


def _double(choose: random.Random, text: bytearray) -> None:
    begin = choose.randrange(len(text))
    text[begin:begin] = text[begin : begin + choose.choice((1, 3, 20))]


TEXTUAL = (_flip, _put, _put, _cut, _double)


# What a model must give


def final_bytes(model: Model) -> dict[str, bytes]:
    """Computes by the oracles what the resources hold at the end."""
    state = {name: r.content.copy() for name, r in model.resources.items()}
    for command in model.commands:
        if isinstance(command, Dispatch):
            _dispatch(command, state)
    return {
        name: state[name][: resource.length * resource.dtype.itemsize].tobytes()
        for name, resource in model.resources.items()
    }


def _dispatch(command: Dispatch, state: dict[str, np.ndarray]) -> None:
    desc = command.desc
    inputs = []
    for field, tensor in desc.input_tensors().items():
        name, offset = command.bindings[field]
        size = tensor.extent * tensor.dtype.itemsize
        elements = state[name][offset : offset + size].copy().view(tensor.dtype)
        inputs.append(oracles.strided_read(elements, tensor.sizes, tensor.strides))
    results = expected.logical_outputs(desc, inputs)
    for (field, tensor), value in zip(
        desc.output_tensors().items(), results, strict=True
    ):
        name, offset = command.bindings[field]
        strides = tensor.element_strides
        width = tensor.dtype.itemsize
        shaped = value.reshape(tensor.sizes)
        for coordinate in np.ndindex(tensor.sizes):
            place = offset + width * int(np.dot(coordinate, strides))
            element = np.frombuffer(shaped[coordinate].tobytes(), np.uint8)
            state[name][place : place + width] = element
