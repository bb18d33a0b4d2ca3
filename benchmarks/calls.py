"""Calls on 4 KiB outside of jit: the work around a call takes most of the time.

The contenders are functions of dmljax, of dmljax.numpy and of jax.numpy. The cases have
the context "call".
"""

import functools
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp

import dmljax
from benchmarks.case import Case, Functions
from benchmarks.data import Data
from dmljax import PaddingMode
from dmljax import numpy as dnp

X, FLAGS = Data((32, 32), "float32"), Data((32, 32), "uint8", low=0, high=2)
PARTLY = Data((32, 32), "float32", density=0.1)
_triu = functools.partial(dmljax.diagonal_matrix1, fill_begin=None, fill_end=0)


def _pads(mode: PaddingMode, name: Any) -> Functions:
    return {
        "dmljax": lambda x: dmljax.padding(x, (1, 1), (1, 1), mode=mode),
        "dmljax numpy": lambda x: dnp.pad(x, 1, name),
        "jnp": lambda x: jnp.pad(x, 1, name),
    }


# The operator, the call, its arrays, and the function of each contender.
CALLS: tuple[tuple[str, str, tuple[Data, ...], Functions], ...] = (
    (
        "element_wise_if",
        "two tensors",
        (FLAGS, X, X),
        {"dmljax": dmljax.element_wise_if, "jnp": jnp.where},
    ),
    (
        "element_wise_if",
        "a tensor and 0.0",
        (FLAGS, X),
        {
            "dmljax": lambda flags, x: dmljax.element_wise_if(flags, x, 0.0),
            "jnp": lambda flags, x: jnp.where(flags, x, 0.0),
        },
    ),
    (
        "diagonal_matrix1",
        "upper triangle",
        (X,),
        {
            "dmljax": functools.partial(_triu, value=0),
            # A value other than the integer 0 is handed over to XLA.
            "dmljax 0.0": functools.partial(_triu, value=0.0),
            "dmljax numpy": dnp.triu,
            "jnp": jnp.triu,
        },
    ),
    ("padding", "constant", (X,), _pads(PaddingMode.CONSTANT, "constant")),
    ("padding", "reflect", (X,), _pads(PaddingMode.REFLECTION, "reflect")),
    (
        "nonzero_coordinates",
        "10 % not zero",
        (PARTLY,),
        {
            "dmljax": dmljax.nonzero_coordinates,
            "dmljax numpy": lambda x: dnp.argwhere(x, size=x.size),
            "jnp": lambda x: jnp.argwhere(x, size=x.size, fill_value=0),
        },
    ),
)


def cases() -> Iterator[Case]:
    """A case for each call."""
    for operator, name, inputs, functions in CALLS:
        words = f"{name}, 4 KiB"
        yield Case(operator, words, inputs, functions, False, context="call")
