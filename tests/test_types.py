"""The types of indices."""

import jax
import jax.numpy as jnp
import pytest
from jax import export

from dmljax._types import index_mode


@pytest.mark.parametrize(
    ("sizes", "dtype"),
    [((), "int32"), ((2**31 - 1, 5), "int32"), ((5, 2**31), "int64"), ("n", "int32")],
)
def test_type_of_indices(sizes, dtype, both_x64):
    """Indices have 64 bits where they must, also without x64 mode."""
    sizes = export.symbolic_shape(sizes) if sizes == "n" else sizes
    with index_mode(*sizes) as integer:
        assert integer == dtype
        assert jnp.arange(2, dtype=integer).dtype == dtype
        assert jax.config.jax_enable_x64 == (both_x64 or dtype == "int64")
    assert jax.config.jax_enable_x64 == both_x64
