"""PADDING on a TPU.

A program has a block of the output. Along a leading dimension that is padded, the
pipeline fetches the block that `source_index` names. The two minor dimensions are in
tiles: where they are padded, a block has all of them, and each tile of the result takes
its elements out of two or three tiles, of which the formula says which.
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
from dmljax._coordinates import Axis, PaddingMode, merged
from dmljax._tensor import INT32_MAX, Outputs
from dmljax.pallas._launch import Block, launch_blocks
from dmljax.pallas.tpu._blocks import (
    LANES,
    block_of,
    for_mosaic,
    from_words,
    in_words,
    padded,
    shared_block,
)

SUBLANES = 8  # rows of a tile of elements of 4 bytes, in which all are rearranged
ELEMENTS = 2**19  # of a block at most: its copies share 16 MiB with what is fetched


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is known before the launch.

    Attributes:
      axes: at least two; of the leading ones no two neighbours are unpadded.
      mode: where the values of the padding come from.
    """

    axes: tuple[Axis, ...]
    mode: PaddingMode

    @property
    def block(self) -> tuple[int, ...]:
        """The sizes of a block of the output."""
        shape = tuple(axis.output for axis in self.axes)
        minor = len(shape) - 2
        given = {
            i: 1 if i < minor else axis.output
            for i, axis in enumerate(self.axes)
            if axis.is_padded
        }
        return block_of(shape, given)

    @property
    def source_block(self) -> tuple[int, ...]:
        """The sizes of the block of the input that it needs."""
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
    """The operator."""
    batch = x.ndim - len(start)
    pads = [(0, 0)] * max(batch, 2 - len(start)) + list(zip(start, end, strict=True))
    ones = (1,) * (len(pads) - x.ndim)
    taken = [y.reshape(ones + y.shape) for y in for_mosaic("padding", (x, *value))]
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
    return (padded_x.reshape(shape[len(ones) :]).astype(x.dtype),)


def _padded(
    operands: Sequence[jax.Array],
    axes: tuple[Axis, ...],
    mode: PaddingMode,
    interpret: Any,
) -> jax.Array:
    """The padded array: by rows and then by columns, if a block can't have both."""
    x, *value = operands
    *leading, rows, columns = axes
    both = rows.is_padded and columns.is_padded
    if both and _elements(Plan(axes, mode)) > ELEMENTS:
        unpadded = Axis(columns.size, 0, 0)
        x = _padded((x, *value), (*leading, rows, unpadded), mode, interpret)
        done = [Axis(axis.output, 0, 0) for axis in (*leading, rows)]
        return _padded((x, *value), (*done, columns), mode, interpret)
    outer = merged(leading)
    plan = Plan((*outer, rows, columns), mode)
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
            Block(plan.source_block, _place(plan), tuple(range(len(shape)))),
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
    """The value in the merged dimensions: one, or one for each unpadded coordinate."""
    if value.size == 1:
        return value.reshape((1,) * (len(outer) + 2))
    sizes = [1 if axis.is_padded else axis.size for axis in leading]
    shape = [1 if axis.is_padded else axis.size for axis in outer]
    return jnp.broadcast_to(value, (*sizes, 1, 1)).reshape((*shape, 1, 1))


def _source(axis: Axis, position: Any, mode: PaddingMode) -> Any:
    """The input coordinate, of any position: a block may reach past the end."""
    return axis.source(position, mode, stop=INT32_MAX)


def _place(plan: Plan) -> Callable[..., tuple[Any, ...]]:
    """Which block of the input a program needs."""
    minor = len(plan.axes) - 2

    def place(*program: Any) -> tuple[Any, ...]:
        return tuple(
            _source(axis, number, plan.mode) if i < minor else number
            for i, (axis, number) in enumerate(zip(plan.axes, program, strict=True))
        )

    return place


def _elements(plan: Plan) -> int:
    """Of a block of the output, with what its tiles do not use."""
    *leading, rows, columns = plan.block
    return math.prod(leading) * padded(rows, SUBLANES) * padded(columns, LANES)


def _scratch(plan: Plan) -> list[tuple[int, int]]:
    """The sizes of a matrix of words: as it is read, and after each axis's padding."""
    *_, rows, columns = plan.source_block
    sizes = [rows, columns]
    shapes = [(padded(rows, SUBLANES), padded(columns, LANES))]
    for i, axis in enumerate(plan.axes[-2:]):
        if axis.is_padded:
            sizes[i] = axis.output
            shapes.append((padded(sizes[0], SUBLANES), padded(sizes[1], LANES)))
    return shapes if len(shapes) > 1 else []


def _kernel(x: Any, *references: Any, plan: Plan) -> None:
    """A block of the output, matrix by matrix."""
    constant = plan.mode is PaddingMode.CONSTANT
    value = references[0] if constant else None
    output, *scratch = references[constant:]
    leading = output.shape[:-2]
    outside: list[Any] = [
        ~axis.is_inside(pl.program_id(i))
        for i, axis in enumerate(plan.axes[:-2])
        if axis.is_padded and constant
    ]

    def put(number: Any, carry: Any) -> Any:
        place = _unravelled(number, leading)
        fill: Any = None if value is None else in_words(_at(value, place))
        words = _matrix(in_words(_at(x, place)), scratch, fill, plan)
        for is_outside in outside:
            words = jnp.where(is_outside, fill, words)
        *_, height, width = output.shape
        output[place] = from_words(words[:height, :width], output.dtype)
        return carry

    lax.fori_loop(0, math.prod(leading), put, 0)


def _unravelled(number: Any, sizes: Sequence[int]) -> tuple[Any, ...]:
    """The coordinates in dimensions of these sizes of the element with this number."""
    place = []
    for size in reversed(sizes):
        place.append(lax.rem(number, jnp.int32(size)))
        number = lax.div(number, jnp.int32(size))
    return tuple(reversed(place))


def _at(reference: Any, place: Sequence[Any]) -> Any:
    """The matrix at a place of a block, which has size 1 where it is shared."""
    sizes = reference.shape[:-2]
    return reference[
        tuple(0 if size == 1 else i for i, size in zip(place, sizes, strict=True))
    ]


def _matrix(words: Any, scratch: Sequence[Any], fill: Any, plan: Plan) -> Any:
    """The matrix of words with its rows and columns padded."""
    if not scratch:
        return words
    height, width = words.shape
    scratch[0][:height, :width] = words
    stages = [(i, axis) for i, axis in enumerate(plan.axes[-2:]) if axis.is_padded]
    for (i, axis), source, target in zip(stages, scratch, scratch[1:], strict=False):
        _repeat(source, target, i, axis, fill, plan.mode)
    return scratch[-1][...]


def _repeat(
    source: Any, target: Any, dimension: int, axis: Axis, fill: Any, mode: PaddingMode
) -> None:
    """Pads one dimension, by tiles: what is in a tile is found by its place in it.

    A tile of the output repeats at most two runs of as many elements as it has, of
    which each lies in two tiles: only where WRAP begins anew do they differ.
    """
    tile = (SUBLANES, LANES)[dimension]
    shape = list(target.shape)
    shape[dimension] = tile
    line = [1, 1]
    line[dimension] = tile
    top = jnp.int32((axis.size - 1) // tile)

    def put(number: Any, carry: Any) -> Any:
        first = number * jnp.int32(tile)
        position = first + lax.broadcasted_iota(np.int32, line, dimension)
        index = jnp.broadcast_to(_source(axis, position, mode), shape)
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
            where = pl.ds(pl.multiple_of(each * tile, tile), tile)
            part = source[where, :] if dimension == 0 else source[:, where]
            part = jnp.take_along_axis(
                part, index & (tile - 1), axis=dimension, mode="promise_in_bounds"
            )
            values = jnp.where(lax.div(index, jnp.int32(tile)) == each, part, values)
        if mode is PaddingMode.CONSTANT:
            inside = jnp.broadcast_to(axis.is_inside(position), shape)
            values = jnp.where(inside, values, fill)
        where = pl.ds(pl.multiple_of(first, tile), tile)
        target[(where, slice(None)) if dimension == 0 else (slice(None), where)] = (
            values
        )
        return carry

    lax.fori_loop(0, target.shape[dimension] // tile, put, 0)
