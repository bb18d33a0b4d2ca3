"""DIAGONAL_MATRIX1 under test: samples, edges, drawn examples, support, errors."""

import functools
from typing import Any

import numpy as np
from hypothesis import strategies as st

import dmljax
from dmljax import _diagonal_matrix1
from dmljax._operators import OPERATORS
from tests import oracles
from tests.samples import (
    INT32_MAX,
    INT32_MIN,
    Fuzzed,
    Sample,
    Subject,
    Wrong,
    shape_of_rank,
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


_diagonal = functools.partial(
    Sample, "diagonal_matrix1", diagonal_matrix1, diagonal_matrix1_oracle
)


def _span(begin: int, end: int) -> dict[str, int]:
    return {"fill_begin": begin, "fill_end": end}


def like(operands: Any, attributes: Any) -> Sample:
    """A sample of the operator."""
    return _diagonal("", operands, attributes)


@st.composite
def _examples(draw: Any) -> Sample:
    shape = draw(st.sampled_from([(3, 4), (4, 2), (2, 3, 3), (1, 5)]))
    near = st.integers(-6, 6)
    bound = near | st.sampled_from([INT32_MIN, INT32_MIN + 1, INT32_MAX - 1, INT32_MAX])
    attributes = {"fill_begin": draw(bound), "fill_end": draw(bound)}
    if draw(st.booleans()):
        return like(((),), attributes | {"shape": shape})
    return like(((), shape), attributes)


def _make1(maker: Any) -> dmljax.DiagonalMatrix1Desc:
    sizes, data_type = maker.sizes(2, 4), maker.data_type(tables.ALL)
    given = maker.random.random() < 0.6
    return dmljax.DiagonalMatrix1Desc(
        maker.tensor(data_type, sizes) if given else None,
        maker.tensor(data_type, sizes, output=True),
        data_type,
        maker.number(data_type),
        maker.int32(),
        maker.int32(),
    )


def _make(maker: Any) -> dmljax.DiagonalMatrixDesc:
    data_type = maker.data_type(tables.ALL)
    output = maker.tensor(data_type, maker.sizes(2, 4), output=True)
    return dmljax.DiagonalMatrixDesc(output, maker.int32(), maker.float32())


def _described(desc: Any, *x: Any) -> dict[str, Any]:
    """The attributes of the function, and of the oracle, for a descriptor."""
    tensor = desc.output_tensor
    made = {} if x else {"shape": tensor.sizes, "dtype": tensor.dtype}
    if isinstance(desc, dmljax.DiagonalMatrix1Desc):
        span = _span(desc.diagonal_fill_begin, desc.diagonal_fill_end)
        return made | span | {"value": desc.value}
    value = oracles.cast_padding_value(desc.value, tensor.dtype)
    return made | _span(desc.offset, desc.offset + 1) | {"value": value}


def _expected(desc: Any, *x: Any) -> Any:
    return (oracles.diagonal_matrix1(*(x or (None,)), **_described(desc, *x)),)


def _called(desc: Any, form: Any, *x: Any) -> Any:
    attributes = _described(desc, *x)
    attributes["fill_end"] = min(attributes["fill_end"], INT32_MAX)
    return dmljax.diagonal_matrix1(*x, **attributes)


SUBJECT = Subject(
    operator=OPERATORS["diagonal_matrix1"],
    jitted=_diagonal_matrix1._diagonal_matrix1,
    tensor="OutputTensor",
    signature=(
        "(x=None, /, *, shape=None, dtype=None, value=1, fill_begin=0, fill_end=1)"
    ),
    structs={
        "DIAGONAL_MATRIX": "OutputTensor Offset Value",
        "DIAGONAL_MATRIX1": (
            "InputTensor OutputTensor ValueDataType Value DiagonalFillBegin "
            "DiagonalFillEnd"
        ),
    },
    sharded={
        "diagonal_matrix1": Case(
            functools.partial(
                dmljax.diagonal_matrix1, value=2, fill_begin=-9, fill_end=4
            ),
            (array(),),
            ("`diagonal_matrix1`", "batch, rows, columns"),
        )
    },
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
            _diagonal(f"sizes {shape} from {span[0]}", ((), shape), _span(*span))
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
    plans=(
        *("from -9 to -4", "from 2 to -1", "from 0 to 0"),
        *(f"from {INT32_MIN} to 2", f"from {INT32_MAX} to {INT32_MIN}"),
        *("rank 2", "rank 3", "rank 8", "sizes (1, 5) from 0", "sizes (5, 1) from 1"),
        *("empty (0, 2, 3)", "no input empty", "no input batch", "no input nothing"),
    ),
    tables={
        "DIAGONAL_MATRIX1": {"5_1": tables.matrices((2, 4), tables.ALL)},
        "DIAGONAL_MATRIX": {
            "2_0": {"OutputTensor": (4, 4, tables.FLOATS)},
            "2_1": {"OutputTensor": (4, 4, tables.SMALL)},
            "4_0": {"OutputTensor": (2, 4, tables.SMALL)},
            "5_1": {"OutputTensor": (2, 4, tables.ALL)},
        },
    },
    attributes={
        "DIAGONAL_MATRIX1": lambda rank, data_type: (data_type, 1, 0, 1),
        "DIAGONAL_MATRIX": lambda rank, data_type: (0, 1.0),
    },
    examples=_examples(),
    fuzzed={
        "DIAGONAL_MATRIX1": Fuzzed(_make1, _expected, _called),
        "DIAGONAL_MATRIX": Fuzzed(_make, _expected, _called),
    },
    errors=(
        Wrong(
            lambda: dmljax.diagonal_matrix1(np.ones(3, np.float32)),
            ("OutputTensor", "{3}", "at least 2"),
        ),
    ),
)
