"""ONE_HOT on a TPU."""

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
    """The operator."""
    if index.dtype.itemsize == 8:
        index = _in_32_bits(index, size)

    def formula(positions: Any, indices: Any, lit: Any, unlit: Any) -> Any:
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
    """The index as int32: `size` if it lights nothing, which lights nothing either."""
    low = -size if jnp.issubdtype(index.dtype, np.signedinteger) else 0
    inside = (index >= low) & (index < size)
    return jnp.where(inside, index, index.dtype.type(size)).astype(np.int32)
