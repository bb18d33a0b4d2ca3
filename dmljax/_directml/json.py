"""Structs from and to JSON, by the types of their fields.

A struct needs no code here if its fields are integers, lists of integers, numbers,
enums and structs. For another type, write `Annotated[type, Reader(...)]`. The rules for
the values are in `tensor` and in the descriptors.
"""

import dataclasses
import enum
import functools
import math
import typing
from collections.abc import Callable, Mapping
from inspect import Parameter
from operator import or_
from typing import Any, NamedTuple

import numpy as np

from dmljax._check import ArgumentError, as_json, is_number_of, quoted
from dmljax._directml.struct import fields_of
from dmljax._directml.tensor import TensorDesc


def to_json(value: Any) -> Any:
    """Turns a descriptor, or a part of one, into values of JSON.

    Fields that are None or have their default are left out.
    """
    if dataclasses.is_dataclass(value):
        written = {}
        cls: Any = type(value)
        for key, field in fields_of(cls).items():
            item = getattr(value, field.name)
            if item is not None and item != field.default:
                written[key] = to_json(item)
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


class Reader(NamedTuple):
    """Reads the JSON values of a type. Parameter.empty stands for a missing value."""

    expected: str  # the end of a message: "it must be ..."
    convert: Callable[[Any], Any]  # returns None for a value of another type

    def read(self, value: Any, what: str) -> Any:
        """Reads a value, which errors call `what`."""
        result = self.convert(value)
        if result is None:
            shown = "missing" if value is Parameter.empty else as_json(value)
            raise ArgumentError(f"{what} is {shown}; it must be {self.expected}.")
        return result


def exactly(*classes: type) -> Callable[[Any], Any]:
    """Makes a converter for values of exactly these types: a bool is no int."""
    return lambda value: value if type(value) in classes else None


def _number(value: Any) -> Any:
    if type(value) is str and value.lower() in ("nan", "inf", "-inf"):
        value = float(value)
    return exactly(int, float)(value)


def integers(value: Any) -> tuple[int, ...] | None:
    """Converts a list of integers."""
    if isinstance(value, list) and all(type(item) is int for item in value):
        return tuple(value)
    return None


def _member(cls: type[enum.Enum], value: Any) -> Any:
    """Reads a member by its short name, its full C name or its number."""
    if issubclass(cls, enum.Flag) and isinstance(value, list):
        flags = [_member(cls, item) for item in value]
        return None if None in flags else functools.reduce(or_, flags, cls(0))
    if is_number_of(value, cls):
        return cls(value)
    if isinstance(value, str):
        prefix = getattr(cls, "C_PREFIX", "")
        return cls.__members__.get(value.removeprefix(prefix))
    return None


OBJECT = Reader("an object", lambda v: v if isinstance(v, Mapping) else None)
# The reader of a field, by its type.
READERS = {
    bool: Reader("true or false", exactly(bool)),
    str: Reader("a string", exactly(str)),
    int: Reader("an integer", exactly(int)),
    float: Reader("a number, or for floats also 'nan', 'inf' or '-inf'", _number),
    tuple[int, ...]: Reader("a list of integers", integers),
    list[Any]: Reader("a list", exactly(list)),
    dict[str, Any]: OBJECT,
}


@functools.cache
def reader_of(hint: Any) -> Reader:
    """Returns the reader of a type: from `Annotated`, or else from `READERS`."""
    for each in typing.get_args(hint):
        if isinstance(each, Reader):
            return each
    if dataclasses.is_dataclass(hint):
        return OBJECT._replace(expected="an object with the fields of the C struct")
    if hint in READERS:
        return READERS[hint]
    expected = f"one of {', '.join(hint.__members__)}"
    if issubclass(hint, enum.Flag):
        expected += ", or a list of these"
    return Reader(expected, functools.partial(_member, hint))


def read_fields(cls: Any, value: Mapping[str, Any], prefix: str = "") -> Any:
    """Reads a struct from an object.

    `prefix` begins the paths of its fields, as in desc.InputTensor.
    """
    fields = fields_of(cls)
    # If we ignored a misspelled field, its default would count, and nobody would know.
    for key in value:
        if key not in fields:
            raise ArgumentError(
                f"there is no field {quoted(f'{prefix}{key}')}; the fields are "
                f"{', '.join(fields)}."
            )
    arguments = {}
    for key, field in fields.items():
        hint = field.annotation
        item = value.get(key, Parameter.empty)
        is_optional = field.default is not Parameter.empty
        if is_optional and item in (None, Parameter.empty):
            item = field.default
        else:
            path = prefix + key
            item = reader_of(hint).read(item, f"the field '{path}'")
            if dataclasses.is_dataclass(hint):
                item = read_fields(hint, item, f"{path}.")
        # As in Microsoft's tool DxDispatch, Strides [] means no strides, and a
        # TotalTensorSizeInBytes of 0 is one that we compute.
        if cls is TensorDesc and field.default is None and not item:
            item = None
        arguments[field.name] = item
    return cls(**arguments)
