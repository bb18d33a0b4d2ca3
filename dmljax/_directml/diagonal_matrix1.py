"""DIAGONAL_MATRIX and DIAGONAL_MATRIX1 as DirectML describes them."""

from typing import ClassVar

from jax import Array

from dmljax._diagonal_matrix1 import check_diagonals, check_int32, diagonal_matrix1
from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.support import (
    FLOATS,
    UP_TO_32_BITS,
    UP_TO_64_BITS,
    FeatureLevel,
    SupportTable,
)
from dmljax._directml.tensor import DataType, TensorDesc
from dmljax._types import INT32_MAX


class DiagonalMatrix1Desc(OperatorDesc[Array]):
    """Describes ``diagonal_matrix1``, as DML_DIAGONAL_MATRIX1_OPERATOR_DESC does.

    Attributes:
      input_tensor: the tensor whose elements are kept where nothing is filled, of the
        type and the sizes of the output. None stands for zeros.
      output_tensor: 2 to 4 dimensions. Those before the last two are a batch.
      value_data_type: the type of the output.
      value: the number that fills the diagonals.
      diagonal_fill_begin: INT32, the first diagonal that is filled.
      diagonal_fill_end: INT32, one past the last diagonal that is filled.

    >>> from dmljax import TensorDesc, create_operator
    >>> matrix = TensorDesc(DataType.INT32, (2, 3))
    >>> desc = DiagonalMatrix1Desc(None, matrix, DataType.INT32, 7, 1, 3)
    >>> create_operator(desc)()
    Array([[0, 7, 7],
           [0, 0, 7]], dtype=int32)
    """

    operator = "DIAGONAL_MATRIX1"
    support: ClassVar[SupportTable] = {
        FeatureLevel.V5_1: dict.fromkeys(
            ("InputTensor", "OutputTensor"), (2, 4, UP_TO_64_BITS)
        )
    }

    input_tensor: TensorDesc | None
    output_tensor: TensorDesc
    value_data_type: DataType
    value: int | float
    diagonal_fill_begin: int
    diagonal_fill_end: int

    def output_shapes(self, level: FeatureLevel) -> tuple[tuple[int, ...]]:
        """Returns the sizes of the input, or of the output if there is no input."""
        check_int32("DiagonalFillBegin", self.diagonal_fill_begin)
        check_int32("DiagonalFillEnd", self.diagonal_fill_end)
        self.check_value_type(self.value_data_type, "ValueDataType")
        self.scalar("Value", self.value)
        check_diagonals("tensor 'OutputTensor'", self.output_tensor.sizes)
        return ((self.input_tensor or self.output_tensor).sizes,)

    def evaluate(self, *arrays: Array) -> tuple[Array]:
        """Returns the output for the input, or for zeros."""
        output = diagonal_matrix1(
            *arrays,
            shape=self.output_tensor.sizes,
            dtype=self.output_tensor.dtype,
            value=self.scalar("Value", self.value),
            fill_begin=self.diagonal_fill_begin,
            fill_end=self.diagonal_fill_end,
        )
        return (output,)


class DiagonalMatrixDesc(OperatorDesc[Array]):
    """Describes DIAGONAL_MATRIX, as DML_DIAGONAL_MATRIX_OPERATOR_DESC does.

    The operator is ``diagonal_matrix1`` with a single diagonal and without an input.

    Attributes:
      output_tensor: 2 to 4 dimensions. Those before the last two are a batch.
      offset: INT32, the diagonal that is filled.
      value: a FLOAT. For an integer tensor it is converted as the value of PADDING is:
        truncated toward zero, and limited to the range of the type.

    >>> from dmljax import TensorDesc, create_operator
    >>> desc = DiagonalMatrixDesc(TensorDesc(DataType.INT32, (2, 3)), 1, 7.0)
    >>> create_operator(desc)()
    Array([[0, 7, 0],
           [0, 0, 7]], dtype=int32)
    """

    operator = "DIAGONAL_MATRIX"
    support: ClassVar[SupportTable] = {
        FeatureLevel.V2_0: {"OutputTensor": (4, 4, FLOATS)},
        FeatureLevel.V2_1: {"OutputTensor": (4, 4, UP_TO_32_BITS)},
        FeatureLevel.V4_0: {"OutputTensor": (2, 4, UP_TO_32_BITS)},
        FeatureLevel.V5_1: {"OutputTensor": (2, 4, UP_TO_64_BITS)},
    }

    output_tensor: TensorDesc
    offset: int
    value: float

    def output_shapes(self, level: FeatureLevel) -> tuple[tuple[int, ...]]:
        """Returns the sizes of the output itself, because there is no input."""
        check_int32("Offset", self.offset)
        sizes = self.output_tensor.sizes
        check_diagonals("tensor 'OutputTensor'", sizes)
        return (sizes,)

    def evaluate(self, *arrays: Array) -> tuple[Array]:
        """Returns the output. It depends on the attributes alone."""
        output = self.output_tensor
        diagonal = diagonal_matrix1(
            shape=output.sizes,
            dtype=output.dtype,
            value=self.scalar("Value", self.value, is_float=True),
            fill_begin=self.offset,
            # An INT32: the span of an offset of INT32_MAX is empty. No matrix has this
            # diagonal.
            fill_end=min(self.offset + 1, INT32_MAX),
        )
        return (diagonal,)
