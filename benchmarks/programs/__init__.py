"""Programs of users: a file for each operator, with every good spelling.

A program is a plain function. Its last argument is dmljax's function, and jax.numpy's
function takes its place in another spelling. `python -m benchmarks NAME` shows the
whole program. All cases have the context "program".
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
    """All programs, for arrays of about `elements` elements, and some for small arrays.

    On a CPU, the small arrays have the sizes of photographs and of a batch of labels.
    Few CPUs have instructions for bfloat16.
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
