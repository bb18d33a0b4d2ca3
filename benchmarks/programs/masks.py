"""Masked softmax and attention: DIAGONAL_MATRIX1, and ELEMENT_WISE_IF."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from benchmarks.others import module
from benchmarks.programs.timed import BOTH, Timed
from dmljax._programs import (
    PROGRAMS as SHARED,
)
from dmljax._programs import (
    Input,
    Program,
    causal,
    iota,
    scores,
    softmax,
    tril,
)

REFERENCES = {"no mask": lambda x, *_: softmax(x)}
SCALE = 1 / 128


def np_softmax(x: np.ndarray, keep: Any) -> np.ndarray:
    """Of what is kept."""
    powers = np.exp(x - x.max(-1, keepdims=True)) * keep
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def _tri(x: Any) -> np.ndarray:
    return np.tri(x.shape[-1], dtype=bool)


def _torch_softmax(x: Any, keep: Any) -> Any:
    return x.masked_fill(~keep, -math.inf).float().softmax(-1).to(x.dtype)


def _torch_tril(x: Any) -> Any:
    torch = module("torch")
    return torch.ones(x.shape[-2:], dtype=torch.bool, device=x.device).tril()


def _torch_line(x: Any) -> Any:
    return module("torch").arange(x.shape[-1], device=x.device)


# SEQUENCES OF SEVERAL LENGTHS


def _with_last(elements: int, dtype: str) -> tuple[Input, ...]:
    ((shape, *x),) = scores(elements, dtype)
    return (shape, *x), (shape[:1], "int32", shape[-1])  # type: ignore[return-value]


def _until(line: Any, last: Any) -> Any:
    return line <= last[:, None, None, None]


def _lengths(x: jax.Array, last: jax.Array) -> jax.Array:
    known = jnp.broadcast_to(_until(jnp.arange(x.shape[-1]), last), x.shape)
    return softmax(dmljax.element_wise_if(known, causal(x), -jnp.inf))


LENGTHS = Program(
    "element_wise_if",
    _with_last,
    {
        "dmljax": _lengths,
        "jnp tril": lambda x, last: softmax(
            x, tril(x) & _until(jnp.arange(x.shape[-1]), last)
        ),
        "jnp full iota": lambda x, last: softmax(
            x, (iota(x, 3) <= iota(x, 2)) & _until(iota(x, 3), last)
        ),
    },
)

# WINDOWS

WIDTH = 128


def _window(x: jax.Array, width: Any) -> jax.Array:
    ends = {"fill_begin": 1, "fill_end": -width}
    return dmljax.diagonal_matrix1(x, value=-jnp.inf, **ends)


def _within(row: Any, column: Any, width: Any) -> Any:
    return (column <= row) & (row - column <= width)


def _square(x: Any, width: Any) -> Any:
    line = jnp.arange(x.shape[-1])
    return _within(line[:, None], line, width)


def _np_within(x: Any, width: Any) -> Any:
    line = np.arange(x.shape[-1])
    return _within(line[:, None], line, width)


def _torch_window(x: Any, width: Any = WIDTH) -> Any:
    line = _torch_line(x)
    return _torch_softmax(x, _within(line[:, None], line, width))


WINDOW = Program(
    "diagonal_matrix1",
    scores,
    {
        "dmljax": lambda x: softmax(_window(x, WIDTH)),
        "jnp square": lambda x: softmax(x, _square(x, WIDTH)),
        "jnp full iota": lambda x: softmax(x, _within(iota(x, 2), iota(x, 3), WIDTH)),
    },
)


def _with_widths(elements: int, dtype: str) -> tuple[Input, ...]:
    ((shape, *x),) = scores(elements, dtype)
    widths = (shape[1:2], "int32", shape[-1] // 2)
    return (shape, *x), widths  # type: ignore[return-value]


WINDOWS = Program(
    "diagonal_matrix1",
    _with_widths,
    {
        "dmljax": lambda x, widths: softmax(
            jax.vmap(_window, (1, 0), 1)(x, widths),
        ),
        "jnp square": lambda x, widths: softmax(x, _square(x, widths[:, None, None])),
        "jnp full iota": lambda x, widths: softmax(
            x, _within(iota(x, 2), iota(x, 3), widths[:, None, None])
        ),
    },
)

# ATTENTION


def _tokens(elements: int, dtype: str) -> tuple[Input, ...]:
    (((batch, heads, length, _), _, high),) = scores(elements, dtype)
    return (((batch, length, heads, 64), dtype, high),) * 3


def _attention(mask: Any) -> Any:
    def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        x = mask(jnp.einsum("bqhd,bkhd->bhqk", q, k) * SCALE)
        return jnp.einsum("bhqk,bkhd->bqhd", softmax(x), v)

    return attention


def _jax_nn(implementation: Any) -> Any:
    def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> Any:
        static: dict[str, Any] = {
            "is_causal": True,
            "implementation": implementation,
            "scale": SCALE,
        }
        return jax.nn.dot_product_attention(q, k, v, **static)

    return attention


def _np_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    # NumPy is slow if the axes of a matrix do not lie side by side.
    q, k, v = (np.ascontiguousarray(x.swapaxes(1, 2)) for x in (q, k, v))
    x = q @ k.swapaxes(2, 3) * SCALE
    return np.asarray(np_softmax(x, _tri(x)) @ v).swapaxes(1, 2)


def _torch_attention(q: Any, k: Any, v: Any) -> Any:
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    x = q @ k.transpose(2, 3) * SCALE
    return (_torch_softmax(x, _torch_tril(x)) @ v).transpose(1, 2)


def _torch_sdpa(q: Any, k: Any, v: Any) -> Any:
    sdpa = module("torch").nn.functional.scaled_dot_product_attention
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return sdpa(q, k, v, is_causal=True, scale=SCALE).transpose(1, 2)


ATTENTION = Program(
    "diagonal_matrix1",
    _tokens,
    {
        "dmljax": _attention(causal),
        "jnp tril": _attention(lambda x: jnp.where(tril(x), x, -jnp.inf)),
        "jnp full iota": _attention(
            lambda x: jnp.where(iota(x, 3) <= iota(x, 2), x, -jnp.inf)
        ),
        "jnp dot_product_attention": _jax_nn("xla"),
        "jnp cudnn": _jax_nn("cudnn"),
    },
)

PROGRAMS = {
    "causal softmax": Timed(
        SHARED["causal softmax"],
        lambda x: np_softmax(x, _tri(x)),
        {"torch": lambda x: _torch_softmax(x, _torch_tril(x))},
        REFERENCES,
    ),
    "causal softmax of several lengths": Timed(
        LENGTHS,
        lambda x, last: np_softmax(x, _tri(x) & _until(np.arange(x.shape[-1]), last)),
        {
            "torch": lambda x, last: _torch_softmax(
                x, _torch_tril(x) & _until(_torch_line(x), last)
            )
        },
        REFERENCES,
    ),
    "softmax of a window": Timed(
        WINDOW,
        lambda x: np_softmax(x, _np_within(x, WIDTH)),
        {"torch": _torch_window},
        REFERENCES,
    ),
    "softmax of a window for each head": Timed(
        WINDOWS,
        lambda x, widths: np_softmax(x, _np_within(x, widths[:, None, None])),
        {"torch": lambda x, widths: _torch_window(x, widths[:, None, None])},
        REFERENCES,
        shared=(1,),
    ),
    "causal attention": Timed(
        ATTENTION,
        _np_attention,
        {"torch": _torch_attention, "torch sdpa": _torch_sdpa},
        {"no mask": _attention(lambda x: x)},
        BOTH,
        wrt=(0, 1, 2),
        atol=0.1,
        ceiling=None,
    ),
}
