"""A router of a mixture of experts: each token's place in the queue of its expert."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from benchmarks.case import Case, Functions
from benchmarks.data import Data
from benchmarks.oracles import Sample, grid
from benchmarks.others import module

EXPERTS = 64


def cases(elements: int) -> Iterator[Case]:
    """One, of 32-bit integers."""
    tokens = max(elements // EXPERTS, 1)
    functions: Functions = {
        "dmljax": lambda expert: _places(
            dmljax.one_hot(expert, np.array([0, 1], np.int32), size=EXPERTS)
        ),
        "jnp": lambda expert: _places(
            jax.nn.one_hot(expert[:, 0], EXPERTS, dtype=np.int32)
        ),
        "torch": _torch_places,
    }
    yield Case(
        "one_hot",
        f"router of {tokens} tokens to {EXPERTS} experts",
        (Data((tokens, 1), "int32", low=0, high=EXPERTS),),
        Data((tokens,), "int32"),
        functions,
        _oracle,
        context="program",
    )


def _places(hot: jax.Array) -> jax.Array:
    return (jnp.cumsum(hot, 0) * hot).sum(1) - 1


def _torch_places(expert: Any) -> Any:
    torch = module("torch")
    hot = torch.nn.functional.one_hot(expert[:, 0].long(), EXPERTS)
    return (hot.cumsum(0) * hot).sum(1) - 1


def _oracle(expert: np.ndarray) -> Any:
    """The number of tokens of the same expert before each token."""
    line = expert[:, 0]
    order = np.argsort(line, kind="stable")
    starts = np.searchsorted(line[order], line[order])
    places = np.empty(len(line), np.int32)
    places[order] = np.arange(len(line)) - starts
    axes = grid(places.shape)
    return [Sample(places.shape, axes, places[axes[0]])]
