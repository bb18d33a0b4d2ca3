"""`run_model`, and the device of a program.

`parse` reads and checks a model as a whole. `program` compiles it to one program and
runs that. `output` then writes its files, and last prints its text.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from dmljax._arguments import as_integer
from dmljax._check import as_python, naming, quoted, shortened
from dmljax._model.files import MOST_ELEMENTS
from dmljax._model.format import reporting
from dmljax._model.output import Targets, print_outputs, write_outputs
from dmljax._model.parse import parse_model
from dmljax._model.program import execute


def run_model(
    model: str | os.PathLike[str] | Mapping[str, Any],
    *,
    device: str | jax.Device | None = None,
    max_elements: int = MOST_ELEMENTS,
) -> dict[str, np.ndarray]:
    """Runs a model file of DirectML's tool DxDispatch, as one compiled program.

    The whole model is checked first. After the program has run, all files are written,
    and then the text of the commands ``print`` is printed. If the model is refused or
    cannot run, nothing is printed and nothing is written. If a file cannot be written,
    nothing is printed, and earlier files stay.

    Args:
      model: the path of a JSON file, or the content of such a file as a dict. A
        ``sourcePath`` in it is relative to the folder of the file, or else to the
        current directory. A ``targetPath`` is relative to the current directory.
      device: a ``jax.Device``, or "cpu", "gpu" or "tpu" for the first device of this
        platform. None stands for JAX's default.
      max_elements: the limit for the elements of all resources and of all commands
        that show a resource, together.

    Returns:
      The final contents of every resource by name. Each is an array of one dimension,
      of the type that the resource was initialized with, or of bytes for mixed types.

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
    with naming("run_model"):
        most = as_integer("max_elements", max_elements)
    found = find_device(device)
    targets = Targets()
    parsed = parse_model(model, targets, most)
    versions = execute(parsed, found)
    write_outputs(parsed.shown, versions, targets)
    print_outputs(parsed.shown, versions)
    last = parsed.last.items()
    return {name: np.array(versions[version]) for name, version in last}


# Devices


def find_device(device: str | jax.Device | None) -> jax.Device | None:
    """Finds a device. If the machine has none, a ModelError says so."""
    if isinstance(device, jax.Device):
        return device
    if not isinstance(device, str | None) or device == "":
        raise TypeError(
            f"run_model: device is {as_python(device)}; it must be a jax.Device, "
            "'cpu', 'gpu', 'tpu' or None."
        )
    config: Any = jax.config
    advice = ""
    if config.jax_platforms:
        advice = f" with JAX_PLATFORMS={shortened(config.jax_platforms)}; unset it"
    # This starts JAX's backends. If JAX_PLATFORMS names a missing platform, JAX raises
    # either of these errors.
    with reporting(f"JAX finds no device{advice}", RuntimeError, AssertionError):
        jax.local_devices()
    if device is None:
        return None
    # The text of this error lists the platforms of this machine.
    with reporting(f"device {quoted(device)} is not present", RuntimeError):
        return jax.local_devices(backend=device)[0]
