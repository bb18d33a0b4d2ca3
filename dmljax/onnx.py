"""The operators under the names of ONNX: inputs in its order, attributes by name.

>>> import jax.numpy as jnp
>>> import dmljax.onnx as dox
>>> dox.pad(jnp.array([1, 2, 3]), [-1, 2], mode="edge")
Array([2, 3, 3, 3], dtype=int32)

The functions do what ONNX's newest operators do, and need no ONNX. ONNX's pages
describe the arguments. What decides the sizes of a result must be known when a program
is traced: `pads` and `axes` are lists or arrays, `depth` and `k` are numbers or arrays
of one number, and `size` is a number. They may have 64 bits. All other arrays are data,
of any type. Data of 64 bits become 32 bits where JAX's x64 mode is off, if they fit.
Types are never promoted. Results are differentiable in the data that they copy.

Without `size`, ``nonzero`` and ``compress`` return as many as there are: then the call
must be outside of ``jit``. Past the count the result is 0. An argument that breaks a
rule is a ``DescriptorError``, or a TypeError if it is of another kind.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

import dmljax.numpy as dnp
from dmljax._arguments import (
    as_array,
    as_dtype,
    as_integer,
    as_scalar,
    as_size,
    as_sizes,
    convert_scalar,
    is_python_number,
)
from dmljax._check import decide_at_most, require, require_same, show
from dmljax._diagonal_matrix1 import diagonal_matrix1
from dmljax._element_wise_if import element_wise_if
from dmljax._one_hot import one_hot as _one_hot
from dmljax._padding import padding
from dmljax._types import INT32_MIN, Sizes, is_floating

__all__ = ["compress", "eye_like", "nonzero", "one_hot", "pad", "trilu", "where"]
HERE = "dmljax.onnx."
# The modes of ONNX, and their numbers in DirectML.
_MODES = {"constant": 0, "edge": 1, "reflect": 2, "wrap": 4}
# The data types, each at its number in ONNX.
_TYPES = (
    "unknown float32 uint8 int8 uint16 int16 int32 int64 string bool float16 float64 "
    "uint32 uint64 complex64 complex128 bfloat16"
)


def pad(
    data: ArrayLike,
    pads: Sizes | jax.Array,
    constant_value: ArrayLike | None = None,
    axes: Sizes | jax.Array | None = None,
    *,
    mode: str = "constant",
) -> jax.Array:
    """Pads an array, as ONNX's Pad does.

    `pads` has how many elements to add before each of the `axes`, and then how many to
    add after each. A negative number cuts off elements. All is cut before it is padded.
    """
    name = HERE + "pad"
    x = as_array(name, "data", data)
    known = isinstance(mode, str) and mode in _MODES
    require(name, known, f"mode is {mode!r}; it must be one of {[*_MODES]}.")
    widths = as_sizes(name, "pads", _as_numpy(name, "pads", pads))
    given = range(x.ndim) if axes is None else _as_numpy(name, "axes", axes)
    every = as_sizes(name, "axes", given)
    places = [_as_axis(name, "an element of axes", axis, x.ndim) for axis in every]
    n = len(places)
    require(name, len({*places}) == n, f"axes is {axes}; none may occur twice.")
    require(
        name,
        len(widths) == 2 * n,
        f"pads has {len(widths)} elements; it must have 2 for each of {n} axes.",
    )
    starts = [0] * x.ndim
    ends = [0] * x.ndim
    kept = [slice(None)] * x.ndim
    for axis, start, end in zip(places, widths[:n], widths[n:], strict=True):
        left = x.shape[axis] + min(start, 0) + min(end, 0)
        least = 1 if mode != "constant" and max(start, end) > 0 else 0
        require(
            name,
            decide_at_most(name, least, left),
            f"pads leaves {left} elements of data along axis {axis}; {mode} needs at "
            f"least {least}.",
        )
        starts[axis] = max(start, 0)
        ends[axis] = max(end, 0)
        kept[axis] = slice(max(-start, 0), x.shape[axis] + min(end, 0))
    if any(width < 0 for width in widths):
        x = x[tuple(kept)]
    value: Any = 0
    if constant_value is not None:
        scalar = as_scalar(name, "constant_value", constant_value, x, cast=True)
        value = convert_scalar(name, "constant_value", scalar, x.dtype, cast=True)
    return padding(x, starts, ends, mode=_MODES[mode], value=value)


def one_hot(
    indices: ArrayLike, depth: Any, values: ArrayLike, *, axis: int = -1
) -> jax.Array:
    """Makes one-hot sequences, as ONNX's OneHot does.

    Floats are truncated toward zero. A negative index counts from the end. A sequence
    is off everywhere if its index is NaN, below -depth, or at least `depth`. `values`
    are off and on, and have the type of the result.

    >>> one_hot(jnp.array([0, -1, 5]), 3, jnp.array([0, 1]))
    Array([[1, 0, 0],
           [0, 0, 1],
           [0, 0, 0]], dtype=int32)
    """
    name = HERE + "one_hot"
    index = as_array(name, "indices", indices)
    off_on = as_array(name, "values", values)
    sizes = show(off_on.shape)
    require(name, sizes == "{2}", f"values has sizes {sizes}; it must have {{2}}.")
    length = _as_number(name, "depth", depth)
    whole = isinstance(length, float) and math.isfinite(length)
    size = as_size(name, "depth", int(length) if whole else length)
    positive = decide_at_most(name, 1, size)
    require(name, positive, f"depth is {size}; it must be at least 1.")
    if is_floating(index.dtype):
        number = jnp.asarray(index).astype(jnp.result_type(int))
        index = jnp.where(jnp.isnan(index), INT32_MIN, number)  # which no depth reaches
    axis = _as_axis(name, "axis", axis, index.ndim + 1)
    return _one_hot(jnp.expand_dims(index, axis), off_on, size=size, axis=axis)


def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> jax.Array:
    """Selects from `x` where a condition holds, as ONNX's Where does.

    All three are broadcast. `x` and `y` have one type. A Python number takes it.
    """
    name = HERE + "where"
    given = {"condition": condition, "x": x, "y": y}
    arrays = {
        key: as_array(name, key, value)
        for key, value in given.items()
        if key == "condition" or not is_python_number(value)
    }
    require(
        name, len(arrays) > 1, "x and y are both Python numbers; one must be an array."
    )
    shapes = [array.shape for array in arrays.values()]
    shape = jnp.broadcast_shapes(*shapes)
    # The operator broadcasts scalars, and decides which of two types gives way.
    large = {k: a for k, a in arrays.items() if a.ndim or k == "condition"}
    weak = {k for k, array in large.items() if jax.typeof(array).weak_type}
    if {"x", "y"} <= large.keys() - weak:
        one = ("x", large["x"].dtype)
        other = ("y", large["y"].dtype)
        require_same(name, "data types", one, other)
    spread = {k: jnp.broadcast_to(array, shape) for k, array in large.items()}
    return element_wise_if(*(given | spread).values())


def nonzero(x: ArrayLike, *, size: int | None = None) -> jax.Array:
    """Finds the coordinates of non-zero elements, as ONNX's NonZero does.

    They are (rank, size) integers: ONNX's int64 in x64 mode, and int32 otherwise.
    """
    return dnp.argwhere(as_array(HERE + "nonzero", "x", x), size=size).T


def trilu(x: ArrayLike, k: Any = 0, *, upper: bool | int = True) -> jax.Array:
    """Keeps a triangle of (..., height, width) matrices, as ONNX's Trilu does.

    `k` is any integer, or an array of one.
    """
    name = HERE + "trilu"
    matrix = as_array(name, "x", x)
    sizes = show(matrix.shape)
    require(name, matrix.ndim >= 2, f"x has sizes {sizes}; it must have at least two.")
    require(name, upper in (0, 1), f"upper is {upper!r}; it must be True or False.")
    diagonal = as_integer(name, "k", _as_number(name, "k", k))
    return (dnp.triu if upper else dnp.tril)(matrix, diagonal)


def eye_like(
    x: ArrayLike, *, dtype: DTypeLike | int | None = None, k: Any = 0
) -> jax.Array:
    """Makes a (height, width) matrix with ones on a diagonal, as ONNX's EyeLike does.

    `dtype` is a type, or its number in ONNX. None stands for the type of `x`. `k` is
    any integer, or an array of one.
    """
    name = HERE + "eye_like"
    array = as_array(name, "x", x)
    sizes = show(array.shape)
    require(name, array.ndim == 2, f"x has sizes {sizes}; it must have two.")
    kind: Any = array.dtype if dtype is None else dtype
    if isinstance(kind, int):
        kind = dict(enumerate(_TYPES.split())).get(kind, kind)
    diagonal = as_integer(name, "k", _as_number(name, "k", k))
    return diagonal_matrix1(
        shape=array.shape,
        dtype=as_dtype(name, kind),
        fill_begin=dnp.as_bound(diagonal),
        fill_end=dnp.as_bound(diagonal + 1),
    )


def compress(
    x: ArrayLike,
    condition: ArrayLike,
    *,
    axis: int | None = None,
    size: int | None = None,
) -> jax.Array:
    """Returns slices where a condition holds, as ONNX's Compress does.

    Slices past the end of `condition` are not returned.
    """
    name = HERE + "compress"
    values = as_array(name, "x", x)
    chosen = as_array(name, "condition", condition)
    axis = axis if axis is None else _as_axis(name, "axis", axis, values.ndim)
    length = values.size if axis is None else values.shape[axis]
    sizes = show(chosen.shape)
    fits = chosen.ndim == 1 and decide_at_most(name, chosen.size, length)
    require(
        name, fits, f"condition has sizes {sizes}; it must have one, at most {length}."
    )
    return dnp.compress(chosen, values, axis, size=size)


def _as_numpy(name: str, argument: str, value: Any) -> Any:
    """Returns a ``jax.Array`` that is not traced as NumPy's, and all else as it is."""
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"{name}: {argument} is traced; it must be a value of Python or NumPy. In "
            "jit, jnp.array is traced."
        )
    return np.asarray(value) if isinstance(value, jax.Array) else value


def _as_number(name: str, argument: str, value: Any) -> Any:
    """Returns a number, or the only element of an array."""
    given = _as_numpy(name, argument, value)
    if isinstance(given, (np.ndarray, np.generic)):
        sizes = show(given.shape)
        fits = given.size == 1
        require(name, fits, f"{argument} has sizes {sizes}; it must be one number.")
        return given.item()
    return given


def _as_axis(name: str, argument: str, axis: int, rank: int) -> int:
    """Returns an axis. A negative one counts from the end."""
    number = as_integer(name, argument, axis)
    known = -rank <= number < rank
    require(name, known, f"{argument} is {number}; it must be in [{-rank}, {rank}).")
    return number % rank
