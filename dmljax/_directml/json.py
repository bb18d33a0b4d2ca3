"""Descriptors from and to JSON, by the types of their fields.

A struct needs no code here if its fields are integers, lists of integers, numbers,
enums and structs. The rest of the format of model files is in `_model`, and the rules
for the values are in `tensor` and in the descriptors.
"""

import dataclasses
import enum
import math
import re
import typing
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dmljax._check import DescriptorError, as_json, quoted
from dmljax._directml.struct import c_name, field_types, required
from dmljax._directml.tensor import TensorDesc

# JSON has no NaN and no infinity: the format of model files writes them as strings.
NONFINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
NUMBER = "a number, 'nan', 'inf' or '-inf'"


def enum_prefix(enum_type: type[enum.Enum]) -> str:
    """Returns the prefix of the names of an enum's values in C.

    It follows from the enum's name, without the plural of flags, or is its C_PREFIX.

    >>> from dmljax import DataType, PaddingMode, TensorFlags
    >>> enum_prefix(PaddingMode), enum_prefix(TensorFlags), enum_prefix(DataType)
    ('DML_PADDING_MODE_', 'DML_TENSOR_FLAG_', 'DML_TENSOR_DATA_TYPE_')
    """
    name = enum_type.__name__
    if issubclass(enum_type, enum.Flag):
        name = name.removesuffix("s")
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()
    return str(getattr(enum_type, "C_PREFIX", f"DML_{name}_"))


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
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, tuple):
        return [to_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # one of NONFINITE
    return value


def from_json(hint: Any, value: Any, operator: str, field: str) -> Any:
    """Reads a value of type `hint`; messages name `operator` and the path `field`."""
    cls, optional = required(hint)
    if value is None and optional:
        return None
    if dataclasses.is_dataclass(cls):
        return _read_struct(cls, value, operator, field)
    label = f"{operator}: field '{field}'"
    if cls in READERS:
        return READERS[cls](label, value)
    return _read_enum(label, value, cls)


def _wrong(label: str, value: Any, expected: str) -> DescriptorError:
    return DescriptorError(f"{label} is {as_json(value)}; it must be {expected}.")


def _read_integer(label: str, value: Any) -> int:
    if type(value) is not int:
        raise _wrong(label, value, "an integer")
    return value


def _read_integers(label: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise _wrong(label, value, "a list of integers")
    return tuple(_read_integer(label, item) for item in value)


def _read_number(label: str, value: Any) -> int | float:
    number = number_from_json(value)
    if number is None:
        raise _wrong(label, value, NUMBER)
    return number


def _read_float(label: str, value: Any) -> float:
    try:
        return float(_read_number(label, value))
    except OverflowError:  # an integer past the largest float
        raise _wrong(label, value, NUMBER) from None


# A new type of field is a row here, and a case in to_json and in the checks of
# `descriptor`. Structs and enums have readers of their own.
READERS: dict[Any, Callable[[str, Any], Any]] = {
    int: _read_integer,
    tuple[int, ...]: _read_integers,
    int | float: _read_number,
    float: _read_float,
}


def _read_enum(label: str, value: Any, cls: type[enum.Enum]) -> Any:
    """Reads a member by its short name, its full C name or its number."""
    if issubclass(cls, enum.Flag) and isinstance(value, list):
        flags: Any = cls(0)
        for item in value:
            flags |= _read_enum(label, item, cls)
        return flags
    members = cls.__members__  # iterating over flags would leave out the value 0
    for name, member in members.items():
        by_number = type(value) is int and value == member.value
        if by_number or value in (name, enum_prefix(cls) + name):
            return member
    raise _wrong(label, value, f"one of {', '.join(members)}")


def number_from_json(value: Any) -> int | float | None:
    """Reads a number or a string of `NONFINITE`; None if it is neither."""
    if type(value) is str:
        return NONFINITE.get(value.lower())
    if type(value) in (int, float):
        return typing.cast("int | float", value)
    return None


def _read_struct(cls: Any, value: Any, operator: str, field: str) -> Any:
    """Reads a dataclass from a JSON object with its C field names as keys."""
    if not isinstance(value, Mapping):
        label = f"{operator}: field '{field}'"
        raise _wrong(label, value, "an object with the fields of the C struct")
    fields = {c_name(f.name): f for f in dataclasses.fields(cls)}
    for key in value:
        if key not in fields:
            raise DescriptorError(
                f"{operator}: '{field}' has an unknown field {quoted(str(key))}; its "
                f"fields are {', '.join(fields)}."
            )
    arguments = {}
    for key, f in fields.items():
        item = value.get(key)
        hint = field_types(cls)[f.name]
        # The tool reads an empty list as no strides, and 0 as a size that it computes.
        empty = item == [] or (type(item) is int and item == 0)
        if cls is TensorDesc and f.default is None and empty:
            continue
        if item is not None:
            arguments[f.name] = from_json(hint, item, operator, f"{field}.{key}")
        elif required(hint)[1]:
            arguments[f.name] = None
        elif f.default is dataclasses.MISSING:
            raise DescriptorError(
                f"{operator}: '{field}' has no field '{key}', which is required."
            )
    return cls(**arguments)
