"""The rows of NONZERO_COORDINATES on a GPU: short and long lines, columns, tails.

The counts of `lines` cut the values that a warp stores at once.
"""

import math

import numpy as np
import pytest

from dmljax.pallas.gpu._nonzero_plan import TILE
from tests.checks import slow
from tests.pallas.nonzero import assert_finds, lines

MOST = 2**32 - 1
# How many rows a call asks for. There may be more than elements.
ROWS = {
    "one": lambda n: 1,
    "some": lambda n: n // 4 + 1,
    "half": lambda n: n // 2,
    "all": lambda n: None,
    "all but one": lambda n: n - 1,
    "more": lambda n: 2 * n + 3,
}
# The sizes of a tensor, and the tensors. In short lines a group of threads has a line,
# or a program has it and one chunk for each tile; the last tile is cut.
SHORT = [
    ((1,), 40),
    ((16,), 70),
    ((3, 11), 17),
    ((100,), 9),
    ((3, 9, 19), 3),
    ((TILE,), 7),
    ((3, 1733), 3),
]
# Long lines have several programs.
LONG = (40_009,), 3
COLUMNS = (1, 2, 3, 1, 2, 1, 2, 1700), 3


@pytest.mark.parametrize(
    ("shape", "batch", "name", "fill"),
    [
        (*SHORT[2], "some", 7),
        (*SHORT[-1], "some", 0),
        ((1, 3, 2, 2999), 1, "half", 3),
    ]
    + [slow(*tensors, "some", MOST) for tensors in (*SHORT, COLUMNS)]
    + [slow(*tensors, "all", 0) for tensors in SHORT]
    + [slow(*tensors, "more", None) for tensors in SHORT[::3]]
    + [
        slow(*LONG, *more)
        for more in zip(ROWS, (0, 7, None, 0, None, MOST), strict=True)
    ],
)
def test_rows(shape, batch, name, fill):
    """Sparse, dense, empty and full lines side by side, each with a tail of its own.

    A line may have more non-zeros than rows, and the next line fewer.
    """
    elements = math.prod(shape)
    found = np.reshape(lines(elements), (-1, *shape))
    starts = range(0, len(found), batch)
    batches = (np.resize(np.roll(found, -i, 0), (batch, *shape)) for i in starts)
    assert_finds(batches, rank=len(shape), size=ROWS[name](elements), fill=fill)
