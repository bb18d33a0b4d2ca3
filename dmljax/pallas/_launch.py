"""The only caller of Pallas: kernels for NVIDIA GPUs, through Triton."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.experimental import pallas as pl

from dmljax._check import require
from dmljax.pallas import UnaddressableError, kernels_lowered

with kernels_lowered():
    from jax.experimental.pallas import triton

load = triton.load
store = triton.store


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
    """Runs `kernel` on whole arrays in device memory, once for each point of `grid`.

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
            UnaddressableError,
        )
    axes = jax.typeof(operands[0]).manual_axis_type
    shapes = (
        jax.ShapeDtypeStruct(out.shape, out.dtype, manual_axis_type=axes)
        for out in outputs
    )
    results: Sequence[jax.Array] = pl.pallas_call(
        functools.partial(kernel, **static),
        grid=grid,
        out_shape=tuple(shapes),
        name=f"dmljax_{operator}{step}",
        interpret=interpret,
        compiler_params=triton.CompilerParams(num_warps=warps, num_stages=2),
    )(*operands)
    return results
