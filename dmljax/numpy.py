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

As in jax.numpy, 64-bit input becomes 32 bits where x64 mode is off; a list is refused;
and without `size`, the number of coordinates or elements to return, a call must be
outside of ``jit``. Nothing is computed here: a function turns its arguments into
those that an operator takes. What breaks a rule is a TypeError or a ValueError.
"""

import itertools
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike, DTypeLike

from dmljax._arguments import as_array, as_dtype, as_size, as_sizes, unwrapped
from dmljax._check import counted, decide_at_most, require
from dmljax._diagonal_matrix1 import diagonal_matrix1
from dmljax._nonzero_coordinates import nonzero_coordinates
from dmljax._nonzero_coordinates_result import NonzeroCoordinates
from dmljax._one_hot import one_hot as _one_hot
from dmljax._padding import padding
from dmljax._padding_forms import Pads
from dmljax._primitive import compiled
from dmljax._types import INT32_MAX, INT32_MIN, is_integer

__all__ = ["argwhere", "compress", "extract", "flatnonzero", "nonzero"]
__all__ += ["one_hot", "pad", "tril", "triu"]
HERE = "dmljax.numpy."
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

    `mode` is "constant", "edge", "reflect", "symmetric" or "wrap", and `reflect_type`
    is "even". Others are a NotImplementedError. `pad_width` and `constant_values` are
    one number, one pair (before, after), or a pair for each axis.

    >>> pad(jnp.array([1, 2, 3]), (1, 2), mode="reflect")
    Array([2, 1, 2, 3, 2, 1], dtype=int32)
    """
    name = HERE + "pad"
    x = _as_array(name, "array", array)
    if mode not in _MODES or reflect_type != "even":
        raise NotImplementedError(
            f"{name} has the modes {', '.join(_MODES)} with reflect_type='even', not "
            f"mode={mode!r} with reflect_type={reflect_type!r}. Use jax.numpy.pad."
        )
    sides = _split_sides("pad_width", np.asarray(pad_width), x.ndim)
    starts, ends = (as_sizes(name, "pad_width", side) for side in sides)
    if not all(decide_at_most(name, 0, width) for width in starts + ends):
        raise ValueError(f"{name}: pad_width is {pad_width}; none may be negative.")
    # Zero needs no conversion. Its program is one function, not two.
    if mode != "constant" or (type(constant_values) is int and constant_values == 0):
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


def _split_sides(name: str, given: Any, rank: int) -> Any:
    """Returns what stands before each axis and what stands after it, (2, rank)."""
    library = np if isinstance(given, np.ndarray) else jnp
    try:
        return library.broadcast_to(given, (rank, 2)).T
    except ValueError:
        raise ValueError(
            f"{HERE}pad: {name} has sizes {given.shape}; it must be a number, a pair "
            f"(before, after), or a pair for each of the {rank} axes."
        ) from None


def argwhere(
    a: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> jax.Array:
    """Finds the coordinates of non-zero elements, as ``jax.numpy.argwhere`` does.

    They are (size, rank) integers. ``nonzero`` describes the arguments.
    """
    x = _as_array(HERE + "argwhere", "a", a)
    columns = nonzero(jnp.atleast_1d(x), size=size, fill_value=fill_value)
    return jnp.stack(columns, 1)[:, : x.ndim]


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> tuple[jax.Array, ...]:
    """Finds the coordinates of non-zero elements, as ``jax.numpy.nonzero`` does.

    For each dimension they are (size,) integers of JAX's default type. Past the count
    they are `fill_value`: a scalar, or a tuple of one for each dimension. None stands
    for 0.

    >>> nonzero(jnp.array([0, 5, 7, 0]), size=3, fill_value=-1)
    (Array([ 1,  2, -1], dtype=int32),)
    """
    name = HERE + "nonzero"
    x = _as_array(name, "a", a)
    require(name, x.ndim > 0, "a has 0 dimensions. Write jnp.atleast_1d(a).")
    values = fill_value if isinstance(fill_value, tuple) else (fill_value,) * x.ndim
    if len(values) != x.ndim or any(map(np.ndim, values)):
        raise ValueError(
            f"{name}: fill_value is {fill_value}; it must be a scalar or a tuple of "
            f"{x.ndim}."
        )
    found, rows = _find(x, size)
    if 0 in (x.size, rows):  # jax.numpy then ignores fill_value
        values = (None,) * x.ndim
    return _split_columns(found, values, rows)


def _find(
    x: jax.Array, size: int | None, fill: int = 0
) -> tuple[NonzeroCoordinates, int]:
    """Finds coordinates, and returns how many rows of them to return."""
    found = nonzero_coordinates(x, size=size, fill=fill)
    if size is not None:
        return found, found.coordinates.shape[0]
    if isinstance(found.count, jax.core.Tracer):
        raise jax.errors.ConcretizationTypeError(
            found.count,
            "A program that is traced, as by jit and vmap, needs size=, the number of "
            "elements to return.",
        )
    return found, int(found.count)


@compiled
def _split_columns(
    found: NonzeroCoordinates, values: tuple[Any, ...], /, rows: int
) -> tuple[jax.Array, ...]:
    """Returns each coordinate of the first rows, with its `fill` past the count."""
    past = lax.iota(np.uint32, rows) >= found.count
    coordinates = found.coordinates[:rows].astype(jnp.result_type(int))
    return tuple(
        column if fill is None else jnp.where(past, fill, column)
        for fill, column in zip(values, coordinates.T, strict=True)
    )


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> jax.Array:
    """Finds non-zero elements of the flat array, as ``jax.numpy.flatnonzero`` does."""
    flat = jnp.ravel(_as_array(HERE + "flatnonzero", "a", a))
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
    flat = jnp.ravel(_as_array(HERE + "extract", "condition", condition))
    values = _as_array(HERE + "extract", "arr", arr)
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

    Slices past the end of `condition` are not returned. What stands past the last one
    is `fill_value`, in the type of `a`. The result is differentiable in `a`.

    >>> compress(jnp.array([True, False, True]), jnp.array([[1, 2, 3]]), axis=1)
    Array([[1, 3]], dtype=int32)
    """
    name = HERE + "compress"
    chosen = _as_array(name, "condition", condition)
    values = _as_array(name, "a", a)
    fill = _as_array(name, "fill_value", fill_value)
    rank = counted(chosen.ndim, "dimension")
    require(name, chosen.ndim == 1, f"condition has {rank}; it must have 1.")
    values = jnp.ravel(values) if axis is None else jnp.moveaxis(values, axis, 0)
    length = values.shape[0]
    chosen, extra = chosen[:length], chosen[length:]
    # Rows past the count hold an index past the end of the axis. JAX takes a symbolic
    # size to be below 2^31.
    end = length if isinstance(length, int) else INT32_MAX
    found, rows = _find(chosen, size, end)
    past = size is None and extra.size > 0 and bool(jnp.any(extra))
    require(
        name,
        not past,
        f"condition is true past the end of the axis, which has {length} elements.",
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
    x = _as_matrices("tril", m)
    begin = as_bound(operator.index(k) + 1)
    return diagonal_matrix1(x, value=0, fill_begin=begin, fill_end=None)


def triu(m: ArrayLike, k: int = 0) -> jax.Array:
    """Keeps the upper triangle, from diagonal `k` on, as ``jax.numpy.triu`` does."""
    x = _as_matrices("triu", m)
    end = as_bound(operator.index(k))
    return diagonal_matrix1(x, value=0, fill_begin=None, fill_end=end)


def _as_matrices(function: str, m: ArrayLike) -> jax.Array:
    x = _as_array(HERE + function, "m", m)
    rank = counted(x.ndim, "dimension")
    require(HERE + function, x.ndim >= 2, f"m has {rank}; it must have at least 2.")
    return x


def as_bound(diagonal: int) -> int:
    """Returns the number of a diagonal as an INT32: no matrix has others."""
    return min(max(diagonal, INT32_MIN), INT32_MAX)


def one_hot(
    x: Any, num_classes: int, *, dtype: DTypeLike | None = None, axis: int = -1
) -> jax.Array:
    """Makes one-hot sequences, as ``jax.nn.one_hot`` does.

    An index that is negative, `num_classes` or more, or no whole number gives zeros.
    (In ``dmljax.one_hot``, as in DirectML, -1 is the last class.) `x` may be a list.
    jax.nn's takes the name of a mapped axis. Here that is a NotImplementedError.

    >>> one_hot(jnp.array([0, 2, -1]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.],
           [0., 0., 0.]], dtype=float32)
    """
    name = HERE + "one_hot"
    if not hasattr(axis, "__index__"):
        raise NotImplementedError(f"{name} has no axis {axis!r}. Use jax.nn.one_hot.")
    index = jnp.asarray(as_array(name, "x", jnp.asarray(x)))
    if not is_integer(index.dtype):
        number = jnp.real(index).astype(np.int32)
        index = jnp.where(index == number.astype(index.dtype), number, -1)
    index = jnp.expand_dims(index, axis)
    size = as_size(name, "num_classes", num_classes)
    kind = as_dtype(name, jnp.result_type(float) if dtype is None else dtype)
    off_on = np.array([0, 1], jax.dtypes.canonicalize_dtype(kind))
    if size == 0:  # the operator has no such sequences
        return lax.slice_in_dim(index, 0, 0, axis=axis).astype(off_on.dtype)
    # A negative index becomes a large one. Types of 8 bits can't hold every size.
    index = index.astype(np.uint64 if index.dtype.itemsize == 8 else np.uint32)
    return _one_hot(index, off_on, size=size, axis=axis)


def _as_array(name: str, argument: str, value: ArrayLike) -> jax.Array:
    """Returns an argument as an array, and refuses a list, as jax.numpy does."""
    given = unwrapped(value)
    arrays = (jax.Array, np.ndarray, np.generic)
    if not isinstance(given, (*arrays, int, float, complex)):
        raise TypeError(
            f"{name}: {argument} is {type(given).__name__}; it must be an array or a "
            "number. Convert it with jnp.asarray."
        )
    return jnp.asarray(as_array(name, argument, jnp.asarray(given)))
