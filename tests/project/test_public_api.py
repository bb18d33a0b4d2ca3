"""The public names and their signatures."""

import inspect
import pickle

import pytest

import dmljax
from dmljax import _operators
from tests.project.texts import ROOT
from tests.subjects import SUBJECTS

PACKAGE = ROOT / "dmljax"
SIGNATURES = {name: subject.signature for name, subject in SUBJECTS.items()}
SIGNATURES |= {
    "create_operator": "(desc, *, feature_level=<FeatureLevel.V6_4: 25600>)",
    "run_model": "(model, *, device=None, max_elements=268435456)",
}
DESCRIPTORS = [cls.__name__ for cls in _operators.DESCRIPTORS.values()]
OF_OPERATORS = [name for subject in SUBJECTS.values() for name in subject.names]
ERRORS = ["DescriptorError", "ModelError"]
CLASSES = ["DataType", "FeatureLevel", "TensorFlags"]
CLASSES += ["Operator", "OperatorDesc", "TensorDesc"]
CLASSES += DESCRIPTORS + OF_OPERATORS + ERRORS
NAMES = {*CLASSES, *SIGNATURES, "Implementation"}


def public(name):
    return getattr(dmljax, name)


# NAMES


def test_all_names_are_listed_and_nothing_else_is_public():
    assert sorted(dmljax.__all__) == sorted(NAMES)
    assert {*dir(dmljax)} == NAMES | {"numpy", "onnx"}
    for module in (dmljax.numpy, dmljax.onnx):
        assert dir(module) == sorted(module.__all__)
    for name in ("pad", "where"):
        has = rf"'{name}'\. dmljax\.numpy has a function {name}"
        with pytest.raises(AttributeError, match=has):
            public(name)
    with pytest.raises(AttributeError, match="module 'dmljax' has no attribute 'run'"):
        public("run")


def test_errors_are_value_errors():
    assert all(issubclass(public(name), ValueError) for name in ERRORS)


def test_classes_have_their_public_name():
    """In tracebacks, in representations and in pickles."""
    for name in CLASSES:
        assert (public(name).__module__, public(name).__qualname__) == ("dmljax", name)
        assert pickle.loads(pickle.dumps(public(name))) is public(name)


# SIGNATURES


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name):
    parameters = inspect.signature(public(name)).parameters.values()
    empty = inspect.Signature.empty
    bare = [parameter.replace(annotation=empty) for parameter in parameters]
    assert str(inspect.Signature(bare)) == SIGNATURES[name]
    assert inspect.isfunction(public(name))
    assert not (PACKAGE / f"{name}.py").exists()  # hidden by the function
    assert (PACKAGE / "py.typed").is_file()
