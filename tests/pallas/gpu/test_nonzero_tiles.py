"""Short lines of NONZERO_COORDINATES on a GPU: several of a tile, or several tiles."""

import numpy as np
import pytest

from dmljax.pallas.gpu import _nonzero_plan
from tests.checks import slow
from tests.pallas.gpu.test_nonzero_coordinates import ROWS, TILE
from tests.pallas.nonzero import assert_finds, lines, plan_of

# The elements of a line, and the lines. A group of threads has a line, or a program has
# it and one chunk for each tile; the last tile is cut.
GROUPS = [(1, 40), (16, 70), (33, 17), (100, 9), (513, 3), (TILE, 7), (TILE + 1, 6)]
GROUPS.append((5 * TILE + 77, 3))


@pytest.mark.parametrize(
    ("elements", "batch", "name", "fill"),
    [(33, 17, "some", 7), (5 * TILE + 77, 3, "some", 0)]
    + [slow(*group, "some", 2**32 - 1) for group in GROUPS]
    + [slow(*group, "all", 0) for group in GROUPS]
    + [slow(*group, "more", None) for group in GROUPS[::3]],
)
def test_short_lines(elements, batch, name, fill):
    """Sparse, dense, empty and full lines side by side, each with a tail of its own.

    A line may have more non-zeros than rows, and the next line fewer.
    """
    plan = plan_of(elements, batch)
    assert isinstance(plan, _nonzero_plan.ShortPlan) or plan.tiles_of_chunk == 1
    found = lines(elements)
    starts = range(0, len(found), batch)
    batches = (np.resize(np.roll(found, -i, 0), (batch, elements)) for i in starts)
    assert_finds(batches, size=ROWS[name](elements), fill=fill)


@pytest.mark.parametrize(
    ("shape", "batch"), [((5, 7), 9), slow((3, 2, 11), 40), slow((30, 100), 6)]
)
def test_columns_of_short_lines(shape, batch):
    random = np.random.default_rng(0)
    tensors = [random.random((batch, *shape)) < density for density in (0.1, 0.7)]
    assert_finds(tensors, rank=len(shape), size=np.prod(shape).item() // 2, fill=9)
