"""ELEMENT_WISE_IF on a GPU, in the frame of `_elementwise`: one launch.

A thread loads a chunk of each operand and selects. What is shared is loaded as such, so
a scalar costs no memory traffic.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from dmljax._tensor import Outputs
from dmljax.pallas._elementwise import Operand, elementwise
from dmljax.pallas._words import on_bits


@on_bits
def element_wise_if(
    condition: jax.Array, a: jax.Array, b: jax.Array, *, interpret: bool
) -> Outputs:
    """The form by kernel: `a` where `condition` is not zero, and `b` elsewhere."""
    operands = (condition, a, b)
    return elementwise(
        _is_true,
        [Operand(operand, operand.shape) for operand in operands],
        shape=np.broadcast_shapes(*(operand.shape for operand in operands)),
        asked=(),
        operator="element_wise_if",
        interpret=interpret,
    )


def _is_true(t: Any, coordinates: Sequence[Any], values: Sequence[Any]) -> Any:
    (condition,) = values
    # Every byte other than 0 is true: 2 and 128 as well as 1.
    return condition != 0
