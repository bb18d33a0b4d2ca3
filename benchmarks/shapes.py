"""Scans shapes that people have, beside jax.numpy's functions and good spellings.

    python -m benchmarks.shapes                  in two minutes
    python -m benchmarks.shapes --only padding   the shapes with this in their text
    python -m benchmarks.shapes --write          writes the table into the ledger, too

A line has the milliseconds of each spelling inside `jit`, and our time divided by the
best of the others; BEHIND marks more than 1.15. On a GPU, first axes are 16 times as
long. Gradients are those of floats by the last array, with the result. We compare all
results.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp

import dmljax as dml
from benchmarks import ledger
from benchmarks.case import Case
from benchmarks.command import circumstances, device_name, named, parsed
from benchmarks.data import Data
from benchmarks.libraries import ALL
from benchmarks.programs.nonzero_coordinates import scatter, scatter_coordinates
from benchmarks.programs.padding import take_indices
from benchmarks.programs.program import gradient, spellings
from benchmarks.run import time_case
from dmljax import numpy as dnp

BEHIND = 1.15
TABLE = "{} shapes"  # the name of a device's table in the ledger
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


def scan() -> Iterator[Case]:
    """A case for each shape and direction."""
    times = 1 if jax.default_backend() == "cpu" else 16
    for (operator, work), table in WORK.items():
        for (length, *sizes), *options, dtype in table:
            shape = (length * times, *sizes)
            words, functions, *arrays = work(shape, dtype, *options)
            x = arrays[-1]
            name = f"{words}, {x.dtype} {x.shape}"
            made = tuple(arrays)
            case = Case(operator, name, made, functions, context="shape", rtol=0.02)
            yield case
            if dtype in (F, B) and work in (pad, extract, compress, select, tril):
                yield gradient(case, [len(arrays) - 1])


def pad(shape: Any, dtype: str, amounts: dict[int, Any], mode: Any) -> Any:
    around = [amounts.get(axis, (0, 0)) for axis in range(len(shape))]
    ways: dict[str, Any] = {"dmljax": dnp.pad, "jnp": jnp.pad}
    if mode != "constant":
        ways["jnp take"] = take_indices
    run = spellings(lambda x, pad: pad(x, around, mode), pad=ways)
    return f"{mode} by {amounts}", run, Data(shape, dtype)


def room(length: int, percent: int) -> tuple[int, str]:
    """The rows that have room, a quarter more than chosen, and a text."""
    size = max(length * percent // 80, 1)
    return size, f"{percent} % of {length}, room for {size}"


def lines(shape: Any, dtype: str, percent: int) -> Any:
    size, words = room(shape[1], percent)
    ways = {
        "dmljax": lambda x: dml.nonzero_coordinates(x, size=size).coordinates[:, 0],
        "jnp": lambda x: jnp.flatnonzero(x, size=size),
        "jnp scatter": lambda x: scatter(x, jnp.arange(len(x)), size=size),
    }
    run = spellings(lambda x, find: jax.vmap(find)(x), find=ways)
    return f"vmap of lines, {words}", run, Data(shape, dtype, density=percent / 100)


def nonzero(shape: Any, dtype: str, percent: int) -> Any:
    x = Data(shape, dtype, density=percent / 100)
    size, words = room(x.size, percent)
    ways = {
        "dmljax": dnp.nonzero,
        "jnp": jnp.nonzero,
        "jnp scatter": scatter_coordinates,
    }
    run = spellings(lambda x, find: find(x != 0, size=size, fill_value=0), find=ways)
    return f"nonzero, {words}", run, x


def extract(shape: Any, dtype: str, percent: int) -> Any:
    size, words = room(shape[0], percent)
    ways = {"dmljax": dnp.extract, "jnp": jnp.extract, "jnp scatter": scatter}
    run = spellings(lambda x, take: take(x >= 100 - percent, x, size=size), take=ways)
    return f"extract, {words}", run, Data(shape, dtype, low=0, high=100)


def compress(shape: Any, dtype: str, percent: int) -> Any:
    size, words = room(shape[0], percent)
    ways = {"dmljax": dnp.compress, "jnp": jnp.compress, "jnp scatter": scatter}
    run = spellings(lambda keep, x, take: take(keep, x, 0, size=size), take=ways)
    keep = Data(shape[:1], BOOL, density=percent / 100)
    return f"compress, {words}", run, keep, Data(shape, dtype)


def one_hot(shape: Any, dtype: str, classes: int) -> Any:
    run = {
        "dmljax": lambda x: dnp.one_hot(x, classes, dtype=dtype),
        "jnp one_hot": lambda x: jax.nn.one_hot(x, classes, dtype=dtype),
        "jnp equal": lambda x: (x[..., None] == jnp.arange(classes)).astype(dtype),
    }
    return f"{classes} classes in {dtype}", run, Data(shape, "int32", 0, classes)


def select(shape: Any, dtype: str, percent: int) -> Any:
    ways = {"dmljax": dml.element_wise_if, "jnp where": jnp.where}
    run = spellings(lambda keep, x, where: where(keep, x, 0), where=ways)
    keep = Data(shape, BOOL, density=percent / 100)
    return "a scalar beside an array", run, keep, Data(shape, dtype)


def by_iota(x: jax.Array, k: int) -> jax.Array:
    row = jax.lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 2)
    column = jax.lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 1)
    return jnp.where(column <= row + k, x, 0)


def tril(shape: Any, dtype: str, k: int) -> Any:
    ways = {"dmljax": dnp.tril, "jnp": jnp.tril, "jnp iota": by_iota}
    run = spellings(lambda x, tril: tril(x, k), tril=ways)
    return f"tril by {k}", run, Data(shape, dtype)


WORK: dict[tuple[str, Callable[..., Any]], Any] = {
    ("padding", pad): PADDED,
    ("nonzero_coordinates", lines): LINES,
    ("nonzero_coordinates", nonzero): MATRICES,
    ("nonzero_coordinates", extract): ABOVE,
    ("nonzero_coordinates", compress): ROWS,
    ("one_hot", one_hot): LABELS,
    ("element_wise_if", select): SELECTED,
    ("diagonal_matrix1", tril): SQUARES,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the shapes as they are timed, and says where we are behind."""
    options = parsed(argv, "benchmarks.shapes", __doc__, "--rounds", "--write")
    device = device_name(jax.devices()[0])
    libraries = {name: ALL[name] for name in ("dmljax", "jnp")}
    behind = []
    for case in named(scan(), options.only, lambda case: case.label):
        rows, errors = time_case(case, libraries, {}, options.rounds)
        times = {row["contender"]: row["wall_ms"] for row in rows}
        ratio = times["dmljax"] / min(ms for n, ms in times.items() if n != "dmljax")
        words = "  ".join(f"{name} {ms:.3g}" for name, ms in times.items())
        mark = "BEHIND" if ratio > BEHIND else ""
        behind += [case.label] if mark else []
        print(f"{case.label}: {words}, {ratio:.2f} {mark}", *errors, flush=True)
        if options.write:
            run = circumstances(options, device, libraries)
            ledger.write(TABLE.format(device), run, rows, options.out)
    print(f"behind in {len(behind)}", *behind, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
