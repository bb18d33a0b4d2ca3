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


def selected(condition: np.ndarray, x: jax.Array, scale: float) -> jax.Array:
    """Arrays of NumPy, and scalars of Python, NumPy and JAX."""
    y = dml.element_wise_if(condition, x, 0.0)
    y = dml.element_wise_if(condition, np.float32(1), y)
    return dml.element_wise_if(condition, y, jnp.asarray(scale, y.dtype))


def masked(scores: jax.Array) -> jax.Array:
    """A causal mask, in place and made of nothing."""
    length = scores.shape[-1]
    mask = dml.diagonal_matrix1(
        shape=[length, length], dtype=jnp.uint8, fill_begin=0, fill_end=None
    )
    kept = dml.element_wise_if(mask, scores, jnp.finfo(scores.dtype).min)
    return dml.diagonal_matrix1(kept, value=0, fill_begin=None, fill_end=1)


def routed(indices: jax.Array, experts: int) -> tuple[jax.Array, jax.Array]:
    """One-hot rows, and the coordinates of their ones."""
    lit = dml.one_hot(indices[..., None], np.array([0, 1], np.float32), size=experts)
    found = dml.nonzero_coordinates(lit, size=indices.size)
    assert_type(found, dml.NonzeroCoordinates)
    assert_type(found.count, jax.Array)
    count, coordinates = found
    assert_type(coordinates, jax.Array)
    assert_type(found.overflow, jax.Array)
    assert_type(found.put(lit, found.take(lit, fill_value=0)), jax.Array)
    return count, coordinates


def entered(x: jax.Array) -> jax.Array:
    """The names of jax.numpy and of ONNX."""
    rows, columns = dnp.nonzero(x, size=2)
    y = dnp.pad(x, ((1, 0), (0, 1)), mode="edge")[rows, columns]
    one_hot = dox.one_hot(dnp.argwhere(y)[:, 0], 3, np.array([0, 1], np.float32))
    eye = dox.eye_like(dox.pad(one_hot, [1, 1], axes=jnp.array([0])), dtype=1)
    return dox.where(dox.trilu(eye) > 0, eye, 0.0)


def described() -> dml.Operator[jax.Array]:
    """A descriptor, and its operator at a level given as a number."""
    item = TensorDesc(DataType.FLOAT32, (2, 3), (4, 1))
    output = TensorDesc(DataType.FLOAT32, (4, 5))
    reflection = PaddingMode.REFLECTION
    desc = dml.PaddingDesc(item, output, reflection, 0.0, 2, (1, 0), (1, 2))
    operator = dml.create_operator(desc, feature_level=0x6400)
    assert_type(operator, dml.Operator[jax.Array])
    assert_type(operator(np.ones(8, np.float32)), jax.Array)
    assert_type(operator.feature_level, dml.FeatureLevel)
    assert_type(desc.padding_mode, PaddingMode)
    assert_type(item.sizes, tuple[int, ...])
    return operator


def located(
    x: jax.Array, implementation: Implementation = None
) -> dml.NonzeroCoordinates:
    """A function and an operator with two outputs."""
    dml.nonzero_coordinates(x, size=4, implementation=implementation)
    item = TensorDesc(DataType.FLOAT32, x.shape)
    count = TensorDesc(DataType.UINT32, (1,))
    rows = TensorDesc(DataType.UINT32, (x.size, x.ndim))
    operator = dml.create_operator(dml.NonzeroCoordinatesDesc(item, count, rows))
    assert_type(operator(x), dml.NonzeroCoordinates)
    return operator(x)


def any_of(desc: dml.OperatorDesc) -> str:
    """A function of any descriptor."""
    operator = dml.create_operator(desc)
    return f"{operator.desc.operator} at {operator.feature_level.label}"
