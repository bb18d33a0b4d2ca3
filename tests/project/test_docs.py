"""The documentation is true: examples, outputs, names and links."""

import doctest
import os
import re
import subprocess
import sys

import jax
import pytest
from PIL import Image

import dmljax
import dmljax.numpy
import dmljax.onnx
from dmljax.__main__ import main
from docs import first_minute, programs
from tests import compiling
from tests.project.texts import ROOT, TEXTS

# EXAMPLES

EXAMPLES = [
    page for page, text in TEXTS.items() if ">>>" in text and page.startswith("docs/")
]


@pytest.mark.parametrize("page", EXAMPLES)
def test_examples_and_messages(page):
    # An exported program is for the default platform, and must run there.
    device = None if page == "docs/how_to/export.md" else jax.devices("cpu")[0]
    with jax.default_device(device):
        failed, attempted = doctest.testfile(
            str(ROOT / page), module_relative=False, optionflags=doctest.ELLIPSIS
        )
    assert attempted
    assert not failed


LONG = re.compile("docs/(recipes|tutorials/)")
PROGRAMS = [
    pytest.param(page, marks=[pytest.mark.slow] if LONG.match(page) else [])
    for page, text in TEXTS.items()
    if programs.shown(text)
]


@pytest.mark.parametrize("page", PROGRAMS)
def test_a_program_prints_its_comments(page, tmp_path):
    """A reader copies all blocks of a page into a file, and runs it anywhere."""
    program = programs.program(TEXTS[page])
    for library in re.findall(r"^(?:import|from) (\w+)", program, re.MULTILINE):
        pytest.importorskip(library)
    file = tmp_path / "program.py"
    file.write_text(program)
    # Devices of the tests are not those of a reader. A tutorial asks for two.
    known = {"XLA_FLAGS": " ".join(compiling.FAST), "JAX_PLATFORMS": "cpu"}
    environment = os.environ | known | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, file]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.stdout == programs.shown(TEXTS[page])


@pytest.mark.slow
def test_the_first_minute(folder, capsys):
    """The script that README tries, with fewer numbers."""
    first_minute.main(2**15)
    lines = capsys.readouterr().out.splitlines()
    ways = [line for line in lines if line.endswith(("True", "False"))]
    assert len(ways) == 3
    # Values and gradients.
    assert all(line.split()[-2:] == ["True", "True"] for line in ways)
    assert len({len(line) for line in ways}) == 1
    with Image.open(folder / "reflection.png") as picture:
        assert picture.size == (768, 768)


def test_the_lines_to_onnx(folder):
    """An export, and then a call in the same process."""
    pytest.importorskip("jax2onnx")
    (block,) = re.findall(
        r"(import jax2onnx.*?)```", TEXTS["docs/how_to/export.md"], re.S
    )
    names = {"jax": jax, "jnp": jax.numpy, "dml": dmljax}
    exec(block, names)
    assert (folder / "attend.onnx").exists()
    assert names["attend"](jax.numpy.ones((4, 4)))[0].tolist() == [1, 0, 0, 0]


def test_every_tutorial_shows_what_it_prints():
    pages = {page for page in TEXTS if page.startswith("docs/tutorials/")}
    shown = {page for page in pages if programs.shown(TEXTS[page])}
    assert pages - shown == {"docs/tutorials/index.md"}


@pytest.mark.parametrize(
    ("enum", "page"),
    [
        (dmljax.PaddingMode, "docs/operators/padding.md"),
        (dmljax.DataType, "docs/descriptors.md"),
        (dmljax.TensorFlags, "docs/descriptors.md"),
        (dmljax.FeatureLevel, "docs/descriptors.md"),
    ],
)
def test_every_member_of_an_enum_is_in_its_table(enum, page):
    row = rf"\| `{enum.__name__}` \|.*\n\|[-|]+\n((\|.*\n)+)"
    table = re.search(row, TEXTS[page])
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", table[1], re.MULTILINE)
    shown = {name: int(number, 0) for name, number in rows}
    members = {name: int(member) for name, member in enum.__members__.items()}
    # These levels add nothing. A sentence names them.
    silent = {"V5_2", "V6_0", "V6_1", "V6_2", "V6_3"}
    assert shown == {n: members[n] for n in members if n not in silent}


CONSOLE = re.findall(
    r"^```console\n\$ dmljax (.+)\n([^$]*?)^```$",
    TEXTS["docs/model_files.md"],
    re.MULTILINE,
)


@pytest.fixture
def model_of_the_page(folder):
    """The file that docs/model_files.md shows, in the current directory."""
    block = r"^```json\n(.*?)^```$"
    (text,) = re.findall(block, TEXTS["docs/model_files.md"], re.MULTILINE | re.DOTALL)
    path = folder / "model.json"
    path.write_text(text)
    return path


@pytest.mark.usefixtures("model_of_the_page")
@pytest.mark.parametrize(("arguments", "shown"), CONSOLE)
def test_commands_print_the_output_on_the_pages(arguments, shown, capsys):
    assert main(arguments.split()) == 0
    printed = capsys.readouterr()
    assert printed.out + printed.err == shown


# NAMES AND LINKS


def test_every_public_name_is_documented():
    text = "".join(TEXTS.values())
    documented = re.findall(r"auto(?!module)\w+:: dmljax\.(\w+)", text)
    assert set(documented) == set(dmljax.__all__)
    listed = re.findall(r"^ +dmljax\.([\w.]+)$", TEXTS["docs/reference/index.md"], re.M)
    expected = set(dmljax.__all__) - {"Implementation"}
    expected |= {f"numpy.{name}" for name in dmljax.numpy.__all__}
    expected |= {f"onnx.{name}" for name in dmljax.onnx.__all__}
    assert set(listed) == expected


def test_links_between_pages_lead_somewhere():
    """Those to pictures as well: people read the pages on GitHub."""
    for page, text in TEXTS.items():
        # Brackets in code are no links.
        prose = re.sub(r"^```.*?^```$|`[^`\n]+`", "code", text, flags=re.M | re.S)
        for link, place in re.findall(r"\]\(([^)#:]*)#?([^):]*)\)", prose):
            path = (ROOT / page).parent / link if link else ROOT / page
            assert path.exists(), f"{page} links to {link}"
            if place:
                assert place in anchors(path.read_text()), f"{page}: {link}#{place}"


def anchors(text):
    """The anchors of a page on GitHub. On the site, Sphinx checks its own."""
    found = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in found}


def test_the_version_is_in_the_changelog_and_the_citation():
    assert f"## {dmljax.__version__}" in TEXTS["CHANGELOG.md"]
    assert f"\nversion: {dmljax.__version__}\n" in (ROOT / "CITATION.cff").read_text()
