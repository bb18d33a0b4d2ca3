"""What a release promises: names, versions, metadata, and the checks before it."""

import contextlib
import importlib.metadata
import importlib.util
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import types
import zipfile

import pytest

import dmljax
import dmljax.numpy
import dmljax.onnx
from benchmarks import ledger, plot
from dmljax.__main__ import main
from dmljax._operators import OPERATORS
from docs import programs
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
    readme = re.search(r"documents them:\n(.*?)\. ", TEXTS["README.md"], re.S)
    assert names(functions) == names(readme[1]) <= set(OPERATORS)
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
images: pillow>=10
test: dmljax[bench,images] pytest>=8 pytest-xdist>=3 hypothesis>=6.100 flatbuffers>=24
bench: matplotlib>=3.8
clients: flax>=0.10 optax>=0.2 equinox>=0.13
converters: jax2onnx>=0.17 onnx>=1.21
onnx: onnx>=1.16
compare: torch>=2.4
docs: dmljax[bench] sphinx>=8 furo>=2024.8 myst-parser>=4 sphinx-copybutton>=0.5
site: dmljax[docs,test] selenium>=4.20
dev: dmljax[test,docs,clients,converters] nox>=2024.4 ruff>=0.9 mypy>=1.15 \
pyright>=1.1.400
"""


def test_metadata():
    """Faults: a dependency, an extra or a folder is lost, or another licence."""
    assert METADATA["readme"] == "README.md"
    assert "Typing :: Typed" in METADATA["classifiers"]
    # Faults: another state, system or audience than README names.
    (state,) = re.findall(r"dmljax is \*\*(\w+)\*\*", TEXTS["README.md"])
    (system,) = re.findall(r"^\| system \| .* \| (\w+) \|$", TEXTS["README.md"], re.M)
    others = [x for x in METADATA["classifiers"] if "Python" not in x]
    assert others == [
        f"Development Status :: 4 - {state.title()}",
        "Intended Audience :: Science/Research",
        f"Operating System :: POSIX :: {system}",
        "Topic :: Scientific/Engineering",
        "Typing :: Typed",
    ]
    written = METADATA["optional-dependencies"].items()
    found = "".join(f"{extra}: {' '.join(needed)}\n" for extra, needed in written)
    assert found == EXTRAS[1:]
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


def test_warnings_fail_and_types_are_strict(pytestconfig):
    assert pytestconfig.getini("filterwarnings") == ["error"]
    assert pytestconfig.getini("xfail_strict")
    assert pytestconfig.getini("testpaths") == ["tests", "dmljax", "README.md"]
    assert PROJECT["tool"]["mypy"]["strict"]
    assert PROJECT["tool"]["mypy"]["files"] == ["dmljax", "benchmarks", "docs"]
    rules = ["B", "C4", "D", "E", "F", "I", "N", "PIE", "PT", "RET", "RUF", "SIM", "UP"]
    assert PROJECT["tool"]["ruff"]["lint"]["select"] == rules


def test_the_options_on_pages_exist(capsys):
    """Fault: a line says to write an option that does not exist."""
    gone = {"--max-memory", "--timing"}
    pages = "CHANGELOG.md", "SECURITY.md", "docs/model_files.md"
    texts = " ".join(TEXTS[page] for page in pages)
    named = set(re.findall(r"`(--[\w-]+)", texts))
    main(["run", "--help"])
    assert named - gone <= set(re.findall(r"--[\w-]+", capsys.readouterr().out))


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
def test_the_names_in_a_wheel_are_compared(wrong, tag, licence, tmp_path, noxfile):
    """Faults: a wheel that lacks a file passes, or a part of a tag."""
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


def test_the_version_is_in_the_changelog_the_citation_and_commands():
    assert f"## {dmljax.__version__}" in TEXTS["CHANGELOG.md"]
    assert f"\nversion: {dmljax.__version__}\n" in CITATION
    tags = re.findall(r"\bv\d[\d.]*\d", f"{TEXTS['CONTRIBUTING.md']}{NOXFILE}{RELEASE}")
    assert len(tags) > 4
    assert {*tags} == {f"v{dmljax.__version__}"}


def test_the_citation_names_what_the_project_names():
    """Faults: another author, a keyword of another project, a lost field."""
    text = re.sub(r"^  - (?:name: )?", "- ", CITATION, flags=re.M)
    fields = dict(re.findall(r"^([\w-]+): *((?:.+|\n- .+)+)$", text, re.M))
    names = "cff-version message type title version license authors keywords"
    assert [*fields] == names.split()
    assert (fields["cff-version"], fields["type"]) == ("1.2.0", "software")
    assert "dmljax" in fields["message"]
    assert fields["title"] == '"dmljax: DirectML operators for JAX"'
    conf = (ROOT / "docs/conf.py").read_text()
    assert f"\nauthor = {fields['authors'].strip()[2:]}\n" in conf
    keywords = re.findall("- (.*)", fields["keywords"].lower())
    assert [x for x in keywords if x.split()[0] not in str(METADATA["keywords"])] == []


def test_addresses_agree():
    """Faults: an address of the project that no page has; an address without TLS."""
    pages = "".join(TEXTS.values())
    for address in METADATA["urls"].values():
        assert f"({address})" in TEXTS["README.md"]
    inventories = re.findall(r'"(https://.*)"', (ROOT / "docs/conf.py").read_text())
    assert inventories[0].startswith(METADATA["urls"]["JAX documentation"])
    assert re.findall(r"http://(?!localhost)\S+", pages) == []


def test_contributing_names_what_the_tools_have():
    """Faults: another count of processes, environment, path or optimization."""
    text = " ".join(TEXTS["CONTRIBUTING.md"].split())
    (processes,) = re.findall(r'"-n", "(\d+)"', NOXFILE)
    assert f"Choose `-n {processes}` for one GPU" in text
    assert f"JAX for Python {METADATA['requires-python'][2:]}: README's" in text
    (environment,) = re.findall("environment: (.*)", RELEASE)
    assert f"`release.yml` and the environment `{environment}`" in text
    (path,) = re.findall(r"path: (\..*)", RELEASE)
    assert f"builds and checks the files, in `{path}`" in text
    flag = "XLA_FLAGS=--xla_backend_optimization_level="
    (level,) = re.findall(r"optimization_level=(\d)", NOXFILE)
    assert re.findall(rf"{flag}(\d)", text) == [level]
    # Folders and files that code in sentences names.
    named = re.findall(r"`((?:tests|dmljax|docs|benchmarks|\.ci)/[\w./]*)`", text)
    new = {name for name in named if "tile" in name}
    assert [
        name for name in named if not (ROOT / name).exists() and name not in new
    ] == []


def test_tools_are_strict():
    """Faults: an option is lost, or an exception is wider."""
    own = PROJECT["tool"]["pytest"]["ini_options"]
    options = "--doctest-modules --doctest-glob=README.md --import-mode=importlib -ra"
    assert own["addopts"] == [*options.split(), "-m", "not slow"]
    assert own["doctest_optionflags"] == ["IGNORE_EXCEPTION_DETAIL"]
    assert own["pythonpath"] == ["."]
    assert [marker.split(":")[0] for marker in own["markers"]] == ["slow"]
    ruff = PROJECT["tool"]["ruff"]
    assert ruff["line-length"] == 88
    assert ruff["lint"]["ignore"] == ["D105", "D107"]
    assert ruff["lint"]["pydocstyle"] == {"convention": "google"}
    loose = ruff["lint"]["per-file-ignores"]
    assert loose == {"tests/*": ["D"], "benchmarks/*": ["D"]}
    assert PROJECT["tool"]["mypy"]["untyped_calls_exclude"] == ["jax", "ml_dtypes"]
    (override,) = PROJECT["tool"]["mypy"]["overrides"]
    modules = ["chex.*", "docutils.*", "torch.*"]
    assert override == {"module": modules, "ignore_missing_imports": True}
    # One source of the version; a build that needs no other program.
    assert METADATA["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"] == {"path": "dmljax/__init__.py"}
    backend = {"requires": ["hatchling"], "build-backend": "hatchling.build"}
    assert PROJECT["build-system"] == backend
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    ran = re.findall("entry: (.*)", hooks)
    assert {*ran} < {*SESSIONS["lint"].split("\n")}
    assert (
        len(ran) == hooks.count("- id: ") == hooks.count("pass_filenames: false") == 3
    )


# SESSIONS

# Each session of noxfile.py with its Python, and each command in `tests`, where the
# package "uv" creates a wheel. POS are the arguments after `--`.
PYTEST = "python -m pytest -q --dist worksteal -n"
OPTIMIZED = "XLA_FLAGS=--xla_backend_optimization_level=3"
SPHINX = "sphinx-build -q -W -b html docs docs/_build/html"
RESULTS = "tests/transforms/test_results.py"
IN_A_PLACE = """
uv venv --quiet --clear --python={python} TMP/{python}
uv pip install --quiet --python TMP/{python} TMP/dist/dmljax-1.whl{versions}
in TMP: TMP/{python}/bin/python program.py
in TMP: TMP/{python}/bin/dmljax --help
in TMP: uv pip install --quiet --python TMP/{python} pillow
in TMP: TMP/{python}/bin/python docs/first_minute.py
"""
LOWEST = "".join(f" {x.replace('>=', '==')}" for x in METADATA["dependencies"])
SESSIONS = {
    "minimum": f"""
3.11: install -e .[test]{LOWEST}
{PYTEST} auto FILES tests/directml tests/transforms LEFT_OUT POS
""",
    "tests": f"""
3.11: install -e .[test]
{PYTEST} auto POS
""",
    "slow": f"""
3.11: install -e .[test,clients,converters]
{PYTEST} auto -m slow POS
""",
    "newest": f"""
3.13: install -e .[test,onnx]
python -c import jax, sys; print(sys.version, jax.__version__)
{PYTEST} auto --ignore={RESULTS} LEFT_OUT POS
{OPTIMIZED} {PYTEST} auto {RESULTS} tests/fuzz/test_doors.py -m  POS
""",
    "lint": """
3.11: install -e .[dev]
ruff format --check .
ruff check .
mypy
mypy --strict tests/client.py
pyright tests/client.py tests/client_pyright.py
""",
    "docs": f"""
3.11: install -e .[docs]
{SPHINX}
""",
    "site": f"""
3.11: install -e .[site]
{SPHINX}
{PYTEST} auto tests/project/test_site.py tests/project/test_conf.py
""",
    "wheel": f"""
3.11: install build[uv] twine readme_renderer[md]
python -m build --installer=uv --outdir=TMP/dist
twine check --strict TMP/dist/dmljax-1.whl TMP/dist/dmljax-1.tar.gz
check_names TMP/dist/dmljax-1.whl TMP/dist/dmljax-1.tar.gz POS
{IN_A_PLACE.format(python="3.11", versions=LOWEST).strip()}
{IN_A_PLACE.format(python="3.13", versions="").strip()}
""",
    "fuzz": f"""
3.11: install -e .[test]
{PYTEST} auto -m  --hypothesis-profile=long tests/fuzz POS
""",
    "libraries": f"""
3.11: install -e .[test] pip optax PyWavelets scipy
in TMP: PYTHONPATH={ROOT} python -m pytest -q -p tests.libraries -c /dev/null \
--pyargs optax.losses._classification_test optax.losses._fenchel_young_test
in TMP: python -m pip download --no-deps --no-binary=:all: jaxwt==0.1.1
in TMP/jaxwt-0.1.1: PYTHONPATH={ROOT} python -m pytest -q -p tests.libraries \
tests/test_swt.py tests/test_packets.py
""",
    "gpu": f"""
3.11: install -e .[test,clients] jax[cuda13]
{OPTIMIZED} {PYTEST} 15 -m  -k not sanitizer POS
{OPTIMIZED} {PYTEST[:-3]} tests/transforms/test_runs_on_gpus.py -k sanitizer
""",
    "tpu": f"""
3.11: install -e .[test] jax[tpu]
JAX_PLATFORMS=cpu {PYTEST[:-3]} tests/transforms/test_compiled_for_tpus.py POS
""",
}


class Session:
    """A session of nox that writes down its commands in place of running them."""

    def __init__(self, folder, *posargs, printed):
        self.folder, self.posargs, self.printed = folder, [*posargs], printed
        self.place, self.lines = "", []

    def note(self, *words, env=None):
        pairs = [f"{name}={value}" for name, value in (env or {}).items()]
        line = self.place + " ".join([*pairs, *map(str, words)])
        self.lines.append(line.replace(str(self.folder), "TMP"))

    def install(self, *words):
        self.note("install", *words)

    def run(self, *words, env=None, external=False, silent=False):
        self.note(*words, env=env)
        if "build" in words:
            (self.folder / "dist").mkdir()
            for suffix in (".whl", ".tar.gz"):
                (self.folder / "dist" / f"dmljax-1{suffix}").touch()
        # Programs that exist in the environment's folder are not installed by nox.
        assert external == words[0].startswith(str(self.folder)) or words[0] == "uv"
        return self.printed if silent else None

    def create_tmp(self):
        return str(self.folder)

    def skip(self, reason):
        pytest.fail(reason)

    @contextlib.contextmanager
    def chdir(self, folder):
        self.place = f"in {folder}: "
        yield
        self.place = ""


@pytest.fixture
def noxfile(monkeypatch):
    """The module noxfile, also where nox is not installed. Sessions are functions."""
    nox = types.ModuleType("nox")
    nox.options, nox.Session = types.SimpleNamespace(), Session
    pythons = nox.pythons = {}

    def session(*, python):
        return lambda function: (
            pythons.setdefault(function.__name__, python) and function
        )

    nox.session = session
    monkeypatch.setitem(sys.modules, "nox", nox)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(ROOT)
    return types.SimpleNamespace(**runpy.run_path("noxfile.py"))


def session_of(noxfile, name, session, monkeypatch):
    """The record of a session."""
    function = getattr(noxfile, name)
    instead = {"check_names": lambda *words: session.note("check_names", *words)}
    instead["shutil"] = types.SimpleNamespace(
        which=lambda program: program,
        rmtree=lambda *_, **__: None,
        copy=shutil.copy,
        unpack_archive=lambda name: None,
    )
    for key, value in instead.items():
        monkeypatch.setitem(function.__globals__, key, value)
    function(session)
    left_out = noxfile.but_left_out()
    files = (f"tests/{path.name}" for path in sorted((ROOT / "tests").glob("test_*")))
    files = [file for file in files if f"--ignore={file}" not in left_out]
    text = "\n".join(session.lines).replace(" ".join(left_out), "LEFT_OUT")
    return f"{noxfile.nox.pythons[name]}: {text}".replace(" ".join(files), "FILES")


def test_every_session_is_in_the_record(noxfile):
    assert noxfile.nox.pythons.keys() == SESSIONS.keys()
    # Fault: tests of an operator, or of a whole folder, are left out.
    left_out = {path.relative_to("tests") for path in noxfile.LEFT_OUT}
    of_operators = {x for x in left_out if x.parts[0] not in ("model", "project")}
    expected = "test_main.py test_nonzero_forms.py test_padding_forms.py pallas/gpu \
        pallas/test_tpu.py transforms/test_lockstep.py transforms/test_races.py"
    assert of_operators == {pathlib.Path(x) for x in expected.split()}
    assert all(x.name.startswith("test_") for x in left_out - of_operators)
    options = {"error_on_missing_interpreters": True}
    options |= {"default_venv_backend": "uv|virtualenv"}
    assert vars(noxfile.nox.options) == options


@pytest.mark.parametrize("name", SESSIONS)
def test_what_a_session_installs_and_runs(name, noxfile, tmp_path, monkeypatch):
    """Faults: the lowest versions, a flag, a folder or an argument is lost."""
    printed = programs.shown(TEXTS["README.md"])
    session = Session(tmp_path, "POS", printed=printed)
    record = session_of(noxfile, name, session, monkeypatch)
    assert record == SESSIONS[name].strip()
    if name == "wheel":
        program = programs.program(TEXTS["README.md"])
        assert (tmp_path / "program.py").read_text() == program
        for path in ("docs/first_minute.py", "docs/models/astronaut.jpg"):
            assert (tmp_path / path).read_bytes() == (ROOT / path).read_bytes()
        shutil.rmtree(tmp_path / "dist")
        with pytest.raises(AssertionError):
            noxfile.wheel(Session(tmp_path, printed=f"{printed}1"))


def test_the_site_that_is_built_is_not_built_again(noxfile, tmp_path, monkeypatch):
    session = Session(tmp_path, "built", printed="")
    record = session_of(noxfile, "site", session, monkeypatch)
    assert record == SESSIONS["site"].replace(f"{SPHINX}\n", "").strip()


# A program in place of each that .ci/run calls: it notes its call and its place, and
# makes what the script needs later.
STAND_IN = r"""#!/usr/bin/env bash
name=${0##*/} last=${*: -1} self=$(readlink -f "$0")
[[ $name == git ]] && mkdir -p "$last" && cp README.md "$last"
[[ " $* " == *" venv "* ]] && mkdir -p "$last/bin" &&
  for tool in pip nox uv python; do ln -sf "$self" "$last/bin/$tool"; done
[[ $name == python3.13 ]] && echo /newest && exit
[[ $name == nox && $* != *install-only* ]] && echo "12 passed, NOT RUN"
echo "${PWD##*/}: ${PATH%%:*} $0 $*" >> "$CALLS"
[[ " $* " != *" $FAILS "* ]]
"""
# README's commands; an environment for nox, and one that sessions share; the sessions.
CALLED = """
: BIN BIN/git clone --quiet . WORK/clone
: BIN BIN/git clone --quiet . WORK/matrix
clone: BIN .venv/bin/pip install --quiet -e .[test]
clone: BIN .venv/bin/python -m pytest -n auto --dist worksteal
clone: BIN .venv/bin/pip install .[images]
clone: BIN .venv/bin/python docs/first_minute.py
clone: BIN BIN/python3 -m venv .venv
clone: BIN BIN/python3 -m venv .venv
: BIN BIN/python3 -m venv WORK/nox
: BIN WORK/nox/bin/pip install --quiet nox[uv]
matrix: BIN WORK/nox/bin/uv venv --quiet --python 3.11 WORK/shared
matrix: BIN WORK/nox/bin/uv pip install --quiet --python WORK/shared -e .[dev,site]
matrix: /newest WORK/nox/bin/nox --install-only -s newest docs minimum
matrix: /newest WORK/nox/bin/nox -R -s newest -- -n 0
matrix: /newest WORK/nox/bin/nox -R -s minimum -- -n 0
matrix: /newest WORK/nox/bin/nox -R -s docs
matrix: /newest WORK/nox/bin/nox -r -s wheel
matrix: WORK/shared/bin WORK/nox/bin/nox --no-venv --no-install -s site -- built
matrix: WORK/shared/bin WORK/nox/bin/nox --no-venv --no-install -s slow -- -n 0
matrix: WORK/shared/bin WORK/nox/bin/nox --no-venv --no-install -s lint
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
    environment |= {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    environment |= {"CALLS": str(tmp_path / "calls"), "FAILS": fails or "nothing"}
    command = ["bash", tmp_path / "home/.ci/run"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode == 0) == (fails == "")
    assert ("\n12 passed, NOT RUN\n\nall legs: " in done.stdout) == (fails == "")
    assert ("\n84 passed, 0 failed\n" in done.stdout) == (fails == "")
    calls = (tmp_path / "calls").read_text().replace(f"{tmp_path}/bin", "BIN")
    calls = re.sub(rf"{tmp_path}/tmp\.\w+", "WORK", calls).replace("home:", ":")
    if not fails:
        assert sorted(calls.splitlines()) == sorted(CALLED.strip().splitlines())
        assert not [*tmp_path.glob("tmp.*")]


def extras(*names):
    """The packages of extras, also of those that they name."""
    for name in names:
        for package in METADATA["optional-dependencies"][name]:
            inner = re.match(r"dmljax\[(.*)\]", package)
            yield from extras(*inner[1].split(",")) if inner else [package]


def test_the_environment_that_sessions_share_has_their_packages():
    (shared,) = re.findall(r"-e \.\[(.*)\]\n.*install-only", CALLED)
    for name in re.findall(r"--no-install -s (\w+)", CALLED):
        (asked,) = re.findall(r"install -e \.\[(.*)\]", SESSIONS[name])
        assert {*extras(*asked.split(","))} <= {*extras(*shared.split(","))}


# WORKFLOWS


def lines_of(workflow):
    """The lines of a workflow below their keys: `on push branches: [main]`."""
    above = {}
    for line in re.sub(r"^ *#.*\n|  #.*", "", workflow, flags=re.M).splitlines():
        text = line.lstrip(" -")
        indent = len(line) - len(text)
        above = {width: key for width, key in above.items() if width < indent}
        if not re.search(r"(?<!pull_request):( \|)?$", text):
            yield " ".join([*above.values(), text])
        above[indent] = text.partition(":")[0]


# JOB stands for `jobs check` and `jobs build`.
SET_UP = """
JOB runs-on: ubuntu-latest
JOB steps uses: actions/checkout@v4
JOB steps uses: actions/setup-python@v5
JOB steps with python-version 3.13
JOB steps with python-version 3.11
JOB steps run: python -m pip install 'nox[uv]'
"""
OF_CHECKS = """
name: checks
on push branches: [main]
on pull_request:
permissions contents: read
JOB strategy fail-fast: false
JOB steps if: matrix.session == 'site'
JOB steps run: sudo ln -s "$(command -v google-chrome)" /usr/local/bin/chromium
JOB steps run: nox -s ${{ matrix.session }}
"""
OF_RELEASE = """
name: release
on push tags: ["v*"]
permissions contents: read
JOB steps run: nox -s wheel -- "$GITHUB_REF_NAME"
JOB steps uses: actions/upload-artifact@v4
JOB steps with name: dist
JOB steps with path: .nox/wheel/tmp/dist
JOB steps with include-hidden-files: true
JOB steps with if-no-files-found: error
jobs publish needs: build
jobs publish runs-on: ubuntu-latest
jobs publish environment: pypi
jobs publish permissions id-token: write
jobs publish steps uses: actions/download-artifact@v4
jobs publish steps with name: dist
jobs publish steps with path: dist
jobs publish steps uses: pypa/gh-action-pypi-publish@release/v1
"""


@pytest.mark.parametrize(
    ("workflow", "job", "own"),
    [(CHECKS, "jobs check", OF_CHECKS), (RELEASE, "jobs build", OF_RELEASE)],
)
def test_what_a_workflow_runs(workflow, job, own):
    """Faults: another branch, another tag, a wider permission, an older Python."""
    lines = [line for line in lines_of(workflow) if "matrix session" not in line]
    expected = f"{SET_UP}{own}".replace("JOB", job).split("\n")
    assert sorted(lines) == sorted(filter(None, expected))
