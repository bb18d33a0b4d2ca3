"""The operators under the names of jax.numpy, with its arguments and its results.

>>> import jax.numpy as jnp
>>> import dmljax.numpy as dnp
>>> dnp.argwhere(jnp.array([[0, 5], [7, 0]]))
Array([[0, 1],
       [1, 0]], dtype=int32)

For all other functions keep jax.numpy. A program that changes ``jnp.argwhere`` to
``dnp.argwhere`` computes the same, with these exceptions:

- Subnormal numbers are non-zero, on CPUs as well.
- ``one_hot`` is right for more classes than the type of the indices can count: for 300
  classes and int8 indices, a row of ``jax.nn.one_hot`` may have two ones. Indices of
  a floating-point type cause no warning.
- ``tril`` and ``triu`` take any integer `k`, traced or not.
- ``pad`` takes Python integers past int32 as `constant_values`, if the array's type
  holds them, and ``reflect_type="even"`` with every mode.
- ``extract`` and ``compress`` take a `size` larger than the array.
- A mask of NumPy needs no `size` inside of ``jit``: it is searched when the program is
  traced.

dmljax refuses:

- in ``pad``, all modes but constant, edge, reflect, symmetric and wrap, and
  ``reflect_type="odd"``, by a NotImplementedError;
- in ``one_hot``, the name of a mapped axis, by a NotImplementedError;
- in ``compress``, a `fill_value` other than a number or one slice;
- where x64 mode is off, a Python integer past int32, except in `constant_values` (see
  above) and in the `fill_value` of ``extract`` and ``compress``. A NumPy array becomes
  32 bits, as in jax.numpy;
- PRNG keys and a traced `num_classes`, by a TypeError;
- without x64 mode, coordinates along a dimension of more than 2^31 elements.

``pad`` and searches use primitives of dmljax, which converters and
``jax.experimental.jet`` do not know. In the gradients of ``extract`` and
``compress``, slices past the last chosen one have an index past the end, which
``checkify.index_checks`` reports.

As in jax.numpy, a list is refused, except by ``one_hot``. `size` is the number of
coordinates or elements to return. Without it, a call must be outside of ``jit``, or
search an array of NumPy. A wrong call raises a TypeError or a ValueError.

Each function separates its static arguments, which decide shapes, from data, and calls
a compiled function. A function that searches calls two: the search, and then a function
whose static argument is the number of rows.
"""

from __future__ import annotations

import functools
import typing
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike, DTypeLike

from dmljax._arguments import (
    TURN_ON_X64,
    as_array,
    as_axis,
    as_dtype,
    as_number,
    as_size,
    as_sizes,
    cast_array,
    check_static,
    from_python,
    is_integer,
    unwrap_array,
)
from dmljax._call import check_elements, compiled
from dmljax._check import (
    ArgumentError,
    as_python,
    decide_le,
    public,
    show,
    surely_le,
)
from dmljax._diagonal_matrix1 import as_diagonal, diagonal_matrix1
from dmljax._nonzero_coordinates import nonzero_coordinates
from dmljax._nonzero_forms import valid_rows
from dmljax._nonzero_rows import fits_index, per_row, read_rows
from dmljax._one_hot import one_hot as directml_one_hot
from dmljax._padding import padding
from dmljax._padding_forms import (
    PaddingMode,
    Pads,
    is_inside,
    padded_axes,
)
from dmljax._sharding import whole
from dmljax._types import (
    INT32_MAX,
    INT32_MIN,
    WIDE,
    constant,
    keeps_64_bits,
)

__all__ = [
    "argwhere",
    "compress",
    "extract",
    "flatnonzero",
    "nonzero",
    "one_hot",
    "pad",
    "tril",
    "triu",
    "where",
]
Mode = Literal["constant", "edge", "reflect", "symmetric", "wrap"]
_MODES = typing.get_args(Mode)
# An array to search. The elements of a NumPy array are known while a program is traced.
AnyArray = Array | np.ndarray


def __dir__() -> list[str]:
    return __all__


@public
def pad(
    array: ArrayLike,
    pad_width: Any,
    mode: Mode = "constant",
    *,
    constant_values: Any = None,
    reflect_type: Literal["even"] = "even",
    stat_length: None = None,
    end_values: None = None,
) -> Array:
    """Pads an array, as ``jax.numpy.pad`` does.

    Args:
      array: (...) of any type and rank.
      pad_width: how many elements to add: one number for both ends of every axis, one
        pair (before, after) for every axis, or a pair for each axis. A dict has a
        number or a pair for some axes, as in NumPy 2.4: ``{-1: (1, 2)}`` pads the last
        axis alone. The numbers are static: they are known when a program is traced.
      mode: "constant", "edge", "reflect", "symmetric" or "wrap".
      constant_values: the values of "constant": a number, a pair or pairs, as for
        `pad_width`. They are converted to the type of `array`: floats out of range
        saturate, and integers wrap around, except that a Python integer past int32 must
        fit. None stands for 0.
      reflect_type: "even". There is no other type here.
      stat_length: None. Only modes that are missing here use it.
      end_values: None. Only "linear_ramp" uses it, which is missing here.

    Returns:
      The padded array, differentiable in `array` and `constant_values`.

    Raises:
      NotImplementedError: for another mode or another `reflect_type`.
      TypeError: if `array` is not an array, or a width is not an integer.
      ValueError: if a width is negative, if the widths do not fit the axes, if an axis
        of size 0 would have to be repeated, or if `constant_values` is given beside
        another mode than "constant".

    >>> pad(jnp.array([1, 2, 3]), (1, 2), mode="reflect")
    Array([2, 1, 2, 3, 2, 1], dtype=int32)
    """
    x = _as_canonical("array", array)
    # `mode` may be an array by mistake, and ``array in _MODES`` would compare elements.
    # So we compare the text.
    if str(mode) not in _MODES:
        raise NotImplementedError(_why_no_mode(mode))
    if str(reflect_type) != "even":
        is_odd = str(reflect_type) == "odd"
        jax_has_it = is_odd and mode in ("reflect", "symmetric")
        raise NotImplementedError(
            f"dmljax.numpy.pad has reflect_type='even', not {as_python(reflect_type)}."
            f"{' Use jax.numpy.pad.' if jax_has_it else ''}"
        )
    if stat_length is not None or end_values is not None:
        raise ArgumentError(f"mode={mode!r} has no stat_length and no end_values.")
    if constant_values is None:
        constant_values = 0
    elif mode != "constant":
        raise ArgumentError(f"constant_values is given, which mode={mode!r} ignores.")
    starts, ends = _as_widths(pad_width, x.ndim)
    as_value = functools.partial(_as_operand, "constant_values", x.dtype)
    values = jax.tree.map(as_value, unwrap_array(constant_values))
    return _pad(x, values, starts, ends, mode)


def _why_no_mode(mode: Any) -> str:
    """Says which name to write for a mode, or that jax.numpy has the mode."""
    modes = ", ".join(_MODES)
    text = f"dmljax.numpy.pad has the modes {modes}, not mode={as_python(mode)}."
    if isinstance(mode, (int, tuple, list, np.ndarray, Array)):
        # The caller may mean dmljax.padding(x, start, end).
        return (
            f"{text} Both widths of an axis stand in pad_width, as ((before, after), "
            "...)."
        )
    others = "linear_ramp", "maximum", "mean", "median", "minimum", "empty"
    if callable(mode) or mode in others:
        return f"{text} Use jax.numpy.pad."
    name = str(mode).upper()
    meant = PaddingMode.OTHER_NAMES.get(name, name)
    if meant in PaddingMode.__members__:
        return f"{text} Write mode={PaddingMode[meant].numpy_name!r}."
    return text


def _as_widths(pad_width: Any, rank: int) -> tuple[Pads, Pads]:
    """Returns how many elements to add before each axis, and how many after."""
    is_dict = isinstance(pad_width, dict)
    for width in jax.tree.leaves([*pad_width.values()] if is_dict else pad_width):
        if type(width) is not int:
            check_static("pad_width", width, "integers")
    if is_dict:
        pad_width = _by_axis(pad_width, rank)
    try:
        sides = np.asarray(pad_width)
    except ValueError:  # pairs of different lengths
        raise ArgumentError(
            f"pad_width is {as_python(pad_width)}; write a pair (before, after) for "
            "each axis."
        ) from None
    starts, ends = _split_sides("pad_width", sides, rank).tolist()
    return as_sizes("pad_width", (*starts,)), as_sizes("pad_width", (*ends,))


def _by_axis(pad_width: dict[int, Any], rank: int) -> np.ndarray:
    """Returns a pair for each axis: zeros where the dict names none."""
    pairs = np.zeros((rank, 2), object)
    named = set()
    for key, width in pad_width.items():
        axis = as_axis("an axis of pad_width", key, rank)
        if axis in named:
            raise ArgumentError(f"pad_width names axis {axis} twice.")
        named.add(axis)
        if np.shape(width) not in ((), (2,)):
            raise ArgumentError(
                f"pad_width[{key}] is {as_python(width)}; it must be a number, "
                "or a pair (before, after)."
            )
        pairs[axis] = width
    return pairs


def _split_sides(name: str, sides: Any, rank: int) -> Any:
    """Returns (2, rank): values before each axis, then values after each axis."""
    library = np if isinstance(sides, np.ndarray) else jnp
    try:
        return library.broadcast_to(sides, (rank, 2)).T
    except ValueError:
        raise ArgumentError(
            f"{name} has sizes {sides.shape}; it must be a number, a pair "
            f"(before, after), or a pair for each of the {rank} axes."
        ) from None


@compiled("starts", "ends", "mode")
def _pad(x: Array, values: Any, starts: Pads, ends: Pads, mode: Mode) -> Array:
    for width in starts + ends:
        if not decide_le(0, width):
            widths = [*zip(starts, ends, strict=True)]
            raise ArgumentError(f"pad_width is {widths}; none may be negative.")
    value = _cast_or_wrap(jnp.asarray(values), x.dtype)
    if value.ndim == 0:
        return as_weak_as(x, padding(x, starts, ends, mode=mode, value=value))
    before, after = _split_sides("constant_values", value, x.ndim)
    padded = x
    for axis, *_ in padded_axes(x.ndim, starts, ends):  # the last axis sets the corners
        start, end = [0] * x.ndim, [0] * x.ndim
        start[axis] = starts[axis]
        end[axis] = ends[axis]
        # We pad both sides with the value of the first side, and then overwrite the
        # second. If we padded one side after the other, the array between might have a
        # size that does not divide among devices.
        padded = padding(padded, start, end, value=before[axis])
        not_in_end = is_inside(padded.shape, (0,) * x.ndim, tuple(end))
        padded = jnp.where(not_in_end, padded, after[axis])
    return as_weak_as(x, padded)


@public
def argwhere(
    a: ArrayLike,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array:
    """Finds the coordinates of non-zero elements, as ``jax.numpy.argwhere`` does.

    Args:
      a: (...) of any type and rank.
      size: the number of rows to return. If there are more non-zero elements, the last
        ones are dropped without an error. ``dmljax.nonzero_coordinates`` also returns
        the count of all non-zero elements. None stands for all.
      fill_value: the coordinates in the rows past the count, as in ``nonzero``.

    Returns:
      (size, rank) integers, of the type that ``nonzero`` returns.

    Raises:
      TypeError: if `a` is not an array.
      ValueError: if a coordinate may not fit in the type, or if `fill_value` is neither
        a scalar nor a tuple of one for each dimension.
      ConcretizationTypeError: if there is no `size`, and `a` is traced.

    >>> argwhere(jnp.array([[0, 5], [7, 0]]), size=3)
    Array([[0, 1],
           [1, 0],
           [0, 0]], dtype=int32)
    """
    x = _as_canonical("a", a)
    # We search a scalar as an array of one element, and drop its only column.
    columns = find_columns("a", x.reshape(x.shape or (1,)), size, fill_value)
    return jnp.stack(columns, 1)[:, : x.ndim]


@public
def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> tuple[Array, ...]:
    """Finds the coordinates of non-zero elements, as ``jax.numpy.nonzero`` does.

    NaN and subnormal numbers are not zero.

    Args:
      a: (...) of any type, with at least one dimension.
      size: the number of coordinates to return. If there are more non-zero elements,
        the last ones are dropped without an error. ``dmljax.nonzero_coordinates`` also
        returns the count of all non-zero elements. None stands for all.
      fill_value: the coordinates past the count: a scalar, or a tuple of one for each
        dimension. None stands for 0.

    Returns:
      For each dimension (size,) integers of JAX's default type, promoted with the type
      of `fill_value`.

    Raises:
      TypeError: if `a` is not an array.
      ValueError: if `a` has no dimension, if a coordinate may not fit in the type, or
        if `fill_value` is neither a scalar nor a tuple of one for each dimension.
      ConcretizationTypeError: if there is no `size`, and `a` is traced.

    >>> nonzero(jnp.array([0, 5, 7, 0]), size=3, fill_value=-1)
    (Array([ 1,  2, -1], dtype=int32),)
    """
    return _nonzero("a", a, size, fill_value)


def _nonzero(
    argument: str, a: ArrayLike, size: int | None, fill_value: Any
) -> tuple[Array, ...]:
    """Returns what `nonzero` returns, for an argument of this name."""
    x = _as_canonical(argument, a)
    if x.ndim == 0:
        raise ArgumentError(
            f"{argument} has 0 dimensions. Write jnp.atleast_1d({argument})."
        )
    return find_columns(argument, x, size, fill_value)


@typing.overload
def where(
    condition: ArrayLike, /, *, size: int | None = None, fill_value: Any = None
) -> tuple[Array, ...]: ...
@typing.overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array: ...
@public
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array | tuple[Array, ...]:
    """Finds non-zero elements, or selects from two arrays, as ``jax.numpy.where`` does.

    With one argument, this is ``nonzero``. With three, ``jax.numpy.where`` itself is
    called, which is as fast as any other way.

    Args:
      condition: (...) of any type. A lone `condition` has at least one dimension.
      x: what is selected where `condition` is not zero.
      y: what is selected elsewhere.
      size: the number of coordinates to return, as in ``nonzero``.
      fill_value: the coordinates past the count, as in ``nonzero``.

    Returns:
      With one argument, (size,) coordinates for each dimension. With three, the
      selected elements.

    Raises:
      TypeError: if an argument is not an array, or just one of `x` and `y` is given.
      ValueError: as in ``nonzero``.
      ConcretizationTypeError: if a lone `condition` is traced, and there is no `size`.

    >>> where(jnp.array([False, True, True]), size=3, fill_value=-1)
    (Array([ 1,  2, -1], dtype=int32),)
    >>> where(jnp.array([False, True]), jnp.array([1, 2]), 0)
    Array([0, 2], dtype=int32)
    """
    if x is None and y is None:
        return _nonzero("condition", condition, size, fill_value)
    select: Any = jnp.where  # which has no overload for all of these arguments
    selected: Array = select(condition, x, y, size=size, fill_value=fill_value)
    return selected


@public
def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> Array:
    """Finds non-zero elements of the flat array, as ``jax.numpy.flatnonzero`` does.

    Args:
      a: (...) of any type and rank.
      size: the number of indices to return. If there are more non-zero elements, the
        last ones are dropped in silence. None stands for all.
      fill_value: the index in the rows past the count. None stands for 0.

    Returns:
      (size,) of the type of ``nonzero``.

    Raises:
      TypeError: if `a` is not an array.
      ValueError: if an index may not fit in the type, or `fill_value` is not a scalar.
      ConcretizationTypeError: if there is no `size`, and `a` is traced.

    >>> flatnonzero(jnp.array([[0, 5], [7, 0]]), size=3, fill_value=-1)
    Array([ 1,  2, -1], dtype=int32)
    """
    x = _as_canonical("a", a)
    return find_columns("a", x.reshape(-1), size, fill_value)[0]


def find_columns(
    argument: str, x: AnyArray, size: int | None, fill_value: Any
) -> tuple[Array, ...]:
    """Finds coordinates in `x`, and returns one array per dimension."""
    fills = fill_value
    if not isinstance(fills, tuple):
        fills = (fill_value,) * x.ndim
    if len(fills) != x.ndim or any(map(np.ndim, fills)):
        raise ArgumentError(
            f"fill_value is {as_python(fill_value)}; it must be a scalar or a tuple of "
            f"{x.ndim}."
        )
    integer = jnp.result_type(int)
    for length in x.shape:
        if not fits_index(length - 1):  # the largest coordinate
            raise ArgumentError(
                f"{argument} has sizes {show(x.shape)}; coordinates of {length} "
                f"elements do not fit in {integer} without JAX's x64 mode. "
                f"{TURN_ON_X64}, or use dmljax.nonzero_coordinates, whose coordinates "
                "are uint32."
            )
    # None is no leaf, and stays.
    fills = jax.tree.map(functools.partial(_as_operand, "fill_value", integer), fills)
    count, coordinates, rows = _find(x, size)
    if 0 in (x.size, rows):  # jax.numpy then ignores fill_value
        fills = (None,) * x.ndim
    return _split_columns(count, coordinates, fills, rows)


def _find(x: AnyArray, size: int | None) -> tuple[Any, Any, int]:
    """Returns the count, the coordinates, and the number of rows to return.

    NumPy searches a NumPy array, also while a program is traced: the coordinates are
    then constants of the program. Its count is at most the number of rows. The count of
    a compiled search includes all elements that are not zero.
    """
    if size is not None:
        size = as_size("size", size, "an upper bound of the count")
        if not decide_le(0, size):
            raise ArgumentError(f"size is {size}; it must be at least 0.")
    # For a symbolic size, NumPy can't make the rows.
    if isinstance(x, np.ndarray) and isinstance(size, int | None):
        found = np.argwhere(x)[:size]
        rows = len(found) if size is None else size
        padded = np.zeros((rows, x.ndim), np.uint32)
        padded[: len(found)] = found
        return np.uint32(len(found)), padded, rows
    count, coordinates = nonzero_coordinates(x, size=size)
    if size is not None:
        return count, coordinates, coordinates.shape[0]
    if isinstance(count, jax.core.Tracer):
        raise jax.errors.ConcretizationTypeError(
            count,
            "A program that is traced, as by jit and vmap, needs size=, the number of "
            "elements to return.",
        )
    return count, coordinates, int(count)


@compiled("rows")
def _split_columns(
    count: Array, coordinates: Array, fills: tuple[Any, ...], rows: int
) -> tuple[Array, ...]:
    """Returns an array for each column of the first rows, with fills past the count.

    All these arrays have the same type, which holds the fills as well.
    """
    # int32 or int64. `int` itself is a weak type, which a fill of int8 would narrow.
    default = jnp.result_type(int)
    dtype = jnp.result_type(default, *jax.tree.leaves(fills))
    columns = []
    valid = valid_rows(count, rows)
    returned = lax.slice_in_dim(coordinates, 0, rows)
    for column, fill in zip(returned.T, fills, strict=True):
        filling = jnp.asarray(0 if fill is None else fill, dtype)
        columns.append(jnp.where(valid, column.astype(dtype), filling))
    return tuple(columns)


@public
def extract(
    condition: ArrayLike,
    arr: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
) -> Array:
    """Returns elements where a condition holds, as ``jax.numpy.extract`` does.

    Args:
      condition: (...) of any type. Non-zero elements choose.
      arr: (...) of any type. Both arrays are flattened.
      size: the number of elements to return. If more are chosen, the last ones are
        dropped in silence. None stands for all.
      fill_value: the number past the last chosen element, in the type of `arr`.

    Returns:
      (size,) elements of `arr`. They are differentiable in `arr` and `fill_value`.

    Raises:
      TypeError: if an argument is not an array.
      ValueError: if, without `size`, an element past the end of `arr` is chosen.
      ConcretizationTypeError: if there is no `size`, and `condition` is traced.

    >>> x = jnp.array([1.0, 5.0, 7.0])
    >>> extract(x > 2, x, size=3)
    Array([5., 7., 0.], dtype=float32)
    """
    chosen = _as_canonical("condition", condition).reshape(-1)
    values = _as_canonical("arr", arr)
    return take_slices(chosen, values, None, size, fill_value)


@public
def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> Array:
    """Returns slices where a condition holds, as ``jax.numpy.compress`` does.

    Args:
      condition: (n,) of any type. Non-zero elements choose. Slices past its end are not
        chosen.
      a: (...) of any type.
      axis: the dimension of `a` along which slices are chosen. With None, `a` is
        flattened.
      size: the number of slices to return. If more are chosen, the last ones are
        dropped in silence. None stands for all.
      fill_value: what stands past the last chosen slice: a number or one slice, in the
        type of `a`.
      out: None. JAX writes into no array.

    Returns:
      `a` with `size` slices along `axis`, differentiable in `a` and `fill_value`.

    Raises:
      TypeError: if an argument is not an array.
      ValueError: if `condition` has not one dimension, if `axis` is out of range, or
        if, without `size`, a slice past the end of `a` is chosen.
      NotImplementedError: if `out` is not None.
      ConcretizationTypeError: if there is no `size`, and `condition` is traced.

    >>> compress(jnp.array([True, False, True]), jnp.array([[1, 2, 3]]), axis=1)
    Array([[1, 3]], dtype=int32)
    """
    if out is not None:
        raise NotImplementedError(
            "dmljax.numpy.compress: JAX writes into no array; leave out out=."
        )
    chosen = _as_canonical("condition", condition)
    if chosen.ndim != 1:
        raise ArgumentError(
            f"condition has sizes {show(chosen.shape)}; it must have one dimension."
        )
    values = _as_canonical("a", a)
    return take_slices(chosen, values, axis, size, fill_value)


def take_slices(
    condition: AnyArray,
    values: AnyArray,
    axis: int | None,
    size: int | None,
    fill_value: ArrayLike,
    *,
    ignore_rest: bool = False,
) -> Array:
    """Returns the slices of `values` where the condition holds, followed by fills.

    The slices are those along `axis`.

    With ``axis=None``, `values` is flattened. With `ignore_rest`, the condition may
    hold past the end of the axis, where there is nothing to return.
    """
    if axis is None:
        axis = 0
        values = values.reshape(-1)
    axis = as_axis("axis", axis, values.ndim)
    fill = _as_operand("fill_value", values.dtype, fill_value)
    length = values.shape[axis]
    may_be_longer = not surely_le(condition.size, length)
    up_to_end = condition[:length] if may_be_longer else condition
    count, coordinates, rows = _find(up_to_end, size)
    # Without a size, `_find` refuses a traced condition: here its elements are known.
    is_checked = may_be_longer and size is None and not ignore_rest
    if is_checked and condition[length:].any():
        raise ArgumentError(
            f"condition is true past the end of the axis of {length} elements."
        )
    taken = _gather_slices(values, count, coordinates, fill, axis, rows)
    # As in jax.numpy, only a result without fills keeps a weak type.
    return as_weak_as(values, taken) if size is None else taken


@compiled("axis", "rows")
def _gather_slices(
    values: Array,
    count: Array,
    coordinates: Array,
    fill: Array,
    axis: int,
    rows: int,
) -> Array:
    """Returns `rows` slices of `values`: those at the coordinates, and then fills."""
    values = jnp.moveaxis(values, axis, 0)
    length, *sizes = values.shape
    check_elements((rows, *sizes))
    try:
        filling = jnp.broadcast_to(_cast_or_wrap(fill, values.dtype), (1, *sizes))
    except ValueError:
        raise ArgumentError(
            f"fill_value has sizes {show(fill.shape)}; it must be a scalar, or "
            f"a slice of sizes {show((*sizes,))}."
        ) from None
    # The dimension along which slices are chosen must not be sharded.
    values = whole(values, [0])
    valid = valid_rows(count, rows)
    index = lax.slice_in_dim(coordinates, 0, rows)[:, 0]
    integer = jnp.result_type(int)
    if not fits_index(length):
        # This index is too large for `read_rows`. A dynamic slice takes a uint32.
        inside = jnp.where(valid, index, np.uint32(0))
        slice_at = functools.partial(lax.dynamic_index_in_dim, values, keepdims=False)
        slices = jax.vmap(slice_at)(inside)
        taken = jnp.where(per_row(valid, slices), slices, filling)
    else:
        index = lax.convert_element_type(index, integer)
        taken = read_rows(values, filling, valid, (index,))
    return jnp.moveaxis(taken, 0, axis)


@public
def tril(m: ArrayLike, k: int | Array = 0) -> Array:
    """Keeps the lower triangle, up to diagonal `k`, as ``jax.numpy.tril`` does.

    Args:
      m: (..., height, width) of any type.
      k: the last diagonal to keep, any integer. A ``jax.Array`` is data: new values
        compile nothing, and ``vmap`` gives each matrix its own diagonal.

    Returns:
      `m` with zeros above diagonal `k`, differentiable in `m`.

    Raises:
      TypeError: if `m` is not an array, or `k` is not an integer.
      ValueError: if `m` has fewer than two dimensions.

    >>> tril(jnp.ones((2, 3)))
    Array([[1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    return _triangle(m, k, upper=False)


@public
def triu(m: ArrayLike, k: int | Array = 0) -> Array:
    """Keeps the upper triangle, from diagonal `k` on, as ``jax.numpy.triu`` does.

    Args:
      m: (..., height, width) of any type.
      k: the first diagonal to keep, any integer. A ``jax.Array`` is data: new values
        compile nothing, and ``vmap`` gives each matrix its own diagonal.

    Returns:
      `m` with zeros below diagonal `k`, differentiable in `m`.

    Raises:
      TypeError: if `m` is not an array, or `k` is not an integer.
      ValueError: if `m` has fewer than two dimensions.

    >>> triu(jnp.ones((2, 3)), 1)
    Array([[0., 1., 1.],
           [0., 0., 1.]], dtype=float32)
    """
    return _triangle(m, k, upper=True)


def _triangle(m: ArrayLike, k: Any, *, upper: bool) -> Array:
    x = _as_canonical("m", m)
    return as_weak_as(x, keep_triangle("m", x, k, upper=upper))


def keep_triangle(argument: str, x: AnyArray, k: Any, *, upper: bool) -> Array:
    """Keeps the diagonals from `k` on with `upper`, and otherwise up to `k`."""
    if x.ndim < 2:
        raise ArgumentError(
            f"{argument} has sizes {show(x.shape)}; it must have at least 2 dimensions."
        )
    begin = end = None  # the diagonals in [begin, end) become 0
    if upper:
        end = as_bound(k)
    else:
        begin = as_bound(k, 1)
    return diagonal_matrix1(x, value=0, fill_begin=begin, fill_end=end)


def as_bound(k: Any, offset: int = 0) -> Any:
    """Returns `k` + `offset`, or the nearest INT32: no matrix has further diagonals."""
    diagonal = as_diagonal("k", k)
    if isinstance(diagonal, Array):
        return _saturated_sum(diagonal, offset)
    return min(max(diagonal + offset, INT32_MIN), INT32_MAX)


@compiled("offset")
def _saturated_sum(k: Array, offset: int) -> Array:
    diagonal = cast_array(k, np.dtype(np.int32))
    return lax.min(diagonal, np.int32(INT32_MAX - offset)) + offset


@public
def one_hot(
    x: Any,
    num_classes: int,
    *,
    dtype: DTypeLike | None = None,
    axis: int = -1,
    out_sharding: Any = None,
) -> Array:
    """Makes one-hot sequences, as ``jax.nn.one_hot`` does.

    Args:
      x: (...) of any type, or a list. An index below 0 or above the last class, or with
        a fraction, gives zeros. (In ``dmljax.one_hot``, as in DirectML, -1 is the last
        class.)
      num_classes: the number of elements of each sequence, at least 0.
      dtype: the type of the result. None stands for JAX's default float.
      axis: the dimension of the result that has the sequences.
      out_sharding: the sharding of the result over explicit mesh axes. By default, the
        result is sharded as `x` is.

    Returns:
      An array with one more dimension than `x`, of zeros and ones.

    Raises:
      TypeError: if `num_classes` or `axis` is not an integer, or `dtype` is no type of
        numbers.
      ValueError: if `num_classes` is negative or `axis` is out of range.
      NotImplementedError: if `axis` is the name of a mapped axis.

    >>> one_hot(jnp.array([0, 2, -1]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.],
           [0., 0., 0.]], dtype=float32)
    """
    if isinstance(axis, str):
        raise NotImplementedError(
            f"dmljax.numpy.one_hot has no axis {axis!r}. Use jax.nn.one_hot."
        )
    if isinstance(x, (list, tuple)):
        x = jnp.asarray(x)
    index = _as_canonical("x", x)
    result_type = as_dtype(float if dtype is None else dtype)
    size = as_size("num_classes", num_classes)
    axis = as_axis("axis", axis, index.ndim + 1)
    result = _one_hot_classes(index, size, axis, result_type)
    if out_sharding is not None:
        result = jax.reshard(result, out_sharding)
    return result


@compiled("size", "axis", "dtype")
def _one_hot_classes(index: Array, size: int, axis: int, dtype: np.dtype) -> Array:
    if not decide_le(0, size):
        raise ArgumentError(f"num_classes is {size}; it must be at least 0.")
    if not is_integer(index.dtype):
        truncated = cast_array(index, np.dtype(np.int32))
        is_whole = index == truncated.astype(index.dtype)
        index = jnp.where(is_whole, truncated, -1)
    index = jnp.expand_dims(index, axis)
    if not keeps_64_bits():
        dtype = jax.dtypes.canonicalize_dtype(dtype)
    if size == 0:  # the operator needs at least one element
        return lax.slice_in_dim(index, 0, 0, axis=axis).astype(dtype)
    # Here a negative index gives zeros; the operator would count from the last class.
    # -1 as uint32 or uint64 is larger than any class, and as uint8 would be class 255.
    wide = np.uint64 if index.dtype.itemsize == 8 else np.uint32
    # Where `constant` returns a NumPy array, the operator reads 0 and 1 while it is
    # traced, and chooses its faster formula.
    off_on = constant(np.array([0, 1], dtype), dtype)
    return directml_one_hot(index.astype(wide), off_on, size=size, axis=axis)


def as_weak_as(x: AnyArray, result: Array) -> Array:
    """Returns a result with a weak type if `x` has a weak type, as jax.numpy does."""
    return _weakened(x, result) if jax.typeof(x).weak_type else result


@compiled()
def _weakened(x: Array, result: Array) -> Any:
    # JAX has no documented function that gives an array a weak type. full_like keeps
    # the weak type of `x`, but takes a single value. So vectorize makes each element a
    # weakly typed scalar.
    def as_weak_scalar(element: Array) -> Array:
        return lax.full_like(x, element, shape=())

    return jnp.vectorize(as_weak_scalar)(result)


def _cast_or_wrap(array: Array, dtype: np.dtype) -> Array:
    """Converts like jax.numpy: integers wrap around, and floats saturate."""
    cast = lax.convert_element_type if is_integer(array.dtype) else cast_array
    return cast(array, dtype)


def _as_canonical(argument: str, value: ArrayLike) -> AnyArray:
    """Returns `value` as an array of the type that JAX gives it, or refuses a list.

    A NumPy array remains a NumPy array.
    """
    array = unwrap_array(value)
    if isinstance(array, (np.ndarray, np.generic)):
        # Without x64 mode, JAX narrows 64-bit types, which turns 2^32 and 1e-300 into
        # 0. We narrow before the search, to find the elements that JAX finds.
        # `as_array` would refuse an integer that does not fit.
        if array.dtype in WIDE:
            with np.errstate(over="ignore"):  # too large a float becomes infinity
                array = array.astype(jax.dtypes.canonicalize_dtype(array.dtype))
    elif isinstance(array, (int, float, complex)):
        as_array(argument, array)  # only checks: a large integer is refused
        return jnp.asarray(array)  # weakly typed
    return as_array(argument, array)


def _as_operand(argument: str, dtype: np.dtype, value: Any) -> Any:
    """Returns `value` as a number or an array, for a compiled function to convert.

    JAX refuses a Python integer past its default type of integers. So such an integer
    is converted to `dtype` here.
    """
    number = as_number(value)
    if number is None:
        return _as_canonical(argument, value)
    limit = 2 ** (8 * jax.dtypes.canonicalize_dtype(np.int64).itemsize - 1)
    if type(number) is int and not -limit <= number < limit:
        return from_python(argument, number, dtype)
    return number
