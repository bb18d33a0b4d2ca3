"""Programs that users run, each in every spelling that is known to be good.

Ten of them are in `ten`. Another file of this folder has others that need the same
operators. For all of them it has what the results must be, what PyTorch computes, and
what they are compared with. All cases have the context "program".
"""

from collections.abc import Iterator

from benchmarks.case import Case
from benchmarks.programs import images, labels, masks, sparse
from benchmarks.programs.timed import SMALL, cases_of

PROGRAMS = masks.PROGRAMS | labels.PROGRAMS | images.PROGRAMS | sparse.PROGRAMS


def programs(platform: str, elements: int) -> Iterator[Case]:
    """All of them for arrays of about `elements` elements, and some for small ones.

    On a CPU, the small ones have the sizes of photographs and of a batch of labels. Few
    CPUs have instructions for bfloat16.
    """
    for name, timed in PROGRAMS.items():
        wide = [dtype for dtype in timed.dtypes if dtype != "bfloat16"]
        dtypes = wide if platform == "cpu" and wide else timed.dtypes
        yield from cases_of(platform, name, timed, elements, dtypes)
    if platform == "gpu" and elements > SMALL:
        for name, timed in PROGRAMS.items():
            yield from cases_of(platform, name, timed, SMALL, timed.dtypes)
    if platform == "cpu":
        for name, timed in (*images.ON_CPU, *labels.ON_CPU):
            yield from cases_of(platform, name, timed, elements, timed.dtypes)
