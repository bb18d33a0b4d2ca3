"""Causal attention: the scores of later tokens become -inf, and a softmax follows."""

import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from benchmarks.case import Case, Functions
from benchmarks.data import Data
from benchmarks.oracles import RTOL, Sample, grid
from benchmarks.others import module

# No matrix has a diagonal beyond this one.
LAST = 2**31 - 1


def cases(elements: int) -> Iterator[Case]:
    """One of each type."""
    length = min(1024, math.isqrt(elements))
    functions: Functions = {
        "dmljax": lambda x: jax.nn.softmax(
            dmljax.diagonal_matrix1(x, value=-jnp.inf, fill_begin=1, fill_end=LAST)
        ),
        "jnp": lambda x: jax.nn.softmax(
            jnp.where(jnp.tri(length, dtype=bool), x, jnp.array(-jnp.inf, x.dtype))
        ),
        "torch": _torch_softmax,
    }
    for dtype in ("float32", "bfloat16"):
        shape = (max(elements // length**2, 1), length, length)
        scores = Data(shape, dtype, high=10)
        yield Case(
            "diagonal_matrix1",
            f"causal softmax, {dtype} {shape}",
            (scores,),
            scores,
            functions,
            _oracle,
            context="program",
        )


def _torch_softmax(x: Any) -> Any:
    torch = module("torch")
    later = torch.ones(x.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
    return x.masked_fill(later, -math.inf).softmax(-1)


def _oracle(scores: np.ndarray) -> Any:
    """Exponentials up to the token itself, over their sum."""
    axes = grid(scores.shape)
    batch, rows, columns = axes
    powers = np.exp(scores[np.ix_(batch, rows)].astype(np.float64))
    powers *= np.arange(scores.shape[-1]) <= rows[:, None]
    values = (powers / powers.sum(-1, keepdims=True))[..., columns]
    rtol = RTOL[str(scores.dtype)]
    return [Sample(scores.shape, axes, values.astype(scores.dtype), rtol=rtol)]
