"""Samples: small uses of every operator, each beside its oracle.

One block describes one operator. The tests of results, of transformations and of other
implementations all read from here, so that a sixth operator is one block more.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

import dmljax
from dmljax import PaddingMode as Mode
from dmljax import (
    _diagonal_matrix1,
    _element_wise_if,
    _nonzero_coordinates,
    _one_hot,
    _padding,
)
from tests import oracles

# DATA TYPES

WIDE = ("float64", "int64", "uint64", "complex128")
INEXACT = ("float16", "bfloat16", "float32", "float64", "complex64")
# What DirectML has no name for and JAX has.
EXTRA = (
    "bool",
    "bfloat16",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
    "int4",
    "uint4",
)
# Both zeros, NaN quiet, signalling and negative, infinities, subnormals.
SPECIAL_BITS = {
    "float16": (0x8000, 0, 0x7E12, 0x7D01, 0xFE55, 0x7C00, 0xFC00, 1, 0x83FF),
    "bfloat16": (0x8000, 0, 0x7FC1, 0x7F91, 0xFFE5, 0x7F80, 0xFF80, 1, 0x807F),
    "float32": (
        *(0x8000_0000, 0, 0x7FC1_2345, 0x7F81_2345, 0xFFC5_4321),
        *(0x7F80_0000, 0xFF80_0000, 1, 0x807F_FFFF),
    ),
    "float64": (
        *(1 << 63, 0, 0x7FF8_0123_4567_89AB, 0x7FF0_0123_4567_89AB),
        *(0xFFF8_BA98_7654_3210, 0x7FF << 52, 0xFFF << 52, 1, (1 << 63) | 7),
    ),
}
SPECIAL_BITS |= {
    "complex64": SPECIAL_BITS["float32"],
    "complex128": SPECIAL_BITS["float64"],
}

# XLA's CPU computes with other types in the place of these, even where it only moves
# them: a NaN is then still a NaN, but this one, and a subnormal may be 0.
REPLACED = {"bfloat16": 0x7FC0, "float8_e5m2": 0x7F}

Fill = Callable[[tuple[int, ...], Any, int], np.ndarray]


def numbers(shape: tuple[int, ...], dtype: Any, seed: int) -> np.ndarray:
    """Small integers, some of them 0, that every type holds and adds exactly."""
    dtype = jnp.dtype(dtype)
    truth = dtype.name == "bool"
    signed = not jnp.issubdtype(dtype, np.unsignedinteger) and not truth
    line = (5 * np.arange(np.prod(shape, dtype=int)) + 3 * seed) % 7 - 2 * signed
    line = line % 2 if truth else line
    return line.astype(dtype).reshape(shape)


def bits(shape: tuple[int, ...], dtype: Any, seed: int) -> np.ndarray:
    """Any bits, but of the replaced types only those that all platforms keep."""
    array = any_bits(shape, dtype, seed)
    if array.dtype.name in REPLACED:
        words = array.view(f"u{array.dtype.itemsize}")
        with np.errstate(invalid="ignore"):
            words[abs(array) < jnp.finfo(array.dtype).tiny] = 0
            words[np.isnan(array)] = REPLACED[array.dtype.name]
    return array


def any_bits(shape: tuple[int, ...], dtype: Any, seed: int) -> np.ndarray:
    """Any bits: for floats first the special values, from another one by each seed."""
    dtype = jnp.dtype(dtype)
    generator = np.random.default_rng(seed)
    if dtype.name in ("bool", "int4", "uint4"):
        low, high = {"bool": (0, 2), "int4": (-8, 8), "uint4": (0, 16)}[dtype.name]
        return generator.integers(low, high, shape).astype(dtype)
    size = int(np.prod(shape, dtype=int))
    line = np.frombuffer(generator.bytes(size * dtype.itemsize), dtype).copy()
    if dtype.name in SPECIAL_BITS:
        width = dtype.itemsize // (1 + (dtype.kind == "c"))
        words = line.view(f"u{width}")
        special = itertools.islice(
            itertools.cycle(SPECIAL_BITS[dtype.name]), 2 * seed, 2 * seed + 9
        )
        words[:9] = list(special)[: words.size]
    return line.reshape(shape)


# SAMPLES


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """One use of an operator: its arrays and its attributes.

    Attributes:
      operator: its name.
      function: `(*arrays, implementation=None, **attributes)` in JAX.
      oracle: `(*arrays, **attributes)` in NumPy.
      name: of the sample, unique for the operator.
      operands: an array each; or the shape of one that is filled at will.
      attributes: what is static.
      linear: whether the function is linear in the operands that are filled at will;
        else it has no derivative.
      implementation: "pallas" for the kernel, which a CPU interprets.
    """

    operator: str
    function: Callable[..., Any]
    oracle: Callable[..., Any]
    name: str
    operands: tuple[np.ndarray | tuple[int, ...], ...]
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)
    linear: bool = True
    implementation: str | None = None

    def __str__(self) -> str:
        return f"{self.operator}-{self.name}".replace(" ", "_")

    @property
    def open_operands(self) -> tuple[int, ...]:
        """The positions of the operands that are filled at will."""
        shapes = (isinstance(operand, tuple) for operand in self.operands)
        return tuple(i for i, is_shape in enumerate(shapes) if is_shape)

    @property
    def differentiable(self) -> tuple[int, ...]:
        """The positions of the operands in which the function is linear."""
        return self.open_operands if self.linear else ()

    def arrays(
        self, dtype: Any = "float32", fill: Fill = numbers, seed: int = 0
    ) -> tuple[np.ndarray, ...]:
        """The operands, filled with values of type `dtype`."""
        return tuple(
            fill(operand, dtype, seed + i) if isinstance(operand, tuple) else operand
            for i, operand in enumerate(self.operands)
        )

    def by_kernel(self) -> "Sample":
        """The same use, by the operator's kernel."""
        name = f"{self.name} by kernel"
        return dataclasses.replace(self, name=name, implementation="pallas")

    def run(self, *arrays: Any) -> Any:
        """What the operator makes of the arrays."""
        options = self.attributes | {"implementation": self.implementation}
        return self.function(*arrays, **options)

    def expected(self, *arrays: np.ndarray) -> Any:
        """What the oracle makes of the arrays."""
        return self.oracle(*arrays, **self.attributes)


@dataclasses.dataclass(frozen=True, eq=False)
class Subject:
    """An operator under test.

    Attributes:
      primitive: the operator in normal form.
      jitted: the function that is compiled, whose cache grows by one per retrace.
      support: its support table.
      tensor: whose types in that table are those of the operands filled at will.
      samples: typical uses, for every type and every transformation.
      edges: the limits of shapes and attributes, for the results alone.
    """

    primitive: Any
    jitted: Any
    support: Any
    tensor: str
    samples: tuple[Sample, ...]
    edges: tuple[Sample, ...]

    @property
    def data_types(self) -> tuple[str, ...]:
        """Every type of the newest level's table, then those of JAX alone."""
        row = self.support[max(self.support)]
        named = (data_type.name.lower() for data_type in row[self.tensor].data_types)
        return (*named, *EXTRA)


def _subject(
    *,
    primitive: Any,
    samples: tuple[Sample, ...],
    edges: tuple[Sample, ...],
    transformed: Callable[[Sample], bool] = lambda sample: True,
    **others: Any,
) -> Subject:
    """One whose kernel, where there is one, does all that the other forms do.

    Of the samples, only the `transformed` ones are for the kernel, too.
    """

    def uses(own: tuple[Sample, ...], kernel: Sequence[Sample]) -> tuple[Sample, ...]:
        if "cuda" not in primitive.kernels:  # which a CPU interprets
            return own
        return own + tuple(sample.by_kernel() for sample in kernel)

    samples = uses(samples, list(filter(transformed, samples)))
    return Subject(primitive, samples=samples, edges=uses(edges, edges), **others)


def shape_of_rank(rank: int) -> tuple[int, ...]:
    """Sizes 2 and 1 in turn, from the last dimension to the first."""
    return tuple(2 - i % 2 for i in range(rank))[::-1]


def integers(dtype: Any, *values: int) -> np.ndarray:
    """A vector of integers of any width."""
    return np.array(values, dtype)


# DIAGONAL_MATRIX1

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


def diagonal_matrix1(value: Any, *x: Any, **options: Any) -> Any:
    """The function, with the value as an operand."""
    dtype = None if x else value.dtype
    return dmljax.diagonal_matrix1(*x, value=value, dtype=dtype, **options)


def diagonal_matrix1_oracle(value: Any, x: Any = None, **attributes: Any) -> Any:
    """The oracle, with the value as an operand."""
    dtype = value.dtype
    return oracles.diagonal_matrix1(x, value=value, dtype=dtype, **attributes)


_diagonal = functools.partial(
    Sample, "diagonal_matrix1", diagonal_matrix1, diagonal_matrix1_oracle
)


def _span(begin: int, end: int) -> dict[str, int]:
    return {"fill_begin": begin, "fill_end": end}


DIAGONAL_MATRIX1 = _subject(
    primitive=_diagonal_matrix1.OPERATOR,
    jitted=_diagonal_matrix1._diagonal_matrix1,
    support=_diagonal_matrix1.SUPPORT,
    tensor="OutputTensor",
    samples=(
        _diagonal("band", ((), (3, 4)), _span(-1, 2)),
        _diagonal("outside", ((), (2, 3, 2)), _span(1, -1)),
        _diagonal("no input", ((),), _span(0, 2) | {"shape": (2, 3)}),
    ),
    edges=(
        *(
            _diagonal(f"from {begin} to {end}", ((), (4, 3)), _span(begin, end))
            for begin, end in (
                *((0, 0), (1, 1), (-9, -9), (-3, -2), (2, 3), (3, 9), (-9, -4)),
                *((2, -1), (0, -1), (1, 0), (9, 3), (3, -4), (-3, -9)),
                *((INT32_MIN, 0), (INT32_MIN, 2), (0, INT32_MAX), (1, INT32_MAX)),
                *((INT32_MIN, INT32_MAX), (INT32_MAX, INT32_MIN)),
                *((INT32_MIN, INT32_MIN), (INT32_MAX, INT32_MAX)),
                *((INT32_MAX, 0), (0, INT32_MIN), (2, INT32_MIN), (INT32_MAX, -1)),
                *((INT32_MAX - 1, INT32_MAX), (INT32_MIN, INT32_MIN + 1)),
            )
        ),
        *(
            _diagonal(
                f"rank {rank}", ((), (*shape_of_rank(rank - 2), 3, 2)), _span(0, 1)
            )
            for rank in range(2, 9)
        ),
        *(
            _diagonal(f"sizes {shape}", ((), shape), _span(*span))
            for shape in ((1, 1), (1, 5), (5, 1), (1, 1, 1, 1))
            for span in ((0, 1), (1, 0))
        ),
        *(
            _diagonal(f"empty {shape}", ((), shape), _span(1, -1))
            for shape in ((0, 0), (0, 3), (3, 0), (0, 2, 3), (2, 0, 0))
        ),
        _diagonal("no input empty", ((),), _span(0, 2) | {"shape": (0, 3)}),
        _diagonal("no input batch", ((),), _span(1, 0) | {"shape": (2, 1, 3, 2)}),
        _diagonal("no input nothing", ((),), _span(1, 1) | {"shape": (2, 2)}),
    ),
)

# ONE_HOT

_hot = functools.partial(Sample, "one_hot", dmljax.one_hot, oracles.one_hot)


def _hot_limits(dtype: str, size: int, *indices: int) -> Sample:
    """Indices of a narrow or wide type at the limits of sequences and types."""
    limits = jnp.iinfo(dtype)
    signed = limits.min < 0
    around = (size, size - 1, size + 1, 0, *((-1, -size, -size - 1) * signed))
    inside = (i for i in around if limits.min <= i <= limits.max)
    values = (*inside, *indices, int(limits.min), int(limits.max))
    array = np.array([[value] for value in values], jnp.dtype(dtype))
    name = f"{dtype} of {size}"
    return _hot(name, (array, (2,)), {"size": size, "axis": -1})


ONE_HOT = _subject(
    primitive=_one_hot.OPERATOR,
    jitted=_one_hot._one_hot,
    support=_one_hot.SUPPORT,
    tensor="ValuesTensor",
    samples=(
        _hot(
            "rows",
            (np.array([[0], [2], [-1], [3]], np.int32), (2,)),
            {"size": 3, "axis": -1},
        ),
        _hot(
            "columns",
            (np.array([[[1, 0, 4]], [[2, 9, 3]]], np.uint32), (1, 2, 2)),
            {"size": 4, "axis": 1},
        ),
    ),
    edges=(
        *(
            _hot(
                f"axis {axis}",
                (np.arange(-3, 3, dtype=np.int32).reshape(shape), (2, 1)),
                {"size": 3, "axis": axis},
            )
            for shape, axis in (
                *(((1, 2, 3), 0), ((2, 1, 3), 1), ((2, 3, 1), 2)),
                *(((1, 2, 3), -3), ((2, 1, 3), -2), ((2, 3, 1), -1)),
            )
        ),
        *(
            _hot(
                f"rank {rank}",
                (np.ones((1, *shape_of_rank(rank - 1)), np.int32), (2,)),
                {"size": 2, "axis": 0},
            )
            for rank in range(1, 9)
        ),
        *(
            _hot(
                f"values {shape}",
                (integers(np.int32, 0, 1, 2)[:, None], shape),
                {"size": 3, "axis": 1},
            )
            for shape in ((3,), (2, 1), (1, 1, 1, 3), (2, 2))
        ),
        *(_hot_limits(dtype, 3) for dtype in ("int8", "uint8", "int16", "uint16")),
        *(_hot_limits(dtype, 1) for dtype in ("int32", "uint32")),
        *(_hot_limits(dtype, 300) for dtype in ("int8", "uint8")),
        *(_hot_limits(dtype, 40) for dtype in ("int4", "uint4")),
        _hot_limits("int32", 3),
        _hot_limits("uint32", 3, 2**31, 2**32 - 3),
        _hot_limits("int64", 3, 2**40, 2**32, 2**32 + 1, -(2**32), -(2**32) - 1),
        _hot_limits("uint64", 3, 2**63 + 1, 2**40, 2**32 + 2, 2**64 - 3, 2**63),
        _hot(
            "empty",
            (np.zeros((0, 1), np.int32), (2,)),
            {"size": 3, "axis": -1},
        ),
    ),
)

# ELEMENT_WISE_IF

_if = functools.partial(
    Sample, "element_wise_if", dmljax.element_wise_if, oracles.element_wise_if
)
CONDITION = np.array([[0, 1, 2], [128, 0, 255]], np.uint8)


def _condition(shape: tuple[int, ...]) -> np.ndarray:
    return numbers(shape, np.uint8, 1) % 3


ELEMENT_WISE_IF = _subject(
    primitive=_element_wise_if.OPERATOR,
    jitted=_element_wise_if._element_wise_if,
    support=_element_wise_if.SUPPORT,
    tensor="OutputTensor",
    samples=(
        _if("bytes", (CONDITION, (2, 3), (2, 3))),
        _if("truth", (CONDITION[0] != 0, (3,), (3,))),
    ),
    edges=(
        *(
            _if(
                f"rank {rank}",
                (_condition(shape_of_rank(rank)), *[shape_of_rank(rank)] * 2),
            )
            for rank in range(9)
        ),
        _if("all bytes", (np.arange(256, dtype=np.uint8), (256,), (256,))),
        _if("empty", (np.zeros((2, 0), np.uint8), (2, 0), (2, 0))),
        _if("true", (np.array(True), (), ())),
    ),
)

# NONZERO_COORDINATES


def nonzero_coordinates(x: Any, *, fill: int | None = 0, **options: Any) -> Any:
    """The function; undefined rows are set to 0, so that they can be compared."""
    count, coordinates = dmljax.nonzero_coordinates(x, fill=fill, **options)
    if fill is None:
        row = jnp.arange(coordinates.shape[0], dtype=np.uint32)[:, None]
        coordinates = jnp.where(row < count, coordinates, np.uint32(0))
    return count, coordinates


def nonzero_coordinates_oracle(x: Any, *, fill: int | None = 0, **options: Any) -> Any:
    """The oracle; where rows are undefined it gives zeros."""
    return oracles.nonzero_coordinates(x, fill=fill or 0, **options)


_nonzero = functools.partial(
    Sample,
    "nonzero_coordinates",
    nonzero_coordinates,
    nonzero_coordinates_oracle,
    linear=False,
)

NONZERO_COORDINATES = _subject(
    primitive=_nonzero_coordinates.OPERATOR,
    jitted=_nonzero_coordinates._nonzero_coordinates,
    support=_nonzero_coordinates.SUPPORT,
    tensor="InputTensor",
    samples=(
        _nonzero("columns", ((1, 1, 2, 4),), {"columns": 3, "fill": 7}),
        _nonzero("parts", ((4, 1, 3),), {"parts": 2, "fill": 7}),
    ),
    edges=(
        _nonzero("matrix", ((3, 4),)),
        *(_nonzero(f"rank {rank}", (shape_of_rank(rank),)) for rank in range(9)),
        *(
            _nonzero(f"columns {columns} of {shape}", (shape,), {"columns": columns})
            for shape, columns in (
                *(((1, 1, 2, 3), 2), ((1, 1, 2, 3), 4), ((1, 2, 1, 3), 3)),
                *(((1, 1), 1), ((1, 1), 2), ((2, 1), 2), ((), 1)),
            )
        ),
        *(
            _nonzero(f"fill {fill}", ((5, 3),), {"fill": fill})
            for fill in (0, 7, 2**32 - 1, None)
        ),
        *(_nonzero(f"size {size}", ((size,),)) for size in (1, 31, 32, 33, 65, 200)),
        *(_nonzero(f"empty {shape}", (shape,)) for shape in ((0,), (0, 3), (2, 0))),
        _nonzero("empty fill", ((0, 3),), {"fill": 7}),
        *(
            _nonzero(f"{parts} parts of {shape}", (shape,), {"parts": parts})
            for shape, parts in (((6,), 6), ((6, 5), 6), ((40, 2, 3), 4), ((0, 3), 2))
        ),
        _nonzero("columns of parts", ((1, 2, 3),), {"parts": 1, "columns": 2}),
        _nonzero("all zero", (np.zeros((3, 3), np.float32),), {"fill": 7}),
        _nonzero("none zero", (np.ones((3, 12), np.float32),), {"fill": 7}),
        _nonzero("last", (np.eye(1, 70, 69, dtype=np.int8),)),
        _nonzero(
            "signs",
            (np.array([-0.0, 0.0, 1e-45, -1e-45, np.nan, -np.inf], np.float32),),
        ),
        _nonzero(
            "imaginary", (np.array([0, 1j, -0.0j, 1e-45j, 1, -0.0], np.complex64),)
        ),
    ),
)

# PADDING


def padding(x: Any, *value: Any, start: Any, end: Any, **options: Any) -> Any:
    """The function, with the value as an operand."""
    options |= {"value": value[0]} if value else {}
    return dmljax.padding(x, start, end, **options)


def padding_oracle(x: Any, *value: Any, start: Any, end: Any, mode: Mode) -> Any:
    """The oracle, with the value as an operand."""
    options = {"value": value[0]} if value else {}
    return oracles.padding(x, start, end, mode=mode.name, **options)


def padding_sample(
    name: str,
    mode: Mode,
    shape: tuple[int, ...],
    start: tuple[int, ...],
    end: tuple[int, ...],
) -> Sample:
    """One padding; under CONSTANT the value is an operand too."""
    operands = (shape, ()) if mode is Mode.CONSTANT else (shape,)
    attributes = {"mode": mode, "start": start, "end": end}
    name = f"{mode.name.lower()} {name}"
    return Sample("padding", padding, padding_oracle, name, operands, attributes)


PADDING = _subject(
    primitive=_padding.OPERATOR,
    jitted=_padding._padding,
    support=_padding.SUPPORT,
    tensor="InputTensor",
    samples=tuple(
        padding_sample("matrix", mode, (3, 2), (5, 1), (4, 3)) for mode in Mode
    ),
    # To a transformation all are alike that have no value.
    transformed=lambda sample: (
        sample.attributes["mode"] in (Mode.CONSTANT, Mode.REFLECTION)
    ),
    edges=(
        *(
            padding_sample(name, mode, *sizes)
            for mode in Mode
            for name, *sizes in (
                ("start", (4,), (3,), (0,)),
                ("end", (4,), (0,), (3,)),
                ("nothing", (2, 3), (0, 0), (0, 0)),
                ("far", (3,), (40,), (35,)),
                ("one", (1,), (5,), (4,)),
                ("two", (2,), (7,), (6,)),
                ("middle axis", (2, 3, 2), (0, 9, 0), (0, 10, 0)),
                ("all axes", (1, 3, 2), (2, 7, 5), (3, 5, 1)),
                ("empty elsewhere", (0, 2), (0, 3), (0, 1)),
            )
        ),
        *(
            padding_sample(
                f"rank {rank}", mode, shape_of_rank(rank), (1,) * rank, (0,) * rank
            )
            for rank, mode in zip(range(9), itertools.cycle(Mode), strict=False)
        ),
        padding_sample("empty", Mode.CONSTANT, (0,), (2,), (1,)),
        padding_sample("empties", Mode.CONSTANT, (0, 0), (2, 0), (0, 3)),
        padding_sample("rank 8", Mode.CONSTANT, shape_of_rank(8), (1,) * 8, (0,) * 8),
    ),
)

SUBJECTS = {
    "diagonal_matrix1": DIAGONAL_MATRIX1,
    "one_hot": ONE_HOT,
    "element_wise_if": ELEMENT_WISE_IF,
    "nonzero_coordinates": NONZERO_COORDINATES,
    "padding": PADDING,
}
SAMPLES = tuple(sample for subject in SUBJECTS.values() for sample in subject.samples)
EDGES = tuple(sample for subject in SUBJECTS.values() for sample in subject.edges)
LINEAR = tuple(sample for sample in SAMPLES if sample.linear)
