"""Means of the elements that a condition chooses: ELEMENT_WISE_IF."""

from typing import Any

import jax
import jax.numpy as jnp

import dmljax
from benchmarks.case import Functions
from benchmarks.programs.program import (
    BOTH,
    CPU,
    GPU,
    Numbers,
    Program,
    spellings,
)

SELECTS: Functions = {"dmljax": dmljax.element_wise_if, "jnp where": jnp.where}


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


PROGRAMS = {
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
}
