"""Six blocks of a network of convolutions, and their gradient.

The images are padded by reflection, and then a convolution of 3 x 3 and the positive
part follow. The same with zeros says what the reflection costs; there the others let
the convolution add them.
"""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import dmljax
from benchmarks.case import Case, Functions
from benchmarks.data import MEAN, Data
from benchmarks.oracles import RTOL, Sample
from benchmarks.others import module, numpy_mode
from dmljax import PaddingMode

BLOCKS, IMAGES, AROUND = 6, 16, (0, 0, 1, 1)
# Rows and columns of a result that are compared.
CORNER = 8


def cases(elements: int) -> Iterator[Case]:
    """Forward and gradient, by two modes and two types."""
    for mode in (PaddingMode.REFLECTION, PaddingMode.CONSTANT):
        for dtype in ("float32", "bfloat16"):
            for direction in ("forward", "gradient"):
                yield _case(elements, mode, dtype, direction)


def _case(elements: int, mode: PaddingMode, dtype: str, direction: str) -> Case:
    side = 2 ** max(round(math.log2(elements) * 4 / 13), 3)
    channels = max(elements // side**2 // (2 * IMAGES), 2)
    images = Data((IMAGES, channels, side, side), dtype)
    functions: Functions = {
        "dmljax": functools.partial(_blocks, functools.partial(_padded, mode)),
        "jnp": functools.partial(_blocks, _CONVOLUTIONS[mode]),
        "torch": functools.partial(_torch_blocks, mode),
    }
    back = direction == "gradient"
    if back:
        functions = {
            name: functools.partial(
                _torch_gradient if name == "torch" else _gradient, f
            )
            for name, f in functions.items()
        }
    return Case(
        "padding",
        f"{BLOCKS} convolutions, {mode.name} by 1, {dtype} {images.shape}",
        (images, Data((BLOCKS, channels, channels, 3, 3), dtype, seed=1)),
        images,
        functions,
        functools.partial(_oracle, mode=numpy_mode(mode), back=back),
        ceiling=None,
        direction=direction,
        context="program",
    )


def _convolve(x: Any, weight: Any, around: int = 0) -> Any:
    pads = ((around, around),) * 2
    return lax.conv_general_dilated(x, weight, (1, 1), pads)


def _padded(mode: PaddingMode, x: Any, weight: Any) -> Any:
    return _convolve(dmljax.padding(x, AROUND, AROUND, mode=mode), weight)


def _reflected(x: Any, weight: Any) -> Any:
    return _convolve(jnp.pad(x, [(p, p) for p in AROUND], "reflect"), weight)


# How it is written with JAX alone. A convolution adds the zeros itself.
_CONVOLUTIONS: dict[PaddingMode, Callable[[Any, Any], Any]] = {
    PaddingMode.REFLECTION: _reflected,
    PaddingMode.CONSTANT: functools.partial(_convolve, around=1),
}


def _blocks(convolve: Callable[[Any, Any], Any], x: Any, weights: Any) -> Any:
    for weight in _scaled(weights):
        x = jax.nn.relu(convolve(x, weight))
    return x


def _gradient(function: Callable[..., Any], x: Any, weights: Any) -> Any:
    def total(weights: Any, x: Any) -> Any:
        return function(x, weights).astype(np.float32).sum()

    return jax.value_and_grad(total, (0, 1))(weights, x)


def _torch_blocks(mode: PaddingMode, x: Any, weights: Any) -> Any:
    torch = module("torch")
    torch.backends.cudnn.benchmark = True  # XLA also looks for the fastest algorithm
    functional = torch.nn.functional
    reflect = mode == PaddingMode.REFLECTION
    for weight in _scaled(weights):
        if reflect:
            x = functional.pad(x, (1, 1, 1, 1), mode="reflect")
        x = functional.conv2d(x, weight, padding=int(not reflect)).relu()
    return x


def _torch_gradient(function: Callable[..., Any], x: Any, weights: Any) -> Any:
    torch = module("torch")
    leaves = [tensor.detach().requires_grad_() for tensor in (weights, x)]
    total = function(leaves[1], leaves[0]).float().sum()
    return total, *torch.autograd.grad(total, leaves)


# THE ORACLE


def _scaled(weights: Any) -> Any:
    """Weights so small that a convolution keeps the size of positive numbers."""
    return weights * (1 / (9 * weights.shape[1] * MEAN))


def _oracle(images: np.ndarray, weights: np.ndarray, *, mode: Any, back: bool) -> Any:
    """A corner of the first image after all blocks, or of the gradient of their sum.

    The corner depends on one more row and column for each block, so it is cheap. All
    numbers are positive, so the positive part changes nothing.
    """
    side, channels = images.shape[-1], images.shape[1]
    corner = min(side, CORNER)
    size = min(side, corner + len(weights))
    blocks = _scaled(weights.astype(np.float64))
    if back:
        values = np.ones((channels, size, size))
        for weight in blocks[::-1]:
            values = _block_back(values, weight, mode, whole=size == side)
    else:
        values = images[0, :, :size, :size].astype(np.float64)
        around = (1, 1 if size == side else 0)
        for weight in blocks:
            values = _convolved(np.pad(values, ((0, 0), around, around), mode), weight)
    line = np.arange(corner)
    axes = (np.arange(1), np.arange(channels), line, line)
    values = values[None, :, :corner, :corner].astype(images.dtype)
    return [Sample(images.shape, axes, values, rtol=RTOL[str(images.dtype)])]


def _convolved(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The sums over 3 x 3 windows and over channels, without padding."""
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
    return np.moveaxis(np.tensordot(windows, weight, ((0, 3, 4), (1, 2, 3))), -1, 0)


def _block_back(
    cotangent: np.ndarray, weight: np.ndarray, mode: str, *, whole: bool
) -> np.ndarray:
    """The cotangent of a block's input, from that of its output.

    If the cotangent is not whole, its last row and column can't be told.
    """
    size = cotangent.shape[-1]
    turned = weight[..., ::-1, ::-1].swapaxes(0, 1)
    sums = _convolved(np.pad(cotangent, ((0, 0), (2, 2), (2, 2))), turned)
    end = size + 1 if whole else size
    for axis in (1, 2):
        lines = np.moveaxis(sums, axis, 0)
        inside = lines[1:end].copy()
        if mode == "reflect":
            inside[1] += lines[0]
            if whole:
                inside[-2] += lines[-1]
        sums = np.moveaxis(inside, 0, axis)
    return sums
