"""Five DirectML operators for JAX: exact, differentiable, batched, static in shape."""

from dmljax._axis import PaddingMode as PaddingMode
from dmljax._check import DescriptorError as DescriptorError
from dmljax._descriptor import OperatorDesc as OperatorDesc
from dmljax._descriptor import create_operator as create_operator
from dmljax._diagonal_matrix1 import DiagonalMatrix1Desc as DiagonalMatrix1Desc
from dmljax._diagonal_matrix1 import DiagonalMatrixDesc as DiagonalMatrixDesc
from dmljax._diagonal_matrix1 import diagonal_matrix1 as diagonal_matrix1
from dmljax._element_wise_if import ElementWiseIfDesc as ElementWiseIfDesc
from dmljax._element_wise_if import element_wise_if as element_wise_if
from dmljax._fields import ModelError as ModelError
from dmljax._model import run_model as run_model
from dmljax._nonzero_coordinates import NonzeroCoordinates as NonzeroCoordinates
from dmljax._nonzero_coordinates import NonzeroCoordinatesDesc as NonzeroCoordinatesDesc
from dmljax._nonzero_coordinates import nonzero_coordinates as nonzero_coordinates
from dmljax._one_hot import OneHotDesc as OneHotDesc
from dmljax._one_hot import one_hot as one_hot
from dmljax._padding import Padding1Desc as Padding1Desc
from dmljax._padding import PaddingDesc as PaddingDesc
from dmljax._padding import padding as padding
from dmljax._support import FeatureLevel as FeatureLevel
from dmljax._tensor import DataType as DataType
from dmljax._tensor import TensorDesc as TensorDesc
from dmljax._tensor import TensorFlags as TensorFlags

__version__ = "0.1.0"
__all__ = [
    "DataType",
    "DescriptorError",
    "DiagonalMatrix1Desc",
    "DiagonalMatrixDesc",
    "ElementWiseIfDesc",
    "FeatureLevel",
    "ModelError",
    "NonzeroCoordinates",
    "NonzeroCoordinatesDesc",
    "OneHotDesc",
    "OperatorDesc",
    "Padding1Desc",
    "PaddingDesc",
    "PaddingMode",
    "TensorDesc",
    "TensorFlags",
    "create_operator",
    "diagonal_matrix1",
    "element_wise_if",
    "nonzero_coordinates",
    "one_hot",
    "padding",
    "run_model",
]
