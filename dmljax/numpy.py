"""The operators under the names of jax.numpy, with its arguments and its results.

>>> import jax.numpy as jnp
>>> import dmljax.numpy as dnp
>>> dnp.argwhere(jnp.array([[0, 5], [7, 0]]))
Array([[0, 1],
       [1, 0]], dtype=int32)

A program that changes ``jnp.argwhere`` to ``dnp.argwhere`` computes the same. There are
two exceptions. Subnormal numbers count as non-zero, on CPUs as well. ``one_hot`` is
right for more classes than the type of the indices can count: for 300 classes and int8
indices, jax.nn's gives two ones.

As in jax.numpy, 64-bit input becomes 32 bits where x64 mode is off. Nothing is computed
here: a function brings its arguments into the form that an operator takes.
"""

import itertools
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike, DTypeLike

from dmljax._arguments import as_size, as_sizes, unwrapped
from dmljax._check import counted, decide_at_most
from dmljax._diagonal_matrix1 import diagonal_matrix1
from dmljax._nonzero_coordinates import NonzeroCoordinates, nonzero_coordinates
from dmljax._one_hot import one_hot as _one_hot
from dmljax._padding import padding
from dmljax._padding_forms import Pads
from dmljax._primitive import compiled
from dmljax._types import INT32_MAX, INT32_MIN, is_integer

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
]
# The place of a mode is its number in DirectML.
_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def pad(
    array: ArrayLike,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: Any = 0,
    reflect_type: str = "even",
) -> jax.Array:
    """Pads an array, as ``jax.numpy.pad`` does.

    Args:
      array: (...) of any type.
      pad_width: the numbers of elements to add: one number, one pair (before, after),
        or a pair for each axis.
      mode: "constant", "edge", "reflect", "symmetric" or "wrap".
      constant_values: what "constant" adds, in the same forms as `pad_width`. They take
        the type of `array`.
      reflect_type: "even".

    Raises:
      NotImplementedError: for another mode or another `reflect_type`.
      TypeError: if `array` is not an array, or a width is not an integer.
      ValueError: if a width is negative, or there is not one pair for each axis.

    >>> pad(jnp.array([1, 2, 3]), (1, 2), mode="reflect")
    Array([2, 1, 2, 3, 2, 1], dtype=int32)
    """
    name = "dmljax.numpy.pad"
    x = _as_array("pad", "array", array)
    if mode not in _MODES or reflect_type != "even":
        raise NotImplementedError(
            f"{name} has the modes {', '.join(_MODES)} with reflect_type='even', not "
            f"mode={mode!r} with reflect_type={reflect_type!r}. Use jax.numpy.pad."
        )
    sides = _split_sides("pad_width", np.asarray(pad_width), x.ndim)
    starts, ends = (as_sizes(name, "pad_width", side) for side in sides)
    if not all(decide_at_most(name, 0, width) for width in starts + ends):
        raise ValueError(f"{name}: pad_width is {pad_width}; none may be negative.")
    if mode != "constant":
        return padding(x, starts, ends, mode=_MODES.index(mode))
    return _pad_constant(x, jnp.asarray(constant_values), starts, ends)


@compiled
def _pad_constant(
    x: jax.Array, values: jax.Array, /, starts: Pads, ends: Pads
) -> jax.Array:
    """Pads with one value, or with one for each side of each axis."""
    values = lax.convert_element_type(values, x.dtype)
    if values.ndim == 0:
        return padding(x, starts, ends, value=values)
    sides = _split_sides("constant_values", values, x.ndim)
    # One side after the other: a later axis gets the corners, as in jax.numpy.
    for axis, side in itertools.product(range(x.ndim), (0, 1)):
        pads = [[0] * x.ndim, [0] * x.ndim]
        pads[side][axis] = (starts, ends)[side][axis]
        x = padding(x, *pads, value=sides[side][axis])
    return x


def argwhere(
    a: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> jax.Array:
    """Finds the coordinates of non-zero elements, as ``jax.numpy.argwhere`` does.

    The arguments are those of ``nonzero``, but `a` may have rank 0.

    Returns:
      (size, rank) integers of JAX's default type.
    """
    x = _as_array("argwhere", "a", a)
    columns = nonzero(jnp.atleast_1d(x), size=size, fill_value=fill_value)
    return jnp.stack(columns, 1)[:, : x.ndim]


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> tuple[jax.Array, ...]:
    """Finds the coordinates of non-zero elements, as ``jax.numpy.nonzero`` does.

    Args:
      a: (...) of any type, with at least one dimension.
      size: the number of coordinates to return. Without it, there are as many as
        non-zero elements: then the call must be outside of ``jit``.
      fill_value: what stands past the count: a scalar, or a tuple of one for each
        dimension. None stands for 0.

    Returns:
      For each dimension, (size,) integers of JAX's default type.

    >>> nonzero(jnp.array([0, 5, 7, 0]), size=3, fill_value=-1)
    (Array([ 1,  2, -1], dtype=int32),)
    """
    x = _as_array("nonzero", "a", a)
    if x.ndim == 0:
        raise ValueError(
            "dmljax.numpy.nonzero: a has 0 dimensions. Write jnp.atleast_1d(a)."
        )
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * x.ndim
    if len(fills) != x.ndim or any(map(np.ndim, fills)):
        raise ValueError(
            f"dmljax.numpy.nonzero: fill_value is {fill_value}; it must be a scalar or "
            f"a tuple of {x.ndim}."
        )
    found, rows = _find(x, size)
    if 0 in (x.size, rows):  # jax.numpy then ignores fill_value
        fills = (None,) * x.ndim
    return _split_columns(found, fills, rows)


@compiled
def _split_columns(
    found: NonzeroCoordinates, fills: tuple[Any, ...], /, rows: int
) -> tuple[jax.Array, ...]:
    """Returns each coordinate of the first rows, with its `fill` past the count."""
    past = lax.iota(np.uint32, rows) >= found.count
    coordinates = found.coordinates[:rows].astype(jnp.result_type(int))
    return tuple(
        column if fill is None else jnp.where(past, fill, column)
        for fill, column in zip(fills, coordinates.T, strict=True)
    )


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> jax.Array:
    """Finds non-zero elements of the flat array, as ``jax.numpy.flatnonzero`` does."""
    flat = jnp.ravel(_as_array("flatnonzero", "a", a))
    return nonzero(flat, size=size, fill_value=fill_value)[0]


def extract(
    condition: ArrayLike,
    arr: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
) -> jax.Array:
    """Returns elements where a condition holds, as ``jax.numpy.extract`` does.

    It is ``compress`` of both arrays as flat ones.

    >>> x = jnp.array([1.0, 5.0, 7.0])
    >>> extract(x > 2, x, size=3)
    Array([5., 7., 0.], dtype=float32)
    """
    flat = jnp.ravel(_as_array("extract", "condition", condition))
    values = _as_array("extract", "arr", arr)
    return compress(flat, values, size=size, fill_value=fill_value)


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
) -> jax.Array:
    """Returns slices where a condition holds, as ``jax.numpy.compress`` does.

    Args:
      condition: (n,) truth values. Slices past its end are not returned.
      a: (...) of any type. The result is differentiable in it.
      axis: the dimension along which slices are taken; None flattens `a`.
      size: the number of slices to return. Without it, the call must be outside of
        ``jit``.
      fill_value: what stands past the last one. It takes the type of `a`.

    >>> compress(jnp.array([True, False, True]), jnp.array([[1, 2, 3]]), axis=1)
    Array([[1, 3]], dtype=int32)
    """
    chosen = _as_array("compress", "condition", condition)
    values = _as_array("compress", "a", a)
    fill = _as_array("compress", "fill_value", fill_value)
    if chosen.ndim != 1:
        raise ValueError(
            "dmljax.numpy.compress: condition has "
            f"{counted(chosen.ndim, 'dimension')}; it must have 1."
        )
    values = jnp.ravel(values) if axis is None else jnp.moveaxis(values, axis, 0)
    length = values.shape[0]
    chosen, extra = chosen[:length], chosen[length:]
    # Rows past the count hold an index past the end of the axis. JAX takes a symbolic
    # size to be below 2^31.
    end = length if isinstance(length, int) else INT32_MAX
    found, rows = _find(chosen, size, end)
    if size is None and extra.size and jnp.any(extra):
        raise ValueError(
            "dmljax.numpy.compress: condition is true past the end of the axis, which "
            f"has {length} elements."
        )
    taken = _take(values, found.coordinates, fill, rows, end)
    return jnp.moveaxis(taken, 0, axis or 0)


@compiled
def _take(
    values: jax.Array, coordinates: jax.Array, fill: jax.Array, /, rows: int, end: int
) -> jax.Array:
    """Returns the elements of `values` at the first rows, and `fill` past the end."""
    index = coordinates[:rows, 0]
    # No element is read twice: the gradient is a scatter that has nothing to add up.
    found = values.at[index].get(
        mode="fill", unique_indices=True, indices_are_sorted=True
    )
    inside = jnp.expand_dims(index < end, tuple(range(1, values.ndim)))
    return jnp.where(inside, found, lax.convert_element_type(fill, values.dtype))


def tril(m: ArrayLike, k: int = 0) -> jax.Array:
    """Keeps the lower triangle, up to diagonal `k`, as ``jax.numpy.tril`` does.

    >>> tril(jnp.ones((2, 3)))
    Array([[1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    return _clear_diagonals("tril", m, operator.index(k) + 1, INT32_MAX)


def triu(m: ArrayLike, k: int = 0) -> jax.Array:
    """Keeps the upper triangle, from diagonal `k` on, as ``jax.numpy.triu`` does."""
    return _clear_diagonals("triu", m, INT32_MIN, operator.index(k))


def one_hot(
    x: Any, num_classes: int, *, dtype: DTypeLike | None = None, axis: int = -1
) -> jax.Array:
    """Makes one-hot sequences, as ``jax.nn.one_hot`` does.

    A negative index gives zeros, and so does one of `num_classes` or more. (In
    ``dmljax.one_hot``, as in DirectML, -1 is the last class.)

    Args:
      x: (...) indices, an array or a list. A float that is no whole number gives zeros.
      num_classes: the length of the sequences.
      dtype: of the result. None stands for JAX's default floating-point type.
      axis: the dimension of the result along which the sequences lie. The name of a
        mapped axis, which jax.nn's takes, is a NotImplementedError.

    >>> one_hot(jnp.array([0, 2, -1]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.],
           [0., 0., 0.]], dtype=float32)
    """
    if not hasattr(axis, "__index__"):
        raise NotImplementedError(
            f"dmljax.numpy.one_hot has no axis {axis!r}. Use jax.nn.one_hot."
        )
    index = jnp.asarray(x)
    if not is_integer(index.dtype):
        number = jnp.real(index).astype(np.int32)
        index = jnp.where(index == number.astype(index.dtype), number, -1)
    index = jnp.expand_dims(index, axis)
    size = as_size("dmljax.numpy.one_hot", "num_classes", num_classes)
    off_on = np.array([0, 1], jnp.result_type(float) if dtype is None else dtype)
    if size == 0:  # the operator has no such sequences
        shape = [*index.shape]
        shape[axis] = 0
        return jnp.zeros(shape, off_on.dtype)
    # A negative index becomes a large one. Types of 8 bits can't hold every size.
    index = index.astype(np.uint64 if index.dtype.itemsize == 8 else np.uint32)
    return _one_hot(index, off_on, size=size, axis=axis)


def _as_array(function: str, name: str, value: ArrayLike) -> jax.Array:
    """Returns an argument as an array, and refuses a list, as jax.numpy does."""
    given = unwrapped(value)
    arrays = (jax.Array, np.ndarray, np.generic)
    if not isinstance(given, (*arrays, int, float, complex)):
        raise TypeError(
            f"dmljax.numpy.{function}: {name} is {type(given).__name__}; it must be an "
            "array or a number. Convert it with jnp.asarray."
        )
    return jnp.asarray(given)


def _split_sides(name: str, given: Any, rank: int) -> Any:
    """Returns what stands before each axis and what stands after it, (2, rank)."""
    library = np if isinstance(given, np.ndarray) else jnp
    try:
        return library.broadcast_to(given, (rank, 2)).T
    except ValueError:
        raise ValueError(
            f"dmljax.numpy.pad: {name} has sizes {given.shape}; it must be a number, a "
            f"pair (before, after), or a pair for each of the {rank} axes."
        ) from None


def _find(
    x: jax.Array, size: int | None, fill: int = 0
) -> tuple[NonzeroCoordinates, int]:
    """Finds coordinates, and returns how many rows of them to return."""
    found = nonzero_coordinates(x, size=size, fill=fill)
    if size is not None:
        return found, size
    if isinstance(found.count, jax.core.Tracer):
        raise jax.errors.ConcretizationTypeError(
            found.count,
            "A program that is traced, as by jit and vmap, needs size=, the number of "
            "elements to return.",
        )
    return found, int(found.count)


def _clear_diagonals(function: str, m: ArrayLike, begin: int, end: int) -> jax.Array:
    """Puts 0 on the diagonals from `begin` on and before `end`."""
    x = _as_array(function, "m", m)
    if x.ndim < 2:
        raise ValueError(
            f"dmljax.numpy.{function}: m has {counted(x.ndim, 'dimension')}; it must "
            "have at least 2."
        )
    # No matrix has diagonals beyond int32.
    begin, end = (min(max(k, INT32_MIN), INT32_MAX) for k in (begin, end))
    return diagonal_matrix1(x, value=0, fill_begin=begin, fill_end=end)
