"""ONE_HOT: the largest size. All else that is tested of it is in tests/subjects/."""

import functools

import jax
import numpy as np

from dmljax import one_hot


def test_the_largest_size():
    indices = jax.ShapeDtypeStruct((1, 0), np.int32)
    values = jax.ShapeDtypeStruct((2,), np.float32)
    call = functools.partial(one_hot, size=2**31 - 1, axis=0)
    assert jax.eval_shape(call, indices, values).shape == (2**31 - 1, 0)
