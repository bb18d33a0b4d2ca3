"""Every function inside of jax.ensure_compile_time_eval, where JAX computes at once.

There JAX evaluates each operation of known arrays, also while it traces or lowers a
program: `lax.full` gives an array, and `lax.fori_loop` counts known rounds in int32.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dmljax.numpy as dnp
import dmljax.onnx as dox
from tests.checks import slow
from tests.subjects import SAMPLES, SUBJECTS
from tests.transforms import dense

pytestmark = pytest.mark.usefixtures("simulator")

X = np.arange(12, dtype=np.float32).reshape(3, 4) % 5 - 1
ROWS = np.array([3, 0, 5])
LABELS = np.int32([[2, -1], [-3, 9]])
ON_OFF = {"fill_value": -7, "size": 5}


def routed(x):
    """The rows of a mask, read, written and added."""
    kept = SUBJECTS["nonzero_coordinates"].operator.function(x[:, 0], size=2)
    rows = kept.take(x)
    where = kept.take(x[:, 1] > 0)
    written = kept.put(x, 2 * rows, where=where), kept.add(x, rows)
    assert "overflow=" in repr(kept)
    return rows, written, kept.dropped, kept.valid, kept.overflow


# Each function of a matrix of floats.
DOORS = {
    "take, put, add": routed,
    "dnp.argwhere": lambda x: dnp.argwhere(x, **ON_OFF),
    "dnp.compress": lambda x: dnp.compress(ROWS, x, 0, size=2),
    "dnp.extract": lambda x: dnp.extract(x > 1, x, **ON_OFF),
    "dnp.flatnonzero": lambda x: dnp.flatnonzero(x, **ON_OFF),
    "dnp.nonzero": lambda x: dnp.nonzero(x, **ON_OFF),
    "dnp.one_hot": lambda x: dnp.one_hot(x, 3),
    "dnp.pad": lambda x: [dnp.pad(x, ((4, 1), (0, 2)), mode) for mode in dnp._MODES],
    "dnp.tril": lambda x: dnp.tril(x, 1),
    "dnp.triu": lambda x: dnp.triu(x, jnp.int32(1)),
    "dnp.where": lambda x: (dnp.where(x, **ON_OFF), dnp.where(x > 1, x, 1.0)),
    "dox.compress": lambda x: dox.compress(x, x[:, 1] > 0, axis=0, size=2),
    "dox.eye_like": lambda x: dox.eye_like(x, k=1),
    "dox.nonzero": lambda x: dox.nonzero(x, **ON_OFF),
    "dox.one_hot": lambda x: dox.one_hot(LABELS, 3, x[0, :2]),
    "dox.pad": lambda x: dox.pad(x, [2, 1], x[0, 0], [0]),
    "dox.trilu": lambda x: dox.trilu(x, jnp.int32(-1)),
    "dox.where": lambda x: dox.where(x > 1, x, 1.0),
}


def squares(function):
    """The gradient of the sum of the squares of all floats."""

    def energy(x):
        leaves = jax.tree.leaves(function(x))
        return sum(jnp.sum(y**2) for y in leaves if y.dtype == np.float32) + 0 * x.sum()

    return jax.grad(energy)


def inside(program, *arrays):
    with jax.ensure_compile_time_eval():
        return program(*arrays)


# One door for each path through the package; the session `slow` runs all.
PATHS = (
    "take, put, add",
    "dnp.extract",
    "dnp.one_hot",
    "dnp.pad",
    "dnp.tril",
    "dox.where",
)


@pytest.mark.parametrize("name", [x if x in PATHS else slow(x) for x in DOORS])
def test_doors(name):
    """Outside of a program, in one, in a batch, and with a derivative."""
    door = DOORS[name]

    def ways(x):
        return door(x), jax.vmap(door)(jnp.stack([x, -x])), squares(door)(x)

    expected = jax.jit(ways)(X)
    dense.assert_equal(inside(door, jnp.asarray(X)), expected[0], name)
    dense.assert_equal(inside(squares(door), jnp.asarray(X)), expected[2], name)
    dense.assert_equal(inside(jax.jit(lambda x: ways(x)), X), expected, name)
    # The arrays of this program are known.
    dense.assert_equal(inside(jax.jit(lambda: ways(jnp.asarray(X)))), expected, name)


def test_the_table_has_every_door():
    names = {f"dnp.{name}" for name in dir(dnp)} | {f"dox.{name}" for name in dir(dox)}
    assert names <= {*DOORS}


def test_a_search_without_a_size():
    """Also with more rows than a CPU turns into coordinates at once."""
    for x in (jnp.asarray(X), X, jnp.eye(20, 30)):
        dense.assert_equal(inside(dnp.argwhere, x), np.argwhere(x))
        dense.assert_equal(inside(dnp.extract, x > 0, x), np.asarray(x)[x > 0])


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_operators(sample):
    arrays = sample.arrays()
    batch = [np.stack([x, x]) for x in arrays]
    expected = sample.expected(*arrays)
    pair = dense.stacked([expected, expected])
    dense.assert_equal(inside(sample.run, *arrays), expected)
    dense.assert_equal(inside(jax.jit(lambda: sample.run(*arrays))), expected)
    dense.assert_equal(inside(jax.vmap(sample.run), *batch), pair)
    for run in (dense.with_gradient, jax.jit(dense.with_gradient, static_argnums=0)):
        found = inside(run, sample, *batch)
        dense.assert_equal(found, dense.expected_with_gradient(sample, *batch))
