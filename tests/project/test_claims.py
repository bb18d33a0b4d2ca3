"""The sentences of the pages are true: claims.md quotes each with its proof."""

import doctest
import re

import pytest

from tests.project import test_recipes
from tests.project.test_docs import BLOCKS, FENCED
from tests.project.test_equivalents import ROW
from tests.project.texts import ROOT, TEXTS
from tests.subjects import SUBJECTS

REGISTER = (ROOT / "tests/project/claims.md").read_text()
NAMES, *SECTIONS = re.split("^## ", REGISTER, flags=re.M)
CLAIMS = dict(section.split("\n", 1) for section in SECTIONS)
pytestmark = pytest.mark.usefixtures("standard_promotion")


def quotes(page):
    """The sentences of a page that have a proof."""
    return re.findall(r"^> (.*)", CLAIMS.get(page, ""), re.M)


@pytest.mark.parametrize("page", CLAIMS)
def test_a_page_says_what_is_proved(page):
    """Faults: exchanged names, a wrong comparison, another figure in a sentence."""
    text = (ROOT / page).read_text()
    comments = "" if page.endswith(".md") else "^ *# "
    said = " ".join(re.sub(comments, "", text, flags=re.M).split())
    lost = [quote for quote in quotes(page) if quote not in said]
    assert lost == [], (
        "A sentence was changed: change its quote in tests/project/claims.md, "
        "and see that the examples below it prove the new one"
    )
    groups = re.split("(?:^> .*\n)+", CLAIMS[page], flags=re.M)[1:]
    assert all(">>>" in group for group in groups), "a quote without an example"


@pytest.mark.slow
@pytest.mark.parametrize("page", CLAIMS)
def test_proofs(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    parser = doctest.DocTestParser()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    names = {}
    for title, text in (("names", NAMES), (page, CLAIMS[page])):
        test = parser.get_doctest(text, names, title, "claims.md", 0)
        runner.run(test, clear_globs=False)
        names = test.globs
    assert runner.failures == 0


# These are no calls: names of help, of the index, and of the whole problem.
OPERATOR = re.compile(r"[=<>(\[]| [-+*/%] ")
NO_CALL = re.compile(r"help\(.*|x\[mask\]|alphabetical index .*")
OF_USERS = re.compile("README|CHANGELOG|docs/(?!models/|development/)")


def proved(page):
    """What quotes have, and what other tests run: examples, tables, and PROSE."""
    yield from quotes(page)
    for name, subject in SUBJECTS.items():
        signature = re.sub(", /(?=[,)])", "", subject.signature)
        yield f"`{name}{signature}`"
    yield from (f"`{' '.join(block.split())}`" for at, _, block in BLOCKS if at == page)
    yield from (f"`{code}`" for row in ROW.findall(TEXTS[page]) for code in row[:3])
    for case in test_recipes.CASES:
        at, _, _, prose, *_ = case.values
        said = " ".join(TEXTS[page].split())
        if at == page:
            for words in prose:
                yield from re.findall(f"{re.escape(words)} (`[^`]+`)", said)


@pytest.mark.parametrize("page", [*filter(OF_USERS.match, TEXTS)])
def test_code_in_a_sentence_has_a_proof(page):
    """Fault: other code in a sentence, which no test runs."""
    said = " ".join(FENCED.sub("", TEXTS[page]).split())
    codes = {code for code in re.findall("`([^`]+)`", said) if OPERATOR.search(code)}
    known = "\n".join(proved(page))
    lost = {code for code in codes if code not in known}
    assert {code for code in lost if not NO_CALL.fullmatch(code)} == set(), (
        "Quote the sentence in tests/project/claims.md, with examples that prove it"
    )
