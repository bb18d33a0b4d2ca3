"""The format of model files: their objects, as docs/model_files.md explains them.

Each object is decoded once. After it, each of its fields has its type.
"""

import contextlib
import functools
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING
from typing import Any, Literal, NamedTuple

from dmljax._check import (
    DescriptorError,
    ModelError,
    as_json,
    listed,
    quoted,
)
from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.json import integers_from_json, number_from_json
from dmljax._directml.struct import c_name, field_types
from dmljax._directml.support import UP_TO_64_BITS, FeatureLevel
from dmljax._directml.tensor import DataType
from dmljax._operators import DESCRIPTORS

DATA_TYPES = tuple(data_type.name for data_type in UP_TO_64_BITS)
EXECUTION_FLAGS = (
    "NONE",
    "ALLOW_HALF_PRECISION_COMPUTATION",
    "DISABLE_META_COMMANDS",
    "DESCRIPTORS_VOLATILE",
)


@contextlib.contextmanager
def at_place(place: str) -> Iterator[None]:
    """Begins the message of an error with a place in the model."""
    try:
        yield
    except (ModelError, DescriptorError) as error:
        raise ModelError(f"{place}: {error}") from error
    # A file can cause these two as well: by large sizes, and by many brackets.
    except MemoryError as error:
        raise ModelError(f"{place}: there is not enough memory for it.") from error
    except RecursionError as error:
        raise ModelError(f"{place}: it is nested too deeply.") from error


# The objects. A field has the name that it has in the file, in snake_case. Its type
# names its reader in READERS, so `int` is a UINT64 and `tuple[int, ...]` are sizes. We
# check fields that mean nothing to our operators ("ignored") all the same.


class Element(NamedTuple):
    """An element of a list of mixed types."""

    type: DataType
    value: int | float
    name: str = ""  # ignored


class Repeated(NamedTuple):
    """Initial values that are all the same."""

    value_count: int
    value: int | float


class Steps(NamedTuple):
    """Initial values in equal steps."""

    value_count: int
    value_start: int | float
    value_delta: int | float


class SourceFile(NamedTuple):
    """A file with the initial values."""

    source_path: str


Values = list[int | float] | list[Element] | Repeated | Steps | SourceFile


class ResourceFields(NamedTuple):
    """A resource as the file describes it."""

    initial_values: Values
    # UNKNOWN if the values have types of their own: a list of elements, or a .npy file.
    initial_values_data_type: DataType = DataType.UNKNOWN
    initial_values_offset_in_bytes: int = 0
    size_in_bytes: int | None = None
    resample_size: tuple[int, ...] = ()  # {1, channels, height, width} of an image
    resample_mode: Literal["scale"] = "scale"


class BufferView(NamedTuple):
    """The part of a resource to which a tensor is bound."""

    name: str
    element_offset: int = 0
    element_size_in_bytes: int = 0
    element_count: int = 0
    format: str = ""  # this and all below are ignored
    element_stride: int = 0
    shape: list[int] | None = None
    counter: str = ""
    counter_offset_bytes: int = 0


class Dispatchable(NamedTuple):
    """An operator, and the resources of tensors that a command may leave out."""

    type: str
    desc: OperatorDesc
    bindings: Mapping[str, BufferView] = types.MappingProxyType({})
    dml_compile_type: str = ""  # ignored
    execution_flags: str | list[str] = ""  # ignored


class DispatchFields(NamedTuple):
    """A command that runs an operator, as the file describes it."""

    type: str
    dispatchable: str
    bindings: Mapping[str, BufferView]
    thread_group_count: list[int] | None = None  # ignored


class Print(NamedTuple):
    """A command that prints a resource."""

    type: str
    resource: str
    verbose: bool = False


class WriteFile(NamedTuple):
    """A command that writes a resource to a file."""

    type: str
    resource: str
    target_path: str
    dimensions: tuple[int, ...] = ()


class Sections(NamedTuple):
    """The top level of a file."""

    resources: dict[str, Any]
    dispatchables: dict[str, Any]
    commands: list[Any]
    schema: str = ""  # ignored


# Decoding


class Reader(NamedTuple):
    """A reader of the JSON values that fields of a type may have."""

    expected: str  # the end of a message: "it must be ..."
    accepts: Callable[[Any], bool]
    convert: Callable[[Any], Any] = lambda value: value

    def read(self, value: Any, what: str) -> Any:
        """Decodes a value, which may be MISSING. Errors call it `what`."""
        if not self.accepts(value):
            shown = "missing" if value is MISSING else as_json(value)
            raise ModelError(f"{what} is {shown}; it must be {self.expected}.")
        return self.convert(value)


def decode(cls: Any, value: Any, what: str = "it") -> Any:
    """Decodes an object of JSON to a class, by the types of its fields."""
    fields = _fields_of(cls)
    # If we ignored a misspelled field, its default would count, and nobody would know.
    for key in OBJECT.read(value, what):
        if key not in fields:
            raise ModelError(
                f"there is no field {quoted(key)}; the fields are {', '.join(fields)}."
            )
    arguments = {}
    for key, (name, reader) in fields.items():
        # In an optional field, null means the same as absent.
        if name not in cls._field_defaults or value.get(key) is not None:
            field = value.get(key, MISSING)
            arguments[name] = reader.read(field, f"the field '{key}'")
    return cls(**arguments)


@functools.cache
def _fields_of(cls: Any) -> dict[str, tuple[str, Reader]]:
    """Returns the fields of a class and their readers, by their names in JSON."""
    fields = {}
    for name, (field_type, _) in field_types(cls).items():
        key = name[0] + c_name(name)[1:]  # such as valueCount
        if name == "schema":
            key = "$schema"
        fields[key] = name, READERS[field_type]
    return fields


def _read_values(value: Any) -> Values:
    if value == "deferred":
        raise ModelError(
            "the field 'initialValues' is 'deferred', which only ONNX dispatchables "
            "have; give the values."
        )
    if isinstance(value, list):
        # A list may have millions of elements, and mostly has numbers alone.
        if {int, float}.issuperset(map(type, value)):
            return value
        elements = []
        for index, each in enumerate(value):
            place = f"initialValues[{index}]"
            if isinstance(value[0], dict):
                with at_place(place):
                    elements.append(decode(Element, each))
            else:
                elements.append(READERS[int | float].read(each, place))
        return elements
    # The objects, each by a field that no other object has.
    objects = {"value": Repeated, "valueStart": Steps, "sourcePath": SourceFile}
    classes = [objects[key] for key in value if key in objects]
    if len(classes) != 1:
        raise ModelError(
            f"the field 'initialValues' has the fields {listed(value)}; it must have "
            f"exactly one of {', '.join(objects)}."
        )
    with at_place("the field 'initialValues'"):
        decoded: Values = decode(classes[0], value)
        return decoded


def _read_bindings(value: dict[str, Any]) -> dict[str, BufferView]:
    """Decodes bindings: each is a name, an object, or a list of one of these."""
    views = {}
    for tensor, binding in value.items():
        if binding is None:
            continue
        what = f"the binding of {quoted(tensor)}"
        if isinstance(binding, list) and len(binding) == 1:
            binding = binding[0]
        if isinstance(binding, str):
            binding = {"name": binding}
        expected = "the name of one resource, or an object with it"
        OBJECT._replace(expected=expected).read(binding, what)
        with at_place(what):
            views[tensor] = decode(BufferView, binding)
    return views


def _has_name(value: Any, prefix: str, names: tuple[str, ...]) -> bool:
    return type(value) is str and value.removeprefix(prefix) in names


def _are_sizes(value: Any) -> bool:
    sizes = integers_from_json(value)
    return sizes is not None and all(1 <= size < 2**32 for size in sizes)


OBJECT = Reader("an object", lambda value: type(value) is dict)
# By the types of fields.
READERS: dict[Any, Reader] = {
    str: Reader("a string", lambda value: type(value) is str),
    int: Reader(
        "an integer from 0 to 2^64 - 1",
        # `isinstance` would take True for an integer.
        lambda value: type(value) is int and 0 <= value < 2**64,
    ),
    int | float: Reader(
        "a number, or for floats also 'nan', 'inf' or '-inf'",
        lambda value: number_from_json(value) is not None,
        number_from_json,
    ),
    bool: Reader("true or false", lambda value: type(value) is bool),
    tuple[int, ...]: Reader(
        "a list of integers, each from 1 to 2^32 - 1", _are_sizes, tuple
    ),
    list[int]: Reader(
        "a list of integers", lambda value: integers_from_json(value) is not None
    ),
    list[Any]: Reader("a list", lambda value: type(value) is list),
    dict[str, Any]: OBJECT,
    Mapping[str, BufferView]: OBJECT._replace(convert=_read_bindings),
    OperatorDesc: OBJECT._replace(
        expected="an object with the fields of the C struct, which may also stand "
        "beside 'type'"
    ),
    Values: Reader(
        # ONNX models have "deferred" there, which is refused by name.
        "a list or an object",
        lambda value: type(value) in (list, dict) or value == "deferred",
        _read_values,
    ),
    DataType: Reader(
        f"one of {', '.join(DATA_TYPES)}, UNKNOWN",
        lambda value: _has_name(value, DataType.C_PREFIX, (*DATA_TYPES, "UNKNOWN")),
        lambda value: DataType[value.removeprefix(DataType.C_PREFIX)],
    ),
    str | list[str]: Reader(
        f"one of {', '.join(EXECUTION_FLAGS)}, or a list of these",
        lambda value: all(
            _has_name(flag, "DML_EXECUTION_FLAG_", EXECUTION_FLAGS)
            for flag in (value if type(value) is list else [value])
        ),
    ),
    Literal["scale"]: Reader("'scale'", lambda value: value == "scale"),
}


# Operators


def read_type(value: Any) -> str:
    """Returns the field `type` of an object."""
    name = OBJECT.read(value, "it").get("type", MISSING)
    return str(READERS[str].read(name, "the field 'type'"))


def operator_class(name: str) -> type[OperatorDesc]:
    """Returns the descriptor of the operator `name`, with or without the C prefix."""
    cls = DESCRIPTORS.get(name.upper().removeprefix("DML_OPERATOR_"))
    if cls is None:
        raise ModelError(
            f"the type {quoted(name)} is not an operator of dmljax; the operators are "
            f"{', '.join(DESCRIPTORS)}."
        )
    return cls


def read_dispatchable(value: Any) -> Dispatchable:
    """Decodes an operator and checks its descriptor."""
    cls = operator_class(read_type(value))
    fields = dict(value)
    if fields.get("desc") is None:
        # The fields of the C struct then stand beside `type`.
        beside = [key for key in fields if key not in _fields_of(Dispatchable)]
        if beside:
            fields["desc"] = {key: fields.pop(key) for key in beside}
    dispatchable: Dispatchable = decode(Dispatchable, fields)
    # `desc` is still an object of JSON, because its fields depend on the operator.
    desc = cls.from_json(typing.cast(Any, dispatchable.desc))
    desc.check(max(FeatureLevel))
    return dispatchable._replace(desc=desc)
