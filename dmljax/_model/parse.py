"""Reads a model file and checks it as a whole.

When a model has passed, only the machine can fail to run it. So an error in the last
command leaves nothing printed and nothing written.

`format` decodes the file and `values` makes resources. This module has the checks of
commands: each tensor lies in its resource, and each output can be shown.
"""

import itertools
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dmljax._check import LONGEST_PATH, ModelError, quoted
from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.struct import c_name
from dmljax._directml.tensor import TensorDesc, TensorFlags
from dmljax._model.format import (
    BufferView,
    Dispatchable,
    DispatchFields,
    Print,
    at_place,
    read_model,
)
from dmljax._model.jsonc import read_jsonc, unique
from dmljax._model.limits import (
    MOST_BYTES,
    MOST_ELEMENTS,
    Room,
    check_length,
    read_file,
)
from dmljax._model.output import THIS_FOLDER, Targets, WriteFile, plan_output
from dmljax._model.values import Resource, make_resource


class Binding(NamedTuple):
    """The bytes of a resource over which a tensor spans, from `begin` to `end`."""

    resource: str
    begin: int
    end: int


class Dispatch(NamedTuple):
    """A command that runs an operator, with the place of each tensor."""

    desc: OperatorDesc
    bindings: Mapping[str, Binding]
    owned: set[str]  # the inputs that keep the initial bytes of their resources

    @property
    def written(self) -> list[str]:
        """The names of the resources of the outputs. Two outputs may share one.

        Their order is a part of the program that JAX looks up in a persistent cache. A
        set has another order in each process.
        """
        return sorted({self.bindings[name].resource for name in self.desc.outputs})


class Model(NamedTuple):
    """A model that was checked. Only the machine can fail to run it now."""

    place: str  # its name in errors
    resources: Mapping[str, Resource]
    commands: dict[str, Dispatch | Print | WriteFile]  # by their places for messages


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
    place = "model"
    if isinstance(source, bytes):
        place = "model on standard input"
    elif not isinstance(source, Mapping):
        folder = Path(source).parent
        place = f"model {quoted(str(Path(source)), LONGEST_PATH)}"
    with at_place(place):
        content = _load(source)
    file = read_model(content, place)
    room = Room(max_elements)
    resources = {}
    for name, fields in file.resources.items():
        with at_place(f"{place}, resource {quoted(name)}"):
            resources[name] = make_resource(fields, folder, room)
    model = Model(place, resources, {})
    for where, command in file.commands.items():
        with at_place(where):
            if isinstance(command, DispatchFields):
                dispatchable = file.dispatchables[command.dispatchable]
                model.commands[where] = _bind(command, dispatchable, resources, room)
                continue
            resource = resources[command.resource]
            # The program returns these elements beside those at the end.
            room.take(resource.values.size)
            model.commands[where] = plan_output(command, resource, targets)
    return model


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


def _bind(
    command: DispatchFields,
    dispatchable: Dispatchable,
    resources: Mapping[str, Resource],
    room: Room,
) -> Dispatch:
    """Places the tensors of a dispatch in their resources."""
    name = command.dispatchable
    desc = dispatchable.desc
    first = dispatchable.bindings
    # The dispatchable may have bindings. Those of the command replace them.
    views = {**first, **command.bindings}
    tensors = desc.tensors()
    keys = list(map(c_name, tensors))
    for key in sorted(views.keys() ^ set(keys)):
        reason = "it has no binding"
        if key in views:
            reason = "there is no such tensor"
        raise ModelError(
            f"tensor {quoted(key)} of {quoted(name)}: {reason}; each of its tensors "
            f"must be bound to a resource: {', '.join(keys)}."
        )
    bindings = {}
    owned = set()
    for field, tensor in tensors.items():
        key = c_name(field)
        bindings[field] = _place_tensor(key, tensor, views[key], resources)
        # The tool initializes all dispatchables before the first command. DirectML then
        # copies owned inputs, and takes no other resource for them later.
        flagged = tensor.flags == TensorFlags.OWNED_BY_DML
        if flagged and key in first and field not in desc.outputs:
            owned.add(field)
            if key in command.bindings:
                raise ModelError(
                    f"tensor {quoted(key)} of {quoted(name)} has the flag "
                    "OWNED_BY_DML, and the dispatchable binds it; the command must "
                    "not bind it again."
                )
        # With strides of 0, a tensor has more elements than its resource.
        Room(room.limit).check(math.prod(tensor.sizes), f"tensor '{key}'")
    _check_apart(desc, bindings)
    return Dispatch(desc, bindings, owned)


def _place_tensor(
    key: str, tensor: TensorDesc, view: BufferView, resources: Mapping[str, Resource]
) -> Binding:
    """Returns where a tensor lies, in a resource that has room for it."""
    name = quoted(view.name)
    resource = resources[view.name]
    # The tensor may use the bytes from `begin` to `limit`.
    size = limit = resource.content.nbytes
    element = view.element_size_in_bytes or resource.values.itemsize
    begin = view.element_offset * element
    if view.element_count:
        limit = begin + view.element_count * element
    if limit > size:
        raise ModelError(
            f"the binding of '{key}' reaches to byte {limit}, while resource {name} "
            f"has {size} bytes; it must have at least as many."
        )
    alignment = tensor.guaranteed_base_offset_alignment or 1
    if begin % alignment:
        raise ModelError(
            f"the binding of '{key}' begins at byte {begin}, while the tensor has "
            f"GuaranteedBaseOffsetAlignment {alignment}; the first must be a multiple "
            "of the second."
        )
    width = tensor.dtype.itemsize
    most = max((limit - begin) // width, 0)
    if tensor.extent > most:
        raise ModelError(
            f"tensor '{key}' spans {tensor.extent} elements of "
            f"{tensor.data_type.name}, while resource {name} has {most} where it is "
            "bound; it must have at least as many."
        )
    total = tensor.total_tensor_size_in_bytes or 0
    if total > limit - begin:
        raise ModelError(
            f"tensor '{key}' has TotalTensorSizeInBytes {total}, while resource {name} "
            f"has {limit - begin} bytes where it is bound; it must have at least as "
            "many."
        )
    return Binding(view.name, begin, begin + tensor.extent * width)


def _check_apart(desc: OperatorDesc, bindings: Mapping[str, Binding]) -> None:
    """Requires that no two outputs share a byte of a resource.

    No page of DirectML says which of them would be left there.
    """
    for first, second in itertools.combinations(desc.outputs, 2):
        resource, begin, end = bindings[first]
        other, other_begin, other_end = bindings[second]
        if resource == other and begin < other_end and other_begin < end:
            raise ModelError(
                f"the outputs {c_name(first)} and {c_name(second)} are bound to the "
                f"same bytes of resource {quoted(resource)}; they must not overlap."
            )
