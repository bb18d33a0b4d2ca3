"""ELEMENT_WISE_IF on a GPU."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dmljax._tensor import Outputs
from dmljax.pallas._elementwise import Number, elementwise, on_words, place_in


@on_words
def element_wise_if(
    condition: jax.Array, a: jax.Array, b: jax.Array, *, interpret: bool
) -> Outputs:
    """The operator."""
    operands = (condition, a, b)
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))

    def element(number: Number, *loads: Any) -> Any:
        holds, first, second = (
            load(place_in(operand.shape, number, shape))
            for load, operand in zip(loads, operands, strict=True)
        )
        return jnp.where(holds.astype(bool), first, second)

    return elementwise(
        element,
        *operands,
        shape=shape,
        operator="element_wise_if",
        warps=8,
        interpret=interpret,
    )
