"""The launch of kernels for NVIDIA GPUs: the code of a thread, in all threads.

Here belongs how Pallas runs such code. `_threads` has the operations of a thread.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import Array
from jax.experimental import pallas as pl

from dmljax._jax import manual_axes
from dmljax.pallas.gpu import WARP


def launch_threads(
    kernel: Callable[..., None],
    *operands: Array,
    operator: str,
    programs: int,
    warps: int,
    outputs: Sequence[jax.ShapeDtypeStruct],
    shared: Sequence[tuple[int, Any]] = (),
    posts: int = 0,
    **static: Any,
) -> Sequence[Array]:
    """Runs `kernel`, code for one thread, in all threads of all programs.

    All arrays have one dimension. The kernel has these arguments, in this order:

    - a `_threads.Threads`, or the simulator's;
    - a memory of each operand, and of each output;
    - if there are `posts`, a memory of so many, by which programs tell each other
      numbers. They hold 0 when the launch begins;
    - a memory of each of `shared`, sizes and types of memories that each program has;
    - `static` as keywords, among them the plan.

    The kernel is named `dmljax_{operator}` in a profile. Mosaic GPU starts threads in
    groups of four warps.
    """
    # Not every JAX has these modules.
    from jax.experimental.pallas import mosaic_gpu

    from dmljax.pallas.gpu import _threads

    arrays = len(operands) + len(outputs)

    def of_thread(_: Any, *references: Any) -> None:
        memories = map(_threads.Memory.of, references)
        kernel(_threads.Threads(warps * WARP), *memories, **static)

    # Pallas calls this with references to the arrays, and then to shared memories. The
    # kernel gets the posts in between: an array of semaphores, because Pallas has no
    # other global memory that it fills with zeros before each launch. JAX 0.10.2 and
    # 0.11.2 do so, and a comment there promises it "at the moment". We use them as
    # plain memory, and they end with other numbers: look at this again with each new
    # JAX.
    def body(*references: Any) -> None:
        kind = mosaic_gpu.SemaphoreType.REGULAR
        posted = [pl.get_global(kind((posts,)))] if posts else []
        references = (*references[:arrays], *posted, *references[arrays:])
        kinds = (_threads.reference_type(),) * len(references)
        _threads.inline(arg_types=kinds)(of_thread)(*references)

    launch: Callable[..., Sequence[Array]] = mosaic_gpu.kernel(
        body,
        out_type=tuple(
            jax.ShapeDtypeStruct(
                x.shape, x.dtype, **manual_axes(jax.typeof(operands[0]))
            )
            for x in outputs
        ),
        scratch_types=[mosaic_gpu.SMEM((size,), dtype) for size, dtype in shared],
        grid=(programs,),
        grid_names=("program",),
        num_threads=warps // 4,
        thread_name="warps",
        compiler_params=mosaic_gpu.CompilerParams(
            # Kernels have barriers where they need them.
            unsafe_no_auto_barriers=True,
            # The code is for one thread. Semantics for a group of warps would infer a
            # layout of arrays, though there are none, and trace twice as long.
            lowering_semantics=mosaic_gpu.LoweringSemantics.Lane,
        ),
        kernel_name=f"dmljax_{operator}",
    )
    return launch(*operands)
