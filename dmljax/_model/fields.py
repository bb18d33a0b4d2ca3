"""Kinds of JSON values, and objects that are checked by a table of their fields.

Nothing here knows a field of model files: the tables are in `format`.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
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
    """A kind of value. A table of fields has the kind of each, by name."""

    text: str  # the end of the error: "it must be ..."
    accepts: Callable[[Any], bool]
    required: bool = False  # whether a field of this kind must be there, and not null


def required(kind: Kind) -> Kind:
    """Makes the kind of a field that must be there."""
    return kind._replace(required=True)


def of_type(text: str, *types: type) -> Kind:
    """Makes the kind of the values of some types."""
    # `isinstance` would take True for an integer.
    return Kind(text, lambda value: type(value) in types)


OBJECT = of_type("an object", dict)
LIST = of_type("a list", list)
STRING = of_type("a string", str)
BOOLEAN = of_type("true or false", bool)
INTEGER = of_type("an integer", int)
# Strings are read with the data type, which is not known here.
NUMBER = of_type("a number, or for floats also 'nan', 'inf' or '-inf'", int, float, str)


def between(low: int, bits: int) -> Kind:
    """Makes the kind of an integer from `low` to 2^bits - 1."""
    return Kind(
        f"an integer from {low} to 2^{bits} - 1",
        lambda value: type(value) is int and low <= value < 2**bits,
    )


def list_of(kind: Kind, text: str) -> Kind:
    """Makes the kind of a list."""
    return Kind(
        text, lambda value: type(value) is list and all(map(kind.accepts, value))
    )


def one_or_list_of(kind: Kind) -> Kind:
    """Makes the kind of a value, or of a list of such values."""
    text = f"{kind.text}, or a list of these"
    many = list_of(kind, text)
    return Kind(text, lambda value: kind.accepts(value) or many.accepts(value))


def choice(*names: str, prefix: str) -> Kind:
    """Makes the kind of one of some names, each with or without `prefix`."""
    return Kind(
        f"one of {', '.join(names)}",
        lambda value: type(value) is str and value.removeprefix(prefix) in names,
    )


def require_kind(value: Any, kind: Kind, what: str) -> Any:
    """Requires that `value` is of `kind`, and returns it. Errors call it `what`."""
    if not kind.accepts(value):
        raise ModelError(f"{what} is {as_json(value)}; it must be {kind.text}.")
    return value


def read_field(fields: Mapping[str, Any], key: str, kind: Kind) -> Any:
    """Returns the value of a field; None if an optional field is absent or null."""
    value = fields.get(key)
    if kind.required and key not in fields:
        raise ModelError(f"the field '{key}' is missing; it must be {kind.text}.")
    if value is None and not kind.required:
        return None
    return require_kind(value, kind, f"the field '{key}'")


def without_nulls(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields that are not null: null means the same as absent."""
    return {key: value for key, value in fields.items() if value is not None}


def read_fields(
    value: Any, table: Mapping[str, Kind], what: str = "it"
) -> dict[str, Any]:
    """Returns the fields of an object that are there, each as its table demands."""
    fields = require_kind(value, OBJECT, what)
    # A misspelled field that is ignored would give another result in silence.
    for key in fields:
        if key not in table:
            raise ModelError(
                f"there is no field {quoted(key)}; the fields are {', '.join(table)}."
            )
    return without_nulls({key: read_field(fields, key, table[key]) for key in table})


def look_up(name: str, what: str, choices: Mapping[str, Value]) -> Value:
    """Returns a part of the model by its name; ModelError if there is none."""
    if name not in choices:
        raise ModelError(
            f"the {what} {quoted(name)} is not in the model; it has {listed(choices)}."
        )
    return choices[name]
