"""Access through strides: tensors are read from flat buffers, and written to them.

The rules for strides, and the sizes that follow from them, are in `tensor`.
"""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dmljax._directml.tensor import TensorDesc, steps_over
from dmljax._types import index_mode, packed_strides


def read(tensor: TensorDesc, buffer: Array) -> Array:
    """Returns the *logical* tensor in a flat buffer: an array of the tensor's sizes."""
    sizes = tensor.sizes
    strides = tensor.element_strides
    if strides == packed_strides(sizes):
        return buffer[: tensor.extent].reshape(sizes)
    # We broadcast along axes with stride 0, and gather along the others. The gradient
    # along an axis that is broadcast is a sum. A scatter-add could sum in another order
    # in the next run.
    axes = zip(sizes, strides, strict=True)
    unrepeated = [size if stride else 1 for size, stride in axes]
    # The gather's transpose is a scatter-add. If XLA knows that no two elements share
    # an offset, it may run the scatter in parallel without atomic additions.
    with index_mode(tensor.extent, buffer.size) as integer:
        dense = buffer.at[_offsets(tensor, unrepeated, integer)].get(
            mode="promise_in_bounds", unique_indices=steps_over(unrepeated, strides)
        )
    return jnp.broadcast_to(dense, sizes)


def write(tensor: TensorDesc, values: Array, buffer: Array) -> Array:
    """Returns `buffer` with the logical tensor `values` written through the strides.

    Elements in gaps of the tensor keep their values.
    """
    sizes = tensor.sizes
    if tensor.element_strides == packed_strides(sizes):
        return lax.dynamic_update_slice(buffer, values.ravel(), (0,))
    # check_tensor has refused outputs with elements that share an offset.
    with index_mode(tensor.extent, buffer.size) as integer:
        return buffer.at[_offsets(tensor, sizes, integer)].set(
            values, mode="promise_in_bounds", unique_indices=True
        )


def _offsets(tensor: TensorDesc, sizes: Sequence[int], integer: np.dtype) -> Array:
    """Returns dot(c, strides) for every coordinate c of `sizes`."""
    offsets = jnp.zeros(sizes, integer)
    for axis, stride in enumerate(tensor.element_strides):
        # Along a size of 1, the only coordinate is 0: the stride has no effect, and may
        # be too large for int32.
        if sizes[axis] > 1:
            step = jnp.asarray(stride, integer)
            offsets += lax.broadcasted_iota(integer, sizes, axis) * step
    return offsets
