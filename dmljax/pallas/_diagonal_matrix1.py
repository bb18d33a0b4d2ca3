"""DIAGONAL_MATRIX1 on a GPU."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dmljax._diagonal_matrix1 import fills
from dmljax._operator import Outputs
from dmljax.pallas._elementwise import Number, elementwise, on_words, place_in


@on_words
def diagonal_matrix1(
    value: jax.Array,
    x: jax.Array,
    *,
    matrix: tuple[int, int],
    fill_begin: int,
    fill_end: int,
    interpret: bool,
) -> Outputs:
    """The operator."""
    height, width = matrix
    batch = np.broadcast_shapes(value.shape[:-2], x.shape[:-2])
    shape = (*batch, *matrix)

    def element(number: Number, load_value: Any, load_x: Any) -> Any:
        rows, column = number.divided(width)
        row = rows.whole() if math.prod(batch) == 1 else rows.divided(height)[1]
        top_x = column.astype(np.int32) - row.astype(np.int32)
        filled = fills(top_x, matrix, fill_begin, fill_end)
        return jnp.where(
            jnp.broadcast_to(filled, top_x.shape),
            load_value(place_in(value.shape, number, shape)),
            load_x(place_in(x.shape, number, shape)),
        )

    return elementwise(
        element,
        value,
        x,
        shape=shape,
        operator="diagonal_matrix1",
        warps=8,
        blocks=2 if x.size == 1 else 1,  # where nothing is read
        interpret=interpret,
    )
