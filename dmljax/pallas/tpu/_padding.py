"""PADDING on a TPU: one launch, or two if rows and columns do not fit into one block.

A program has a block of the output. Leading and minor dimensions are padded in two
different ways:

- A block has size 1 along a padded leading dimension. `Block.index_map` evaluates the
  formula of the page, so that the pipeline fetches the input that the block repeats.
  Nothing is computed; only CONSTANT selects the value where there is no such input.
- A block has all of a padded minor dimension, of the input and of the output. The
  program goes over the matrices of its block. In each it pads first the rows and then
  the columns, from one *scratch* matrix to the next, tile by tile:

      input        | tile 0 | tile 1 | tile 2 |
      output    | tile 0 | tile 1 | tile 2 | tile 3 |

  A tile of the output repeats elements of at most two or three tiles of the input, and
  each element is gathered out of one of these, because a TPU gathers only in a tile.

Elements of every type are rearranged as int32. That costs narrow ones an advantage, but
one layout of tiles serves all types. docs/tpu.md has the estimates.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu

from dmljax._check import NoKernelError, require, show
from dmljax._coordinates import PaddingMode
from dmljax._types import INT32_MAX, Outputs
from dmljax.pallas._axes import Axis, merged
from dmljax.pallas.tpu._blocks import (
    LANES,
    block_of,
    for_mosaic,
    from_bits,
    padded,
    shared_block,
    to_bits,
)
from dmljax.pallas.tpu._launch import Block, launch_blocks

SUBLANES = 8  # rows of a tile of int32
# Elements of a block at most, if a minor dimension is padded. In int32 they are 2 MiB.
# The scratch matrices, and what the pipeline fetches and writes, share the 16 MiB of
# vector memory.
ELEMENTS = 2**19


@dataclasses.dataclass(frozen=True)
class MosaicPaddingPlan:
    """What is known about a launch of PADDING before it runs.

    Attributes:
      axes: the dimensions, at least two. Unpadded leading neighbours count as one.
      mode: where the values of the padding come from.
    """

    axes: tuple[Axis, ...]
    mode: PaddingMode

    @property
    def block(self) -> tuple[int, ...]:
        """The sizes of a block of the output."""
        shape = tuple(axis.output for axis in self.axes)
        minor = len(shape) - 2
        fixed = {
            i: 1 if i < minor else axis.output
            for i, axis in enumerate(self.axes)
            if axis.is_padded
        }
        return block_of(shape, fixed)

    @property
    def source_block(self) -> tuple[int, ...]:
        """The sizes of the block of the input that a block of the output needs."""
        minor = len(self.axes) - 2
        return tuple(
            axis.size if axis.is_padded and i >= minor else size
            for i, (axis, size) in enumerate(zip(self.axes, self.block, strict=True))
        )


def padding(
    x: jax.Array,
    *value: jax.Array,
    start: tuple[int, ...],
    end: tuple[int, ...],
    mode: PaddingMode,
    interpret: Any,
) -> Outputs:
    """The form by kernel."""
    batch = x.ndim - len(start)
    sizes = np.broadcast_shapes(*(y.shape[:batch] for y in (x, *value)))
    x = jnp.broadcast_to(x, sizes + x.shape[batch:])
    # Mosaic needs two minor dimensions. Where only one is padded, the other is a batch.
    # It has size 1 if there is no batch, or if each line of it has a value of its own.
    lines = len(start) == 1 and (batch == 0 or any(y.size > 1 for y in value))
    one = (1,) if lines else ()
    pads = [(0, 0)] * (batch + len(one)) + list(zip(start, end, strict=True))
    taken = [
        y.reshape(y.shape[:batch] + one + y.shape[batch:])
        for y in for_mosaic("padding", (x, *value))
    ]
    axes = tuple(map(Axis, taken[0].shape, *zip(*pads, strict=True)))
    shape = tuple(axis.output for axis in axes)
    if x.size == 0:
        padded_x = jnp.broadcast_to(
            taken[1] if value else taken[0].dtype.type(0), shape
        )
    elif any(axis.is_padded for axis in axes):
        padded_x = _padded(taken, axes, mode, interpret)
    else:
        padded_x = taken[0]
    return (padded_x.reshape(sizes + shape[batch + len(one) :]).astype(x.dtype),)


def _padded(
    operands: Sequence[jax.Array],
    axes: tuple[Axis, ...],
    mode: PaddingMode,
    interpret: Any,
) -> jax.Array:
    """The padded array, by one launch or by two."""
    x, *value = operands
    *leading, rows, columns = axes
    # A block has all of each padded minor dimension. If that is too large, rows are
    # padded first, and columns in a second launch. The order does not matter.
    both = rows.is_padded and columns.is_padded
    if both and _elements(MosaicPaddingPlan(axes, mode)) > ELEMENTS:
        unpadded = Axis(columns.size, 0, 0)
        x = _padded((x, *value), (*leading, rows, unpadded), mode, interpret)
        done = [Axis(axis.output, 0, 0) for axis in (*leading, rows)]
        return _padded((x, *value), (*done, columns), mode, interpret)
    outer = merged(leading)
    plan = MosaicPaddingPlan((*outer, rows, columns), mode)
    require(
        "PADDING",
        _elements(plan) <= ELEMENTS,
        f"the kernel for TPUs has a padded minor dimension in vector memory as a "
        f"whole, and {show(tuple(axis.output for axis in axes))} is too large for "
        "that; use implementation=None or 'xla'.",
        NoKernelError,
    )
    shape = tuple(axis.output for axis in plan.axes)
    source = x.reshape(tuple(axis.size for axis in plan.axes))
    values = [_merged_value(y, leading, outer) for y in value]
    block = plan.block
    (output,) = launch_blocks(
        _kernel,
        source,
        *values,
        operator="padding",
        grid=tuple(map(pl.cdiv, shape, block)),
        blocks=[
            Block(plan.source_block, _index_map(plan), tuple(range(len(shape)))),
            *(shared_block(y.shape, shape, block) for y in values),
            shared_block(shape, shape, block),
        ],
        outputs=(jax.ShapeDtypeStruct(shape, x.dtype),),
        scratch=[tpu.VMEM(sizes, np.dtype(np.int32)) for sizes in _scratch(plan)],
        interpret=interpret,
        plan=plan,
    )
    return output.reshape(tuple(axis.output for axis in axes))


def _merged_value(
    value: jax.Array, leading: Sequence[Axis], outer: Sequence[Axis]
) -> jax.Array:
    """The value in the merged dimensions: one, or one for each unpadded position."""
    if value.size == 1:
        return value.reshape((1,) * (len(outer) + 2))
    sizes = [1 if axis.is_padded else axis.size for axis in leading]
    shape = [1 if axis.is_padded else axis.size for axis in outer]
    return jnp.broadcast_to(value, (*sizes, 1, 1)).reshape((*shape, 1, 1))


def _source(axis: Axis, position: Any, mode: PaddingMode) -> Any:
    """The input position that any output position repeats."""
    # The last tile may reach past the end of the axis, and its sources must still be
    # inside the input. `stop` says that no position is too large.
    return axis.source(position, mode, stop=INT32_MAX)


def _index_map(plan: MosaicPaddingPlan) -> Callable[..., tuple[Any, ...]]:
    """Gives the block of the input that a program needs."""
    minor = len(plan.axes) - 2

    def index_map(*program: Any) -> tuple[Any, ...]:
        return tuple(
            _source(axis, index, plan.mode) if i < minor else index
            for i, (axis, index) in enumerate(zip(plan.axes, program, strict=True))
        )

    return index_map


def _elements(plan: MosaicPaddingPlan) -> int:
    """The elements of a block of the output, with the unused ones of its tiles."""
    *leading, rows, columns = plan.block
    return math.prod(leading) * padded(rows, SUBLANES) * padded(columns, LANES)


def _scratch(plan: MosaicPaddingPlan) -> list[tuple[int, int]]:
    """The sizes of the scratch matrices: as read, and after each axis is padded."""
    # A tile is loaded, gathered from and stored as a whole, so sizes are rounded up.
    *_, rows, columns = plan.source_block
    sizes = [rows, columns]
    shapes = [(padded(rows, SUBLANES), padded(columns, LANES))]
    for i, axis in enumerate(plan.axes[-2:]):
        if axis.is_padded:
            sizes[i] = axis.output
            shapes.append((padded(sizes[0], SUBLANES), padded(sizes[1], LANES)))
    return shapes if len(shapes) > 1 else []


def _kernel(x: Any, *references: Any, plan: MosaicPaddingPlan) -> None:
    """Writes a block of the output, matrix by matrix."""
    # Only CONSTANT has a value, as the second operand.
    constant = plan.mode is PaddingMode.CONSTANT
    value = references[0] if constant else None
    output, *scratch = references[constant:]
    leading = output.shape[:-2]
    # Along a padded leading dimension, all of the block is inside or all is outside.
    outside: list[Any] = [
        ~axis.is_inside(pl.program_id(i))
        for i, axis in enumerate(plan.axes[:-2])
        if axis.is_padded and constant
    ]

    def write(offset: Any, carry: Any) -> Any:
        positions = _unravelled(offset, leading)
        fill: Any = None if value is None else to_bits(_at(value, positions))
        bits = _matrix(to_bits(_at(x, positions)), scratch, fill, plan)
        for is_outside in outside:
            bits = jnp.where(is_outside, fill, bits)
        *_, height, width = output.shape
        output[positions] = from_bits(bits[:height, :width], output.dtype)
        return carry

    lax.fori_loop(0, math.prod(leading), write, 0)


def _unravelled(offset: Any, sizes: Sequence[int]) -> tuple[Any, ...]:
    """The positions in dimensions of these sizes of the element at this offset."""
    positions = []
    for size in reversed(sizes):
        positions.append(lax.rem(offset, jnp.int32(size)))
        offset = lax.div(offset, jnp.int32(size))
    return tuple(reversed(positions))


def _at(reference: Any, positions: Sequence[Any]) -> Any:
    """The matrix at these positions of a block, which has size 1 where it is shared."""
    sizes = reference.shape[:-2]
    return reference[
        tuple(0 if size == 1 else i for i, size in zip(positions, sizes, strict=True))
    ]


def _matrix(
    bits: Any, scratch: Sequence[Any], fill: Any, plan: MosaicPaddingPlan
) -> Any:
    """The bits of a matrix with its rows and columns padded."""
    if not scratch:
        return bits
    height, width = bits.shape
    scratch[0][:height, :width] = bits
    stages = [(i, axis) for i, axis in enumerate(plan.axes[-2:]) if axis.is_padded]
    for (i, axis), source, target in zip(stages, scratch, scratch[1:], strict=False):
        _pad(source, target, i, axis, fill, plan.mode)
    return scratch[-1][...]


def _pad(
    source: Any, target: Any, dimension: int, axis: Axis, fill: Any, mode: PaddingMode
) -> None:
    """Pads one dimension of a matrix, by tiles of the output."""
    tile = (SUBLANES, LANES)[dimension]
    shape = list(target.shape)
    shape[dimension] = tile
    vector = [1, 1]
    vector[dimension] = tile
    top = jnp.int32((axis.size - 1) // tile)

    def write(i: Any, carry: Any) -> Any:
        first = i * jnp.int32(tile)
        position = first + lax.broadcasted_iota(np.int32, vector, dimension)
        sources = jnp.broadcast_to(_source(axis, position, mode), shape)
        # The sources of the first and of the last element of the tile. In most modes
        # all sources are within a tile's length from the lower one, so in two tiles.
        # If WRAP begins anew within the tile, the last source is in a third tile.
        low, high = (
            lax.div(_source(axis, end, mode), jnp.int32(tile))
            for end in (first, first + jnp.int32(tile - 1))
        )
        if mode is not PaddingMode.WRAP:
            low = jnp.minimum(low, high)
        tiles = [low, jnp.minimum(low + 1, top)]
        tiles += [high] if mode is PaddingMode.WRAP else []
        values = jnp.zeros(shape, np.int32)
        for each in tiles:
            span = pl.ds(pl.multiple_of(each * tile, tile), tile)
            part = source[span, :] if dimension == 0 else source[:, span]
            part = jnp.take_along_axis(
                part, sources & (tile - 1), axis=dimension, mode="promise_in_bounds"
            )
            values = jnp.where(lax.div(sources, jnp.int32(tile)) == each, part, values)
        if mode is PaddingMode.CONSTANT:
            inside = jnp.broadcast_to(axis.is_inside(position), shape)
            values = jnp.where(inside, values, fill)
        span = pl.ds(pl.multiple_of(first, tile), tile)
        target[(span, slice(None)) if dimension == 0 else (slice(None), span)] = values
        return carry

    lax.fori_loop(0, target.shape[dimension] // tile, write, 0)
