"""Races in shared memory, which are found on a CPU.

`_lockstep` takes each step in all threads together, so a missing barrier does not
change its results. `Watched` does the same, and remembers for each element of shared
memory which threads have read it and stored to it. A *race* is an access to an element
that another thread has accessed before, if one of the two stores, and if no barrier is
between them. A barrier of a warp orders what the threads of this warp do, and a barrier
of the program what all threads of the program do.
"""

import dataclasses
import sys
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from dmljax.pallas import WARP, _lockstep

NOBODY = np.uint32(2**32 - 1)


@dataclasses.dataclass(frozen=True)
class Seen:
    """Who has read an element, or who has stored to it, since the last barrier.

    Attributes:
      lowest: the lowest number of a thread or of a warp that has; NOBODY if none has.
      highest: the highest number, plus 1; 0 if none has.
    """

    lowest: _lockstep.Held
    highest: _lockstep.Held

    def add(self, where: Any, number: Any) -> None:
        """Remembers that this one has."""
        low, high = self.lowest, self.highest
        low.array = low.array.at[where].min(number, mode="drop")
        high.array = high.array.at[where].max(number + 1, mode="drop")

    def by_others(self, where: Any, number: Any) -> Any:
        """Whether others than this one have."""
        options = {"mode": "fill", "fill_value": 0}
        low = self.lowest.array.at[where].get(**options)
        high = self.highest.array.at[where].get(**options)
        return (high > 0) & ((low != number) | (high != number + 1))

    def forget(self, where: Any) -> None:
        """Forgets who has."""
        low, high = self.lowest, self.highest
        low.array = jnp.where(where, NOBODY, low.array)
        high.array = jnp.where(where, np.uint32(0), high.array)


@dataclasses.dataclass(frozen=True)
class Accesses:
    """What is known about the elements of a shared memory.

    Attributes:
      warps_read: by warps, since the last barrier of the program.
      warps_stored: likewise.
      threads_read: by threads, since the last barrier of their warp or of the program.
      threads_stored: likewise.
    """

    warps_read: Seen
    warps_stored: Seen
    threads_read: Seen
    threads_stored: Seen


@dataclasses.dataclass(frozen=True)
class Memory(_lockstep.Memory):
    """A shared memory whose accesses are watched."""

    accesses: Any = None

    def words(self, offset: Any, elements: int) -> list[Any]:
        """As `_lockstep.Memory.words`."""
        self._watch(offset, elements, stores=False)
        return super().words(offset, elements)

    def put(self, offset: Any, elements: int, words: Any) -> None:
        """As `_lockstep.Memory.put`."""
        self._watch(offset, elements, stores=True)
        super().put(offset, elements, words)

    def _watch(self, offset: Any, elements: int, *, stores: bool) -> None:
        t, seen = self.threads, self.accesses
        within = lax.broadcasted_iota(np.uint32, (1, 1, elements), 2)
        place = t.number(offset + self.start)[..., None] + within
        place = jnp.where(t.active[..., None], place, NOBODY)
        where = (t.program[..., None], place)
        thread = jnp.broadcast_to(t.thread[..., None], place.shape)
        warp = thread // WARP
        (seen.warps_stored if stores else seen.warps_read).add(where, warp)
        (seen.threads_stored if stores else seen.threads_read).add(where, thread)
        race = seen.warps_stored.by_others(where, warp)
        race |= seen.threads_stored.by_others(where, thread)
        if stores:
            race |= seen.warps_read.by_others(where, warp)
            race |= seen.threads_read.by_others(where, thread)
        t.races.array += jnp.sum(race, dtype=np.uint32)


class Watched(_lockstep.Threads):
    """`_lockstep.Threads`, which counts races.

    Attributes:
      races: how many accesses are races.
      sites: the lines of source code that have a barrier.
      without: the number of the barrier's line that is left out; a number past the last
        leaves out none.
    """

    def __init__(self, programs: int, threads: int, without: Any) -> None:
        super().__init__(programs, threads)
        self.races = self._held(np.zeros((), np.uint32))
        self.watched: list[Accesses] = []
        self.sites: list[tuple[str, int]] = []
        self.without = without

    def _held(self, array: Any) -> _lockstep.Held:
        self.memories.append(_lockstep.Held(jnp.asarray(array)))
        return self.memories[-1]

    def shared(self, size: int, dtype: np.dtype) -> Memory:
        """A memory of its own for each program."""
        memory = super().shared(size, dtype)
        shape = (self.shape[0], size)

        def seen() -> Seen:
            nobody = np.full(shape, NOBODY)
            return Seen(self._held(nobody), self._held(np.zeros(shape, np.uint32)))

        self.watched.append(Accesses(*(seen() for _ in range(4))))
        return Memory(memory.held, self, memory.line, accesses=self.watched[-1])

    def _happens(self) -> Any:
        """Whether a thread takes part in the barrier of the line that called."""
        code = sys._getframe(2)
        site = (code.f_code.co_name, code.f_lineno)
        if site not in self.sites:
            self.sites.append(site)
        return self.active & (self.without != self.sites.index(site))

    def barrier(self) -> None:
        """Forgets all accesses of the programs."""
        programs = jnp.any(self._happens(), 1, keepdims=True)
        for accesses in self.watched:
            for field in dataclasses.fields(accesses):
                getattr(accesses, field.name).forget(programs)

    def warp_barrier(self) -> None:
        """Forgets which threads accessed what, if they are all of one warp.

        If threads of two warps have accessed an element, a store of either is a race
        that only a barrier of the program prevents.
        """
        warps = jnp.any(self._happens().reshape(self.shape[0], -1, WARP), 2)
        for accesses in self.watched:
            for seen in (accesses.threads_read, accesses.threads_stored):
                low = seen.lowest.array // WARP
                high = (seen.highest.array - 1) // WARP
                low = jnp.minimum(low, warps.shape[1] - 1)
                happens = jnp.take_along_axis(warps, low.astype(np.int32), 1)
                seen.forget(happens & (low == high))
