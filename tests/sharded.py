"""The class of a case of the tests of sharding; tests/subjects/ has the cases."""

import dataclasses
from collections.abc import Callable

import numpy as np

SHAPE = (128, 4, 8)


def array(dtype="float32", shape=SHAPE):
    """Small whole numbers of both signs."""
    line = np.arange(np.prod(shape)) * 7 % 11 - 3
    return line.reshape(shape).astype(dtype)


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A call, and its row in the table on the operator's page.

    Attributes:
      function: takes arrays that are sharded alike.
      row: the operator and the sharded dimensions, as the table has them.
      fits: whether the row applies to a division, given by the number of parts of each
        dimension.
      arrays: the arguments. The derivative is by the last array.
      differentiable: whether the function has a derivative.
      divided: whether the last output is divided like the arrays. If every device has
        the whole output, JAX wants whole cotangents: take the gradient in the function.
      pads: the padding of the first dimension, before and after.
    """

    function: Callable
    row: tuple[str, str]
    fits: Callable = lambda parts: True
    arrays: tuple[np.ndarray, ...] = (array(),)
    differentiable: bool = True
    divided: bool = True
    pads: tuple[int, int] = (0, 0)
