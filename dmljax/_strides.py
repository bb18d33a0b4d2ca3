"""Access through strides: tensors are read from flat buffers, and written to them.

If the strides are those of a packed array, with or without gaps, the tensor is a
*corner* of that array: the first elements along each axis. It is read and written by
slices. Any other tensor takes a gather and a scatter by computed offsets.
"""

import itertools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dmljax._overlap import overlap
from dmljax._tensor import TensorDesc
from dmljax._types import index_mode


def read(tensor: TensorDesc, buffer: jax.Array) -> jax.Array:
    """Returns the logical tensor, read from a flat buffer through the strides.

    The logical tensor has the sizes of `tensor`, whatever the strides.
    """
    corner = _corner(tensor)
    if corner:
        dense = lax.slice(corner.frame(buffer), [0] * len(corner.sizes), corner.kept)
        dense = dense.reshape([tensor.sizes[i] for i in corner.order])
        # The array has the axes in another order; argsort is the way back.
        return dense.transpose(np.argsort(corner.order))
    # Axes with stride 0 are broadcast, not gathered: their gradient is then a sum, not
    # a scatter-add, whose order of summation may change from run to run.
    sizes = tensor.sizes
    axes = zip(sizes, tensor.element_strides, strict=True)
    distinct = tuple(1 if stride == 0 else size for size, stride in axes)
    # The gather's transpose is a scatter-add. XLA may run it in parallel, without
    # atomic additions, where it knows that no two elements share an offset.
    unique = overlap(distinct, tensor.element_strides) is False
    with index_mode(tensor.extent, buffer.size) as integer:
        dense = buffer.at[_offsets(tensor, distinct, integer)].get(
            mode="promise_in_bounds", unique_indices=unique
        )
    return jnp.broadcast_to(dense, sizes)


def write(tensor: TensorDesc, values: jax.Array, buffer: jax.Array) -> jax.Array:
    """Returns `buffer` with the logical tensor `values` written through the strides.

    Elements of the buffer that belong to no element of the tensor stay as they are.
    """
    corner = _corner(tensor)
    if corner:
        # The tensor is written into the corner of the array, then the array's elements
        # into the buffer. Both are updates in place in a compiled program.
        dense = values.transpose(corner.order).reshape(corner.kept)
        start = (0,) * len(corner.sizes)
        frame = lax.dynamic_update_slice(corner.frame(buffer), dense, start)
        return lax.dynamic_update_slice(buffer, frame.ravel()[: buffer.size], (0,))
    # The elements of an output never share an offset: check_tensor has refused it.
    with index_mode(tensor.extent, buffer.size) as integer:
        return buffer.at[_offsets(tensor, tensor.sizes, integer)].set(
            values, mode="promise_in_bounds", unique_indices=True
        )


class _Corner(NamedTuple):
    """A tensor as the corner of a packed array.

    `order` has the axes of the tensor in the order of the array's. `sizes` are those of
    the array, and `kept` are those of its corner.
    """

    order: tuple[int, ...]
    kept: tuple[int, ...]
    sizes: tuple[int, ...]

    def frame(self, buffer: jax.Array) -> jax.Array:
        """Returns the array that begins with the elements of the buffer."""
        # A buffer may end before the gap behind the last element, or hold more than
        # the tensor needs. A pad of negative width cuts.
        missing = math.prod(self.sizes) - buffer.size
        zero = jnp.zeros((), buffer.dtype)
        return lax.pad(buffer, zero, [(0, missing, 0)]).reshape(self.sizes)


def _corner(tensor: TensorDesc) -> _Corner | None:
    """Returns the packed array that has the tensor as a corner; None if there is none.

    For example, sizes {2,3} with strides {8,2} are the corner of a {2,4,2} array: the
    first three of its four columns, and the first of two elements in each.

    A gather and a scatter take an index for each element. On a CPU, padding of a tensor
    with gaps of 256 KiB takes 92 us with a gather, and 42 us with slices
    (results/x86_64-cpu.csv, "a tensor with gaps" and "[offsets]").
    """
    strides = tensor.element_strides
    sizes = tensor.sizes
    # The stride of an axis of size 1 is multiplied by 0 alone, and fits anywhere.
    order = sorted(range(len(sizes)), key=lambda axis: -strides[axis])
    long = [axis for axis in order if sizes[axis] > 1]
    kept = (*(sizes[axis] for axis in long), 1)
    # An axis of the array steps over all elements of the next one, gaps included.
    steps = list(itertools.pairwise((*(strides[axis] for axis in long), 1)))
    if any(inner == 0 or outer % inner for outer, inner in steps):
        return None
    whole = (kept[0], *(outer // inner for outer, inner in steps))
    if any(size < part for size, part in zip(whole, kept, strict=True)):
        return None
    # With larger gaps the slices would move more elements than the tensor has, and the
    # array could be far larger than the buffer.
    if math.prod(whole) > 2 * math.prod(kept):
        return None
    return _Corner(tuple(order), kept, whole)


def _offsets(
    tensor: TensorDesc, sizes: tuple[int, ...], integer: np.dtype
) -> jax.Array:
    """Returns dot(c, strides) for every coordinate c of `sizes`."""
    offsets = jnp.zeros(sizes, integer)
    for axis, stride in enumerate(tensor.element_strides):
        # The stride of a size of 1 counts for nothing, and may be too large for int32.
        step = jnp.asarray(stride if sizes[axis] > 1 else 0, integer)
        offsets += lax.broadcasted_iota(integer, sizes, axis) * step
    return offsets
