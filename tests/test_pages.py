"""The pages of the documentation are true: their examples, messages and tables."""

import doctest
import pathlib
import re

import jax
import pytest

import dmljax

DOCS = pathlib.Path(__file__).parent.parent / "docs"
# The pages that pyproject.toml names run as doctests of their own.
PAGES = sorted(
    path
    for folder in ("operators", "how_to", "reference", "background", ".")
    for path in (DOCS / folder).glob("*.md")
    if ">>>" in path.read_text()
    and path.name not in ("sharding.md", "transformations.md")
)


@pytest.fixture
def whole_messages():
    """JAX adds no note to errors, which doctest would take for their message."""
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")
    yield
    jax.config.update("jax_traceback_filtering", before)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_and_messages(page, whole_messages):
    failed, attempted = doctest.testfile(
        str(page), module_relative=False, optionflags=doctest.ELLIPSIS
    )
    assert attempted
    assert not failed


@pytest.mark.parametrize(
    ("enum", "page"),
    [
        (dmljax.PaddingMode, "operators/padding.md"),
        (dmljax.DataType, "descriptors.md"),
        (dmljax.TensorFlags, "descriptors.md"),
        (dmljax.FeatureLevel, "descriptors.md"),
    ],
)
def test_every_member_of_an_enum_is_in_its_table(enum, page):
    text = (DOCS / page).read_text()
    table = re.search(rf"\| `{enum.__name__}` \|.*\n\|[-|]+\n((\|.*\n)+)", text)
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", table[1], re.MULTILINE)
    assert {name: int(number, 0) for name, number in rows} == {
        name: int(member) for name, member in enum.__members__.items()
    }
