"""NONZERO_COORDINATES on a GPU: count, scan, write.

Three launches and no communication between blocks. The first reads the input once and
leaves a bit for each element, the number of non-zeros before each word of 32 bits, and
that of each block. The second turns the blocks' counts into their first rows. The third
writes the rows: a crowded block goes through its elements, of which each knows its row;
a sparse one goes through its rows, of which each looks up its element. So the work is
that of the output, and the stores are contiguous in both.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from dmljax._operator import Outputs
from dmljax._tensor import packed_strides
from dmljax.pallas._launch import launch, load, store

WORD = 32
BLOCK = 8192  # elements to a block
LANES = 512  # rows that are written at a time
CROWDED = BLOCK // 4  # from so many non-zeros on, a block goes through its elements


def nonzero_coordinates(
    bits: jax.Array,
    *,
    zeros: tuple[int, ...],
    sizes: tuple[int, ...],
    columns: int,
    fill: int | None,
    interpret: bool,
) -> Outputs:
    """The operator for (batch, elements) unsigned bits, of which `zeros` mean zero."""
    batch, elements = bits.shape
    blocks = -(-elements // BLOCK)
    words = jax.ShapeDtypeStruct((batch, blocks * BLOCK // WORD), np.uint32)
    before = jax.ShapeDtypeStruct(words.shape, np.uint16)
    per_block = jax.ShapeDtypeStruct((batch, blocks), np.uint32)
    per_line = jax.ShapeDtypeStruct((batch,), np.uint32)
    rows = jax.ShapeDtypeStruct((batch, elements, columns), np.uint32)
    packed, ranks, counts = launch(
        _count,
        bits,
        name="nonzero_coordinates_count",
        grid=(blocks * batch,),
        outputs=(words, before, per_block),
        warps=8,
        interpret=interpret,
        zeros=zeros,
        elements=elements,
    )
    starts, count = launch(
        _scan,
        counts,
        name="nonzero_coordinates_scan",
        grid=(batch,),
        outputs=(per_block, per_line),
        warps=8,
        interpret=interpret,
        blocks=blocks,
    )
    (coordinates,) = launch(
        _write,
        *(packed, ranks, counts, starts, count),
        name="nonzero_coordinates_write",
        grid=(blocks * batch,),
        outputs=(rows,),
        warps=4,
        interpret=interpret,
        sizes=(1,) * (columns - len(sizes)) + sizes[len(sizes) - columns :],
        elements=elements,
        fill=fill,
    )
    return count, coordinates


def _block_and_line(blocks: int) -> tuple[Any, Any]:
    """What a program works on. The grid is flat: a GPU limits its other dimensions."""
    program = pl.program_id(0)
    return lax.rem(program, jnp.int32(blocks)), lax.div(program, jnp.int32(blocks))


def _count(
    bits: Any, words: Any, ranks: Any, counts: Any, *, zeros: Any, elements: int
) -> None:
    """A block's bits, its words' ranks and its count."""
    block, line = _block_and_line(counts.shape[1])
    shape = (BLOCK // WORD, WORD)
    word = lax.broadcasted_iota(np.int32, shape, 0)
    lane = lax.broadcasted_iota(np.int32, shape, 1)
    element = block * BLOCK + word * WORD + lane
    value = load(bits.at[line, element], mask=element < elements, other=zeros[0])
    nonzero = jnp.ones(shape, bool)
    for zero in zeros:
        nonzero &= value != jnp.asarray(zero, value.dtype)
    bit = jnp.where(nonzero, jnp.uint32(1) << lane.astype(np.uint32), jnp.uint32(0))
    ones = jnp.sum(nonzero.astype(np.int32), axis=1)
    ends = jnp.cumsum(ones)
    place = block * shape[0] + lax.iota(np.int32, shape[0])
    store(words.at[line, place], jnp.sum(bit, axis=1, dtype=np.uint32))
    store(ranks.at[line, place], (ends - ones).astype(np.uint16))
    counts[line, block] = jnp.sum(ones).astype(np.uint32)


def _scan(counts: Any, starts: Any, count: Any, *, blocks: int) -> None:
    """The first row of each block, and the count of the line."""
    line = pl.program_id(0)
    lanes = min(4096, pl.next_power_of_2(blocks))

    def step(i: Any, total: Any) -> Any:
        block = i * lanes + lax.iota(np.int32, lanes)
        inside = block < blocks
        ones = load(counts.at[line, block], mask=inside, other=0).astype(np.int32)
        ends = total + jnp.cumsum(ones)
        row = jnp.where(inside, block, blocks)
        store(starts.at[line, row], (ends - ones).astype(np.uint32), mask=inside)
        return total + jnp.sum(ones)

    total = lax.fori_loop(0, pl.cdiv(blocks, lanes), step, jnp.int32(0))
    count[line] = total.astype(np.uint32)


def _write(
    words: Any,
    ranks: Any,
    counts: Any,
    starts: Any,
    count: Any,
    out: Any,
    *,
    sizes: tuple[int, ...],
    elements: int,
    fill: int | None,
) -> None:
    """The rows of a block's non-zeros, and its share of the rows past the count."""
    block, line = _block_and_line(counts.shape[1])
    width = pl.next_power_of_2(len(sizes))
    column = lax.broadcasted_iota(np.int32, (LANES, width), 1)
    first = block * (BLOCK // WORD)
    start, here = starts[line, block].astype(np.int32), counts[line, block]
    here = here.astype(np.int32)

    def put(row: Any, valid: Any, values: Any) -> None:
        row = jnp.where(valid, row, elements)[:, None]
        mask = valid[:, None] & (column < len(sizes))
        store(out.at[line, row, column], values, mask=mask)

    def by_element(i: Any, carry: Any) -> Any:
        element = i * LANES + lax.iota(np.int32, LANES)
        place, lane = first + element // WORD, (element % WORD).astype(np.uint32)
        word = load(words.at[line, place])
        lower = word & ((jnp.uint32(1) << lane) - 1)
        row = start + load(ranks.at[line, place]).astype(np.int32) + _ones(lower)
        number = block * BLOCK + element
        put(row, (word >> lane) & 1 != 0, _coordinates(number, column, sizes))
        return carry

    def by_row(i: Any, carry: Any) -> Any:
        rank = i * LANES + lax.iota(np.int32, LANES)
        low = jnp.zeros((LANES,), np.int32)
        step = BLOCK // WORD // 2
        while step:  # the last word of at most this rank
            middle = load(ranks.at[line, first + low + step]).astype(np.int32)
            low = jnp.where(middle <= rank, low + step, low)
            step //= 2
        rest = rank - load(ranks.at[line, first + low]).astype(np.int32)
        lane = _place_of_bit(load(words.at[line, first + low]), rest)
        number = block * BLOCK + low * WORD + lane
        put(start + rank, rank < here, _coordinates(number, column, sizes))
        return carry

    crowded = (here > CROWDED).astype(np.int32)  # a loop of no steps is a branch
    zero = jnp.int32(0)
    lax.fori_loop(0, (1 - crowded) * ((here + LANES - 1) // LANES), by_row, zero)
    lax.fori_loop(0, crowded * jnp.int32(BLOCK // LANES), by_element, zero)
    if fill is not None:
        total = count[line].astype(np.int32)
        values = jnp.full((LANES, width), fill, np.uint32)
        _fill_past_the_count(put, values, total, block * BLOCK, elements)


def _fill_past_the_count(
    put: Callable[..., None], values: Any, total: Any, first: Any, elements: int
) -> None:
    """The rows of a block, from `first` on, that lie past the count of the line."""

    def step(i: Any, carry: Any) -> Any:
        row = first + i * LANES + lax.iota(np.int32, LANES)
        put(row, (row >= total) & (row < elements), values)
        return carry

    begin = jnp.clip(total - first, 0, BLOCK) // LANES
    lax.fori_loop(begin, jnp.int32(BLOCK // LANES), step, jnp.int32(0))


def _coordinates(number: Any, column: Any, sizes: tuple[int, ...]) -> Any:
    """(LANES, width): the coordinates of the elements with these numbers."""
    number = jnp.broadcast_to(number.astype(np.uint32)[:, None], column.shape)
    values = jnp.zeros(column.shape, np.uint32)
    for axis, (size, stride) in enumerate(
        zip(sizes, packed_strides(sizes), strict=True)
    ):
        value = number // jnp.uint32(stride) % jnp.uint32(size)
        values = jnp.where(column == axis, value, values)
    return values


def _partial_sums(word: Any) -> tuple[Any, Any, Any]:
    """How many bits are set in each 2, 4 and 8 bits: Triton has no population count."""
    twos = word - ((word >> 1) & jnp.uint32(0x55555555))
    fours = (twos & jnp.uint32(0x33333333)) + ((twos >> 2) & jnp.uint32(0x33333333))
    return twos, fours, (fours + (fours >> 4)) & jnp.uint32(0x0F0F0F0F)


def _ones(word: Any) -> Any:
    """How many bits of `word` are set."""
    *_, eights = _partial_sums(word)
    return ((eights * jnp.uint32(0x01010101)) >> 24).astype(np.int32)


def _place_of_bit(word: Any, rank: Any) -> Any:
    """Where the set bit of `word` lies that has `rank` set ones below it."""
    twos, fours, eights = _partial_sums(word)
    sixteens = (eights + (eights >> 8)) & jnp.uint32(0x00FF00FF)
    rest, place = rank.astype(np.uint32), jnp.zeros_like(word)
    for half, sums in ((16, sixteens), (8, eights), (4, fours), (2, twos), (1, word)):
        below = (sums >> place) & jnp.uint32(max(2 * half - 1, 1))
        up = below <= rest
        rest = jnp.where(up, rest - below, rest)
        place = jnp.where(up, place + jnp.uint32(half), place)
    return place.astype(np.int32)
