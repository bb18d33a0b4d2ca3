"""Says which modules get faults, which tests try them, and which faults change nothing.

A file of tests with a module's name, in the same folder, tests it: tests/test_tensor.py
is for dmljax/_tensor.py. `ALSO` adds files that run after it.
"""

import fnmatch
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.mutants.generate import ROOT, Fault, path_of

# The modules that compute or check something for every call, as patterns of files.
COVERED = (
    *("_arguments", "_tensor", "_strides", "_overlap", "_coordinates", "_primitive"),
    *("_transpose", "_sharding", "_padding_forms", "_padding_primitive"),
    *("_nonzero_coordinates_primitive", "_diagonal_matrix1", "_one_hot"),
    *("_element_wise_if", "pallas/gpu/_*", "pallas/tpu/_*"),
)
# Only a GPU runs these; a CPU runs `_lockstep` in their place.
NOT_ON_A_CPU = ("dmljax.pallas.gpu._threads", "dmljax.pallas.gpu._launch")

# The tests of a module, the likely ones first. "operators" is any test_operators.py
# below tests/, and a folder stands for its files.
ALSO = (
    ("_arguments", ("operators", "errors")),
    ("_tensor", ("descriptors", "errors", "bounds")),
    ("_strides", ("descriptors",)),
    ("_overlap", ("descriptors",)),
    ("_coordinates", ("operators", "properties", "bounds", "size", "tpu")),
    ("_primitive", ("transforms", "lowering", "callables", "sharding", "export")),
    ("_transpose", ("transforms",)),
    ("_padding_*", ("padding", "operators", "transforms", "sharding", "lowering")),
    ("_nonzero_coordinates_primitive", ("nonzero_coordinates", "operators", "size")),
    ("_diagonal_matrix1", ("operators", "errors", "transforms", "sharding")),
    ("_one_hot", ("operators", "errors", "transforms", "sharding")),
    ("_element_wise_if", ("operators", "errors", "transforms", "sharding")),
    ("pallas.gpu.*", ("kernels", "lockstep", "words", "races", "size", "compiled")),
    ("pallas.tpu.*", ("tpu", "tpu_lowering")),
)


class Equivalent(NamedTuple):
    """Faults that no result shows, and why. The first four are patterns.

    Attributes:
      module: the module, without "dmljax.".
      scope: the function, class or constant.
      what: the change.
      line: a text that the changed lines have.
      reason: why no test can catch it.
    """

    module: str
    scope: str
    what: str
    line: str
    reason: str

    def matches(self, fault: Fault) -> bool:
        """Whether this is such a fault."""
        names = fault.module.removeprefix("dmljax."), fault.scope, fault.what
        patterns = self.module, self.scope, self.what
        return self.line in fault.lines and all(
            map(fnmatch.fnmatchcase, names, patterns)
        )


SPEED = "it changes how long a call takes, and nothing else"
EQUIVALENTS = (Equivalent("_overlap", "MOST_*", "*", "", SPEED),)


def equivalent(fault: Fault) -> bool:
    """Whether a fault is listed as one that no result shows."""
    return any(one.matches(fault) for one in EQUIVALENTS)


def modules(names: Sequence[str]) -> list[str]:
    """Returns the modules that get faults, or those with a name, such as "_overlap"."""
    files = [f for one in names or COVERED for f in _found("dmljax", f"{one}.py")]
    found = [".".join(file.with_suffix("").parts) for file in files]
    if not found:
        raise SystemExit(f"no module has the name {' or '.join(names)}")
    return [name for name in found if names or name not in NOT_ON_A_CPU]


@functools.cache
def tests_of(module: str) -> tuple[str, ...]:
    """Returns the files that test a module. The first has its own examples."""
    path = path_of(module).relative_to(ROOT)
    own = f"{path.parent.relative_to('dmljax')}/test_{path.stem.strip('_')}.py"
    files = [path, *_found("tests", own)]
    name = module.removeprefix("dmljax.")
    for pattern, tests in ALSO:
        if fnmatch.fnmatchcase(name, pattern):
            for test in tests:
                files += _found("tests", f"**/test_{test}.py")
                files += _found("tests", f"{test}/test_*.py")
    return tuple(dict.fromkeys(map(str, files)))


def _found(folder: str, pattern: str) -> list[Path]:
    """Returns the files of a folder that match, relative to the checkout."""
    return sorted(path.relative_to(ROOT) for path in (ROOT / folder).glob(pattern))
