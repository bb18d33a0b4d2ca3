"""The rows past the count of NONZERO_COORDINATES on a GPU, which hold the fill value.

These rows are the *tail*. There are two ways to divide it among programs:

- `fill_rows`: a program fills as many rows as its share has zeros. It knows which rows
  these are, and waits for no count but those of the programs before it.
- `fill_parts`: if `size=` asks for few rows, only the last programs have zeros for
  which there is a row. Then programs *claim* parts of the tail: they count in a word of
  memory. Where the tail begins is known when the last program has counted.

A program must not wait for a later one, which may start only when it has ended. So it
looks a few times for the beginning of the tail, and ends if that is not known. The last
program knows it, and fills what nobody else claims.
"""

from collections.abc import Sequence
from typing import Any

from dmljax.pallas._nonzero_plan import NonzeroPlan
from dmljax.pallas._nonzero_rows import store_rows

TRIES = 16  # looks for the beginning of the tail: about 10 microseconds


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


def post_tail(t: Any, count: Any, posts: Any, plan: NonzeroPlan) -> None:
    """Tells all programs of the line where its tail begins."""
    start = t.select(count < plan.rows, count, plan.rows)
    posts.post(plan.tail[0], start)


def fill_parts(
    t: Any,
    program: Any,
    count: Any,
    posts: Any,
    claimed: Any,
    out: Any,
    plan: NonzeroPlan,
) -> None:
    """Fills parts of the tail, as long as there are some that no program has claimed.

    Args:
      t: the thread.
      program: the program's number among those of its line.
      count: how many elements of its share and of those before are not zero.
      posts: the words of the line through which programs tell each other numbers.
      claimed: two words of shared memory.
      out: the output.
      plan: what is known about the call.
    """
    begin, claims = plan.tail
    # A program that runs before the last one starts would look in vain. One that has
    # seen more elements than there are rows knows that there is no tail.
    looks = (program + plan.together >= plan.programs) & (count < plan.rows)
    tries = t.select(looks, t.constant(TRIES), 0)
    with t.when(t.thread == 0):
        found, _ = t.repeat(
            lambda found, tried: (found == 0) & (tried < tries),
            lambda _, tried: [posts.peek(begin), tried + 1],
            t.constant(0),
            t.constant(0),
        )
        claimed.store(0, found)
        with t.when(found != 0):
            claimed.store(1, posts.claim(claims))
    t.barrier()
    found = claimed.load(0)
    start = found - 1
    first = start // plan.part * plan.part

    def fill(part: Any) -> Sequence[Any]:
        t.barrier()  # All threads have read which part it is.
        with t.when(t.thread == 0):  # while the others already fill
            claimed.store(1, posts.claim(claims))
        low = first + part * plan.part
        high = low + plan.part
        low = t.select(low < start, start, low)
        high = t.select(high < plan.rows, high, plan.rows)
        _fill(t, out, low, high, plan)
        t.barrier()
        return [claimed.load(1)]

    def is_left(part: Any) -> Any:
        return first + part * plan.part < plan.rows

    with t.when(found != 0):
        t.repeat(is_left, fill, claimed.load(1))


def _fill(t: Any, out: Any, start: Any, stop: Any, plan: NonzeroPlan) -> None:
    """Fills the rows from `start` to `stop` by all threads of a program."""

    def values(_: Any, count: int) -> list[Any]:
        return [t.constant(plan.fill)] * count

    store_rows(t, out, start, stop - start, values, t.thread, t.threads, plan)
