"""Every operator of the registry is complete.

A message names the missing part and its file. CONTRIBUTING.md has the recipe.
"""

import pytest

from dmljax._operators import DESCRIPTORS, OPERATORS
from tests.meshes import DOCS
from tests.subjects import DESCRIBED, SUBJECTS


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_has_all_it_needs(name):
    """The tests of pages and of sharding read the sections of its page."""
    assert (DOCS / f"operators/{name}.md").exists(), "the page is missing"
    where = f"missing in SUBJECT in tests/subjects/{name}.py: "
    assert name in SUBJECTS, where + "the file itself"
    for field in ("samples", "edges", "errors", "sharded"):
        assert getattr(SUBJECTS[name], field), f"{where}{field}="
    for descriptor in OPERATORS[name].descriptors:
        named = descriptor.operator
        assert named in DESCRIBED, f"{where}{named} in descriptors="
        assert DESCRIPTORS[named] is descriptor
