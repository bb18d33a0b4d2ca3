"""PADDING: inflates a tensor with constant, edge, mirrored or repeated values.

The primitive is in `_padding_primitive`, its forms are in `_padding_forms`, and the
formula is `_coordinates.source_index`.
"""

from typing import Literal

import jax
import numpy as np
from jax.typing import ArrayLike

from dmljax._arguments import (
    LEFT_OUT,
    Scalar,
    as_array,
    as_integer,
    as_scalar,
    as_sizes,
    cast_float_value,
    convert_scalar,
    strong,
)
from dmljax._check import as_member, counted, decide_at_most, require, show
from dmljax._coordinates import PaddingMode
from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.struct import field, integers, member
from dmljax._directml.support import (
    FLOATS,
    UP_TO_32_BITS,
    UP_TO_64_BITS,
    FeatureLevel,
    Support,
)
from dmljax._directml.tensor import DataType, TensorDesc
from dmljax._padding_forms import Pads
from dmljax._padding_primitive import PADDING
from dmljax._primitive import Implementation, check_implementation, compiled
from dmljax._types import Sizes, integer

NAME = "PADDING"
BOTH = ("InputTensor", "OutputTensor")
SUPPORT = {
    FeatureLevel.V1_0: dict.fromkeys(BOTH, Support(4, 5, FLOATS)),
    FeatureLevel.V2_1: dict.fromkeys(BOTH, Support(4, 5, UP_TO_32_BITS)),
    FeatureLevel.V3_1: dict.fromkeys(BOTH, Support(1, 8, UP_TO_32_BITS)),
    FeatureLevel.V5_0: dict.fromkeys(BOTH, Support(1, 8, UP_TO_64_BITS)),
}
PADDING1_SUPPORT = {FeatureLevel.V5_0: SUPPORT[FeatureLevel.V5_0]}
# The arguments of the function, as its messages name them.
X = "x (InputTensor)"
MODE = "mode (PaddingMode)"
VALUE = "value (PaddingValue)"
START = "start_padding (StartPadding)"
END = "end_padding (EndPadding)"
# Ends the message to a caller who passes what np.pad takes.
PAIRS = (
    " 0 adds nothing. One list of pairs (before, after), as np.pad takes it, becomes "
    "both paddings by start, end = zip(*pairs)."
)
# The names of the modes. Other cases work as well, but are not typed.
ModeName = (
    Literal["constant", "edge", "reflection", "reflect", "symmetric", "wrap"]
    | Literal["CONSTANT", "EDGE", "REFLECTION", "REFLECT", "SYMMETRIC", "WRAP"]
)
# The modes that came after the operator, and their first levels.
MODE_LEVELS = {
    PaddingMode.SYMMETRIC: FeatureLevel.V3_0,
    PaddingMode.WRAP: FeatureLevel.V6_4,
}


def padding(
    x: ArrayLike,
    /,
    start_padding: Sizes,
    end_padding: Sizes,
    *,
    mode: PaddingMode | ModeName | int = PaddingMode.CONSTANT,
    value: ArrayLike = 0,
    implementation: Implementation = None,
) -> jax.Array:
    """Adds padding around `x`, with values that `mode` chooses.

    ``output[c] = x[source(c - start_padding)]``, where ``source`` turns any coordinate
    into one that is inside of `x`. ``PaddingMode`` says how. With CONSTANT, the
    elements outside of `x` are `value`. The padding may be larger than `x`. The modes
    that mirror or repeat `x` then do so several times.

    Args:
      x: (...) of any type and rank.
      start_padding: for each axis, the number of elements to add before it, at least 0.
      end_padding: for each axis, the number of elements to add after it, at least 0.
      mode: a ``PaddingMode``, its number, or its name in any case; "reflect" is a name
        of REFLECTION, too.
      value: a scalar of the type of `x`, used only by CONSTANT. A Python
        number is converted to this type. For an integer type, a float is truncated
        toward zero. One that is out of range becomes the nearest value of the type, and
        NaN becomes 0.
      implementation: "pallas" for the Pallas kernel; None or "xla" for XLA's code.

    Returns:
      An array of the type of `x`. Its size along each axis is that of `x` plus both
      paddings. It is differentiable in `x` and, with CONSTANT, in `value`. The gradient
      has the same bits in every run.

    Raises:
      DescriptorError: if a padding is negative, if there is not one padding for each
        axis, if the mode is unknown, if `value` has another type than `x`, if an axis
        of size 0 would have to be repeated, or if `implementation` is "pallas" and no
        kernel can run.
      TypeError: if `x` is not an array, or a padding is not an integer.

    Under ``jax.jit``, name `start_padding`, `end_padding` and `mode` in static_argnames
    and pass tuples, as they have a hash, or close over them.

    >>> import jax.numpy as jnp
    >>> padding(jnp.array([1, 2, 3]), (2,), (4,), mode="reflect")
    Array([3, 2, 1, 2, 3, 2, 1, 2, 3], dtype=int32)
    >>> padding(jnp.array([[1, 2]]), (1, 0), (0, 1), value=9)
    Array([[9, 9, 9],
           [1, 2, 9]], dtype=int32)

    See DML_PADDING_OPERATOR_DESC in directml.h.
    """
    check_implementation(NAME, implementation)
    x = as_array(NAME, X, x)
    start = as_sizes(NAME, START, start_padding, PAIRS)
    if end_padding is LEFT_OUT:
        raise TypeError(
            f"{NAME}: {END} is missing; it must have one integer for each axis.{PAIRS}"
        )
    end = as_sizes(NAME, END, end_padding, PAIRS)
    # A compiled program is cached by the mode. Its numbers and names share one program.
    if type(mode) is not PaddingMode:
        if isinstance(mode, (jax.Array, np.ndarray)):
            mode = as_integer(NAME, MODE, mode)
        named = PaddingMode._missing_(mode)
        mode = as_member(NAME, MODE, mode if named is None else named, PaddingMode)
    scalar = Scalar(None, None)
    if mode is PaddingMode.CONSTANT:
        scalar = as_scalar(NAME, VALUE, value, x, cast=True)
    elif type(value) not in (int, float):
        as_array(NAME, VALUE, value)  # it is not used, but must be a number
    return _padding(x, *scalar, start, end, mode, implementation)


# np.pad takes one list of pairs. A caller who passes it and nothing else gets a message
# of ours that says what to write. For type checkers the argument is required.
padding.__defaults__ = (LEFT_OUT,)


@compiled
def _padding(
    x: jax.Array,
    value: jax.Array | None,
    /,
    constant: int | None,
    start: Pads,
    end: Pads,
    mode: PaddingMode,
    implementation: Implementation,
) -> jax.Array:
    _check_padding((NAME, X, START, END), x.shape, start, end, mode)
    operands = [strong(x)]
    if mode is PaddingMode.CONSTANT:
        scalar = Scalar(value, constant)
        filling = convert_scalar(NAME, VALUE, scalar, x.dtype, cast=True)
        operands.append(filling.reshape((1,) * x.ndim))
    (output,) = PADDING(
        *operands, start=start, end=end, mode=mode, implementation=implementation
    )
    return output


def _check_padding(
    names: tuple[str, ...], sizes: Pads, start: Pads, end: Pads, mode: PaddingMode
) -> tuple[int, ...]:
    """Checks the padding against the input, and returns the sizes of the output."""
    operator, x, *both = names
    rank = len(sizes)
    for name, pads in zip(both, (start, end), strict=True):
        require(
            operator,
            len(pads) == rank,
            f"{name} has {counted(len(pads), 'element')}, while {x} has "
            f"{counted(rank, 'dimension')}; write {counted(rank, 'integer')}, one for "
            "each axis, and 0 where nothing is added.",
        )
        # XLA itself would accept a negative padding, and crop.
        require(
            operator,
            all(decide_at_most(operator, 0, pad) for pad in pads),
            f"{name} is {show(pads)}; no element may be negative. Slices remove "
            "elements.",
        )
        # The C struct has UINT32; JAX can't compare a symbolic size with so much.
        require(
            operator,
            all(pad < 2**32 for pad in pads if isinstance(pad, int)),
            f"{name} is {show(pads)}; each element must be a UINT32, less than 2^32.",
        )
    padded = tuple(map(sum, zip(start, sizes, end, strict=True)))
    # The arrays of a descriptor have no axis of size 0, but other arrays may.
    for axis, size in enumerate(sizes):
        repeats = mode is not PaddingMode.CONSTANT and padded[axis] != size
        require(
            operator,
            not repeats or decide_at_most(operator, 1, size),
            f"{x} has sizes {show(sizes)}; {mode.name} has nothing to repeat along "
            f"axis {axis}, whose size is 0. Only CONSTANT can pad it.",
        )
    return padded


class PaddingDesc(OperatorDesc[jax.Array]):
    """Describes PADDING, as DML_PADDING_OPERATOR_DESC does; see ``padding``.

    Attributes:
      input_tensor: the tensor that the padding is added to.
      output_tensor: a tensor of the input's type. Its size along each axis is that of
        the input plus both paddings.
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

    operator = NAME
    support = SUPPORT

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    padding_mode: PaddingMode = field(converter=member(PaddingMode))
    padding_value: float
    dimension_count: int = field(converter=integer)
    start_padding: tuple[int, ...] = field(converter=integers)
    end_padding: tuple[int, ...] = field(converter=integers)

    def output_shapes(self, level: FeatureLevel) -> tuple[tuple[int, ...]]:
        """Returns the sizes of the input with the padding added."""
        return (_check_fields(self, level),)

    def evaluate(self, *arrays: jax.Array) -> tuple[jax.Array]:
        """Returns the output for the input."""
        # The field is a FLOAT: a value of another type goes through float32, as in C.
        value = cast_float_value(self.padding_value, self.output_tensor.dtype)
        pads = self.start_padding, self.end_padding
        return (_padding(*arrays, value, None, *pads, self.padding_mode, None),)


class Padding1Desc(OperatorDesc[jax.Array]):
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
    support = PADDING1_SUPPORT

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    padding_mode: PaddingMode = field(converter=member(PaddingMode))
    padding_value_data_type: DataType = field(converter=member(DataType))
    padding_value: int | float
    dimension_count: int = field(converter=integer)
    start_padding: tuple[int, ...] = field(converter=integers)
    end_padding: tuple[int, ...] = field(converter=integers)

    def output_shapes(self, level: FeatureLevel) -> tuple[tuple[int, ...]]:
        """Returns the sizes of the input with the padding added."""
        # The value has to fit under every mode, although CONSTANT alone uses it.
        self.check_value_type(self.padding_value_data_type, "PaddingValueDataType")
        self.scalar("PaddingValue", self.padding_value)
        return (_check_fields(self, level),)

    def evaluate(self, *arrays: jax.Array) -> tuple[jax.Array]:
        """Returns the output for the input."""
        value = self.scalar("PaddingValue", self.padding_value)
        pads = self.start_padding, self.end_padding
        return (_padding(*arrays, *value, *pads, self.padding_mode, None),)


def _check_fields(
    desc: PaddingDesc | Padding1Desc, level: FeatureLevel
) -> tuple[int, ...]:
    """Checks what both descriptors have, and returns the sizes of the output."""
    sizes = desc.input_tensor.sizes
    mode = desc.padding_mode
    first = MODE_LEVELS.get(mode, FeatureLevel.V1_0)
    require(
        desc.operator,
        level >= first,
        f"PaddingMode {mode.name} exists from feature level {first.label} on, while "
        f"the feature level asked for is {level.label}.",
    )
    rank = len(sizes)
    require(
        desc.operator,
        desc.dimension_count == rank,
        f"DimensionCount is {desc.dimension_count}, while tensor 'InputTensor' has "
        f"{rank} dimensions; both must be the same.",
    )
    names = desc.operator, "tensor 'InputTensor'", "StartPadding", "EndPadding"
    return _check_padding(names, sizes, desc.start_padding, desc.end_padding, mode)
