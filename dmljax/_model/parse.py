"""Reads and checks a model file as a whole.

When a model has passed, only the machine can fail to run it. So an error in the last
command leaves nothing printed and nothing written.

`format` decodes objects and `values` makes resources. This module has the checks of
names and commands: each tensor lies in its resource, and each output can be shown.
"""

import itertools
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dmljax._check import LONGEST_PATH, ModelError, listed, quoted, shortened
from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.struct import c_name
from dmljax._directml.tensor import TensorDesc, TensorFlags
from dmljax._model.files import MOST_BYTES, Room, read_file
from dmljax._model.format import (
    BufferView,
    Dispatchable,
    DispatchFields,
    Print,
    ResourceFields,
    Sections,
    WriteFile,
    at_place,
    decode,
    read_dispatchable,
    read_type,
    reporting,
)
from dmljax._model.jsonc import read_jsonc, unique
from dmljax._model.output import Shown, Targets, check_output
from dmljax._model.values import Resource, Version, make_resource


class Binding(NamedTuple):
    """A tensor, and its bytes in a resource, from `begin` to before `end`."""

    tensor: TensorDesc
    resource: str
    begin: int
    end: int
    owned: bool  # an input that keeps the initial bytes of the resource


class Dispatch(NamedTuple):
    """A command to run an operator."""

    desc: OperatorDesc
    inputs: list[Binding]
    outputs: list[Binding]


class Model(NamedTuple):
    """A checked model. Now only the machine can fail to run it."""

    place: str  # its name in messages
    resources: Mapping[str, Resource]
    dispatches: Mapping[str, Dispatch]  # by their places in messages
    shown: Shown
    last: Mapping[str, Version]  # the resources at the end


def parse_model(source: Any, targets: Targets, max_elements: int) -> Model:
    """Reads and checks a model. A ModelError names the mistake and its place.

    The source is the path of a file, standard input (which may be None), or a dict.
    """
    room = Room(max_elements)
    folder = Path()
    place = "model"
    if isinstance(source, (str, os.PathLike)):
        source = Path(source)
        folder = source.parent
        place = f"model {quoted(str(source), LONGEST_PATH)}"
    elif not isinstance(source, Mapping):
        place = "model on standard input"
    with at_place(place):
        sections: Sections = decode(Sections, _load(source), "its top level")
    # A wrong operator is reported before a wrong resource.
    dispatchables = {}
    for name, value in sections.dispatchables.items():
        with at_place(f"{place}, dispatchable {quoted(name)}"):
            dispatchables[name] = read_dispatchable(value)
            views = dispatchables[name].bindings.values()
            _check_names("resource", sections.resources, *(v.name for v in views))
    resources = {}
    for name, value in sections.resources.items():
        with at_place(f"{place}, resource {quoted(name)}"):
            fields = decode(ResourceFields, value)
            resources[name] = make_resource(fields, folder, room)
    dispatches = {}
    shown = {}
    last: dict[str, Version] = {name: (name, "") for name in resources}
    for where, command in _commands(place, sections.commands):
        with at_place(where):
            if isinstance(command, DispatchFields):
                dispatches[where] = _bind(command, dispatchables, resources, room)
                for binding in dispatches[where].outputs:
                    last[binding.resource] = binding.resource, where
            else:
                name = command.resource
                _check_names("resource", resources, name)
                path = check_output(command, resources[name], targets)
                shown[where] = command, last[name], path
                # The program returns what it shows beside the resources at the end.
                room.take(resources[name].values.size)
    return Model(place, resources, dispatches, shown, last)


def _commands(place: str, values: list[Any]) -> Iterator[tuple[str, Any]]:
    """Decodes the commands one by one, and yields each with its place."""
    classes = {"dispatch": DispatchFields, "print": Print, "writefile": WriteFile}
    for index, value in enumerate(values, 1):
        where = f"{place}, command {index}"
        with at_place(where):
            kind = read_type(value)
        where = f"{where} ({shortened(kind)})"
        with at_place(where):
            if kind.lower() not in classes:
                raise ModelError(
                    "there is no such command; the commands are dispatch, print, "
                    "writeFile."
                )
            command = decode(classes[kind.lower()], value)
        yield where, command


def _load(source: Any) -> Any:
    """Returns the content of a model."""
    if isinstance(source, Mapping):
        # Tuples become lists, and keys become names. Unlike a file, a dict may hold NaN
        # and infinity, and its text has no limit.
        with reporting("its content is not JSON", TypeError, ValueError):
            text = json.dumps(dict(source))
        return json.loads(text, object_pairs_hook=unique)
    if isinstance(source, Path):
        remedy = " On a command line, - reads standard input."
        return read_jsonc(read_file(source, "it", remedy=remedy))
    if source is None:  # Python's standard input, if the shell has closed it
        raise ModelError("it is closed, so there is no model to read.")
    with reporting("it cannot be read", OSError):
        content = source.buffer.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ModelError(f"it has more than {MOST_BYTES} bytes.")
    return read_jsonc(content)


def _check_names(what: str, parts: Mapping[str, Any], *names: str) -> None:
    """Requires parts of the model with these names."""
    for name in names:
        if name not in parts:
            raise ModelError(
                f"the {what} {quoted(name)} is not in the model; it has "
                f"{listed(parts)}."
            )


def _bind(
    command: DispatchFields,
    dispatchables: Mapping[str, Dispatchable],
    resources: Mapping[str, Resource],
    room: Room,
) -> Dispatch:
    """Places the tensors of a dispatch in their resources."""
    _check_names("dispatchable", dispatchables, command.dispatchable)
    _check_names("resource", resources, *(v.name for v in command.bindings.values()))
    dispatchable = dispatchables[command.dispatchable]
    desc = dispatchable.desc
    initial = dispatchable.bindings
    # The bindings of the command replace the dispatchable's bindings.
    views = {**initial, **command.bindings}
    tensors = desc.tensors()
    names = list(map(c_name, tensors))
    for name in sorted(views.keys() ^ set(names)):
        reason = "there is no such tensor" if name in views else "it has no binding"
        raise ModelError(
            f"tensor {quoted(name)} of {quoted(command.dispatchable)}: {reason}; each "
            f"of its tensors must be bound to a resource: {', '.join(names)}."
        )
    bindings = {}
    for field, tensor in tensors.items():
        name = c_name(field)
        view = views[name]
        begin, end = _place_tensor(name, tensor, view, resources[view.name])
        # The tool initializes all dispatchables before the first command. DirectML then
        # copies owned inputs, and takes no other resource for them later.
        flagged = tensor.flags == TensorFlags.OWNED_BY_DML
        owned = flagged and name in initial and field not in desc.outputs
        if owned and name in command.bindings:
            raise ModelError(
                f"tensor '{name}' of {quoted(command.dispatchable)} has the flag "
                "OWNED_BY_DML, and the dispatchable binds it; the command must not "
                "bind it again."
            )
        bindings[field] = Binding(tensor, view.name, begin, end, owned)
        # With strides of 0, a tensor may have more elements than its resource. The
        # program does not keep them, so each tensor gets the whole limit.
        Room(room.limit).check(math.prod(tensor.sizes), f"tensor '{name}'")
    # No page of DirectML says which of two outputs would be left in the same bytes.
    for fields in itertools.combinations(desc.outputs, 2):
        first, second = (bindings[field] for field in fields)
        begin, end = max(first.begin, second.begin), min(first.end, second.end)
        if first.resource == second.resource and begin < end:
            both = " and ".join(map(c_name, fields))
            raise ModelError(
                f"the outputs {both} are bound to the same part of resource "
                f"{quoted(first.resource)}; they must not overlap."
            )
    outputs = [bindings.pop(field) for field in desc.outputs]
    return Dispatch(desc, list(bindings.values()), outputs)


def _place_tensor(
    name: str, tensor: TensorDesc, view: BufferView, resource: Resource
) -> tuple[int, int]:
    """Returns the bytes of a tensor in its resource, which must have room."""
    # The tensor may use the bytes from `begin` to before `limit`.
    size = limit = resource.content.nbytes
    width = view.element_size_in_bytes or resource.values.itemsize
    begin = view.element_offset * width
    if view.element_count:
        limit = begin + view.element_count * width
    if limit > size:
        raise ModelError(
            f"the binding of '{name}' reaches to byte {limit}, while resource "
            f"{quoted(view.name)} has {size} bytes; it must have at least as many."
        )
    alignment = tensor.guaranteed_base_offset_alignment or 1
    if begin % alignment:
        raise ModelError(
            f"the binding of '{name}' begins at byte {begin}, while the tensor has "
            f"GuaranteedBaseOffsetAlignment {alignment}; the first must be a multiple "
            "of the second."
        )
    extent = needed = tensor.extent * tensor.dtype.itemsize
    cause = f"{tensor.extent} elements of {tensor.data_type.name}"
    # The descriptor requires at least the extent.
    if tensor.total_tensor_size_in_bytes:
        needed = tensor.total_tensor_size_in_bytes
        cause = "TotalTensorSizeInBytes"
    if needed > limit - begin:
        raise ModelError(
            f"tensor '{name}' needs {needed} bytes ({cause}), while resource "
            f"{quoted(view.name)} has {max(limit - begin, 0)} where it is bound; it "
            "must have at least as many."
        )
    return begin, begin + extent
