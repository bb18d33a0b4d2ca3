"""DIAGONAL_MATRIX1 as a primitive: XLA's form, and what a device does with its part.

The formula is `_coordinates.fills`.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dmljax._coordinates import fills
from dmljax._primitive import OperatorPrimitive
from dmljax._sharding import Part, Partition
from dmljax._tensor import Outputs
from dmljax._transpose import transpose_select
from dmljax.pallas._diagonal_matrix1 import diagonal_matrix1 as gpu_kernel
from dmljax.pallas.tpu._diagonal_matrix1 import diagonal_matrix1 as tpu_kernel


def _xla(
    *operands: jax.Array,
    matrix: tuple[int, int],
    fill_begin: int | None,
    fill_end: int | None,
) -> Outputs:
    """The operator in jax.numpy.

    The last operands are the value and the input. `fills` explains those before them.
    """
    # Diagonals are counted in int32, as the bounds are, which may be INT32_MIN or
    # INT32_MAX. The mask is an iota in the program, so it takes no memory.
    *data, value, x = operands
    shape = (1,) * (x.ndim - 2) + matrix
    row, column = (lax.broadcasted_iota(np.int32, shape, x.ndim - i) for i in (2, 1))
    filled = fills(column - row, data, matrix, fill_begin, fill_end)
    return (jnp.where(filled, value, x),)


def _shard(
    part: Part, *operands: jax.Array, matrix: tuple[int, int], **static: Any
) -> Outputs:
    height, width = own = part.outputs[0][-2:]
    # If rows or columns are divided, the first element of a part is on another
    # diagonal than that of the matrix. This diagonal is one more operand.
    if own != matrix:
        rank = operands[-1].ndim
        row, column = (part.index(rank - i) for i in (2, 1))
        origin = (column * width - row * height).reshape((1,) * rank)
        operands = (origin, *operands)
    return DIAGONAL_MATRIX1(*operands, matrix=own, **static)


DIAGONAL_MATRIX1 = OperatorPrimitive(
    "diagonal_matrix1",
    _xla,
    Partition(_shard),
    linear=2,  # the value and the input
    transpose=transpose_select,
    kernels={"cuda": gpu_kernel, "tpu": tpu_kernel},
)
