"""A simulator of GPU kernels: `_threads` on arrays with a number for each thread.

`kernel_of` is an entry of `KERNELS` for the platform "cpu", because Pallas' interpreter
refuses code for single threads. All threads of all programs take each step together.
The results equal the results of a GPU, but the simulator does not notice three faults:
(1) a missing barrier; (2) two programs that store to one element; (3) a wait for a
program that has not started, which may hang a GPU. tests/transforms/test_races.py finds
the first two. On a GPU, compute-sanitizer finds the first.

A number is an array of NumPy of uint32, uint64 or booleans, (programs, threads).
A program of XLA calls the simulator (`jax.pure_callback`), because XLA takes seconds to
compile a kernel. `_threads` describes the operations; the docstrings here describe only
the differences.
"""

import contextlib
import dataclasses
from typing import Any
from unittest import mock

import jax
import numpy as np

from dmljax._nonzero_kernels import KERNELS
from dmljax.pallas.gpu import WARP, _nonzero_coordinates

UNWRITTEN = 0xA5A5A5A5  # the value in memory before a kernel stores to it
_POSTED = np.uint32(2**31)  # the bit that marks a word as posted


@dataclasses.dataclass(frozen=True)
class Memory:
    """A memory from `start` on, for each thread: `_threads.Memory`."""

    array: np.ndarray  # (1, size), or a row for each program
    threads: "Threads"
    row: Any = 0
    start: Any = 0

    @property
    def size(self):
        return self.array.shape[1]

    def part(self, offset):
        return dataclasses.replace(self, start=self.start + offset)

    def post(self, offset, number):
        """Spoils the array if a word does not hold 0: two posts, or a counter."""
        if (self.load(offset) != 0)[self.threads.active].any():
            self.array[...] = _unwritten(self.array.dtype)
        else:
            self.store(offset, number | _POSTED)

    def wait(self, offset):
        """Returns at once, because all programs are at the same step."""
        word = self.load(offset)
        return np.where(word >= _POSTED, word - _POSTED, np.uint32(UNWRITTEN))

    def take(self, offset):
        """Each program takes one number, in the reverse order of their indices."""
        t = self.threads
        place, _ = self._locate(offset, 1)
        self.array.reshape(-1)[place[t.active]] = len(t.program)
        return t.number(len(t.program) - 1) - t.program

    def load(self, offset):
        return self.words(offset, 1)[0]

    def words(self, offset, elements):
        """Returns UNWRITTEN outside of the row, and at a misaligned address."""
        place, wrong = self._locate(offset, elements)
        places = place[..., None] + np.arange(elements)
        found = self.array.reshape(-1).take(places, mode="clip")
        found[wrong] = _unwritten(self.array.dtype)
        word = f"u{min(elements * self.array.itemsize, 4)}"
        words = found.view(word).astype(np.uint32)
        return [words[..., i] for i in range(words.shape[-1])]

    def store(self, offset, *words):
        """Stores in the active threads.

        A GPU would store elsewhere if a store leaves its row, or if its address is no
        multiple of the size. We spoil the whole array then, so that the test fails.
        """
        t = self.threads
        place, wrong = self._locate(offset, len(words))
        if (wrong & t.active).any():
            self.array[...] = _unwritten(self.array.dtype)
            return
        for i, each in enumerate(words):
            self.array.reshape(-1)[place[t.active] + i] = t.number(each)[t.active]

    def _locate(self, offset, elements):
        """Returns where the elements begin in the array, and whether that is wrong.

        They may leave their row, or their address may be no multiple of their size.
        """
        offset = np.broadcast_to(offset + self.start, self.threads.shape)
        offset = offset.astype(np.int64)  # past 2^63, it is before the memory
        place = self.row * self.size + offset
        leaves = (offset < 0) | (offset > self.size - elements)
        return place, leaves | (place % elements != 0)


class Threads:
    """All threads of all programs together: `_threads.Threads`."""

    memory_of = Memory

    def __init__(self, programs, threads):
        self.threads = threads
        self.shape = (programs, threads)
        self.program, self.thread = np.indices(self.shape, np.uint32)
        self.active = np.ones(self.shape, bool)
        self._zeros = np.zeros(self.shape, np.uint32)

    def memory(self, array):
        """Makes a memory for all programs from an array of one dimension."""
        return self.memory_of(array[None], self)

    def shared(self, size, dtype):
        """Makes a separate memory for each program."""
        unwritten = np.full((self.shape[0], size), _unwritten(dtype))
        return self.memory_of(unwritten, self, self.program)

    def number(self, value):
        """Returns the value as an array with a number for each thread."""
        return np.add(self._zeros, value, dtype=np.uint32)

    def wide(self, number):
        return number.astype(np.uint64)

    constant = narrow = number
    minimum = staticmethod(np.minimum)

    def select(self, condition, one, other):
        return np.where(condition, self.number(one), self.number(other))

    def ones(self, number):
        return np.bitwise_count(number).astype(np.uint32)

    @contextlib.contextmanager
    def when(self, condition):
        """Makes a context where only the threads with this condition store."""
        before = self.active
        self.active = np.bitwise_and(before, condition, dtype=bool)
        yield
        self.active = before

    def repeat(self, condition, body, *carry):
        """Fails after more rounds than our kernels take: the loop may have no end."""
        for _ in range(2**14):
            with self.when(condition(*carry)):
                if not self.active.any():
                    return carry
                pairs = zip(body(*carry), carry, strict=True)
                carry = [np.where(self.active, new, old) for new, old in pairs]
        raise RuntimeError("a loop does not end")

    def loop(self, rounds, body, *carry):
        def step(i, *carry):
            return [i + 1, *(body(i, *carry) or ())]

        start = self.constant(0)
        return self.repeat(lambda i, *_: i < rounds, step, start, *carry)[1:]

    def warp_scan(self, number):
        self._together(WARP)
        return number.reshape(-1, WARP).cumsum(1, dtype=np.uint32).reshape(self.shape)

    def warp_sum(self, number):
        return self.shuffle(self.warp_scan(number), WARP - 1)

    def shuffle(self, number, lane):
        self._together(WARP)
        threads = self.thread // WARP * WARP + self.number(lane)
        return np.take_along_axis(number, threads, axis=1)

    def barrier(self):
        return self._together(self.threads)

    def warp_barrier(self):
        return self._together(WARP)

    def _together(self, threads):
        """Returns which groups of threads are here. A GPU may wait for the rest."""
        groups = self.active.reshape(self.shape[0], -1, threads)
        some = groups.any(2)
        if (some != groups.all(2)).any():
            raise RuntimeError("only some threads reach this operation")
        return some


def launch_threads(
    kernel, *operands, programs, warps, outputs, shared, posts, **static
):
    """Returns the outputs of a kernel: `_launch.launch_threads` on a CPU."""

    def run(*arrays):
        t = Threads(programs, warps * WARP)
        taken = [t.memory(np.asarray(array)) for array in arrays]
        made = [t.memory(np.full(size, _unwritten(np.uint32))) for size in outputs]
        of_programs = [t.shared(size, dtype) for size, dtype in shared]
        posted = [t.memory(np.zeros(posts, np.uint32))] if posts else []
        kernel(t, *taken, *posted, *made, *of_programs, **static)
        return [memory.array[0] for memory in made]

    types = [jax.ShapeDtypeStruct((size,), np.uint32) for size in outputs]
    return jax.pure_callback(run, types, *operands)


def _unwritten(dtype):
    return np.uint32(UNWRITTEN).astype(dtype)


def kernel_of(flags, **static):
    """Returns the entry of `KERNELS` for GPUs as an entry for CPUs."""
    patch = mock.patch.object(_nonzero_coordinates, "launch_threads", launch_threads)
    return patch(KERNELS["cuda"](flags, **static))
