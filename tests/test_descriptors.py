"""Operators that are made from descriptors: values, strides, transformations, JSON."""

import dataclasses
import functools
import json
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmljax import (
    DataType,
    DescriptorError,
    DiagonalMatrix1Desc,
    DiagonalMatrixDesc,
    ElementWiseIfDesc,
    FeatureLevel,
    NonzeroCoordinates,
    NonzeroCoordinatesDesc,
    OneHotDesc,
    OperatorDesc,
    Padding1Desc,
    PaddingDesc,
    PaddingMode,
    TensorDesc,
    TensorFlags,
    _strides,
    create_operator,
)
from dmljax._operators import DESCRIPTORS
from tests import oracles
from tests.subjects import SUBJECTS

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
NAN, INFINITY = math.nan, math.inf
# The fields of the C structs, typed a second time from directml.h.
STRUCTS = {
    DESCRIPTORS[name]: fields
    for subject in SUBJECTS.values()
    for name, fields in subject.structs.items()
}
TYPES = [
    "FLOAT32",
    "FLOAT16",
    "FLOAT64",
    "INT64",
    "INT32",
    "INT16",
    "INT8",
    "UINT64",
    "UINT32",
    "UINT16",
    "UINT8",
]


def tensor(data_type, *sizes, strides=None, **rest):
    return TensorDesc(DataType[data_type], sizes, strides, **rest)


class Case(NamedTuple):
    """A descriptor, and a function in NumPy from its logical inputs to its outputs."""

    desc: OperatorDesc
    oracle: Callable[..., tuple[np.ndarray, ...]]


def diagonal_case(data_type, *sizes, value, fill_begin, fill_end):
    matrix = tensor(data_type, *sizes)
    bounds = {"fill_begin": fill_begin, "fill_end": fill_end}
    return Case(
        DiagonalMatrix1Desc(
            matrix, matrix, DataType[data_type], value, fill_begin, fill_end
        ),
        lambda x: (oracles.diagonal_matrix1(x, value=value, **bounds),),
    )


def generated_case(desc, value):
    """Makes a DIAGONAL_MATRIX. `value` is what the tensor's type makes of its value."""
    return Case(
        desc,
        lambda: (
            oracles.diagonal_matrix1(
                None,
                shape=desc.output_tensor.sizes,
                dtype=desc.output_tensor.dtype,
                value=value,
                fill_begin=desc.offset,
                fill_end=desc.offset + 1,
            ),
        ),
    )


def one_hot_case(indices, values, output, axis):
    size = output.sizes[axis]
    return Case(
        OneHotDesc(indices, values, output, axis),
        lambda i, v: (oracles.one_hot(i, v, size=size, axis=axis),),
    )


def if_case(data_type, *sizes):
    value = tensor(data_type, *sizes)
    return Case(
        ElementWiseIfDesc(tensor("UINT8", *sizes), value, value, value),
        lambda condition, a, b: (oracles.element_wise_if(condition, a, b),),
    )


def coordinates_case(data_type, sizes, count, coordinates):
    def oracle(x):
        outputs = oracles.nonzero_coordinates(x, columns=coordinates[-1])
        return outputs[0].reshape(count), outputs[1].reshape(coordinates)

    outputs = tensor("UINT32", *count), tensor("UINT32", *coordinates)
    return Case(NonzeroCoordinatesDesc(tensor(data_type, *sizes), *outputs), oracle)


def padded(sizes, start, end):
    return tuple(map(sum, zip(sizes, start, end, strict=True)))


def padding_case(data_type, sizes, start, end, mode, value=0.0):
    tensors = tensor(data_type, *sizes), tensor(data_type, *padded(sizes, start, end))
    arguments = PaddingMode[mode], value, len(sizes), start, end
    dtype = tensors[0].dtype
    typed = oracles.cast_padding_value(value, dtype)
    return Case(
        PaddingDesc(*tensors, *arguments),
        lambda x: (oracles.padding(x, start, end, mode=mode, value=typed),),
    )


def padding1_case(data_type, sizes, start, end, value):
    tensors = tensor(data_type, *sizes), tensor(data_type, *padded(sizes, start, end))
    typed = DataType[data_type], value, len(sizes), start, end
    return Case(
        Padding1Desc(*tensors, PaddingMode.CONSTANT, *typed),
        lambda x: (oracles.padding(x, start, end, mode="CONSTANT", value=value),),
    )


CASES = {
    "diagonal_matrix": generated_case(
        DiagonalMatrixDesc(tensor("INT32", 2, 3, 4), 1, -2.6), -2
    ),
    "diagonal_matrix1": diagonal_case(
        "FLOAT32", 2, 3, 4, value=7, fill_begin=-1, fill_end=1
    ),
    "diagonal_matrix1_inverted": diagonal_case(
        "FLOAT32", 3, 2, value=NAN, fill_begin=1, fill_end=0
    ),
    "diagonal_matrix1_integer": diagonal_case(
        "INT8", 3, 4, value=-128, fill_begin=INT32_MIN, fill_end=INT32_MAX
    ),
    "one_hot": one_hot_case(
        tensor("INT32", 2, 1, 3),
        tensor("FLOAT32", 1, 2, 2),
        tensor("FLOAT32", 2, 4, 3),
        1,
    ),
    "one_hot_unsigned": one_hot_case(
        tensor("UINT32", 3, 1), tensor("INT16", 2, 1), tensor("INT16", 3, 5), 1
    ),
    "element_wise_if": if_case("FLOAT32", 2, 3),
    "element_wise_if_integer": if_case("UINT16", 2, 1, 3),
    "nonzero_coordinates": coordinates_case("FLOAT32", (1, 2, 4), (1,), (1, 8, 2)),
    "nonzero_coordinates_integer": coordinates_case("UINT8", (3, 2), (1, 1), (6, 2)),
    "padding_constant": padding_case(
        "FLOAT32", (2, 3), (1, 0), (0, 2), "CONSTANT", -1.5
    ),
    "padding_edge": padding_case("FLOAT32", (2, 3), (1, 3), (2, 0), "EDGE"),
    "padding_reflection": padding_case("FLOAT32", (2, 3), (2, 5), (3, 0), "REFLECTION"),
    "padding_symmetric": padding_case("FLOAT32", (2, 3), (3, 1), (0, 7), "SYMMETRIC"),
    "padding_wrap": padding_case("FLOAT32", (2, 3), (1, 4), (3, 1), "WRAP"),
    "padding1": padding1_case("INT16", (2, 3), (1, 0), (0, 2), -12345),
}
DIFFERENTIABLE = {
    "diagonal_matrix1": (0,),
    "diagonal_matrix1_inverted": (0,),
    "one_hot": (1,),
    "element_wise_if": (1, 2),
    "padding_constant": (0,),
    "padding_edge": (0,),
    "padding_reflection": (0,),
    "padding_symmetric": (0,),
    "padding_wrap": (0,),
}
cases = pytest.mark.parametrize("name", CASES)


def numbers(shape, dtype, seed=0):
    """Draws small integers that every type holds, with zeros among them."""
    generator = np.random.default_rng(seed)
    low = 0 if np.dtype(dtype).kind == "u" else -3
    return generator.integers(low, 4, shape).astype(dtype)


def buffers(desc, seed=0):
    """Makes an array for each input: of its sizes, or flat if it has strides."""
    return [
        numbers(
            item.sizes if item.strides is None else item.extent, item.dtype, seed + i
        )
        for i, item in enumerate(desc.input_tensors().values())
    ]


def logical(item, array):
    if item.strides is None:
        return array
    return oracles.strided_read(array, item.sizes, item.strides)


def physical(item, value):
    """Lays out a logical output as the operator returns it, with 0 in the gaps."""
    if item.strides is None:
        return value
    total = item.total_tensor_size_in_bytes
    last = [size - 1 for size in item.sizes]
    length = 1 + sum(map(int.__mul__, last, item.strides))
    length = length if total is None else total // item.dtype.itemsize
    return oracles.strided_write(value, item.strides, length)


def expected_of(case, arrays):
    inputs = case.desc.input_tensors().values()
    outputs = case.oracle(*map(logical, inputs, arrays))
    return tuple(map(physical, case.desc.output_tensors().values(), outputs))


def results_of(operator, arrays):
    """Runs the operator, and returns its results as a tuple in any case."""
    results = operator(*arrays)
    return results if isinstance(results, tuple) else (results,)


def assert_equal(results, expected):
    """Asserts that results have the same number, sizes, types and bits."""
    assert len(results) == len(expected)
    for result, value in zip(results, expected, strict=True):
        assert result.dtype == value.dtype
        assert not result.weak_type
        np.testing.assert_array_equal(np.asarray(result), value, strict=True)


def assert_right(case, seed=0):
    arrays = buffers(case.desc, seed)
    operator = create_operator(case.desc)
    if any(item.strides for item in case.desc.tensors().values()):
        operator = jax.jit(operator)  # otherwise JAX runs it step by step
    assert_equal(results_of(operator, arrays), expected_of(case, arrays))


def assert_all_right(cases):
    """Likewise, in one program, since it is compiling that takes time."""
    inputs = [buffers(case.desc) for case in cases]
    operators = [create_operator(case.desc) for case in cases]

    @jax.jit
    def program(inputs):
        return [results_of(*pair) for pair in zip(operators, inputs, strict=True)]

    for case, arrays, results in zip(cases, inputs, program(inputs), strict=True):
        assert_equal(results, expected_of(case, arrays))


# STRUCTS


@pytest.mark.parametrize("kind", STRUCTS)
def test_fields_are_those_of_the_struct(kind):
    names = [
        "".join(word.capitalize() for word in field.name.split("_"))
        for field in dataclasses.fields(kind)
    ]
    assert names == STRUCTS[kind].split()


def test_fields_of_a_tensor():
    names = {
        "DataType",
        "Flags",
        "Sizes",
        "Strides",
        "TotalTensorSizeInBytes",
        "GuaranteedBaseOffsetAlignment",
    }
    full = tensor(
        "UINT8",
        2,
        strides=(1,),
        total_tensor_size_in_bytes=4,
        flags=TensorFlags.OWNED_BY_DML,
        guaranteed_base_offset_alignment=16,
    )
    desc = DiagonalMatrixDesc(full, 0, 1.0)
    assert set(desc.to_json()["desc"]["OutputTensor"]) == names
    assert {int(flag) for flag in (TensorFlags.NONE, TensorFlags.OWNED_BY_DML)} == {
        0,
        1,
    }


@cases
def test_descriptors_are_values(name):
    desc = CASES[name].desc
    # NaN does not equal itself, so a descriptor with NaN does not equal its copy.
    if "nan" in repr(desc):
        desc = dataclasses.replace(desc, value=1.5)
    same = dataclasses.replace(desc)
    assert same == desc
    assert hash(same) == hash(desc)
    assert {desc: name}[same] == name
    first = dataclasses.fields(desc)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(desc, first, None)
    assert dataclasses.replace(desc, **{first: None}) != desc


def test_tensors_are_values():
    one, two = tensor("INT8", 2, 3), TensorDesc(DataType.INT8, [2, 3])
    assert one == two
    assert hash(one) == hash(two)
    assert one != tensor("INT8", 2, 3, strides=(3, 1))
    assert TensorDesc(8, (2,), [1], flags=1) == tensor(
        "INT8", 2, strides=(1,), flags=TensorFlags.OWNED_BY_DML
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.sizes = (3, 2)


# VALUES


@cases
def test_packed(name):
    assert_right(CASES[name])


def test_named_results():
    case = CASES["nonzero_coordinates"]
    results = create_operator(case.desc)(*buffers(case.desc))
    assert isinstance(results, NonzeroCoordinates)
    assert results.count.shape == (1,)
    assert results.coordinates.shape == (1, 8, 2)


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.usefixtures("x64")
def test_every_type(data_type):
    cases = [
        diagonal_case(data_type, 2, 3, value=5, fill_begin=0, fill_end=1),
        if_case(data_type, 3),
        padding1_case(data_type, (2,), (1,), (2,), 5),
        one_hot_case(
            tensor("INT64", 2, 1), tensor(data_type, 1, 2), tensor(data_type, 2, 3), 1
        ),
    ]
    assert_all_right(cases)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("data_type", "indices"),
    [
        ("INT64", [2**40, -(2**63), -1, 2**32, 1, -(2**32) - 1]),
        ("UINT64", [2**63 + 1, 2**64 - 1, 2**32 + 1, 0, 2, 3]),
        ("INT32", [INT32_MIN, INT32_MAX, -3, -4, 2, 3]),
        ("UINT32", [2**32 - 1, 2**32 - 3, 2**31, 0, 2, 3]),
    ],
)
def test_one_hot_indices_keep_their_bits(data_type, indices):
    case = one_hot_case(
        tensor(data_type, 6, 1), tensor("INT64", 1, 2), tensor("INT64", 6, 3), 1
    )
    arrays = [
        np.array(indices, data_type.lower()).reshape(6, 1),
        np.array([[-(2**63), 2**63 - 1]]),
    ]
    results = results_of(create_operator(case.desc), arrays)
    assert_equal(results, expected_of(case, arrays))


@pytest.mark.parametrize("offset", [INT32_MIN, INT32_MIN + 1, -3, -1, 0, 3, INT32_MAX])
def test_diagonal_matrix_offsets(offset):
    """No matrix has the last diagonals. -3 is the lower left corner of this matrix."""
    desc = DiagonalMatrixDesc(tensor("FLOAT32", 1, 1, 4, 4), offset, 2.5)
    assert_right(generated_case(desc, 2.5))


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        ("INT64", 2**53 + 1),
        ("INT64", 2**63 - 1),
        ("INT64", -(2**63)),
        ("UINT64", 2**64 - 1),
        ("FLOAT64", 0.1),
        ("FLOAT64", 1e300),
        ("INT32", 2**24 + 1),
        ("UINT32", 2**32 - 1),
        ("FLOAT16", 0.1),
        ("FLOAT16", 1e6),
        ("FLOAT32", 1e300),
        ("FLOAT32", NAN),
        ("FLOAT32", -INFINITY),
        ("FLOAT32", 0.0),
        ("FLOAT32", -0.0),
        ("INT8", 5.0),
        ("INT8", 1),
    ],
)
@pytest.mark.usefixtures("x64")
def test_typed_values_keep_all_bits(data_type, value):
    padding = padding1_case(data_type, (2,), (1,), (1,), value)
    bounds = {"fill_begin": 0, "fill_end": 1}
    diagonal = diagonal_case(data_type, 2, 2, value=value, **bounds)
    assert_all_right([padding, diagonal])


FLOAT_VALUES = [
    10.6,
    -10.6,
    -0.5,
    0.1,
    127.9,
    -129.0,
    255.5,
    256.0,
    1e6,
    16777217.0,
    2147483647.0,
    4294967295.0,
    -2147483649.0,
    9.3e18,
    1.9e19,
    1e300,
    -1e300,
    NAN,
    INFINITY,
    -INFINITY,
]


@pytest.mark.parametrize("data_type", TYPES)
@pytest.mark.usefixtures("x64")
def test_float_values_are_cast(data_type):
    """A FLOAT is truncated and saturated for integers, and widened for FLOAT64."""
    cases = []
    for value in FLOAT_VALUES:
        cases.append(padding_case(data_type, (1,), (1,), (1,), "CONSTANT", value))
        desc = DiagonalMatrixDesc(tensor(data_type, 2, 2), 0, value)
        typed = oracles.cast_padding_value(value, desc.output_tensor.dtype)
        cases.append(generated_case(desc, typed))
    assert_all_right(cases)


def test_float_values_in_plain_numbers():
    """The same casts give these numbers, whatever the oracle says."""
    for data_type, value, expected in [
        ("UINT8", 10.6, 10),
        ("INT8", -10.6, -10),
        ("UINT8", -1.0, 0),
        ("INT8", 300.0, 127),
        ("INT32", 3e9, 2**31 - 1),
        ("UINT32", INFINITY, 2**32 - 1),
        ("INT32", -INFINITY, -(2**31)),
        ("INT16", NAN, 0),
    ]:
        desc = padding_case(data_type, (1,), (1,), (0,), "CONSTANT", value).desc
        array = np.ones(1, data_type.lower())
        assert create_operator(desc)(array).tolist() == [expected, 1]


@pytest.mark.usefixtures("x64")
def test_float64_is_widened():
    desc = padding_case("FLOAT64", (1,), (1,), (0,), "CONSTANT", 0.1).desc
    result = create_operator(desc)(np.ones(1))
    assert result[0] == float(np.float32(0.1)) != 0.1


# STRIDES


def packed(sizes):
    return oracles.packed_strides(sizes)


def transposed(sizes):
    return packed(sizes[::-1])[::-1]


def channels_last(sizes):
    """Returns the strides of a tensor whose second axis is innermost in memory."""
    order = [0, *range(2, len(sizes)), 1]
    strides = packed([sizes[axis] for axis in order])
    return tuple(strides[order.index(axis)] for axis in range(len(sizes)))


def with_gaps(sizes):
    return tuple(2 * stride for stride in packed([size + 1 for size in sizes]))


def shared_rows(sizes):
    return (0, *packed(sizes)[1:])


def one_element(sizes):
    return (0,) * len(sizes)


def overlapping(sizes):
    """Returns the strides of a Hankel matrix: coordinates share elements."""
    return (1,) * len(sizes)


def without(sizes):
    return None


# Each pair has the layout of the inputs and the layout of the outputs.
LAYOUTS = [
    (without, with_gaps),
    (packed, transposed),
    (transposed, packed),
    (channels_last, without),
    (with_gaps, channels_last),
    (shared_rows, without),
    (one_element, with_gaps),
    (overlapping, transposed),
]


def laid_out(case, layout_in, layout_out):
    """Returns the case with other strides."""
    changes = {}
    for name, item in case.desc.tensors().items():
        layout = layout_out if name in case.desc.outputs else layout_in
        strides = layout(item.sizes) if len(item.sizes) > 1 else without(item.sizes)
        changes[name] = dataclasses.replace(item, strides=strides)
    return case._replace(desc=dataclasses.replace(case.desc, **changes))


@cases
def test_strides(name):
    assert_all_right([laid_out(CASES[name], *layouts) for layouts in LAYOUTS])


@pytest.mark.parametrize(
    ("sizes", "strides"),
    [
        ((4,), (0,)),
        ((4,), (3,)),
        ((1, 3), (7, 1)),
        ((2, 3, 2), (0, 3, 2)),
        ((3, 4), (1, 1)),
        ((3, 4), (2, 1)),
        ((3, 4), (6, 1)),  # a corner of a packed array: gaps of a third
        ((1, 3, 2, 2), (12, 1, 6, 3)),
        ((2, 2, 2, 2), (1, 2, 4, 8)),
        ((2, 1, 2, 1, 2, 1, 2, 2), (1, 0, 2, 0, 4, 9, 8, 16)),
        ((1,), (2**32 - 1,)),
        ((1, 3, 4), (2**32 - 1, 0, 2)),
    ],
)
def test_inputs_of_any_strides(sizes, strides):
    start = (1,) * min(2, len(sizes)) + (0,) * (len(sizes) - 2)
    item = tensor("INT32", *sizes, strides=strides)

    def strided(mode):
        case = padding_case("INT32", sizes, start, (0,) * len(sizes), mode, 9.0)
        return case._replace(desc=dataclasses.replace(case.desc, input_tensor=item))

    assert_all_right([strided(mode) for mode in ("CONSTANT", "WRAP")])


@pytest.mark.parametrize(
    ("data_type", "strides", "total", "length"),
    [
        ("FLOAT32", (3, 1), None, 6),
        ("FLOAT32", (3, 1), 24, 6),
        ("FLOAT32", (3, 1), 64, 16),
        ("FLOAT32", (8, 2), 60, 15),
        ("UINT8", (3, 1), None, 6),
        ("UINT8", (3, 1), 8, 8),
        ("UINT8", (1, 2), 12, 12),
        ("FLOAT16", (4, 1), None, 7),
        ("FLOAT16", (4, 1), 16, 8),
    ],
)
def test_the_total_size_of_an_output(data_type, strides, total, length):
    case = padding_case(data_type, (1, 3), (1, 0), (0, 0), "CONSTANT", 9.0)
    item = tensor(data_type, 2, 3, strides=strides, total_tensor_size_in_bytes=total)
    desc = dataclasses.replace(case.desc, output_tensor=item)
    assert_right(case._replace(desc=desc))
    assert create_operator(desc)(*buffers(desc)).shape == (length,)


def test_a_packed_output_keeps_its_sizes():
    case = padding_case("UINT8", (3,), (1,), (0,), "EDGE")
    item = dataclasses.replace(
        case.desc.output_tensor,
        total_tensor_size_in_bytes=64,
        flags=TensorFlags.OWNED_BY_DML,
        guaranteed_base_offset_alignment=32,
    )
    assert_right(case._replace(desc=dataclasses.replace(case.desc, output_tensor=item)))


def test_a_longer_input_buffer():
    case = laid_out(CASES["padding_edge"], with_gaps, without)
    (array,) = buffers(case.desc)
    longer = np.concatenate([array, np.full(7, NAN, array.dtype)])
    results = results_of(create_operator(case.desc), [longer])
    assert_equal(results, expected_of(case, [array]))


def test_gaps_of_an_input_are_never_seen():
    case = laid_out(CASES["padding_wrap"], with_gaps, with_gaps)
    item = case.desc.input_tensor
    array = np.full(item.extent, NAN, item.dtype)
    for coordinate in np.ndindex(item.sizes):
        array[np.dot(coordinate, item.strides)] = sum(coordinate)
    results = results_of(create_operator(case.desc), [array])
    assert not np.isnan(results[0]).any()
    assert_equal(results, expected_of(case, [array]))


# ANY SIZES AND STRIDES


@st.composite
def geometries(draw, size, stride, rank=8):
    sizes = draw(st.lists(st.integers(1, size), min_size=1, max_size=rank))
    count = len(sizes)
    strides = draw(
        st.none()
        | st.lists(st.integers(0, stride), min_size=count, max_size=count).map(tuple)
    )
    return tuple(sizes), strides


@given(geometries(2**32 - 1, 2**32 - 1), st.sampled_from(TYPES))
def test_implied_size(geometry, data_type):
    sizes, strides = geometry
    item = tensor(data_type, *sizes, strides=strides)
    width = np.dtype(data_type.lower()).itemsize
    assert item.implied_size_in_bytes == oracles.implied_bytes(sizes, strides, width)


def identity(item_in, item_out):
    """Describes an operator that copies its input."""
    none = (0,) * len(item_in.sizes)
    edge = PaddingMode.EDGE
    return PaddingDesc(item_in, item_out, edge, 0.0, len(none), none, none)


def is_refused(desc, text):
    try:
        create_operator(desc)
    except DescriptorError as error:
        return text in str(error)
    return False


@given(geometries(5, 24, rank=4))
def test_overlap(geometry):
    sizes, strides = geometry
    plain = tensor("INT8", *sizes)
    strided = tensor("INT8", *sizes, strides=strides)
    overlap = oracles.strides_overlap(sizes, strides)
    assert is_refused(identity(plain, strided), "must not overlap") == overlap
    assert not is_refused(identity(strided, plain), "")


@pytest.mark.parametrize(
    ("sizes", "strides", "overlap"),
    [
        ((2, 3), (3, 2), False),
        ((2, 3), (4, 2), True),
        ((4, 3), (3, 4), False),
        ((5, 4), (3, 4), True),
        ((2, 2, 2), (1, 2, 3), True),
        ((2, 2, 2), (3, 5, 7), False),
        ((65536, 65535), (65535, 1), False),
        ((65536, 64), (63, 1), True),
        ((2, 2), (2**20, 2**20), True),
        ((1, 1, 7), (0, 0, 1), False),
        ((1, 2), (5, 0), True),
    ],
)
def test_overlap_of_chosen_layouts(sizes, strides, overlap):
    desc = identity(tensor("INT8", *sizes), tensor("INT8", *sizes, strides=strides))
    assert is_refused(desc, "must not overlap") == overlap


@settings(max_examples=20)
@given(geometries(4, 9, rank=3), st.integers(0, 99))
def test_read(geometry, seed):
    sizes, strides = geometry
    item = tensor("INT32", *sizes, strides=strides)
    assert_right(Case(identity(item, tensor("INT32", *sizes)), lambda x: (x,)), seed)


@st.composite
def outputs_without_overlap(draw):
    """Draws sizes and strides: each stride steps over all smaller axes, with gaps."""
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    strides = [0] * len(sizes)
    span = 0
    for axis in draw(st.permutations(range(len(sizes)))):
        strides[axis] = span + draw(st.integers(1, 3))
        span += strides[axis] * (sizes[axis] - 1)
    return sizes, tuple(strides)


@settings(max_examples=20)
@given(outputs_without_overlap(), st.integers(0, 5), st.integers(0, 99))
def test_write(geometry, extra, seed):
    sizes, strides = geometry
    item = tensor("INT32", *sizes, strides=strides)
    total = item.implied_size_in_bytes + 4 * extra
    item = dataclasses.replace(item, total_tensor_size_in_bytes=total)
    assert_right(Case(identity(tensor("INT32", *sizes), item), lambda x: (x,)), seed)


def test_an_output_whose_axes_are_rotated():
    """The order of the axes is not its own inverse, so that a wrong way back shows."""
    item = tensor("INT32", 2, 3, 4, strides=(1, 8, 2))
    assert_right(Case(identity(tensor("INT32", 2, 3, 4), item), lambda x: (x,)))


FAR = tensor("INT8", 2, 2, strides=(2**31, 1))
NEAR = tensor("INT8", 2, 2)
BUFFER = jax.ShapeDtypeStruct((FAR.extent,), jnp.int8)


@pytest.mark.parametrize(
    ("item_in", "item_out", "shape"),
    [(FAR, NEAR, BUFFER), (NEAR, FAR, jax.ShapeDtypeStruct((2, 2), jnp.int8))],
    ids=["read", "write"],
)
@pytest.mark.parametrize("transform", [lambda f: f, jax.vmap], ids=["one", "batch"])
def test_offsets_past_31_bits(item_in, item_out, shape, transform):
    """Offsets are 64-bit integers where they have to be, even without x64 mode."""
    if transform is jax.vmap:
        shape = jax.ShapeDtypeStruct((3, *shape.shape), shape.dtype)
    operator = transform(create_operator(identity(item_in, item_out)))
    assert "xi64>" in jax.jit(operator).lower(shape).as_text()


@pytest.mark.parametrize("strides", [(1, 1), (2**20, 2)])
def test_buffers_that_are_longer_than_their_tensors(strides):
    """An index may be as large as the buffer, of which the tensor is a small part."""
    size = 2**31 + 8
    item = tensor("INT8", 2, 2, strides=strides)
    buffer = jax.ShapeDtypeStruct((size,), jnp.int8)
    assert jax.eval_shape(lambda x: _strides.read(item, x), buffer).shape == (2, 2)
    if strides != (1, 1):  # which overlap, so that no output may have them
        values = jax.ShapeDtypeStruct((2, 2), jnp.int8)
        write = functools.partial(_strides.write, item)
        assert jax.eval_shape(write, values, buffer).shape == (size,)


# TRANSFORMATIONS

MIXED = (with_gaps, transposed)


@cases
def test_jit(name):
    """The operator may be made while a program is traced."""
    case = laid_out(CASES[name], *MIXED)
    arrays = buffers(case.desc)
    expected = expected_of(case, arrays)
    inside = jax.jit(lambda *arrays: create_operator(case.desc)(*arrays))
    assert_equal(results_of(inside, arrays), expected)


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n].desc.input_tensors()])
def test_vmap(name):
    """A vmap may be over all inputs, or over one while the others are shared."""
    case = laid_out(CASES[name], *MIXED)
    operator = create_operator(case.desc)
    samples = [buffers(case.desc, seed) for seed in (0, 10, 20)]
    for mapped in (set(range(len(samples[0]))), {0}):
        axes = [0 if i in mapped else None for i in range(len(samples[0]))]
        stacked = [
            np.stack(arrays) if i in mapped else arrays[0]
            for i, arrays in enumerate(zip(*samples, strict=True))
        ]
        singles = [
            [sample[i] if i in mapped else stacked[i] for i in range(len(sample))]
            for sample in samples
        ]
        outputs = [expected_of(case, single) for single in singles]
        expected = [np.stack(values) for values in zip(*outputs, strict=True)]
        batched = jax.jit(jax.vmap(operator, axes))
        assert_equal(results_of(batched, stacked), expected)


def differences(function, arrays, argument):
    """Returns the derivatives of an affine function, exactly, from differences."""
    base = function(arrays)
    columns = []
    for index in np.ndindex(arrays[argument].shape):
        moved = list(arrays)
        moved[argument] = arrays[argument].copy()
        moved[argument][index] += 1
        columns.append(np.nan_to_num(function(moved)) - np.nan_to_num(base))
    return np.stack(columns, -1).reshape(*base.shape, *arrays[argument].shape)


@pytest.mark.parametrize(
    "layout",
    [without, pytest.param(shared_rows, marks=pytest.mark.slow), overlapping],
)
@pytest.mark.parametrize(
    ("name", "argument"),
    [(name, argument) for name, items in DIFFERENTIABLE.items() for argument in items],
)
def test_derivatives(name, argument, layout):
    """An element that is read at several coordinates gets the sum of gradients."""
    case = laid_out(CASES[name], layout, MIXED[1])
    arrays = buffers(case.desc)
    operator = create_operator(case.desc)
    found = jax.jit(jax.jacrev(operator, argument))(*arrays)
    expected = differences(lambda a: expected_of(case, a)[0], arrays, argument)
    np.testing.assert_array_equal(np.asarray(found), expected, strict=True)


def test_the_gradient_of_a_shared_input_is_a_sum():
    item = tensor("FLOAT32", 3, 2, strides=(0, 1))
    operator = create_operator(identity(item, tensor("FLOAT32", 3, 2)))
    weights = np.array([[1, 2], [30, 40], [500, 600]], np.float32)

    def loss(buffer):
        return (operator(buffer) * weights).sum()

    buffer = jnp.ones(2)
    assert "unique_indices=False" not in str(jax.make_jaxpr(jax.grad(loss))(buffer))
    np.testing.assert_array_equal(jax.jit(jax.grad(loss))(buffer), [531, 642])
    batch = jax.jit(jax.vmap(jax.grad(loss)))(jnp.ones((2, 2)))
    np.testing.assert_array_equal(batch, [[531, 642]] * 2)


def test_coordinates_pass_through_a_gradient():
    case = laid_out(CASES["nonzero_coordinates"], *MIXED)
    operator = create_operator(case.desc)

    def loss(buffer):
        return buffer.sum() * operator(buffer).count.sum().astype(jnp.float32)

    (array,) = buffers(case.desc)
    count = float(expected_of(case, [array])[0].sum())
    gradient = jax.jit(jax.grad(loss))(array)
    np.testing.assert_array_equal(gradient, np.full_like(array, count))


# FEATURE LEVELS


def test_the_level_is_the_newest_unless_said_otherwise():
    desc = CASES["padding_wrap"].desc
    create_operator(desc)
    create_operator(desc, feature_level=FeatureLevel.V6_4)
    create_operator(desc, feature_level=0x6400)
    with pytest.raises(DescriptorError, match="6_3"):
        create_operator(desc, feature_level=FeatureLevel.V6_3)


# JSON


def full_tensor(data_type, *sizes):
    return tensor(
        data_type,
        *sizes,
        strides=with_gaps(sizes),
        total_tensor_size_in_bytes=4096,
        flags=TensorFlags.OWNED_BY_DML,
        guaranteed_base_offset_alignment=64,
    )


def full(desc):
    """Returns the descriptor with every optional field of its tensors filled in."""
    items = desc.tensors().items()
    tensors = {
        name: full_tensor(item.data_type.name, *item.sizes) for name, item in items
    }
    return dataclasses.replace(desc, **tensors)


WRITTEN = [
    *(case.desc for case in CASES.values()),
    *(full(case.desc) for case in CASES.values()),
    DiagonalMatrix1Desc(None, tensor("FLOAT32", 2, 2), DataType.FLOAT32, NAN, 1, 0),
    DiagonalMatrix1Desc(None, tensor("UINT64", 2, 2), DataType.UINT64, 2**64 - 1, 1, 0),
    DiagonalMatrixDesc(tensor("FLOAT32", 2, 2), INT32_MIN, -INFINITY),
    padding1_case("INT64", (1,), (0,), (0,), -(2**63)).desc,
    padding1_case("FLOAT64", (1,), (0,), (0,), 0.1).desc,
    padding1_case("FLOAT32", (1,), (0,), (0,), -0.0).desc,
    *(
        padding_case("FLOAT32", (1,), (0,), (0,), "CONSTANT", value).desc
        for value in (NAN, INFINITY, -INFINITY, -0.0, 1e-45, 0.1)
    ),
]


def read_back(kind, desc):
    """Writes `desc` to JSON without NaN, and reads it back."""
    return kind.from_json(json.loads(json.dumps(desc, allow_nan=False)))


@pytest.mark.parametrize("desc", WRITTEN, ids=lambda desc: type(desc).__name__)
def test_json_loses_nothing(desc):
    written = desc.to_json()
    assert written["type"] == f"DML_OPERATOR_{desc.operator}"
    present = [
        name
        for name, field in zip(
            STRUCTS[type(desc)].split(), dataclasses.fields(desc), strict=True
        )
        if getattr(desc, field.name) is not None
    ]
    assert list(written["desc"]) == present
    assert repr(read_back(type(desc), written["desc"])) == repr(desc)


@pytest.mark.parametrize("value", [1.5, -0.0, NAN, INFINITY])
def test_json_of_numpys_scalars(value):
    """A scalar of NumPy has a type, which the value in JSON no longer has."""
    scalar = padding_case("FLOAT32", (1,), (0,), (0,), "CONSTANT", np.float32(value))
    plain = padding_case("FLOAT32", (1,), (0,), (0,), "CONSTANT", value)
    written = scalar.desc.to_json()["desc"]
    assert repr(read_back(PaddingDesc, written)) == repr(plain.desc)
    whole = DiagonalMatrix1Desc(None, NEAR, DataType.INT8, np.int8(-7), 0, 1)
    found = read_back(DiagonalMatrix1Desc, whole.to_json()["desc"])
    assert found == whole
    assert type(found.value) is int


def tensor_descs(data_type):
    return st.builds(
        TensorDesc,
        data_type,
        st.lists(st.integers(1, 2**32 - 1), min_size=1, max_size=8),
        st.none() | st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=8),
        st.none() | st.integers(1, 2**64 - 1),
        st.sampled_from([TensorFlags.NONE, TensorFlags.OWNED_BY_DML]),
        st.sampled_from([0, 1, 8, 256]),
    )


pads = st.lists(st.integers(0, 2**32 - 1), max_size=8).map(tuple)
any_type = st.sampled_from(DataType)
any_tensor = tensor_descs(any_type)


@given(
    st.builds(
        Padding1Desc,
        any_tensor,
        any_tensor,
        st.sampled_from(PaddingMode),
        any_type,
        st.integers(-(2**63), 2**64 - 1) | st.floats(),
        st.integers(0, 8),
        pads,
        pads,
    )
)
def test_json_of_any_descriptor(desc):
    assert repr(read_back(Padding1Desc, desc.to_json()["desc"])) == repr(desc)


ENUMS = {
    "DataType": ("DML_TENSOR_DATA_TYPE", DataType),
    "PaddingMode": ("DML_PADDING_MODE", PaddingMode),
    "Flags": ("DML_TENSOR_FLAG", TensorFlags),
}


def written_with(field, value):
    """Returns the fields of a PADDING with another value of an enum field."""
    desc = padding_case("FLOAT32", (2,), (1,), (1,), "EDGE").desc.to_json()["desc"]
    holder = desc if field in desc else desc["InputTensor"]
    holder[field] = value
    return desc


def read_enum(field, value):
    desc = PaddingDesc.from_json(written_with(field, value))
    return {
        "DataType": desc.input_tensor.data_type,
        "PaddingMode": desc.padding_mode,
        "Flags": desc.input_tensor.flags,
    }[field]


@pytest.mark.parametrize(
    ("field", "member"),
    [
        (field, member)
        for field, (_, kind) in ENUMS.items()
        for member in kind.__members__.values()
    ],
)
def test_json_names_of_enums(field, member):
    """An enum's value may have its short or its full name, or be its number."""
    prefix, kind = ENUMS[field]
    for value in (member.name, f"{prefix}_{member.name}", int(member)):
        found = read_enum(field, value)
        assert found is member
        assert type(found) is kind


@pytest.mark.parametrize(
    "field",
    ["Strides", "TotalTensorSizeInBytes", "Flags", "GuaranteedBaseOffsetAlignment"],
)
def test_json_optional_fields(field):
    """An optional field that is null means the same as one that is absent."""
    desc = padding_case("FLOAT32", (2,), (1,), (1,), "EDGE").desc
    written = desc.to_json()["desc"]
    for present in (False, True):
        written["InputTensor"] = {"DataType": "FLOAT32", "Sizes": [2]}
        written["InputTensor"] |= {field: None} if present else {}
        assert PaddingDesc.from_json(written) == desc


def test_json_optional_tensors():
    desc = DiagonalMatrix1Desc(
        None, tensor("FLOAT32", 2, 2), DataType.FLOAT32, 1.0, 0, 1
    )
    written = desc.to_json()["desc"]
    assert "InputTensor" not in written
    assert DiagonalMatrix1Desc.from_json(written) == desc
    assert DiagonalMatrix1Desc.from_json(written | {"InputTensor": None}) == desc


@pytest.mark.parametrize("text", ["nan", "NaN", "inf", "-inf", "Inf"])
def test_json_names_of_numbers(text):
    written = padding_case("FLOAT32", (2,), (1,), (1,), "CONSTANT").desc.to_json()
    desc = PaddingDesc.from_json(written["desc"] | {"PaddingValue": text})
    assert repr(desc.padding_value) == text.lower()


def test_json_float_fields_take_whole_numbers():
    written = padding_case("FLOAT32", (2,), (1,), (1,), "CONSTANT").desc.to_json()
    desc = PaddingDesc.from_json(written["desc"] | {"PaddingValue": 9})
    assert repr(desc.padding_value) == "9.0"
