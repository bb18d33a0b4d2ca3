"""The layout of the package: a page lists every file, and imports point down."""

import ast
import re
import sys

from dmljax._operators import OPERATORS
from tests.project.texts import ROOT, section

PACKAGE = ROOT / "dmljax"
SOURCES = {
    path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8")
    for path in PACKAGE.rglob("*.py")
}
TREES = {name: ast.parse(text) for name, text in SOURCES.items()}
PRINTING = {"_model/run.py", "__main__.py"}

# WHO IMPORTS WHOM


def room(name):
    """The folder of a file; "" for the files at the top."""
    return name.rpartition("/")[0]


def file_of(module):
    """The package's file for a dotted module name; None if there is none."""
    stem = "/".join(module.split(".")[1:])
    names = (f"{stem}.py", f"{stem}/__init__.py".removeprefix("/"))
    return next((name for name in names if name in SOURCES), None)


def modules_of(name):
    """The imports of a file, anywhere in it: pairs (module, imported name)."""
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)


def imported(name):
    """The package's files that a file imports."""
    own = [pair for pair in modules_of(name) if pair[0].split(".")[0] == "dmljax"]
    # A name that is no module belongs to the package or to the module.
    return {file_of(f"{module}.{part}") or file_of(module) for module, part in own}


ARROWS = [(name, other) for name in SOURCES for other in imported(name)]

# The files of the page's table from the top down, as patterns.
PAGE = "docs/development/design.md"
FILES = section(PAGE, "Files")
LINES = re.findall(r"^\| `([\w/*.<>]+)` \|", FILES, re.MULTILINE)
OF_OPERATORS = {f"_{operator}.py" for operator in OPERATORS}


def layer_of(name):
    """The line of the table for a file."""
    pattern = "_<operator>.py" if name in OF_OPERATORS else name
    found = [line for line in (pattern, f"{room(name)}/*.py") if line in LINES]
    assert found, f"{PAGE} has no line for {name} in its table of files"
    return LINES.index(found[0])


def test_every_file_is_in_the_table_and_every_line_has_a_file():
    assert set(map(layer_of, SOURCES)) == set(range(len(LINES)))


def test_imports_point_down():
    """A kernel evaluates formulas. An operator names its kernels, not the reverse."""
    upwards = [arrow for arrow in ARROWS if layer_of(arrow[1]) < layer_of(arrow[0])]
    assert upwards == []


def test_no_operator_imports_another():
    across = [arrow for arrow in ARROWS if OF_OPERATORS.issuperset(arrow)]
    assert across == []


# The files and rooms that import a room's files, beside the room itself.
ENTER = {
    "_directml": {"__init__.py", "__main__.py", "_operators.py", "_model"},
    "_model": {"__init__.py", "__main__.py"},
    "pallas": {"_primitive.py", "pallas/gpu", "pallas/tpu"},
    "pallas/gpu": OF_OPERATORS,
    "pallas/tpu": OF_OPERATORS,
}


def test_rooms_are_entered_by_few():
    assert {room(name) for name in SOURCES} - {""} == set(ENTER)
    for name, other in ARROWS:
        if room(other) and room(name) != room(other):
            assert ENTER[room(other)] & {name, room(name)}, f"{name} imports {other}"


def test_sources_import_nothing_but_the_dependencies():
    """The standard library, pillow and typing_extensions are allowed, too."""
    found = {module.split(".")[0] for name in SOURCES for module, _ in modules_of(name)}
    allowed = {"dmljax", "jax", "numpy", "chex", "PIL", "typing_extensions"}
    assert found - set(sys.stdlib_module_names) <= allowed


# WHO TESTS WHOM


def test_every_file_has_a_file_of_tests_and_every_file_of_tests_has_one():
    """For example, `_arguments.py` has `test_arguments.py`.

    The tests in fuzz/, project/ and transforms/ span several files. The test of a
    function, `test_padding.py`, also tests its descriptors.
    """
    files = set()
    described = {f"_directml/{operator}.py" for operator in OPERATORS}
    for name in SOURCES.keys() - described:
        *folders, stem = [part.strip("_") for part in name[:-3].split("/")]
        if stem != "init":
            files.add("/".join([*folders, f"test_{stem}.py"]))
    root = ROOT / "tests"
    tests = {path.relative_to(root).as_posix() for path in root.rglob("test_*.py")}
    spanning = {
        name for name in tests if room(name) in ("fuzz", "project", "transforms")
    }
    assert sorted(files ^ (tests - spanning)) == []


# CONTENTS OF FILES


def test_no_file_hides_an_import_in_a_string_or_reads_the_environment():
    """tests/test_jax.py tests the names of JAX in the files."""
    hidden = re.compile("import_module|__import__|os.environ|getenv")
    for name, text in SOURCES.items():
        if name == "_jax.py":  # this file imports modules of JAX that may be missing
            text = text.replace("return importlib.import_module(name)", "")
        assert not hidden.search(text), name


def test_only_models_print():
    for name, tree in TREES.items():
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert name in PRINTING or "print" not in names, name
