"""PADDING on a GPU: results at each boundary of the plan.

On a CPU `_lockstep` runs the kernel with small chunks, on a GPU it runs for real. Rows
of odd length begin at every offset in a chunk.
"""

import functools
import types
from unittest import mock

import jax
import numpy as np
import pytest

import dmljax
from dmljax import PaddingMode
from dmljax.pallas._padding import Axis
from dmljax.pallas.gpu import WARP, _padding, _threads
from tests import oracles, samples
from tests.checks import assert_same, launches, lowered
from tests.pallas import blocks
from tests.subjects import SUBJECTS

SLOW = pytest.mark.slow
FORM = SUBJECTS["padding"].primitive.kernels["cuda"].form
CONSTANT, EDGE, REFLECTION, SYMMETRIC, WRAP = PaddingMode


def assert_pads(x, start, end, mode, value=7):
    """Compares the kernel, compiled anew, with NumPy."""
    static = {"start": start, "end": end, "mode": mode}
    pad = jax.jit(functools.partial(FORM, **static, interpret=blocks.INTERPRETED))
    constant = mode is CONSTANT
    value = np.asarray(value, x.dtype)
    ones = (1,) * x.ndim
    (found,) = pad(x, value.reshape(ones)) if constant else pad(x)
    pads = list(zip(start, end, strict=True))
    options = {"constant_values": value} if constant else {}
    assert_same(found, np.pad(x, pads, samples.NUMPY[mode], **options))


# ROWS

# Sizes and pads for chunks of c elements, programs of p, and rows of at least w
# elements that are not padded.
ROWS = {
    "no chunk is inside": lambda c, p, w: ((2 * c + 1, c - 1), (0, 1), (0, 1)),
    "one chunk may be inside": lambda c, p, w: ((p, c), (0, 2), (0, c + 2)),
    "two may be": lambda c, p, w: ((2 * c + 1, 2 * c + 1), (0, 0), (0, 2)),
    "a unit": lambda c, p, w: ((3, w - 1), (1, 0), (2, 0)),
    "rows of chunks": lambda c, p, w: ((3, w), (1, 0), (2, 0)),
    "rows of no chunks": lambda c, p, w: ((3, w + 1), (1, 0), (2, 0)),
    "units of three": lambda c, p, w: ((2, 5, 6, 3), (0, 2, 1, 0), (0, 1, 2, 0)),
    "a program but for one": lambda c, p, w: ((p - 2,), (1,), (0,)),
    "a program": lambda c, p, w: ((p - 1,), (1,), (0,)),
    "a program and one": lambda c, p, w: ((p,), (1,), (0,)),
    # The second program has the last element of one gap and the first of another.
    "two gaps of a program": lambda c, p, w: ((p - 2,), (p + 1,), (3,)),
    "far": lambda c, p, w: ((2, 3), (0, 4 * c), (0, 5 * c)),
    "two rows in a word": lambda c, p, w: ((12, 1), (0, 1), (0, 0)),
    "a row behind the last chunk": lambda c, p, w: ((3, 1), (0, 5), (0, 0)),
    "no whole word": lambda c, p, w: ((7, 1), (0, 0), (0, 2)),
    "all axes": lambda c, p, w: ((5, 7, 2 * c + 5), (1, 2, 3), (2, 0, 4)),
    "no period": lambda c, p, w: ((4, 3, c), (0, 2, 0), (1, 0, 0)),
    "rank 8": lambda c, p, w: ((2, 1, 2, 1, 2, 1, 2, 3), (1,) * 8, (0,) * 8),
}


def sizes_of(name, itemsize):
    """The sizes and pads of these rows."""
    chunk = _padding.CHUNK_BYTES // itemsize
    program = chunk * WARP * _padding.WARPS
    return ROWS[name](chunk, program, _padding.ROW_BYTES // itemsize)


FAST = [
    *(("one chunk may be inside", CONSTANT, "int8"), ("two may be", WRAP, "float16")),
    *(("a unit", CONSTANT, "int8"), ("rows of no chunks", EDGE, "float16")),
    *(("two gaps of a program", REFLECTION, "int8"), ("far", SYMMETRIC, "float32")),
    ("a row behind the last chunk", CONSTANT, "int8"),
    ("all axes", CONSTANT, "int8"),
]
ALL = [
    *((name, mode, "int8") for name in ROWS for mode in (CONSTANT, REFLECTION, WRAP)),
    *((name, CONSTANT, "float16") for name in ROWS),
    *(("all axes", mode, "float32") for mode in PaddingMode),
    *((name, SYMMETRIC, "float64") for name in ("two may be", "all axes")),
    *((name, CONSTANT, "bool") for name in ("far", "no whole word")),
]


@pytest.mark.parametrize(
    ("name", "mode", "dtype"),
    [*FAST, *(pytest.param(*case, marks=SLOW) for case in ALL if case not in FAST)],
    indirect=["dtype"],
)
def test_rows(name, mode, dtype):
    sizes = sizes_of(name, dtype.itemsize)
    x = np.random.default_rng(0).integers(0, 99, sizes[0]).astype(dtype)
    assert_pads(x, *sizes[1:], mode)


def test_the_rows_are_boundaries_of_the_plan():
    axes = {name: map(Axis, *sizes_of(name, 1)) for name in ROWS}
    named = {n: _padding.plan_of([*a], CONSTANT, 1, 1) for n, a in axes.items()}
    plans, program = named.values(), _padding.CHUNK_BYTES * WARP * _padding.WARPS
    insides = {plan.row.size * plan.unit - plan.chunk for plan in plans}
    assert insides >= {-1, 0, _padding.CHUNK_BYTES + 1}
    assert {plan.elements - program for plan in plans} >= {-1, 0, 1}
    assert {plan.unit for plan in plans} >= {1, 3, _padding.ROW_BYTES - 1}
    assert {plan.gap == 0 for plan in plans} == {True, False}
    assert {plan.word for plan in plans} == {1, 2, 4}
    assert {plan.length % plan.word == 0 for plan in plans} == {True, False}
    assert {plan.elements % plan.chunk == 0 for plan in plans} == {True, False}
    assert any(plan.gap * plan.word > WARP * plan.chunk for plan in plans)
    begin, end = named["two gaps of a program"].inside
    assert (begin, end) == (program + 1, 2 * program - 1)


# VALUES

# The sizes of a batch of inputs, and of the values.
BATCHES = [
    *(((3, 4, 2), (3, 1, 2)), ((3, 4), (3, 4)), ((1, 4), (3, 1)), ((3, 4), (1, 4))),
    ((2, 3), (1, 1)),
]


@pytest.mark.parametrize(
    ("own", "sizes"),
    [pytest.param(*case, marks=SLOW if i else ()) for i, case in enumerate(BATCHES)],
)
def test_values_of_a_batch(own, sizes):
    x = samples.numbers((*own, 5, 20), np.int8, seed=0)
    value = samples.numbers((*sizes, 1, 1), np.int8, seed=1)
    static = {"start": (1, 2), "end": (0, 3), "mode": CONSTANT}
    pad = jax.jit(functools.partial(FORM, **static, interpret=blocks.INTERPRETED))
    (found,) = pad(x, value)
    whole = np.broadcast_shapes(own, sizes)
    pads = [*[(0, 0)] * len(whole), (1, 0), (2, 3)]
    x, inside = (np.pad(np.broadcast_to(a, (*whole, 5, 20)), pads) for a in (x, True))
    np.testing.assert_array_equal(found, np.where(inside, x, value))


# NUMBERS OF 32 BITS


@pytest.mark.parametrize("mode", PaddingMode)
def test_the_most_that_32_bits_can_count(mode):
    """Positions in the longest axes, padded before, after, and by several periods."""
    most = 2**32 - 1
    t = types.SimpleNamespace(select=np.where, minimum=np.minimum)
    page = functools.partial(
        oracles.padding_source, mode="EDGE" if mode is CONSTANT else mode.name
    )
    for axis in (
        *(Axis((most - 9) // 3, 9, 0), Axis((most - 9) // 3, 0, 9)),
        *(Axis(2, most // 4 - 1, most // 4 - 1), Axis(*(most // 6,) * 3)),
    ):
        assert most - 9 < _padding.plan_of([axis], mode, 1, 1).most <= most
        ends = (0, axis.before, axis.before + axis.size, axis.output)
        positions = [end + i for end in ends for i in range(-4, 4)]
        positions = [n for n in positions if 0 <= n < axis.output]
        number = np.array(positions, np.uint32)
        found = _padding._source_position(t, axis, number, mode)
        assert found.tolist() == [page(n - axis.before, axis.size) for n in positions]


@pytest.mark.usefixtures("real_blocks")
@pytest.mark.parametrize("more", [0, 1])
def test_numbers_are_wide_if_a_sum_needs_it(more):
    """In fewer than 2^32 elements, too: positions are added to sizes."""
    program = WARP * _padding.WARPS * _padding.CHUNK_BYTES
    size = (2**32 - 1 - 2 * program - 2) // 3 + more
    x = jax.ShapeDtypeStruct((size,), np.uint8)
    static = {"start": (1,), "end": (1,), "mode": SYMMETRIC, "interpret": False}
    options = {"autospec": True, "side_effect": _threads.Threads.wide}
    with mock.patch.object(_threads.Threads, "wide", **options) as spy:
        lowered(functools.partial(FORM, **static), x)
    assert spy.called == bool(more)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mode", [CONSTANT, WRAP])
@pytest.mark.parametrize("shape", [(2**31 + 8, 8), (4, 2**31 + 8), (2**31 + 8, 8, 1)])
def test_rows_past_32_bits_are_lowered(shape, mode):
    pads = (0, 4, 0)[: len(shape)]
    pad = functools.partial(dmljax.padding, mode=mode, implementation="pallas")
    struct = jax.ShapeDtypeStruct(shape, np.uint8)
    assert launches(lambda x: pad(x, pads, pads), struct) == 1


@pytest.mark.usefixtures("real_blocks")
@pytest.mark.skipif(not blocks.INTERPRETED, reason="all tests have real blocks")
@pytest.mark.parametrize("mode", [CONSTANT, pytest.param(SYMMETRIC, marks=SLOW)])
def test_blocks_of_users(mode):
    x = np.random.default_rng(0).integers(0, 99, (3, 9, 1300)).astype(np.int8)
    assert_pads(x, (0, 2, 300), (0, 1, 301), mode)
