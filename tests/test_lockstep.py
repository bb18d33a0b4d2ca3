"""The arrays on which a CPU runs code for one thread."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dmljax.pallas.gpu import _lockstep

SHAPE = (2, 64)
THREAD = np.broadcast_to(np.arange(64), SHAPE)


def stored(kernel):
    """Returns what the threads of two programs store in a line of 128 zeros."""

    def run(t, target):
        kernel(t, target, t.program * 64 + t.thread)

    (line,) = _lockstep.run(
        lambda t, target: run(t, target.at(0)),
        *((), 2, 64, [jnp.zeros((1, 128), np.uint32)], (), ()),
    )
    return np.asarray(line).reshape(SHAPE)


def test_what_no_thread_stores_is_seen():
    def kernel(t, target, place):
        with t.when(t.thread < 60), t.when(t.thread >= 3):
            target.store(place, t.thread)

    inside = (THREAD < 60) & (THREAD >= 3)
    expected = np.where(inside, THREAD, _lockstep.UNWRITTEN)
    np.testing.assert_array_equal(stored(kernel), expected)


def test_each_thread_has_rounds_of_its_own():
    """A loop carries and stores, in the threads of a condition alone."""

    def kernel(t, target, place):
        def step(i, total):
            target.store(place, i)
            return [total + i]

        target.store(place, t.constant(99))
        (total,) = t.loop(t.thread % 4, step, t.constant(0))
        # Threads that have the most rounds would not show that a loop goes on.
        with t.when(t.thread % 8 == 2):
            t.loop(1, lambda i: [target.store(place, total + i + 10)][:0])

    last = np.where(THREAD % 4, THREAD % 4 - 1, 99)
    expected = np.where(THREAD % 8 == 2, 0 + 1 + 10, last)
    np.testing.assert_array_equal(stored(kernel), expected)


def test_each_thread_repeats_while_its_own_condition_holds():
    def kernel(t, target, place):
        def halve(x, rounds):
            target.store(place, x)
            return [x // 2, rounds + 1]

        _, rounds = t.repeat(lambda x, _: x > 3, halve, t.thread, t.constant(0))
        with t.when(t.thread % 2 == 0):
            target.store(place, rounds)

    rounds = np.maximum(np.frexp(THREAD)[1] - 2, 0)
    last = THREAD // 2 ** np.maximum(rounds - 1, 0)  # before it was halved once more
    odd = np.where(rounds, last, _lockstep.UNWRITTEN)
    np.testing.assert_array_equal(
        stored(kernel), np.where(THREAD % 2 == 0, rounds, odd)
    )


def test_no_array_of_a_loop_is_left_behind():
    """JAX has a setting that checks this, which people use for their own programs."""

    def kernel(t, target, place):
        t.loop(2, lambda i: [target.store(place, i)][:0])

    with jax.checking_leaks():
        np.testing.assert_array_equal(stored(kernel), np.ones(SHAPE))


def test_a_part_of_a_line_begins_at_its_offset():
    def kernel(t, target, place):
        part = target.part(2).part(place)
        with t.when(t.thread % 4 == 0):
            part.store(1, t.thread)
            target.store(place, part.load(1))

    found = stored(kernel).ravel()
    np.testing.assert_array_equal(found[::4], THREAD.ravel()[::4])
    np.testing.assert_array_equal(found[3::4], THREAD.ravel()[::4])
    assert (found[1::4] == _lockstep.UNWRITTEN).all()


def test_what_one_program_posts_another_one_waits_for():
    def kernel(t, out, posts, place):
        with t.when(t.thread == 0):
            posts.at(0).post(t.program, t.program + 7)
        out.at(0).store(place, posts.at(0).wait(1 - t.program))

    (line,) = _lockstep.run(
        lambda t, out, posts: kernel(t, out, posts, t.program * 64 + t.thread),
        *((), 2, 64, [jnp.zeros((1, 128), np.uint32)], [(1, 3)], ()),
    )
    assert set(line[0, :64].tolist()) == {8}
    assert set(line[0, 64:].tolist()) == {7}


def posted(kernel, lines=1):
    """Returns what two programs of 64 threads store, each in a line of its own."""
    out = jnp.zeros((2, 64), np.uint32)

    def run(t, out, posts):
        kernel(t, lambda number: out.at(t.program).store(t.thread, number), posts)

    (line,) = _lockstep.run(run, (), 2, 64, [out], [(lines, 3)], ())
    return line.tolist()


def test_a_program_looks_whether_a_number_is_posted():
    def kernel(t, store, posts):
        line = posts.at(0)
        before = line.peek(2)
        with t.when((t.program == 1) & (t.thread == 0)):
            line.post(2, t.constant(5))
        store(before * 100 + line.peek(2))

    assert posted(kernel) == [[6] * 64] * 2


@pytest.mark.parametrize(("lines", "claims"), [(1, [0, 1]), (2, [0, 0])])
def test_programs_that_claim_get_different_numbers(lines, claims):
    """Those of one line. One thread claims, twice."""

    def kernel(t, store, posts):
        line = posts.at(0 if lines == 1 else t.program)
        for again in range(2):
            with t.when(t.thread == 3 + again):
                store(line.claim(1))

    step = 2 if lines == 1 else 1
    for number, found in zip(claims, posted(kernel, lines), strict=True):
        assert found[3:5] == [number, number + step]


def test_a_number_that_nobody_posts_is_seen():
    def kernel(t, out, posts):
        out.at(0).store(t.program * 64 + t.thread, posts.at(0).wait(2))

    (line,) = _lockstep.run(
        *(kernel, (), 2, 64, [jnp.zeros((1, 128), np.uint32)], [(1, 3)], ())
    )
    assert set(line[0].tolist()) == {_lockstep.UNWRITTEN}


def test_what_is_outside_of_a_line_is_not_read():
    def kernel(t, target, place):
        target.store(place, t.thread)
        target.store(place, target.load(place + 100))

    found = stored(kernel)
    assert (found.ravel()[28:] == _lockstep.UNWRITTEN).all()
    np.testing.assert_array_equal(found.ravel()[:28], THREAD.ravel()[100:])


def test_a_store_outside_of_a_line_spoils_it():
    """By an active thread; the others store nothing."""

    def kernel(t, target, place, limit):
        with t.when(place < limit):
            target.store(place + 28, t.thread)

    for limit, spoiled in ((100, False), (101, True)):
        found = stored(functools.partial(kernel, limit=limit))
        assert (found == _lockstep.UNWRITTEN).all() == spoiled


def test_threads_exchange_numbers_within_their_warp():
    def exchanged(operation):
        return stored(lambda t, out, place: out.store(place, operation(t, t.thread)))

    warp = THREAD // 32 * 32
    for found, expected in (
        (exchanged(lambda t, x: t.shuffle(x, 5)), warp + 5),
        (exchanged(lambda t, x: t.shuffle_xor(x, 8)), THREAD ^ 8),
        (exchanged(lambda t, x: t.warp_sum(x % 32)), 496),
        (
            exchanged(lambda t, x: t.warp_scan(x % 32)),
            (THREAD % 32 + 1) * (THREAD % 32) // 2,
        ),
    ):
        np.testing.assert_array_equal(found, np.broadcast_to(expected, SHAPE))
