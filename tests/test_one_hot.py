"""ONE_HOT: values that are known when a program is traced."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dmljax import one_hot
from tests.checks import assert_same, struct


@pytest.mark.parametrize(
    ("values", "dtype", "converted"),
    [
        ([0, 1], "f4", True),
        ([0, 1, 5], "f4", True),
        ([-0.0, 1], "f4", False),
        ([0, 2, 1], "f4", False),
        ([[0, 2], [1, 3]], "f4", False),  # fault: 0 and 1 are the first column
        ([0, 1], "?", False),
    ],
)
def test_values_that_jax_knows_are_those_of_data(values, dtype, converted):
    """Equal bits: truth values that are converted have no negative zero."""
    indices = np.int32([[0], [2], [-1], [3]])
    values = np.array(values, dtype)
    program = jax.make_jaxpr(lambda x: one_hot(x, values, size=3))(indices)
    conversion = f"new_dtype={values.dtype} weak_type"
    assert (conversion in str(program)) == converted
    assert not (converted and program.consts)
    data = jnp.asarray(values)
    assert_same(one_hot(indices, values, size=3), one_hot(indices, data, size=3))


def test_indices_of_64_bits_are_lowered_after_x64_mode():
    with jax.enable_x64(True):
        indices = struct(np.int64, 3, 1)
        values = struct(np.float32, 2)
        traced = jax.jit(functools.partial(one_hot, size=5)).trace(indices, values)
    assert "3x5xui64" in traced.lower().as_text()


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_an_index_of_few_bits_lights_one_place(dtype):
    """Faults: an index of 1 or of 2 bytes is not widened, and counts from 0 again."""
    index = np.array([200], dtype)
    lit = one_hot(index, np.array([0, 1], np.int8), size=70000)
    assert np.flatnonzero(lit).tolist() == [200]
