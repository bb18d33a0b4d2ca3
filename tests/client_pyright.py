"""What descriptors take in place of tuples and enum members. Only pyright checks it.

The fields of descriptors have converters, which mypy does not know: it wants the types
that are declared. tests/test_operator.py runs it.
"""

import numpy as np

import dmljax as dml
from dmljax import TensorDesc


def described() -> dml.PaddingDesc:
    """A descriptor, with integers and arrays for enum values and sizes."""
    item = TensorDesc(1, [2, 3], np.array([4, 1]), flags=1)
    output = TensorDesc(1, (np.arange(2) + 4).tolist())
    return dml.PaddingDesc(item, output, 2, 0.0, 2, [1, 0], np.array([1, 2]))
