"""The layout of the package: imports point down in the table of its design."""

import ast
import re
import sys

from dmljax._operators import OPERATORS
from tests.project.texts import ROOT, section

PACKAGE = ROOT / "dmljax"
TREES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for path in PACKAGE.rglob("*.py")
}


def file_of(module):
    """The package's file for a dotted module name; None if there is none."""
    stem = "/".join(module.split(".")[1:])
    names = (f"{stem}.py", f"{stem}/__init__.py".removeprefix("/"))
    return next((name for name in names if name in TREES), None)


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


ARROWS = [(name, other) for name in TREES for other in imported(name)]
# The files of the page's table from the top down, as patterns.
FILES = section("docs/development/design.md", "Files")
LINES = re.findall(r"^\| `([\w/*.<>]+)` \|", FILES, re.MULTILINE)
OF_OPERATORS = {f"_{operator}.py" for operator in OPERATORS}


def layer_of(name):
    """The line of the table for a file."""
    pattern = "_<operator>.py" if name in OF_OPERATORS else name
    room = name.rpartition("/")[0]
    found = [line for line in (pattern, f"{room}/*.py") if line in LINES]
    assert found, f"the table of files has no line for {name}"
    return LINES.index(found[0])


def test_imports_point_down_and_no_operator_imports_another():
    """A kernel evaluates formulas. An operator names its kernels, not the reverse."""
    upwards = [arrow for arrow in ARROWS if layer_of(arrow[1]) < layer_of(arrow[0])]
    assert upwards == []
    assert not [arrow for arrow in ARROWS if OF_OPERATORS.issuperset(arrow)]


def test_sources_import_nothing_but_the_dependencies():
    """The standard library, pillow and typing_extensions are allowed, too."""
    found = {module.split(".")[0] for name in TREES for module, _ in modules_of(name)}
    allowed = {"dmljax", "jax", "numpy", "chex", "PIL", "typing_extensions"}
    assert found - set(sys.stdlib_module_names) <= allowed
