"""Masked softmax and attention: DIAGONAL_MATRIX1."""

import functools
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

# Scores of attention: (batch, heads, queries, keys).
SCORES = {
    GPU: [(8, 8, 1024, 1024)],
    CPU: [(1, 8, 1024, 1024)],
}


def causal(x: jax.Array) -> jax.Array:
    return dmljax.diagonal_matrix1(x, value=-jnp.inf, fill_begin=1, fill_end=None)


def causal_by_tril(x: jax.Array) -> jax.Array:
    keep = jnp.tril(jnp.ones(x.shape[-2:], bool))
    return jnp.where(keep, x, -jnp.inf)


def causal_by_iota(x: jax.Array, k: int = 0, value: float = -jnp.inf) -> jax.Array:
    row = jax.lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 2)
    column = jax.lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 1)
    return jnp.where(column <= row + k, x, value)


def unmasked(x: jax.Array) -> jax.Array:
    return x


def masked_softmax(x: jax.Array, *bounds: jax.Array, mask: Any = causal) -> jax.Array:
    """The weights of attention, computed in float32."""
    scores = mask(x, *bounds).astype(jnp.float32)
    return jax.nn.softmax(scores).astype(x.dtype)


def torch_softmax(x: Any, keep: Any) -> Any:
    return x.masked_fill(~keep, -float("inf")).float().softmax(-1).to(x.dtype)


def torch_causal_softmax(x: Any) -> Any:
    import torch

    ones = torch.ones(x.shape[-2:], dtype=torch.bool, device=x.device)
    return torch_softmax(x, ones.tril())


CAUSAL: Functions = {
    "dmljax": causal,
    "jnp tril": causal_by_tril,
    "jnp full iota": causal_by_iota,
    "reference no mask": unmasked,
}

# A WINDOW FOR EACH HEAD: how many keys before its own a query sees.


def windows(x: jax.Array, widths: jax.Array) -> jax.Array:
    def window(x: jax.Array, width: jax.Array) -> jax.Array:
        return dmljax.diagonal_matrix1(x, value=-jnp.inf, fill_begin=1, fill_end=-width)

    masked: jax.Array = jax.vmap(window, (1, 0), 1)(x, widths)
    return masked


def in_windows(row: Any, column: Any, widths: Any) -> Any:
    return (column <= row) & (row - column <= widths[:, None, None])


def windows_by_square(x: jax.Array, widths: jax.Array) -> jax.Array:
    line = jnp.arange(x.shape[-1])
    return jnp.where(in_windows(line[:, None], line, widths), x, -jnp.inf)


def windows_by_iota(x: jax.Array, widths: jax.Array) -> jax.Array:
    row = jax.lax.broadcasted_iota(jnp.int32, x.shape, 2)
    column = jax.lax.broadcasted_iota(jnp.int32, x.shape, 3)
    return jnp.where(in_windows(row, column, widths), x, -jnp.inf)


def torch_windows_softmax(x: Any, widths: Any) -> Any:
    import torch

    line = torch.arange(x.shape[-1], device=x.device)
    return torch_softmax(x, in_windows(line[:, None], line, widths))


WINDOWS: Functions = {
    "dmljax": windows,
    "jnp square": windows_by_square,
    "jnp full iota": windows_by_iota,
}

# ATTENTION: queries, keys and values are (batch, tokens, heads, features).


def attention(q: jax.Array, k: jax.Array, v: jax.Array, mask: Any = causal) -> Any:
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (1 / 128)
    weights = jax.nn.softmax(mask(scores).astype(jnp.float32)).astype(q.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def jax_nn_attention(
    q: jax.Array, k: jax.Array, v: jax.Array, implementation: Any = "xla"
) -> Any:
    return jax.nn.dot_product_attention(
        q, k, v, is_causal=True, implementation=implementation, scale=1 / 128
    )


def torch_attention(q: Any, k: Any, v: Any) -> Any:
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    weights = torch_causal_softmax(q @ k.transpose(2, 3) * (1 / 128))
    return (weights @ v).transpose(1, 2)


def torch_sdpa(q: Any, k: Any, v: Any) -> Any:
    from torch.nn.functional import scaled_dot_product_attention

    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    result = scaled_dot_product_attention(q, k, v, is_causal=True, scale=1 / 128)
    return result.transpose(1, 2)


PROGRAMS = {
    "causal softmax": Program(
        "diagonal_matrix1",
        {
            **spellings(masked_softmax, mask=CAUSAL),
            "torch": torch_causal_softmax,
        },
        [Numbers(10)],
        SCORES,
    ),
    "softmax of a window for each head": Program(
        "diagonal_matrix1",
        {
            **spellings(masked_softmax, mask=WINDOWS),
            "torch": torch_windows_softmax,
        },
        [Numbers(10), Numbers(128, "int32")],
        {
            GPU: [(8, 8, 1024, 1024), (8,)],
            CPU: [(1, 8, 1024, 1024), (8,)],
        },
    ),
    "causal attention": Program(
        "diagonal_matrix1",
        {
            **spellings(attention, mask=CAUSAL),
            "jnp dot_product_attention": jax_nn_attention,
            "jnp cudnn": functools.partial(jax_nn_attention, implementation="cudnn"),
            "torch": torch_attention,
            "torch sdpa": torch_sdpa,
        },
        [Numbers(10), Numbers(10), Numbers(10)],
        {
            GPU: [(8, 1024, 8, 64)] * 3,
            CPU: [(1, 1024, 8, 64)] * 3,
        },
        directions=BOTH,
        wrt=(0, 1, 2),
        rtol=0.1,
        moves=False,
    ),
}
