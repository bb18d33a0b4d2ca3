"""How the elements of NONZERO_COORDINATES are divided among programs."""

import numpy as np
import pytest

from dmljax.pallas.gpu import WARP
from dmljax.pallas.gpu import _nonzero_plan as constants
from tests.pallas.nonzero import plan_of

pytestmark = pytest.mark.usefixtures("real_blocks")
# The shared memory of a processor of an H200, for all programs on it.
SHARED_MEMORY = 227 * 1024
random = np.random.default_rng(0)


def plans():
    """Plans of few and of many elements, and of batches."""
    for power in np.linspace(0, 32, 200):
        elements = int(2**power)
        batch = int(2 ** random.uniform(0, 32 - power))
        rows = int(elements * random.choice([0.001, 0.1, 0.5, 1])) or 1
        for lines in {1, batch}:
            yield plan_of(elements, lines=lines, rows=rows)


def test_programs_run_together():
    """Four programs fit into a processor's memory, and a line has the fewest rounds.

    A program waits for the posts of all programs before it, so many programs would wait
    long.
    """
    chunk = constants.WARPS * constants.CHUNK * constants.TILE
    most = constants.PROGRAMS * constants.MOST_CHUNKS * chunk
    for plan in plans():
        used = sum(size * np.dtype(dtype).itemsize for size, dtype in plan.shared)
        assert 4 * used <= SHARED_MEMORY
        if isinstance(plan, constants.ShortPlan):
            continue
        assert plan.warps * plan.chunks_of_warp <= WARP
        assert plan.programs_of_line <= 2**15
        if plan.lines == 1:
            rounds = -(-plan.programs // constants.PROGRAMS)
            assert rounds == -(-plan.elements // most)


def test_loads_are_aligned():
    """A thread loads a word for each tile of a chunk; of a short line, it loads one."""
    for plan in plans():
        words = plan.padded_elements // 32
        if isinstance(plan, constants.ShortPlan):
            assert words == plan.group >= plan.elements / 32
            assert plan.lines_of_tile * plan.rows <= constants.TILE  # the warp's list
        else:
            assert words % plan.tiles_of_chunk == 0
            assert 0 <= plan.padded_elements - plan.elements < plan.tiles_of_chunk * 32
