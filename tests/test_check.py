"""The exceptions, and how messages show names and values."""

import functools
import inspect
import pickle
import re
import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import dmljax
import dmljax.numpy as dnp
import dmljax.onnx as dox
from dmljax import DataType, DescriptorError, FeatureLevel, PaddingMode
from dmljax._check import (
    ArgumentTypeError,
    as_json,
    as_member,
    as_python,
    decide_le,
    listed,
    naming,
    public,
    quoted,
    show,
    surely_le,
)
from dmljax._jax import InconclusiveDimensionOperation
from tests.checks import assert_refused

HUGE = 10**5000
X = np.ones(1)
DEEP = []
for _ in range(100_000):
    DEEP = [DEEP]


def test_a_traceback_has_one_error():
    with pytest.raises(ValueError, match="negative") as raised:
        dmljax.padding(jnp.ones(3), (-1,), (0,))
    text = "".join(traceback.format_exception(raised.value))
    start = "start_padding (StartPadding)"
    assert f"\ndmljax.DescriptorError: PADDING: {start} is {{-1}}; " in text
    assert not re.search("During handling|direct cause", text)


def refuse(error):
    raise error


def test_errors_that_no_argument_causes():
    """They have no name in front, and an error of a function inside has its own."""
    for error, text in (
        (TypeError("it is wrong."), "it is wrong."),
        (DescriptorError("PAD: it is wrong."), "PAD: it is wrong."),
        (ArgumentTypeError("it is wrong."), "REFUSE: it is wrong."),
    ):
        # A fault that a test once missed: a class above the package's own was named.
        for call in (public(public(refuse)), naming("REFUSE")(refuse)):
            with pytest.raises((TypeError, DescriptorError)) as raised:
                call(error)
            assert str(raised.value) == text
    function = dmljax.padding
    assert pickle.loads(pickle.dumps(function)) is function
    assert list(inspect.signature(function).parameters)[:2] == ["x", "start_padding"]


FOUND = dmljax.nonzero_coordinates(X)


@pytest.mark.parametrize(
    ("operator", "text", "call"),
    [
        ("NONZERO_COORDINATES", "fill=, not fill_value", dmljax.nonzero_coordinates),
        ("NonzeroCoordinates.take", "fill_value=, not fill", FOUND.take),
        # Fault: it takes constant_values=, end_values=.
        ("dmljax.numpy.pad", "constant_values=, not constant_value", dnp.pad),
        ("dmljax.onnx.trilu", "x=, k=, upper=, not diagonal", dox.trilu),
        ("ELEMENT_WISE_IF", "no keywords, not a_value", dmljax.element_wise_if),
    ],
)
def test_unknown_keywords(operator, text, call):
    wrong = functools.partial(call, **{text.split("not ")[1]: -1})
    for run in (wrong, jax.jit(wrong)):
        assert_refused(operator, f"it takes {text}=.", run, X, error=TypeError)
    for arguments in ((), (X,) * 9):  # Python's own errors stay
        with pytest.raises(TypeError, match=r"^\S+\(\) (missing|takes)"):
            call(*arguments)


def no_member(kind, value, text):
    assert_refused("AS_MEMBER", text, public(as_member), "X", value, kind)


def test_members_of_enums():
    for value in (PaddingMode.EDGE, 1, np.int64(1), np.uint8(1)):
        assert as_member("X", value, PaddingMode) is PaddingMode.EDGE
    no_member(DataType, PaddingMode.EDGE, "is <PaddingMode.EDGE: 1>; it must be one of")
    no_member(FeatureLevel, "6_4", "V1_0,...V6_4. Write for example FeatureLevel.V6_4.")
    modes = "it must be one of CONSTANT, EDGE, REFLECTION, SYMMETRIC, WRAP. Write "
    no_member(PaddingMode, np.True_, f"is {np.True_!r}; {modes}for example PaddingMode")
    no_member(PaddingMode, np.timedelta64(1, "s"), f"is np.timedelta64(1,'s'); {modes}")
    no_member(PaddingMode, HUGE, f"is about 2^16609; {modes}")
    no_member(PaddingMode, "mirror", f"is 'mirror'; {modes}PaddingMode.REFLECTION.")


def test_symbolic_sizes():
    n, m = export.symbolic_shape("n, m", constraints=["m >= 3"])
    pairs = (1, 1), (1, n), (2, 1), (m, n)
    assert [surely_le(*pair) for pair in pairs] == [True, True, False, False]
    assert decide_le(3, m)
    assert not decide_le(m, 2)
    text = "JAX can't decide whether n >= m for these symbolic...['n >= m'])."
    assert_refused("DECIDE_LE", text, public(decide_le), m, n)
    # Fault: `from None` in `naming`, which hides JAX's own error from the traceback.
    with pytest.raises(DescriptorError) as raised:
        public(decide_le)(m, n)
    assert isinstance(raised.value.__cause__, InconclusiveDimensionOperation)


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (as_python, 2**128 - 1, str(2**128 - 1)),
        (as_python, 2**128, "about 2^128"),
        (as_python, [HUGE], "too long to show (of type list)"),
        (as_python, np.eye(2), "array([[1., 0.], [0., 1.]])"),
        (as_python, "a" * 60, f"'{'a' * 56}... (62 characters)"),
        (show, (), "{}"),
        (show, (True, HUGE, 2.5), "{True,about 2^16609,2.5}"),
        (show, ("a\n",), "{a\\n}"),
        (show, (1,) * 16, "{1" + ",1" * 15 + "}"),
        (show, (1,) * 17, "{1" + ",1" * 15 + ",... (17 elements)}"),
        (show, DataType.INT8, "INT8"),
        (quoted, "x" * 60, f"'{'x' * 60}'"),
        (quoted, "x" * 61, f"'{'x' * 57}... (61 characters)'"),
        (quoted, "a\x1b[31m\n\u202e", "'a\\x1b[31m\\n\\u202e'"),
        (as_json, {"ä": [True, {2}], (1,): 2}, '{"ä": [true, "{2}"]}'),
        (as_json, "a\n", "'a\\n'"),
        (as_json, [0] * 99, f"{str([0] * 99)[:57]}... (297 characters)"),
        (as_json, HUGE, "too long to show (of type int)"),
        (as_json, DEEP, "too long to show (of type list)"),
        (listed, [], "none"),
        (listed, "abcdefghijkl", ", ".join(f"'{c}'" for c in "abcdefghijkl")),
        (listed, "a" * 13, "'a', " * 11 + "'a', ... (13 in all)"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_how_a_value_is_shown(function, value, text):
    assert function(value) == text
