"""Parts of programs that users run, each in every spelling that is known to be good.

A file of this folder has one program: its cases, by type and size; a contender for each
spelling, which the second word of its name tells from others ("jnp where"); and its
oracle. All cases have the context "program". The operators as programs of their own
are in `benchmarks.cases`.
"""

from collections.abc import Iterator

from benchmarks.case import Case
from benchmarks.programs import convolutions, graphs, router, softmax


def programs(elements: int) -> Iterator[Case]:
    """All of them, for arrays of about so many elements."""
    for program in (convolutions, router, softmax, graphs):
        yield from program.cases(elements)
