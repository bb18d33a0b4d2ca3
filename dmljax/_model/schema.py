"""The JSON Schema of model files, for editors that complete and check them.

The schema is made from the tables by which model files are read, so that both agree.
"""

from typing import Any

from dmljax._model.fields import schema_of_fields
from dmljax._model.format import (
    BINDING,
    COMMANDS,
    DISPATCHABLE,
    MODEL,
    PREFIX,
    RESOURCE,
)
from dmljax._model.json_schema import (
    NUMBER_SCHEMA,
    Schema,
    or_null,
    schema_of,
    struct_schema,
)
from dmljax._model.values import GENERATORS, MIXED_ELEMENT
from dmljax._operators import DESCRIPTORS

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def model_schema() -> Schema:
    """Makes the schema.

    A schema can't express the rules of a whole model, such as names that must exist or
    sizes that must fit. `dmljax run --check` finds what breaks these.
    """
    definitions: dict[str, Any] = {}
    operators = [_operator(name, definitions) for name in DESCRIPTORS]
    definitions |= {
        "resource": schema_of_fields(RESOURCE, {"initialValues": _initial_values()}),
        "dispatchable": {"anyOf": operators},
        "command": {"anyOf": [_command(name) for name in COMMANDS]},
        "binding": _binding(),
        "bindings": _named(or_null({"$ref": "#/$defs/binding"})),
    }
    model = schema_of_fields(
        MODEL,
        {
            "resources": _named({"$ref": "#/$defs/resource"}),
            "dispatchables": _named({"$ref": "#/$defs/dispatchable"}),
            "commands": {"type": "array", "items": {"$ref": "#/$defs/command"}},
        },
    )
    title = "A model file of DxDispatch, with the operators of dmljax"
    return {"$schema": DIALECT, "title": title, **model, "$defs": definitions}


def _named(schema: Schema) -> Schema:
    return {"type": "object", "additionalProperties": schema}


def _initial_values() -> Schema:
    # A list of numbers, a list of elements with their own types, or one of the objects.
    numbers: Schema = {"type": "array", "items": NUMBER_SCHEMA, "minItems": 1}
    mixed: Schema = {
        "type": "array",
        "items": schema_of_fields(MIXED_ELEMENT),
        "minItems": 1,
    }
    generators = [schema_of_fields(table) for table in GENERATORS.values()]
    return {"anyOf": [numbers, mixed, *generators]}


def _operator(name: str, definitions: Schema) -> Schema:
    """Makes the schema of a dispatchable of one operator.

    The fields of the C struct are in an object, or stand beside the type.
    """
    types = {"enum": [f"{PREFIX}{name}", name]}
    known: Schema = {
        "type": types,
        "Type": types,
        "bindings": {"$ref": "#/$defs/bindings"},
    }
    whole = schema_of_fields(DISPATCHABLE, known)
    schema_of(DESCRIPTORS[name], definitions)
    struct = definitions[DESCRIPTORS[name].__name__]
    reference = {"$ref": f"#/$defs/{DESCRIPTORS[name].__name__}"}
    properties = whole["properties"] | {"desc": reference, "Desc": reference}
    # Both fields may be written with a capital letter. A schema for each spelling of
    # both makes sure that there is one of each.
    in_desc = [
        struct_schema(properties, [kind, desc])
        for kind in ("type", "Type")
        for desc in ("desc", "Desc")
    ]
    inner = {k: v for k, v in whole["properties"].items() if k not in ("desc", "Desc")}
    beside = [
        struct_schema(inner | struct["properties"], [kind, *struct["required"]])
        for kind in ("type", "Type")
    ]
    return {"anyOf": [*in_desc, *beside]}


def _command(name: str) -> Schema:
    """Makes the schema of a command."""
    # The tool ignores the case of a command's name. The name itself comes first, so
    # that editors offer it. A pattern of JSON Schema has no flag to ignore the case.
    any_case = "".join(f"[{c.lower()}{c.upper()}]" for c in name)
    types = {
        "anyOf": [{"enum": [name]}, {"type": "string", "pattern": f"^{any_case}$"}]
    }
    known: Schema = {"type": types, "bindings": {"$ref": "#/$defs/bindings"}}
    return schema_of_fields(COMMANDS[name], known)


def _binding() -> Schema:
    # A list of one binding stands for this binding.
    one: Schema = {"anyOf": [{"type": "string"}, schema_of_fields(BINDING)]}
    several = {"type": "array", "items": one, "minItems": 1, "maxItems": 1}
    return {"anyOf": [*one["anyOf"], several]}
