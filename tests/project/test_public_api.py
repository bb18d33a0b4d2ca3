"""The public names, their signatures and documentation; and the package itself."""

import ast
import dataclasses
import enum
import inspect
import os
import pickle
import re
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import jax
import pytest

import dmljax
from dmljax import _operators
from dmljax._operators import OPERATORS
from tests.subjects import SUBJECTS

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "dmljax").rglob("*.py"))
PRINTING = {"_model.py", "__main__.py"}
SIGNATURES = {
    **{name: subject.signature for name, subject in SUBJECTS.items()},
    "create_operator": "(desc, *, feature_level=<FeatureLevel.V6_4: 25600>)",
    "run_model": "(model, *, device=None, max_memory=None)",
}
DESCRIPTORS = [cls.__name__ for cls in _operators.DESCRIPTORS.values()]
OF_OPERATORS = [name for subject in SUBJECTS.values() for name in subject.names]
ENUMS = ["DataType", "FeatureLevel", "TensorFlags"]
ERRORS = ["DescriptorError", "ModelError"]
OTHERS = ["Operator", "OperatorDesc", "TensorDesc"]
CLASSES = [*DESCRIPTORS, *OF_OPERATORS, *ENUMS, *ERRORS, *OTHERS]
NAMES = sorted([*CLASSES, *SIGNATURES, "Implementation"])


def public(name):
    return getattr(dmljax, name)


# NAMES


def test_all():
    assert sorted(dmljax.__all__) == NAMES


def test_nothing_else_is_public():
    found = {
        name
        for name, value in vars(dmljax).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert found == set(NAMES)


def test_star_import():
    namespace = {}
    exec("from dmljax import *", namespace)
    assert namespace.keys() - {"__builtins__"} == set(NAMES)


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", dmljax.__version__)


def test_the_names_of_functions_hide_no_module():
    for name in SIGNATURES:
        assert inspect.isfunction(public(name))
        assert not (ROOT / "dmljax" / f"{name}.py").exists()


@pytest.mark.parametrize("name", CLASSES)
def test_classes_have_their_public_name(name):
    """In tracebacks, in representations and in pickles."""
    assert public(name).__module__ == "dmljax"
    assert public(name).__qualname__ == name
    assert pickle.loads(pickle.dumps(public(name))) is public(name)


def test_kinds():
    for name in DESCRIPTORS:
        assert issubclass(public(name), dmljax.OperatorDesc)
        assert dataclasses.is_dataclass(public(name))
    for name in ENUMS:
        assert issubclass(public(name), enum.IntEnum | enum.IntFlag)
    for name in OF_OPERATORS:
        assert issubclass(public(name), enum.IntEnum | tuple)
    for name in ERRORS:
        assert issubclass(public(name), ValueError)


def test_nonzero_coordinates():
    assert dmljax.NonzeroCoordinates._fields == ("count", "coordinates")
    result = dmljax.nonzero_coordinates(jax.numpy.ones(2))
    assert type(result) is dmljax.NonzeroCoordinates
    assert result.count is result[0]
    assert result.coordinates is result[1]


def test_descriptors_can_be_pickled():
    item = dmljax.TensorDesc(dmljax.DataType.FLOAT16, (2, 3), strides=(1, 2))
    desc = dmljax.DiagonalMatrixDesc(item, 1, 2.0)
    assert pickle.loads(pickle.dumps(desc)) == desc


# SIGNATURES


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name):
    signature = inspect.signature(public(name))
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
    ]
    assert str(inspect.Signature(bare)) == SIGNATURES[name]


@pytest.mark.parametrize("name", SIGNATURES)
def test_everything_has_a_type(name):
    signature = inspect.signature(public(name))
    empty = inspect.Signature.empty
    assert signature.return_annotation is not empty
    assert all(p.annotation is not empty for p in signature.parameters.values())
    assert (ROOT / "dmljax" / "py.typed").is_file()


# DOCUMENTATION


def sections(name):
    """The docstring, and its sections by name."""
    text = inspect.getdoc(public(name))
    parts = re.split(r"^(Args|Attributes|Returns|Raises):\n", text, flags=re.MULTILINE)
    return text, dict(zip(parts[1::2], parts[2::2], strict=True))


def entries(section):
    """The names that a section explains."""
    return re.findall(r"^  (\w+):", section, flags=re.MULTILINE)


@pytest.mark.parametrize("name", [*CLASSES, *SIGNATURES])
def test_everything_has_a_docstring(name):
    first, *rest = public(name).__doc__.splitlines()
    assert first.endswith(".")
    assert len(first) <= 88
    assert not rest or rest[0] == ""


@pytest.mark.parametrize("name", SIGNATURES)
def test_docstrings_of_functions(name):
    text, parts = sections(name)
    assert entries(parts["Args"]) == list(inspect.signature(public(name)).parameters)
    assert parts["Returns"].strip()
    assert parts["Raises"].strip()
    assert "\n>>> " in text


@pytest.mark.parametrize("name", OPERATORS)
def test_docstrings_of_operators(name):
    """The formula, the errors, the page."""
    text, parts = sections(name)
    assert "``" in text.split("Args:")[0]
    assert {"DescriptorError", "TypeError"} <= set(entries(parts["Raises"]))
    assert text.endswith(f"See DML_{name.upper()}_OPERATOR_DESC in directml.h.")


@pytest.mark.parametrize("name", [*DESCRIPTORS, "TensorDesc", "NonzeroCoordinates"])
def test_docstrings_of_structs(name):
    _, parts = sections(name)
    if dataclasses.is_dataclass(public(name)):
        fields = [field.name for field in dataclasses.fields(public(name))]
    else:
        fields = list(public(name)._fields)
    assert entries(parts["Attributes"]) == fields


@pytest.mark.parametrize("name", ["TensorDesc", "DataType", "FeatureLevel", *ERRORS])
def test_examples_of_classes(name):
    assert ">>> " in public(name).__doc__


# THE PACKAGE


def identifiers(source, kind):
    tree = ast.parse(source.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, kind)]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_sources(source):
    """Nothing private of JAX, no environment variables; only models print."""
    text = source.read_text(encoding="utf-8")
    assert "jax._src" not in text
    assert "os.environ" not in text
    assert "getenv" not in text
    names = {node.id for node in identifiers(source, ast.Name)}
    assert "print" not in names or source.name in PRINTING
    assert max(map(len, text.splitlines()), default=0) <= 88


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_no_arguments_that_swallow_options(source):
    """**static of the path aside, which carries checked attributes."""
    functions = identifiers(source, ast.FunctionDef)
    swallowed = {f.args.kwarg.arg for f in functions if f.args.kwarg}
    assert swallowed <= {"static"}


def project():
    path = ROOT / "pyproject.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))["project"]


def test_dependencies():
    """With lower bounds only."""
    dependencies = project()["dependencies"]
    bounds = [re.fullmatch(r"([a-z]+)>=[0-9.]+", text) for text in dependencies]
    assert [bound[1] for bound in bounds] == ["jax", "jaxlib", "numpy", "chex"]


def test_sources_import_nothing_but_the_dependencies():
    """Besides the standard library, pillow for images, and what type checkers have."""
    imported = set()
    for source in SOURCES:
        for node in identifiers(source, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        for node in identifiers(source, ast.ImportFrom):
            imported.add(node.module.split(".")[0])
    allowed = {"dmljax", "jax", "numpy", "chex", "PIL", "typing_extensions"}
    assert imported - set(sys.stdlib_module_names) <= allowed


def run_python(program):
    """The program's result where JAX finds no backend to initialise."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        env={**os.environ, "JAX_PLATFORMS": "nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_import_is_quiet_and_starts_no_backend():
    done = run_python("import dmljax")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    started = run_python("import dmljax, jax; jax.devices()")
    assert "nowhere" in started.stderr


def test_import_leaves_the_configuration_alone():
    done = run_python(
        "import jax; before = dict(jax.config.values); import dmljax; "
        "assert dict(jax.config.values) == before"
    )
    assert done.returncode == 0, done.stderr


def test_pillow_is_optional():
    done = run_python("import sys; sys.modules['PIL'] = None; import dmljax")
    assert done.returncode == 0, done.stderr
