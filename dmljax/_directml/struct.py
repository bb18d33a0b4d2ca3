"""The fields of structs: their names and types, and what callers may write for them.

A struct is a frozen dataclass with the fields of a struct of the C header, or a
NamedTuple with the fields of an object in a model file.
"""

import functools
import inspect
import types
import typing
from collections.abc import Mapping
from typing import Any, NamedTuple

from dmljax._arguments import is_sequence, unwrap_integer
from dmljax._check import is_number_of

# Stands for the default of a required field, and for a value that a JSON object lacks.
MISSING = inspect.Parameter.empty


class Field(NamedTuple):
    """A field of a struct."""

    name: str
    type: Any  # int for the hint int | None
    default: Any  # MISSING for a required field


def c_name(name: str) -> str:
    """Returns the name of a field in the C struct.

    >>> c_name("diagonal_fill_begin")
    'DiagonalFillBegin'
    """
    return "".join(part.capitalize() for part in name.split("_"))


@functools.cache
def fields_of(cls: Any) -> Mapping[str, Field]:
    """Returns the fields of a struct, in order, by their names in C or in a file.

    A field that may be None has the default None here, even if its class requires it.
    """
    hints = typing.get_type_hints(cls, include_extras=True)
    fields = {}
    for name, parameter in inspect.signature(cls).parameters.items():
        key = c_name(name)
        if issubclass(cls, tuple):  # a key of a file, such as valueCount
            key = "$schema" if name == "schema" else name[0] + key[1:]
        hint = hints[name]
        default = parameter.default
        alternatives = typing.get_args(hint)
        if types.NoneType in alternatives:
            hint = typing.Union[*(t for t in alternatives if t is not types.NoneType)]
            default = None
        fields[key] = Field(name, hint, default)
    return fields


def convert_fields(struct: Any) -> None:
    """Converts the fields of a new struct to the types of their hints, in place.

    NumPy's and JAX's integers become Python's, sequences become tuples, and numbers
    become members of enums. Other values stay: the checks refuse them later, in
    messages that name the operator.
    """
    cls: Any = type(struct)
    for field in fields_of(cls).values():
        value = getattr(struct, field.name)
        if field.type is int:
            value = unwrap_integer(value)
        elif field.type == tuple[int, ...] and is_sequence(value):
            value = tuple(map(unwrap_integer, value))
        elif is_number_of(value, field.type):
            value = field.type(value)
        vars(struct)[field.name] = value  # past the guard of a frozen dataclass
