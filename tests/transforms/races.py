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

import jax.numpy as jnp
import numpy as np
from jax import lax

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

    lowest: lockstep.Held  # the lowest index of a warp or thread; or NOBODY
    highest: lockstep.Held  # the highest index, plus 1; or 0

    def forget(self, where):
        """Forgets the accesses to these elements."""
        self.lowest.array = jnp.where(where, NOBODY, self.lowest.array)
        self.highest.array = jnp.where(where, np.uint32(0), self.highest.array)


def _offsets(memory, offset, elements):
    """The offsets that each thread accesses; NOBODY for inactive threads."""
    t = memory.threads
    within = lax.broadcasted_iota(np.uint32, (1, 1, elements), 2)
    offsets = t.number(offset + memory.start)[..., None] + within
    return jnp.where(t.active[..., None], offsets, NOBODY)


@dataclasses.dataclass(frozen=True)
class Memory(lockstep.Memory):
    """A shared memory that records its accesses."""

    accesses: Any = None

    def words(self, offset, elements):
        self._watch(offset, elements, stores=False)
        return super().words(offset, elements)

    def store(self, offset, *words, elements=None):
        self._watch(offset, elements or len(words), stores=True)
        super().store(offset, *words, elements=elements)

    def _watch(self, offset, elements, *, stores):
        t = self.threads
        low = self.accesses.lowest
        high = self.accesses.highest
        where = (t.program[..., None], _offsets(self, offset, elements))
        race = False
        for scope, size in enumerate(SCOPES):
            number = t.thread[..., None] // size
            at = (scope, int(stores), *where)
            low.array = low.array.at[at].min(number, mode="drop")
            high.array = high.array.at[at].max(number + 1, mode="drop")
            for kind in (0, 1) if stores else (1,):
                options = {"mode": "fill", "fill_value": 0}
                first = low.array.at[(scope, kind, *where)].get(**options)
                last = high.array.at[(scope, kind, *where)].get(**options)
                race |= (last > 0) & ((first != number) | (last != number + 1))
        t.races.array += jnp.sum(race, dtype=np.uint32)  # a race for each element


@dataclasses.dataclass(frozen=True)
class Output(lockstep.Memory):
    """Counts the stores to a memory of all programs."""

    stores: Any = None

    def store(self, offset, *words, elements=None):
        row = self.threads.number(self.row)[..., None]
        where = (row, _offsets(self, offset, elements or len(words)))
        self.stores.array = self.stores.array.at[where].add(1, mode="drop")
        super().store(offset, *words, elements=elements)


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
        self.races = self._held(np.zeros((), np.uint32))  # accesses that are races
        # Partial barriers and partial operations of a warp.
        self.partial = self._held(np.zeros((), np.uint32))
        # For each memory of all programs, the number of stores to each element.
        self.stores: list[lockstep.Held] = []
        self.watched: list[Accesses] = []
        # The file and the line of each barrier so far.
        self.sites: list[tuple[str, int]] = []
        self.without = without

    def _held(self, array):
        self.memories.append(lockstep.Held(jnp.asarray(array)))
        return self.memories[-1]

    def memory(self, array):
        memory = super().memory(array)
        self.stores.append(self._held(np.zeros(array.shape, np.uint32)))
        return Output(memory.held, self, 0, stores=self.stores[-1])

    def shared(self, size, dtype):
        memory = super().shared(size, dtype)
        shape = (len(SCOPES), 2, self.shape[0], size)
        low = self._held(np.full(shape, NOBODY))
        high = self._held(np.zeros(shape, np.uint32))
        self.watched.append(Accesses(low, high))
        return Memory(memory.held, self, memory.row, accesses=self.watched[-1])

    def _together(self, threads):
        """Returns whether any thread of each group of `threads` threads is here."""
        groups = self.active.reshape(self.shape[0], -1, threads)
        some = jnp.any(groups, 2)
        self.partial.array += jnp.sum(some & ~jnp.all(groups, 2), dtype=np.uint32)
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
            low = accesses.lowest.array[1]
            warp = jnp.minimum(low // WARP, warps.shape[1] - 1).astype(np.int32)
            reached = jnp.take_along_axis(warps[None], warp, 2)
            accesses.forget(jnp.stack([jnp.zeros_like(reached), reached]))

    warp_scan = _of_a_warp(lockstep.Threads.warp_scan)
    warp_sum = _of_a_warp(lockstep.Threads.warp_sum)
    shuffle = _of_a_warp(lockstep.Threads.shuffle)
    shuffle_xor = _of_a_warp(lockstep.Threads.shuffle_xor)
