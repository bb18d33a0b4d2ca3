"""Words of several elements that are narrower than 4 bytes, for kernels of a GPU."""

import functools
import operator
from typing import Any

import jax
import numpy as np
from jax import lax

WORD_BYTES = 4


def most_lanes(dtype: np.dtype) -> int:
    """How many elements a word may have; truth values can't be made from words."""
    return 1 if dtype.kind == "b" else max(WORD_BYTES // dtype.itemsize, 1)


def word_type(dtype: np.dtype, lanes: int) -> np.dtype:
    """The type of a word of so many elements."""
    return dtype if lanes == 1 else np.dtype(f"uint{8 * dtype.itemsize * lanes}")


def as_words(x: jax.Array, lanes: int) -> jax.Array:
    """The elements in a line of words; nothing is copied."""
    if lanes == 1:
        return x.ravel()
    return lax.bitcast_convert_type(x.reshape(-1, lanes), word_type(x.dtype, lanes))


def as_elements(words: jax.Array, dtype: np.dtype) -> jax.Array:
    """The elements of words; nothing is copied."""
    if words.dtype == dtype:
        return words
    return lax.bitcast_convert_type(words, dtype)


def in_words(value: Any, dtype: np.dtype, lanes: int) -> Any:
    """Words of which each element is `value`."""
    each = (in_lane(value, np.uint32(lane), dtype, lanes) for lane in range(lanes))
    return functools.reduce(operator.or_, each)


def in_lane(value: Any, lane: Any, dtype: np.dtype, lanes: int) -> Any:
    """A word of zeros but for `value` in `lane`."""
    if lanes == 1:
        return value
    bits, word = 8 * dtype.itemsize, word_type(dtype, lanes)
    value = value.astype(np.dtype(f"uint{bits}")).astype(word)
    return value << (lane * np.uint32(bits)).astype(word)
