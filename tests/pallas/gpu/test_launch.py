"""The launch of a kernel for NVIDIA GPUs: a CPU lowers and simulates it."""

import functools

import jax
import numpy as np

from dmljax.pallas.gpu import WARP
from dmljax.pallas.gpu._launch import launch_threads
from tests.checks import launches, needs_kernels
from tests.pallas import blocks, lockstep

PROGRAMS = 2
WARPS = 4
THREADS = WARPS * WARP
SHAPE = (PROGRAMS, THREADS)
NUMBERS = np.arange(PROGRAMS * THREADS, dtype=np.uint32).reshape(SHAPE)
LINE = NUMBERS.ravel()
THREAD = NUMBERS % THREADS


def launch(launch_threads, kernel, x, posts=0, shared=()):
    """Returns the line that the threads of two programs store."""

    def run(t, x, *others):
        posted = others[: posts > 0]
        target, *more = others[len(posted) :]
        kernel(t, target, x.load(t.program * THREADS + t.thread), *posted, *more)

    (line,) = launch_threads(
        run,
        x,
        programs=PROGRAMS,
        warps=WARPS,
        outputs=[x.size],
        shared=shared,
        posts=posts,
    )
    return line.reshape(SHAPE)


def simulated(kernel, **options):
    """The line, by the simulator."""
    call = functools.partial(launch, lockstep.launch_threads, kernel, **options)
    return np.asarray(jax.jit(call)(LINE))


def stored(kernel, **options):
    """The line, by the GPU if there is one. Any machine lowers the kernel for a GPU."""
    call = functools.partial(launch, launch_threads, kernel, **options)
    assert launches(call, LINE) == 1
    return simulated(kernel, **options) if blocks.SIMULATED else jax.jit(call)(LINE)


@needs_kernels
def test_programs_have_shared_memory_and_posts():
    def turn(t, target, i, posts, turned):
        turned.store(t.threads - 1 - t.thread, i)
        t.barrier()
        with t.when(t.thread == 0):
            posts.post(t.program, t.program + 7)
        target.store(i, turned.load(t.thread) + posts.wait(1 - t.program))

    found = stored(turn, shared=[(THREADS, np.uint32)], posts=PROGRAMS)
    np.testing.assert_array_equal(found, NUMBERS[:, ::-1] + [[8], [7]])
