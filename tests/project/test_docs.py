"""The documentation is true: its examples, messages, tables, figures and links."""

import doctest
import pathlib
import re

import jax
import pytest

import dmljax
import dmljax.numpy
import dmljax.onnx
from benchmarks import ledger
from dmljax.__main__ import main
from dmljax._operators import DESCRIPTORS, OPERATORS
from dmljax._padding import MODE_LEVELS

ROOT = pathlib.Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
TEXTS = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (*ROOT.glob("*.md"), *DOCS.rglob("*.md"))
    if "_build" not in path.parts
}
# This page is an example for eight devices of the default kind.
FEW = pytest.mark.skipif(jax.device_count() < 8, reason="there are few devices")
EXAMPLES = [
    pytest.param(page, marks=FEW if page == "docs/sharding.md" else ())
    for page, text in TEXTS.items()
    if ">>>" in text and page.startswith("docs/")
]
H200 = ledger.lines("NVIDIA H200")


def section(page, heading):
    """The part of a page below a heading."""
    text = TEXTS[f"docs/{page}"]
    return text.split(f"\n## {heading}\n")[1].split("\n## ")[0]


# EXAMPLES


@pytest.fixture
def whole_messages():
    """JAX adds no note to errors. Doctest would take it for their message."""
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")
    yield
    jax.config.update("jax_traceback_filtering", before)


@pytest.mark.parametrize("page", EXAMPLES)
def test_examples_and_messages(page, whole_messages):
    failed, attempted = doctest.testfile(
        str(ROOT / page), module_relative=False, optionflags=doctest.ELLIPSIS
    )
    assert attempted
    assert not failed


TUTORIALS = [page for page in TEXTS if page.startswith("docs/tutorials/")]


@pytest.mark.parametrize("page", TUTORIALS)
def test_a_tutorial_can_be_copied_and_downloaded(page):
    """The build runs it in an empty folder, and can't notice these things."""
    code = "".join(re.findall(r"^```\{code-cell\}.*?^```", TEXTS[page], re.M | re.S))
    assert "import docs" not in code
    assert "from docs" not in code
    if code:
        name = pathlib.Path(page).stem
        offer = rf"\{{nb-download\}}`{name}.ipynb`. It takes about \d+ seconds"
        assert re.search(offer, TEXTS[page])


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
    row = rf"\| `{enum.__name__}` \|.*\n\|[-|]+\n((\|.*\n)+)"
    table = re.search(row, TEXTS[f"docs/{page}"])
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", table[1], re.MULTILINE)
    assert {name: int(number, 0) for name, number in rows} == {
        name: int(member) for name, member in enum.__members__.items()
    }


def test_levels_that_add_nothing():
    row = r"^\| `(V\d_\d)` \| \w+ \| nothing \|$"
    empty = re.findall(row, TEXTS["docs/descriptors.md"], re.MULTILINE)
    tables = [desc.support for desc in DESCRIPTORS.values()]
    levels = {level for table in tables for level in table} | set(MODE_LEVELS.values())
    assert set(empty) == {level.name for level in dmljax.FeatureLevel} - {
        level.name for level in levels
    }


CONSOLE = re.findall(
    r"^```console\n\$ dmljax (.+)\n([^$]*?)^```$",
    TEXTS["docs/command_line.md"] + TEXTS["docs/model_files.md"],
    re.MULTILINE,
)


@pytest.fixture
def model_of_the_page(tmp_path, monkeypatch):
    """The file that docs/model_files.md shows, in the current directory."""
    block = r"^```json\n(.*?)^```$"
    (text,) = re.findall(block, TEXTS["docs/model_files.md"], re.MULTILINE | re.DOTALL)
    (tmp_path / "model.json").write_text(text)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("arguments", "shown"), CONSOLE)
def test_commands_print_what_the_pages_show(
    arguments, shown, model_of_the_page, capsys
):
    assert main(arguments.split()) == 0
    printed = capsys.readouterr()
    assert printed.out + printed.err == shown


@pytest.mark.parametrize(
    ("page", "right", "wrong"),
    [
        ("model_files.md", '"EDGE"', '"EDGY"'),
        ("how_to/errors.md", '"EndPadding"', '"Foo": 3, "EndPadding"'),
    ],
)
def test_messages_about_models(page, right, wrong, model_of_the_page, capsys):
    path = pathlib.Path("model.json")
    path.write_text(path.read_text().replace(right, wrong))
    assert main(["run", "model.json"]) == 2
    assert capsys.readouterr().err in TEXTS[f"docs/{page}"]


# An edit of the page's model, and what the message then says, as errors.md explains it.
REFUSED = {
    "the type '...' is not an operator of dmljax": ("_PADDING", "_GEMM"),
    "has an unknown field": ('"EndPadding"', '"Foo": 3, "EndPadding"'),
    "it must be one of": ("EDGE", "EDGY"),
    "it is not JSON": ("{", ""),
    "mismatched tensor sizes": ('"Sizes": [5]', '"Sizes": [6]'),
    "feature level ... supports": ('"DataType": "FLOAT32"', '"DataType": "UINT4"'),
    "needs JAX's x64 mode": ("FLOAT32", "FLOAT64"),
    "it needs ... of memory": ("[1, 2, 3]", "[" + "1, " * 99999 + "1]"),
    "cannot be read: No such file": ("[1, 2, 3]", '{"sourcePath": "nothing.npy"}'),
}


def test_every_reason_for_a_refusal_has_an_edit():
    text = TEXTS["docs/how_to/errors.md"]
    table = text.split("| the message says |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(.+?)` \|", table, re.MULTILINE) == list(REFUSED)


@pytest.mark.parametrize("message", REFUSED)
def test_a_model_is_refused_as_the_page_says(message, model_of_the_page, capsys):
    path = pathlib.Path("model.json")
    path.write_text(path.read_text().replace(*REFUSED[message], 1))
    assert main(["run", "--max-memory", "1M", "model.json"]) == 2
    parts = map(re.escape, message.split("..."))
    assert re.search(".*".join(parts), capsys.readouterr().err)


@pytest.mark.parametrize("verb", ["run", "examples", "compare", "support", "schema"])
def test_every_option_of_the_command_line_is_described(verb, capsys):
    assert main([verb, "--help"]) == 0
    options = set(re.findall(r"^  (--[\w-]+)", capsys.readouterr().out, re.MULTILINE))
    text = section("command_line.md", f"dmljax {verb}")
    assert set(re.findall(r"^\| `(--[\w-]+)", text, re.MULTILINE)) == options


def test_every_verb_of_the_command_line_is_described(capsys):
    assert main(["--help"]) == 0
    verbs = re.findall(r"^    (\w+) ", capsys.readouterr().out, re.MULTILINE)
    text = TEXTS["docs/command_line.md"]
    assert re.findall(r"^## dmljax (\w+)$", text, re.MULTILINE) == verbs


# FIGURES


FIGURES = {
    **{f"operators/{name}.md": ("Cost", {name}) for name in OPERATORS},
    "tutorials/attention.md": ("The fastest spelling", set(OPERATORS)),
}


@pytest.mark.parametrize("page", FIGURES)
def test_figures_about_cost_are_in_the_ledger(page):
    """Milliseconds of wall time, with three digits."""
    heading, operators = FIGURES[page]
    found = [lines for (operator, *_), lines in H200.items() if operator in operators]
    lines = [line for by_contender in found for line in by_contender.values()]
    known = {format(line["wall_ms"], "#.3g") for line in lines if line["wall_ms"]}
    # Code has other numbers.
    text = re.sub(r"```.*?```|`[^`]+`", "", section(page, heading), flags=re.S)
    figures = set(re.findall(r"\b\d+\.\d+\b", text))
    assert figures
    assert figures <= known


GAINS = {
    "elements above a limit, float32 (67108864,)": "dmljax, jnp scatter, jnp, torch",
    "causal softmax, bfloat16 (8, 8, 1024, 1024)": "dmljax, jnp tril",
    "reflect padding between two operations, bfloat16 (16, 64, 256, 256)": (
        "dmljax, jnp"
    ),
}


@pytest.mark.parametrize("case", GAINS)
def test_the_gains_that_readme_names_are_those_of_the_ledger(case):
    (line,) = (found for key, found in H200.items() if case in key and "forward" in key)
    figures = (
        format(line[name]["wall_ms"], "#.3g") for name in GAINS[case].split(", ")
    )
    subject, claim = case.split(",")[0], r"\D*".join(map(re.escape, figures))
    claim = rf"(?i:{subject}) takes? {claim}\b"
    assert re.search(claim, " ".join(TEXTS["README.md"].split()))


# NAMES AND LINKS


def test_every_public_name_is_documented():
    text = "".join(TEXTS.values())
    documented = re.findall(r"auto(?!module)\w+:: dmljax\.(\w+)", text)
    assert set(documented) == set(dmljax.__all__)
    listed = re.findall(r"^ +dmljax\.([\w.]+)$", TEXTS["docs/reference/index.md"], re.M)
    doors = {
        f"{name}.{function}"
        for name, door in (("numpy", dmljax.numpy), ("onnx", dmljax.onnx))
        for function in door.__all__
    }
    assert set(listed) == {*dmljax.__all__, *doors} - {"Implementation"}


def test_links_between_pages_lead_somewhere():
    for page, text in TEXTS.items():
        # Brackets in code are no links.
        prose = re.sub(r"^```.*?^```$|`[^`\n]+`", "code", text, flags=re.M | re.S)
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
            place = (ROOT / page).parent / link
            # The build of the documentation draws these, and test_pictures tests them.
            built = place.parent.name == "pictures"
            assert built or place.exists(), f"{page} links to {link}"


def test_the_version_is_in_the_changelog_and_the_citation():
    assert f"## {dmljax.__version__}" in TEXTS["CHANGELOG.md"]
    assert f"\nversion: {dmljax.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_tests_of_transformations_exist():
    """Each row of the table has some, and each that it names is there."""
    rows = re.findall(r"^\| .*$", TEXTS["docs/transformations.md"], re.MULTILINE)[1:]
    sources = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    known = set(re.findall(r"^def (test_\w+)", sources, re.MULTILINE))
    for row in rows:
        named = re.findall(r"`(test_\w+)`", row)
        assert named, row
        assert set(named) <= known, row
