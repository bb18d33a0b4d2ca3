"""Kinds of JSON values, and objects that are checked by a table of their fields.

A kind is a JSON Schema with a text for messages. `read_fields` checks an object by its
table, and `table_schema` makes the JSON Schema of the same table, so both agree. The
tables themselves are in `format`.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from dmljax._check import DescriptorError, ModelError, as_json, listed, quoted

Schema = dict[str, Any]
Value = TypeVar("Value")
# The types of Python that JSON's types become.
TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


@contextlib.contextmanager
def at(place: str) -> Iterator[None]:
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


def require(holds: bool, rule: str) -> None:
    """Raises a ModelError unless a rule holds."""
    if not holds:
        raise ModelError(rule)


class Kind(NamedTuple):
    """A kind of value: the text that goes behind "it must be", and its JSON Schema."""

    text: str
    schema: Schema


class Field(NamedTuple):
    """A field of an object. One that is not required may be absent or null."""

    kind: Kind
    description: str
    required: bool = False


Fields = Mapping[str, Field]


def list_of(items: Schema, **limits: int) -> Schema:
    """Makes the schema of a list."""
    return {"type": "array", "items": items, **limits}


def named(items: Schema) -> Kind:
    """Makes the kind of an object of items that the file names."""
    return Kind("an object", {"type": "object", "additionalProperties": items})


def refer(definition: str) -> Schema:
    """Makes the schema of what is defined elsewhere in the schema."""
    return {"$ref": f"#/$defs/{definition}"}


def integer_schema(low: int, high: int) -> Schema:
    """Makes the schema of an integer from `low` to `high`."""
    return {"type": "integer", "minimum": low, "maximum": high}


def or_null(schema: Schema) -> Schema:
    """Makes the schema of a field that may be null: null stands for absent."""
    return {"anyOf": [schema, {"type": "null"}]}


def struct_schema(properties: Schema, needed: Sequence[str]) -> Schema:
    """Makes the schema of an object that has no other fields than these."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(needed),
        "additionalProperties": False,
    }


def table_schema(table: Fields) -> Schema:
    """Makes the schema of an object that a table describes."""
    properties = {
        key: (kind.schema if required else or_null(kind.schema))
        | {"description": description}
        for key, (kind, description, required) in table.items()
    }
    return struct_schema(properties, [key for key in table if table[key].required])


def choice(names: Sequence[str], prefix: str = "") -> Kind:
    """Makes the kind of one of some names, each with or without a prefix."""
    full = [f"{prefix}{name}" for name in names] if prefix else []
    text = f"one of {', '.join(names)}" if len(names) > 1 else f"'{names[0]}'"
    return Kind(text, {"enum": [*names, *full]})


OBJECT = Kind("an object", {"type": "object"})
STRING = Kind("a string", {"type": "string"})
NONFINITE = {"type": "string", "pattern": "^([nN][aA][nN]|-?[iI][nN][fF])$"}
NUMBER = Kind(
    "a number, or for floats also 'nan', 'inf' or '-inf'",
    {"anyOf": [{"type": "number"}, NONFINITE]},
)


def conforms(value: Any, schema: Schema) -> bool:
    """Whether a value is of the type, and in the limits, that a schema gives.

    A function of its own reads what belongs to an object in it, or is defined
    elsewhere. That function knows the place for its messages.
    """
    if "$ref" in schema:
        return True
    if "anyOf" in schema:
        return any(conforms(value, each) for each in schema["anyOf"])
    if "enum" in schema:
        return value in schema["enum"]
    # `isinstance` would take True for an integer.
    if type(value) not in TYPES[schema["type"]]:
        return False
    if "items" in schema:
        return all(conforms(item, schema["items"]) for item in value)
    return "minimum" not in schema or schema["minimum"] <= value <= schema["maximum"]


def require_kind(value: Any, kind: Kind, what: str) -> Any:
    """Requires that `value` is of `kind`, and returns it. `what` names it in errors."""
    if not conforms(value, kind.schema):
        raise ModelError(f"{what} is {as_json(value)}; it must be {kind.text}.")
    return value


def read_field(fields: Mapping[str, Any], key: str, field: Field) -> Any:
    """Returns what a field holds, or None if it is absent or null, and may be."""
    value = fields.get(key)
    if value is not None:
        return require_kind(value, field.kind, f"the field '{key}'")
    if field.required:
        found = "null" if key in fields else "missing"
        raise ModelError(f"the field '{key}' is {found}; it must be {field.kind.text}.")
    return None


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
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
    return present({key: read_field(fields, key, table[key]) for key in table})


def find_spelling(fields: Mapping[str, Any], key: str) -> str | None:
    """Returns a key as it is written, perhaps with a capital letter; None if absent."""
    given = [k for k in (key, key.capitalize()) if fields.get(k) is not None]
    require(
        len(given) < 2,
        f"it has both of the fields {listed(given)}, which are the same; leave one "
        "out.",
    )
    return given[0] if given else None


def look_up(name: str, what: str, choices: Mapping[str, Value]) -> Value:
    """Returns what the model has under a name; ModelError if it has nothing."""
    if name not in choices:
        raise ModelError(
            f"the {what} {quoted(name)} is not in the model; it has {listed(choices)}."
        )
    return choices[name]
