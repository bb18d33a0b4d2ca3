"""ONE_HOT on a TPU, in the frame of `_blocks`: one launch.

A program compares a block of indices with the positions of its block along the axis.
Which position an index lights is the formula of the page, in `_coordinates.is_lit`. If
the axis is the last one, the indices are a column, and a column takes whole tiles of
128 lanes in memory. XLA's form packs them better, and is the default (docs/tpu.md).
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dmljax._coordinates import countable, is_lit
from dmljax._tensor import Outputs
from dmljax.pallas.tpu._blocks import by_blocks


def one_hot(
    index: jax.Array,
    on: jax.Array,
    off: jax.Array,
    *,
    size: int,
    axis: int,
    interpret: Any,
) -> Outputs:
    """The form by kernel: `on` where `index` lights a position along `axis`."""
    # Mosaic has no vectors of 64 bits, so XLA looks at all 64 before the launch.
    if index.dtype.itemsize == 8:
        index = _in_32_bits(index, size)

    def formula(positions: Any, indices: Any, lit: Any, unlit: Any) -> Any:
        # A position can exceed what an index of 8 or 16 bits counts to.
        indices = countable(indices)
        position = positions(axis).astype(indices.dtype)
        return jnp.where(is_lit(indices, position, size), lit, unlit)

    operands = (index, on, off)
    shape = list(np.broadcast_shapes(*(operand.shape for operand in operands)))
    shape[axis] = size
    return by_blocks(
        formula,
        *operands,
        shape=tuple(shape),
        operator="one_hot",
        interpret=interpret,
    )


def _in_32_bits(index: jax.Array, size: int) -> jax.Array:
    """The index as int32. If it lights no position, `size` stands for it."""
    low = -size if jnp.issubdtype(index.dtype, np.signedinteger) else 0
    # An index that lights nothing may become a valid one if its upper half is cut off.
    inside = (index >= low) & (index < size)
    return jnp.where(inside, index, index.dtype.type(size)).astype(np.int32)
