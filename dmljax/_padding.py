"""PADDING: inflates a tensor with constant, edge, mirrored or repeated values.

The modes, their formula and the forms are in `_padding_forms`. Padding and its adjoint
are two primitives, each the transpose of the other: padding pads a tangent, and the
adjoint gives the gradient in the input. The gradient in the value is the sum of the
output's gradient over the padding.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.interpreters import ad
from jax.typing import ArrayLike

from dmljax import _padding_forms as forms
from dmljax._arguments import as_array, as_integer, as_scalar, as_sizes
from dmljax._call import compiled
from dmljax._check import (
    ArgumentError,
    as_python,
    decide_le,
    is_number_of,
    public,
    show,
    surely_le,
)
from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.support import (
    FLOATS,
    UP_TO_32_BITS,
    UP_TO_64_BITS,
    FeatureLevel,
    support_table,
)
from dmljax._directml.tensor import DataType, TensorDesc
from dmljax._padding_forms import PaddingMode, Pads
from dmljax._primitive import OperatorPrimitive
from dmljax._sharding import Division
from dmljax._types import Sizes

# The arguments of the function, as its messages name them.
X = "x (InputTensor)"
VALUE = "value (PaddingValue)"
START = "start_padding (StartPadding)"
END = "end_padding (EndPadding)"
MODE = "mode (PaddingMode)"
# Type checkers accept these names. A call also accepts mixed case, such as "Edge".
ModeName = (
    Literal["constant", "edge", "reflection", "reflect", "symmetric", "wrap"]
    | Literal["CONSTANT", "EDGE", "REFLECTION", "REFLECT", "SYMMETRIC", "WRAP"]
)


@public
def padding(
    x: ArrayLike,
    /,
    start_padding: Sizes,
    end_padding: Sizes,
    *,
    mode: PaddingMode | ModeName | int = PaddingMode.CONSTANT,
    value: ArrayLike = 0,
) -> Array:
    """Adds padding around `x`; `mode` says where its values come from.

    ``output[c] = x[source(c - start_padding)]``, where ``source`` turns any coordinate
    into one inside of `x`, as ``PaddingMode`` says. With CONSTANT, the elements outside
    of `x` are `value`. The padding may be larger than `x`: every mode but CONSTANT then
    repeats elements several times.

    Args:
      x: (...) of any type and rank.
      start_padding: for each axis, the number of elements to add before it, at least 0.
      end_padding: for each axis, the number of elements to add after it, at least 0.
      mode: a ``PaddingMode``, its number, or its name in lower or upper case; "reflect"
        is a name of REFLECTION, too.
      value: a scalar of the type of `x`, used only by CONSTANT. A Python number is
        converted to this type. A Python integer must fit; where it is traced, as an
        argument of a jitted function, it saturates. For an integer type, a float is
        rounded to JAX's default type of floats, is truncated toward zero, and
        saturates; NaN becomes 0.

    Returns:
      An array of the type of `x`, differentiable in `x` and, with CONSTANT, in `value`.
      Its size along each axis is the size of `x` plus both paddings. The gradient in
      `x` has the same bits in every run.

    Raises:
      DescriptorError: if a padding does not have one integer for each axis of `x`, or
        has one below 0 or above 2^32 - 1; if the mode is unknown; if the `value` of
        CONSTANT has another type than `x`, or does not fit this type; if an axis of
        size 0 would have to be repeated; or if the result would have 2^59 elements
        or more.
      TypeError: if `x` is not an array, a padding is not a sequence of integers, or
        `value` is not a number.

    Under ``jax.jit``, name `start_padding`, `end_padding` and `mode` in static_argnames
    and pass tuples, which have a hash, or close over all three.

    >>> import jax.numpy as jnp
    >>> padding(jnp.array([1, 2, 3]), (2,), (4,), mode="reflect")
    Array([3, 2, 1, 2, 3, 2, 1, 2, 3], dtype=int32)
    >>> padding(jnp.array([[1, 2]]), (1, 0), (0, 1), value=9)
    Array([[9, 9, 9],
           [1, 2, 9]], dtype=int32)

    See DML_PADDING_OPERATOR_DESC in directml.h.
    """
    x = as_array(X, x)
    remedy = (
        " If you have np.pad's list of pairs (before, after), write "
        "start, end = zip(*pairs)."
    )
    start = as_sizes(START, start_padding, remedy)
    end = as_sizes(END, end_padding, remedy)
    mode = _as_mode(mode)
    if mode is PaddingMode.CONSTANT:
        scalar = as_scalar(VALUE, value, x.dtype, cast=True)
    else:
        scalar = None
        # An unused value must be a number, too. It need not fit the type of `x`.
        if type(value) not in (int, float):
            as_array(VALUE, value)
    return _padding(x, scalar, start, end, mode)


def _as_mode(mode: Any) -> PaddingMode:
    """Returns the `PaddingMode` of a name or a number."""
    if isinstance(mode, (Array, np.ndarray)):
        mode = as_integer(MODE, mode)
    if isinstance(mode, (PaddingMode, str)) or is_number_of(mode, PaddingMode):
        with contextlib.suppress(ValueError):
            return PaddingMode(mode)
    names = ", ".join([*PaddingMode.__members__, "REFLECT"]).lower()
    meant = PaddingMode.OTHER_NAMES.get(str(mode).upper())
    remedy = f" Write mode={PaddingMode[meant].numpy_name!r}." if meant else ""
    raise ArgumentError(
        f"{MODE} is {as_python(mode)}; it must be one of {names}.{remedy}"
    )


@compiled("start", "end", "mode")
def _padding(
    x: Array, value: Array | None, start: Pads, end: Pads, mode: PaddingMode
) -> Array:
    _check_padding(x.shape, start, end, mode)
    operands = [x]
    if value is not None:
        # All operands of a primitive have the same rank (`_primitive`, normal form).
        operands.append(value.reshape((1,) * x.ndim))
    (output,) = PADDING(*operands, start=start, end=end, mode=mode)
    return output


def _check_padding(
    sizes: tuple[int, ...], start: Pads, end: Pads, mode: PaddingMode
) -> None:
    """Checks the padding of an input of these sizes."""
    for name, pads in ((START, start), (END, end)):
        if len(pads) != len(sizes):
            raise ArgumentError(
                f"{name} is {show(pads)}, while {X} has sizes "
                f"{show(sizes)}; write one integer for each axis, and 0 where nothing "
                "is added."
            )
        for pad in pads:
            # XLA would accept a negative padding, and crop.
            if not decide_le(0, pad):
                raise ArgumentError(
                    f"{name} is {show(pads)}; no element may be negative. "
                    "To remove elements, slice x."
                )
            if surely_le(2**32, pad):
                raise ArgumentError(
                    f"{name} is {show(pads)}; each element must be a "
                    "UINT32, less than 2^32."
                )
    if mode is PaddingMode.CONSTANT:
        return
    # JAX's arrays may have an axis of size 0. DirectML's tensors have none.
    for axis, *_ in forms.padded_axes(len(sizes), start, end):
        if not decide_le(1, sizes[axis]):
            raise ArgumentError(
                f"{X} has sizes {show(sizes)}; {mode.name} has nothing to "
                f"repeat along axis {axis}, whose size is 0. Only CONSTANT can pad it."
            )


def _transpose(
    cotangents: Sequence[Array], x: Any, *value: Any, **static: Any
) -> Sequence[Array | None]:
    """Returns the cotangents of the input and, if there is one, of the value."""
    (cotangent,) = cotangents
    of_x = of_value = None
    if ad.is_undefined_primal(x):
        (summed,) = ADJOINT(cotangent, **static)
        of_x = _unbroadcast(summed, x)
    if value and ad.is_undefined_primal(value[0]):
        inside = forms.is_inside(cotangent.shape, static["start"], static["end"])
        outside = jnp.where(inside, lax.full((), 0, cotangent.dtype), cotangent)
        of_value = _unbroadcast(outside, value[0])
    return (of_x, of_value) if value else (of_x,)


def _unbroadcast(cotangent: Array, operand: ad.UndefinedPrimal) -> Array:
    """Sums the cotangent to the shape of `operand`.

    It sums over each dimension that has size 1 in `operand` and a larger size in the
    cotangent. For `x`, this is a batch dimension that only the value has. For the
    value, it is an axis of the tensor, or a batch dimension that only `x` has.
    """
    shape = operand.aval.shape
    broadcast = [i for i, n in enumerate(shape) if n != cotangent.shape[i]]
    return cotangent.sum(broadcast, keepdims=True, dtype=cotangent.dtype)


def _division(x: Array, *_: Any, start: Pads, end: Pads, **__: Any) -> Division:
    """Says that padding is independent along axes that are not padded.

    If a padded axis is divided, XLA divides the call, and the output stays divided.
    """
    padded = {axis for axis, _, _ in forms.padded_axes(x.ndim, start, end)}
    return Division({*range(x.ndim)} - padded, otherwise="keep")


PADDING = OperatorPrimitive(
    "padding",
    definition=functools.partial(forms.by_axes, forms.gather),
    outputs=forms.padded_type,
    division=_division,
    on_platform={
        "cpu": forms.pad_cpu,
        # On a TPU, `gather` moves up to 3.3 times as many bytes as `join`
        # (docs/development/lab_notes.md).
        "tpu": functools.partial(forms.by_axes, forms.join, last_first=False),
    },
    auto_sharded=forms.pad_strips,
    transpose=_transpose,
)
ADJOINT = OperatorPrimitive(
    "padding_adjoint",
    definition=forms.adjoint,
    outputs=forms.cropped_type,
    division=_division,
    on_platform={"cpu": forms.adjoint_cpu},
    # The adjoint adds each element of the padding to the element of `x` that it
    # repeats, and drops the padding under CONSTANT. So its transpose is PADDING without
    # a value, which pads by zeros under CONSTANT.
    transpose=lambda cotangents, _, **static: PADDING(*cotangents, **static),
)


def _check_mode(desc: PaddingDesc | Padding1Desc, level: FeatureLevel) -> None:
    """Requires a mode that exists at `level`. `evaluate` checks the other rules."""
    # These modes are newer than the operator.
    newer = {
        PaddingMode.SYMMETRIC: FeatureLevel.V3_0,
        PaddingMode.WRAP: FeatureLevel.V6_4,
    }
    mode = desc.padding_mode
    first_level = newer.get(mode, FeatureLevel.V1_0)
    if level < first_level:
        raise ArgumentError(
            f"PaddingMode {mode.name} exists from feature level "
            f"{first_level.label} on, while the feature level asked for is "
            f"{level.label}."
        )


def _evaluate(desc: PaddingDesc | Padding1Desc, *arrays: Array) -> tuple[Array]:
    """Returns the output of either descriptor."""
    # Only CONSTANT uses the value. But in every mode, the value of PADDING1 has to fit
    # the tensors' type. The value of PADDING is a FLOAT, which saturates.
    is_float = isinstance(desc, PaddingDesc)
    value = desc.scalar("PaddingValue", desc.padding_value, is_float=is_float)
    mode = desc.padding_mode
    scalar = value if mode is PaddingMode.CONSTANT else None
    # We don't call `padding`: `@public` would begin the errors with "PADDING", even
    # under PADDING1.
    return (_padding(*arrays, scalar, desc.start_padding, desc.end_padding, mode),)


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
    support = support_table(
        "InputTensor OutputTensor",
        V1_0=(4, 5, FLOATS),
        V2_1=(4, 5, UP_TO_32_BITS),
        V3_1=(1, 8, UP_TO_32_BITS),
        V5_0=(1, 8, UP_TO_64_BITS),
    )

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    padding_mode: PaddingMode
    padding_value: float
    dimension_count: int
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]

    check_rules = _check_mode
    evaluate = _evaluate


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
    support = support_table("InputTensor OutputTensor", V5_0=(1, 8, UP_TO_64_BITS))

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    padding_mode: PaddingMode
    padding_value_data_type: DataType
    padding_value: float  # an int remains an int
    dimension_count: int
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]

    check_rules = _check_mode
    evaluate = _evaluate
