"""From data types to the integers that kernels move, for every type and bit pattern.

The kernels themselves are then tested with one type of each size.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import dmljax
from dmljax._coordinates import is_nonzero
from dmljax.pallas.gpu import _lockstep, _nonzero_bits
from dmljax.pallas.gpu._words import on_bits, packed, unpacked
from dmljax.pallas.tpu import _blocks
from tests import samples, subjects
from tests.checks import assert_same

TYPES = (
    *("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"),
    *("int4", "int8", "int16", "int32", "int64", "complex64", "complex128"),
    *("uint4", "uint8", "uint16", "uint32", "uint64", "bool"),
)
ON_TPU = (
    *("float32", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int32", "int16", "int8"),
    *("uint32", "uint16", "uint8", "bool", "int4", "uint4"),
)
each_type = pytest.mark.parametrize("dtype", TYPES, indirect=True)


def patterns(dtype):
    """Every bit pattern of up to 16 bits; of more, special values and any others."""
    if dtype.name in ("bool", "int4", "uint4"):
        low, high = {"bool": (0, 2), "int4": (-8, 8), "uint4": (0, 16)}[dtype.name]
        return np.arange(low, high).astype(dtype)
    if dtype.itemsize <= 2:
        return (
            np.arange(2 ** (8 * dtype.itemsize))
            .astype(f"u{dtype.itemsize}")
            .view(dtype)
        )
    lines = [samples.any_bits((512,), dtype, seed) for seed in range(8)]
    powers = 1 << np.arange(8 * dtype.itemsize, dtype=object)  # one bit alone is set
    raw = b"".join(int(p).to_bytes(dtype.itemsize, "little") for p in powers)
    return np.concatenate([*lines, np.frombuffer(raw, dtype)])


def test_all_types_are_here():
    assert set(TYPES) == {
        dtype for subject in subjects.SUBJECTS.values() for dtype in subject.data_types
    }


# WHAT MOVES ELEMENTS


@each_type
def test_elements_are_moved_as_unsigned_integers(dtype):
    """The integers are as large as an element, or as a part of 4 bytes."""
    x = patterns(dtype)
    first = np.arange(x.size) % 3 == 0
    seen = []

    def form(condition, a, b):
        seen.extend([a.dtype, b.dtype])
        return (jnp.where(condition, a, b),)

    (result,) = on_bits(form)(first, jnp.asarray(x), jnp.asarray(x[::-1]))
    assert_same(result, np.where(first, x, x[::-1]))
    size = dtype.itemsize
    word = dtype if dtype.kind == "b" else np.dtype(f"uint{8 * min(size, 4)}")
    assert seen == [word] * 2 * max(size // 4, 1)


@pytest.mark.parametrize("width", [8, 16, 32])
def test_elements_of_words(width):
    """Those of a word lie side by side, the first one in its lowest bits."""
    elements = patterns(np.dtype(f"uint{width}"))[-4 * (32 // width) :]
    words = np.ascontiguousarray(elements).view(np.uint32)
    taken = unpacked(list(words), elements.size, width)
    np.testing.assert_array_equal(taken, elements)
    np.testing.assert_array_equal(packed(taken, width), words)


def test_floats_of_four_bits_are_moved_as_wider_ones():
    x = jnp.arange(-6, 7).astype(jnp.float4_e2m1fn)
    output = dmljax.element_wise_if(x > 0, x, -x, implementation="pallas")
    assert_same(output, jnp.where(x > 0, x, -x))


# WHAT IS NOT ZERO


@each_type
def test_what_is_not_zero_is_so_by_its_bits(dtype):
    x = patterns(dtype)
    with np.errstate(invalid="ignore"):  # signalling NaN
        expected = x != 0
    np.testing.assert_array_equal(is_nonzero(jnp.asarray(x)), expected)
    bits, width, keep = _nonzero_bits.as_bits(jnp.asarray(x)[None])
    assert bits.dtype.kind == "u"
    assert bits.dtype.itemsize == min(width // 8, 4)
    found = np.asarray(bits).view(f"uint{width}") & np.dtype(f"uint{width}").type(keep)
    np.testing.assert_array_equal(found[0] != 0, expected)


@pytest.mark.parametrize("keep", ["all", "without the sign"])
@pytest.mark.parametrize("width", [8, 16, 32])
def test_a_word_has_a_bit_for_each_element(width, keep):
    mask = 2**width - 1 if keep == "all" else 2 ** (width - 1) - 1
    dtype, lanes = np.dtype(f"uint{width}"), 32 // width
    random = np.random.default_rng(0)
    edges = np.array([0, 1, 2 ** (width - 1), 2 ** (width - 1) - 1, 2**width - 1])
    each = np.concatenate([patterns(dtype), np.tile(edges.astype(dtype), 200)])
    lines = np.stack([random.permutation(each) for _ in range(lanes)], axis=1)
    words = jnp.asarray(np.ascontiguousarray(lines).view(np.uint32).ravel())
    found = np.asarray(_nonzero_bits.nonzero_bits(words, width, mask))
    expected = ((lines & dtype.type(mask)) != 0) << np.arange(lanes)
    np.testing.assert_array_equal(found, expected.sum(axis=1))


def test_bits_of_wide_elements():
    """Two words each: the sign is in the second one."""
    values = np.array([0.0, -0.0, 5e-324, -(2.0**-1022), 1.0, np.inf])
    low, high = (jnp.asarray(values.view(np.uint32)[i::2]) for i in (0, 1))
    found = _nonzero_bits.bits_of_words([low, high] * 2, 64, 2**63 - 1)
    np.testing.assert_array_equal(found, np.array([0, 0, 3, 3, 3, 3], np.uint32))


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32])
def test_threads_exchange_chunks_of_bits(size):
    """Chunk i of thread k of a group becomes chunk k of thread i."""
    t = _lockstep.Threads(2, 64)
    words = samples.any_bits(t.shape, "uint32", 0)
    found = np.asarray(_nonzero_bits.transposed(t, jnp.asarray(words), size))
    group = 32 // size
    shift = np.arange(group, dtype=np.uint32) * np.uint32(size)
    mask = np.uint32(2**size - 1)

    def chunks(words):
        return (words.reshape(-1, group, 1) >> shift) & mask

    np.testing.assert_array_equal(chunks(found), chunks(words).swapaxes(1, 2))


# ON A TPU


@pytest.mark.parametrize("dtype", ON_TPU, indirect=True)
def test_words_of_a_tpu(dtype):
    """Four bytes for each element, by which it is moved and from which it returns."""
    x = patterns(dtype)
    (taken,) = _blocks.for_mosaic("padding", [jnp.asarray(x)])
    assert taken.dtype.kind != "b"
    assert jnp.issubdtype(taken.dtype, np.floating) or jnp.iinfo(taken.dtype).bits >= 8
    words = _blocks.to_bits(taken)
    assert words.dtype == np.int32
    back = _blocks.from_bits(lax.rev(words, (0,)), taken.dtype)
    assert_same(back.astype(dtype), x[::-1])
