"""NONZERO_COORDINATES: the largest sizes.

Its wrong calls and its edge cases are in tests/subjects/nonzero_coordinates.py.
"""

import functools

import jax
import numpy as np

from dmljax import nonzero_coordinates
from tests.checks import struct


def test_the_most_elements_and_rows():
    x = struct(np.int8, 65536, 65535)
    _, coordinates = jax.eval_shape(nonzero_coordinates, x)
    assert coordinates.shape == (65536 * 65535, 2)
    find = functools.partial(nonzero_coordinates, size=2**32 - 1, fill=2**32 - 1)
    rows = jax.eval_shape(find, struct(np.int8, 5)).coordinates
    assert rows.shape == (2**32 - 1, 1)
