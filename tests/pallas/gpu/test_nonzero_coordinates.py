"""NONZERO_COORDINATES on a GPU: rows and counts at each boundary of the plan.

A CPU simulates the kernel with small blocks; a GPU runs it.
"""

import functools
from unittest import mock

import jax
import numpy as np
import pytest

import dmljax
from dmljax import DescriptorError
from dmljax.pallas.gpu import WARP, _nonzero_coordinates
from dmljax.pallas.gpu import _nonzero_plan as constants
from tests.checks import launches, lowered, needs_kernels, slow, struct
from tests.pallas import blocks
from tests.pallas.nonzero import ON_GPU, assert_finds, by_kernel, lines, plan_of

TILE = constants.TILE

# SIZES


def boundaries():
    """The sizes at which a plan changes. Call it in a test, with small blocks."""
    share = constants.WARPS * TILE  # with one tile for each warp
    every = constants.PROGRAMS * share  # of all programs that run together
    return {
        "a tile": TILE,
        "a share": share,
        "one tile for each warp": every,
        "the most tiles": constants.MOST_TILES * every,
    }


FAST = [("a share", -TILE), ("the most tiles", TILE + 7)]
SLOW = [(name, more) for name in boundaries() for more in (-1, 0, 1)]
SLOW.append(("a tile", 1 - TILE))


@pytest.mark.parametrize(("name", "more"), FAST + [slow(*case) for case in SLOW])
def test_sizes(name, more):
    assert_finds(lines(plan_of(boundaries()[name] + more)))


def test_the_sizes_are_boundaries_of_the_plan():
    """The plans have few and many tiles and programs, and whole and cut shares."""
    plans = [plan_of(boundaries()[name] + more) for name, more in FAST + SLOW]
    tiles = {plan.tiles for plan in plans}
    assert tiles >= {1, 2, constants.MOST_TILES}
    if blocks.SIMULATED:
        programs = {plan.programs for plan in plans}
        assert programs >= {1, 2, constants.PROGRAMS, constants.PROGRAMS + 1}
    assert {plan.elements % plan.share == 0 for plan in plans} == {True, False}


def test_a_thread_waits_for_several_programs(monkeypatch):
    """A program has fewer threads than programs before it."""
    blocks.put(monkeypatch, {constants: {"MOST_TILES": 1}})
    programs = constants.WARPS * WARP + 2
    plan = plan_of(programs * constants.WARPS * TILE)
    assert plan.programs == programs
    assert_finds(lines(plan)[:2])


# TYPES


# For each type, the number of loads for LOAD_BYTES. Loads must be aligned, so their
# elements must divide the elements of a line.
@pytest.mark.parametrize(
    ("dtype", "loads"),
    [
        ("float64", 1),
        slow("uint8", 1),
        slow("uint8", 2),
        slow("uint8", 8),
        slow("uint8", 16),
        slow("float16", 1),
        slow("bfloat16", 8),
        slow("float32", 1),
        slow("int32", 2),
    ],
    indirect=["dtype"],
)
def test_types(dtype, loads):
    """A full share and a cut one, with negative numbers and both zeros."""
    loaded = constants.LOAD_BYTES // dtype.itemsize // loads
    elements = constants.WARPS * TILE + TILE + loaded
    plan = plan_of(elements, dtype)
    assert plan.load_size(False) == loaded
    values = [
        np.where(line, 1 - 2 * (i % 2), -0.0).astype(dtype)
        for i, line in enumerate(lines(plan))
    ]
    assert_finds(values)


# PARTS


def test_parts_of_a_tensor():
    """The second operand has the offset of each part."""
    x = np.random.default_rng(0).integers(0, 2, (2, 4, 700)).astype(np.float32)
    origins = np.array([0, 5 * 2800], np.uint32).reshape(2, 1, 1)
    static = {"rank": 2, "columns": 2, "size": None, "fill": 0}
    find = jax.jit(functools.partial(ON_GPU, **static))
    results = zip(x, origins, *find(x, origins), strict=True)
    for part, origin, count, coordinates in results:
        rows = np.argwhere(part)
        rows[:, 0] += origin.item() // 700
        assert count == len(rows)
        np.testing.assert_array_equal(coordinates[: len(rows)], rows)


# LAUNCHES, lowered on any machine and not run

MANY = 2**16  # more than a GPU allows the later dimensions of a grid


@pytest.fixture
def launch(real_blocks):
    """The function that launches the kernel, wrapped in a mock."""
    options = {"wraps": _nonzero_coordinates.launch_threads}
    with mock.patch.object(_nonzero_coordinates, "launch_threads", **options) as spy:
        yield spy


@needs_kernels
def test_no_array_has_a_value_for_each_row(launch):
    """Programs keep bits to themselves, and K rows are written."""
    x = struct(np.float32, 2**20)
    lowered(functools.partial(by_kernel, size=10), x)
    options = launch.call_args.kwargs
    assert [out.size for out in options["outputs"]] == [1, 10]
    assert options["posts"] == [(1, options["programs"])]
    assert options["programs"] <= x.size // (constants.WARPS * TILE)


@needs_kernels
@pytest.mark.parametrize(("shares", "more"), [(1, 0), (1, 1), (2, 0), (2, 1)])
def test_programs_and_posts_of_many_lines(launch, shares, more):
    """A line with one program needs no posts."""
    size = shares * constants.WARPS * constants.MOST_TILES * TILE + more
    lowered(jax.vmap(by_kernel), struct(np.uint8, MANY, size))
    options = launch.call_args.kwargs
    programs = shares + more
    assert options["programs"] == MANY * programs
    assert options["posts"] == ([(MANY, programs)] if programs > 1 else [])


@needs_kernels
def test_places_that_need_all_32_bits():
    assert launches(by_kernel, struct(np.uint8, 2**31 + 1)) == 1


@needs_kernels
def test_a_batch_of_more_tensors_than_a_grid_has_programs_is_refused():
    most = struct(np.uint8, 2**31 - 1, 1)
    more = struct(np.uint8, 2**31, 1)
    assert launches(jax.vmap(by_kernel), most) == 1
    with pytest.raises(DescriptorError, match="in 2147483648 tensors at once; use"):
        lowered(jax.vmap(by_kernel), more)
    assert launches(jax.vmap(dmljax.nonzero_coordinates), more) == 0


@pytest.mark.usefixtures("real_blocks")
@pytest.mark.skipif(not blocks.SIMULATED, reason="all tests have real blocks")
def test_blocks_of_users():
    """A full share, a crowded share, a sparse share, and a cut share."""
    share = constants.WARPS * TILE
    x = np.random.default_rng(0).integers(0, 3, 3 * share + 100).astype(np.uint8)
    x[:share] = 1
    x[2 * share :] *= np.arange(share + 100) % 100 == 1
    assert plan_of(x.size).programs == 4
    assert_finds([x])
