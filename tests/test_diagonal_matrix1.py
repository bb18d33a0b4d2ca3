"""DIAGONAL_MATRIX1: traced, batched and sharded bounds.

Its wrong calls and its edge cases are in tests/subjects/diagonal_matrix1.py.
"""

import dataclasses
import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from dmljax import create_operator, diagonal_matrix1
from dmljax._diagonal_matrix1 import _diagonal_matrix1
from tests.checks import Parameter, assert_same
from tests.meshes import sharding_of
from tests.samples import INT32_MAX, INT32_MIN, tensor
from tests.subjects.diagonal_matrix1 import OLD, diagonal_fills, oracle

X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
SPANS = np.array([(0, 1), (-1, 3), (3, -1), (INT32_MIN, 0)], np.int32)


def expected(x, begin, end, value=7):
    return oracle(value, x, fill_begin=begin, fill_end=end)


def filled(x, begin, end, value=7, **options):
    return diagonal_matrix1(x, value=value, fill_begin=begin, fill_end=end, **options)


def test_the_defaults_are_the_identity():
    eye = np.eye(2, 3, dtype=np.float32)
    assert_same(diagonal_matrix1(shape=(2, 3)), eye)
    assert_same(diagonal_matrix1(shape=np.array([2, 3]), value=0), 0 * eye)
    found = diagonal_matrix1(X, shape=[3, 4], dtype="float32")
    assert_same(found, expected(X, 0, 1, 1))
    # Fault: -0.0 is taken for the integer 0, which stands for a constant.
    found = diagonal_matrix1(X, value=-0.0)
    assert_same(found, expected(X, 0, 1, np.float32(-0.0)))


def test_an_empty_result_is_on_the_device_of_the_input():
    """It has no weak type, as every other result."""
    *_, device = jax.devices()
    x = jax.device_put(jnp.full((0, 3), 1.0), device)
    assert x.weak_type
    found = diagonal_matrix1(x)
    assert_same(found, np.zeros((0, 3), np.float32))
    assert found.devices() == {device}


@pytest.mark.parametrize("offset", [INT32_MIN, -3, INT32_MAX])
def test_offsets_of_the_older_descriptor(offset):
    """No matrix has the last diagonals. -3 is the lower left corner of this matrix."""
    output = tensor("FLOAT32", 1, 1, 4, 4)
    desc = dataclasses.replace(OLD, output_tensor=output, offset=offset, value=2.5)
    zeros = np.zeros(output.sizes, np.float32)
    assert_same(create_operator(desc)(), expected(zeros, offset, offset + 1, 2.5))


@pytest.mark.parametrize("matrix", [(3, 4), (4, 2)])
def test_every_pair_of_bounds(matrix):
    """As attributes and as data. All bounds past a corner have the same effect."""
    rows, columns = matrix
    far = INT32_MIN, INT32_MIN + 1, INT32_MAX - 1, INT32_MAX
    bounds = *range(-rows - 1, columns + 2), *far
    pairs = np.array([*itertools.product(bounds, bounds)], np.int32)
    data = pairs.T[..., None, None]
    wanted = np.vectorize(diagonal_fills)(*np.indices(matrix), *data)
    fill = partial(filled, np.zeros(matrix, bool), value=True)
    assert_same(jax.jit(jax.vmap(fill))(*pairs.T), wanted)
    for (begin, end), fills in zip(pairs.tolist(), wanted, strict=True):
        with jax.disable_jit():
            assert_same(fill(begin, end), fills, f"{begin} to {end}")


# TRACED BOUNDS


@pytest.mark.parametrize(
    "spec", [P("a", "b", "long"), P(None, "b", None), P("a")], ids=str
)
def test_over_explicit_axes(spec):
    """Also where a device's part begins at another diagonal."""
    x = np.arange(48, dtype=np.float32).reshape(2, 4, 6)
    sharding = sharding_of("2x2x2", spec, AxisType.Explicit)
    with jax.set_mesh(sharding.mesh):
        sharded = jax.device_put(x, sharding)
        shared = jax.jit(filled)
        for begin, end in SPANS:
            assert_same(shared(sharded, begin, end), expected(x, begin, end))
        bounds = jax.device_put([*SPANS[:2].T], P(spec[0]))
        found = jax.jit(jax.vmap(filled))(sharded, *bounds)
        assert_same(found, np.stack([*map(expected, x, *SPANS[:2].T)]))


def test_bounds_of_every_kind():
    """Arrays are data, so another array compiles nothing."""
    wanted = expected(X, 1, 3)
    for begin, end in (
        (np.int64(1), np.array(3)),
        (Parameter(np.int32(1)), 3),
        (jnp.uint8(1), 3),
    ):
        assert_same(filled(X, begin, end), wanted)
    before = _diagonal_matrix1._cache_size()
    for begin in (-3, 0, 4):
        assert_same(filled(X, jnp.int32(begin), 2), expected(X, begin, 2))
    assert _diagonal_matrix1._cache_size() <= before + 1


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (np.uint32(2**31 + 5), np.uint32(2**31 - 1)),
        (np.int32(-1), np.uint32(2**32 - 1)),
        (np.uint64(2**64 - 1), np.int64(2**63 - 1)),
        (np.int8(-3), np.int64(-(2**40) - 1)),
    ],
)
def test_bounds_beyond_int32_are_compared_before_they_saturate(x64, begin, end):
    """Two bounds past all diagonals fill nothing or everything: the order decides."""
    jitted = jax.jit(partial(filled, X))
    for given in ((begin, end), (end, begin)):
        wanted = expected(X, *given)
        assert_same(jitted(*given), wanted)
        assert_same(filled(X, *map(jnp.asarray, given)), wanted)


def test_a_window_of_each_head_is_computed_in_full_size():
    """XLA's softmax is slow with a condition that is broadcast along the heads."""
    x, bounds = np.zeros((3, 5, 5), np.float32), np.zeros(3, np.int32)
    program = jax.make_jaxpr(jax.vmap(jax.vmap(filled), (0, None, None)))
    sizes = {"le": [], "sub": [], "ge": [], "lt": []}
    for operation in program(x[None], bounds, bounds).eqns:
        sizes.get(operation.primitive.name, []).append(operation.outvars[0].aval.shape)
    # The bounds are compared with each other before they are spread.
    assert sizes.pop("le") == [(3,)]
    assert all(found == [x.shape] for found in sizes.values())
