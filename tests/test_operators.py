"""Every operator of the registry is complete.

A message names the missing part and its file. CONTRIBUTING.md has the recipe.
"""

import re

import pytest

from benchmarks.programs import PROGRAMS
from dmljax import _operators
from dmljax._operators import DESCRIPTORS, OPERATORS
from tests import oracles
from tests.meshes import DOCS
from tests.subjects import DESCRIBED, SUBJECTS


def pages(pattern=""):
    """The operators whose page has this pattern."""
    texts = {p.stem: p.read_text() for p in (DOCS / "operators").glob("*.md")}
    return {name for name, text in texts.items() if re.search(pattern, text)}


def of_subjects(field):
    """The operators whose subject has a value in this field."""
    return {name for name, subject in SUBJECTS.items() if getattr(subject, field)}


# The needs of an operator: the file for each, and the operators that have it.
SUBJECT = "SUBJECT in tests/subjects/<operator>.py"
PAGE = "docs/operators/<operator>.md"
NEEDS = {
    "an oracle": ("tests/oracles.py", lambda: set(vars(oracles))),
    "a subject": (SUBJECT, lambda: set(SUBJECTS)),
    "samples": (f"samples= of {SUBJECT}", lambda: of_subjects("samples")),
    "edge cases": (f"edges= of {SUBJECT}", lambda: of_subjects("edges")),
    "wrong calls": (f"errors= of {SUBJECT}", lambda: of_subjects("errors")),
    "sharded calls": (f"sharded= of {SUBJECT}", lambda: of_subjects("sharded")),
    "a page": (PAGE, pages),
    "a table about sharding": (PAGE, lambda: pages(r"\n## Sharding\n(.*\n)*?\|")),
    "a section about cost": (PAGE, lambda: pages("\n## Cost\n")),
    "a picture": (PAGE, lambda: pages(r"\n!\[[^]]+\]\(\.\./pictures/")),
    "a program": (
        "benchmarks/programs/<operator>.py, and its PROGRAMS to those in __init__.py",
        lambda: {program.operator for program in PROGRAMS.values()},
    ),
}


@pytest.mark.parametrize("need", NEEDS)
@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_has_all_it_needs(name, need):
    where, found = NEEDS[need]
    where = where.replace("<operator>", name)
    assert name in found(), f"{name} lacks {need}; add it to {where}"


@pytest.mark.parametrize("name", OPERATORS)
def test_a_descriptor_has_all_it_needs(name):
    for descriptor in OPERATORS[name].descriptors:
        where = f"descriptors= of SUBJECT in tests/subjects/{name}.py"
        named = descriptor.operator
        assert named in DESCRIBED, f"{named} is missing; add it to {where}"
        assert DESCRIPTORS[named] is descriptor


@pytest.mark.parametrize("name", SUBJECTS)
def test_plans_are_edges(name):
    """And there are some exactly if a kernel runs them."""
    subject = SUBJECTS[name]
    assert set(subject.plans) <= {edge.name for edge in subject.edges}
    assert bool(subject.plans) == bool(subject.kernels)


def test_the_registry_exports_all_its_names():
    functions = {operator.function.__name__ for operator in OPERATORS.values()}
    assert functions == set(OPERATORS)
    descriptors = {desc.__name__ for desc in DESCRIPTORS.values()}
    others = {name for subject in SUBJECTS.values() for name in subject.names}
    assert functions | descriptors | others == set(_operators.__all__)
