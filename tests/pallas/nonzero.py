"""Checks of the kernels of NONZERO_COORDINATES, and data for the GPU kernel."""

import functools
import math

import jax
import numpy as np

import dmljax
from dmljax import _nonzero_forms
from dmljax._nonzero_kernels import KERNELS
from dmljax.pallas.gpu import WARP, _nonzero_plan
from tests.pallas import blocks, lockstep

by_kernel = functools.partial(dmljax.nonzero_coordinates, implementation="pallas")
ON_GPU = lockstep.kernel_of if blocks.SIMULATED else KERNELS["cuda"]


def plan_of(elements, lines=1, rows=None):
    """The plan of a call, with one column."""
    rows = elements if rows is None else rows
    layout = _nonzero_forms.Layout((lines,), (elements,), rows, columns=1, fill=0)
    return _nonzero_plan.plan_of(layout)


def assert_finds(tensors, rank=1, size=None, fill=0, kernel=ON_GPU):
    """Compares the results of a kernel, compiled anew, for batches with NumPy.

    Undefined rows may have anything.
    """
    static = {"rank": rank, "size": size, "columns": rank, "fill": fill}
    find = jax.jit(lambda x: kernel(x, **static)(x, **static))
    for x in tensors:
        x = x != 0
        sizes = x.shape[x.ndim - rank :]
        rows = math.prod(sizes) if size is None else size
        counts, coordinates = map(np.asarray, find(x))
        results = coordinates.reshape(-1, rows, rank)
        batch = x.reshape(-1, *sizes)
        for tensor, count, found in zip(batch, counts.ravel(), results, strict=True):
            expected = np.argwhere(tensor)
            assert count == len(expected)
            expected = expected[:rows]
            np.testing.assert_array_equal(found[: len(expected)], expected)
            if fill is not None:
                assert (found[len(expected) :] == fill).all()


def lines(elements):
    """Masks of every density, and cut at every boundary of a plan for one line.

    A count may cut the values that a warp stores at once, a tile, a chunk, or a share.
    A line has full, empty and sparse tiles, and tiles with a run of ones.
    """
    share = getattr(plan_of(elements), "elements_of_share", 0)  # short lines have none
    tile = _nonzero_plan.TILE
    random = np.random.default_rng(0)
    offset = np.arange(elements)
    found = [random.random(elements) < density for density in (0.01, 0.2, 0.6)]
    edges = 0, WARP, 2 * WARP, tile, _nonzero_plan.CHUNK * tile, share, elements
    for edge in edges:
        found += [offset < edge + i for i in (-1, 0, 1)]
    found.append(offset == elements - 1)
    empty = np.zeros(tile, bool)
    full = np.ones(tile, bool)
    few = empty.copy()
    few[[5, tile - 1]] = True
    run = few.copy()
    run[60:100] = True
    for tiles in (full, empty, few, run), (run, few, full, empty), (full, *[empty] * 7):
        found.append(np.resize(np.concatenate(tiles), elements))
    step = 1 if elements < 2**22 else 4
    return found[::step]
