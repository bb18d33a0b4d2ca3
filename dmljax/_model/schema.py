"""The JSON Schema of model files, for editors that complete and check them.

It is made from the tables by which model files are read, and from the types of the
fields of descriptors, by which `dmljax._json` reads these.
"""

import dataclasses
import enum
import typing
from typing import Any

from dmljax._json import HIGHEST, LOWEST, enum_prefix, union_member
from dmljax._model import format as tables
from dmljax._model.fields import (
    NUMBER,
    STRING,
    Schema,
    integer_schema,
    list_of,
    or_null,
    refer,
    struct_schema,
    table_schema,
)
from dmljax._operators import DESCRIPTORS
from dmljax._struct import c_name, field_types, is_enum, required
from dmljax._tensor import DataType, TensorDesc

DIALECT = "https://json-schema.org/draft/2020-12/schema"
INTEGER = integer_schema(LOWEST, HIGHEST)
UNION_MEMBERS = sorted({union_member(DataType(number)) for number in range(1, 12)})


def model_schema() -> Schema:
    """Makes the schema.

    A schema can't express the rules of a whole model, such as names that must exist or
    sizes that must fit. `dmljax run --check` finds what breaks these.
    """
    numbers = list_of(NUMBER.schema, minItems=1)
    mixed = list_of(table_schema(tables.MIXED_ELEMENT), minItems=1)
    generators = map(table_schema, tables.GENERATORS.values())
    one = [STRING.schema, table_schema(tables.BINDING)]
    # A list of one binding stands for this binding.
    several = list_of({"anyOf": one}, minItems=1, maxItems=1)
    definitions: Schema = {}
    operators = [_operator_schema(name, definitions) for name in DESCRIPTORS]
    definitions |= {
        "initialValues": {"anyOf": [numbers, mixed, *generators]},
        "resource": table_schema(tables.RESOURCE),
        "dispatchable": {"anyOf": operators},
        "command": {"anyOf": list(map(table_schema, tables.COMMANDS.values()))},
        "binding": {"anyOf": [*one, several]},
    }
    title = "A model file of DxDispatch, with the operators of dmljax"
    schema = {"$schema": DIALECT, "title": title, **table_schema(tables.MODEL)}
    return schema | {"$defs": definitions}


def _operator_schema(name: str, definitions: Schema) -> Schema:
    """Makes the schema of a dispatchable of one operator."""
    struct = DESCRIPTORS[name].__name__
    reference = schema_of(DESCRIPTORS[name], definitions)
    types = or_null({"enum": [f"{tables.PREFIX}{name}", name]})
    table = table_schema(tables.DISPATCHABLE)["properties"]
    table |= {key: table[key] | types for key in ("type", "Type")}
    # The fields of the C struct are in an object, or stand beside the type.
    inside = struct_schema(table | {"desc": reference, "Desc": reference}, [])
    del table["desc"], table["Desc"]
    own = definitions[struct]
    beside = struct_schema(table | own["properties"], own["required"])
    return {
        "anyOf": [
            inside | {"allOf": [_either("type"), _either("desc")]},
            beside | _either("type"),
        ]
    }


def _either(key: str) -> Schema:
    """Makes the schema of an object with a key, perhaps with a capital letter."""
    return {"anyOf": [{"required": [key]}, {"required": [key.capitalize()]}]}


def schema_of(kind: Any, definitions: Schema) -> Schema:
    """Makes the JSON Schema of what `from_json` reads as the type `kind`.

    Structs and enums are added to `definitions`, and the schema refers to them.
    """
    kind, optional = required(kind)
    if kind == tuple[int, ...]:
        schema = list_of(INTEGER)
    elif dataclasses.is_dataclass(kind) or is_enum(kind):
        name = kind.__name__
        if name not in definitions:
            definitions[name] = {}  # so that a struct that holds itself ends
            make = _enum_schema if is_enum(kind) else _struct_schema
            definitions[name] = make(typing.cast(type, kind), definitions)
        schema = refer(name)
    elif kind == int | float:
        members = dict.fromkeys(UNION_MEMBERS, NUMBER.schema)
        union = struct_schema(members, []) | {"minProperties": 1, "maxProperties": 1}
        schema = {"anyOf": [*NUMBER.schema["anyOf"], union]}
    else:
        schema = NUMBER.schema if kind is float else INTEGER
    return or_null(schema) if optional else schema


def _enum_schema(kind: type[enum.Enum], definitions: Schema) -> Schema:
    names = list(kind.__members__)
    full = [f"{enum_prefix(kind)}{name}" for name in names]
    values = [member.value for member in kind.__members__.values()]
    one: Schema = {"enum": [*names, *full, *values]}
    return {"anyOf": [one, list_of(one)]} if issubclass(kind, enum.Flag) else one


def _struct_schema(kind: type, definitions: Schema) -> Schema:
    properties = {}
    needed = []
    for field in dataclasses.fields(kind):
        key = c_name(field.name)
        hint = field_types(kind)[field.name]
        properties[key] = schema_of(hint, definitions)
        if field.default is not dataclasses.MISSING:
            properties[key] = or_null(properties[key])
        elif not required(hint)[1]:
            needed.append(key)
    if kind is not TensorDesc:
        return struct_schema(properties, needed)
    # A tensor's type may stand beside its fields, or in the object around them.
    properties["DimensionCount"] = INTEGER
    buffer = {"Type": {"enum": ["BUFFER", "DML_TENSOR_TYPE_BUFFER"]}}
    inner = struct_schema(properties, needed)
    whole = struct_schema(buffer | {"Desc": inner}, ["Desc"])
    return {"anyOf": [struct_schema(properties | buffer, needed), whole]}
