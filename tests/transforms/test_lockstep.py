"""Faults in the code of a thread, as the simulator shows them.

tests/pallas/gpu/test_threads.py has more tests of the simulator.
"""

import jax
import numpy as np
import pytest

from tests.pallas import lockstep
from tests.pallas.gpu.test_launch import THREAD, simulated

UNWRITTEN = lockstep.UNWRITTEN


def test_elements_that_no_thread_stores_are_seen():
    def kernel(t, target, i):
        with t.when(t.thread < 60), t.when(t.thread >= 3):
            target.store(i, t.thread)

    inside = (THREAD < 60) & (THREAD >= 3)
    expected = np.where(inside, THREAD, UNWRITTEN)
    np.testing.assert_array_equal(simulated(kernel), expected)


# LOOPS


def test_a_loop_without_an_end_is_an_error():
    def kernel(t, target, i):
        t.repeat(lambda k: k >= 0, lambda k: [k + 1], i)

    with pytest.raises(jax.errors.JaxRuntimeError, match="a loop does not end"):
        simulated(kernel)


# MEMORY


def test_an_address_between_two_words_is_not_loaded():
    def kernel(t, target, i):
        target.store(i, t.constant(7))
        with t.when(t.thread % 2 == 0):
            target.store(i, target.words(i + 1, 2)[0])

    assert set(simulated(kernel).ravel().tolist()) == {7, UNWRITTEN}


@pytest.mark.parametrize(
    ("offset", "words", "spoiled"),
    [(0, 2, False), (1, 2, True), (255, 1, False), (256, 1, True)],
)
def test_a_store_between_words_or_outside_of_a_line_spoils_it(offset, words, spoiled):
    """By an active thread; the others store nothing."""

    def kernel(t, target, i):
        target.store(i, t.constant(7))
        with t.when(i == 0):
            target.store(i + offset, *[t.constant(7)] * words)

    assert set(simulated(kernel).ravel().tolist()) == {UNWRITTEN if spoiled else 7}


def test_elements_outside_of_a_line_are_not_read():
    def kernel(t, target, i):
        target.store(i, t.thread)
        target.store(i, target.load(i + 100))

    found = simulated(kernel).ravel()
    assert (found[-100:] == UNWRITTEN).all()
    np.testing.assert_array_equal(found[:-100], THREAD.ravel()[100:])


# POSTS


def test_a_number_that_nobody_posts_is_seen():
    def kernel(t, target, i, posts):
        target.store(i, posts.wait(2))

    assert (simulated(kernel, posts=3) == UNWRITTEN).all()
