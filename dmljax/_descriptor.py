"""What all operator descriptors share: their checks, their JSON, their evaluation."""

import abc
import dataclasses
import enum
import functools
import math
import operator as operators
import types
import typing
from collections.abc import Callable, Mapping
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
    DescriptorError,
    as_member,
    is_number_of,
    require,
    require_same,
    show,
)
from dmljax._support import FeatureLevel, SupportTable, check_support
from dmljax._tensor import (
    DataType,
    TensorDesc,
    check_tensor,
    is_sequence,
    plain_integers,
)

NONFINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
# What C puts before the names of an enum's values.
ENUM_PREFIXES = {
    "DataType": "DML_TENSOR_DATA_TYPE_",
    "PaddingMode": "DML_PADDING_MODE_",
    "TensorFlags": "DML_TENSOR_FLAG_",
}


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
        for name, hint in _field_types(type(self)).items():
            value = getattr(self, name)
            if hint == tuple[int, ...] and is_sequence(value):
                object.__setattr__(self, name, plain_integers(value))
            elif hint is int and isinstance(value, np.integer):
                object.__setattr__(self, name, int(value))
            elif _is_enum(hint) and is_number_of(value, hint):
                object.__setattr__(self, name, hint(int(value)))

    def check_fields(self) -> None:
        """Requires that the fields have the types that the descriptor declares."""
        for name, hint in _field_types(type(self)).items():
            value, label = getattr(self, name), c_name(name)
            kinds = typing.get_args(hint) or (hint,)
            if hint is int:
                as_integer(self.operator, label, value)
            elif hint == tuple[int, ...]:
                as_sizes(self.operator, label, value)
            elif _is_enum(hint):
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
        return {"type": f"DML_OPERATOR_{self.operator}", "desc": _to_json(self)}

    @classmethod
    def from_json(cls, desc: Mapping[str, Any]) -> typing.Self:
        """The descriptor from the ``desc`` of a dispatchable, the C struct's fields."""
        return typing.cast("typing.Self", _from_json(cls, desc, cls.operator, "desc"))


def _field_types(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _is_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, enum.Enum)


def c_name(name: str) -> str:
    """A field's name in the C struct.

    >>> c_name("diagonal_fill_begin")
    'DiagonalFillBegin'
    """
    return "".join(part.capitalize() for part in name.split("_"))


def _to_json(value: Any) -> Any:
    """A descriptor, or a part of one, as JSON: None and defaults are left out."""
    if dataclasses.is_dataclass(value):
        fields = [(f, getattr(value, f.name)) for f in dataclasses.fields(value)]
        return {
            c_name(f.name): _to_json(v)
            for f, v in fields
            if v is not None and v != f.default
        }
    if isinstance(value, enum.IntFlag):
        return int(value)
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, tuple):
        return [_to_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def _from_json(kind: Any, value: Any, operator: str, field: str) -> Any:
    """A value of the annotated type `kind` from JSON; `field` names it in errors."""

    def wrong(expected: str) -> DescriptorError:
        return DescriptorError(
            f"{operator}: field '{field}' is {value!r}; it must be {expected}."
        )

    if isinstance(kind, types.UnionType):
        if value is None and types.NoneType in kind.__args__:
            return None
        if kind == int | float:
            return number_from_json(value, wrong("a number, 'nan', 'inf' or '-inf'"))
        kind = kind.__args__[0]
    if typing.get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise wrong("a list of integers")
        return tuple(_from_json(int, item, operator, field) for item in value)
    if dataclasses.is_dataclass(kind):
        return _struct_from_json(typing.cast(type, kind), value, operator, field, wrong)
    if issubclass(kind, enum.Flag) and isinstance(value, list):
        flags = (_from_json(kind, item, operator, field) for item in value)
        return functools.reduce(operators.or_, flags, kind(0))
    if issubclass(kind, enum.Enum):
        return _enum_from_json(kind, value, wrong)
    if kind is float:
        return _float_from_json(value, wrong("a number, 'nan', 'inf' or '-inf'"))
    if type(value) is not int:
        raise wrong("an integer")
    return value


def number_from_json(value: Any, error: Exception) -> int | float:
    """A number of a model file; JSON has no NaN and infinity, so strings name them."""
    if isinstance(value, str) and value.lower() in NONFINITE:
        return NONFINITE[value.lower()]
    if type(value) not in (int, float):
        raise error
    return typing.cast("int | float", value)


def _float_from_json(value: Any, error: Exception) -> float:
    try:
        return float(number_from_json(value, error))
    except OverflowError:  # an integer past the largest float
        raise error from None


def _enum_from_json(
    kind: type[enum.Enum], value: Any, wrong: Callable[[str], DescriptorError]
) -> enum.Enum:
    """An enum value by its short or its full C name, or by its number."""
    members = kind.__members__  # iteration would leave out flags of value 0
    if isinstance(value, str):
        value = value.removeprefix(ENUM_PREFIXES[kind.__name__])
    for name, member in members.items():
        if value == name or (type(value) is int and value == member.value):
            return member
    raise wrong("one of " + ", ".join(members))


def _struct_from_json(
    kind: type, value: Any, operator: str, field: str, wrong: Any
) -> Any:
    """A dataclass from a JSON object whose keys are its C field names."""
    if not isinstance(value, Mapping):
        raise wrong("an object with the fields of the C struct")
    if kind is TensorDesc:
        value = _tensor_fields(value, operator, field)
    hints = typing.get_type_hints(kind)
    fields = {c_name(f.name): f for f in dataclasses.fields(kind)}
    for key in value:
        if key not in fields:
            raise DescriptorError(
                f"{operator}: '{field}' has an unknown field '{key}'; its fields are "
                f"{', '.join(fields)}."
            )
    arguments: dict[str, Any] = {}
    for key, f in fields.items():
        path, item, hint = f"{field}.{key}", value.get(key), hints[f.name]
        if isinstance(item, Mapping) and hint == int | float:
            data_type = arguments[f"{f.name}_data_type"]
            item = _scalar_union(item, data_type, operator, path)
        if item is not None:
            arguments[f.name] = _from_json(hint, item, operator, path)
        elif types.NoneType in typing.get_args(hint):
            arguments[f.name] = None
        elif f.default is dataclasses.MISSING:
            raise DescriptorError(f"{operator}: '{field}' misses the field '{key}'.")
    return kind(**arguments)


def _tensor_fields(
    value: Mapping[str, Any], operator: str, field: str
) -> dict[str, Any]:
    """The fields of a tensor, taken out of a DML_TENSOR_DESC if it is in one."""
    fields = dict(value)
    kind = fields.pop("Type", "BUFFER")
    if kind not in ("BUFFER", "DML_TENSOR_TYPE_BUFFER"):
        raise DescriptorError(
            f"{operator}: field '{field}.Type' is {kind!r}; it must be BUFFER."
        )
    if isinstance(fields.get("Desc"), Mapping):
        fields = dict(fields["Desc"])
    sizes, count = fields.get("Sizes"), fields.pop("DimensionCount", None)
    if isinstance(sizes, list) and count not in (None, len(sizes)):
        raise DescriptorError(
            f"{operator}: field '{field}.DimensionCount' is {count!r}, while "
            f"'{field}.Sizes' has {len(sizes)} elements; both must be the same."
        )
    # An empty list and 0 stand for the C struct's null and computed size.
    for key, absent in (("Strides", []), ("TotalTensorSizeInBytes", 0)):
        if fields.get(key) == absent:
            del fields[key]
    return fields


def _scalar_union(
    value: Mapping[str, Any], data_type: DataType, operator: str, field: str
) -> Any:
    """The number in a DML_SCALAR_UNION, by the member that `data_type` names."""
    half = data_type == DataType.FLOAT16  # C has no such type: the bits are given
    member = "UInt16" if half else data_type.name.capitalize().replace("Uint", "UInt")
    number = value.get(member)
    if len(value) != 1 or number is None or (half and number not in range(2**16)):
        raise DescriptorError(
            f"{operator}: field '{field}' is {dict(value)!r}; for {data_type.name} it "
            f"must be a number, or an object with the one member '{member}'"
            f"{', the bits of the number' if half else ''}."
        )
    return float(np.uint16(number).view(np.float16)) if half else number
