"""DIAGONAL_MATRIX1 under test: samples, edges, errors, sharding, support."""

from functools import partial

import jax.numpy as jnp
import numpy as np

import dmljax
from dmljax import DataType, DescriptorError
from dmljax._directml.support import support_table
from tests import oracles
from tests.samples import (
    INT32_MIN,
    Described,
    Sample,
    Subject,
    Wrong,
    shape_of_rank,
    tensor,
)
from tests.sharded import Case
from tests.subjects import tables


def diagonal_fills(y, x, begin, end):
    """(end >= begin) xor (top_x >= begin) xor (top_x < end), top_x = x - y."""
    top_x = x - y
    return (end >= begin) ^ (top_x >= begin) ^ (top_x < end)


def oracle(value, x=None, *, shape=None, fill_begin, fill_end):
    """The value where the diagonal is filled, else x, or 0 if x is None."""
    x = np.zeros(shape, value.dtype) if x is None else x
    corner = np.indices(x.shape[-2:])
    fills = diagonal_fills(*corner, int(fill_begin), int(fill_end))
    return np.where(fills, oracles.typed(value, x.dtype), x)


def diagonal_matrix1(value, *x, **options):
    """The function, with the value as an operand."""
    dtype = None if x else value.dtype
    return dmljax.diagonal_matrix1(*x, value=value, dtype=dtype, **options)


_sample = partial(Sample, "diagonal_matrix1", diagonal_matrix1, oracle)


def _diagonal(name, shape, begin, end, *, given=True):
    """A sample with an input of this shape, or without an input an output of it."""
    attributes = {"fill_begin": begin, "fill_end": end}
    if given:
        return _sample(name, ((), shape), attributes)
    return _sample(name, ((),), attributes | {"shape": shape})


def _make1(maker):
    sizes = maker.sizes(2, 4)
    x, output = maker.tensors(tables.ALL, sizes, sizes)
    data_type = output.data_type
    return dmljax.DiagonalMatrix1Desc(
        x if maker.random.random() < 0.6 else None,
        output,
        data_type,
        maker.number(data_type),
        maker.int32(),
        maker.int32(),
    )


def _make(maker):
    (output,) = maker.tensors(tables.ALL, maker.sizes(2, 4))
    return dmljax.DiagonalMatrixDesc(output, maker.int32(), maker.float32())


def _filled(desc, typed, begin, end, x=None):
    made = desc.output_tensor
    value = oracles.typed(typed(desc.value, made.dtype), made.dtype)
    return (oracle(value, x, shape=made.sizes, fill_begin=begin, fill_end=end),)


def _expected1(desc, *x):
    span = desc.diagonal_fill_begin, desc.diagonal_fill_end
    return _filled(desc, oracles.read_value, *span, *x)


def _expected(desc):
    span = desc.offset, desc.offset + 1
    return _filled(desc, oracles.cast_padding_value, *span)


ITEM = tensor("FLOAT32", 2, 3)
DESC = dmljax.DiagonalMatrix1Desc(ITEM, ITEM, DataType.FLOAT32, 1.0, 0, 1)
OLD = dmljax.DiagonalMatrixDesc(ITEM, 1, 1.0)
INT8 = dmljax.DiagonalMatrix1Desc(None, tensor("INT8", 2, 3), DataType.INT8, 1, 0, 1)

# SAMPLES

# All other bounds are tested in tests/test_diagonal_matrix1.py.
EDGES = []
for rank in range(2, 9):
    shape = (*shape_of_rank(rank - 2), 3, 2)
    EDGES.append(_diagonal(f"rank {rank}", shape, 0, 1))
for shape in ((0, 0), (0, 3), (3, 0), (0, 2, 3), (2, 0, 0)):
    EDGES.append(_diagonal(f"empty {shape}", shape, 1, -1))
EDGES += [
    _diagonal("no input (0, 3)", (0, 3), 0, 2, given=False),
    _diagonal("no input (2, 1, 3, 2)", (2, 1, 3, 2), 1, 0, given=False),
    _diagonal("no input (2, 2)", (2, 2), 1, 1, given=False),
]

# ERRORS

MATRIX = np.ones((2, 3), np.float32)
X = "x (InputTensor)"
OUTPUT = "the result (shape)"
BEGIN = "fill_begin (DiagonalFillBegin)"
END = "fill_end (DiagonalFillEnd)"
LARGE = "a matrix has at most 2^31 rows and less than 2^31 columns"
INT32 = "it must be an INT32, -2147483648 to 2147483647"
LONG = 2**31 + 1
_call = partial(Wrong.of_call, "DIAGONAL_MATRIX1", dmljax.diagonal_matrix1)
ERRORS = [
    _call(
        f"{X} has sizes {{3}}; a matrix has at least 2 dimensions. x[None] and shape=",
        MATRIX[0],
    ),
    _call(f"{OUTPUT} has sizes {{4}}; a matrix", shape=(4,)),
    _call(f"{OUTPUT} has sizes {{1,2147483648}}; {LARGE}", shape=(1, 2**31)),
    _call(f"sizes {{{LONG},1}}; {LARGE}", shape=(LONG, 1), dtype="int8"),
    _call("shape is {-1,2}; no size may be negative", shape=(-1, 2)),
    _call(
        f"shape has {{3,2}}, while {X} has {{2,3}}; both must be the same. Leave shape",
        MATRIX,
        shape=(3, 2),
    ),
    _call(f"shape has {{}}, while {X} has {{2,3}}", MATRIX, shape=()),
    _call(
        f"dtype has FLOAT16, while {X}...the same. Leave dtype out", MATRIX, dtype="f2"
    ),
    _call(
        "the result (dtype) has data type FLOAT64, which needs JAX's x64",
        shape=(2, 2),
        dtype=np.float64,
    ),
    _call(f"{X} or shape must be given", error=TypeError),
    _call(
        f"{BEGIN} is given, and {END} is not. Write fill_end=None for no bound, or "
        "fill_end=fill_begin + 1 for one diagonal",
        MATRIX,
        fill_begin=1,
        error=TypeError,
    ),
    _call(
        f"{END} is given, and {BEGIN} is not. Write fill_begin=None for no bound, or",
        MATRIX,
        fill_end=None,
        error=TypeError,
    ),
]
for wrong, right in ((2**31, None), (2**32, np.int32(0)), (INT32_MIN - 1, 0)):
    text = f"is {wrong}; {INT32}"
    begins = {"fill_begin": wrong, "fill_end": right}
    ends = {"fill_begin": right, "fill_end": wrong}
    ERRORS.append(_call(f"{BEGIN} {text}", MATRIX, **begins))
    ERRORS.append(_call(f"{END} {text}", MATRIX, **ends))


def _bounded(begin):
    bound = jnp.asarray(begin)
    return dmljax.diagonal_matrix1(MATRIX, fill_begin=bound, fill_end=None)


_bound = partial(Wrong.of_call, "DIAGONAL_MATRIX1", _bounded)
for begin, text, error in (
    (np.float32(1), "data type FLOAT32; it must have an integer type.", TypeError),
    (np.True_, "data type BOOL;", TypeError),
    (
        np.zeros(3, np.int32),
        "sizes {3}; it must be a scalar. jax.vmap",
        DescriptorError,
    ),
):
    ERRORS.append(_bound(f"{BEGIN} has {text}", begin, error=error))

_desc = partial(Wrong.of_descriptor, DESC)
ERRORS += [
    _desc("has {2,3}, while...give it {3,2}", input_tensor=tensor("FLOAT32", 3, 2)),
    _desc(
        "ValueDataType is INT32, while tensor 'OutputTensor' has FLOAT32; both",
        value_data_type=DataType.INT32,
    ),
    _desc(f"(DiagonalFillBegin) is 2147483648; {INT32}", diagonal_fill_begin=2**31),
    Wrong.of_descriptor(INT8, "Value is 0.5; INT8 holds whole numbers", value=0.5),
    Wrong.of_descriptor(OLD, LARGE, output_tensor=tensor("FLOAT16", 1, LONG)),
    Wrong.of_descriptor(OLD, f"Offset is 2147483648; {INT32}", offset=2**31),
]


def _symbolic(x, value):
    fill = partial(dmljax.diagonal_matrix1, value=value)
    return (
        fill(x, fill_begin=-1, fill_end=2),
        fill(shape=x.shape, fill_begin=1, fill_end=x.shape[0] // 2),
    )


SUBJECT = Subject(
    signature=(
        "(x=None, /, *, shape=None, dtype=None, value=1, fill_begin=<main diagonal>, "
        "fill_end=<main diagonal>)"
    ),
    arguments=(MATRIX, (2, 3), "float32", np.float32(7), 0, 1),
    samples=(
        _diagonal("band", (4, 6), -1, 2),
        _diagonal("outside", (2, 4, 2), 1, -1),
        _diagonal("no input", (2, 4), 0, 2, given=False),
    ),
    edges=EDGES,
    errors=ERRORS,
    sharded={
        "diagonal_matrix1": Case(
            partial(dmljax.diagonal_matrix1, value=2, fill_begin=-9, fill_end=4),
            ("`diagonal_matrix1`", "batch, rows, columns"),
        )
    },
    symbolic=_symbolic,
    descriptors={
        "DIAGONAL_MATRIX1": Described(
            example=DESC,
            table=support_table("InputTensor OutputTensor", V5_1=(2, 4, tables.ALL)),
            make=_make1,
            oracle=_expected1,
        ),
        "DIAGONAL_MATRIX": Described(
            example=OLD,
            table=support_table(
                "OutputTensor",
                V2_0=(4, 4, tables.FLOATS),
                V2_1=(4, 4, tables.SMALL),
                V4_0=(2, 4, tables.SMALL),
                V5_1=(2, 4, tables.ALL),
            ),
            make=_make,
            oracle=_expected,
        ),
    },
)
