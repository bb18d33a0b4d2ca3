"""Every operator of the registry has all that an operator must have.

A message names what is missing and where to add it. CONTRIBUTING.md has the recipe.
"""

import pathlib

import pytest

import dmljax
from benchmarks.cases import cases
from dmljax import _operators
from dmljax._operators import DESCRIPTORS, OPERATORS
from tests import oracles, test_sharding
from tests.subjects import SAMPLES, SUBJECTS

DOCS = pathlib.Path(__file__).parent.parent / "docs"


def sharded():
    return {line[0].strip("`").split("`")[0] for line in test_sharding.table()}


# What an operator must have, where it is added, and for which operators it is there.
NEEDS = {
    "an oracle": ("a function in tests/oracles.py", lambda: set(vars(oracles))),
    "samples": ("SUBJECT in tests/subjects/<operator>.py", lambda: set(SUBJECTS)),
    "typical samples": (
        "SUBJECT.samples, which all transformations are tested on",
        lambda: {sample.operator for sample in SAMPLES},
    ),
    "edges": (
        "SUBJECT.edges",
        lambda: {name for name, subject in SUBJECTS.items() if subject.edges},
    ),
    "errors": (
        "SUBJECT.errors",
        lambda: {name for name, subject in SUBJECTS.items() if subject.errors},
    ),
    "a line about sharding": (
        "the table of docs/sharding.md, and SUBJECT.sharded",
        sharded,
    ),
    "a benchmark": (
        "cases() in benchmarks/cases.py",
        lambda: {case.operator for case in cases(2**12)},
    ),
    "a page": (
        "docs/operators/<operator>.md",
        lambda: {path.stem for path in (DOCS / "operators").glob("*.md")},
    ),
    "a place in the table of contents": (
        "docs/index.md",
        lambda: {
            name
            for name in OPERATORS
            if f"operators/{name}" in (DOCS / "index.md").read_text()
        },
    ),
}


@pytest.mark.parametrize("need", NEEDS)
@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_has_all_it_needs(name, need):
    where, found = NEEDS[need]
    assert name in found(), f"{name} has no {need.split(' ', 1)[-1]}; add it to {where}"


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_a_descriptor_has_all_it_needs(name):
    tables = {table for subject in SUBJECTS.values() for table in subject.tables}
    assert name in tables, f"add {name} to the tables in tests/subjects/"
    structs = {struct for subject in SUBJECTS.values() for struct in subject.structs}
    assert name in structs, f"add {name} to the structs in tests/subjects/"
    page = (DOCS / "support.md").read_text()
    assert f"## {name}\n" in page, f"add {name} to docs/support.md: dmljax support"


def test_the_registry_exports_what_it_lists():
    functions = {operator.function.__name__ for operator in OPERATORS.values()}
    descriptors = {desc.__name__ for desc in DESCRIPTORS.values()}
    assert functions | descriptors <= set(_operators.__all__)
    assert set(_operators.__all__) <= set(dmljax.__all__)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [(name, wrong) for name, one in SUBJECTS.items() for wrong in one.errors],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_errors_name_what_is_wrong(name, wrong):
    with pytest.raises(dmljax.DescriptorError) as raised:
        wrong.call()
    message = str(raised.value)
    assert message.startswith(f"{name.upper()}: ")
    for part in wrong.parts:
        assert part in message
