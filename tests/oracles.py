"""The operators in NumPy, written a second time from DirectML's pages.

The oracles import nothing from dmljax and share no code with it, so that they do not
repeat its mistakes. They trust their arguments: other tests check support tables, sizes
and types.
"""

import math

import numpy as np

# DIAGONAL_MATRIX1


def diagonal_fills(y, x, begin, end):
    """(end >= begin) xor (top_x >= begin) xor (top_x < end), top_x = x - y."""
    top_x = x - y
    return (end >= begin) ^ (top_x >= begin) ^ (top_x < end)


def diagonal_matrix1(x, *, shape=None, dtype=None, value, fill_begin, fill_end):
    """The value where the diagonal is filled, else x, or 0 if x is None."""
    x = np.zeros(shape, dtype) if x is None else np.asarray(x)
    corner = np.indices(x.shape[-2:])
    fills = diagonal_fills(*corner, int(fill_begin), int(fill_end))
    return np.where(fills, _typed(value, x.dtype), x)


# ONE_HOT


def one_hot(indices, values, *, size, axis):
    """Returns values[1] at the index of each sequence, and values[0] elsewhere.

    A negative index counts from the end.
    """
    indices = np.asarray(indices)
    values = np.asarray(values)
    off, on = values.ravel()[:2]
    shape = list(indices.shape)
    shape[axis] = size
    output = np.full(shape, off, values.dtype)
    for coordinate in np.ndindex(indices.shape):
        sequence = list(coordinate)
        index = int(indices[coordinate])
        sequence[axis] = index + size if index < 0 else index
        if 0 <= sequence[axis] < size:
            output[tuple(sequence)] = on
    return output


# ELEMENT_WISE_IF


def element_wise_if(condition, a, b):
    """Selects a where condition != 0, and b elsewhere."""
    condition, a, b = map(np.asarray, (condition, a, b))
    return np.where(condition != 0, a, b)


# NONZERO_COORDINATES


def nonzero(scalar):
    """Whether a scalar is non-zero by its bits. A subnormal is, and -0.0 is not."""
    scalar = np.asarray(scalar)
    if scalar.dtype.kind in "biu":
        return int(scalar) != 0
    if scalar.dtype.kind == "c":
        return nonzero(scalar.real) or nonzero(scalar.imag)
    # A type without a zero converts these two to other numbers.
    zeros = np.array([0.0, -0.0]).astype(scalar.dtype)
    return scalar.tobytes() not in [zero.tobytes() for zero in zeros if zero == 0]


def nonzero_coordinates(x, *, columns=None, fill=0, parts=None, size=None):
    """Returns (count, coordinates), with the last columns of each coordinate.

    With `parts`, each part has a count and coordinates of its own. With `size`, there
    are `size` rows: more rows are cut, and missing rows are filled. With fill=None they
    are undefined, and zeros here.
    """
    x = np.asarray(x)
    columns = max(x.ndim, 1) if columns is None else columns
    counts = np.zeros(parts or 1, np.uint32)
    most = x.size // counts.size
    rows = most if size is None else size
    shape = (counts.size, max(most, rows), columns)
    coordinates = np.full(shape, fill or 0, np.uint32)
    for coordinate in np.ndindex(x.shape):
        if nonzero(x[coordinate]):
            part = coordinate[0] * parts // x.shape[0] if parts else 0
            # A scalar has no coordinates. The zeros in front give it one column.
            coordinates[part, counts[part]] = ((0,) * columns + coordinate)[-columns:]
            counts[part] += 1
    coordinates = coordinates[:, :rows]
    return (counts, coordinates) if parts else (counts[0], coordinates[0])


# PADDING


def padding_source(i, n, mode):
    """Returns the index from which position i on an axis of size n is read, or None."""
    if mode == "CONSTANT":
        return i if 0 <= i < n else None
    if mode == "EDGE":
        return min(max(i, 0), n - 1)
    if mode == "REFLECTION":
        if n == 1:
            return 0
        j = i % (2 * (n - 1))
        return j if j < n else 2 * (n - 1) - j
    if mode == "SYMMETRIC":
        j = i % (2 * n)
        return j if j < n else 2 * n - 1 - j
    assert mode == "WRAP"
    return i % n


def _source_coordinate(coordinate, start_padding, sizes, mode):
    """Applies padding_source on every axis; None if an axis gives None."""
    axes = zip(coordinate, start_padding, sizes, strict=True)
    sources = tuple(padding_source(c - int(s), n, mode) for c, s, n in axes)
    return None if None in sources else sources


def padding(x, start_padding, end_padding, *, mode, value=0):
    """Returns x[source(coordinate - start)], or the value if there is no source."""
    x = np.asarray(x)
    value = _typed(value, x.dtype)
    axes = zip(x.shape, start_padding, end_padding, strict=True)
    sizes = [n + int(s) + int(e) for n, s, e in axes]
    output = np.empty(sizes, x.dtype)
    for coordinate in np.ndindex(output.shape):
        source = _source_coordinate(coordinate, start_padding, x.shape, mode)
        output[coordinate] = value if source is None else x[source]
    return output


def padding_adjoint(cotangent, start_padding, end_padding, *, mode):
    """Adds each element of the cotangent to its source. Integers wrap around."""
    cotangent = np.asarray(cotangent)
    axes = zip(cotangent.shape, start_padding, end_padding, strict=True)
    sizes = tuple(n - int(s) - int(e) for n, s, e in axes)
    sums = np.zeros(sizes, np.int64 if cotangent.dtype.kind in "iu" else np.float64)
    for coordinate in np.ndindex(cotangent.shape):
        source = _source_coordinate(coordinate, start_padding, sizes, mode)
        if source is not None:
            sums[source] += cotangent[coordinate]
    return sums.astype(cotangent.dtype)


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


def implied_bytes(sizes, strides, item_size):
    """Returns (sum((size - 1) * stride) + 1) * item_size, rounded up to 4 bytes."""
    strides = packed_strides(sizes) if strides is None else strides
    axes = zip(sizes, strides, strict=True)
    last = sum((int(size) - 1) * int(stride) for size, stride in axes)
    return -(-(last + 1) * item_size // 4) * 4


def strides_overlap(sizes, strides):
    """Whether two coordinates have the same offset."""
    offsets = _offsets(sizes, strides)
    return np.unique(offsets).size < offsets.size


# Numbers


def read_value(value, dtype):
    """The value after DxDispatch has read it: FLOAT16 is read as FLOAT32 first."""
    return cast_padding_value(value, dtype) if dtype == np.float16 else value


def _typed(value, dtype):
    """Makes a scalar array. A number out of a float type's range becomes infinity."""
    with np.errstate(over="ignore"):
        return np.asarray(value, dtype)
