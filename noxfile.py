"""The matrix: every environment in which dmljax is checked, and with which commands.

`nox -l` lists the sessions and `nox -s NAME` runs one, in an environment of its own.
`.ci/run` runs all but `fuzz`, `gpu` and `tpu`.
"""

import functools
import pathlib
import shutil
import sys
import tomllib
import zipfile

import nox

sys.path.insert(0, str(pathlib.Path(__file__).parent))  # nox does not look here
from docs import programs

nox.options.error_on_missing_interpreters = True
# uv installs from its cache in a second what takes pip twenty.
nox.options.default_venv_backend = "uv|virtualenv"

OLDEST, NEWEST = "3.11", "3.13"
PYTEST = ("python", "-m", "pytest", "-q", "--dist", "worksteal")
OPTIMIZED = {"XLA_FLAGS": "--xla_backend_optimization_level=3"}
SPHINX = ("sphinx-build", "-q", "-W", "-b", "html", "docs", "docs/_build/html")
# What the sessions `minimum` and `newest` leave out, since it depends neither on JAX
# nor on Python, or simulates kernels. Model files are not here: their errors quote
# Python's own, whose words change between versions. Single forms run in the session
# `tests`; test_results.py has each operator's definition, its divisible form and its
# form for CPUs.
LEFT_OUT = """
    test_nonzero_forms.py
    test_padding_forms.py
    pallas/gpu
    pallas/test_tpu.py
    project/test_benchmarks.py
    project/test_claims.py
    project/test_layout.py
    project/test_pictures.py
    project/test_release.py
    transforms/test_races.py
"""
LEFT_OUT = [pathlib.Path("tests", name) for name in LEFT_OUT.split()]


def lowest_versions() -> list[str]:
    """The lowest version that the project allows of each of its dependencies."""
    project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())["project"]
    pairs = [dependency.split(">=") for dependency in project["dependencies"]]
    return [f"{name}=={version}" for name, version in pairs]


def but_left_out() -> list[str]:
    """The options of pytest that leave out the tests of `LEFT_OUT`."""
    assert all(path.exists() for path in LEFT_OUT)
    return [f"--ignore={path}" for path in LEFT_OUT]


@nox.session(python=OLDEST)
def minimum(session: nox.Session) -> None:
    """The declared minimum of every dependency: the tests that depend on JAX's version.

    Model files, pages and tools have no tests here, except for the command: they call
    operators alone.
    """
    session.install("-e", ".[test]", *lowest_versions())
    files = sorted(map(str, {*pathlib.Path("tests").glob("test_*.py")} - {*LEFT_OUT}))
    folders = "tests/directml", "tests/transforms"
    paths = *files, *folders, *but_left_out()
    session.run(*PYTEST, "-n", "auto", *paths, *session.posargs)


@nox.session(python=OLDEST)
def tests(session: nox.Session) -> None:
    """The newest JAX that the oldest Python takes: the tests as README runs them."""
    session.install("-e", ".[test]")
    session.run(*PYTEST, "-n", "auto", *session.posargs)


@nox.session(python=OLDEST)
def slow(session: nox.Session) -> None:
    """The tests that README's command leaves out, and long programs of pages."""
    session.install("-e", ".[test,clients,converters]")
    session.run(*PYTEST, "-n", "auto", "-m", "slow", *session.posargs)


@nox.session(python=NEWEST)
def newest(session: nox.Session) -> None:
    """The newest Python and JAX: README's tests but `LEFT_OUT`.

    Results are those of programs that LLVM optimizes, as users have them. ONNX is for
    its own tests and for docs/how_to/onnx.md.
    """
    session.install("-e", ".[test,onnx]")
    session.run("python", "-c", "import jax, sys; print(sys.version, jax.__version__)")
    run = functools.partial(session.run, *PYTEST, "-n", "auto")
    results = "tests/transforms/test_results.py"
    run(f"--ignore={results}", *but_left_out(), *session.posargs)
    # jax.numpy differs between versions.
    run(results, "tests/fuzz/test_doors.py", "-m", "", *session.posargs, env=OPTIMIZED)


@nox.session(python=OLDEST)
def lint(session: nox.Session) -> None:
    """The format, the rules and the types."""
    session.install("-e", ".[dev]")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("mypy")
    # A client of the package, as type checkers see it.
    session.run("mypy", "--strict", "tests/client.py")
    session.run("pyright", "tests/client.py", "tests/client_pyright.py")


@nox.session(python=OLDEST)
def docs(session: nox.Session) -> None:
    """The documentation. A warning is an error."""
    session.install("-e", ".[docs]")
    session.run(*SPHINX)


@nox.session(python=OLDEST)
def site(session: nox.Session) -> None:
    """The pages in a browser: nothing is cut off, all is readable and found.

    `nox -s site -- built` tests the pages that the session `docs` has built.
    """
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            session.skip(f"NOT RUN: {program} is not installed; Debian has it")
    session.install("-e", ".[site]")
    if session.posargs != ["built"]:
        session.run(*SPHINX)
    files = "tests/project/test_site.py", "tests/project/test_conf.py"
    session.run(*PYTEST, "-n", "auto", *files)


@nox.session(python=OLDEST)
def wheel(session: nox.Session) -> None:
    """The files of a release. README's programs run with the wheel, and nothing else.

    `nox -s wheel -- v0.2.0` also compares the version with a tag. The files are in
    .nox/wheel/tmp/dist.
    """
    folder = pathlib.Path(session.create_tmp()).resolve()
    shutil.rmtree(folder / "dist", ignore_errors=True)
    session.install("build[uv]", "twine", "readme_renderer[md]")
    # We build the wheel from the archive of the sources: the archive must be complete.
    session.run("python", "-m", "build", "--installer=uv", f"--outdir={folder}/dist")
    (built,) = (folder / "dist").glob("*.whl")
    (sources,) = (folder / "dist").glob("*.tar.gz")
    session.run("twine", "check", "--strict", str(built), str(sources))
    check_names(built, sources, *session.posargs)
    readme = pathlib.Path("README.md").read_text()
    (folder / "program.py").write_text(programs.program(readme))
    # The script that README tries reads a photograph beside it.
    (folder / "docs" / "models").mkdir(parents=True, exist_ok=True)
    for path in ("docs/first_minute.py", "docs/models/astronaut.jpg"):
        shutil.copy(path, folder / path)
    for python, versions in ((OLDEST, lowest_versions()), (NEWEST, [])):
        place = folder / python
        session.run("uv", "venv", "--quiet", "--clear", f"--python={python}", place)
        install = "uv", "pip", "install", "--quiet", "--python", place
        session.run(*install, str(built), *versions)
        with session.chdir(folder):
            run = functools.partial(session.run, external=True, silent=True)
            assert run(f"{place}/bin/python", "program.py") == programs.shown(readme)
            run(f"{place}/bin/dmljax", "--help")
            session.run(*install, "pillow")
            # `.ci/run` runs README's command, with all numbers. Here are a few.
            few = "from docs import first_minute; first_minute.main(2**15)"
            run(f"{place}/bin/python", "-c", few)


def check_names(built: pathlib.Path, sources: pathlib.Path, tag: str = "") -> None:
    """Compares the names in a wheel with those of the sources, and their version."""
    version = sources.name.removeprefix("dmljax-").removesuffix(".tar.gz")
    assert tag in ("", f"v{version}"), f"{tag} is not the tag of {version}"
    package = {str(path) for path in pathlib.Path("dmljax").rglob("*.py")}
    info = f"dmljax-{version}.dist-info"
    files = "METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE"
    names = {"dmljax/py.typed", *package, *(f"{info}/{name}" for name in files)}
    with zipfile.ZipFile(built) as archive:
        assert set(archive.namelist()) == names, names ^ set(archive.namelist())
        metadata = archive.read(f"{info}/METADATA").decode()
    assert "\nLicense-Expression: Apache-2.0\n" in metadata


@nox.session(python=OLDEST)
def fuzz(session: nox.Session) -> None:
    """Random descriptors, models and calls, with new seeds."""
    session.install("-e", ".[test]")
    long = "--hypothesis-profile=long"
    session.run(*PYTEST, "-n", "auto", "-m", "", long, "tests/fuzz", *session.posargs)


@nox.session(python=OLDEST)
def gpu(session: nox.Session) -> None:
    """All tests on a machine with an NVIDIA GPU. It runs the kernels for real.

    With several GPUs, write `nox -s gpu -- -n 4`.
    """
    session.install("-e", ".[test,clients]", "jax[cuda13]")
    beside = "-n", "15", "-m", "", "-k", "not sanitizer"
    session.run(*PYTEST, *beside, *session.posargs, env=OPTIMIZED)
    # Beside other processes on the GPU, the sanitizer's tools crash or stand still.
    alone = "tests/transforms/test_runs_on_gpus.py", "-k", "sanitizer"
    session.run(*PYTEST, *alone, env=OPTIMIZED)


@nox.session(python=OLDEST)
def tpu(session: nox.Session) -> None:
    """The kernels for TPUs, compiled by libtpu. This needs no TPU."""
    session.install("-e", ".[test]", "jax[tpu]")
    platform = {"JAX_PLATFORMS": "cpu"}
    session.run(
        *PYTEST,
        "tests/transforms/test_compiled_for_tpus.py",
        *session.posargs,
        env=platform,
    )
