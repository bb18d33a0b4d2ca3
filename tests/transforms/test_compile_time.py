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
from tests.doors import DOORS, X, name_of, of_arrays
from tests.subjects import FIRST, FORMS, SUBJECTS
from tests.transforms import dense

pytestmark = pytest.mark.usefixtures("simulator")


def routed(x):
    """The rows of a mask, read, written and added."""
    kept = SUBJECTS["nonzero_coordinates"].operator.function(x[:, 0], size=2)
    rows = kept.take(x)
    where = kept.take(x[:, 1] > 0)
    written = kept.put(x, 2 * rows, where=where), kept.add(x, rows)
    assert "count=" in repr(kept)
    return rows, written, kept.dropped, kept.valid, kept.overflow


def squares(function):
    """The gradients of the sum of the squares of all floats."""

    def energy(*arrays):
        leaves = jax.tree.leaves(function(*arrays))
        floats = [y for y in leaves if y.dtype == np.float32]
        return sum(jnp.sum(y**2) for y in floats) + 0 * arrays[-1].sum()

    return lambda *arrays: jax.grad(
        energy, [i for i, x in enumerate(arrays) if x.dtype == np.float32]
    )(*arrays)


def inside(program, *arrays):
    with jax.ensure_compile_time_eval():
        return program(*arrays)


# One door for each path through the package; the session `slow` runs all.
PATHS = routed, dnp.one_hot, dnp.pad, dnp.tril, dox.where
CALLS = [
    door if door[0] in PATHS else slow(door) for door in [*DOORS, (routed, (X,), {})]
]


@pytest.mark.parametrize("call", CALLS, ids=lambda door: name_of(door[0]))
def test_doors(call):
    """Outside of a program, in one, in a batch, and with a derivative."""
    door, arrays = of_arrays(call)
    batch = [np.stack([x, np.flip(x)]) for x in arrays]

    def ways(*arrays):
        return door(*arrays), jax.vmap(door)(*batch), squares(door)(*arrays)

    expected = jax.jit(ways)(*arrays)
    known = jax.device_put(arrays)
    dense.assert_equal(inside(door, *known), expected[0])
    dense.assert_equal(inside(squares(door), *known), expected[2])
    dense.assert_equal(inside(jax.jit(lambda *xs: ways(*xs)), *arrays), expected)
    # The arrays of this program are known.
    dense.assert_equal(inside(jax.jit(lambda: ways(*arrays))), expected)


def test_the_table_has_every_door():
    """The methods of a result are three more."""
    names = {getattr(module, name) for module in (dnp, dox) for name in dir(module)}
    assert names <= {function for function, *_ in DOORS}


def test_a_search_without_a_size():
    """Also with more rows than a CPU turns into coordinates at once."""
    x = np.eye(20, 30)
    dense.assert_equal(inside(dnp.argwhere, jax.device_put(x)), np.argwhere(x))
    dense.assert_equal(inside(dnp.extract, *jax.device_put((x, x))), x[x > 0])


@pytest.mark.parametrize("sample", [*FIRST, *FORMS["padding"][1:]], ids=str)
def test_operators(sample):
    arrays = sample.arrays()
    for run in sample.run, jax.jit(lambda *_: sample.run(*arrays)):
        dense.assert_equal(inside(run, *arrays), sample.expected(*arrays))
    batch = [np.stack([x, x]) for x in arrays]
    expected = dense.expected_with_gradient(sample, *batch)
    for run in dense.with_gradient, jax.jit(dense.with_gradient, static_argnums=0):
        dense.assert_equal(inside(run, sample, *batch), expected)
