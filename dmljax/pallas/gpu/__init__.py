"""Kernels for NVIDIA GPUs, through Mosaic GPU; not public.

JAX describes both in https://docs.jax.dev/en/latest/pallas/gpu/reference.html.

Here, a kernel is written as the code of one *thread*. `_threads` has the operations of
a thread, and `_launch` runs a kernel in all threads of all programs. On a CPU, the
tests simulate both (tests/pallas/lockstep.py). The words of the parent package hold
here, and these:

- *warp*: 32 threads that run together and can exchange numbers. A thread is a *lane* of
  its warp.
- *number*: an integer without a sign, or a truth value, that a thread holds.
- *memory*: an array that threads load from and store to. A *shared* memory is one that
  all threads of a program have for themselves.
- *word*: 32 bits of memory: one, two or four neighbouring elements. The first element
  has the lowest bits.
- *post*: a word by which a program tells a number to others.

The files `_nonzero_*` define their own words at their beginning.

Words belong here, and names that several files need. Operations of a thread do not.
"""

from collections.abc import Callable, Sequence
from typing import Any

WARP = 32  # the threads of a warp
# The body of a loop takes and returns the carried numbers. Without any it returns None.
Body = Callable[..., Sequence[Any] | None]
