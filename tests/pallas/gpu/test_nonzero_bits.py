"""The test for non-zero elements, for every type and bit pattern."""

import jax.numpy as jnp
import numpy as np
import pytest

from dmljax._nonzero_forms import is_nonzero
from dmljax.pallas.gpu import _nonzero_bits
from tests import samples
from tests.pallas import lockstep
from tests.pallas.patterns import TYPES, patterns


@pytest.mark.parametrize("dtype", TYPES, indirect=True)
def test_nonzero_elements_by_their_bits(dtype):
    x = patterns(dtype)
    with np.errstate(invalid="ignore"):  # signalling NaN
        expected = x != 0
    np.testing.assert_array_equal(is_nonzero(jnp.asarray(x)), expected)
    bits, width, keep = _nonzero_bits.as_bits(jnp.asarray(x)[None])
    assert bits.dtype.kind == "u"
    assert bits.dtype.itemsize == min(width // 8, 4)
    unsigned = np.dtype(f"uint{width}")
    found = np.asarray(bits).view(unsigned) & unsigned.type(keep)
    np.testing.assert_array_equal(found[0] != 0, expected)


@pytest.mark.parametrize("keep", ["all", "without the sign"])
@pytest.mark.parametrize("width", [8, 16, 32])
def test_a_word_has_a_bit_for_each_element(width, keep):
    mask = 2**width - 1 if keep == "all" else 2 ** (width - 1) - 1
    dtype = np.dtype(f"uint{width}")
    lanes = 32 // width
    random = np.random.default_rng(0)
    half = 2 ** (width - 1)
    edges = np.array([0, 1, half, half - 1, 2 * half - 1], dtype)
    each = np.concatenate([patterns(dtype), np.tile(edges, 200)])
    lines = random.permuted(np.stack([each] * lanes, axis=1), axis=0)
    words = jnp.asarray(lines.view(np.uint32).ravel())
    found = np.asarray(_nonzero_bits.flags_of_word(words, width, mask))
    expected = ((lines & dtype.type(mask)) != 0) << np.arange(lanes)
    np.testing.assert_array_equal(found, expected.sum(axis=1))


def test_bits_of_wide_elements():
    """Each element is two words, and the second word has the sign."""
    first = 2.0**-1074  # the lowest bit of the first word
    last = 2.0**-1043  # the highest bit of the first word
    values = np.array([0.0, -0.0, first, last, -(2.0**-1022), np.inf])
    words = [jnp.asarray(values.view(np.uint32)[i::2]) for i in (0, 1)]
    found = _nonzero_bits.flags_of_words(words * 2, 64, 2**63 - 1)
    np.testing.assert_array_equal(found, np.array([0, 0, 3, 3, 3, 3], np.uint32))


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32])
def test_threads_exchange_slices_of_bits(size):
    """Slice i of thread k of a group becomes slice k of thread i."""
    t = lockstep.Threads(2, 64)
    words = samples.any_bits(t.shape, "uint32", 0)
    found = np.asarray(_nonzero_bits.transposed(t, jnp.asarray(words), size))
    group = 32 // size
    shift = np.arange(group, dtype=np.uint32) * np.uint32(size)
    mask = np.uint32(2**size - 1)

    def slices(words):
        return (words.reshape(-1, group, 1) >> shift) & mask

    np.testing.assert_array_equal(slices(found), slices(words).swapaxes(1, 2))
