"""What `create_operator` returns: a value, a static argument, a typed callable."""

import copy
import dataclasses
import pickle
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dmljax
from dmljax import (
    DataType,
    DescriptorError,
    DiagonalMatrixDesc,
    FeatureLevel,
    Operator,
    PaddingDesc,
    PaddingMode,
    TensorDesc,
    create_operator,
)
from tests import client
from tests.test_support import TABLES, described, ranked, typed

ROOT = Path(__file__).parent.parent
NAN = float("nan")


def tensor(data_type, *sizes, strides=None):
    return TensorDesc(DataType[data_type], sizes, strides)


def padding(value=0.0, **changes):
    item = tensor("FLOAT32", 3)
    constant = PaddingMode.CONSTANT
    desc = PaddingDesc(item, tensor("FLOAT32", 5), constant, value, 1, (1,), (1,))
    return dataclasses.replace(desc, **changes)


def smallest(name):
    """A descriptor of the newest row of the operator's support table."""
    row = list(TABLES[name].values())[-1]
    return described(name, ranked(row, 2), typed(row, "FLOAT32"))


DESCRIPTORS = {name: smallest(name) for name in TABLES} | {"PADDING": padding(NAN)}


@pytest.fixture
def traces(monkeypatch):
    """The descriptors that were evaluated, once for each trace."""
    seen = []
    evaluate = PaddingDesc.evaluate

    def counted(self, *arrays, **options):
        seen.append(self)
        return evaluate(self, *arrays, **options)

    monkeypatch.setattr(PaddingDesc, "evaluate", counted)
    return seen


@pytest.mark.parametrize("name", DESCRIPTORS)
def test_an_operator_is_a_value(name):
    desc = DESCRIPTORS[name]
    level = max(desc.support)
    operator = create_operator(desc, feature_level=level)
    assert type(operator) is Operator
    assert (operator.desc, operator.feature_level) == (desc, level)
    same = create_operator(dataclasses.replace(desc), feature_level=int(level))
    copies = (
        same,
        copy.copy(operator),
        copy.deepcopy(operator),
        pickle.loads(pickle.dumps(operator)),
    )
    for other in copies:
        assert other == operator
        assert hash(other) == hash(operator)
    assert repr(desc) in repr(operator)
    assert repr(level) in repr(operator)
    assert operator.__doc__.startswith("A function of input arrays")
    with pytest.raises(dataclasses.FrozenInstanceError):
        operator.desc = desc


def test_operators_that_differ():
    base = create_operator(padding())
    others = [
        create_operator(padding(), feature_level=FeatureLevel.V6_3),
        create_operator(padding(-0.0)),
        create_operator(padding(NAN)),
        create_operator(padding(1.0)),
        create_operator(padding(padding_mode=PaddingMode.EDGE)),
        create_operator(padding(input_tensor=tensor("FLOAT32", 3, strides=(1,)))),
        create_operator(DESCRIPTORS["PADDING1"]),
        padding(),
    ]
    assert all(base != other for other in others)
    assert len({base, *others[:-1]}) == len(others)
    assert base == create_operator(padding(np.float32(0)))
    assert base == create_operator(padding(0))


def test_the_hash_is_not_part_of_a_pickle():
    """Hashes of strings and None differ from process to process."""
    operator = create_operator(padding(NAN))
    before = pickle.dumps(operator)
    hash(operator)
    operator(np.zeros(3, np.float32))
    assert pickle.dumps(operator) == before


def test_equal_operators_are_traced_once(traces):
    sizes = {
        "input_tensor": tensor("FLOAT32", 11),  # which no other test has
        "output_tensor": tensor("FLOAT32", 13),
    }
    first, second = (create_operator(padding(float("nan"), **sizes)) for _ in range(2))
    assert first.desc.padding_value is not second.desc.padding_value
    x = jnp.zeros(11)
    first(x), second(x)
    assert len(traces) == 1
    jax.jit(first)(x)
    inside = len(traces)  # on a GPU, a call that stands alone is another program
    jax.jit(second)(x)
    static = jax.jit(lambda operator, x: operator(x), static_argnums=0)
    static(first, x), static(second, x)
    assert len(traces) == inside
    assert static._cache_size() == 1
    create_operator(padding(1.0, **sizes))(x)
    assert len(traces) == inside + 1


def test_a_negative_zero_is_not_the_program_of_zero():
    for value in (0.0, -0.0, 0.0):
        padded = create_operator(padding(value))(np.ones(3, np.float32))
        assert np.signbit(padded[0]) == np.signbit(value)


def test_no_type_is_lost_between_threads_of_x64():
    """An operator of 64-bit tensors needs x64 when it is called, too."""
    wide = tensor("FLOAT64", 2, 2)
    with jax.enable_x64(True):
        operator = create_operator(DiagonalMatrixDesc(wide, 0, 1.0))
        assert operator().dtype == np.float64
    with pytest.raises(DescriptorError, match="'OutputTensor' has data type FLOAT64"):
        operator()


def test_what_a_descriptor_promises_is_asserted(monkeypatch):
    """A mistake of the package, not of a caller, fails where it is made."""

    def wrong(self, *arrays, **options):
        return (jnp.zeros((5, 1)),)

    operator = create_operator(padding(3.0))
    monkeypatch.setattr(PaddingDesc, "evaluate", wrong)
    with pytest.raises(AssertionError, match=r"\(5, 1\)"):
        operator(jnp.zeros(3))


def test_rules_hold_without_chex():
    program = (
        "import chex, numpy as np; chex.disable_asserts(); from tests import client; "
        "import dmljax; operator = client.described();\n"
        "try: operator(np.ones(3, np.float32))\n"
        "except dmljax.DescriptorError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "must be a flat buffer of at least 7 elements" in done.stdout


# TENSORS WITH GAPS


def places(sizes, strides):
    """The offset of every element, in NumPy."""
    grid = np.indices(sizes).reshape(len(sizes), -1)
    return (np.array(strides) @ grid).reshape(sizes)


@pytest.mark.parametrize(
    ("sizes", "strides"),
    [
        ((3, 4), (6, 1)),
        ((4, 3), (1, 5)),
        ((3, 4), (8, 2)),
        ((2, 1, 3, 4), (24, 5, 6, 1)),
        ((2, 3, 4), (16, 1, 4)),
        ((1, 1), (9, 7)),
        ((3, 4), (1, 3)),
        ((2, 2), (7, 3)),  # no corner of a packed array
        ((2, 2), (100, 1)),  # nearly all gaps
    ],
)
@pytest.mark.parametrize("more", [0, 5])
def test_gaps(sizes, strides, more):
    """What is read and written lies at dot(c, strides); gaps of an output hold 0."""
    item, packed = tensor("INT32", *sizes, strides=strides), tensor("INT32", *sizes)
    none, rank = (0,) * len(sizes), len(sizes)
    extent = places(sizes, strides).max() + 1
    values = np.arange(1, extent + 1 + more, dtype=np.int32)
    for source, target in ((item, packed), (packed, item)):
        desc = PaddingDesc(source, target, PaddingMode.EDGE, 0, rank, none, none)
        operator = create_operator(desc)
        if source is item:
            expected = values[places(sizes, strides)]
            found = operator(values)
        else:
            given = values[places(sizes, strides)]
            expected = np.zeros(extent, np.int32)
            expected[places(sizes, strides)] = given
            found = operator(given)
        np.testing.assert_array_equal(found, expected)


# TYPES


def test_the_typed_program_runs():
    client.main()


def test_the_class_is_public():
    assert dmljax.Operator.__module__ == "dmljax"
    with pytest.raises(DescriptorError, match="feature_level"):
        Operator(padding(), 7)
    with pytest.raises(TypeError, match="operator descriptor"):
        Operator(None)
