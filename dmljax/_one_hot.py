"""ONE_HOT: sequences that are off everywhere except at one index.

All of the operator is here.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from dmljax._arguments import (
    as_array,
    as_integer,
    as_size,
    is_integer,
    same_type,
    strong,
)
from dmljax._check import DescriptorError, counted, decide_at_most, show
from dmljax._primitive import OperatorPrimitive, compiled
from dmljax._select import select, transpose_select
from dmljax._types import Outputs, mode_of, to_scalar

NAME = "ONE_HOT"
# The arguments of the function, as its messages name them.
INDEX = "indices (IndicesTensor)"
VALUES = "values (ValuesTensor)"
AXIS = "axis (Axis)"


def one_hot(
    indices: ArrayLike, values: ArrayLike, /, *, size: int, axis: int = -1
) -> jax.Array:
    """Makes sequences along `axis` that are off everywhere except at their index.

    ``output[.., i, ..] = on if i == wrapped(indices[.., 0, ..]) else off``, where off
    is the first element of `values` and on is the second. If an index is negative,
    ``wrapped(index)`` is index + size; otherwise it is the index itself. If an index is
    at least `size`, or below -size, its whole sequence is off. An unsigned index is
    never negative.

    Args:
      indices: (..., 1, ...) of any integer type, of size 1 along `axis`.
      values: an array of any type and shape with at least 2 elements. The first two in
        row-major order are off and on. If it is an array of NumPy that begins with 0
        and 1, XLA can fuse the result further, for example into a loss of labels.
      size: the number of elements of each sequence, from 1 to 2^31 - 1.
      axis: the dimension of the sequences; a negative one counts from the end.

    Returns:
      An array (..., size, ...) of the type of `values`, differentiable in `values`.

    Raises:
      DescriptorError: if `axis` is out of range, if `indices` is not an integer array
        of size 1 along `axis`, if `values` has fewer than 2 elements, or if `size` is
        out of range.
      TypeError: if `indices` or `values` is not an array, or if `size` or `axis` is not
        an integer.

    Labels of -1 or -100 often stand for "ignore". A negative label counts from the end
    here. Make it out of range: ``jnp.where(labels < 0, size, labels.astype(int))``.

    >>> import jax.numpy as jnp
    >>> indices = jnp.array([[0], [-1], [5]])
    >>> one_hot(indices, jnp.array([4.0, 2.0]), size=3)
    Array([[2., 4., 4.],
           [4., 4., 2.],
           [4., 4., 4.]], dtype=float32)

    See DML_ONE_HOT_OPERATOR_DESC in directml.h.
    """
    return _one_hot(
        as_array(NAME, INDEX, indices),
        as_array(NAME, VALUES, values),
        as_size(NAME, "size", size),
        as_integer(NAME, AXIS, axis),
        _are_truth_values(values),
    )


def _are_truth_values(values: ArrayLike) -> bool:
    """Whether off is 0 and on is 1, and JAX knows it while it traces a call."""
    if not isinstance(values, np.ndarray):
        return False
    wanted = np.array([0, 1]).astype(values.dtype)
    return bool(values.ravel()[:2].tobytes() == wanted.tobytes())


@compiled("size", "axis", "truth")
def _one_hot(
    indices: jax.Array, values: jax.Array, size: int, axis: int, truth: bool
) -> jax.Array:
    if not is_integer(indices.dtype):
        raise DescriptorError(
            f"{NAME}: {INDEX} has data type {show(indices.dtype)}; it must be an "
            "integer type."
            f"{same_type('indices', indices.dtype, np.dtype(np.int32))} "
            "dmljax.numpy.one_hot also takes floats, and NaN lights nothing there."
        )
    rank = indices.ndim
    if rank == 0:
        raise DescriptorError(
            f"{NAME}: {AXIS} is {axis}, while {INDEX} has 0 dimensions; it must have "
            "one of size 1 along axis. Write indices[None]."
        )
    if not -rank <= axis < rank:
        raise DescriptorError(
            f"{NAME}: {AXIS} is {axis}; it must be in [{-rank}, {rank}), as {INDEX} "
            f"has {counted(rank, 'dimension')}."
        )
    axis %= rank
    names = INDEX, VALUES, AXIS, "size"
    check_sizes(names, indices.shape, values.shape, size, axis)
    # Later elements are ignored, as the page says.
    # XLA fuses a conversion of truth values further than a select: the loss of labels
    # takes 0.190 ms on an H200, and 0.225 with a select (results/nvidia-h200.csv, "mean
    # loss of labels" and "[values]").
    if truth:
        off, on = (lax.full((1,) * rank, bit) for bit in (False, True))
    else:
        flat = strong(values).reshape((values.size,) + (1,) * (rank - 1))
        off, on = flat[:1], flat[1:2]
    (output,) = ONE_HOT(strong(indices), on, off, size=size, axis=axis - rank)
    converted: jax.Array = lax.convert_element_type(output, values.dtype)
    return converted


def check_sizes(
    names: tuple[str, ...],
    indices: tuple[int, ...],
    values: tuple[int, ...],
    size: int,
    axis: int,
) -> tuple[int, ...]:
    """Checks the sizes of the inputs, and returns those of the output.

    `names` are those of the indices, the values, the axis and the size in messages.
    """
    index_name, values_name, axis_name, size_name = names
    if indices[axis] != 1:
        raise DescriptorError(
            f"{NAME}: {index_name} has sizes {show(indices)}; its size along "
            f"{axis_name} {axis} is {indices[axis]} and must be 1. "
            "jnp.expand_dims(indices, axis) adds an axis of size 1."
        )
    elements = math.prod(values)
    if not decide_at_most(NAME, 2, elements):
        raise DescriptorError(
            f"{NAME}: {values_name} has sizes {show(values)}, "
            f"{counted(elements, 'element')}; it must have at least 2, off and on, as "
            "jnp.array([0.0, 1.0]) has."
        )
    # Positions are counted in int32 where the indices have no wider type. JAX takes a
    # symbolic size to be below 2^31.
    too_large = isinstance(size, int) and size >= 2**31
    if too_large or not decide_at_most(NAME, 1, size):
        raise DescriptorError(
            f"{NAME}: {size_name} is {size}; it must be in [1, 2^31)."
        )
    return (*indices[:axis], size, *indices[axis + 1 :])


def wrapped(index: jax.Array, size: int) -> jax.Array:
    """Returns the positions that indices light: a negative one counts from the end.

    For example, of size 5 the int8 index -2 lights position 3: without a sign it is
    254, and 254 + 5 wraps around to 3. So a negative index is larger than its sum with
    `size`. One below -size stays too large for a position, and lights nothing.
    """
    if not jnp.issubdtype(index.dtype, np.signedinteger):
        return index
    index = lax.bitcast_convert_type(index, jnp.dtype(f"u{index.dtype}"))
    return lax.min(index, lax.add(index, to_scalar(size, index.dtype)))


def countable(index: Any) -> Any:
    """Returns `index` in a type of at least 32 bits that can count to every size."""
    if index.dtype.itemsize >= 4:
        return index
    signed = jnp.issubdtype(index.dtype, np.signedinteger)
    return index.astype(np.int32 if signed else np.uint32)


def _xla(
    index: jax.Array, on: jax.Array, off: jax.Array, *, size: int, axis: int
) -> Outputs:
    # The static axis is negative: a batch dimension in front leaves it alone.
    index = countable(index)
    (sizes,) = _sizes(index, on, off, size=size, axis=axis)
    # Operations of the full size cost nothing where XLA fuses them. A later broadcast
    # keeps XLA from some fusions, or takes another kernel.
    with mode_of(index):
        lit = wrapped(lax.broadcast_in_dim(index, sizes, range(index.ndim)), size)
        position = lax.broadcasted_iota(lit.dtype, sizes, axis + index.ndim)
        condition = lax.eq(lit, position)
    return select(condition, on, off)


def _sizes(*operands: jax.Array, size: int, axis: int) -> list[tuple[int, ...]]:
    sizes = list(jnp.broadcast_shapes(*(x.shape for x in operands)))
    sizes[axis] = size
    return [tuple(sizes)]


ONE_HOT = OperatorPrimitive(
    "one_hot",
    _xla,
    # All dimensions but that of the sequences.
    lambda index, *_, axis, **static: {*range(index.ndim)} - {index.ndim + axis},
    sizes=_sizes,
    linear=2,  # on and off
    transpose=transpose_select,
)
