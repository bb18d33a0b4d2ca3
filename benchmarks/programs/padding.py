"""Padded images: PADDING."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks.case import Functions
from benchmarks.programs.program import (
    BOTH,
    CPU,
    GPU,
    Numbers,
    Program,
    spellings,
)
from dmljax import numpy as dnp

DTYPES = ("bfloat16", "float32", "uint8")
# (images, channels, rows, columns)
IMAGES = {
    GPU: [(16, 64, 256, 256)],
    CPU: [(16, 64, 64, 64)],
}
PHOTOGRAPHS = {
    GPU: [(445, 3, 224, 224)],
    CPU: [(27, 3, 224, 224)],
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


def between(x: jax.Array, pad: Any = dnp.pad) -> jax.Array:
    return reflected(x * 2, pad) + 1


def mean_of_rows(x: jax.Array, pad: Any = dnp.pad) -> jax.Array:
    return jnp.mean(reflected(x * 2, pad), 3, dtype=jnp.float32)


def of_squares(x: jax.Array, pad: Any = dnp.pad) -> jax.Array:
    return reflected(x * x, pad)


def torch_reflected(x: Any, by: int = 3) -> Any:
    import torch

    return torch.nn.functional.pad(x, (by, by, by, by), mode="reflect")


def torch_between(x: Any) -> Any:
    return torch_reflected(x * 2) + 1


def torch_mean(x: Any) -> Any:
    return torch_reflected(x * 2).float().mean(3)


def torch_of_squares(x: Any) -> Any:
    return torch_reflected(x * x)


# PATCHES OF 16 x 16, each flattened, of images with 16 more elements on each side.


def wrapped_patches(x: jax.Array, pad: Any = dnp.pad) -> jax.Array:
    x = pad(x, ((0, 0), (0, 0), (16, 16), (16, 16)), "wrap")
    n, colours, rows, columns = x.shape
    squares = x.reshape(n, colours, rows // 16, 16, columns // 16, 16)
    return squares.transpose(0, 2, 4, 1, 3, 5).reshape(n, -1, colours * 256)


def torch_wrapped_patches(x: Any) -> Any:
    import torch

    x = torch.nn.functional.pad(x, (16, 16, 16, 16), mode="circular")
    n, colours, rows, columns = x.shape
    squares = x.reshape(n, colours, rows // 16, 16, columns // 16, 16)
    return squares.permute(0, 2, 4, 1, 3, 5).reshape(n, -1, colours * 256)


# CONVOLUTIONS: features are (images, rows, columns, channels), and weights
# (output channels, 3, 3, channels).

WEIGHTS = (6, 64, 3, 3, 64)


def scaled(weights: Any) -> Any:
    """Small weights: a convolution keeps the size of positive numbers."""
    return weights * (1 / (9 * 64 * 4.5))


def convolve(x: jax.Array, weight: jax.Array, around: int = 0) -> Any:
    return lax.conv_general_dilated(
        x,
        weight,
        window_strides=(1, 1),
        padding=[(around, around), (around, around)],
        dimension_numbers=("NHWC", "OHWI", "NHWC"),
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


def torch_convolve(x: Any, weight: Any) -> Any:
    import torch

    torch.backends.cudnn.benchmark = True  # XLA looks for the fastest algorithm, too
    return torch.nn.functional.conv2d(x, weight.permute(0, 3, 1, 2))


def torch_convolutions(x: Any, weights: Any) -> Any:
    x = x.permute(0, 3, 1, 2)
    for weight in scaled(weights):
        x = x + torch_convolve(torch_reflected(x, 1), weight).relu()
    return x.permute(0, 2, 3, 1)


# FRAMES OF A SIGNAL: the spectra of its frames, each centred by reflection.

N_FFT, HOP = 512, 128
WINDOW = np.hanning(N_FFT + 1)[:-1].astype(np.float32)
SIGNALS = {GPU: [(64, 262144)], CPU: [(8, 160000)]}


def centred(x: jax.Array, pad: Any = dnp.pad) -> jax.Array:
    padded: jax.Array = pad(x, ((0, 0), (N_FFT // 2, N_FFT // 2)), "reflect")
    return padded


def spectra(x: jax.Array, pad: Any = dnp.pad) -> jax.Array:
    padded = centred(x, pad)
    first = jnp.arange(0, padded.shape[1] - N_FFT + 1, HOP)
    frames = padded[:, first[:, None] + jnp.arange(N_FFT)]
    return jnp.abs(jnp.fft.rfft(frames * WINDOW))


def torch_centred(x: Any) -> Any:
    import torch

    return torch.nn.functional.pad(x, (N_FFT // 2, N_FFT // 2), mode="reflect")


def torch_spectra(x: Any) -> Any:
    import torch

    window = torch.from_numpy(WINDOW).to(x.device)
    spectrum = torch.stft(x, N_FFT, HOP, window=window, return_complex=True)
    return spectrum.abs().mT


def program(run: Any, shapes: Any, torch: Any, **options: Any) -> Program:
    """A program that only moves elements, or computes with whole numbers."""
    options = {"dtypes": DTYPES, "rtol": 0, **options}
    functions = {**spellings(run, pad=PADS), "torch": torch}
    return Program("padding", functions, [Numbers(10)], shapes, **options)


FLOAT = ("float32",)
PROGRAMS = {
    "reflect padding between two operations": program(between, IMAGES, torch_between),
    "reflect padding": program(reflected, IMAGES, torch_reflected),
    "mean of reflect-padded rows": program(mean_of_rows, IMAGES, torch_mean, rtol=0.01),
    "reflect padding of squares": program(
        of_squares,
        IMAGES,
        torch_of_squares,
        dtypes=("bfloat16", "float32"),
        rtol=None,
        directions=("gradient",),
    ),
    "patches of wrapped images": program(
        wrapped_patches, PHOTOGRAPHS, torch_wrapped_patches
    ),
    "reflect padding of signals": program(
        centred, SIGNALS, torch_centred, dtypes=FLOAT, directions=BOTH
    ),
    "frames of a signal": program(
        spectra, SIGNALS, torch_spectra, dtypes=FLOAT, rtol=None, moves=False
    ),
    "6 reflect-padded convolutions": Program(
        "padding",
        {
            **spellings(convolutions, pad=PADS),
            "reference zero padding": zero_convolutions,
            "torch": torch_convolutions,
        },
        [Numbers(10), Numbers(10)],
        {GPU: [(16, 128, 128, 64), WEIGHTS], CPU: [(16, 32, 32, 64), WEIGHTS]},
        moves=False,
    ),
}
