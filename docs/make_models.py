"""Writes the model files in ``docs/models``: ``python docs/make_models.py``.

The pages' examples come from ``dmljax._pages.examples``; the others are made here.
"""

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dmljax import (
    DataType,
    DiagonalMatrix1Desc,
    ElementWiseIfDesc,
    NonzeroCoordinatesDesc,
    OperatorDesc,
    PaddingDesc,
    PaddingMode,
    TensorDesc,
)
from dmljax._pages.examples import EXAMPLES, Example
from dmljax._struct import c_name
from dmljax._types import INT32_MAX

FOLDER = Path(__file__).parent / "models"
WIDTH = 88
PHOTOGRAPH = 256  # the height and the width of astronaut.jpg


def model_files() -> dict[str, str]:
    """The text of every model file, by its name."""
    models = {example.name: _example_model(example) for example in EXAMPLES}
    for mode in PaddingMode:
        models[f"photograph_{mode.name.lower()}"] = _photograph_model(mode, 64)
    models["photograph_folded"] = _photograph_model(PaddingMode.REFLECTION, 600)
    models["chain"] = _chain_model()
    return {f"{name}.json": _readable(model) + "\n" for name, model in models.items()}


def _data(data_type: DataType, values: Any) -> dict[str, Any]:
    return {"initialValuesDataType": data_type.name, "initialValues": values}


def _zeros(tensor: TensorDesc) -> dict[str, Any]:
    return _data(tensor.data_type, {"valueCount": tensor.extent, "value": 0})


def _dispatch(
    dispatchable: str, desc: OperatorDesc, resources: Mapping[str, str]
) -> dict[str, Any]:
    """The command; `resources` has the fields of `desc` as its keys."""
    bindings = {c_name(field): resources[field] for field in desc.tensors()}
    return {"type": "dispatch", "dispatchable": dispatchable, "bindings": bindings}


def _example_model(example: Example) -> dict[str, Any]:
    desc = example.desc
    tensors = desc.tensors()
    arrays = dict(zip(desc.input_tensors(), example.arrays(), strict=True))
    resources = {
        name: _data(tensor.data_type, arrays[name].ravel().tolist())
        if name in arrays
        else _zeros(tensor)
        for name, tensor in tensors.items()
    }
    names = {field: field.removesuffix("_tensor") for field in tensors}
    operator = desc.operator.lower()
    return {
        "resources": {names[field]: value for field, value in resources.items()},
        "dispatchables": {operator: desc.to_json()},
        "commands": [
            _dispatch(operator, desc, names),
            *({"type": "print", "resource": names[field]} for field in desc.outputs),
        ],
    }


def _photograph_model(mode: PaddingMode, pad: int) -> dict[str, Any]:
    """The photograph with `pad` pixels more on every side."""
    padding, size = (0, 0, pad, pad), PHOTOGRAPH + 2 * pad
    photograph = TensorDesc(DataType.FLOAT32, (1, 3, PHOTOGRAPH, PHOTOGRAPH))
    padded = TensorDesc(DataType.FLOAT32, (1, 3, size, size))
    desc = PaddingDesc(photograph, padded, mode, 0.5, 4, padding, padding)
    name = mode.name.lower() if pad < PHOTOGRAPH else "folded"
    names = {"input_tensor": "photograph", "output_tensor": "padded"}
    return {
        "resources": {
            "photograph": _data(DataType.FLOAT32, {"sourcePath": "astronaut.jpg"})
            | {"resampleSize": list(photograph.sizes)},
            "padded": _zeros(padded),
        },
        "dispatchables": {"padding": desc.to_json()},
        "commands": [
            _dispatch("padding", desc, names),
            {
                "type": "writeFile",
                "resource": "padded",
                "targetPath": f"docs/models/out/{name}.png",
                "dimensions": list(padded.sizes),
            },
        ],
    }


SMALL = TensorDesc(DataType.FLOAT32, (1, 1, 3, 3))
LARGE = TensorDesc(DataType.FLOAT32, (1, 1, 5, 5))
MASK = TensorDesc(DataType.UINT8, (1, 1, 5, 5))
ZERO = TensorDesc(DataType.FLOAT32, (1, 1, 5, 5), strides=(0, 0, 0, 0))
COUNT = TensorDesc(DataType.UINT32, (1,))
ROWS = TensorDesc(DataType.UINT32, (25, 2))


def _chain_model() -> dict[str, Any]:
    """Pads a matrix, keeps its upper triangle by a mask, and lists what is not 0."""
    matrix = {"valueCount": SMALL.extent, "valueStart": 1, "valueDelta": 1}
    steps = _chain_steps()
    return {
        "resources": {
            "matrix": _data(DataType.FLOAT32, matrix),
            "padded": _zeros(LARGE),
            "mask": _zeros(MASK),
            "zero": _zeros(ZERO),
            "triangle": _zeros(LARGE),
            "count": _zeros(COUNT),
            "coordinates": _zeros(ROWS),
        },
        "dispatchables": {name: desc.to_json() for name, (desc, _) in steps.items()},
        "commands": [
            *(_dispatch(name, *step) for name, step in steps.items()),
            {"type": "print", "resource": "triangle"},
            {"type": "print", "resource": "count"},
            {
                "type": "writeFile",
                "resource": "coordinates",
                "targetPath": "docs/models/out/coordinates.npy",
                "dimensions": list(ROWS.sizes),
            },
        ],
    }


def _chain_steps() -> dict[str, tuple[OperatorDesc, dict[str, str]]]:
    """By name, each operator and the resources of its tensors."""
    pad = (0, 0, 1, 1)
    return {
        "pad": (
            PaddingDesc(SMALL, LARGE, PaddingMode.REFLECTION, 0.0, 4, pad, pad),
            {"input_tensor": "matrix", "output_tensor": "padded"},
        ),
        "make_mask": (
            DiagonalMatrix1Desc(None, MASK, DataType.UINT8, 1, 0, INT32_MAX),
            {"output_tensor": "mask"},
        ),
        "select": (
            ElementWiseIfDesc(MASK, LARGE, ZERO, LARGE),
            {
                "condition_tensor": "mask",
                "a_tensor": "padded",
                "b_tensor": "zero",
                "output_tensor": "triangle",
            },
        ),
        "list": (
            NonzeroCoordinatesDesc(LARGE, COUNT, ROWS),
            {
                "input_tensor": "triangle",
                "output_count_tensor": "count",
                "output_coordinates_tensor": "coordinates",
            },
        ),
    }


def _readable(value: Any, indent: int = 0) -> str:
    """JSON with everything on one line that fits on it, and lists of numbers filled."""
    line = json.dumps(value)
    room = WIDTH - indent - 24  # leaves space for the key
    if not isinstance(value, (dict, list)) or (
        len(line) <= room and "{" not in line[1:]
    ):
        return line
    inner, outer = " " * (indent + 2), " " * indent
    if isinstance(value, dict):
        items = [f'"{k}": {_readable(v, indent + 2)}' for k, v in value.items()]
    elif all(isinstance(item, (int, float)) for item in value):
        items = [
            textwrap.fill(line[1:-1], WIDTH - indent - 2).replace("\n", f"\n{inner}")
        ]
    else:
        items = [_readable(item, indent + 2) for item in value]
    left, right = "{}" if isinstance(value, dict) else "[]"
    return f"{left}\n{inner}" + f",\n{inner}".join(items) + f"\n{outer}{right}"


if __name__ == "__main__":
    for name, text in model_files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
