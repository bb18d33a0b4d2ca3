"""The base class of operator descriptors: their fields, their checks, and their JSON.

The checks here hold for every operator. The rules of a single operator are in its
descriptor's `check_rules`, in the file of the operator.
"""

import abc
import dataclasses
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic

import jax
import numpy as np
from jax import Array

from dmljax._arguments import as_scalar, check_x64
from dmljax._check import ArgumentError, naming, require_same, show
from dmljax._directml.json import read_fields, reader_of, to_json
from dmljax._directml.struct import c_name, convert_fields
from dmljax._directml.support import FeatureLevel, SupportTable, check_support
from dmljax._directml.tensor import DataType, TensorDesc, check_tensor

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # The type of the result: an array, or a NamedTuple of several.
    Result = TypeVar("Result", default=Any)
else:
    # Python's own TypeVar takes a default from 3.13 on. Only type checkers need it.
    Result = typing.TypeVar("Result")


@typing.dataclass_transform(frozen_default=True)
class OperatorDesc(abc.ABC, Generic[Result]):
    """The base class of the operator descriptors.

    In a descriptor, you may write any sequence for a tuple, and a number for a member
    of an enum. A value of another type is an error when the descriptor is made.

    To describe another operator, write a subclass. Give it the fields of the C struct,
    in the same order and in snake_case, and the class variables below, which the checks
    read. `evaluate` returns a tuple of one output, or a NamedTuple of several. A call
    of the operator returns the one output or the NamedTuple, whose type is the type
    parameter ``Result``. `check_rules` checks the rules that `evaluate` does not check.
    The suffix of a name can add a check: a ``.._value_data_type`` must be the type of
    the output, and a ``.._count`` must be the length of each list after it.

    Attributes:
      operator: DirectML's name of the operator, such as "PADDING".
      support: for each feature level and each C name of a tensor, the least and the
        greatest number of its dimensions, and its data types.
      outputs: the names of the fields that are output tensors.
      same_type: the names of the fields whose tensors must have the same data type. A
        tensor that is None is ignored.

    >>> from dmljax import DataType, PaddingDesc, PaddingMode, TensorDesc
    >>> vector = TensorDesc(DataType.FLOAT32, (3,))
    >>> desc = PaddingDesc(vector, vector, PaddingMode.EDGE, 0.0, 1, (0,), (0,))
    >>> desc.to_json()["type"], PaddingDesc.from_json(desc.to_json()["desc"]) == desc
    ('DML_OPERATOR_PADDING', True)
    """

    __module__ = "dmljax"

    # These are annotated as ClassVar, because other annotations would be fields.
    operator: ClassVar[str]
    support: ClassVar[SupportTable]
    outputs: ClassVar[tuple[str, ...]] = ("output_tensor",)
    same_type: ClassVar[tuple[str, ...]] = ("input_tensor", "output_tensor")

    def __init_subclass__(cls) -> None:
        """Makes the subclass a dataclass."""
        super().__init_subclass__()
        # Tracebacks and pickles of our descriptors show the public module. A user's
        # class keeps its own: typing.get_type_hints looks names up in the module.
        if cls.__module__.startswith("dmljax."):
            cls.__module__ = "dmljax"
        dataclasses.dataclass(frozen=True)(cls)

    def __post_init__(self) -> None:
        """Converts the fields to their types."""
        with naming(self.operator):
            convert_fields(self)

    def check_rules(self, level: FeatureLevel) -> None:
        """Checks the rules at `level` that `evaluate` does not check."""

    def output_shapes(self, level: FeatureLevel) -> tuple[tuple[int, ...], ...]:
        """Returns the sizes of the outputs at `level`.

        By default, `evaluate` is traced, and so checks the attributes. A subclass may
        know the sizes, also by level.
        """
        tensors = self.input_tensors().values()
        arrays = [jax.ShapeDtypeStruct(each.sizes, each.dtype) for each in tensors]
        return tuple(output.shape for output in jax.eval_shape(self.evaluate, *arrays))

    @abc.abstractmethod
    def evaluate(self, *arrays: Array) -> tuple[Array, ...]:
        """Computes the logical outputs for the logical inputs.

        The arrays are traced: this method can't read their elements. A logical tensor
        is an array of the sizes of its description, whatever the strides.

        Args:
          arrays: the input tensors that are not None, in the order of the struct.
        """

    def tensors(self) -> dict[str, TensorDesc]:
        """Returns the tensors that are not None, by field name, in order."""
        return {n: t for n, t in vars(self).items() if isinstance(t, TensorDesc)}

    def input_tensors(self) -> dict[str, TensorDesc]:
        """Returns the input tensors that are not None, by field name."""
        return {n: t for n, t in self.tensors().items() if n not in self.outputs}

    def output_tensors(self) -> dict[str, TensorDesc]:
        """Returns the output tensors, by field name."""
        return {name: getattr(self, name) for name in self.outputs}

    def check(self, level: FeatureLevel) -> None:
        """Enforces the rules of Microsoft's page on the operator at `level`.

        Raises:
          DescriptorError: if a rule is broken.
        """
        tensors = self.tensors()
        by_c_name = {c_name(name): tensor for name, tensor in tensors.items()}
        # Each check relies on the checks before it.
        with naming(self.operator):
            # The tensors, each by itself, and then their types.
            for name, tensor in tensors.items():
                check_tensor(c_name(name), tensor, output=name in self.outputs)
            check_support(self.support, level, by_c_name)
            for name, tensor in by_c_name.items():
                check_x64(f"tensor '{name}'", tensor.dtype)
            types = {
                c_name(name): tensors[name].dtype
                for name in self.same_type
                if name in tensors
            }
            require_same("data types", types)
            self._check_counts_and_types()
            self.check_rules(level)
            # The outputs' sizes, which follow from the inputs and attributes.
            shapes = self.output_shapes(level)
            for name, shape in zip(self.outputs, shapes, strict=True):
                sizes = tensors[name].sizes
                if sizes != shape:
                    raise ArgumentError(
                        f"mismatched tensor sizes. Tensor '{c_name(name)}' has "
                        f"{show(sizes)}, while the inputs and attributes give it "
                        f"{show(shape)}; both must be the same."
                    )

    def _check_counts_and_types(self) -> None:
        """Checks the fields that repeat what other fields say: counts and a type."""
        output = self.outputs[0]
        data_type = getattr(self, output).data_type
        count_name, count = "", 0
        for field, value in vars(self).items():
            name = c_name(field)
            # A count stands before the lists that have this length.
            if name.endswith("Count"):
                count_name, count = name, value
            elif isinstance(value, tuple) and count_name and len(value) != count:
                raise ArgumentError(
                    f"{count_name} is {count}, while the length of {name} is "
                    f"{len(value)}; both must be the same."
                )
            # The type of a scalar is the type of the output.
            elif name.endswith("ValueDataType") and value != data_type:
                raise ArgumentError(
                    f"{name} is {value.name}, while tensor '{c_name(output)}' has "
                    f"{data_type.name}; both must be the same."
                )

    def scalar(
        self, name: str, value: int | float, *, is_float: bool = False
    ) -> Array | np.ndarray:
        """Returns the value of field `name` as a scalar of the output's type.

        Pass `is_float` for a FLOAT of the C struct. The value is then rounded to
        float32, and for an integer tensor truncated toward zero, as Microsoft's page on
        PADDING says. It does not say what becomes of NaN and of values out of range. We
        chose JAX's own cast: a value saturates, and NaN becomes 0.

        Raises:
          DescriptorError: without `is_float`, if the type can't hold the value.
        """
        output = getattr(self, self.outputs[0])
        # C has no half-precision type: the value is a float32 first.
        is_half = output.data_type == DataType.FLOAT16 and type(value) is float
        if is_float or is_half:
            with np.errstate(over="ignore"):  # too large a value becomes infinity
                value = float(np.float32(value))
        return as_scalar(name, value, output.dtype, cast=is_float, strict=True)

    def to_json(self) -> dict[str, Any]:
        """Returns the operator as an object of a model file: ``type`` and ``desc``."""
        return {"type": f"DML_OPERATOR_{self.operator}", "desc": to_json(self)}

    @classmethod
    def from_json(cls, desc: Mapping[str, Any]) -> typing.Self:
        """Reads the descriptor from a model file.

        Args:
          desc: the object ``desc`` of an operator in the file: the fields of the C
            struct, under their C names.

        Raises:
          DescriptorError: if a field is unknown, is missing, or has another type.
        """
        with naming(cls.operator):
            fields = reader_of(cls).read(desc, "the field 'desc'")
            return typing.cast("typing.Self", read_fields(cls, fields, "desc."))
