"""Samples of operators, and values for their operands.

tests/subjects/ has the samples, a file for each operator. The tests of results, of
transformations and of other implementations all use these samples.
"""

import dataclasses
import functools
import importlib
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from dmljax import DataType, DescriptorError, TensorDesc, create_operator
from dmljax._directml.support import SupportTable
from dmljax._operators import OPERATORS
from tests.sharded import Case

INT32_MIN = -(2**31)
INT32_MAX = 2**31 - 1
# NumPy's names of the modes of PADDING, by their numbers.
NUMPY = ("constant", "edge", "reflect", "symmetric", "wrap")

# DATA TYPES

WIDE = ("float64", "int64", "uint64", "complex128")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
# JAX's types without a name in DirectML.
EXTRA = ("bool", "bfloat16", "complex64", "complex128")
EXTRA += ("float8_e4m3fn", "float8_e5m2", "int4", "uint4")


def special_bits(width, mantissa):
    """Both zeros, NaN quiet, signalling and negative, infinities, subnormals."""
    sign = 1 << (width - 1)
    infinity = sign - (1 << mantissa)
    quiet = infinity | 1 << (mantissa - 1)
    payload = (1 << mantissa) // 5
    nans = (quiet | payload >> 2, infinity | payload, sign | quiet | payload >> 3)
    infinities = (infinity, infinity | sign)
    return (sign, 0, *nans, *infinities, 1, sign | (1 << mantissa) - 1)


SPECIAL_BITS = {
    "float16": special_bits(16, 10),
    "bfloat16": special_bits(16, 7),
    "float32": special_bits(32, 23),
    "float64": special_bits(64, 52),
}
SPECIAL_BITS |= {f"complex{2 * n}": SPECIAL_BITS[f"float{n}"] for n in (32, 64)}

# The least value, and the greatest plus 1.
FEW_BITS = {"bool": (0, 2), "int4": (-8, 8), "uint4": (0, 16)}

# XLA's CPU computes with other types in place of these, even where it only moves
# elements: any NaN may become this NaN, and a subnormal number may become 0.
REPLACED = {"bfloat16": 0x7FC0, "float8_e5m2": 0x7F}


def numbers(shape, dtype, seed):
    """Small integers, some of them 0. Every type holds them and adds them exactly."""
    dtype = jnp.dtype(dtype)
    places = np.arange(np.prod(shape, dtype=int))
    line = (5 * places + 3 * seed) % 7
    if dtype.name == "bool":
        line %= 2
    elif not jnp.issubdtype(dtype, np.unsignedinteger):
        line -= 2
    return line.astype(dtype).reshape(shape)


def bits(shape, dtype, seed):
    """Random bits; for the replaced types only bits that all platforms keep."""
    array = any_bits(shape, dtype, seed)
    if array.dtype.name in REPLACED:
        words = array.view(f"u{array.dtype.itemsize}")
        with np.errstate(invalid="ignore"):
            words[abs(array) < jnp.finfo(array.dtype).tiny] = 0
            words[np.isnan(array)] = REPLACED[array.dtype.name]
    return array


def any_bits(shape, dtype, seed):
    """Random bits; for floats the special values first, rotated by the seed."""
    dtype = jnp.dtype(dtype)
    generator = np.random.default_rng(seed)
    if dtype.name in FEW_BITS:
        return generator.integers(*FEW_BITS[dtype.name], shape).astype(dtype)
    size = int(np.prod(shape, dtype=int))
    line = np.frombuffer(generator.bytes(size * dtype.itemsize), dtype).copy()
    if dtype.name in SPECIAL_BITS:
        width = dtype.itemsize // (1 + (dtype.kind == "c"))
        words = line.view(f"u{width}")
        words[:9] = np.roll(SPECIAL_BITS[dtype.name], -2 * seed)[: words.size]
    return line.reshape(shape)


# Fractions, NaN, infinities, and numbers beyond some integer types.
FLOATS = [300.7, -1.5, -300.2, np.nan, np.inf, -np.inf, 1e30, 3e9, -3e9, 10.6]


def diagonals(dtype):
    """Diagonals of a type, also far past a matrix, and near ones of the same effect."""
    limits = np.iinfo(dtype)
    near = (0, 1, max(limits.min, -9), 9)
    return np.array([0, 1, limits.min, limits.max], dtype), near


# SAMPLES


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """One use of an operator: its arrays and its attributes.

    Attributes:
      operator: its name.
      function: `(*arrays, implementation=None, **attributes)` in JAX.
      oracle: `(*arrays, **attributes)` in NumPy.
      name: the sample's name, unique for the operator.
      operands: for each, an array, or the shape of an open operand, which we fill at
        will.
      attributes: the static arguments.
      linear: whether the function is linear in the open operands; else it has no
        derivative.
      implementation: "pallas" for the kernel, which a CPU simulates.
      moves: whether the operator only moves elements, so that any bits come out as they
        went in. Other operators get small whole numbers instead.
    """

    operator: str
    function: Callable
    oracle: Callable
    name: str
    operands: tuple[np.ndarray | tuple[int, ...], ...]
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)
    linear: bool = True
    implementation: str | None = None
    moves: bool = True

    def __str__(self):
        return f"{self.operator}-{self.name}".replace(" ", "_")

    @property
    def open_operands(self):
        """The positions of the operands that are given as shapes."""
        return tuple(i for i, x in enumerate(self.operands) if isinstance(x, tuple))

    def arrays(self, dtype="float32", fill=numbers, seed=0):
        """The operands, filled with values of type `dtype`."""
        fill = fill if self.moves else numbers
        return tuple(
            fill(operand, dtype, seed + i) if isinstance(operand, tuple) else operand
            for i, operand in enumerate(self.operands)
        )

    def by_kernel(self):
        """The same use, by the kernel of NONZERO_COORDINATES."""
        name = f"{self.name} by kernel"
        return dataclasses.replace(self, name=name, implementation="pallas")

    def run(self, *arrays):
        """The operator's output for these arrays."""
        options = dict(self.attributes)
        if self.implementation:
            options["implementation"] = self.implementation
        return self.function(*arrays, **options)

    def expected(self, *arrays):
        """The oracle's output for these arrays."""
        return self.oracle(*arrays, **self.attributes)


def named(run, sample, *arrays):
    """The result of `run(sample, *arrays)`. An error names the sample."""
    try:
        return run(sample, *arrays)
    except Exception as error:
        error.add_note(f"in the sample {sample}")
        raise


def created(desc, **changes):
    """The operator of a descriptor with other fields."""
    return create_operator(dataclasses.replace(desc, **changes))


class Wrong(NamedTuple):
    """A wrong call of an operator.

    Attributes:
      operator: DirectML's name, the beginning of the message.
      text: pieces of the message in their order, with "..." between them.
      call: a function of `arrays`, inside of a traced program or outside.
      arrays: the arguments of the call.
      error: the exception that the call raises.
    """

    operator: str
    text: str
    call: Callable
    arrays: tuple[np.ndarray, ...] = ()
    error: type[Exception] = DescriptorError

    @classmethod
    def of_call(
        cls, operator, function, text, *arrays, error=DescriptorError, **options
    ):
        """A call of the function with these options."""
        call = functools.partial(function, **options)
        return cls(operator, text, call, arrays, error)

    @classmethod
    def of_descriptor(cls, desc, text, **changes):
        """A descriptor with fields that make it wrong."""
        return cls(desc.operator, text, functools.partial(created, desc, **changes))


class Described(NamedTuple):
    """A descriptor of an operator, typed a second time from DirectML's pages.

    Attributes:
      example: a valid descriptor of small tensors, of one type if possible, and of
        floats if the operator is linear.
      table: the support table. The types have their names.
      make: makes a valid descriptor at random, from a Maker of `tests.fuzz`.
      oracle: `(desc, *arrays) -> outputs` in NumPy. All tensors are packed.
    """

    example: Any
    table: SupportTable
    make: Callable
    oracle: Callable


@dataclasses.dataclass(frozen=True, eq=False)
class Subject:
    """An operator under test.

    Attributes:
      signature: the function's signature, without annotations.
      arguments: valid arguments, one for each parameter.
      samples: typical uses, for every type and every transformation. Their sizes are
        even or 1, so that two devices can share arrays and outputs.
      edges: the limits of shapes and attributes, only for the tests of results.
      errors: a wrong call for each rule of this operator alone.
      sharded: by name, calls for each line of the table about sharding on its page.
      symbolic: `(x, value) -> outputs`, for a matrix of symbolic sizes and a scalar.
      descriptors: the facts about its descriptors, by DirectML's name.
      names: the operator's other public names: enums and named tuples.
      tensor: the tensor in the support table whose types the open operands have.
    """

    signature: str
    arguments: tuple
    samples: tuple[Sample, ...]
    edges: Sequence[Sample]
    errors: Sequence[Wrong]
    sharded: dict[str, Case]
    descriptors: dict[str, Described]
    symbolic: Callable = lambda x, value: ()
    names: tuple[str, ...] = ()
    tensor: str = "OutputTensor"

    @property
    def operator(self):
        """Its entry in the registry."""
        return OPERATORS[self.samples[0].operator]

    def call(self, **changes):
        """Calls the function with valid arguments, and with other ones by name."""
        function = self.operator.function
        signature = inspect.signature(function)
        valid = dict(zip(signature.parameters, self.arguments, strict=True))
        bound = inspect.BoundArguments(signature, valid | changes)
        return function(*bound.args, **bound.kwargs)

    @property
    def primitive(self):
        """The operator in normal form; None if it is a plain function of jax.numpy."""
        return self.operator.primitive

    @property
    def jitted(self):
        """The jitted function. Its cache grows by one entry for each trace."""
        name = self.operator.function.__name__
        return getattr(importlib.import_module(f"dmljax._{name}"), f"_{name}")

    @property
    def data_types(self):
        """The types of the newest level's table, then JAX's additional types."""
        support = self.operator.descriptors[0].support
        row = support[max(support)]
        *_, data_types = row[self.tensor]
        named = (data_type.name.lower() for data_type in data_types)
        return (*named, *EXTRA)


def shape_of_rank(rank):
    """Sizes 2 and 1 in turn, from the last dimension to the first."""
    return tuple(2 - i % 2 for i in range(rank))[::-1]


def tensor(data_type, *sizes, strides=None, **rest):
    """Describes a tensor by the name of its type and by its sizes."""
    return TensorDesc(DataType[data_type], sizes, strides, **rest)
