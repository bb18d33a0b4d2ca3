"""A simulator of GPU kernels: `_threads` on arrays with a number for each thread.

`registered` makes it the kernel of the platform "cpu", because Pallas' interpreter
refuses code for single threads. All threads of all programs take each step together.
The results equal those of a GPU, but the simulator does not notice four faults: (1) a
missing barrier; (2) a barrier, or an operation of a warp, that only some threads reach;
(3) two programs that store to one element; (4) a wait for a program that has not
started, which may hang a GPU. tests/transforms/races.py finds the first three. On a
GPU, compute-sanitizer finds the first.

A number is an array of uint32, or of booleans, of shape (programs, threads). A memory
holds an array, and each store replaces it. `_threads` describes the operations; the
docstrings here describe only the differences.
"""

import contextlib
import dataclasses
from typing import Any
from unittest import mock

import jax.numpy as jnp
import numpy as np
from jax import lax

from dmljax._nonzero_coordinates import NONZERO_COORDINATES
from dmljax._padding import PADDING
from dmljax._primitive import Kernel
from dmljax.pallas.gpu import WARP, _nonzero_coordinates, _padding

UNWRITTEN = 0xA5A5A5A5  # the value in memory before a kernel stores to it
_POSTED = np.uint32(2**31)  # the bit that marks a word as posted


class Held:
    """An array that a kernel can read and write: (rows, size)."""

    def __init__(self, array):
        self.array = array


@dataclasses.dataclass(frozen=True)
class Memory:
    """The memory of one row from `start` on, for each thread: `_threads.Memory`."""

    held: Held
    threads: "Threads"
    row: Any
    start: Any = 0

    @property
    def bits(self):
        return 8 * self.held.array.dtype.itemsize

    @property
    def size(self):
        return self.held.array.shape[1]

    def at(self, row):
        return dataclasses.replace(self, row=row)

    def part(self, offset):
        return dataclasses.replace(self, start=self.start + offset)

    def post(self, offset, number):
        self.store(offset, number | _POSTED)

    def wait(self, offset):
        """Returns at once, because all programs are at the same step."""
        word = self.load(offset)
        return jnp.where(word >= _POSTED, word - _POSTED, np.uint32(UNWRITTEN))

    def load(self, offset):
        return self.words(offset, 1)[0]

    def words(self, offset, elements):
        """Returns UNWRITTEN at an address that is no multiple of the size."""
        row, offsets, misaligned = self._locate(offset, elements)
        offsets = jnp.where(misaligned, self.size, offsets)
        array = self.held.array
        found = array.at[row, offsets].get(
            mode="fill", fill_value=_unwritten(array.dtype), wrap_negative_indices=False
        )
        count = max(elements * self.bits // 32, 1)
        split = found.astype(np.uint32).reshape(*self.threads.shape, count, -1)
        words = (split << self._shifts(split.shape[-1])).sum(-1, dtype=np.uint32)
        return [words[..., i] for i in range(count)]

    def store(self, offset, *words, elements=None):
        """Stores in the active threads.

        A GPU would store elsewhere if a store leaves its row, or if its address is no
        multiple of the size. We spoil the whole array then, so that the test fails.
        """
        t = self.threads
        elements = elements or len(words)
        joined = jnp.stack([t.number(word) for word in words], 2)[..., None]
        values = joined >> self._shifts(elements // len(words))
        values = (values & np.uint32(2**self.bits - 1)).reshape(*t.shape, elements)
        row, offsets, misaligned = self._locate(offset, elements)
        active = t.active[..., None]
        wrong = jnp.any(active & (misaligned | (offsets >= self.size)))
        offsets = jnp.where(active, offsets, np.uint32(2**32 - 1))
        array = self.held.array
        stored = array.at[row, offsets].set(values.astype(array.dtype), mode="drop")
        self.held.array = jnp.where(wrong, _unwritten(array.dtype), stored)

    def _locate(self, offset, elements):
        """Returns the row, the elements' offsets, and whether they are misaligned."""
        t = self.threads
        offset = t.number(offset + self.start)
        address = t.number(self.row) * np.uint32(self.size) + offset
        misaligned = (address % np.uint32(elements) != 0)[..., None]
        within = lax.broadcasted_iota(np.uint32, (1, 1, elements), 2)
        row = self.row if isinstance(self.row, int) else self.row[..., None]
        return row, offset[..., None] + within, misaligned

    def _shifts(self, count):
        """Returns the first bit of each element in its word."""
        return lax.broadcasted_iota(np.uint32, (1, 1, 1, count), 3) * self.bits


class Threads:
    """All threads of all programs together: `_threads.Threads`."""

    def __init__(self, programs, threads):
        self.threads = threads
        self.shape = (programs, threads)
        self.program = lax.broadcasted_iota(np.uint32, self.shape, 0)
        self.thread = lax.broadcasted_iota(np.uint32, self.shape, 1)
        self.active = jnp.ones(self.shape, bool)
        self.memories: list[Held] = []

    def memory(self, array):
        """Makes a memory for all programs from an array of (rows, size)."""
        self.memories.append(Held(array))
        return Memory(self.memories[-1], self, 0)

    def shared(self, size, dtype):
        """Makes a separate memory for each program."""
        unwritten = jnp.full((self.shape[0], size), _unwritten(dtype))
        return self.memory(unwritten).at(self.program)

    def number(self, value):
        """Returns the value as an array with a number for each thread."""
        return jnp.broadcast_to(jnp.asarray(value, np.uint32), self.shape)

    def wide(self, number):
        """Returns the number itself: arrays have fewer than 2^32 elements here."""
        return number

    constant = number
    narrow = wide
    select = staticmethod(jnp.where)
    ones = staticmethod(lax.population_count)
    minimum, maximum = staticmethod(jnp.minimum), staticmethod(jnp.maximum)

    @contextlib.contextmanager
    def when(self, condition):
        """Makes a context where only the threads with this condition store."""
        before = self.active
        self.active = before & condition
        yield
        self.active = before

    def repeat(self, condition, body, *carry):
        def restore(arrays):
            for held, array in zip(self.memories, arrays, strict=True):
                held.array = array

        before = [held.array for held in self.memories]

        def step(state):
            arrays, carry = state
            restore(arrays)
            with self.when(condition(*carry)):
                kept = [
                    jnp.where(self.active, new, old)
                    for new, old in zip(body(*carry), carry, strict=True)
                ]
            after = [held.array for held in self.memories]
            restore(before)  # otherwise the arrays of the body would leak out
            return after, kept

        arrays, results = lax.while_loop(
            lambda state: jnp.any(self.active & condition(*state[1])),
            step,
            (before, list(carry)),
        )
        restore(arrays)
        return results

    def loop(self, rounds, body, *carry):
        def step(i, *carry):
            return [i + 1, *(body(i, *carry) or ())]

        start = self.constant(0)
        return self.repeat(lambda i, *_: i < rounds, step, start, *carry)[1:]

    def warp_scan(self, number):
        return number.reshape(-1, WARP).cumsum(1, dtype=np.uint32).reshape(self.shape)

    def warp_sum(self, number):
        sums = number.reshape(-1, WARP).sum(1, keepdims=True, dtype=np.uint32)
        return jnp.broadcast_to(sums, (sums.size, WARP)).reshape(self.shape)

    def shuffle_xor(self, number, mask):
        """Accepts only masks with one bit set."""
        return number.reshape(-1, 2, mask)[:, ::-1].reshape(self.shape)

    def shuffle(self, number, lane):
        lane = self.thread // WARP * WARP + self.number(lane)
        return jnp.take_along_axis(number, lane, axis=1)

    def barrier(self):
        """Does nothing, because all threads are at the same step."""

    warp_barrier = barrier


def launch_threads(
    kernel,
    *operands,
    operator,
    programs,
    warps,
    outputs,
    shared=(),
    posts=(),
    **static,
):
    """Returns the outputs of a kernel: `_launch.launch_threads` on a CPU."""
    del operator
    t = Threads(programs, warps * WARP)
    taken = [t.memory(operand) for operand in operands]
    made = [t.memory(jnp.full(out.shape, _unwritten(out.dtype))) for out in outputs]
    of_programs = [t.shared(size, dtype) for size, dtype in shared]
    posted = [t.memory(jnp.zeros(shape, np.uint32)) for shape in posts]
    kernel(t, *taken, *made, *posted, *of_programs, **static)
    return [memory.held.array for memory in made]


def _unwritten(dtype):
    return np.uint32(UNWRITTEN).astype(dtype)


# THE KERNEL OF A CPU


def simulated(form):
    """Returns a kernel's form for GPUs as a form that a CPU runs."""

    def on_cpu(*operands, **static):
        with contextlib.ExitStack() as stack:
            for module in (_nonzero_coordinates, _padding):
                patch = mock.patch.object(module, "launch_threads", launch_threads)
                stack.enter_context(patch)
            return form(*operands, **static)

    return on_cpu


@contextlib.contextmanager
def registered():
    """Makes a context where a CPU has the kernels of GPUs, if a test asks for them."""
    with contextlib.ExitStack() as stack:
        for kernels in (NONZERO_COORDINATES.kernels, PADDING.kernels):
            kernel = Kernel(simulated(kernels["cuda"].form))
            stack.enter_context(mock.patch.dict(kernels, cpu=kernel))
        yield
