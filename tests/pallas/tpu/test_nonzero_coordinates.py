"""NONZERO_COORDINATES on a TPU: results in the interpreter."""

import jax.numpy as jnp
import numpy as np
import pytest

from dmljax import DescriptorError
from dmljax._nonzero_forms import definition
from dmljax.pallas.tpu import LANES, SUBLANES, _nonzero_coordinates
from tests.checks import launches, slow, struct
from tests.pallas.nonzero import KERNELS, assert_finds, by_kernel
from tests.transforms.dense import assert_equal

TILE = SUBLANES * LANES
BLOCK = 4 * TILE  # a small block


def lines(elements):
    """Lines of every density, and cut at the edges of vectors, tiles and blocks."""
    random = np.random.default_rng(0)
    offset = np.arange(elements)
    block = _nonzero_coordinates.VECTORS * LANES
    found = [random.random(elements) < density for density in (0.001, 0.1, 0.6)]
    for edge in (0, LANES, TILE, block, elements):
        found += [offset < edge + i for i in (-1, 0, 1)]
    found.append((offset >= block) & (random.random(elements) < 0.5))  # an empty block
    found.append((offset < block) | (offset % 7 == 0))  # a full block
    return found


# Sizes just below, at, and just above a boundary.
SIZES = (1, 2, LANES - 1, LANES, LANES + 1, TILE - 1, TILE, BLOCK + 1)
CUT = 3 * BLOCK - 71
# The interpreter takes a third of a second for each block. Each number of rows has a
# third of the lines, in turn.
THIRDS = [slice(i, None, 3) for i in range(3)]


@pytest.mark.parametrize(
    ("elements", "rows", "some", "cores", "fill"),
    [
        (CUT, BLOCK + 500, slice(2, None, 6), 1, 0),
        slow(CUT, None, THIRDS[0], 2, 7),
        slow(CUT, None, THIRDS[1], 1, 0),
        slow(CUT, None, THIRDS[2], 1, 7),
    ]
    + [slow(elements, None, THIRDS[0], 1, 7) for elements in SIZES]
    + [
        slow(CUT, rows, THIRDS[i % 3], 1, 0)
        for i, rows in enumerate((*SIZES, 2 * BLOCK, 3 * BLOCK))
    ],
)
def test_lines(interpreter, elements, rows, some, cores, fill):
    """Blocks of a few vectors; lines side by side with unaligned ends.

    A line may have more non-zeros than rows, and another line fewer.
    """
    batch = [np.stack(lines(elements)[some])]
    with interpreter(cores):
        assert_finds(batch, size=rows, fill=fill, kernel=KERNELS["tpu"].form)


@pytest.mark.slow
def test_batches_and_parts(interpreter):
    """As the definition in jax.numpy, in the operator's normal form."""
    x = jnp.asarray(np.random.default_rng(0).random((2, 2, 70, 40)) < 0.4)
    origins = jnp.arange(2, dtype=np.uint32).reshape(1, 2, 1, 1) * 2800
    static = {"rank": 2, "columns": 2, "fill": 3, "size": None}
    for operands in ((x,), (x, origins)):
        with interpreter(1):
            found = KERNELS["tpu"].form(*operands, **static)
        assert_equal(found, definition(*operands, **static))


# ERRORS


def test_more_elements_than_31_bits_count():
    least = 2**31 - _nonzero_coordinates.VECTORS * LANES
    most = struct(np.uint8, least - 1)
    more = struct(np.uint8, least)
    assert launches(by_kernel, most, platform="tpu") == 1
    with pytest.raises(DescriptorError, match=rf"counts {least} elements.*'xla'"):
        launches(by_kernel, more, platform="tpu")
