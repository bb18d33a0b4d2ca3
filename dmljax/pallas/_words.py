"""Words: several elements that are narrower than 4 bytes, moved as one integer.

A GPU's thread loads and stores 4 bytes in one instruction as easily as 1 byte. Moving
four int8 elements as one uint32 therefore takes a quarter of the instructions. The
first element is in slot 0, which is the lowest bits:

    elements  0xaa 0xbb 0xcc 0xdd
    word      0xddccbbaa

Here belongs how words are made of elements and taken apart, outside a kernel
(`as_words`, `as_elements`) and inside one (`in_slot`, `in_every_slot`). Which elements
share a word is for each kernel to decide. `per_word` is always the number of elements
of a word; if that is 1, a word is the element itself, of the element's own type.
"""

import functools
import operator
from typing import Any

import jax
import numpy as np
from jax import lax

# The widest word, in bytes. A GPU computes in registers of 4 bytes.
WORD_BYTES = 4


def most_per_word(dtype: np.dtype) -> int:
    """The most elements of this type that a word can hold."""
    # JAX's bitcast_convert_type makes no booleans of an integer, so each is a word.
    return 1 if dtype.kind == "b" else max(WORD_BYTES // dtype.itemsize, 1)


def word_type(dtype: np.dtype, per_word: int) -> np.dtype:
    """The type of a word of `per_word` elements of type `dtype`."""
    return dtype if per_word == 1 else np.dtype(f"uint{8 * dtype.itemsize * per_word}")


def as_words(x: jax.Array, per_word: int) -> jax.Array:
    """The elements of `x` as a flat array of words."""
    if per_word == 1:
        return x.ravel()
    # XLA gives this bitcast the same memory: nothing is copied.
    word = word_type(x.dtype, per_word)
    return lax.bitcast_convert_type(x.reshape(-1, per_word), word)


def as_elements(words: jax.Array, dtype: np.dtype) -> jax.Array:
    """The elements of type `dtype` in an array of words, with one dimension more."""
    if words.dtype == dtype:
        return words
    return lax.bitcast_convert_type(words, dtype)


def in_every_slot(value: Any, dtype: np.dtype, per_word: int) -> Any:
    """Words of which every element is `value`."""
    each = (in_slot(value, np.uint32(i), dtype, per_word) for i in range(per_word))
    return functools.reduce(operator.or_, each)


def in_slot(value: Any, slot: Any, dtype: np.dtype, per_word: int) -> Any:
    """Words that hold `value` in `slot` and zeros in all other slots."""
    if per_word == 1:
        return value
    bits, word = 8 * dtype.itemsize, word_type(dtype, per_word)
    # A signed value is made unsigned before it is widened. Otherwise the copies of its
    # sign would fill the slots above.
    value = value.astype(np.dtype(f"uint{bits}")).astype(word)
    return value << (slot * np.uint32(bits)).astype(word)
