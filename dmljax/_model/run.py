"""Runs model files: `run_model`, devices, and the program of a model.

A model is read and checked as a whole, then compiled to one program, then run. Then its
files are written, and then its text is printed. `parse` reads a model, and `output`
makes its text and files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dmljax._arguments import integer
from dmljax._check import ModelError, as_python, quoted, shortened
from dmljax._directml.strides import read, write
from dmljax._model.fields import at_place
from dmljax._model.format import Dispatch, Model, Print, WriteFile
from dmljax._model.limits import MOST_ELEMENTS
from dmljax._model.output import show_on, text_of, write_file
from dmljax._model.parse import parse_model

PLATFORMS = ("cpu", "gpu", "tpu")
# The content of the resources at one point of the program, by name.
State = dict[str, jax.Array]
# A version of a resource: its name, and the number of dispatches that have written it.
Version = tuple[str, int]
Versions = dict[Version, jax.Array]


class Results(NamedTuple):
    """The arrays that a run of a model gives."""

    resources: dict[str, jax.Array | np.ndarray]  # at the end
    # The commands that show a resource, each with the elements that it shows.
    shown: list[tuple[Print | WriteFile, np.ndarray]]


def run_model(
    model: str | os.PathLike[str] | Mapping[str, Any],
    *,
    device: str | jax.Device | None = None,
    max_elements: int = MOST_ELEMENTS,
) -> dict[str, np.ndarray]:
    """Runs a model file of DirectML's tool DxDispatch, as one compiled program.

    The model is checked as a whole before it runs. After the program has run, all files
    are written, and then the text of the commands ``print`` is printed. If the model is
    refused, or if it cannot run, nothing is printed and nothing is written. If a file
    cannot be written, nothing is printed, and the files before it stay.

    Args:
      model: the path of a JSON file, or the content of such a file as a dict. A
        ``sourcePath`` in it is relative to the folder of the file, or else to the
        current directory. A ``targetPath`` is relative to the current directory.
      device: a ``jax.Device``, or "cpu", "gpu" or "tpu" for the first one of this
        platform. None stands for JAX's default.
      max_elements: the limit for the elements of all resources and of all commands
        that show one, together.

    Returns:
      The final contents of every resource by name. Each is an array of one dimension,
      of the type that the resource was initialized with.

    Raises:
      ModelError: if the model breaks a rule, if a file cannot be read or written, if
        the model has more elements than it may have, or if there is no such device. The
        message names the place in the model, the rule and the values.
      TypeError: if an argument has another type than these.

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
    if not isinstance(model, (str, os.PathLike, Mapping)):
        raise TypeError(
            f"run_model: model is {as_python(model)}; it must be the path of a file, "
            "or a dict of its content."
        )
    most = integer(max_elements)
    if type(most) is not int:
        raise TypeError(
            f"run_model: max_elements is {as_python(max_elements)}; it must be an "
            "integer."
        )
    parsed = parse_model(model, max_elements=most)
    results = execute(parsed, find_device(device))
    write_outputs(results)
    print_outputs(results)
    return {name: np.array(value) for name, value in results.resources.items()}


# Devices


def find_device(device: str | jax.Device | None) -> jax.Device | None:
    """Finds a device; ModelError if the machine has none of the platform."""
    if isinstance(device, jax.Device):
        return device
    if not isinstance(device, str | None):
        raise TypeError(
            f"run_model: device is {as_python(device)}; it must be a jax.Device, "
            f"{', '.join(map(repr, PLATFORMS))} or None."
        )
    # This starts JAX's backends, and fails if JAX_PLATFORMS names one that is not
    # there. JAX raises either of these errors for it.
    try:
        jax.local_devices()
    except (RuntimeError, AssertionError) as error:
        config: Any = jax.config
        advice = ""
        if config.jax_platforms:
            advice = f" with JAX_PLATFORMS={shortened(config.jax_platforms)}; unset it"
        raise ModelError(f"JAX finds no device{advice}: {_one_line(error)}") from error
    if device is None:
        return None
    try:
        return jax.local_devices(backend=device)[0]
    except RuntimeError as error:  # whose text lists the platforms that are there
        raise ModelError(
            f"device {quoted(device)} is not present: {_one_line(error)}"
        ) from error


def _one_line(error: Exception) -> str:
    """Returns the beginning of an error of JAX in one line, however many it has."""
    return shortened(" ".join(str(error).split()), 300)


# Running


def _versions_of(model: Model) -> tuple[list[Version], dict[str, int]]:
    """Returns the versions that commands show, and the last one of each resource."""
    shown = []
    count = dict.fromkeys(model.resources, 0)
    for command in model.commands:
        if isinstance(command, Dispatch):
            for name in command.written:
                count[name] += 1
        else:
            shown.append((command.resource, count[command.resource]))
    return shown, count


def program(model: Model) -> Callable[[State], Versions]:
    """Makes one function of all dispatches, from the initial bytes of the resources.

    It returns the versions that are shown, and the last ones. Versions that no dispatch
    has written are left out: a model may have many resources, and each one in a program
    takes time to compile.
    """
    shown, last = _versions_of(model)
    needed = {*shown, *last.items()}

    def dmljax_model(initial: State) -> Versions:
        state = dict(initial)
        count = dict.fromkeys(initial, 0)
        versions = {}
        for command in model.dispatches:
            with at_place(command.place):
                _apply(command, state, initial)
            for name in command.written:
                count[name] += 1
                if (name, count[name]) in needed:
                    resource = model.resources[name]
                    versions[name, count[name]] = _elements(
                        state[name], resource.dtype, 0, resource.length
                    )
        return versions

    return dmljax_model


def initial_state(model: Model) -> dict[str, np.ndarray]:
    """Returns the initial elements of the resources that are bound.

    A resource that is bound as another type than its own is given as bytes.
    """
    state = {}
    for command in model.dispatches:
        for name, _, _ in command.bindings.values():
            resource = model.resources[name]
            state[name] = resource.values
            if name in model.reinterpreted:
                state[name] = resource.content
    return state


def results_of(model: Model, versions: Versions) -> Results:
    """Joins the outputs of the program and the resources that no dispatch writes."""
    initial = {(name, 0): each.values for name, each in model.resources.items()}
    values = initial | versions
    shown, last = _versions_of(model)
    resources = {name: values[name, writes] for name, writes in last.items()}
    snapshots = jax.device_get([values[version] for version in shown])
    return Results(resources, list(zip(model.outputs, snapshots, strict=True)))


def execute(model: Model, device: jax.Device | None) -> Results:
    """Compiles the program of a model, and runs it.

    An error of the compiler or of the device is an error of the model.
    """
    try:
        # A model is one compiled program, and may have NaNs to move. JAX's settings for
        # debugging would refuse both, if the caller has turned them on.
        with jax.disable_jit(False), jax.debug_nans(False), jax.debug_infs(False):
            buffers = jax.device_put(initial_state(model), device)
            versions = jax.jit(program(model))(buffers)
            # JAX returns before the device has finished, and raises its errors here.
            return results_of(model, jax.block_until_ready(versions))
    except (jax.errors.JaxRuntimeError, MemoryError) as error:
        raise ModelError(
            f"{model.place}: the device could not run it: {_one_line(error)}"
        ) from error


def _apply(command: Dispatch, state: State, initial: State) -> None:
    """Runs a dispatch, and replaces the resources that it writes."""
    inputs = []
    for name, tensor in command.desc.input_tensors().items():
        resource, offset, owned = command.bindings[name]
        buffer = state[resource]
        if owned:
            buffer = initial[resource]
        elements = _elements(buffer, tensor.dtype, offset, tensor.extent)
        inputs.append(read(tensor, elements))
    outputs = command.desc.evaluate(*inputs)
    # Two outputs may lie in one resource: each is written to the last state.
    tensors = command.desc.output_tensors()
    for name, value in zip(tensors, outputs, strict=True):
        tensor = tensors[name]
        resource, offset, _ = command.bindings[name]
        elements = _elements(state[resource], tensor.dtype, offset, tensor.extent)
        written = write(tensor, value, elements)
        state[resource] = _with_elements(state[resource], written, offset)


def _elements(buffer: jax.Array, dtype: np.dtype, offset: int, count: int) -> jax.Array:
    """Returns `count` elements of a type from a byte of a buffer on.

    A buffer that is bound as another type than its own holds bytes. The bytes of an
    element are in little-endian order, as they are on every platform of JAX.
    """
    # We take only as many elements as a tensor spans. When each dispatch took the rest
    # of the buffer, XLA's compiler for CPUs needed 7 s for 200 dispatches on one
    # buffer, and overflowed its stack for 400 (JAX 0.10.2).
    width = dtype.itemsize
    if buffer.dtype == dtype:
        return buffer[offset // width : offset // width + count]
    part = buffer[offset : offset + count * width]
    if width > 1:
        part = part.reshape(-1, width)
    return _reinterpreted(part, dtype)


def _reinterpreted(values: jax.Array, dtype: np.dtype) -> jax.Array:
    """Returns the same bytes as elements of a type.

    A program may return values and their bytes, too. Without the barrier, XLA's
    compiler for GPUs puts both into one kernel, and a check that fails there ends the
    process (JAX 0.11.2; openxla/xla#47373 is about the same check).
    """
    return lax.bitcast_convert_type(lax.optimization_barrier(values), dtype)


def _with_elements(buffer: jax.Array, elements: jax.Array, offset: int) -> jax.Array:
    """Replaces the elements of the buffer from a byte on."""
    if buffer.dtype != elements.dtype:
        elements = _reinterpreted(elements, buffer.dtype).ravel()
    start = offset // buffer.dtype.itemsize
    return jnp.concatenate([buffer[:start], elements, buffer[start + elements.size :]])


# Showing


def write_outputs(results: Results) -> list[str]:
    """Writes the files of a model, and returns a line about each."""
    lines = []
    for command, values in results.shown:
        if isinstance(command, WriteFile):
            lines.append(write_file(command, values))
    return lines


def print_outputs(results: Results) -> None:
    """Prints the text of the commands ``print``, in their order."""
    for command, values in results.shown:
        if isinstance(command, Print):
            with at_place(command.place):
                # Piece by piece: the text of a resource may be larger than the memory
                # that the model may use.
                for piece in text_of(command.resource, values, verbose=command.verbose):
                    print(show_on(sys.stdout, piece), end="")
