"""From data types to the integers that the kernel of PADDING moves, in every bit.

test_padding.py then tests the kernel with one type of each size.
"""

import jax.numpy as jnp
import numpy as np
import pytest

from dmljax.pallas.gpu._padding_bits import on_bits
from tests.checks import assert_same
from tests.pallas.patterns import TYPES, patterns


@pytest.mark.parametrize("dtype", TYPES, indirect=True)
def test_elements_are_moved_as_unsigned_integers(dtype):
    """The integers are as large as an element, or as a part of 4 bytes."""
    x = patterns(dtype)
    seen = []

    def form(a, b):
        seen.extend([a.dtype, b.dtype])
        return (jnp.concatenate([a, b]),)

    (result,) = on_bits(form)(jnp.asarray(x), jnp.asarray(x[::-1]))
    assert_same(result, np.concatenate([x, x[::-1]]))
    size = dtype.itemsize
    word = dtype if dtype.kind == "b" else np.dtype(f"uint{8 * min(size, 4)}")
    assert seen == [word] * 2 * max(size // 4, 1)


def test_floats_of_four_bits_are_moved_as_wider_ones():
    x = jnp.arange(-6, 7).astype(jnp.float4_e2m1fn)
    (output,) = on_bits(lambda a, b: (jnp.concatenate([a, b]),))(x, x[::-1])
    assert_same(output, jnp.concatenate([x, x[::-1]]))
