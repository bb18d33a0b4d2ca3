"""Checks the objects of model files by tables of their fields.

A table says of each field what it may hold. `read_fields` checks an object by its
table, and `schema_of_fields` makes the JSON Schema of the same table, so that both
agree. The tables themselves are in `_model_format` and `_model_values`.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from dmljax._check import ModelError, as_json, listed, quoted
from dmljax._json import enum_prefix
from dmljax._model.json_schema import (
    INTEGER_SCHEMA,
    NUMBER_SCHEMA,
    Schema,
    or_null,
    struct_schema,
)
from dmljax._support import UP_TO_64_BITS
from dmljax._tensor import DataType

CHANNEL_ORDERS = ("RGB", "BGR")
DATA_TYPES = (*(data_type.name for data_type in UP_TO_64_BITS), "UNKNOWN")
Value = TypeVar("Value")


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of value that a field may hold, in three forms.

    Attributes:
      words: the form for messages, which goes behind "it must be".
      holds: whether a value is of this kind.
      schema: the JSON Schema of such values.
    """

    words: str
    holds: Callable[[Any], bool]
    schema: Schema


@dataclasses.dataclass(frozen=True)
class Field:
    """A field of an object. One that is not required may be absent or null."""

    kind: Kind
    description: str
    required: bool = False


Fields = Mapping[str, Field]


def _is(*kinds: type) -> Callable[[Any], bool]:
    """Makes a test for exactly these types."""
    # `isinstance` would take True for an integer.
    return lambda value: type(value) in kinds


def _items(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: type(value) is list and all(map(test, value))


def _size(value: Any) -> bool:
    return type(value) is int and 1 <= value < 2**32


def _unsigned(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**64


def choice(names: Sequence[str], prefix: str = "") -> Kind:
    """Makes the kind of one of some names, each with or without a prefix."""
    every = [*names, *(f"{prefix}{name}" for name in names if prefix)]
    words = f"one of {', '.join(names)}" if len(names) > 1 else f"'{names[0]}'"
    return Kind(words, lambda value: value in every, {"enum": every})


# The kinds of values that the format has.
_NAMES: Schema = {"type": "array", "items": {"type": "string"}}
OBJECT = Kind("an object", _is(dict), {"type": "object"})
LIST = Kind("a list", _is(list), {"type": "array"})
STRING = Kind("a string", _is(str), {"type": "string"})
NUMBER = Kind(
    "a number, or for floats also 'nan', 'inf' or '-inf'",
    _is(int, float, str),
    NUMBER_SCHEMA,
)
BOOLEAN = Kind("true or false", _is(bool), {"type": "boolean"})
INTEGER = Kind("an integer", _is(int), INTEGER_SCHEMA)
UNSIGNED = Kind(
    "an integer from 0 to 2^64 - 1",
    _unsigned,
    {"type": "integer", "minimum": 0, "maximum": 2**64 - 1},
)
SIZES = Kind(
    "a list of integers, each from 1 to 2^32 - 1",
    _items(_size),
    {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 2**32 - 1}},
)
INTEGERS = Kind(
    "a list of integers", _items(_is(int)), {"type": "array", "items": INTEGER_SCHEMA}
)
STRINGS = Kind(
    "a string or a list of strings",
    lambda value: type(value) is str or _items(_is(str))(value),
    {"anyOf": [{"type": "string"}, _NAMES]},
)
# UNKNOWN stands for a list of elements that have their own types.
DATA_TYPE = choice(DATA_TYPES, enum_prefix(DataType))
CHANNEL_ORDER = Field(choice(CHANNEL_ORDERS), "The order of an image's channels.")


def typed(value: Any, kind: Kind, what: str) -> Any:
    """Returns `value`, which must be of `kind`. `what` names it in the error."""
    if not kind.holds(value):
        raise ModelError(f"{what} is {as_json(value)}; it must be {kind.words}.")
    return value


def read_fields(value: Any, table: Fields, what: str = "it") -> dict[str, Any]:
    """Returns the fields of an object that are there and not null.

    Raises:
      ModelError: if a field is unknown, is missing, or holds what its table forbids.
    """
    fields: dict[str, Any] = typed(value, OBJECT, what)
    # A misspelled field that is ignored would give another result in silence.
    unknown = [key for key in fields if key not in table]
    if unknown:
        raise ModelError(
            f"there is no field {quoted(unknown[0])}; the fields are "
            f"{', '.join(table)}."
        )
    for key, field in table.items():
        if key not in fields and field.required:
            raise ModelError(
                f"the field '{key}' is missing; it must be {field.kind.words}."
            )
        if key in fields and (field.required or fields[key] is not None):
            typed(fields[key], field.kind, f"the field '{key}'")
    # A field that may be absent may be null as well, which means the same.
    return {key: item for key, item in fields.items() if item is not None}


def spelling(fields: Mapping[str, Any], key: str) -> str | None:
    """Returns a key as it is written, which may have a capital letter; None if absent.

    Raises:
      ModelError: if both ways are there.
    """
    given = [k for k in (key, key.capitalize()) if fields.get(k) is not None]
    if len(given) > 1:
        raise ModelError(
            f"it has both of the fields {listed(given)}, which are the same; leave one "
            "out."
        )
    return given[0] if given else None


def known_name(name: str, what: str, choices: Mapping[str, Value]) -> Value:
    """Returns what the model has under a name; ModelError if it has nothing."""
    if name not in choices:
        raise ModelError(
            f"the {what} {quoted(name)} is not in the model; it has {listed(choices)}."
        )
    return choices[name]


def schema_of_fields(
    table: Fields, known: Mapping[str, Schema] | None = None
) -> Schema:
    """Makes the JSON Schema of an object.

    `known` has schemas of single fields that say more than the table does.
    """
    properties = {}
    for key, field in table.items():
        schema = (known or {}).get(key, field.kind.schema)
        if not field.required:
            schema = or_null(schema)
        properties[key] = schema | {"description": field.description}
    needed = [key for key, field in table.items() if field.required]
    return struct_schema(properties, needed)
