"""The format of model files: tables of fields, and the classes of a model.

A table lists the fields of a JSON object, as docs/model_files.md explains them. Rules
about two fields or two objects are in `values` and `parse`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.json import enum_prefix
from dmljax._directml.support import UP_TO_64_BITS
from dmljax._directml.tensor import DataType
from dmljax._model.fields import (
    BOOLEAN,
    INTEGER,
    LIST,
    NUMBER,
    OBJECT,
    STRING,
    Kind,
    between,
    choice,
    list_of,
    of_type,
    one_or_list_of,
    required,
)
from dmljax._model.images import Encoder

DATA_TYPES = tuple(data_type.name for data_type in UP_TO_64_BITS)

UNSIGNED = between(0, 64)
SIZES = list_of(between(1, 32), "a list of integers, each from 1 to 2^32 - 1")
INTEGERS = list_of(INTEGER, "a list of integers")
EXECUTION_FLAGS = one_or_list_of(
    choice(
        "NONE",
        "ALLOW_HALF_PRECISION_COMPUTATION",
        "DISABLE_META_COMMANDS",
        "DESCRIPTORS_VOLATILE",
        prefix="DML_EXECUTION_FLAG_",
    )
)
VALUES = Kind(
    "a list or an object",
    # ONNX models have "deferred" there, which `values` refuses by name.
    lambda value: type(value) in (list, dict) or value == "deferred",
)
STRUCT = of_type(
    "an object with the fields of the C struct, which may also stand beside 'type'",
    dict,
)
# UNKNOWN stands for a list of elements that have their own types.
DATA_TYPE = choice(*DATA_TYPES, "UNKNOWN", prefix=enum_prefix(DataType))

# Fields marked "ignored" mean nothing to our operators. The tables have them because
# models for the tool do; we check their types all the same.
MODEL = {
    "resources": required(OBJECT),
    "dispatchables": required(OBJECT),
    "commands": required(LIST),
    "$schema": STRING,  # ignored
}
RESOURCE = {
    "initialValuesDataType": DATA_TYPE,
    "initialValues": required(VALUES),
    "initialValuesOffsetInBytes": UNSIGNED,
    "sizeInBytes": UNSIGNED,
    "resampleSize": SIZES,  # {1, channels, height, width} of an image
    "resampleMode": Kind("'scale'", lambda value: value == "scale"),
}
COUNT = required(UNSIGNED)
# The objects that `initialValues` may be, by the field that no other of them has.
GENERATORS = {
    "value": {"valueCount": COUNT, "value": required(NUMBER)},
    "valueStart": {
        "valueCount": COUNT,
        "valueStart": required(NUMBER),
        "valueDelta": required(NUMBER),
    },
    "sourcePath": {"sourcePath": required(STRING)},
}
# An element of a list of mixed types.
MIXED_ELEMENT = {
    "type": required(DATA_TYPE),
    "value": required(NUMBER),
    "name": STRING,
}
NAME = required(STRING)
DISPATCHABLE = {
    "type": NAME,  # the operator, such as DML_OPERATOR_PADDING
    "desc": required(STRUCT),
    "bindings": OBJECT,  # the resources of tensors that commands leave out
    "dmlCompileType": STRING,  # ignored
    "executionFlags": EXECUTION_FLAGS,  # ignored
}
# By the type of the command in small letters.
COMMANDS = {
    "dispatch": {
        "type": NAME,
        "dispatchable": NAME,
        "bindings": required(OBJECT),
        "threadGroupCount": INTEGERS,  # ignored
    },
    "print": {"type": NAME, "resource": NAME, "verbose": BOOLEAN},
    "writefile": {
        "type": NAME,
        "resource": NAME,
        "targetPath": required(STRING),
        "dimensions": SIZES,
    },
}
BINDING = {
    "name": NAME,
    "elementOffset": UNSIGNED,
    "elementSizeInBytes": UNSIGNED,
    "elementCount": UNSIGNED,
    "format": STRING,  # this and all below are ignored
    "elementStride": UNSIGNED,
    "shape": INTEGERS,
    "counter": STRING,
    "counterOffsetBytes": UNSIGNED,
}


class Resource(NamedTuple):
    """A flat buffer."""

    data_type: DataType  # of the initial values; UNKNOWN for a list of mixed types
    content: np.ndarray  # the initial bytes
    length: int  # the number of elements that `print` shows

    @property
    def dtype(self) -> np.dtype:
        """The type of the elements: UINT8 for a list of mixed types."""
        if self.data_type == DataType.UNKNOWN:
            return np.dtype(np.uint8)
        return self.data_type.dtype

    @property
    def values(self) -> np.ndarray:
        """The initial elements that `print` would show."""
        return self.content[: self.length * self.dtype.itemsize].view(self.dtype)


class Binding(NamedTuple):
    """The place of a tensor."""

    resource: str
    offset: int  # the first byte of the tensor in the resource
    owned: bool = False  # whether the tensor keeps the initial bytes


class Dispatch(NamedTuple):
    """A command that runs an operator, with the place of each tensor."""

    place: str
    desc: OperatorDesc
    bindings: Mapping[str, Binding]

    @property
    def written(self) -> list[str]:
        """The names of the resources of the outputs. Two outputs may share one.

        Their order is a part of the program that JAX looks up in a persistent cache. A
        set has another order in each process.
        """
        return sorted({self.bindings[name].resource for name in self.desc.outputs})


class Print(NamedTuple):
    """A command that prints a resource."""

    place: str
    resource: str
    verbose: bool


class WriteFile(NamedTuple):
    """A command that writes a resource to a file."""

    place: str
    resource: str
    path: Path  # without links
    name: str  # the path as the model and the command line have it
    clobber: bool  # whether it may replace a file
    encode: Encoder  # turns the values into the content of the file
    summary: str  # the type and the sizes of the content, for messages


Command = Dispatch | Print | WriteFile


class Model(NamedTuple):
    """A model that was checked. Only the machine can fail to run it now."""

    place: str  # its name in errors
    resources: Mapping[str, Resource]
    commands: list[Command]  # in their order
    reinterpreted: set[str]  # the resources that are bound as another type

    @property
    def dispatches(self) -> list[Dispatch]:
        """The commands that run an operator, in their order."""
        return [c for c in self.commands if isinstance(c, Dispatch)]

    @property
    def outputs(self) -> list[Print | WriteFile]:
        """The commands that show a resource, in their order."""
        return [c for c in self.commands if not isinstance(c, Dispatch)]
