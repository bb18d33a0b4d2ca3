"""A typical typed program around the operators: type checkers must accept all of it.

`mypy --strict tests/client.py` and `pyright tests/client.py` check it. Each
`assert_type` has the type of a result, which is never Any.
"""

from typing import assert_type

import jax
import jax.numpy as jnp
import numpy as np

import dmljax as dml
import dmljax.numpy as dnp
import dmljax.onnx as dox
from dmljax import DataType, Implementation, PaddingMode, TensorDesc


def padded(x: jax.Array) -> jax.Array:
    """Sizes as tuples, lists, ranges and NumPy arrays; modes, names and numbers."""
    before: list[int] = [1] * x.ndim
    y = dml.padding(x, before, (0,) * x.ndim, mode=PaddingMode("WRAP"))
    y = dml.padding(y, start_padding=before, end_padding=before, mode="reflect")
    return dml.padding(y, np.array(before), range(x.ndim), mode=1, value=np.float32(2))


def masked(condition: np.ndarray, x: jax.Array, scale: float) -> jax.Array:
    """Arrays of NumPy, and scalars of Python, NumPy and JAX."""
    y = dml.element_wise_if(condition, x, 0.0)
    y = dml.element_wise_if(condition, np.float32(1), jnp.asarray(scale, y.dtype))
    y = dml.diagonal_matrix1(y, value=0, fill_begin=None, fill_end=jnp.int32(1))
    return y + dml.diagonal_matrix1(shape=[*y.shape], dtype=jnp.uint8)


def routed(
    indices: jax.Array, experts: int, implementation: Implementation = None
) -> dml.NonzeroCoordinates:
    """One-hot rows, and the coordinates of their ones."""
    lit = dml.one_hot(indices[..., None], np.array([0, 1], np.float32), size=experts)
    found = dml.nonzero_coordinates(lit, size=9, implementation=implementation)
    count, _ = found
    assert_type(count, jax.Array)
    assert_type(found.coordinates, jax.Array)
    assert_type(found.put(lit, found.take(lit, fill_value=0)), jax.Array)
    return found


def entered(x: jax.Array) -> jax.Array:
    """The names of jax.numpy and of ONNX."""
    rows, columns = dnp.nonzero(x, size=2)
    y = dnp.pad(x, ((1, 0), (0, 1)), mode="edge")[rows, columns]
    eye = dox.eye_like(dox.pad(y, [1, 1], axes=jnp.array([0])), dtype=1)
    return dox.where(dox.trilu(eye) > 0, eye, 0.0)


def described(x: jax.Array) -> dml.Operator[jax.Array]:
    """A descriptor, and its operator at a level given as a number."""
    item = TensorDesc(DataType.FLOAT32, (2, 3), (4, 1))
    output = TensorDesc(DataType.FLOAT32, (4, 5))
    desc = dml.PaddingDesc(item, output, PaddingMode.EDGE, 0.0, 2, (1, 0), (1, 2))
    operator = dml.create_operator(desc, feature_level=0x6400)
    assert_type(operator, dml.Operator[jax.Array])
    assert_type(operator(np.ones(8, np.float32)), jax.Array)
    assert_type(operator.feature_level, dml.FeatureLevel)
    assert_type(desc.padding_mode, PaddingMode)
    assert_type(item.sizes, tuple[int, ...])
    search = dml.create_operator(dml.NonzeroCoordinatesDesc(item, item, item))
    assert_type(search(x), dml.NonzeroCoordinates)
    return operator


def any_of(desc: dml.OperatorDesc) -> str:
    """A function of any descriptor."""
    operator = dml.create_operator(desc)
    return f"{operator.desc.operator} at {operator.feature_level.label}"
