"""The generator of faults makes every kind of fault, and the runner tells the truth."""

import itertools
import re

import pytest

from tests.checks import python
from tests.mutants import generate, modules

NUMBERS = itertools.count()


@pytest.fixture
def made(monkeypatch, tmp_path):
    """Writes a module, and returns its name."""
    monkeypatch.setattr(generate, "ROOT", tmp_path)

    def write(source):
        name = f"snippet{next(NUMBERS)}"
        (tmp_path / f"{name}.py").write_text(source)
        return name

    return write


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        ("x = a == b", ["== -> !="]),
        ("x = a < b >= c", ["< -> <=", "< -> >=", ">= -> >", ">= -> <"]),
        ("x = a is not b", ["is not -> is"]),
        ("x = a in b", ["in -> not in"]),
        ("x = 3", ["3 -> 4", "3 -> 2"]),
        ("x = a[-1]", ["drop -", "1 -> 2", "1 -> 0"]),
        ("x = True", ["True -> False"]),
        ("x = a + b", ["+ -> -"]),
        ("x = a // b", ["// -> *"]),
        ("x = a << b", ["<< -> >>"]),
        ("x = a ^ b", ["^ -> &"]),
        ("x = a and b or c", ["or -> and", "and -> or"]),
        ("x = not a", ["drop not"]),
        ("def f(a) -> bool:\n    return g(a)", ["return not"]),
        ("x = min(a)", ["min -> max"]),
        ("x = jnp.maximum(a, b)", ["maximum -> minimum"]),
        ("x = all(a)", ["all -> any"]),
        ("x = a[:n]", ["drop upper", "upper + 1", "upper - 1"]),
        ("x = a[1:]", ["drop lower", "1 -> 2", "1 -> 0"]),
        ("if a:\n    b = c", ["if True", "if False"]),
        ("x = b if a else c", ["if True", "if False"]),
        ("x = [b for b in a if b]", ["if True", "if False"]),
        ("while a:\n    b = c", ["if False"]),
        ("x *= n", ["drop *=", "* -> //"]),
        ("check(a)", ["drop call"]),
        ("x = f(a, axis=n)", ["drop axis=", "axis - 1"]),
        ("x = f(a, keepdims=True)", ["drop keepdims=", "True -> False"]),
    ],
)
def test_kinds_of_faults(made, source, changes):
    faults = generate.faults(made(source))
    assert [fault.what for fault in faults] == changes
    assert all(fault.has_effect() for fault in faults)


@pytest.mark.parametrize(
    "source",
    [
        '"""Adds 1."""',
        "x: Literal[1] = a",
        "import a",
        "assert a > 1",
        "def f(a: Literal[1]) -> Literal[2]: pass",
        "__all__ = ['a', 'b']",
        "x = f'{a + 1}'",
        "x = 'a' + b",
        "raise E(1)",
        "x = int | None",
        "if TYPE_CHECKING:\n    x = 1",
        "x = zip(a, b, strict=True)",
        "@f\nclass A: b",
    ],
)
def test_what_has_no_part_in_a_result_is_not_changed(made, source):
    assert generate.faults(made(source)) == ()


def test_a_fault_is_in_the_code_and_not_in_the_file(made):
    name = made("def f():\n    x = 2\n\n    return [7, 8, 9][x]")
    more, less = (fault for fault in generate.faults(name) if fault.what[0] == "2")
    space = {}
    exec(less.code(), space)
    assert space["f"]() == 8
    exec(more.code(), space)
    with pytest.raises(IndexError) as error:
        space["f"]()
    assert error.traceback[-1].lineno + 1 == 4
    assert (less.scope, less.what) == ("f", "2 -> 1")
    assert less.diff() == "  -     x = 2\n  +     x = 1"


def test_faults_that_change_nothing_are_not_drawn(made, monkeypatch):
    name = made("x = -0")
    monkeypatch.setattr(modules, "modules", lambda names: [name])
    every = {fault.what for fault in generate.faults(name)}
    assert every == {"drop -", "0 -> 1", "0 -> -1"}
    drawn = {fault.what for fault in modules.drawn([name], 0, seed=0)}
    assert drawn == {"0 -> 1", "0 -> -1"}


def test_a_seed_draws_the_same_faults():
    first = [str(fault) for fault in modules.drawn(["_overlap"], 5, seed=1)]
    again = [str(fault) for fault in modules.drawn(["_overlap"], 5, seed=1)]
    other = [str(fault) for fault in modules.drawn(["_overlap"], 5, seed=2)]
    assert first == again != other
    assert len(first) == 5


# The runner, for a module of its own.
RUN = """
import pathlib, sys
from tests.mutants import generate
folder, *sys.argv[1:] = sys.argv[1:]
generate.ROOT = pathlib.Path(folder)
sys.path.insert(0, folder)
from tests.mutants import __main__ as runner
runner.PRELOADED = ()
runner.drawn = lambda *options: generate.faults("half")
runner.tests_of = lambda module: [f"{folder}/test_half.py"]
sys.exit(runner.main())
"""
# The runner asks for eight devices, as the first test may use JAX without a conftest.
SURVIVED = "import os\ndef test(): half(os.environ['XLA_FLAGS'].index('=8'))"


@pytest.mark.parametrize(
    ("test", "status", "told"),
    [
        ("def test():\n    assert half(4) == 2", 0, "caught by .*test_half.py::test\n"),
        (SURVIVED, 1, r"SURVIVED\n  - .* n // 2\n  \+ .* n \* 2\n"),
        ("def test():\n    assert half(4) == 9", 1, "fails without the fault"),
        ("assert half(4) == 2\ndef test(): pass", 0, r"3 caught \(3 by the import\)"),
        ("def test():\n    while half(4) != 2: pass", 0, "no end of .*::test\n"),
        ("import nothing", 1, "test_half.py can't be imported"),
    ],
    ids=["caught", "survivor", "not proved", "import", "no end", "no tests"],
)
def test_the_runner(tmp_path, test, status, told):
    (tmp_path / "half.py").write_text("def half(n):\n    return n // 2\n")
    (tmp_path / "test_half.py").write_text(f"from half import half\n{test}\n")
    options = ["--show", "--limit", "2", "--processes", "3"]
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "XLA_FLAGS": ""}
    done = python("-c", RUN, str(tmp_path), *options, **environment)
    assert re.search(told, done.stdout + done.stderr), done.stdout + done.stderr
    assert done.returncode == status


def test_faults_that_are_listed_as_equivalent_exist():
    for row in itertools.chain(*modules.EQUIVALENT.values()):
        found = []
        for module in modules.modules([row[0].replace(".", "/")]):
            every = generate.faults(module)
            found += [fault.what for fault in every if modules.matches(row, fault)]
        assert found, row
        assert row[2] in ("*", ", ".join(dict.fromkeys(found))), row


def test_every_module_and_every_file_of_tests_exists():
    for pattern, names in modules.COVERED.items():
        assert modules.modules([pattern])
        for name in names.split():
            assert any(modules.found_tests(name)), name
