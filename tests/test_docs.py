"""The documentation says what the code does."""

import pathlib
import re

import dmljax
from benchmarks import ledger, tpu

ROOT = pathlib.Path(__file__).parent.parent


def test_the_figures_of_tpus_are_those_of_the_ledger() -> None:
    text = tpu.PAGE.read_text()
    assert tpu.page(text, ledger.read(ledger.path("TPU"))) == text


def test_every_public_name_is_documented() -> None:
    pages = "".join(p.read_text() for p in (ROOT / "docs").rglob("*.md"))
    documented = set(re.findall(r"auto\w+:: dmljax\.(\w+)", pages))
    assert documented == set(dmljax.__all__)


def prose(page: pathlib.Path) -> str:
    """The text of a page without its code, in which brackets are no links."""
    without_blocks = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    return re.sub(r"`[^`\n]+`", "code", without_blocks)


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    for page in pages:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose(page)):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_the_version_is_in_the_changelog_and_the_citation() -> None:
    assert f"## {dmljax.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"\nversion: {dmljax.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_gains_that_readme_names_are_those_of_the_ledger() -> None:
    rows = ledger.newest(ledger.read(ledger.path("NVIDIA H200")))

    def gains(operator: str, case: str, context: str) -> list[int]:
        return sorted(
            round(line["jnp"]["wall_ms"] / line["dmljax"]["wall_ms"])
            for key, line in rows.items()
            if (key[0], *key[2:]) == (operator, "forward", context)
            and re.fullmatch(case, key[1])
        )

    found = gains("nonzero_coordinates", r"float32 \(67108864,\), .*zero", "pipeline")
    padded = r"REFLECTION \(0, 0, 3, 3\) of float32 \(16, 64, 256, 256\)"
    readme, index = ((ROOT / f).read_text() for f in ("README.md", "docs/index.md"))
    assert (found[0], found[-1]) == (3, 29)
    assert all("takes 3 to 29 times as long" in text for text in (readme, index))
    assert gains("padding", padded, "alone") == [4]
    assert all("takes 4 times as long" in text for text in (readme, index))
