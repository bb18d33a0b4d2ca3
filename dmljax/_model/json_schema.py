"""JSON Schema of descriptors and of their fields, by the types of the fields.

The schema says what `dmljax._json.from_json` reads.
"""

import dataclasses
import enum
import typing
from typing import Any

from dmljax._json import HIGHEST, LOWEST, enum_prefix, union_member
from dmljax._struct import c_name, field_types, is_enum, required
from dmljax._tensor import DataType, TensorDesc

Schema = dict[str, Any]
NONFINITE_SCHEMA: Schema = {
    "type": "string",
    "pattern": "^([nN][aA][nN]|-?[iI][nN][fF])$",
}
NUMBER_SCHEMA: Schema = {"anyOf": [{"type": "number"}, NONFINITE_SCHEMA]}
INTEGER_SCHEMA: Schema = {"type": "integer", "minimum": LOWEST, "maximum": HIGHEST}
UNION_MEMBERS = sorted({union_member(DataType(number)) for number in range(1, 12)})


def schema_of(kind: Any, definitions: Schema) -> Schema:
    """Makes the JSON Schema of what `from_json` reads as the type `kind`.

    Structs and enums are added to `definitions`, and the schema refers to them.
    """
    kind, optional = required(kind)
    if typing.get_origin(kind) is tuple:
        items = schema_of(typing.get_args(kind)[0], definitions)
        schema: Schema = {"type": "array", "items": items}
    elif dataclasses.is_dataclass(kind) or is_enum(kind):
        name = kind.__name__
        if name not in definitions:
            make = _enum_schema if is_enum(kind) else _struct_schema
            definitions[name] = {}  # so that a struct that holds itself ends
            definitions[name] = make(typing.cast(type, kind), definitions)
        schema = {"$ref": f"#/$defs/{name}"}
    elif kind == int | float:
        members = dict.fromkeys(UNION_MEMBERS, NUMBER_SCHEMA)
        one = {"type": "object", "properties": members, "additionalProperties": False}
        one |= {"minProperties": 1, "maxProperties": 1}
        schema = {"anyOf": [*NUMBER_SCHEMA["anyOf"], one]}
    elif kind is float:
        schema = NUMBER_SCHEMA
    else:
        schema = {"type": "boolean"} if kind is bool else INTEGER_SCHEMA
    return or_null(schema) if optional else schema


def or_null(schema: Schema) -> Schema:
    """Makes the schema of a field that may be null, which stands for absent."""
    return {"anyOf": [schema, {"type": "null"}]}


def _enum_schema(kind: type[enum.Enum], definitions: Schema) -> Schema:
    names = list(kind.__members__)
    full = [f"{enum_prefix(kind)}{name}" for name in names]
    values = [member.value for member in kind.__members__.values()]
    one: Schema = {"enum": [*names, *full, *values]}
    if issubclass(kind, enum.Flag):
        return {"anyOf": [one, {"type": "array", "items": one}]}
    return one


def _struct_schema(kind: type, definitions: Schema) -> Schema:
    hints = field_types(kind)
    fields = {c_name(f.name): f for f in dataclasses.fields(kind)}
    properties, needed = {}, []
    for key, field in fields.items():
        properties[key] = schema_of(hints[field.name], definitions)
        if field.default is not dataclasses.MISSING:
            properties[key] = or_null(properties[key])
        elif not required(hints[field.name])[1]:
            needed.append(key)
    extra = {"DimensionCount": INTEGER_SCHEMA} if kind is TensorDesc else {}
    schema = struct_schema(properties | extra, needed)
    if kind is not TensorDesc:
        return schema
    # A tensor's type may stand beside its fields, or in the object around them.
    buffer = {"enum": ["BUFFER", "DML_TENSOR_TYPE_BUFFER"]}
    typed = struct_schema(schema["properties"] | {"Type": buffer}, needed)
    whole = struct_schema({"Type": buffer, "Desc": schema}, ["Desc"])
    return {"anyOf": [typed, whole]}


def struct_schema(properties: Schema, needed: list[str]) -> Schema:
    """Makes the schema of an object that has no other fields than these."""
    return {
        "type": "object",
        "properties": properties,
        "required": needed,
        "additionalProperties": False,
    }
