"""Finds races in shared memory on a CPU.

`lockstep` takes each step in all threads together, so a missing barrier does not change
its results. `Watched` takes the same steps, and remembers for each element of shared
memory the threads that have loaded or stored it. In a *race*, two threads access one
element with no barrier between them, and at least one thread stores. A barrier of a
warp orders the accesses of its threads, and a barrier of the program orders the
accesses of all its threads.

All threads must reach a barrier together, and all threads of a warp must reach
operations such as `warp_sum` together. If only some of them do, the barrier or the
operation is *partial*. A GPU may then wait without end.

`Watched` also counts how often each element of an output is stored. Two programs must
not store the same element.
"""

import dataclasses
import sys
from typing import Any

import numpy as np

from dmljax.pallas.gpu import WARP
from tests.pallas import lockstep

NOBODY = np.uint32(2**32 - 1)
# We remember accesses twice: by warp since the last barrier of the program, and by
# thread since the last barrier of the warp or of the program. A scope is the number of
# threads in a group.
SCOPES = (WARP, 1)


@dataclasses.dataclass(frozen=True)
class Accesses:
    """The threads that accessed elements: (scopes, loads or stores, programs, size)."""

    lowest: np.ndarray  # the lowest index of a warp or thread; or NOBODY
    highest: np.ndarray  # the highest index, plus 1; or 0

    def forget(self, where):
        """Forgets the accesses to these elements."""
        where = np.broadcast_to(where, self.lowest.shape)
        self.lowest[where] = NOBODY
        self.highest[where] = 0


def _active(memory, offset, elements):
    """The program and the thread of each active access, and the element's offset.

    Accesses outside of the memory are left out.
    """
    t = memory.threads
    within = np.arange(elements, dtype=np.uint32)
    offsets = t.number(offset + memory.start)[..., None] + within
    where = np.nonzero(t.active[..., None] & (offsets < memory.size))
    return where[0], where[1], offsets[where]


@dataclasses.dataclass(frozen=True)
class Memory(lockstep.Memory):
    """A shared memory that records its accesses."""

    accesses: Any = None

    def words(self, offset, elements):
        self._watch(offset, elements, stores=False)
        return super().words(offset, elements)

    def store(self, offset, *words):
        self._watch(offset, len(words), stores=True)
        super().store(offset, *words)

    def _watch(self, offset, elements, *, stores):
        program, thread, offsets = _active(self, offset, elements)
        place = program * self.size + offsets
        race = False
        for scope, size in enumerate(SCOPES):
            number = thread.astype(np.uint32) // size
            low = self.accesses.lowest[scope].reshape(2, -1)
            high = self.accesses.highest[scope].reshape(2, -1)
            np.minimum.at(low[int(stores)], place, number)
            np.maximum.at(high[int(stores)], place, number + 1)
            for kind in (0, 1) if stores else (1,):
                first, last = low[kind, place], high[kind, place]
                race |= (last > 0) & ((first != number) | (last != number + 1))
        self.threads.races += np.count_nonzero(race)  # a race for each element


@dataclasses.dataclass(frozen=True)
class Output(lockstep.Memory):
    """Counts the stores to a memory of all programs."""

    stores: Any = None

    def store(self, offset, *words):
        *_, offsets = _active(self, offset, len(words))
        np.add.at(self.stores, offsets, 1)
        super().store(offset, *words)


def _of_a_warp(operation):
    """The operation, which all threads of a warp must reach."""

    def watched(t, *arguments):
        t._together(WARP)
        return operation(t, *arguments)

    return watched


class Watched(lockstep.Threads):
    """`lockstep.Threads` that count races, partial operations, and stores.

    `without` is the index in `sites` of a barrier that we leave out. A number past the
    last barrier leaves out none.
    """

    def __init__(self, programs, threads, without):
        super().__init__(programs, threads)
        self.races = 0  # accesses that are races
        self.partial = 0  # partial barriers and partial operations of a warp
        # For each memory of all programs, the number of stores to each element.
        self.stores: list[np.ndarray] = []
        self.watched: list[Accesses] = []
        # The file and the line of each barrier so far.
        self.sites: list[tuple[str, int]] = []
        self.without = without

    def memory(self, array):
        self.stores.append(np.zeros(array.size, np.uint32))
        return Output(array[None], self, stores=self.stores[-1])

    def shared(self, size, dtype):
        memory = super().shared(size, dtype)
        shape = (len(SCOPES), 2, self.shape[0], size)
        self.watched.append(
            Accesses(np.full(shape, NOBODY), np.zeros(shape, np.uint32))
        )
        return Memory(memory.array, self, memory.row, accesses=self.watched[-1])

    def _together(self, threads):
        """Returns whether any thread of each group of `threads` threads is here."""
        groups = self.active.reshape(self.shape[0], -1, threads)
        some = groups.any(2)
        self.partial += np.count_nonzero(some & ~groups.all(2))
        return some

    def _at_barrier(self, threads):
        """Returns `_together` for the calling barrier; all False if it is left out."""
        frame = sys._getframe(2)
        site = (frame.f_code.co_filename, frame.f_lineno)
        if site not in self.sites:
            self.sites.append(site)
        return self._together(threads) & (self.without != self.sites.index(site))

    def barrier(self):
        programs = self._at_barrier(self.threads)  # (programs, 1)
        for accesses in self.watched:
            accesses.forget(programs)

    def warp_barrier(self):
        """Does not order the accesses of these warps with those of other warps."""
        warps = self._at_barrier(WARP)
        for accesses in self.watched:
            low = accesses.lowest[1]
            warp = np.minimum(low // WARP, warps.shape[1] - 1)
            reached = warps[np.arange(len(warps))[:, None], warp]
            accesses.forget(np.stack([np.zeros_like(reached), reached]))

    warp_scan = _of_a_warp(lockstep.Threads.warp_scan)
    warp_sum = _of_a_warp(lockstep.Threads.warp_sum)
    shuffle = _of_a_warp(lockstep.Threads.shuffle)
