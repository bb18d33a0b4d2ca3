"""Programs that users run: one file an operator, and every good spelling of each.

A program is a plain function. Its last argument is dmljax's function, and jax.numpy's
takes its place in another spelling. `python -m benchmarks NAME` shows a program whole.
All cases have the context "program".
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
from benchmarks.programs.program import SMALL, Program, cases_of

PROGRAMS: dict[str, Program] = {
    **diagonal_matrix1.PROGRAMS,
    **element_wise_if.PROGRAMS,
    **one_hot.PROGRAMS,
    **padding.PROGRAMS,
    **nonzero_coordinates.PROGRAMS,
}

# These say most in little time: `benchmarks.compare` runs them, and a picture has them.
TEN = (
    "causal softmax",
    "label smoothing",
    "reflect padding between two operations",
    "patches of wrapped images",
    "masked mean",
    "safe logarithm",
    "router",
    "elements above a limit",
    "rows of a mask",
    "edges of graphs",
)


def programs(platform: str, elements: int) -> Iterator[Case]:
    """All of them for arrays of about `elements` elements, and some for small ones.

    On a CPU, the small ones have the sizes of photographs and of a batch of labels. Few
    CPUs have instructions for bfloat16.
    """
    for name, program in PROGRAMS.items():
        dtypes = program.dtypes
        if platform == "cpu":
            dtypes = [one for one in dtypes if one != "bfloat16"]
        yield from cases_of(platform, name, program, elements, dtypes)
    if platform == "gpu" and elements > SMALL:
        for name, program in (*PROGRAMS.items(), *nonzero_coordinates.by_size()):
            yield from cases_of(platform, name, program, SMALL, program.dtypes)
    if platform == "cpu":
        for name, program in (*padding.on_cpu(), *one_hot.on_cpu()):
            yield from cases_of(platform, name, program, elements, program.dtypes)
