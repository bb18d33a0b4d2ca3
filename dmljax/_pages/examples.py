"""The examples of DirectML's five pages, as data.

The command line shows them, the tests run them, and the model files of the
documentation are made from them. Where a page prints something wrong, the example
says what is wrong, and what the operator must return instead.
"""

import dataclasses
import enum
from typing import Any

import jax
import numpy as np

from dmljax._coordinates import PaddingMode
from dmljax._descriptor import OperatorDesc
from dmljax._diagonal_matrix1 import DiagonalMatrix1Desc
from dmljax._element_wise_if import ElementWiseIfDesc
from dmljax._nonzero_coordinates import NonzeroCoordinatesDesc
from dmljax._one_hot import OneHotDesc
from dmljax._operator import create_operator
from dmljax._padding import PaddingDesc
from dmljax._tensor import DataType, TensorDesc
from dmljax._types import INT32_MIN

Nested = list[Any]  # lists of numbers, nested as a page prints an array


class Verdict(enum.Enum):
    """How an operator's outputs compare with what its page prints."""

    AGREES = "agrees with the page"
    KNOWN_ERROR = "known error of the page"
    DISAGREES = "DISAGREES with the page"


@dataclasses.dataclass(frozen=True, eq=False)
class Example:
    """One example of a page.

    Attributes:
      name: a name in snake_case, which the model file of the example has as well.
      title: what the example shows.
      desc: the descriptor of the operator.
      inputs: the arrays that the page gives, in the order of the struct.
      printed: the arrays that the page prints for the outputs. If it prints only the
        first rows of an array, only those are compared.
      expected: what the outputs must be if the page prints something wrong.
      note: a remark about the page.
      known_error: what is wrong in the page.
    """

    name: str
    title: str
    desc: OperatorDesc
    inputs: tuple[Nested, ...]
    printed: tuple[Nested, ...]
    expected: tuple[Nested, ...] | None = None
    note: str = ""
    known_error: str = ""

    @property
    def page(self) -> str:
        """The struct that the page describes."""
        return f"DML_{self.desc.operator}_OPERATOR_DESC"

    def arrays(self) -> list[np.ndarray]:
        """Returns the inputs in their types and sizes."""
        tensors = self.desc.input_tensors().values()
        return [
            np.array(values, tensor.dtype).reshape(tensor.sizes)
            for values, tensor in zip(self.inputs, tensors, strict=True)
        ]

    def outputs(self) -> list[np.ndarray]:
        """Runs the operator on the inputs."""
        operator = jax.jit(create_operator(self.desc))
        return [np.asarray(leaf) for leaf in jax.tree.leaves(operator(*self.arrays()))]

    def verdict(self, outputs: list[np.ndarray]) -> Verdict:
        """Compares the outputs with those of the page."""
        if _agree(outputs, self.printed):
            return Verdict.AGREES
        if self.expected is not None and _agree(outputs, self.expected):
            return Verdict.KNOWN_ERROR
        return Verdict.DISAGREES


def _agree(outputs: list[np.ndarray], arrays: tuple[Nested, ...]) -> bool:
    pairs = zip(outputs, arrays, strict=True)
    return all(np.array_equal(output[: len(array)], array) for output, array in pairs)


# DIAGONAL_MATRIX1

MATRIX = [[4, 7, 3, 7, 9], [1, 2, 8, 6, 9], [9, 4, 1, 8, 7], [4, 3, 4, 2, 4]]


def _diagonal_matrix1(
    name: str,
    title: str,
    value: int,
    fill: tuple[int, int],
    printed: Nested,
    *,
    x: Nested | None = None,
    expected: Nested | None = None,
    known_error: str = "",
) -> Example:
    tensor = TensorDesc(DataType.FLOAT32, (4, 5))
    desc = DiagonalMatrix1Desc(
        None if x is None else tensor, tensor, DataType.FLOAT32, value, *fill
    )
    return Example(
        f"diagonal_matrix1_{name}",
        title,
        desc,
        () if x is None else (x,),
        (printed,),
        None if expected is None else (expected,),
        known_error=known_error,
    )


DIAGONAL_MATRIX1 = (
    _diagonal_matrix1(
        "identity",
        "the standard identity matrix",
        7,
        (0, 1),
        [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0]],
        expected=[[7, 0, 0, 0, 0], [0, 7, 0, 0, 0], [0, 0, 7, 0, 0], [0, 0, 0, 7, 0]],
        known_error="it prints ones for Value 7. Value is used as given.",
    ),
    _diagonal_matrix1(
        "strip",
        "a diagonal strip, three elements wide",
        7,
        (0, 3),
        [[7, 7, 7, 0, 0], [0, 7, 7, 7, 0], [0, 0, 7, 7, 7], [0, 0, 0, 7, 7]],
    ),
    _diagonal_matrix1(
        "upper_triangle",
        "the strictly upper triangle is kept, zeros below it",
        0,
        (INT32_MIN, 1),
        [[0, 7, 3, 7, 9], [0, 0, 8, 6, 9], [0, 0, 0, 8, 7], [0, 0, 0, 0, 4]],
        x=MATRIX,
    ),
    _diagonal_matrix1(
        "diagonal_only",
        "only the diagonal is kept, by inverted bounds",
        0,
        (1, 0),
        [[4, 0, 0, 0, 0], [0, 2, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 2, 0]],
        x=MATRIX,
    ),
)

# ONE_HOT


def _one_hot(
    name: str,
    title: str,
    indices: tuple[DataType, Nested],
    values: Nested,
    axis: int,
    printed: Nested,
    note: str = "",
) -> Example:
    index_type, index = indices
    desc = OneHotDesc(
        TensorDesc(index_type, np.shape(index)),
        TensorDesc(DataType.FLOAT32, np.shape(values)),
        TensorDesc(DataType.FLOAT32, np.shape(printed)),
        axis,
    )
    inputs, outputs = (index, values), (printed,)
    return Example(f"one_hot_{name}", title, desc, inputs, outputs, note=note)


ONE_HOT = (
    _one_hot(
        "rows",
        "example 1",
        (DataType.UINT32, [[[[0], [3], [2]]]]),
        [[[[0, 1]]]],
        3,
        [[[[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]]],
    ),
    _one_hot(
        "columns",
        "example 2, along another axis",
        (DataType.UINT32, [[[[0, 2, 1, 0]]]]),
        [[[[0, 1]]]],
        2,
        [[[[1, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0]]]],
    ),
    _one_hot(
        "values",
        "example 3, with other off and on values",
        (DataType.UINT32, [[[[0], [3], [2]]]]),
        [[[[4], [2], [9]]]],
        3,
        [[[[2, 4, 4, 4], [4, 4, 4, 2], [4, 4, 2, 4]]]],
    ),
    _one_hot(
        "negative",
        "example 4, negative and out-of-bounds indices",
        (DataType.INT32, [[[[-3], [100], [3]]]]),
        [[[[0, 1]]]],
        3,
        [[[[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]]],
        note="Its text ignores an index that exceeds the number of elements; the "
        "number itself is ignored too.",
    ),
)

# ELEMENT_WISE_IF

ELEMENT_WISE_IF = (
    Example(
        "element_wise_if",
        "the example",
        ElementWiseIfDesc(
            TensorDesc(DataType.UINT8, (2, 2)),
            *[TensorDesc(DataType.FLOAT32, (2, 2))] * 3,
        ),
        ([[1, 0], [1, 1]], [[1, 2], [3, 4]], [[9, 8], [7, 6]]),
        ([[1, 8], [3, 4]],),
    ),
)

# NONZERO_COORDINATES

NONZERO_COORDINATES = (
    Example(
        "nonzero_coordinates",
        "the example",
        NonzeroCoordinatesDesc(
            TensorDesc(DataType.FLOAT32, (1, 1, 2, 4)),
            TensorDesc(DataType.UINT32, (1, 1, 1, 1)),
            TensorDesc(DataType.UINT32, (1, 1, 8, 3)),
        ),
        ([[1.0, 0.0, 0.0, 2.0], [-0.0, 3.5, 0.0, -5.2]],),
        (
            [[[[4]]]],
            [[[[0, 0, 0], [0, 0, 3], [0, 1, 1], [0, 1, 3], *[[0, 0, 0]] * 4]]],
        ),
        note="It leaves the rows past the count undefined; here they hold 0.",
    ),
    Example(
        "nonzero_coordinates_sentence",
        "the three coordinates in the text",
        NonzeroCoordinatesDesc(
            TensorDesc(DataType.FLOAT32, (2, 6)),
            TensorDesc(DataType.UINT32, (1,)),
            TensorDesc(DataType.UINT32, (12, 2)),
        ),
        ([[0, 0, 0, 0, 0, 1], [1, 0, 1, 0, 0, 0]],),
        ([3], [[0, 5], [1, 0], [1, 2]]),
        known_error="its sentence is scrambled. Non-zeros at {0,5}, {1,0} and {1,2} "
        "give these three rows, and 'OutputCount elements' means rows.",
    ),
)

# PADDING

PADDED = [[[[1, 2, 3, 4], [5, 6, 7, 8], [1, 2, 3, 4], [5, 6, 7, 8]]]]


def _padding(mode: PaddingMode, value: float, printed: Nested) -> Example:
    desc = PaddingDesc(
        TensorDesc(DataType.FLOAT32, (1, 1, 4, 4)),
        TensorDesc(DataType.FLOAT32, (1, 1, 8, 10)),
        mode,
        value,
        4,
        (0, 0, 1, 2),
        (0, 0, 3, 4),
    )
    return Example(
        f"padding_{mode.name.lower()}",
        f"example {mode + 1}, {mode.name}",
        desc,
        (PADDED,),
        ([[printed]],),
        note="Its printed output misses a comma after the first row.",
    )


PADDING = (
    _padding(
        PaddingMode.CONSTANT,
        9.0,
        [
            [9, 9, 9, 9, 9, 9, 9, 9, 9, 9],
            [9, 9, 1, 2, 3, 4, 9, 9, 9, 9],
            [9, 9, 5, 6, 7, 8, 9, 9, 9, 9],
            [9, 9, 1, 2, 3, 4, 9, 9, 9, 9],
            [9, 9, 5, 6, 7, 8, 9, 9, 9, 9],
            [9, 9, 9, 9, 9, 9, 9, 9, 9, 9],
            [9, 9, 9, 9, 9, 9, 9, 9, 9, 9],
            [9, 9, 9, 9, 9, 9, 9, 9, 9, 9],
        ],
    ),
    _padding(
        PaddingMode.EDGE,
        0.0,
        [
            [1, 1, 1, 2, 3, 4, 4, 4, 4, 4],
            [1, 1, 1, 2, 3, 4, 4, 4, 4, 4],
            [5, 5, 5, 6, 7, 8, 8, 8, 8, 8],
            [1, 1, 1, 2, 3, 4, 4, 4, 4, 4],
            [5, 5, 5, 6, 7, 8, 8, 8, 8, 8],
            [5, 5, 5, 6, 7, 8, 8, 8, 8, 8],
            [5, 5, 5, 6, 7, 8, 8, 8, 8, 8],
            [5, 5, 5, 6, 7, 8, 8, 8, 8, 8],
        ],
    ),
    _padding(
        PaddingMode.REFLECTION,
        0.0,
        [
            [7, 6, 5, 6, 7, 8, 7, 6, 5, 6],
            [3, 2, 1, 2, 3, 4, 3, 2, 1, 2],
            [7, 6, 5, 6, 7, 8, 7, 6, 5, 6],
            [3, 2, 1, 2, 3, 4, 3, 2, 1, 2],
            [7, 6, 5, 6, 7, 8, 7, 6, 5, 6],
            [3, 2, 1, 2, 3, 4, 3, 2, 1, 2],
            [7, 6, 5, 6, 7, 8, 7, 6, 5, 6],
            [3, 2, 1, 2, 3, 4, 3, 2, 1, 2],
        ],
    ),
    _padding(
        PaddingMode.SYMMETRIC,
        0.0,
        [
            [2, 1, 1, 2, 3, 4, 4, 3, 2, 1],
            [2, 1, 1, 2, 3, 4, 4, 3, 2, 1],
            [6, 5, 5, 6, 7, 8, 8, 7, 6, 5],
            [2, 1, 1, 2, 3, 4, 4, 3, 2, 1],
            [6, 5, 5, 6, 7, 8, 8, 7, 6, 5],
            [6, 5, 5, 6, 7, 8, 8, 7, 6, 5],
            [2, 1, 1, 2, 3, 4, 4, 3, 2, 1],
            [6, 5, 5, 6, 7, 8, 8, 7, 6, 5],
        ],
    ),
)

EXAMPLES = (
    *DIAGONAL_MATRIX1,
    *ONE_HOT,
    *ELEMENT_WISE_IF,
    *NONZERO_COORDINATES,
    *PADDING,
)
