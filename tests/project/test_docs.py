"""The pages of the documentation are true: their examples, messages and tables."""

import doctest
import pathlib
import re

import jax
import pytest

import dmljax
from benchmarks import ledger
from dmljax.__main__ import main
from dmljax._operators import DESCRIPTORS, OPERATORS
from dmljax._padding import MODE_LEVELS

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


@pytest.mark.parametrize("name", OPERATORS)
def test_figures_about_cost_are_in_the_ledger(name):
    """Milliseconds with three digits, and shares with two."""
    text = (DOCS / "operators" / f"{name}.md").read_text()
    section = text.split("\n## Cost\n")[1].split("\n## ")[0]
    newest = ledger.newest(ledger.read(ledger.path("NVIDIA H200")))
    rows = [row for (operator, *_), row in newest.items() if operator == name]
    lines = [line for row in rows for line in row.values()]
    known = {f"{line['ms']:#.3g}" for line in lines}
    known |= {f"{line['share']:.2f}" for line in lines if line["share"] is not None}
    figures = set(re.findall(r"\b\d+\.\d+\b", section))
    assert bool(figures) == bool(lines)  # what was measured has figures, and no other
    assert figures <= known


def test_levels_that_add_nothing():
    text = (DOCS / "descriptors.md").read_text()
    empty = re.findall(r"^\| `(V\d_\d)` \| \w+ \| nothing \|$", text, re.MULTILINE)
    tables = [desc.support for desc in DESCRIPTORS.values()]
    levels = {level for table in tables for level in table} | set(MODE_LEVELS.values())
    assert set(empty) == {level.name for level in dmljax.FeatureLevel} - {
        level.name for level in levels
    }


CONSOLE = re.findall(
    r"^```console\n\$ dmljax (.+)\n([^$]*?)^```$",
    "".join(
        (DOCS / f"{name}.md").read_text() for name in ("command_line", "model_files")
    ),
    re.MULTILINE,
)


@pytest.fixture
def model_of_the_page(tmp_path, monkeypatch):
    """The file that docs/model_files.md shows, in the current directory."""
    page = (DOCS / "model_files.md").read_text()
    (text,) = re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
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
    assert capsys.readouterr().err in (DOCS / page).read_text()


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
    "is not a file": ("[1, 2, 3]", '{"sourcePath": "nothing.npy"}'),
}


def test_every_reason_for_a_refusal_has_an_edit():
    text = (DOCS / "how_to" / "errors.md").read_text()
    table = text.split("| the message says |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(.+?)` \|", table, re.MULTILINE) == list(REFUSED)


@pytest.mark.parametrize("message", REFUSED)
def test_a_model_is_refused_as_the_page_says(message, model_of_the_page, capsys):
    path = pathlib.Path("model.json")
    path.write_text(path.read_text().replace(*REFUSED[message], 1))
    assert main(["run", "--max-memory", "1M", "model.json"]) == 2
    parts = map(re.escape, message.split("..."))
    assert re.search(".*".join(parts), capsys.readouterr().err)


@pytest.mark.parametrize("verb", ["run", "examples", "support", "schema"])
def test_every_option_of_the_command_line_is_described(verb, capsys):
    assert main([verb, "--help"]) == 0
    options = set(re.findall(r"^  (--[\w-]+)", capsys.readouterr().out, re.MULTILINE))
    page = (DOCS / "command_line.md").read_text()
    section = page.split(f"\n## dmljax {verb}\n")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(--[\w-]+)", section, re.MULTILINE)) == options


def test_every_verb_of_the_command_line_is_described(capsys):
    assert main(["--help"]) == 0
    verbs = re.findall(r"^    (\w+) ", capsys.readouterr().out, re.MULTILINE)
    page = (DOCS / "command_line.md").read_text()
    assert re.findall(r"^## dmljax (\w+)$", page, re.MULTILINE) == verbs
