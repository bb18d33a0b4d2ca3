"""A call of each function of dmljax.numpy and dmljax.onnx, and of each method."""

import jax
import jax.numpy as jnp
import numpy as np

import dmljax.numpy as dnp
import dmljax.onnx as dox
from dmljax import nonzero_coordinates

X = np.arange(12, dtype=np.float32).reshape(3, 4) % 5 - 1
VALUE = np.float32(7)
FILL = {"size": 9, "fill_value": np.int32(7)}
FOUND = nonzero_coordinates(X, size=4)
# The function, its arguments by position, and the others.
DOORS = [
    (dnp.pad, (X, 1), {"constant_values": VALUE}),
    (dnp.argwhere, (X,), FILL),
    (dnp.nonzero, (X,), FILL | {"fill_value": (0, np.int32(7))}),
    (dnp.where, (X,), FILL),
    (dnp.flatnonzero, (X,), FILL),
    (dnp.extract, (X, X), FILL),
    (dnp.compress, (X[0], X), FILL),
    (dnp.tril, (X,), {}),
    (dnp.triu, (X, jnp.int32(1)), {}),
    (dnp.one_hot, (X, 3), {}),
    (dox.pad, (X, [1] * 4, VALUE), {}),
    (dox.one_hot, (X, 3, X[0, :2]), {}),
    (dox.where, (X > 0, X, X), {}),
    (dox.nonzero, (X,), FILL),
    (dox.trilu, (X, jnp.int32(-1)), {}),
    (dox.eye_like, (X,), {}),
    (dox.compress, (X, X[0]), {"size": 9, "fill_value": VALUE}),
    (FOUND.take, (X,), {"fill_value": VALUE}),
    (FOUND.put, (X, X[0]), {}),
    (FOUND.add, (X, X[1]), {}),
]


def name_of(function):
    """The name in messages, such as "dmljax.numpy.pad" or "NonzeroCoordinates.add"."""
    path = f"{function.__module__}.{function.__qualname__}"
    return path.removeprefix("dmljax._nonzero_coordinates_result.")


def of_arrays(door):
    """The function of the arrays alone, and these arrays."""
    function, *given = door

    def is_array(leaf):
        return isinstance(leaf, np.ndarray)

    def call(*arrays):
        left = iter(arrays)
        arguments, options = jax.tree.map(
            lambda leaf: next(left) if is_array(leaf) else leaf, given
        )
        return function(*arguments, **options)

    return call, list(filter(is_array, jax.tree.leaves(given)))
