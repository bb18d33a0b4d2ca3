"""Programs of users, written with flax, equinox and optax, beside twins in jax.numpy.

Each twin is the same program with jax.numpy's functions. Values, gradients and the
number of traces are the same. `pip install -e ".[test,clients]"` installs what they
need; without it, these tests are skipped.
"""

import functools

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
DML = "dmljax"
JNP = "jax.numpy"


def assert_close(one, other, tolerance=1e-5):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        a = np.asarray(a, np.float32)
        b = np.asarray(b, np.float32)
        np.testing.assert_allclose(a, b, tolerance, tolerance)


def counted(function):
    """The function, and a list that grows by each trace of it."""
    traces = []

    @functools.wraps(function)
    def traced(*arguments):
        traces.append(None)
        return function(*arguments)

    return traced, traces


def assert_like_its_twin(program, *calls):
    """`program(library, *arguments)` gives the same, and is traced once for all."""
    outputs = []
    for library in (DML, JNP):
        function, traces = counted(functools.partial(program, library))
        jitted = jax.jit(function)
        outputs.append([jitted(*arguments) for arguments in calls])
        assert len(traces) == 1
    assert_close(*outputs)


# A CONVOLUTIONAL NET WITH REFLECTED BORDERS

IMAGES = np.random.default_rng(0).normal(size=(4, 6, 6, 2)).astype(np.float32)


def reflected(library, x):
    """(height, width, channels) with a border of 1."""
    if library == JNP:
        return jnp.pad(x, ((1, 1), (1, 1), (0, 0)), mode="reflect")
    return dmljax.padding(x, (1, 1, 0), (1, 1, 0), mode=PaddingMode.REFLECTION)


def convolved(library, kernel, x):
    """(batch, height, width, channels), of the same sizes."""
    x = jax.vmap(functools.partial(reflected, library))(x)
    options = {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}
    return lax.conv_general_dilated(x, kernel, (1, 1), "VALID", **options)


def through_layers(library, kernels, x):
    """Residual layers, scanned over and recomputed, in bfloat16."""

    @jax.checkpoint
    def layer(x, kernel):
        return x + jnp.tanh(convolved(library, kernel.astype(x.dtype), x)), None

    return lax.scan(layer, x.astype(jnp.bfloat16), kernels)[0]


def initial_kernels():
    return 0.1 * jax.random.normal(jax.random.key(0), (3, 3, 3, 2, 2))


def loss_of(library, kernels, images):
    restored = through_layers(library, kernels, images).astype(np.float32)
    return jnp.mean((restored - 2 * images) ** 2)


class EquinoxNet(eqx.Module):
    kernels: jax.Array
    library: str = eqx.field(static=True)

    def __call__(self, images):
        return loss_of(self.library, self.kernels, images)


def trained_by_equinox(library):
    """The losses and the kernels of some steps, with donated buffers."""
    optimizer = optax.adam(1e-2)

    def step(net, state, images):
        loss, gradient = eqx.filter_value_and_grad(lambda net: net(images))(net)
        updates, state = optimizer.update(gradient, state)
        return eqx.apply_updates(net, updates), state, loss

    step, traces = counted(step)
    step = eqx.filter_jit(step, donate="all-except-first")
    net = EquinoxNet(initial_kernels(), library)
    state = optimizer.init(eqx.filter(net, eqx.is_array))
    losses = []
    for _ in range(3):
        net, state, loss = step(net, state, jnp.array(IMAGES))
        losses.append(loss)
    return losses, net.kernels, len(traces)


class NnxNet(nnx.Module):
    def __init__(self, library):
        self.kernels = nnx.Param(initial_kernels())
        self.library = library

    def __call__(self, images):
        return loss_of(self.library, self.kernels[...], images)


def trained_by_nnx(library):
    net = NnxNet(library)
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
    losses, kernels, traces = train(DML)
    twin_losses, twin_kernels, twin_traces = train(JNP)
    assert losses[-1] < losses[0]
    assert traces == twin_traces
    assert_close(losses, twin_losses, 2e-2)  # bfloat16
    assert_close(kernels, twin_kernels, 2e-2)


# A MIXTURE OF EXPERTS

EXPERTS = 4
CAPACITY = 3


def chosen(library, indices):
    """(tokens, experts): 1 at each token's expert."""
    if library == JNP:
        return jax.nn.one_hot(indices, EXPERTS)
    values = jnp.array([0, 1], np.float32)
    return dmljax.one_hot(indices[:, None], values, size=EXPERTS)


def tokens_of(library, mine):
    """The first CAPACITY tokens of one expert, and whether there is each."""
    if library == JNP:
        rows = jnp.argwhere(mine, size=CAPACITY, fill_value=0)[:, 0]
        count = jnp.count_nonzero(mine)
    else:
        count, rows = dmljax.nonzero_coordinates(mine, size=CAPACITY)
        rows = rows[:, 0].astype(np.int32)
    return rows, jnp.arange(CAPACITY) < count.astype(np.int32)


def routed(library, router, weights, x):
    """(tokens, features): each token through its expert, if that has room."""
    gates = jax.nn.softmax(x @ router)
    expert = jnp.argmax(gates, 1).astype(np.int32)
    mask = chosen(library, expert)
    gate = jnp.sum(gates * mask, 1)
    rows, valid = jax.vmap(functools.partial(tokens_of, library), 1)(mask)
    taken = jnp.where(valid[..., None], x[rows], 0)
    made = jnp.tanh(jnp.einsum("ecf,efg->ecg", taken, weights))
    if library == JNP:
        made = jnp.where(valid[..., None], made, 0)
    else:
        condition = jnp.broadcast_to(valid[..., None], made.shape)
        made = dmljax.element_wise_if(condition, made, 0.0)
    return jnp.zeros_like(x).at[rows].add(made) * gate[:, None]


def test_mixture_of_experts():
    """Under jit, vmap and grad: the router gets its gradient through the gate."""
    keys = jax.random.split(jax.random.key(1), 3)
    router = jax.random.normal(keys[0], (5, EXPERTS))
    weights = jax.random.normal(keys[1], (EXPERTS, 5, 5))
    x = jax.random.normal(keys[2], (2, 8, 5))

    def program(library, router, weights):
        def energy(router, weights):
            one = functools.partial(routed, library, router, weights)
            made = jax.vmap(one)(x)
            return jnp.sum(made**2), made

        return jax.value_and_grad(energy, (0, 1), has_aux=True)(router, weights)

    assert_like_its_twin(program, (router, weights), (router, -weights))


# ATTENTION WITH A WINDOW OF EACH HEAD'S OWN

LENGTH = 7
WINDOWS = np.array([1, 3, LENGTH], np.int32)


def masked(library, window, scores):
    """Scores of one head: a query sees itself and the `window` - 1 keys before it."""
    low = jnp.finfo(scores.dtype).min
    if library == DML:
        # All but the diagonals in [1 - window, 1).
        return dmljax.diagonal_matrix1(
            scores, value=float(low), fill_begin=1, fill_end=1 - window
        )
    ones = jnp.ones((LENGTH, LENGTH), bool)
    rows, columns = jnp.indices((LENGTH, LENGTH))
    seen = jnp.tril(ones) & (columns > rows - window)
    return jnp.where(seen, scores, low)


def test_attention():
    """Other windows compile nothing anew."""
    keys = jax.random.split(jax.random.key(2), 3)
    arrays = [jax.random.normal(key, (3, LENGTH, 4)) for key in keys]

    def program(library, windows):
        def energy(q, k, v):
            scores = jnp.einsum("hqd,hkd->hqk", q, k)
            scores = jax.vmap(functools.partial(masked, library))(windows, scores)
            attended = jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores), v)
            return jnp.sum(attended**2)

        return jax.value_and_grad(energy, (0, 1, 2))(*arrays)

    assert_like_its_twin(program, (WINDOWS,), (WINDOWS[::-1],))
