"""The layout of the package: docs/design.md has every file, and imports point down."""

import ast
import pathlib
import re

import dmljax
from dmljax._operators import OPERATORS

PACKAGE = pathlib.Path(dmljax.__file__).parent
DESIGN = pathlib.Path(__file__).parent.parent / "docs" / "design.md"
SOURCES = {str(path.relative_to(PACKAGE)): path for path in PACKAGE.rglob("*.py")}
MOST_LINES = 410


def layers():
    """The files of the page's table from the top down, as patterns."""
    table = DESIGN.read_text().split("\n## Files\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `([\w/*.<>]+)` \|", table, re.MULTILINE)


def stands_for(pattern, name):
    """Whether a pattern of the table stands for a file."""
    patterns = [pattern.replace("<operator>", operator) for operator in OPERATORS]
    same_folder = pattern.count("/") == name.count("/")
    return same_folder and any(map(pathlib.PurePath(name).match, patterns))


def operator_of(name):
    """The operator whose file this is; None if it is no operator's."""
    patterns = [pattern for pattern in layers() if "<operator>" in pattern]
    for operator in OPERATORS:
        if name in [pattern.replace("<operator>", operator) for pattern in patterns]:
            return operator
    return None


def layer_of(name):
    """The first line of the table that speaks of a file."""
    found = [i for i, p in enumerate(layers()) if stands_for(p, name)]
    assert found, f"docs/design.md has no line for {name} in its table of files"
    return found[0]


def file_of(module):
    """The file of a module of the package by its dotted name; None if there is none."""
    stem = "/".join(module.split(".")[1:])
    for name in (f"{stem}.py", f"{stem}/__init__.py".removeprefix("/")):
        if name in SOURCES:
            return name
    return None


def imported(path):
    """The files of the package that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {
                file_of(alias.name)
                for alias in node.names
                if alias.name[:6] == "dmljax"
            }
        elif isinstance(node, ast.ImportFrom) and node.module.startswith("dmljax"):
            modules = [file_of(f"{node.module}.{alias.name}") for alias in node.names]
            # A name that is no module is one of the package's, or of the module's.
            found |= {module or file_of(node.module) for module in modules}
    return found


def test_every_file_is_in_the_table_and_every_line_has_a_file():
    names = {layer_of(name) for name in SOURCES}
    assert names == set(range(len(layers())))


def test_imports_point_down():
    upwards = [
        f"{name} imports {other}"
        for name, path in SOURCES.items()
        for other in imported(path)
        if layer_of(other) < layer_of(name)
    ]
    assert upwards == []


def test_no_operator_imports_another():
    for name, path in SOURCES.items():
        others = {operator_of(other) for other in imported(path)} - {None}
        if operator_of(name):
            assert others <= {operator_of(name)}, name


def test_no_import_is_hidden_in_a_string():
    for name, path in SOURCES.items():
        text = path.read_text()
        if name == "_jax.py":  # which imports modules of JAX that may be missing
            text = text.replace("return importlib.import_module(name)", "")
        assert "import_module" not in text, name
        assert "__import__" not in text, name


def test_undocumented_names_are_read_in_one_file():
    for name, path in SOURCES.items():
        text = path.read_text()
        assert "jax._src" not in text, name
        if name != "_jax.py":
            for word in (
                "module_context",
                "manual_axis_type",
                "axis_context",
                "opaque",
            ):
                assert word not in text, f"{name} has {word}"


def test_no_file_is_long():
    lengths = {name: path.read_text().count("\n") for name, path in SOURCES.items()}
    assert {n: lines for n, lines in lengths.items() if lines > MOST_LINES} == {}


def test_kernels_know_no_operator():
    """They evaluate formulas; an operator names its kernels, not the other way."""
    for name, path in SOURCES.items():
        if name.startswith("pallas/"):
            below = {"_coordinates.py", "_tensor.py", "_jax.py", "_check.py"}
            others = {n for n in imported(path) if not n.startswith("pallas/")}
            assert others <= below, name
