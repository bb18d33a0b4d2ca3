"""PADDING on a TPU: results at the edges of slabs and blocks, in the interpreter."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dmljax
from dmljax import DescriptorError, PaddingMode
from dmljax.pallas._padding import Axis
from dmljax.pallas.tpu import LANES, SUBLANES, _padding
from tests import samples
from tests.checks import launches
from tests.pallas.cases import slow
from tests.subjects import SUBJECTS

CONSTANT, EDGE, REFLECTION, SYMMETRIC, WRAP = PaddingMode
FLOATS = ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
SIGNED = ("int32", "int16", "int8", "int4")
UNSIGNED = ("uint32", "uint16", "uint8", "uint4")
TYPES = (*FLOATS, *SIGNED, *UNSIGNED, "bool")


def numbers(shape, dtype="float32", seed=0):
    return jnp.asarray(samples.numbers(shape, dtype, seed))


@pytest.fixture
def small(monkeypatch):
    """Blocks of one matrix of so few elements that small arrays have many blocks."""
    monkeypatch.setattr(_padding, "ELEMENTS", _padding.ROWS * LANES)


# TILES

# The pattern begins anew at each offset in a tile of rows, and at the last lane of a
# tile of columns, for periods of as many elements as the axis has and of twice as many.
PERIODS = {
    "rows": ((SUBLANES * 3 + 1, 5), (0, 0), (SUBLANES * 26, 0)),
    "rows, even": ((SUBLANES * 3 + 2, 5), (0, 0), (SUBLANES * 26, 0)),
    "rows, whole tiles": ((SUBLANES * 3, 5), (0, 0), (SUBLANES * 2, 0)),
    "columns": ((2, 2 * LANES + 44), (0, LANES - 1), (0, 2 * LANES)),
    "first column": ((2, 2 * LANES + 44), (0, LANES), (0, 2 * LANES)),
}


ALL = [(name, mode) for name in PERIODS for mode in PaddingMode]


@pytest.mark.parametrize(
    ("name", "mode"),
    [case if case == ("rows", WRAP) else slow(*case) for case in ALL],
)
def test_periods(agrees, name, mode):
    shape, start, end = PERIODS[name]
    value = [numbers((1, 1), seed=5)] if mode is CONSTANT else []
    agrees("padding", numbers(shape), *value, start=start, end=end, mode=mode)


# BLOCKS

# Along every axis. The pads, and the sizes with and without them, are so many more than
# whole tiles, and rows and columns that are not padded so many more than a block's.
PADS = {
    "leading": lambda more: ((3, 0, 0), (4, 0, 0)),
    "rows": lambda more: ((0, SUBLANES + more, 0), (0, SUBLANES - more, 0)),
    "columns": lambda more: ((0, 0, LANES + more), (0, 0, LANES - more)),
    "all": lambda more: ((1, SUBLANES + more, LANES + more), (0, 1, LANES - more)),
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("more", [1, slow(-1), slow(0)])
@pytest.mark.parametrize(
    ("mode", "dtype", "pads", "cores"),
    [
        (CONSTANT, "float32", "leading", 1),
        slow(CONSTANT, "int8", "leading", 1),
        slow(CONSTANT, "int8", "rows", 1),
        slow(CONSTANT, "int8", "columns", 1),
        slow(CONSTANT, "int8", "all", 1),
        slow(REFLECTION, "bfloat16", "all", 2),
        slow(WRAP, "float32", "columns", 2),
        slow(EDGE, "bool", "rows", 1),
        slow(SYMMETRIC, "float32", "leading", 1),
    ],
)
def test_blocks(agrees, mode, dtype, pads, cores, more):
    value = [numbers((1, 1, 1), dtype, 5)] if mode is CONSTANT else []
    x = numbers((2, _padding.ROWS + more, LANES + more), dtype)
    start, end = PADS[pads](more)
    agrees("padding", x, *value, cores=cores, start=start, end=end, mode=mode)


@pytest.mark.slow
def test_more_rows_and_columns_than_a_block_has_are_padded_in_turn(agrees, monkeypatch):
    x = numbers((2, _padding.ROWS + 1, LANES + 1))
    start, end = PADS["all"](1)
    plan = _padding.PaddingPlan(tuple(map(Axis, x.shape, start, end)), REFLECTION)
    monkeypatch.setattr(_padding, "MOST_ELEMENTS", plan.elements - 1)
    # One dimension alone must fit: its block has few rows or columns of the other.
    monkeypatch.setattr(_padding, "ELEMENTS", _padding.ROWS * LANES)
    agrees("padding", x, start=start, end=end, mode=REFLECTION)


# The sizes of a batch of matrices, those of the values, and pads.
@pytest.mark.parametrize(
    ("shape", "sizes", "start", "end"),
    [
        ((3, 5, 4), (3, 5, 1), (1,), (3,)),
        slow((3, 1, 4), (3, 5, 1), (1,), (3,)),
        slow((2, 3, 5, 4), (2, 1, 1, 1), (2, 1), (0, 3)),
        slow((2, 3, 5, 4), (2, 3, 1, 1), (2, 1), (0, 3)),
        slow((2, 3, 5, 4), (2, 1, 1, 1), (0, 2, 1), (1, 0, 3)),
        slow((1, 3, 5, 4), (2, 1, 1, 1), (2, 1), (0, 3)),
        slow((2, 3, 5, 4), (1, 1, 1, 1), (2, 1), (0, 3)),
        slow((1, 5, 4), (2, 1, 1), (1,), (3,)),
        slow((9,), (1,), (1,), (3,)),
    ],
)
def test_values_of_a_batch(agrees, monkeypatch, shape, sizes, start, end):
    """Batch dimensions in which the value or the input is shared, or neither is.

    A block has two matrices, so several blocks have values of their own.
    """
    monkeypatch.setattr(_padding, "ELEMENTS", 2 * _padding.ROWS * LANES)
    value = numbers(sizes, seed=3)
    agrees("padding", numbers(shape), value, start=start, end=end, mode=CONSTANT)


# THE ROOM IN VECTOR MEMORY, AND WHAT IS REFUSED


def launched(rows, columns, pads):
    """How many kernels pad a matrix to these sizes."""
    struct = jax.ShapeDtypeStruct((rows - pads[0], columns - pads[1]), np.float32)
    options = {"mode": WRAP, "implementation": "pallas"}
    pad = functools.partial(dmljax.padding, end_padding=(0, 0), **options)
    return launches(lambda x: pad(x, pads), struct, platform="tpu")


def test_a_padded_axis_that_memory_has_no_room_for():
    most = _padding.MOST_ELEMENTS // SUBLANES
    assert launched(2, most, (0, 1)) == 1
    message = rf"^PADDING: .*\{{2,{most + 1}\}}.*'xla'"
    with pytest.raises(DescriptorError, match=message):
        launched(2, most + 1, (0, 1))


@pytest.mark.parametrize("more", [0, 1])
def test_two_padded_axes_that_memory_has_no_room_for_are_padded_in_turn(more):
    rows = _padding.MOST_ELEMENTS // (4 * LANES)
    assert launched(rows + more, 4 * LANES, (1, 1)) == 1 + more


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("dtype", ["complex64", "float64", "int64"])
def test_types_that_mosaic_has_not(dtype):
    sample = SUBJECTS["padding"].kernel_samples[0]
    expected = rf"^PADDING: .*no {dtype.upper()}.*None or 'xla'"
    with pytest.raises(DescriptorError, match=expected):
        launches(sample.run, *sample.arrays(dtype), platform="tpu")
