"""The bits of NONZERO_COORDINATES on a GPU: which elements are not zero, 32 at a time.

`_nonzero_coordinates` calls `as_bits` before the launch. In the kernel it calls
`flags_of_words` for the words that a thread loads at once, and `transposed` for the
flags of several loads. A *flag* is a bit that is set if an element is not zero. Four
elements of 8 bits make four flags of a bit word. The first element has the lowest bit:

    elements  0  -1   0   9
    word      0x0900ff00
    flags     0b1010

Here belongs code that knows the bits of elements. Shares, lines and rows do not.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.dtypes import itemsize_bits

from dmljax._nonzero_forms import BIT_WORD, is_nonzero, zero_patterns
from dmljax.pallas.gpu import word_of


def as_bits(x: jax.Array) -> tuple[jax.Array, int, int]:
    """Returns the bits of (lines, elements), their width, and which of them matter.

    An element has 8, 16, 32 or 64 bits. The array has integers of at most 32 bits, so
    two for an element of 64. An element is not zero if one of the bits that matter is
    set.
    """
    dtype = x.dtype
    width = itemsize_bits(dtype)
    floating = jnp.issubdtype(dtype, np.floating)
    zeros = zero_patterns(dtype) if floating else (0,)
    whole = jnp.issubdtype(dtype, np.integer)
    if width in (8, 16, 32, 64) and zeros and (floating or whole):
        # The largest zero pattern is the sign bit alone, in types with a negative zero.
        # The other bits matter, and no comparison flushes a subnormal number to zero.
        keep = 2**width - 1 - max(zeros)
        bits = lax.bitcast_convert_type(x, f"uint{min(width, 32)}")
        return bits.reshape(x.shape[0], -1), width, keep
    return is_nonzero(x).astype(np.uint8), 8, 1


def flags_of_words(words: Sequence[Any], width: int, keep: int) -> Any:
    """Returns the flags of the elements, of `width` bits each, that some words hold.

    An element is not zero if one of the bits `keep` is set.
    """
    if width == 64:
        high, low = map(np.uint32, divmod(keep, 2**32))
        pairs = zip(words[::2], words[1::2], strict=True)
        either = [(lower & low) | (upper & high) for lower, upper in pairs]
        return flags_of_words(either, 32, 2**32 - 1)
    of_each = [flags_of_word(word, width, keep) for word in words]
    return word_of(of_each, BIT_WORD // width)


def flags_of_word(word: Any, width: int, keep: int) -> Any:
    """Returns the flags of the elements of one word."""
    # The elements of a word are tested together, because comparing each of them takes
    # more instructions.
    starts = range(0, BIT_WORD, width)
    ones = sum(1 << start for start in starts)
    top = ones << (width - 1)
    word &= np.uint32(keep * ones)
    # For example, 0x05 + 0x7f is 0x84, and 0x00 + 0x7f is 0x7f. Adding all ones below
    # an element's top bit carries into the top bit if one of the bits below is set. It
    # never carries into the next element. This is a known trick:
    # https://graphics.stanford.edu/~seander/bithacks.html#ZeroInWord
    rest = np.uint32(~top % 2**BIT_WORD)
    word = (((word & rest) + rest) | word) & np.uint32(top)
    # A product with this constant moves the top bits of all elements side by side.
    shift = BIT_WORD - width
    gather = sum(1 << (shift - start + i) for i, start in enumerate(starts))
    product = (word >> np.uint32(width - 1)) * np.uint32(gather)
    return (product >> np.uint32(shift)) & np.uint32(2 ** len(starts) - 1)


def transposed(t: Any, word: Any, size: int) -> Any:
    """Turns slice i of thread k of a group into slice k of thread i.

    A slice has `size` bits, and a group as many threads as a word has slices. In each
    step threads exchange half of their slices:

        thread 0  a0 a1     a0 b0
        thread 1  b0 b1     a1 b1
    """
    group = BIT_WORD // size
    step = group // 2
    while step:
        kept = [i for i in range(group) if not i & step]  # slices of the lower thread
        low = np.uint32(sum((2**size - 1) << (i * size) for i in kept))
        other = t.shuffle_xor(word, step)
        lower = (word & low) | ((other & low) << (step * size))
        upper = (word & ~low) | ((other & ~low) >> (step * size))
        word = t.select((t.thread & step) == 0, lower, upper)
        step //= 2
    return word
