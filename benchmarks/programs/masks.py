"""Masked softmax and attention: DIAGONAL_MATRIX1, and ELEMENT_WISE_IF."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from benchmarks.others import module
from benchmarks.programs.ten import CAUSAL, Input, Program, iota, scores, softmax
from benchmarks.programs.ten import PROGRAMS as SHARED
from benchmarks.programs.timed import BOTH, Timed

REFERENCES = {"no mask": lambda x, *_: softmax(lambda x: x, x)}
SCALE = 1 / 128


def _masked(mask: Any, x: jax.Array, *lengths: Any) -> jax.Array:
    return softmax(lambda x: mask(x, *lengths), x)


def _keep(x: jax.Array, mask: jax.Array) -> jax.Array:
    return jnp.where(mask, x, -jnp.inf)


def _np_softmax(x: np.ndarray, keep: Any) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True)) * keep
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def _torch_softmax(x: Any, keep: Any) -> Any:
    return x.masked_fill(~keep, -math.inf).float().softmax(-1).to(x.dtype)


def _tri(x: Any) -> np.ndarray:
    return np.tri(x.shape[-1], dtype=bool)


def _tril(x: Any) -> jax.Array:
    return jnp.tril(jnp.ones(x.shape[-2:], bool))


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
    return dmljax.element_wise_if(
        _until(iota(x, 3), last), CAUSAL["dmljax"](x), -jnp.inf
    )


LENGTHS = Program(
    "element_wise_if",
    _with_last,
    _masked,
    {
        "dmljax": _lengths,
        "jnp tril": lambda x, last: _keep(
            x, _tril(x) & _until(jnp.arange(x.shape[-1]), last)
        ),
        "jnp full iota": lambda x, last: _keep(
            x, (iota(x, 3) <= iota(x, 2)) & _until(iota(x, 3), last)
        ),
    },
)

# WINDOWS

WIDTH = 128


def _window(x: jax.Array, width: Any = WIDTH) -> jax.Array:
    ends = {"fill_begin": 1, "fill_end": -width}
    return dmljax.diagonal_matrix1(x, value=-jnp.inf, **ends)


def _within(row: Any, column: Any, width: Any = WIDTH) -> Any:
    return (column <= row) & (row - column <= width)


def _square(line: Any, width: Any = WIDTH) -> Any:
    return _within(line[:, None], line, width)


def _of_heads(widths: Any) -> Any:
    return widths[:, None, None]


WINDOW = Program(
    "diagonal_matrix1",
    scores,
    _masked,
    {
        "dmljax": _window,
        "jnp square": lambda x: _keep(x, _square(jnp.arange(x.shape[-1]))),
        "jnp full iota": lambda x: _keep(x, _within(iota(x, 2), iota(x, 3))),
    },
)


def _with_widths(elements: int, dtype: str) -> tuple[Input, ...]:
    ((shape, *x),) = scores(elements, dtype)
    widths = (shape[1:2], "int32", shape[-1] // 2)
    return (shape, *x), widths  # type: ignore[return-value]


WINDOWS = Program(
    "diagonal_matrix1",
    _with_widths,
    _masked,
    {
        "dmljax": jax.vmap(_window, (1, 0), 1),
        "jnp square": lambda x, widths: _keep(
            x, _square(jnp.arange(x.shape[-1]), _of_heads(widths))
        ),
        "jnp full iota": lambda x, widths: _keep(
            x, _within(iota(x, 2), iota(x, 3), _of_heads(widths))
        ),
    },
)

# ATTENTION


def _tokens(elements: int, dtype: str) -> tuple[Input, ...]:
    (((batch, heads, length, _), _, high),) = scores(elements, dtype)
    return (((batch, length, heads, 64), dtype, high),) * 3


def _attention(mask: Any, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    x = jnp.einsum("bqhd,bkhd->bhqk", q, k) * SCALE
    return jnp.einsum("bhqk,bkhd->bqhd", softmax(mask, x), v)


def _jax_nn(implementation: Any) -> Any:
    def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> Any:
        return jax.nn.dot_product_attention(
            q, k, v, is_causal=True, implementation=implementation, scale=SCALE
        )

    return attention


def _np_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    # NumPy is slow if the axes of a matrix do not lie side by side.
    q, k, v = (np.ascontiguousarray(x.swapaxes(1, 2)) for x in (q, k, v))
    x = q @ k.swapaxes(2, 3) * SCALE
    return np.asarray(_np_softmax(x, _tri(x)) @ v).swapaxes(1, 2)


def _torch_attention(q: Any, k: Any, v: Any) -> Any:
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    x = q @ k.transpose(2, 3) * SCALE
    return (_torch_softmax(x, _torch_tril(x)) @ v).transpose(1, 2)


def _torch_sdpa(q: Any, k: Any, v: Any) -> Any:
    sdpa = module("torch").nn.functional.scaled_dot_product_attention
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return sdpa(q, k, v, is_causal=True, scale=SCALE).transpose(1, 2)


PROGRAMS = {
    "causal softmax": Timed(
        SHARED["causal softmax"],
        lambda x: _np_softmax(x, _tri(x)),
        {"torch": lambda x: _torch_softmax(x, _torch_tril(x))},
        references=REFERENCES,
    ),
    "causal softmax of several lengths": Timed(
        LENGTHS,
        lambda x, last: _np_softmax(x, _tri(x) & _until(np.arange(x.shape[-1]), last)),
        {
            "torch": lambda x, last: _torch_softmax(
                x, _torch_tril(x) & _until(_torch_line(x), last)
            )
        },
        references=REFERENCES,
    ),
    "softmax of a window": Timed(
        WINDOW,
        lambda x: _np_softmax(x, _square(np.arange(x.shape[-1]))),
        {"torch": lambda x: _torch_softmax(x, _square(_torch_line(x)))},
        references=REFERENCES,
    ),
    "softmax of a window for each head": Timed(
        WINDOWS,
        lambda x, w: _np_softmax(x, _square(np.arange(x.shape[-1]), _of_heads(w))),
        {
            "torch": lambda x, w: _torch_softmax(
                x, _square(_torch_line(x), _of_heads(w))
            )
        },
        references=REFERENCES,
        shared=(1,),
    ),
    "causal attention": Timed(
        Program("diagonal_matrix1", _tokens, _attention, CAUSAL),
        _np_attention,
        {"torch": _torch_attention, "torch sdpa": _torch_sdpa},
        more={
            "jnp dot_product_attention": _jax_nn("xla"),
            "jnp cudnn": _jax_nn("cudnn"),
        },
        references={"no mask": lambda *x: _attention(lambda x: x, *x)},
        directions=BOTH,
        wrt=(0, 1, 2),
        atol=0.1,
        ceiling=None,
    ),
}
