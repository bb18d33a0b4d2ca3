"""Kernels for NVIDIA GPUs, through Mosaic GPU; not public.

JAX describes kernels and Mosaic GPU
(https://docs.jax.dev/en/latest/pallas/gpu/reference.html).

Here, a kernel is written as the code of one *thread*. `_threads` has the operations of
a thread, and `_launch` runs a kernel in all threads of all programs. On a CPU, the
tests simulate the two modules (tests/pallas/lockstep.py). These words join the words of
the parent package:

- *warp*: 32 threads, which run together and can exchange numbers. A thread is a *lane*
  of its warp.
- *number*: an unsigned integer, or a truth value, of one thread.
- *memory*: an array that threads load from and store to. A *shared* memory belongs to
  all threads of one program.
- *word*: 32 bits of memory: one, two or four neighbouring elements. The first element
  has the lowest bits.
- *post*: a word in memory, by which a program tells a number to other programs.

The files `_nonzero_*` define their own words at their beginning.
"""

from collections.abc import Callable, Sequence
from typing import Any

WARP = 32  # the threads of a warp
# The body of a loop takes and returns the carried numbers, or None for no numbers.
Body = Callable[..., Sequence[Any] | None]
