"""Every operator refuses what breaks its rules, outside of a program and inside.

The wrong calls are in tests/subjects/. The rules that all operators share are tested in
the files of `_arguments`, `_descriptor` and `_tensor`.
"""

import jax
import numpy as np
import pytest

from tests.checks import assert_refused, check
from tests.subjects import SUBJECTS

WRONG = [wrong for subject in SUBJECTS.values() for wrong in subject.errors]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: f"{one.operator}-{one.text}")
def test_wrong_calls(wrong):
    """The message is the same in a program, and shows no dimension of a batch."""
    call, arrays = wrong.call, wrong.arrays
    text, error = wrong.text, wrong.error
    message = assert_refused(wrong.operator, text, call, *arrays, error=error)
    mapped = jax.vmap(lambda _, *arrays: call(*arrays))
    batch = np.arange(2, dtype=np.int32), *(np.stack([x] * 2) for x in arrays)
    for run, given in (
        (jax.jit(call), arrays),
        (mapped, batch),
        (jax.jit(mapped), batch),
    ):
        with pytest.raises(error) as raised:
            run(*given)
        assert str(raised.value) == message


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_right_call_after_an_error(name):
    """An error leaves nothing in a cache."""
    subject = SUBJECTS[name]
    for wrong in subject.errors[:3]:
        with pytest.raises(wrong.error):
            wrong.call(*wrong.arrays)
    check(subject.samples[0])
