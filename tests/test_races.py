"""No access to shared memory is a race, and every barrier of a kernel prevents one."""

import functools
from unittest import mock

import jax
import numpy as np
import pytest

from dmljax.pallas import WARP, _lockstep, _nonzero_coordinates, _nonzero_plan
from tests import blocks, races

pytestmark = pytest.mark.skipif(
    not blocks.INTERPRETED, reason="a GPU runs the kernels for real"
)
NONE = 99  # the number of no barrier
# Elements and rows: a line of several programs, which claim parts of the tail, and a
# line of one program. With the densities, a warp has one piece of 8 tiles, pieces of 4
# tiles, and pieces of one tile.
LINES = ((100_000, 20_000), (3_000, 3_000))
DENSITIES = (0.01, 0.2, 0.6)


@pytest.mark.slow
def test_no_access_is_a_race_and_every_barrier_is_needed(monkeypatch):
    blocks.put(monkeypatch, {_nonzero_plan: blocks.SMALL[_nonzero_plan]})
    needed = {}
    for elements, rows in LINES:
        watched = []

        @functools.partial(jax.jit, static_argnames="rows")
        def run(x, without, rows, watched=watched):
            def make(programs, threads):
                watched.append(races.Watched(programs, threads, without))
                return watched[-1]

            with mock.patch.object(_lockstep, "Threads", make):
                _nonzero_coordinates.nonzero_coordinates(
                    x, rank=1, size=rows, columns=1, fill=0, interpret=True
                )
            return watched[-1].races.array

        random = np.random.default_rng(0)
        for density in DENSITIES:
            x = (random.random((1, elements)) < density).astype(np.uint8)
            assert run(x, NONE, rows) == 0
            for i, site in enumerate(watched[-1].sites):
                needed[site] = needed.get(site, 0) + run(x, i, rows)
    assert len(needed) >= 9
    assert all(needed.values()), needed


@pytest.mark.parametrize("distance", [1, WARP])
@pytest.mark.parametrize("barrier", ["barrier", "warp_barrier", None])
@pytest.mark.parametrize("stores", [0, 1])
def test_a_race_is_an_access_without_a_barrier(distance, barrier, stores):
    """Each thread stores, and then accesses what another one has stored."""
    t = races.Watched(1, 2 * WARP, NONE)
    memory = t.shared(3 * WARP, np.dtype(np.uint32))
    memory.store(t.thread, t.thread)
    if barrier is not None:
        getattr(t, barrier)()
    other = t.thread ^ distance
    if stores:
        memory.store(other, t.thread)
    else:
        memory.load(other)
    prevented = barrier == "barrier" or (barrier == "warp_barrier" and distance < WARP)
    assert int(t.races.array) == (0 if prevented else 2 * WARP)


def test_a_store_after_loads_of_others_is_a_race():
    t = races.Watched(1, WARP, NONE)
    memory = t.shared(1, np.dtype(np.uint32))
    memory.load(0 * t.thread)
    assert int(t.races.array) == 0
    with t.when(t.thread == 3):
        memory.store(0 * t.thread, t.thread)
    assert int(t.races.array) == 1


def test_threads_that_store_to_one_element_together_race():
    t = races.Watched(1, WARP, NONE)
    t.shared(WARP, np.dtype(np.uint32)).store(t.thread // 2, t.thread)
    assert int(t.races.array) == WARP


def test_programs_have_memories_of_their_own():
    t = races.Watched(2, WARP, NONE)
    memory = t.shared(WARP, np.dtype(np.uint32))
    memory.store(t.thread, t.thread)
    with t.when(t.program == 0):
        t.barrier()
    memory.load(t.thread ^ 1)
    assert int(t.races.array) == WARP  # those of program 1
