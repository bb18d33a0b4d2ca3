"""DIAGONAL_MATRIX1 with bounds that are data: traced, batched, sharded."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import dmljax
from dmljax._diagonal_matrix1 import _diagonal_matrix1
from dmljax._operators import OPERATORS
from tests import oracles
from tests.samples import INT32_MAX, INT32_MIN

X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
SPANS = (
    *((0, 1), (-1, 3), (2, 2), (0, 0), (3, -1), (1, 0), (-9, 9), (9, -9)),
    *((INT32_MIN, INT32_MAX), (INT32_MAX, INT32_MIN), (INT32_MIN, INT32_MIN)),
    *((INT32_MAX, INT32_MAX), (INT32_MIN, 1), (1, INT32_MAX), (1, INT32_MIN)),
)
BEGIN, END = np.array(SPANS, np.int32).T


def expected(x, begin, end, value=7):
    return oracles.diagonal_matrix1(x, value=value, fill_begin=begin, fill_end=end)


def filled(x, begin, end, value=7, **options):
    return dmljax.diagonal_matrix1(
        x, value=value, fill_begin=begin, fill_end=end, **options
    )


@pytest.mark.parametrize("implementation", ["xla", "pallas"])
def test_every_span_as_data(implementation):
    """Each of a batch has its own span, and each alone has it too."""
    wanted = np.stack([expected(X, *span) for span in SPANS])

    def one(begin, end):
        return filled(X, begin, end, implementation=implementation)

    np.testing.assert_array_equal(jax.jit(jax.vmap(one))(BEGIN, END), wanted)
    jitted = jax.jit(one)
    for begin, end, matrix in zip(BEGIN, END, wanted, strict=True):
        np.testing.assert_array_equal(jitted(begin, end), matrix)
    assert jitted._cache_size() == 1


@pytest.mark.parametrize("implementation", ["xla", "pallas"])
def test_windows_of_heads(implementation):
    """One bound is data, the other is not; the input is a batch, or is None."""
    heads = np.stack([X, 2 * X, 3 * X])
    begins = np.array([-2, INT32_MIN, 1], np.int32)
    options = {"implementation": implementation}
    output = jax.jit(jax.vmap(lambda x, b: filled(x, b, 2, **options)))(heads, begins)
    wanted = [expected(x, b, 2) for x, b in zip(heads, begins, strict=True)]
    np.testing.assert_array_equal(output, wanted)
    shape = (2, *X.shape)
    output = jax.jit(
        jax.vmap(lambda b: filled(None, 0, b, shape=shape, **options), out_axes=1)
    )(begins)
    zeros = np.zeros(shape, np.float32)
    wanted = np.stack([expected(zeros, 0, b) for b in begins], axis=1)
    np.testing.assert_array_equal(output, wanted)


def test_by_the_kernel_for_tpus():
    """Interpreted; a block may hold several matrices with spans of their own."""
    kernel = OPERATORS["diagonal_matrix1"].primitive.kernels["tpu"]
    bounds = (bound.reshape(-1, 1, 1) for bound in (BEGIN, END))
    (output,) = kernel(
        *bounds,
        np.full((1, 1, 1), 7, np.float32),
        np.stack([X] * len(SPANS)),
        matrix=X.shape,
        fill_begin=None,
        fill_end=None,
        interpret=True,
    )
    wanted = np.stack([expected(X, *span) for span in SPANS])
    np.testing.assert_array_equal(output, wanted)


def test_gradients():
    """In the input and the value; a bound is an integer and has none."""

    def energy(x, value, begin, end):
        return jnp.sum(filled(x, begin, end, value) * X)

    gradient = jax.jit(jax.grad(energy, (0, 1)))
    for begin, end in SPANS:
        by_x, by_value = gradient(X, 7.0, begin, end)
        mask = expected(np.zeros_like(X), begin, end, 1)
        np.testing.assert_array_equal(by_x, X * (1 - mask))
        assert by_value == np.sum(X * mask)


@pytest.mark.parametrize(
    ("spec", "implementation"),
    [
        *((P("a", "b", "c"), None), (P(None, "b", None), None), (P("a"), None)),
        (P("a", "b", "c"), "pallas"),
    ],
    ids=str,
)
def test_over_explicit_axes(spec, implementation):
    """Also where a device's part begins at another diagonal."""
    own = functools.partial(filled, implementation=implementation)
    axis_types = (AxisType.Explicit,) * 3
    devices = jax.devices("cpu")[:8]
    mesh = jax.make_mesh((2, 2, 2), ("a", "b", "c"), axis_types, devices=devices)
    x = np.arange(48, dtype=np.float32).reshape(2, 4, 6)
    with jax.set_mesh(mesh):
        shared = jax.jit(own)
        of_each = jax.jit(jax.vmap(own))
        sharded = jax.device_put(x, NamedSharding(mesh, spec))
        for begin, end in SPANS[::2]:
            np.testing.assert_array_equal(
                shared(sharded, begin, end), expected(x, begin, end)
            )
        begins, ends = BEGIN[-2:], END[-2:]
        bounds = [
            jax.device_put(b, NamedSharding(mesh, P(spec[0]))) for b in (begins, ends)
        ]
        wanted = [expected(*one) for one in zip(x, begins, ends, strict=True)]
        np.testing.assert_array_equal(of_each(sharded, *bounds), wanted)


def test_static_bounds_keep_their_program():
    """No operand for a bound, and no comparison that is the same for all elements."""
    text = str(jax.make_jaxpr(lambda x: filled(x, INT32_MIN, 1))(X))
    assert "fill_begin=-2147483648" in text
    lowered = jax.jit(lambda x: filled(x, INT32_MIN, 1)).lower(X).as_text()
    assert lowered.count("stablehlo.compare") == 1


def test_an_array_compiles_once():
    before = _diagonal_matrix1._cache_size()
    for begin in (-3, 0, 4):
        output = filled(X, jnp.int32(begin), 2)
        np.testing.assert_array_equal(output, expected(X, begin, 2))
    assert _diagonal_matrix1._cache_size() == before + 1


def test_a_traced_python_number_saturates(x64):
    jitted = jax.jit(lambda begin, end: filled(X, begin, end))
    for begin, end in ((-(2**40), 1), (2**40, 1), (-1, 2**40)):
        limits = (min(max(b, INT32_MIN), INT32_MAX) for b in (begin, end))
        np.testing.assert_array_equal(jitted(begin, end), expected(X, *limits))


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        (np.int8(1), "DiagonalFillBegin has data type INT8; .* must have INT32"),
        (np.float32(1), "DiagonalFillBegin has data type FLOAT32"),
        (
            np.zeros(3, np.int32),
            r"DiagonalFillBegin has sizes \{3\}; it must be a scalar",
        ),
    ],
)
def test_bounds_that_are_refused(bound, message):
    with pytest.raises(dmljax.DescriptorError, match=message):
        jax.jit(lambda begin: filled(X, begin, 2))(bound)
