"""The rows past the count of NONZERO_COORDINATES on a GPU, which hold the fill value.

These rows are the *tail*. There are two ways to divide it among programs:

- `fill_rows`: a program fills as many rows as its share has zeros. It knows which rows
  these are, and waits for no count but those of the programs before it.
- `fill_parts`: if `size=` asks for few rows, only the last programs have zeros for
  which there is a row. Then all programs *claim* parts of the tail: they count in a
  word of memory. They wait until the last program has counted where the tail begins.

A program must not wait for one that has not started, which may start only when others
have ended. Programs start in the order of their numbers, so all have started when the
last one has. It says so at its beginning. A program that would claim before that claims
nothing. The last program fills what nobody else claims.
"""

from collections.abc import Sequence
from typing import Any

from dmljax.pallas.gpu._nonzero_plan import NonzeroPlan
from dmljax.pallas.gpu._nonzero_rows import store_rows


def fill_rows(
    t: Any, program: Any, before: Any, total: Any, out: Any, plan: NonzeroPlan
) -> None:
    """Fills as many rows as the program's share has zeros, counted from the end.

    Args:
      t: the thread.
      program: the program's number among those of its line.
      before: how many elements before the share are not zero.
      total: how many elements of the share are not zero.
      out: the output.
      plan: what is known about the call.
    """
    first = program * plan.share
    elements = t.constant(plan.elements) - first
    elements = t.select(elements < plan.share, elements, plan.share)
    more, each = plan.rows_past_elements

    def past(programs: Any) -> Any:
        return t.select(programs * each < more, programs * each, more)

    stop = t.constant(plan.elements + more) - (first - before)
    start = stop - (elements - total) - past(program + 1)
    stop = stop - past(program)
    start, stop = (t.select(n < plan.rows, n, plan.rows) for n in (start, stop))
    _fill(t, out, start, stop, plan)


def post_start(t: Any, program: Any, posts: Any, plan: NonzeroPlan) -> None:
    """Tells all programs of the line that the last one has started."""
    with t.when((program == plan.programs - 1) & (t.thread == 0)):
        posts.post(plan.tail.started, t.constant(1))


def claim_part(t: Any, posts: Any, claimed: Any, plan: NonzeroPlan) -> None:
    """Claims a part of the tail, if the last program of the line has started.

    A program does this before it knows where the tail begins, while it waits for the
    counts of others.

    Args:
      t: the thread.
      posts: the words of the line through which programs tell each other numbers.
      claimed: three words of shared memory: whether the program fills parts, which part
        it has claimed, and where the tail begins.
      plan: what is known about the call.
    """
    with t.when(t.thread == t.threads - 1):  # It waits for the fewest counts.
        started = posts.peek(plan.tail.started)
        claimed.store(0, started)
        with t.when(started != 0):
            claimed.store(1, posts.claim(plan.tail.claims))


def post_tail(t: Any, count: Any, posts: Any, plan: NonzeroPlan) -> None:
    """Tells all programs of the line where its tail begins."""
    posts.post(plan.tail.begin, t.select(count < plan.rows, count, plan.rows))


def fill_parts(
    t: Any, count: Any, posts: Any, claimed: Any, out: Any, plan: NonzeroPlan
) -> None:
    """Fills the part of the tail that the program has claimed, and claims others.

    Args:
      t: the thread.
      count: how many elements are not zero, of the program's share and before it.
      posts: as for `claim_part`.
      claimed: as for `claim_part`.
      out: the output.
      plan: what is known about the call.
    """
    with t.when((claimed.load(0) != 0) & (count < plan.rows)):
        with t.when(t.thread == 0):
            claimed.store(2, posts.wait(plan.tail.begin))
        t.barrier()
        start = claimed.load(2)
        first = start // plan.part * plan.part

        parts = (t.constant(plan.rows) - first + (plan.part - 1)) // plan.part

        def fill(part: Any) -> Sequence[Any]:
            t.barrier()  # so that all threads have read which part it is
            with t.when(t.thread == 0):  # while the others already fill
                claimed.store(1, posts.claim(plan.tail.claims))
            low = first + part * plan.part
            high = low + plan.part
            low = t.select(low < start, start, low)
            high = t.select(high < plan.rows, high, plan.rows)
            _fill(t, out, low, high, plan)
            t.barrier()
            return [claimed.load(1)]

        t.repeat(lambda part: part < parts, fill, claimed.load(1))


def _fill(t: Any, out: Any, start: Any, stop: Any, plan: NonzeroPlan) -> None:
    """Fills the rows from `start` to `stop` by all threads of a program."""

    def values(_: Any, count: int) -> list[Any]:
        return [t.constant(plan.fill)] * count

    store_rows(t, out, start, stop - start, values, t.thread, t.threads, plan)
