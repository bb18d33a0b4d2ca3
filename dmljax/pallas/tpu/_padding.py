"""PADDING on a TPU: one launch, or two if rows and columns do not fit into one block.

A program has a block of the output. Leading and minor dimensions are padded in two
different ways:

- A block has size 1 along a padded leading dimension. Its index map evaluates the
  formula of the page, so that the pipeline fetches the input that the block repeats.
  Nothing is computed; only CONSTANT selects the value where there is no such input.
- A block has all of a padded minor dimension, of the input and of the output. The
  program goes over the matrices of its block. In each it pads first the rows and then
  the columns, from one *scratch* matrix to the next, by *slabs*: as many rows, or
  columns, as a register has:

      input        | slab 0 | slab 1 | slab 2 |
      output    | slab 0 | slab 1 | slab 2 | slab 3 |

  A slab of the output repeats elements of at most two or three slabs of the input, and
  gathers each element out of one of these, because a TPU gathers only in a register.

We rearrange elements of every type as int32. That costs narrow ones an advantage, but
one layout serves all types. docs/tpu.md has the estimates.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu

from dmljax._check import show
from dmljax._coordinates import PaddingMode, source_index
from dmljax._types import INT32_MAX, Outputs, is_floating
from dmljax.pallas._padding import Axes, Axis, merged, padding_form
from dmljax.pallas._platforms import require_fit
from dmljax.pallas.tpu import LANES, SUBLANES
from dmljax.pallas.tpu._launch import launch_blocks

# A block has a multiple of so many rows: they fill whole registers of every type.
ROWS = 32
# The elements of a block, with the unused ones of its registers. In int32 they are
# 1 MiB. If a padded minor dimension needs more, a block may have twice as many: the
# scratch matrices, and what the pipeline fetches and writes, share the 16 MiB of vector
# memory.
ELEMENTS = 2**18
MOST_ELEMENTS = 2**19


@dataclasses.dataclass(frozen=True)
class PaddingPlan:
    """The plan of a launch."""

    axes: tuple[Axis, ...]  # at least two; a kernel sees the leading ones `merged`
    mode: PaddingMode

    @property
    def shape(self) -> tuple[int, ...]:  # of the output
        return tuple(axis.output for axis in self.axes)

    @property
    def block(self) -> tuple[int, ...]:  # the sizes of a block of the output
        fixed = {
            i: axis.output if i >= len(self.axes) - 2 else 1
            for i, axis in enumerate(self.axes)
            if axis.is_padded
        }
        return block_of(self.shape, fixed)

    @property
    def source_block(self) -> tuple[int, ...]:  # what of the input this block needs
        *leading, _, _ = self.block
        minor = zip(self.axes[-2:], self.block[-2:], strict=True)
        return (*leading, *(a.size if a.is_padded else size for a, size in minor))

    @property
    def elements(self) -> int:  # of the block, with the unused ones of its registers
        *leading, rows, columns = self.block
        return math.prod((*leading, *_whole_registers(rows, columns)))

    @property
    def scratch(self) -> list[tuple[int, int]]:
        """The sizes of the scratch matrices: as read, and after each axis is padded."""
        sizes = list(self.source_block[-2:])
        found = [_whole_registers(*sizes)]
        for i, axis in enumerate(self.axes[-2:]):
            if axis.is_padded:
                sizes[i] = axis.output
                found.append(_whole_registers(*sizes))
        return found if len(found) > 1 else []


def _whole_registers(rows: int, columns: int) -> tuple[int, int]:
    """Returns the sizes of a matrix of int32, rounded up to whole registers."""
    return _round_up(rows, SUBLANES), _round_up(columns, LANES)


def _round_up(size: int, step: int) -> int:
    return pl.cdiv(size, step) * step


def block_of(shape: tuple[int, ...], fixed: Mapping[int, int]) -> tuple[int, ...]:
    """Returns the sizes of a block of at most ELEMENTS, of an array of `shape`.

    `fixed` has the sizes along some dimensions. Along the others the block has the
    whole size, or if that does not fit, a multiple of a register's. The last dimension
    takes the room first, then the one before it, and so on.

    >>> block_of((7, 3, 200), {}), block_of((3, 5000, 1000), {})
    ((7, 3, 200), (1, 256, 1000))
    >>> block_of((1, 10**6), {}), block_of((9, 5000, 1000), {1: 5000})
    ((1, 32768), (1, 5000, 128))
    """
    last = len(shape) - 1
    # The rows are not known yet when the columns are. They have at least this many.
    rows = fixed.get(last - 1, min(shape[-2], ROWS))
    room = ELEMENTS // _round_up(rows, SUBLANES)
    block: list[int] = []
    for axis in range(last, -1, -1):
        step = {last: LANES, last - 1: ROWS}.get(axis, 1)
        if axis == last - 1:
            room = ELEMENTS // _round_up(block[0], LANES)
        fits = max(room // step, 1) * step
        block.append(fixed.get(axis, min(shape[axis], fits)))
        room //= _round_up(block[-1], step)
    return tuple(reversed(block))


def _pad(
    x: jax.Array, value: jax.Array, axes: Axes, mode: PaddingMode, interpret: Any
) -> jax.Array:
    """Pads an array, by one launch or by two."""
    if x.dtype == np.bool_:  # Mosaic has no vectors of these in bytes
        x, value = (y.astype(np.uint8) for y in (x, value))
        return _pad(x, value, axes, mode, interpret).astype(np.bool_)
    # Mosaic needs two minor dimensions. Where only one is padded, the other is a batch.
    # It has size 1 if there is no batch, or if each row has a value of its own.
    if x.ndim == 1 or value.shape[-2] > 1:
        x, value = (jnp.expand_dims(y, -2) for y in (x, value))
        axes = [*axes[:-1], Axis(1, 0, 0), axes[-1]]
    *leading, rows, columns = axes
    # A block has all of each padded minor dimension. If that is too large, rows are
    # padded first, and columns in a second launch. The order does not matter.
    call = PaddingPlan(tuple(axes), mode)
    both = rows.is_padded and columns.is_padded
    if both and call.elements > MOST_ELEMENTS:
        unpadded = Axis(columns.size, 0, 0)
        of_rows = PaddingPlan((*leading, rows, unpadded), mode)
        x = _launch(x, value, of_rows, interpret)
        done = [Axis(axis.output, 0, 0) for axis in (*leading, rows)]
        call = PaddingPlan((*done, columns), mode)
    return _launch(x, value, call, interpret)


def _launch(
    x: jax.Array, value: jax.Array, call: PaddingPlan, interpret: Any
) -> jax.Array:
    """Pads an array by one launch. `call` has the dimensions of the array."""
    *leading, rows, columns = call.axes
    outer = merged(leading)
    plan = PaddingPlan((*outer, rows, columns), call.mode)
    problem = "the kernel for TPUs has a padded minor dimension in vector memory as a "
    problem += f"whole, and {show(call.shape)} is too large for that"
    require_fit("PADDING", plan.elements <= MOST_ELEMENTS, problem)

    def sizes_of_value(dimensions: Axes) -> tuple[int, ...]:
        """One value, or one for each position in leading dimensions without padding."""
        one = value.size == 1
        sizes = [1 if one or axis.is_padded else axis.size for axis in dimensions]
        return (*sizes, 1, 1)

    values = jnp.broadcast_to(value, sizes_of_value(leading))
    values = values.reshape(sizes_of_value(outer))

    def source_map(*program: Any) -> tuple[Any, ...]:
        each = zip(outer, program, strict=False)
        return (*(_source(axis, i, plan.mode) for axis, i in each), *program[-2:])

    def value_map(*program: Any) -> tuple[Any, ...]:
        each = zip(values.shape, program, strict=True)
        return tuple(i if size > 1 else 0 for size, i in each)

    blocks = [
        pl.BlockSpec(plan.source_block, source_map),
        pl.BlockSpec(tuple(map(min, values.shape, plan.block)), value_map),
        pl.BlockSpec(plan.block, lambda *program: program),
    ]
    (padded,) = launch_blocks(
        _pad_block,
        x.reshape(tuple(axis.size for axis in plan.axes)),
        values,
        operator="padding",
        grid=tuple(map(pl.cdiv, plan.shape, plan.block)),
        blocks=blocks,
        outputs=[jax.ShapeDtypeStruct(plan.shape, x.dtype)],
        scratch=[tpu.VMEM(sizes, np.dtype(np.int32)) for sizes in plan.scratch],
        interpret=interpret,
        plan=plan,
    )
    return padded.reshape(call.shape)


def _source(axis: Axis, position: Any, mode: PaddingMode) -> Any:
    """Returns the input position that any output position repeats.

    It is the nearest one where CONSTANT has none, so that a kernel may read there.
    """
    if not axis.is_padded:
        return position
    if mode is PaddingMode.CONSTANT:
        mode = PaddingMode.EDGE
    # The last slab may reach past the end of the axis, and its sources must still be
    # inside the input. INT32_MAX says that no position is too large.
    return source_index(position, INT32_MAX, axis.before, axis.size, mode)


def _is_inside(axis: Axis, position: Any) -> Any:
    """Whether an output position is not of the padding."""
    return (position >= axis.before) & (position < axis.before + axis.size)


def _pad_block(
    x: Any, value: Any, output: Any, *scratch: Any, plan: PaddingPlan
) -> None:
    """Writes a block of the output, matrix by matrix."""
    *leading, height, width = output.shape
    # Along a padded leading dimension, all of the block is inside or all is outside.
    outside: list[Any] = [
        ~_is_inside(axis, pl.program_id(i))
        for i, axis in enumerate(plan.axes[:-2])
        if axis.is_padded and plan.mode is PaddingMode.CONSTANT
    ]

    def write(offset: Any, carry: Any) -> Any:
        positions: tuple[Any, ...] = ()
        for size in reversed(leading):
            positions = (lax.rem(offset, jnp.int32(size)), *positions)
            offset = lax.div(offset, jnp.int32(size))
        fill = _matrix_at(value, positions)
        bits = _pad_matrix(_matrix_at(x, positions), scratch, fill, plan)
        for is_outside in outside:
            bits = jnp.where(is_outside, fill, bits)
        padded = bits[:height, :width]
        if is_floating(output.dtype):
            padded = padded.astype(np.dtype(f"int{8 * output.dtype.itemsize}"))
            output[positions] = lax.bitcast_convert_type(padded, output.dtype)
        else:
            output[positions] = padded.astype(output.dtype)
        return carry

    lax.fori_loop(0, math.prod(leading), write, 0)


def _matrix_at(block: Any, positions: Sequence[Any]) -> Any:
    """Loads a matrix of a block, as bits. The block may have size 1 for all of them."""
    each = zip(positions, block.shape[:-2], strict=True)
    matrix = block[tuple(0 if size == 1 else position for position, size in each)]
    if is_floating(matrix.dtype):
        integer = np.dtype(f"int{8 * matrix.dtype.itemsize}")
        matrix = lax.bitcast_convert_type(matrix, integer)
    return matrix.astype(np.int32)


def _pad_matrix(bits: Any, scratch: Sequence[Any], fill: Any, plan: PaddingPlan) -> Any:
    """Pads the rows and columns of a matrix of bits."""
    if not scratch:
        return bits
    height, width = bits.shape
    scratch[0][:height, :width] = bits
    stages = [(i, axis) for i, axis in enumerate(plan.axes[-2:]) if axis.is_padded]
    for (i, axis), source, target in zip(stages, scratch, scratch[1:], strict=False):
        _pad_dimension(source, target, i, axis, fill, plan.mode)
    return scratch[-1][...]


def _pad_dimension(
    source: Any, target: Any, dimension: int, axis: Axis, fill: Any, mode: PaddingMode
) -> None:
    """Pads one dimension of a matrix, by slabs of the output."""
    slab = (SUBLANES, LANES)[dimension]
    shape = list(target.shape)
    shape[dimension] = slab
    vector = ((slab, 1), (1, slab))[dimension]
    top = jnp.int32((axis.size - 1) // slab)

    def span(start: Any) -> Any:
        own = pl.ds(pl.multiple_of(start, slab), slab)
        return (own, slice(None)) if dimension == 0 else (slice(None), own)

    def write(i: Any, carry: Any) -> Any:
        first = i * jnp.int32(slab)
        position = first + lax.broadcasted_iota(np.int32, vector, dimension)
        sources = jnp.broadcast_to(_source(axis, position, mode), shape)
        # The sources of the first and of the last element of the slab. In most modes
        # all sources are within a slab's length from the lower one, so in two slabs.
        # If WRAP begins anew within the slab, the last source is in a third slab.
        low, high = (
            lax.div(_source(axis, end, mode), jnp.int32(slab))
            for end in (first, first + jnp.int32(slab - 1))
        )
        if mode is not PaddingMode.WRAP:
            low = jnp.minimum(low, high)
        slabs = [low, jnp.minimum(low + 1, top)]
        slabs += [high] if mode is PaddingMode.WRAP else []
        values = jnp.zeros(shape, np.int32)
        for each in slabs:
            part = source[span(each * slab)]
            index = sources & (slab - 1)
            part = jnp.take_along_axis(part, index, dimension, mode="promise_in_bounds")
            values = jnp.where(lax.div(sources, jnp.int32(slab)) == each, part, values)
        if mode is PaddingMode.CONSTANT:
            inside = jnp.broadcast_to(_is_inside(axis, position), shape)
            values = jnp.where(inside, values, fill)
        target[span(first)] = values
        return carry

    lax.fori_loop(0, target.shape[dimension] // slab, write, 0)


# A TPU copies an array if its type is changed beside the kernel. We turn floats
# that it computes with into bits inside.
_pad_any = padding_form(_pad, *map(np.dtype, (np.float32, jnp.bfloat16)))


def padding(x: jax.Array, *value: jax.Array, **static: Any) -> Outputs:
    """The form by kernel."""
    problem = f"the kernel for TPUs takes no {show(x.dtype)}, of which Mosaic has no "
    require_fit("PADDING", x.dtype.itemsize < 8, f"{problem}vectors")
    return _pad_any(x, *value, **static)
