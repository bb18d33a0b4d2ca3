"""Padded images: PADDING."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.case import Functions
from benchmarks.others import onnx
from benchmarks.programs.program import (
    CPU,
    GPU,
    SIZES,
    SMALL,
    TINY,
    Numbers,
    Program,
    Shape,
    spellings,
)
from dmljax import numpy as dnp

DTYPES = ("bfloat16", "float32", "uint8")
# (images, channels, rows, columns)
IMAGES = {
    GPU: [(16, 64, 256, 256)],
    CPU: [(16, 64, 64, 64)],
    SMALL: [(16, 64, 16, 16)],
    TINY: [(2, 2, 8, 8)],
}
PHOTOGRAPHS = {
    GPU: [(445, 3, 224, 224)],
    CPU: [(27, 3, 224, 224)],
    SMALL: [(1, 3, 224, 224)],
    TINY: [(1, 3, 32, 32)],
}
# The colours are the last dimension.
COLOURS_LAST = {
    GPU: [(445, 224, 224, 3)],
    CPU: [(27, 224, 224, 3)],
    SMALL: [(1, 224, 224, 3)],
    TINY: [(1, 16, 16, 3)],
}


def take_indices(x: jax.Array, pads: Any, mode: Any) -> jax.Array:
    """jnp.pad by indices, which NumPy computes when the program is traced."""
    for axis, around in enumerate(pads):
        if any(around):
            indices = np.pad(np.arange(x.shape[axis]), around, mode)
            x = jnp.take(x, indices, axis, mode="clip")
    return x


PADS: Functions = {"dmljax": dnp.pad, "jnp": jnp.pad, "jnp take": take_indices}


def reflected(x: jax.Array, pad: Any = dnp.pad) -> jax.Array:
    padded: jax.Array = pad(x, ((0, 0), (0, 0), (3, 3), (3, 3)), "reflect")
    return padded


def zeros_around(x: jax.Array, pad: Any = dnp.pad) -> jax.Array:
    padded: jax.Array = pad(x, ((0, 0), (0, 0), (3, 3), (3, 3)), "constant")
    return padded


def middle_axes(x: jax.Array, pad: Any = dnp.pad) -> jax.Array:
    padded: jax.Array = pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), "reflect")
    return padded


def between(x: jax.Array, pad: Any = dnp.pad) -> jax.Array:
    padded: jax.Array = pad(x * 2, ((0, 0), (0, 0), (3, 3), (3, 3)), "reflect")
    return padded + 1


def mean_of_rows(x: jax.Array, pad: Any = dnp.pad) -> jax.Array:
    padded = pad(x * 2, ((0, 0), (0, 0), (3, 3), (3, 3)), "reflect")
    return jnp.mean(padded, 3, dtype=jnp.float32)


def of_squares(x: jax.Array, pad: Any = dnp.pad) -> jax.Array:
    padded: jax.Array = pad(x * x, ((0, 0), (0, 0), (3, 3), (3, 3)), "reflect")
    return padded


def np_mean(x: np.ndarray) -> np.ndarray:
    padded = np.pad(x * 2, ((0, 0), (0, 0), (3, 3), (3, 3)), "reflect")
    return np.asarray(np.mean(padded, 3, dtype=np.float32))


def torch_reflected(x: Any, by: int = 3) -> Any:
    import torch

    return torch.nn.functional.pad(x, (by, by, by, by), mode="reflect")


def torch_zeros_around(x: Any) -> Any:
    import torch

    return torch.nn.functional.pad(x, (3, 3, 3, 3))


def torch_middle_axes(x: Any) -> Any:
    return torch_reflected(x.permute(0, 3, 1, 2), 1).permute(0, 2, 3, 1)


def torch_between(x: Any) -> Any:
    return torch_reflected(x * 2) + 1


def torch_mean(x: Any) -> Any:
    return torch_reflected(x * 2).float().mean(3)


def torch_of_squares(x: Any) -> Any:
    return torch_reflected(x * x)


def onnx_pad(mode: str, pads: list[int]) -> Any:
    amounts = np.array(pads, np.int64)
    return onnx(("Pad", ["in0", "pads"], "out", {"mode": mode}), pads=amounts)


# PATCHES OF 16 x 16, each flattened, of images with 16 more elements on each side.


def wrapped_patches(x: jax.Array, pad: Any = dnp.pad, mode: str = "wrap") -> jax.Array:
    x = pad(x, ((0, 0), (0, 0), (16, 16), (16, 16)), mode)
    n, colours, rows, columns = x.shape
    squares = x.reshape(n, colours, rows // 16, 16, columns // 16, 16)
    return squares.transpose(0, 2, 4, 1, 3, 5).reshape(n, -1, colours * 256)


def edge_patches(x: jax.Array, pad: Any = dnp.pad) -> jax.Array:
    return wrapped_patches(x, pad, "edge")


def torch_wrapped_patches(x: Any, mode: str = "circular") -> Any:
    import torch

    x = torch.nn.functional.pad(x, (16, 16, 16, 16), mode=mode)
    n, colours, rows, columns = x.shape
    squares = x.reshape(n, colours, rows // 16, 16, columns // 16, 16)
    return squares.permute(0, 2, 4, 1, 3, 5).reshape(n, -1, colours * 256)


def torch_edge_patches(x: Any) -> Any:
    return torch_wrapped_patches(x, "replicate")


# CONVOLUTIONS: features are (images, rows, columns, channels), and weights
# (output channels, 3, 3, channels).

BLOCKS, CHANNELS = 6, 64


def scaled(weights: Any) -> Any:
    """Small weights: a convolution keeps the size of positive numbers."""
    return weights * (1 / (9 * 64 * 4.5))


def convolve(x: jax.Array, weight: jax.Array, around: int = 0, groups: int = 1) -> Any:
    return lax.conv_general_dilated(
        x,
        weight,
        window_strides=(1, 1),
        padding=[(around, around), (around, around)],
        dimension_numbers=("NHWC", "OHWI", "NHWC"),
        feature_group_count=groups,
    )


def convolutions(x: jax.Array, weights: jax.Array, pad: Any = dnp.pad) -> jax.Array:
    for weight in scaled(weights):
        padded = pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), "reflect")
        x = x + jax.nn.relu(convolve(padded, weight))
    return x


def zero_convolutions(x: jax.Array, weights: jax.Array) -> jax.Array:
    for weight in scaled(weights):
        x = x + jax.nn.relu(convolve(x, weight, around=1))
    return x


def depthwise(x: jax.Array, weight: jax.Array, pad: Any = dnp.pad) -> Any:
    padded = pad(x, ((0, 0), (2, 2), (2, 2), (0, 0)), "reflect")
    return convolve(padded, weight, groups=64)


def zero_depthwise(x: jax.Array, weight: jax.Array) -> Any:
    return convolve(x, weight, around=2, groups=64)


def np_windows(x: np.ndarray, by: int) -> np.ndarray:
    """(images, rows, columns, channels, 2 by + 1, 2 by + 1)."""
    padded = np.pad(x, ((0, 0), (by, by), (by, by), (0, 0)), "reflect")
    sizes = (2 * by + 1, 2 * by + 1)
    return np.lib.stride_tricks.sliding_window_view(padded, sizes, (1, 2))


def np_convolutions(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    for weight in scaled(weights):
        sums = np.tensordot(np_windows(x, 1), weight, ((3, 4, 5), (3, 1, 2)))
        x = x + np.maximum(sums, 0)
    return x


def np_depthwise(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    sums = np.einsum("nhwcij,cij->nhwc", np_windows(x, 2), weight[..., 0])
    return np.asarray(sums)


def torch_convolve(x: Any, weight: Any, groups: int = 1) -> Any:
    import torch

    torch.backends.cudnn.benchmark = True  # XLA looks for the fastest algorithm, too
    return torch.nn.functional.conv2d(x, weight.permute(0, 3, 1, 2), groups=groups)


def torch_convolutions(x: Any, weights: Any) -> Any:
    x = x.permute(0, 3, 1, 2)
    for weight in scaled(weights):
        x = x + torch_convolve(torch_reflected(x, 1), weight).relu()
    return x.permute(0, 2, 3, 1)


def torch_depthwise(x: Any, weight: Any) -> Any:
    padded = torch_reflected(x.permute(0, 3, 1, 2), 2)
    return torch_convolve(padded, weight, groups=64).permute(0, 2, 3, 1)


def with_weights(*weights: int) -> dict[int, list[Shape]]:
    return {
        GPU: [(16, 128, 128, 64), weights],
        CPU: [(16, 32, 32, 64), weights],
        SMALL: [(16, 8, 8, 64), weights],
        TINY: [(2, 8, 8, 64), weights],
    }


def _exact(functions: Functions, oracle: Any, shapes: Any, **options: Any) -> Program:
    """A program that only moves elements, or computes with whole numbers."""
    options = {"dtypes": DTYPES, "rtol": 0, **options}
    return Program("padding", functions, [Numbers(10)], shapes, oracle, **options)


def _np_pad(*pads: tuple[int, int], mode: Any = "reflect") -> Any:
    return functools.partial(np.pad, pad_width=pads, mode=mode)


NP_REFLECTED = _np_pad((0, 0), (0, 0), (3, 3), (3, 3))
NP_ZEROS = _np_pad((0, 0), (0, 0), (3, 3), (3, 3), mode="constant")
NP_MIDDLE = _np_pad((0, 0), (1, 1), (1, 1), (0, 0))
ZEROS = _exact(
    {
        **spellings(zeros_around, pad={"dmljax": dnp.pad, "jnp": jnp.pad}),
        "numpy": NP_ZEROS,
        "onnxruntime": onnx_pad("constant", [0, 0, 3, 3, 0, 0, 3, 3]),
        "torch": torch_zeros_around,
    },
    NP_ZEROS,
    IMAGES,
)
PROGRAMS = {
    "reflect padding between two operations": _exact(
        {**spellings(between, pad=PADS), "torch": torch_between},
        lambda x: NP_REFLECTED(x * 2) + 1,
        IMAGES,
    ),
    "reflect padding": _exact(
        {
            **spellings(reflected, pad=PADS),
            "numpy": NP_REFLECTED,
            "onnxruntime": onnx_pad("reflect", [0, 0, 3, 3, 0, 0, 3, 3]),
            "torch": torch_reflected,
        },
        NP_REFLECTED,
        IMAGES,
    ),
    "reflect padding of the middle axes": _exact(
        {
            **spellings(middle_axes, pad=PADS),
            "numpy": NP_MIDDLE,
            "onnxruntime": onnx_pad("reflect", [0, 1, 1, 0, 0, 1, 1, 0]),
            "torch": torch_middle_axes,
        },
        NP_MIDDLE,
        COLOURS_LAST,
    ),
    "mean of reflect-padded rows": _exact(
        {**spellings(mean_of_rows, pad=PADS), "torch": torch_mean},
        np_mean,
        IMAGES,
        rtol=0.01,
    ),
    "reflect padding of squares": _exact(
        {**spellings(of_squares, pad=PADS), "torch": torch_of_squares},
        lambda x: NP_REFLECTED(x * x),
        IMAGES,
        dtypes=("bfloat16", "float32"),
        rtol=None,
        directions=("gradient",),
    ),
    "patches of wrapped images": _exact(
        {
            **spellings(wrapped_patches, pad=PADS),
            "torch": torch_wrapped_patches,
        },
        functools.partial(wrapped_patches, pad=np.pad),
        PHOTOGRAPHS,
    ),
    "patches of images, edges repeated": _exact(
        {**spellings(edge_patches, pad=PADS), "torch": torch_edge_patches},
        functools.partial(edge_patches, pad=np.pad),
        PHOTOGRAPHS,
        dtypes=("uint8", "bfloat16", "float32"),
    ),
    "6 reflect-padded convolutions": Program(
        "padding",
        {
            **spellings(convolutions, pad=PADS),
            "reference zero padding": zero_convolutions,
            "torch": torch_convolutions,
        },
        [Numbers(10), Numbers(10)],
        with_weights(BLOCKS, CHANNELS, 3, 3, CHANNELS),
        np_convolutions,
        shared=(1,),
        ceiling=None,
    ),
    "reflect-padded depthwise convolution": Program(
        "padding",
        {
            **spellings(depthwise, pad=PADS),
            "reference zero padding": zero_depthwise,
            "torch": torch_depthwise,
        },
        [Numbers(10), Numbers(10)],
        with_weights(CHANNELS, 5, 5, 1),
        np_depthwise,
        shared=(1,),
        ceiling=None,
    ),
}

# Photographs, features, smaller images, and a table, on a CPU.
SMALLER: dict[Shape, tuple[str, ...]] = {
    (8, 3, 224, 224): ("uint8", "float16", "float32"),
    (8, 64, 56, 56): ("uint8", "float32"),
    (16, 16, 128, 128): ("uint8", "float32"),
    (1, 1, 4096, 256): ("float16", "float32"),
}


def _of_shape(program: Program, shape: Shape, *dtypes: str) -> Program:
    shapes = {elements: [shape] for elements in SIZES}
    return dataclasses.replace(program, shapes=shapes, dtypes=dtypes)


def on_cpu() -> list[tuple[str, Program]]:
    """Programs of other shapes, by name."""
    programs = {"constant padding": ZEROS}
    for name in (
        "reflect padding",
        "reflect padding between two operations",
        "mean of reflect-padded rows",
    ):
        programs[name] = PROGRAMS[name]
    found = []
    for name, program in programs.items():
        for shape, dtypes in SMALLER.items():
            found.append((name, _of_shape(program, shape, *dtypes)))
    name = "reflect padding of the middle axes"
    for shape in ((8, 224, 224, 3), (8, 56, 56, 64)):
        found.append((name, _of_shape(PROGRAMS[name], shape, "uint8")))
    return found
