"""Calls on small arrays outside of jit, where the work around a call takes most of it.

A contender is dmljax's function, jax.numpy's function for the same, or the callable of
a descriptor. `benchmarks.cases` has them, as cases with the context "call".
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from benchmarks import oracles
from benchmarks.case import Case
from benchmarks.data import Data
from benchmarks.others import numpy_mode
from dmljax import DataType, PaddingMode, TensorDesc

SIDES = {"4 KiB": 32, "64 KiB": 128}  # rows of a square float32 matrix
LOWEST = -(2**31)


def cases() -> Iterator[Case]:
    """The calls, for square matrices of each size."""
    for size, side in SIDES.items():
        yield _select(size, side)
        yield _select_scalar(size, side)
        yield _triangle(size, side)
        yield _nonzero(size, side)
        for mode in (PaddingMode.CONSTANT, PaddingMode.REFLECTION):
            yield _padding(size, side, mode)


def _call(
    operator: str,
    name: str,
    inputs: tuple[Data, ...],
    output: Data,
    oracle: oracles.Oracle,
    theirs: Callable[..., Any],
    ours: Callable[..., Any],
    desc: Any = None,
) -> Case:
    functions = {"jnp": theirs, "dmljax": ours}
    if desc is not None:
        functions["dmljax descriptor"] = dmljax.create_operator(desc)
    about = (operator, name, inputs, output, functions, oracle)
    return Case(*about, ceiling=None, context="call")


def _matrix(side: int) -> Data:
    return Data((side, side), "float32")


def _flags(side: int) -> Data:
    return Data((side, side), "uint8", low=0, high=2)


def _tensor(data: Data) -> TensorDesc:
    return TensorDesc(DataType[data.dtype.upper()], data.shape)


def _select(size: str, side: int) -> Case:
    x, flags = _matrix(side), _flags(side)
    desc = dmljax.ElementWiseIfDesc(_tensor(flags), *[_tensor(x)] * 3)
    about = ("element_wise_if", f"two tensors, {size}", (flags, x, x), x)
    oracle, ours = oracles.element_wise_if, dmljax.element_wise_if
    return _call(*about, oracle, jnp.where, ours, desc)


def _select_scalar(size: str, side: int) -> Case:
    def oracle(flags: np.ndarray, x: np.ndarray) -> Any:
        return oracles.element_wise_if(flags, x, np.zeros_like(x))

    def theirs(flags: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.where(flags, x, 0.0)

    def ours(flags: jax.Array, x: jax.Array) -> jax.Array:
        return dmljax.element_wise_if(flags, x, 0.0)

    x, name = _matrix(side), f"a tensor and 0.0, {size}"
    return _call("element_wise_if", name, (_flags(side), x), x, oracle, theirs, ours)


def _triangle(size: str, side: int) -> Case:
    def ours(x: jax.Array) -> jax.Array:
        return dmljax.diagonal_matrix1(x, value=0, fill_begin=LOWEST, fill_end=0)

    x = _matrix(side)
    fill: dict[str, Any] = {"value": 0, "begin": LOWEST, "end": 0}
    known = fill | {"shape": x.shape, "dtype": x.dtype}
    oracle = functools.partial(oracles.diagonal_matrix1, **known)
    ends = (DataType.FLOAT32, 0, LOWEST, 0)
    desc = dmljax.DiagonalMatrix1Desc(_tensor(x), _tensor(x), *ends)
    about = ("diagonal_matrix1", f"upper triangle, {size}", (x,), x)
    return _call(*about, oracle, jnp.triu, ours, desc)


def _nonzero(size: str, side: int) -> Case:
    def oracle(x: np.ndarray) -> Any:
        # The rows alone: a descriptor gives the count a dimension.
        return oracles.nonzero_coordinates(x)[1:]

    def theirs(x: jax.Array) -> jax.Array:
        return jnp.argwhere(x, size=x.size, fill_value=0)

    x = Data((side, side), "float32", density=0.1)
    rows, count = Data((x.size, 2), "uint32"), Data((1,), "uint32")
    desc = dmljax.NonzeroCoordinatesDesc(*map(_tensor, (x, count, rows)))
    about = ("nonzero_coordinates", f"10 % not zero, {size}", (x,), rows)
    return _call(*about, oracle, theirs, dmljax.nonzero_coordinates, desc)


def _padding(size: str, side: int, mode: PaddingMode) -> Case:
    def ours(x: jax.Array) -> jax.Array:
        return dmljax.padding(x, one, one, mode=mode)

    one, name = (1, 1), numpy_mode(mode)
    x, padded = _matrix(side), _matrix(side + 2)
    desc = dmljax.PaddingDesc(_tensor(x), _tensor(padded), mode, 0.0, 2, one, one)
    oracle = functools.partial(oracles.padding, pads=(one, one), mode=name)
    theirs = functools.partial(jnp.pad, pad_width=1, mode=name)
    about = ("padding", f"{name}, {size}", (x,), padded)
    return _call(*about, oracle, theirs, ours, desc)
