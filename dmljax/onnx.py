"""ONNX's operators, built on dmljax's: inputs by position, attributes by name.

>>> import jax.numpy as jnp
>>> import dmljax.onnx as dox
>>> dox.pad(jnp.array([1, 2, 3]), [-1, 2], mode="edge")
Array([2, 3, 3, 3], dtype=int32)

The functions do what ONNX's newest operators do, and need no ONNX. The sizes of a
result must be known when a program is traced: `pads`, `axes` and `depth` are numbers,
lists or known arrays, also of 64 bits. All other arrays are data, of any type. Where
JAX's x64 mode is off, 64-bit data are converted to 32 bits, and integers must fit.
Types are never promoted. Scalars may also be passed as one-element arrays.
"""

from __future__ import annotations

import math
from typing import Any, Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.export import is_symbolic_dim
from jax.typing import ArrayLike, DTypeLike

import dmljax.numpy as dnp
from dmljax._arguments import (
    as_array,
    as_axis,
    as_dtype,
    as_integer,
    as_scalar,
    as_size,
    as_sizes,
    cast_array,
    check_x64,
    drop_weak_type,
    is_integer,
    unwrap_array,
)
from dmljax._call import check_elements, compiled
from dmljax._check import (
    ArgumentError,
    ArgumentTypeError,
    as_python,
    decide_le,
    public,
    show,
    surely_le,
)
from dmljax._diagonal_matrix1 import diagonal_matrix1
from dmljax._element_wise_if import select
from dmljax._one_hot import one_hot as _one_hot
from dmljax._padding import padding
from dmljax._types import INT32_MIN, Sizes

__all__ = ["compress", "eye_like", "nonzero", "one_hot", "pad", "trilu", "where"]
Mode = Literal["constant", "edge", "reflect", "wrap"]
_MODES = get_args(Mode)
Fills = ArrayLike | tuple[ArrayLike, ...]
# The data types of ONNX, each at its number.
_TYPES = (
    *("undefined", "float32", "uint8", "int8", "uint16", "int16", "int32", "int64"),
    *("string", "bool", "float16", "float64", "uint32", "uint64"),
    *("complex64", "complex128", "bfloat16"),
)


def __dir__() -> list[str]:
    return __all__


@public
def pad(
    data: ArrayLike,
    pads: Sizes | Array,
    constant_value: ArrayLike | None = None,
    axes: Sizes | Array | None = None,
    *,
    mode: Mode = "constant",
) -> Array:
    """Pads an array, as ONNX's Pad does.

    Args:
      data: (...) of any type and rank.
      pads: the numbers of elements to add before each of the `axes`, and then the
        numbers to add after each. A negative number cuts off elements, before anything
        is added.
      constant_value: a number of the type of `data`, for "constant". None means 0.
      axes: the axes to pad. None means every axis.
      mode: "constant", "edge", "reflect" or "wrap".

    Returns:
      An array of the type of `data`, differentiable in `data` and `constant_value`.

    Raises:
      DescriptorError: if `mode` or an axis is unknown, `pads` does not have two
        elements for each axis, no element is left to repeat, or `constant_value` has
        another type or does not fit.
      TypeError: if `pads` or `axes` is traced or has other elements than integers.

    >>> pad(jnp.array([1, 2, 3]), [1, 2], 7)
    Array([7, 1, 2, 3, 7, 7], dtype=int32)
    """
    x = as_array("data", data)
    if not isinstance(mode, str) or mode not in _MODES:
        raise ArgumentError(f"mode is {as_python(mode)}; it must be one of {_MODES}.")
    if axes is None:
        axes = range(x.ndim)
    widths = as_sizes("pads", _as_numpy(pads))
    padded = [
        as_axis("an element of axes", axis, x.ndim)
        for axis in as_sizes("axes", _as_numpy(axes))
    ]
    n = len(padded)
    if len(set(padded)) != n:
        raise ArgumentError(f"axes is {as_python(axes)}; none may occur twice.")
    if len(widths) != 2 * n:
        raise ArgumentError(f"pads has {len(widths)} elements; {n} axes need {2 * n}.")
    starts = [0] * x.ndim
    ends = [0] * x.ndim
    for axis, start, end in zip(padded, widths[:n], widths[n:], strict=True):
        # A negative number cuts elements off, and adds none.
        cut_start = 0 if decide_le(0, start) else -start
        cut_end = 0 if decide_le(0, end) else -end
        starts[axis] = start + cut_start
        ends[axis] = end + cut_end
        stop = x.shape[axis] - cut_end
        size = stop - cut_start
        # If elements are added, a mode that repeats elements needs one.
        least = int(mode != "constant" and not surely_le(starts[axis] + ends[axis], 0))
        if not decide_le(least, size):
            raise ArgumentError(
                f"pads leaves {size} elements of data along axis {axis}; "
                f"{mode} needs at least {least}."
            )
        x = lax.slice_in_dim(x, cut_start, stop, axis=axis)
    if constant_value is None:
        constant_value = 0
    number = _as_scalar("constant_value", constant_value)
    value = as_scalar("constant_value", number, x.dtype, cast=True)
    return padding(x, starts, ends, mode=mode, value=value)


@public
def one_hot(
    indices: ArrayLike, depth: ArrayLike, values: ArrayLike, *, axis: int = -1
) -> Array:
    """Makes one-hot sequences, as ONNX's OneHot does.

    Args:
      indices: (...) integers or floats; a float is truncated toward zero. A negative
        index counts from the end. NaN and an index outside of [-depth, depth) turn no
        element on.
      depth: a number, the length of a sequence. A float is truncated.
      values: two numbers, off and on.
      axis: the axis of the sequences in the result.

    Returns:
      An array of the type of `values`, with one axis more than `indices`,
      differentiable in `values`.

    Raises:
      DescriptorError: if `indices` has bools or complex numbers, `depth` is below 1 or
        too large, `values` is not of shape (2,), or the result has no axis `axis`.
      TypeError: if `depth` is traced, or is not a finite number.

    >>> one_hot(jnp.array([0, -1, 5]), 3, jnp.array([0, 1]))
    Array([[1, 0, 0],
           [0, 0, 1],
           [0, 0, 0]], dtype=int32)
    """
    index = as_array("indices", indices)
    off_on = as_array("values", values)
    if off_on.shape != (2,):
        raise ArgumentError(
            f"values has sizes {show(off_on.shape)}; it must have {{2}}, off and on."
        )
    length = _as_scalar("depth", _as_numpy(depth))
    if isinstance(length, (np.ndarray, np.generic)):
        length = length.item()
    if isinstance(length, float) and math.isfinite(length):
        length = int(length)
    size = as_size("depth", length)
    if not decide_le(1, size):
        raise ArgumentError(f"depth is {size}; it must be at least 1.")
    if jnp.issubdtype(index.dtype, np.floating):
        index = _truncate(index)
    elif not is_integer(index.dtype):
        raise ArgumentError(
            f"indices has data type {show(index.dtype)}; it must have integers "
            "or floats."
        )
    axis = as_axis("axis", axis, index.ndim + 1)
    return _one_hot(jnp.expand_dims(index, axis), off_on, size=size, axis=axis)


# An index may be NaN. jax.debug_nans checks the results of compiled programs, and the
# result of this one is an integer. Without `compiled`, it would report the NaN.
@compiled()
def _truncate(index: Array) -> Array:
    """Truncates indices toward zero. NaN becomes an index out of range."""
    number = cast_array(index, jnp.result_type(int))
    # INT32_MIN is below -depth for every depth, and turns nothing on.
    return jnp.where(jnp.isnan(index), INT32_MIN, number)


@public
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Array:
    """Selects from `x` where a condition holds, else from `y`, as ONNX's Where does.

    All three arguments are broadcast to the sizes of the result.

    Args:
      condition: bool or uint8. Every value except 0 selects `x`.
      x: an array, or a number, which takes the type of `y`.
      y: an array of the type of `x`, or a number, which takes the type of `x`.

    Returns:
      An array of the type of `x` and `y`, differentiable in both.

    Raises:
      DescriptorError: if the sizes can't be broadcast, or the types differ.
      TypeError: if an argument is not an array, or both `x` and `y` are Python numbers.

    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> where(x > 2, x, jnp.array([8, 9]))
    Array([[8, 9],
           [3, 4]], dtype=int32)
    """
    names = "condition", "x", "y"
    operands = list(map(unwrap_array, (condition, x, y)))
    shapes = list(map(np.shape, operands))
    try:
        sizes = jnp.broadcast_shapes(*shapes)
    except ValueError:
        pairs = zip(names, shapes, strict=True)
        have = ", ".join(f"{name} has sizes {show(shape)}" for name, shape in pairs)
        raise ArgumentError(
            f"{have}; counted from the last axis, the sizes of an axis must be equal "
            "or 1."
        ) from None
    check_elements(sizes)
    # A scalar `x` or `y` stays as it is: it may be a Python number, to which `select`
    # gives the other operand's type.
    for i, name in enumerate(names):
        if shapes[i] or name == "condition":
            operands[i] = jnp.broadcast_to(as_array(name, operands[i]), sizes)
    return select(names, *operands)


@public
def nonzero(
    x: ArrayLike,
    *,
    size: int | None = None,
    fill_value: Fills = 0,
) -> Array:
    """Finds the coordinates of non-zero elements, as ONNX's NonZero does.

    Args:
      x: (...) of any type and rank.
      size: the number of coordinates to return; later coordinates are left out. None
        means all coordinates: the call must then be outside of ``jit``.
      fill_value: an integer, or a tuple of an integer for each dimension, for columns
        past the last coordinate. With ``fill_value=x.shape``, these columns are out of
        range, and ``x.at[...].set(..., mode="drop")`` writes nothing there. With the
        default 0, it writes into the first element.

    Returns:
      Integers (rank, size): int64, as in ONNX, in x64 mode, and int32 otherwise.

    Raises:
      DescriptorError: if `size` is negative, or the tuple `fill_value` has another
        length than `x` has dimensions.
      TypeError: if `fill_value` is not an integer.
      jax.errors.ConcretizationTypeError: if `size` is None inside of ``jit``.

    >>> x = jnp.array([[0, 5], [7, 0]])
    >>> nonzero(x, size=3, fill_value=x.shape)
    Array([[0, 1, 2],
           [1, 0, 2]], dtype=int32)
    """
    array = as_array("x", x)
    # We search a scalar as a vector of one element, and cut off its coordinates. So
    # its fill, (), may become any fill.
    if isinstance(fill_value, tuple):
        fills: Any = tuple(map(_as_fill, fill_value)) or None
    else:
        fills = _as_fill(fill_value)
    searched = array.reshape(array.shape or (1,))
    by_dimension = dnp.find_columns("x", searched, size, fills)
    return jnp.stack(by_dimension)[: array.ndim]


@public
def trilu(
    x: ArrayLike,
    k: ArrayLike = 0,
    *,
    upper: bool | int = True,
) -> Array:
    """Keeps a triangle of matrices, as ONNX's Trilu does.

    Args:
      x: (..., height, width) of any type.
      k: an integer, the diagonal where the triangle begins or ends. A ``jax.Array`` is
        data: a new value does not recompile, and under ``jax.vmap`` each matrix may
        have its own `k`.
      upper: True for the triangle from diagonal `k` on, False for the triangle that
        ends with diagonal `k`.

    Returns:
      An array like `x` with zeros elsewhere, differentiable in `x`.

    Raises:
      DescriptorError: if `x` has fewer than two dimensions, `k` is not one number, or
        `upper` is not a bool, 0 or 1.
      TypeError: if `k` is not an integer.

    >>> trilu(jnp.ones((2, 3)), 1)
    Array([[0., 1., 1.],
           [0., 0., 1.]], dtype=float32)
    """
    matrix = as_array("x", x)
    if getattr(upper, "ndim", 0) or upper not in (0, 1):
        raise ArgumentError(f"upper is {as_python(upper)}; it must be True or False.")
    return dnp.keep_triangle("x", matrix, _as_scalar("k", k), upper=bool(upper))


@public
def eye_like(
    x: ArrayLike, *, dtype: DTypeLike | int | None = None, k: ArrayLike = 0
) -> Array:
    """Makes a matrix with ones on a diagonal, as ONNX's EyeLike does.

    Args:
      x: (height, width) of any type. Its values are not used.
      dtype: a data type, or its number in ONNX. None stands for the type of `x`.
      k: an integer, the diagonal of the ones, which may be data as in ``trilu``.

    Returns:
      An array (height, width) of the type `dtype`, on the device of `x`.

    Raises:
      DescriptorError: if `x` does not have two dimensions, or `k` is not one number.
      TypeError: if `k` is not an integer, or `dtype` is not a type of numbers.

    >>> eye_like(jnp.zeros((2, 3)), k=1, dtype=6)
    Array([[0, 1, 0],
           [0, 0, 1]], dtype=int32)
    """
    array = as_array("x", x)
    if array.ndim != 2:
        raise ArgumentError(
            f"x has sizes {show(array.shape)}; it must have two dimensions."
        )
    result_type: Any = array.dtype if dtype is None else dtype
    if isinstance(result_type, (int, np.integer)) and 0 <= result_type < len(_TYPES):
        result_type = _TYPES[as_integer("dtype", result_type)]  # refuses a bool
    result_type = as_dtype(result_type)
    check_x64("the result (dtype)", result_type)
    diagonal = _as_scalar("k", k)
    begin = dnp.as_bound(diagonal)
    end = dnp.as_bound(diagonal, 1)
    # zeros_like makes an array on the device of `x`; jnp.zeros would not.
    zeros = jnp.zeros_like(array, dtype=result_type)
    return diagonal_matrix1(zeros, fill_begin=begin, fill_end=end)


@public
def compress(
    x: ArrayLike,
    condition: ArrayLike,
    *,
    axis: int | None = None,
    size: int | None = None,
    fill_value: ArrayLike = 0,
) -> Array:
    """Returns slices where a condition holds, as ONNX's Compress does.

    Args:
      x: (...) of any type.
      condition: a truth value for each slice. As in ONNX Runtime, a `condition` of
        several dimensions is flattened, and values past the end of the axis are
        ignored. Slices past the end of `condition` are not returned.
      axis: the axis of the slices. None stands for the elements of the flat `x`.
      size: the number of slices to return; later slices are left out. None means all
        slices: inside of ``jit``, `condition` must then be a NumPy array.
      fill_value: a number of the type of `x`, for slices past the last chosen one.

    Returns:
      An array of the type of `x`, differentiable in `x` and `fill_value`.

    Raises:
      DescriptorError: if there is no such axis, `size` is negative, or `fill_value` has
        another type or does not fit.
      TypeError: if an argument is not an array.
      jax.errors.ConcretizationTypeError: if `size` is None and `condition` is traced.

    >>> x = jnp.array([[1, 2, 3], [4, 5, 6]])
    >>> compress(x, jnp.array([True, False, True]), axis=1)
    Array([[1, 3],
           [4, 6]], dtype=int32)
    """
    values = as_array("x", x)
    chosen = as_array("condition", condition).reshape(-1)
    number = _as_scalar("fill_value", fill_value)
    fill = as_scalar("fill_value", number, values.dtype, cast=True)
    taken = dnp.take_slices(chosen, values, axis, size, fill, ignore_rest=True)
    return drop_weak_type(taken)


def _as_numpy(value: Any) -> Any:
    """Returns a known ``jax.Array`` as a NumPy array, and any other value as given."""
    if isinstance(value, Array) and not isinstance(value, jax.core.Tracer):
        return np.asarray(value)
    return value


def _as_scalar(argument: str, value: Any) -> Any:
    """Returns an array of one element as a scalar, and refuses larger arrays.

    Other values are returned as they are.
    """
    if not is_symbolic_dim(value):  # unwrap_array would make it a tracer
        value = unwrap_array(value)
    if isinstance(value, (Array, np.ndarray, np.generic)):
        if value.size != 1:
            raise ArgumentError(
                f"{argument} has sizes {show(value.shape)}; it must be one number."
            )
        value = value.reshape(())
    return value


def _as_fill(value: Any) -> Array:
    """Returns a `fill_value`, which may be traced, as a scalar.

    Its type is JAX's default integer. An integer that does not fit saturates, which
    changes nothing: the saturated number is out of range as well.
    """
    array = as_array("fill_value", _as_scalar("fill_value", value))
    if not is_integer(array.dtype):
        raise ArgumentTypeError(
            f"fill_value is of type {array.dtype}; it must be an integer."
        )
    return cast_array(jnp.asarray(array), jnp.result_type(int))
