"""The kernels with the blocks that users run, on arrays of more than one block."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

import dmljax
from dmljax import PaddingMode
from tests import oracles

pytestmark = pytest.mark.usefixtures("real_blocks")
SLOW_FLOAT32 = pytest.param("float32", marks=pytest.mark.slow)


def numbers(shape, dtype, low=0, high=99):
    return np.random.default_rng(0).integers(low, high, shape).astype(dtype)


def same(function, *operands):
    kernel, xla = (function(*operands, implementation=i) for i in ("pallas", "xla"))
    np.testing.assert_array_equal(kernel, xla)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_selects(dtype):
    x = numbers((3, 41, 70), dtype)
    same(functools.partial(dmljax.element_wise_if), x > 50, x, x[::-1])
    same(functools.partial(dmljax.diagonal_matrix1, value=0, fill_end=9), x)


# Chunks; and tiles of which several are side by side, and of more positions than bytes
# that are compared at once.
@pytest.mark.parametrize(
    ("dtype", "shape", "size"),
    [
        ("int8", (700, 1, 1), 33),
        ("float32", (90, 1, 1), 17),
        ("int8", (2, 1, 1028), 40),
        ("int8", (2, 1, 16), 150),
        ("float16", (2, 1, 130), 40),
    ],
)
def test_one_hot(dtype, shape, size):
    indices = numbers(shape, np.int32, -2 * size, 2 * size)
    values = jnp.array([5, -1]).astype(dtype)
    same(functools.partial(dmljax.one_hot, size=size, axis=1), indices, values)


@pytest.mark.parametrize("dtype", [SLOW_FLOAT32, "float16", "int8"])
def test_padding(dtype):
    x = numbers((3, 9, 1300), dtype)
    pads = (0, 2, 300), (0, 1, 301)
    for mode in (PaddingMode.CONSTANT, PaddingMode.SYMMETRIC):
        same(functools.partial(dmljax.padding, x, *pads, mode=mode))


@pytest.mark.parametrize("dtype", [SLOW_FLOAT32, "uint8"])
def test_nonzero_coordinates(dtype):
    """A full block, a crowded one, a sparse one and one that is cut."""
    x = numbers(3 * 8192 + 100, dtype, 0, 3)
    x[:8192] = 1
    x[2 * 8192 :: 100] = 0
    x[2 * 8192 :] *= np.arange(x.size - 2 * 8192) % 100 == 1
    count, coordinates = dmljax.nonzero_coordinates(x, implementation="pallas")
    expected = oracles.nonzero_coordinates(x)
    assert int(count) == int(expected[0])
    np.testing.assert_array_equal(coordinates, expected[1])
