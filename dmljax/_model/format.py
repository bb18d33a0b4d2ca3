"""The format of model files as tables of fields, and a model that was read.

The tables say what each object of the format may hold. The parser checks objects by
them, and the JSON Schema is made from them. How a model is read is in `_model_parse`.
"""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from dmljax._descriptor import OperatorDesc
from dmljax._model.fields import (
    BOOLEAN,
    CHANNEL_ORDER,
    DATA_TYPE,
    INTEGERS,
    LIST,
    OBJECT,
    SIZES,
    STRING,
    STRINGS,
    UNSIGNED,
    Field,
    Fields,
    Kind,
    choice,
)
from dmljax._model.limits import Budget
from dmljax._model.output import FileOutput
from dmljax._tensor import DataType

PREFIX = "DML_OPERATOR_"

# The test is coarse: `_model_values` has the tables of what such a value may be.
INITIAL_VALUES = Kind(
    "a list or an object", lambda value: type(value) in (list, dict, str), {}
)
MODEL: Fields = {
    "resources": Field(OBJECT, "Buffers, by name.", required=True),
    "dispatchables": Field(OBJECT, "Operators, by name.", required=True),
    "commands": Field(LIST, "What to do, in order.", required=True),
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
DISPATCHABLE: Fields = {
    "type": Field(STRING, "The operator, such as DML_OPERATOR_PADDING."),
    "desc": Field(OBJECT, "The fields of the operator's C struct."),
    "Type": Field(STRING, "The same as type."),
    "Desc": Field(OBJECT, "The same as desc."),
    "bindings": Field(OBJECT, "The resources of tensors that dispatches leave out."),
    "dmlCompileType": Field(STRING, "Ignored."),
    "executionFlags": Field(STRINGS, "Ignored."),
}
COMMANDS: Mapping[str, Fields] = {
    "dispatch": {
        "type": Field(STRING, "Runs an operator.", required=True),
        "dispatchable": Field(STRING, "The operator's name.", required=True),
        "bindings": Field(OBJECT, "The resource of each tensor.", required=True),
        "threadGroupCount": Field(INTEGERS, "Ignored."),
    },
    "print": {
        "type": Field(STRING, "Prints a resource.", required=True),
        "resource": Field(STRING, "The resource's name.", required=True),
        "verbose": Field(BOOLEAN, "Whether to show each element's bits."),
    },
    "writeFile": {
        "type": Field(STRING, "Writes a resource to a file.", required=True),
        "resource": Field(STRING, "The resource's name.", required=True),
        "targetPath": Field(STRING, "A .npy, .png, .jpg or raw file.", required=True),
        "dimensions": Field(SIZES, "The sizes of an array, or of an image."),
        "channelOrder": CHANNEL_ORDER,
    },
}
BINDING: Fields = {
    "name": Field(STRING, "The resource's name.", required=True),
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
    """A flat buffer.

    Attributes:
      data_type: the type of the initial values; UNKNOWN for a list of mixed types.
      content: the bytes that the buffer begins with.
      length: the number of elements that are shown when the buffer is printed.
    """

    data_type: DataType
    content: np.ndarray
    length: int

    @property
    def dtype(self) -> np.dtype:
        """The type in which it is shown, which is bytes for a list of mixed types."""
        return self.data_type.dtype if self.data_type else np.dtype(np.uint8)

    @property
    def values(self) -> np.ndarray:
        """The initial elements."""
        return self.content[: self.length * self.dtype.itemsize].view(self.dtype)


class Binding(NamedTuple):
    """The place of a tensor: its resource, and the byte from which on it lies there."""

    resource: str
    offset: int


@dataclasses.dataclass(frozen=True)
class Dispatch:
    """A command that runs an operator. `bindings` has the place of each tensor."""

    place: str
    desc: OperatorDesc
    bindings: Mapping[str, Binding]


@dataclasses.dataclass(frozen=True)
class Print:
    """A command that prints a resource."""

    resource: str
    verbose: bool


@dataclasses.dataclass(frozen=True)
class WriteFile:
    """A command that writes a resource to a file."""

    place: str
    resource: str
    output: FileOutput


Command = Dispatch | Print | WriteFile


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """A model that has been checked. Only the machine can fail to run it now.

    Attributes:
      place: what errors call the model.
      resources: the resources by name.
      commands: the commands in their order.
      reinterpreted: the names of the resources that are bound as another type than
        their own.
      budget: the memory that the model may use.
    """

    place: str
    resources: Mapping[str, Resource]
    commands: tuple[Command, ...]
    reinterpreted: frozenset[str]
    budget: Budget

    @property
    def outputs(self) -> tuple[Print | WriteFile, ...]:
        """The commands that show a resource, in their order."""
        return tuple(c for c in self.commands if not isinstance(c, Dispatch))
