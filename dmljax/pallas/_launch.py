"""The calls of Pallas: `launch_threads` for NVIDIA GPUs, `launch_blocks` for TPUs.

Here belongs what all launches share: the parameters of a backend, the names that a
profile shows, and what XLA is told about the cost of a kernel for TPUs. These kernels
also import Pallas, for what their bodies compute with, but none calls `pallas_call`.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.experimental import pallas as pl

from dmljax._jax import code_per_thread, struct
from dmljax.pallas import WARP, _lockstep, kernels_available

# A future JAX may come without this backend. Then this module still imports, and
# `dmljax._primitive` launches no kernel for TPUs.
if kernels_available("tpu"):
    from jax.experimental.pallas import tpu


def launch_threads(
    kernel: Callable[..., None],
    *operands: jax.Array,
    operator: str,
    programs: int,
    warps: int,
    outputs: Sequence[jax.ShapeDtypeStruct],
    shared: Sequence[tuple[int, Any]],
    interpret: bool,
    posts: Sequence[tuple[int, int]] = (),
    **static: Any,
) -> Sequence[jax.Array]:
    """Runs `kernel`, which is code for one thread, in all threads of all programs.

    All arrays have two dimensions: lines, and the elements of a line. The kernel is
    called with a `_threads.Threads` or its like; with memories of the operands, of the
    outputs, of `posts`, and of what a program has for itself, which is `shared` by its
    threads and described by sizes and types; and with `static` as keywords. `posts` are
    the lines and sizes of arrays through which programs tell each other numbers. They
    hold 0 when the launch begins. The kernel is named `dmljax_{operator}` in a profile.
    Mosaic GPU starts threads in groups of four warps.
    """
    if interpret:
        return _lockstep.run(
            kernel, operands, programs, warps * WARP, outputs, posts, shared, **static
        )
    # These modules take 0.1 s to import, and not every JAX has them.
    from jax.experimental.pallas import mosaic_gpu

    from dmljax.pallas import _threads

    mlir = code_per_thread()
    assert mlir is not None  # `kernels_available` has said so

    given = len(operands) + len(outputs)

    def body(*references: Any) -> None:
        def code(context: Any, *values: Any) -> None:
            del context
            memories = [_threads.Memory.of(mlir.pointer(v), v.type) for v in values]
            for i, (_, size) in enumerate(posts, given):
                memories[i] = dataclasses.replace(memories[i], size=size)
            kernel(_threads.Threads(warps * WARP), *memories, **static)

        posted = [
            pl.get_global(mosaic_gpu.SemaphoreType.REGULAR((math.prod(shape),)))
            for shape in posts
        ]
        references = (*references[:given], *posted, *references[given:])
        kinds = (mosaic_gpu.RefType(),) * len(references)
        mlir.inline(arg_types=kinds)(code)(*references)

    scratch = [mosaic_gpu.SMEM((max(size, 1),), dtype) for size, dtype in shared]
    results: Sequence[jax.Array] = mosaic_gpu.kernel(
        body,
        **_of_outputs_and_scratch(
            tuple(struct(x.shape, x.dtype, operands[0]) for x in outputs), scratch
        ),
        grid=(programs,),
        grid_names=("program",),
        num_threads=warps // 4,
        thread_name="warps",
        # Kernels have barriers where they need them.
        compiler_params=mosaic_gpu.CompilerParams(unsafe_no_auto_barriers=True),
        kernel_name=f"dmljax_{operator}",
    )(*operands)
    return results


def _of_outputs_and_scratch(outputs: Any, scratch: Any) -> dict[str, Any]:
    """Names these arguments of `mosaic_gpu.kernel` as this JAX does.

    JAX 0.10.1 has other names, which later versions deprecate.
    """
    kind = "shape" if jax.__version_info__ < (0, 10, 2) else "type"
    return {f"out_{kind}": outputs, f"scratch_{kind}s": scratch}


@dataclasses.dataclass(frozen=True)
class Block:
    """The part of an array that a TPU's vector memory holds for one program.

    The pipeline moves these parts. It numbers the blocks of an array along each
    dimension, and fetches a block only if the numbers differ from the last program's.

    Attributes:
      sizes: the sizes of the block.
      index_map: takes a point of the grid, and gives the block's number along each
        dimension of the array.
      axes: the dimensions of the grid that `index_map` depends on.
      scalar: whether the block is in the memory of the scalars (SMEM) instead.
      whole: whether the kernel gets the whole array, which then stays in the TPU's main
        memory. The pipeline moves nothing of it.
      elements: how many elements are moved in all programs together. None if dimension
        i of the grid counts the blocks along dimension i of the array: then `moved`
        computes it.
    """

    sizes: tuple[int, ...]
    index_map: Callable[..., tuple[Any, ...]]
    axes: tuple[int, ...]
    scalar: bool = False
    whole: bool = False
    elements: int | None = None

    def spec(self) -> pl.BlockSpec:
        """This block as Pallas wants it described."""
        if self.whole:
            return pl.BlockSpec(memory_space=pl.ANY)
        space = tpu.SMEM if self.scalar else None
        return pl.BlockSpec(self.sizes, self.index_map, memory_space=space)

    def moved(self, grid: tuple[int, ...], shape: tuple[int, ...]) -> int:
        """How many elements of an array of `shape` are moved in the whole grid."""
        if self.elements is not None:
            return self.elements
        # The last dimension of the grid changes fastest. Dimensions behind the last one
        # that moves the block leave it where it is; those before it that do not name a
        # block make the pipeline go over the whole array again.
        moving = [axis for axis in self.axes if grid[axis] > 1]
        rounds = math.prod(
            size
            for axis, size in enumerate(grid[: max(moving, default=0)])
            if axis not in self.axes
        )
        # The last block along a dimension may reach past the end of the array. What is
        # past the end is not moved.
        along = (
            size if steps * block - size < block else steps * block
            for steps, block, size in zip(
                (n if axis in self.axes else 1 for axis, n in enumerate(grid)),
                self.sizes,
                shape,
                strict=True,
            )
        )
        return rounds * math.prod(along)


def launch_blocks(
    kernel: Callable[..., None],
    *operands: jax.Array,
    operator: str,
    grid: tuple[int, ...],
    blocks: Sequence[Block],
    outputs: Sequence[jax.ShapeDtypeStruct],
    interpret: Any,
    scratch: Sequence[Any] = (),
    in_order: bool = False,
    **static: Any,
) -> Sequence[jax.Array]:
    """Runs `kernel` on blocks in a TPU's vector memory, once for each point of `grid`.

    `blocks` describes the operands and then the outputs. The kernel is called with
    references to these blocks, then to the `scratch` memory, and with `static` as
    keywords. While it runs, the pipeline fetches the blocks of the next program and
    writes those of the last one. `in_order` says that programs along the last dimension
    of the grid must follow one another on one core; all others may be shared by cores.
    """
    arrays: list[Any] = [*operands, *outputs]
    moved = sum(
        block.moved(grid, array.shape) * array.dtype.itemsize
        for block, array in zip(blocks, arrays, strict=True)
    )
    specs = [block.spec() for block in blocks]
    semantics = [tpu.GridDimensionSemantics.PARALLEL] * len(grid)
    if in_order:
        semantics[-1] = tpu.GridDimensionSemantics.ARBITRARY
    # Mosaic takes block numbers of 32 bits only; in x64 mode JAX would make them 64.
    with jax.enable_x64(False):
        results: Sequence[jax.Array] = pl.pallas_call(
            functools.partial(kernel, **static),
            grid=grid,
            in_specs=specs[: len(operands)],
            out_specs=tuple(specs[len(operands) :]),
            out_shape=tuple(struct(x.shape, x.dtype, operands[0]) for x in outputs),
            scratch_shapes=list(scratch),
            name=f"dmljax_{operator}",
            interpret=interpret,
            # XLA schedules by this estimate, because it cannot look into a kernel. The
            # kernels move memory and compute next to nothing.
            cost_estimate=pl.CostEstimate(
                flops=0, transcendentals=0, bytes_accessed=moved
            ),
            compiler_params=tpu.CompilerParams(dimension_semantics=semantics),
        )(*operands)
    return results
