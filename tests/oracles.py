"""Tensors and numbers in NumPy, written a second time from DirectML's pages.

tests/subjects/ has the oracles of the operators. All oracles share no code with dmljax,
so that they do not repeat its mistakes. They trust their arguments: other tests check
support tables, sizes and types.
"""

import math

import numpy as np

# Tensor descriptions. Strides of None mean packed.


def packed_strides(sizes):
    """Returns strides. Each is the product of the sizes after it."""
    return tuple(math.prod(map(int, sizes[i + 1 :])) for i in range(len(sizes)))


def _offsets(sizes, strides):
    """The dot product of each coordinate and the strides; None means packed."""
    strides = packed_strides(sizes) if strides is None else strides
    return np.tensordot(np.array(strides, int), np.indices(sizes, int), 1)


def strided_read(buffer, sizes, strides):
    """Reads buffer[dot(c, strides)] for each c."""
    return np.asarray(buffer)[_offsets(sizes, strides)]


def strided_write(values, strides, length):
    """Writes values[c] to dot(c, strides) of a buffer with 0 in the gaps."""
    values = np.asarray(values)
    buffer = np.zeros(length, values.dtype)
    buffer[_offsets(values.shape, strides)] = values
    return buffer


# Numbers


def cast_padding_value(value, dtype):
    """Casts float32(value): integers truncate and saturate, and NaN becomes 0."""
    dtype = np.dtype(dtype)
    with np.errstate(over="ignore"):
        single = np.float32(value)
        if dtype.kind not in "iu":
            return dtype.type(single)
    if np.isnan(single):
        return dtype.type(0)
    limits = np.iinfo(dtype)
    inside = min(max(float(single), limits.min), limits.max)
    return dtype.type(math.trunc(inside))


def read_value(value, dtype):
    """The value after DxDispatch has read it: FLOAT16 is read as FLOAT32 first."""
    return cast_padding_value(value, dtype) if dtype == np.float16 else value


def typed(value, dtype):
    """Makes a scalar array. A number out of a float type's range becomes infinity."""
    with np.errstate(over="ignore"):
        return np.asarray(value, dtype)
