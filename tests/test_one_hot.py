"""ONE_HOT: what is not tested for all operators, by the samples of tests/subjects/."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dmljax import one_hot
from dmljax._one_hot import countable, position_of
from tests import oracles


def test_the_largest_size():
    indices = jax.ShapeDtypeStruct((1, 0), np.int32)
    values = jax.ShapeDtypeStruct((2,), np.float32)
    call = functools.partial(one_hot, size=2**31 - 1, axis=0)
    assert jax.eval_shape(call, indices, values).shape == (2**31 - 1, 0)


@pytest.mark.parametrize(
    ("values", "dtype", "converted"),
    [
        ([0, 1], "f4", True),
        ([0, 1, 5], "f4", True),
        ([0, 1], "u1", True),
        ([-0.0, 1], "f4", False),
        ([0, 2, 1], "f4", False),
        ([0, 1], "?", False),
    ],
)
def test_values_that_jax_knows_are_those_of_data(values, dtype, converted):
    """Bit for bit: truth values that are converted have no negative zero."""
    indices = np.int32([[0], [2], [-1], [3]])
    values = np.array(values, dtype)
    program = jax.make_jaxpr(lambda x: one_hot(x, values, size=3))(indices)
    assert (f"new_dtype={values.dtype}" in str(program)) == converted
    assert not (converted and program.consts)
    known = np.asarray(one_hot(indices, values, size=3))
    data = np.asarray(one_hot(indices, jnp.asarray(values), size=3))
    assert (known.dtype, known.tobytes()) == (data.dtype, data.tobytes())


def test_indices_of_64_bits_are_lowered_after_x64_mode():
    with jax.enable_x64(True):
        indices = jax.ShapeDtypeStruct((3, 1), np.int64)
        values = jax.ShapeDtypeStruct((2,), np.float32)
        traced = jax.jit(functools.partial(one_hot, size=5)).trace(indices, values)
    assert "3x5xui64" in traced.lower().as_text()


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"], indirect=True)
def test_what_an_index_lights(dtype, size):
    limits = np.iinfo(dtype)
    near = [n for n in range(-2 * size - 2, 2 * size + 3) if n >= limits.min]
    far = [limits.min, limits.min + 1, limits.max - 1, limits.max, limits.max // 2 + 1]
    index = np.array([*near, *far], dtype)
    position = np.arange(size).astype(dtype)
    with np.errstate(over="ignore"):
        found = np.asarray(position_of(jnp.asarray(index), size))[:, None] == position
    wanted = oracles.one_hot(index[:, None], np.array([False, True]), size=size, axis=1)
    np.testing.assert_array_equal(found, wanted)


def test_indices_that_can_count():
    for name, wide in (("int4", "int32"), ("uint16", "uint32"), ("int32", "int32")):
        found = countable(np.array([7], name))
        assert found.dtype == wide
        assert found == 7
