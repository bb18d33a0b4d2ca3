"""Descriptors from and to JSON, by the types of their fields.

A struct needs no code here if its fields are integers, lists of integers, numbers,
enums and tensors. Only the tensor is named: model files have short spellings for it.
The rest of their format is in `_model`.
"""

import dataclasses
import enum
import math
import re
import typing
from collections.abc import Mapping
from typing import Any

import numpy as np

from dmljax._check import DescriptorError, as_json, counted, listed, quoted
from dmljax._directml.struct import c_name, field_types, required
from dmljax._directml.tensor import DataType, TensorDesc

# JSON has no NaN and no infinity: the format of model files writes them as strings.
NONFINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
NUMBER = "a number, 'nan', 'inf' or '-inf'"
# Every integer of the C structs fits in 64 bits, signed or unsigned.
LOWEST, HIGHEST = -(2**63), 2**64 - 1


def enum_prefix(kind: type[enum.Enum]) -> str:
    """Returns the prefix of the names of an enum's values in C.

    It follows from the enum's name, without the plural of flags, or is its C_PREFIX.

    >>> from dmljax import PaddingMode, TensorFlags
    >>> enum_prefix(PaddingMode), enum_prefix(TensorFlags), enum_prefix(DataType)
    ('DML_PADDING_MODE_', 'DML_TENSOR_FLAG_', 'DML_TENSOR_DATA_TYPE_')
    """
    name = kind.__name__
    if issubclass(kind, enum.Flag):
        name = name.removesuffix("s")
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()
    return str(getattr(kind, "C_PREFIX", f"DML_{name}_"))


def to_json(value: Any) -> Any:
    """Turns a descriptor, or a part of one, into values of JSON.

    Fields that are None or have their default are left out.
    """
    if dataclasses.is_dataclass(value):
        written = {}
        for each in dataclasses.fields(value):
            item = getattr(value, each.name)
            if item is not None and item != each.default:
                written[c_name(each.name)] = to_json(item)
        return written
    if isinstance(value, enum.Flag):
        names = [member.name for member in value]
        return names[0] if len(names) == 1 else names
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, tuple):
        return [to_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # one of NONFINITE
    return value


def from_json(kind: Any, value: Any, operator: str, field: str) -> Any:
    """Reads a value of type `kind`; messages name `operator` and the path `field`."""

    def wrong(expected: str) -> DescriptorError:
        return DescriptorError(
            f"{operator}: field '{field}' is {as_json(value)}; it must be {expected}."
        )

    kind, optional = required(kind)
    # The kinds are told apart by the annotation. A new kind of field is a case here, in
    # to_json, and in the checks of `descriptor`.
    if value is None and optional:
        return None
    if kind == tuple[int, ...]:
        if not isinstance(value, list):
            raise wrong("a list of integers")
        return tuple(from_json(int, each, operator, field) for each in value)
    if dataclasses.is_dataclass(kind):
        if not isinstance(value, Mapping):
            raise wrong("an object with the fields of the C struct")
        return _read_struct(typing.cast(type, kind), value, operator, field)
    if kind in (int | float, float):
        number = number_from_json(value, wrong(NUMBER))
        try:
            return float(number) if kind is float else number
        except OverflowError:  # an integer past the largest float
            raise wrong(NUMBER) from None
    if issubclass(kind, enum.Flag) and isinstance(value, list):
        flags = kind(0)
        for item in value:
            flags |= from_json(kind, item, operator, field)
        return flags
    if issubclass(kind, enum.Enum):  # by its short name, its full C name or its number
        members = kind.__members__  # iterating over flags would leave out the value 0
        if isinstance(value, str):
            name = value.removeprefix(enum_prefix(kind))
            if name in members:
                return members[name]
        if type(value) is int:
            for member in members.values():
                if member.value == value:
                    return member
        raise wrong(f"one of {', '.join(members)}")
    if type(value) is not int or not LOWEST <= value <= HIGHEST:
        raise wrong("an integer of at most 64 bits")
    return value


def number_from_json(value: Any, error: Exception) -> int | float:
    """Reads a number, for which the strings of `NONFINITE` may stand."""
    if isinstance(value, str) and value.lower() in NONFINITE:
        return NONFINITE[value.lower()]
    if type(value) not in (int, float):
        raise error
    return typing.cast("int | float", value)


def _read_struct(
    kind: type, value: Mapping[str, Any], operator: str, field: str
) -> Any:
    """Reads a dataclass from a JSON object with its C field names as keys."""
    given = _tensor_fields(value, operator, field) if kind is TensorDesc else value
    fields = {c_name(f.name): f for f in dataclasses.fields(kind)}
    for key in given:
        if key not in fields:
            raise DescriptorError(
                f"{operator}: '{field}' has an unknown field {quoted(str(key))}; its "
                f"fields are {', '.join(fields)}."
            )
    arguments: dict[str, Any] = {}
    for key, f in fields.items():
        path = f"{field}.{key}"
        item = given.get(key)
        hint = field_types(kind)[f.name]
        # A scalar union has a member for each data type. The field with the type comes
        # before it in every C struct, so its value is known here.
        if isinstance(item, Mapping) and hint == int | float:
            data_type = arguments[f"{f.name}_data_type"]
            item = _scalar_union(item, data_type, operator, path)
        if item is not None:
            arguments[f.name] = from_json(hint, item, operator, path)
        elif required(hint)[1]:
            arguments[f.name] = None
        elif f.default is dataclasses.MISSING:
            raise DescriptorError(
                f"{operator}: '{field}' has no field '{key}', which is required."
            )
    return kind(**arguments)


def _tensor_fields(
    value: Mapping[str, Any], operator: str, field: str
) -> dict[str, Any]:
    """Returns the fields of a tensor.

    A file may have them alone, or in the `Desc` of a DML_TENSOR_DESC, as in C.
    """
    fields = dict(value)
    kind = fields.pop("Type", "BUFFER")
    if kind not in ("BUFFER", "DML_TENSOR_TYPE_BUFFER"):
        raise DescriptorError(
            f"{operator}: field '{field}.Type' is {as_json(kind)}; it must be BUFFER."
        )
    if isinstance(fields.get("Desc"), Mapping):
        inner = dict(fields.pop("Desc"))
        if fields:
            raise DescriptorError(
                f"{operator}: '{field}' has the fields {listed(fields)} beside 'Desc'; "
                "they belong inside 'Desc'."
            )
        fields = inner
    count = fields.pop("DimensionCount", None)
    sizes = fields.get("Sizes")
    if (
        isinstance(sizes, list)
        and count is not None
        and (type(count) is not int or count != len(sizes))
    ):
        raise DescriptorError(
            f"{operator}: field '{field}.DimensionCount' is {as_json(count)}, while "
            f"'{field}.Sizes' has {counted(len(sizes), 'element')}; both must be the "
            "same."
        )
    # The tool reads an empty list as no strides, and 0 as a size that it computes.
    if fields.get("Strides") == []:
        del fields["Strides"]
    total = fields.get("TotalTensorSizeInBytes")
    if type(total) is int and total == 0:
        del fields["TotalTensorSizeInBytes"]
    return fields


def _scalar_union(
    value: Mapping[str, Any], data_type: DataType, operator: str, field: str
) -> Any:
    """Reads the number in a DML_SCALAR_UNION, by the member for `data_type`."""
    # C has no half-precision type, so the union has the bits of the number.
    half = data_type == DataType.FLOAT16
    name = "UINT16" if half else data_type.name
    member = name.capitalize().replace("Uint", "UInt")
    number = value.get(member)
    bits = type(number) is int and 0 <= number < 2**16
    if len(value) != 1 or number is None or (half and not bits):
        explained = ", the bits of the number" if half else ""
        raise DescriptorError(
            f"{operator}: field '{field}' is {as_json(dict(value))}; for "
            f"{data_type.name} it must be a number, or an object with the one member "
            f"'{member}'{explained}."
        )
    return float(np.uint16(number).view(np.float16)) if half else number
