"""What a release promises: names, versions, metadata, and the checks before it."""

import importlib.metadata
import importlib.util
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import types
import zipfile
from unittest import mock

import pytest

import dmljax
from benchmarks import ledger, plot
from dmljax.__main__ import main
from dmljax._operators import OPERATORS
from docs import programs
from tests.project.texts import ROOT, TEXTS, section

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
    readme = re.search(r"documents them:\n(.*?)\. ", TEXTS["README.md"], re.S)
    assert names(functions) == names(readme[1]) <= set(OPERATORS)
    assert names(parts) == of_a_result | {"nonzero_coordinates"}
    news = section("CHANGELOG.md", "0.2.0 (unreleased)")
    _, one, two, three, *_ = news.split("\n- ")
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
    minors = [int(python[2:]) for python in pythons]
    assert minors == [*range(minors[0], minors[-1] + 1)]
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
    target = PROJECT["tool"]["ruff"]["target-version"]
    assert target == f"py3{minors[0]}"


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


def test_metadata():
    """Faults: another state or system than README names, or another licence."""
    (state,) = re.findall(r"dmljax is \*\*(\w+)\*\*", TEXTS["README.md"])
    (system,) = re.findall(r"^\| system \| .* \| (\w+) \|$", TEXTS["README.md"], re.M)
    classifiers = METADATA["classifiers"]
    assert f"Operating System :: POSIX :: {system}" in classifiers
    assert f"Development Status :: 4 - {state.title()}" in classifiers
    # The session `minimum` runs with these.
    names = [x.split(">=")[0] for x in METADATA["dependencies"]]
    assert names == ["jax", "jaxlib", "numpy", "chex"]
    for extra in re.findall(r"\"?[.]\[([\w,]+)\]", f"{NOXFILE}{RUN}{TEXTS.values()}"):
        assert {*extra.split(",")} <= METADATA["optional-dependencies"].keys()
    assert METADATA["scripts"] == {"dmljax": f"{main.__module__}:{main.__name__}"}
    assert f"\nlicense: {METADATA['license']}\n" in CITATION
    assert TEXTS["README.md"].endswith(f" {METADATA['license']}\n")


def test_commands_on_pages_exist():
    """Faults: README installs without an extra, or names a session that is lost."""
    for module in re.findall(r"python3? -m ([\w.]+)", "\n".join(TEXTS.values())):
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
    asked = re.findall(r"nox -s (\w+)", "\n".join(TEXTS.values()))
    assert {*asked} - {"NAME"} <= {*sessions}
    everywhere = {name for name, star in rows if not star}
    assert {*re.findall(r"^ {10}- (\w+)$", CHECKS, re.M)} == everywhere
    (legs,) = re.findall(r"^sessions=\((.*)\)", RUN, re.M)
    # `tests` is README's command, and `docs` is followed by `site`.
    assert {*legs.split(), "tests", "site"} == everywhere


def test_the_options_on_pages_exist(capsys):
    """Fault: a line says to write an option that does not exist."""
    gone = {"--max-memory", "--timing"}
    pages = "CHANGELOG.md", "SECURITY.md", "docs/model_files.md"
    named = re.findall(r"`(--[\w-]+)", " ".join(TEXTS[page] for page in pages))
    main(["run", "--help"])
    assert {*named} - gone <= {*re.findall(r"--[\w-]+", capsys.readouterr().out)}


def test_the_version_is_in_the_changelog_the_citation_and_commands():
    assert f"## {dmljax.__version__}" in TEXTS["CHANGELOG.md"]
    assert f"\nversion: {dmljax.__version__}\n" in CITATION
    tags = re.findall(r"\bv\d[\d.]*\d", f"{TEXTS['CONTRIBUTING.md']}{NOXFILE}{RELEASE}")
    assert len(tags) > 4
    assert {*tags} == {f"v{dmljax.__version__}"}


def test_addresses_agree():
    """Faults: an address of the project that no page has; an address without TLS."""
    for address in METADATA["urls"].values():
        assert f"({address})" in TEXTS["README.md"]
    assert re.findall(r"http://(?!localhost)\S+", "".join(TEXTS.values())) == []


# Lines that stay, without their indentation: dependencies, strictness, and triggers and
# rights of the workflows.
STAYS = {
    "pyproject.toml": """
requires = ["hatchling"]
build-backend = "hatchling.build"
readme = "README.md"
dynamic = ["version"]
path = "dmljax/__init__.py"
"Intended Audience :: Science/Research",
"Topic :: Scientific/Engineering",
"Typing :: Typed",
dependencies = ["jax>=0.9.0", "jaxlib>=0.9.0", "numpy>=2.0", "chex>=0.1.90"]
images = ["pillow>=10"]
test = ["dmljax[bench,images]", "pytest>=8", "pytest-xdist>=3", "hypothesis>=6.100", \
"flatbuffers>=24"]
bench = ["matplotlib>=3.8"]
clients = ["flax>=0.10", "optax>=0.2", "equinox>=0.13"]
converters = ["jax2onnx>=0.17", "onnx>=1.21"]
onnx = ["onnx>=1.16"]
compare = ["torch>=2.4"]
"sphinx>=8",
"furo>=2024.8",
"myst-parser>=4",
"sphinx-copybutton>=0.5",
site = ["dmljax[docs,test]", "selenium>=4.20"]
dev = ["dmljax[test,docs,clients,converters]", "nox>=2024.4", "ruff>=0.9", \
"mypy>=1.15", "pyright>=1.1.400"]
packages = ["dmljax"]
include = ["dmljax", "tests", "benchmarks", "docs", "noxfile.py", "*.md"]
testpaths = ["tests", "dmljax", "README.md"]
addopts = ["--doctest-modules", "--doctest-glob=README.md", \
"--import-mode=importlib", "-ra", "-m", "not slow"]
filterwarnings = ["error"]
xfail_strict = true
select = ["B", "C4", "D", "E", "F", "I", "N", "PIE", "PT", "RET", "RUF", "SIM", "UP"]
ignore = ["D105", "D107"]
"tests/*" = ["D"]
"benchmarks/*" = ["D"]
strict = true
files = ["dmljax", "benchmarks", "docs"]
module = ["chex.*", "docutils.*", "torch.*"]
""",
    "CITATION.cff": """
cff-version: 1.2.0
type: software
title: "dmljax: DirectML operators for JAX"
- name: "the dmljax authors"
""",
    ".github/workflows/checks.yml": """
branches: [main]
pull_request:
contents: read
fail-fast: false
- if: matrix.session == 'site'
- run: nox -s ${{ matrix.session }}
3.13
3.11
""",
    ".github/workflows/release.yml": """
tags: ["v*"]
contents: read
- run: nox -s wheel -- "$GITHUB_REF_NAME"
path: .nox/wheel/tmp/dist
include-hidden-files: true
if-no-files-found: error
needs: build
environment: pypi
id-token: write  # PyPI trusts this workflow, and there is no password
3.13
3.11
""",
    ".pre-commit-config.yaml": """
entry: ruff format --check .
entry: ruff check .
entry: mypy
""",
}


@pytest.mark.parametrize("path", STAYS)
def test_lines_stay(path):
    """Faults: a dependency or an option is lost; another branch, one more right."""
    lines = [line.strip() for line in (ROOT / path).read_text().split("\n")]
    assert {*STAYS[path].strip().split("\n")} - {*lines} == set()
    rights = filter(re.compile(": write|ignore_errors|-on-error").search, lines)
    assert {*rights} <= {*STAYS[path].split("\n")}


# SESSIONS

# What sessions run. POS are the arguments after `--`, and TMP is a session's folder.
LOWEST = " ".join(x.replace(">=", "==") for x in METADATA["dependencies"])
OPTIMIZED = "--xla_backend_optimization_level=3"
RUNS = f"""
minimum: install -e .[test] {LOWEST}
minimum: --dist worksteal -n auto tests/test_arguments.py
minimum: tests/directml tests/transforms --ignore=tests/test_nonzero_forms.py
minimum: POS
tests: install -e .[test]
tests: python -m pytest -q --dist worksteal -n auto POS
slow: install -e .[test,clients,converters]
slow: -n auto -m slow POS
newest: install -e .[test,onnx]
newest: -n auto --ignore=tests/transforms/test_results.py
newest: --ignore=tests/test_nonzero_forms.py
newest: tests/transforms/test_results.py tests/fuzz/test_doors.py -m  POS {OPTIMIZED}
lint: ruff format --check .
lint: ruff check .
lint: run mypy
lint: mypy --strict tests/client.py
lint: pyright tests/client.py tests/client_pyright.py
docs: sphinx-build -q -W -b html docs docs/_build/html
site: sphinx-build -q -W -b html docs docs/_build/html
site: tests/project/test_site.py tests/project/test_conf.py
wheel: python -m build --installer=uv --outdir=TMP/dist
wheel: twine check --strict TMP/dist/dmljax-1.whl TMP/dist/dmljax-1.tar.gz
wheel: --python=3.11 TMP/3.11
wheel: --python=3.13 TMP/3.13
wheel: --python TMP/3.11 TMP/dist/dmljax-1.whl {LOWEST}
wheel: chdir TMP
wheel: TMP/3.11/bin/python program.py
wheel: TMP/3.13/bin/dmljax --help
wheel: TMP/3.13/bin/python -c from docs import first_minute; first_minute.main(2**15)
fuzz: -m  --hypothesis-profile=long tests/fuzz POS
gpu: install -e .[test,clients] jax[cuda13]
gpu: -n 15 -m  -k not sanitizer POS {OPTIMIZED}
gpu: tests/transforms/test_runs_on_gpus.py -k sanitizer {OPTIMIZED}
tpu: install -e .[test] jax[tpu]
tpu: tests/transforms/test_compiled_for_tpus.py POS cpu
"""


@pytest.fixture
def noxfile(monkeypatch):
    """The module noxfile, also where nox is not installed. Sessions are functions."""
    nox = mock.MagicMock()
    nox.session.return_value = lambda function: function
    monkeypatch.setitem(sys.modules, "nox", nox)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(ROOT)
    for name in ("rmtree", "unpack_archive"):
        monkeypatch.setattr(shutil, name, lambda *_, **__: None)
    monkeypatch.setattr(shutil, "which", str)
    return types.SimpleNamespace(**runpy.run_path("noxfile.py"))


def recorded(session, folder, *posargs, files=(), licence="Apache-2.0", printed=None):
    """What a session installs and runs; it builds a wheel with these files."""
    (folder / "dist").mkdir(exist_ok=True)
    (folder / "dist/dmljax-1.tar.gz").touch()
    with zipfile.ZipFile(folder / "dist/dmljax-1.whl", "w") as archive:
        for name in files:
            archive.writestr(name, f"\nLicense-Expression: {licence}\n")
    nox = mock.MagicMock(posargs=[*posargs])
    nox.create_tmp.return_value = folder
    nox.run.return_value = printed or programs.shown(TEXTS["README.md"])
    session(nox)
    lines = []
    for name, words, options in nox.method_calls:
        words = name, *words, *options.get("env", {}).values()
        lines.append(" ".join(map(str, words)).replace(str(folder), "TMP"))
    return lines


def of_a_wheel():
    files = "METADATA RECORD WHEEL entry_points.txt licenses/LICENSE"
    names = {f"dmljax-1.dist-info/{name}" for name in files.split()}
    modules = (ROOT / "dmljax").rglob("*.py")
    return names | {"dmljax/py.typed", *(str(x.relative_to(ROOT)) for x in modules)}


@pytest.mark.parametrize("name", dict.fromkeys(re.findall(r"^\w+", RUNS, re.M)))
def test_what_a_session_installs_and_runs(name, noxfile, tmp_path):
    """Faults: the lowest versions, a flag, a folder or an argument is lost."""
    posargs = [] if name == "wheel" else ["POS"]
    session = getattr(noxfile, name)
    lines = recorded(session, tmp_path, *posargs, files=of_a_wheel())
    for words in re.findall(f"^{name}: (.*)", RUNS, re.M):
        assert any(words in line for line in lines), words
    assert [x for x in lines if x.startswith("skip")] == []
    (python,) = re.findall(rf"session\(python=(\w+)\)\ndef {name}\b", NOXFILE)
    assert python == ("NEWEST" if name == "newest" else "OLDEST")


def test_what_is_left_out_for_another_jax(noxfile):
    """Fault: tests of an operator, or of a whole folder, are left out."""
    left_out = {str(path) for path in noxfile.LEFT_OUT}
    assert not left_out & {f"tests/test_{name}.py" for name in OPERATORS}
    assert {x for x in left_out if x[-3:] != ".py"} == {"tests/pallas/gpu"}
    # Fault: errors of model files quote Python's, and only one Python sees them.
    assert not [x for x in left_out if "model" in x or "main" in x]


@pytest.mark.parametrize(
    ("wrong", "tag", "options"),
    [
        ("dmljax/py.typed", "v1", {}),
        ("tests/test_padding.py", "v1", {}),
        ("", "v", {}),
        ("", "v10", {}),
        ("", "v1", {"licence": "MIT"}),
        ("", "v1", {"printed": "other"}),
    ],
)
def test_a_wrong_wheel_is_an_error(wrong, tag, options, tmp_path, noxfile):
    """Faults: a wheel that lacks a file passes, or a part of a tag."""
    recorded(noxfile.wheel, tmp_path, "v1", files=of_a_wheel())
    files = of_a_wheel() ^ {wrong} - {""}
    with pytest.raises(AssertionError):
        recorded(noxfile.wheel, tmp_path, tag, files=files, **options)


def test_the_site_that_is_built_is_not_built_again(noxfile, tmp_path):
    record = recorded(noxfile.site, tmp_path, "built")
    assert not [line for line in record if "sphinx" in line]


# A program in place of each that .ci/run calls: it notes its call and its place, and
# makes what the script needs later.
STAND_IN = r"""#!/usr/bin/env bash
name=${0##*/} last=${*: -1} self=$(readlink -f "$0")
[[ $name == git ]] && mkdir -p "$last" && cp README.md "$last"
[[ " $* " == *" venv "* ]] && mkdir -p "$last/bin" &&
  for tool in pip nox uv python; do ln -sf "$self" "$last/bin/$tool"; done
[[ $name == python3.13 ]] && echo /newest && exit
[[ $name == nox && $* != *install-only* ]] && echo "12 passed, NOT RUN"
echo "${PWD##*/}: $0 $*" >> "$CALLS"
[[ " $* " != *" $FAILS "* ]]
"""
# README's commands, an environment that sessions share, and the sessions.
CALLED = """
clone: .venv/bin/python -m pytest -n auto --dist worksteal
clone: .venv/bin/python docs/first_minute.py
matrix: WORK/nox/bin/uv pip install --quiet --python WORK/shared -e .[dev,site]
matrix: WORK/nox/bin/nox --install-only -s newest docs minimum
matrix: WORK/nox/bin/nox -R -s newest -- -n 0
matrix: WORK/nox/bin/nox -R -s minimum -- -n 0
matrix: WORK/nox/bin/nox -R -s docs
matrix: WORK/nox/bin/nox -r -s wheel
matrix: WORK/nox/bin/nox --no-venv --no-install -s site -- built
matrix: WORK/nox/bin/nox --no-venv --no-install -s slow -- -n 0
matrix: WORK/nox/bin/nox --no-venv --no-install -s lint
"""


@pytest.mark.parametrize(
    "fails", ["", "docs/first_minute.py", "lint", "-s docs", "nox[uv]"]
)
def test_what_the_script_of_all_checks_runs(fails, tmp_path):
    """Faults: a session or a command is lost, or its failure."""
    (tmp_path / "home/.ci").mkdir(parents=True)
    for path in ("README.md", ".ci/run"):
        shutil.copy(ROOT / path, tmp_path / "home" / path)
    (tmp_path / "bin").mkdir()
    for name in ("git", "python3", "python3.13", "chromium", "chromedriver"):
        (tmp_path / "bin" / name).write_text(STAND_IN)
        (tmp_path / "bin" / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    environment |= dict.fromkeys(("HOME", "TMPDIR"), str(tmp_path))
    environment |= {"CALLS": str(tmp_path / "calls"), "FAILS": fails or "nothing"}
    command = ["bash", tmp_path / "home/.ci/run"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode == 0) == (fails == "")
    said = "\n12 passed, NOT RUN\n\nall legs: ", "\n84 passed, 0 failed\n"
    assert {words in done.stdout for words in said} == {fails == ""}
    calls = re.sub(rf"{tmp_path}/tmp\.\w+", "WORK", (tmp_path / "calls").read_text())
    if not fails:
        assert {*CALLED.strip().split("\n")} <= {*calls.split("\n")}
        assert not [*tmp_path.glob("tmp.*")]
