"""ELEMENT_WISE_IF: selects between two tensors, element by element.

Most of the code decides the type of a scalar operand.
"""

from __future__ import annotations

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from dmljax._arguments import (
    as_array,
    as_number,
    cast_hint,
    convert,
    drop_weak_type,
    from_python,
)
from dmljax._call import compiled
from dmljax._check import ArgumentError, ArgumentTypeError, public, require_same, show
from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.struct import c_name
from dmljax._directml.support import (
    UP_TO_32_BITS,
    UP_TO_64_BITS,
    FeatureLevel,
    support_table,
)
from dmljax._directml.tensor import DataType, TensorDesc

# The arguments of the function, as its messages name them.
NAMES = "condition (ConditionTensor)", "a (ATensor)", "b (BTensor)"


@public
def element_wise_if(condition: ArrayLike, a: ArrayLike, b: ArrayLike, /) -> Array:
    """Selects from `a` where `condition` is not zero, and from `b` elsewhere.

    ``output[c] = a[c] if condition[c] != 0 else b[c]``

    An element that is not selected has no effect on the output, not even a NaN, and
    its gradient is exactly zero. An operation before the selection can still put a NaN
    into the gradient. In ``element_wise_if(x > 0, jnp.log(x), 0.0)``, for example, the
    derivative of the logarithm at 0 is infinite, and 0 * inf is NaN. Select a safe
    argument of the logarithm as well:
    ``element_wise_if(x > 0, jnp.log(element_wise_if(x > 0, x, 1.0)), 0.0)``. See
    https://docs.jax.dev/en/latest/faq.html#gradients-contain-nan-where-using-where.

    Args:
      condition: (...) uint8 or bool. Every value except 0 selects `a`.
      a: (...) of any type and of the sizes of `condition`, or a scalar.
      b: (...) of the type of `a` and of the sizes of `condition`, or a scalar. If `a`
        or `b` is a Python number, the other must be an array, and the number takes its
        type. A weakly typed array and a scalar of type bool also take the other's type.
        Nothing else is promoted or broadcast.

    Returns:
      An array (...) of the type of `a` and `b`, differentiable in both.

    Raises:
      DescriptorError: if `condition` is neither uint8 nor bool, if the sizes or the
        types do not agree, or if a Python number does not fit the other type.
      TypeError: if an argument is not an array, or both `a` and `b` are Python numbers.

    >>> import jax.numpy as jnp
    >>> condition = jnp.array([[1, 0], [1, 1]], jnp.uint8)
    >>> element_wise_if(condition, jnp.array([[1, 2], [3, 4]]),
    ...                 jnp.array([[9, 8], [7, 6]]))
    Array([[1, 8],
           [3, 4]], dtype=int32)

    See DML_ELEMENT_WISE_IF_OPERATOR_DESC in directml.h.
    """
    return select(NAMES, condition, a, b)


def select(
    names: tuple[str, str, str], condition: ArrayLike, a: ArrayLike, b: ArrayLike
) -> Array:
    """Selects from `a` or `b`. `names` has the three arguments, as messages name them.

    The first word of a name is the parameter, such as ``a``: remedies quote it.
    """
    condition_name, a_name, b_name = names
    condition = as_array(condition_name, condition)
    # A Python number takes the type of the other operand.
    number_a, number_b = as_number(a), as_number(b)
    if number_a is None:
        first = as_array(a_name, a)
        if number_b is None:
            second = as_array(b_name, b)
        else:
            second = from_python(b_name, number_b, first.dtype)
    elif number_b is None:
        second = as_array(b_name, b)
        first = from_python(a_name, number_a, second.dtype)
    else:
        raise ArgumentTypeError(
            f"{a_name} and {b_name} are both Python numbers; one must be an array, "
            "which gives the result its type. Write for example "
            f"jnp.asarray({b_name.split()[0]})."
        )
    return _element_wise_if(condition, first, second, names)


@compiled("names")
def _element_wise_if(
    condition: Array, a: Array, b: Array, names: tuple[str, str, str]
) -> Array:
    condition_name, a_name, b_name = names
    # DirectML's page allows only UINT8, but a comparison in JAX returns bools.
    if condition.dtype not in (np.uint8, np.bool_):
        raise ArgumentError(
            f"{condition_name} has data type {show(condition.dtype)}; it must be "
            "UINT8 or BOOL. Write condition != 0."
        )
    # The weaker operand, such as a traced Python number, takes the other's type. Two
    # arrays of different types are an error: types are not promoted.
    if weakness(a) > weakness(b):
        a = convert(a_name, a, b.dtype, owner=b_name)
    elif weakness(b) > weakness(a):
        b = convert(b_name, b, a.dtype, owner=a_name)
    # We suggest a cast of the scalar, because the array may be large. For two arrays,
    # we suggest a cast to the type that holds the values of both.
    if a.ndim == 0 or (b.ndim > 0 and np.can_cast(a.dtype, b.dtype)):
        remedy = cast_hint(a_name.split()[0], a.dtype, b.dtype)
    else:
        remedy = cast_hint(b_name.split()[0], b.dtype, a.dtype)
    require_same("data types", {b_name: b.dtype, a_name: a.dtype}, remedy)
    sizes = {condition_name: condition.shape, a_name: a.shape, b_name: b.shape}
    remedy = ""
    # Only a call of element_wise_if can fail here: onnx.where broadcasts its arguments.
    with contextlib.suppress(ValueError):
        jnp.broadcast_shapes(*sizes.values())
        remedy = " Write element_wise_if(*jnp.broadcast_arrays(condition, a, b))"
        # Broadcasting lines up the last dimensions, which may not be what is meant.
        ranks = {len(shape) for shape in sizes.values() if shape}
        if len(ranks) != 1:
            remedy += " if their last dimensions belong together"
        remedy += "."
    # A scalar may stand beside any sizes, except as the condition.
    for name in a_name, b_name:
        if not sizes[name]:
            del sizes[name]
    require_same("sizes", sizes, remedy)
    # The conversion to bool compares with 0: every uint8 except 0 selects `a`.
    return jnp.where(
        lax.convert_element_type(condition, bool), drop_weak_type(a), drop_weak_type(b)
    )


def weakness(array: Array) -> int:
    """Returns 0 to 3: the weaker of two operands takes the other's type.

    3 is for a scalar of type bool, such as a traced Python bool; 2 for a weakly typed
    scalar, such as another traced Python number; 1 for a weakly typed array, such as
    ``jnp.full((2, 3), 1.5)``; and 0 for all other arrays.
    """
    if array.ndim == 0 and array.dtype == np.bool_:
        return 3
    if not jax.typeof(array).weak_type:
        return 0
    return 1 if array.ndim else 2


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
    support = support_table(
        "ConditionTensor",
        "ATensor BTensor OutputTensor",
        # DirectML's page names FLOAT16 alone for this level, and so does this table.
        V2_0=(4, 4, (DataType.UINT8,), (DataType.FLOAT16,)),
        V3_0=(1, 8, (DataType.UINT8,), UP_TO_32_BITS),
        V5_0=(1, 8, (DataType.UINT8,), UP_TO_64_BITS),
    )
    same_type = ("a_tensor", "b_tensor", "output_tensor")

    condition_tensor: TensorDesc
    a_tensor: TensorDesc
    b_tensor: TensorDesc
    output_tensor: TensorDesc

    def check_rules(self, level: FeatureLevel) -> None:
        """Checks the sizes before `element_wise_if` does.

        Its message advises to broadcast the arrays, which is no use for a descriptor.
        """
        sizes = {c_name(name): tensor.sizes for name, tensor in self.tensors().items()}
        require_same("sizes", sizes)

    def evaluate(self, *arrays: Array) -> tuple[Array]:
        """Returns the output for the condition, `a` and `b`."""
        return (element_wise_if(*arrays),)
