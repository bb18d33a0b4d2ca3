"""Every operator refuses wrong calls, outside of a program and inside.

The wrong calls are in tests/subjects/. The files of tests for `_arguments`,
`_directml.descriptor` and `_directml.tensor` have the rules that all operators share.
"""

import inspect

import jax
import numpy as np
import pytest

from tests.checks import assert_wrong
from tests.subjects import SUBJECTS

WRONG = [wrong for subject in SUBJECTS.values() for wrong in subject.errors]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: f"{one.operator}-{one.text}")
def test_wrong_calls(wrong):
    assert_wrong(wrong)


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
def test_the_remedy_for_a_traced_argument(subject):
    """All arguments but the arrays are static, by name. A tuple has a hash."""
    function = subject.operator.function
    arrays = [given for given in subject.arguments if isinstance(given, np.ndarray)]
    names = list(inspect.signature(function).parameters)[len(arrays) :]
    static = dict(zip(names, subject.arguments[len(arrays) :], strict=True))
    found = jax.jit(function, static_argnames=tuple(static))(*arrays, **static)
    jax.tree.map(np.testing.assert_array_equal, found, function(*arrays, **static))
