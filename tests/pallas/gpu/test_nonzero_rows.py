"""The rows of NONZERO_COORDINATES on a GPU: columns, fewer rows, more rows, the tail.

The counts of `lines` cut the values that a warp stores at once.
"""

import math

import numpy as np
import pytest

from dmljax.pallas.gpu import _nonzero_plan as constants
from tests.checks import slow
from tests.pallas.gpu.test_nonzero_coordinates import ROWS
from tests.pallas.nonzero import assert_finds, lines, plan_of


# A warp stores a fixed number of values at once: whole rows, or a part of a row.
@pytest.mark.parametrize("columns", [3, *map(slow, (1, 2, 8))])
def test_columns(columns):
    """A column for each dimension but the first. The line has several chunks."""
    sizes = [2, 3, 1, 2, 1, 2, 1][: columns - 1]
    chunks = 2 * constants.CHUNK * constants.TILE
    shape = (1, *sizes, chunks // math.prod(sizes) + 5)
    tensors = [line.reshape(shape) for line in lines(math.prod(shape))]
    assert_finds(tensors, rank=columns + 1, columns=columns)


@pytest.mark.parametrize(
    ("name", "fill", "columns"),
    [
        ("more", 2**32 - 1, 1),
        slow("half", 7, 1),
        slow("one", 0, 1),
        slow("all but one", 0, 1),
        slow("half", 3, 3),
        slow("more", 3, 3),
        slow("half", None, 1),
        slow("more", None, 1),
    ],
)
def test_rows(name, fill, columns):
    """A line has several programs. The share of the last program is cut."""
    elements = constants.WARPS * constants.CHUNK * constants.TILE + 600
    shape = (2, 3, elements // 6) if columns == 3 else (elements,)
    elements = math.prod(shape)
    assert plan_of(elements).programs > 1
    tensors = [line.reshape(shape) for line in lines(elements)]
    assert_finds(tensors, rank=len(shape), size=ROWS[name](elements), fill=fill)


@pytest.mark.parametrize(
    ("name", "cut"), [("half", 9), *(slow(*c) for c in (("all", 1), ("one", 9)))]
)
def test_rows_of_long_lines(name, cut):
    """Each line has a tail of its own, and begins at an aligned address or not."""
    elements = constants.WARPS * constants.CHUNK * constants.TILE + cut
    of_line = lines(elements)
    batches = (np.stack(of_line[i : i + 3]) for i in range(0, len(of_line) - 2, 2))
    assert_finds(batches, size=ROWS[name](elements))
