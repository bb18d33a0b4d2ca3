"""Calls on small arrays outside of jit: the work around a call takes most of the time.

A contender is dmljax's function, jax.numpy's function for the same, or the callable of
a descriptor. The cases have the context "call".
"""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

import dmljax
from benchmarks import oracles
from benchmarks.case import Case
from benchmarks.data import Data
from dmljax import DataType, PaddingMode, TensorDesc

SIDES = {"4 KiB": 32, "64 KiB": 128}  # rows of a square float32 matrix
LOWEST = -(2**31)
MODES = {"constant": PaddingMode.CONSTANT, "reflect": PaddingMode.REFLECTION}


_call = functools.partial(Case, ceiling=None, context="call")


def cases() -> Iterator[Case]:
    """The calls, for square matrices of each size; and tensors with gaps."""
    for size, side in SIDES.items():
        for case in _calls(Data((side, side), "float32")):
            yield dataclasses.replace(case, name=f"{case.name}, {size}")
    for size, side in ("4 KiB", 32), ("256 KiB", 256):
        yield _with_gaps(size, side)


def _calls(x: Data) -> Iterator[Case]:
    yield _two_tensors(x)
    yield _tensor_and_number(x)
    yield _upper_triangle(x)
    yield _coordinates(x)
    for mode in MODES:
        yield _padded(x, mode)


def _flags(x: Data) -> Data:
    return Data(x.shape, "uint8", low=0, high=2)


def _two_tensors(x: Data) -> Case:
    flags = _flags(x)
    desc = dmljax.ElementWiseIfDesc(_tensor(flags), *[_tensor(x)] * 3)
    functions = _functions(jnp.where, dmljax.element_wise_if, desc)
    inputs = (flags, x, x)
    oracle = oracles.element_wise_if
    return _call("element_wise_if", "two tensors", inputs, x, functions, oracle)


def _tensor_and_number(x: Data) -> Case:
    def oracle(flags: np.ndarray, x: np.ndarray) -> Any:
        return oracles.element_wise_if(flags, x, np.zeros_like(x))

    functions = _functions(
        lambda flags, x: jnp.where(flags, x, 0.0),
        lambda flags, x: dmljax.element_wise_if(flags, x, 0.0),
    )
    inputs = (_flags(x), x)
    return _call("element_wise_if", "a tensor and 0.0", inputs, x, functions, oracle)


def _upper_triangle(x: Data) -> Case:
    def oracle(x: np.ndarray) -> list[oracles.Sample]:
        return [oracles.Sample(x.shape, oracles.grid(x.shape), np.triu(x))]

    tensor = _tensor(x)
    static = (DataType.FLOAT32, 0, LOWEST, 0)
    desc = dmljax.DiagonalMatrix1Desc(tensor, tensor, *static)
    functions = _functions(jnp.triu, _triu, desc)
    # A value other than the integer 0 is handed over to XLA.
    functions["dmljax 0.0"] = functools.partial(_triu, value=0.0)
    return _call("diagonal_matrix1", "upper triangle", (x,), x, functions, oracle)


def _coordinates(x: Data) -> Case:
    def oracle(x: np.ndarray) -> Any:
        # The rows alone: a descriptor gives the count a dimension.
        return oracles.nonzero_coordinates(x)[1:]

    x = dataclasses.replace(x, density=0.1)
    rows = Data((x.size, 2), "uint32")
    count = Data((1,), "uint32")
    functions = _functions(
        lambda x: jnp.argwhere(x, size=x.size, fill_value=0),
        dmljax.nonzero_coordinates,
        dmljax.NonzeroCoordinatesDesc(*map(_tensor, (x, count, rows))),
    )
    about = ("nonzero_coordinates", "10 % not zero", (x,), rows)
    return _call(*about, functions, oracle)


def _padded(x: Data, name: str) -> Case:
    mode = MODES[name]
    one = (1, 1)
    padded = Data(tuple(size + 2 for size in x.shape), "float32")
    static = (mode, 0.0, 2, one, one)
    desc = dmljax.PaddingDesc(_tensor(x), _tensor(padded), *static)
    theirs = functools.partial(jnp.pad, pad_width=1, mode=name)
    functions = _functions(theirs, functools.partial(_padding, mode=mode), desc)
    oracle = functools.partial(oracles.padding, pads=(one, one), mode=name)
    return _call("padding", name, (x,), padded, functions, oracle)


def _triu(x: Any, value: float = 0) -> Any:
    return dmljax.diagonal_matrix1(x, value=value, fill_begin=None, fill_end=0)


def _padding(x: Any, mode: PaddingMode) -> Any:
    return dmljax.padding(x, (1, 1), (1, 1), mode=mode)


def _functions(theirs: Any, ours: Any, desc: Any = None) -> dict[str, Any]:
    functions = {"jnp": theirs, "dmljax": ours}
    if desc is not None:
        functions["dmljax descriptor"] = dmljax.create_operator(desc)
    return functions


def _tensor(data: Data, strides: tuple[int, ...] | None = None) -> TensorDesc:
    return TensorDesc(DataType[data.dtype.upper()], data.shape, strides)


def _with_gaps(size: str, side: int) -> Case:
    """Rows with gaps between them, like the rows of a part of an image."""
    before = _tensor(Data((side, side), "float32"), (side + 8, 1))
    after = _tensor(Data((side + 2, side + 2), "float32"), (side + 2, 1))
    static = (PaddingMode.REFLECTION, 0.0, 2, (1, 1), (1, 1))
    x, out = (Data((tensor.buffer_length,), "float32") for tensor in (before, after))

    def oracle(buffer: np.ndarray) -> list[oracles.Sample]:
        rows = np.stack([buffer[i * (side + 8) :][:side] for i in range(side)])
        values = np.pad(rows, 1, "reflect").ravel()
        return [oracles.Sample(values.shape, oracles.grid(values.shape), values)]

    run = dmljax.create_operator(dmljax.PaddingDesc(before, after, *static))
    name = f"a tensor with gaps, {size}"
    return Case("padding", name, (x,), out, {"dmljax": run}, oracle)
