"""Checks for pyright alone: descriptors with converted fields, and wrong calls.

mypy does not know the converters of the fields, and wants the declared types.
tests/directml/test_operator.py runs pyright, which also reports an unneeded "ignore".
"""
# pyright: reportUnnecessaryTypeIgnoreComment=true

import jax
import numpy as np

import dmljax as dml
from dmljax import TensorDesc


def described() -> dml.PaddingDesc:
    """A descriptor, with integers and arrays for enum values and sizes."""
    item = TensorDesc(1, [2, 3], np.array([4, 1]), flags=1)
    output = TensorDesc(1, (np.arange(2) + 4).tolist(), None, None)
    return dml.PaddingDesc(item, output, 2, 0.0, 2, [1, 0], np.array([1, 2]))


def refused(x: jax.Array) -> None:
    """Calls that pyright refuses."""
    dml.padding(x, (1, 0), (0, 1), mode="mirror")  # pyright: ignore[reportArgumentType]
    dml.padding(x, ((1, 0), (0, 1)))  # pyright: ignore
    dml.diagonal_matrix1(x, fill_begin="1", fill_end=2)  # pyright: ignore
