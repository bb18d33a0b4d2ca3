"""The result of `create_operator`: a value, a static argument, a function of arrays."""

import copy
import dataclasses
import functools
import pickle
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import test_util

from dmljax import (
    FeatureLevel,
    PaddingDesc,
    PaddingMode,
    TensorDesc,
    create_operator,
)
from dmljax._directml.operator import _evaluate
from tests.checks import assert_refused, assert_same, assert_wrong
from tests.fuzz import expected
from tests.fuzz.descriptors import Maker
from tests.samples import Wrong, numbers, tensor
from tests.subjects import (
    DESCRIBED,
    SUBJECTS,
    diagonal_matrix1,
    element_wise_if,
    padding,
)

NAN = float("nan")
OLD = diagonal_matrix1.OLD
SELECT = element_wise_if.DESC


def pad(value=0.0, **changes):
    x = tensor("FLOAT32", 3)
    output = tensor("FLOAT32", 5)
    desc = PaddingDesc(x, output, PaddingMode.CONSTANT, value, 1, (1,), (1,))
    return dataclasses.replace(desc, **changes)


# A VALUE


@pytest.mark.parametrize("name", DESCRIBED)
def test_an_operator_is_a_value(name):
    desc = DESCRIBED[name].example
    operator = create_operator(desc, feature_level=np.int64(0x6400))
    assert operator.desc is desc
    assert operator.feature_level is FeatureLevel.V6_4
    before = pickle.dumps(operator)
    for other in (
        create_operator(dataclasses.replace(desc)),
        copy.deepcopy(operator),
        pickle.loads(before),
    ):
        assert other == operator
        assert hash(other) == hash(operator)
    # Hashes of strings and None differ from process to process.
    assert pickle.dumps(operator) == before
    assert repr(desc) in repr(operator)
    with pytest.raises(dataclasses.FrozenInstanceError):
        operator.desc = desc


def test_operators_that_differ():
    """For example, NaN equals NaN, and -0.0 differs from 0.0."""
    base = create_operator(pad())

    class Other(PaddingDesc):
        """Fault: only the fields are compared."""

    others = [create_operator(pad(), feature_level=FeatureLevel.V6_3)]
    others += [create_operator(pad(value)) for value in (-0.0, NAN, -NAN, 1.0)]
    strided = tensor("FLOAT32", 3, strides=(1,))
    for desc in (Other(**vars(pad())), pad(input_tensor=strided), padding.TYPED):
        others.append(create_operator(desc))
    assert all(base != other for other in [*others, pad()])
    assert len({base, *others}) == len(others) + 1
    assert pickle.loads(pickle.dumps(others[0])) == others[0]
    assert base == create_operator(pad(np.float32(0))) == create_operator(pad(0))
    assert create_operator(pad(NAN)) == create_operator(pad(np.float32("nan")))


def test_equal_operators_share_a_program():
    x = jnp.zeros(3)
    before = _evaluate._cache_size()
    for value, programs in (123.5, 1), (123.5, 1), (124.5, 2):
        create_operator(pad(value))(x)
        assert _evaluate._cache_size() == before + programs


def test_x64_mode_is_needed_in_a_call_too():
    wide = dataclasses.replace(OLD, output_tensor=tensor("FLOAT64", 2, 2))
    with jax.enable_x64(True):
        operator = create_operator(wide)
        assert operator().dtype == np.float64
    text = "tensor 'OutputTensor' has data type FLOAT64, which needs"
    for call in operator, functools.partial(create_operator, wide):
        assert_refused("DIAGONAL_MATRIX", text, call)
    for wide in np.ones(3), np.ones(3, int):
        text = f"'InputTensor' has {wide.dtype.name.upper()}, while...has FLOAT32; both"
        assert_refused("PADDING", text, create_operator(pad()), wide)


def test_errors_of_create_operator():
    """The subject of PADDING has levels that are too low."""
    text = "feature_level is 25601; it must be one of V1_0,...Write for example"
    make = functools.partial(assert_refused, "create_operator", call=create_operator)
    make(text, desc=pad(), feature_level=0x6401)
    text = "desc must be an operator descriptor such as PaddingDesc, not ABCMeta."
    make(text, desc=PaddingDesc, error=TypeError)


# ARRAYS AND TENSORS

MATRIX = np.ones((2, 3), np.float32)
WHOLE = np.ones((2, 3), np.int32)
FLAT = pad(input_tensor=tensor("FLOAT32", 3, strides=(2,)))
SAME = "; both must be the same"
BUFFER = "'InputTensor' has strides, so its array must be a flat buffer of at least 5"


@pytest.mark.parametrize(
    ("desc", "text", "arrays"),
    [
        (pad(), "0 input arrays were given;...has 1 input tensors (InputTensor)", []),
        (OLD, "1 input arrays were given;...has 0 input tensors (none)", [MATRIX]),
        (pad(), f"'InputTensor' has {{2,3}}, while...has {{3}}{SAME}", [MATRIX]),
        (
            pad(),
            f"'InputTensor' has INT32, while...has FLOAT32{SAME}. FLOAT32 does not",
            [WHOLE[0]],
        ),
        (SELECT, "'ConditionTensor' has BOOL, while...UINT8", [MATRIX > 0] * 3),
        (FLAT, f"{BUFFER} elements; its sizes are {{4}}", [MATRIX.ravel()[:4]]),
        (
            FLAT,
            f"{BUFFER} elements; its sizes are {{5,2}}",
            [np.ones((5, 2), np.float32)],
        ),
    ],
)
def test_arrays_that_do_not_fit(desc, text, arrays):
    error = {"error": TypeError} if "input tensors" in text else {}
    assert_wrong(
        Wrong.of_call(desc.operator, create_operator(desc), text, *arrays, **error)
    )


@pytest.mark.parametrize("wrong", [jnp.zeros((5, 1)), jnp.zeros(5, jnp.int32)])
def test_a_wrong_output_is_an_assertion_error(monkeypatch, wrong):
    """A wrong output is a mistake of the package, not of the caller."""
    operator = create_operator(pad(3.0))
    monkeypatch.setattr(PaddingDesc, "evaluate", lambda self, *arrays: (wrong,))
    jax.clear_caches()
    with pytest.raises(AssertionError, match=r"\(5, 1\)|int32"):
        operator(jnp.zeros(3))


# TRANSFORMATIONS. tests/fuzz compares results of random descriptors.


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
def test_batches_and_derivatives(subject):
    """The operator is made while a program is traced.

    The tensors have gaps, and axes in any order. The buffers are longer. Fault: the
    buffer of an output ends with the last element of the tensor.
    """
    desc = DESCRIBED[subject.operator.descriptors[0].operator].example
    maker = Maker(random.Random(0))
    strided = {
        name: TensorDesc(item.data_type, item.sizes, maker.spread(item.sizes), 400)
        for name, item in desc.tensors().items()
    }
    desc = dataclasses.replace(desc, **strided)
    items = desc.input_tensors().values()
    batch = [numbers((3, t.extent), t.dtype, i) for i, t in enumerate(items)]

    def run(*arrays):
        return jax.tree.leaves(create_operator(desc)(*arrays))

    found = jax.jit(jax.vmap(run))(*batch)
    for *arrays, outputs in zip(*batch, zip(*found, strict=True), strict=True):
        assert_same(outputs, expected.outputs(desc, arrays))
    if subject.samples[0].linear:
        # The last operands are floats.
        first = sum(array.dtype != np.float32 for array in arrays)
        function = jax.jit(functools.partial(run, *arrays[:first]))
        test_util.check_grads(function, arrays[first:], order=1)
