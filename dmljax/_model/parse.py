"""Reads a model file and checks it as a whole.

When a model has passed, only the machine can fail to run it. So an error in the last
command leaves nothing printed and nothing written. What the fields are is in
`_model_format`, and how values are made is in `_model_values`.
"""

import contextlib
import functools
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dmljax._check import (
    LONGEST_PATH,
    DescriptorError,
    ModelError,
    as_json,
    quoted,
    shortened,
)
from dmljax._descriptor import OperatorDesc
from dmljax._model.fields import (
    OBJECT,
    STRING,
    Field,
    known_name,
    read_fields,
    spelling,
    typed,
)
from dmljax._model.format import (
    BINDING,
    COMMANDS,
    DISPATCHABLE,
    MODEL,
    PREFIX,
    RESOURCE,
    Binding,
    Command,
    Dispatch,
    Model,
    Print,
    Resource,
    WriteFile,
)
from dmljax._model.jsonc import read_jsonc
from dmljax._model.limits import Budget, read_file
from dmljax._model.output import HERE, Targets, file_output
from dmljax._model.values import initial_values
from dmljax._operators import DESCRIPTORS
from dmljax._struct import c_name
from dmljax._support import FeatureLevel
from dmljax._tensor import MAX_ELEMENTS, DataType, TensorDesc

# The bytes that Python's objects take, at most, for each byte of JSON text.
BYTES_PER_CHARACTER = 32
# A resource is in memory three times: as it is made, on the device, and as it is after
# the run.
COPIES = 3
# The bytes of an element as text, as ``print`` shows it without and with ``verbose``.
TEXT_BYTES, VERBOSE_BYTES = 24, 72
# The bytes of the offset that an element of a strided tensor may need.
OFFSET_BYTES = 8
NAMED = Field(STRING, "What kind of object it is.", required=True)


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


class ModelText(NamedTuple):
    """The text of a model that is in no file of its own, such as standard input."""

    name: str
    content: bytes


def read_stream(stream: Any, budget: Budget) -> ModelText:
    """Reads a model from standard input, but no more than there is room for."""
    if stream is None:  # Python's standard input, if the shell has closed it
        raise ModelError("standard input is closed, so there is no model to read.")
    content = bytearray()
    try:
        while part := stream.buffer.read(2**20):
            content += part
            size = BYTES_PER_CHARACTER * len(content)
            budget.check(size, "the model on standard input")
    except OSError as error:
        raise ModelError(f"standard input cannot be read: {error.strerror}.") from error
    return ModelText("standard input", bytes(content))


Source = str | os.PathLike[str] | ModelText | Mapping[str, Any]


def parse_model(
    source: Source, targets: Targets = HERE, max_memory: int | None = None
) -> Model:
    """Reads and checks a model.

    Args:
      source: the path of a file, its content, or its text.
      targets: says where files may be written.
      max_memory: the bytes that the model may use; None for the default.

    Raises:
      ModelError: names what is wrong and where.
    """
    budget = Budget(max_memory)
    place, folder, load = _opened(source, budget)
    with at(place):
        fields = read_fields(load(), MODEL, "its top level")
    parser = _Parser(place, folder, targets, budget)
    # The operators come first: one that is not here is refused before any data is read.
    for name, value in fields["dispatchables"].items():
        with at(f"{place}, dispatchable {quoted(name)}"):
            parser.dispatchables[name] = parser.dispatchable(value)
    for name, value in fields["resources"].items():
        with at(f"{place}, resource {quoted(name)}"):
            parser.resources[name] = parser.resource(value)
    for name, (_, bindings) in parser.dispatchables.items():
        with at(f"{place}, dispatchable {quoted(name)}"):
            parser.check_bindings(bindings)
    commands = tuple(
        parser.command(value, f"{place}, command {number}")
        for number, value in enumerate(fields["commands"], 1)
    )
    reinterpreted = frozenset(parser.reinterpreted)
    return Model(place, parser.resources, commands, reinterpreted, budget)


def _opened(source: Source, budget: Budget) -> tuple[str, Path, Any]:
    """Returns what errors call the model, its folder, and a function that reads it."""
    if isinstance(source, Mapping):
        return "model", Path(), functools.partial(_plain, source)
    if isinstance(source, ModelText):
        place = f"model on {source.name}"
        budget.check(BYTES_PER_CHARACTER * len(source.content), place)
        return place, Path(), functools.partial(read_jsonc, source.content)
    path = Path(source)

    def load() -> Any:
        return read_jsonc(read_file(path, budget, "it", BYTES_PER_CHARACTER))

    return f"model {quoted(str(path), LONGEST_PATH)}", path.parent, load


def _plain(source: Mapping[str, Any]) -> Any:
    """Returns a dict as its JSON would be read: lists for tuples, and names as keys."""
    try:
        return json.loads(json.dumps(dict(source)))
    except (TypeError, ValueError) as error:
        raise ModelError(f"what it holds is not JSON: {error}.") from error


def operator_class(name: str) -> type[OperatorDesc]:
    """Returns the descriptor of the operator `name`, which may have the C prefix."""
    cls = DESCRIPTORS.get(name.upper().removeprefix(PREFIX))
    if cls is None:
        raise ModelError(
            f"the type {quoted(name)} is not an operator of dmljax; the operators are "
            f"{', '.join(DESCRIPTORS)}."
        )
    return cls


class _Dispatchable(NamedTuple):
    desc: OperatorDesc
    bindings: dict[str, Any]


class _Parser:
    """Checks the parts of one model, and keeps what later parts refer to."""

    def __init__(
        self, place: str, folder: Path, targets: Targets, budget: Budget
    ) -> None:
        self.place, self.folder = place, folder
        self.targets, self.budget = targets, budget
        self.resources: dict[str, Resource] = {}
        self.dispatchables: dict[str, _Dispatchable] = {}
        self.reinterpreted: set[str] = set()

    def resource(self, value: Any) -> Resource:
        """Makes a buffer, filled with its initial values."""
        fields = read_fields(value, RESOURCE)
        data_type, values = initial_values(fields, self.folder, self.budget)
        offset = fields.get("initialValuesOffsetInBytes", 0)
        # A buffer without a given size has a multiple of 4 bytes, as the size has that
        # a tensor description implies.
        size = fields.get("sizeInBytes", -(-values.nbytes // 4) * 4)
        if not offset + values.nbytes <= size <= MAX_ELEMENTS * values.itemsize:
            begin = f" and begin at byte {offset}" if offset else ""
            raise ModelError(
                f"the field 'sizeInBytes' is {fields.get('sizeInBytes', 'missing')}, "
                f"while the initial values have {values.nbytes} bytes{begin}; it must "
                f"be at least {offset + values.nbytes}, and hold at most "
                f"{MAX_ELEMENTS} elements."
            )
        self.budget.take(COPIES * size, "it")
        content = np.zeros(size, np.uint8)
        content[offset : offset + values.nbytes] = values.view(np.uint8)
        # With a size of its own the whole buffer is shown, and else the initial values
        # without what rounding has added.
        whole = size // values.itemsize
        return Resource(
            data_type, content, whole if "sizeInBytes" in fields else values.size
        )

    def dispatchable(self, value: Any) -> _Dispatchable:
        """Reads an operator and checks its descriptor."""
        # The fields of the C struct may be in an object, or stand beside the type. Then
        # all that are not of the table are the struct's.
        fields = typed(value, OBJECT, "it")
        cls = operator_class(_name_in(fields, spelling(fields, "type") or "type"))
        struct = spelling(fields, "desc")
        inline = struct is None
        own = {key: item for key, item in fields.items() if key in DISPATCHABLE}
        known = read_fields(own if inline else fields, DISPATCHABLE)
        if inline and own.keys() == fields.keys():
            raise ModelError(
                "the field 'desc' is missing; it must be an object with the fields of "
                "the C struct, which may also stand beside 'type'."
            )
        beside = {key: item for key, item in fields.items() if key not in DISPATCHABLE}
        desc = cls.from_json(beside if struct is None else known[struct])
        desc.check(max(FeatureLevel))
        return _Dispatchable(desc, known.get("bindings", {}))

    def check_bindings(self, bindings: Mapping[str, Any]) -> None:
        """Requires that a dispatchable's own bindings name resources."""
        for tensor, binding in bindings.items():
            if binding is not None:
                self._bound(tensor, binding)

    def command(self, value: Any, place: str) -> Command:
        """Reads a command. `place` is where it stands in the model."""
        with at(place):
            fields = typed(value, OBJECT, "it")
            name = _name_in(fields, "type")
        place = f"{place} ({shortened(name)})"
        with at(place):
            kind = {command.lower(): command for command in COMMANDS}.get(name.lower())
            if kind is None:
                raise ModelError(
                    f"there is no such command; the commands are {', '.join(COMMANDS)}."
                )
            fields = read_fields(fields, COMMANDS[kind])
            if kind == "dispatch":
                return self._dispatch(fields, place)
            resource = known_name(fields["resource"], "resource", self.resources)
            if kind == "print":
                return self._print(fields, resource)
            return self._write_file(fields, resource, place)

    def _print(self, fields: Mapping[str, Any], resource: Resource) -> Print:
        if resource.data_type == DataType.UNKNOWN:
            raise ModelError(
                f"the resource {quoted(fields['resource'])} has a list of elements "
                "with their own types and cannot be printed; write it to a file."
            )
        verbose = fields.get("verbose", False)
        text = VERBOSE_BYTES if verbose else TEXT_BYTES
        self.budget.take(resource.length * (text + resource.dtype.itemsize), "it")
        return Print(fields["resource"], verbose)

    def _write_file(
        self, fields: Mapping[str, Any], resource: Resource, place: str
    ) -> WriteFile:
        output = file_output(fields, resource.data_type, resource.length, self.targets)
        self.budget.take(resource.content.nbytes, "it")
        self.budget.check(output.working_bytes, "it")
        return WriteFile(place, fields["resource"], output)

    def _dispatch(self, fields: Mapping[str, Any], place: str) -> Dispatch:
        name = fields["dispatchable"]
        desc, first = known_name(name, "dispatchable", self.dispatchables)
        # The dispatchable may have bindings, which those of the command replace.
        given = {**first, **fields["bindings"]}
        bound = {key: value for key, value in given.items() if value is not None}
        tensors = {c_name(field): (field, t) for field, t in desc.tensors().items()}
        for key in sorted(bound.keys() ^ tensors.keys()):
            reason = "there is no such tensor" if key in bound else "it has no binding"
            raise ModelError(
                f"tensor {quoted(key)} of {quoted(name)}: {reason}; each of its "
                f"tensors must be bound to a resource: {', '.join(tensors)}."
            )
        bindings: dict[str, Binding] = {}
        for key, (field, tensor) in tensors.items():
            bindings[field] = self._tensor_binding(key, tensor, bound[key])
            self.budget.check(_working_bytes(tensor), f"tensor '{key}'")
        _check_apart(desc, bindings)
        return Dispatch(place, desc, bindings)

    def _bound(self, tensor: str, value: Any) -> dict[str, Any]:
        """Reads a binding: a name, an object, or a list of one of these."""
        source = value[0] if isinstance(value, list) and len(value) == 1 else value
        source = {"name": source} if isinstance(source, str) else source
        if not isinstance(source, dict):
            raise ModelError(
                f"the binding of {quoted(tensor)} is {as_json(value)}; it must be the "
                "name of one resource, or an object with it."
            )
        with at(f"the binding of {quoted(tensor)}"):
            fields = read_fields(source, BINDING)
        known_name(fields["name"], "resource", self.resources)
        return fields

    def _tensor_binding(self, key: str, tensor: TensorDesc, value: Any) -> Binding:
        """Returns where a tensor lies, in a resource that has room for it."""
        fields = self._bound(key, value)
        name, width = fields["name"], tensor.dtype.itemsize
        resource = self.resources[name]
        element = fields.get("elementSizeInBytes") or resource.dtype.itemsize
        offset = fields.get("elementOffset", 0) * element
        count = fields.get("elementCount", 0)
        end = resource.content.nbytes
        if count and offset + count * element > end:
            raise ModelError(
                f"the binding of '{key}' reaches to byte {offset + count * element}, "
                f"while resource {quoted(name)} has {end} bytes; it must have at least "
                "as many."
            )
        room = (offset + count * element if count else end) - offset
        alignment = tensor.guaranteed_base_offset_alignment or 1
        if offset % alignment:
            raise ModelError(
                f"the binding of '{key}' begins at byte {offset}, while the tensor has "
                f"GuaranteedBaseOffsetAlignment {alignment}; the first must be a "
                "multiple of the second."
            )
        _check_room(key, tensor, name, room)
        # The program holds a resource as elements of its type if all that is bound are
        # such elements. Otherwise it holds bytes, and converts them at each dispatch.
        typed_bytes = resource.length * resource.dtype.itemsize
        same = tensor.data_type == resource.data_type and offset % width == 0
        if not same or offset + tensor.extent * width > typed_bytes:
            self.reinterpreted.add(name)
        return Binding(name, offset)


def _name_in(fields: Mapping[str, Any], key: str) -> str:
    """Reads the field that names the kind of an object, before its other fields."""
    name: str = read_fields({k: fields[k] for k in fields if k == key}, {key: NAMED})[
        key
    ]
    return name


def _check_room(key: str, tensor: TensorDesc, name: str, room: int) -> None:
    """Requires that `room` bytes of a resource hold the tensor."""
    have = max(room // tensor.dtype.itemsize, 0)
    if tensor.extent > have:
        raise ModelError(
            f"tensor '{key}' spans {tensor.extent} elements of "
            f"{tensor.data_type.name}, while resource {quoted(name)} has {have} where "
            "it is bound; it must have at least as many."
        )
    total = tensor.total_tensor_size_in_bytes or 0
    if total > room:
        raise ModelError(
            f"tensor '{key}' has TotalTensorSizeInBytes {total}, while resource "
            f"{quoted(name)} has {room} bytes where it is bound; it must have at least "
            "as many."
        )


def _working_bytes(tensor: TensorDesc) -> int:
    """Returns the bytes that a dispatch takes for a tensor beside its resource."""
    beside = 0 if tensor.strides is None else OFFSET_BYTES
    return math.prod(tensor.sizes) * (tensor.dtype.itemsize + beside)


def _check_apart(desc: OperatorDesc, bindings: Mapping[str, Binding]) -> None:
    """Requires that no two outputs share a byte of a resource.

    No page of DirectML says which one would be left there.
    """
    taken: list[tuple[str, int, int, str]] = []
    for field, tensor in desc.output_tensors().items():
        name, offset = bindings[field]
        end = offset + tensor.extent * tensor.dtype.itemsize
        for other, start, stop, first in taken:
            if other == name and offset < stop and start < end:
                raise ModelError(
                    f"the outputs {c_name(first)} and {c_name(field)} are bound to the "
                    f"same bytes of resource {quoted(name)}; they must not overlap."
                )
        taken.append((name, offset, end, field))
