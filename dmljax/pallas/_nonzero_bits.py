"""The bits of NONZERO_COORDINATES on a GPU: which elements are not zero, 32 at a time.

`_nonzero_coordinates` calls `as_bits` and `packed` before its first launch. In the
kernel it calls `nonzero_bits` for each word, and joins the results to bit words. Four
elements of 8 bits make four bits of a bit word, the first element the lowest one:

    elements      0  -1   0   9
    packed        0x0900ff00
    nonzero_bits  0b1010

Here belongs what knows the bits of elements. Blocks, lines and rows do not.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dmljax._coordinates import is_nonzero, zero_patterns
from dmljax._tensor import is_floating

BIT_WORD = 32  # the elements of a bit word


def as_bits(x: jax.Array) -> tuple[jax.Array, int]:
    """The bits of `x` as 8, 16 or 32 bits, and which of these make it non-zero."""
    dtype = x.dtype
    floating = is_floating(dtype)
    width = jnp.finfo(dtype).bits if floating else 8 * dtype.itemsize
    zeros = zero_patterns(dtype) if floating else (0,)
    if width in (8, 16, 32) and zeros and (floating or dtype.kind in "iu"):
        # The largest zero pattern is the sign bit alone, in types with a negative zero.
        # The other bits matter, and no comparison flushes a subnormal number to zero.
        keep = 2**width - 1 - max(zeros)
        return lax.bitcast_convert_type(x, np.dtype(f"uint{width}")), keep
    return is_nonzero(x).astype(np.uint8), 1


def as_bits64(x: jax.Array) -> tuple[jax.Array, int, int]:
    dtype = x.dtype
    floating = is_floating(dtype)
    width = jnp.finfo(dtype).bits if floating else 8 * dtype.itemsize
    zeros = zero_patterns(dtype) if floating else (0,)
    if width in (8, 16, 32, 64) and zeros and (floating or dtype.kind in "iu"):
        keep = 2**width - 1 - max(zeros)
        bits = lax.bitcast_convert_type(x, np.dtype(f"uint{min(width, 32)}"))
        return bits.reshape(x.shape[0], -1), width, keep
    return is_nonzero(x).astype(np.uint8), 8, 1


def packed(bits: jax.Array) -> jax.Array:
    """The same memory as words of up to 32 bits, in the same lines.

    So a thread loads and tests up to four narrow elements at once.
    """
    size = bits.dtype.itemsize
    each = next(n for n in (4, 2, 1) if n * size <= 4 and bits.shape[1] % n == 0)
    if each == 1:
        return bits
    split = bits.reshape(bits.shape[0], -1, each)
    return lax.bitcast_convert_type(split, np.dtype(f"uint{8 * size * each}"))


def nonzero_bits(word: Any, width: int, keep: int) -> Any:
    """For each element of a word, of `width` bits: whether one of `keep` is set."""
    # The elements of a word are tested together, because comparing each of them takes
    # more instructions.
    starts = range(0, BIT_WORD, width)
    ones = sum(1 << start for start in starts)
    top = ones << (width - 1)
    word &= np.uint32(keep * ones)
    # Adding all ones below an element's top bit carries into the top bit if one of the
    # bits below is set. It never carries into the next element.
    rest = np.uint32(~top % 2**BIT_WORD)
    word = (((word & rest) + rest) | word) & np.uint32(top)
    # A product with this constant moves the top bits of all elements side by side.
    shift = BIT_WORD - width
    gather = sum(1 << (shift - start + i) for i, start in enumerate(starts))
    product = (word >> np.uint32(width - 1)) * np.uint32(gather)
    return (product >> np.uint32(shift)) & np.uint32(2 ** len(starts) - 1)


def count_ones(word: Any) -> Any:
    """How many bits of `word` are set."""
    return lax.population_count(word.astype(np.int32))
