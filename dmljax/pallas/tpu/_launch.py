"""The launch of kernels for TPUs: blocks of arrays in vector memory.

Here belongs how Pallas runs a kernel on a TPU. Kernels do not.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu

from dmljax._jax import struct


def launch_blocks(
    kernel: Callable[..., None],
    *operands: jax.Array,
    operator: str,
    grid: tuple[int, ...],
    blocks: Sequence[pl.BlockSpec],
    outputs: Sequence[jax.ShapeDtypeStruct],
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
    moved = sum(array.size * array.dtype.itemsize for array in arrays)
    # XLA schedules by this estimate, because it cannot look into a kernel. The kernels
    # move memory and compute next to nothing.
    cost = pl.CostEstimate(flops=0, transcendentals=0, bytes_accessed=moved)
    semantics = [tpu.GridDimensionSemantics.PARALLEL] * len(grid)
    if in_order:
        semantics[-1] = tpu.GridDimensionSemantics.ARBITRARY
    launch: Callable[..., Sequence[jax.Array]] = pl.pallas_call(
        functools.partial(kernel, **static),
        grid=grid,
        in_specs=blocks[: len(operands)],
        out_specs=tuple(blocks[len(operands) :]),
        out_shape=tuple(struct(x.shape, x.dtype, operands[0]) for x in outputs),
        scratch_shapes=scratch,
        name=f"dmljax_{operator}",
        cost_estimate=cost,
        compiler_params=tpu.CompilerParams(dimension_semantics=semantics),
    )
    # Mosaic takes block numbers of 32 bits only; in x64 mode JAX would make them 64.
    with jax.enable_x64(False):
        return launch(*operands)
