"""NONZERO_COORDINATES on a GPU: rows and counts at each boundary of the plan.

On a CPU `_lockstep` runs the kernel with small blocks, on a GPU it runs for real. Each
size is a program. It takes seconds to compile, and runs with much data.
"""

import functools
from unittest import mock

import jax
import numpy as np
import pytest

import dmljax
from dmljax import DescriptorError
from dmljax.pallas.gpu import _nonzero_coordinates
from dmljax.pallas.gpu import _nonzero_plan as constants
from tests.checks import launches, lowered
from tests.pallas import blocks
from tests.pallas.gpu.nonzero import assert_finds, finder, lines, plan_of

SLOW = pytest.mark.slow
TILE = constants.TILE


def some(cases, fast):
    """The cases as parameters. All but those in `fast` are slow."""
    return [pytest.param(c, id=str(c), marks=() if c in fast else SLOW) for c in cases]


# SIZES

# The sizes at which a plan changes. With one tile for each warp, a share has this many
# elements; with as many programs as run together, all shares have this many. Functions,
# because blocks become small when the tests have begun.
BOUNDARIES = {
    "a tile": lambda share, every: TILE,
    "a share": lambda share, every: share,
    "a group": lambda share, every: constants.GROUP * share,
    "one tile for each warp": lambda share, every: every,
    "one load": lambda share, every: (constants.LOADS - 1) * every,
    "several loads": lambda share, every: constants.LOADS * every,
    "the most tiles": lambda share, every: constants.MOST_TILES * every,
}
SIZES = [(name, more) for name in BOUNDARIES for more in (-1, 0, 1)]
SIZES += [("a share", -TILE), ("the most tiles", TILE + 7), ("a tile", 1 - TILE)]
FAST = [("a share", -TILE), ("the most tiles", TILE + 7)]


def size_of(case):
    name, more = case
    share = constants.WARPS * TILE
    return BOUNDARIES[name](share, constants.PROGRAMS * share) + more


@pytest.mark.parametrize("case", some(SIZES, FAST))
def test_sizes(case):
    elements = size_of(case)
    find = finder()
    for line in lines(plan_of(elements)):
        assert_finds(find, line.astype(np.uint8))


def test_the_sizes_are_boundaries_of_the_plan():
    """Shares, loads and groups have one tile or program less, as many, and more."""
    plans = [plan_of(size_of(case)) for case in SIZES]
    most, group = constants.MOST_TILES, constants.GROUP
    assert {plan.tiles for plan in plans} >= {1, 2, constants.LOADS, most}
    if blocks.INTERPRETED:
        programs = {plan.programs for plan in plans}
        assert programs >= {1, group, group + 1, constants.PROGRAMS + 1}
    assert {plan.elements % plan.share == 0 for plan in plans} == {True, False}


# TYPES

# For each, into how many loads the elements are divided that a thread could load at
# once: into one, if the number of elements is a multiple of theirs.
LOADS = [
    *(("uint8", 1), ("uint8", 2), ("uint8", 8), ("uint8", 16)),
    *(("float16", 1), ("bfloat16", 8), ("float32", 1), ("int32", 2), ("float64", 1)),
]


@pytest.mark.parametrize(
    ("dtype", "loads"),
    [pytest.param(*case, marks=SLOW if i < 8 else ()) for i, case in enumerate(LOADS)],
    indirect=["dtype"],
)
def test_types(dtype, loads):
    """Of a share and a part; negative ones where the type has them, both zeros."""
    loaded = constants.LOAD_BYTES // dtype.itemsize // loads
    elements = constants.WARPS * TILE + TILE + loaded
    plan = plan_of(elements, dtype)
    assert plan.loaded(False) == loaded
    find = finder()
    for i, line in enumerate(lines(plan)):
        values = np.where(line, 1 - 2 * (i % 2), -0.0).astype(dtype)
        assert_finds(find, values)


# LINES


@pytest.mark.parametrize("more", some((0, 1, constants.STORED), (1,)))
def test_lines(more):
    """Lines of several programs, at aligned addresses and at others."""
    elements = constants.WARPS * TILE + 4 * TILE // 2 + more
    of_line = lines(plan_of(elements, batch=3))
    find = finder()
    for i in range(0, len(of_line) - 2, 2):
        assert_finds(find, np.stack(of_line[i : i + 3]).astype(np.uint8))


def test_parts_of_a_tensor():
    """The second operand has the offset of each part."""
    sizes, count = (4, 700), 2
    find = finder(rank=2)
    x = np.random.default_rng(0).integers(0, 2, (count, *sizes)).astype(np.float32)
    origins = np.array([0, 5 * 2800], np.uint32).reshape(count, 1, 1)
    found, coordinates = find(x, origins)
    for i in range(count):
        rows = np.argwhere(x[i])
        rows[:, 0] += origins[i, 0, 0] // sizes[1]
        assert int(found[i]) == len(rows)
        np.testing.assert_array_equal(coordinates[i, : len(rows)], rows)


# LAUNCHES, lowered on any machine and not run

by_kernel = functools.partial(dmljax.nonzero_coordinates, implementation="pallas")
MANY = 2**16  # more than a GPU allows the later dimensions of a grid


@pytest.fixture
def launch(real_blocks):
    """The function that launches the kernel. We remember its arguments."""
    options = {"wraps": _nonzero_coordinates.launch_threads}
    with mock.patch.object(_nonzero_coordinates, "launch_threads", **options) as spy:
        yield spy


def test_no_array_has_a_value_for_each_row(launch):
    """Programs keep bits to themselves, and K rows are written."""
    x = jax.ShapeDtypeStruct((2**20,), np.float32)
    lowered(functools.partial(by_kernel, size=10), x)
    options = launch.call_args.kwargs
    assert [out.size for out in options["outputs"]] == [1, 10]
    assert options["posts"] == [(1, options["programs"])]
    assert options["programs"] <= x.size // (constants.WARPS * TILE)


@pytest.mark.parametrize(("shares", "more"), [(1, 0), (1, 1), (2, 0), (2, 1)])
def test_programs_and_posts_of_many_lines(launch, shares, more):
    """A line of one program waits for nobody."""
    size = shares * constants.WARPS * constants.MOST_TILES * TILE + more
    lowered(jax.vmap(by_kernel), jax.ShapeDtypeStruct((MANY, size), np.uint8))
    options, programs = launch.call_args.kwargs, shares + more
    assert options["programs"] == MANY * programs
    assert options["posts"] == ([(MANY, programs)] if programs > 1 else [])


def test_places_that_need_all_32_bits():
    assert launches(by_kernel, jax.ShapeDtypeStruct((2**31 + 1,), np.uint8)) == 1


def test_a_batch_of_more_tensors_than_a_grid_has_programs_is_refused():
    most, more = (jax.ShapeDtypeStruct((2**31 - i, 1), np.uint8) for i in (1, 0))
    assert launches(jax.vmap(by_kernel), most) == 1
    with pytest.raises(DescriptorError, match="in 2147483648 tensors at once; use"):
        lowered(jax.vmap(by_kernel), more)
    assert launches(jax.vmap(dmljax.nonzero_coordinates), more) == 0


@pytest.mark.usefixtures("real_blocks")
@pytest.mark.skipif(not blocks.INTERPRETED, reason="all tests have real blocks")
def test_blocks_of_users():
    """A full share, a crowded one, a sparse one and one that is cut."""
    share = constants.WARPS * TILE
    x = np.random.default_rng(0).integers(0, 3, 3 * share + 100).astype(np.uint8)
    x[:share] = 1
    x[2 * share :] *= np.arange(share + 100) % 100 == 1
    assert plan_of(x.size).programs == 4
    assert_finds(finder(), x)
