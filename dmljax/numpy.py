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

As in jax.numpy, 64-bit input becomes 32 bits where x64 mode is off, and a list is
refused. Without `size`, the number of coordinates or elements to return, a call must be
outside of ``jit``, or search an array of NumPy. What breaks a rule is a TypeError or a
ValueError.

Each function is one compiled function, with a few lines before it that make static
arguments of what decides the sizes. Nothing is computed here but by an operator and
around it.
"""

from __future__ import annotations

import operator
import typing
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.export import is_symbolic_dim
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import NamedSharding, PartitionSpec
from jax.typing import ArrayLike, DTypeLike

from dmljax._arguments import (
    KEPT,
    as_array,
    as_dtype,
    as_element,
    as_size,
    as_sizes,
    cast_array,
    check_static,
    unwrapped,
)
from dmljax._check import as_python, at_most, counted, decide_at_most, require, show
from dmljax._diagonal_matrix1 import diagonal_matrix1
from dmljax._jax import names_axes, with_weak_type
from dmljax._nonzero_coordinates import nonzero_coordinates
from dmljax._nonzero_coordinates_result import NonzeroCoordinates, read_rows
from dmljax._one_hot import one_hot as _one_hot
from dmljax._padding import padding
from dmljax._padding_forms import PaddingMode, Pads
from dmljax._primitive import compiled, evaluate
from dmljax._types import INT32_MAX, INT32_MIN, index_mode, is_integer, x64_enabled

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
HERE = "dmljax.numpy."
# The place of a mode is its number in DirectML.
Mode = Literal["constant", "edge", "reflect", "symmetric", "wrap"]
_MODES = typing.get_args(Mode)


def __dir__() -> list[str]:
    return __all__


def pad(
    array: ArrayLike,
    pad_width: Any,
    mode: Mode = "constant",
    *,
    constant_values: Any = 0,
    reflect_type: Literal["even"] = "even",
    stat_length: None = None,
    end_values: None = None,
) -> jax.Array:
    """Pads an array, as ``jax.numpy.pad`` does.

    Args:
      array: (...) of any type and rank.
      pad_width: how many elements to add: one number for both ends of every axis, one
        pair (before, after) for every axis, or a pair for each axis. The numbers are
        static: they are known when a program is traced.
      mode: "constant", "edge", "reflect", "symmetric" or "wrap".
      constant_values: the values of "constant", in the forms of `pad_width`. They are
        converted to the type of `array`. Floats out of range saturate.
      reflect_type: "even". There is no other type here.
      stat_length: None. Only modes that are not here use it.
      end_values: None. Only a mode that is not here uses it.

    Returns:
      The padded array. It is differentiable in `array` and `constant_values`.

    Raises:
      NotImplementedError: for another mode or another `reflect_type`.
      TypeError: if `array` is not an array, or a width is not an integer.
      ValueError: if a width is negative, if there is not one for each axis, if an axis
        of size 0 would have to be repeated, or if `constant_values` is given beside
        another mode than "constant".

    >>> pad(jnp.array([1, 2, 3]), (1, 2), mode="reflect")
    Array([2, 1, 2, 3, 2, 1], dtype=int32)
    """
    name = HERE + "pad"
    x = _as_array(name, "array", array)
    if mode not in _MODES or reflect_type != "even":
        raise NotImplementedError(_why_no_mode(name, mode, reflect_type))
    starts, ends = _as_widths(name, pad_width, x.ndim)
    if mode == "constant":
        values = _as_values(name, constant_values, x.dtype)
    else:
        values = 0
        zero = type(constant_values) is int and constant_values == 0
        require(name, zero, f"constant_values is given, which mode={mode!r} ignores.")
    unused = stat_length is None and end_values is None
    require(name, unused, f"mode={mode!r} has no stat_length and no end_values.")
    return _pad(x, values, starts, ends, mode)


def _why_no_mode(name: str, mode: Any, reflect_type: Any) -> str:
    """Says which name to write for a mode, or that jax.numpy has the mode."""
    upper = mode.upper() if isinstance(mode, str) else ""
    meant = PaddingMode.OTHER_NAMES.get(upper, upper)
    if mode not in _MODES and meant in PaddingMode.__members__:
        written = _MODES[PaddingMode[meant]]
        return f"{name} has no mode {mode!r}. Write mode={written!r}."
    return (
        f"{name} has the modes {', '.join(_MODES)} with reflect_type='even', not "
        f"mode={mode!r} with reflect_type={reflect_type!r}. Use jax.numpy.pad."
    )


def _as_widths(name: str, pad_width: Any, rank: int) -> tuple[Pads, Pads]:
    """Returns how many elements to add before each axis, and how many after."""
    sides: Any
    if type(pad_width) is int:
        sides = [(pad_width,) * rank] * 2
    # The usual form is recognized without a loop in Python.
    elif (
        type(pad_width) is tuple
        and len(pad_width) == rank
        and {*map(type, pad_width)} == {tuple}
        and {*map(len, pad_width)} == {2}
    ):
        sides = zip(*pad_width, strict=True)
    else:
        for width in jax.tree.leaves(pad_width):
            check_static(name, "pad_width", width, "integers")
        sides = _split_sides("pad_width", np.asarray(pad_width), rank)
    starts, ends = (as_sizes(name, "pad_width", side) for side in sides)
    return starts, ends


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


def _as_values(name: str, values: Any, dtype: np.dtype) -> Any:
    """Returns constant values as an array or a number that a program takes."""
    if type(values) is float or (type(values) is int and abs(values) <= INT32_MAX):
        return values

    def fit(value: Any) -> Any:
        # JAX takes no number that its default integer does not hold, but NumPy pads
        # with every number that the array holds.
        python = isinstance(value, int) and not isinstance(value, bool)
        return as_element(name, "constant_values", value, dtype) if python else value

    fitted = jax.tree.map(fit, unwrapped(values))
    return jnp.asarray(fitted)


@compiled("starts", "ends", "mode")
def _pad(x: jax.Array, values: Any, starts: Pads, ends: Pads, mode: Mode) -> jax.Array:
    name = HERE + "pad"
    legal = all(decide_at_most(name, 0, width) for width in starts + ends)
    widths = [*zip(starts, ends, strict=True)]
    require(name, legal, f"pad_width is {widths}; none may be negative.")
    values = cast_array(jnp.asarray(values), x.dtype)
    single = mode != "constant" or values.ndim == 0
    padded = padding(
        x,
        starts,
        ends,
        mode=_MODES.index(mode),
        value=values if single else 0,
    )
    if not single:
        before, after = _split_sides("constant_values", values, x.ndim)
        padded = _put_sides(padded, (starts, before), (ends, after))
    return as_weak_as(x, padded)


def _put_sides(x: jax.Array, before: Any, after: Any) -> jax.Array:
    """Puts values into the padding of each axis. A later axis gets the corners."""
    for axis, size in enumerate(x.shape):
        (start, first), (end, last) = (
            (pads[axis], v[axis]) for pads, v in (before, after)
        )
        shape = [1] * x.ndim
        shape[axis] = size
        with index_mode(size) as integer:
            position = lax.broadcasted_iota(integer, shape, axis)
            x = jnp.where(position < start, first, x)
            x = jnp.where(position >= size - end, last, x)
    return x


def argwhere(
    a: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> jax.Array:
    """Finds the coordinates of non-zero elements, as ``jax.numpy.argwhere`` does.

    Args:
      a: (...) of any type and rank.
      size: the number of rows to return. If there are more non-zero elements, the last
        ones are dropped in silence: ``dmljax.nonzero_coordinates`` returns their count
        as well. None stands for a row for each one.
      fill_value: the coordinates in the rows past the count, as in ``nonzero``.

    Returns:
      (size, rank) integers of JAX's default type.

    Raises:
      TypeError: if `a` is not an array.
      ValueError: if a coordinate may not fit in the type.
      ConcretizationTypeError: if there is no `size`, and `a` is traced.

    >>> argwhere(jnp.array([[0, 5], [7, 0]]), size=3)
    Array([[0, 1],
           [1, 0],
           [0, 0]], dtype=int32)
    """
    name = HERE + "argwhere"
    rows = _as_rows(a, size)
    x = _as_array(name, "a", a)
    columns = _nonzero(name, jnp.atleast_1d(x), rows, fill_value)
    return jnp.stack(columns, 1)[:, : x.ndim]


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> tuple[jax.Array, ...]:
    """Finds the coordinates of non-zero elements, as ``jax.numpy.nonzero`` does.

    NaN and subnormal numbers are not zero.

    Args:
      a: (...) of any type, with at least one dimension.
      size: the number of coordinates to return. If there are more non-zero elements,
        the last ones are dropped in silence: ``dmljax.nonzero_coordinates`` returns
        their count as well. None stands for all.
      fill_value: the coordinates past the count: a scalar, or a tuple of one for each
        dimension. None stands for 0.

    Returns:
      For each dimension (size,) integers of JAX's default type. Other types of
      `fill_value` widen it.

    Raises:
      TypeError: if `a` is not an array.
      ValueError: if `a` has no dimension, if a coordinate may not fit in the type, or
        if there is not one `fill_value` for each dimension.
      ConcretizationTypeError: if there is no `size`, and `a` is traced.

    >>> nonzero(jnp.array([0, 5, 7, 0]), size=3, fill_value=-1)
    (Array([ 1,  2, -1], dtype=int32),)
    """
    name = HERE + "nonzero"
    x = _as_array(name, "a", a)
    require(name, x.ndim > 0, "a has 0 dimensions. Write jnp.atleast_1d(a).")
    return _nonzero(name, x, _as_rows(a, size), fill_value)


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> jax.Array:
    """Finds non-zero elements of the flat array, as ``jax.numpy.flatnonzero`` does.

    Args:
      a: (...) of any type and rank.
      size: the number of indices to return. If there are more non-zero elements, the
        last ones are dropped in silence. None stands for all.
      fill_value: the index past the count. None stands for 0.

    Returns:
      (size,) integers of JAX's default type.

    Raises:
      TypeError: if `a` is not an array.
      ValueError: if an index may not fit in the type.
      ConcretizationTypeError: if there is no `size`, and `a` is traced.

    >>> flatnonzero(jnp.array([[0, 5], [7, 0]]), size=3, fill_value=-1)
    Array([ 1,  2, -1], dtype=int32)
    """
    name = HERE + "flatnonzero"
    rows = _as_rows(a, size)
    flat = jnp.ravel(_as_array(name, "a", a))
    return _nonzero(name, flat, rows, fill_value)[0]


def _as_rows(a: Any, size: int | None) -> int | None:
    """Returns the number of rows, if it is known without a search on a device."""
    if size is None and isinstance(a, np.ndarray):
        return int(np.count_nonzero(a))
    return size


def _nonzero(
    name: str, x: jax.Array, size: int | None, fill_value: Any
) -> tuple[jax.Array, ...]:
    values = fill_value if isinstance(fill_value, tuple) else (fill_value,) * x.ndim
    if len(values) != x.ndim or any(map(np.ndim, values)):
        raise ValueError(
            f"{name}: fill_value is {fill_value}; it must be a scalar or a tuple of "
            f"{x.ndim}."
        )
    _check_coordinates(name, x.shape)
    found, rows = _find(x, size)
    if 0 in (x.size, rows):  # jax.numpy then ignores fill_value
        values = (None,) * x.ndim
    return _split_columns(found, values, rows)


def _check_coordinates(name: str, sizes: tuple[int, ...]) -> None:
    """Requires that coordinates, which are uint32, fit in JAX's default integers."""
    # JAX takes a symbolic size to be below 2^31.
    largest = max((size for size in sizes if isinstance(size, int)), default=0)
    kind = jnp.result_type(int)
    require(
        name,
        largest <= int(jnp.iinfo(kind).max) + 1,
        f"a has sizes {show(sizes)}; coordinates of {largest} elements do not fit in "
        f"{kind}. Turn on JAX's x64 mode with jax.config.update('jax_enable_x64', "
        "True), or use dmljax.nonzero_coordinates, whose coordinates are uint32.",
    )


def _find(x: jax.Array, size: int | None) -> tuple[NonzeroCoordinates, int]:
    """Finds coordinates, and returns how many rows of them to return."""
    found = nonzero_coordinates(x, size=size)
    if size is not None:
        return found, found.coordinates.shape[0]
    if isinstance(found.count, jax.core.Tracer):
        raise jax.errors.ConcretizationTypeError(
            found.count,
            "A program that is traced, as by jit and vmap, needs size=, the number of "
            "elements to return.",
        )
    return found, int(found.count)


@compiled("rows")
def _split_columns(
    found: NonzeroCoordinates, values: tuple[Any, ...], rows: int
) -> tuple[jax.Array, ...]:
    """Returns each coordinate of the first rows, with its `fill` past the count."""
    past = lax.iota(np.uint32, rows) >= found.count
    # All columns have one type, which holds the fills as well.
    dtype = jnp.result_type(int, *jax.tree.leaves(values))
    coordinates = lax.slice_in_dim(found.coordinates, 0, rows).astype(dtype)
    return tuple(
        column if fill is None else jnp.where(past, jnp.asarray(fill, dtype), column)
        for fill, column in zip(values, coordinates.T, strict=True)
    )


def extract(
    condition: ArrayLike,
    arr: ArrayLike,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
) -> jax.Array:
    """Returns elements where a condition holds, as ``jax.numpy.extract`` does.

    Args:
      condition: (...) of any type. Elements that are not zero choose.
      arr: (...) of any type. Both arrays are taken as flat ones.
      size: the number of elements to return. If more are chosen, the last ones are
        dropped in silence. None stands for all.
      fill_value: the number past the last element, in the type of `arr`.

    Returns:
      (size,) elements of `arr`. They are differentiable in `arr` and `fill_value`.

    Raises:
      TypeError: if an argument is not an array.
      ValueError: if an element past the end of `arr` is chosen.
      ConcretizationTypeError: if there is no `size`, and `condition` is traced.

    >>> x = jnp.array([1.0, 5.0, 7.0])
    >>> extract(x > 2, x, size=3)
    Array([5., 7., 0.], dtype=float32)
    """
    name = HERE + "extract"
    chosen = jnp.ravel(_as_array(name, "condition", condition))
    values = jnp.ravel(_as_array(name, "arr", arr))
    fill = _as_array(name, "fill_value", fill_value)
    result = _compress(name, condition, chosen, values, 0, size, fill)
    return as_weak_as(values, result) if size is None else result


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
    out: None = None,
) -> jax.Array:
    """Returns slices where a condition holds, as ``jax.numpy.compress`` does.

    Args:
      condition: (n,) of any type. Elements that are not zero choose. Slices past its
        end are not chosen.
      a: (...) of any type.
      axis: the dimension of `a` along which slices are chosen. None stands for that of
        the flat array.
      size: the number of slices to return. If more are chosen, the last ones are
        dropped in silence. None stands for all.
      fill_value: a number, or a slice, past the last one, in the type of `a`.
      out: None. JAX writes into no array.

    Returns:
      `a` with `size` slices along `axis`, differentiable in `a` and `fill_value`.

    Raises:
      TypeError: if an argument is not an array.
      ValueError: if `condition` has not one dimension, or if, without `size`, a slice
        past the end of `a` is chosen.
      NotImplementedError: if `out` is not None.
      ConcretizationTypeError: if there is no `size`, and `condition` is traced.

    >>> compress(jnp.array([True, False, True]), jnp.array([[1, 2, 3]]), axis=1)
    Array([[1, 3]], dtype=int32)
    """
    name = HERE + "compress"
    if out is not None:
        raise NotImplementedError(f"{name}: JAX writes into no array; leave out out=.")
    chosen = _as_array(name, "condition", condition)
    values = _as_array(name, "a", a)
    fill = _as_array(name, "fill_value", fill_value)
    rank = counted(chosen.ndim, "dimension")
    require(name, chosen.ndim == 1, f"condition has {rank}; it must have 1.")
    if axis is None:
        values = jnp.ravel(values)
    result = _compress(name, condition, chosen, values, axis or 0, size, fill)
    # With a size, the fill decides in jax.numpy, too. It has the type of `a`, not weak.
    return as_weak_as(values, result) if size is None else result


def _compress(
    name: str,
    condition: ArrayLike,
    chosen: jax.Array,
    values: jax.Array,
    axis: int,
    size: int | None,
    fill: jax.Array,
) -> jax.Array:
    """Returns the slices of `values` along `axis` that are chosen, and fills."""
    length = values.shape[axis]
    longer = not at_most(chosen.size, length)
    within = chosen[:length] if longer else chosen
    found, rows = _find(within, _as_rows(condition, size))
    if longer and size is None:
        known = condition if isinstance(condition, np.ndarray) else chosen
        past = bool(known.ravel()[length:].any())
        rule = f"condition is true past the end of the axis of {length} elements."
        require(name, not past, rule)
    return _take(values, found, fill, name, axis, rows)


@compiled("name", "axis", "rows")
def _take(
    values: jax.Array,
    found: NonzeroCoordinates,
    fill: jax.Array,
    name: str,
    axis: int,
    rows: int,
) -> jax.Array:
    """Returns the elements of `values` at the first rows, and `fill` past the count."""
    values = jnp.moveaxis(values, axis, 0)
    length, *sizes = values.shape
    row = lax.iota(np.uint32, rows)
    valid = row < found.count
    if values.size == 0:
        zero = values.dtype.type(0)
        taken = lax.pad(
            values, zero, [(0, rows - length, 0)] + [(0, 0, 0)] * len(sizes)
        )
    else:
        # With explicit axes the chosen slices are on every device.
        sharding = jax.typeof(values).sharding
        if names_axes(sharding.spec[0]):
            whole = PartitionSpec(None, *sharding.spec[1:])
            values = jax.reshard(values, NamedSharding(sharding.mesh, whole))
        index = lax.slice_in_dim(found.coordinates, 0, rows)[:, 0]
        taken = _read_slices(values, valid, index)
    try:
        filling = jnp.broadcast_to(cast_array(fill, values.dtype), taken.shape)
    except ValueError:
        raise ValueError(
            f"{name}: fill_value has sizes {show(fill.shape)}; it must be a "
            f"scalar, or fill slices of sizes {show(tuple(sizes))}."
        ) from None
    kept = valid.reshape((rows,) + (1,) * len(sizes))
    return jnp.moveaxis(jnp.where(kept, taken, filling), 0, axis)


def _read_slices(values: jax.Array, valid: jax.Array, index: jax.Array) -> jax.Array:
    """Reads valid rows, and in the others a slice that is in range for checkify."""
    length, *sizes = values.shape
    integer = np.int64 if x64_enabled() else np.int32
    if not isinstance(length, int) or length <= np.iinfo(integer).max:
        signed = lax.convert_element_type(index, integer)
        return read_rows(values, valid, (signed,))
    # The indices of jax.numpy are signed, and can't reach the end of such an array.
    inside = jnp.where(valid, index, np.uint32(0))
    slices = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(1, values.ndim)),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
    )
    mode = lax.GatherScatterMode.PROMISE_IN_BOUNDS
    return lax.gather(values, inside[:, None], slices, (1, *sizes), mode=mode)


def tril(m: ArrayLike, k: int | jax.Array = 0) -> jax.Array:
    """Keeps the lower triangle, up to diagonal `k`, as ``jax.numpy.tril`` does.

    Args:
      m: (..., height, width) of any type.
      k: the last diagonal that is kept, any integer. A ``jax.Array`` is data: it may be
        traced, and ``vmap`` gives each matrix a diagonal of its own.

    Returns:
      `m` with zeros above diagonal `k`. It is differentiable in `m`.

    Raises:
      TypeError: if `m` is not an array, or `k` is not an integer.
      ValueError: if `m` has fewer than two dimensions.

    >>> tril(jnp.ones((2, 3)))
    Array([[1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    return _triangle("tril", m, k)


def triu(m: ArrayLike, k: int | jax.Array = 0) -> jax.Array:
    """Keeps the upper triangle, from diagonal `k` on, as ``jax.numpy.triu`` does.

    Args:
      m: (..., height, width) of any type.
      k: the first diagonal that is kept, any integer. A ``jax.Array`` is data: it may
        be traced, and ``vmap`` gives each matrix a diagonal of its own.

    Returns:
      `m` with zeros below diagonal `k`. It is differentiable in `m`.

    Raises:
      TypeError: if `m` is not an array, or `k` is not an integer.
      ValueError: if `m` has fewer than two dimensions.

    >>> triu(jnp.ones((2, 3)), 1)
    Array([[0., 1., 1.],
           [0., 0., 1.]], dtype=float32)
    """
    return _triangle("triu", m, k)


def _triangle(function: str, m: ArrayLike, k: Any) -> jax.Array:
    x = _as_array(HERE + function, "m", m)
    if type(k) is not int:
        if is_symbolic_dim(k):  # no number yet when the program is traced
            k = jnp.asarray(k)
        if isinstance(k, jax.Array):
            return _keep(x, k, function, None)
        try:
            k = operator.index(k)
        except TypeError:
            raise TypeError(
                f"{HERE}{function}: k is {as_python(k)}; it must be an integer."
            ) from None
    return _keep(x, None, function, k)


@compiled("function", "k")
def _keep(
    x: jax.Array, diagonal: jax.Array | None, function: str, k: int | None
) -> jax.Array:
    """Keeps the triangle from or up to a diagonal, which is data or a number."""
    name = HERE + function
    rank = counted(x.ndim, "dimension")
    require(name, x.ndim >= 2, f"m has {rank}; it must have at least 2.")
    # The lower triangle ends before the next diagonal.
    lower = function == "tril"
    bound: Any
    if diagonal is None:
        bound = as_bound((k or 0) + lower)
    else:
        if not is_integer(diagonal.dtype):
            raise TypeError(
                f"{name}: k has data type {show(diagonal.dtype)}; it must have an "
                "integer type."
            )
        sizes = show(diagonal.shape)
        require(
            name,
            diagonal.ndim == 0,
            f"k has sizes {sizes}; it must be a scalar. jax.vmap gives each matrix of "
            "a batch one of its own.",
        )
        limits = jnp.iinfo(diagonal.dtype)
        least = jnp.asarray(max(limits.min, INT32_MIN), diagonal.dtype)
        most = jnp.asarray(min(limits.max, INT32_MAX - 1), diagonal.dtype)
        # No matrix has diagonal INT32_MAX.
        bound = lax.clamp(least, diagonal, most).astype(np.int32) + np.int32(lower)
    if lower:
        kept = diagonal_matrix1(x, value=0, fill_begin=bound, fill_end=None)
    else:
        kept = diagonal_matrix1(x, value=0, fill_begin=None, fill_end=bound)
    return as_weak_as(x, kept)


def as_bound(diagonal: int) -> int:
    """Returns the number of a diagonal as an INT32: no matrix has others."""
    return min(max(diagonal, INT32_MIN), INT32_MAX)


def one_hot(
    x: Any,
    num_classes: int,
    *,
    dtype: DTypeLike | None = None,
    axis: int = -1,
    out_sharding: Any = None,
) -> jax.Array:
    """Makes one-hot sequences, as ``jax.nn.one_hot`` does.

    Args:
      x: (...) of any type, or a list. An index that is negative, `num_classes` or more,
        or no whole number gives zeros. (In ``dmljax.one_hot``, as in DirectML, -1 is
        the last class.)
      num_classes: the number of elements of each sequence, at least 0.
      dtype: the type of the result. None stands for JAX's default float.
      axis: the place of the sequences among the dimensions of the result. The name of a
        mapped axis, which jax.nn's takes, is a NotImplementedError.
      out_sharding: the sharding of the result over explicit mesh axes. None stands for
        that of `x`.

    Returns:
      An array with one more dimension than `x`, of zeros and ones.

    Raises:
      TypeError: if `num_classes` is not an integer, or `dtype` is no type of numbers.
      ValueError: if `num_classes` is negative or `axis` is out of range.
      NotImplementedError: if `axis` is the name of a mapped axis.

    >>> one_hot(jnp.array([0, 2, -1]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.],
           [0., 0., 0.]], dtype=float32)
    """
    name = HERE + "one_hot"
    if not hasattr(axis, "__index__"):
        raise NotImplementedError(f"{name} has no axis {axis!r}. Use jax.nn.one_hot.")
    if not isinstance(x, jax.Array) or x.dtype not in KEPT:
        x = jnp.asarray(as_array(name, "x", jnp.asarray(x)))
    kind = None if dtype is None else as_dtype(name, dtype)
    size = as_size(name, "num_classes", num_classes)
    lit = _one_hot_classes(x, size, operator.index(axis), kind)
    return lit if out_sharding is None else jax.reshard(lit, out_sharding)


@compiled("size", "axis", "dtype")
def _one_hot_classes(
    index: jax.Array, size: int, axis: int, dtype: np.dtype | None
) -> jax.Array:
    name = HERE + "one_hot"
    legal = decide_at_most(name, 0, size)
    require(name, legal, f"num_classes is {size}; it must be at least 0.")
    if not is_integer(index.dtype):
        number = cast_array(jnp.real(index), np.dtype(np.int32))
        index = jnp.where(index == number.astype(index.dtype), number, -1)
    index = jnp.expand_dims(index, axis)
    kind = jax.dtypes.canonicalize_dtype(
        jnp.result_type(float) if dtype is None else dtype
    )
    if size == 0:  # the operator has no such sequences
        return lax.slice_in_dim(index, 0, 0, axis=axis).astype(kind)
    # A negative index becomes a large one. Types of 8 bits can't hold every size.
    index = index.astype(np.uint64 if index.dtype.itemsize == 8 else np.uint32)
    return _one_hot(index, np.array([0, 1], kind), size=size, axis=axis)


# The identity. Its result has a weak type, which no function of JAX gives an array.
_WEAK = Primitive("dmljax_weak")
_WEAK_PROGRAM = jax.jit(lambda x: (_WEAK.bind(x),))
_WEAK.def_impl(lambda x: evaluate("weak", _WEAK_PROGRAM, x)[0])
_WEAK.def_abstract_eval(with_weak_type)
ad.primitive_jvps[_WEAK] = lambda xs, tangents: (_WEAK.bind(*xs), tangents[0])
batching.primitive_batchers[_WEAK] = lambda xs, dims: (_WEAK.bind(*xs), dims[0])
mlir.register_lowering(_WEAK, lambda context, x: [x])


def as_weak_as(x: jax.Array, result: jax.Array) -> jax.Array:
    """Returns a result with a weak type if `x` has one, as jax.numpy does."""
    same: jax.Array = _WEAK.bind(result) if jax.typeof(x).weak_type else result
    return same


def _as_array(name: str, argument: str, value: ArrayLike) -> jax.Array:
    """Returns an argument as an array, and refuses a list, as jax.numpy does."""
    if isinstance(value, jax.Array) and value.dtype in KEPT:
        return value
    given = unwrapped(value)
    arrays = (jax.Array, np.ndarray, np.generic)
    if not isinstance(given, (*arrays, int, float, complex)):
        raise TypeError(
            f"{name}: {argument} is {type(given).__name__}; it must be an array or a "
            "number. Convert it with jnp.asarray."
        )
    return jnp.asarray(as_array(name, argument, jnp.asarray(given)))
