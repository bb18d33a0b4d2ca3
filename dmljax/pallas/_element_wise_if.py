"""ELEMENT_WISE_IF on a GPU, in the frame of `_elementwise`: one launch.

A program loads a block of each operand and selects. What is shared is loaded as such,
so a scalar costs no memory traffic.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dmljax._tensor import Outputs
from dmljax.pallas._elementwise import Offsets, elementwise, offsets_in, on_bits


@on_bits
def element_wise_if(
    condition: jax.Array, a: jax.Array, b: jax.Array, *, interpret: bool
) -> Outputs:
    """The form by kernel: `a` where `condition` is not zero, and `b` elsewhere."""
    operands = (condition, a, b)
    shape = np.broadcast_shapes(*(operand.shape for operand in operands))

    def element(offsets: Offsets, *loads: Any) -> Any:
        holds, first, second = (
            load(offsets_in(operand.shape, offsets, shape))
            for load, operand in zip(loads, operands, strict=True)
        )
        # Every byte other than 0 is true: 2 and 128 as well as 1.
        return jnp.where(holds.astype(bool), first, second)

    return elementwise(
        element,
        *operands,
        shape=shape,
        operator="element_wise_if",
        # 256 threads, each of which stores 16 bytes: `BLOCK_BYTES` says more.
        warps=8,
        interpret=interpret,
    )
