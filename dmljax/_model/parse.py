"""Reads a model file and checks it as a whole.

When a model has passed, only the machine can fail to run it. So an error in the last
command leaves nothing printed and nothing written.

This module has the checks of dispatchables, commands and bindings. The tables of fields
are in `format`, and `values` makes resources.
"""

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dmljax._check import LONGEST_PATH, ModelError, as_json, quoted, shortened
from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.struct import c_name
from dmljax._directml.support import FeatureLevel
from dmljax._directml.tensor import DataType, TensorDesc, TensorFlags
from dmljax._model import format as tables
from dmljax._model.fields import (
    OBJECT,
    at_place,
    look_up,
    read_field,
    read_fields,
    require_kind,
    without_nulls,
)
from dmljax._model.format import (
    Binding,
    Command,
    Dispatch,
    Model,
    Print,
    Resource,
    WriteFile,
)
from dmljax._model.jsonc import read_jsonc, unique
from dmljax._model.limits import (
    MOST_BYTES,
    MOST_ELEMENTS,
    Room,
    check_length,
    read_file,
)
from dmljax._model.output import THIS_FOLDER, Targets, plan_file
from dmljax._model.values import read_resource
from dmljax._operators import DESCRIPTORS


def read_stream(stream: Any) -> bytes:
    """Reads a model from standard input."""
    if stream is None:  # Python's standard input, if the shell has closed it
        raise ModelError("standard input is closed, so there is no model to read.")
    with at_place("model on standard input"):
        try:
            content: bytes = stream.buffer.read(MOST_BYTES + 1)
        except OSError as error:
            raise ModelError(f"it cannot be read: {error.strerror}.") from error
        check_length(len(content), "it")
        return content


# The path of a file, the text of standard input, or the content as a dict.
Source = str | os.PathLike[str] | bytes | Mapping[str, Any]


def parse_model(
    source: Source, targets: Targets = THIS_FOLDER, max_elements: int = MOST_ELEMENTS
) -> Model:
    """Reads and checks a model. A ModelError names the mistake and its place."""
    folder = Path()
    if isinstance(source, Mapping):
        place = "model"
    elif isinstance(source, bytes):
        place = "model on standard input"
    else:
        folder = Path(source).parent
        place = f"model {quoted(str(Path(source)), LONGEST_PATH)}"
    with at_place(place):
        fields = read_fields(_load(source), tables.MODEL, "its top level")
    room = Room(max_elements)
    resources = {}
    dispatchables = {}
    # The operators come first: one that is not here is refused before any data is read.
    for name, value in fields["dispatchables"].items():
        with at_place(f"{place}, dispatchable {quoted(name)}"):
            dispatchables[name] = _read_dispatchable(value)
    for name, value in fields["resources"].items():
        with at_place(f"{place}, resource {quoted(name)}"):
            resources[name] = read_resource(value, folder, room)
    parser = _Parser(targets, room, resources, dispatchables, set())
    for name, (_, bindings) in dispatchables.items():
        with at_place(f"{place}, dispatchable {quoted(name)}"):
            for tensor, binding in bindings.items():
                parser.binding(tensor, binding)
    commands = []
    for number, value in enumerate(fields["commands"], 1):
        commands.append(parser.command(value, f"{place}, command {number}"))
    return Model(place, resources, commands, parser.reinterpreted)


def _load(source: Source) -> Any:
    """Returns the content of a model."""
    if isinstance(source, bytes):
        return read_jsonc(source)
    if not isinstance(source, Mapping):
        return read_jsonc(read_file(Path(source), "it"))
    # A dict is taken as its JSON would be read: lists for tuples, and names as keys.
    try:
        text = json.dumps(dict(source))
    except (TypeError, ValueError) as error:
        raise ModelError(f"its content is not JSON: {error}.") from error
    return json.loads(text, object_pairs_hook=unique)


def operator_class(name: str) -> type[OperatorDesc]:
    """Returns the descriptor of the operator `name`, with or without the C prefix."""
    cls = DESCRIPTORS.get(name.upper().removeprefix("DML_OPERATOR_"))
    if cls is None:
        raise ModelError(
            f"the type {quoted(name)} is not an operator of dmljax; the operators are "
            f"{', '.join(DESCRIPTORS)}."
        )
    return cls


# An operator, and the resources of tensors that a command may leave out.
Dispatchable = tuple[OperatorDesc, dict[str, Any]]


def _read_dispatchable(value: Any) -> Dispatchable:
    """Reads an operator and checks its descriptor."""
    fields = dict(require_kind(value, OBJECT, "it"))
    cls = operator_class(read_field(fields, "type", tables.NAME))
    if fields.get("desc") is None:
        # Then the fields of the C struct stand beside `type`.
        beside = [key for key in fields if key not in tables.DISPATCHABLE]
        if beside:
            fields["desc"] = {key: fields.pop(key) for key in beside}
    fields = read_fields(fields, tables.DISPATCHABLE)
    desc = cls.from_json(fields["desc"])
    desc.check(max(FeatureLevel))
    return desc, without_nulls(fields.get("bindings", {}))


@dataclasses.dataclass
class _Parser:
    """Checks the commands of one model, and keeps its resources and dispatchables."""

    targets: Targets
    room: Room
    resources: dict[str, Resource]
    dispatchables: dict[str, Dispatchable]
    reinterpreted: set[str]  # the resources that are bound as another type

    def binding(self, tensor: str, value: Any) -> dict[str, Any]:
        """Reads a binding: a name, an object, or a list of one of these."""
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, str):
            value = {"name": value}
        if not isinstance(value, dict):
            raise ModelError(
                f"the binding of {quoted(tensor)} is {as_json(value)}; it must be the "
                "name of one resource, or an object with it."
            )
        with at_place(f"the binding of {quoted(tensor)}"):
            fields = read_fields(value, tables.BINDING)
        look_up(fields["name"], "resource", self.resources)
        return fields

    def command(self, value: Any, place: str) -> Command:
        """Reads a command. `place` is where it stands in the model."""
        with at_place(place):
            name = read_field(require_kind(value, OBJECT, "it"), "type", tables.NAME)
        place = f"{place} ({shortened(name)})"
        with at_place(place):
            kind = name.lower()
            if kind not in tables.COMMANDS:
                raise ModelError(
                    "there is no such command; the commands are dispatch, print, "
                    "writeFile."
                )
            fields = read_fields(value, tables.COMMANDS[kind])
            if kind == "dispatch":
                return self._dispatch(fields, place)
            return self._show(kind, fields, place)

    def _show(
        self, kind: str, fields: Mapping[str, Any], place: str
    ) -> Print | WriteFile:
        name = fields["resource"]
        resource = look_up(name, "resource", self.resources)
        # The program returns these elements beside those at the end.
        self.room.take(resource.length)
        if kind == "writefile":
            return plan_file(place, fields, resource, self.targets)
        if resource.data_type == DataType.UNKNOWN:
            raise ModelError(
                f"the resource {quoted(name)} has a list of elements with their own "
                "types and cannot be printed; write it to a file."
            )
        return Print(place, name, fields.get("verbose", False))

    def _dispatch(self, fields: Mapping[str, Any], place: str) -> Dispatch:
        name = fields["dispatchable"]
        desc, first = look_up(name, "dispatchable", self.dispatchables)
        # The dispatchable may have bindings. Those of the command replace them.
        bound = without_nulls(first | fields["bindings"])
        tensors = desc.tensors()
        keys = list(map(c_name, tensors))
        for key in sorted(bound.keys() ^ set(keys)):
            reason = "it has no binding"
            if key in bound:
                reason = "there is no such tensor"
            raise ModelError(
                f"tensor {quoted(key)} of {quoted(name)}: {reason}; each of its "
                f"tensors must be bound to a resource: {', '.join(keys)}."
            )
        bindings = {}
        for field, tensor in tensors.items():
            key = c_name(field)
            binding = self._place_tensor(key, tensor, bound[key])
            # The tool initializes all dispatchables before the first command. DirectML
            # then copies owned inputs, and takes no other resource for them later.
            flagged = tensor.flags == TensorFlags.OWNED_BY_DML
            owned = flagged and key in first and field not in desc.outputs
            if owned and key in fields["bindings"]:
                raise ModelError(
                    f"tensor {quoted(key)} of {quoted(name)} has the flag "
                    "OWNED_BY_DML, and the dispatchable binds it; the command must "
                    "not bind it again."
                )
            bindings[field] = binding._replace(owned=owned)
            # With strides of 0, a tensor has more elements than its resource.
            Room(self.room.limit).check(math.prod(tensor.sizes), f"tensor '{key}'")
        _check_apart(desc, bindings)
        return Dispatch(place, desc, bindings)

    def _place_tensor(self, key: str, tensor: TensorDesc, value: Any) -> Binding:
        """Returns where a tensor lies, in a resource that has room for it."""
        fields = self.binding(key, value)
        name = fields["name"]
        resource = self.resources[name]
        # The tensor may use the bytes from `begin` to `end`.
        size = resource.content.nbytes
        element = fields.get("elementSizeInBytes") or resource.dtype.itemsize
        begin = fields.get("elementOffset", 0) * element
        end = size
        if fields.get("elementCount"):
            end = begin + fields["elementCount"] * element
        if end > size:
            raise ModelError(
                f"the binding of '{key}' reaches to byte {end}, while resource "
                f"{quoted(name)} has {size} bytes; it must have at least as many."
            )
        alignment = tensor.guaranteed_base_offset_alignment or 1
        if begin % alignment:
            raise ModelError(
                f"the binding of '{key}' begins at byte {begin}, while the tensor has "
                f"GuaranteedBaseOffsetAlignment {alignment}; the first must be a "
                "multiple of the second."
            )
        width = tensor.dtype.itemsize
        room = max((end - begin) // width, 0)
        if tensor.extent > room:
            raise ModelError(
                f"tensor '{key}' spans {tensor.extent} elements of "
                f"{tensor.data_type.name}, while resource {quoted(name)} has {room} "
                "where it is bound; it must have at least as many."
            )
        total = tensor.total_tensor_size_in_bytes or 0
        if total > end - begin:
            raise ModelError(
                f"tensor '{key}' has TotalTensorSizeInBytes {total}, while resource "
                f"{quoted(name)} has {end - begin} bytes where it is bound; it must "
                "have at least as many."
            )
        # If all tensors in a resource are elements of its type, the program holds these
        # elements. Otherwise it holds bytes, and converts them at each dispatch.
        elements = resource.length * resource.dtype.itemsize
        same = tensor.data_type == resource.data_type and begin % width == 0
        if not same or begin + tensor.extent * width > elements:
            self.reinterpreted.add(name)
        return Binding(name, begin)


def _check_apart(desc: OperatorDesc, bindings: Mapping[str, Binding]) -> None:
    """Requires that no two outputs share a byte of a resource.

    No page of DirectML says which one would be left there.
    """
    taken: list[tuple[str, int, int, str]] = []
    for field, tensor in desc.output_tensors().items():
        name, offset, _ = bindings[field]
        end = offset + tensor.extent * tensor.dtype.itemsize
        for other, start, stop, first in taken:
            if other == name and offset < stop and start < end:
                raise ModelError(
                    f"the outputs {c_name(first)} and {c_name(field)} are bound to the "
                    f"same bytes of resource {quoted(name)}; they must not overlap."
                )
        taken.append((name, offset, end, field))
