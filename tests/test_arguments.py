"""Right and wrong arguments: arrays, scalars, sizes and integers."""

import contextlib
import dataclasses
import inspect
import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import dmljax.numpy as dnp
import dmljax.onnx as dox
from dmljax import (
    DescriptorError,
    create_operator,
    diagonal_matrix1,
    element_wise_if,
    nonzero_coordinates,
    one_hot,
    padding,
)
from dmljax._arguments import as_integer, as_real, as_sizes
from dmljax._check import public
from tests import oracles
from tests.checks import Parameter, assert_refused, assert_same
from tests.doors import DOORS, name_of
from tests.samples import FLOATS, INTEGERS, WIDE, tensor
from tests.subjects import FORMS, SUBJECTS
from tests.subjects.diagonal_matrix1 import BEGIN, END
from tests.subjects.padding import DESC, pad

X = np.arange(6, dtype=np.float32).reshape(2, 3)
HUGE = 10**5000


# ARRAYS

DIAGONAL = "DIAGONAL_MATRIX1"
VALUE = np.float32(7)


def parameters(*types):
    """Each parameter of these types: operator, name, a right argument, and a call.

    The name in a message may have DirectML's name behind it.
    """
    for name, subject in SUBJECTS.items():
        every = inspect.signature(subject.operator.function).parameters.values()
        for parameter, right in zip(every, subject.arguments, strict=True):
            if parameter.annotation in types:

                def call(value, subject=subject, name=parameter.name):
                    return subject.call(**{name: value})

                yield name.upper(), f"{parameter.name}...", right, call


# Every place of an array: the operator, the tensor, a right array, and a call.
PLACES = {
    "diagonal": (DIAGONAL, "x (InputTensor)", X, diagonal_matrix1),
    "descriptor": ("PADDING", "tensor 'InputTensor'", X, create_operator(DESC)),
    "none": ("PADDING", "value (PaddingValue)", VALUE, lambda v: pad(value=v, mode=4)),
}
SIZES = [*parameters("Sizes", "Sizes | None")]
PLACES |= {" ".join(place[:2]): place for place in parameters("ArrayLike")}


class Strange:
    """An object that NumPy would convert to an array."""

    def __array__(self):
        return X


def assert_no_array(value, text, error=TypeError):
    """Asserts that every function refuses the value, in place of each of its arrays."""
    for operator, argument, _, call in PLACES.values():
        if value is None and call is diagonal_matrix1:  # None stands for zeros
            continue
        assert_refused(operator, f"{argument} {text}", call, value, error=error)


NO_ARRAY = "must be a number or an array, not "
CONVERT = "; convert it with jnp.asarray"
MASKED = ", whose mask would be lost; pass its filled() values, and the mask as"
DESCRIBED = jax.ShapeDtypeStruct((), np.float32)
NO_ELEMENTS = "ShapeDtypeStruct, which has no elements; jax.eval_shape traces"
ELEMENTS = "; it must be a type of numbers that JAX has, in native byte order."
NATIVE = ' Write a.astype(a.dtype.newbyteorder("=")) for an array a.'
KEYS = " jax.random.key_data makes numbers of keys, and jax.random.wrap_key_data makes"
# JAX has no arrays of some of these types, and the others are no numbers.
NO_TYPES = """
object U1 V4 M8[s] m8[s] longdouble G >f4 >i2 float6_e2m3fn float6_e3m2fn
"""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, f"{NO_ARRAY}NoneType."),
        ("1", f"{NO_ARRAY}str."),
        ([1.0], f"{NO_ARRAY}list{CONVERT}"),
        ((1.0,), f"{NO_ARRAY}tuple{CONVERT}"),
        (Strange(), f"{NO_ARRAY}Strange{CONVERT}"),
        ({"a": X}, f"{NO_ARRAY}dict; jax.tree.map calls a function with"),
        (np.ma.masked_array(1, True), f"is a masked array{MASKED}"),
        (jax.random.key(0), f"has elements of type key<fry>{ELEMENTS}{KEYS}"),
        (DESCRIBED, f"{NO_ARRAY}{NO_ELEMENTS}"),
        (Parameter, f"{NO_ARRAY}type."),  # a class of arrays
    ],
)
def test_values_that_are_no_arrays(value, text):
    assert_no_array(value, text)


@pytest.mark.parametrize(("function", "arguments", "options"), DOORS)
def test_a_description_is_no_array(function, arguments, options):
    """We refuse a ShapeDtypeStruct before JAX does, which names no argument."""
    bound = inspect.signature(function).bind(*arguments, **options)
    for name, right in bound.arguments.copy().items():
        if isinstance(right, np.ndarray | np.generic | tuple):
            is_tuple = isinstance(right, tuple)
            bound.arguments[name] = (0, DESCRIBED) if is_tuple else DESCRIBED
            call = partial(function, *bound.args, **bound.kwargs)
            text = f"{name} {NO_ARRAY}{NO_ELEMENTS}"
            assert_refused(name_of(function), text, call, error=TypeError)
            bound.arguments[name] = right


@pytest.mark.parametrize("dtype", NO_TYPES.split())
def test_elements_that_are_no_numbers(dtype):
    array = np.ones((2, 3), dtype)
    remedy = NATIVE * dtype.startswith(">")
    remedy += " Floats of 6 bits are not supp" * dtype.startswith("float6")
    assert_no_array(array, f"has elements of type {array.dtype}{ELEMENTS}{remedy}")


def edges(dtype):
    """The operator of a descriptor whose tensors have a type."""
    small, large = tensor(dtype.upper(), 2, 3), tensor(dtype.upper(), 3, 5)
    desc = dataclasses.replace(DESC, input_tensor=small, output_tensor=large)
    return create_operator(desc)


@contextlib.contextmanager
def explicit_types(rule):
    """JAX's rule for explicit types of 64 bits outside of x64 mode."""
    before = jax.config.jax_explicit_x64_dtypes
    jax.config.update("jax_explicit_x64_dtypes", rule)
    try:
        yield
    finally:
        jax.config.update("jax_explicit_x64_dtypes", before)


def of_64_bits(x, indices, bound):
    """Results of elements, constants and indices of 64 bits."""
    kept = nonzero_coordinates(x, size=5)
    yield kept.put(x, kept.take(x, fill_value=7))
    yield padding(x, (1, 1), (0, 2), value=2**31)
    yield diagonal_matrix1(x, value=9, fill_begin=bound, fill_end=None)
    yield diagonal_matrix1(shape=(2, 3), dtype=x.dtype, value=2**31)
    yield element_wise_if(x > 1, x, 2**31)
    yield one_hot(indices, x[0], size=3)
    yield edges(x.dtype.name)(x)
    yield dnp.pad(x, 1, constant_values=((1, 2), (3, 4)))
    yield dnp.extract(x > 1, x, size=5, fill_value=3)
    yield dnp.one_hot(indices, 3, dtype=x.dtype)


@pytest.mark.parametrize(
    ("dtype", "mode"),
    [("float64", jax.jit), ("int64", lambda call_by_call: call_by_call)],
)
def test_an_array_of_64_bits_is_an_array_where_jax_computes_with_it(dtype, mode):
    """Where explicit types are allowed, results are those of x64 mode."""

    def run(*given):
        return [*of_64_bits(*given)]

    x = np.arange(6).reshape(2, 3).astype(dtype)
    with jax.enable_x64(True):
        # A planted fault: indices of 64 bits are read as 32.
        indices = np.array([[0], [-1], [2**40]])
        given = jax.device_put((x, indices, np.array(2**40)))
        wanted = jax.jit(run)(*given)
    with explicit_types("allow"):
        assert_same(mode(run)(*given), wanted)
        # An array of NumPy becomes 32 bits, as everywhere in JAX.
        assert padding(x, (1, 1), (1, 1)).dtype.itemsize == 4
        assert_same(edges(dtype)(x), wanted[6])


def test_wide_types_need_x64_where_jax_refuses_them():
    """Planted fault: "error" is taken for "allow", and JAX's own error is seen."""
    with explicit_types("error"):
        text = "the result (dtype) has data type INT64, which needs JAX's x64 mode"
        assert_refused(DIAGONAL, text, diagonal_matrix1, shape=(1, 2), dtype="int64")


@pytest.mark.parametrize("dtype", WIDE)
def test_wide_types_need_x64(dtype):
    array = np.ones((2, 3), dtype)
    with jax.enable_x64(True):
        of_jax = jax.device_put(array)
    narrow = str(jax.dtypes.canonicalize_dtype(dtype))
    text = (
        f"has data type {dtype.upper()}, which needs JAX's x64 mode. Turn it on with "
        "jax.config.update('jax_enable_x64', True) or JAX_ENABLE_X64=1. If "
        f"{narrow.upper()} holds the values, use it: .astype('{narrow}') converts"
    )
    assert_no_array(of_jax, text, DescriptorError)


@pytest.mark.parametrize("wide", WIDE)
def test_arrays_of_numpy_become_32_bits(wide):
    """NumPy's 64-bit arrays become 32 bits wide, as in JAX."""
    narrow = jax.dtypes.canonicalize_dtype(wide)
    samples = [sample for sample, *_ in FORMS.values()]
    found = jax.jit(lambda: [one.run(*one.arrays(wide)) for one in samples])()
    assert_same(found, [one.expected(*one.arrays(narrow)) for one in samples])


def test_limits_of_narrow_types():
    assert padding(np.array([1e300, -1e300]), (0,), (0,)).tolist() == [np.inf, -np.inf]
    assert padding(np.zeros(0, np.int64), (1,), (0,)).dtype == np.int32


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**63 + 1])
def test_integers_that_do_not_fit_in_32_bits(value):
    array = np.full((2, 1), value)
    array[0] = 1
    kind = array.dtype.name.upper()
    for operator, argument, right, call in PLACES.values():
        if right.ndim == 0 or argument.startswith("tensor"):
            continue
        text = f"{argument} has an element {value}, which {kind[:-2]}32 does not hold. "
        text += f"{kind} needs"
        assert_refused(operator, text, call, array)
        assert_refused(operator, text, jax.jit(partial(call, array)))
    assert_refused("PADDING", f"x (InputTensor) has an element {value}", pad, value)
    text = "x (InputTensor) is about 2^16609; it must be an integer of at most 64 bits"
    assert_refused("PADDING", text, pad, HUGE)


@pytest.mark.parametrize("place", PLACES)
def test_arrays_of_every_kind(place):
    """NumPy's arrays, JAX's arrays, and objects that wrap an array."""
    _, _, array, call = PLACES[place]
    of_jax = jax.device_put(array)
    found = [call(x) for x in (of_jax, Parameter(array), Parameter(of_jax))]
    found.append(jax.jit(lambda x: call(Parameter(x)))(array))
    assert_same(found, [call(array)] * 4)


# SCALARS

# The value is the last element of each of these results.
TRUE = np.ones((1, 1), bool)
SCALARS = {
    "value (Value)": lambda x, value: diagonal_matrix1(x, value=value),
    "value (PaddingValue)": lambda x, value: padding(x, (0, 0), (0, 1), value=value),
    "a (ATensor)": lambda x, value: element_wise_if(TRUE, value, x),
    "b (BTensor)": lambda x, value: element_wise_if(~TRUE, x, value),
}
padding_value = SCALARS["value (PaddingValue)"]
# dmljax.numpy converts fills, of complex numbers only the real part.
CASTS = [
    lambda x, value: dnp.pad(x, 1, constant_values=value),
    lambda x, value: dnp.pad(x, 1, constant_values=(0, value)),
    lambda x, value: dnp.extract(x, x, size=2, fill_value=value)[None],
    lambda x, value: dnp.compress(x[0], x, 1, size=2, fill_value=value),
]
# Other functions with such a value.
FILLED = [
    *CASTS,
    lambda x, value: NOTHING.take(x[0], fill_value=value)[None],
    lambda x, value: dox.pad(x, [0, 1], value, [1]),
    lambda x, value: dox.pad(x, [0, 1], np.reshape(value, 1), [1]),
    lambda x, value: dox.where(TRUE, value, x),
    lambda x, value: dox.where(~TRUE, x, value),
    lambda x, value: dox.compress(x, x, size=2, fill_value=value)[None],
]
NOTHING = nonzero_coordinates(np.zeros(1, bool), size=1)
CALLS = *SCALARS.values(), *FILLED


def assert_last(found, expected):
    """We take the last element in NumPy, because JAX would compile a program."""
    assert not found.weak_type
    assert_same(jax.device_put(np.asarray(found)[0, -1]), expected)


# Python's numbers; typed scalars; and NumPy's numbers of 64 bits, which are Python's:
# sums, means and constants.
NUMBERS = {
    "float32": [
        True,
        -0.0,
        -(2**70),
        np.nan,
        1e300,
        np.zeros((), bool),
        jnp.asarray(7.0),
        jnp.finfo(jnp.float32).min,
        Parameter(jnp.float32(7)),
        np.uint64(2**40),
    ],
    "float16": [1e6, -1e6],
    "bfloat16": [0.1, 2**70, np.array(0.5), np.mean([0, 1]), Parameter(np.float64(2))],
    "complex64": [1 - 2j, 3, jnp.asarray(True), np.array(2j), np.float64(0.5)],
    "int4": [-8, np.True_],
    "int8": [3.0, jnp.asarray(False)],
    "uint8": [255, np.array(7), np.float64(7)],
    "bool": [True, 0, 1.0],
    "float64": [0.1, -int(np.finfo(np.float64).max)],
    "int64": [-(2**63)],
    "uint64": [np.uint64(2**64 - 1), np.int64(7)],
}


@pytest.mark.parametrize(("dtype", "numbers"), NUMBERS.items(), indirect=["dtype"])
def test_a_number_takes_the_type_of_the_tensor(dtype, numbers):
    x = np.zeros((1, 1), dtype)
    eager = [(number, padding_value) for number in numbers]
    uses = [*itertools.product(numbers, SCALARS.values())]
    # Python's numbers, and NumPy's of 64 bits, have no type of their own.
    free = [number for number in numbers if np.asarray(number).dtype in WIDE]
    uses += itertools.product(free, FILLED)

    def results(uses):
        return [call(x, number) for number, call in uses]

    # Fault: NumPy's warning about a number past the largest float is seen.
    found = results(eager)
    with np.errstate(over="ignore"):
        found += jax.jit(partial(results, uses))()
        for one, (number, _) in zip(found, eager + uses, strict=True):
            value = getattr(number, "value", number)
            exact = float(value) if jnp.issubdtype(dtype, np.floating) else value
            assert_last(one, np.asarray(exact).astype(dtype))


@pytest.mark.parametrize(
    ("dtype", "numbers", "text"),
    [
        ("int32", [2.5j], "is {}; INT32 has no imaginary part"),
        ("int4", [8, -9], "is {}; INT4 holds -8 to 7"),
        ("int32", [2**31, 1e30], "is {}; INT32 holds -2147483648 to 2147483647"),
        ("int32", [HUGE], "is about 2^16609; INT32 holds -2147483648 to"),
        ("int32", [2.5, np.nan, -np.inf], "is {}; INT32 holds whole numbers"),
        ("bool", [2, -1, 0.5], "is {}; BOOL holds False and True"),
        ("float32", [-HUGE], "is about -2^16609; FLOAT32 holds no numbers of this si"),
        # These numbers have a type of their own, which differs from the tensor's.
        ("float32", [np.float16(1), np.int32(1)], "both must be the same"),
        ("int32", [np.int8(1), np.uint32(1), np.float32(2.5)], "both must be the same"),
        # Fault: the advice to lose 0.5.
        ("int4", [np.array(0.5, jnp.float8_e4m3fn)], "INT4 does not hold every value"),
    ],
)
def test_numbers_that_the_type_does_not_hold(dtype, numbers, text):
    x = np.zeros((1, 1), dtype)
    for number, (name, call) in itertools.product(numbers, SCALARS.items()):
        if call is padding_value and type(number) is float and dtype == "int32":
            # PADDING truncates a float for an integer tensor, as its page says.
            assert_last(call(x, number), oracles.cast_padding_value(number, dtype))
            continue
        with pytest.raises(DescriptorError) as raised:
            call(x, number)
        message = str(raised.value)
        assert f"{name} " in message
        assert text.format(number) in message
        assert ").astype" not in message  # value (Value).astype is no code


def test_integers_of_numpy_that_do_not_fit():
    x = np.zeros((1, 1), "i")
    for value, call in itertools.product((2**40, 2**63), CALLS):
        with pytest.raises(DescriptorError, match=f" is {value}; INT32 holds -2147"):
            call(x, np.uint64(value))
    for find in (dnp.nonzero, dnp.argwhere, dnp.flatnonzero, dox.nonzero):
        with pytest.raises(DescriptorError, match=r"fill_value .*1099511627776.* hold"):
            find(x, size=2, fill_value=np.int64(2**40))


@pytest.mark.parametrize("dtype", [*INTEGERS, "int64", "uint64"], indirect=True)
def test_numbers_saturate(dtype):
    """Literals that NumPy converts, arrays, and tracers: none wraps around."""
    x = np.zeros((1, 1), dtype)
    limits = np.iinfo(dtype)
    floats = [*FLOATS, -1 + 2j, 300.5 - 1j]
    arrays = [*map(jnp.asarray, floats)]
    integers = [0, 1, 300, -5, 70000, 2**31 - 1, -(2**31)]

    def truncated(values):
        casts = zip(itertools.cycle(CASTS), values, strict=False)
        found = [cast(x, value) for cast, value in casts]
        return found + [padding_value(x, value) for value in values[: len(FLOATS)]]

    @jax.jit
    def run(traced, integers):
        clipped = [call(x, n) for call in SCALARS.values() for n in integers]
        return [*map(truncated, (floats, arrays, traced)), clipped]

    expected = [oracles.cast_padding_value(np.real(n), dtype) for n in floats]
    expected += expected[: len(FLOATS)]
    clipped = [min(max(n, limits.min), limits.max) for n in integers] * len(SCALARS)
    found = jax.tree.leaves(run(floats, integers))
    for one, value in zip(found, expected * 3 + clipped, strict=True):
        assert_last(one, np.asarray(value, dtype))


@pytest.mark.parametrize("name", SCALARS)
def test_a_new_number_compiles_nothing(name):
    """But diagonal_matrix1 has another program for the integer 0, which is left out."""

    def programs():
        return sum(subject.jitted._cache_size() for subject in SUBJECTS.values())

    x = np.zeros((1, 1), np.float32)
    for subject in SUBJECTS.values():
        subject.jitted.clear_cache()
    for number in (0.0, True, 2.5, 3, -0.0, -(2**40)):
        SCALARS[name](x, number)
        assert programs() == 1
        # jax.checkpoint would hide the values of arrays, except for the condition.
        program = partial(SCALARS[name], value=number)
        assert all(const.dtype == bool for const in jax.make_jaxpr(program)(x).consts)


def test_wrong_float_attributes():
    text = "X is ...; it must be a real number that a floating-point type holds"
    others = "1", True, None, np.timedelta64(1, "s")
    for value in (1j, np.complex64(1j), HUGE, -HUGE, *others):
        assert_refused("AS_REAL", text, public(as_real), "X", value)
    for value in (np.int8(1), np.float16(1), int(np.finfo(float).max)):
        assert as_real("X", value) is value


# INTEGERS AND SIZES


@pytest.mark.parametrize(
    ("operator", "name", "call"),
    [
        (DIAGONAL, BEGIN, lambda n: diagonal_matrix1(X, fill_begin=n, fill_end=1)),
        (DIAGONAL, END, lambda n: diagonal_matrix1(X, fill_begin=0, fill_end=n)),
        *[(*place[:2], place[3]) for place in parameters("int", "int | None")],
        *[(*place[:2], lambda n, call=place[3]: call((1, n))) for place in SIZES],
    ],
)
def test_wrong_integers(operator, name, call):
    refused = partial(assert_refused, operator)
    static = "must be an integer that is known when the program is traced, not"
    masked = np.ma.masked_array(1, True)
    for value in (1.0, "1", np.float32(1), np.timedelta64(2, "s"), masked, DESCRIBED):
        text = f"{name} {static} {type(value).__name__}"
        refused(text, call, value, error=TypeError)
    for value in (True, np.False_):
        text = f"{name} is {value}, a boolean; it must be an integer"
        refused(text, call, value, error=TypeError)
    refused(f"{name} is about 2^16609; it must be an ", call, HUGE)
    if name in (BEGIN, END):  # bounds may be traced, or None
        return
    if operator != "NONZERO_COORDINATES":
        refused(f"{name} {static} NoneType", call, None, error=TypeError)
    text = f"{name} is traced;...Close over it, or name it in jax.jit's static_arg"
    refused(text, jax.jit(call), 1, error=TypeError)
    refused(text, jax.vmap(call), np.ones(2, "i"), error=TypeError)


@pytest.mark.parametrize(("operator", "name", "_", "call"), SIZES)
def test_wrong_sequences_of_integers(operator, name, _, call):
    masked = np.ma.masked_array([1, 1])
    texts = "34", b"34", bytearray(2), memoryview(b"34")
    for value in (*texts, 5, np.array(3), {3}, masked):
        kind = type(value).__name__
        text = f"{name} must be a sequence of integers, one for each axis, not {kind}."
        message = assert_refused(operator, text, call, value, error=TypeError)
        assert message.endswith(f" not {kind}.")  # and no advice about pairs
    text = f"{name} has ...1, 1... for an axis; it must have one integer for each axis."
    text += " If you have...write start, end = zip(*pairs)" * (operator == "PADDING")
    for value in ((1, 1), (1, 1)), np.ones((2, 2), int):
        assert_refused(operator, text, call, value, error=TypeError)
    for n in (2**64, -(2**64)):
        text = f"{name} is {n}; it must be an integer of at most 64 bits"
        assert_refused(operator, text, call, (1, n))
    text = f"{name} is traced; it must be a tuple of integers, known when"
    for value in (np.ones(2, np.int32), [1, 1], (1, 1)):  # JAX traces their elements
        assert_refused(operator, text, jax.jit(call), value, error=TypeError)


def test_integers_and_sequences_of_integers():
    for value in (2**64 - 1, 1 - 2**64):
        assert as_integer("size", value) == value
    (symbol,) = export.symbolic_shape("n")
    numbers = np.int64(1), jnp.int32(2), symbol
    for values in [1, 0], np.array([0, 2], np.uint8), (), range(1, -1, -1), numbers:
        found = as_sizes("StartPadding", values)
        assert found == tuple(values)
        assert all(type(n) in (int, type(symbol)) for n in found)


def test_wrong_dtypes():
    make = partial(diagonal_matrix1, shape=(2, 2))
    refused = partial(assert_refused, DIAGONAL, error=TypeError)
    refused(f"dtype is object{ELEMENTS}", make, dtype="object")
    for dtype in ("float31", ("f4", -1), VALUE, jnp.float32(7), X[0]):
        text = f"dtype is {dtype!r}; it must be a data type such as jnp.float32"
        refused(text, make, dtype=dtype)
