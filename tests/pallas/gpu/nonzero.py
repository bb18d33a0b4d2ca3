"""The kernel of NONZERO_COORDINATES as the tests call it, data for it, and its plan."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dmljax.pallas.gpu import _nonzero_plan
from dmljax.pallas.gpu._nonzero_bits import as_bits
from tests.pallas import blocks
from tests.subjects import SUBJECTS


def plan_of(
    elements: int,
    dtype: Any = np.uint8,
    batch: int = 1,
    rows: int | None = None,
    sizes: Sequence[int] = (1,),
    fill: int | None = 0,
) -> _nonzero_plan.NonzeroPlan:
    """The plan of a call, of one column by default."""
    _, width, keep = as_bits(jnp.zeros((1, 1), dtype))
    rows = elements if rows is None else rows
    return _nonzero_plan.NonzeroPlan(
        batch, elements, rows, tuple(sizes), width, keep, fill
    )


def finder(
    *,
    rank: int = 1,
    size: int | None = None,
    columns: int | None = None,
    fill: int | None = 0,
) -> Callable[..., Any]:
    """The kernel for batches of tensors of `rank`, compiled anew."""
    form = SUBJECTS["nonzero_coordinates"].primitive.kernels["cuda"].form
    options = {"rank": rank, "size": size, "columns": columns or rank, "fill": fill}
    function = functools.partial(form, **options, interpret=blocks.INTERPRETED)
    found: Callable[..., Any] = jax.jit(function)
    found.options = options  # type: ignore[attr-defined]
    return found


def assert_finds(find: Callable[..., Any], x: Any) -> None:
    """Compares what a `finder` finds with NumPy; undefined rows may have anything."""
    options = find.options  # type: ignore[attr-defined]
    rank, size, fill = options["rank"], options["size"], options["fill"]
    sizes = x.shape[x.ndim - rank :]
    rows = math.prod(sizes) if size is None else size
    tensors = np.asarray(x).reshape(-1, *sizes)
    counts, coordinates = (np.asarray(found) for found in find(x))
    coordinates = coordinates.reshape(len(tensors), rows, options["columns"])
    for tensor, count, found in zip(tensors, counts.ravel(), coordinates, strict=True):
        expected = np.argwhere(tensor)
        assert count == len(expected)
        expected = expected[:rows, -options["columns"] :]
        np.testing.assert_array_equal(found[: len(expected)], expected)
        if fill is not None:
            assert (found[len(expected) :] == fill).all()


def lines(plan: _nonzero_plan.NonzeroPlan) -> list[np.ndarray]:
    """Lines of truth values: of every density, and cut at every boundary of the plan.

    The count may cut the values that a thread stores at once, a tile, or a share. Tiles
    of one line may be full, empty, sparse, or have a run of ones.
    """
    elements, tile, stored = plan.elements, _nonzero_plan.TILE, _nonzero_plan.STORED
    random, offset = np.random.default_rng(0), np.arange(elements)
    found = [random.random(elements) < density for density in (0.01, 0.2, 0.6)]
    group = plan.share * plan.group
    for boundary in (0, stored, 2 * stored, tile, plan.share, group, elements):
        found += [offset < boundary + i for i in (-1, 0, 1)]
    found.append(offset == elements - 1)
    empty, full = np.zeros(tile, bool), np.ones(tile, bool)
    few, run = empty.copy(), empty.copy()
    few[[5, tile - 1]] = True
    run[[5, *range(60, 100), tile - 1]] = True
    orders = (full, empty, few, run), (run, few, full, empty), (full, *[empty] * 3)
    found += [np.resize(np.concatenate(tiles), elements) for tiles in orders]
    return [line for i, line in enumerate(found) if elements < 2**22 or i % 4 == 0]
