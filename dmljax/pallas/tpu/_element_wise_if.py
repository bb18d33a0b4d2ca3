"""ELEMENT_WISE_IF on a TPU."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dmljax._tensor import Outputs
from dmljax.pallas.tpu._blocks import by_blocks


def element_wise_if(
    condition: jax.Array, a: jax.Array, b: jax.Array, *, interpret: Any
) -> Outputs:
    """The operator."""

    def formula(positions: Any, holds: Any, first: Any, second: Any) -> Any:
        del positions
        return jnp.where(holds.astype(bool), first, second)

    operands = (condition, a, b)
    return by_blocks(
        formula,
        *operands,
        shape=np.broadcast_shapes(*(operand.shape for operand in operands)),
        operator="element_wise_if",
        interpret=interpret,
    )
