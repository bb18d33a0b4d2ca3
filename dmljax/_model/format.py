"""The format of model files as tables of fields, and a model that was read.

The tables say what each object of the format may hold. The parser checks objects by
them, and the JSON Schema is made from them. What they refer to is defined in `schema`.
"""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from dmljax._descriptor import OperatorDesc
from dmljax._json import enum_prefix
from dmljax._model.fields import (
    NUMBER,
    OBJECT,
    STRING,
    Field,
    Fields,
    Kind,
    choice,
    integer_schema,
    list_of,
    named,
    or_null,
    refer,
)
from dmljax._model.limits import Budget
from dmljax._model.output import FileOutput
from dmljax._support import UP_TO_64_BITS
from dmljax._tensor import DataType

PREFIX = "DML_OPERATOR_"
DATA_TYPES = tuple(data_type.name for data_type in UP_TO_64_BITS)

BOOLEAN = Kind("true or false", {"type": "boolean"})
UNSIGNED = Kind("an integer from 0 to 2^64 - 1", integer_schema(0, 2**64 - 1))
SIZE = integer_schema(1, 2**32 - 1)
SIZES = Kind("a list of integers, each from 1 to 2^32 - 1", list_of(SIZE))
INTEGERS = Kind("a list of integers", list_of({"type": "integer"}))
# How the tool compiles an operator. It changes no result here.
EXECUTION_FLAG = choice(
    (
        "NONE",
        "ALLOW_HALF_PRECISION_COMPUTATION",
        "DISABLE_META_COMMANDS",
        "DESCRIPTORS_VOLATILE",
    ),
    "DML_EXECUTION_FLAG_",
)
EXECUTION_FLAGS = Kind(
    f"{EXECUTION_FLAG.text}, or a list of these",
    {"anyOf": [EXECUTION_FLAG.schema, list_of(EXECUTION_FLAG.schema)]},
)
# UNKNOWN stands for a list of elements that have their own types.
DATA_TYPE = choice((*DATA_TYPES, "UNKNOWN"), enum_prefix(DataType))
INITIAL_VALUES = Kind("a list or an object", refer("initialValues"))
COMMAND_LIST = Kind("a list", list_of(refer("command")))
BINDINGS = named(or_null(refer("binding")))
CHANNEL_ORDER = Field(choice(("RGB", "BGR")), "The order of an image's channels.")

MODEL: Fields = {
    "resources": Field(named(refer("resource")), "Buffers, by name.", required=True),
    "dispatchables": Field(
        named(refer("dispatchable")), "Operators, by name.", required=True
    ),
    "commands": Field(COMMAND_LIST, "What to do, in order.", required=True),
    "$schema": Field(STRING, "Where the schema of this file is; ignored."),
}
# A field that is described as "Ignored." means nothing to the operators here. It is in
# the table because models for the tool have it; its type is checked all the same.
RESOURCE: Fields = {
    "initialValuesDataType": Field(DATA_TYPE, "The type of the initial values."),
    "initialValues": Field(INITIAL_VALUES, "What the buffer holds.", required=True),
    "initialValuesOffsetInBytes": Field(UNSIGNED, "Where the initial values begin."),
    "sizeInBytes": Field(UNSIGNED, "The size of the buffer."),
    "resampleSize": Field(SIZES, "{1, channels, height, width} to scale an image to."),
    "resampleMode": Field(choice(["scale"]), "How an image is scaled."),
    "channelOrder": CHANNEL_ORDER,
}
COUNT = Field(UNSIGNED, "How many elements there are.", required=True)
# The objects that `initialValues` may be, by the field that no other of them has.
GENERATORS: Mapping[str, Fields] = {
    "value": {
        "valueCount": COUNT,
        "value": Field(NUMBER, "Every element.", required=True),
    },
    "valueStart": {
        "valueCount": COUNT,
        "valueStart": Field(NUMBER, "The first element.", required=True),
        "valueDelta": Field(NUMBER, "What is added for each next one.", required=True),
    },
    "sourcePath": {
        "sourcePath": Field(
            STRING,
            "A .npy file, a .png or .jpg image, or raw little-endian data; relative "
            "to the folder of the model, or else to the current directory.",
            required=True,
        )
    },
}
# An element of a list of mixed types.
MIXED_ELEMENT: Fields = {
    "type": Field(DATA_TYPE, "The data type of this element.", required=True),
    "value": Field(NUMBER, "The element.", required=True),
    "name": Field(STRING, "A name for the reader."),
}
DISPATCHABLE: Fields = {
    "type": Field(STRING, "The operator, such as DML_OPERATOR_PADDING."),
    "desc": Field(OBJECT, "The fields of the operator's C struct."),
    "Type": Field(STRING, "The same as type."),
    "Desc": Field(OBJECT, "The same as desc."),
    "bindings": Field(BINDINGS, "The resources of tensors that dispatches leave out."),
    "dmlCompileType": Field(STRING, "Ignored."),
    "executionFlags": Field(EXECUTION_FLAGS, "Ignored."),
}


def _command(name: str, description: str) -> Field:
    """Makes the field that names a command. The tool ignores the case of names."""
    # The name itself comes first, so that editors offer it. A pattern of JSON Schema
    # has no flag to ignore the case.
    any_case = "".join(f"[{c.lower()}{c.upper()}]" for c in name)
    types = [{"enum": [name]}, STRING.schema | {"pattern": f"^{any_case}$"}]
    return Field(Kind(STRING.text, {"anyOf": types}), description, required=True)


RESOURCE_NAME = Field(STRING, "The resource's name.", required=True)
COMMANDS: Mapping[str, Fields] = {
    "dispatch": {
        "type": _command("dispatch", "Runs an operator."),
        "dispatchable": Field(STRING, "The operator's name.", required=True),
        "bindings": Field(BINDINGS, "The resource of each tensor.", required=True),
        "threadGroupCount": Field(INTEGERS, "Ignored."),
    },
    "print": {
        "type": _command("print", "Prints a resource."),
        "resource": RESOURCE_NAME,
        "verbose": Field(BOOLEAN, "Whether to show each element's bits."),
    },
    "writeFile": {
        "type": _command("writeFile", "Writes a resource to a file."),
        "resource": RESOURCE_NAME,
        "targetPath": Field(STRING, "A .npy, .png, .jpg or raw file.", required=True),
        "dimensions": Field(SIZES, "The sizes of an array, or of an image."),
        "channelOrder": CHANNEL_ORDER,
    },
}
BINDING: Fields = {
    "name": RESOURCE_NAME,
    "elementOffset": Field(UNSIGNED, "How many elements come before the tensor."),
    "elementSizeInBytes": Field(UNSIGNED, "The size of these elements."),
    "elementCount": Field(UNSIGNED, "How many elements the tensor may span."),
    "format": Field(STRING, "Ignored."),
    "elementStride": Field(UNSIGNED, "Ignored."),
    "shape": Field(INTEGERS, "Ignored."),
    "counter": Field(STRING, "Ignored."),
    "counterOffsetBytes": Field(UNSIGNED, "Ignored."),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Resource:
    """A flat buffer."""

    data_type: DataType  # of the initial values; UNKNOWN for a list of mixed types
    content: np.ndarray  # the bytes that it begins with
    length: int  # the number of elements that are shown when it is printed

    @property
    def dtype(self) -> np.dtype:
        """The type in which it is shown: bytes for a list of mixed types."""
        return self.data_type.dtype if self.data_type else np.dtype(np.uint8)

    @property
    def values(self) -> np.ndarray:
        """The initial elements."""
        return self.content[: self.length * self.dtype.itemsize].view(self.dtype)


class Binding(NamedTuple):
    """The place of a tensor."""

    resource: str
    offset: int  # the byte of the resource at which it begins
    owned: bool = False  # whether it has what was there before the first command


class Dispatch(NamedTuple):
    """A command that runs an operator. `bindings` has the place of each tensor."""

    place: str
    desc: OperatorDesc
    bindings: Mapping[str, Binding]

    @property
    def written(self) -> set[str]:
        """The names of the resources that it writes. Two outputs may share one."""
        return {self.bindings[name].resource for name in self.desc.outputs}


class Print(NamedTuple):
    """A command that prints a resource."""

    place: str
    resource: str
    verbose: bool


class WriteFile(NamedTuple):
    """A command that writes a resource to a file."""

    place: str
    resource: str
    output: FileOutput


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """A model that has been checked. Only the machine can fail to run it now."""

    place: str  # what errors call it
    resources: Mapping[str, Resource]
    commands: tuple[Dispatch | Print | WriteFile, ...]  # in their order
    reinterpreted: frozenset[str]  # the resources that are bound as another type
    budget: Budget

    @property
    def dispatches(self) -> tuple[Dispatch, ...]:
        """The commands that run an operator, in their order."""
        return tuple(c for c in self.commands if isinstance(c, Dispatch))

    @property
    def outputs(self) -> tuple[Print | WriteFile, ...]:
        """The commands that show a resource, in their order."""
        return tuple(c for c in self.commands if not isinstance(c, Dispatch))
