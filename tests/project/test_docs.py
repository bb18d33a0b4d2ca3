"""The documentation is true: examples, outputs, names and links."""

import contextlib
import doctest
import importlib
import os
import pathlib
import re
import subprocess
import sys
import tomllib
import zipfile

import jax
import numpy as np
import pytest
from PIL import Image

import dmljax
import dmljax.numpy
import dmljax.onnx
from dmljax.__main__ import main
from docs import first_minute, programs
from tests import compiling
from tests.project.texts import ROOT, TEXTS, section

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
def test_the_fragment_of_flax():
    """Fault: a fragment no longer runs."""
    nnx = pytest.importorskip("flax.nnx")
    page = TEXTS["docs/tutorials/network.md"]
    (block,) = re.findall(r"^```python\n(# Fragment, flax.*?)^```$", page, re.M | re.S)
    conv = nnx.Conv(1, 8, (3, 3), padding="VALID", rngs=nnx.Rngs(0))
    names = {"dml": dmljax, "conv": conv, "x": jax.numpy.ones((2, 4, 5, 1))}
    exec(block, names)
    assert names["y"].shape == (2, 4, 5, 8)


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
        # Fault: the borders are wrapped, not reflected.
        rows = np.asarray(picture)[:, 256:512].astype(int)
    assert (rows[:256] == rows[512:256:-1]).all()


@pytest.mark.slow
def test_the_first_minute_sees_a_wrong_result(folder, capsys, monkeypatch):
    """Fault: values or gradients are compared with themselves."""

    def wrong(mask, x, size):
        return dmljax.numpy.extract(mask, x, size=size) + 1

    monkeypatch.setattr(first_minute, "scatter", wrong)
    first_minute.main(2**15)
    lines = capsys.readouterr().out.splitlines()
    (line,) = (line for line in lines if line.startswith("jax.numpy, a scatter"))
    assert line.split()[-2:] == ["False", "False"]


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


def test_every_recipe_shows_what_it_prints():
    """Fault: a recipe prints nothing."""
    recipes = TEXTS["docs/recipes.md"].split("\n## ")[1:]
    assert [text.split("\n")[0] for text in recipes if not programs.shown(text)] == []


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


# WHAT STAYS, AND WHAT A RELEASE PROMISES


def test_what_stays_exists():
    """Fault: the section names what does not exist."""
    functions, parts, *_ = re.findall(
        r"^- (.*?)[;.]$", section("docs/start.md", "What stays"), re.M
    )
    parts = parts.replace("the result of `nonzero_coordinates`: ", "")
    kept = dmljax.nonzero_coordinates(jax.numpy.ones(3, bool), size=2)
    for owner, line in (dmljax, functions), (kept, parts):
        assert [x for x in re.findall(r"`(\w+)`", line) if not hasattr(owner, x)] == []


def test_the_versions_of_python_and_jax_agree():
    """Faults: another lowest Python on a page, a classifier that README lacks."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = "\n".join(project["classifiers"])
    pythons = re.findall(r"^Programming Language :: Python :: (3\..*)$", text, re.M)
    (jax_version,) = re.findall(r"'jax>=([\d.]+)'", str(project["dependencies"]))
    assert project["requires-python"] == f">={pythons[0]}"
    between = f"{pythons[0]} to {pythons[-1]}"
    stays = " ".join(section("docs/start.md", "What stays").split())
    assert f"runs with Python {between}, and with each JAX from {jax_version} " in stays
    python, jax_row = re.findall(r"^\| (?:Python|JAX) \|.*$", TEXTS["README.md"], re.M)
    assert f"| {between} |" in python
    assert f"| {jax_version} or later |" in jax_row
    assert set(re.findall(r"3\.\d+", python)) == set(pythons)


def test_a_release_is_checked():
    """Faults: another pattern of tags, or `nox -s wheel` without the tag."""
    text = (ROOT / ".github/workflows/release.yml").read_text()
    assert '\n    tags: ["v*"]\n' in text
    assert 'nox -s wheel -- "$GITHUB_REF_NAME"\n' in text
    assert "\n    needs: build\n" in text


def test_the_options_in_the_changelog_exist(capsys):
    """Fault: a line says to write an option that does not exist."""
    gone = {"--max-memory", "--timing"}
    named = set(re.findall(r"`(--[\w-]+)", TEXTS["CHANGELOG.md"]))
    main(["run", "--help"])
    assert named - gone <= set(re.findall(r"--[\w-]+", capsys.readouterr().out))


@pytest.mark.slow
@pytest.mark.parametrize("wrong", ["", "dmljax/py.typed", "tests/test_padding.py"])
def test_the_names_in_a_wheel_are_compared(wrong, tmp_path, monkeypatch):
    """Fault: a wheel that lacks a file passes."""
    pytest.importorskip("nox")
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(ROOT)
    noxfile = importlib.import_module("noxfile")
    info = "dmljax-1.dist-info"
    files = "METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"
    names = {"dmljax/py.typed", *(f"{info}/{name}" for name in files)}
    names |= {str(path.relative_to(ROOT)) for path in (ROOT / "dmljax").rglob("*.py")}
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        for name in names ^ {wrong} - {""}:
            archive.writestr(name, "\nLicense-Expression: Apache-2.0\n")
    error = pytest.raises(AssertionError) if wrong else contextlib.nullcontext()
    with error:
        noxfile.check_names(tmp_path / "a.whl", pathlib.Path("dmljax-1.tar.gz"))


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
