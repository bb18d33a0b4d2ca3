"""ELEMENT_WISE_IF: the types of scalars.

Its wrong calls and its edge cases are in tests/subjects/element_wise_if.py.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from dmljax import element_wise_if
from tests.checks import assert_refused, assert_same

CONDITION = np.array([[1, 0, 2], [0, 1, 0]], np.uint8)
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_types_of_scalars():
    """Python's numbers take the other's type. So do weak arrays beside typed arrays."""
    weak = jnp.full((2, 3), 1.5)
    assert weak.weak_type
    for a, b, dtype in (
        (np.float16(1), 0.0, "float16"),
        (2, jnp.int8(1), "int8"),
        (jnp.float32(1), np.float32(2), "float32"),
        (weak, 0, "float32"),
        (weak, np.float16(1), "float16"),
        (jnp.bfloat16(1), weak, "bfloat16"),
    ):
        expected = np.where(CONDITION != 0, a, b).astype(dtype)
        assert_same(element_wise_if(CONDITION, a, b), expected)
        assert_same(jax.jit(element_wise_if)(CONDITION, a, b), expected)
    text = "b (BTensor) has {1}"
    assert_refused("ELEMENT_WISE_IF", text, element_wise_if, CONDITION, X, X[0, :1])


def test_a_traced_truth_value_gives_way_to_a_traced_number():
    for a, b in ((True, 2), (2, True)):
        found = jax.jit(element_wise_if)(CONDITION, a, b)
        assert_same(found, np.where(CONDITION != 0, a, b).astype(np.int32))


def test_the_derivative_in_a_scalar():
    weights = 2**X
    gradient = jax.grad(lambda b: (element_wise_if(CONDITION, X, b) * weights).sum())
    outside = weights[CONDITION == 0].sum()
    assert gradient(1.0) == gradient(np.float32(1)) == outside
    assert_same(jax.jit(jax.vmap(gradient))(jnp.ones(2)), np.full(2, outside))
    select = functools.partial(element_wise_if, CONDITION, np.zeros((2, 3), np.int8))
    cotangent = np.full((2, 3), 100, np.int8)
    # The sum of three elements wraps around.
    assert_same(jax.linear_transpose(select, np.int8(1))(cotangent), [np.int8(44)])


# Whether the second type holds all values of the first.
HOLDS = {
    ("bool", "float32"): True,
    ("uint8", "int16"): True,
    ("bfloat16", "float32"): True,
    # Fault: `nmant` for `nmant + 1`: the leading bit of a float is not stored.
    ("int8", "bfloat16"): True,
    ("uint8", "int8"): False,
    ("int32", "float32"): False,
    ("float16", "bfloat16"): False,
}


def test_a_message_about_types_advises_no_conversion_that_loses_values():
    for pair, holds in HOLDS.items():
        arrays = [np.ones((2, 3), dtype) for dtype in pair]
        for name, step in ("a", 1), ("b", -1):
            advice = f"Write {name}.astype('{pair[1]}')" if holds else "choose a type"
            text, given = f"data types...{advice}", arrays[::step]
            assert_refused("ELEMENT_WISE_IF", text, element_wise_if, CONDITION, *given)
