"""The rows of NONZERO_COORDINATES on a GPU: columns, fewer rows, more rows, the tail.

The counts of `lines` cut the values that a warp stores at once.
"""

import math

import numpy as np
import pytest

from dmljax.pallas.gpu import _nonzero_plan as constants
from tests.checks import slow
from tests.pallas.nonzero import assert_finds, lines, plan_of


# A warp stores a fixed number of values at once: whole rows, or a part of a row.
@pytest.mark.parametrize("columns", [3, *map(slow, (1, 2, 8))])
def test_columns(columns):
    """A column for each dimension but the first. The last dimension is a share long."""
    sizes = [2, 3, 1, 2, 1, 2, 1][: columns - 1]
    share = constants.WARPS * constants.TILE
    shape = (1, *sizes, share // math.prod(sizes) + 5)
    found = lines(plan_of(math.prod(shape), sizes=shape[1:]))
    tensors = [line.reshape(shape) for line in found]
    assert_finds(tensors, rank=columns + 1, columns=columns)


# How many rows a call asks for. There may be more than elements.
ROWS = {
    "one": lambda n: 1,
    "half": lambda n: n // 2,
    "all": lambda n: None,
    "all but one": lambda n: n - 1,
    "more": lambda n: 2 * n + 3,
}


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
    elements = constants.WARPS * constants.TILE * 4 + 600
    shape = (2, 3, elements // 6) if columns == 3 else (elements,)
    elements = math.prod(shape)
    rows = ROWS[name](elements)
    plan = plan_of(elements, rows=rows, sizes=shape, fill=fill)
    assert plan.programs > 1
    tensors = [line.reshape(shape) for line in lines(plan)]
    assert_finds(tensors, rank=len(shape), size=rows, fill=fill)


@pytest.mark.parametrize(
    ("name", "cut"),
    [
        ("all", 1),
        ("half", 9),
        slow("all", 0),
        slow("all", 4),
        slow("one", 9),
        slow("more", 9),
    ],
)
def test_rows_of_lines(name, cut):
    """Each line has a tail of its own, filled with zeros by default.

    A line has several programs. It may have more non-zeros than rows, and the next line
    fewer. The line and its rows begin at aligned addresses or not.
    """
    elements = (constants.WARPS + 2) * constants.TILE + cut
    rows = ROWS[name](elements)
    of_line = lines(plan_of(elements, batch=3, rows=rows))
    assert_finds(
        (np.stack(of_line[i : i + 3]) for i in range(0, len(of_line) - 2, 2)), size=rows
    )
