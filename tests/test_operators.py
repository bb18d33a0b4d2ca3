"""The results of every operator: bit for bit those of the oracle."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dmljax
from dmljax import DescriptorError, PaddingMode
from tests import oracles, samples
from tests.checks import assert_same, check, each, needs_x64
from tests.samples import INT32_MAX, INT32_MIN
from tests.subjects import EDGES, LINEAR, SAMPLES, SUBJECTS

# EVERY OPERATOR


# The types of elements of 1, 2, 4 and 8 bytes, and truth values.
ONE_OF_EACH_SIZE = ("bool", "int8", "float16", "float32", "float64")


def types_of_samples():
    """One sample in every type that the operator takes, the others in one of a size.

    Those of the others are slow tests but for two, as a form looks at no type.
    """
    for subject in SUBJECTS.values():
        for sample in subject.samples:
            first = sample is subject.samples[0]
            for name in subject.data_types:
                if first or name in ONE_OF_EACH_SIZE:
                    few = first or name in ("int8", "float64")
                    marks = () if few else pytest.mark.slow
                    yield pytest.param(
                        *(sample, name), id=f"{sample}-{name}", marks=marks
                    )


@pytest.mark.parametrize(
    ("sample", "dtype"), list(types_of_samples()), indirect=["dtype"]
)
def test_data_types(sample, dtype):
    """Also NaN, infinity and subnormals: in every place, selected and not."""
    check(sample, dtype, samples.numbers)
    for seed in range(5):
        check(sample, dtype, samples.bits, seed)


@pytest.mark.parametrize("dtype", samples.REPLACED, indirect=True)
@pytest.mark.parametrize(
    "sample", [one for subject in SUBJECTS.values() for one in subject.samples], ids=str
)
def test_every_value_of_replaced_types(sample, dtype):
    """XLA's CPU moves these types as wider ones.

    One NaN may come out as another there, and a subnormal number as zero.
    """
    tiny = float(jnp.finfo(dtype).tiny)
    for seed in range(5):
        arrays = sample.arrays(dtype, samples.any_bits, seed)
        actual = jax.tree.leaves(sample.run(*map(jax.device_put, arrays)))
        expected = jax.tree.leaves(sample.expected(*arrays))
        for one, other in zip(actual, expected, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            with np.errstate(invalid="ignore"):  # signalling NaN
                values = [np.asarray(x).astype(np.float64) for x in (one, other)]
            flushed = [np.where(abs(x) < tiny, 0, x) for x in values]
            np.testing.assert_array_equal(*flushed)


@pytest.mark.parametrize("edge", EDGES, ids=str)
def test_edges(edge):
    with jax.enable_x64(needs_x64(edge)):
        check(edge)


@pytest.fixture
def no_form_of_its_own(monkeypatch):
    """Every platform runs the definition, as one does that has no form of its own."""
    for subject in SUBJECTS.values():
        for platform in tuple(subject.primitive.on_platform):
            monkeypatch.delitem(subject.primitive.on_platform, platform)
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.slow
@pytest.mark.usefixtures("no_form_of_its_own")
@pytest.mark.parametrize(
    "name", [name for name, one in SUBJECTS.items() if one.primitive.on_platform]
)
def test_definition_where_a_platform_has_another_form(name):
    for sample in SUBJECTS[name].samples + SUBJECTS[name].edges:
        check(sample)


@each(SAMPLES)
def test_without_jit(sample):
    with jax.disable_jit():
        check(sample)


@each(SAMPLES)
def test_abstract_evaluation_agrees(sample):
    arrays = sample.arrays()
    outputs = jax.tree.leaves(jax.eval_shape(sample.run, *arrays))
    expected = jax.tree.leaves(sample.expected(*arrays))
    for output, other in zip(outputs, expected, strict=True):
        assert (output.shape, output.dtype) == (other.shape, other.dtype)
        assert not output.weak_type


@each(SAMPLES)
def test_numpy_arrays_are_arrays(sample):
    arrays = sample.arrays()
    assert_same(sample.run(*arrays), sample.expected(*arrays))


@each(SAMPLES)
def test_results_repeat(sample):
    arrays = sample.arrays(fill=samples.bits)
    first = sample.run(*arrays)
    for _ in range(3):
        assert_same(sample.run(*arrays), first)


@each(SAMPLES)
def test_new_data_does_not_retrace(sample):
    jitted = SUBJECTS[sample.operator].jitted
    sample.run(*sample.arrays())
    size = jitted._cache_size()
    for seed in range(1, 4):
        sample.run(*sample.arrays(seed=seed))
    assert jitted._cache_size() == size


@each(SAMPLES)
def test_named_implementation(sample):
    arrays = sample.arrays()
    named = dataclasses.replace(sample, implementation="xla")
    assert_same(named.run(*arrays), sample.expected(*arrays))
    misnamed = dataclasses.replace(sample, implementation="cuda")
    with pytest.raises(DescriptorError, match="implementation"):
        misnamed.run(*arrays)


@each(SAMPLES)
def test_wide_numpy_arrays_need_x64(sample):
    arrays = sample.arrays("int64")
    with pytest.raises(DescriptorError, match="x64"):
        sample.run(*arrays)


@each(LINEAR)
def test_weak_operands_give_strong_results(sample):
    arrays = list(sample.arrays())
    for i in sample.open_operands:
        arrays[i] = np.full(arrays[i].shape, 2.0, np.float32)
    weak = [
        jnp.full(x.shape, 2.0) if i in sample.open_operands else x
        for i, x in enumerate(arrays)
    ]
    assert all(jax.typeof(weak[i]).weak_type for i in sample.open_operands)
    # Without an input the result takes its type from the value alone.
    assert_same(sample.run(*weak), sample.expected(*arrays))


# NUMBERS: Python's take the tensor's type, all others must have it


# Each call returns an array whose last element is the number.


def _diagonal(dtype, value):
    return dmljax.diagonal_matrix1(np.zeros((2, 2), dtype), value=value)


def _padding(dtype, value):
    return dmljax.padding(np.zeros(1, dtype), (0,), (1,), value=value)


def _if_first(dtype, value):
    return dmljax.element_wise_if(np.ones(1, bool), value, np.zeros(1, dtype))


def _if_second(dtype, value):
    return dmljax.element_wise_if(np.zeros(1, bool), np.zeros(1, dtype), value)


def assert_last(output, expected):
    """The last element, without a program of JAX that slices."""
    assert not jax.typeof(output).weak_type
    last = np.asarray(output).reshape(-1)[-1]
    assert last.dtype == expected.dtype
    assert last.tobytes() == expected.tobytes()


TAKES_A_NUMBER = (_diagonal, _padding, _if_first, _if_second)
NUMBERS = (
    ("float32", 0.1),
    ("float32", 7),
    ("float32", True),
    ("float32", 0),
    ("float32", -0.0),
    ("float32", -(2**70)),
    ("float32", float("nan")),
    ("float32", float("-inf")),
    ("float16", 0.1),
    ("float16", 1e6),
    ("bfloat16", 0.1),
    ("complex64", 1 - 2j),
    ("complex64", 3),
    ("complex64", 1),
    ("float8_e5m2", 1),
    ("int8", -128),
    ("int4", 0),
    ("uint32", 2**32 - 1),
    ("int32", True),
    ("uint8", 255),
    ("bool", True),
    ("bool", 1),
    ("bool", 0),
    ("float64", 0.1),
    ("int64", -(2**63)),
    ("uint64", 2**64 - 1),
)


@pytest.mark.parametrize("call", TAKES_A_NUMBER)
@pytest.mark.parametrize(("dtype", "number"), NUMBERS, indirect=["dtype"])
def test_number_takes_the_type(call, dtype, number):
    with np.errstate(over="ignore"):
        expected = np.asarray(number).astype(dtype)
    assert_last(call(dtype, number), expected)


@pytest.mark.parametrize("call", [_diagonal, _if_first, _if_second])
@pytest.mark.parametrize(("dtype", "number"), [("int8", 3.0), ("uint8", 0.0)])
def test_whole_float_is_an_integer(call, dtype, number):
    assert_last(call(dtype, number), np.asarray(number).astype(dtype))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
def test_padding_truncates_and_saturates(dtype):
    limits = (float("nan"), float("inf"), float("-inf"), 1e30, -1e30)
    for value in (10.6, -10.6, -0.9, 127.9, 300.0, *limits):
        expected = oracles.cast_padding_value(value, dtype)
        assert_last(_padding(dtype, value), expected)


REFUSED_NUMBERS = (
    ("int32", 2.5j),
    ("int32", 2**31),
    ("int8", 128),
    ("int8", -129),
    ("uint8", -1),
    ("uint8", 256),
    ("float32", 1j),
    ("float32", 2**2000),
    ("bool", 2),
    ("bool", -1),
    ("bool", 0.5),
    # These have a type of their own, and another one.
    ("float32", np.float16(1)),
    ("float32", np.int32(1)),
    ("float16", np.float32(1)),
    ("float32", np.float64(1)),
    ("int32", np.float64(2.5)),
    ("int32", np.int8(1)),
    ("float32", np.bool_(True)),
)


@pytest.mark.parametrize("call", TAKES_A_NUMBER)
@pytest.mark.parametrize(("dtype", "number"), REFUSED_NUMBERS)
def test_number_is_refused(call, dtype, number):
    with pytest.raises(DescriptorError):
        call(dtype, number)


@pytest.mark.parametrize("call", [_diagonal, _if_first, _if_second])
@pytest.mark.parametrize("number", [2.5, float("nan"), float("inf"), 1e30])
def test_fraction_is_no_integer(call, number):
    with pytest.raises(DescriptorError):
        call("int32", number)


@pytest.mark.parametrize("call", TAKES_A_NUMBER)
@pytest.mark.parametrize("value", ["1", None, [1.0], jax.random.key(0)])
def test_what_is_no_number_is_refused(call, value):
    with pytest.raises(TypeError):
        call("float32", value)


@pytest.mark.parametrize("call", TAKES_A_NUMBER)
def test_another_type_is_refused(call):
    """Also as a scalar, and where NumPy or JAX would have promoted it."""
    shape = () if call in (_diagonal, _padding) else (1,)
    for dtype, other in (("float32", "float16"), ("int32", "uint32"), ("int8", "bool")):
        with pytest.raises(DescriptorError, match="must be the same"):
            call(dtype, jnp.ones(shape, other))


@pytest.mark.parametrize("call", TAKES_A_NUMBER)
def test_weak_type_gives_way(call):
    shape = () if call in (_diagonal, _padding) else (1,)
    weak = jnp.full(shape, 2.5)
    assert jax.typeof(weak).weak_type
    assert_last(call("bfloat16", weak), np.asarray(2.5).astype(jnp.bfloat16))


@pytest.mark.parametrize("call", [_diagonal, _if_first, _if_second])
def test_weak_type_does_not_lose_its_fraction(call):
    """A float32 array is not an integer tensor, however weak its type is.

    PADDING alone truncates a float, also one that was a Python number and is traced.
    """
    shape = () if call is _diagonal else (1,)
    with pytest.raises(DescriptorError):
        call("int32", jnp.full(shape, 2.5))


@pytest.mark.parametrize("call", [_diagonal, _padding])
def test_value_is_a_scalar(call):
    with pytest.raises(DescriptorError, match="scalar"):
        call("float32", jnp.ones((1,)))


def test_two_numbers_have_no_type():
    with pytest.raises(TypeError, match="both Python numbers"):
        dmljax.element_wise_if(jnp.ones(1, bool), 1.0, 2.0)


def test_traced_python_numbers_stay_data():
    """Numbers that go through jit are traced once and do not make a result weak."""

    @jax.jit
    @chex.assert_max_traces(n=1)
    def program(x, value):
        return (
            dmljax.diagonal_matrix1(x, value=value),
            dmljax.padding(x, (1, 0), (0, 2), value=value),
            dmljax.element_wise_if(x > 0, x, jnp.broadcast_to(value, x.shape)),
        )

    x = samples.numbers((2, 3), "float16", 0)
    for value in (1.0, 2.0, -0.5):
        number = np.asarray(value, np.float16)
        expected = (
            oracles.diagonal_matrix1(x, value=number, fill_begin=0, fill_end=1),
            oracles.padding(x, (1, 0), (0, 2), mode="CONSTANT", value=number),
            oracles.element_wise_if(x > 0, x, np.broadcast_to(number, x.shape)),
        )
        assert_same(program(x, value), expected)


@pytest.mark.parametrize("call", TAKES_A_NUMBER)
def test_new_number_does_not_retrace(call):
    """But for 0 and 1, which are parts of their programs."""

    def programs():
        return sum(subject.jitted._cache_size() for subject in SUBJECTS.values())

    jax.clear_caches()
    for new, same in ((0.0, (0, False)), (1.0, (1, True)), (2.5, (3, -0.0, -(2**40)))):
        size = programs()
        call("float32", new)
        assert programs() == size + 1
        for number in same:
            call("float32", number)
        assert programs() == size + 1


# DIAGONAL_MATRIX1


def test_diagonal_triangles():
    """The limits of INT32 in their real use: to keep a triangle."""
    x = samples.numbers((4, 5), "int32", 1)
    for k in range(-5, 7):
        upper = dmljax.diagonal_matrix1(x, value=0, fill_begin=INT32_MIN, fill_end=k)
        assert_same(upper, np.triu(x, k))
        lower = dmljax.diagonal_matrix1(
            x, value=0, fill_begin=k + 1, fill_end=INT32_MAX
        )
        assert_same(lower, np.tril(x, k))


def test_diagonal_defaults_are_the_identity():
    assert_same(dmljax.diagonal_matrix1(shape=(2, 3)), np.eye(2, 3, dtype=np.float32))


@pytest.mark.parametrize("bound", [2**31, -(2**31) - 1, 2**40])
def test_diagonal_bounds_are_int32(bound):
    for name in ("fill_begin", "fill_end"):
        with pytest.raises(DescriptorError, match="INT32"):
            dmljax.diagonal_matrix1(shape=(2, 2), **{name: bound})


# ONE_HOT


@pytest.mark.parametrize(
    "dtype",
    [f"{sign}int{width}" for sign in ("", "u") for width in (4, 8, 16, 32, 64)],
    indirect=True,
)
@pytest.mark.parametrize("size", [1, 5])
def test_one_hot_index_types(dtype, size):
    limits = jnp.iinfo(dtype)
    near = range(max(-size - 2, int(limits.min)), size + 3)
    indices = np.array([[*near, int(limits.min), int(limits.max)]], dtype)
    values = np.array([4, 2], np.int8)
    output = dmljax.one_hot(indices, values, size=size, axis=0)
    assert_same(output, oracles.one_hot(indices, values, size=size, axis=0))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("dtype", "index"),
    [
        *(("int64", index) for index in (2**40, -(2**63), -(2**32), 2**32)),
        *(("uint64", index) for index in (2**63 + 1, 2**64 - 1, 2**32 + 1)),
    ],
)
def test_one_hot_compares_in_64_bits(dtype, index):
    output = dmljax.one_hot(np.array([index], dtype), np.arange(2.0), size=3)
    assert_same(output, np.zeros(3))


@pytest.mark.parametrize("pair", [("nan", 1), (1, "nan"), ("inf", "-inf"), (-0.0, 0)])
def test_one_hot_selects(pair):
    """Off + (on - off) would be NaN."""
    values = np.array(pair, np.float32)
    indices = np.array([[0], [-1], [7]], np.int32)
    output = dmljax.one_hot(indices, values, size=3)
    assert_same(output, oracles.one_hot(indices, values, size=3, axis=-1))


def test_one_hot_of_a_number_of_elements_past_every_type():
    """A position past the index type's range is not lit by a wrapped index."""
    for dtype, size in (("int8", 400), ("uint8", 600), ("int4", 20), ("uint4", 40)):
        indices = np.arange(-8, 8).astype(dtype)[None]
        output = dmljax.one_hot(indices, np.array([0, 1], np.int8), size=size, axis=0)
        expected = oracles.one_hot(
            indices, np.array([0, 1], np.int8), size=size, axis=0
        )
        assert_same(output, expected)


# ELEMENT_WISE_IF


@pytest.mark.parametrize("other", [np.nan, np.inf, -np.inf])
def test_if_leaks_nothing(other):
    """Neither side, also where it is a number."""
    condition = np.array([0, 1, 255, 0], np.uint8)
    x = np.array([1, -0.0, 1e-45, np.nan], np.float32)
    full = np.full(4, other, np.float32)
    expected = oracles.element_wise_if(condition, x, full)
    assert_same(dmljax.element_wise_if(condition, x, full), expected)
    assert_same(dmljax.element_wise_if(condition, x, float(other)), expected)
    expected = oracles.element_wise_if(condition, full, x)
    assert_same(dmljax.element_wise_if(condition, full, x), expected)
    assert_same(dmljax.element_wise_if(condition, float(other), x), expected)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "float32"])
def test_if_condition_types(dtype):
    with pytest.raises(DescriptorError, match="ConditionTensor"):
        dmljax.element_wise_if(jnp.ones(2, dtype), jnp.ones(2), jnp.ones(2))


# NONZERO_COORDINATES


@pytest.mark.parametrize("columns", [2, 3, 4])
def test_nonzero_example_of_the_page(columns):
    x = np.zeros((1, 1, 2, 4), np.float32)
    x[0, 0, [0, 0, 1, 1], [0, 3, 1, 3]] = 1
    count, coordinates = dmljax.nonzero_coordinates(x, columns=columns)
    rows = np.array([(0, 0, 0, 0), (0, 0, 0, 3), (0, 0, 1, 1), (0, 0, 1, 3)])
    assert int(count) == 4
    np.testing.assert_array_equal(coordinates[:4], rows[:, -columns:])
    assert coordinates.shape == (8, columns)
    assert not coordinates[4:].any()


@pytest.mark.parametrize("fill", [0, 7, None])
def test_nonzero_batch(fill):
    x = np.stack([samples.numbers((4, 9), "int8", seed) % 2 for seed in range(3)])
    x[1] = 0
    outputs = jax.vmap(functools.partial(dmljax.nonzero_coordinates, fill=fill))(x)
    for i, line in enumerate(x):
        count, coordinates = oracles.nonzero_coordinates(line, fill=fill or 0)
        valid = line.size if fill is not None else int(count)
        assert_same(outputs.count[i], count)
        assert_same(outputs.coordinates[i, :valid], coordinates[:valid])


@pytest.mark.parametrize(
    ("shape", "columns"), [((2, 3), 1), ((2, 3), 3), ((1, 3), 0), ((), 0), ((), 2)]
)
def test_nonzero_columns_are_bounded(shape, columns):
    with pytest.raises(DescriptorError, match="columns"):
        dmljax.nonzero_coordinates(jnp.zeros(shape), columns=columns)


# PADDING

LONG = 720_000_000


@pytest.mark.parametrize("mode", tuple(PaddingMode)[1:])
def test_padding_indices_of_long_axes_do_not_overflow(mode):
    """Where positions, folded up to a period ahead, pass 2^31, they have 64 bits."""
    x = jax.ShapeDtypeStruct((LONG,), np.int8)
    call = functools.partial(dmljax.padding, mode=mode)
    pads = (1,), (2**31 - LONG,)
    text = jax.jit(lambda x: call(x, *pads)).lower(x).as_text()
    assert "xi64>" in text


@pytest.mark.parametrize("mode", [PaddingMode.REFLECTION, PaddingMode.SYMMETRIC])
def test_padding_little_of_long_axes_does_not_overflow(mode):
    """Start 1 is folded to almost two sizes ahead: then the last is at 2^31 or so."""
    x = jax.ShapeDtypeStruct((LONG,), np.int8)
    pad = jax.jit(lambda x: dmljax.padding(x, (1,), (1,), mode=mode))
    assert "xi64>" in pad.lower(x).as_text()


@pytest.mark.parametrize("mode", PaddingMode)
def test_padding_mode_by_number(mode):
    x = samples.numbers((3,), "int32", 0)
    output = dmljax.padding(x, (4,), (5,), mode=int(mode), value=9)
    expected = oracles.padding(x, (4,), (5,), mode=mode.name, value=9)
    assert_same(output, expected)


@pytest.mark.parametrize("mode", tuple(PaddingMode)[1:])
def test_padding_repeats_no_empty_axis(mode):
    with pytest.raises(DescriptorError, match="repeat"):
        dmljax.padding(jnp.zeros((2, 0)), (0, 1), (0, 0), mode=mode)
