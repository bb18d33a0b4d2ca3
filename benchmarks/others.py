"""The operators in other libraries: jax.numpy, NumPy, PyTorch, ONNX Runtime.

Each function returns, by contender, a function of that library's arrays that does the
same work. A library that has no such operation is left out; none is imported before its
function is called.
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
from dmljax import PaddingMode

Pads = Sequence[tuple[int, int]]
# The libraries with NumPy's names; PyTorch has some of these names.
ARRAYS = ("jnp", "numpy")
# The modes of padding that PyTorch and ONNX have, and what PyTorch calls them.
MODES = ("constant", "edge", "reflect", "wrap")
TORCH_NAMES = {"edge": "replicate", "wrap": "circular"}
ONNX_OPSET, ONNX_IR_VERSION = 19, 9
ONNX_BOOL = 9


def module(name: str) -> Any:
    """A library, imported when it is needed: it may not be installed."""
    return importlib.import_module(name)


def numpy_mode(mode: PaddingMode) -> str:
    """NumPy's name of a mode of padding."""
    return "reflect" if mode is PaddingMode.REFLECTION else mode.name.lower()


def torch_device() -> str:
    """PyTorch's name of the device that JAX uses."""
    return "cuda" if jax.default_backend() == "gpu" else "cpu"


def _array_libraries(
    function: Callable[..., Any], names: Sequence[str] = ARRAYS, **attributes: Any
) -> Functions:
    """One function, given the module, for several libraries."""

    def call(name: str, *arrays: Any) -> Any:
        library = module("jax.numpy" if name == "jnp" else name)
        return function(library, *arrays, **attributes)

    return {name: functools.partial(call, name) for name in names}


# ELEMENT_WISE_IF


def element_wise_if(dtype: str, condition: str) -> Functions:
    """where, on a comparison unless the condition is of type bool."""

    def where(library: Any, flags: Any, a: Any, b: Any) -> Any:
        return library.where(flags if condition == "bool" else flags != 0, a, b)

    functions = _array_libraries(where, (*ARRAYS, "torch"))
    if dtype == "float32":
        functions["onnxruntime"] = onnx(
            ("Cast", ["in0"], "truth", {"to": ONNX_BOOL}),
            ("Where", ["truth", "in1", "in2"], "out", {}),
        )
    return functions


# DIAGONAL_MATRIX1


def strictly_upper(dtype: str) -> Functions:
    """triu: what lies above the main diagonal is kept."""

    def triu(library: Any, x: Any) -> Any:
        return library.triu(x, 1)

    functions = _array_libraries(triu, (*ARRAYS, "torch"))
    if dtype == "float32":
        node: Node = ("Trilu", ["in0", "one"], "out", {})
        functions["onnxruntime"] = onnx(node, one=np.array(1, np.int64))
    return functions


def identity(shape: tuple[int, ...], dtype: str) -> Functions:
    """eye: ones on the main diagonal."""
    functions = _array_libraries(lambda library: library.eye(*shape, dtype=dtype))

    def torch_eye() -> Any:
        torch = module("torch")
        return torch.eye(*shape, dtype=getattr(torch, dtype), device=torch_device())

    return functions | {"torch": torch_eye}


# ONE_HOT


def one_hot(shape: tuple[int, ...], axis: int, dtype: str, index: str) -> Functions:
    """A comparison with the positions, or for PyTorch a scatter into zeros.

    In PyTorch a comparison would write and read a mask of the output's size first.
    """

    def torch_one_hot(indices: Any, values: Any) -> Any:
        zeros = values.new_zeros(shape)
        return zeros.scatter_(axis, indices.long(), 1)

    functions = _array_libraries(_compared, size=shape[axis], axis=axis)
    functions["torch"] = torch_one_hot
    if dtype == "float32" and index == "int32":
        functions["onnxruntime"] = onnx(
            ("Squeeze", ["in0", "axis"], "indices", {}),
            ("OneHot", ["indices", "depth", "in1"], "out", {"axis": axis}),
            axis=np.array([axis], np.int64),
            depth=np.array(shape[axis], np.int32),
        )
    return functions


def one_hot_by_comparison(size: int, axis: int) -> Functions:
    """The same in a form that has a derivative in the values."""
    functions = _array_libraries(_compared, size=size, axis=axis)

    def torch_compared(indices: Any, values: Any) -> Any:
        torch = module("torch")
        shape = [1] * indices.ndim
        shape[axis] = size
        position = torch.arange(size, device=indices.device).reshape(shape)
        return torch.where(indices == position, values[1], values[0])

    return functions | {"torch": torch_compared}


def _compared(library: Any, indices: Any, values: Any, *, size: int, axis: int) -> Any:
    shape = [1] * indices.ndim
    shape[axis] = size
    position = library.arange(size, dtype=indices.dtype).reshape(shape)
    return library.where(indices == position, values[1], values[0])


# PADDING


def padding(shape: tuple[int, ...], pads: Pads, mode: str, dtype: str) -> Functions:
    """pad; PyTorch's modes but "constant" need a float type and trailing axes."""
    functions = _array_libraries(
        lambda library, x: library.pad(x, tuple(pads), mode=mode)
    )
    padded = [axis for axis, pad in enumerate(pads) if any(pad)]
    trailing = len(shape) - min(padded) <= 2 and dtype.startswith("float")
    if mode == "constant" or (mode in MODES and trailing):
        kept = pads if mode == "constant" else pads[-2:]
        backwards = [amount for pad in kept[::-1] for amount in pad]
        functions["torch"] = lambda x: module("torch").nn.functional.pad(
            x, backwards, mode=TORCH_NAMES.get(mode, mode)
        )
    if mode in MODES and dtype == "float32":
        amounts = [start for start, _ in pads] + [end for _, end in pads]
        functions["onnxruntime"] = onnx(
            ("Pad", ["in0", "pads"], "out", {"mode": mode}),
            pads=np.array(amounts, np.int64),
        )
    return functions


# NONZERO_COORDINATES


def nonzero_coordinates(dtype: str, *, undefined: bool, size: int | None) -> Functions:
    """argwhere, and jax.numpy's nonzero with a static size.

    A library that returns a row for each non-zero gets as many rows as dmljax
    returns, unless the rows past the count are undefined.
    """
    filled = _as_it_is if undefined else functools.partial(_with_rows, size)

    def argwhere(library: Any, x: Any) -> Any:
        return filled(library, x, library.argwhere(x))

    functions = _array_libraries(argwhere, (*ARRAYS, "torch"))
    functions["jnp"] = functools.partial(_jnp_nonzero, size)
    if dtype in ("float32", "uint8"):
        by_axis = onnx(("NonZero", ["in0"], "out", {}))
        functions["onnxruntime"] = lambda x: filled(np, x, by_axis(x).T)
    return functions


def _as_it_is(library: Any, x: Any, rows: Any) -> Any:
    return rows


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
    values = [
        helper.make_tensor_value_info(
            f"in{i}", helper.np_dtype_to_tensor_dtype(dtype), shape
        )
        for i, (dtype, shape) in enumerate(inputs)
    ]
    graph = helper.make_graph(
        [
            helper.make_node(operator, names, [output], **attributes)
            for operator, names, output, attributes in nodes
        ],
        "benchmark",
        values,
        [helper.make_empty_tensor_value_info("out")],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opset = helper.make_opsetid("", ONNX_OPSET)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=ONNX_IR_VERSION)
    serialized: bytes = model.SerializeToString()
    return serialized
