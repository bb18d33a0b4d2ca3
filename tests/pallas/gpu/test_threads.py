"""Operations of a thread: lowered for a GPU, and simulated by `lockstep`."""

import functools
import operator

import jax
import numpy as np
import pytest

from dmljax.pallas.gpu import WARP
from dmljax.pallas.gpu._launch import launch_threads
from tests.checks import launches, needs_kernels
from tests.pallas import blocks, lockstep

pytestmark = needs_kernels
PROGRAMS = 2
WARPS = 4
THREADS = WARPS * WARP
SHAPE = (PROGRAMS, THREADS)
NUMBERS = np.arange(PROGRAMS * THREADS, dtype=np.uint32).reshape(SHAPE)
LINE = NUMBERS.ravel()
THREAD = NUMBERS % THREADS


def launch(launch_threads, kernel, x, posts=0, shared=()):
    """Returns the line that the threads of two programs store."""

    def run(t, x, *others):
        posted = others[: posts > 0]
        target, *more = others[len(posted) :]
        kernel(t, target, x.load(t.program * THREADS + t.thread), *posted, *more)

    (line,) = launch_threads(
        run,
        x,
        programs=PROGRAMS,
        warps=WARPS,
        outputs=[x.size],
        shared=shared,
        posts=posts,
    )
    return line.reshape(SHAPE)


def simulated(kernel, **options):
    """The line, by the simulator."""
    call = functools.partial(launch, lockstep.launch_threads, kernel, **options)
    return np.asarray(jax.jit(call)(LINE))


def stored(kernel, **options):
    """The line, by the GPU if there is one. Any machine lowers the kernel for a GPU."""
    call = functools.partial(launch, launch_threads, kernel, **options)
    assert launches(call, LINE) == 1
    return simulated(kernel, **options) if blocks.SIMULATED else jax.jit(call)(LINE)


# NUMBERS

LANE = THREAD % WARP
# An operation on a thread's number, and its result by NumPy.
NUMBER = {
    "rsub": (lambda t, x: 1000 - x, 1000 - THREAD),
    "wide": (lambda t, x: t.select(t.wide(x) * 3 > 9, x, 0), THREAD * (THREAD > 3)),
    "narrow": (lambda t, x: t.narrow(t.wide(x)), THREAD),
    "ones": (lambda t, x: t.ones(x), np.bitwise_count(THREAD)),
    "minimum": (lambda t, x: t.minimum(x, 5), np.minimum(THREAD, 5)),
    "warp_scan": (lambda t, x: t.warp_scan(x % WARP), (LANE + 1) * LANE // 2),
    "warp_sum": (lambda t, x: t.warp_sum(x % WARP), WARP * (WARP - 1) // 2),
    "shuffle": (lambda t, x: t.shuffle(x, x % 3), THREAD - LANE + THREAD % 3),
}


def assert_computes(operation, expected):
    """Compares the results for each thread's number."""
    found = stored(lambda t, target, i: target.store(i, operation(t, t.thread)))
    np.testing.assert_array_equal(found, np.broadcast_to(expected, SHAPE))


COMPARISONS = ("lt", "gt", "ge", "eq", "ne")
ARITHMETIC = ("add", "sub", "mul", "floordiv", "mod", "and_", "or_", "xor")


@pytest.mark.parametrize("name", COMPARISONS + ARITHMETIC)
def test_operators(name):
    compute = getattr(operator, name)

    def operation(t, x):
        result = compute(x, x // 2 + 1)
        return t.select(result, 1, 0) if name in COMPARISONS else result

    assert_computes(operation, compute(THREAD, THREAD // 2 + 1))


@pytest.mark.parametrize("name", NUMBER)
def test_numbers(name):
    assert_computes(*NUMBER[name])


def repeat(t, rounds, body, total):
    """Does the work of `Threads.loop`."""
    zero = t.constant(0)
    return t.repeat(
        lambda i, _: i < rounds, lambda i, *x: [i + 1, *body(i, *x)], zero, total
    )[1:]


@pytest.mark.parametrize("loop", [lambda t, *arguments: t.loop(*arguments), repeat])
def test_each_thread_has_rounds_of_its_own(loop):
    """A loop carries values and stores, only in the threads of a condition."""

    def kernel(t, target, i):
        def step(k, total):
            target.store(i, k)
            return [total + k]

        target.store(i, t.constant(99))
        (total,) = loop(t, t.thread % 4, step, t.constant(0))
        # Threads with the most rounds would not show a loop that goes on too long.
        with t.when(t.thread % 8 == 2):
            t.loop(1, lambda k: target.store(i, total + k + 10))

    last = np.where(THREAD % 4, THREAD % 4 - 1, 99)
    expected = np.where(THREAD % 8 == 2, 0 + 1 + 10, last)
    np.testing.assert_array_equal(stored(kernel), expected)


# MEMORY


def test_a_part_of_a_line_begins_at_its_offset():
    def kernel(t, target, i):
        target.store(i, t.constant(99))
        t.barrier()
        part = target.part(2).part(i)
        with t.when(t.thread % 4 == 0):
            part.store(1, t.thread)
            target.store(i, part.load(1))

    expected = np.where(THREAD % 4 % 3, 99, THREAD // 4 * 4)
    np.testing.assert_array_equal(stored(kernel), expected)


def test_elements_are_loaded_as_words():
    """The first element of a word lies in its lowest bits."""

    def kernel(t, target, i, elements):
        elements.store(t.thread, t.thread)
        t.barrier()
        word = elements.words(t.thread // 8 * 8, 8)[1]
        for byte in 1, 2, 3:
            word = t.select(t.thread % 4 < byte, word, word // 256)
        target.store(i, word % 256)

    found = stored(kernel, shared=[(THREADS, np.uint8)])
    np.testing.assert_array_equal(found, THREAD // 8 * 8 + 4 + THREAD % 4)


def test_programs_have_shared_memory_and_posts():
    def turn(t, target, i, posts, turned):
        turned.store(t.threads - 1 - t.thread, i)
        t.barrier()
        with t.when(t.thread == 0):
            posts.post(t.program, t.program + 7)
        target.store(i, turned.load(t.thread) + posts.wait(1 - t.program))

    found = stored(turn, shared=[(THREADS, np.uint32)], posts=PROGRAMS)
    np.testing.assert_array_equal(found, NUMBERS[:, ::-1] + [[8], [7]])


# FAULTS, as the simulator shows them


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
        assert found == {lockstep.UNWRITTEN if wrong else 7}


def test_a_number_that_nobody_posts_is_seen():
    def kernel(t, target, i, posts):
        target.store(i, posts.wait(2))

    assert (simulated(kernel, posts=3) == lockstep.UNWRITTEN).all()


def test_an_operation_that_only_some_threads_reach_is_refused():
    t = lockstep.Threads(1, 2 * WARP)
    operations = (
        t.barrier,
        t.warp_barrier,
        lambda: t.warp_sum(t.thread),
        lambda: t.warp_scan(t.thread),
        lambda: t.shuffle(t.thread, 0),
    )
    refused = pytest.raises(RuntimeError, match="only some threads reach")
    for operation in operations:
        with t.when(t.thread < 1), refused:
            operation()
    for operation in operations[1:]:
        with t.when(t.thread < WARP):
            operation()
    with t.when(t.thread < WARP), refused:
        t.barrier()
