"""DIAGONAL_MATRIX1 under test: samples, edges, errors, sharding, support."""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

import dmljax
from dmljax import DataType, _diagonal_matrix1
from dmljax._operators import OPERATORS
from tests import oracles
from tests.samples import (
    INT32_MAX,
    INT32_MIN,
    Described,
    Sample,
    Subject,
    Wrong,
    shape_of_rank,
    tensor,
)
from tests.sharded import Case, array
from tests.subjects import tables


def diagonal_matrix1(value: Any, *x: Any, **options: Any) -> Any:
    """The function, with the value as an operand."""
    dtype = None if x else value.dtype
    return dmljax.diagonal_matrix1(*x, value=value, dtype=dtype, **options)


def diagonal_matrix1_oracle(value: Any, x: Any = None, **attributes: Any) -> Any:
    """The oracle, with the value as an operand."""
    dtype = value.dtype
    return oracles.diagonal_matrix1(x, value=value, dtype=dtype, **attributes)


def _diagonal(
    name: str, shape: tuple[int, ...], begin: int, end: int, *, given: bool = True
) -> Sample:
    """A sample. Its input has this shape, or without an input its result."""
    operands = ((), shape) if given else ((),)
    attributes = {"fill_begin": begin, "fill_end": end}
    attributes |= {} if given else {"shape": shape}
    functions = diagonal_matrix1, diagonal_matrix1_oracle
    return Sample("diagonal_matrix1", *functions, name, operands, attributes)


def _make1(maker: Any) -> dmljax.DiagonalMatrix1Desc:
    sizes, data_type = maker.sizes(2, 4), maker.data_type(tables.ALL)
    given = maker.random.random() < 0.6
    return dmljax.DiagonalMatrix1Desc(
        maker.tensor(data_type, sizes) if given else None,
        maker.tensor(data_type, sizes, output=True),
        data_type,
        maker.number(data_type),
        *(maker.int32(), maker.int32()),
    )


def _make(maker: Any) -> dmljax.DiagonalMatrixDesc:
    data_type = maker.data_type(tables.ALL)
    output = maker.tensor(data_type, maker.sizes(2, 4), output=True)
    return dmljax.DiagonalMatrixDesc(output, maker.int32(), maker.float32())


def _expected1(desc: Any, x: Any = None) -> Any:
    made, begin = desc.output_tensor, desc.diagonal_fill_begin
    span = {"fill_begin": begin, "fill_end": desc.diagonal_fill_end}
    value = oracles.read_value(desc.value, made.dtype)
    like = {"shape": made.sizes, "dtype": made.dtype, "value": value}
    return (oracles.diagonal_matrix1(x, **like, **span),)


def _expected(desc: Any) -> Any:
    made, begin = desc.output_tensor, desc.offset
    value = oracles.cast_padding_value(desc.value, made.dtype)
    like = {"shape": made.sizes, "dtype": made.dtype, "value": value}
    span = {"fill_begin": begin, "fill_end": begin + 1}
    return (oracles.diagonal_matrix1(None, **like, **span),)


MATRIX = np.ones((2, 3), np.float32)
DESC = dmljax.DiagonalMatrix1Desc(
    *[tensor("FLOAT32", 2, 3)] * 2, DataType.FLOAT32, 1.0, 0, 1
)
OLD = dmljax.DiagonalMatrixDesc(tensor("FLOAT32", 2, 3), 1, 1.0)
INT8 = dmljax.DiagonalMatrix1Desc(None, tensor("INT8", 2, 3), DataType.INT8, 1, 0, 1)
X, OUTPUT = "x (InputTensor)", "the result (shape)"
BEGIN, END = "fill_begin (DiagonalFillBegin)", "fill_end (DiagonalFillEnd)"
LARGE = "a matrix has at most 2^31 rows and 2^31 columns"
INT32 = "it must be an INT32, -2147483648 to 2147483647"
CALLS = {
    f"{X} has sizes {{3}}, 1 dimension; a matrix has at least 2. x[None] and shape=": (
        {},
        MATRIX[0],
    ),
    f"{X} has sizes {{}}, 0 dimensions; a": ({}, MATRIX[0, 0]),
    f"{OUTPUT} has sizes {{4}}, 1 dimension; a": ({"shape": (4,)},),
    f"{OUTPUT} has sizes {{1,{2**31 + 1}}}; {LARGE}": (
        {"shape": (1, 2**31 + 1), "dtype": "int8"},
    ),
    f"sizes {{{2**31 + 1},1}}; {LARGE}": ({"shape": (2**31 + 1, 1), "dtype": "int8"},),
    "shape is {-1,2}; no size may be negative": ({"shape": (-1, 2)},),
    f"shape has {{3,2}}, while {X} has {{2,3}}; both must be the same. Leave shape": (
        {"shape": (3, 2)},
        MATRIX,
    ),
    f"shape has {{}}, while {X} has {{2,3}}": ({"shape": ()}, MATRIX),
    f"dtype has FLOAT16, while {X}...the same. Write x.ast": ({"dtype": "f2"}, MATRIX),
    "the result (dtype) has data type FLOAT64, which needs JAX's x64": (
        {"shape": (2, 2), "dtype": np.float64},
    ),
    **{
        f"{BEGIN} is {begin}; {INT32}": ({"fill_begin": begin, "fill_end": end}, MATRIX)
        for begin, end in ((2**31, 1), (2**32, None), (INT32_MIN - 1, None))
    },
    **{
        f"{END} is {end}; {INT32}": ({"fill_begin": begin, "fill_end": end}, MATRIX)
        for begin, end in ((0, INT32_MIN - 1), (None, 2**31), (np.int32(0), 2**32))
    },
}
BOUNDS = {
    f"{BEGIN} has data type INT8, while a...INT32;...astype('int32')": ({}, np.int8(1)),
    f"{BEGIN} has data type FLOAT32, while a diagonal": ({}, np.float32(1)),
    f"{BEGIN} has data type BOOL;": ({}, np.True_),
    f"{BEGIN} has sizes {{3}}; it must be a scalar. jax.vmap": ({}, np.zeros(3, "i4")),
}
ALONE = {
    f"{BEGIN} is given, and {END} is not. Write fill_end=None for no bound, or fill_end"
    "=fill_begin + 1 for one diagonal": {"fill_begin": 1},
    f"{END} is given, and {BEGIN} is not. Write fill_begin=None for no bound, or": {
        "fill_end": None
    },
}
DESCRIPTORS = {
    "has {2,3}, while...give it {3,2}": {"input_tensor": tensor("FLOAT32", 3, 2)},
    "'InputTensor' has FLOAT16": {"input_tensor": tensor("FLOAT16", 2, 3)},
    "ValueDataType is INT32, while tensor 'OutputTensor' has FLOAT32; both": {
        "value_data_type": DataType.INT32
    },
    f": DiagonalFillBegin is 2147483648; {INT32}": {"diagonal_fill_begin": 2**31},
    f": DiagonalFillEnd is -2147483649; {INT32}": {"diagonal_fill_end": INT32_MIN - 1},
}


def _bounded(begin: Any) -> Any:
    begin = jnp.asarray(begin)
    return dmljax.diagonal_matrix1(MATRIX, fill_begin=begin, fill_end=None)


ERRORS = (
    *Wrong.calls("DIAGONAL_MATRIX1", dmljax.diagonal_matrix1, CALLS),
    *Wrong.calls("DIAGONAL_MATRIX1", _bounded, BOUNDS),
    Wrong(
        *("DIAGONAL_MATRIX1", f"{X} or shape must be given"),
        *(dmljax.diagonal_matrix1, (), TypeError),
    ),
    *(
        wrong._replace(error=TypeError)
        for wrong in Wrong.calls(
            "DIAGONAL_MATRIX1",
            dmljax.diagonal_matrix1,
            {text: (alone, MATRIX) for text, alone in ALONE.items()},
        )
    ),
    *Wrong.descriptors(DESC, DESCRIPTORS),
    *Wrong.descriptors(
        INT8,
        {
            "Value is 0.5; INT8 holds whole numbers": {"value": 0.5},
            "Value is 128; INT8 holds -128 to 127": {"value": 128},
            f"'OutputTensor' has sizes {{{2**31 + 1},1}}; {LARGE}": {
                "output_tensor": tensor("INT8", 2**31 + 1, 1)
            },
        },
    ),
    *Wrong.descriptors(
        OLD,
        {
            LARGE: {"output_tensor": tensor("FLOAT16", 1, 2**31 + 1)},
            f"Offset is 2147483648; {INT32}": {"offset": 2**31},
        },
    ),
)
SUBJECT = Subject(
    operator=OPERATORS["diagonal_matrix1"],
    jitted=_diagonal_matrix1._diagonal_matrix1,
    tensor="OutputTensor",
    signature=(
        "(x=None, /, *, shape=None, dtype=None, value=1, fill_begin=<left out>, "
        "fill_end=<left out>)"
    ),
    arguments=(np.ones((2, 3), np.float32), (2, 3), "float32", 1, 0, 1),
    taken={
        **dict.fromkeys(("x", "shape", "dtype"), tables.NONE),
        **dict.fromkeys(("fill_begin", "fill_end"), tables.INTEGER | tables.NONE),
        "value": tables.REAL,
    },
    samples=(
        _diagonal("band", (3, 4), -1, 2),
        _diagonal("outside", (2, 3, 2), 1, -1),
        _diagonal("no input", (2, 3), 0, 2, given=False),
    ),
    edges=(
        *(
            _diagonal(f"from {begin} to {end}", (4, 3), begin, end)
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
            _diagonal(f"rank {rank}", (*shape_of_rank(rank - 2), 3, 2), 0, 1)
            for rank in range(2, 9)
        ),
        *(
            _diagonal(f"sizes {shape} from {span[0]}", shape, *span)
            for shape in ((1, 1), (1, 5), (5, 1), (1, 1, 1, 1))
            for span in ((0, 1), (1, 0))
        ),
        *(
            _diagonal(f"empty {shape}", shape, 1, -1)
            for shape in ((0, 0), (0, 3), (3, 0), (0, 2, 3), (2, 0, 0))
        ),
        *(
            _diagonal(f"no input {shape}", shape, *span, given=False)
            for shape, span in (
                *(((0, 3), (0, 2)), ((2, 1, 3, 2), (1, 0)), ((2, 2), (1, 1))),
            )
        ),
    ),
    errors=ERRORS,
    sharded={
        "diagonal_matrix1": Case(
            functools.partial(
                dmljax.diagonal_matrix1, value=2, fill_begin=-9, fill_end=4
            ),
            (array(),),
            ("`diagonal_matrix1`", "batch, rows, columns"),
        )
    },
    descriptors={
        "DIAGONAL_MATRIX1": Described(
            DESC,
            "InputTensor OutputTensor ValueDataType Value DiagonalFillBegin "
            "DiagonalFillEnd",
            {"5_1": tables.matrices((2, 4), tables.ALL)},
            lambda rank, data_type: (data_type, 1, 0, 1),
            *(_make1, _expected1),
            {
                **dict.fromkeys(
                    ("diagonal_fill_begin", "diagonal_fill_end"), tables.INTEGER
                ),
                "input_tensor": tables.NONE,
                "value": tables.REAL,
            },
        ),
        "DIAGONAL_MATRIX": Described(
            OLD,
            "OutputTensor Offset Value",
            {
                "2_0": {"OutputTensor": (4, 4, tables.FLOATS)},
                "2_1": {"OutputTensor": (4, 4, tables.SMALL)},
                "4_0": {"OutputTensor": (2, 4, tables.SMALL)},
                "5_1": {"OutputTensor": (2, 4, tables.ALL)},
            },
            lambda rank, data_type: (0, 1.0),
            *(_make, _expected),
            {"offset": tables.INTEGER, "value": tables.REAL},
        ),
    },
)
