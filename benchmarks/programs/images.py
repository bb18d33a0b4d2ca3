"""Images that are padded: PADDING."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax

import dmljax
from benchmarks.others import TORCH_NAMES, module
from benchmarks.programs.timed import Timed
from dmljax import PaddingMode
from dmljax._programs import BY_3, BY_16, PADS, Input, Program, images, patches
from dmljax._programs import PROGRAMS as SHARED

BLOCKS, CHANNELS = 6, 64
BY_1, BY_2 = (((0, 0), (by, by), (by, by), (0, 0)) for by in (1, 2))
LAYOUT = ("NHWC", "OHWI", "NHWC")


def _with_pads(use: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """A program by all ways to pad."""
    return {
        name: (lambda *arrays, pad=pad: use(pad, *arrays)) for name, pad in PADS.items()
    }


def _torch_pad(x: Any, by: int, mode: str = "reflect") -> Any:
    pad = module("torch").nn.functional.pad
    return pad(x, (by,) * 4, mode=TORCH_NAMES.get(mode, mode))


def _kernel(x: jax.Array) -> jax.Array:
    sides = (0, 0, 3, 3)
    padding = functools.partial(dmljax.padding, mode=PaddingMode.REFLECTION)
    return padding(x, sides, sides, implementation="pallas")


ALONE = Program(
    "padding",
    images,
    _with_pads(lambda pad, x: pad(x, BY_3, "reflect")) | {"dmljax pallas": _kernel},
    ("bfloat16", "float32", "uint8"),
)
SQUARES = Program("padding", images, _with_pads(lambda f, x: f(x * x, BY_3, "reflect")))
EDGES = SHARED["patches of wrapped images"]._replace(
    spellings=_with_pads(lambda pad, x: patches(pad(x, BY_16, "edge"))),
    dtypes=("uint8",),
)


def _patches(x: Any, turned: Callable[..., Any]) -> Any:
    n, colours, rows, columns = x.shape
    squares = x.reshape(n, colours, rows // 16, 16, columns // 16, 16)
    return turned(squares, (0, 2, 4, 1, 3, 5)).reshape(n, -1, colours * 256)


def _torch_patches(x: Any, mode: str) -> Any:
    return _patches(_torch_pad(x, 16, mode), module("torch").permute)


# CONVOLUTIONS


def _photographs(elements: int, dtype: str) -> tuple[Input, ...]:
    """(16, 128, 128, 64) for 2^26 elements: the channels are the last dimension."""
    rows = 2 ** max(round(np.log2(elements / 4096) / 2), 3)
    return (((16, rows, rows, CHANNELS), dtype, 10),)


def _with_blocks(elements: int, dtype: str) -> tuple[Input, ...]:
    weights = ((BLOCKS, CHANNELS, 3, 3, CHANNELS), dtype, 10)
    return *_photographs(elements, dtype), weights


def _with_kernel(elements: int, dtype: str) -> tuple[Input, ...]:
    return *_photographs(elements, dtype), ((CHANNELS, 5, 5, 1), dtype, 10)


def _scaled(weights: Any) -> Any:
    """Weights so small that a convolution keeps the size of positive numbers."""
    return weights * (1 / (9 * CHANNELS * 4.5))


def _blocks(convolve: Callable[..., Any]) -> Callable[..., Any]:
    def blocks(x: jax.Array, weights: jax.Array) -> jax.Array:
        for weight in _scaled(weights):
            x = x + jax.nn.relu(convolve(x, weight))
        return x

    return blocks


def _convolve(x: jax.Array, weight: jax.Array, around: int = 0, groups: int = 1) -> Any:
    return lax.conv_general_dilated(
        *(x, weight, (1, 1), ((around, around),) * 2),
        dimension_numbers=LAYOUT,
        feature_group_count=groups,
    )


def _padded(pad: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, weight: _convolve(pad(x, BY_1, "reflect"), weight)


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


CONVOLUTIONS = Program(
    "padding",
    _with_blocks,
    {n: _blocks(_padded(pad)) for n, pad in PADS.items()},
)
DEPTHWISE = Program("padding", _with_kernel, _with_pads(_depthwise))

PROGRAMS = {
    "reflect padding between two operations": Timed(
        SHARED["reflect padding between two operations"],
        lambda x: np.pad(x * 2, BY_3, "reflect") + 1,
        {"torch": lambda x: _torch_pad(x * 2, 3) + 1},
        rtol=0,
    ),
    "reflect padding": Timed(
        ALONE,
        lambda x: np.pad(x, BY_3, "reflect"),
        {"torch": lambda x: _torch_pad(x, 3)},
        rtol=0,
    ),
    "reflect padding of squares": Timed(
        SQUARES,
        lambda x: np.pad(x * x, BY_3, "reflect"),
        {"torch": lambda x: _torch_pad(x * x, 3)},
        directions=("gradient",),
    ),
    "patches of wrapped images": Timed(
        SHARED["patches of wrapped images"],
        lambda x: _patches(np.pad(x, BY_16, "wrap"), np.transpose),
        {"torch": lambda x: _torch_patches(x, "wrap")},
        rtol=0,
    ),
    "patches of images, edges repeated": Timed(
        EDGES,
        lambda x: _patches(np.pad(x, BY_16, "edge"), np.transpose),
        {"torch": lambda x: _torch_patches(x, "edge")},
        rtol=0,
    ),
    "6 reflect-padded convolutions": Timed(
        CONVOLUTIONS,
        _np_blocks,
        {"torch": _torch_blocks},
        {"zero padding": _blocks(lambda x, weight: _convolve(x, weight, 1))},
        shared=(1,),
        ceiling=None,
    ),
    "reflect-padded depthwise convolution": Timed(
        DEPTHWISE,
        lambda x, weight: np.einsum("nhwcij,cij->nhwc", _windows(x, 2), weight[..., 0]),
        {"torch": _torch_depthwise},
        {"zero padding": lambda x, weight: _convolve(x, weight, 2, CHANNELS)},
        shared=(1,),
        ceiling=None,
    ),
}
