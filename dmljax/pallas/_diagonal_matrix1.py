"""DIAGONAL_MATRIX1 on a GPU, in the frame of `_elementwise`: one launch.

A thread computes the diagonal of each of its elements, and selects the value or the
input.
"""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax import lax

from dmljax._tensor import Outputs
from dmljax.pallas._elementwise import Operand, elementwise
from dmljax.pallas._words import on_bits

# Numbers of a thread have no sign. With this added, those of int32 keep their order.
SIGN = np.uint32(2**31)


@on_bits
def diagonal_matrix1(
    *operands: jax.Array,
    matrix: tuple[int, int],
    fill_begin: int | None,
    fill_end: int | None,
    interpret: bool,
) -> Outputs:
    """The form by kernel. The operands are those of the primitive."""
    *data, value, x = operands
    bits = (lax.bitcast_convert_type(bound, np.uint32) for bound in data)
    operands = (*bits, value, x)
    batch = np.broadcast_shapes(*(operand.shape[:-2] for operand in operands))
    rank = len(batch) + 2
    return elementwise(
        functools.partial(_is_filled, fill_begin=fill_begin, fill_end=fill_end),
        [Operand(operand, operand.shape) for operand in operands],
        shape=(*batch, *matrix),
        asked=(rank - 2, rank - 1),
        operator="diagonal_matrix1",
        interpret=interpret,
    )


def _is_filled(
    t: Any,
    coordinates: Sequence[Any],
    values: Sequence[Any],
    fill_begin: int | None,
    fill_end: int | None,
) -> Any:
    """Whether the diagonal of an element is filled: the formula of the page.

    `_coordinates.fills` has it for numbers with a sign, and says what the values are.
    """
    row, column = coordinates
    data = list(values)
    begin: Any = fill_begin
    end: Any = fill_end
    if begin is None:
        *data, begin, end = data
        begin, end = begin + SIGN, end + SIGN
    else:
        begin, end = (np.uint32((b + 2**31) % 2**32) for b in (begin, end))
    diagonal = column - row + SIGN
    for origin in data:
        diagonal = diagonal + origin
    return (diagonal >= begin) ^ (diagonal >= end) ^ (end < begin)
