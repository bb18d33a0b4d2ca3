"""The three selects are plain functions of jax.numpy: whatever JAX can do works."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import dmljax
from tests.checks import assert_same
from tests.meshes import sharding_of
from tests.sharded import array

SMOOTHED = np.float32([0.25, 0.75])


def causal(x):
    return dmljax.diagonal_matrix1(x, value=0, fill_begin=1, fill_end=None)


def jnp_causal(x):
    """Has what jnp.tril lacks in JAX 0.9.0: explicit axes."""
    return jnp.where(np.tri(*x.shape[-2:]) > 0, x, 0)


def positive(x):
    return dmljax.element_wise_if(x > 0, x, 0)


def hot(x):
    labels = x[..., None].astype(np.int32)
    return dmljax.one_hot(labels, SMOOTHED, size=3)


def jnp_hot(x):
    """A negative label counts from the end."""
    difference = x[..., None].astype(np.int32) - jnp.arange(3)
    hots = (difference == 0) | (difference == -3)
    return jnp.where(hots, SMOOTHED[1], SMOOTHED[0])


PAIRS = {
    "diagonal_matrix1": (causal, jnp_causal),
    "element_wise_if": (positive, lambda x: jnp.where(x > 0, x, 0)),
    "one_hot": (hot, jnp_hot),
}


@pytest.mark.usefixtures("standard_promotion")
@pytest.mark.parametrize(("ours", "theirs"), PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize(
    "spec", [P("long", None, "b"), P(("a", "b")), P(None, "long", "a")]
)
def test_results_over_explicit_axes_are_sharded_as_those_of_jnp(ours, theirs, spec):
    """Also of a vmap over a divided dimension of a mesh of three axes."""
    sharding = sharding_of("2x2x2", spec, AxisType.Explicit)

    def results(x):
        for function in ours, theirs:
            batches = [jax.vmap(function, axis, axis)(x) for axis in range(3)]
            gradient = jax.grad(lambda x, f=function: jnp.sum(f(x) ** 2))(x)
            yield function(x), gradient, *batches

    with jax.set_mesh(sharding.mesh):
        x = jax.device_put(array(shape=(8, 4, 2)), sharding)
        for found, wanted in zip(*jax.jit(lambda x: [*results(x)])(x), strict=True):
            assert_same(found, wanted)
            assert found.sharding == wanted.sharding


def test_a_window_of_each_head_is_computed_in_full_size():
    """XLA's softmax is slow with a condition that is broadcast along the heads."""

    def masked(x, begin, end):
        return dmljax.diagonal_matrix1(x, value=0, fill_begin=begin, fill_end=end)

    x, bounds = np.zeros((3, 5, 5), np.float32), np.zeros(3, np.int32)
    program = jax.make_jaxpr(jax.vmap(jax.vmap(masked), (0, None, None)))
    sizes = {"le": [], "sub": [], "ge": [], "lt": []}
    for operation in program(x[None], bounds, bounds).eqns:
        sizes.get(operation.primitive.name, []).append(operation.outvars[0].aval.shape)
    # The bounds are compared with each other before they are spread.
    assert sizes.pop("le") == [(3,)]
    assert all(found == [x.shape] for found in sizes.values())
