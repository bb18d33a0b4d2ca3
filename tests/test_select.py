"""How selects choose. tests/transforms/test_results.py compares their results."""

import jax
import numpy as np
import pytest

from dmljax._select import select

CONDITION = np.zeros((2, 3), bool)
SCALAR = np.ones((1, 1), np.float32)
MATRIX = np.ones((2, 3), np.float32)


@pytest.mark.parametrize("on", [SCALAR, MATRIX])
@pytest.mark.parametrize("off", [SCALAR, MATRIX])
def test_two_scalars_are_chosen_by_their_bits(on, off):
    """With a select of two scalars, XLA would not find its softmax fusion."""
    program = str(jax.make_jaxpr(select)(CONDITION, on, off))
    assert ("select_n" not in program) == (on is off is SCALAR)
