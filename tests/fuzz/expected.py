"""Random inputs for a descriptor, and the oracles' outputs for these inputs."""

import numpy as np

from tests import oracles, samples
from tests.subjects import DESCRIBED


def random_inputs(generator, desc):
    """Makes an array for each input: of its sizes, or flat if it has strides.

    It has any bits, and zeros or indices near the size of the axis.
    """
    output, *_ = desc.output_tensors().values()
    size = output.sizes[desc.axis] if hasattr(desc, "axis") else 1
    arrays = []
    for name, tensor in desc.input_tensors().items():
        length = tensor.buffer_length
        bits = samples.any_bits((length,), tensor.dtype, generator.integers(99))
        near = generator.integers(-size - 2, size + 2, length)
        near *= name == "indices_tensor"
        is_near = generator.random(length) < 0.5
        buffer = np.where(is_near, near.astype(tensor.dtype), bits)
        if tensor.strides is None:
            buffer = buffer[: tensor.extent].reshape(tensor.sizes)
        arrays.append(buffer)
    return arrays


def outputs(desc, arrays):
    """Returns the operator's expected outputs, laid out by their strides."""
    inputs = [
        oracles.strided_read(array.ravel(), tensor.sizes, tensor.strides)
        for tensor, array in zip(desc.input_tensors().values(), arrays, strict=True)
    ]
    outputs = []
    results = DESCRIBED[desc.operator].oracle(desc, *inputs)
    for value, tensor in zip(results, desc.output_tensors().values(), strict=True):
        shaped = np.reshape(value, tensor.sizes)
        if tensor.strides is not None:
            length = tensor.buffer_length
            shaped = oracles.strided_write(shaped, tensor.strides, length)
        outputs.append(shaped)
    return outputs
