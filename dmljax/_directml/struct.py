"""The fields of structs: their names and types, and what callers may write for them.

A struct is a frozen dataclass with the fields of a struct of the C header, or a
NamedTuple with the fields of an object in a model file.
"""

import enum
import functools
import inspect
import types
import typing
from collections.abc import Mapping
from typing import Any

from dmljax._arguments import as_integer, as_real, as_sizes
from dmljax._check import ArgumentError, as_member, as_python

# The converter of a field's value, by the type of the field. It refuses other values.
CONVERTERS: dict[Any, Any] = {
    int: as_integer,
    tuple[int, ...]: as_sizes,
    float: as_real,
}


def c_name(name: str) -> str:
    """Returns the name of a field in the C struct.

    >>> c_name("diagonal_fill_begin")
    'DiagonalFillBegin'
    """
    return "".join(part.capitalize() for part in name.split("_"))


@functools.cache
def fields_of(cls: Any) -> Mapping[str, inspect.Parameter]:
    """Returns the fields of a struct, in order, by their names in C or in a file.

    A field of type ``int | None`` has the type int and the default None here, even if
    its class requires a value.
    """
    hints = typing.get_type_hints(cls, include_extras=True)
    fields = {}
    for name, parameter in inspect.signature(cls).parameters.items():
        key = c_name(name)
        # A NamedTuple is an object of a model file, whose keys begin in lower case.
        if issubclass(cls, tuple):
            key = "$schema" if name == "schema" else name[0] + key[1:]
        hint = hints[name]
        default = parameter.default
        alternatives = typing.get_args(hint)
        if types.NoneType in alternatives:
            hint = typing.Union[*(t for t in alternatives if t is not types.NoneType)]
            default = None
        fields[key] = parameter.replace(annotation=hint, default=default)
    return fields


def convert_fields(struct: Any) -> None:
    """Converts the fields of a new struct to their types, in place.

    NumPy's and JAX's integers become Python's, sequences become tuples, and numbers
    become members of enums. Other values are refused.
    """
    cls: Any = type(struct)
    for field in fields_of(cls).values():
        name, hint = field.name, field.annotation
        value = getattr(struct, name)
        if value is None and field.default is None:
            continue
        if hint in CONVERTERS:
            value = CONVERTERS[hint](name, value)
        elif issubclass(hint, enum.Enum):
            value = as_member(name, value, hint)
        elif not isinstance(value, hint):
            raise ArgumentError(
                f"{name} is {as_python(value)}; it must be a {hint.__name__}."
            )
        vars(struct)[name] = value  # past the guard of a frozen dataclass
