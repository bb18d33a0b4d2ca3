"""Other libraries: their searches for non-zero elements, and models of ONNX.

Each library is imported when its function is called.
"""

import functools
import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.case import Functions

ONNX_OPSET, ONNX_IR_VERSION = 19, 9


def module(name: str) -> Any:
    """Imports a library when it is needed, because it may not be installed."""
    return importlib.import_module(name)


def torch_device() -> str:
    """PyTorch's name of the device that JAX uses."""
    return "cuda" if jax.default_backend() == "gpu" else "cpu"


# NONZERO_COORDINATES


def nonzero_coordinates(dtype: str, *, undefined: bool, size: int | None) -> Functions:
    """By library, argwhere; for jax.numpy, nonzero with a static size.

    A library that returns a row for each non-zero gets as many rows as dmljax returns,
    unless the rows past the count are undefined.
    """

    def filled(library: Any, x: Any, rows: Any) -> Any:
        return rows if undefined else _with_rows(size, library, x, rows)

    def argwhere(name: str) -> Callable[..., Any]:
        return lambda x: filled(module(name), x, module(name).argwhere(x))

    functions: dict[str, Any] = {
        "jnp": functools.partial(_jnp_nonzero, size),
        "numpy": argwhere("numpy"),
        "torch": argwhere("torch"),
    }
    if dtype in ("float32", "uint8"):
        by_axis = onnx(("NonZero", ["in0"], "out", {}))
        functions["onnxruntime"] = lambda x: filled(np, x, by_axis(x).T)
    return functions


def _with_rows(size: int | None, library: Any, x: Any, rows: Any) -> Any:
    """`size` rows, or as many as `x` has elements; those past the count hold 0."""
    kept = rows[:size]
    shape = (math.prod(x.shape) if size is None else size, len(x.shape))
    on_device = {"device": rows.device} if library.__name__ == "torch" else {}
    out = library.zeros(shape, dtype=rows.dtype, **on_device)
    out[: len(kept)] = kept
    return out


def _jnp_nonzero(size: int | None, x: Any) -> Any:
    size = math.prod(x.shape) if size is None else size
    return jnp.stack(jnp.nonzero(x, size=size, fill_value=0), -1)


# ONNX Runtime

# An operator, its inputs, its output and its attributes.
Node = tuple[str, list[str], str, dict[str, Any]]


def onnx(*nodes: Node, **constants: np.ndarray) -> Callable[..., np.ndarray]:
    """A model as a function of its inputs in0, in1, ...; its output is out."""

    @functools.cache
    def session(inputs: tuple[tuple[np.dtype, tuple[int, ...]], ...]) -> Any:
        model = _onnx_model(nodes, constants, inputs)
        return module("onnxruntime").InferenceSession(
            model, providers=["CPUExecutionProvider"]
        )

    def run(*arrays: np.ndarray) -> np.ndarray:
        types = tuple((x.dtype, x.shape) for x in arrays)
        feed = {f"in{i}": x for i, x in enumerate(arrays)}
        output: np.ndarray = session(types).run(None, feed)[0]
        return output

    return run


def _onnx_model(
    nodes: Sequence[Node],
    constants: Mapping[str, np.ndarray],
    inputs: Sequence[tuple[np.dtype, tuple[int, ...]]],
) -> bytes:
    helper, numpy_helper = module("onnx.helper"), module("onnx.numpy_helper")
    values = []
    for i, (dtype, shape) in enumerate(inputs):
        kind = helper.np_dtype_to_tensor_dtype(dtype)
        values.append(helper.make_tensor_value_info(f"in{i}", kind, shape))
    made = []
    for operator, names, output, attributes in nodes:
        made.append(helper.make_node(operator, names, [output], **attributes))
    constant = [numpy_helper.from_array(x, name) for name, x in constants.items()]
    outputs = [helper.make_empty_tensor_value_info("out")]
    graph = helper.make_graph(made, "benchmark", values, outputs, constant)
    opset = helper.make_opsetid("", ONNX_OPSET)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=ONNX_IR_VERSION)
    serialized: bytes = model.SerializeToString()
    return serialized
