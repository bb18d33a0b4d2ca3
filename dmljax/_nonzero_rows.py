"""Rows of an array, read and written by their coordinates, and their derivatives.

Each function takes an array `x`, a mask `valid` of (rows,), and an index: (rows,)
coordinates for each leading dimension of `x`. The other dimensions of `x` are those of
a row. `jax.vmap` maps the functions along a batch. A read by the inverse index has as
many rows as `x` has elements, in the sizes of `x`.

A row that is not *valid* is read at element 0, or past the end where a derivative is
computed, too, and is written nowhere. Valid rows have different coordinates: writes and
derivatives rely on it. The caller says which rows are valid, and where they lie.

JAX would transpose a gather into a scatter that adds up, also where rows are different.
The derivative of a read of narrow rows is a gather of unique indices, past the end for
rows that are not valid: its transpose adds nothing up. For wide rows it is a scatter by
the *inverse index*, which has the row of each element: its transpose is a gather. "Rows
of a mask and back" with its gradient takes 6.4 ms on a CPU, and 34 by jax.numpy's own
gather and scatter (benchmarks/results/x86_64-cpu.csv). For narrow rows the inverse
index of all elements takes longer than a scatter (docs/development/lab_notes.md).

The derivative of a write is a scatter by the index, whose transpose is a gather. It
needs the inverse index only to know which elements were overwritten: the transpose of
`scatter_rows` would write zeros to them, which takes longer on a CPU. `select_rows`
reads by the inverse index, too. All of this is custom_jvp and no primitive: JAX
transposes each derivative by itself.
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
from dmljax._types import to_scalar

Index = tuple[Array, ...]  # the coordinates of rows along each dimension

# READ


def read_rows(x: Array, fill: Array, valid: Array, index: Index) -> Array:
    """Returns the valid rows of `x`, and those of `fill` in place of the others.

    `fill` has the type of `x`, and is broadcast. All reads are in range, but for those
    of narrow rows with a derivative.
    """
    if 0 not in x.shape:
        # Inside of a jax.shard_map over other axes, JAX can't close over the residuals
        # of a gradient (jax-ml/jax#29162). With jax.checkpoint there are none.
        read = jax.checkpoint(_read) if _has_explicit_axes() else _read
        rows = read(x, valid, index)
    else:
        # Nothing is read, but the result is made of `x`: JAX ignores the device of an
        # argument that a program does not read.
        row_sizes = x.shape[len(index) :]
        widths = [(0, valid.shape[0])] + [(0, 0)] * len(row_sizes)
        rows = jnp.pad(x.reshape(0, *row_sizes), widths)
    return jnp.where(repeated(valid, rows), rows, fill)


@jax.custom_jvp
def _read(x: Array, valid: Array, index: Index) -> Array:
    """Reads the valid rows, and element 0 for the others."""
    inside = tuple(jnp.where(valid, column, 0) for column in index)
    return _gather(x, inside, mode="promise_in_bounds")


@_read.defjvp
def _read_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    x, valid, index = primals
    x_tangent, *_ = tangents
    if not _is_wide(x, index):
        # Both read by the same index, as a plain gather and its derivative do.
        past = _past_the_end(x, valid, index)
        unique: Any = {"mode": "fill", "fill_value": 0, "unique_indices": True}
        return _gather(x, past, **unique), _gather(x_tangent, past, **unique)
    rows = _read(*primals)
    zeros = jnp.zeros_like(rows)
    if rows.shape[0] == 0:  # JAX can't transpose a scatter into an empty array
        return rows, zeros
    return rows, zeros.at[_inverse(*primals)].add(x_tangent, **WRITE_ONCE)


def _is_wide(x: Array, index: Index) -> bool:
    """Whether the inverse index pays for rows of so many values: 16 and more.

    It pays for rows of 64 values, and not for single ones (docs/development/
    lab_notes.md, "Rows that are written back"). We chose 16 between them.
    """
    return at_most(16, math.prod(x.shape[len(index) :]))


def _gather(x: Array, index: Index, **options: Any) -> Array:
    # Over explicit mesh axes, JAX asks how the rows are divided: each as `x` is. Under
    # vmap, these axes may divide the batch of the index alone.
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
    # A scatter moves the rows alone, but it writes into the array. XLA copies the array
    # first if the program was called with it, or needs it later. On an H100, a select
    # takes 0.56 to 0.64 of the time for 2^20 rows of 64 values
    # (benchmarks/results/nvidia-h100-80gb-hbm3.csv, "rows of a mask and back"; "[rows
    # scattered]" is the scatter). For single values it gains beside a gradient alone.
    # In a loop that overwrites its array, a scatter copies nothing, and a select takes
    # 1.1 times as long with a row for each element, and twice as long with half as many
    # rows (docs/development/lab_notes.md, "Rows that are written back"). So we chose
    # the select for wide rows, if there are rows for at least half of the elements.
    if not (at_most(elements, 2 * rows.shape[0]) and _is_wide(x, index)):
        return scatter_rows(x, rows, valid, index)
    written: Array = lax.platform_dependent(
        x, rows, valid, index, **WRITE_ON_PLATFORM, default=scatter_rows
    )
    return written


def scatter_rows(x: Array, rows: Array, valid: Array, index: Index) -> Array:
    """Writes each valid row by a scatter, which drops an index past the end."""
    return x.at[_past_the_end(x, valid, index)].set(rows, **WRITE_ONCE)


def select_rows(x: Array, rows: Array, valid: Array, index: Index) -> Array:
    """Reads the row of each element, and keeps the element if it has none."""
    inverse = _inverse(x, valid, index)
    has_row = inverse < to_scalar(rows.shape[0], np.uint32)
    return read_rows(rows, x, has_row, (inverse,))


# The forms that are faster on a platform than a scatter. On a CPU the select took eight
# times as long (docs/development/lab_notes.md). We timed no TPU and no other GPU. XLA
# may divide these forms: on two H100s the select took no longer.
WRITE_ON_PLATFORM = {"cuda": select_rows}


@write_rows.defjvp
def _write_rows_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    x, rows, valid, index = primals
    x_tangent, rows_tangent, *_ = tangents
    has_row = _inverse(x, valid, index) < to_scalar(rows.shape[0], np.uint32)
    others = jnp.where(repeated(has_row, x), jnp.zeros_like(x_tangent), x_tangent)
    return write_rows(*primals), add_rows(others, rows_tangent, valid, index)


def repeated(first: Array, x: Array) -> Array:
    """Returns an array that jnp.where broadcasts: a value of `first` for each row."""
    return lax.expand_dims(first, range(first.ndim, x.ndim))


def _inverse(x: Array, valid: Array, index: Index) -> Array:
    """Returns the inverse index: the row of each element, or the number of rows."""
    sizes = x.shape[: len(index)]
    rows = valid.shape[0]
    none = jnp.full(sizes, to_scalar(rows, np.uint32))
    return scatter_rows(none, lax.iota(np.uint32, rows), valid, index)


def _past_the_end(x: Array, valid: Array, index: Index) -> Index:
    """Returns the index, where rows that are not valid are past the end of `x`."""
    first, *others = index
    return jnp.where(valid, first, to_scalar(x.shape[0], first.dtype)), *others
