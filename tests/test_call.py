"""The limit of a result. Every other test of an operator runs a compiled function."""

import jax
import numpy as np
import pytest

import dmljax
import dmljax.numpy as dnp
from dmljax import DescriptorError


def test_results_whose_bytes_xla_can_not_count():
    """JAX 0.10 would end the process."""
    long = jax.ShapeDtypeStruct((1, 2**31), np.int8)
    for call in (
        lambda x: dmljax.one_hot(x, np.float32([0, 1]), size=2**31 - 1, axis=0),
        lambda x: dmljax.diagonal_matrix1(shape=(2**30, 2**30)),
        lambda x: dnp.one_hot(x, 2**31 - 1, dtype=bool),
        lambda x: dmljax.padding(x, (2**30, 0), (0, 0)),
        lambda x: dnp.pad(x, 2**31, mode="wrap"),
    ):
        with pytest.raises(DescriptorError, match=r"the result .* sizes \{.*2\^59"):
            jax.eval_shape(call, long)
