"""NONZERO_COORDINATES on a TPU: one launch, for the part in which XLA scatters.

XLA packs the elements into bit words, counts the bits, and turns offsets into
coordinates. In between, the kernel *compacts*: it writes the offsets of the set bits
one behind the other. XLA's scatter takes 7 cycles for each element, by the compiler's
estimate, and the kernel a tenth of one.

A *vector* is 128 neighbouring elements of a line, one for each lane, and a program has
a block of VECTORS of them. A TPU has no scatter, and gathers only within a
register, so there are two steps. The drawing has vectors of 4 lanes:

    elements    0 x x 0 | 0 0 0 0 | x x 0 x      offsets 1, 2, 8, 9 and 11 are not zero
    packed      1 2 ? ? | ? ? ? ? | 11 ? 8 9     step 1: each vector alone
    output      1 2 8 9 | 11 ? ? ?               step 2: vectors overwrite each other

1. In each vector, the non-zeros move next to each other, to the lanes where they belong
   in the output; behind the last lane they go on at lane 0. A lane finds its element by
   bisection of the vector's prefix sums.
2. Vector by vector, the program overwrites a *window* of the output from the offset on
   at which the vector before ended. The lanes behind a vector's non-zeros are
   undefined (?), and the next vector overwrites them.

A window starts at a register, and usually overlaps the last block's window. So the
programs of a line run in order. If `size=` asks for K rows, a program whose first row
is K or later does nothing, and the output has room for K rows and a window.

Here belongs how a line is compacted. `_nonzero_forms` has the formulas.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu

from dmljax._check import NoKernelError
from dmljax._nonzero_forms import BIT_WORD, bit_words, fill_rows, is_nonzero, unravel
from dmljax._types import Outputs
from dmljax.pallas.tpu import LANES, SUBLANES
from dmljax.pallas.tpu._launch import launch_blocks

VECTORS = 256  # of a block
# The output of a block starts in the first register of its window, in row 7 or before.
# So its last vector begins in row 7 + 255 or before, and ends one row later.
WINDOW = VECTORS + SUBLANES  # rows
WORDS = LANES // BIT_WORD  # of a vector
INTEGER = np.dtype(np.int32)


def nonzero_coordinates(
    x: jax.Array,
    *origins: jax.Array,
    sizes: tuple[int, ...],
    rows: int,
    columns: int,
    fill: int | None,
) -> Outputs:
    """Finds the non-zeros of lines.

    `x`, `sizes` and `rows` are those of a `Lines`. `origins` has its `origin`, or
    nothing if each is 0.
    """
    elements = x.shape[1]
    # Mosaic has no integers of 64 bits, so offsets are int32, also those that the last
    # block has past the end.
    if elements >= 2**31 - VECTORS * LANES:
        raise NoKernelError(
            f"NONZERO_COORDINATES: the kernel for TPUs counts {elements} elements in "
            "31 bits; use implementation=None or 'xla'."
        )
    length = pl.cdiv(elements, VECTORS * LANES) * VECTORS * LANES
    words = bit_words(jnp.pad(is_nonzero(x), [(0, 0), (0, length - elements)]))
    words = words.reshape(len(x), length // LANES, WORDS)
    counts = lax.population_count(words).sum(2, dtype=np.int32)
    ends = jnp.cumsum(counts, axis=1, dtype=np.int32)
    found = min(rows, elements)
    flat = _compact(words, ends - counts, found)
    flat = flat.reshape(flat.shape[0], -1)[:, :found]
    flat = jnp.pad(flat, ((0, 0), (0, rows - found)))
    count = ends[:, -1].astype(np.uint32)
    valid = lax.broadcasted_iota(np.uint32, flat.shape, 1) < count[:, None]
    offset = flat.astype(np.uint32)
    for origin in origins:
        offset += origin[:, None]
    coordinates = unravel(jnp.where(valid, offset, 0), sizes, columns)
    return count, fill_rows(coordinates, valid, fill)


def _compact(words: jax.Array, before: jax.Array, limit: int) -> jax.Array:
    """Returns the offsets of the first `limit` non-zeros in order, or more of them.

    `words` is (lines, vectors, bit words of a vector). `before` is (lines, vectors),
    and has the number of non-zeros before each vector. The result is undefined past the
    last non-zero.
    """
    lines, vectors, _ = words.shape
    blocks = vectors // VECTORS
    # The program reads these one by one, as scalars.
    of_before = pl.BlockSpec(
        (1, 1, VECTORS),
        lambda line, block: (line * np.int32(blocks) + block, 0, 0),
        memory_space=tpu.SMEM,
    )
    # The words of a block fill whole registers: those of 32 vectors are one row.
    height = VECTORS * WORDS // LANES
    of_words = pl.BlockSpec((1, height, LANES), lambda line, block: (line, block, 0))
    # Windows overlap, and start at any register: the kernel writes them itself.
    of_output = pl.BlockSpec(memory_space=pl.ANY)
    output_vectors = pl.cdiv(limit, SUBLANES * LANES) * SUBLANES + WINDOW
    (flat,) = launch_blocks(
        _compact_block,
        before.reshape(lines * blocks, 1, VECTORS),
        words.astype(np.int32).reshape(lines, blocks * height, LANES),
        operator="nonzero_coordinates",
        grid=(lines, blocks),
        blocks=[of_before, of_words, of_output],
        outputs=[jax.ShapeDtypeStruct((lines, output_vectors, LANES), np.int32)],
        scratch=[
            tpu.VMEM((VECTORS, LANES), INTEGER),
            tpu.VMEM((WINDOW, LANES), INTEGER),
            tpu.SMEM((1,), INTEGER),
            tpu.SemaphoreType.DMA,
        ],
        in_order=True,
        limit=limit,
    )
    return flat


def _compact_block(before: Any, words: Any, *memories: Any, limit: int) -> None:
    """Writes the offsets of a block's non-zeros, if one of them is needed."""

    @pl.when(before[0, 0, 0] < np.int32(limit))
    def _() -> None:
        _write_block(before, words, *memories)


def _write_block(
    before: Any,
    words: Any,
    out: Any,
    packed: Any,
    window: Any,
    last_start: Any,
    copied: Any,
) -> None:
    """Writes the offsets of a block's non-zeros."""
    line, block = pl.program_id(0), pl.program_id(1)
    before_block = before[0, 0, 0]
    # The window starts at the register of the output that has the first non-zero. The
    # starts are vectors of the output.
    start = lax.div(before_block, jnp.int32(SUBLANES * LANES)) * jnp.int32(SUBLANES)

    # The window still has the output of the last block. The register in which the last
    # block ended becomes the first one.
    @pl.when(block > 0)
    def _() -> None:
        end = pl.multiple_of(start - last_start[0], SUBLANES)
        window[:SUBLANES] = window[pl.ds(end, SUBLANES)]

    last_start[0] = start
    packed[...] = _pack(words[0], before_block, block)
    lane = lax.broadcasted_iota(np.int32, (1, LANES), 1)

    def overwrite(vector: Any, carry: Any) -> Any:
        first = before[0, 0, vector]
        row = lax.div(first, jnp.int32(LANES)) - start
        offsets = packed[pl.ds(vector, 1)]
        earlier = window[pl.ds(row, 1)]
        is_earlier = lane < lax.rem(first, jnp.int32(LANES))
        window[pl.ds(row, 1)] = jnp.where(is_earlier, earlier, offsets)
        window[pl.ds(row + 1, 1)] = offsets
        return carry

    lax.fori_loop(0, VECTORS, overwrite, 0)
    target = out.at[line, pl.ds(pl.multiple_of(start, SUBLANES), WINDOW)]
    copy = tpu.make_async_copy(window, target, copied)
    copy.start()
    # The next block overwrites the elements past the end of this one, so this copy has
    # to end before that one starts.
    copy.wait()


def _pack(words: Any, before_block: Any, block: Any) -> Any:
    """Moves the offsets of the non-zeros of each vector to the lanes of the output.

    `before_block` is the number of non-zeros of the line before the block.
    """
    vector, lane = (lax.broadcasted_iota(np.int32, (VECTORS, LANES), i) for i in (0, 1))
    # A row has the words of so many vectors. Each lane gathers the word of its bit.
    vectors = LANES // WORDS
    row = jnp.broadcast_to(words[:, None], (len(words), vectors, LANES))
    source = (vector & np.int32(vectors - 1)) * np.int32(WORDS)
    source += lax.div(lane, np.int32(BIT_WORD))
    word = _gather(row.reshape(VECTORS, LANES), source)
    bit = lax.shift_right_logical(word, lane & np.int32(BIT_WORD - 1)) & np.int32(1)
    # The matrix unit adds numbers of this type exactly, if they are 0 or 1.
    nonzero = bit.astype(np.float32).astype(jnp.bfloat16)
    # A product with a triangle of ones is a cumulative sum, and runs on the matrix
    # unit.
    ends = _multiply(nonzero, _triangle(LANES, lambda i, j: i <= j))
    counts = _multiply(nonzero, jnp.ones((LANES, LANES), nonzero.dtype))
    earlier = _triangle(VECTORS, lambda i, j: i > j)
    before_vector = _multiply(earlier, counts.astype(nonzero.dtype))
    # The rank of the non-zero that belongs in each lane, among those of the vector.
    rank = (lane - before_block - before_vector) & np.int32(LANES - 1)
    # Bisection: `found` counts the elements of the vector before that non-zero.
    found = jnp.zeros_like(lane)
    step = LANES // 2
    while step:
        last = found + np.int32(step - 1)
        end = _gather(ends, last)
        found = jnp.where(end <= rank, found + np.int32(step), found)
        step //= 2
    return (block * np.int32(VECTORS) + vector) * np.int32(LANES) + found


def _gather(x: Any, lane: Any) -> Any:
    return jnp.take_along_axis(x, lane, axis=1, mode="promise_in_bounds")


def _multiply(a: Any, b: Any) -> Any:
    """Multiplies two matrices of small integers."""
    # The matrix unit sums products of bfloat16 in float32, which has all integers up to
    # 2^24. The entries are at most 128, and bfloat16 has all integers up to 256.
    return jnp.dot(a, b, preferred_element_type=np.float32).astype(np.int32)


def _triangle(size: int, holds: Any) -> Any:
    """Returns a square matrix that is 1 where `holds(row, column)`."""
    row, column = (lax.broadcasted_iota(np.int32, (size, size), i) for i in (0, 1))
    return jnp.where(holds(row, column), 1.0, 0.0).astype(jnp.bfloat16)
