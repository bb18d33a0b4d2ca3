"""DIAGONAL_MATRIX1 on a GPU."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dmljax._coordinates import fills
from dmljax._tensor import Outputs
from dmljax.pallas._elementwise import Number, elementwise, on_words, place_in


@on_words
def diagonal_matrix1(
    *operands: jax.Array,
    matrix: tuple[int, int],
    fill_begin: int | None,
    fill_end: int | None,
    interpret: bool,
) -> Outputs:
    """The operator."""
    height, width = matrix
    batch = np.broadcast_shapes(*(operand.shape[:-2] for operand in operands))
    shape = (*batch, *matrix)

    def element(number: Number, *loads: Any) -> Any:
        *data, value, x = (
            load(place_in(operand.shape, number, shape))
            for load, operand in zip(loads, operands, strict=True)
        )
        rows, column = number.divided(width)
        row = rows.whole() if math.prod(batch) == 1 else rows.divided(height)[1]
        top_x = column.astype(np.int32) - row.astype(np.int32)
        filled = fills(top_x, data, matrix, fill_begin, fill_end)
        return jnp.where(filled, value, x)

    return elementwise(
        element,
        *operands,
        shape=shape,
        operator="diagonal_matrix1",
        warps=8,
        blocks=2 if operands[-1].size == 1 else 1,  # where nothing is read
        interpret=interpret,
    )
