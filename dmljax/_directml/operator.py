"""`create_operator` and its result, an `Operator`: a descriptor that can be called.

A call checks arrays against their tensors, and reads and writes them through strides.
The rules for descriptors are in `descriptor`, and `evaluate` of a descriptor computes
the result.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import typing
from typing import Any, Generic

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from dmljax._arguments import as_array, cast_hint, check_x64
from dmljax._check import (
    ArgumentError,
    ArgumentTypeError,
    as_member,
    naming,
    require_same,
    show,
)
from dmljax._directml.descriptor import OperatorDesc, Result
from dmljax._directml.strides import read, write
from dmljax._directml.struct import c_name
from dmljax._directml.support import FeatureLevel
from dmljax._directml.tensor import TensorDesc
from dmljax._types import WIDE


@dataclasses.dataclass(frozen=True, eq=False)
class Operator(Generic[Result]):
    """A function of input arrays, made from a descriptor.

    An operator takes an array for each input tensor, in the order of the C struct. For
    an optional tensor that is None, you pass no array. It returns the output array, or
    a NamedTuple of the outputs, such as ``NonzeroCoordinates``. It works inside jit,
    vmap and grad.

    If a tensor has no strides, its array has the sizes of the tensor. If a tensor has
    strides, its array is a flat buffer, with at least as many elements as the strides
    span. In the buffer of an output, elements outside of the tensor are 0.

    An operator has a hash, and can be a static argument of ``jax.jit``. Operators with
    equal descriptors and feature levels are equal; here a NaN equals itself, and 0.0
    differs from -0.0. An operator can also be pickled.

    Attributes:
      desc: the descriptor.
      feature_level: the level that the descriptor was checked at.

    Raises:
      DescriptorError: if the descriptor breaks a rule, or, in a call, if an array does
        not fit its tensor.
      TypeError: if `desc` is not a descriptor, or, in a call, if there are too few or
        too many arrays.

    >>> import jax.numpy as jnp
    >>> from dmljax import DataType, ElementWiseIfDesc, Operator, TensorDesc
    >>> condition, vector = (TensorDesc(t, (2,))
    ...                      for t in (DataType.UINT8, DataType.FLOAT32))
    >>> select = Operator(ElementWiseIfDesc(condition, vector, vector, vector))
    >>> select(jnp.array([1, 0], jnp.uint8), jnp.ones(2), jnp.zeros(2))
    Array([1., 0.], dtype=float32)
    """

    __module__ = "dmljax"

    desc: OperatorDesc[Result]
    feature_level: FeatureLevel = FeatureLevel.V6_4

    def __post_init__(self) -> None:
        """Checks the descriptor: there are no operators with an illegal one."""
        if not isinstance(self.desc, OperatorDesc):
            raise TypeError(
                "create_operator: desc must be an operator descriptor such as "
                f"PaddingDesc, not {type(self.desc).__name__}."
            )
        with naming("create_operator"):
            level = as_member("feature_level", self.feature_level, FeatureLevel)
        vars(self)["feature_level"] = level  # past the guard of a frozen dataclass
        self.desc.check(level)

    def __call__(self, *arrays: ArrayLike) -> Result:
        """Computes the outputs for the arrays of the input tensors."""
        with naming(self.desc.operator):
            inputs = self._inputs
            if len(arrays) != len(inputs):
                raise ArgumentTypeError(
                    f"{len(arrays)} input arrays were given; the "
                    f"descriptor has {len(inputs)} input tensors "
                    f"({', '.join(inputs) or 'none'})."
                )
            converted = []
            for (name, tensor), array in zip(inputs.items(), arrays, strict=True):
                # For a 64-bit NumPy array, `as_array` would suggest x64 mode. That does
                # not help if the tensor has 32-bit elements, so we compare the types
                # first.
                if type(array) is np.ndarray and array.dtype in WIDE:
                    _check_type(name, tensor, array.dtype)
                array = as_array(f"tensor '{name}'", array, strict=True)
                converted.append(array)
            result: Result = _evaluate(self, *converted)
        return result

    def __eq__(self, other: object) -> bool:
        """Whether both have equal descriptors and the same feature level."""
        return isinstance(other, Operator) and self._identity == other._identity

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        # We pickle no cached properties, because a hash differs between processes.
        return Operator, (self.desc, self.feature_level)

    # Every call reads these properties, so they are computed once.

    @functools.cached_property
    def _inputs(self) -> dict[str, TensorDesc]:
        return {c_name(n): t for n, t in self.desc.input_tensors().items()}

    @functools.cached_property
    def _identity(self) -> tuple[Any, ...]:
        identity = [type(self.desc), self.feature_level]
        # mypy does not know that the subclasses of OperatorDesc are dataclasses.
        for value in dataclasses.astuple(self.desc):  # type: ignore[call-overload]
            # A NaN equals a NaN of the same bits, and -0.0 differs from 0.0.
            is_number = isinstance(value, (int, float, np.number))
            if is_number and (value == 0 or math.isnan(value)):
                value = np.float64(value).tobytes()
            identity.append(value)
        return tuple(identity)

    @functools.cached_property
    def _hash(self) -> int:
        return hash(self._identity)


def create_operator(
    desc: OperatorDesc[Result], *, feature_level: FeatureLevel | int = FeatureLevel.V6_4
) -> Operator[Result]:
    """Checks a descriptor and returns its operator.

    Args:
      desc: an operator descriptor, such as ``PaddingDesc``.
      feature_level: the ``FeatureLevel`` at which the descriptor is checked, or its
        number. The default is the newest level.

    Returns:
      An ``Operator``, a function of the input arrays.

    Raises:
      DescriptorError: if the descriptor breaks a rule, or there is no such feature
        level. The returned operator raises it if an array does not fit its tensor.
      TypeError: if `desc` is not a descriptor.

    >>> import jax.numpy as jnp
    >>> from dmljax import DataType, PaddingDesc, PaddingMode, TensorDesc
    >>> vector = TensorDesc(DataType.FLOAT32, (3,))
    >>> desc = PaddingDesc(vector, TensorDesc(DataType.FLOAT32, (6,)),
    ...                    PaddingMode.REFLECTION, 0.0, 1, (2,), (1,))
    >>> create_operator(desc)(jnp.array([1.0, 2.0, 3.0]))
    Array([3., 2., 1., 2., 3., 2.], dtype=float32)
    """
    return Operator(desc, typing.cast("FeatureLevel", feature_level))


@functools.partial(jax.jit, static_argnums=0)
def _evaluate(operator: Operator[Any], *arrays: Array) -> Any:
    """Runs an operator. Equal operators share a compiled program."""
    desc = operator.desc
    # x64 mode may have been turned off since the descriptor was checked.
    for name, tensor in desc.tensors().items():
        check_x64(f"tensor '{c_name(name)}'", tensor.dtype)
    logical = []
    for (name, tensor), array in zip(operator._inputs.items(), arrays, strict=True):
        _check_type(name, tensor, array.dtype)
        if tensor.strides is None:
            array_name = f"The array for tensor '{name}'"
            sizes = {"the descriptor": tensor.sizes, array_name: array.shape}
            require_same("sizes", sizes, remedy="")
        # As in DirectML, a buffer may be longer than its tensor.
        elif array.ndim != 1 or array.shape[0] < tensor.extent:
            raise ArgumentError(
                f"tensor '{name}' has strides, so its array must be a flat buffer of "
                f"at least {tensor.extent} elements; its sizes are {show(array.shape)}."
            )
        else:
            array = read(tensor, array)
        logical.append(array)
    results = desc.evaluate(*logical)
    written = []
    outputs = desc.output_tensors().values()
    for tensor, value in zip(outputs, results, strict=True):
        # Only a wrong `evaluate` fails these checks.
        chex.assert_shape(value, tensor.sizes)
        chex.assert_type(value, tensor.dtype)
        if tensor.strides is not None:
            buffer = jnp.zeros(tensor.buffer_length, tensor.dtype)
            value = write(tensor, value, buffer)
        written.append(value)
    # Several outputs are a NamedTuple: we keep its class and its static data.
    if hasattr(results, "_make"):
        return jax.tree.unflatten(jax.tree.structure(results), written)
    (output,) = written
    return output


def _check_type(name: str, tensor: TensorDesc, dtype: np.dtype) -> None:
    """Requires that `dtype`, the type of an array, is the type of its tensor."""
    types = {"the descriptor": tensor.dtype, f"The array for tensor '{name}'": dtype}
    remedy = cast_hint("array", dtype, tensor.dtype)
    require_same("data types", types, remedy)
