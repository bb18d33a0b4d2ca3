"""ELEMENT_WISE_IF on a TPU, in the frame of `_blocks`: one launch."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dmljax._tensor import Outputs
from dmljax.pallas.tpu._blocks import by_blocks


def element_wise_if(
    condition: jax.Array, a: jax.Array, b: jax.Array, *, interpret: Any
) -> Outputs:
    """The form by kernel: `a` where `condition` is not zero, and `b` elsewhere."""

    def formula(positions: Any, holds: Any, first: Any, second: Any) -> Any:
        del positions  # an element of the output needs only those of the operands
        # A condition has bytes here: `for_mosaic` makes them of booleans. Every byte
        # other than 0 is true: 2 and 128 as well as 1.
        return jnp.where(holds.astype(bool), first, second)

    operands = (condition, a, b)
    return by_blocks(
        formula,
        *operands,
        shape=np.broadcast_shapes(*(operand.shape for operand in operands)),
        operator="element_wise_if",
        interpret=interpret,
    )
