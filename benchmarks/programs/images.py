"""Images that are padded: PADDING."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import dmljax
from benchmarks.others import TORCH_NAMES, module, onnx
from benchmarks.programs import ten as shared
from benchmarks.programs.ten import BY_3, BY_16, Input, Program, images, patches
from benchmarks.programs.timed import Timed, with_ways

BLOCKS, CHANNELS = 6, 64
BY_1, BY_2 = (((0, 0), (by, by), (by, by), (0, 0)) for by in (1, 2))
LAYOUT = ("NHWC", "OHWI", "NHWC")
DTYPES = ("bfloat16", "float32", "uint8")


def _take(x: jax.Array, pads: Any, mode: Any) -> jax.Array:
    """jnp.pad by indices that NumPy computes."""
    for axis, around in enumerate(pads):
        if any(around):
            indices = np.pad(np.arange(x.shape[axis]), around, mode)
            x = jnp.take(x, indices, axis, mode="clip")
    return x


def _kernel(x: jax.Array, pads: Any, mode: str) -> jax.Array:
    start, end = zip(*pads, strict=True)
    named: Any = mode
    return dmljax.padding(x, start, end, mode=named, implementation="pallas")


ALONE = "reflect padding"
BETWEEN = f"{ALONE} between two operations"
MEAN = "mean of reflect-padded rows"
PADS = {**shared.PADS, "jnp take": _take}
KERNEL = {**PADS, "dmljax pallas": _kernel}


def _torch_pad(x: Any, by: int, mode: str = "reflect") -> Any:
    pad = module("torch").nn.functional.pad
    return pad(x, (by,) * 4, mode=TORCH_NAMES.get(mode, mode))


def _padded(
    program: Callable[..., Any], inputs: Any = images, ways: Any = PADS
) -> Program:
    return Program("padding", inputs, program, ways)


def _mean(library: Any, x: Any) -> Any:
    return library.mean(x, 3, dtype=np.float32)


def _patches(x: Any, turned: Callable[..., Any]) -> Any:
    n, colours, rows, columns = x.shape
    squares = x.reshape(n, colours, rows // 16, 16, columns // 16, 16)
    return turned(squares, (0, 2, 4, 1, 3, 5)).reshape(n, -1, colours * 256)


def _patched(mode: str, program: Program, dtypes: Sequence[str]) -> Timed:
    def in_torch(x: Any) -> Any:
        return _patches(_torch_pad(x, 16, mode), module("torch").permute)

    return Timed(
        with_ways(program, KERNEL),
        lambda x: _patches(np.pad(x, BY_16, mode), np.transpose),  # type: ignore[call-overload]
        {"torch": in_torch},
        dtypes=dtypes,
        rtol=0,
    )


def _alone(
    pads: Any, mode: Any, ways: Any = PADS, inputs: Callable[..., Any] = images
) -> Timed:
    amounts = np.ravel(pads, "F").astype(np.int64)
    model = onnx(("Pad", ["in0", "pads"], "out", {"mode": mode}), pads=amounts)

    def in_torch(x: Any) -> Any:
        return _torch_pad(x, 3, mode)

    def of_last_channels(x: Any) -> Any:
        return _torch_pad(x.permute(0, 3, 1, 2), 1, mode).permute(0, 2, 3, 1)

    return Timed(
        _padded(lambda pad, x: pad(x, pads, mode), inputs, ways),
        lambda x: np.pad(x, pads, mode),
        {"torch": in_torch if pads is BY_3 else of_last_channels},
        more={"numpy": lambda x: np.pad(x, pads, mode), "onnxruntime": model},
        dtypes=DTYPES,
        rtol=0,
    )


def _photographs(elements: int, dtype: str) -> tuple[Input, ...]:
    """(445, 224, 224, 3) for 2^26 elements: the colours are the last dimension."""
    return (((max(elements // (3 * 224**2), 1), 224, 224, 3), dtype, 10),)


# CONVOLUTIONS


def _features(elements: int, dtype: str) -> tuple[Input, ...]:
    """(16, 128, 128, 64) for 2^26 elements: the channels are the last dimension."""
    rows = 2 ** max(round(np.log2(elements / 4096) / 2), 3)
    return (((16, rows, rows, CHANNELS), dtype, 10),)


def _with_weights(
    shape: tuple[int, ...], elements: int, dtype: str
) -> tuple[Input, ...]:
    return *_features(elements, dtype), (shape, dtype, 10)


def _scaled(weights: Any) -> Any:
    """Small weights: a convolution keeps the size of positive numbers."""
    return weights * (1 / (9 * CHANNELS * 4.5))


def _convolve(x: jax.Array, weight: jax.Array, around: int = 0, groups: int = 1) -> Any:
    return lax.conv_general_dilated(
        x,
        weight,
        (1, 1),
        ((around, around),) * 2,
        dimension_numbers=LAYOUT,
        feature_group_count=groups,
    )


def _blocks(convolve: Any, x: jax.Array, weights: jax.Array) -> jax.Array:
    for weight in _scaled(weights):
        x = x + jax.nn.relu(convolve(x, weight))
    return x


def _convolutions(pad: Any, x: jax.Array, weights: jax.Array) -> jax.Array:
    return _blocks(lambda x, w: _convolve(pad(x, BY_1, "reflect"), w), x, weights)


def _depthwise(pad: Any, x: jax.Array, weight: jax.Array) -> Any:
    return _convolve(pad(x, BY_2, "reflect"), weight, groups=CHANNELS)


def _windows(x: np.ndarray, by: int) -> np.ndarray:
    """(n, h, w, channels, 2 by + 1, 2 by + 1)."""
    around = np.pad(x, ((0, 0), (by, by), (by, by), (0, 0)), "reflect")
    window = (2 * by + 1, 2 * by + 1)
    return np.lib.stride_tricks.sliding_window_view(around, window, (1, 2))


def _np_blocks(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    for weight in _scaled(weights):
        sums = np.tensordot(_windows(x, 1), weight, ((3, 4, 5), (3, 1, 2)))
        x = x + np.maximum(sums, 0)
    return x


def _torch_convolve(x: Any, weight: Any, groups: int = 1) -> Any:
    torch = module("torch")
    torch.backends.cudnn.benchmark = True  # XLA looks for the fastest algorithm, too
    return torch.nn.functional.conv2d(x, weight.permute(0, 3, 1, 2), groups=groups)


def _torch_blocks(x: Any, weights: Any) -> Any:
    x = x.permute(0, 3, 1, 2)
    for weight in _scaled(weights):
        x = x + _torch_convolve(_torch_pad(x, 1), weight).relu()
    return x.permute(0, 2, 3, 1)


def _torch_depthwise(x: Any, weight: Any) -> Any:
    around = _torch_pad(x.permute(0, 3, 1, 2), 2)
    return _torch_convolve(around, weight, CHANNELS).permute(0, 2, 3, 1)


PROGRAMS = {
    BETWEEN: Timed(
        with_ways(shared.PROGRAMS[BETWEEN], PADS),
        lambda x: np.pad(x * 2, BY_3, "reflect") + 1,
        {"torch": lambda x: _torch_pad(x * 2, 3) + 1},
        dtypes=DTYPES,
        rtol=0,
    ),
    ALONE: _alone(BY_3, "reflect", KERNEL),
    f"{ALONE} of the middle axes": _alone(BY_1, "reflect", KERNEL, _photographs),
    MEAN: Timed(
        _padded(lambda pad, x: _mean(jnp, pad(x * 2, BY_3, "reflect"))),
        lambda x: _mean(np, np.pad(x * 2, BY_3, "reflect")),
        {"torch": lambda x: _torch_pad(x * 2, 3).float().mean(3)},
        dtypes=DTYPES,
        rtol=0.01,
    ),
    "reflect padding of squares": Timed(
        _padded(lambda pad, x: pad(x * x, BY_3, "reflect")),
        lambda x: np.pad(x * x, BY_3, "reflect"),
        {"torch": lambda x: _torch_pad(x * x, 3)},
        directions=("gradient",),
    ),
    "patches of wrapped images": _patched(
        "wrap", shared.PROGRAMS["patches of wrapped images"], DTYPES
    ),
    "patches of images, edges repeated": _patched(
        "edge",
        shared.PROGRAMS["patches of wrapped images"]._replace(
            run=lambda pad, x: patches(pad(x, BY_16, "edge"))
        ),
        ("uint8", "bfloat16", "float32"),
    ),
    "6 reflect-padded convolutions": Timed(
        _padded(
            _convolutions,
            functools.partial(_with_weights, (BLOCKS, CHANNELS, 3, 3, CHANNELS)),
        ),
        _np_blocks,
        {"torch": _torch_blocks},
        references={
            "zero padding": functools.partial(
                _blocks, lambda x, weight: _convolve(x, weight, 1)
            )
        },
        shared=(1,),
        ceiling=None,
    ),
    "reflect-padded depthwise convolution": Timed(
        _padded(_depthwise, functools.partial(_with_weights, (CHANNELS, 5, 5, 1))),
        lambda x, weight: np.einsum("nhwcij,cij->nhwc", _windows(x, 2), weight[..., 0]),
        {"torch": _torch_depthwise},
        references={
            "zero padding": lambda x, weight: _convolve(x, weight, 2, CHANNELS)
        },
        shared=(1,),
        ceiling=None,
    ),
}


def _of_size(
    name: str, timed: Timed, shape: tuple[int, ...], *dtypes: str
) -> tuple[str, Timed]:
    program = timed.program._replace(inputs=lambda n, t: ((shape, t, 10),))
    return name, dataclasses.replace(timed, program=program, dtypes=dtypes)


ON_CPU = [
    _of_size(name, timed, shape, *dtypes)
    for name, timed in (
        ("constant padding", _alone(BY_3, "constant", shared.PADS)),
        *((name, PROGRAMS[name]) for name in (ALONE, BETWEEN, MEAN)),
    )
    # Photographs, features, smaller images, and a table.
    for shape, dtypes in {
        (8, 3, 224, 224): ("uint8", "float16", "float32"),
        (8, 64, 56, 56): ("uint8", "float32"),
        (16, 16, 128, 128): ("uint8", "float32"),
        (1, 1, 4096, 256): ("float16", "float32"),
    }.items()
]
ON_CPU += [
    _of_size(f"{ALONE} of the middle axes", _alone(BY_1, "reflect"), shape, "uint8")
    for shape in ((8, 224, 224, 3), (8, 56, 56, 64))
]
