"""The limits of results. No array is made."""

import jax
import numpy as np
import pytest

import dmljax
import dmljax.numpy as dnp
import dmljax.onnx as dox
from dmljax import DescriptorError
from tests.checks import struct

find = dmljax.nonzero_coordinates
BOTH = np.float32([0, 1])
MOST = 2**32 - 1


LONG = 1, 2**31


def hot(x):
    return dmljax.one_hot(x, BOTH, size=2**31 - 1, axis=0)


@pytest.mark.parametrize(
    ("shape", "call", "expected"),
    [
        ((), lambda x: dmljax.diagonal_matrix1(shape=(2**31, 0)), (2**31, 0)),
        ((1, 0), hot, (2**31 - 1, 0)),
        ((2, 0), lambda x: dmljax.padding(x, (0, 0), (MOST, 0)), (2**32 + 1, 0)),
        ((5,), lambda x: find(x, size=MOST, fill=MOST)[1], (MOST, 1)),
        ((2**28,), lambda x: dnp.extract(x, x, size=MOST), (MOST,)),
    ],
)
def test_the_largest_results(shape, call, expected):
    assert jax.eval_shape(call, struct(np.int8, *shape)).shape == expected


@pytest.mark.parametrize(
    ("shape", "call"),
    [
        (LONG, hot),
        (LONG, lambda x: dmljax.padding(x, (2**30, 0), (0, 0))),
        ((), lambda x: dmljax.diagonal_matrix1(shape=(2**20, 2**20, 2**19))),
        ((2**31 - 1, 2**29), lambda x: find(x[:, 0]).take(x)),
        ((3, 2**31 - 1, 2), lambda x: dnp.compress(x[:, 0, 0], x, 0, size=MOST)),
        ((2**28,), lambda x: dox.where(x[:, None] > 0, x, x[:, None, None])),
    ],
)
def test_results_whose_bytes_xla_can_not_count(shape, call):
    """JAX 0.10 would end the process."""
    # A fault that a test once missed: the primitive's own name, in small letters.
    name = r"^([A-Z_1]+|dmljax\.\w+\.\w+|NonzeroCoordinates\.take)"
    text = rf"{name}: the result .* sizes \{{.*2\^59"
    with pytest.raises(DescriptorError, match=text):
        jax.eval_shape(call, struct(np.int8, *shape))
