"""The only caller of Pallas: kernels for NVIDIA GPUs, through Triton."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.experimental import pallas as pl

from dmljax.pallas import triton_without_warning

with triton_without_warning():
    from jax.experimental.pallas import triton

load = triton.load
store = triton.store


def launch(
    kernel: Callable[..., None],
    *operands: jax.Array,
    name: str,
    grid: tuple[int, ...],
    outputs: Sequence[jax.ShapeDtypeStruct],
    warps: int,
    interpret: bool,
    **static: Any,
) -> Sequence[jax.Array]:
    """Runs `kernel` on whole arrays in device memory, once for each point of `grid`.

    Its arguments are the operands and the outputs, as references, and `static`. The
    hardware allows the dimensions of the grid after the first 65 535 programs.
    """
    results: Sequence[jax.Array] = pl.pallas_call(
        functools.partial(kernel, **static),
        grid=grid,
        out_shape=tuple(outputs),
        name=f"dmljax_{name}",
        interpret=interpret,
        compiler_params=triton.CompilerParams(num_warps=warps, num_stages=2),
    )(*operands)
    return results
