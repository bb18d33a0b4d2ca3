"""The documentation says what the code does."""

import pathlib
import re

import dmljax
from benchmarks import ledger, tpu
from dmljax._model_format import OPERATORS
from dmljax._support import support_markdown

ROOT = pathlib.Path(__file__).parent.parent


def test_the_support_page_is_made_from_the_tables() -> None:
    page = (ROOT / "docs" / "support.md").read_text()
    tables = [support_markdown(name, cls.support) for name, cls in OPERATORS.items()]
    assert page.split("\n\n", 2)[2].rstrip() == "\n\n".join(tables)


def test_the_figures_of_tpus_are_those_of_the_ledger() -> None:
    text = tpu.PAGE.read_text()
    assert tpu.page(text, ledger.read(ledger.path("TPU"))) == text


def test_every_public_name_is_documented() -> None:
    pages = "".join(p.read_text() for p in (ROOT / "docs").rglob("*.md"))
    documented = set(re.findall(r"auto\w+:: dmljax\.(\w+)", pages))
    assert documented == set(dmljax.__all__)


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_the_version_is_in_the_changelog() -> None:
    assert f"## {dmljax.__version__}" in (ROOT / "CHANGELOG.md").read_text()
