"""What a release promises: names, versions, metadata, and the checks before it."""

import contextlib
import importlib.metadata
import importlib.util
import pathlib
import re
import tomllib
import zipfile

import pytest

import dmljax
import dmljax.numpy
import dmljax.onnx
from benchmarks import ledger, plot
from dmljax.__main__ import main
from dmljax._operators import OPERATORS
from tests.project.texts import ROOT, SOURCES, TEXTS, section

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
METADATA = PROJECT["project"]
FILES = "noxfile.py", ".ci/run", ".github/workflows/checks.yml", "CITATION.cff"
NOXFILE, RUN, CHECKS, CITATION = ((ROOT / name).read_text() for name in FILES)
RELEASE = (ROOT / ".github/workflows/release.yml").read_text()


def names(line):
    return set(re.findall(r"`(\w+)`", line))


def test_lists_of_names_are_complete():
    """Faults: a list of public names lacks one, or names what does not exist."""
    stays = section("docs/start.md", "What stays")
    functions, parts, *_ = re.findall(r"^- (.*?)[;.]$", stays, re.M)
    of_a_result = {x for x in dir(dmljax.NonzeroCoordinates) if x[0] != "_"} - {"index"}
    assert names(functions) == set(OPERATORS)
    assert names(parts) == of_a_result | {"nonzero_coordinates"}
    one, two, three, *_ = section("CHANGELOG.md", r"0.2.0 (unreleased)").split("\n- ")[
        1:
    ]
    assert names(one) == names(parts) - {"count", "coordinates"}
    assert names(two.split(".\n")[0]) >= set(dmljax.numpy.__all__)
    assert names(three) == set(dmljax.onnx.__all__)
    words = dict(enumerate(["eight", "nine", "ten"], 9))
    assert f"has {words[len(dmljax.numpy.__all__)]} of its fu" in TEXTS["README.md"]


def test_the_versions_of_python_and_jax_agree():
    """Faults: another lowest Python on a page, a classifier that README lacks."""
    text = "\n".join(METADATA["classifiers"])
    pythons = re.findall(r"^Programming Language :: Python :: (3\..*)$", text, re.M)
    jax_version, lib_version = re.findall(r"'jax(?:lib)?>=([\d.]+)'", str(METADATA))
    assert METADATA["requires-python"] == f">={pythons[0]}"
    assert lib_version == jax_version
    between = f"{pythons[0]} to {pythons[-1]}"
    stays = " ".join(section("docs/start.md", "What stays").split())
    assert f"runs with Python {between}, and with each JAX from {jax_version} " in stays
    assert f"\n- JAX from {jax_version} on.\n" in TEXTS["CHANGELOG.md"]
    python, jax_row = re.findall(r"^\| (?:Python|JAX) \|.*$", TEXTS["README.md"], re.M)
    assert f"| {between} |" in python
    assert f"| {jax_version} or later | {jax_version}, " in jax_row
    assert set(re.findall(r"3\.\d+", python)) == set(pythons)
    assert f'\nOLDEST, NEWEST = "{pythons[0]}", "{pythons[-1]}"\n' in NOXFILE
    for workflow in (CHECKS, RELEASE):
        assert re.findall(r"^ +(3\.\d+)$", workflow, re.M) == [pythons[-1], pythons[0]]
    assert (
        PROJECT["tool"]["ruff"]["target-version"] == f"py{pythons[0].replace('.', '')}"
    )


def test_sentences_have_the_figures_and_versions_of_the_ledger():
    """Faults: another digit or unit in a sentence, or another version of JAX."""
    jax_of = {
        name: {line["jax"] for line in ledger.read(device)}
        for name, device in (plot.GPUS | plot.CPUS).items()
    }
    readme = " ".join(TEXTS["README.md"].split())
    small, large = "CPU, 2 cores", "CPU, 16 cores"
    assert jax_of[large] == jax_of["H200"] == jax_of["H100"]
    (of_few,), (of_many,) = jax_of[small], jax_of[large]
    assert f"2 cores runs JAX `{of_few}`, the CPU of 16 cores" in readme
    assert f"and the NVIDIA H200 JAX `{of_many}`." in readme
    page = " ".join(TEXTS["docs/benchmarks.md"].split())
    assert f"16 cores run JAX {of_many}, the CPU of 2 cores JAX {of_few}." in page
    (row,) = re.findall(r"^\| JAX \|.*$", TEXTS["README.md"], re.M)
    assert f"{of_few}; {of_many} on GPUs" in row
    lines = [x for x in ledger.read("NVIDIA H200") if x["context"] == "program"]
    known = {plot._digits(x["wall_ms"]) for x in lines if x["direction"] == "forward"}
    figures = [
        figure
        for text in TEXTS.values()
        for paragraph in re.split(r"\n\n|\n- |\n\|", text)
        if re.search(r"\d ms\b", paragraph) and "an NVIDIA H200" in paragraph
        for figure in re.findall(r"\b0\.\d{3,4}\b", paragraph)
    ]
    assert len(figures) > 5
    assert set(figures) <= known


EXTRAS = """
images: pillow
test: dmljax pytest pytest-xdist hypothesis flatbuffers
bench: matplotlib
clients: flax optax equinox
converters: jax2onnx onnx
onnx: onnx
compare: torch
docs: dmljax sphinx furo myst-parser sphinx-copybutton
site: dmljax selenium
dev: dmljax nox ruff mypy pyright
"""


def test_metadata():
    """Faults: a dependency, an extra or a folder is lost, or another licence."""
    assert METADATA["readme"] == "README.md"
    assert "Typing :: Typed" in METADATA["classifiers"]
    written = METADATA["optional-dependencies"].items()
    found = "".join(
        f"{extra}: {' '.join(re.match(r'[a-z0-9-]+', x)[0] for x in needed)}\n"
        for extra, needed in written
    )
    assert found == EXTRAS[1:]
    assert "dmljax[bench,images]" in METADATA["optional-dependencies"]["test"]
    # The session `minimum` runs with these.
    jax_and_jaxlib, others = METADATA["dependencies"][:2], METADATA["dependencies"][2:]
    assert [x.split(">=")[0] for x in jax_and_jaxlib] == ["jax", "jaxlib"]
    assert others == ["numpy>=2.0", "chex>=0.1.90"]
    for extra in re.findall(r"\"?[.]\[([\w,]+)\]", f"{NOXFILE}{RUN}{TEXTS.values()}"):
        assert {*extra.split(",")} <= METADATA["optional-dependencies"].keys()
    assert METADATA["scripts"] == {"dmljax": f"{main.__module__}:{main.__name__}"}
    licence = METADATA["license"]
    assert f"\nlicense: {licence}\n" in CITATION
    assert TEXTS["README.md"].endswith(f" {licence}\n")
    assert (ROOT / METADATA["license-files"][0]).read_text().count("Apache License") > 1
    targets = PROJECT["tool"]["hatch"]["build"]["targets"]
    assert targets["wheel"] == {"packages": ["dmljax"]}
    sources = {
        path.relative_to(ROOT).parts[0] for path in SOURCES if path.suffix == ".py"
    }
    assert targets["sdist"] == {"include": [*targets["sdist"]["include"]]}
    assert {*targets["sdist"]["include"]} == {*sources, "*.md"}


def test_commands_on_pages_exist():
    """Faults: README installs without an extra, or names a session that is lost."""
    for text in TEXTS.values():
        for module in re.findall(r"python3? -m ([\w.]+)", text):
            assert importlib.util.find_spec(module) or module == "sphinx", module
    extras = importlib.metadata.metadata("jax").get_all("Provides-Extra")
    asked = re.findall(r"\bjax\[(\w+)\]", f"{NOXFILE}{TEXTS.values()}")
    assert {*asked} <= {*extras}
    _, first, tests = re.findall(r"pip install (.*)", TEXTS["README.md"])[-3:]
    assert first.startswith('".[images]" && .venv/bin/python docs/first_minute.py')
    assert tests.startswith(
        '--quiet -e ".[test]" && .venv/bin/python -m pytest -n auto'
    )
    sessions = re.findall(r"^@nox.session.*\ndef (\w+)", NOXFILE, re.M)
    rows = re.findall(
        r"^\| `(\w+)`(\*?) \|", section("CONTRIBUTING.md", "The matrix"), re.M
    )
    assert sorted(name for name, _ in rows) == sorted(sessions)
    asked = {
        name for text in TEXTS.values() for name in re.findall(r"nox -s (\w+)", text)
    }
    assert asked - {"NAME"} <= {*sessions}
    everywhere = {name for name, star in rows if not star}
    assert {*re.findall(r"^ {10}- (\w+)$", CHECKS, re.M)} == everywhere
    (legs,) = re.findall(r"^sessions=\((.*)\)", RUN, re.M)
    # `tests` is README's command, and `docs` is followed by `site`.
    assert {*legs.split(), "tests", "site"} == everywhere
    wheel = f"dmljax-{dmljax.__version__}-py3-none-any.whl"
    assert f"pip install {wheel}" in TEXTS["docs/start.md"]


@pytest.mark.parametrize(
    ("text", "strict"),
    [
        (NOXFILE, '"sphinx-build", "-q", "-W"'),
        (NOXFILE, "nox.options.error_on_missing_interpreters = True"),
        (NOXFILE, '"twine", "check", "--strict"'),
        (NOXFILE, '"ruff", "format", "--check"'),
        (NOXFILE, '"mypy", "--strict"'),
        (NOXFILE, '"program.py") == programs.shown(readme)'),
        (NOXFILE, "check_names(built, sources, *session.posargs)"),
        (RUN, "set -euo pipefail"),
        (CHECKS, "  pull_request:\n"),
        (RELEASE, "if-no-files-found: error"),
        (RELEASE, "environment: pypi\n    permissions:\n      id-token: write"),
        (RELEASE, "path: .nox/wheel/tmp/dist\n"),
    ],
)
def test_a_check_is_strict(text, strict):
    """Faults: a check that no longer fails."""
    assert strict in text
    # In .ci/run, the end of a process and a search for a note may fail.
    assert text.count("|| true") == (2 if text is RUN else 0)
    assert "continue-on-error" not in text


def test_warnings_fail_and_types_are_strict(pytestconfig):
    assert pytestconfig.getini("filterwarnings") == ["error"]
    assert pytestconfig.getini("xfail_strict")
    assert pytestconfig.getini("testpaths") == ["tests", "dmljax", "README.md"]
    assert PROJECT["tool"]["mypy"]["strict"]
    assert PROJECT["tool"]["mypy"]["files"] == ["dmljax", "benchmarks", "docs"]
    rules = ["B", "C4", "D", "E", "F", "I", "N", "PIE", "PT", "RET", "RUF", "SIM", "UP"]
    assert PROJECT["tool"]["ruff"]["lint"]["select"] == rules


def test_a_release_is_checked():
    """Faults: another pattern of tags, or `nox -s wheel` without the tag."""
    assert '\n    tags: ["v*"]\n' in RELEASE
    assert 'nox -s wheel -- "$GITHUB_REF_NAME"\n' in RELEASE
    assert "\n    needs: build\n" in RELEASE


def test_the_options_on_pages_exist(capsys):
    """Fault: a line says to write an option that does not exist."""
    gone = {"--max-memory", "--timing"}
    pages = "CHANGELOG.md", "SECURITY.md", "docs/model_files.md"
    texts = " ".join(TEXTS[page] for page in pages)
    named = set(re.findall(r"`(--[\w-]+)", texts))
    main(["run", "--help"])
    assert named - gone <= set(re.findall(r"--[\w-]+", capsys.readouterr().out))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "tag", "licence"),
    [
        ("", "", "Apache-2.0"),
        ("", "v1", "Apache-2.0"),
        ("dmljax/py.typed", "", "Apache-2.0"),
        ("tests/test_padding.py", "", "Apache-2.0"),
        ("", "v", "Apache-2.0"),
        ("", "v10", "Apache-2.0"),
        ("", "", "MIT"),
    ],
)
def test_the_names_in_a_wheel_are_compared(wrong, tag, licence, tmp_path, monkeypatch):
    """Faults: a wheel that lacks a file passes, or a part of a tag."""
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
            archive.writestr(name, f"\nLicense-Expression: {licence}\n")
    right = wrong == "" and tag in ("", "v1") and licence == "Apache-2.0"
    error = contextlib.nullcontext() if right else pytest.raises(AssertionError)
    with error:
        noxfile.check_names(tmp_path / "a.whl", pathlib.Path("dmljax-1.tar.gz"), tag)


def test_the_version_is_in_the_changelog_and_the_citation():
    assert f"## {dmljax.__version__}" in TEXTS["CHANGELOG.md"]
    assert f"\nversion: {dmljax.__version__}\n" in CITATION
