"""The launch of kernels for TPUs: blocks of arrays in vector memory."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu

from dmljax._jax import struct


@dataclasses.dataclass(frozen=True)
class Block:
    """The part of an array that a TPU's vector memory holds for one program.

    The pipeline moves these parts. It numbers the blocks of an array along each
    dimension, and fetches a block only if the numbers differ from the last program's.

    If a block has no sizes, the kernel gets the whole array, which then stays in the
    TPU's main memory, and the pipeline moves nothing of it.
    """

    sizes: tuple[int, ...]
    # Takes a point of the grid, and gives the block's number along each dimension of
    # the array.
    index_map: Callable[..., tuple[Any, ...]]
    elements: int  # that are moved in all programs together
    scalar: bool = False  # whether the block is in the memory of the scalars instead

    def spec(self) -> pl.BlockSpec:
        """Returns this block as Pallas wants it described."""
        if not self.sizes:
            return pl.BlockSpec(memory_space=pl.ANY)
        space = tpu.SMEM if self.scalar else None
        return pl.BlockSpec(self.sizes, self.index_map, memory_space=space)


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
        block.elements * array.dtype.itemsize
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
