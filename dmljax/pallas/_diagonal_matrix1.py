"""DIAGONAL_MATRIX1 on a GPU, in the frame of `_elementwise`: one launch.

A program computes the diagonal of each of its elements, and selects the value or the
input. Which diagonals the value fills is the formula of the page, in
`_coordinates.fills`.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dmljax._coordinates import fills
from dmljax._tensor import Outputs
from dmljax.pallas._elementwise import Offsets, elementwise, offsets_in, on_bits


@on_bits
def diagonal_matrix1(
    *operands: jax.Array,
    matrix: tuple[int, int],
    fill_begin: int | None,
    fill_end: int | None,
    interpret: bool,
) -> Outputs:
    """The form by kernel. The operands are those of the primitive."""
    height, width = matrix
    batch = np.broadcast_shapes(*(operand.shape[:-2] for operand in operands))
    shape = (*batch, *matrix)

    def element(offsets: Offsets, *loads: Any) -> Any:
        *data, value, x = (
            load(offsets_in(operand.shape, offsets, shape))
            for load, operand in zip(loads, operands, strict=True)
        )
        rows, column = offsets.divided(width)
        # A single matrix needs no second division.
        row = rows.total() if math.prod(batch) == 1 else rows.divided(height)[1]
        # Positions are unsigned, and their difference may be negative.
        top_x = column.astype(np.int32) - row.astype(np.int32)
        filled = fills(top_x, data, matrix, fill_begin, fill_end)
        return jnp.where(filled, value, x)

    return elementwise(
        element,
        *operands,
        shape=shape,
        operator="diagonal_matrix1",
        warps=8,
        # Without an input a program reads next to nothing, so it has more to write.
        blocks=2 if operands[-1].size == 1 else 1,
        interpret=interpret,
    )
