"""What all operator descriptors share: their checks and their evaluation."""

import abc
import dataclasses
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic

import jax
import numpy as np

from dmljax._arguments import (
    Scalar,
    as_integer,
    as_scalar,
    as_sizes,
    check_float,
    check_x64,
    typed_as,
)
from dmljax._check import (
    as_member,
    is_number_of,
    require,
    require_same,
    show,
)
from dmljax._json import c_name, field_types, from_json, is_enum, to_json
from dmljax._support import FeatureLevel, SupportTable, check_support
from dmljax._tensor import (
    DataType,
    TensorDesc,
    check_tensor,
    is_sequence,
    plain_integers,
)

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # What the operator returns: an array, or a NamedTuple of several.
    Result = TypeVar("Result", default=Any)
else:
    Result = typing.TypeVar("Result")  # a default exists from Python 3.13 on


@dataclasses.dataclass(frozen=True)
class OperatorDesc(abc.ABC, Generic[Result]):
    """The base of the operator descriptors; ``Result`` is what the operator returns.

    A subclass has the C struct's fields, in snake_case and in the struct's order, and
    declares in class variables what the checks need.
    """

    __module__ = "dmljax"

    operator: ClassVar[str]
    support: ClassVar[SupportTable]
    outputs: ClassVar[tuple[str, ...]] = ("output_tensor",)
    same_type: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        """Takes sequences for tuples and numbers for enums, as TensorDesc does."""
        for name, hint in field_types(type(self)).items():
            value = getattr(self, name)
            if hint == tuple[int, ...] and is_sequence(value):
                object.__setattr__(self, name, plain_integers(value))
            elif hint is int and isinstance(value, np.integer):
                object.__setattr__(self, name, int(value))
            elif is_enum(hint) and is_number_of(value, hint):
                object.__setattr__(self, name, hint(int(value)))

    def check_fields(self) -> None:
        """Requires that the fields have the types that the descriptor declares."""
        for name, hint in field_types(type(self)).items():
            value, label = getattr(self, name), c_name(name)
            kinds = typing.get_args(hint) or (hint,)
            if hint is int:
                as_integer(self.operator, label, value)
            elif hint == tuple[int, ...]:
                as_sizes(self.operator, label, value)
            elif is_enum(hint):
                as_member(self.operator, label, value, hint)
            elif float in kinds:
                check_float(self.operator, label, value)
            else:
                expected = " or ".join(kind.__name__ for kind in kinds)
                require(
                    self.operator,
                    isinstance(value, kinds),
                    f"{label} is {value!r}; it must be {expected}.",
                )

    @abc.abstractmethod
    def output_shapes(self, level: FeatureLevel) -> tuple[tuple[int, ...], ...]:
        """Checks the attributes at `level`; the sizes that they give to the outputs."""

    @abc.abstractmethod
    def evaluate(
        self, *arrays: jax.Array, alone: bool = False
    ) -> tuple[jax.Array, ...]:
        """The logical outputs for the logical inputs, inside of a compiled function.

        `alone` says that they are the whole of a program, with nothing to fuse with.
        """

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

    def scalar(self, name: str, value: int | float) -> Scalar:
        """An attribute as an operand of the output's type, which it must fit."""
        output = self.output_tensors()["output_tensor"]
        scalar = as_scalar(self.operator, name, value, output)
        if scalar.array is not None:
            typed_as(self.operator, name, scalar.array, output.dtype)
        return scalar

    def to_json(self) -> dict[str, Any]:
        """The operator as a dispatchable of a model file: ``type`` and ``desc``."""
        return {"type": f"DML_OPERATOR_{self.operator}", "desc": to_json(self)}

    @classmethod
    def from_json(cls, desc: Mapping[str, Any]) -> typing.Self:
        """The descriptor from the ``desc`` of a dispatchable, the C struct's fields."""
        return typing.cast("typing.Self", from_json(cls, desc, cls.operator, "desc"))
