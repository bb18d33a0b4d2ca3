"""ONE_HOT on a GPU."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dmljax._one_hot import countable, is_lit
from dmljax._operator import Outputs
from dmljax.pallas._elementwise import Number, elementwise, on_words, place_in


@on_words
def one_hot(
    index: jax.Array,
    on: jax.Array,
    off: jax.Array,
    *,
    size: int,
    axis: int,
    interpret: bool,
) -> Outputs:
    """The operator."""
    if jnp.iinfo(index.dtype).bits < 8:
        index = index.astype(np.int8)
    operands = (index, on, off)
    batch = np.broadcast_shapes(*(operand.shape for operand in operands))
    axis += len(batch)
    shape = (*batch[:axis], size, *batch[axis + 1 :])

    def element(number: Number, *loads: Any) -> Any:
        indices, on_value, off_value = (
            load(place_in(operand, number, shape))
            for load, operand in zip(loads, operands, strict=True)
        )
        _, position = number.divided(math.prod(shape[axis + 1 :]))[0].divided(size)
        indices = countable(indices)
        position = position.astype(indices.dtype)
        return jnp.where(is_lit(indices, position, size), on_value, off_value)

    return elementwise(
        element, *operands, shape=shape, name="one_hot", warps=4, interpret=interpret
    )
