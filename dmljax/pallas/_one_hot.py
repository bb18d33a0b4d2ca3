"""ONE_HOT on a GPU.

Elements of 4 bytes and more are given one by one, by their numbers. For narrower ones
that is too much arithmetic: a program has a tile of the output, and reads an index once
for a row of the tile, or for a column where positions lie below one another.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from dmljax._one_hot import countable, is_lit
from dmljax._operator import Outputs
from dmljax._tensor import index_mode
from dmljax.pallas._elementwise import Number, elementwise, on_words, place_in
from dmljax.pallas._launch import launch, load, store

# Of a tile, and of its rows at most; measured on an H200.
TILE_BYTES, ROW_BYTES = 4096, 1024


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is known before the launch.

    Attributes:
      batch: the sizes outside of the axis.
      size: the positions along the axis.
      inner: the product of the sizes inside of the axis.
      shared: those of the sizes in `batch` that the index, on and off have.
      itemsize: bytes of an element.
      integer: the type of a place in the output.
      interpret: whether Pallas' interpreter runs the kernel.
    """

    batch: tuple[int, ...]
    size: int
    inner: int
    shared: tuple[tuple[int, ...], ...]
    itemsize: int
    integer: np.dtype
    interpret: bool

    @property
    def outer(self) -> int:
        """How many sequences there are outside of the axis."""
        return math.prod(self.batch)

    @property
    def view(self) -> tuple[int, int, int]:
        """The output in three dimensions, of which the last two are tiled."""
        if self.inner == 1:
            return 1, self.outer, self.size
        return self.outer, self.size, self.inner

    @property
    def tile(self) -> tuple[int, int]:
        """The rows and columns of a tile."""
        columns = min(pl.next_power_of_2(self.view[2]), ROW_BYTES // self.itemsize)
        return TILE_BYTES // self.itemsize // columns, columns

    @property
    def tiles(self) -> tuple[int, int]:
        """How many tiles there are down and across."""
        sizes = zip(self.view[1:], self.tile, strict=True)
        down, across = (pl.cdiv(size, tile) for size, tile in sizes)
        return down, across


@on_words
def one_hot(
    index: jax.Array,
    on: jax.Array,
    off: jax.Array,
    *,
    size: int,
    axis: int,
    interpret: bool,
) -> Outputs:
    """The operator."""
    if jnp.iinfo(index.dtype).bits < 8:
        index = index.astype(np.int8)
    shape = list(np.broadcast_shapes(index.shape, on.shape, off.shape))
    shape[axis] = size
    narrow = off.dtype.itemsize < 4 and math.prod(shape) > 0
    form = _by_tiles if narrow else _by_elements
    return form((index, on, off), tuple(shape), axis + len(shape), interpret)


def _by_elements(
    operands: Sequence[jax.Array], shape: tuple[int, ...], axis: int, interpret: bool
) -> Outputs:
    def element(number: Number, *loads: Any) -> Any:
        indices, lit, unlit = (
            load(place_in(operand.shape, number, shape))
            for load, operand in zip(loads, operands, strict=True)
        )
        within, _ = number.divided(math.prod(shape[axis + 1 :]))
        indices, position = countable(indices), within.divided(shape[axis])[1]
        hot = is_lit(indices, position.astype(indices.dtype), shape[axis])
        return jnp.where(hot, lit, unlit)

    return elementwise(
        element,
        *operands,
        shape=shape,
        operator="one_hot",
        warps=4,
        interpret=interpret,
    )


def _by_tiles(
    operands: Sequence[jax.Array], shape: tuple[int, ...], axis: int, interpret: bool
) -> Outputs:
    elements, dtype = math.prod(shape), operands[-1].dtype
    with index_mode(elements) as integer:
        plan = Plan(
            batch=shape[:axis],
            size=shape[axis],
            inner=math.prod(shape[axis + 1 :]),
            shared=tuple(operand.shape[:axis] for operand in operands),
            itemsize=dtype.itemsize,
            integer=integer,
            interpret=interpret,
        )
        (output,) = launch(
            _kernel,
            *(operand.ravel() for operand in operands),
            operator="one_hot",
            grid=(plan.view[0] * math.prod(plan.tiles),),
            outputs=(jax.ShapeDtypeStruct((elements,), dtype),),
            warps=4,
            interpret=interpret,
            plan=plan,
        )
    return (output.reshape(shape),)


def _kernel(index: Any, on: Any, off: Any, out: Any, *, plan: Plan) -> None:
    """A tile of the output."""
    program = pl.program_id(0)
    down, across = plan.tiles
    group = lax.div(program, jnp.int32(down * across))
    i = lax.rem(lax.div(program, jnp.int32(across)), jnp.int32(down))
    j = lax.rem(program, jnp.int32(across))
    rows, columns = plan.tile
    row = (i * rows + lax.iota(np.int32, rows))[:, None]
    column = (j * columns + lax.iota(np.int32, columns))[None, :]
    outer, position = (row, column) if plan.inner == 1 else (group, row)
    _, height, width = plan.view
    place = plan.integer.type(height) * group.astype(plan.integer)
    place = (place + row.astype(plan.integer)) * plan.integer.type(width)
    place = place + column.astype(plan.integer)

    def put(inside: Any) -> None:
        # An index varies along one dimension: only what is outside there is not read.
        edge: Any = (row < height) if plan.inner == 1 else (column < width)
        edge = None if inside is None else edge

        def read(reference: Any, where: Any) -> Any:
            shared = jnp.ndim(where) == 0
            return reference[where] if shared else load(reference.at[where], mask=edge)

        places = [_place(shared, outer, plan) for shared in plan.shared]
        if plan.inner > 1:
            places[0] = places[0] * plan.integer.type(width)
            places[0] = places[0] + column.astype(plan.integer)
        indices, lit, unlit = map(read, (index, on, off), places)
        indices = countable(indices)
        hot = is_lit(indices, position.astype(indices.dtype), plan.size)
        values = jnp.where(jnp.broadcast_to(hot, plan.tile), lit, unlit)
        where: Any = place
        if plan.interpret and inside is not None:  # a masked-off lane writes back
            where = jnp.where(inside, place, math.prod(plan.view))
        store(out.at[where], values, mask=inside)

    whole = (i < height // rows) & (j < width // columns)
    pl.when(whole)(lambda: put(None))
    if height % rows or width % columns:
        pl.when(~whole)(lambda: put((row < height) & (column < width)))


def _place(shared: tuple[int, ...], outer: Any, plan: Plan) -> Any:
    """Where an operand of the sizes `shared` has the sequences with numbers `outer`."""
    number = Number(plan.integer.type(0), outer.astype(np.uint32))
    return place_in(shared, number, plan.batch)
