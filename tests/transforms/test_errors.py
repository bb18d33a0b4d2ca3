"""Every operator refuses what breaks its rules, outside of a program and inside.

The wrong calls are in tests/subjects/. The rules that all operators share are tested in
the files of `_arguments`, `_descriptor` and `_tensor`.
"""

import jax
import numpy as np
import pytest

from dmljax import diagonal_matrix1, nonzero_coordinates, one_hot
from tests.checks import assert_wrong, check
from tests.subjects import SUBJECTS

WRONG = [wrong for subject in SUBJECTS.values() for wrong in subject.errors]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: f"{one.operator}-{one.text}")
def test_wrong_calls(wrong):
    assert_wrong(wrong)


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_right_call_after_an_error(name):
    """An error leaves nothing in a cache."""
    for wrong in SUBJECTS[name].errors[:3]:
        assert_wrong(wrong)
    check(SUBJECTS[name].samples[0])


X = np.ones((2, 3), np.float32)
# All that is static, by name; of PADDING see test_padding.py. A tuple has a hash.
STATIC_ARGUMENTS = [
    (diagonal_matrix1, (X,), {"fill_begin": 1, "fill_end": None, "shape": (2, 3)}),
    (diagonal_matrix1, (), {"shape": (2, 3), "dtype": "int8"}),
    (one_hot, (np.ones((2, 1), np.int8), X), {"size": 3, "axis": 1}),
    (nonzero_coordinates, (X,), {"size": 3, "fill": 9, "parts": 1, "columns": 2}),
]


@pytest.mark.parametrize(("function", "arrays", "static"), STATIC_ARGUMENTS)
def test_the_remedy_for_what_is_traced(function, arrays, static):
    jitted = jax.jit(function, static_argnames=tuple(static))
    found, wanted = jitted(*arrays, **static), function(*arrays, **static)
    jax.tree.map(np.testing.assert_array_equal, found, wanted)
