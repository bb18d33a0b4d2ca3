"""Rows of an array, read and written by their coordinates, and their derivatives.

`index` has one array per leading dimension of `x`, as in ``x[index]``, and `valid` has
bools. All have the shape (rows,). The trailing dimensions of `x` form a row. An invalid
row is read at element 0, or past the end when a read of narrow rows is differentiated,
and is written nowhere. `jax.vmap` maps the functions along a batch.

The valid rows have different coordinates. So the gradient of a read writes the rows of
the cotangent into zeros, and the gradient of a write reads rows. JAX would make a
scatter that adds, element by element, of the first. For *wide* rows, of 16 values or
more, we write the tangent of a read as a scatter by the *inverse index*, which has the
number of the row of each element: JAX transposes this scatter to a gather.

| | wide rows | narrow rows |
|---|---|---|
| tangent of a read | scatter by the inverse index | gather of unique indices |
| its gradient | gather by the inverse index | scatter of unique indices |

The tangent of a write is the tangent of `x`, with zeros where rows are written, plus
the tangents of the rows. For narrow rows the inverse index takes longer than a scatter
(docs/development/lab_notes.md, "Rows that are written back"). Each tangent is a
custom_jvp.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import AxisType, PartitionSpec, get_abstract_mesh

from dmljax._check import at_most
from dmljax._nonzero_forms import WRITE_ONCE
from dmljax._sharding import without_residuals
from dmljax._types import to_scalar

Index = tuple[Array, ...]  # the coordinates of rows along each dimension

# READ


def read_rows(x: Array, fill: Array, valid: Array, index: Index) -> Array:
    """Returns the valid rows of `x`, and `fill` in place of the other rows.

    `fill` has the type of `x`, and is broadcast. Reads are in range, except for narrow
    rows with a derivative.
    """
    if 0 not in x.shape:
        read = without_residuals(_read) if _has_explicit_axes() else _read
        rows = read(x, valid, index)
    else:
        # Nothing is read. Keep `x` as an input, so that the result is on its device.
        row_sizes = x.shape[len(index) :]
        widths = [(0, valid.shape[0])] + [(0, 0)] * len(row_sizes)
        rows = jnp.pad(x.reshape(0, *row_sizes), widths)
    return jnp.where(per_row(valid, rows), rows, fill)


@jax.custom_jvp
def _read(x: Array, valid: Array, index: Index) -> Array:
    """Reads the valid rows, and element 0 in place of the invalid rows."""
    inside = tuple(jnp.where(valid, column, 0) for column in index)
    return _gather(x, inside, mode="promise_in_bounds")


@_read.defjvp
def _read_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    x, valid, index = primals
    x_tangent, *_ = tangents
    if not _is_wide(x, index):
        # The rows and their derivative share one index, which is computed once.
        past = _past_the_end(x, valid, index)
        unique: Any = {"mode": "fill", "fill_value": 0, "unique_indices": True}
        return _gather(x, past, **unique), _gather(x_tangent, past, **unique)
    rows = _read(*primals)
    zeros = jnp.zeros_like(rows)
    if rows.shape[0] == 0:  # JAX can't transpose a scatter into an empty array
        return rows, zeros
    return rows, zeros.at[_inverse(*primals)].add(x_tangent, **WRITE_ONCE)


def _is_wide(x: Array, index: Index) -> bool:
    """Whether a row of `x` has at least 16 values, which pay for an inverse index.

    Rows of 16 values pay, and single values don't (docs/development/lab_notes.md, "Rows
    that are written back").
    """
    return at_most(16, math.prod(x.shape[len(index) :]))


def _gather(x: Array, index: Index, **options: Any) -> Array:
    # Over explicit mesh axes, JAX asks how the result is divided: a row like a row of
    # `x`. We ask the mesh, because under vmap only the index may be divided.
    spec = None
    if _has_explicit_axes():
        spec = PartitionSpec(None, *jax.typeof(x).sharding.spec[len(index) :])
    return x.at[index].get(**options, wrap_negative_indices=False, out_sharding=spec)


def _has_explicit_axes() -> bool:
    return AxisType.Explicit in get_abstract_mesh().axis_types


# WRITE


def add_rows(x: Array, rows: Array, valid: Array, index: Index) -> Array:
    """Adds each valid row at its coordinates."""
    return x.at[_past_the_end(x, valid, index)].add(rows, **WRITE_ONCE)


@jax.custom_jvp
def write_rows(x: Array, rows: Array, valid: Array, index: Index) -> Array:
    """Writes the valid rows into x."""
    elements = math.prod(x.shape[: len(index)])
    # A scatter writes into the array. XLA copies the array first if the array is an
    # argument, or is needed later. A select reads and writes each element once, which
    # is faster than the copy and the scatter for wide rows of at least half of the
    # elements. In a loop that overwrites its array, XLA copies nothing, and the scatter
    # is faster. We can't see such a loop here, and accept the loss
    # (docs/development/lab_notes.md, "Rows that are written back").
    operands = x, rows, valid, index
    if not (at_most(elements, 2 * rows.shape[0]) and _is_wide(x, index)):
        return scatter_rows(*operands)
    # We timed no TPU and no GPU of another maker.
    written: Array = lax.platform_dependent(
        *operands, cpu=select_rows, cuda=select_rows, default=scatter_rows
    )
    return written


def scatter_rows(x: Array, rows: Array, valid: Array, index: Index) -> Array:
    """Writes each valid row by a scatter, which drops indices past the end."""
    return x.at[_past_the_end(x, valid, index)].set(rows, **WRITE_ONCE)


def select_rows(x: Array, rows: Array, valid: Array, index: Index) -> Array:
    """Reads the row of each element, and keeps elements without a row.

    The index of this read has the shape of all elements, in place of (rows,). Nothing
    differentiates the read: `write_rows` has a tangent of its own.
    """
    inverse = _inverse(x, valid, index)
    has_row = inverse < to_scalar(rows.shape[0], np.uint32)
    # Here `rows` is the source, and `x` fills.
    return read_rows(rows, x, has_row, (inverse,))


@write_rows.defjvp
def _write_rows_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    x, rows, valid, index = primals
    x_tangent, rows_tangent, *_ = tangents
    has_row = _inverse(x, valid, index) < to_scalar(rows.shape[0], np.uint32)
    others = jnp.where(per_row(has_row, x), jnp.zeros_like(x_tangent), x_tangent)
    return write_rows(*primals), add_rows(others, rows_tangent, valid, index)


def per_row(first: Array, x: Array) -> Array:
    """Appends dimensions of size 1: each value is broadcast over a row of `x`."""
    return lax.expand_dims(first, range(first.ndim, x.ndim))


def _inverse(x: Array, valid: Array, index: Index) -> Array:
    """Returns the number of the row of each element; without a row, `len(valid)`."""
    rows = valid.shape[0]
    past = jnp.full(x.shape[: len(index)], to_scalar(rows, np.uint32))
    return scatter_rows(past, lax.iota(np.uint32, rows), valid, index)


def _past_the_end(x: Array, valid: Array, index: Index) -> Index:
    """Returns the index, with invalid rows past the end of `x`, where JAX drops them.

    These rows share an index: `WRITE_ONCE` says why they may.
    """
    first, *others = index
    return jnp.where(valid, first, to_scalar(x.shape[0], first.dtype)), *others
