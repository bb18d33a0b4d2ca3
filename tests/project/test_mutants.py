"""The table of faults goes with the sources and with the tests."""

import re
from collections import Counter

import pytest

from dmljax._operators import OPERATORS
from tests.mutants.fault import ROOT
from tests.mutants.table import FAULTS

# Modules that have fewer than 8 faults, and why.
FEW = {
    "dmljax": "it only names what is public",
    "dmljax._default": "it is data that the ledgers make",
    "dmljax._diagonal_matrix1_primitive": "its formula is three lines",
    "dmljax._operators": "it is the list of operators",
    "dmljax._transpose": "it is three small functions",
    "dmljax.pallas": "it only says which backends there are",
    "dmljax.pallas._element_wise_if": "its formula is one line",
    "dmljax.pallas.gpu._launch": "what it does for GPUs, only a GPU runs",
    "dmljax.pallas.gpu._nonzero_plan": "it is sizes, and data of a call",
    "dmljax.pallas.gpu._threads": "a CPU runs `_lockstep` in its place",
    "dmljax.pallas.tpu": "it is empty",
    "dmljax.pallas.tpu._diagonal_matrix1": "its formula is two lines",
    "dmljax.pallas.tpu._element_wise_if": "its formula is one line",
    "dmljax.pallas.tpu._one_hot": "its formula is three lines",
}


@pytest.mark.parametrize("module", sorted({fault.module for fault in FAULTS}))
def test_faults_are_of_this_source_and_name_tests_that_are_there(module):
    for fault in FAULTS:
        if fault.module == module:
            fault.check()


def test_every_module_has_faults():
    files = (path.relative_to(ROOT) for path in (ROOT / "dmljax").rglob("*.py"))
    modules = {
        re.sub(r"\.__init__$", "", ".".join(path.with_suffix("").parts))
        for path in files
    }
    counts = Counter(fault.module for fault in FAULTS)
    # An operator may have no faults of its own: the tests that all operators share
    # found those of the operators that have some.
    operators = {
        f"dmljax._{name}" for name in OPERATORS if not counts[f"dmljax._{name}"]
    }
    assert {name for name in modules - operators if counts[name] < 8} == set(FEW)


def test_every_fault_has_a_name_of_its_own():
    counts = Counter(fault.name for fault in FAULTS)
    assert [name for name, count in counts.items() if count > 1] == []
