"""The only caller of Pallas: through Triton for NVIDIA GPUs, Mosaic for TPUs."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.experimental import pallas as pl

from dmljax._check import NoKernelError, require
from dmljax._jax import struct
from dmljax.pallas import kernels_available, kernels_lowered

if kernels_available("cuda"):
    with kernels_lowered("cuda"):
        from jax.experimental.pallas import triton

    load = triton.load
    store = triton.store

if kernels_available("tpu"):
    from jax.experimental.pallas import tpu


def launch(
    kernel: Callable[..., None],
    *operands: jax.Array,
    operator: str,
    grid: tuple[int, ...],
    outputs: Sequence[jax.ShapeDtypeStruct],
    warps: int,
    interpret: bool,
    step: str = "",
    **static: Any,
) -> Sequence[jax.Array]:
    """Runs `kernel` on whole arrays in a GPU's memory, once for each point of `grid`.

    Its arguments are the operands and the outputs, as references, and `static`. In a
    profile it has the name of the operator, and of the step if there are several. The
    hardware allows the dimensions of the grid after the first 65 535 programs.
    """
    arrays: list[Any] = [*operands, *outputs]
    for array in arrays:
        # The backend counts bytes to decide whether a place needs 64 bits, and then
        # computes places, as signed numbers: those of single bytes can overflow.
        require(
            operator.upper(),
            array.dtype.itemsize > 1 or not 2**31 < array.size <= 2**32,
            f"the kernel can't address an array of {array.size} elements of one byte "
            "(more than 2^31, at most 2^32); use implementation=None or 'xla'.",
            NoKernelError,
        )
    results: Sequence[jax.Array] = pl.pallas_call(
        functools.partial(kernel, **static),
        grid=grid,
        out_shape=tuple(struct(x.shape, x.dtype, operands[0]) for x in outputs),
        name=f"dmljax_{operator}{step}",
        interpret=interpret,
        compiler_params=triton.CompilerParams(num_warps=warps, num_stages=2),
    )(*operands)
    return results


@dataclasses.dataclass(frozen=True)
class Block:
    """What of an array is in a TPU's vector memory for a point of the grid.

    Attributes:
      sizes: of the block.
      place: gives its number along each dimension from the place in the grid.
      axes: the dimensions of the grid on which `place` depends.
      scalar: whether it is in the memory of the scalars instead.
      whole: whether it is all of the array, which stays where it is.
      elements: how many are moved in all; None where each dimension of the grid goes
        along the same one of the array.
    """

    sizes: tuple[int, ...]
    place: Callable[..., tuple[Any, ...]]
    axes: tuple[int, ...]
    scalar: bool = False
    whole: bool = False
    elements: int | None = None

    def spec(self) -> pl.BlockSpec:
        """The same for Pallas."""
        if self.whole:
            return pl.BlockSpec(memory_space=pl.ANY)
        space = tpu.SMEM if self.scalar else None
        return pl.BlockSpec(self.sizes, self.place, memory_space=space)

    def moved(self, grid: tuple[int, ...], shape: tuple[int, ...]) -> int:
        """The elements that are moved: a block stays while its number does."""
        if self.elements is not None:
            return self.elements
        turning = [axis for axis in self.axes if grid[axis] > 1]
        again = math.prod(
            size
            for axis, size in enumerate(grid[: max(turning, default=0)])
            if axis not in self.axes
        )
        along = (
            size if steps * block - size < block else steps * block
            for steps, block, size in zip(
                (n if axis in self.axes else 1 for axis, n in enumerate(grid)),
                self.sizes,
                shape,
                strict=True,
            )
        )
        return again * math.prod(along)


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

    Its arguments are the blocks of the operands and of the outputs, scratch memory, and
    `static`. While it runs, the next blocks are fetched and the last ones written. What
    the compiler is told of the cost is what is moved: it can't look into a kernel. The
    points may be shared by cores, but the last dimension if they must be `in_order`.
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
    with jax.enable_x64(False):  # places in a grid have 32 bits
        results: Sequence[jax.Array] = pl.pallas_call(
            functools.partial(kernel, **static),
            grid=grid,
            in_specs=specs[: len(operands)],
            out_specs=tuple(specs[len(operands) :]),
            out_shape=tuple(struct(x.shape, x.dtype, operands[0]) for x in outputs),
            scratch_shapes=list(scratch),
            name=f"dmljax_{operator}",
            interpret=interpret,
            cost_estimate=pl.CostEstimate(
                flops=0, transcendentals=0, bytes_accessed=moved
            ),
            compiler_params=tpu.CompilerParams(dimension_semantics=semantics),
        )(*operands)
    return results
