"""What all operator descriptors share: their checks and their evaluation."""

import abc
import dataclasses
import typing
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from dmljax._arguments import as_array, as_integer, as_sizes, check_x64
from dmljax._check import require, require_same, show
from dmljax._json import c_name, field_types, from_json, is_enum, to_json
from dmljax._support import FeatureLevel, SupportTable, check_support
from dmljax._tensor import DataType, TensorDesc, check_tensor, read, write


@dataclasses.dataclass(frozen=True)
class OperatorDesc(abc.ABC):
    """The base of the operator descriptors.

    A subclass has the C struct's fields, in snake_case and in the struct's order, and
    declares in class variables what the checks need.
    """

    __module__ = "dmljax"

    operator: ClassVar[str]
    support: ClassVar[SupportTable]
    outputs: ClassVar[tuple[str, ...]] = ("output_tensor",)
    same_type: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        """Takes lists for tuples and numbers for enum values, as TensorDesc does."""
        for name, hint in field_types(type(self)).items():
            value = getattr(self, name)
            if isinstance(value, list):
                object.__setattr__(self, name, tuple(value))
            elif is_enum(hint) and type(value) is int and value in list(hint):
                object.__setattr__(self, name, hint(value))

    def check_fields(self) -> None:
        """Requires that the fields have the types that the descriptor declares."""
        for name, hint in field_types(type(self)).items():
            value, label = getattr(self, name), c_name(name)
            kinds = typing.get_args(hint) or (hint,)
            if hint is int:
                as_integer(self.operator, label, value)
            elif hint == tuple[int, ...]:
                as_sizes(self.operator, label, value)
            else:
                numbers = (int, np.number) if float in kinds else ()
                expected = " or ".join(kind.__name__ for kind in kinds)
                require(
                    self.operator,
                    isinstance(value, (*kinds, *numbers)),
                    f"{label} is {value!r}; it must be {expected}.",
                )

    @abc.abstractmethod
    def output_shapes(self, level: FeatureLevel) -> tuple[tuple[int, ...], ...]:
        """Checks the attributes at `level`; the sizes that they give to the outputs."""

    @abc.abstractmethod
    def evaluate(self, *arrays: jax.Array) -> tuple[jax.Array, ...]:
        """The logical outputs for the logical inputs."""

    def tensors(self) -> dict[str, TensorDesc]:
        """The tensors that are present, by field name, in the struct's order."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {
            n: value for n, value in fields.items() if isinstance(value, TensorDesc)
        }

    def input_tensors(self) -> dict[str, TensorDesc]:
        """The input tensors that are present, by field name."""
        return {n: t for n, t in self.tensors().items() if n not in self.outputs}

    def output_tensors(self) -> dict[str, TensorDesc]:
        """The output tensors, by field name."""
        return {name: getattr(self, name) for name in self.outputs}

    def check(self, level: FeatureLevel) -> None:
        """Enforces everything that the operator's page demands at `level`."""
        self.check_fields()
        tensors = self.tensors()
        named = {c_name(name): tensor for name, tensor in tensors.items()}
        for name, tensor in tensors.items():
            output = name in self.outputs
            require(
                self.operator,
                tensor.data_type != DataType.UNKNOWN,
                f"tensor '{c_name(name)}' has data type UNKNOWN; it must have a type.",
            )
            check_tensor(self.operator, c_name(name), tensor, output=output)
        check_support(self.operator, self.support, level, named)
        for name, tensor in named.items():
            check_x64(self.operator, name, tensor.dtype)
        same = [name for name in self.same_type if name in tensors]
        for name in same[1:]:
            pair = [(c_name(n), tensors[n].dtype) for n in (name, same[0])]
            require_same(self.operator, "data types", *pair)
        shapes = self.output_shapes(level)
        for (name, tensor), shape in zip(
            self.output_tensors().items(), shapes, strict=True
        ):
            require(
                self.operator,
                tensor.sizes == shape,
                f"mismatched tensor sizes. Tensor '{c_name(name)}' has "
                f"{show(tensor.sizes)}, while the inputs and attributes give it "
                f"{show(shape)}; both must be the same.",
            )

    def check_value_type(self, data_type: DataType, name: str) -> None:
        """Requires that the data type of a scalar is the output's."""
        output = self.output_tensors()["output_tensor"].data_type
        require(
            self.operator,
            data_type == output,
            f"{name} is {data_type.name}, while tensor 'OutputTensor' has "
            f"{output.name}; both must be the same.",
        )

    def to_json(self) -> dict[str, Any]:
        """The operator as a dispatchable of a model file: ``type`` and ``desc``."""
        return {"type": f"DML_OPERATOR_{self.operator}", "desc": to_json(self)}

    @classmethod
    def from_json(cls, desc: Mapping[str, Any]) -> typing.Self:
        """The descriptor from the ``desc`` of a dispatchable, the C struct's fields."""
        return typing.cast("typing.Self", from_json(cls, desc, cls.operator, "desc"))


def create_operator(
    desc: OperatorDesc, *, feature_level: FeatureLevel = FeatureLevel.V6_4
) -> Callable[..., Any]:
    """Checks a descriptor and returns the operator that it describes.

    Args:
      desc: one of the operator descriptors, such as ``PaddingDesc``.
      feature_level: the level whose support tables bind the descriptor.

    Returns:
      A function of the input arrays, in the order of the C struct, optional tensors
      that are None left out. It returns the output array, or the operator's NamedTuple,
      and works inside jit, vmap and grad. A tensor without strides is an array of its
      sizes. A tensor with strides is a flat buffer: it is read, or written, through
      the strides, and the gaps of an output hold 0.

    Raises:
      DescriptorError: if the descriptor breaks a rule, naming operator, tensor, rule
        and values; or, from the returned function, if an array does not fit its tensor.

    >>> import jax.numpy as jnp
    >>> from dmljax import PaddingDesc, PaddingMode
    >>> vector = TensorDesc(DataType.FLOAT32, (3,))
    >>> desc = PaddingDesc(vector, TensorDesc(DataType.FLOAT32, (6,)),
    ...                    PaddingMode.REFLECTION, 0.0, 1, (2,), (1,))
    >>> create_operator(desc)(jnp.array([1.0, 2.0, 3.0]))
    Array([3., 2., 1., 2., 3., 2.], dtype=float32)
    """
    if not isinstance(desc, OperatorDesc):
        raise TypeError(
            f"create_operator takes an operator descriptor such as PaddingDesc, not "
            f"{type(desc).__name__}."
        )
    desc.check(FeatureLevel(feature_level))
    inputs, outputs = desc.input_tensors(), desc.output_tensors()

    def operator(*arrays: jax.Array) -> Any:
        if len(arrays) != len(inputs):
            names = ", ".join(map(c_name, inputs)) or "none"
            raise TypeError(
                f"{desc.operator}: {len(arrays)} input arrays were given; the "
                f"descriptor has {len(inputs)} input tensors ({names})."
            )
        logical = [
            _bind(desc.operator, c_name(name), tensor, array)
            for (name, tensor), array in zip(inputs.items(), arrays, strict=True)
        ]
        results = desc.evaluate(*logical)
        written = [
            value if tensor.strides is None else write(tensor, value, _zeros(tensor))
            for tensor, value in zip(outputs.values(), results, strict=True)
        ]
        make = getattr(type(results), "_make", None)
        return make(written) if make else written[0]

    return operator


def _zeros(tensor: TensorDesc) -> jax.Array:
    return jnp.zeros(tensor.buffer_length, tensor.dtype)


def _bind(operator: str, name: str, tensor: TensorDesc, array: Any) -> jax.Array:
    """The logical tensor that `array` holds; an error if it can't be that."""
    array = as_array(operator, name, array)
    require(
        operator,
        array.dtype == tensor.dtype,
        f"mismatched tensor data types. The array for tensor '{name}' has "
        f"{show(array.dtype)}, while the descriptor has {tensor.data_type.name}; both "
        "must be the same.",
    )
    if tensor.strides is None:
        require(
            operator,
            array.shape == tensor.sizes,
            f"mismatched tensor sizes. The array for tensor '{name}' has "
            f"{show(array.shape)}, while the descriptor has {show(tensor.sizes)}; both "
            "must be the same.",
        )
        return jnp.asarray(array)
    require(
        operator,
        array.ndim == 1 and array.shape[0] >= tensor.extent,
        f"tensor '{name}' has strides, so its array must be a flat buffer of at least "
        f"{tensor.extent} elements; its sizes are {show(array.shape)}.",
    )
    return read(tensor, jnp.asarray(array))
