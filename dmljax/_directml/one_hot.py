"""ONE_HOT as DirectML describes it."""

from typing import ClassVar

from jax import Array

from dmljax._check import ArgumentError, require_same, show
from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.support import (
    FLOATS,
    UP_TO_32_BITS,
    UP_TO_64_BITS,
    FeatureLevel,
    SupportTable,
)
from dmljax._directml.tensor import DataType, TensorDesc
from dmljax._one_hot import check_sizes, one_hot

INDICES = (DataType.INT64, DataType.INT32, DataType.UINT64, DataType.UINT32)


class OneHotDesc(OperatorDesc[Array]):
    """Describes ONE_HOT, as DML_ONE_HOT_OPERATOR_DESC does; see ``one_hot``.

    All three tensors have the same rank.

    Attributes:
      indices_tensor: the indices. It has the sizes of the output, but 1 along
        `axis`.
      values_tensor: at least two elements. The first two are off and on.
      output_tensor: a tensor of the type of `values_tensor`.
      axis: the dimension of the sequences, at least 0 and less than the rank.

    >>> import jax.numpy as jnp
    >>> from dmljax import DataType, TensorDesc, create_operator
    >>> desc = OneHotDesc(TensorDesc(DataType.INT32, (2, 1)),
    ...                   TensorDesc(DataType.FLOAT32, (1, 2)),
    ...                   TensorDesc(DataType.FLOAT32, (2, 3)), axis=1)
    >>> create_operator(desc)(jnp.array([[0], [-1]]), jnp.array([[0.0, 1.0]]))
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """

    operator = "ONE_HOT"
    support: ClassVar[SupportTable] = {
        level: {"IndicesTensor": (low, high, indices)}
        | dict.fromkeys(("ValuesTensor", "OutputTensor"), (low, high, values))
        for level, low, high, indices, values in (
            (FeatureLevel.V2_0, 4, 4, (DataType.UINT32,), FLOATS),
            (FeatureLevel.V2_1, 4, 4, (DataType.UINT32,), UP_TO_32_BITS),
            (FeatureLevel.V3_0, 1, 8, INDICES, UP_TO_32_BITS),
            (FeatureLevel.V4_1, 1, 8, INDICES, UP_TO_64_BITS),
        )
    }
    same_type = ("values_tensor", "output_tensor")

    indices_tensor: TensorDesc
    values_tensor: TensorDesc
    output_tensor: TensorDesc
    axis: int

    def output_shapes(self, level: FeatureLevel) -> tuple[tuple[int, ...]]:
        """Returns the sizes of the indices, with the output's size along the axis."""
        # ONNX Runtime gives ValuesTensor rank 4 beside tensors of any rank. The
        # page forbids that.
        indices, values, output = (tensor.sizes for tensor in self.tensors().values())
        rank = len(indices)
        ranks = {
            "IndicesTensor": rank,
            "ValuesTensor": len(values),
            "OutputTensor": len(output),
        }
        require_same("dimension counts", ranks)
        # The C field is unsigned. Only the function takes an axis from the end.
        if not 0 <= self.axis < rank:
            raise ArgumentError(
                f"Axis is {self.axis}; it must be in [0, {rank}), as "
                f"tensor 'IndicesTensor' has sizes {show(indices)}."
            )
        names = (
            "tensor 'IndicesTensor'",
            "tensor 'ValuesTensor'",
            "Axis",
            "the size of tensor 'OutputTensor' along Axis",
        )
        size = output[self.axis]
        return (check_sizes(names, indices, values, size, self.axis),)

    def evaluate(self, *arrays: Array) -> tuple[Array]:
        """Returns the output for the indices and the values."""
        size = self.output_tensor.sizes[self.axis]
        return (one_hot(*arrays, size=size, axis=self.axis),)
