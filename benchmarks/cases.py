"""The work that we time: `cases` yields every case of the ledger but the shapes."""

from collections.abc import Iterator

from benchmarks import calls
from benchmarks.case import Case
from benchmarks.forms import with_plain
from benchmarks.programs import PROGRAMS, nonzero_coordinates
from benchmarks.programs.program import cases_of


def cases(platform: str, elements: int) -> Iterator[Case]:
    """All cases of a platform. Large arrays have about `elements` elements."""
    found = [*PROGRAMS.items(), *nonzero_coordinates.many_lines(elements)]
    if platform == "gpu":
        found += nonzero_coordinates.by_size()
    for name, program in found:
        for case in cases_of(platform, name, program, elements):
            yield with_plain(case, platform)
    yield from calls.cases()
