"""Scans shapes that people have, beside jax.numpy's functions and good spellings.

    python -m benchmarks.shapes            in two minutes
    python -m benchmarks.shapes --write    writes the table into the ledger, too

It prints the milliseconds of each spelling inside `jit`, and our time divided by
theirs. The last lines name the shapes where we take over 15 % longer. On a GPU, first
axes are 16 times as long. A gradient comes with its result.
"""

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp

import dmljax as dml
from benchmarks.case import Case
from benchmarks.command import named, parsed
from benchmarks.data import Data
from benchmarks.forms import with_plain
from benchmarks.libraries import ALL
from benchmarks.programs import nonzero_coordinates as rows
from benchmarks.programs.diagonal_matrix1 import causal_by_iota
from benchmarks.programs.one_hot import one_hot, one_hot_by_equal
from benchmarks.programs.padding import take_indices
from benchmarks.programs.program import gradient
from benchmarks.run import time_cases
from dmljax import numpy as dnp

TABLE = "{} shapes"  # the name of a device's table in the ledger
F, B, U, BOOL = "float32", "bfloat16", "uint8", "bool"
NONZERO = "nonzero_coordinates"
# Sizes, the elements before and after each axis, the mode, and the type.
PADDED = (
    ((2**20,), {0: (16, 16)}, "reflect", F),
    ((2**20,), {0: (16, 0)}, "edge", U),
    ((8, 160000), {1: (200, 200)}, "reflect", F),
    ((1024, 1024), {1: (16, 16)}, "reflect", F),
    ((1024, 1024), {0: (16, 16)}, "wrap", F),
    ((64, 1024), {1: (16, 16)}, "symmetric", F),
    ((4096, 1000), {1: (0, 24)}, "edge", B),
    ((4096, 1000), {1: (0, 24)}, "constant", F),
    ((16, 512, 256), {1: (4, 0)}, "constant", B),
    ((16, 512, 256), {1: (4, 0)}, "reflect", F),
    ((64, 16, 16), {1: (40, 40), 2: (40, 40)}, "wrap", F),
    ((64, 64, 64), {0: (8, 8), 1: (8, 8), 2: (8, 8)}, "edge", F),
    ((16, 64, 64, 64), {2: (3, 3), 3: (3, 3)}, "reflect", F),
    ((16, 64, 64, 64), {2: (3, 3), 3: (3, 3)}, "reflect", B),
    ((2, 128, 128, 64), {1: (1, 1), 2: (1, 1)}, "reflect", B),
    ((27, 224, 224, 3), {1: (4, 4), 2: (4, 4)}, "edge", U),
    ((2, 4, 32, 64, 64), {2: (2, 2), 3: (2, 2), 4: (2, 2)}, "reflect", F),
    ((2, 16, 32, 64, 8), {1: (1, 1), 2: (1, 1), 3: (1, 1)}, "wrap", F),
)
# Sizes, the percentage that is chosen, and the type.
SHORT = ((2**18, 16), 10, BOOL), ((2**16, 64), 10, BOOL), ((2**16, 64), 50, U)
MIDDLE = ((4096, 1000), 10, F), ((1024, 4096), 10, BOOL), ((1024, 4096), 10, B)
LONG = ((256, 16389), 10, BOOL), ((64, 65536), 10, U), ((4, 2**20), 10, BOOL)
LONGEST = (((1, 2**22), 2, F),)
MATRICES = ((1024, 4096), 2, U), ((2048, 2048), 10, F), ((64, 1024), 10, B)
ABOVE = ((2**14,), 10, F), ((2**22,), 2, F), ((2**22,), 90, F), ((2**22,), 50, U)
ROWS = ((65536, 64), 50, F), ((4096, 1024), 10, B), ((16384, 8, 32), 50, F)
CHOSEN = ((2**22,), 50, F), ((4096, 1000), 10, B), ((16, 3, 256, 256), 50, U)
# Sizes, the number of classes or the first diagonal of zeros, and the type.
LABELS = ((4096,), 1000, F), ((64, 64, 64), 19, B), ((2**18,), 10, U), ((8, 64), 512, F)
SQUARES = ((1024, 1024), 0, F), ((8, 8, 256, 256), 0, B), ((4096, 16, 16), 1, F)


def room(length: int, percent: int) -> int:
    return min(max(length * percent // 80, 1), length)


def pad(by: Any, x: Any, amounts: dict[int, Any], mode: str) -> Any:
    return by(x, [amounts.get(axis, (0, 0)) for axis in range(x.ndim)], mode)


# By name, the work by a way, of arrays and options.
WORK: dict[str, Callable[..., Any]] = {
    "pad": pad,
    "vmap of nonzero": lambda by, x, n: jax.vmap(
        lambda line: by(line, size=room(len(line), n))
    )(x),
    "nonzero": lambda by, x, n: by(x != 0, size=room(x.size, n), fill_value=0),
    "extract": lambda by, x, n: by(x > 100 - n, x, size=room(len(x), n)),
    "compress": lambda by, keep, x, n: by(keep, x, 0, size=room(len(x), n)),
    "one-hot": lambda by, x, n: by(x.astype(jnp.int32), n, dtype=x.dtype),
    "select": lambda by, keep, x, n: by(keep, x, 0),
    "tril": lambda by, x, k: by(x, k),
}
by_iota = functools.partial(causal_by_iota, value=0)
# The operator, the work, its ways, and the shapes.
LINES = rows.find_coordinates, jnp.flatnonzero, rows.find_by_scatter
SCAN: tuple[tuple[str, str, Sequence[Any], Any], ...] = (
    ("padding", "pad", (dnp.pad, jnp.pad, take_indices), PADDED),
    (NONZERO, "vmap of nonzero", LINES, (*SHORT, *MIDDLE, *LONG, *LONGEST)),
    (NONZERO, "nonzero", [*rows.EDGES.values()], MATRICES),
    (NONZERO, "extract", (dnp.extract, jnp.extract, rows.scatter), ABOVE),
    (NONZERO, "compress", (dnp.compress, jnp.compress, rows.scatter), ROWS),
    ("one_hot", "one-hot", (one_hot, jax.nn.one_hot, one_hot_by_equal), LABELS),
    ("element_wise_if", "select", (dml.element_wise_if, jnp.where), CHOSEN),
    ("diagonal_matrix1", "tril", (dnp.tril, jnp.tril, by_iota), SQUARES),
)
GRADIENTS = ("pad", "extract", "compress", "select", "tril")


def scan(platform: str) -> Iterator[Case]:
    """A case for each shape and direction. Options follow the arrays."""
    times = 1 if platform == "cpu" else 16
    for operator, work, ways, table in SCAN:
        for (length, *sizes), *options, dtype in table:
            shape = (length * times, *sizes)
            masked = work in ("compress", "select")
            share = options[0] / 100 if masked or "nonzero" in work else 1.0
            inputs: Any = (Data(shape, dtype, density=1.0 if masked else share),)
            if masked:
                keep = shape if work == "select" else shape[:1]
                inputs = (Data(keep, BOOL, density=share), *inputs)
            run = {}
            for name, way in zip(("dmljax", "jnp", "jnp other"), ways, strict=False):
                if "constant" not in options or way is not take_indices:
                    run[name] = functools.partial(call, WORK[work], way, options)
            words = [work, *map(str, options)]
            if operator == NONZERO:
                words[1] += " % chosen, room for a quarter more"
            name = f"{', '.join(words)}, {dtype} {shape}"
            case = Case(operator, name, inputs, run, context="shape", rtol=0.02)
            yield case
            if work in GRADIENTS and dtype in (F, B):
                yield gradient(case, [len(inputs) - 1])


def call(work: Any, way: Any, options: Sequence[Any], *arrays: jax.Array) -> Any:
    return work(way, *arrays, *options)


def main(argv: Sequence[str] | None = None) -> int:
    """Compares all shapes with jax.numpy."""
    own = "--rounds", "--device", "--write"
    options = parsed(argv, "benchmarks.shapes", __doc__, *own)
    platform = jax.default_backend()
    cases = (with_plain(case, platform) for case in scan(platform))
    chosen = named(cases, options.only)
    libraries = {name: ALL[name] for name in ("dmljax", "jnp")}
    return time_cases(chosen, libraries, options, TABLE if options.write else "")


if __name__ == "__main__":
    sys.exit(main())
