"""Selections by a condition: ELEMENT_WISE_IF."""

from typing import Any

import jax
import jax.numpy as jnp

import dmljax
from benchmarks.case import Functions
from benchmarks.programs.diagonal_matrix1 import (
    causal,
    masked_softmax,
    torch_softmax,
    torch_tril,
    unmasked,
)
from benchmarks.programs.program import (
    BOTH,
    CPU,
    GPU,
    Numbers,
    Program,
    spellings,
)

SELECTS: Functions = {"dmljax": dmljax.element_wise_if, "jnp where": jnp.where}

# CAUSAL SOFTMAX OF SEQUENCES OF SEVERAL LENGTHS: `last` is the last key of each.


def until(x: jax.Array, last: jax.Array) -> jax.Array:
    column = jax.lax.broadcasted_iota(jnp.int32, x.shape, 3)
    inside = column <= last[:, None, None, None]
    return dmljax.element_wise_if(inside, causal(x), -jnp.inf)


def until_by_tril(x: jax.Array, last: jax.Array) -> jax.Array:
    inside = jnp.arange(x.shape[-1]) <= last[:, None, None, None]
    keep = jnp.tril(jnp.ones(x.shape[-2:], bool))
    return jnp.where(keep & inside, x, -jnp.inf)


def until_by_iota(x: jax.Array, last: jax.Array) -> jax.Array:
    row = jax.lax.broadcasted_iota(jnp.int32, x.shape, 2)
    column = jax.lax.broadcasted_iota(jnp.int32, x.shape, 3)
    inside = column <= last[:, None, None, None]
    return jnp.where((column <= row) & inside, x, -jnp.inf)


def torch_softmax_until(x: Any, last: Any) -> Any:
    import torch

    inside = torch.arange(x.shape[-1], device=x.device) <= last[:, None, None, None]
    return torch_softmax(x, torch_tril(x) & inside)


LENGTHS: Functions = {
    "dmljax": until,
    "jnp tril": until_by_tril,
    "jnp full iota": until_by_iota,
    "reference no mask": unmasked,
}

# A MEAN, AND A LOGARITHM


def masked_mean(
    x: jax.Array, keep: jax.Array, select: Any = dmljax.element_wise_if
) -> Any:
    """The mean of the kept elements of each row."""
    return select(keep, x.astype(jnp.float32), 0.0).sum(1) / keep.sum(1)


def jnp_masked_mean(x: jax.Array, keep: jax.Array) -> jax.Array:
    return jnp.mean(x, 1, dtype=jnp.float32, where=keep != 0)


def torch_masked_mean(x: Any, keep: Any) -> Any:
    import torch

    kept = keep != 0
    return torch.where(kept, x.float(), 0.0).sum(1) / kept.sum(1)


def safe_log(x: jax.Array, select: Any = dmljax.element_wise_if) -> Any:
    """The logarithm, or 0. The inner select keeps the gradient of log(0) away."""
    return select(x > 0.5, jnp.log(select(x > 0.5, x, 1.0)), 0.0)


def jnp_safe_log(x: jax.Array) -> jax.Array:
    return jnp.where(x > 0.5, jnp.log(jnp.maximum(x, 0.5)), 0)


def torch_safe_log(x: Any) -> Any:
    import torch

    positive = x > 0.5
    return torch.where(positive, torch.where(positive, x, 1.0).log(), 0.0)


PROGRAMS = {
    "causal softmax of several lengths": Program(
        "element_wise_if",
        {
            **spellings(masked_softmax, mask=LENGTHS),
            "torch": torch_softmax_until,
        },
        [Numbers(10), Numbers(100, "int32")],
        {
            GPU: [(8, 8, 1024, 1024), (8,)],
            CPU: [(1, 8, 1024, 1024), (1,)],
        },
    ),
    "masked mean": Program(
        "element_wise_if",
        {
            **spellings(masked_mean, select=SELECTS),
            "jnp mean": jnp_masked_mean,
            "torch": torch_masked_mean,
        },
        [Numbers(10), Numbers(2, "uint8")],
        {
            GPU: [(65536, 1024), (65536, 1024)],
            CPU: [(4096, 1024), (4096, 1024)],
        },
        directions=BOTH,
    ),
    "safe logarithm": Program(
        "element_wise_if",
        {
            **spellings(safe_log, select=SELECTS),
            "jnp maximum": jnp_safe_log,
            "torch": torch_safe_log,
        },
        [Numbers(10)],
        {
            GPU: [(65536, 1024)],
            CPU: [(4096, 1024)],
        },
        directions=("gradient",),
    ),
}
