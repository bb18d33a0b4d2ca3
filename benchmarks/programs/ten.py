"""Ten programs as users write them: with dmljax, and with jax.numpy.

A program takes the *way*, a function of a library, before its arrays. In all ways it
computes the same. The benchmarks time these programs beside other libraries, and have
more ways and more programs.
"""

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from dmljax import numpy as dnp

Ways = Mapping[str, Callable[..., Any]]  # by library, and a name if it has several
# The sizes of an array, its type, and how many whole numbers, from 0 on, are in it.
Input = tuple[tuple[int, ...], str, int]


class Program(NamedTuple):
    """What users compute."""

    operator: str  # which one it needs
    inputs: Callable[[int, str], tuple[Input, ...]]  # for so many elements of a type
    run: Callable[..., Any]
    ways: Ways

    @property
    def spellings(self) -> dict[str, Callable[..., Any]]:
        """The program in each way, as a function of the arrays."""
        return {n: functools.partial(self.run, way) for n, way in self.ways.items()}


def side(elements: int, most: int) -> int:
    """The rows of a square of about so many elements: a power of 2."""
    return min(1 << max(round(math.log2(elements) / 2), 3), most)


def scores(n: int, dtype: str) -> tuple[Input, ...]:
    """Of attention: (batch, heads, queries, keys)."""
    length = side(n >> 3, 1024)
    return (((max(n >> 23, 1), 8, length, length), dtype, 10),)


def images(n: int, dtype: str) -> tuple[Input, ...]:
    """(16, 64, 256, 256) for 2^26 elements."""
    rows = side(n >> 10, 256)
    return (((16, min(n >> 10, 64), rows, rows), dtype, 10),)


def graphs(n: int, dtype: str) -> tuple[Input, ...]:
    """Of some graphs the distances of nodes, and of each node 64 features."""
    count = max(n >> 20, 1)
    nodes = side(n, 1024)
    return ((count, nodes, nodes), "uint8", 100), ((count, nodes, 64), dtype, 10)


def iota(x: jax.Array, axis: int) -> jax.Array:
    """The coordinates along an axis, in the shape of x."""
    return jax.lax.broadcasted_iota(np.int32, x.shape, axis)


def smoothed(labels: jax.Array, classes: int) -> jax.Array:
    """Targets: of each label, all classes share a tenth."""
    off_on = np.array([0.1 / classes, 0.9 + 0.1 / classes], np.float32)
    return dmljax.one_hot(labels[:, None], off_on, size=classes)


CAUSAL: Ways = {
    "dmljax": lambda x: dmljax.diagonal_matrix1(
        x, value=-np.inf, fill_begin=1, fill_end=None
    ),
    "jnp tril": lambda x: jnp.where(jnp.tril(jnp.ones(x.shape[2:], bool)), x, -np.inf),
    "jnp full iota": lambda x: jnp.where(iota(x, 3) <= iota(x, 2), x, -np.inf),
}
SMOOTHED: Ways = {
    "dmljax": smoothed,
    "jnp one_hot": lambda i, n: jax.nn.one_hot(i, n) * 0.9 + 0.1 / n,
}
HOT: Ways = {
    "dmljax": lambda i, n: dmljax.one_hot(i[:, None], np.array([0, 1], "i4"), size=n),
    "jnp one_hot": lambda i, n: jax.nn.one_hot(i, n, dtype=np.int32),
}
SELECTS: Ways = {"dmljax": dmljax.element_wise_if, "jnp where": jnp.where}
PADS: Ways = {"dmljax": dnp.pad, "jnp": jnp.pad}
BY_3 = ((0, 0), (0, 0), (3, 3), (3, 3))
BY_16 = ((0, 0), (0, 0), (16, 16), (16, 16))


def softmax(mask: Any, x: jax.Array) -> jax.Array:
    """Attention's weights, computed in float32."""
    return jax.nn.softmax(mask(x).astype(np.float32)).astype(x.dtype)


def cross_entropy(targets: Any, x: jax.Array, labels: jax.Array) -> Any:
    """The loss of each row."""
    logs = jax.nn.log_softmax(x.astype(np.float32))
    return -(targets(labels, x.shape[1]) * logs).sum(-1)


def patches(x: jax.Array) -> jax.Array:
    """Squares of 16 x 16 of images, each made flat."""
    squares = x.reshape(*x.shape[:2], x.shape[2] // 16, 16, x.shape[3] // 16, 16)
    ordered = squares.transpose(0, 2, 4, 1, 3, 5)
    return ordered.reshape(len(x), -1, x.shape[1] * 256)


def safe_log(select: Any, x: jax.Array) -> Any:
    """The logarithm, or 0. The inner select keeps the gradient of log(0) away."""
    return select(x > 0.5, jnp.log(select(x > 0.5, x, 1.0)), 0.0)


def places(one_hot: Any, experts: jax.Array) -> Any:
    """Of each token, the number of earlier ones with the same expert."""
    hot = one_hot(experts, 64)
    return (jnp.cumsum(hot, 0) * hot).sum(1) - 1


def received(nonzero: Any, distances: jax.Array, features: jax.Array) -> jax.Array:
    """What each node of a graph gets from those that are near, summed."""
    nodes = len(distances)
    source, target = nonzero(distances < 1, size=16 * nodes, fill_value=nodes)
    sent = features.at[source].get(mode="fill", fill_value=0)
    return jnp.zeros_like(features).at[target].add(sent, mode="drop")


PROGRAMS = {
    "causal softmax": Program("diagonal_matrix1", scores, softmax, CAUSAL),
    "label smoothing": Program(
        "one_hot",
        lambda n, t: (((n >> 10, 1000), t, 10), ((n >> 10,), "int32", 1000)),
        cross_entropy,
        SMOOTHED,
    ),
    "reflect padding between two operations": Program(
        "padding",
        images,
        lambda pad, x: pad(x * 2, BY_3, "reflect") + 1,
        PADS,
    ),
    "patches of wrapped images": Program(
        "padding",
        lambda n, t: (((max(n // 150528, 1), 3, 224, 224), t, 10),),
        lambda pad, x: patches(pad(x, BY_16, "wrap")),
        PADS,
    ),
    "masked mean": Program(
        "element_wise_if",
        lambda n, t: (((n >> 10, 1024), t, 10), ((n >> 10, 1024), "uint8", 2)),
        lambda where, x, on: where(on, x.astype(np.float32), 0.0).sum(1) / on.sum(1),
        SELECTS,
    ),
    "safe logarithm": Program(
        "element_wise_if", lambda n, t: (((n >> 10, 1024), t, 10),), safe_log, SELECTS
    ),
    "router": Program("one_hot", lambda n, t: (((n >> 6,), "int32", 64),), places, HOT),
    "elements above a limit": Program(
        "nonzero_coordinates",
        lambda n, t: (((n,), t, 100),),
        lambda extract, x: extract(x > 97, x, size=len(x) // 32),
        {"dmljax": dnp.extract, "jnp": jnp.extract},
    ),
    "rows of a mask": Program(
        "nonzero_coordinates",
        lambda n, t: (((n >> 6, 64), t, 10), ((n >> 6,), "uint8", 2)),
        lambda compress, x, keep: compress(keep, x, 0, size=len(x) * 5 // 8),
        {"dmljax": dnp.compress, "jnp": jnp.compress},
    ),
    "edges of graphs": Program(
        "nonzero_coordinates",
        graphs,
        lambda nonzero, *x: jax.vmap(functools.partial(received, nonzero))(*x),
        {"dmljax": dnp.nonzero, "jnp": jnp.nonzero},
    ),
}
