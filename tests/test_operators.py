"""Every operator of the registry is complete.

A message names the missing part and its file. CONTRIBUTING.md has the recipe.
"""

import pytest

from dmljax._operators import DESCRIPTORS, OPERATORS
from tests.meshes import DOCS
from tests.subjects import DESCRIBED, SUBJECTS

# The needs of an operator: the file for each, and the operators that have it. The tests
# of pages and of sharding read the sections of docs/operators/<operator>.md.
SUBJECT = "SUBJECT in tests/subjects/<operator>.py"
NEEDS = {
    "a subject": (SUBJECT, set(SUBJECTS)),
    "a page": (
        "docs/operators/<operator>.md",
        {path.stem for path in (DOCS / "operators").glob("*.md")},
    ),
}
for field in ("samples", "edges", "errors", "sharded"):
    having = {name for name, subject in SUBJECTS.items() if getattr(subject, field)}
    NEEDS[field] = (f"{field}= of {SUBJECT}", having)


@pytest.mark.parametrize("need", NEEDS)
@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_has_all_it_needs(name, need):
    where, found = NEEDS[need]
    where = where.replace("<operator>", name)
    assert name in found, f"{name} lacks {need}; add it to {where}"


@pytest.mark.parametrize("name", OPERATORS)
def test_a_descriptor_has_all_it_needs(name):
    for descriptor in OPERATORS[name].descriptors:
        where = f"descriptors= of SUBJECT in tests/subjects/{name}.py"
        named = descriptor.operator
        assert named in DESCRIBED, f"{named} is missing; add it to {where}"
        assert DESCRIPTORS[named] is descriptor
