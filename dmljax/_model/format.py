"""The format of model files: their objects, as docs/model_files.md explains them.

`_directml.json` decodes each object once. Its fields then have their types. A type that
no descriptor has brings its reader with it.
"""

import contextlib
import enum
import re
import types
from collections.abc import Iterator, Mapping
from inspect import Parameter
from typing import Annotated, Any, NamedTuple

from dmljax._check import DescriptorError, ModelError, listed, one_line, quoted
from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.json import OBJECT, READERS, Reader, integers, read_fields
from dmljax._directml.struct import fields_of
from dmljax._directml.support import UP_TO_64_BITS, FeatureLevel
from dmljax._directml.tensor import DataType
from dmljax._operators import DESCRIPTORS

DATA_TYPES = tuple(data_type.name for data_type in UP_TO_64_BITS)


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


@contextlib.contextmanager
def reporting(failure: str, *errors: type[Exception]) -> Iterator[None]:
    """Makes a ModelError of these errors: the failure and its reason."""
    try:
        yield
    except ModelError:  # is a ValueError, too
        raise
    except errors as error:
        # Pillow writes "<... object at 0x...>" where a file has no name. For an integer
        # of thousands of digits, Python advises a call of its own function.
        text = re.sub(
            r"\s*<[^<>]* object at 0x[0-9a-fA-F]+>|; use sys.*", "", str(error)
        )
        reason = getattr(error, "strerror", None) or text or type(error).__name__
        raise ModelError(f"{failure}: {one_line(reason).rstrip('.')}.") from error


# The types of fields. A converter returns None for a value of another type.


def _sizes(value: Any) -> tuple[int, ...] | None:
    sizes = integers(value)
    fits = all(1 <= size < 2**32 for size in sizes or ())
    return sizes if fits else None


def _data_type(value: Any) -> DataType | None:
    name = str(value).removeprefix(DataType.C_PREFIX)
    return DataType[name] if name in (*DATA_TYPES, "UNKNOWN") else None


def _values(value: Any) -> Any:
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
                elements.append(READERS[float].read(each, place))
        return elements
    if not isinstance(value, Mapping):
        return None
    # The objects, each by a field that no other object has.
    objects = {"value": Repeated, "valueStart": Steps, "sourcePath": SourceFile}
    classes = [objects[key] for key in value if key in objects]
    if len(classes) != 1:
        raise ModelError(
            f"the field 'initialValues' has the fields {listed(value)}; it must have "
            f"exactly one of {', '.join(objects)}."
        )
    with at_place("the field 'initialValues'"):
        return read_fields(classes[0], value)


def _bindings(value: Any) -> dict[str, Any] | None:
    """Decodes bindings: each is a name, an object, or a list of one of these."""
    if not isinstance(value, Mapping):
        return None
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
            views[tensor] = read_fields(BufferView, binding)
    return views


UINT64 = Annotated[
    int,
    Reader(
        "an integer from 0 to 2^64 - 1",
        lambda v: v if type(v) is int and 0 <= v < 2**64 else None,
    ),
]
SIZES = Annotated[
    tuple[int, ...], Reader("a list of integers, each from 1 to 2^32 - 1", _sizes)
]
TYPE = Annotated[
    DataType, Reader(f"one of {', '.join(DATA_TYPES)}, UNKNOWN", _data_type)
]


# The objects. A field has its name in the file, in snake_case. An "ignored" field means
# nothing to our operators, and is checked all the same.


class Element(NamedTuple):
    """An element of a list of mixed types."""

    type: TYPE
    value: float
    name: str = ""  # ignored


class Repeated(NamedTuple):
    """Equal initial values."""

    value_count: UINT64
    value: float


class Steps(NamedTuple):
    """Initial values in equal steps."""

    value_count: UINT64
    value_start: float
    value_delta: float


class SourceFile(NamedTuple):
    """A file with the initial values."""

    source_path: str


class ResourceFields(NamedTuple):
    """A resource in the words of the file."""

    initial_values: Annotated[Any, Reader("a list or an object", _values)]
    # UNKNOWN if the values have types of their own: a list of elements, or a .npy file.
    initial_values_data_type: TYPE = DataType.UNKNOWN
    initial_values_offset_in_bytes: UINT64 = 0
    size_in_bytes: UINT64 | None = None
    resample_size: SIZES = ()  # {1, channels, height, width} of an image
    resample_mode: Annotated[
        str, Reader("'scale'", lambda v: v if v == "scale" else None)
    ] = "scale"


class BufferView(NamedTuple):
    """The part of a resource to which a tensor is bound."""

    name: str
    element_offset: UINT64 = 0
    element_size_in_bytes: UINT64 = 0
    element_count: UINT64 = 0
    format: str = ""  # this and all below are ignored
    element_stride: UINT64 = 0
    shape: tuple[int, ...] | None = None
    counter: str = ""
    counter_offset_bytes: UINT64 = 0


BINDINGS = Annotated[Mapping[str, BufferView], OBJECT._replace(convert=_bindings)]


class ExecutionFlags(enum.Flag):
    """The options of DirectML for the execution of an operator."""

    C_PREFIX = enum.nonmember("DML_EXECUTION_FLAG_")

    NONE = 0
    ALLOW_HALF_PRECISION_COMPUTATION = 1
    DISABLE_META_COMMANDS = 2
    DESCRIPTORS_VOLATILE = 4


class Dispatchable(NamedTuple):
    """An operator, and resources for the tensors that a command leaves out."""

    type: str
    desc: Annotated[Any, OBJECT]
    bindings: BINDINGS = types.MappingProxyType({})
    dml_compile_type: str = ""  # ignored
    execution_flags: ExecutionFlags = ExecutionFlags.NONE  # ignored


class DispatchFields(NamedTuple):
    """A command to run an operator, in the words of the file."""

    type: str
    dispatchable: str
    bindings: BINDINGS
    thread_group_count: tuple[int, ...] | None = None  # ignored


class Print(NamedTuple):
    """A command to print a resource."""

    type: str
    resource: str
    verbose: bool = False


class WriteFile(NamedTuple):
    """A command to write a resource to a file."""

    type: str
    resource: str
    target_path: str
    dimensions: SIZES = ()


class Sections(NamedTuple):
    """The top level of a file."""

    resources: dict[str, Any]
    dispatchables: dict[str, Any]
    commands: list[Any]
    schema: str = ""  # ignored


def decode(cls: Any, value: Any, what: str = "it") -> Any:
    """Decodes an object of a model, which messages call `what`."""
    return read_fields(cls, OBJECT.read(value, what))


def read_type(value: Any) -> Any:
    """Returns the field `type` of an object, a string."""
    name = OBJECT.read(value, "it").get("type", Parameter.empty)
    return READERS[str].read(name, "the field 'type'")


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
        beside = [key for key in fields if key not in fields_of(Dispatchable)]
        fields["desc"] = {key: fields.pop(key) for key in beside}
    dispatchable: Dispatchable = read_fields(Dispatchable, fields)
    # `desc` is still an object of JSON, because its fields depend on the operator.
    desc = cls.from_json(dispatchable.desc)
    desc.check(max(FeatureLevel))
    return dispatchable._replace(desc=desc)
