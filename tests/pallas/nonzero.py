"""Checks of the kernels of NONZERO_COORDINATES, and data for the GPU kernel."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from dmljax.pallas.gpu import WARP, _nonzero_plan
from dmljax.pallas.gpu._nonzero_bits import as_bits
from tests.pallas import blocks, lockstep
from tests.subjects import SUBJECTS

by_kernel = functools.partial(dmljax.nonzero_coordinates, implementation="pallas")
KERNELS = SUBJECTS["nonzero_coordinates"].primitive.kernels
ON_GPU = KERNELS["cuda"].form
if blocks.SIMULATED:
    ON_GPU = lockstep.simulated(ON_GPU)


def plan_of(elements, dtype=np.uint8, batch=1, rows=None, sizes=(1,), fill=0):
    """The plan of a call, by default with one column."""
    _, width, keep = as_bits(jnp.zeros((1, 1), dtype))
    rows = elements if rows is None else rows
    return _nonzero_plan.NonzeroPlan(
        batch, elements, rows, tuple(sizes), width, keep, fill
    )


def assert_finds(tensors, rank=1, size=None, columns=None, fill=0, kernel=ON_GPU):
    """Compares the results of a kernel, compiled anew, for batches with NumPy.

    Undefined rows may have anything.
    """
    columns = columns or rank
    static = {"rank": rank, "size": size, "columns": columns, "fill": fill}
    find = jax.jit(functools.partial(kernel, **static))
    for x in tensors:
        sizes = x.shape[x.ndim - rank :]
        rows = math.prod(sizes) if size is None else size
        counts, coordinates = map(np.asarray, find(x))
        results = coordinates.reshape(-1, rows, columns)
        batch = x.reshape(-1, *sizes)
        for tensor, count, found in zip(batch, counts.ravel(), results, strict=True):
            expected = np.argwhere(tensor)
            assert count == len(expected)
            expected = expected[:rows, -columns:]
            np.testing.assert_array_equal(found[: len(expected)], expected)
            if fill is not None:
                assert (found[len(expected) :] == fill).all()


def lines(plan):
    """Lines of zeros and ones, of every density, and cut at every boundary of the plan.

    A count may cut the values that a warp stores at once, a tile, or a share. A line
    has full, empty and sparse tiles, and tiles with a run of ones.
    """
    elements = plan.elements
    tile = _nonzero_plan.TILE
    random = np.random.default_rng(0)
    offset = np.arange(elements)
    found = [random.random(elements) < density for density in (0.01, 0.2, 0.6)]
    for boundary in (0, WARP, 2 * WARP, tile, plan.share, elements):
        found += [offset < boundary + i for i in (-1, 0, 1)]
    found.append(offset == elements - 1)
    empty = np.zeros(tile, bool)
    full = np.ones(tile, bool)
    few = empty.copy()
    few[[5, tile - 1]] = True
    run = few.copy()
    run[60:100] = True
    orders = (full, empty, few, run), (run, few, full, empty), (full, *[empty] * 3)
    found += [np.resize(np.concatenate(tiles), elements) for tiles in orders]
    step = 1 if elements < 2**22 else 4
    return [line.view(np.uint8) for line in found[::step]]
