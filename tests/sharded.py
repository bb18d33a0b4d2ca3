"""The class of a case of the tests of sharding; tests/subjects/ has the cases."""

import dataclasses
import functools
from collections.abc import Callable

import numpy as np

SHAPE = (128, 4, 8)


def array(dtype="float32", shape=SHAPE):
    """Small whole numbers of both signs."""
    line = np.arange(np.prod(shape)) * 7 % 11 - 3
    return line.reshape(shape).astype(dtype)


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A call, and the row of the table on the operator's page that speaks of it.

    Attributes:
      function: of arrays that are sharded alike.
      arrays: what it is called with. It is differentiated in the last of them.
      row: the operator and the dimensions that are sharded, as the table has them.
      fits: whether the row speaks of a division, given by the number of parts of each
        dimension.
      differentiable: whether the function has a derivative. If the output is whole on
        every device, JAX wants such a cotangent: take the gradient in the function.
      divided: whether the last output is divided as the arrays are.
      pads: how much longer the first dimension of the output is, before and after.
    """

    function: Callable
    arrays: tuple[np.ndarray, ...]
    row: tuple[str, str]
    fits: Callable = lambda parts: True
    differentiable: bool = True
    divided: bool = True
    pads: tuple[int, int] = (0, 0)

    def by_kernel(self):
        """The same call, by the operator's kernel."""
        function = functools.partial(self.function, implementation="pallas")
        return dataclasses.replace(self, function=function)
