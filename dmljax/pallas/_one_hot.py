"""ONE_HOT on a GPU, in the frame of `_elementwise`: one launch.

A thread compares the position of each of its elements with the one that is *hot*: the
position that the index lights. Along a sequence it loads one index for a whole chunk.
If the sequences lie side by side, a chunk has an element of each of several sequences:
then it loads the indices of these sequences once for several positions.
"""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dmljax._coordinates import countable
from dmljax._tensor import Outputs
from dmljax.pallas._elementwise import Operand, elementwise
from dmljax.pallas._words import on_bits


@on_bits
def one_hot(
    index: jax.Array,
    on: jax.Array,
    off: jax.Array,
    *,
    size: int,
    axis: int,
    interpret: bool,
) -> Outputs:
    """The form by kernel: `on` where `index` lights a position along `axis`."""
    index, signed = _as_loaded(index, size)
    # The caller sliced `off` and `on` out of one array. Joining them gives this array
    # again, and XLA removes the slices and the join.
    pair = lax.concatenate([off.ravel(), on.ravel()], 0)
    operands = (
        Operand(index, index.shape),
        Operand(pair, on.shape, first=off.size),
        Operand(pair, off.shape),
    )
    shape = list(np.broadcast_shapes(*(operand.sizes for operand in operands)))
    shape[axis] = size
    return elementwise(
        functools.partial(_is_lit, size=size, signed=signed),
        operands,
        shape=tuple(shape),
        asked=(axis % len(shape),),
        operator="one_hot",
        interpret=interpret,
    )


def _as_loaded(index: jax.Array, size: int) -> tuple[jax.Array, int]:
    """An index as unsigned integers of 1, 2 or 4 bytes.

    The second result is the number of their bits if the index has a sign, and else 0.
    """
    bits = jnp.iinfo(index.dtype).bits
    signed = jnp.issubdtype(index.dtype, np.signedinteger)
    if bits == 64:  # the two limits stand for all that light nothing
        index = jnp.clip(index, -size - 1 if signed else 0, size).astype(np.int32)
    elif bits < 8:  # a GPU addresses no less than a byte
        index = countable(index)
    bits = 8 * index.dtype.itemsize
    index = lax.bitcast_convert_type(index, np.dtype(f"uint{bits}"))
    return index, bits if signed else 0


def _is_lit(
    t: Any, coordinates: Sequence[Any], values: Sequence[Any], size: int, signed: int
) -> Any:
    """Whether the index lights the position.

    `_coordinates.is_lit` has the formula for numbers with a sign.
    """
    (position,), (index,) = coordinates, values
    if signed:
        # The number was loaded without its sign, which is copied to all higher bits.
        sign = np.uint32(1 << (signed - 1))
        index = (index ^ sign) - sign
        # One that is too small wraps around to more than any position.
        index = t.select(index >= np.uint32(2**31), index + size, index)
    return position == index
