"""The rows past the count of NONZERO_COORDINATES on a GPU, which hold the fill value.

These rows are the *tail*. There are two ways to divide it among programs:

- `fill_rows`: a program fills as many rows as its share has zeros. It knows which rows
  these are, and waits for no count but those of the programs before it.
- `fill_parts`: if `size=` asks for few rows, only the last programs have zeros for
  which there is a row. Then all programs *claim* parts of the tail: they count in a
  word of memory. They wait until the last program has counted where the tail begins.

A program must not wait for one that has not started, which may start only when others
have ended. Programs start in the order of their indices, so all have started when the
last one has. It says so at its beginning. A program that would claim before that claims
nothing. The last program fills what nobody else claims.
"""

from collections.abc import Sequence
from typing import Any

from dmljax.pallas.gpu._nonzero_plan import Program
from dmljax.pallas.gpu._nonzero_rows import store_rows


def fill_rows(p: Program, before: Any, total: Any) -> None:
    """Fills as many rows as the share has zeros, counted from the end.

    `before` elements before the share are not zero, and `total` of the share. Two
    programs with shares of four, for example, write these rows (digits) and fill these
    (letters), where `b` is a row past the elements:

        elements   0 5 0 0 | 7 1 0 2
        rows       0 1 1 1 b a a a b a     of ten, so both programs fill one more
    """
    t, plan = p.t, p.plan
    first = p.index * plan.share
    elements = t.minimum(plan.elements - first, plan.share)
    more, each = plan.rows_past_elements
    # From the end on, these are the rows of the zeros of all programs before, of those
    # of this program, and `each` rows of every program.
    stop = plan.elements + more - (first - before)
    start = stop - (elements - total)
    start = start - t.minimum((p.index + 1) * each, more)
    stop = stop - t.minimum(p.index * each, more)
    _fill(p, t.minimum(start, plan.rows), t.minimum(stop, plan.rows))


def post_start(p: Program) -> None:
    """Tells all programs of the line that the last one has started."""
    with p.t.when((p.index == p.plan.programs - 1) & (p.t.thread == 0)):
        p.posts.post(p.plan.tail.started, p.t.constant(1))


def claim_part(p: Program) -> None:
    """Claims a part of the tail, if the last program of the line has started.

    A program does this before it knows where the tail begins, while it waits for the
    counts of others.
    """
    t, tail = p.t, p.plan.tail
    with t.when(t.thread == t.threads - 1):  # It waits for the fewest counts.
        started = p.posts.peek(tail.started)
        p.claimed.store(0, started)
        with t.when(started != 0):
            p.claimed.store(1, p.posts.claim(tail.claims))


def post_tail(p: Program, count: Any) -> None:
    """Tells all programs of the line where its tail begins."""
    p.posts.post(p.plan.tail.begin, p.t.minimum(count, p.plan.rows))


def fill_parts(p: Program, count: Any) -> None:
    """Fills the part of the tail that the program has claimed, and claims others.

    `count` elements are not zero, of the program's share and before it.
    """
    t, plan = p.t, p.plan
    with t.when((p.claimed.load(0) != 0) & (count < plan.rows)):
        with t.when(t.thread == 0):
            p.claimed.store(2, p.posts.wait(plan.tail.begin))
        t.barrier()
        begin = p.claimed.load(2)
        first = begin // plan.part * plan.part
        parts = (t.constant(plan.rows) - first + (plan.part - 1)) // plan.part

        def fill(part: Any) -> Sequence[Any]:
            t.barrier()  # so that all threads have read which part it is
            with t.when(t.thread == 0):  # while the others already fill
                p.claimed.store(1, p.posts.claim(plan.tail.claims))
            low = first + part * plan.part
            high = low + plan.part
            _fill(p, t.maximum(low, begin), t.minimum(high, plan.rows))
            t.barrier()
            return [p.claimed.load(1)]

        t.repeat(lambda part: part < parts, fill, p.claimed.load(1))


def _fill(p: Program, start: Any, stop: Any) -> None:
    """Fills the rows from `start` to `stop` by all threads of a program."""

    def values(_: Any, count: int) -> list[Any]:
        return [p.t.constant(p.plan.fill)] * count

    store_rows(p, start, stop - start, values, p.t.thread, p.t.threads)
