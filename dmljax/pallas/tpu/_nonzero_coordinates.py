"""NONZERO_COORDINATES on a TPU: the compaction, the part in which XLA scatters.

A TPU has no scatter, and gathers only within a tile. So the numbers of the non-zeros
are compacted in two levels. In each row of 128 lanes, lane j looks for the non-zero of
rank j by bisection of the row's prefix sums, which the matrix unit makes. Then the rows
are laid over one another in order, each from the place on where the one before it ends.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu

from dmljax._check import NoKernelError, require
from dmljax._coordinates import by_lines, filled, is_nonzero, unravel
from dmljax._tensor import Outputs
from dmljax.pallas._launch import Block, launch_blocks
from dmljax.pallas.tpu._blocks import LANES

ROWS = 256  # of a block
SUBLANES = 8
INTEGER = np.dtype(np.int32)
# Rows that a block may reach: it begins within a tile, and its last row in another.
REACH = ROWS + 2 * SUBLANES


@by_lines
def nonzero_coordinates(
    x: jax.Array,
    *first: jax.Array,
    sizes: tuple[int, ...],
    rows: int,
    columns: int,
    fill: int | None,
    interpret: Any,
) -> Outputs:
    """The operator."""
    elements = x.shape[1]
    require(
        "NONZERO_COORDINATES",
        elements < 2**31 - ROWS * LANES,
        f"the kernel for TPUs counts {elements} elements in 32 bits, of which one is "
        "the sign; use implementation=None or 'xla'.",
        NoKernelError,
    )
    require(
        "NONZERO_COORDINATES",
        rows == elements,
        f"the kernel for TPUs writes {elements} rows, one for each element, not {rows};"
        " use implementation=None or 'xla'.",
        NoKernelError,
    )
    blocks = pl.cdiv(elements, ROWS * LANES)
    nonzero = jnp.pad(is_nonzero(x), ((0, 0), (0, blocks * ROWS * LANES - elements)))
    nonzero = nonzero.reshape(-1, blocks * ROWS, LANES)
    ones = nonzero.sum(2, dtype=np.int32)
    ends = jnp.cumsum(ones, axis=1, dtype=np.int32)
    flat = _compacted(nonzero.astype(jnp.bfloat16), ends - ones, interpret)
    flat = flat.reshape(flat.shape[0], -1)[:, :elements]
    count = ends[:, -1].astype(np.uint32)
    valid = lax.broadcasted_iota(np.uint32, flat.shape, 1) < count[:, None]
    number = sum((f[:, None] for f in first), flat.astype(np.uint32))
    coordinates = unravel(jnp.where(valid, number, 0), sizes, columns)
    return count, filled(coordinates, valid, fill)


def _compacted(nonzero: jax.Array, starts: jax.Array, interpret: Any) -> jax.Array:
    """The numbers of the non-zeros in order, int32; past the last one is anything.

    `nonzero` is (lines, rows, lanes), 1 or 0; `starts` is (lines, rows), how many there
    are before each row.
    """
    lines, rows, _ = nonzero.shape
    blocks = rows // ROWS
    (flat,) = launch_blocks(
        _kernel,
        starts.reshape(lines * blocks, 1, ROWS),
        nonzero,
        operator="nonzero_coordinates",
        grid=(lines, blocks),
        blocks=[
            Block(
                (1, 1, ROWS),
                lambda line, block: (line * np.int32(blocks) + block, 0, 0),
                (0, 1),
                scalar=True,
                elements=starts.size,
            ),
            Block(
                (1, ROWS, LANES),
                lambda line, block: (line, block, 0),
                (0, 1),
                elements=nonzero.size,
            ),
            Block(
                (),
                lambda *_: (),
                (),
                whole=True,
                elements=lines * blocks * REACH * LANES,
            ),
        ],
        outputs=(jax.ShapeDtypeStruct((lines, rows + REACH, LANES), np.int32),),
        scratch=[
            tpu.VMEM((ROWS, LANES), INTEGER),
            tpu.VMEM((REACH, LANES), INTEGER),
            tpu.SMEM((1,), INTEGER),
            tpu.SemaphoreType.DMA,
        ],
        in_order=True,
        interpret=interpret,
    )
    return flat


def _kernel(
    starts: Any,
    nonzero: Any,
    out: Any,
    turned: Any,
    window: Any,
    origin: Any,
    copied: Any,
) -> None:
    """A block's numbers, written from the tile on in which the last block's end."""
    line, block = pl.program_id(0), pl.program_id(1)
    first = starts[0, 0, 0]
    low = _tile_of(first)

    @pl.when(block > 0)
    def _() -> None:  # the tile that the last block has begun
        window[:SUBLANES] = window[pl.ds(pl.multiple_of(low - origin[0], SUBLANES), 8)]

    origin[0] = low
    turned[...] = _turned(nonzero[0], first, block)
    lane = lax.broadcasted_iota(np.int32, (1, LANES), 1)

    def lay(row: Any, carry: Any) -> Any:
        start = starts[0, 0, row]
        place = lax.div(start, jnp.int32(LANES)) - low
        numbers = turned[pl.ds(row, 1)]
        before = window[pl.ds(place, 1)]
        kept = lane < lax.rem(start, jnp.int32(LANES))
        window[pl.ds(place, 1)] = jnp.where(kept, before, numbers)
        window[pl.ds(place + 1, 1)] = numbers
        return carry

    lax.fori_loop(0, ROWS, lay, 0)
    target = out.at[line, pl.ds(pl.multiple_of(low, SUBLANES), REACH)]
    copy = tpu.make_async_copy(window, target, copied)
    copy.start()
    copy.wait()  # the next block writes over what is past the end of this one


def _tile_of(position: Any) -> Any:
    """The first row of the tile that has this position."""
    return lax.div(position, jnp.int32(SUBLANES * LANES)) * jnp.int32(SUBLANES)


def _turned(nonzero: Any, first: Any, block: Any) -> Any:
    """In each row the numbers of its non-zeros, from the lane on where they belong.

    They go on at lane 0 past the last. Where there are no more, is anything.
    """
    lane = lax.broadcasted_iota(np.int32, (ROWS, LANES), 1)
    ends = _sums(nonzero, _triangle(LANES, lambda i, j: i <= j))
    ones = _sums(nonzero, jnp.ones((LANES, LANES), nonzero.dtype))
    before = _sums(_triangle(ROWS, lambda i, j: i > j), ones.astype(nonzero.dtype))
    rank = (lane - first - before) & np.int32(LANES - 1)
    found = jnp.zeros((ROWS, LANES), np.int32)
    step = LANES // 2
    while step:  # as many of the row's elements have at most this rank
        end = jnp.take_along_axis(
            ends, found + np.int32(step - 1), axis=1, mode="promise_in_bounds"
        )
        found = jnp.where(end <= rank, found + np.int32(step), found)
        step //= 2
    row = lax.broadcasted_iota(np.int32, (ROWS, LANES), 0)
    return (block * np.int32(ROWS) + row) * np.int32(LANES) + found


def _sums(a: Any, b: Any) -> Any:
    """A product of matrices of small integers, which is exact."""
    return jnp.dot(a, b, preferred_element_type=np.float32).astype(np.int32)


def _triangle(size: int, holds: Any) -> Any:
    """A square matrix that is 1 where `holds(row, column)`."""
    row, column = (lax.broadcasted_iota(np.int32, (size, size), i) for i in (0, 1))
    return jnp.where(holds(row, column), 1.0, 0.0).astype(jnp.bfloat16)
