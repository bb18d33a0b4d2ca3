"""The types of indices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from dmljax._types import index_mode


@pytest.mark.parametrize(
    ("sizes", "dtype"),
    [((), "int32"), ((2**31 - 1, 5), "int32"), ((5, 2**31), "int64"), ("n", "int32")],
)
def test_type_of_indices(sizes, dtype):
    """Indices have 64 bits where they must, although x64 mode is off."""
    sizes = export.symbolic_shape(sizes) if sizes == "n" else sizes
    with index_mode(*sizes) as integer:
        assert integer == dtype
        assert jnp.arange(2, dtype=integer).dtype == dtype
    assert not jax.config.jax_enable_x64


def test_type_of_indices_under_x64(x64):
    with index_mode(5) as integer:
        assert integer == np.int32
        assert jax.config.jax_enable_x64
