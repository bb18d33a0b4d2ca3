"""jax.experimental.jet and jax.experimental.roofline know the operators."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.jet import jet
from jax.experimental.roofline import roofline

import dmljax
from dmljax import PaddingMode
from dmljax._padding import _padding
from tests.samples import INT32_MIN

X = (np.arange(12, dtype=np.float32).reshape(3, 4) - 5) / 8
INDICES = np.array([[1], [-1], [9]])

# Each use of x, and the bytes that it reads and writes: of 4 but for the condition's.
USES = {
    "diagonal_matrix1": (
        lambda x: dmljax.diagonal_matrix1(x, value=0, fill_begin=INT32_MIN, fill_end=1),
        4 * (1 + 12 + 12),
    ),
    "element_wise_if": (
        lambda x: dmljax.element_wise_if(X > 0, x, -x),
        12 + 4 * 3 * 12,
    ),
    "one_hot": (
        lambda x: dmljax.one_hot(INDICES.astype(np.int32), x[0, :2], size=5),
        4 * (3 + 2 + 15),
    ),
    "padding": (
        lambda x: dmljax.padding(x, (1, 2), (0, 7), mode=PaddingMode.REFLECTION),
        4 * (12 + 4 * 13),
    ),
    "padding by a value": (
        lambda x: dmljax.padding(x, (1, 2), (0, 1), value=x[1, 1]),
        4 * (12 + 1 + 4 * 7),
    ),
}


@pytest.mark.parametrize("use", USES)
def test_taylor_series(use):
    """Against derivatives of derivatives along a line."""
    operator, _ = USES[use]

    def curve(t):
        return jnp.sin(operator(jnp.exp(t * X)))

    terms = [curve]
    for _ in range(3):
        terms.append(jax.jacfwd(terms[-1]))
    t = jnp.float32(0.5)
    wanted = jax.jit(lambda t: [term(t) for term in terms])(t)
    one, zero = jnp.ones_like(t), jnp.zeros_like(t)
    first, rest = jax.jit(lambda t: jet(curve, (t,), ((one, zero, zero),)))(t)
    for term, other in zip([first, *rest], wanted, strict=True):
        np.testing.assert_allclose(term, other, rtol=1e-4, atol=1e-4)


def test_taylor_series_of_a_program_with_nonzero_coordinates():
    def cubed(x):
        count, _ = dmljax.nonzero_coordinates(x)
        return x**3 * count.astype(np.float32)

    x, one, zero = jnp.float32([0, 2]), jnp.ones(2), jnp.zeros(2)
    with jax.numpy_dtype_promotion("standard"):  # which jet itself needs
        first, rest = jet(cubed, (x,), ((one, zero, zero),))
    np.testing.assert_allclose([first, *rest], [x**3, 3 * x**2, 6 * x, [6, 6]], 1e-5)


@pytest.mark.parametrize("use", USES)
def test_bytes(use):
    """JAX counts its own operations beside: a slice, a reshape, a negation."""
    operator, moved = USES[use]
    primitives = [
        equation.primitive.name
        for equation in jax.make_jaxpr(operator)(X).jaxpr.eqns
        if equation.primitive.name not in ("jit", "pjit")
    ]
    _, whole = roofline(operator)(X)
    assert whole.unfused_hbm_bytes >= moved
    if not primitives:
        assert whole.unfused_hbm_bytes == moved
    _, backward = roofline(jax.grad(lambda x: operator(x).sum()))(X)
    assert backward.unfused_hbm_bytes >= 4 * 12


def test_bytes_of_nonzero_coordinates():
    _, result = roofline(dmljax.nonzero_coordinates)(X)
    assert result.unfused_hbm_bytes == 4 * (12 + 1 + 12 * 2)


def test_a_mode_by_its_number_is_no_other_program():
    before = _padding._cache_size()
    numbers = (4, PaddingMode.WRAP, np.int32(4), np.array(4), jnp.int32(4))
    for mode in numbers:
        dmljax.padding(X, (3, 1), (1, 1), mode=mode)
    assert _padding._cache_size() == before + 1
