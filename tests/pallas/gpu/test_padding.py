"""PADDING on a GPU: results at each boundary of the plan.

A CPU simulates the kernel with small chunks; a GPU runs it. Rows of odd length begin at
every offset in a chunk.
"""

import functools
import types
from unittest import mock

import jax
import numpy as np
import pytest

import dmljax
from dmljax import PaddingMode
from dmljax.pallas.gpu import WARP, _padding, _threads
from tests import oracles, samples
from tests.checks import (
    assert_same,
    each_mode,
    launches,
    lowered,
    needs_kernels,
    slow,
    struct,
)
from tests.pallas import blocks, lockstep
from tests.subjects import SUBJECTS

FORM = SUBJECTS["padding"].primitive.kernels["cuda"].form
CONSTANT, EDGE, REFLECTION, SYMMETRIC, WRAP = PaddingMode


def padded(*operands, **static):
    """Pads an array by the kernel, compiled anew, perhaps with a value."""
    form = lockstep.simulated(FORM) if blocks.SIMULATED else FORM
    pad = jax.jit(functools.partial(form, **static))
    (found,) = pad(*operands)
    return found


def assert_pads(x, start, end, mode):
    """Compares the kernel with NumPy."""
    static = {"start": start, "end": end, "mode": mode}
    pads = list(zip(start, end, strict=True))
    if mode is CONSTANT:
        found = padded(x, np.full((1,) * x.ndim, 7, x.dtype), **static)
        assert_same(found, np.pad(x, pads, constant_values=7))
    else:
        found = padded(x, **static)
        assert_same(found, np.pad(x, pads, samples.NUMPY[mode]))


# ROWS


def rows_of(itemsize):
    """Sizes and pads, named by their place among chunks and programs."""
    c = _padding.CHUNK_BYTES // itemsize  # elements of a chunk
    p = c * WARP * _padding.WARPS  # elements of a program
    w = _padding.ROW_BYTES // itemsize  # the fewest unpadded elements for a row
    return {
        "no chunk is inside": ((2 * c + 1, c - 1), (0, 1), (0, 1)),
        "one chunk may be inside": ((p, c), (0, 2), (0, c + 2)),
        "two may be": ((2 * c + 1, 2 * c + 1), (0, 0), (0, 2)),
        "a unit": ((3, w - 1), (1, 0), (2, 0)),
        "rows of chunks": ((3, w), (1, 0), (2, 0)),
        "rows of no chunks": ((3, w + 1), (1, 0), (2, 0)),
        "units of three": ((2, 5, 6, 3), (0, 2, 1, 0), (0, 1, 2, 0)),
        "a program but for one": ((p - 2,), (1,), (0,)),
        "a program": ((p - 1,), (1,), (0,)),
        "a program and one": ((p,), (1,), (0,)),
        # The second program has the last element of one gap and the first of another.
        "two gaps of a program": ((p - 2,), (p + 1,), (3,)),
        "far": ((2, 3), (0, 4 * c), (0, 5 * c)),
        "two rows in a word": ((12, 1), (0, 1), (0, 0)),
        "a row behind the last chunk": ((3, 1), (0, 5), (0, 0)),
        "no whole word": ((7, 1), (0, 0), (0, 2)),
        "all axes": ((5, 7, 2 * c + 5), (1, 2, 3), (2, 0, 4)),
        "rank 8": ((2, 1, 2, 1, 2, 1, 2, 3), (1,) * 8, (0,) * 8),
    }


ROWS = list(rows_of(1))
FAST = [
    ("one chunk may be inside", CONSTANT, "int8"),
    ("two may be", WRAP, "float16"),
    ("a unit", CONSTANT, "int8"),
    ("rows of no chunks", EDGE, "float16"),
    ("two gaps of a program", REFLECTION, "int8"),
    ("far", SYMMETRIC, "float32"),
    ("a row behind the last chunk", CONSTANT, "int8"),
    ("all axes", CONSTANT, "int8"),
]
ALL = [(name, mode, "int8") for name in ROWS for mode in (CONSTANT, REFLECTION, WRAP)]
ALL += [(name, CONSTANT, "float16") for name in ROWS]
ALL += [("all axes", mode, "float32") for mode in PaddingMode]
ALL += [(name, SYMMETRIC, "float64") for name in ("two may be", "all axes")]
ALL += [(name, CONSTANT, "bool") for name in ("far", "no whole word")]


@pytest.mark.parametrize(
    ("name", "mode", "dtype"),
    FAST + [slow(*case) for case in ALL if case not in FAST],
    indirect=["dtype"],
)
def test_rows(name, mode, dtype):
    size, *pads = rows_of(dtype.itemsize)[name]
    x = np.random.default_rng(0).integers(0, 99, size).astype(dtype)
    assert_pads(x, *pads, mode)


def test_the_rows_are_boundaries_of_the_plan():
    named = {}
    for name, rows in rows_of(1).items():
        named[name] = _padding.plan_of(list(map(_padding.Axis, *rows)), CONSTANT, 1, 1)
    plans = named.values()
    program = _padding.CHUNK_BYTES * WARP * _padding.WARPS
    insides = {plan.row.size * plan.unit - plan.chunk for plan in plans}
    assert insides >= {-1, 0, _padding.CHUNK_BYTES + 1}
    assert {plan.elements - program for plan in plans} >= {-1, 0, 1}
    assert {plan.unit for plan in plans} >= {1, 3, _padding.ROW_BYTES - 1}
    copied = [plan for plan in plans if plan.inside == (0, plan.length)]
    assert {plan.length % plan.chunk == 0 for plan in copied} == {True, False}
    assert {plan.store for plan in plans} == {1, 2, 4}
    assert {plan.length % plan.store == 0 for plan in plans} == {True, False}
    assert {plan.elements % plan.chunk == 0 for plan in plans} == {True, False}
    assert any(plan.longest_gap * plan.store > plan.share for plan in plans)
    begin, end = named["two gaps of a program"].inside
    assert (begin, end) == (program + 1, 2 * program - 1)


# VALUES


# The sizes of a batch of inputs, and of the values.
@pytest.mark.parametrize(
    ("own", "sizes"),
    [
        ((3, 4, 2), (3, 1, 2)),
        slow((3, 4), (3, 4)),
        slow((1, 4), (3, 1)),
        slow((3, 4), (1, 4)),
        slow((2, 3), (1, 1)),
    ],
)
def test_values_of_a_batch(own, sizes):
    x = samples.numbers((*own, 5, 20), np.int8, seed=0)
    value = samples.numbers((*sizes, 1, 1), np.int8, seed=1)
    found = padded(x, value, start=(1, 2), end=(0, 3), mode=CONSTANT)
    expected = np.empty((*np.broadcast_shapes(own, sizes), 6, 25), np.int8)
    expected[...] = value
    expected[..., 1:, 2:-3] = x
    np.testing.assert_array_equal(found, expected)


# NUMBERS OF 32 BITS


@each_mode
def test_the_most_that_32_bits_can_count(mode):
    """Positions in the longest axes, padded before, after, and by several periods."""
    most = 2**32 - 1
    t = types.SimpleNamespace(select=np.where, minimum=np.minimum)
    name = "EDGE" if mode is CONSTANT else mode.name
    for axis in (
        _padding.Axis((most - 9) // 3, 9, 0),
        _padding.Axis((most - 9) // 3, 0, 9),
        _padding.Axis(2, most // 4 - 1, most // 4 - 1),
        _padding.Axis(most // 6, most // 6, most // 6),
    ):
        assert most - 9 < _padding.plan_of([axis], mode, 1, 1).largest <= most
        ends = (0, axis.before, axis.before + axis.size, axis.output)
        positions = [end + i for end in ends for i in range(-4, 4)]
        positions = [n for n in positions if 0 <= n < axis.output]
        number = np.array(positions, np.uint32)
        found = _padding._source_position(t, axis, number, mode)
        for n, source in zip(positions, found.tolist(), strict=True):
            assert source == oracles.padding_source(n - axis.before, axis.size, name)


@needs_kernels
@pytest.mark.usefixtures("real_blocks")
@pytest.mark.parametrize("more", [0, 1])
def test_numbers_are_wide_if_a_sum_needs_it(more):
    """In fewer than 2^32 elements, too: positions are added to sizes."""
    program = WARP * _padding.WARPS * _padding.CHUNK_BYTES
    size = (2**32 - 1 - 2 * program - 2) // 3 + more
    static = {"start": (1,), "end": (1,), "mode": SYMMETRIC}
    options = {"autospec": True, "side_effect": _threads.Threads.wide}
    with mock.patch.object(_threads.Threads, "wide", **options) as spy:
        lowered(functools.partial(FORM, **static), struct(np.uint8, size))
    assert spy.called == bool(more)


@needs_kernels
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mode", [CONSTANT, WRAP])
@pytest.mark.parametrize("shape", [(2**31 + 8, 8), (4, 2**31 + 8), (2**31 + 8, 8, 1)])
def test_rows_past_32_bits_are_lowered(shape, mode):
    pads = (0, 4, 0)[: len(shape)]
    pad = functools.partial(dmljax.padding, mode=mode, implementation="pallas")
    x = struct(np.uint8, *shape)
    assert launches(lambda x: pad(x, pads, pads), x) == 1


@pytest.mark.usefixtures("real_blocks")
@pytest.mark.skipif(not blocks.SIMULATED, reason="all tests have real blocks")
@pytest.mark.parametrize("mode", [CONSTANT, slow(SYMMETRIC)])
def test_blocks_of_users(mode):
    x = np.random.default_rng(0).integers(0, 99, (3, 9, 1300)).astype(np.int8)
    assert_pads(x, (0, 2, 300), (0, 1, 301), mode)
