"""What the functions accept and refuse: values, scalars, containers, attributes."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dmljax import (
    DataType,
    DescriptorError,
    DiagonalMatrix1Desc,
    DiagonalMatrixDesc,
    FeatureLevel,
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

CONDITION = np.array([[1, 0, 2], [0, 1, 0]], np.uint8)
X = np.arange(6, dtype=np.float32).reshape(2, 3)
INDICES = np.array([[0], [2]], np.int32)
VALUES = np.array([4, 2], np.float32)
ONES = (1, 1)
pad = functools.partial(padding, X, ONES, ONES)


class Parameter:
    """As flax's nnx.Param: no array, but it has one."""

    def __init__(self, value):
        self.value = value
        self.shape, self.dtype = value.shape, value.dtype

    def __jax_array__(self):
        return self.value


# VALUES THAT JAX WOULD CHANGE IN SILENCE

MATRIX_CALLS = {
    "diagonal_matrix1": diagonal_matrix1,
    "one_hot": lambda i: one_hot(i, VALUES, size=3),
    "one_hot values": lambda v: one_hot(INDICES, v, size=3),
    "condition": lambda c: element_wise_if(c, X, X),
    "a": lambda a: element_wise_if(CONDITION, a, X),
    "b": lambda b: element_wise_if(CONDITION, X, b),
    "nonzero_coordinates": nonzero_coordinates,
    "padding": lambda x: padding(x, ONES, ONES),
    "descriptor": lambda x: described(0.0)(x),
}
SCALAR_CALLS = {
    "diagonal value": lambda v: diagonal_matrix1(X, value=v),
    "scalar a": lambda a: element_wise_if(CONDITION, a, X),
    "scalar b": lambda b: element_wise_if(CONDITION, X, b),
    "padding value": lambda v: pad(value=v),
    "ignored value": lambda v: pad(value=v, mode=PaddingMode.EDGE),
}
CALLS = [
    pytest.param(call, shape, id=name)
    for calls, shape in ((MATRIX_CALLS, (2, 3)), (SCALAR_CALLS, ()))
    for name, call in calls.items()
]


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64", "complex128"])
@pytest.mark.parametrize(("call", "shape"), CALLS)
def test_wide_arrays_made_under_x64(call, shape, dtype):
    with jax.enable_x64(True):
        array = jnp.ones(shape, dtype)
    assert array.dtype == dtype
    with pytest.raises(DescriptorError, match=rf"{dtype.upper()}.* x64 mode"):
        call(array)


def described(value, data_type="FLOAT32", mode=PaddingMode.CONSTANT):
    item, padded = (TensorDesc(DataType[data_type], n) for n in ((2, 3), (4, 5)))
    return create_operator(PaddingDesc(item, padded, mode, value, 2, ONES, ONES))


KINDS = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("call", ["padding", "diagonal", "select"])
def test_a_traced_integer_saturates(call, dtype):
    x = jnp.zeros((1, 1), dtype)
    calls = {
        "padding": lambda v: padding(x, (1, 0), (0, 0), value=v)[0, 0],
        "diagonal": lambda v: diagonal_matrix1(x, value=v)[0, 0],
        "select": lambda v: element_wise_if(jnp.ones((1, 1), bool), v, x)[0, 0],
    }
    limits = np.iinfo(dtype)
    function = jax.jit(calls[call])
    for value in (0, 1, 300, -5, 70000, 2**31 - 1, -(2**31)):
        found = function(value)
        assert found.dtype == dtype
        assert int(found) == min(max(value, int(limits.min)), int(limits.max))


@pytest.mark.parametrize("dtype", KINDS)
def test_a_traced_float_pads_as_it_does_untraced(dtype):
    x = jnp.zeros(1, dtype)
    call = functools.partial(padding, x, (1,), (0,))
    traced = jax.jit(lambda v: call(value=v))
    for value in (10.6, -10.6, 1e30, -1e30, np.inf, -np.inf, np.nan):
        assert int(traced(float(value))[0]) == int(call(value=float(value))[0])


def test_a_traced_float_is_no_integer_elsewhere():
    whole = jnp.zeros((2, 3), jnp.int32)
    for call in (
        lambda v: diagonal_matrix1(whole, value=v),
        lambda v: element_wise_if(CONDITION, whole, v),
    ):
        with pytest.raises(DescriptorError, match=r"FLOAT32, while .* INT32"):
            jax.jit(call)(1.0)


@pytest.mark.parametrize(("call", "shape"), CALLS)
def test_masks_are_not_dropped(call, shape):
    array = np.ma.masked_array(np.ones(shape, np.float32), np.ones(shape, bool))
    with pytest.raises(TypeError, match="masked array, whose mask would be lost"):
        call(array)


@pytest.mark.parametrize(("call", "shape"), CALLS)
def test_lists_are_refused(call, shape):
    value = [1.0] if shape == () else X.tolist()
    with pytest.raises(TypeError, match="not list; convert it"):
        call(value)


@pytest.mark.parametrize(
    "value", [1j, np.complex64(1j), 10**400, -(10**400), "1", True]
)
def test_values_of_descriptors(value):
    matrix = TensorDesc(DataType.FLOAT32, (2, 3))
    rule = "a real number that a floating-point type holds"
    for mode in (PaddingMode.CONSTANT, PaddingMode.EDGE):
        with pytest.raises(DescriptorError, match=f"PADDING: PaddingValue.*{rule}"):
            described(value, mode=mode)
    with pytest.raises(DescriptorError, match=f"DIAGONAL_MATRIX: Value.*{rule}"):
        create_operator(DiagonalMatrixDesc(matrix, 0, value))
    desc = DiagonalMatrix1Desc(matrix, matrix, DataType.FLOAT32, value, 0, 1)
    with pytest.raises(DescriptorError, match=f"DIAGONAL_MATRIX1: Value.*{rule}"):
        create_operator(desc)


@pytest.mark.parametrize("mode", [False, True])
def test_a_large_float_is_the_same_integer_traced_or_not(mode):
    """A traced float has JAX's default type, to which any float is rounded."""
    with jax.enable_x64(mode):
        x = jnp.zeros(1, jnp.int32)
        pad = functools.partial(padding, x, (0,), (1,))
        found = (
            pad(value=123456789.0)[1],
            jax.jit(lambda v: pad(value=v))(123456789.0)[1],
        )
    assert found == ((123456789,) * 2 if mode else (123456792,) * 2)


@pytest.mark.parametrize("dtype", [">f4", np.longdouble, "U3", ">i2"])
def test_a_dtype_that_jax_does_not_have(dtype):
    with pytest.raises(
        TypeError, match="a type of numbers that JAX has, in native byte"
    ):
        diagonal_matrix1(shape=(2, 2), dtype=dtype)


def test_bounds_that_wrap_an_array():
    wrapped = Parameter(jnp.int32(1)), Parameter(np.int32(3))
    for bounds in (wrapped, (wrapped[0], 3), (1, wrapped[1])):
        begin, end = bounds
        found = diagonal_matrix1(X, value=7, fill_begin=begin, fill_end=end)
        np.testing.assert_array_equal(found, [[0, 7, 7], [3, 4, 7]])


def test_sizes_of_rank_0_are_refused():
    for call in (
        lambda: padding(X, np.array(1), (1, 1)),
        lambda: diagonal_matrix1(shape=np.array(3)),
        lambda: TensorDesc(1, np.array(3)),
    ):
        with pytest.raises(TypeError, match="must be a sequence of integers"):
            call()


def test_the_largest_integers_of_a_double(x64):
    largest = int(np.finfo(np.float64).max)
    fill = functools.partial(diagonal_matrix1, shape=(1, 1), dtype=np.float64)
    assert fill(value=-largest)[0, 0] == -float(largest)
    assert fill(value=2**1023)[0, 0] == 2.0**1023
    with pytest.raises(DescriptorError, match="holds no numbers of this size"):
        fill(value=largest + 1)


# SCALARS

SCALARS = {
    "Python": 7.0,
    "Python zero": 0.0,
    "integer": 7,
    "NumPy": np.float32(7),
    "NumPy array": np.full((), 7, np.float32),
    "JAX": jnp.float32(7),
    "weak": jnp.asarray(7.0),
    "limit": jnp.finfo(jnp.float32).min,
    "parameter": Parameter(jnp.float32(7)),
}
NUMBERS = {name: value for name, value in SCALARS.items() if name != "parameter"}


def select(condition, a, b):
    return element_wise_if(condition, a, b)


@pytest.mark.parametrize("name", SCALARS)
def test_scalars(name):
    value = SCALARS[name]
    number = np.float32(value.value if isinstance(value, Parameter) else value)
    for found, expected in (
        (select(CONDITION, X, value), np.where(CONDITION != 0, X, number)),
        (select(CONDITION, value, X), np.where(CONDITION != 0, number, X)),
        (pad(value=value), np.pad(X, 1, constant_values=number)),
        (
            diagonal_matrix1(X, value=value, fill_begin=1, fill_end=9),
            np.where(np.triu(np.ones_like(X), 1), number, X),
        ),
    ):
        assert not found.weak_type
        np.testing.assert_array_equal(found, expected, strict=True)


def scanned(condition, a, b):
    def step(carry, x):
        return carry, select(condition, x, carry)

    return jax.lax.scan(step, b, jnp.asarray(a)[None])[1][0]


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(
    "transform",
    [
        jax.jit,
        jax.checkpoint,
        lambda f: jax.jit(jax.checkpoint(f)),
        lambda f: (
            lambda c, a, b: jax.vmap(f, (None, None, 0))(
                c, a, jnp.array([b], jnp.float32)
            )[0]
        ),
        lambda f: jax.jit(scanned),
    ],
    ids=["jit", "checkpoint", "both", "vmap", "scan"],
)
def test_scalars_as_arguments(transform, name):
    value = NUMBERS[name]
    found = transform(select)(CONDITION, X, value)
    expected = np.where(CONDITION != 0, X, np.float32(value))
    np.testing.assert_array_equal(found, expected, strict=True)


def test_the_derivative_in_a_scalar():
    weights = np.array([[1, 20, 300], [4000, 50000, 600000]], np.float32)
    gradient = jax.grad(lambda b: (select(CONDITION, X, b) * weights).sum())
    outside = weights[CONDITION == 0].sum()
    assert gradient(1.0) == jax.jit(gradient)(1.0) == gradient(np.float32(1)) == outside
    per_example = jax.vmap(gradient)(jnp.ones(2))
    np.testing.assert_array_equal(per_example, [outside] * 2)


def test_the_type_of_two_scalars():
    for a, b, dtype in (
        (np.float16(1), 0.0, "float16"),
        (2, jnp.int8(1), "int8"),
        (jnp.float32(1), np.float32(2), "float32"),
    ):
        found = select(CONDITION, a, b)
        expected = np.where(CONDITION != 0, a, b).astype(dtype)
        np.testing.assert_array_equal(found, expected, strict=True)
        traced = jax.jit(select)(CONDITION, a, b)
        np.testing.assert_array_equal(traced, expected, strict=True)
    with pytest.raises(DescriptorError, match=r"'ATensor' has FLOAT32.*'BTensor' has"):
        select(CONDITION, X, np.int32(1))
    with pytest.raises(DescriptorError, match=r"'BTensor' has \{1\}"):
        select(CONDITION, X, np.ones(1, np.float32))


def test_a_traced_number_gives_way_to_a_weak_array():
    weak = jnp.full((2, 3), 1.5)
    assert weak.weak_type
    found = jax.jit(select)(CONDITION, weak, 0)
    np.testing.assert_array_equal(found, np.where(CONDITION, 1.5, 0).astype("float32"))


@pytest.mark.parametrize(
    ("call", "array"),
    [
        (diagonal_matrix1, X),
        (lambda i: one_hot(i, VALUES, size=3), INDICES),
        (lambda v: one_hot(INDICES, v, size=3), VALUES),
        (lambda c: select(c, X, 2.0), CONDITION),
        (lambda a: select(CONDITION, a, X), X + 1),
        (lambda b: select(CONDITION, X, b), X + 1),
        (lambda x: nonzero_coordinates(x).coordinates, X),
        (lambda x: padding(x, ONES, ONES), X),
        (lambda x: described(0.0)(x), X),
    ],
)
def test_objects_with_an_array(call, array):
    expected = call(array)
    for value in (array, jnp.asarray(array)):
        np.testing.assert_array_equal(call(Parameter(value)), expected)
    jitted = jax.jit(lambda x: call(Parameter(x)))
    np.testing.assert_array_equal(jitted(array), expected)


# ATTRIBUTES


class Strange:
    def __array__(self):
        return X


HUGE = 10**5000
REFUSED = {
    "mode a list": (lambda: pad(mode=[]), r"PADDING: PaddingMode is \[\];.*WRAP\. Wri"),
    "mode a name": (lambda: pad(mode="EDGE"), r"is 'EDGE';.*Write PaddingMode\.EDGE\."),
    **{
        f"mode {other}": (
            lambda other=other: pad(mode=other),
            rf"is '{other}';.*WRAP\. Write PaddingMode\.{mode}\.$",
        )
        for other, mode in (
            *(("edge", "EDGE"), ("reflect", "REFLECTION"), ("REFLECT", "REFLECTION")),
            *(("replicate", "EDGE"), ("circular", "WRAP"), ("symmetric", "SYMMETRIC")),
        )
    },
    "mode of no name": (lambda: pad(mode="mean"), r"Write for example PaddingMode\."),
    **{
        f"{name} in pairs of type {type(pairs).__name__}": (
            lambda pads=pads: padding(INDICES, *pads),
            rf"PADDING: {name} has .*1, 1.* for an axis; .* = zip\(\*pairs\)\.$",
        )
        for pairs in (((1, 1), (1, 1)), [[1, 1], [1, 1]], np.ones((2, 2), int))
        for name, pads in (
            ("StartPadding", (pairs, 0)),
            ("EndPadding", ((1, 1), pairs)),
        )
    },
    "mode a boolean": (lambda: pad(mode=True), "PaddingMode is True"),
    "mode a type": (lambda: pad(mode=DataType.FLOAT32), "PaddingMode is <DataType"),
    "no form": (
        lambda: pad(implementation=[]),
        r"implementation is \[\];.*None, 'xla'",
    ),
    "no form of if": (
        lambda: element_wise_if(CONDITION, X, X, implementation={}),
        r"ELEMENT_WISE_IF: implementation is \{\};",
    ),
    "pad 2^62": (
        lambda: padding(X, (2**62, 0), ONES),
        r"StartPadding is \{4611686018427387904,0\};.*less than 2\^32",
    ),
    "pad 10^5000": (
        lambda: padding(X, ONES, (HUGE, 0)),
        r"EndPadding is about 2\^16609",
    ),
    "size 10^5000": (
        lambda: one_hot(INDICES, VALUES, size=HUGE),
        r"size is about 2\^16609; it must be an integer of at most 64 bits",
    ),
    "bound 10^5000": (
        lambda: diagonal_matrix1(X, fill_end=-HUGE),
        r"DiagonalFillEnd is about -2\^16609; it must be an INT32",
    ),
    "value 10^5000": (lambda: pad(value=HUGE), r"PaddingValue is about 2\^16609;"),
    "ignored value": (
        lambda: pad(mode=PaddingMode.EDGE, value="one"),
        r"PADDING: 'PaddingValue' must be a number or an array, not str\.$",
    ),
    "ignored None": (
        lambda: pad(mode=PaddingMode.WRAP, value=None),
        "'PaddingValue' must be a number or an array, not NoneType",
    ),
    "size True": (
        lambda: one_hot(INDICES, VALUES, size=True),
        "ONE_HOT: size is True, a boolean; it must be an integer",
    ),
    "axis False": (
        lambda: one_hot(INDICES, VALUES, size=3, axis=np.False_),
        "Axis is False, a boolean",
    ),
    "columns True": (
        lambda: nonzero_coordinates(X, columns=True),
        "NONZERO_COORDINATES: columns is True, a boolean",
    ),
    "padding True": (
        lambda: padding(X, (True, 1), ONES),
        "StartPadding is True, a bool",
    ),
    "bound True": (
        lambda: diagonal_matrix1(X, fill_begin=True),
        "FillBegin is True, a",
    ),
    "traced lists": (
        lambda: jax.jit(padding)(X, (0, 1), (0, 1)),
        "PADDING: StartPadding is traced;.*Close over it.*static_argnums",
    ),
    "traced array": (
        lambda: jax.jit(padding)(X, np.zeros(2, np.int32), (0, 1)),
        "StartPadding is traced;.*static_argnums",
    ),
    "sizes a string": (
        lambda: diagonal_matrix1(shape="23"),
        "DIAGONAL_MATRIX1: shape must be a sequence of integers, not str",
    ),
    "indices of rank 0": (
        lambda: one_hot(np.int32(1), VALUES, size=3),
        r"ONE_HOT: Axis is -1, while .*'IndicesTensor' has 0 dimensions;.*\[None\]",
    ),
    "what NumPy would convert": (
        lambda: padding(Strange(), ONES, ONES),
        "'InputTensor' must be an array, not Strange; convert it with jnp.asarray",
    ),
    # Descriptors
    "type a name": (
        lambda: TensorDesc("FLOAT32", (2, 3)),
        r"TensorDesc: data_type is 'FLOAT32';.*Write DataType\.FLOAT32\.",
    ),
    "type 99": (lambda: TensorDesc(99, (2, 3)), "TensorDesc: data_type is 99; it must"),
    "type a mode": (
        lambda: TensorDesc(PaddingMode.EDGE, (2, 3)),
        "data_type is <PaddingMode.EDGE: 1>; it must be one of UNKNOWN, FLOAT32",
    ),
    "type True": (lambda: TensorDesc(True, (2, 3)), "TensorDesc: data_type is True;"),
    "sizes a number": (
        lambda: TensorDesc(DataType.FLOAT32, 6),
        r"TensorDesc: sizes is 6; it must be a sequence of integers, such as \(2, 3\)",
    ),
    "sizes text": (
        lambda: TensorDesc(DataType.FLOAT32, "23"),
        "sizes is '23'; it must",
    ),
    "strides a number": (lambda: TensorDesc(1, (2, 3), 1), "TensorDesc: strides is 1;"),
    "flags": (
        lambda: TensorDesc(1, (2, 3), flags=-1),
        "TensorDesc: flags is -1; it must be 0, NONE, or 1, OWNED_BY_DML",
    ),
    "size True of a tensor": (
        lambda: of(TensorDesc(1, (True, 3))),
        r"tensor 'InputTensor' has sizes \{True,3\}; each must be an integer",
    ),
    "total size": (
        lambda: of(TensorDesc(1, (2, 3), total_tensor_size_in_bytes=2**100)),
        r"'InputTensor' has TotalTensorSizeInBytes 1267.*less than 2\^64",
    ),
    "total size of an output": (
        lambda: of(None, TensorDesc(1, (2, 3), (3, 1), 2**40)),
        "'OutputTensor' has TotalTensorSizeInBytes 1099511627776, a buffer of 27",
    ),
    "alignment": (
        lambda: of(TensorDesc(1, (2, 3), guaranteed_base_offset_alignment=2**100)),
        r"GuaranteedBaseOffsetAlignment 1267.*a power of two.*less than 2\^32",
    ),
    "level": (
        lambda: create_operator(of().desc, feature_level="6_4"),
        r"create_operator: feature_level is '6_4';.*for example FeatureLevel\.V6_4",
    ),
    "level a boolean": (
        lambda: create_operator(of().desc, feature_level=True),
        "is True",
    ),
    "offset True": (
        lambda: create_operator(DiagonalMatrixDesc(TensorDesc(1, (2, 3)), True, 1.0)),
        "DIAGONAL_MATRIX: Offset is True, a boolean",
    ),
    "mode of a descriptor": (
        lambda: described(0.0, mode="EDGE"),
        r"PADDING: PaddingMode is 'EDGE';.*Write PaddingMode\.EDGE\.",
    ),
    "pads of a descriptor": (
        lambda: create_operator(
            PaddingDesc(*[TensorDesc(1, (2,))] * 2, 1, 0.0, 1, (False,), (0,))
        ),
        "PADDING: StartPadding is False, a boolean",
    ),
}


def of(item=None, output=None):
    """An operator that changes nothing."""
    plain, none = TensorDesc(DataType.FLOAT32, (2, 3)), (0, 0)
    tensors = item or plain, output or plain
    return create_operator(PaddingDesc(*tensors, PaddingMode.EDGE, 0, 2, none, none))


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    """One line of ours, which names operator or struct, argument, rule and value."""
    call, text = REFUSED[name]
    with pytest.raises((DescriptorError, TypeError), match=text) as raised:
        call()
    message = str(raised.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert len(message) < 400


def test_what_sizes_and_modes_may_be():
    expected = np.pad(X, ((1, 0), (0, 2)), mode="reflect")
    for start, end in (
        ([1, 0], [0, 2]),
        (np.array([1, 0]), np.array([0, 2], np.uint8)),
        ((np.int64(1), 0), (0, jnp.int32(2))),
        (range(1, -1, -1), range(0, 4, 2)),
    ):
        for mode in (PaddingMode.REFLECTION, 2, np.int64(2), np.asarray(2)):
            found = padding(X, start, end, mode=mode)
            np.testing.assert_array_equal(found, expected)
    zeros = diagonal_matrix1(shape=np.array([2, 3]), value=0)
    np.testing.assert_array_equal(zeros, np.zeros((2, 3), np.float32), strict=True)
    bytes_ = jnp.uint32(24), np.int64(8)
    item = TensorDesc(1, np.array([2, 3]), np.array([3, 1]), bytes_[0], np.int64(0))
    item = dataclasses.replace(item, guaranteed_base_offset_alignment=bytes_[1])
    assert item == TensorDesc(DataType.FLOAT32, (2, 3), (3, 1), 24, item.flags, 8)
    start = (jnp.array(0), 0)
    desc = PaddingDesc(item, item, np.int64(1), 0, np.array(2), start, np.zeros(2, int))
    assert type(desc.dimension_count) is int
    assert desc.start_padding == desc.end_padding == (0, 0)
    operator = create_operator(desc, feature_level=np.int64(0x6400))
    assert operator.feature_level is FeatureLevel.V6_4
    np.testing.assert_array_equal(operator(np.arange(6, dtype="f")), np.arange(6))
