"""No access to shared memory is a race, and every barrier of the kernels prevents one.

Only the kernel of NONZERO_COORDINATES has barriers. It stores each row at most once.

`lockstep` takes each step in all threads together, so a missing barrier does not change
its results. `Watched` takes the same steps, and notes each access to an element of a
memory: its thread, and how many barriers the program and the warp have passed. In a
*race*, two threads access one element of shared memory with no barrier between them,
and at least one thread stores. A barrier of a warp orders the accesses of its threads,
and a barrier of the program orders the accesses of all its threads.

`Watched` also counts how often each element of an output is stored. Two programs must
not store the same element.
"""

import collections
import math
import pathlib
import sys
from unittest import mock

import jax
import numpy as np
import pytest

from dmljax.pallas.gpu import WARP, _nonzero_plan
from tests.pallas import blocks, lockstep

pytestmark = pytest.mark.skipif(
    not blocks.SIMULATED, reason="a GPU runs the kernels for real"
)
KERNELS = pathlib.Path(_nonzero_plan.__file__).parent.glob("_nonzero_*.py")
# Shapes, ranks, sizes and fills: (1) a line of several programs with more non-zeros
# than rows; (2) a line of one program; (3) two tensors of three dimensions, without a
# tail; (4) short lines, several of a tile; (5) lines of several tiles, a warp for each.
CALLS = (
    ((1, 100_000), 1, 20_000, 0),
    ((1, 3_000), 1, 3_000, 0),
    ((2, 30, 40, 50), 3, 60_000, None),
    ((70, 9, 13), 2, 30, 0),
    ((7, 3_000), 1, 1_000, 0),
)
DENSITIES = (0.01, 1, 0.2, 0.6)  # of the quarters of an array


# THE WATCHER


class Memory(lockstep.Memory):
    """A memory that notes its accesses."""

    def words(self, offset, elements):
        self._note(offset, elements, stores=False)
        return super().words(offset, elements)

    def store(self, offset, *words):
        self._note(offset, len(words), stores=True)
        super().store(offset, *words)

    def _note(self, offset, elements, *, stores):
        """Notes the accesses of active threads, but not those outside of the memory."""
        t = self.threads
        within = np.arange(elements, dtype=np.uint32)
        offsets = t.number(offset + self.start)[..., None] + within
        where = np.nonzero(t.active[..., None] & (offsets < self.size))
        program, thread, _ = where
        warp = thread // WARP
        rows = np.broadcast_arrays(
            t.memories.setdefault(id(self.array), len(t.memories)),
            program,
            offsets[where],
            t.passed[program, 0],
            warp,
            t.passed_by_warp[program, warp],
            thread,
            stores,
        )
        accesses = t.of_one if np.ndim(self.row) else t.of_all
        accesses.append(np.stack(rows))


def _grouped(rows):
    """The keys of different columns, where each is first, and that of each column."""
    key = np.ravel_multi_index(rows, rows.max(1) + 1)
    return np.unique(key, return_index=True, return_inverse=True)


class Watched(lockstep.Threads):
    """`lockstep.Threads` that count races and stores.

    `without` is the site of a barrier that we leave out.
    """

    memory_of = Memory

    def __init__(self, programs, threads, without=None):
        super().__init__(programs, threads)
        self.memories: dict[int, int] = {}  # their indices
        # The accesses to memories of all programs, and to memories of one program:
        # arrays of 8 rows, with a column for each access.
        self.of_all: list[np.ndarray] = []
        self.of_one: list[np.ndarray] = []
        # How many barriers each program has passed, and how many each warp.
        self.passed = np.zeros((programs, 1), int)
        self.passed_by_warp = np.zeros((programs, threads // WARP), int)
        # The file and the line of each barrier so far.
        self.sites: set[tuple[str, int]] = set()
        self.without = without

    @property
    def races(self):
        """How many elements warps, or threads of a warp, access without a barrier.

        An element counts again after a barrier.
        """
        rows = np.concatenate(self.of_one, 1)
        found = 0
        for actor in (4, 6):  # the rows with warps, and with threads
            _, first, group = _grouped(rows[:actor])
            others = np.bincount(group, rows[actor] != rows[actor, first][group])
            stores = np.bincount(group, rows[-1])
            found += np.count_nonzero((others > 0) & (stores > 0))
        return found

    @property
    def stores(self):
        """How often each element of an output is stored, if it is accessed."""
        rows = np.concatenate(self.of_all, 1)
        *_, group = _grouped(rows[[0, 2]])
        return np.bincount(group, rows[-1])

    def barrier(self):
        self.passed += super().barrier() & self._is_kept()

    def warp_barrier(self):
        self.passed_by_warp += super().warp_barrier() & self._is_kept()

    def _is_kept(self):
        """Whether the calling barrier is not left out."""
        frame = sys._getframe(2)
        site = frame.f_code.co_filename, frame.f_lineno
        self.sites.add(site)
        return site != self.without


# THE KERNELS


@pytest.mark.slow
def test_no_access_is_a_race_and_every_barrier_is_needed():
    """Planted faults: a kernel without one of its barriers."""
    random = np.random.default_rng(0)
    needed = collections.Counter()
    for shape, *static in CALLS:
        densities = np.repeat(DENSITIES, math.prod(shape) // 4 + 1)
        x = random.random(shape) < np.resize(densities, shape)
        t = _watched(x, None, *static)
        assert (t.races, max(t.stores)) == (0, 1)
        for site in t.sites:
            needed[site] += _watched(x, site, *static).races
    assert all(needed.values()), needed
    written = {
        (str(path), number)
        for path in KERNELS
        for number, text in enumerate(path.read_text().splitlines(), 1)
        if "barrier()" in text
    }
    assert set(needed) == written


def _watched(x, without, rank, size, fill):
    """The threads of a call, which is one launch, as it has left them."""
    watched = []

    def make(programs, threads):
        watched.append(Watched(programs, threads, without))
        return watched[-1]

    with mock.patch.object(lockstep, "Threads", make):
        static = {"rank": rank, "size": size, "columns": rank, "fill": fill}
        jax.block_until_ready(lockstep.kernel_of(x, **static)(x, **static))
    (found,) = watched
    return found


# FAULTS, as the watcher counts them


def test_stores_of_all_programs_to_an_element_are_counted():
    t = Watched(2, WARP)
    memory = t.memory(np.zeros(WARP + 1, np.uint32)).part(1)
    with t.when(t.thread < 3):
        memory.store(t.thread, t.thread)
    assert t.stores.tolist() == [2, 2, 2]
