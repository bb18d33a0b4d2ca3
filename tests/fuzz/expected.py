"""Random inputs for a descriptor, and the outputs that the oracles give for them."""

import numpy as np

import dmljax
from tests import oracles, samples
from tests.subjects import DESCRIBED


def random_buffer(
    generator: np.random.Generator, name: str, tensor: dmljax.TensorDesc, size: int
) -> np.ndarray:
    """Fills a buffer with any bits, and with indices near the `size` of an axis."""
    dtype, length = tensor.dtype, tensor.buffer_length
    if name == "indices_tensor":
        near = generator.integers(-size - 2, size + 2, length)
        far = generator.integers(0, 2, length) * generator.integers(-(2**62), 2**62)
        return np.where(generator.random(length) < 0.9, near, far).astype(dtype)
    words = generator.integers(0, 256, length * dtype.itemsize, np.uint8).view(dtype)
    special = samples.SPECIAL_BITS.get(dtype.name, (0, 1))
    places, bits = generator.random(length) < 0.5, words.view(f"u{dtype.itemsize}")
    bits[places] = generator.choice(np.array(special, bits.dtype), int(places.sum()))
    return words


def random_inputs(
    generator: np.random.Generator, desc: dmljax.OperatorDesc
) -> list[np.ndarray]:
    """Makes an array for each input: of its sizes, or flat if it has strides."""
    output, *_ = desc.output_tensors().values()
    size = output.sizes[desc.axis] if hasattr(desc, "axis") else 1
    arrays = []
    for name, tensor in desc.input_tensors().items():
        buffer = random_buffer(generator, name, tensor, size)
        if tensor.strides is None:
            buffer = buffer[: tensor.extent].reshape(tensor.sizes)
        arrays.append(buffer)
    return arrays


def logical_outputs(
    desc: dmljax.OperatorDesc, inputs: list[np.ndarray]
) -> list[np.ndarray]:
    """Computes the outputs by the oracle of the operator."""
    return [
        np.asarray(output) for output in DESCRIBED[desc.operator].oracle(desc, *inputs)
    ]


def outputs(desc: dmljax.OperatorDesc, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Returns what the operator of the descriptor must return, laid out by strides."""
    inputs = [
        oracles.strided_read(array.ravel(), tensor.sizes, tensor.strides)
        for tensor, array in zip(desc.input_tensors().values(), arrays, strict=True)
    ]
    results = logical_outputs(desc, inputs)
    return [
        value.reshape(tensor.sizes)
        if tensor.strides is None
        else oracles.strided_write(
            value.reshape(tensor.sizes), tensor.strides, tensor.buffer_length
        )
        for value, tensor in zip(results, desc.output_tensors().values(), strict=True)
    ]


def same_bits(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two arrays have one type, one shape and the same bytes."""
    one, other = ((x.dtype, x.shape, x.tobytes()) for x in (first, second))
    return one == other
