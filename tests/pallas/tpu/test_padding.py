"""PADDING on a TPU: results at the edges of tiles and blocks, in the interpreter."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from dmljax import PaddingMode
from dmljax.pallas._axes import axes_of
from dmljax.pallas.tpu import LANES, SUBLANES, _padding
from tests import samples
from tests.checks import assert_same
from tests.pallas.patterns import patterns

SLOW = pytest.mark.slow
CONSTANT, EDGE, REFLECTION, SYMMETRIC, WRAP = PaddingMode
TYPES = (
    *("float32", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int32", "int16", "int8"),
    *("uint32", "uint16", "uint8", "bool", "int4", "uint4"),
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
def test_rows_and_columns_too_many_for_one_block_are_padded_in_turn(
    agrees, monkeypatch
):
    pads, x = ((1, 30, 140), (0, 10, 1)), numbers((2, 20, 130))
    plan = _padding.PaddingPlan(tuple(axes_of(x.shape, *pads)), REFLECTION)
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


def test_what_the_pipeline_moves():
    """Of the input, each block again that is repeated; all else once."""
    x, value = (jax.ShapeDtypeStruct(s, np.float32) for s in ((3, 20, 200), (1,) * 3))

    def pad(x, value):
        pads = static_of(((2, 0, 1), (4, 0, 0)), CONSTANT)
        return _padding.padding(x, value, **pads, interpret=False)[0]

    moved = 9 * 20 * 200 + 1 + 9 * 20 * 201
    assert f"bytes_accessed={4 * moved}," in str(jax.make_jaxpr(pad)(x, value))


# TYPES


@pytest.mark.parametrize("dtype", TYPES, indirect=True)
def test_elements_are_moved_as_integers(dtype):
    """Four bytes for each element, by which it is moved and from which it returns."""
    x = patterns(dtype)
    (taken,) = _padding.for_mosaic(jnp.asarray(x))
    assert taken.dtype.kind != "b"
    assert jnp.issubdtype(taken.dtype, np.floating) or jnp.iinfo(taken.dtype).bits >= 8
    bits = _padding.to_bits(taken)
    assert bits.dtype == np.int32
    back = _padding.from_bits(lax.rev(bits, (0,)), taken.dtype)
    assert_same(back.astype(dtype), x[::-1])
