"""Descriptors from and to JSON, by the types of their fields.

A struct needs no code here if its fields are integers, lists of integers, numbers,
enums and structs. The rest of the format of model files is in `_model`, and the rules
for the values are in `tensor` and in the descriptors.
"""

import dataclasses
import enum
import functools
import math
import re
import typing
from collections.abc import Mapping
from operator import or_
from typing import Any

import numpy as np

from dmljax._check import DescriptorError, as_json, is_number_of, quoted
from dmljax._directml.struct import c_name, field_types
from dmljax._directml.tensor import TensorDesc


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
        return str(value)  # JSON has no NaN and no infinity
    return value


def from_json(cls: Any, value: Any, operator: str, path: str) -> Any:
    """Reads a value of type `cls`; messages name `operator` and the path of a field.

    A new type of field is a case here, in to_json and in the checks of `descriptor`.
    """
    if dataclasses.is_dataclass(cls):
        expected = "an object with the fields of the C struct"
        result = None
        if isinstance(value, Mapping):
            result = _read_struct(cls, value, operator, path)
    elif cls is int:
        expected = "an integer"
        result = value if type(value) is int else None
    elif cls == tuple[int, ...]:
        expected = "a list of integers"
        result = integers_from_json(value)
    elif cls in (float, int | float):
        expected = "a number, 'nan', 'inf' or '-inf'"
        result = number_from_json(value)
    else:
        expected = f"one of {', '.join(cls.__members__)}"
        result = _read_member(cls, value)
    if result is None:
        raise DescriptorError(
            f"{operator}: field '{path}' is {as_json(value)}; it must be {expected}."
        )
    return result


def number_from_json(value: Any) -> int | float | None:
    """Reads a number, which may be "nan", "inf" or "-inf"; None for other values."""
    if type(value) is str and value.lower() in ("nan", "inf", "-inf"):
        return float(value)
    if type(value) in (int, float):
        return typing.cast("int | float", value)
    return None


def integers_from_json(value: Any) -> tuple[int, ...] | None:
    """Reads a list of integers; None for other values."""
    if isinstance(value, list) and all(type(item) is int for item in value):
        return tuple(value)
    return None


def _read_member(cls: type[enum.Enum], value: Any) -> Any:
    """Reads a member by its short name, its full C name or its number."""
    if issubclass(cls, enum.Flag) and isinstance(value, list):
        flags = [_read_member(cls, item) for item in value]
        return None if None in flags else functools.reduce(or_, flags, cls(0))
    if is_number_of(value, cls):
        return cls(value)
    if isinstance(value, str):
        return cls.__members__.get(value.removeprefix(enum_prefix(cls)))
    return None


def _read_struct(cls: Any, value: Any, operator: str, path: str) -> Any:
    """Reads a dataclass from a JSON object with its C field names as keys."""
    fields = {c_name(field.name): field for field in dataclasses.fields(cls)}
    for key in value:
        if key not in fields:
            raise DescriptorError(
                f"{operator}: '{path}' has an unknown field {quoted(str(key))}; its "
                f"fields are {', '.join(fields)}."
            )
    arguments = {}
    for key, field in fields.items():
        item = value.get(key)
        field_type, optional = field_types(cls)[field.name]
        # The tool reads an empty list as no strides, and 0 as a size that it computes.
        empty: Any = [] if field_type == tuple[int, ...] else 0
        is_empty = type(item) is type(empty) and item == empty
        if cls is TensorDesc and field.default is None and is_empty:
            continue
        if item is not None:
            item = from_json(field_type, item, operator, f"{path}.{key}")
        elif field.default is not dataclasses.MISSING:
            continue
        elif not optional:
            raise DescriptorError(
                f"{operator}: '{path}' has no field '{key}', which is required."
            )
        arguments[field.name] = item
    return cls(**arguments)
