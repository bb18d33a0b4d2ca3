"""A network of flax, equinox and optax, as users write it, and its twin in jax.numpy.

It is a convolutional net with reflected borders, which the twin makes by jax.numpy. We
compare values, gradients and the number of traces. The tests are skipped without `pip
install -e ".[test,clients]"`.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import dmljax
from dmljax import PaddingMode

eqx = pytest.importorskip("equinox")
nnx = pytest.importorskip("flax.nnx")
optax = pytest.importorskip("optax")
# Users' programs are not written for strict types.
pytestmark = pytest.mark.usefixtures("standard_promotion")
IMAGES = np.random.default_rng(0).normal(size=(4, 6, 6, 2)).astype(np.float32)


def counted(function):
    """The function, and a list that grows at each trace."""
    traces = []

    @functools.wraps(function)
    def traced(*arguments):
        traces.append(None)
        return function(*arguments)

    return traced, traces


def ours(x):
    """(height, width, channels) with a border of 1."""
    return dmljax.padding(x, (1, 1, 0), (1, 1, 0), mode=PaddingMode.REFLECTION)


def theirs(x):
    return jnp.pad(x, ((1, 1), (1, 1), (0, 0)), mode="reflect")


def convolved(reflect, kernel, x):
    """(batch, height, width, channels), of the same sizes."""
    x = jax.vmap(reflect)(x)
    options = {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}
    return lax.conv_general_dilated(x, kernel, (1, 1), "VALID", **options)


def through_layers(reflect, kernels, x):
    """Residual layers, scanned over and recomputed, in bfloat16."""

    @jax.checkpoint
    def layer(x, kernel):
        return x + jnp.tanh(convolved(reflect, kernel.astype(x.dtype), x)), None

    return lax.scan(layer, x.astype(jnp.bfloat16), kernels)[0]


def initial_kernels():
    return 0.1 * jax.random.normal(jax.random.key(0), (3, 3, 3, 2, 2))


def loss_of(reflect, kernels, images):
    restored = through_layers(reflect, kernels, images).astype(np.float32)
    return jnp.mean((restored - 2 * images) ** 2)


class EquinoxNet(eqx.Module):
    kernels: jax.Array
    reflect: Any = eqx.field(static=True)

    def __call__(self, images):
        return loss_of(self.reflect, self.kernels, images)


def trained_by_equinox(reflect):
    """The losses and the kernels of some steps, with donated buffers."""
    optimizer = optax.adam(1e-2)

    def step(net, state, images):
        loss, gradient = eqx.filter_value_and_grad(lambda net: net(images))(net)
        updates, state = optimizer.update(gradient, state)
        return eqx.apply_updates(net, updates), state, loss

    step, traces = counted(step)
    step = eqx.filter_jit(step, donate="all-except-first")
    net = EquinoxNet(initial_kernels(), reflect)
    state = optimizer.init(eqx.filter(net, eqx.is_array))
    losses = []
    for _ in range(3):
        net, state, loss = step(net, state, jnp.array(IMAGES))
        losses.append(loss)
    return losses, net.kernels, len(traces)


class NnxNet(nnx.Module):
    def __init__(self, reflect):
        self.kernels = nnx.Param(initial_kernels())
        self.reflect = reflect

    def __call__(self, images):
        return loss_of(self.reflect, self.kernels[...], images)


def trained_by_nnx(reflect):
    net = NnxNet(reflect)
    optimizer = nnx.Optimizer(net, optax.adam(1e-2), wrt=nnx.Param)

    def step(net, optimizer, images):
        loss, gradient = nnx.value_and_grad(lambda net: net(images))(net)
        optimizer.update(net, gradient)
        return loss

    step, traces = counted(step)
    step = nnx.jit(step, donate_argnums=(0, 1))
    losses = [step(net, optimizer, IMAGES) for _ in range(3)]
    return losses, net.kernels[...], len(traces)


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
@pytest.mark.parametrize("train", [trained_by_equinox, trained_by_nnx])
def test_convolutional_net(train):
    losses, kernels, traces = train(ours)
    twin_losses, twin_kernels, twin_traces = train(theirs)
    assert losses[-1] < losses[0]
    assert traces == twin_traces
    assert kernels.dtype == twin_kernels.dtype
    # The layers compute in bfloat16.
    np.testing.assert_allclose(losses, twin_losses, 2e-2, 2e-2)
    np.testing.assert_allclose(kernels, twin_kernels, 2e-2, 2e-2)
