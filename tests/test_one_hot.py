"""ONE_HOT: the types of indices, and what an output is made of.

Its wrong calls and its edge cases are in tests/subjects/one_hot.py.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dmljax import one_hot
from tests import oracles
from tests.checks import assert_same


@pytest.mark.parametrize(
    "dtype",
    [f"{sign}int{width}" for sign in ("", "u") for width in (4, 8, 16, 32, 64)],
    indirect=True,
)
def test_types_of_indices(dtype):
    """No index wraps around, also where a position is past the type's range."""
    limits = jnp.iinfo(dtype)
    values = np.array([4, 2], np.int8)
    call = jax.jit(one_hot, static_argnames=("size", "axis"))
    for size in (1, 5, 300):
        near = range(max(-size - 2, int(limits.min)), min(size + 3, int(limits.max)))
        indices = np.array([[*near, int(limits.min), int(limits.max)]], dtype)
        expected = oracles.one_hot(indices, values, size=size, axis=0)
        assert_same(call(indices, values, size=size, axis=0), expected)


def test_nothing_is_computed_of_the_values():
    """Off + (on - off) would be NaN."""
    indices = np.array([[0], [-1], [7]], np.int32)
    call = functools.partial(one_hot, size=3)
    for pair in ((np.nan, 1), (1, np.nan), (np.inf, -np.inf), (-0.0, 0)):
        values = np.array(pair, np.float32)
        expected = oracles.one_hot(indices, values, size=3, axis=-1)
        assert_same(call(indices, values), expected)


def test_the_largest_size():
    indices = jax.ShapeDtypeStruct((1, 0), np.int32)
    values = jax.ShapeDtypeStruct((2,), np.float32)
    call = functools.partial(one_hot, size=2**31 - 1, axis=0)
    assert jax.eval_shape(call, indices, values).shape == (2**31 - 1, 0)
