"""Tensors are read from flat buffers, and written to them, through their strides."""

import functools
import itertools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dmljax._directml.strides import read, write
from tests import oracles
from tests.fuzz.descriptors import Maker
from tests.samples import tensor

LAYOUTS = [
    ((4,), (0,)),
    ((1,), (2**32 - 1,)),
    ((1, 3, 4), (2**32 - 1, 0, 2)),
    ((2, 3, 2), (0, 3, 2)),
    ((3, 4), (1, 1)),
    # The strides of a packed tensor with its axes transposed.
    ((3, 3), (1, 3)),
]
# Axes in any order, some with gaps. The inverse of some orders is another order.
MAKER = Maker(random.Random(0))
for _ in range(40):
    drawn = MAKER.sizes()
    LAYOUTS.append((drawn, MAKER.spread(drawn)))
TENSORS = [tensor("INT32", *sizes, strides=strides) for sizes, strides in LAYOUTS]


def buffer_for(item, more=0):
    return np.arange(1, item.extent + more + 1, dtype=np.int32)


def test_read_and_write():
    """A buffer may be longer than its tensor. Elements outside of the tensor stay."""
    cases = []
    for item, more in itertools.product(TENSORS, (0, 5)):
        values = -1 - np.arange(np.prod(item.sizes), dtype=np.int32)
        cases.append((buffer_for(item, more), values.reshape(item.sizes)))
    items = np.repeat(TENSORS, 2)

    @jax.jit
    def program(cases):
        return [
            (read(item, buffer), write(item, values, buffer))
            for item, (buffer, values) in zip(items, cases, strict=True)
        ]

    results = program(cases)
    for item, (buffer, values), (logical, written) in zip(
        items, cases, results, strict=True
    ):
        expected = oracles.strided_read(buffer, item.sizes, item.strides)
        np.testing.assert_array_equal(logical, expected, f"{item}")
        if not oracles.strides_overlap(item.sizes, item.strides):
            expected = oracles.strided_write(values, item.strides, buffer.size)
            expected = np.where(expected == 0, buffer, expected)
            np.testing.assert_array_equal(written, expected, f"{item}")


def test_packed_tensors_take_no_index_for_each_element():
    for sizes, strides, by_index in (
        ((3, 4), None, False),
        ((3, 4), (4, 1), False),
        ((3, 4), (1, 3), True),
        ((3, 4), (6, 1), True),
    ):
        item = tensor("INT32", *sizes, strides=strides)
        buffer = buffer_for(item)
        values = np.zeros(sizes, np.int32)
        reading = jax.make_jaxpr(functools.partial(read, item))(buffer)
        writing = jax.make_jaxpr(functools.partial(write, item))(values, buffer)
        assert ("gather" in str(reading)) == ("scatter" in str(writing)) == by_index


@pytest.mark.parametrize(
    ("sizes", "strides"), [((3, 2), (0, 1)), ((3, 4), (1, 1)), ((2, 3), (1, 2))]
)
def test_the_gradient_of_an_element_that_is_read_twice_is_a_sum(sizes, strides):
    item = tensor("FLOAT32", *sizes, strides=strides)
    weights = np.power(3.0, np.arange(np.prod(sizes)), dtype=np.float32).reshape(sizes)
    offsets = oracles.strided_read(np.arange(item.extent), sizes, strides)
    expected = np.zeros(item.extent, np.float32)
    np.add.at(expected, offsets, weights)
    gradient = jax.grad(lambda buffer: (read(item, buffer) * weights).sum())
    buffer = jnp.ones(item.extent)
    np.testing.assert_array_equal(jax.jit(gradient)(buffer), expected)
    # Additions may run in parallel only if their targets differ. The gradient along an
    # axis of stride 0 is a sum instead.
    text = str(jax.make_jaxpr(gradient)(buffer))
    assert ("unique_indices=False" in text) == (strides == (1, 1))


# OFFSETS PAST 31 BITS


@pytest.mark.parametrize("transform", [lambda f: f, jax.vmap], ids=["one", "batch"])
@pytest.mark.parametrize("strides", [(2**31, 1), (2**20, 2), (1, 1)])
def test_offsets_past_31_bits(strides, transform):
    """Offsets are 64-bit integers where they must be, even without x64 mode.

    An index may be as large as the buffer, even if the tensor is a small part of it.
    """
    item = tensor("INT8", 2, 2, strides=strides)
    batch = (3,) if transform is jax.vmap else ()
    buffer = jax.ShapeDtypeStruct((*batch, 2**31 + 8), jnp.int8)
    values = jax.ShapeDtypeStruct((*batch, 2, 2), jnp.int8)
    reading = transform(functools.partial(read, item))
    writing = transform(functools.partial(write, item))
    assert "xi64>" in jax.jit(reading).lower(buffer).as_text()
    assert "xi64>" in jax.jit(writing).lower(values, buffer).as_text()
