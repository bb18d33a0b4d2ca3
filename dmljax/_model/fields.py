"""Kinds of JSON values, and objects that are checked by a table of their fields.

The tables themselves are in `format`.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from dmljax._check import DescriptorError, ModelError, as_json, listed, quoted

Value = TypeVar("Value")


@contextlib.contextmanager
def at_place(place: str) -> Iterator[None]:
    """Puts the place in the model before the message of an error."""
    try:
        yield
    except (ModelError, DescriptorError) as error:
        raise ModelError(f"{place}: {error}") from error
    # A file can cause these two as well: by large numbers, and by many brackets.
    except MemoryError as error:
        raise ModelError(f"{place}: there is not enough memory for it.") from error
    except RecursionError as error:
        raise ModelError(f"{place}: it is nested too deeply.") from error


class Kind(NamedTuple):
    """A kind of value."""

    text: str  # the end of the error: "it must be ..."
    accepts: Callable[[Any], bool]


class Field(NamedTuple):
    """A field of an object. One that is not required may be absent or null."""

    kind: Kind
    required: bool = False


Fields = Mapping[str, Field]

# `isinstance` would take True for an integer.
OBJECT = Kind("an object", lambda value: type(value) is dict)
LIST = Kind("a list", lambda value: type(value) is list)
STRING = Kind("a string", lambda value: type(value) is str)
BOOLEAN = Kind("true or false", lambda value: type(value) is bool)
INTEGER = Kind("an integer", lambda value: type(value) is int)
# Strings are read with the data type, which is not known here.
NUMBER = Kind(
    "a number, or for floats also 'nan', 'inf' or '-inf'",
    lambda value: type(value) in (int, float, str),
)


def between(low: int, high: int, limits: str) -> Kind:
    """Makes the kind of an integer from `low` to `high`."""
    text = f"an integer from {limits}"
    return Kind(text, lambda value: type(value) is int and low <= value <= high)


def list_of(kind: Kind, text: str) -> Kind:
    """Makes the kind of a list."""
    return Kind(
        text, lambda value: type(value) is list and all(map(kind.accepts, value))
    )


def choice(names: Sequence[str], prefix: str = "") -> Kind:
    """Makes the kind of one of some names, each with or without a prefix."""
    full = [f"{prefix}{name}" for name in names]
    text = f"one of {', '.join(names)}" if len(names) > 1 else f"'{names[0]}'"
    return Kind(text, lambda value: value in names or value in full)


def require_kind(value: Any, kind: Kind, what: str) -> Any:
    """Requires that `value` is of `kind`, and returns it. Errors call it `what`."""
    if not kind.accepts(value):
        raise ModelError(f"{what} is {as_json(value)}; it must be {kind.text}.")
    return value


def read_field(fields: Mapping[str, Any], key: str, field: Field) -> Any:
    """Returns the value of a field; None if an optional field is absent or null."""
    value = fields.get(key)
    if value is not None:
        return require_kind(value, field.kind, f"the field '{key}'")
    if field.required:
        found = "null" if key in fields else "missing"
        raise ModelError(f"the field '{key}' is {found}; it must be {field.kind.text}.")
    return None


def without_nulls(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields that are not null: null means the same as absent."""
    return {key: value for key, value in fields.items() if value is not None}


def read_fields(value: Any, table: Fields, what: str = "it") -> dict[str, Any]:
    """Returns the fields of an object that are there, each as its table demands."""
    fields: dict[str, Any] = require_kind(value, OBJECT, what)
    # A misspelled field that is ignored would give another result in silence.
    for key in fields:
        if key not in table:
            raise ModelError(
                f"there is no field {quoted(key)}; the fields are {', '.join(table)}."
            )
    return without_nulls({key: read_field(fields, key, table[key]) for key in table})


def find_spelling(fields: Mapping[str, Any], key: str) -> str | None:
    """Returns a key as it is written, perhaps with a capital letter; None if absent."""
    given = [k for k in (key, key.capitalize()) if fields.get(k) is not None]
    if len(given) == 2:
        raise ModelError(
            f"it has both of the fields {listed(given)}, which are the same; leave one "
            "out."
        )
    return given[0] if given else None


def look_up(name: str, what: str, choices: Mapping[str, Value]) -> Value:
    """Returns the part of the model that has a name; ModelError if there is none."""
    if name not in choices:
        raise ModelError(
            f"the {what} {quoted(name)} is not in the model; it has {listed(choices)}."
        )
    return choices[name]
