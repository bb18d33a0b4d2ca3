"""Five DirectML operators for JAX: exact, differentiable, batched, static in shape.

Each operator is a function, such as ``padding``, and a descriptor, such as
``PaddingDesc``, which ``create_operator`` turns into a function. ``run_model`` runs the
model files of DirectML's tool DxDispatch.

>>> import jax.numpy as jnp
>>> import dmljax
>>> dmljax.padding(jnp.array([1, 2, 3]), (2,), (1,), mode=dmljax.PaddingMode.REFLECTION)
Array([3, 2, 1, 2, 3, 2], dtype=int32)
"""

import typing

from dmljax import _operators
from dmljax._check import DescriptorError, ModelError
from dmljax._descriptor import OperatorDesc
from dmljax._operator import Operator, create_operator
from dmljax._operators import *  # noqa: F403  (the registry lists the operators' names)
from dmljax._primitive import Implementation
from dmljax._support import FeatureLevel
from dmljax._tensor import DataType, TensorDesc, TensorFlags

if typing.TYPE_CHECKING:
    from dmljax._model.run import run_model

__version__ = "0.1.0"
__all__ = [
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
__all__ += _operators.__all__


def __getattr__(name: str) -> typing.Any:
    # Programs that run no model files do not wait for the imports that these need.
    if name == "run_model":
        from dmljax._model.run import run_model

        return run_model
    raise AttributeError(f"module 'dmljax' has no attribute {name!r}")
