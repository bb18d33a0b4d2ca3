"""NONZERO_COORDINATES on a GPU: rows and counts at each boundary of the plan.

A CPU simulates the kernel with small blocks; a GPU runs it.
"""

import dataclasses
import functools
from unittest import mock

import jax
import numpy as np
import pytest

import dmljax
from dmljax import DescriptorError
from dmljax.pallas.gpu import WARP, _nonzero_coordinates
from dmljax.pallas.gpu import _nonzero_plan as constants
from dmljax.pallas.gpu._nonzero_coordinates import find_in_shares
from dmljax.pallas.gpu._nonzero_tiles import find_in_tiles
from tests.checks import launches, lowered, needs_kernels, slow, struct
from tests.pallas import blocks, lockstep
from tests.pallas.nonzero import assert_finds, by_kernel, lines, plan_of

TILE = constants.TILE

# LONG LINES


def boundaries():
    """The sizes at which a plan changes. Call it in a test, with small blocks."""
    chunk = constants.CHUNK * TILE
    share = constants.WARPS * chunk  # with one chunk for each warp
    every = constants.PROGRAMS * share  # of all programs that run together
    return TILE, chunk, share, every, constants.MOST_CHUNKS * every


FAST = [(2, -TILE), (3, TILE + 7)]
SLOW = [slow(index, more) for index in range(5) for more in (-1, 0, 1)]


@pytest.mark.parametrize(("index", "more"), FAST + SLOW)
def test_sizes(index, more):
    assert_finds(lines(boundaries()[index] + more))


def test_a_thread_waits_for_several_programs(monkeypatch):
    """A program has fewer threads than programs before it."""
    blocks.put(monkeypatch, {"MOST_CHUNKS": 1})
    programs = constants.WARPS * WARP + 2
    elements = programs * constants.WARPS * constants.CHUNK * TILE
    assert plan_of(elements).programs == programs
    assert_finds(lines(elements)[:2])


@pytest.mark.parametrize(("elements", "lines"), [(5000, 2**24), (1, 2**32)])
def test_addresses_behind_many_lines_have_64_bits(elements, lines):
    """A planted fault: the index of a line has 32 bits where it is multiplied.

    We simulate the program that follows so many lines.
    """
    more = 1 if elements > 1 else 32 * constants.WARPS  # lines of this program
    plan = plan_of(elements, lines=lines + more)
    t = lockstep.Threads(1, plan.warps * WARP)
    flags = np.arange(plan.padded_elements) < np.full((more, 1), elements)
    counts = np.full(more, 99, np.uint32)
    rows = np.full(more * elements, 99, np.uint32)
    memories = []
    for array in (np.packbits(flags, bitorder="little"), counts, rows):
        before = lines * (array.size // more)
        start = np.uint64(2**64 - before)  # a sum of 64 bits wraps around
        memories.append(dataclasses.replace(t.memory(array), start=start))
    memories += [t.shared(size, dtype) for size, dtype in plan.shared]
    t.program = t.program + np.uint32(lines // more)
    find = find_in_tiles if elements == 1 else find_in_shares
    find(t, *memories, plan=plan)
    np.testing.assert_array_equal(counts, elements)
    np.testing.assert_array_equal(rows, np.tile(np.arange(elements), more))


# LAUNCHES, lowered on any machine and not run


@pytest.fixture
def launch(real_blocks):
    """The function that launches the kernel, wrapped in a mock."""
    options = {"wraps": _nonzero_coordinates.launch_threads}
    with mock.patch.object(_nonzero_coordinates, "launch_threads", **options) as spy:
        yield spy


@needs_kernels
def test_no_array_has_a_value_for_each_row(launch):
    """Programs keep counts to themselves, K rows are written, and bits are read."""
    x = struct(np.float32, 2**20)
    lowered(functools.partial(by_kernel, size=10), x)
    (bits,), options = launch.call_args.args[1:], launch.call_args.kwargs
    assert (bits.dtype, bits.size) == (np.uint8, x.size // 8)
    assert options["outputs"] == [1, 10]
    assert options["posts"] == options["programs"] + 1
    assert options["programs"] <= x.size // (constants.WARPS * TILE)


@needs_kernels
@pytest.mark.parametrize(("shares", "more"), [(1, 0), (1, 1), (2, 1)])
def test_programs_and_posts_of_many_lines(launch, shares, more):
    """A line with one program needs no posts."""
    lines = 2**16  # more than a GPU allows the later dimensions of a grid
    most = constants.WARPS * constants.MOST_CHUNKS * constants.CHUNK * TILE
    x = struct(np.uint8, lines, shares * most + more)
    text = lowered(jax.vmap(by_kernel), x)
    options = launch.call_args.kwargs
    programs = lines * (shares + more)
    assert options["programs"] == programs
    assert options["posts"] == (programs + 1 if shares + more > 1 else 0)
    # In a profile. Before JAX 0.11, a kernel with posts has another name.
    assert options["posts"] or "dmljax_nonzero_coordinates" in text


@needs_kernels
def test_a_batch_of_more_tensors_than_a_grid_has_programs_is_refused():
    """Offsets need all 32 bits."""
    assert launches(by_kernel, struct(np.uint8, 2**31 + 1)) == 1
    lines = 2**31 * constants.WARPS
    most = struct(np.uint8, lines - constants.WARPS, TILE)
    more = struct(np.uint8, lines, TILE)
    assert launches(jax.vmap(by_kernel), most) == 1
    message = rf"can't count .*\{{{lines},1024\}}; use"
    with pytest.raises(DescriptorError, match=message):
        lowered(jax.vmap(by_kernel), more)
    assert launches(jax.vmap(dmljax.nonzero_coordinates), more) == 0


@pytest.mark.usefixtures("real_blocks")
@pytest.mark.skipif(not blocks.SIMULATED, reason="all tests have real blocks")
def test_blocks_of_users():
    """Full, crowded and sparse tiles; the last share is cut."""
    elements = 3 * constants.WARPS * constants.CHUNK * TILE + 100
    assert plan_of(elements).programs == 4
    assert_finds(lines(elements)[-3:])
