"""The formulas of the operators, compared with those of the oracles."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from dmljax._coordinates import (
    PaddingMode,
    countable,
    fill_rows,
    is_filled,
    is_nonzero,
    last_sizes,
    source_index,
    unravel,
    wrapped,
    zero_patterns,
)
from tests import oracles, samples
from tests.samples import INT32_MAX, INT32_MIN

FAR = (INT32_MIN, INT32_MIN + 1, INT32_MAX - 1, INT32_MAX)


# DIAGONAL_MATRIX1


@pytest.mark.parametrize("matrix", [(3, 4), (4, 2), (1, 1), (1, 3), (3, 1)])
def test_diagonals(matrix):
    """As attributes and as data."""
    y, x = np.indices(matrix, np.int32)
    bounds = (*range(-6, 7), *FAR)
    for begin, end in itertools.product(bounds, bounds):
        wanted = np.vectorize(oracles.diagonal_fills)(y, x, begin, end)
        data = np.int32(begin), np.int32(end)
        for found in (
            is_filled(x - y, (), begin, end),
            is_filled(x - y, data, None, None),
        ):
            np.testing.assert_array_equal(found, wanted, f"{begin} to {end}")


# ONE_HOT


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"], indirect=True)
def test_what_an_index_lights(dtype, size):
    limits = np.iinfo(dtype)
    near = [n for n in range(-2 * size - 2, 2 * size + 3) if n >= limits.min]
    far = [limits.min, limits.min + 1, limits.max - 1, limits.max, limits.max // 2 + 1]
    index = np.array([*near, *far], dtype)
    position = np.arange(size).astype(dtype)
    with np.errstate(over="ignore"):
        found = np.asarray(wrapped(jnp.asarray(index), size))[:, None] == position
    wanted = oracles.one_hot(index[:, None], np.array([False, True]), size=size, axis=1)
    np.testing.assert_array_equal(found, wanted)


def test_indices_that_can_count():
    for name, wide in (("int4", "int32"), ("uint16", "uint32"), ("int32", "int32")):
        found = countable(np.array([7], name))
        assert found.dtype == wide
        assert found == 7


# NONZERO_COORDINATES


@pytest.mark.parametrize(
    "dtype",
    sorted({*samples.SPECIAL_BITS, "int8", *samples.EXTRA} - {"bool"}),
    indirect=True,
)
def test_what_is_not_zero(dtype):
    """By the bits: subnormal numbers, and no negative zero."""
    values = np.concatenate(
        [samples.any_bits((64,), dtype, seed) for seed in range(5)]
        + [np.array([0.0, -0.0]).astype(dtype)]
    )
    wanted = np.array([oracles.nonzero(value) for value in values])
    assert 0 < wanted.sum() < wanted.size
    np.testing.assert_array_equal(is_nonzero(jnp.asarray(values)), wanted)


def test_zeros_of_a_type():
    for name, patterns in (
        ("float32", (0, 1 << 31)),
        ("bfloat16", (0, 1 << 15)),
        ("float8_e4m3fn", (0, 0x80)),
        ("float8_e4m3b11fnuz", (0,)),
        ("float8_e8m0fnu", ()),
    ):
        assert zero_patterns(jnp.dtype(name)) == patterns


def test_coordinates_of_numbers():
    for sizes in ((), (7,), (3, 4), (2, 1, 3), (1, 1, 5, 2), (1, 1)):
        flat = np.arange(int(np.prod(sizes)), dtype=np.uint32)
        rank = len(sizes) - next((i for i, n in enumerate(sizes) if n > 1), len(sizes))
        for columns in range(max(rank, 1), max(len(sizes), 1) + 1):
            last = last_sizes(sizes, columns)
            assert last == ((1,) * columns + sizes)[-columns:]
            wanted = np.stack(np.unravel_index(flat, last), -1)
            np.testing.assert_array_equal(unravel(flat, sizes, columns), wanted)
    # A part of a tensor may begin behind the first coordinates that it has itself.
    assert unravel(np.uint32([25]), (3, 4), 2).tolist() == [[6, 1]]


def test_rows_that_are_filled():
    rows = np.array([[1, 2], [0, 0]], np.uint32)
    valid = np.array([True, False])
    assert fill_rows(rows, valid, 0) is fill_rows(rows, valid, None) is rows
    assert fill_rows(rows, valid, 2**32 - 1).tolist() == [[1, 2], [2**32 - 1] * 2]


# PADDING

MODES = {"CONSTANT": 0, "EDGE": 1, "REFLECTION": 2, "SYMMETRIC": 3, "WRAP": 4}
REPEATING = tuple(PaddingMode)[1:]


def test_modes():
    assert {mode.name: int(mode) for mode in PaddingMode} == MODES
    for name, number in (MODES | {"REFLECT": 2}).items():
        for written in (name, name.lower(), name.title()):
            assert PaddingMode(written) is PaddingMode(number)
    for wrong in ("mirror", "", "WRAP ", 5, None):
        with pytest.raises(ValueError, match="is not a valid PaddingMode"):
            PaddingMode(wrong)


@pytest.mark.parametrize("mode", REPEATING, ids=lambda mode: mode.name)
def test_sources(mode):
    """The last position decides whether there is a division, a select or neither."""
    positions = np.arange(40, dtype=np.int32)
    for size, start, stop in itertools.product(
        (1, 2, 3, 5), (0, 1, 4, 7), range(1, 41, 3)
    ):
        position = np.minimum(positions, stop - 1)  # of one shape: it compiles once
        found = source_index(position, stop, start, size, mode)
        wanted = [oracles.padding_source(p - start, size, mode.name) for p in position]
        np.testing.assert_array_equal(found, wanted, f"{size} {start} {stop}")
