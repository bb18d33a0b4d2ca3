"""Ten programs as users write them: with dmljax, and with jax.numpy in several ways.

Every spelling of a program computes the same. The benchmarks time them beside other
libraries, and have more programs.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import dmljax
from dmljax import numpy as dnp

# Of an array: its sizes, its type, and one more than the largest of its whole numbers,
# the least of which is 0.
Input = tuple[tuple[int, ...], str, int]
LAST = 2**31 - 1  # no matrix has a diagonal beyond this one


class Program(NamedTuple):
    """What users compute.

    Attributes:
      operator: which one it needs.
      inputs: the arrays, for about so many elements of a type.
      spellings: by library, and by a word for the way if the library has several.
      dtypes: the types that it is used with.
    """

    operator: str
    inputs: Callable[[int, str], tuple[Input, ...]]
    spellings: Mapping[str, Callable[..., Any]]
    dtypes: tuple[str, ...] = ("bfloat16", "float32")


def side(elements: int, most: int) -> int:
    """The rows of a square of about so many elements: a power of 2."""
    return min(1 << max(round(math.log2(elements) / 2), 3), most)


def scores(elements: int, dtype: str) -> tuple[Input, ...]:
    """Of attention: (batch, heads, queries, keys)."""
    rows = side(elements // 8, 1024)
    return (((max(elements // 8 // rows**2, 1), 8, rows, rows), dtype, 10),)


def images(elements: int, dtype: str) -> tuple[Input, ...]:
    """(16, 64, 256, 256) for 2^26 elements."""
    rows = side(elements // 1024, 256)
    return (((16, max(elements // 16 // rows**2, 1), rows, rows), dtype, 10),)


def rows_of(width: int, *more: Input) -> Callable[[int, str], tuple[Input, ...]]:
    """A matrix of this width; and of each row, numbers."""

    def inputs(elements: int, dtype: str) -> tuple[Input, ...]:
        rows = max(elements >> round(math.log2(width)), 1)
        return ((rows, width), dtype, 10), *(((rows, *s), t, n) for s, t, n in more)

    return inputs


def causal(x: jax.Array) -> jax.Array:
    """Scores of which those of later keys are masked."""
    return dmljax.diagonal_matrix1(x, value=-jnp.inf, fill_begin=1, fill_end=LAST)


def tril(x: jax.Array) -> jax.Array:
    """The square mask of the other scores."""
    return jnp.tril(jnp.ones(x.shape[-2:], bool))


def iota(x: jax.Array, axis: int) -> jax.Array:
    """The coordinates along an axis, in the shape of x."""
    return lax.broadcasted_iota(np.int32, x.shape, axis)


def softmax(x: jax.Array, keep: Any = True) -> jax.Array:
    """Of what is kept, computed in float32."""
    kept = x if keep is True else jnp.where(keep, x, -jnp.inf)
    return jax.nn.softmax(kept.astype(np.float32)).astype(x.dtype)


def cross_entropy(x: jax.Array, targets: jax.Array) -> jax.Array:
    """Of each row."""
    return -(targets * jax.nn.log_softmax(x.astype(np.float32))).sum(-1)


def smoothed(labels: jax.Array, classes: int) -> jax.Array:
    """Targets of which all classes share a tenth."""
    values = np.array([0.1 / classes, 0.9 + 0.1 / classes], np.float32)
    return dmljax.one_hot(labels[:, None], values, size=classes)


def take(x: jax.Array, pads: Any, mode: Any) -> jax.Array:
    """jnp.pad by indices that NumPy computes."""
    for axis, around in enumerate(pads):
        if any(around):
            indices = np.pad(np.arange(x.shape[axis]), around, mode)
            x = jnp.take(x, indices, axis, mode="clip")
    return x


PADS: dict[str, Callable[..., jax.Array]] = {
    "dmljax": dnp.pad,
    "jnp": jnp.pad,
    "jnp take": take,
}
BY_3, BY_16 = (((0, 0), (0, 0), (by, by), (by, by)) for by in (3, 16))


def patches(x: jax.Array) -> jax.Array:
    """Squares of 16 x 16 of images, one in a row."""
    squares = x.reshape(*x.shape[:2], x.shape[2] // 16, 16, x.shape[3] // 16, 16)
    rows = squares.transpose(0, 2, 4, 1, 3, 5)
    return rows.reshape(len(x), -1, x.shape[1] * 256)


def places(hot: jax.Array) -> jax.Array:
    """Of each token, the number of earlier ones with the same expert."""
    return (jnp.cumsum(hot, 0) * hot).sum(1) - 1


def sums_along(find: Callable[..., Any]) -> Callable[..., Any]:
    """What each node of a graph receives from the nodes that are near."""

    def received(distances: jax.Array, features: jax.Array) -> jax.Array:
        nodes = len(distances)
        source, target = find(distances < 1, size=16 * nodes, fill_value=nodes)
        sent = features.at[source].get(mode="fill", fill_value=0)
        return jnp.zeros_like(features).at[target].add(sent, mode="drop")

    return jax.vmap(received)


def _safe_log(select: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    def log(x: jax.Array) -> jax.Array:
        # The inner select keeps the gradient of log(0) away.
        positive = x > 0.5
        return select(positive, jnp.log(select(positive, x, 1.0)), 0.0)

    return log


PROGRAMS = {
    "causal softmax": Program(
        "diagonal_matrix1",
        scores,
        {
            "dmljax": lambda x: softmax(causal(x)),
            "jnp tril": lambda x: softmax(x, tril(x)),
            "jnp full iota": lambda x: softmax(x, iota(x, 3) <= iota(x, 2)),
        },
    ),
    "label smoothing": Program(
        "one_hot",
        rows_of(1000, ((), "int32", 1000)),
        {
            "dmljax": lambda x, i: cross_entropy(x, smoothed(i, x.shape[1])),
            "jnp one_hot": lambda x, i: cross_entropy(
                x, jax.nn.one_hot(i, x.shape[1]) * 0.9 + 0.1 / x.shape[1]
            ),
            "jnp where": lambda x, i: cross_entropy(
                x,
                jnp.where(jnp.arange(x.shape[1]) == i[:, None], 0.9, 0)
                + 0.1 / x.shape[1],
            ),
        },
    ),
    "reflect padding between two operations": Program(
        "padding",
        images,
        {n: (lambda x, f=f: f(x * 2, BY_3, "reflect") + 1) for n, f in PADS.items()},
        ("bfloat16", "float32", "uint8"),
    ),
    "patches of wrapped images": Program(
        "padding",
        lambda n, t: (((max(n // 150528, 1), 3, 224, 224), t, 10),),
        {n: (lambda x, f=f: patches(f(x, BY_16, "wrap"))) for n, f in PADS.items()},
        ("bfloat16", "float32", "uint8"),
    ),
    "masked mean": Program(
        "element_wise_if",
        rows_of(1024, ((1024,), "uint8", 2)),
        {
            "dmljax": lambda x, keep: (
                dmljax.element_wise_if(keep, x.astype(np.float32), 0.0).sum(1)
                / (keep != 0).sum(1)
            ),
            "jnp where": lambda x, keep: (
                jnp.where(keep, x.astype(np.float32), 0.0).sum(1) / (keep != 0).sum(1)
            ),
            "jnp mean": lambda x, keep: jnp.mean(
                x, 1, dtype=np.float32, where=keep != 0
            ),
        },
    ),
    "safe logarithm": Program(
        "element_wise_if",
        rows_of(1024),
        {"dmljax": _safe_log(dmljax.element_wise_if), "jnp": _safe_log(jnp.where)},
    ),
    "router": Program(
        "one_hot",
        lambda n, t: (((n // 64,), "int32", 64),),
        {
            "dmljax": lambda i: places(
                dmljax.one_hot(i[:, None], np.array([0, 1], np.int32), size=64)
            ),
            "jnp one_hot": lambda i: places(jax.nn.one_hot(i, 64, dtype=np.int32)),
            "jnp equal": lambda i: places(
                (i[:, None] == jnp.arange(64)).astype(np.int32)
            ),
        },
        ("int32",),
    ),
    "elements above a limit": Program(
        "nonzero_coordinates",
        lambda n, t: (((n,), t, 100),),
        {
            "dmljax": lambda x: dnp.extract(x > 97, x, size=len(x) // 32),
            "dmljax coordinates": lambda x: x.at[
                dmljax.nonzero_coordinates(
                    x > 97, size=len(x) // 32, fill=len(x)
                ).coordinates[:, 0]
            ].get(mode="fill", fill_value=0),
            "jnp": lambda x: jnp.extract(x > 97, x, size=len(x) // 32),
        },
        ("float32", "bfloat16"),
    ),
    "rows of a mask": Program(
        "nonzero_coordinates",
        rows_of(64, ((), "uint8", 2)),
        {
            "dmljax": lambda x, keep: dnp.compress(keep, x, 0, size=len(x) * 5 // 8),
            "jnp": lambda x, keep: jnp.compress(keep, x, 0, size=len(x) * 5 // 8),
        },
    ),
    "edges of graphs": Program(
        "nonzero_coordinates",
        lambda n, t: (
            ((max(n // 2**20, 1), (s := side(n, 1024)), s), "uint8", 100),
            ((max(n // 2**20, 1), s, 64), t, 10),
        ),
        {
            "dmljax": sums_along(dnp.nonzero),
            "jnp": sums_along(jnp.nonzero),
        },
        ("float32",),
    ),
}
