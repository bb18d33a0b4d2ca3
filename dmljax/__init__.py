"""Select by boolean masks under jax.jit and pad by reflection, fast and with gradients.

Operators of DirectML, as exact functions of JAX:

- ``padding`` adds elements around an array, in five modes.
- ``nonzero_coordinates`` finds and counts the elements that are not zero.
- ``one_hot`` writes one value at each index, and another one elsewhere.
- ``element_wise_if`` selects from two arrays.
- ``diagonal_matrix1`` fills diagonals: triangles, bands, masks, identities.

>>> import jax.numpy as jnp
>>> import dmljax
>>> dmljax.padding(jnp.array([1, 2, 3]), (2,), (1,), mode="reflect")
Array([3, 2, 1, 2, 3, 2], dtype=int32)

Each operator is also a descriptor, such as ``PaddingDesc``. ``create_operator`` turns
it into a function. ``run_model`` runs the model files of DirectML's tool DxDispatch.
``dmljax.numpy`` and ``dmljax.onnx`` have the operators under the names of jax.numpy and
of ONNX.
"""

import typing

from dmljax import _operators
from dmljax._check import DescriptorError, ModelError
from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.operator import Operator, create_operator
from dmljax._directml.support import FeatureLevel
from dmljax._directml.tensor import DataType, TensorDesc, TensorFlags
from dmljax._nonzero_kernels import Implementation
from dmljax._operators import *  # noqa: F403  (the registry lists the operators' names)

if typing.TYPE_CHECKING:
    from dmljax._model.run import run_model

__version__ = "0.2.0"
__all__ = [
    *_operators.__all__,  # the functions come first
    "DataType",
    "DescriptorError",
    "FeatureLevel",
    "Implementation",
    "ModelError",
    "Operator",
    "OperatorDesc",
    "TensorDesc",
    "TensorFlags",
    "create_operator",
    "run_model",
]


def __dir__() -> list[str]:
    return sorted([*__all__, "numpy", "onnx"])


def __getattr__(name: str) -> typing.Any:
    # Programs that use none of these do not wait for the imports that they need.
    if name == "run_model":
        from dmljax._model.run import run_model

        return run_model
    if name in ("numpy", "onnx"):
        import dmljax.numpy
        import dmljax.onnx

        return getattr(dmljax, name)
    hint = ""
    if not name.startswith("_") and name in __getattr__("numpy").__all__:
        hint = f". dmljax.numpy has a function {name}"
    raise AttributeError(f"module 'dmljax' has no attribute {name!r}{hint}")
