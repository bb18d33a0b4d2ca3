"""PADDING and PADDING1 as DirectML describes them."""

from typing import ClassVar

from jax import Array

from dmljax._check import ArgumentError
from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.support import (
    FLOATS,
    UP_TO_32_BITS,
    UP_TO_64_BITS,
    FeatureLevel,
    SupportTable,
)
from dmljax._directml.tensor import DataType, TensorDesc
from dmljax._padding import check_padding, padding
from dmljax._padding_forms import PaddingMode


class PaddingDesc(OperatorDesc[Array]):
    """Describes PADDING, as DML_PADDING_OPERATOR_DESC does; see ``padding``.

    Attributes:
      input_tensor: the tensor that the padding is added to.
      output_tensor: a tensor of the input's type. Its size along each axis is
        the input's size plus both paddings.
      padding_mode: where the values of the padding come from.
      padding_value: a FLOAT, used only by CONSTANT. For an integer tensor it is
        truncated toward zero, a value out of range becomes the nearest one in range,
        and NaN becomes 0.
      dimension_count: the rank of both tensors and the length of both lists.
      start_padding: for each axis, the number of elements to add before it.
      end_padding: for each axis, the number of elements to add after it.

    >>> import jax.numpy as jnp
    >>> from dmljax import create_operator
    >>> vector, longer = (TensorDesc(DataType.INT32, (n,)) for n in (3, 6))
    >>> desc = PaddingDesc(vector, longer, PaddingMode.EDGE, 0.0, 1, (1,), (2,))
    >>> create_operator(desc)(jnp.array([1, 2, 3])).tolist()
    [1, 1, 2, 3, 3, 3]
    """

    operator = "PADDING"
    support: ClassVar[SupportTable] = {
        level: dict.fromkeys(("InputTensor", "OutputTensor"), entry)
        for level, entry in (
            (FeatureLevel.V1_0, (4, 5, FLOATS)),
            (FeatureLevel.V2_1, (4, 5, UP_TO_32_BITS)),
            (FeatureLevel.V3_1, (1, 8, UP_TO_32_BITS)),
            (FeatureLevel.V5_0, (1, 8, UP_TO_64_BITS)),
        )
    }

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    padding_mode: PaddingMode
    padding_value: float
    dimension_count: int
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]

    def output_shapes(self, level: FeatureLevel) -> tuple[tuple[int, ...]]:
        """Returns the sizes of the input with the padding added."""
        return (_check_fields(self, level),)

    def evaluate(self, *arrays: Array) -> tuple[Array]:
        """Returns the output for the input."""
        # The field is a FLOAT: a value of another type goes through float32, as in C.
        value = self.scalar("PaddingValue", self.padding_value, is_float=True)
        (x,) = arrays
        start, end = self.start_padding, self.end_padding
        return (padding(x, start, end, mode=self.padding_mode, value=value),)


class Padding1Desc(OperatorDesc[Array]):
    """Describes PADDING1, as DML_PADDING1_OPERATOR_DESC does.

    PADDING1 is PADDING with a value of the tensors' type. Its value keeps all its bits,
    while the value of PADDING is rounded to float32.

    Attributes:
      input_tensor: the tensor that the padding is added to.
      output_tensor: a tensor of the input's type.
      padding_mode: where the values of the padding come from.
      padding_value_data_type: the type of both tensors.
      padding_value: a number that this type holds, used only by CONSTANT.
      dimension_count: the rank of both tensors.
      start_padding: the padding before each axis.
      end_padding: the padding after each axis.

    >>> import jax.numpy as jnp
    >>> from dmljax import create_operator
    >>> vector, longer = (TensorDesc(DataType.INT32, (n,)) for n in (1, 2))
    >>> desc = Padding1Desc(vector, longer, PaddingMode.CONSTANT, DataType.INT32,
    ...                     2**24 + 1, 1, (1,), (0,))
    >>> create_operator(desc)(jnp.array([5])).tolist()
    [16777217, 5]
    """

    operator = "PADDING1"
    support: ClassVar[SupportTable] = {
        FeatureLevel.V5_0: PaddingDesc.support[FeatureLevel.V5_0]
    }

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    padding_mode: PaddingMode
    padding_value_data_type: DataType
    padding_value: int | float
    dimension_count: int
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]

    def output_shapes(self, level: FeatureLevel) -> tuple[tuple[int, ...]]:
        """Returns the sizes of the input with the padding added."""
        # The value has to fit under every mode, although only CONSTANT uses a value.
        self.check_value_type(self.padding_value_data_type, "PaddingValueDataType")
        self.scalar("PaddingValue", self.padding_value)
        return (_check_fields(self, level),)

    def evaluate(self, *arrays: Array) -> tuple[Array]:
        """Returns the output for the input."""
        value = self.scalar("PaddingValue", self.padding_value)
        (x,) = arrays
        start, end = self.start_padding, self.end_padding
        return (padding(x, start, end, mode=self.padding_mode, value=value),)


def _check_fields(
    desc: PaddingDesc | Padding1Desc, level: FeatureLevel
) -> tuple[int, ...]:
    """Checks the fields of both descriptors, and returns the sizes of the output."""
    sizes = desc.input_tensor.sizes
    mode = desc.padding_mode
    # These modes came after the operator.
    later = {
        PaddingMode.SYMMETRIC: FeatureLevel.V3_0,
        PaddingMode.WRAP: FeatureLevel.V6_4,
    }
    first = later.get(mode, FeatureLevel.V1_0)
    if level < first:
        raise ArgumentError(
            f"PaddingMode {mode.name} exists from feature level "
            f"{first.label} on, while the feature level asked for is {level.label}."
        )
    rank = len(sizes)
    if desc.dimension_count != rank:
        raise ArgumentError(
            f"DimensionCount is {desc.dimension_count}, while tensor "
            f"'InputTensor' has {rank} dimensions; both must be the same."
        )
    names = "tensor 'InputTensor'", "StartPadding", "EndPadding"
    return check_padding(names, sizes, desc.start_padding, desc.end_padding, mode)
