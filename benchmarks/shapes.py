"""Scans shapes that people have, beside jax.numpy's functions and good spellings.

    python -m benchmarks.shapes                  in two minutes
    python -m benchmarks.shapes --only padding   the shapes with this in their text
    python -m benchmarks.shapes --write          writes the table into the ledger, too

A line has the milliseconds of each spelling inside `jit`, and our time divided by the
best of the others; BEHIND marks more than 1.15. A gradient is that of a sum of squares,
with its value. On a GPU, first axes are 16 times as long. We compare all results.
"""

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import dmljax as dml
from benchmarks import ledger
from benchmarks.command import circumstances, device_name, named, parsed
from benchmarks.data import Data
from benchmarks.libraries import ALL
from benchmarks.programs.nonzero_coordinates import scatter, scatter_coordinates
from benchmarks.programs.padding import take_indices
from benchmarks.timing import wall_times
from dmljax import numpy as dnp

BEHIND = 1.15
F, B, U, BOOL = "float32", "bfloat16", "uint8", "bool"
# Sizes, the elements before and after each axis, the mode, and the type.
PADDED = (
    ((2**20,), {0: (16, 16)}, "reflect", F),
    ((2**20,), {0: (16, 0)}, "edge", U),
    ((8, 160000), {1: (200, 200)}, "reflect", F),
    ((1024, 1024), {1: (16, 16)}, "reflect", F),
    ((1024, 1024), {0: (16, 16)}, "wrap", F),
    ((64, 1024), {1: (16, 16)}, "symmetric", F),
    ((4096, 1000), {1: (0, 24)}, "constant", B),
    ((16, 512, 256), {1: (4, 0)}, "constant", F),
    ((64, 16, 16), {1: (40, 40), 2: (40, 40)}, "wrap", F),
    ((64, 64, 64), {0: (8, 8), 1: (8, 8), 2: (8, 8)}, "edge", F),
    ((16, 64, 64, 64), {2: (3, 3), 3: (3, 3)}, "reflect", F),
    ((16, 64, 64, 64), {2: (3, 3), 3: (3, 3)}, "reflect", B),
    ((2, 128, 128, 64), {1: (1, 1), 2: (1, 1)}, "reflect", B),
    ((27, 224, 224, 3), {1: (4, 4), 2: (4, 4)}, "edge", U),
    ((2, 4, 32, 64, 64), {2: (2, 2), 3: (2, 2), 4: (2, 2)}, "reflect", F),
    ((2, 16, 32, 64, 8), {1: (1, 1), 2: (1, 1), 3: (1, 1)}, "constant", F),
)
# Sizes, the percentage that is chosen, and the type.
LINES = (
    ((2**18, 16), 10, BOOL),
    ((2**16, 64), 10, BOOL),
    ((2**16, 64), 50, U),
    ((4096, 1000), 10, F),
    ((1024, 4096), 10, BOOL),
    ((1024, 4096), 10, B),
    ((64, 65536), 10, U),
    ((4, 2**20), 10, BOOL),
    ((1, 2**22), 2, BOOL),
    ((1, 2**22), 2, F),
    ((1, 2**22), 50, BOOL),
)
MATRICES = ((1024, 4096), 2, U), ((2048, 2048), 10, F), ((64, 1024), 10, B)
ABOVE = ((2**14,), 10, F), ((2**22,), 2, F), ((2**22,), 90, F), ((2**22,), 50, U)
ROWS = ((65536, 64), 50, F), ((4096, 1024), 10, B), ((16384, 8, 32), 50, F)
# Sizes, the number of classes, and the type.
LABELS = ((4096,), 1000, F), ((64, 64, 64), 19, B), ((2**18,), 10, U), ((8, 64), 512, F)
SELECTED = ((2**22,), 50, F), ((4096, 1000), 10, B), ((16, 3, 256, 256), 50, U)
# Sizes, the first diagonal of zeros, and the type.
SQUARES = (
    ((1024, 1024), 1, F),
    ((8, 8, 256, 256), 1, B),
    ((4096, 16, 16), 1, F),
    ((4096, 100), -5, U),
    ((16, 8, 128, 128), 3, F),
)


class Shape(NamedTuple):
    """Work by contender, and its arrays. A gradient is by the last array."""

    operator: str
    work: str
    spellings: dict[str, Callable[..., Any]]
    arrays: list[Data]
    gradient: bool = False

    @property
    def name(self) -> str:
        """The work, and the type and sizes of the last array."""
        return f"{self.work}, {self.arrays[-1].dtype} {self.arrays[-1].shape}"

    @property
    def label(self) -> str:
        """The unique text."""
        return f"{self.operator} {self.name}" + " gradient" * self.gradient


def scan() -> Iterator[Shape]:
    """All shapes, with gradients of floats."""
    times = 1 if jax.default_backend() == "cpu" else 16
    for make, table in MAKERS.items():
        for (length, *sizes), *options, dtype in table:
            shape = make((length * times, *sizes), dtype, *options)
            yield shape
            if dtype in (F, B) and make not in (lines, matrices, labels):
                yield shape._replace(gradient=True)


def spell(run: Callable[..., Any], ways: dict[str, Any]) -> dict[str, Any]:
    """The work by contender; `run` takes the way first."""
    return {name: functools.partial(run, way) for name, way in ways.items()}


def padding(sizes: Any, dtype: str, amounts: dict[int, Any], mode: str) -> Shape:
    around = [amounts.get(axis, (0, 0)) for axis in range(len(sizes))]
    pads: dict[str, Any] = {"dmljax": dnp.pad, "jnp": jnp.pad}
    if mode != "constant":
        pads["jnp take"] = take_indices
    spellings = spell(lambda pad, x: pad(x, around, mode), pads)
    return Shape("padding", f"{mode} by {amounts}", spellings, [Data(sizes, dtype)])


def room(length: int, percent: int) -> tuple[int, str]:
    """The rows that have room, a quarter more than chosen, and a text."""
    size = max(length * percent // 80, 1)
    return size, f"{percent} % of {length}, room for {size}"


def lines(sizes: Any, dtype: str, percent: int) -> Shape:
    size, words = room(sizes[1], percent)
    ways = {
        "dmljax": lambda x: dml.nonzero_coordinates(x, size=size).coordinates[:, 0],
        "jnp": lambda x: jnp.flatnonzero(x, size=size),
        "jnp scatter": lambda x: scatter(x, jnp.arange(len(x)), size=size),
    }
    spellings = spell(lambda find, x: jax.vmap(find)(x), ways)
    x = Data(sizes, dtype, density=percent / 100)
    return Shape("nonzero_coordinates", f"vmap of lines, {words}", spellings, [x])


def matrices(sizes: Any, dtype: str, percent: int) -> Shape:
    x = Data((sizes[0], sizes[1]), dtype, density=percent / 100)
    size, words = room(x.size, percent)
    ways = {
        "dmljax": dnp.nonzero,
        "jnp": jnp.nonzero,
        "jnp scatter": scatter_coordinates,
    }
    spellings = spell(lambda find, x: find(x != 0, size=size, fill_value=0), ways)
    return Shape("nonzero_coordinates", f"nonzero, {words}", spellings, [x])


def above(sizes: Any, dtype: str, percent: int) -> Shape:
    size, words = room(sizes[0], percent)
    ways: Any = {"dmljax": dnp.extract, "jnp": jnp.extract, "jnp scatter": scatter}
    spellings = spell(lambda take, x: take(x >= 100 - percent, x, size=size), ways)
    x = Data(sizes, dtype, low=0, high=100)
    return Shape("nonzero_coordinates", f"extract, {words}", spellings, [x])


def of_rows(sizes: Any, dtype: str, percent: int) -> Shape:
    size, words = room(sizes[0], percent)
    ways: Any = {"dmljax": dnp.compress, "jnp": jnp.compress, "jnp scatter": scatter}
    spellings = spell(lambda take, keep, x: take(keep, x, 0, size=size), ways)
    arrays = [Data(sizes[:1], "bool", density=percent / 100), Data(sizes, dtype)]
    return Shape("nonzero_coordinates", f"compress, {words}", spellings, arrays)


def labels(sizes: Any, dtype: str, classes: int) -> Shape:
    ways = {
        "dmljax": lambda x: dnp.one_hot(x, classes, dtype=dtype),
        "jnp one_hot": lambda x: jax.nn.one_hot(x, classes, dtype=dtype),
        "jnp equal": lambda x: (x[..., None] == jnp.arange(classes)).astype(dtype),
    }
    x = Data(sizes, "int32", low=0, high=classes)
    return Shape("one_hot", f"{classes} classes in {dtype}", ways, [x])


def select(sizes: Any, dtype: str, percent: int) -> Shape:
    ways: Any = {"dmljax": dml.element_wise_if, "jnp where": jnp.where}
    spellings = spell(lambda where, keep, x: where(keep, x, 0), ways)
    arrays = [Data(sizes, "bool", density=percent / 100), Data(sizes, dtype)]
    return Shape("element_wise_if", "a scalar beside an array", spellings, arrays)


def triangle(sizes: Any, dtype: str, k: int) -> Shape:
    def by_iota(x: jax.Array, k: int) -> jax.Array:
        row = jax.lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 2)
        column = jax.lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 1)
        return jnp.where(column <= row + k, x, 0)

    ways: Any = {"dmljax": dnp.tril, "jnp": jnp.tril, "jnp iota": by_iota}
    spellings = spell(lambda tril, x: tril(x, k), ways)
    return Shape("diagonal_matrix1", f"tril by {k}", spellings, [Data(sizes, dtype)])


MAKERS: dict[Callable[..., Shape], Any] = {
    padding: PADDED,
    lines: LINES,
    matrices: MATRICES,
    above: ABOVE,
    of_rows: ROWS,
    labels: LABELS,
    select: SELECTED,
    triangle: SQUARES,
}


def timed(shape: Shape, rounds: int) -> dict[str, float]:
    """Milliseconds by contender, after a comparison of their results."""
    arrays = [jax.device_put(x.array()) for x in shape.arrays]
    calls, results = {}, []
    for name, function in shape.spellings.items():
        if shape.gradient:
            function = squared(function, len(arrays) - 1)
        calls[name] = ALL["jnp"].prepare(function, arrays)
        leaves = jax.tree.leaves(calls[name].run())
        # We compare some elements: a GPU's arrays are large.
        results.append([np.asarray(x).ravel()[:: x.size // 2**16 + 1] for x in leaves])
    for found in results:
        for one, other in zip(found, results[0], strict=True):
            one, other = (x.astype(np.float64) for x in (one, other))
            np.testing.assert_allclose(one, other, rtol=0.02, err_msg=shape.label)
    times = wall_times(calls, rounds=rounds, repeats=10)
    return {name: timing.median for name, timing in times.items()}


def squared(function: Callable[..., Any], place: int) -> Callable[..., Any]:
    """The value and the gradient of the sum of squares."""

    def total(*arrays: jax.Array) -> jax.Array:
        return jnp.sum(function(*arrays).astype(jnp.float32) ** 2)

    return jax.value_and_grad(total, place)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the shapes as they are timed, and says where we are behind."""
    options = parsed(argv, "benchmarks.shapes", __doc__, "--rounds", "--write")
    device = device_name(jax.devices()[0])
    behind = 0
    for shape in named(scan(), options.only, lambda shape: shape.label):
        times = timed(shape, options.rounds)
        ratio = times["dmljax"] / min(ms for n, ms in times.items() if n != "dmljax")
        behind += ratio > BEHIND
        words = "  ".join(f"{name} {ms:.3g}" for name, ms in times.items())
        mark = "BEHIND" * (ratio > BEHIND)
        print(f"{shape.label}: {words}, {ratio:.2f} {mark}", flush=True)
        if options.write:
            run = circumstances(options, device, {"dmljax": ALL["dmljax"]})
            case = {
                "operator": shape.operator,
                "name": shape.name,
                "direction": "gradient" if shape.gradient else "forward",
                "context": "shape",
            }
            lines = [case | {"contender": n, "wall_ms": ms} for n, ms in times.items()]
            ledger.write(f"{device} shapes", run, lines, options.out)
    print(f"behind in {behind}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
