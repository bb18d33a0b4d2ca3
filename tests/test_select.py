"""How selects choose. tests/transforms/test_results.py compares their results."""

import jax
import numpy as np
import pytest

from dmljax._select import select

CONDITION = np.zeros((2, 3), bool)
SCALAR, MATRIX = (np.ones(shape, np.float32) for shape in ((1, 1), (2, 3)))


@pytest.mark.parametrize("on", [SCALAR, MATRIX])
@pytest.mark.parametrize("off", [SCALAR, MATRIX])
def test_two_scalars_are_chosen_by_their_bits(on, off):
    """A select of them would keep XLA from its softmax fusion."""
    program = str(jax.make_jaxpr(select)(CONDITION, on, off))
    assert ("select_n" not in program) == (on is off is SCALAR)
