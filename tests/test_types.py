"""Types of values, and what they can hold."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from dmljax._types import (
    index_mode,
    integer,
    is_floating,
    is_integer,
    is_sequence,
    x64_enabled,
)


def test_what_is_a_sequence():
    for values in ([], (1, 2), range(3), np.zeros(2), np.zeros((2, 2))):
        assert is_sequence(values)
    masked = np.ma.masked_array([1, 2])
    others = bytearray(2), memoryview(b"12"), masked
    for values in (1, "12", b"12", np.zeros(()), {1}, None, jnp.zeros(2), *others):
        assert not is_sequence(values)


def test_integers_become_pythons():
    for value in (np.int8(7), np.uint64(7), np.array(7), jnp.int32(7), 7):
        assert (type(integer(value)), integer(value)) == (int, 7)
    others = (7.0, "7", None, True, np.float32(7), np.bool_(True), np.zeros(1, int))
    others += np.timedelta64(7, "s"), np.ma.masked_array(7)
    assert all(integer(value) is value for value in others)


def test_kinds_of_types():
    floating = ("float16", "bfloat16", "float32", "float64", "float8_e5m2")
    whole = ("int4", "uint4", "int8", "uint64")
    for name in (*floating, *whole, "bool", "complex64", "m8[s]"):
        dtype = jnp.dtype(name)
        kinds = name in floating, name in whole
        assert (is_floating(dtype), is_integer(dtype)) == kinds


@pytest.mark.parametrize(
    ("sizes", "dtype"),
    [((), "int32"), ((2**31 - 1, 5), "int32"), ((5, 2**31), "int64"), ("n", "int32")],
)
def test_type_of_indices(sizes, dtype):
    """Indices have 64 bits where they must, although x64 mode is off."""
    sizes = export.symbolic_shape(sizes) if sizes == "n" else sizes
    with index_mode(*sizes) as integer:
        assert integer == dtype
        assert jnp.arange(2, dtype=integer).dtype == dtype
    assert not x64_enabled()


def test_type_of_indices_under_x64(x64):
    with index_mode(5) as integer:
        assert integer == np.int32
        assert x64_enabled()
