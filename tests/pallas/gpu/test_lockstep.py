"""The arrays on which a CPU runs code for one thread."""

import functools

import jax
import numpy as np
import pytest

from dmljax.pallas.gpu import _lockstep

SHAPE = (2, 64)
THREAD = np.broadcast_to(np.arange(64), SHAPE)
UNWRITTEN = _lockstep.UNWRITTEN


def stored(kernel, posts=(), dtype=np.uint32):
    """Returns what the threads of two programs store in a line of 128 elements."""

    def run(t, target, *posted):
        kernel(t, target.at(0), t.program * 64 + t.thread, *posted)

    outputs = [jax.ShapeDtypeStruct((1, 128), dtype)]
    (line,) = _lockstep.run(run, (), 2, 64, outputs, posts, ())
    return np.asarray(line).reshape(SHAPE)


def test_what_no_thread_stores_is_seen():
    def kernel(t, target, i):
        with t.when(t.thread < 60), t.when(t.thread >= 3):
            target.store(i, t.thread)

    inside = (THREAD < 60) & (THREAD >= 3)
    expected = np.where(inside, THREAD, UNWRITTEN)
    np.testing.assert_array_equal(stored(kernel), expected)


# LOOPS


def test_each_thread_has_rounds_of_its_own():
    """A loop carries and stores, in the threads of a condition alone."""

    def kernel(t, target, i):
        def step(k, total):
            target.store(i, k)
            return [total + k]

        target.store(i, t.constant(99))
        (total,) = t.loop(t.thread % 4, step, t.constant(0))
        # Threads that have the most rounds would not show that a loop goes on.
        with t.when(t.thread % 8 == 2):
            t.loop(1, lambda k: [target.store(i, total + k + 10)][:0])

    last = np.where(THREAD % 4, THREAD % 4 - 1, 99)
    expected = np.where(THREAD % 8 == 2, 0 + 1 + 10, last)
    np.testing.assert_array_equal(stored(kernel), expected)


def test_each_thread_repeats_while_its_own_condition_holds():
    def kernel(t, target, i):
        def halve(x, rounds):
            target.store(i, x)
            return [x // 2, rounds + 1]

        _, rounds = t.repeat(lambda x, _: x > 3, halve, t.thread, t.constant(0))
        with t.when(t.thread % 2 == 0):
            target.store(i, rounds)

    rounds = np.maximum(np.frexp(THREAD)[1] - 2, 0)
    last = THREAD // 2 ** np.maximum(rounds - 1, 0)  # before it was halved once more
    odd = np.where(rounds, last, UNWRITTEN)
    expected = np.where(THREAD % 2 == 0, rounds, odd)
    np.testing.assert_array_equal(stored(kernel), expected)


def test_no_array_of_a_loop_is_left_behind():
    """JAX has a setting that checks this, which people use for their own programs."""

    def kernel(t, target, i):
        t.loop(2, lambda k: [target.store(i, k)][:0])

    with jax.checking_leaks():
        np.testing.assert_array_equal(stored(kernel), np.ones(SHAPE))


# MEMORY


def test_a_part_of_a_line_begins_at_its_offset():
    def kernel(t, target, i):
        part = target.part(2).part(i)
        with t.when(t.thread % 4 == 0):
            part.store(1, t.thread)
            target.store(i, part.load(1))

    found = stored(kernel).ravel()
    np.testing.assert_array_equal(found[::4], THREAD.ravel()[::4])
    np.testing.assert_array_equal(found[3::4], THREAD.ravel()[::4])
    assert (found[1::4] == UNWRITTEN).all()


def test_elements_are_stored_and_loaded_as_words():
    """The first of a word lies in its lowest bits."""

    def kernel(t, target, i):
        with t.when(t.thread % 8 == 0):
            target.store(i, t.thread, t.constant(0x04030201), elements=8)
            words = target.words(i, 8)
            target.store(i, words[1], words[0], elements=8)

    found = stored(kernel, dtype=np.uint8).reshape(-1, 8)
    np.testing.assert_array_equal(found[:, :4], np.tile([1, 2, 3, 4], (16, 1)))
    np.testing.assert_array_equal(found[:, 4], THREAD.ravel()[::8])


def test_an_address_between_two_words_is_not_loaded():
    def kernel(t, target, i):
        target.store(i, t.constant(7))
        with t.when(t.thread % 2 == 0):
            target.store(i, target.words(i + 1, 2)[0])

    assert set(stored(kernel).ravel().tolist()) == {7, UNWRITTEN}


@pytest.mark.parametrize("offset", [0, 1])
def test_a_store_between_two_words_spoils_a_line(offset):
    def kernel(t, target, i):
        target.store(i, t.constant(7))
        with t.when(t.thread == 0):
            target.store(i + offset, t.constant(7), t.constant(7))

    assert set(stored(kernel).ravel().tolist()) == {UNWRITTEN if offset else 7}


def test_what_is_outside_of_a_line_is_not_read():
    def kernel(t, target, i):
        target.store(i, t.thread)
        target.store(i, target.load(i + 100))

    found = stored(kernel).ravel()
    assert (found[28:] == UNWRITTEN).all()
    np.testing.assert_array_equal(found[:28], THREAD.ravel()[100:])


def test_a_store_outside_of_a_line_spoils_it():
    """By an active thread; the others store nothing."""

    def kernel(t, target, i, limit):
        with t.when(i < limit):
            target.store(i + 28, t.thread)

    for limit, spoiled in ((100, False), (101, True)):
        found = stored(functools.partial(kernel, limit=limit))
        assert (found == UNWRITTEN).all() == spoiled


# POSTS


def test_what_one_program_posts_another_one_waits_for():
    def kernel(t, target, i, posts):
        with t.when(t.thread == 0):
            posts.at(0).post(t.program, t.program + 7)
        target.store(i, posts.at(0).wait(1 - t.program))

    found = stored(kernel, [(1, 3)])
    np.testing.assert_array_equal(found, np.broadcast_to([[8], [7]], SHAPE))


def test_a_number_that_nobody_posts_is_seen():
    def kernel(t, target, i, posts):
        target.store(i, posts.at(0).wait(2))

    assert (stored(kernel, [(1, 3)]) == UNWRITTEN).all()


def test_a_program_looks_whether_a_number_is_posted():
    def kernel(t, target, i, posts):
        before = posts.at(0).peek(2)
        with t.when((t.program == 1) & (t.thread == 0)):
            posts.at(0).post(2, t.constant(5))
        target.store(i, before * 100 + posts.at(0).peek(2))

    assert (stored(kernel, [(1, 3)]) == 6).all()


@pytest.mark.parametrize(("lines", "claims"), [(1, [0, 1]), (2, [0, 0])])
def test_programs_that_claim_get_different_numbers(lines, claims):
    """Those of one line. One thread claims, twice."""

    def kernel(t, target, i, posts):
        line = posts.at(0 if lines == 1 else t.program)
        for again in range(2):
            with t.when(t.thread == 3 + again):
                target.store(i, line.claim(1))

    found = stored(kernel, [(lines, 3)])[:, 3:5]
    step = 2 if lines == 1 else 1
    np.testing.assert_array_equal(found, [[n, n + step] for n in claims])


# A WARP


def test_threads_exchange_numbers_within_their_warp():
    def exchanged(operation):
        return stored(lambda t, out, i: out.store(i, operation(t, t.thread)))

    warp, lane = THREAD // 32 * 32, THREAD % 32
    for found, expected in (
        (exchanged(lambda t, x: t.shuffle(x, 5)), warp + 5),
        (exchanged(lambda t, x: t.shuffle_xor(x, 8)), THREAD ^ 8),
        (exchanged(lambda t, x: t.warp_sum(x % 32)), 496),
        (exchanged(lambda t, x: t.warp_scan(x % 32)), (lane + 1) * lane // 2),
    ):
        np.testing.assert_array_equal(found, np.broadcast_to(expected, SHAPE))
