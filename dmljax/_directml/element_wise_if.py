"""ELEMENT_WISE_IF as DirectML describes it."""

from typing import ClassVar

from jax import Array

from dmljax._check import require_same
from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.support import (
    UP_TO_32_BITS,
    UP_TO_64_BITS,
    FeatureLevel,
    SupportTable,
)
from dmljax._directml.tensor import DataType, TensorDesc
from dmljax._element_wise_if import element_wise_if


class ElementWiseIfDesc(OperatorDesc[Array]):
    """Describes ``element_wise_if``, as DML_ELEMENT_WISE_IF_OPERATOR_DESC does.

    All four tensors have the same sizes. Strides of 0 broadcast an input.

    Attributes:
      condition_tensor: UINT8. Every value except 0 selects from `a_tensor`.
      a_tensor: the values of the output where the condition is not 0.
      b_tensor: the values of the output where the condition is 0; a tensor of the type
        of `a_tensor`.
      output_tensor: a tensor of the type of `a_tensor`.

    >>> import jax.numpy as jnp
    >>> from dmljax import TensorDesc, create_operator
    >>> condition = TensorDesc(DataType.UINT8, (3,))
    >>> vector = TensorDesc(DataType.FLOAT32, (3,))
    >>> select = create_operator(ElementWiseIfDesc(condition, vector, vector, vector))
    >>> select(jnp.array([1, 0, 2], jnp.uint8), jnp.ones(3), jnp.zeros(3))
    Array([1., 0., 1.], dtype=float32)
    """

    operator = "ELEMENT_WISE_IF"
    support: ClassVar[SupportTable] = {
        level: {"ConditionTensor": (low, high, (DataType.UINT8,))}
        | dict.fromkeys(("ATensor", "BTensor", "OutputTensor"), (low, high, types))
        for level, low, high, types in (
            # The page names FLOAT16 alone for this level, and so does the table here.
            (FeatureLevel.V2_0, 4, 4, (DataType.FLOAT16,)),
            (FeatureLevel.V3_0, 1, 8, UP_TO_32_BITS),
            (FeatureLevel.V5_0, 1, 8, UP_TO_64_BITS),
        )
    }
    same_type = ("a_tensor", "b_tensor", "output_tensor")

    condition_tensor: TensorDesc
    a_tensor: TensorDesc
    b_tensor: TensorDesc
    output_tensor: TensorDesc

    def output_shapes(self, level: FeatureLevel) -> tuple[tuple[int, ...]]:
        """Returns the sizes of the condition. `a` and `b` must have them, too."""
        sizes = {
            "ConditionTensor": self.condition_tensor.sizes,
            "ATensor": self.a_tensor.sizes,
            "BTensor": self.b_tensor.sizes,
        }
        require_same("sizes", sizes)
        return (self.condition_tensor.sizes,)

    def evaluate(self, *arrays: Array) -> tuple[Array]:
        """Returns the output for the condition, `a` and `b`."""
        return (element_wise_if(*arrays),)
