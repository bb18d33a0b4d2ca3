"""The work that we time: `cases` yields every case of the ledger.

Programs of users are in `benchmarks.programs`, and NONZERO_COORDINATES alone is here.
"""

import functools
from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

import dmljax
from benchmarks import calls
from benchmarks.case import WITHOUT_KERNEL, Case
from benchmarks.data import Data
from benchmarks.forms import with_plain
from benchmarks.programs import programs

# Elements of small arrays: they show the cost of a launch.
SMALL = (2**10, 2**14, 2**18)
# The share of the elements that is not zero, and the share that has room.
DENSITIES = (0.02, 1 / 32), (0.1, 1 / 8), (0.1, 1), (0.5, 1)


def cases(platform: str, elements: int) -> Iterator[Case]:
    """All cases of a platform. Large arrays have about `elements` elements."""
    for case in (*programs(platform, elements), *alone(elements), *calls.cases()):
        yield with_plain(case, platform)


def alone(elements: int) -> Iterator[Case]:
    """Stored arrays of all widths, with all rows and with some."""
    for dtype in ("bool", "uint8", "bfloat16", "float32"):
        for density, room in DENSITIES:
            yield nonzero((elements,), dtype, density, room)
    for density in (0.001, 1.0):
        yield nonzero((elements,), "float32", density)
    for size in SMALL:
        if size < elements:
            yield nonzero((size,), "float32", 0.1)


def nonzero(shape: Any, dtype: str, density: float, room: float = 1) -> Case:
    """Finds the non-zero elements; there is room for this share of them."""
    x = Data(shape, dtype, high=2 if dtype == "bool" else 101, density=density)
    rows = int(x.size * room)
    find = functools.partial(
        dmljax.nonzero_coordinates, size=rows if room < 1 else None
    )
    functions: dict[str, Any] = {
        "dmljax": find,
        WITHOUT_KERNEL: functools.partial(find, implementation="xla"),
        "jnp": functools.partial(jnp.argwhere, size=rows, fill_value=0),
        "numpy": np.argwhere,
        "torch": _torch_argwhere,
    }
    if dtype in ("bool", "uint8"):
        functions["cub"] = lambda x: ("indices", rows, np.uint32)
    words = f"{dtype} {shape}, {density:.1%} non-zero"
    words += f", {rows} rows" if room < 1 else ""
    return Case("nonzero_coordinates", words, (x,), functions)


def _torch_argwhere(x: Any) -> Any:
    import torch

    return torch.argwhere(x)
