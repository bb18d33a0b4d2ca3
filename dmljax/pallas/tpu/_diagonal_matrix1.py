"""DIAGONAL_MATRIX1 on a TPU, in the frame of `_blocks`: one launch.

Which diagonals the value fills is the formula of the page, in `_coordinates.fills`.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dmljax._coordinates import fills
from dmljax._tensor import Outputs
from dmljax.pallas.tpu._blocks import by_blocks


def diagonal_matrix1(
    *operands: jax.Array,
    matrix: tuple[int, int],
    fill_begin: int | None,
    fill_end: int | None,
    interpret: Any,
) -> Outputs:
    """The form by kernel. The operands are those of the primitive."""

    def formula(positions: Any, *values: Any) -> Any:
        *data, filling, kept = values
        # These are vectors, and only their difference spreads over the block. So each
        # position is computed once, not for every element.
        top_x = positions(-1) - positions(-2)
        filled = fills(top_x, data, matrix, fill_begin, fill_end)
        return jnp.where(filled, filling, kept)

    batch = np.broadcast_shapes(*(operand.shape[:-2] for operand in operands))
    return by_blocks(
        formula,
        *operands,
        shape=(*batch, *matrix),
        operator="diagonal_matrix1",
        interpret=interpret,
    )
