"""The launch of a kernel for NVIDIA GPUs: a CPU lowers and simulates it."""

import jax
import numpy as np

from dmljax.pallas.gpu import WARP
from dmljax.pallas.gpu._launch import launch_threads
from tests.checks import launches, lowered, needs_kernels
from tests.pallas import blocks, lockstep

PROGRAMS = 2
WARPS = 4
THREADS = WARPS * WARP
SHAPE = (PROGRAMS, THREADS)
NUMBERS = np.arange(PROGRAMS * THREADS, dtype=np.uint32).reshape(SHAPE)


def stored(kernel, dtype=np.uint32, **memories):
    """Returns the line that the threads of two programs store."""

    def run(t, x, target, *others):
        kernel(t, target, x.load(t.program * THREADS + t.thread), *others)

    def launch(x, launch_threads=launch_threads):
        (line,) = launch_threads(
            run,
            x,
            operator="toy",
            programs=PROGRAMS,
            warps=WARPS,
            outputs=[jax.ShapeDtypeStruct((1, NUMBERS.size), dtype)],
            **memories,
        )
        return line.reshape(SHAPE)

    x = NUMBERS.reshape(1, -1)
    assert launches(launch, x) == 1
    assert "dmljax_toy" in lowered(launch, x)
    if not blocks.SIMULATED:
        return jax.jit(launch)(x)
    return jax.jit(lambda x: launch(x, lockstep.launch_threads))(x)


@needs_kernels
def test_programs_have_shared_memory_and_posts():
    def turn(t, target, i, posts, turned):
        turned.store(t.threads - 1 - t.thread, i)
        t.barrier()
        with t.when(t.thread == 0):
            posts.post(t.program, t.program + 7)
        target.store(i, turned.load(t.thread) + posts.wait(1 - t.program))

    found = stored(turn, shared=[(THREADS, np.uint32)], posts=[(1, PROGRAMS)])
    np.testing.assert_array_equal(found, NUMBERS[:, ::-1] + [[8], [7]])
