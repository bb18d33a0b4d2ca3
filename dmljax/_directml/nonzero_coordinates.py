"""NONZERO_COORDINATES as DirectML describes it."""

import math
from typing import ClassVar

from jax import Array

from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.support import UP_TO_32_BITS, FeatureLevel, SupportTable
from dmljax._directml.tensor import DataType, TensorDesc
from dmljax._nonzero_coordinates import check_sizes_and_columns, nonzero_coordinates
from dmljax._nonzero_coordinates_result import NonzeroCoordinates, nonzero_result


class NonzeroCoordinatesDesc(OperatorDesc[NonzeroCoordinates]):
    """Describes NONZERO_COORDINATES, as DML_NONZERO_COORDINATES_OPERATOR_DESC does.

    The operator returns a ``NonzeroCoordinates``. Its arrays have the sizes of the
    output tensors; a tensor with strides is a flat buffer. The rows past the
    count hold 0.

    Attributes:
      input_tensor: the tensor that is searched, of M elements.
      output_count_tensor: UINT32. Every size is 1.
      output_coordinates_tensor: UINT32, of sizes {1.., M, N}. A row has the last N
        coordinates. Only leading dimensions of size 1 may be left out. N is at least 1.

    >>> import jax.numpy as jnp
    >>> import dmljax
    >>> from dmljax import DataType, TensorDesc
    >>> desc = dmljax.NonzeroCoordinatesDesc(TensorDesc(DataType.FLOAT32, (1, 3)),
    ...                                      TensorDesc(DataType.UINT32, (1,)),
    ...                                      TensorDesc(DataType.UINT32, (3, 2)))
    >>> found = dmljax.create_operator(desc)(jnp.array([[0.0, 5.0, 7.0]]))
    >>> found.count.tolist(), found.coordinates.tolist()
    ([2], [[0, 1], [0, 2], [0, 0]])

    DirectML has no fields for `fill`, `parts` and `size` of ``nonzero_coordinates``.
    """

    operator = "NONZERO_COORDINATES"
    support: ClassVar[SupportTable] = {
        FeatureLevel.V3_0: {
            "InputTensor": (4, 5, UP_TO_32_BITS),
            "OutputCountTensor": (4, 5, (DataType.UINT32,)),
            "OutputCoordinatesTensor": (4, 5, (DataType.UINT32,)),
        },
        FeatureLevel.V4_0: {
            "InputTensor": (1, 8, UP_TO_32_BITS),
            "OutputCountTensor": (1, 8, (DataType.UINT32,)),
            "OutputCoordinatesTensor": (2, 8, (DataType.UINT32,)),
        },
    }
    outputs = ("output_count_tensor", "output_coordinates_tensor")
    same_type = ()

    input_tensor: TensorDesc
    output_count_tensor: TensorDesc
    output_coordinates_tensor: TensorDesc

    def output_shapes(self, level: FeatureLevel) -> tuple[tuple[int, ...], ...]:
        """Returns the sizes of both outputs, and checks the number of columns."""
        sizes = self.input_tensor.sizes
        *leading, _, columns = self.output_coordinates_tensor.sizes
        check_sizes_and_columns(
            "tensor 'InputTensor'",
            sizes,
            "the last size of tensor 'OutputCoordinatesTensor' is",
            columns,
        )
        count = (1,) * len(self.output_count_tensor.sizes)
        ones = (1,) * len(leading)
        return count, (*ones, math.prod(sizes), columns)

    def evaluate(self, *arrays: Array) -> NonzeroCoordinates:
        """Returns the count and the coordinates, in the sizes of their tensors."""
        # DirectML leaves the rows past the count undefined. They are 0 here.
        columns = self.output_coordinates_tensor.sizes[-1]
        result = nonzero_coordinates(*arrays, columns=columns)
        outputs = (
            result.count.reshape(self.output_count_tensor.sizes),
            result.coordinates.reshape(self.output_coordinates_tensor.sizes),
        )
        return nonzero_result(outputs, why="descriptor")
