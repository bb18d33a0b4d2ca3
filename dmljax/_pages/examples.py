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

# The elements of an array, in the order in which a page prints them.
Elements = list[Any]


class Verdict(enum.Enum):
    """How an operator's outputs compare with what its page prints."""

    AGREES = "agrees with the page"
    KNOWN_ERROR = "known error of the page"
    DISAGREES = "DISAGREES with the page"


@dataclasses.dataclass(frozen=True, eq=False)
class Example:
    """One example of a page."""

    name: str  # the name of its model file as well
    title: str
    desc: OperatorDesc
    inputs: tuple[Elements, ...]  # in the order of the struct
    printed: tuple[Elements, ...]  # the outputs, perhaps only their first rows
    # The right outputs, if the page prints something wrong.
    expected: tuple[Elements, ...] | None = None
    note: str = ""  # a remark about the page
    known_error: str = ""  # what is wrong in the page

    @property
    def page(self) -> str:
        """The struct that the page describes."""
        return f"DML_{self.desc.operator}_OPERATOR_DESC"

    @property
    def address(self) -> str:
        """Where Microsoft has the page."""
        newer = self.desc.operator == "DIAGONAL_MATRIX1"
        folder = "ai/directml/api" if newer else "win32/api/directml"
        windows = "https://learn.microsoft.com/en-us/windows"
        return f"{windows}/{folder}/ns-directml-{self.page.lower()}"

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


def _agree(outputs: list[np.ndarray], arrays: tuple[Elements, ...]) -> bool:
    pairs = zip(outputs, arrays, strict=True)
    return all(np.array_equal(out.ravel()[: len(array)], array) for out, array in pairs)


def _digits(text: str) -> Elements:
    """Returns the elements of an array, given as one digit each."""
    return [int(digit) for digit in text if digit != " "]


def _floats(*sizes: int) -> TensorDesc:
    return TensorDesc(DataType.FLOAT32, sizes)


def _unsigned(*sizes: int) -> TensorDesc:
    return TensorDesc(DataType.UINT32, sizes)


def _padding(mode: PaddingMode, *printed: str) -> Example:
    value = 9.0 if mode is PaddingMode.CONSTANT else 0.0
    before = _floats(1, 1, 4, 4)
    after = _floats(1, 1, 8, 10)
    return Example(
        f"padding_{mode.name.lower()}",
        f"example {mode + 1}, {mode.name}",
        PaddingDesc(before, after, mode, value, 4, (0, 0, 1, 2), (0, 0, 3, 4)),
        (_digits("1234 5678 1234 5678"),),
        (_digits("".join(printed)),),
        note="Its printed output misses a comma after the first row.",
    )


# DIAGONAL_MATRIX1
MATRIX = _digits("47379 12869 94187 43424")
SHAPE = _floats(4, 5)
# ONE_HOT
COLUMN = _unsigned(1, 1, 3, 1)
OUTPUT = _floats(1, 1, 3, 4)
OFF_AND_ON = _floats(1, 1, 1, 2)
# ELEMENT_WISE_IF
SQUARE = _floats(2, 2)

EXAMPLES = (
    # DIAGONAL_MATRIX1
    Example(
        "diagonal_matrix1_identity",
        "the standard identity matrix",
        DiagonalMatrix1Desc(None, SHAPE, DataType.FLOAT32, 7, 0, 1),
        (),
        (_digits("10000 01000 00100 00010"),),
        expected=(_digits("70000 07000 00700 00070"),),
        known_error="it prints ones for Value 7. Value is used as given.",
    ),
    Example(
        "diagonal_matrix1_strip",
        "a diagonal strip, three elements wide",
        DiagonalMatrix1Desc(None, SHAPE, DataType.FLOAT32, 7, 0, 3),
        (),
        (_digits("77700 07770 00777 00077"),),
    ),
    Example(
        "diagonal_matrix1_upper_triangle",
        "the strictly upper triangle is kept, zeros below it",
        DiagonalMatrix1Desc(SHAPE, SHAPE, DataType.FLOAT32, 0, INT32_MIN, 1),
        (MATRIX,),
        (_digits("07379 00869 00087 00004"),),
    ),
    Example(
        "diagonal_matrix1_diagonal_only",
        "only the diagonal is kept, by inverted bounds",
        DiagonalMatrix1Desc(SHAPE, SHAPE, DataType.FLOAT32, 0, 1, 0),
        (MATRIX,),
        (_digits("40000 02000 00100 00020"),),
    ),
    # ONE_HOT
    Example(
        "one_hot_rows",
        "example 1",
        OneHotDesc(COLUMN, OFF_AND_ON, OUTPUT, 3),
        ([0, 3, 2], [0, 1]),
        (_digits("1000 0001 0010"),),
    ),
    Example(
        "one_hot_columns",
        "example 2, along another axis",
        OneHotDesc(_unsigned(1, 1, 1, 4), OFF_AND_ON, OUTPUT, 2),
        ([0, 2, 1, 0], [0, 1]),
        (_digits("1001 0010 0100"),),
    ),
    Example(
        "one_hot_values",
        "example 3, with other off and on values",
        OneHotDesc(COLUMN, _floats(1, 1, 3, 1), OUTPUT, 3),
        ([0, 3, 2], [4, 2, 9]),
        (_digits("2444 4442 4424"),),
    ),
    Example(
        "one_hot_negative",
        "example 4, negative and out-of-bounds indices",
        OneHotDesc(TensorDesc(DataType.INT32, (1, 1, 3, 1)), OFF_AND_ON, OUTPUT, 3),
        ([-3, 100, 3], [0, 1]),
        (_digits("0100 0000 0001"),),
        note="Its text ignores an index that exceeds the number of elements; the "
        "number itself is ignored too.",
    ),
    # ELEMENT_WISE_IF
    Example(
        "element_wise_if",
        "the example",
        ElementWiseIfDesc(TensorDesc(DataType.UINT8, (2, 2)), SQUARE, SQUARE, SQUARE),
        (_digits("10 11"), _digits("12 34"), _digits("98 76")),
        (_digits("18 34"),),
    ),
    # NONZERO_COORDINATES
    Example(
        "nonzero_coordinates",
        "the example",
        NonzeroCoordinatesDesc(
            _floats(1, 1, 2, 4), _unsigned(1, 1, 1, 1), _unsigned(1, 1, 8, 3)
        ),
        ([1.0, 0.0, 0.0, 2.0, -0.0, 3.5, 0.0, -5.2],),
        ([4], _digits("000 003 011 013 000 000 000 000")),
        note="It leaves the rows past the count undefined; here they hold 0.",
    ),
    Example(
        "nonzero_coordinates_sentence",
        "the three coordinates in the text",
        NonzeroCoordinatesDesc(_floats(2, 6), _unsigned(1), _unsigned(12, 2)),
        (_digits("000001 101000"),),
        ([3], _digits("05 10 12")),
        known_error="its sentence is scrambled. Non-zeros at {0,5}, {1,0} and {1,2} "
        "give these three rows, and 'OutputCount elements' means rows.",
    ),
    # PADDING
    _padding(
        PaddingMode.CONSTANT,
        "9999999999 9912349999 9956789999 9912349999",
        "9956789999 9999999999 9999999999 9999999999",
    ),
    _padding(
        PaddingMode.EDGE,
        "1112344444 1112344444 5556788888 1112344444",
        "5556788888 5556788888 5556788888 5556788888",
    ),
    _padding(PaddingMode.REFLECTION, 4 * "7656787656 3212343212"),
    _padding(
        PaddingMode.SYMMETRIC,
        "2112344321 2112344321 6556788765 2112344321",
        "6556788765 6556788765 2112344321 6556788765",
    ),
)
