"""PADDING on a TPU: results at the edges of slabs and blocks, in the interpreter."""

import jax.numpy as jnp
import pytest

from dmljax import PaddingMode
from dmljax.pallas._padding import Axis
from dmljax.pallas.tpu import LANES, SUBLANES, _padding
from tests import samples

SLOW = pytest.mark.slow
CONSTANT, EDGE, REFLECTION, SYMMETRIC, WRAP = PaddingMode
TYPES = (
    *("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int32"),
    *("int16", "int8", "uint32", "uint16", "uint8", "bool", "int4", "uint4"),
)


def numbers(shape, dtype="float32", seed=0):
    return jnp.asarray(samples.numbers(shape, dtype, seed))


@pytest.fixture
def small(monkeypatch):
    """Blocks of so few elements that small arrays have many, the last ones cut."""
    monkeypatch.setattr(_padding, "ELEMENTS", 2**12)


def static_of(pads, mode):
    return {"start": pads[0], "end": pads[1], "mode": mode}


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


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        pytest.param(name, mode, marks=() if (name, mode) == ("rows", WRAP) else SLOW)
        for name in PERIODS
        for mode in PaddingMode
    ],
)
def test_periods(agrees, name, mode):
    shape, *pads = PERIODS[name]
    value = [numbers((1, 1), seed=5)] if mode is CONSTANT else []
    agrees("padding", numbers(shape), *value, **static_of(pads, mode))


# BLOCKS

# Along every axis, in more than one tile and block, with padding past the size.
PADS = {
    "leading": ((3, 0, 0), (4, 0, 0)),
    "rows": ((0, 11, 0), (0, 30, 0)),
    "columns": ((0, 0, 140), (0, 0, 7)),
    "all": ((1, 2, 3), (0, 1, 290)),
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("mode", "dtype", "pads", "cores"),
    [
        (CONSTANT, "float32", "leading", 1),
        *(pytest.param(CONSTANT, "int8", pads, 1, marks=SLOW) for pads in PADS),
        pytest.param(REFLECTION, "bfloat16", "all", 2, marks=SLOW),
        pytest.param(WRAP, "float32", "columns", 2, marks=SLOW),
        pytest.param(EDGE, "bool", "rows", 1, marks=SLOW),
        pytest.param(SYMMETRIC, "float32", "leading", 1, marks=SLOW),
    ],
)
def test_blocks(agrees, mode, dtype, pads, cores):
    value = [numbers((1, 1, 1), dtype, 5)] if mode is CONSTANT else []
    x = numbers((2, 19, 140), dtype)
    agrees("padding", x, *value, cores=cores, **static_of(PADS[pads], mode))


@pytest.mark.slow
def test_more_rows_and_columns_than_a_block_has_are_padded_in_turn(agrees, monkeypatch):
    pads, x = ((1, 30, 140), (0, 10, 1)), numbers((2, 20, 130))
    plan = _padding.PaddingPlan(tuple(map(Axis, x.shape, *pads)), REFLECTION)
    monkeypatch.setattr(_padding, "MOST_ELEMENTS", plan.elements - 1)
    # One dimension alone must fit: its block has few rows or columns of the other.
    monkeypatch.setattr(_padding, "ELEMENTS", 2**12)
    agrees("padding", x, **static_of(pads, REFLECTION))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "sizes", "pads"),
    [
        ((2, 3, 5, 4), (2, 1, 1, 1), ((2, 1), (0, 3))),
        ((2, 3, 5, 4), (2, 3, 1, 1), ((2, 1), (0, 3))),
        ((2, 3, 5, 4), (2, 1, 1, 1), ((0, 2, 1), (1, 0, 3))),
        ((1, 3, 5, 4), (2, 1, 1, 1), ((2, 1), (0, 3))),
        ((2, 3, 5, 4), (1, 1, 1, 1), ((2, 1), (0, 3))),
        ((1, 5, 4), (2, 1, 1), ((1,), (3,))),
        ((3, 5, 4), (3, 5, 1), ((1,), (3,))),
        ((3, 1, 4), (3, 5, 1), ((1,), (3,))),
        ((9,), (1,), ((1,), (3,))),
    ],
)
def test_values_of_a_batch(agrees, shape, sizes, pads):
    """Batch dimensions in which the value or the input is shared, or neither is."""
    value = numbers(sizes, seed=3)
    agrees("padding", numbers(shape), value, **static_of(pads, CONSTANT))
