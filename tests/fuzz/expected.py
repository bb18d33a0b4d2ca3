"""Random inputs for a descriptor, and the outputs that the oracles give for them."""

import numpy as np

import dmljax
from tests import oracles, samples


def random_buffer(
    generator: np.random.Generator, name: str, tensor: dmljax.TensorDesc, size: int
) -> np.ndarray:
    """Fills a buffer with any bits, or with values that the operator tells apart."""
    dtype, length = tensor.dtype, tensor.buffer_length
    if name == "indices_tensor":
        near = generator.integers(-size - 2, size + 2, length)
        far = generator.integers(0, 2, length) * generator.integers(-(2**62), 2**62)
        chosen = np.where(generator.random(length) < 0.9, near, far)
        return chosen.astype(dtype)
    words = generator.integers(0, 256, length * dtype.itemsize, np.uint8).view(dtype)
    words = words.copy()
    special = samples.SPECIAL_BITS.get(dtype.name, (0, 1))
    places = generator.random(length) < 0.5
    bits = words.view(f"u{dtype.itemsize}")
    bits[places] = generator.choice(np.array(special, bits.dtype), int(places.sum()))
    return words


def random_inputs(
    generator: np.random.Generator, desc: dmljax.OperatorDesc
) -> list[np.ndarray]:
    """Makes an array for each input: of its sizes, or flat if it has strides."""
    size = desc.output_tensor.sizes[desc.axis] if hasattr(desc, "axis") else 1
    arrays = []
    for name, tensor in desc.input_tensors().items():
        buffer = random_buffer(generator, name, tensor, size)
        if tensor.strides is None:
            buffer = buffer[: tensor.extent].reshape(tensor.sizes)
        arrays.append(buffer)
    return arrays


def logical_inputs(
    desc: dmljax.OperatorDesc, arrays: list[np.ndarray]
) -> list[np.ndarray]:
    """Returns the inputs as the oracles take them, read through the strides."""
    tensors = desc.input_tensors().values()
    return [
        oracles.strided_read(array.ravel(), tensor.sizes, tensor.strides)
        for tensor, array in zip(tensors, arrays, strict=True)
    ]


def logical_outputs(
    desc: dmljax.OperatorDesc, inputs: list[np.ndarray]
) -> list[np.ndarray]:
    """Computes the outputs by the oracle of the operator."""
    return [np.asarray(output) for output in ORACLES[desc.operator](desc, *inputs)]


def outputs(desc: dmljax.OperatorDesc, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Returns what the operator of the descriptor must return, laid out by strides."""
    results = logical_outputs(desc, logical_inputs(desc, arrays))
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
    return (first.dtype, first.shape, first.tobytes()) == (
        second.dtype,
        second.shape,
        second.tobytes(),
    )


def _diagonal(desc, fill, value, *x):
    tensor = desc.output_tensor
    fill_begin, fill_end = fill
    output = oracles.diagonal_matrix1(
        x[0] if x else None,
        shape=tensor.sizes,
        dtype=tensor.dtype,
        value=value,
        fill_begin=fill_begin,
        fill_end=fill_end,
    )
    return (output,)


def _diagonal_matrix1(desc, *x):
    fill = desc.diagonal_fill_begin, desc.diagonal_fill_end
    return _diagonal(desc, fill, desc.value, *x)


def _diagonal_matrix(desc):
    value = oracles.cast_padding_value(desc.value, desc.output_tensor.dtype)
    return _diagonal(desc, (desc.offset, desc.offset + 1), value)


def _one_hot(desc, indices, values):
    size = desc.output_tensor.sizes[desc.axis]
    return (oracles.one_hot(indices, values, size=size, axis=desc.axis),)


def _element_wise_if(desc, *arrays):
    return (oracles.element_wise_if(*arrays),)


def _nonzero_coordinates(desc, x):
    columns = desc.output_coordinates_tensor.sizes[-1]
    return oracles.nonzero_coordinates(x, columns=columns)


def _padding(desc, x):
    value = oracles.cast_padding_value(desc.padding_value, x.dtype)
    return _padded(desc, value, x)


def _padding1(desc, x):
    return _padded(desc, desc.padding_value, x)


def _padded(desc, value, x):
    start, end, mode = desc.start_padding, desc.end_padding, desc.padding_mode.name
    return (oracles.padding(x, start, end, mode=mode, value=value),)


ORACLES = {
    "DIAGONAL_MATRIX1": _diagonal_matrix1,
    "DIAGONAL_MATRIX": _diagonal_matrix,
    "ONE_HOT": _one_hot,
    "ELEMENT_WISE_IF": _element_wise_if,
    "NONZERO_COORDINATES": _nonzero_coordinates,
    "PADDING": _padding,
    "PADDING1": _padding1,
}


# The operators as functions


def in_form(desc, form):
    """Returns the operator of the descriptor as a function in one form."""
    return lambda *arrays: FUNCTIONS[desc.operator](desc, form, *arrays)


def _function_padding(desc, form, x, value=None):
    if value is None:
        value = oracles.cast_padding_value(desc.padding_value, desc.output_tensor.dtype)
    paddings = desc.start_padding, desc.end_padding
    mode = desc.padding_mode
    return dmljax.padding(x, *paddings, mode=mode, value=value, implementation=form)


def _function_diagonal(desc, form, value, fill, *x):
    tensor = desc.output_tensor
    return dmljax.diagonal_matrix1(
        *x,
        shape=None if x else tensor.sizes,
        dtype=None if x else tensor.dtype,
        value=value,
        fill_begin=fill[0],
        fill_end=fill[1],
        implementation=form,
    )


def _function_diagonal_matrix(desc, form):
    value = oracles.cast_padding_value(desc.value, desc.output_tensor.dtype)
    end = min(desc.offset + 1, 2**31 - 1)
    return _function_diagonal(desc, form, value, (desc.offset, end))


FUNCTIONS = {
    "DIAGONAL_MATRIX1": lambda desc, form, *x: _function_diagonal(
        desc, form, desc.value, (desc.diagonal_fill_begin, desc.diagonal_fill_end), *x
    ),
    "DIAGONAL_MATRIX": _function_diagonal_matrix,
    "ONE_HOT": lambda desc, form, *arrays: dmljax.one_hot(
        *arrays,
        size=desc.output_tensor.sizes[desc.axis],
        axis=desc.axis,
        implementation=form,
    ),
    "ELEMENT_WISE_IF": lambda desc, form, *arrays: dmljax.element_wise_if(
        *arrays, implementation=form
    ),
    "NONZERO_COORDINATES": lambda desc, form, x: dmljax.nonzero_coordinates(
        x, columns=desc.output_coordinates_tensor.sizes[-1], implementation=form
    ),
    "PADDING": _function_padding,
    "PADDING1": lambda desc, form, x: _function_padding(
        desc, form, x, desc.padding_value
    ),
}
