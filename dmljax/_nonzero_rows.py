"""Rows of an array, read and written by their coordinates, and their derivatives.

For example, if the searched array has sizes (4, 5) and `x` has (4, 5, 8), each of the
20 *elements* has a *row* of 8 values in `x`. We read or write K of these rows, in K
*slots*. For each slot, `index` has the coordinates of its element, as one array for
each searched dimension, as in ``x[index]``, and `valid` has a bool. The row in an
invalid slot is not written. For an invalid slot, a read takes element 0, and replaces
it by the fill. `jax.vmap` maps the functions along a batch.

No two valid slots have the same element. So nothing is summed in the gradient of a
read: each row of the cotangent is placed at its element, and the other elements get
zeros. JAX can't know this: its own gradient would add up, value by value. So `_read`
has a custom_jvp, and so has `write_rows`. The tangent of a write is the tangent of `x`,
with zeros where rows are written, plus the tangents of the rows.

There are two ways to place the rows of the cotangent:

- a scatter, whose indices are unique, writes them for *narrow* rows, which have fewer
  than 16 values. Invalid slots get an index past the end, where nothing is written;
- a gather by the *inverse index* reads them for *wide* rows. The inverse index has the
  slot of each element, or none. For example, if two slots read elements 2 and 0 of
  four, it is [1, none, 0, none]: each element reads the cotangent of its slot. For
  narrow rows, the inverse index would take longer than the scatter
  (docs/development/lab_notes.md, "Rows that are written back").

A custom_jvp defines the tangent, and JAX transposes it to get the gradient. A scatter
transposes to a gather, and a gather to a scatter:

| | narrow rows | wide rows |
|---|---|---|
| tangent of a read | gather of unique indices | scatter by the inverse index |
| gradient of a read | scatter of unique indices | gather by the inverse index |
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import AxisType, PartitionSpec, get_abstract_mesh

from dmljax._check import surely_le
from dmljax._nonzero_forms import WRITE_ONCE
from dmljax._types import constant

Index = tuple[Array, ...]  # for each searched dimension, the coordinates of the rows

# READ


def read_rows(x: Array, fill: Array, valid: Array, index: Index) -> Array:
    """Returns the valid rows of `x`, and `fill` in place of the invalid rows.

    `fill` has the type of `x`, and is broadcast.
    """
    if 0 not in x.shape:
        # JAX must not save residuals over explicit axes (jax-ml/jax#29162).
        read = jax.checkpoint(_read) if _has_explicit_axes() else _read
        rows = read(x, valid, index)
    else:
        # There is nothing to read. The result is made from `x`, to be on its device.
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
        # One index, computed once, serves for the rows and for their tangents.
        past = _past_the_end(x, valid, index)
        unique: Any = {"mode": "fill", "fill_value": 0, "unique_indices": True}
        return _gather(x, past, **unique), _gather(x_tangent, past, **unique)
    rows = _read(*primals)
    zeros = jnp.zeros_like(rows)
    if rows.shape[0] == 0:  # JAX can't transpose a scatter into an empty array
        return rows, zeros
    return rows, zeros.at[_inverse(*primals)].add(x_tangent, **WRITE_ONCE)


def _is_wide(x: Array, index: Index) -> bool:
    """Whether a row of `x` has 16 values or more.

    Such rows gain more from an inverse index than it takes to compute
    (docs/development/lab_notes.md, "Rows that are written back").
    """
    return surely_le(16, math.prod(x.shape[len(index) :]))


def _gather(x: Array, index: Index, **options: Any) -> Array:
    # With explicit mesh axes, JAX asks how the result is divided. A row is divided as
    # in `x`, and the slots are not divided.
    spec = None
    if _has_explicit_axes():
        spec = PartitionSpec(None, *jax.typeof(x).sharding.spec[len(index) :])
    return x.at[index].get(**options, wrap_negative_indices=False, out_sharding=spec)


def _has_explicit_axes() -> bool:
    """Whether the mesh has explicit axes.

    We ask the mesh, and not `x`: under vmap, the index alone may be divided.
    """
    return AxisType.Explicit in get_abstract_mesh().axis_types


# WRITE


def add_rows(x: Array, rows: Array, valid: Array, index: Index) -> Array:
    """Returns `x` with each valid row added at its coordinates."""
    return x.at[_past_the_end(x, valid, index)].add(rows, **WRITE_ONCE)


@jax.custom_jvp
def write_rows(x: Array, rows: Array, valid: Array, index: Index) -> Array:
    """Returns `x` with each valid row written at its coordinates."""
    elements = math.prod(x.shape[: len(index)])
    # A scatter overwrites `x`. If `x` is an argument of the program, or is needed
    # later, XLA copies it first. A select reads and writes each element once, and is
    # faster than the copy and the scatter if the rows are wide, and if there are at
    # least half as many rows as elements. In a loop that overwrites `x`, XLA copies
    # nothing, and the scatter would be faster: we can't see the loop here, and accept
    # the loss (docs/development/lab_notes.md, "Rows that are written back").
    operands = x, rows, valid, index
    if not (surely_le(elements, 2 * rows.shape[0]) and _is_wide(x, index)):
        return scatter_rows(*operands)
    # The default is for TPUs and for GPUs of other makers, on which we timed nothing.
    written: Array = lax.platform_dependent(
        *operands, cpu=select_rows, cuda=select_rows, default=scatter_rows
    )
    return written


def scatter_rows(x: Array, rows: Array, valid: Array, index: Index) -> Array:
    """Writes the rows by a scatter, which drops the invalid rows past the end."""
    return x.at[_past_the_end(x, valid, index)].set(rows, **WRITE_ONCE)


def select_rows(x: Array, rows: Array, valid: Array, index: Index) -> Array:
    """Writes the rows by a select: each element reads its row, or keeps its value.

    Nothing differentiates this read: `write_rows` has a tangent of its own.
    """
    inverse = _inverse(x, valid, index)
    has_row = inverse < constant(rows.shape[0], np.uint32)
    # A read with swapped roles: the array is `rows`, the index is the slot of each
    # element, and an element without a slot is filled with itself.
    return read_rows(x=rows, fill=x, valid=has_row, index=(inverse,))


@write_rows.defjvp
def _write_rows_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    x, rows, valid, index = primals
    x_tangent, rows_tangent, *_ = tangents
    has_row = _inverse(x, valid, index) < constant(rows.shape[0], np.uint32)
    kept = jnp.where(per_row(has_row, x), jnp.zeros_like(x_tangent), x_tangent)
    return write_rows(*primals), add_rows(kept, rows_tangent, valid, index)


def per_row(flags: Array, x: Array) -> Array:
    """Appends dimensions of size 1: each flag is broadcast over a row of `x`."""
    return lax.expand_dims(flags, range(flags.ndim, x.ndim))


def _inverse(x: Array, valid: Array, index: Index) -> Array:
    """Returns the slot of each element, or `len(valid)` if it has none."""
    slots = valid.shape[0]
    no_slot = jnp.full(x.shape[: len(index)], constant(slots, np.uint32))
    return scatter_rows(no_slot, lax.iota(np.uint32, slots), valid, index)


def _past_the_end(x: Array, valid: Array, index: Index) -> Index:
    """Returns the index with invalid slots past the end of `x`.

    There a scatter writes nothing, and a gather fills. The invalid slots share an
    index, although our scatters promise unique indices: `WRITE_ONCE` says why they may.
    """
    first, *others = index
    return jnp.where(valid, first, constant(x.shape[0], first.dtype)), *others
