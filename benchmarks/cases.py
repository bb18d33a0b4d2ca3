"""The work that we time: `cases` yields every case of the ledger.

`benchmarks.programs` has the programs of users. This file has operators alone.
"""

import functools
from collections.abc import Iterator
from typing import Any

import dmljax
from benchmarks import calls, oracles, others
from benchmarks.case import FORMS, Case
from benchmarks.data import Data
from benchmarks.forms import with_plain
from benchmarks.programs import programs
from benchmarks.programs.padding import IMAGES

# Bytes of small arrays. The smallest ones show the cost of a launch.
SMALL = (2**12, 2**16, 2**20, 2**24)
TYPES = ("float32", "float16", "uint8")


def cases(platform: str, elements: int) -> Iterator[Case]:
    """All cases of a platform. Large arrays have about `elements` elements."""
    for case in (*programs(platform, elements), *alone(elements), *calls.cases()):
        yield with_plain(case, platform)


def alone(elements: int) -> Iterator[Case]:
    """NONZERO_COORDINATES, almost empty to full, with all rows and with some."""
    line, (image,) = (elements,), IMAGES[elements]
    for dtype in TYPES:
        for density in (0.001, 0.01, 0.1, 0.5, 1.0):
            yield nonzero(line, dtype, density)
        for density in (0.001, 0.01, 0.1):
            yield nonzero(line, dtype, density, size=int(1.25 * density * elements))
        yield nonzero(image, dtype, 0.1)
    for shape in (line, image):
        yield nonzero(shape, "float32", 0.01, size=elements // 16)
    yield nonzero(line, "float32", 0.01, size=min(1024, elements))
    yield nonzero(line, "float32", 0.01, undefined=True)
    for size in SMALL:
        if size < elements:
            yield nonzero((size // 4,), "float32", 0.1)


def nonzero(
    shape: tuple[int, ...],
    dtype: str,
    density: float,
    *,
    undefined: bool = False,
    size: int | None = None,
) -> Case:
    """Finds the non-zero elements; `density` is their share."""
    x = Data(shape, dtype, density=density)
    rows = Data((size or x.size, len(shape)), "uint32")
    written = x.nonzeros() if undefined else rows.shape[0]
    words = f"{dtype} {shape}, {density:.1%} non-zero"
    words += ", undefined tail" if undefined else ""
    options: Any = {"fill": None if undefined else 0, "size": size}
    ours = functools.partial(dmljax.nonzero_coordinates, **options)
    return Case(
        "nonzero_coordinates",
        words + (f", {size} rows" if size else ""),
        (x,),
        rows,
        {
            "dmljax": ours,
            **{f: functools.partial(ours, implementation=f.split()[1]) for f in FORMS},
            **others.nonzero_coordinates(dtype, undefined=undefined, size=size),
        },
        functools.partial(oracles.nonzero_coordinates, undefined=undefined, size=size),
        # The count has 4 bytes, as a coordinate has.
        moved=x.nbytes + (written * len(shape) + 1) * 4,
    )
