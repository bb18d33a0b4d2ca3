"""Which exception a wrong call raises, and that its message says what is wrong."""

import dataclasses
import functools
import pickle
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dmljax
from dmljax import (
    DataType,
    DescriptorError,
    DiagonalMatrix1Desc,
    DiagonalMatrixDesc,
    ElementWiseIfDesc,
    NonzeroCoordinatesDesc,
    OneHotDesc,
    Padding1Desc,
    PaddingDesc,
    PaddingMode,
    TensorDesc,
    create_operator,
    diagonal_matrix1,
    element_wise_if,
    nonzero_coordinates,
    one_hot,
    padding,
)
from dmljax._check import NoKernelError
from dmljax._operators import OPERATORS

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
DIAGONAL, ONE_HOT, IF, NONZERO, PADDING = (
    "DIAGONAL_MATRIX1",
    "ONE_HOT",
    "ELEMENT_WISE_IF",
    "NONZERO_COORDINATES",
    "PADDING",
)
X64 = ("x64", "jax_enable_x64", "JAX_ENABLE_X64")
STATIC = ("integer", "known when the program is traced")


def ones(data_type, *sizes):
    return np.ones(sizes, data_type.lower())


VECTOR = ones("FLOAT32", 3)
MATRIX = ones("FLOAT32", 2, 3)
WHOLE = ones("INT32", 2, 3)
INDICES = ones("INT32", 2, 1)
CONDITION = ones("UINT8", 2, 3)


def tensor(data_type, *sizes, strides=None, **rest):
    return TensorDesc(DataType[data_type], sizes, strides, **rest)


def copied(item_in, item_out=None, **changes):
    """Describes a PADDING that pads nothing, from one tensor to the other."""
    none = (0,) * len(item_in.sizes)
    item_out = item_out or item_in
    edge = PaddingMode.EDGE
    desc = PaddingDesc(item_in, item_out, edge, 0.0, len(none), none, none)
    return dataclasses.replace(desc, **changes)


class Bad(NamedTuple):
    """A wrong call: operator, call, arrays, error, and parts of the error's text."""

    operator: str
    call: Callable[..., Any]
    arrays: tuple[Any, ...]
    error: type[Exception]
    parts: tuple[str, ...]


def wrong(operator, call, *arrays, parts, error=DescriptorError):
    return Bad(operator, call, arrays, error, parts)


diagonal = functools.partial(wrong, DIAGONAL)
hot = functools.partial(wrong, ONE_HOT)
select = functools.partial(wrong, IF)
nonzero = functools.partial(wrong, NONZERO)
pad = functools.partial(wrong, PADDING)


def diagonal_of(**attributes):
    return functools.partial(diagonal_matrix1, **attributes)


def hot_of(**attributes):
    return functools.partial(one_hot, **{"size": 3, **attributes})


def pad_of(start=(1, 1), end=(1, 1), **attributes):
    return lambda x: padding(x, start, end, **attributes)


def bound(item, array_item=None, **changes):
    return create_operator(copied(item, array_item, **changes))


VALUE_OF_INT32 = jnp.asarray(1, jnp.int32)
CALLS = {
    # DIAGONAL_MATRIX1
    "diagonal rank 1": diagonal(
        diagonal_of(), VECTOR, parts=("Tensor'", "{3}", "1 dim", "at least 2")
    ),
    "diagonal rank 0": diagonal(
        diagonal_of(), ones("FLOAT32"), parts=("Tensor'", "{}", "0 dim")
    ),
    "diagonal shape of rank 1": diagonal(
        diagonal_of(shape=(3,)), parts=("Tensor'", "{3}", "1 dim", "at least 2")
    ),
    "diagonal with too many columns": diagonal(
        diagonal_of(shape=(1, 2**31 + 1), dtype=np.uint8),
        parts=("Tensor'", "{1,2147483649}", "at most 2^31 rows and 2^31 columns"),
    ),
    "diagonal begin too large": diagonal(
        diagonal_of(fill_begin=2**31),
        MATRIX,
        parts=("DiagonalFillBegin", "2147483648", "-2147483648 to 2147483647"),
    ),
    "diagonal end too small": diagonal(
        diagonal_of(fill_end=INT32_MIN - 1),
        MATRIX,
        parts=("DiagonalFillEnd", "-2147483649", "-2147483648 to 2147483647"),
    ),
    "diagonal begin no integer": diagonal(
        diagonal_of(fill_begin=0.5),
        MATRIX,
        parts=("DiagonalFillBegin", "float", *STATIC),
        error=TypeError,
    ),
    "diagonal end None": diagonal(
        diagonal_of(fill_end=None),
        MATRIX,
        parts=("DiagonalFillEnd", "NoneType", *STATIC),
        error=TypeError,
    ),
    "diagonal other shape": diagonal(
        diagonal_of(shape=(3, 2)),
        MATRIX,
        parts=("shape", "{3,2}", "'InputTensor'", "{2,3}", "must be the same"),
    ),
    "diagonal empty shape": diagonal(
        diagonal_of(shape=()),
        MATRIX,
        parts=("shape", "{}", "'InputTensor'", "{2,3}", "must be the same"),
    ),
    "diagonal other dtype": diagonal(
        diagonal_of(dtype=jnp.float16),
        MATRIX,
        parts=("dtype", "FLOAT16", "'InputTensor'", "FLOAT32", "must be the same"),
    ),
    "diagonal nothing": diagonal(
        diagonal_of(), parts=("'x'", "'shape'"), error=TypeError
    ),
    "diagonal negative shape": diagonal(
        diagonal_of(shape=(-1, 2)), parts=("shape", "{-1,2}")
    ),
    "diagonal shape no sequence": diagonal(
        diagonal_of(shape=5), parts=("shape", "int", "sequence"), error=TypeError
    ),
    "diagonal shape a string": diagonal(
        diagonal_of(shape="34"), parts=("shape", "str", "sequence"), error=TypeError
    ),
    "diagonal shape of floats": diagonal(
        diagonal_of(shape=(2, 2.0)), parts=("shape", "float", *STATIC), error=TypeError
    ),
    "diagonal dtype no number": diagonal(
        diagonal_of(shape=(2, 2), dtype=str), parts=("dtype",), error=TypeError
    ),
    "diagonal dtype unknown": diagonal(
        diagonal_of(shape=(2, 2), dtype="float31"),
        parts=("dtype", "float31"),
        error=TypeError,
    ),
    "diagonal dtype wide": diagonal(
        diagonal_of(shape=(2, 2), dtype=np.float64), parts=("dtype", "FLOAT64", *X64)
    ),
    "diagonal value of other type": diagonal(
        lambda x: diagonal_matrix1(x, value=VALUE_OF_INT32),
        MATRIX,
        parts=("Value", "INT32", "FLOAT32", "must be the same"),
    ),
    "diagonal value a vector": diagonal(
        lambda x: diagonal_matrix1(x, value=jnp.ones(1)),
        MATRIX,
        parts=("Value", "{1}", "scalar"),
    ),
    "diagonal value not whole": diagonal(
        diagonal_of(value=0.5), WHOLE, parts=("Value is 0.5", "INT32", "whole")
    ),
    "diagonal value nan": diagonal(
        diagonal_of(value=float("nan")), WHOLE, parts=("Value is nan", "INT32", "whole")
    ),
    "diagonal value too large": diagonal(
        diagonal_of(value=2**40),
        WHOLE,
        parts=("Value is 1099511627776", "INT32", "-2147483648 to 2147483647"),
    ),
    "diagonal value negative": diagonal(
        diagonal_of(value=-1), CONDITION, parts=("Value is -1", "UINT8", "0 to 255")
    ),
    "diagonal value complex": diagonal(
        diagonal_of(value=1j), MATRIX, parts=("Value is 1j", "FLOAT32", "imaginary")
    ),
    "diagonal value a list": diagonal(
        diagonal_of(value=[1.0]), MATRIX, parts=("Value", "list"), error=TypeError
    ),
    "diagonal value wide": diagonal(
        diagonal_of(value=np.int64(1)), WHOLE, parts=("Value", "INT64", *X64)
    ),
    # ONE_HOT
    "hot float indices": hot(
        hot_of(), ones("FLOAT32", 2, 1), VECTOR, parts=("IndicesTensor", "FLOAT32")
    ),
    "hot bool indices": hot(
        hot_of(), np.ones((2, 1), bool), VECTOR, parts=("IndicesTensor", "BOOL")
    ),
    "hot axis too large": hot(
        hot_of(axis=2),
        INDICES,
        VECTOR,
        parts=("Axis is 2", "[-2, 2)", "'IndicesTensor'", "2 dimensions"),
    ),
    "hot axis too small": hot(
        hot_of(axis=-3),
        INDICES,
        VECTOR,
        parts=("Axis is -3", "[-2, 2)", "2 dimensions"),
    ),
    "hot axis of a scalar": hot(
        hot_of(axis=0), ones("INT32"), VECTOR, parts=("Axis is 0", "0 dimensions")
    ),
    "hot axis no integer": hot(
        hot_of(axis=1.0), INDICES, VECTOR, parts=("Axis", *STATIC), error=TypeError
    ),
    "hot axis a string": hot(
        hot_of(axis="x"),
        INDICES,
        VECTOR,
        parts=("Axis", "str", *STATIC),
        error=TypeError,
    ),
    "hot long indices": hot(
        hot_of(),
        WHOLE,
        VECTOR,
        parts=("'IndicesTensor'", "{2,3}", "Axis 1 is 3", "must be 1"),
    ),
    "hot one value": hot(
        hot_of(),
        INDICES,
        ones("FLOAT32", 1),
        parts=("'ValuesTensor'", "{1}", "1 element;", "at least 2"),
    ),
    "hot no value": hot(
        hot_of(),
        INDICES,
        ones("FLOAT32", 3, 0),
        parts=("'ValuesTensor'", "{3,0}", "0 elements"),
    ),
    "hot size 0": hot(
        hot_of(size=0), INDICES, VECTOR, parts=("size", "is 0", "[1, 2^31)")
    ),
    "hot size negative": hot(
        hot_of(size=-1), INDICES, VECTOR, parts=("size", "is -1", "[1, 2^31)")
    ),
    "hot size too large": hot(
        hot_of(size=2**31), INDICES, VECTOR, parts=("size", "2147483648", "[1, 2^31)")
    ),
    "hot size no integer": hot(
        hot_of(size=3.0), INDICES, VECTOR, parts=("size", *STATIC), error=TypeError
    ),
    # ELEMENT_WISE_IF
    "select float condition": select(
        element_wise_if,
        *(MATRIX, MATRIX, MATRIX),
        parts=("'ConditionTensor'", "FLOAT32", "UINT8", "BOOL"),
    ),
    "select integer condition": select(
        element_wise_if, WHOLE, MATRIX, MATRIX, parts=("'ConditionTensor'", "INT32")
    ),
    "select a of other sizes": select(
        element_wise_if,
        *(CONDITION, ones("FLOAT32", 2, 1), MATRIX),
        parts=(
            "'ATensor' has {2,1}",
            "'ConditionTensor' has {2,3}",
            "must be the same",
        ),
    ),
    "select b of other sizes": select(
        element_wise_if,
        *(CONDITION, MATRIX, VECTOR),
        parts=("'BTensor' has {3}", "'ConditionTensor' has {2,3}", "must be the same"),
    ),
    "select other types": select(
        element_wise_if,
        *(CONDITION, MATRIX, WHOLE),
        parts=("'ATensor' has FLOAT32", "'BTensor' has INT32", "must be the same"),
    ),
    "select other widths": select(
        element_wise_if,
        *(CONDITION, ones("FLOAT16", 2, 3), MATRIX),
        parts=("'ATensor' has FLOAT16", "'BTensor' has FLOAT32", "must be the same"),
    ),
    "select two numbers": select(
        lambda condition: element_wise_if(condition, 1, 2.0),
        CONDITION,
        parts=("'ATensor'", "'BTensor'", "Python numbers"),
        error=TypeError,
    ),
    "select a number too large": select(
        lambda condition, b: element_wise_if(condition, 2**40, b),
        *(CONDITION, WHOLE),
        parts=("ATensor is 1099511627776", "INT32", "-2147483648 to 2147483647"),
    ),
    "select a number not whole": select(
        lambda condition, a: element_wise_if(condition, a, 0.5),
        *(CONDITION, WHOLE),
        parts=("BTensor is 0.5", "INT32", "whole"),
    ),
    # NONZERO_COORDINATES
    "nonzero no column": nonzero(
        functools.partial(nonzero_coordinates, columns=0),
        MATRIX,
        parts=("0 columns", "{2,3}", "must have 2."),
    ),
    "nonzero few columns": nonzero(
        functools.partial(nonzero_coordinates, columns=1),
        ones("FLOAT32", 1, 2, 3),
        parts=("1 columns", "{1,2,3}", "2 to 3"),
    ),
    "nonzero many columns": nonzero(
        functools.partial(nonzero_coordinates, columns=4),
        ones("FLOAT32", 1, 2, 3),
        parts=("4 columns", "{1,2,3}", "2 to 3"),
    ),
    "nonzero columns of ones": nonzero(
        functools.partial(nonzero_coordinates, columns=0),
        ones("FLOAT32", 1, 1),
        parts=("0 columns", "{1,1}", "1 to 2"),
    ),
    "nonzero columns no integer": nonzero(
        functools.partial(nonzero_coordinates, columns=2.0),
        MATRIX,
        parts=("columns", "float", *STATIC),
        error=TypeError,
    ),
    "nonzero fill negative": nonzero(
        functools.partial(nonzero_coordinates, fill=-1),
        MATRIX,
        parts=("fill is -1", "UINT32", "0 to 4294967295"),
    ),
    "nonzero fill too large": nonzero(
        functools.partial(nonzero_coordinates, fill=2**32),
        MATRIX,
        parts=("fill is 4294967296", "UINT32", "0 to 4294967295"),
    ),
    "nonzero fill no integer": nonzero(
        functools.partial(nonzero_coordinates, fill=0.0),
        MATRIX,
        parts=("fill", "float", *STATIC),
        error=TypeError,
    ),
    "nonzero parts of unequal size": nonzero(
        functools.partial(nonzero_coordinates, parts=3),
        MATRIX,
        parts=("parts is 3", "must divide the first dimension", "{2,3}"),
    ),
    "nonzero no parts": nonzero(
        functools.partial(nonzero_coordinates, parts=0),
        MATRIX,
        parts=("parts is 0", "must divide the first dimension", "{2,3}"),
    ),
    "nonzero parts of a scalar": nonzero(
        functools.partial(nonzero_coordinates, parts=1),
        ones("FLOAT32"),
        parts=("parts is 1", "must divide the first dimension", "{}"),
    ),
    "nonzero parts no integer": nonzero(
        functools.partial(nonzero_coordinates, parts=1.0),
        MATRIX,
        parts=("parts", "float", *STATIC),
        error=TypeError,
    ),
    # PADDING
    "pad start too short": pad(
        pad_of(start=(1,)),
        MATRIX,
        parts=("StartPadding has 1 element, ", "'InputTensor' has 2 dim"),
    ),
    "pad end too long": pad(
        pad_of(end=(1, 1, 1)),
        MATRIX,
        parts=("EndPadding has 3 elements", "'InputTensor' has 2 dim"),
    ),
    "pad a scalar": pad(
        pad_of(),
        ones("FLOAT32"),
        parts=("StartPadding has 2 elements", "'InputTensor' has 0 dim"),
    ),
    "pad start negative": pad(
        pad_of(start=(-1, 0)), MATRIX, parts=("StartPadding is {-1,0}", "negative")
    ),
    "pad end negative": pad(
        pad_of(end=(0, -2)), MATRIX, parts=("EndPadding is {0,-2}", "negative")
    ),
    "pad start no sequence": pad(
        pad_of(start=1), MATRIX, parts=("StartPadding", "int"), error=TypeError
    ),
    "pad end a string": pad(
        pad_of(end="11"), MATRIX, parts=("EndPadding", "str"), error=TypeError
    ),
    "pad start None": pad(
        pad_of(start=None), MATRIX, parts=("StartPadding", "NoneType"), error=TypeError
    ),
    "pad start of floats": pad(
        pad_of(start=(1.0, 1.0)),
        MATRIX,
        parts=("StartPadding", "float", *STATIC),
        error=TypeError,
    ),
    "pad mode unknown": pad(
        pad_of(mode=5), MATRIX, parts=("PaddingMode is 5", "CONSTANT", "WRAP")
    ),
    "pad mode a string": pad(
        pad_of(mode="EDGE"), MATRIX, parts=("PaddingMode is 'EDGE'", "CONSTANT", "WRAP")
    ),
    "pad mode None": pad(
        pad_of(mode=None), MATRIX, parts=("PaddingMode is None", "CONSTANT", "WRAP")
    ),
    "pad value of other type": pad(
        lambda x: padding(x, (1, 1), (1, 1), value=VALUE_OF_INT32),
        MATRIX,
        parts=("PaddingValue", "INT32", "FLOAT32", "must be the same"),
    ),
    "pad value a matrix": pad(
        lambda x: padding(x, (1, 1), (1, 1), value=x),
        MATRIX,
        parts=("PaddingValue", "{2,3}", "scalar"),
    ),
    "pad value too large": pad(
        pad_of(value=2**40),
        WHOLE,
        parts=("PaddingValue is 1099511627776", "INT32", "-2147483648 to 2147483647"),
    ),
    "pad value None": pad(
        pad_of(value=None), MATRIX, parts=("PaddingValue", "NoneType"), error=TypeError
    ),
    "pad value a string": pad(
        pad_of(value="1"), MATRIX, parts=("PaddingValue", "str"), error=TypeError
    ),
    "pad value wide": pad(
        pad_of(value=np.float64(1)), MATRIX, parts=("PaddingValue", "FLOAT64", *X64)
    ),
    "pad nothing to repeat": pad(
        pad_of(mode=PaddingMode.EDGE),
        ones("FLOAT32", 0, 3),
        parts=("'InputTensor'", "{0,3}", "EDGE", "axis"),
    ),
    # The function that create_operator returns
    "operator too few arrays": pad(
        lambda: bound(tensor("FLOAT32", 3))(),
        parts=("0 input arrays", "1 input tensors", "InputTensor"),
        error=TypeError,
    ),
    "operator too many arrays": select(
        lambda *arrays: create_operator(
            ElementWiseIfDesc(tensor("UINT8", 3), *[tensor("FLOAT32", 3)] * 3)
        )(*arrays),
        *(VECTOR, VECTOR, VECTOR, VECTOR),
        parts=(
            "4 input arrays",
            "3 input tensors",
            "ConditionTensor, ATensor, BTensor",
        ),
        error=TypeError,
    ),
    "operator without inputs": wrong(
        "DIAGONAL_MATRIX",
        lambda x: create_operator(DiagonalMatrixDesc(tensor("FLOAT32", 2, 2), 0, 1.0))(
            x
        ),
        MATRIX,
        parts=("1 input arrays", "0 input tensors", "none"),
        error=TypeError,
    ),
    "operator array of other sizes": pad(
        lambda x: bound(tensor("FLOAT32", 3, 2))(x),
        MATRIX,
        parts=("'InputTensor' has {2,3}", "has {3,2}", "must be the same"),
    ),
    "operator array of other type": pad(
        lambda x: bound(tensor("FLOAT32", 2, 3))(x),
        WHOLE,
        parts=("'InputTensor' has INT32", "FLOAT32", "must be the same"),
    ),
    "operator buffer too short": pad(
        lambda x: bound(tensor("FLOAT32", 2, 2, strides=(2, 1)))(x),
        VECTOR,
        parts=("'InputTensor'", "flat", "at least 4", "{3}"),
    ),
    "operator buffer not flat": pad(
        lambda x: bound(tensor("FLOAT32", 2, strides=(1,)), tensor("FLOAT32", 2))(x),
        MATRIX,
        parts=("'InputTensor'", "flat", "at least 2", "{2,3}"),
    ),
    "operator array of the second input": select(
        lambda *arrays: create_operator(
            ElementWiseIfDesc(tensor("UINT8", 3), *[tensor("FLOAT32", 3)] * 3)
        )(*arrays),
        *(ones("UINT8", 3), VECTOR, ones("FLOAT32", 4)),
        parts=("'BTensor' has {4}", "has {3}", "must be the same"),
    ),
}
FUNCTIONS = {
    DIAGONAL: diagonal_of(),
    ONE_HOT: lambda x: one_hot(x, VECTOR, size=3),
    IF: lambda x: element_wise_if(CONDITION, x, MATRIX),
    NONZERO: nonzero_coordinates,
    PADDING: pad_of(),
}
TENSORS = {
    DIAGONAL: "InputTensor",
    ONE_HOT: "IndicesTensor",
    IF: "ATensor",
    NONZERO: "InputTensor",
    PADDING: "InputTensor",
}
# Calls that are wrong outside of a traced program only. Inside of it, JAX has turned
# all of these arguments into its own arrays.
NO_ARRAYS = {
    "a list": ([[1.0, 2.0]], TypeError, ("list", "jnp.asarray")),
    "a string": ("text", TypeError, ("str",)),
    "a set": ({1}, TypeError, ("set",)),
    "an object": (object(), TypeError, ("object",)),
    "an array of objects": (np.array([[None, 1]]), TypeError, ("object",)),
    "an array of strings": (np.array([["a", "b"]]), TypeError, ("numbers",)),
    "an array of dates": (np.ones((1, 2), "M8[s]"), TypeError, ("datetime64",)),
    "a wide float": (ones("FLOAT64", 2, 3), DescriptorError, ("FLOAT64", *X64)),
    "a wide integer": (ones("INT64", 2, 3), DescriptorError, ("INT64", *X64)),
    "a wide unsigned": (
        np.full((2, 1), 2**63 + 1, "uint64"),
        DescriptorError,
        ("UINT64", *X64),
    ),
    "a wide complex": (np.ones((2, 3), complex), DescriptorError, ("COMPLEX128", *X64)),
    "a wide scalar": (np.float64(1), DescriptorError, ("FLOAT64", *X64)),
    "a long double": (
        np.ones((2, 3), "longdouble"),
        TypeError,
        (str(np.dtype("longdouble")),),
    ),
}
# After an error, each of these calls must work and have this result.
RIGHT = {
    DIAGONAL: (diagonal_of(value=7), (MATRIX,), [[7, 1, 1], [1, 7, 1]]),
    ONE_HOT: (hot_of(), (INDICES, np.array([4, 2], "int32")), [[4, 2, 4]] * 2),
    IF: (element_wise_if, (CONDITION, WHOLE, WHOLE * 0), WHOLE.tolist()),
    NONZERO: (
        lambda x: nonzero_coordinates(x).coordinates,
        (INDICES,),
        [[0, 0], [1, 0]],
    ),
    PADDING: (pad_of((0, 1), (0, 0)), (INDICES,), [[0, 1]] * 2),
    "DIAGONAL_MATRIX": (
        lambda: create_operator(DiagonalMatrixDesc(tensor("INT8", 2, 2), 1, 3.0))(),
        (),
        [[0, 3], [0, 0]],
    ),
}


def error_of(bad, run):
    with pytest.raises(bad.error) as raised:
        run()
    assert type(raised.value) is bad.error
    return str(raised.value)


def assert_helpful(operator, message, parts):
    assert message.startswith(f"{operator}: ")
    assert "\n" not in message
    assert message.endswith(".")
    for part in parts:
        assert part in message


def assert_still_right(operator):
    call, arrays, expected = RIGHT[operator]
    assert call(*arrays).tolist() == expected
    assert jax.jit(call)(*arrays).tolist() == expected


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    bad = CALLS[name]
    message = error_of(bad, lambda: bad.call(*bad.arrays))
    assert_helpful(bad.operator, message, bad.parts)
    assert_still_right(bad.operator)


@pytest.mark.parametrize("name", CALLS)
def test_calls_in_a_traced_program(name):
    """The message is the same under jit and vmap: it does not show batch dimensions."""
    bad = CALLS[name]
    expected = error_of(bad, lambda: bad.call(*bad.arrays))
    batched = [np.stack([array] * 2) for array in bad.arrays]

    def call(_, *arrays):
        return bad.call(*arrays)

    for run in (
        lambda: jax.jit(bad.call)(*bad.arrays),
        lambda: jax.make_jaxpr(bad.call)(*bad.arrays),
        lambda: jax.vmap(call)(np.arange(2, dtype="int32"), *batched),
        lambda: jax.jit(jax.vmap(call))(np.arange(2, dtype="int32"), *batched),
    ):
        assert error_of(bad, run) == expected


@pytest.mark.parametrize("name", NO_ARRAYS)
@pytest.mark.parametrize("operator", FUNCTIONS)
def test_what_is_no_array(operator, name):
    value, error, parts = NO_ARRAYS[name]
    bad = wrong(operator, FUNCTIONS[operator], value, error=error, parts=parts)
    message = error_of(bad, lambda: bad.call(value))
    assert_helpful(operator, message, (TENSORS[operator], *parts))


@pytest.mark.parametrize("operator", [DIAGONAL, ONE_HOT, NONZERO, PADDING])
def test_a_python_integer_of_more_than_32_bits(operator):
    """Such an integer would be an INT64 tensor, which needs x64 mode."""
    for value in (2**31, -(2**31) - 1, 2**40):
        bad = wrong(operator, FUNCTIONS[operator], parts=())
        message = error_of(bad, functools.partial(bad.call, value))
        assert_helpful(operator, message, (TENSORS[operator], *X64))


@pytest.mark.parametrize("operator", FUNCTIONS)
def test_byte_order(operator):
    """Swapped bytes are refused: a compiled program would take them as they are."""
    types = {ONE_HOT: ("int32", (2, 1))}
    data_type, sizes = types.get(operator, ("float32", (2, 3)))
    native = np.ones(sizes, data_type)
    FUNCTIONS[operator](native)
    swapped = native.astype(native.dtype.newbyteorder())
    bad = wrong(operator, FUNCTIONS[operator], parts=(), error=TypeError)
    message = error_of(bad, lambda: bad.call(swapped))
    assert_helpful(operator, message, (TENSORS[operator], str(swapped.dtype)))


@pytest.mark.parametrize(
    ("operator", "call"),
    [
        (ONE_HOT, lambda: one_hot(None, VECTOR, size=3)),
        (ONE_HOT, lambda: one_hot(INDICES, None, size=3)),
        (IF, lambda: element_wise_if(None, MATRIX, MATRIX)),
        (IF, lambda: element_wise_if(CONDITION, None, MATRIX)),
        (IF, lambda: element_wise_if(CONDITION, MATRIX, None)),
        (NONZERO, lambda: nonzero_coordinates(None)),
        (PADDING, lambda: padding(None, (1,), (1,))),
        (PADDING, lambda: bound(tensor("FLOAT32", 2, 3))(None)),
        (PADDING, lambda: bound(tensor("FLOAT32", 3))([1.0, 1.0, 1.0])),
        (PADDING, lambda: padding(jax.random.key(0), (), ())),
    ],
)
def test_none_lists_and_keys(operator, call):
    bad = wrong(operator, call, parts=(), error=TypeError)
    assert_helpful(operator, error_of(bad, call), ("Tensor'",))


@pytest.mark.parametrize(
    ("operator", "call", "tensor_name"),
    [
        (ONE_HOT, lambda: one_hot(INDICES, ones("FLOAT64", 2), size=3), "ValuesTensor"),
        (
            ONE_HOT,
            lambda: one_hot(ones("INT64", 2, 1), VECTOR, size=3),
            "IndicesTensor",
        ),
        (IF, lambda: element_wise_if(CONDITION, MATRIX, np.float64(0)), "BTensor"),
        (IF, lambda: element_wise_if(ones("INT64", 2, 3), MATRIX, MATRIX), "Condition"),
        (
            PADDING,
            lambda: bound(tensor("FLOAT32", 3))(ones("FLOAT64", 3)),
            "InputTensor",
        ),
    ],
)
def test_wide_inputs_of_every_place(operator, call, tensor_name):
    bad = wrong(operator, call, parts=())
    assert_helpful(operator, error_of(bad, call), (tensor_name, *X64))


@pytest.mark.usefixtures("x64")
def test_wide_inputs_with_x64():
    index = np.full((2, 1), 2**63 + 1, "uint64")
    values = np.array([0.1, 1e300])
    np.testing.assert_array_equal(one_hot(index, values, size=2), [[0.1] * 2] * 2)
    assert padding(np.ones(1, "int64"), (1,), (0,), value=2**62)[0] == 2**62
    matrix = diagonal_matrix1(shape=(1, 1), dtype="uint64", value=2**64 - 1)
    assert int(matrix[0, 0]) == 2**64 - 1


def test_too_many_elements():
    wide = jax.ShapeDtypeStruct((65536, 65536), jnp.int8)
    bad = wrong(NONZERO, nonzero_coordinates, parts=())
    message = error_of(bad, lambda: jax.eval_shape(nonzero_coordinates, wide))
    parts = ("'InputTensor'", "{65536,65536}", "4294967296", "4294967295")
    assert_helpful(NONZERO, message, parts)
    fits = jax.ShapeDtypeStruct((65536, 65535), jnp.int8)
    shapes = jax.eval_shape(nonzero_coordinates, fits)
    assert shapes.coordinates.shape == (65536 * 65535, 2)


# ATTRIBUTES THAT ARE TRACED

TRACED = {
    "diagonal shape": (DIAGONAL, "shape", lambda n: diagonal_matrix1(shape=(n, 2))),
    "hot axis": (ONE_HOT, "Axis", lambda n: one_hot(INDICES, VECTOR, size=3, axis=n)),
    "hot size": (ONE_HOT, "size", lambda n: one_hot(INDICES, VECTOR, size=n)),
    "nonzero columns": (
        NONZERO,
        "columns",
        lambda n: nonzero_coordinates(MATRIX, columns=n),
    ),
    "nonzero fill": (NONZERO, "fill", lambda n: nonzero_coordinates(MATRIX, fill=n)),
    "pad start": (PADDING, "StartPadding", lambda n: padding(VECTOR, (n,), (1,))),
    "pad end": (PADDING, "EndPadding", lambda n: padding(VECTOR, (1,), [n])),
    "pad all starts": (
        PADDING,
        "StartPadding",
        lambda n: padding(VECTOR, n.reshape(1), (1,)),
    ),
    "pad mode": (PADDING, "PaddingMode", lambda n: padding(VECTOR, (1,), (1,), mode=n)),
}


@pytest.mark.parametrize("name", TRACED)
def test_traced_attributes(name):
    operator, attribute, call = TRACED[name]
    one = np.ones((), "int32")
    for run in (
        lambda: jax.jit(call)(one),
        lambda: jax.vmap(call)(np.ones(2, "int32")),
        lambda: jax.jit(jax.vmap(call))(np.ones(2, "int32")),
    ):
        with pytest.raises(TypeError) as raised:
            run()
        assert_helpful(operator, str(raised.value), (attribute,))
        if name != "pad all starts":
            assert "known when the program is traced" in str(raised.value)
    assert_still_right(operator)


# IMPLEMENTATIONS

WITH_IMPLEMENTATION = {
    DIAGONAL: lambda name: diagonal_matrix1(MATRIX, implementation=name),
    ONE_HOT: lambda name: one_hot(INDICES, VECTOR, size=3, implementation=name),
    IF: lambda name: element_wise_if(CONDITION, MATRIX, MATRIX, implementation=name),
    NONZERO: lambda name: nonzero_coordinates(MATRIX, implementation=name),
    PADDING: lambda name: padding(VECTOR, (1,), (1,), implementation=name),
}


@pytest.mark.parametrize("name", ["cuda", "XLA", "alone", "", 0])
@pytest.mark.parametrize("operator", WITH_IMPLEMENTATION)
def test_unknown_implementations(operator, name):
    call = WITH_IMPLEMENTATION[operator]
    parts = (f"implementation is {name!r}", "None, 'xla', 'pallas'")
    bad = wrong(operator, call, parts=parts)
    assert_helpful(operator, error_of(bad, lambda: call(name)), parts)
    assert_helpful(
        operator, error_of(bad, lambda: jax.jit(lambda: call(name))()), parts
    )


@pytest.mark.parametrize("operator", WITH_IMPLEMENTATION)
def test_a_kernel_that_is_not_there(operator, monkeypatch):
    """A form that is asked for by name never gives way to another one in silence."""
    monkeypatch.delitem(OPERATORS[operator.lower()].primitive.kernels, "cuda")
    jax.clear_caches()
    parts = ("implementation='pallas'", "no kernel", "'xla'")
    bad = wrong(operator, None, parts=parts, error=NoKernelError)
    call = functools.partial(WITH_IMPLEMENTATION[operator], "pallas")
    assert_helpful(operator, error_of(bad, call), parts)


# DESCRIPTORS

WRAPPED = 65536 * 65535 * 8 % 2**32
PLAIN = tensor("FLOAT32", 2, 3)


def diagonal_desc(**changes):
    desc = DiagonalMatrix1Desc(PLAIN, PLAIN, DataType.FLOAT32, 1.0, 0, 1)
    return dataclasses.replace(desc, **changes)


def hot_desc(**changes):
    indices, values = tensor("INT32", 2, 1), tensor("FLOAT32", 1, 2)
    desc = OneHotDesc(indices, values, PLAIN, 1)
    return dataclasses.replace(desc, **changes)


def select_desc(**changes):
    desc = ElementWiseIfDesc(tensor("UINT8", 2, 3), PLAIN, PLAIN, PLAIN)
    return dataclasses.replace(desc, **changes)


def nonzero_desc(**changes):
    item = tensor("FLOAT32", 1, 2, 3)
    outputs = tensor("UINT32", 1), tensor("UINT32", 6, 2)
    return dataclasses.replace(NonzeroCoordinatesDesc(item, *outputs), **changes)


def pad_desc(**changes):
    item, edge = tensor("FLOAT32", 3, 5), PaddingMode.EDGE
    desc = PaddingDesc(PLAIN, item, edge, 0.0, 2, (1, 0), (0, 2))
    return dataclasses.replace(desc, **changes)


def pad1_desc(data_type, value, value_type=None):
    item = tensor(data_type, 2)
    typed = DataType[value_type or data_type], value, 1, (0,), (0,)
    return Padding1Desc(item, item, PaddingMode.CONSTANT, *typed)


def strided(*strides, sizes=(2, 3), data_type="FLOAT32"):
    return tensor(data_type, *sizes, strides=strides)


def with_total(total, *sizes, data_type="FLOAT32", strides=None):
    return tensor(data_type, *sizes, strides=strides, total_tensor_size_in_bytes=total)


def aligned(alignment, data_type="FLOAT32"):
    return tensor(data_type, 2, 3, guaranteed_base_offset_alignment=alignment)


IN, OUT = "tensor 'InputTensor'", "tensor 'OutputTensor'"
TENSOR_RULES = {
    "no dimension": (tensor("FLOAT32"), ("0 dimensions", "1 to 8")),
    "nine dimensions": (tensor("FLOAT32", *[1] * 9), ("9 dimensions", "1 to 8")),
    "size 0": (tensor("FLOAT32", 2, 0), ("{2,0}", "at least 1")),
    "size negative": (tensor("FLOAT32", -2, 3), ("{-2,3}", "at least 1")),
    "size a float": (tensor("FLOAT32", 2.0, 3), ("{2.0,3}", "integer")),
    "size a string": (tensor("FLOAT32", "2", 3), ("{2,3}", "integer")),
    "too many elements": (
        tensor("INT8", 65536, 65536),
        ("{65536,65536}", "4294967296", "4294967295"),
    ),
    "product wraps to 0": (
        tensor("INT8", 2**16, 2**16, 2**16, 2**16),
        (str(2**64), "4294967295"),
    ),
    "few strides": (strided(1), ("1 stride {1}", "2 sizes {2,3}")),
    "many strides": (strided(3, 1, 1), ("3 strides {3,1,1}", "2 sizes {2,3}")),
    "no strides": (strided(), ("0 strides {}", "2 sizes {2,3}")),
    "stride negative": (strided(-3, 1), ("strides {-3,1}", "[0, 2^32)")),
    "stride too large": (strided(2**32, 1), ("strides {4294967296,1}", "[0, 2^32)")),
    "stride a float": (strided(3.0, 1), ("strides {3.0,1}", "integer")),
    "total too small": (
        with_total(23, 2, 3),
        ("TotalTensorSizeInBytes 23", "24"),
    ),
    "total not rounded up": (
        with_total(3, 3, data_type="UINT8"),
        ("TotalTensorSizeInBytes 3", "4"),
    ),
    "total of strides too small": (
        with_total(39, 2, 3, strides=(7, 1)),
        ("TotalTensorSizeInBytes 39", "40"),
    ),
    "total negative": (with_total(-24, 2, 3), ("TotalTensorSizeInBytes -24", "24")),
    "total a float": (
        with_total(24.0, 2, 3),
        ("TotalTensorSizeInBytes 24.0", "integer"),
    ),
    "total wrapped at 32 bits": (
        with_total(WRAPPED, 65536, 65535, data_type="FLOAT64"),
        (f"TotalTensorSizeInBytes {WRAPPED}", str(65536 * 65535 * 8)),
    ),
    "total wrapped by strides": (
        with_total(8, 2, 2, strides=(2**30 - 1, 1)),
        ("TotalTensorSizeInBytes 8", str(2**32 + 4)),
    ),
    "alignment 3": (aligned(3), ("GuaranteedBaseOffsetAlignment 3", "power of two")),
    "alignment 12": (aligned(12), ("GuaranteedBaseOffsetAlignment 12", "power of two")),
    "alignment too small": (
        aligned(2),
        ("GuaranteedBaseOffsetAlignment 2", "at least 4", "FLOAT32"),
    ),
    "alignment too small for 64 bits": (
        aligned(4, "FLOAT64"),
        ("GuaranteedBaseOffsetAlignment 4", "at least 8", "FLOAT64"),
    ),
    "alignment negative": (
        aligned(-4),
        ("GuaranteedBaseOffsetAlignment -4", "power of two"),
    ),
    "alignment a float": (aligned(4.0), ("GuaranteedBaseOffsetAlignment 4.0",)),
    "unknown flags": (tensor("FLOAT32", 2, 3, flags=2), ("Flags 2", "OWNED_BY_DML")),
    "type unknown": (tensor("UNKNOWN", 2, 3), ("UNKNOWN",)),
    "type not supported": (tensor("UINT4", 2, 3), ("UINT4", "6_4", "FLOAT32")),
}
OUTPUT_RULES = {
    "stride 0": (strided(0, 1), ("{2,3}", "{0,1}", "overlap")),
    "all strides 1": (strided(1, 1), ("{2,3}", "{1,1}", "overlap")),
    "partly": (strided(2, 1), ("{2,3}", "{2,1}", "overlap")),
    "interleaved": (strided(3, 2, sizes=(3, 4)), ("{3,4}", "{3,2}", "overlap")),
    "span": (
        strided(2**32 - 1, 1),
        ("{2,3}", "{4294967295,1}", "4294967298", "4294967295"),
    ),
}
SAME = ("must be the same",)
DESCRIPTIONS = {
    # DIAGONAL_MATRIX1
    "diagonal sizes": (
        diagonal_desc(input_tensor=tensor("FLOAT32", 3, 2)),
        ("'OutputTensor' has {2,3}", "{3,2}", *SAME),
    ),
    "diagonal types": (
        diagonal_desc(input_tensor=tensor("FLOAT16", 2, 3)),
        ("'OutputTensor' has FLOAT32", "'InputTensor' has FLOAT16", *SAME),
    ),
    "diagonal value type": (
        diagonal_desc(value_data_type=DataType.INT32),
        ("ValueDataType is INT32", "'OutputTensor' has FLOAT32", *SAME),
    ),
    "diagonal value not whole": (
        DiagonalMatrix1Desc(None, tensor("INT8", 2, 3), DataType.INT8, 0.5, 0, 1),
        ("Value is 0.5", "INT8", "whole"),
    ),
    "diagonal value too large": (
        DiagonalMatrix1Desc(None, tensor("INT8", 2, 3), DataType.INT8, 128, 0, 1),
        ("Value is 128", "INT8", "-128 to 127"),
    ),
    "diagonal value wide": (diagonal_desc(value=np.float64(1)), ("Value", *X64)),
    "diagonal with too many rows": (
        DiagonalMatrix1Desc(None, tensor("INT8", 2**31 + 1, 1), DataType.INT8, 0, 0, 1),
        ("'OutputTensor'", "{2147483649,1}", "at most 2^31 rows and 2^31 columns"),
    ),
    "diagonal with one diagonal and too many columns": (
        DiagonalMatrixDesc(tensor("FLOAT16", 1, 2**31 + 1), 1, 1.0),
        ("'OutputTensor'", "{1,2147483649}", "at most 2^31 rows and 2^31 columns"),
    ),
    "diagonal begin": (
        diagonal_desc(diagonal_fill_begin=2**31),
        ("DiagonalFillBegin", "2147483648", "INT32"),
    ),
    "diagonal end": (
        diagonal_desc(diagonal_fill_end=INT32_MIN - 1),
        ("DiagonalFillEnd", "-2147483649", "INT32"),
    ),
    "diagonal offset": (
        DiagonalMatrixDesc(PLAIN, INT32_MAX + 1, 1.0),
        ("Offset", "2147483648", "INT32"),
    ),
    # ONE_HOT
    "hot ranks of values": (
        hot_desc(values_tensor=tensor("FLOAT32", 2)),
        ("'ValuesTensor' has 1", "'IndicesTensor' has 2", "dimension", *SAME),
    ),
    "hot ranks of output": (
        hot_desc(output_tensor=tensor("FLOAT32", 1, 2, 3)),
        ("'OutputTensor' has 3", "'IndicesTensor' has 2", "dimension", *SAME),
    ),
    "hot axis": (hot_desc(axis=2), ("Axis is 2", "2 dimensions", "'IndicesTensor'")),
    "hot axis negative": (hot_desc(axis=-1), ("Axis is -1", "2 dimensions")),
    "hot indices": (
        hot_desc(indices_tensor=tensor("INT32", 2, 2)),
        ("'IndicesTensor'", "{2,2}", "Axis 1 is 2", "must be 1"),
    ),
    "hot sizes": (
        hot_desc(indices_tensor=tensor("INT32", 4, 1)),
        ("'OutputTensor' has {2,3}", "{4,3}", *SAME),
    ),
    "hot values": (
        hot_desc(values_tensor=tensor("FLOAT32", 1, 1)),
        ("'ValuesTensor'", "{1,1}", "1 element;", "at least 2"),
    ),
    "hot types": (
        hot_desc(values_tensor=tensor("FLOAT16", 1, 2)),
        ("'OutputTensor' has FLOAT32", "'ValuesTensor' has FLOAT16", *SAME),
    ),
    "hot small indices": (
        hot_desc(indices_tensor=tensor("INT16", 2, 1)),
        ("'IndicesTensor' has data type INT16", "INT64 INT32 UINT64 UINT32"),
    ),
    # ELEMENT_WISE_IF
    "select sizes of a": (
        select_desc(a_tensor=tensor("FLOAT32", 2, 1)),
        ("'ATensor' has {2,1}", "'ConditionTensor' has {2,3}", *SAME),
    ),
    "select sizes of b": (
        select_desc(b_tensor=tensor("FLOAT32", 3)),
        ("'BTensor' has {3}", "'ConditionTensor' has {2,3}", *SAME),
    ),
    "select sizes of output": (
        select_desc(output_tensor=tensor("FLOAT32", 3, 2)),
        ("'OutputTensor' has {3,2}", "{2,3}", *SAME),
    ),
    "select types of b": (
        select_desc(b_tensor=tensor("INT32", 2, 3)),
        ("'BTensor' has INT32", "'ATensor' has FLOAT32", *SAME),
    ),
    "select types of output": (
        select_desc(output_tensor=tensor("FLOAT16", 2, 3)),
        ("'OutputTensor' has FLOAT16", "'ATensor' has FLOAT32", *SAME),
    ),
    "select condition": (
        select_desc(condition_tensor=tensor("INT8", 2, 3)),
        ("'ConditionTensor' has data type INT8", "UINT8"),
    ),
    # NONZERO_COORDINATES
    "nonzero count": (
        nonzero_desc(output_count_tensor=tensor("UINT32", 1, 2)),
        ("'OutputCountTensor' has {1,2}", "{1,1}", *SAME),
    ),
    "nonzero count type": (
        nonzero_desc(output_count_tensor=tensor("INT32", 1)),
        ("'OutputCountTensor' has data type INT32", "UINT32"),
    ),
    "nonzero rows": (
        nonzero_desc(output_coordinates_tensor=tensor("UINT32", 5, 2)),
        ("'OutputCoordinatesTensor' has {5,2}", "{6,2}", *SAME),
    ),
    "nonzero few columns": (
        nonzero_desc(output_coordinates_tensor=tensor("UINT32", 6, 1)),
        ("1 columns", "{1,2,3}", "2 to 3"),
    ),
    "nonzero many columns": (
        nonzero_desc(output_coordinates_tensor=tensor("UINT32", 6, 4)),
        ("4 columns", "{1,2,3}", "2 to 3"),
    ),
    "nonzero leading size": (
        nonzero_desc(output_coordinates_tensor=tensor("UINT32", 2, 6, 2)),
        ("'OutputCoordinatesTensor' has {2,6,2}", "{1,6,2}", *SAME),
    ),
    "nonzero coordinates type": (
        nonzero_desc(output_coordinates_tensor=tensor("FLOAT32", 6, 2)),
        ("'OutputCoordinatesTensor' has data type FLOAT32", "UINT32"),
    ),
    # PADDING
    "pad output": (
        pad_desc(output_tensor=tensor("FLOAT32", 3, 6)),
        ("'OutputTensor' has {3,6}", "{3,5}", *SAME),
    ),
    "pad output rank": (
        pad_desc(output_tensor=tensor("FLOAT32", 15)),
        ("'OutputTensor' has {15}", "{3,5}", *SAME),
    ),
    "pad types": (
        pad_desc(output_tensor=tensor("FLOAT16", 3, 5)),
        ("'OutputTensor' has FLOAT16", "'InputTensor' has FLOAT32", *SAME),
    ),
    "pad count": (
        pad_desc(dimension_count=3),
        ("DimensionCount is 3", "'InputTensor' has 2 dimensions", *SAME),
    ),
    "pad start length": (
        pad_desc(start_padding=(1,)),
        ("StartPadding has 1 element, ", "'InputTensor' has 2 dimensions", *SAME),
    ),
    "pad end length": (
        pad_desc(end_padding=(0, 2, 0)),
        ("EndPadding has 3 elements", "'InputTensor' has 2 dimensions", *SAME),
    ),
    "pad start negative": (
        pad_desc(start_padding=(-1, 0)),
        ("StartPadding is {-1,0}", "negative"),
    ),
    "pad output too large": (
        copied(
            tensor("INT8", 2**31),
            tensor("INT8", 2**32),
            start_padding=(2**31,),
        ),
        ("'OutputTensor'", "4294967296", "4294967295"),
    ),
    # PADDING1
    "pad1 value type": (
        pad1_desc("FLOAT32", 1.0, "FLOAT16"),
        ("PaddingValueDataType is FLOAT16", "'OutputTensor' has FLOAT32", *SAME),
    ),
    "pad1 not whole": (
        pad1_desc("INT32", 10.6),
        ("PaddingValue is 10.6", "INT32", "whole"),
    ),
    "pad1 nan": (
        pad1_desc("UINT8", float("nan")),
        ("PaddingValue is nan", "UINT8", "whole"),
    ),
    "pad1 infinity": (
        pad1_desc("UINT8", float("inf")),
        ("PaddingValue is inf", "UINT8", "whole"),
    ),
    "pad1 too large": (
        pad1_desc("INT32", 2**31),
        ("PaddingValue is 2147483648", "INT32", "-2147483648 to 2147483647"),
    ),
    "pad1 negative": (pad1_desc("UINT8", -1), ("PaddingValue is -1", "0 to 255")),
    "pad1 complex": (pad1_desc("FLOAT32", 1j), ("PaddingValue is 1j",)),
    # 64-bit types
    "wide diagonal": (
        DiagonalMatrixDesc(tensor("INT64", 2, 2), 0, 1.0),
        ("INT64", *X64),
    ),
    "wide indices": (
        hot_desc(indices_tensor=tensor("UINT64", 2, 1)),
        ("'IndicesTensor'", "UINT64", *X64),
    ),
    "wide input": (copied(tensor("FLOAT64", 2)), ("'InputTensor'", "FLOAT64", *X64)),
    "wide value": (pad1_desc("INT64", 2**40), ("'InputTensor'", "INT64", *X64)),
}
# An attribute of the wrong type is an error when the operator is made, not when it
# runs.
UNTYPED = {
    "diagonal begin": (diagonal_desc(diagonal_fill_begin=0.5), "DiagonalFillBegin"),
    "diagonal end": (diagonal_desc(diagonal_fill_end=None), "DiagonalFillEnd"),
    "diagonal value": (diagonal_desc(value="1"), "Value"),
    "diagonal output": (diagonal_desc(output_tensor=None), "OutputTensor"),
    "diagonal offset": (DiagonalMatrixDesc(PLAIN, 1.5, 1.0), "Offset"),
    "diagonal float": (DiagonalMatrixDesc(PLAIN, 1, "1"), "Value"),
    "hot axis": (hot_desc(axis=1.0), "Axis"),
    "select a": (select_desc(a_tensor=None), "ATensor"),
    "pad mode": (pad_desc(padding_mode=7), "PaddingMode"),
    "pad mode a string": (pad_desc(padding_mode="EDGE"), "PaddingMode"),
    "pad value": (pad_desc(padding_value=None), "PaddingValue"),
    "pad value complex": (pad_desc(padding_value=1j), "PaddingValue"),
    "pad start": (pad_desc(start_padding=(1.0, 0.0)), "StartPadding"),
    "pad end": (pad_desc(end_padding=None), "EndPadding"),
    "pad input": (pad_desc(input_tensor=3), "InputTensor"),
    "pad input a string": (pad_desc(input_tensor="x"), "InputTensor"),
}


def refusal_of(desc):
    with pytest.raises(DescriptorError) as raised:
        create_operator(desc)
    return str(raised.value)


@pytest.mark.parametrize("name", TENSOR_RULES)
@pytest.mark.parametrize("output", [False, True])
def test_rules_of_every_tensor(name, output):
    item, parts = TENSOR_RULES[name]
    place = "output_tensor" if output else "input_tensor"
    message = refusal_of(pad_desc(**{place: item}))
    assert_helpful(PADDING, message, (OUT if output else IN, *parts))


@pytest.mark.parametrize("name", OUTPUT_RULES)
def test_rules_of_outputs(name):
    item, parts = OUTPUT_RULES[name]
    assert_helpful(PADDING, refusal_of(copied(PLAIN, item)), (OUT, *parts))
    # The same tensor is legal as an input.
    create_operator(copied(item, tensor("FLOAT32", *item.sizes)))


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_descriptors(name):
    desc, parts = DESCRIPTIONS[name]
    message = refusal_of(desc)
    assert_helpful(desc.operator, message, parts)
    with pytest.raises(DescriptorError) as raised:
        jax.jit(lambda: create_operator(desc)())()
    assert str(raised.value) == message


@pytest.mark.parametrize(
    "desc", [diagonal_desc(), hot_desc(), select_desc(), nonzero_desc(), pad_desc()]
)
def test_the_descriptors_that_were_changed_are_right(desc):
    assert callable(create_operator(desc))


@pytest.mark.parametrize("name", UNTYPED)
def test_attributes_of_the_wrong_type(name):
    desc, attribute = UNTYPED[name]
    with pytest.raises((TypeError, DescriptorError)) as raised:
        create_operator(desc)
    assert_helpful(desc.operator, str(raised.value), (attribute,))


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("Axis", lambda n: hot_desc(axis=n)),
        ("DiagonalFillBegin", lambda n: diagonal_desc(diagonal_fill_begin=n)),
        ("Offset", lambda n: DiagonalMatrixDesc(PLAIN, n, 1.0)),
        ("StartPadding", lambda n: pad_desc(start_padding=(n, 0))),
        ("DimensionCount", lambda n: pad_desc(dimension_count=n)),
    ],
)
def test_traced_attributes_of_descriptors(field, make):
    with pytest.raises((TypeError, DescriptorError)) as raised:
        jax.jit(lambda n: create_operator(make(n)) and n)(1)
    assert_helpful(make(1).operator, str(raised.value), (field,))


def test_an_enum_by_its_number():
    assert callable(create_operator(pad_desc(padding_mode=1)))
    with pytest.raises(DescriptorError, match="PaddingMode"):
        create_operator(pad_desc(padding_mode=4), feature_level=0x6300)


@pytest.mark.parametrize("value", [PLAIN, None, {}, PaddingDesc])
def test_what_is_no_descriptor(value):
    with pytest.raises(TypeError, match="create_operator takes an operator descriptor"):
        create_operator(value)


@pytest.mark.parametrize("level", [0, 0x6401, "6_4", None])
def test_unknown_levels(level):
    with pytest.raises(ValueError, match=r"feature_level is .* Write for example"):
        create_operator(pad_desc(), feature_level=level)


def test_tensors_that_are_large_but_allowed():
    """Sums of 2^32 - 1 elements, 2^35 bytes and strides near 2^32 do not overflow."""
    largest = tensor("INT8", 65535, 65537)
    create_operator(copied(largest))
    create_operator(
        copied(strided(2**32 - 1, 2**32 - 1, sizes=(9, 9)), tensor("FLOAT32", 9, 9))
    )
    with jax.enable_x64(True):
        total = 65536 * 65535 * 8
        create_operator(copied(with_total(total, 65536, 65535, data_type="FLOAT64")))


# JSON

WRITTEN = {
    "a field too many": ({"Padding": 1}, ("Padding", "StartPadding")),
    "a mode": ({"PaddingMode": "MIRROR"}, ("PaddingMode", "MIRROR", "REFLECTION")),
    "a mode of another enum": (
        {"PaddingMode": "DML_TENSOR_DATA_TYPE_EDGE"},
        ("PaddingMode", "DML_TENSOR_DATA_TYPE_EDGE"),
    ),
    "a mode by number": ({"PaddingMode": 5}, ("PaddingMode", "5", "REFLECTION")),
    "a mode a boolean": ({"PaddingMode": True}, ("PaddingMode", "true")),
    "a value": ({"PaddingValue": "ten"}, ("PaddingValue", "'ten'", "number")),
    "a value missing": ({"PaddingValue": None}, ("PaddingValue",)),
    "a count": ({"DimensionCount": 2.0}, ("DimensionCount", "2.0", "integer")),
    "a count a boolean": ({"DimensionCount": True}, ("DimensionCount", "true")),
    "a list": ({"StartPadding": 1}, ("StartPadding", "1", "list")),
    "an element": ({"StartPadding": [1, "0"]}, ("StartPadding", "'0'", "integer")),
    "a tensor": ({"InputTensor": []}, ("InputTensor", "object")),
    "a tensor missing": ({"InputTensor": None}, ("InputTensor",)),
    "a tensor without a type": ({"InputTensor": {"Sizes": [1]}}, ("DataType",)),
    "a tensor without sizes": ({"InputTensor": {"DataType": "INT8"}}, ("Sizes",)),
    "a type": (
        {"InputTensor": {"DataType": "FLOAT8", "Sizes": [1]}},
        ("InputTensor.DataType", "FLOAT8", "FLOAT16"),
    ),
    "a field of a tensor": (
        {"InputTensor": {"DataType": "INT8", "Sizes": [1], "Size": [1]}},
        ("InputTensor", "Size", "Sizes"),
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_json(name):
    change, parts = WRITTEN[name]
    with pytest.raises(DescriptorError) as raised:
        PaddingDesc.from_json(pad_desc().to_json()["desc"] | change)
    assert_helpful(PADDING, str(raised.value), parts)


@pytest.mark.parametrize("value", [None, [], "desc", 1])
def test_json_that_is_no_object(value):
    with pytest.raises(DescriptorError, match=r"^PADDING: .*object"):
        PaddingDesc.from_json(value)


# THE EXCEPTION


def test_descriptor_error_is_public():
    assert dmljax.DescriptorError is DescriptorError
    assert issubclass(DescriptorError, ValueError)
    with pytest.raises(ValueError, match="negative") as raised:
        padding(VECTOR, (-1,), (0,))
    text = "".join(traceback.format_exception(raised.value))
    assert "\ndmljax.DescriptorError: PADDING: StartPadding is {-1}; " in text
    assert "During handling" not in text
    assert "direct cause" not in text


def test_descriptor_error_can_be_pickled():
    error = DescriptorError("PADDING: text.")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is DescriptorError
    assert again.args == error.args
    assert pickle.dumps(error).count(b"dmljax._check") == 0
