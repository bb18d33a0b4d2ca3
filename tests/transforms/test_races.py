"""No access to shared memory is a race, and every barrier of the kernels prevents one.

Only the kernel of NONZERO_COORDINATES has barriers. It stores each row at most once.
"""

import collections
import math
import pathlib
from unittest import mock

import jax
import numpy as np
import pytest

from dmljax import _nonzero_kernels
from dmljax.pallas.gpu import WARP, _nonzero_plan
from tests.pallas import blocks, lockstep
from tests.transforms import races

pytestmark = pytest.mark.skipif(
    not blocks.SIMULATED, reason="a GPU runs the kernels for real"
)
KERNELS = pathlib.Path(_nonzero_plan.__file__).parent.glob("_nonzero_*.py")
# (1) A line of several programs with more non-zeros than rows; (2) a line of one
# program; (3) two tensors of three dimensions, without a tail; (4) short lines, several
# of a tile; (5) lines of several tiles, a warp for each.
CALLS = (
    ((1, 100_000), {"rank": 1, "size": 20_000, "fill": 0}),
    ((1, 3_000), {"rank": 1, "size": 3_000, "fill": 0}),
    ((2, 30, 40, 50), {"rank": 3, "size": 60_000, "fill": None}),
    ((70, 9, 13), {"rank": 2, "size": 30, "fill": 0}),
    ((7, 3_000), {"rank": 1, "size": 1_000, "fill": 0}),
)
DENSITIES = (0.01, 1, 0.2, 0.6)  # of the quarters of an array


@pytest.mark.slow
@pytest.mark.usefixtures("simulator")
def test_no_access_is_a_race_and_every_barrier_is_needed():
    """Planted faults: a kernel without one of its barriers."""
    random = np.random.default_rng(0)
    needed = collections.Counter()
    for shape, options in CALLS:
        densities = np.repeat(DENSITIES, math.prod(shape) // 4 + 1)
        x = random.random(shape) < np.resize(densities, shape)
        t = _watched(x, None, **options)
        assert (t.races, t.partial) == (0, 0)
        assert max(t.stores) == 1
        for site in t.sites:
            needed[site] += _watched(x, site, **options).races
    assert all(needed.values()), needed
    written = {
        (str(path), number)
        for path in KERNELS
        for number, text in enumerate(path.read_text().splitlines(), 1)
        if "barrier()" in text
    }
    assert set(needed) == written


def _watched(x, without, rank, **options):
    """The threads of a call, which is one launch, as it has left them."""
    watched = []

    def make(programs, threads):
        watched.append(races.Watched(programs, threads, without))
        return watched[-1]

    with mock.patch.object(lockstep, "Threads", make):
        options |= {"rank": rank, "columns": rank}
        form = _nonzero_kernels.KERNELS["cpu"](x, **options)
        jax.block_until_ready(form(x, **options))
    (found,) = watched
    return found


# THE WATCHER


def test_stores_of_all_programs_to_an_element_are_counted():
    t = races.Watched(2, WARP)
    memory = t.memory(np.zeros(WARP + 1, np.uint32)).part(1)
    with t.when(t.thread < 3):
        memory.store(t.thread, t.thread)
    assert t.stores.tolist() == [2, 2, 2]


# The arguments of an operation behind the thread's number.
OPERATIONS = {"warp_sum": (), "warp_scan": (), "shuffle": (0,)}


@pytest.mark.parametrize("name", ["barrier", "warp_barrier", *OPERATIONS])
@pytest.mark.parametrize("active", [1, WARP, 2 * WARP])
def test_operations_that_only_some_threads_reach_are_partial(name, active):
    t = races.Watched(1, 2 * WARP)
    arguments = (t.thread, *OPERATIONS[name]) if name in OPERATIONS else ()
    with t.when(t.thread < active):
        getattr(t, name)(*arguments)
    threads = 2 * WARP if name == "barrier" else WARP
    assert t.partial == (1 if active % threads else 0)
