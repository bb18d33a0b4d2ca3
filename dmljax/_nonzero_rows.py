"""Rows of an array, read and written by their coordinates, and their derivatives.

For example, if the searched array has sizes (4, 5) and `x` has (4, 5, 8), each of the
20 *elements* has a *row* of 8 values in `x`. What `_nonzero_coordinates_result` calls
row r of the coordinates is *slot* r here. `index` has the coordinates of K slots, as
one array of K numbers for each searched dimension, as in ``x[index]``. `valid` has K
bools: it is false for slots past the count, and for slots that a caller leaves out.

- A read returns a row for each slot: the row of its element, or the fill if the slot is
  not valid.
- A write takes a row for each slot, and writes it at the slot's element. It drops the
  rows of slots that are not valid.

`jax.vmap` maps the functions along a batch.

No two valid slots have the same element. JAX can't know this: its own gradient of a
read would be a scatter for indices that repeat, which is slow. So `_read` and
`write_rows` each have a custom_jvp.
The tangent of a write is the tangent of `x`, with zeros where rows are written, plus
the tangents of the rows. `_read_jvp` explains the tangent of a read.
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

Index = tuple[Array, ...]  # for each searched dimension, the coordinate of each slot

# READ


def read_rows(x: Array, fill: Array, valid: Array, index: Index) -> Array:
    """Returns the row of each valid slot, and `fill` for each other slot.

    `fill` has the type of `x`, and is broadcast.
    """
    if 0 not in x.shape:
        # Inside of a caller's shard_map, JAX can't differentiate with residuals over
        # explicit axes (jax-ml/jax#29162). Under jax.checkpoint, it saves none.
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
    """Returns ``x[index]``, with index 0 where it is not valid."""
    inside = tuple(jnp.where(valid, column, 0) for column in index)
    return _gather(x, inside, mode="promise_in_bounds")


@_read.defjvp
def _read_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    """Returns the rows and their tangents.

    The tangent takes the row of each element to its slot. A gather and a scatter can do
    this. We choose by the gradient, for which JAX transposes the tangent:

    - Narrow rows: a gather, which each slot reads. The gradient is a scatter of unique
      indices.
    - Wide rows: a scatter, which each element writes. The gradient is a gather, in
      which each element reads the cotangent of its slot (`_slot_of_element`).
    """
    x, valid, index = primals
    x_tangent, *_ = tangents
    if not _is_wide(x, index):
        # One index, computed once, serves for the rows and for their tangents. A slot
        # that is not valid gets zeros here, which `read_rows` replaces.
        past = _past_the_end(x, valid, index)
        unique: Any = {"mode": "fill", "fill_value": 0, "unique_indices": True}
        return _gather(x, past, **unique), _gather(x_tangent, past, **unique)
    rows = _read(*primals)
    zeros = jnp.zeros_like(rows)
    if rows.shape[0] == 0:  # JAX can't transpose a scatter into an empty array
        return rows, zeros
    return rows, zeros.at[_slot_of_element(*primals)].add(x_tangent, **WRITE_ONCE)


def _is_wide(x: Array, index: Index) -> bool:
    """Whether a row of `x` has 16 values or more.

    For such rows, `_slot_of_element` takes less time than a gather or a select by slots
    saves (docs/development/lab_notes.md, "Rows that are written back").
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
    """Whether the mesh has explicit axes, over which an operand may be divided.

    It has none in most calls from `NonzeroCoordinates`, which lets XLA divide the call.
    It may have some in calls from `dmljax.numpy`, and under a vmap over a divided
    dimension, which `NonzeroCoordinates` can't see. There the index may be divided and
    `x` whole, so we ask the mesh.
    """
    return AxisType.Explicit in get_abstract_mesh().axis_types


# WRITE


def add_rows(x: Array, rows: Array, valid: Array, index: Index) -> Array:
    """Returns `x` with the row of each valid slot added at its element."""
    return x.at[_past_the_end(x, valid, index)].add(rows, **WRITE_ONCE)


@jax.custom_jvp
def write_rows(x: Array, rows: Array, valid: Array, index: Index) -> Array:
    """Returns `x` with the row of each valid slot written at its element."""
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
    """Writes the rows by a scatter."""
    return x.at[_past_the_end(x, valid, index)].set(rows, **WRITE_ONCE)


def select_rows(x: Array, rows: Array, valid: Array, index: Index) -> Array:
    """Writes the rows by a select: each element reads its row, or keeps its value.

    `_read` reads from `rows` here, with the slot of each element as its index. Nothing
    differentiates this read: `write_rows` has a tangent of its own.
    """
    slot = _slot_of_element(x, valid, index)
    has_slot = slot < constant(rows.shape[0], np.uint32)
    return jnp.where(per_row(has_slot, x), _read(rows, has_slot, (slot,)), x)


@write_rows.defjvp
def _write_rows_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    x, rows, valid, index = primals
    x_tangent, rows_tangent, *_ = tangents
    has_slot = _slot_of_element(x, valid, index) < constant(rows.shape[0], np.uint32)
    kept = jnp.where(per_row(has_slot, x), jnp.zeros_like(x_tangent), x_tangent)
    return write_rows(*primals), add_rows(kept, rows_tangent, valid, index)


def per_row(flags: Array, x: Array) -> Array:
    """Appends dimensions of size 1: each flag is broadcast over a row of `x`."""
    return lax.expand_dims(flags, range(flags.ndim, x.ndim))


def _slot_of_element(x: Array, valid: Array, index: Index) -> Array:
    """Returns the slot of each element, or `len(valid)` if it has none.

    For example, if two slots have elements 3 and 0 of four: [1, 2, 2, 0], where 2
    stands for none.
    """
    slots = valid.shape[0]
    no_slot = jnp.full(x.shape[: len(index)], constant(slots, np.uint32))
    return scatter_rows(no_slot, lax.iota(np.uint32, slots), valid, index)


def _past_the_end(x: Array, valid: Array, index: Index) -> Index:
    """Returns the index, past the end of `x` for slots that are not valid.

    There a scatter writes nothing, and a gather fills. Several such slots may have the
    same index: `unique_indices` is a promise about elements in range (`WRITE_ONCE`).
    """
    first, *others = index
    return jnp.where(valid, first, constant(x.shape[0], first.dtype)), *others


def fits_index(number: int) -> bool:
    """Whether JAX can index with this number: without x64 mode, its index is an int32.

    Pass the largest index: n for n elements that are also indexed past the end, and
    otherwise n - 1. A symbolic size fits: JAX assumes that it is below 2^31.
    """
    return not surely_le(np.iinfo(jnp.result_type(int)).max + 1, number)
