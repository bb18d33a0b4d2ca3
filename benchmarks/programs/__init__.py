"""Programs of users: a file for each operator, with every good spelling.

A program is a plain function. Its last argument is dmljax's function, and jax.numpy's
function takes its place in another spelling. All cases have the context "program".
"""

from collections.abc import Iterator

from benchmarks.case import Case
from benchmarks.programs import (
    diagonal_matrix1,
    element_wise_if,
    nonzero_coordinates,
    one_hot,
    padding,
)
from benchmarks.programs.program import Program, cases_of

PROGRAMS: dict[str, Program] = {
    **diagonal_matrix1.PROGRAMS,
    **element_wise_if.PROGRAMS,
    **one_hot.PROGRAMS,
    **padding.PROGRAMS,
    **nonzero_coordinates.PROGRAMS,
}

# `benchmarks.compare` runs these: they say most in little time.
TEN = (
    "causal softmax",
    "label smoothing",
    "masked mean",
    "router",
    "reflect padding between two operations",
    "patches of wrapped images",
    "elements above a limit",
    "half of the elements above a limit",
    "rows of a mask and back",
    "edges of graphs",
)


def programs(platform: str, elements: int) -> Iterator[Case]:
    """All programs. Few CPUs have instructions for bfloat16."""
    found = [*PROGRAMS.items(), *nonzero_coordinates.many_lines(elements)]
    if platform == "gpu":
        found += nonzero_coordinates.by_size()
    for name, program in found:
        dtypes = program.dtypes
        if platform == "cpu":
            dtypes = [one for one in dtypes if one != "bfloat16"]
        yield from cases_of(platform, name, program, elements, dtypes)
