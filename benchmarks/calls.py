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


def cases() -> Iterator[Case]:
    """The calls, for square matrices of each size; and tensors with gaps."""
    for size, side in SIDES.items():
        for operator, name, inputs, output, oracle, functions in _calls(side):
            about = (operator, f"{name}, {size}", inputs, output, functions, oracle)
            yield Case(*about, ceiling=None, context="call")
    for size, side in ("4 KiB", 32), ("256 KiB", 256):
        yield _with_gaps(size, side)


def _calls(side: int) -> Iterator[tuple[Any, ...]]:
    x = Data((side, side), "float32")
    flags = Data((side, side), "uint8", low=0, high=2)
    tensor = _tensor(x)
    ends = (LOWEST, 0)
    yield (
        "element_wise_if",
        "two tensors",
        (flags, x, x),
        x,
        oracles.element_wise_if,
        _functions(
            jnp.where,
            dmljax.element_wise_if,
            dmljax.ElementWiseIfDesc(_tensor(flags), *[tensor] * 3),
        ),
    )
    yield (
        "element_wise_if",
        "a tensor and 0.0",
        (flags, x),
        x,
        lambda flags, x: oracles.element_wise_if(flags, x, np.zeros_like(x)),
        _functions(
            lambda flags, x: jnp.where(flags, x, 0.0),
            lambda flags, x: dmljax.element_wise_if(flags, x, 0.0),
        ),
    )
    yield (
        "diagonal_matrix1",
        "upper triangle",
        (x,),
        x,
        lambda x: [oracles.Sample(x.shape, oracles.grid(x.shape), np.triu(x))],
        _functions(
            jnp.triu,
            _triu,
            dmljax.DiagonalMatrix1Desc(tensor, tensor, DataType.FLOAT32, 0, *ends),
        ),
    )
    some = dataclasses.replace(x, density=0.1)
    rows = Data((x.size, 2), "uint32")
    count = Data((1,), "uint32")
    yield (
        "nonzero_coordinates",
        "10 % not zero",
        (some,),
        rows,
        # The rows alone: a descriptor gives the count a dimension.
        lambda x: oracles.nonzero_coordinates(x)[1:],
        _functions(
            lambda x: jnp.argwhere(x, size=x.size, fill_value=0),
            dmljax.nonzero_coordinates,
            dmljax.NonzeroCoordinatesDesc(*map(_tensor, (x, count, rows))),
        ),
    )
    padded = Data((side + 2, side + 2), "float32")
    one = (1, 1)
    for name, mode in MODES.items():
        oracle = functools.partial(oracles.padding, pads=(one, one), mode=name)
        theirs = functools.partial(jnp.pad, pad_width=1, mode=name)
        ours = functools.partial(_padding, mode=mode)
        desc = dmljax.PaddingDesc(tensor, _tensor(padded), mode, 0.0, 2, one, one)
        functions = _functions(theirs, ours, desc)
        yield "padding", name, (x,), padded, oracle, functions


def _triu(x: Any) -> Any:
    return dmljax.diagonal_matrix1(x, value=0, fill_begin=None, fill_end=0)


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
