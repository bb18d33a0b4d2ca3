"""Faults in the code of a thread, as the simulator shows them.

tests/pallas/gpu/test_threads.py has more tests of the simulator.
"""

import pytest

from tests.pallas import lockstep
from tests.pallas.gpu.test_launch import simulated

UNWRITTEN = lockstep.UNWRITTEN


@pytest.mark.parametrize(
    ("offset", "words", "wrong"),
    [(0, 2, False), (1, 2, True), (255, 1, False), (256, 1, True)],
)
def test_an_access_between_words_or_outside_of_a_line_is_seen(offset, words, wrong):
    """A load finds nothing, and a store by an active thread spoils the line."""

    def load(t, target, i):
        target.store(i, t.constant(7))
        target.store(i, target.words(t.constant(offset), words)[0])

    def store(t, target, i):
        target.store(i, t.constant(7))
        with t.when(i == 0):
            target.store(i + offset, *[t.constant(7)] * words)

    for kernel in load, store:
        found = set(simulated(kernel).ravel().tolist())
        assert found == {UNWRITTEN if wrong else 7}


def test_a_number_that_nobody_posts_is_seen():
    def kernel(t, target, i, posts):
        target.store(i, posts.wait(2))

    assert (simulated(kernel, posts=3) == UNWRITTEN).all()
