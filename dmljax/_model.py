"""Model files: DxDispatch's JSON of resources, dispatchables and commands.

A model is parsed and checked as a whole, then compiled to one program, then run; only
then is anything printed or written. So an error leaves nothing behind.
"""

import contextlib
import dataclasses
import functools
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from dmljax._check import DescriptorError, show
from dmljax._descriptor import ENUM_PREFIXES, OperatorDesc, c_name
from dmljax._model_data import (
    Encoder,
    ModelError,
    encoder,
    initial_values,
    printed,
    shown,
    take,
    typed,
)
from dmljax._operators import DESCRIPTORS
from dmljax._support import UP_TO_64_BITS, FeatureLevel
from dmljax._tensor import MAX_ELEMENTS, DataType, TensorDesc, read, write

PREFIX = "DML_OPERATOR_"
COMMANDS = ("dispatch", "print", "writeFile")
PLATFORMS = ("cpu", "gpu", "tpu")
State = dict[str, jax.Array]


@dataclasses.dataclass(frozen=True, eq=False)
class Resource:
    """A flat buffer: its initial contents, and its size in bytes."""

    data_type: DataType
    values: np.ndarray
    size_in_bytes: int


@dataclasses.dataclass(frozen=True)
class Dispatch:
    """Runs an operator on resources, which `bindings` gives for its tensors."""

    place: str
    desc: OperatorDesc
    bindings: Mapping[str, str]

    def apply(self, state: State) -> State:
        """The resources that the outputs are written to, as they are afterwards."""
        desc, bindings = self.desc, self.bindings
        inputs = [
            read(tensor, state[bindings[name]])
            for name, tensor in desc.input_tensors().items()
        ]
        outputs = desc.output_tensors().items()
        return {
            bindings[name]: write(tensor, value, state[bindings[name]])
            for (name, tensor), value in zip(
                outputs, desc.evaluate(*inputs), strict=True
            )
        }


@dataclasses.dataclass(frozen=True)
class Print:
    """Prints a resource."""

    resource: str


@dataclasses.dataclass(frozen=True)
class WriteFile:
    """Writes a resource to a file."""

    place: str
    resource: str
    path: Path
    encode: Encoder


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """A model that has been checked: nothing but the machine can fail it now."""

    place: str
    resources: Mapping[str, Resource]
    commands: tuple[Dispatch | Print | WriteFile, ...]

    @property
    def outputs(self) -> tuple[Print | WriteFile, ...]:
        """The commands that show a resource."""
        return tuple(c for c in self.commands if not isinstance(c, Dispatch))


class Results(NamedTuple):
    """What a run of a model gives.

    Attributes:
      resources: their final contents.
      snapshots: for each command that shows a resource, what it held then.
    """

    resources: State
    snapshots: list[jax.Array]


def run_model(
    model: str | os.PathLike[str] | Mapping[str, Any],
    *,
    device: str | jax.Device | None = None,
) -> dict[str, np.ndarray]:
    """Runs a model file of DirectML's tool DxDispatch, as one compiled program.

    The model is checked as a whole first, so that an error leaves nothing printed and
    nothing written. The commands ``print`` and ``writeFile`` take effect in their
    order.

    Args:
      model: the path of a JSON file, or what such a file holds. A ``sourcePath`` in it
        is relative to the folder of the file (in a dict, to the current directory), a
        ``targetPath`` to the current directory.
      device: where to run: a device, or the first of "cpu", "gpu" or "tpu"; None for
        JAX's default.

    Returns:
      The final contents of every resource by name, each flat and of its type.

    Raises:
      ModelError: if the model breaks a rule, naming the place in it, the rule and the
        values; if a file cannot be read or written; if there is no such device.

    >>> tensor = {"DataType": "FLOAT32", "Sizes": [3]}
    >>> results = run_model({
    ...     "resources": {
    ...         "input": {"initialValuesDataType": "FLOAT32",
    ...                   "initialValues": [1, 2, 3]},
    ...         "output": {"initialValuesDataType": "FLOAT32",
    ...                    "initialValues": {"valueCount": 5, "value": 0}},
    ...     },
    ...     "dispatchables": {
    ...         "pad": {"type": "DML_OPERATOR_PADDING", "desc": {
    ...             "InputTensor": tensor, "OutputTensor": tensor | {"Sizes": [5]},
    ...             "PaddingMode": "WRAP", "PaddingValue": 0, "DimensionCount": 1,
    ...             "StartPadding": [1], "EndPadding": [1]}},
    ...     },
    ...     "commands": [
    ...         {"type": "dispatch", "dispatchable": "pad",
    ...          "bindings": {"InputTensor": "input", "OutputTensor": "output"}},
    ...         {"type": "print", "resource": "output"},
    ...     ],
    ... })
    Resource 'output': 3, 1, 2, 3, 1
    >>> results["output"]
    array([3., 1., 2., 3., 1.], dtype=float32)
    """
    parsed = parse_model(model)
    results = compile_model(parsed, find_device(device))()
    show_results(parsed, results)
    return {name: np.array(value) for name, value in results.resources.items()}


# Parsing


def parse_model(source: str | os.PathLike[str] | Mapping[str, Any]) -> Model:
    """Reads and checks a model; a ModelError names what is wrong and where."""
    if isinstance(source, Mapping):
        place, folder = "model", Path()
        load = functools.partial(_plain, source)
    else:
        path = Path(source)
        place, folder = f"model '{path}'", path.parent
        load = functools.partial(_read_json, path)
    with _at(place):
        fields = typed(load(), dict, "its top level")
        sections = {
            key: take(fields, key, dict) for key in ("resources", "dispatchables")
        }
        listed = take(fields, "commands", list)
    resources = {}
    for name, value in sections["resources"].items():
        with _at(f"{place}, resource '{name}'"):
            resources[name] = _resource(value, folder)
    dispatchables = {}
    for name, value in sections["dispatchables"].items():
        with _at(f"{place}, dispatchable '{name}'"):
            dispatchables[name] = _dispatchable(value)
    commands = tuple(
        _command(value, f"{place}, command {number}", dispatchables, resources)
        for number, value in enumerate(listed, 1)
    )
    return Model(place, resources, commands)


@contextlib.contextmanager
def _at(place: str) -> Iterator[None]:
    """Puts the place in the model before the message of an error."""
    try:
        yield
    except (ModelError, DescriptorError) as error:
        raise ModelError(f"{place}: {error}") from error
    except MemoryError as error:
        raise ModelError(f"{place}: there is not enough memory for it.") from error
    except RecursionError as error:
        raise ModelError(f"{place}: it is nested too deeply.") from error


def _plain(source: Mapping[str, Any]) -> Any:
    """The dict as its JSON would be read: with lists for tuples, and names as keys."""
    try:
        return json.loads(json.dumps(dict(source)))
    except (TypeError, ValueError) as error:
        raise ModelError(f"what it holds is not JSON: {error}.") from error


def _read_json(path: Path) -> Any:
    try:
        text = path.read_bytes().decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=_unique)
    except ModelError:
        raise
    except OSError as error:
        raise ModelError(f"it cannot be read: {error.strerror}.") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ModelError(f"it is not JSON: {place}: {error.msg}.") from error
    except ValueError as error:  # no UTF-8, or an integer of thousands of digits
        raise ModelError(f"it is not JSON: {error}.") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of the file, in which no name may occur twice."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ModelError(f"the name '{twice}' occurs twice in one object.")
    return fields


def _resource(value: Any, folder: Path) -> Resource:
    fields = typed(value, dict, "it")
    data_type = _data_type(take(fields, "initialValuesDataType", str, "UNKNOWN"))
    values = initial_values(fields, data_type, folder)
    data_type = DataType[values.dtype.name.upper()]
    size = take(fields, "sizeInBytes", int, -(-values.nbytes // 4) * 4)
    if not values.nbytes <= size <= MAX_ELEMENTS * values.itemsize:
        raise ModelError(
            f"the field 'sizeInBytes' is {size}, while the initial values have "
            f"{values.nbytes} bytes; it must be at least that, and hold at most "
            f"{MAX_ELEMENTS} elements."
        )
    if fields.get("sizeInBytes") is not None:
        whole = np.zeros(size // values.itemsize, values.dtype)
        whole[: values.size] = values
        values = whole
    return Resource(data_type, values, size)


def _data_type(name: str) -> DataType:
    short = name.removeprefix(ENUM_PREFIXES["DataType"])
    if short != "UNKNOWN" and short not in [t.name for t in UP_TO_64_BITS]:
        raise ModelError(
            f"the field 'initialValuesDataType' is '{name}'; it must be one of "
            f"{', '.join(t.name for t in UP_TO_64_BITS)}."
        )
    return DataType[short]


def operator_class(name: str) -> type[OperatorDesc]:
    """The descriptor of the operator `name`, which may have the C prefix."""
    cls = DESCRIPTORS.get(name.upper().removeprefix(PREFIX))
    if cls is None:
        raise ModelError(
            f"the operator '{name}' is not one of those that are here: "
            f"{', '.join(DESCRIPTORS)}."
        )
    return cls


class _Dispatchable(NamedTuple):
    desc: OperatorDesc
    bindings: dict[str, Any]


def _dispatchable(value: Any) -> _Dispatchable:
    fields = typed(value, dict, "it")
    type_ = take(fields, "Type" if "Type" in fields else "type", str)
    desc = take(fields, "Desc" if "Desc" in fields else "desc", dict)
    described = operator_class(type_).from_json(desc)
    described.check(max(FeatureLevel))
    return _Dispatchable(described, take(fields, "bindings", dict, {}))


def _command(
    value: Any,
    place: str,
    dispatchables: Mapping[str, _Dispatchable],
    resources: Mapping[str, Resource],
) -> Dispatch | Print | WriteFile:
    with _at(place):
        fields = typed(value, dict, "it")
        type_ = take(fields, "type", str)
    place = f"{place} ({type_})"
    with _at(place):
        kind = type_.lower()
        if kind == "dispatch":
            return _dispatch(fields, place, dispatchables, resources)
        if kind not in ("print", "writefile"):
            raise ModelError(
                f"there is no such command; the commands are {', '.join(COMMANDS)}."
            )
        name = _known_name(take(fields, "resource", str), "resource", resources)
        if kind == "print":
            return Print(name)
        resource = resources[name]
        path = _target(take(fields, "targetPath", str))
        encode = encoder(fields, path, resource.data_type, resource.values.size)
        return WriteFile(place, name, path, encode)


def _known_name(name: str, what: str, choices: Mapping[str, Any]) -> str:
    if name not in choices:
        raise ModelError(
            f"the {what} '{name}' is not in the model; it has "
            f"{', '.join(map(repr, choices)) or 'none'}."
        )
    return name


def _target(target: str) -> Path:
    """The path of a file that can be written, relative to the current directory."""
    place = f"targetPath '{target}'"
    try:
        path = Path(os.path.realpath(target))
    except ValueError as error:  # a character that no path may have
        raise ModelError(f"{place} is not a path: {error}.") from error
    if not os.path.isdir(path.parent):  # never raises, as that of a Path may
        raise ModelError(f"{place} is in a folder that does not exist.")
    if not os.access(path.parent, os.W_OK):
        raise ModelError(f"{place} is in a folder that cannot be written.")
    if os.path.exists(path) and not os.path.isfile(path):
        raise ModelError(f"{place} is there already, and is not a file.")
    return path


def _dispatch(
    fields: Mapping[str, Any],
    place: str,
    dispatchables: Mapping[str, _Dispatchable],
    resources: Mapping[str, Resource],
) -> Dispatch:
    name = take(fields, "dispatchable", str)
    desc, first = dispatchables[_known_name(name, "dispatchable", dispatchables)]
    given = first | take(fields, "bindings", dict)
    bound = {key: _binding(key, value) for key, value in given.items() if value}
    tensors = {c_name(field): (field, t) for field, t in desc.tensors().items()}
    for key in sorted(bound.keys() ^ tensors.keys()):
        reason = "there is no such tensor" if key in bound else "it has no binding"
        raise ModelError(
            f"tensor '{key}' of '{name}': {reason}; each of its tensors must be bound "
            f"to a resource: {', '.join(tensors)}."
        )
    bindings: dict[str, str] = {}
    for key, (field, tensor) in tensors.items():
        resource = _known_name(bound[key], "resource", resources)
        _check_binding(key, tensor, resource, resources[resource])
        bindings[field] = resource
    outputs = [bindings[field] for field in desc.outputs]
    if len(set(outputs)) < len(outputs):
        raise ModelError(
            f"the outputs {', '.join(map(c_name, desc.outputs))} are bound to the "
            f"resources {', '.join(map(repr, outputs))}; no two may be the same."
        )
    return Dispatch(place, desc, bindings)


def _binding(tensor: str, value: Any) -> str:
    """The name of the resource: a string, an object with a name, or a list of one."""
    source = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(source, dict) and not source.get("elementOffset"):
        source = source.get("name")
    if not isinstance(source, str):
        raise ModelError(
            f"the binding of '{tensor}' is {shown(value)}; it must be the name of one "
            "resource, with no elementOffset."
        )
    return source


def _check_binding(key: str, tensor: TensorDesc, name: str, resource: Resource) -> None:
    if tensor.data_type != resource.data_type:
        raise ModelError(
            f"tensor '{key}' has data type {show(tensor.dtype)}, while resource "
            f"'{name}' has {show(resource.values.dtype)}; both must be the same."
        )
    if tensor.extent > resource.values.size:
        raise ModelError(
            f"tensor '{key}' spans {tensor.extent} elements, while resource '{name}' "
            f"has {resource.values.size}; it must have at least as many."
        )
    total = tensor.total_tensor_size_in_bytes or 0
    if total > resource.size_in_bytes:
        raise ModelError(
            f"tensor '{key}' has TotalTensorSizeInBytes {total}, while resource "
            f"'{name}' has {resource.size_in_bytes} bytes; it must have at least as "
            "many."
        )


# Running


def find_device(device: str | jax.Device | None) -> jax.Device | None:
    """The device that is meant; ModelError if the machine has none of the platform."""
    if device is None or isinstance(device, jax.Device):
        return device
    present = {}
    for platform in PLATFORMS:
        with contextlib.suppress(RuntimeError):
            present[platform] = jax.local_devices(backend=platform)[0]
    if device not in present:
        raise ModelError(
            f"device '{device}' is not present; this machine has {', '.join(present)}."
        )
    return present[device]


def compile_model(model: Model, device: jax.Device | None) -> Callable[[], Results]:
    """Compiles all dispatches to one program; calling the result runs it."""

    def dmljax_model(state: State) -> Results:
        snapshots = []
        for command in model.commands:
            if isinstance(command, Dispatch):
                with _at(command.place):
                    state = state | command.apply(state)
            else:
                snapshots.append(state[command.resource])
        return Results(state, snapshots)

    initial = {name: resource.values for name, resource in model.resources.items()}
    with _on_machine(model.place):
        buffers = jax.device_put(initial, device)
        compiled = jax.jit(dmljax_model).lower(buffers).compile()
    return functools.partial(_run, model.place, compiled, buffers)


def _run(place: str, compiled: Callable[[State], Results], buffers: State) -> Results:
    with _on_machine(place):
        results: Results = jax.block_until_ready(compiled(buffers))
        return results


@contextlib.contextmanager
def _on_machine(place: str) -> Iterator[None]:
    """Turns what the compiler and the device raise into an error of the model."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        raise ModelError(f"{place}: the device could not run it: {error}") from error


def show_results(model: Model, results: Results) -> None:
    """Prints and writes what the commands say, in their order.

    All files are written under other names first, so that one that cannot be leaves
    nothing behind.
    """
    snapshots = jax.device_get(results.snapshots)
    shows = list(zip(model.outputs, snapshots, strict=True))
    with contextlib.ExitStack() as cleanup:
        staged = {}
        for number, (command, values) in enumerate(shows):
            if isinstance(command, WriteFile):
                staged[number] = temporary = command.path.with_name(_temporary_name())
                cleanup.callback(temporary.unlink, missing_ok=True)
                with _writing(command):
                    temporary.write_bytes(command.encode(values))
        for number, (command, values) in enumerate(shows):
            if isinstance(command, WriteFile):
                with _writing(command):
                    os.replace(staged[number], command.path)
            else:
                print(printed(command.resource, values))


def _temporary_name() -> str:
    return f".{uuid.uuid4().hex}.tmp"


@contextlib.contextmanager
def _writing(command: WriteFile) -> Iterator[None]:
    with _at(command.place):
        try:
            yield
        except OSError as error:
            raise ModelError(f"it cannot be written: {error.strerror}.") from error
