"""The program of a model: one compiled function of all dispatches."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dmljax._directml.strides import read, write
from dmljax._model.format import at_place, reporting
from dmljax._model.parse import Model
from dmljax._model.values import Version


def execute(model: Model, device: jax.Device | None) -> dict[Version, np.ndarray]:
    """Compiles the program of a model, and runs it.

    Returns the elements of resources: initial, shown by commands, and final. An error
    of the compiler or the device is an error of the model.
    """
    failure = f"{model.place}: the device could not run it"
    # A model is one compiled program, and may have NaNs to move. JAX's settings for
    # debugging would refuse both, if the caller has turned them on.
    with (
        reporting(failure, jax.errors.JaxRuntimeError, MemoryError),
        jax.disable_jit(False),
        jax.debug_nans(False),
        jax.debug_infs(False),
    ):
        buffers = jax.device_put(initial_state(model), device)
        # JAX returns before the device has finished. device_get raises its errors.
        written = jax.device_get(jax.jit(program(model))(buffers))
    return {(name, ""): r.values for name, r in model.resources.items()} | dict(written)


def initial_state(model: Model) -> dict[str, np.ndarray]:
    """Returns the initial content of the bound resources.

    The program holds the elements of a resource if all its tensors have its type, begin
    at a whole element, and end within the elements that are shown. Otherwise it holds
    bytes, and converts them at each dispatch.
    """
    state: dict[str, np.ndarray] = {}
    for command in model.dispatches.values():
        for tensor, name, begin, end, _ in command.inputs + command.outputs:
            resource = model.resources[name]
            same = tensor.data_type == resource.data_type
            aligned = begin % tensor.dtype.itemsize == 0
            if same and aligned and end <= resource.values.nbytes:
                state.setdefault(name, resource.values)
            else:
                state[name] = resource.content
    return state


def program(
    model: Model,
) -> Callable[[dict[str, Array]], dict[Version, Array]]:
    """Makes one function of all dispatches, from the initial content of the resources.

    The function takes the bound resources. After each dispatch, it returns the written
    resources that a command shows or that stay to the end. A model may have many other
    resources, and each would take time to compile.
    """
    returned = {version for _, version, _ in model.shown.values()}
    returned.update(model.last.values())

    def dmljax_model(initial: dict[str, Array]) -> dict[Version, Array]:
        state = dict(initial)
        versions = {}
        for place, command in model.dispatches.items():
            arrays = []
            for tensor, name, begin, end, owned in command.inputs:
                buffer = initial[name] if owned else state[name]
                elements = _elements(buffer, tensor.dtype, begin, end)
                arrays.append(read(tensor, elements))
            with at_place(place):
                results = command.desc.evaluate(*arrays)
            # Two outputs may lie in a resource: each is written to the last state.
            for binding, result in zip(command.outputs, results, strict=True):
                tensor, name, begin, end, _ = binding
                buffer = state[name]
                elements = _elements(buffer, tensor.dtype, begin, end)
                elements = write(tensor, result, elements)
                written = _reinterpreted(elements, buffer.dtype)
                width = buffer.dtype.itemsize
                parts = buffer[: begin // width], written, buffer[end // width :]
                state[name] = jnp.concatenate(parts)
            # A set has another order in each process, and JAX would not find the
            # program in a persistent cache.
            for name in sorted({binding.resource for binding in command.outputs}):
                if (name, place) in returned:
                    values = model.resources[name].values
                    versions[name, place] = _elements(
                        state[name], values.dtype, 0, values.nbytes
                    )
        return versions

    return dmljax_model


def _elements(buffer: Array, dtype: np.dtype, begin: int, end: int) -> Array:
    """Returns some bytes of a buffer as elements of a type."""
    # We take no more elements than a tensor spans. When each dispatch took the rest of
    # the buffer, XLA's compiler for CPUs was slow for some hundred dispatches on one
    # buffer, and then overflowed its stack.
    width = buffer.dtype.itemsize
    return _reinterpreted(buffer[begin // width : end // width], dtype)


def _reinterpreted(values: Array, dtype: np.dtype) -> Array:
    """Returns the same bytes as elements of a type.

    One of two different types is the type of bytes, in little-endian order, as on every
    platform of JAX.

    A program may return values and their bytes, too. Without the barrier, XLA's
    compiler for GPUs puts both into one kernel, where a failed check ends the process
    (openxla/xla#47373 is about the same check).
    """
    if values.dtype == dtype:
        return values
    if dtype.itemsize > 1:
        values = values.reshape(-1, dtype.itemsize)
    return lax.bitcast_convert_type(lax.optimization_barrier(values), dtype).ravel()
