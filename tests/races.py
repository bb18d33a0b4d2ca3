"""Races in shared memory, which are found on a CPU.

`_lockstep` takes each step in all threads together, so a missing barrier does not
change its results. `Watched` does the same, and remembers for each element of shared
memory which threads have read it and stored to it. A *race* is two accesses of
different threads to one element, of which one is a store, with no barrier between them.
A barrier of a warp orders what the threads of this warp do, and a barrier of the
program what all threads of the program do.

All threads must reach a barrier together, and all threads of a warp must reach
operations such as `warp_sum` together. What only some of them reach is *partial*. A GPU
may then wait without end.

`Watched` also counts how often each element of an output is stored. Two programs must
not store the same one.
"""

import dataclasses
import sys
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from dmljax.pallas.gpu import WARP, _lockstep

NOBODY = np.uint32(2**32 - 1)


@dataclasses.dataclass(frozen=True)
class Seen:
    """The threads, or the warps, that have accessed an element since a barrier.

    Attributes:
      lowest: for each element, their lowest number; NOBODY if there are none.
      highest: for each element, their highest number, plus 1; 0 if there are none.
    """

    lowest: _lockstep.Held
    highest: _lockstep.Held

    def add(self, where: Any, number: Any) -> None:
        """Remembers that the thread or warp of this number has accessed an element."""
        low, high = self.lowest, self.highest
        low.array = low.array.at[where].min(number, mode="drop")
        high.array = high.array.at[where].max(number + 1, mode="drop")

    def by_others(self, where: Any, number: Any) -> Any:
        """Whether a thread or warp of another number has accessed the element."""
        options = {"mode": "fill", "fill_value": 0}
        low = self.lowest.array.at[where].get(**options)
        high = self.highest.array.at[where].get(**options)
        return (high > 0) & ((low != number) | (high != number + 1))

    def forget(self, where: Any) -> None:
        """Forgets who has accessed these elements."""
        low, high = self.lowest, self.highest
        low.array = jnp.where(where, NOBODY, low.array)
        high.array = jnp.where(where, np.uint32(0), high.array)


class Accesses(NamedTuple):
    """The accesses to the elements of a shared memory.

    Attributes:
      warps_read: the warps that have read since the last barrier of the program.
      warps_stored: the warps that have stored since then.
      threads_read: the threads that have read since the last barrier of their warp or
        of the program.
      threads_stored: the threads that have stored since then.
    """

    warps_read: Seen
    warps_stored: Seen
    threads_read: Seen
    threads_stored: Seen


def _places(memory: Any, offset: Any, elements: int) -> Any:
    """The places that each thread accesses; NOBODY for threads that are not active."""
    t = memory.threads
    within = lax.broadcasted_iota(np.uint32, (1, 1, elements), 2)
    place = t.number(offset + memory.start)[..., None] + within
    return jnp.where(t.active[..., None], place, NOBODY)


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
        where = (t.program[..., None], _places(self, offset, elements))
        thread = t.thread[..., None]
        warp = thread // WARP
        (seen.warps_stored if stores else seen.warps_read).add(where, warp)
        (seen.threads_stored if stores else seen.threads_read).add(where, thread)
        race = seen.warps_stored.by_others(where, warp)
        race |= seen.threads_stored.by_others(where, thread)
        if stores:
            race |= seen.warps_read.by_others(where, warp)
            race |= seen.threads_read.by_others(where, thread)
        t.races.array += jnp.sum(race, dtype=np.uint32)  # one for each element


@dataclasses.dataclass(frozen=True)
class Output(_lockstep.Memory):
    """A memory of all programs whose stores are counted."""

    stores: Any = None

    def put(self, offset: Any, elements: int, words: Any) -> None:
        """As `_lockstep.Memory.put`."""
        line = self.threads.number(self.line)[..., None]
        where = (line, _places(self, offset, elements))
        self.stores.array = self.stores.array.at[where].add(1, mode="drop")
        super().put(offset, elements, words)

    def claim(self, offset: Any) -> Any:
        """As `_lockstep.Memory.claim`, which may store to a place many times."""
        memory = _lockstep.Memory(self.held, self.threads, self.line, self.start)
        return memory.claim(offset)


class Watched(_lockstep.Threads):
    """`_lockstep.Threads`, which counts races, what is partial, and stores.

    Attributes:
      stores: for each memory of all programs, how often each element was stored.
      races: how many accesses are races.
      partial: how many barriers and operations of a warp were reached by some threads
        and not by all.
      sites: the file and the line of each barrier that was reached.
      without: the place in `sites` of a barrier that is left out; a number past the
        last one leaves out none.
    """

    def __init__(self, programs: int, threads: int, without: Any) -> None:
        super().__init__(programs, threads)
        self.races = self._held(np.zeros((), np.uint32))
        self.partial = self._held(np.zeros((), np.uint32))
        self.stores: list[_lockstep.Held] = []
        self.watched: list[Accesses] = []
        self.sites: list[tuple[str, int]] = []
        self.without = without

    def _held(self, array: Any) -> _lockstep.Held:
        self.memories.append(_lockstep.Held(jnp.asarray(array)))
        return self.memories[-1]

    def memory(self, array: Any) -> Output:
        """The memory of all programs that holds this array."""
        memory = super().memory(array)
        self.stores.append(self._held(np.zeros(array.shape, np.uint32)))
        return Output(memory.held, self, 0, stores=self.stores[-1])

    def shared(self, size: int, dtype: np.dtype) -> Memory:
        """A memory of its own for each program."""
        memory = super().shared(size, dtype)
        shape = (self.shape[0], size)

        def seen() -> Seen:
            nobody = np.full(shape, NOBODY)
            return Seen(self._held(nobody), self._held(np.zeros(shape, np.uint32)))

        self.watched.append(Accesses(*(seen() for _ in range(4))))
        return Memory(memory.held, self, memory.line, accesses=self.watched[-1])

    def _together(self, threads: int) -> Any:
        """Returns which groups of so many threads of a program reach this point."""
        groups = self.active.reshape(self.shape[0], -1, threads)
        some = jnp.any(groups, 2)
        self.partial.array += jnp.sum(some & ~jnp.all(groups, 2), dtype=np.uint32)
        return some

    def _at_barrier(self, threads: int) -> Any:
        """As `_together`, for the barrier that calls this; none if it is left out."""
        frame = sys._getframe(2)
        site = (frame.f_code.co_filename, frame.f_lineno)
        if site not in self.sites:
            self.sites.append(site)
        return self._together(threads) & (self.without != self.sites.index(site))

    def barrier(self) -> None:
        """Forgets all accesses of the programs that reach it."""
        programs = self._at_barrier(self.threads)
        for accesses in self.watched:
            for seen in accesses:
                seen.forget(programs)

    def warp_barrier(self) -> None:
        """Forgets what the threads of the warps that reach it have accessed.

        It does not forget what these warps have accessed: other warps do not wait here.
        """
        warps = self._at_barrier(WARP)
        for accesses in self.watched:
            for seen in (accesses.threads_read, accesses.threads_stored):
                warp = jnp.minimum(seen.lowest.array // WARP, warps.shape[1] - 1)
                seen.forget(jnp.take_along_axis(warps, warp.astype(np.int32), 1))

    def warp_scan(self, number: Any) -> Any:
        """As `_lockstep.Threads.warp_scan`."""
        self._together(WARP)
        return super().warp_scan(number)

    def warp_sum(self, number: Any) -> Any:
        """As `_lockstep.Threads.warp_sum`."""
        self._together(WARP)
        return super().warp_sum(number)

    def shuffle(self, number: Any, lane: Any) -> Any:
        """As `_lockstep.Threads.shuffle`."""
        self._together(WARP)
        return super().shuffle(number, lane)

    def shuffle_xor(self, number: Any, mask: int) -> Any:
        """As `_lockstep.Threads.shuffle_xor`."""
        self._together(WARP)
        return super().shuffle_xor(number, mask)
