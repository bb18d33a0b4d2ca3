"""A network of equinox and optax, as users write it, and its twin in jax.numpy.

It is a convolutional net with reflected borders, which the twin makes by jax.numpy. We
compare values, gradients and the number of traces. The test is skipped without `pip
install -e ".[test,clients]"`. docs/tutorials/network.md trains one of flax.
"""

import functools
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import dmljax
from dmljax import PaddingMode

eqx = pytest.importorskip("equinox")
optax = pytest.importorskip("optax")
# Users' programs are not written for strict types.
pytestmark = pytest.mark.usefixtures("standard_promotion")
random = np.random.default_rng(0)
IMAGES = random.normal(size=(4, 6, 6, 2)).astype(np.float32)
KERNELS = random.normal(0, 0.1, (3, 3, 3, 2, 2)).astype(np.float32)


def ours(x):
    """(height, width, channels) with a border of 1."""
    return dmljax.padding(x, (1, 1, 0), (1, 1, 0), mode=PaddingMode.REFLECTION)


def theirs(x):
    return jnp.pad(x, ((1, 1), (1, 1), (0, 0)), mode="reflect")


def loss_of(reflect, net, images):
    """Residual layers, scanned over and recomputed, in bfloat16.

    An array has the sizes (batch, height, width, channels).
    """

    @jax.checkpoint
    def layer(x, kernel):
        wider = jax.vmap(reflect)(x)
        kernel = kernel.astype(x.dtype)
        options = {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}
        y = lax.conv_general_dilated(wider, kernel, (1, 1), "VALID", **options)
        return x + jnp.tanh(y), None

    x = images.astype(jnp.bfloat16)
    restored, _ = lax.scan(layer, x, net.kernels)
    return jnp.mean((restored.astype(np.float32) - 2 * images) ** 2)


class Net(eqx.Module):
    kernels: jax.Array


def trained(loss_of):
    """The losses and the kernels of some steps, with donated buffers."""
    optimizer = optax.adam(1e-2)

    @eqx.filter_jit(donate="all-except-first")
    def step(net, state, images):
        loss, gradient = eqx.filter_value_and_grad(loss_of)(net, images)
        updates, state = optimizer.update(gradient, state)
        return eqx.apply_updates(net, updates), state, loss

    net = Net(jnp.array(KERNELS))
    state = optimizer.init(net)
    losses = []
    for _ in range(3):
        net, state, loss = step(net, state, jnp.array(IMAGES))
        losses.append(loss)
    return losses, net.kernels


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
def test_convolutional_net():
    reflect = mock.Mock(wraps=ours)  # counts the traces
    twin = mock.Mock(wraps=theirs)
    losses, kernels = trained(functools.partial(loss_of, reflect))
    twin_losses, twin_kernels = trained(functools.partial(loss_of, twin))
    assert losses[-1] < losses[0]
    assert reflect.call_count == twin.call_count
    assert kernels.dtype == twin_kernels.dtype
    # The layers compute in bfloat16.
    np.testing.assert_allclose(losses, twin_losses, 2e-2, 2e-2)
    np.testing.assert_allclose(kernels, twin_kernels, 2e-2, 2e-2)
