"""Tensors are read from flat buffers, and written to them, through their strides.

tests/fuzz/ compares values: test_descriptors.py reads and writes, and test_models.py
also writes into buffers whose other elements stay.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dmljax._directml.strides import read, write
from tests import oracles
from tests.checks import struct
from tests.samples import tensor


@pytest.mark.parametrize("strides", [(4, 1), (1, 3), (6, 1)])
def test_packed_tensors_take_no_index_for_each_element(strides):
    item = tensor("INT32", 3, 4, strides=strides)
    buffer = struct(np.int32, item.extent)
    reading = jax.make_jaxpr(partial(read, item))(buffer)
    writing = jax.make_jaxpr(partial(write, item))(struct(np.int32, 3, 4), buffer)
    indexed = "gather" in str(reading), "scatter" in str(writing)
    assert indexed == (strides != (4, 1),) * 2


@pytest.mark.parametrize(
    ("sizes", "strides"), [((3, 2), (0, 1)), ((3, 4), (1, 1)), ((2, 3), (1, 2))]
)
def test_the_gradient_of_an_element_that_is_read_twice_is_a_sum(sizes, strides):
    item = tensor("FLOAT32", *sizes, strides=strides)
    weights = np.power(3.0, np.arange(np.prod(sizes)), dtype=np.float32).reshape(sizes)
    offsets = oracles.strided_read(np.arange(item.extent), sizes, strides)
    expected = np.bincount(offsets.ravel(), weights.ravel())
    gradient = jax.jit(jax.grad(lambda buffer: (read(item, buffer) * weights).sum()))
    buffer = jnp.ones(item.extent)
    np.testing.assert_array_equal(gradient(buffer), expected)
    # Additions may run in parallel only if their targets differ. The gradient along an
    # axis of stride 0 is a sum instead.
    text = str(jax.make_jaxpr(gradient)(buffer))
    assert ("unique_indices=False" in text) == (strides == (1, 1))


@pytest.mark.parametrize("strides", [(2**31, 1), (1, 1)])
def test_offsets_past_31_bits(strides):
    """Offsets are 64-bit integers where they must be, even without x64 mode.

    An index may be as large as the buffer, even if the tensor is a small part of it.
    """
    item = tensor("INT8", 2, 2, strides=strides)
    buffer = struct(np.int8, 3, 2**31 + 8)
    values = struct(np.int8, 3, 2, 2)
    for function, *arrays in (read, buffer), (write, values, buffer):
        program = jax.jit(jax.vmap(partial(function, item)))
        assert "xi64>" in program.lower(*arrays).as_text()
