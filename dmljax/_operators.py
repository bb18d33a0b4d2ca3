"""The registry: the only list of operators in the package.

The model runner, the command line, the documentation, the benchmarks and the tests read
the registry, and `dmljax` exports the names in `__all__`. A new operator needs its
imports, its public names, and one entry here.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from dmljax._diagonal_matrix1 import (
    DiagonalMatrix1Desc,
    DiagonalMatrixDesc,
    diagonal_matrix1,
)
from dmljax._directml.descriptor import OperatorDesc
from dmljax._element_wise_if import ElementWiseIfDesc, element_wise_if
from dmljax._nonzero_coordinates import (
    NONZERO_COORDINATES,
    NonzeroCoordinatesDesc,
    nonzero_coordinates,
)
from dmljax._nonzero_coordinates_result import NonzeroCoordinates
from dmljax._one_hot import OneHotDesc, one_hot
from dmljax._padding import PADDING, Padding1Desc, PaddingDesc, padding
from dmljax._padding_forms import PaddingMode
from dmljax._primitive import OperatorPrimitive

__all__ = [
    "diagonal_matrix1",
    "element_wise_if",
    "nonzero_coordinates",
    "one_hot",
    "padding",
]
__all__ += [
    "DiagonalMatrix1Desc",
    "DiagonalMatrixDesc",
    "ElementWiseIfDesc",
    "NonzeroCoordinates",
    "NonzeroCoordinatesDesc",
    "OneHotDesc",
    "Padding1Desc",
    "PaddingDesc",
    "PaddingMode",
]


class Registered(NamedTuple):
    """One operator of the registry."""

    function: Callable[..., Any]  # the public function
    # The C structs of the function. The first one has the name of the operator. The
    # rest are older or newer versions.
    descriptors: tuple[type[OperatorDesc], ...]
    # The primitive of a function with several forms. Without a primitive, the function
    # is plain jax.numpy.
    primitive: OperatorPrimitive | None = None


# The operators by the name of their function, DirectML's name in snake_case.
OPERATORS = {
    operator.function.__name__: operator
    for operator in (
        Registered(diagonal_matrix1, (DiagonalMatrix1Desc, DiagonalMatrixDesc)),
        Registered(element_wise_if, (ElementWiseIfDesc,)),
        Registered(nonzero_coordinates, (NonzeroCoordinatesDesc,), NONZERO_COORDINATES),
        Registered(one_hot, (OneHotDesc,)),
        Registered(padding, (PaddingDesc, Padding1Desc), PADDING),
    )
}
# The descriptors by DirectML's name of the operator, such as "PADDING1".
DESCRIPTORS = {
    descriptor.operator: descriptor
    for operator in OPERATORS.values()
    for descriptor in operator.descriptors
}
