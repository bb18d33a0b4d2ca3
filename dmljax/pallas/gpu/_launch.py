"""Launches kernels for NVIDIA GPUs: runs the code of a thread in all threads.

`_threads` has the operations of a thread.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.experimental import pallas as pl

from dmljax._jax import varying_keyword
from dmljax.pallas.gpu import WARP


def launch_threads(
    kernel: Callable[..., None],
    *operands: Array,
    programs: int,
    warps: int,
    outputs: Sequence[int],
    shared: Sequence[tuple[int, Any]],
    posts: int,
    **static: Any,
) -> Sequence[Array]:
    """Runs `kernel`, code for one thread, in all threads of all programs.

    All arrays have one dimension. The kernel has these arguments, in this order:

    - a `_threads.Threads`, or the simulator's;
    - a memory of each operand;
    - unless `posts` is 0, a memory of this number of words, by which programs tell each
      other numbers. The words hold 0 when the launch begins;
    - a memory of each output, uint32 of a size in `outputs`;
    - a shared memory for each size and type in `shared`;
    - `static` as keywords, among them the plan.

    Mosaic GPU starts threads in groups of four warps.
    """
    # Not every JAX has these modules.
    from jax.experimental.pallas import mosaic_gpu

    from dmljax.pallas.gpu import _threads

    # Pallas traces `body`, which makes the shared memories. Mosaic GPU then calls
    # `of_thread` with its launch context, and with references to all memories.
    def of_thread(_: Any, *references: Any) -> None:
        memories = map(_threads.Memory.of, references)
        kernel(_threads.Threads(warps * WARP), *memories, **static)

    def body(*references: Any) -> None:
        def run(*scratch: Any) -> None:
            every = references + scratch
            kinds = (_threads.reference_type(),) * len(every)
            _threads.inline(arg_types=kinds)(of_thread)(*every)

        memories = (mosaic_gpu.SMEM((size,), dtype) for size, dtype in shared)
        pl.run_scoped(run, *memories, collective_axes="warps")

    body.__name__ = "dmljax_nonzero_coordinates"  # in a profile
    varying = varying_keyword(jax.typeof(operands[0]))
    types = [jax.ShapeDtypeStruct((size,), np.uint32, **varying) for size in outputs]
    launch: Callable[..., Sequence[Array]] = pl.kernel(
        body,
        types,
        mesh=_threads.mesh_of(
            grid=(programs,),
            grid_names=("program",),
            num_threads=warps // 4,
            thread_name="warps",
        ),
        compiler_params=mosaic_gpu.CompilerParams(
            # Our kernels place their barriers themselves.
            unsafe_no_auto_barriers=True,
            # The code is for one thread. The semantics for a group of warps would look
            # for the layout of arrays that we don't have, and trace twice as long.
            lowering_semantics=mosaic_gpu.LoweringSemantics.Lane,
        ),
    )
    # A reference tells XLA that the launch changes these zeros.
    words = [jax.new_ref(jnp.zeros(posts, np.uint32))] if posts else []
    return launch(*operands, *words)
