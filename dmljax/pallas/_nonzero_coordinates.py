"""NONZERO_COORDINATES on a GPU: count, scan, write.

Three launches and no communication between blocks. The first reads the input once and
leaves a bit for each element, the number of non-zeros before each word of 32 bits, and
that of each block. The second turns the blocks' counts into their first rows. The third
writes the rows: a crowded block goes through its elements, of which each knows its row;
a sparse one goes through its words, the first set bits of them all, then the second
ones; in a full one elements and rows are the same. What is past the count is filled
by programs of their own in the same launch.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from dmljax._coordinates import (
    by_lines,
    is_nonzero,
    last_sizes,
    zero_patterns,
)
from dmljax._tensor import Outputs, index_mode, is_floating, packed_strides
from dmljax.pallas._launch import launch, load, store

WORD = 32
# Measured on an H200 over densities from 0.1 % to 100 % and elements of 1, 2 and 4
# bytes: none is the best for each, this is for all.
BLOCK = 8192  # elements
CROWDED = 16  # a block with more non-zeros than one in so many visits its elements
ELEMENTS = 2048  # that a crowded block visits at a time
ROWS = 512  # that a full block writes at a time
CHUNK = 2048  # values past the count that are written at a time
COUNT_BYTES = 4096  # that a warp reads in the first launch
SCANNED = 4096  # counts of blocks that the second launch adds up at a time
WARPS = 4  # of a program in the last


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is known before a launch, the same for all three.

    Attributes:
      batch: the number of independent inputs, called lines.
      elements: of a line.
      rows: to write for each line; rows past the last are left out.
      sizes: those of the coordinates' columns.
      width: the bits of an element.
      keep: those of its bits that make it non-zero.
      fill: what the rows past the count hold; None to leave them alone.
      part: whether the lines are parts of tensors, whose elements are counted on.
      interpret: whether Pallas' interpreter runs the kernels.
    """

    batch: int
    elements: int
    rows: int
    sizes: tuple[int, ...]
    width: int
    keep: int
    fill: int | None
    part: bool
    interpret: bool

    @property
    def integer(self) -> np.dtype:
        """The type of a place in the output."""
        largest = max(self.elements, self.values) + BLOCK
        return np.dtype(np.int32 if largest < 2**31 else np.int64)

    @property
    def blocks(self) -> int:
        """How many blocks a line has."""
        return -(-self.elements // BLOCK)

    @property
    def values(self) -> int:
        """How many values the rows of a line hold."""
        return self.rows * len(self.sizes)

    def place(self, number: Any, offset: Any = 0) -> Any:
        """`number + offset` where it may need 64 bits."""
        return number.astype(self.integer) + jnp.asarray(offset).astype(self.integer)

    def program_and_line(self, programs: int) -> tuple[Any, Any]:
        """Which of a line's `programs` one is; a GPU limits a grid but in one size."""
        program = pl.program_id(0)
        if self.batch == 1:  # 0 is known to be aligned
            return program, 0
        number = jnp.int32(programs)
        return lax.rem(program, number), lax.div(program, number)

    @property
    def writers(self) -> int:
        """The programs that write a line: one for each block, and as many that fill."""
        return self.blocks if self.fill is None else 2 * self.blocks


@by_lines
def nonzero_coordinates(
    x: jax.Array,
    *first: jax.Array,
    sizes: tuple[int, ...],
    rows: int,
    columns: int,
    fill: int | None,
    interpret: bool,
) -> Outputs:
    """The operator."""
    batch, elements = x.shape
    bits, keep = _bits(x)
    plan = Plan(
        batch=batch,
        elements=elements,
        rows=rows,
        sizes=last_sizes(sizes, columns),
        width=8 * bits.dtype.itemsize,
        keep=keep,
        fill=fill,
        part=bool(first),
        interpret=interpret,
    )
    with index_mode(max(elements, plan.values) + BLOCK):
        return _run(bits, first, plan)


def _bits(x: jax.Array) -> tuple[jax.Array, int]:
    """Unsigned integers of 8, 16 or 32 bits, and those of their bits that matter.

    An element is zero if none of these is set: the sign of a float does not count,
    unless the type has no negative zero.
    """
    dtype = x.dtype
    floating = is_floating(dtype)
    width = jnp.finfo(dtype).bits if floating else 8 * dtype.itemsize
    zeros = zero_patterns(dtype) if floating else (0,)
    if width in (8, 16, 32) and zeros and (floating or dtype.kind in "iu"):
        keep = 2**width - 1 - max(zeros)
        return lax.bitcast_convert_type(x, np.dtype(f"uint{width}")), keep
    return is_nonzero(x).astype(np.uint8), 1


def _run(bits: jax.Array, numbers: Sequence[jax.Array], plan: Plan) -> Outputs:
    """The three launches, for (batch, elements) bits.

    Of each line's first element there may be a number, (batch,).
    """
    words = jax.ShapeDtypeStruct((plan.batch, plan.blocks * BLOCK // WORD), np.uint32)
    before = jax.ShapeDtypeStruct(words.shape, np.uint16)
    per_block = jax.ShapeDtypeStruct((plan.batch, plan.blocks), np.uint32)
    per_line = jax.ShapeDtypeStruct((plan.batch,), np.uint32)
    values = jax.ShapeDtypeStruct((plan.batch, plan.values), np.uint32)
    launched = functools.partial(
        launch, operator="nonzero_coordinates", interpret=plan.interpret, plan=plan
    )
    packed, ranks, counts = launched(
        _count,
        _wide(bits),
        step="_count",
        grid=(plan.blocks * plan.batch,),
        outputs=(words, before, per_block),
        warps=BLOCK * plan.width // 8 // COUNT_BYTES,
    )
    starts, count = launched(
        _scan,
        counts,
        step="_scan",
        grid=(plan.batch,),
        outputs=(per_block, per_line),
        warps=8,
    )
    (coordinates,) = launched(
        _write,
        *(packed, ranks, counts, starts, count, *numbers),
        step="_write",
        grid=(plan.writers * plan.batch,),
        outputs=(values,),
        warps=WARPS,
    )
    shape = (plan.batch, plan.rows, len(plan.sizes))
    return count, coordinates.reshape(shape)


def _wide(bits: jax.Array) -> jax.Array:
    """The same memory in words of up to 32 bits, of which an element is a part."""
    size = bits.dtype.itemsize
    parts = next(n for n in (4, 2, 1) if n * size <= 4 and bits.shape[1] % n == 0)
    if parts == 1:
        return bits
    split = bits.reshape(bits.shape[0], -1, parts)
    return lax.bitcast_convert_type(split, np.dtype(f"uint{8 * size * parts}"))


def _count(bits: Any, words: Any, ranks: Any, counts: Any, *, plan: Plan) -> None:
    """A block's bits, its words' ranks and its count."""
    block, line = plan.program_and_line(plan.blocks)
    parts = plan.elements // bits.shape[1]
    shape = (BLOCK // WORD, WORD // parts)
    lane = lax.broadcasted_iota(np.int32, shape, 1)
    inside = lax.broadcasted_iota(np.int32, shape, 0) * shape[1] + lane
    place = plan.place(block) * (BLOCK // parts) + plan.place(inside)
    word_place = block * shape[0] + lax.iota(np.int32, shape[0])

    def count(mask: Any) -> None:
        other = None if mask is None else 0
        value = load(bits.at[line, place], mask=mask, other=other).astype(np.uint32)
        bit = _nonzero_bits(value, plan.width, plan.keep)
        bit <<= (lane * parts).astype(np.uint32)
        word = jnp.sum(bit, axis=1, dtype=np.uint32)
        ones = _ones(word)
        ends = jnp.cumsum(ones)
        store(words.at[line, word_place], word)
        store(ranks.at[line, word_place], (ends - ones).astype(np.uint16))
        counts[line, block] = jnp.sum(ones).astype(np.uint32)

    # A mask makes loads narrow: only the block that reaches past the end has one.
    whole, rest = divmod(plan.elements, BLOCK)
    if whole:
        pl.when(block < whole)(lambda: count(None))
    if rest:
        pl.when(block == whole)(lambda: count(place < bits.shape[1]))


def _nonzero_bits(word: Any, width: int, keep: int) -> Any:
    """A bit for each element of `width` bits in a word: whether `keep` of it is set.

    Without a comparison for each: a carry into an element's top bit says that one of
    those below it is set, and a product brings the top bits side by side.
    """
    places = range(0, WORD, width)
    ones = sum(1 << place for place in places)
    top = ones << (width - 1)
    word &= np.uint32(keep * ones)
    rest = np.uint32(~top % 2**WORD)
    word = (((word & rest) + rest) | word) & np.uint32(top)
    shift = WORD - width
    gather = sum(1 << (shift - place + i) for i, place in enumerate(places))
    product = (word >> np.uint32(width - 1)) * np.uint32(gather)
    return (product >> np.uint32(shift)) & np.uint32(2 ** len(places) - 1)


def _scan(counts: Any, starts: Any, count: Any, *, plan: Plan) -> None:
    """The first row of each block, and the count of the line."""
    line, blocks = pl.program_id(0), plan.blocks
    lanes = min(SCANNED, pl.next_power_of_2(blocks))

    def step(i: Any, total: Any) -> Any:
        block = i * lanes + lax.iota(np.int32, lanes)
        inside = block < blocks
        ones = load(counts.at[line, block], mask=inside, other=0).astype(np.int32)
        before = total + plan.place(jnp.cumsum(ones) - ones)
        place = jnp.where(inside, block, blocks)
        store(starts.at[line, place], before.astype(np.uint32), mask=inside)
        return total + plan.place(jnp.sum(ones))

    steps = jnp.int32(pl.cdiv(blocks, lanes))
    total = lax.fori_loop(jnp.int32(0), steps, step, plan.integer.type(0))
    count[line] = total.astype(np.uint32)


def _write(*references: Any, plan: Plan) -> None:
    """The rows of a block's non-zeros, or a share of the rows past the count."""
    count, out = references[4], references[-1]
    program, line = plan.program_and_line(plan.writers)
    if plan.fill is None:
        _rows(*references, plan=plan, block=program, line=line)
        return
    # All rows come first, while the words that they read are in the cache.
    fills = program >= plan.blocks
    share = lax.rem(program, jnp.int32(plan.blocks))
    write = functools.partial(_rows, *references, plan=plan, block=share, line=line)
    total = jnp.minimum(plan.place(count[line]), plan.integer.type(plan.rows))
    pl.when(~fills)(write)
    pl.when(fills)(lambda: _fill(out, line, share, total, plan))


def _rows(*references: Any, plan: Plan, block: Any, line: Any) -> None:
    """The rows of a block's non-zeros."""
    words, ranks, counts, starts, _, *numbers, out = references
    first = block * (BLOCK // WORD)
    start = plan.place(starts[line, block])
    ones = counts[line, block].astype(np.int32)
    if plan.rows < plan.elements:  # a block past the last row has nothing to write
        ones = jnp.where(start < plan.rows, ones, 0)

    def word_at(place: Any) -> Any:
        return load(words.at[line, first + place])

    def rank_at(place: Any) -> Any:
        return load(ranks.at[line, first + place]).astype(np.int32)

    def put(rank: Any, valid: Any, element: Any) -> None:
        row = plan.place(start, rank)
        number = block.astype(np.uint32) * np.uint32(BLOCK) + element.astype(np.uint32)
        number = sum((reference[line] for reference in numbers), number)
        _put_rows(out, line, row, valid, number, plan)

    def by_element(i: Any, carry: Any) -> Any:
        place = _words_by_warps(i)
        word, rank = word_at(place)[..., None], rank_at(place)[..., None]
        lane = lax.broadcasted_iota(np.uint32, (1, 1, WORD), 2)
        bit = np.uint32(1) << lane
        rank += _ones(word & (bit - np.uint32(1)))
        element = place[..., None].astype(np.uint32) * np.uint32(WORD) + lane
        put(rank, word & bit != 0, element)
        return carry

    def by_bit(i: Any, carry: Any) -> Any:
        place = lax.iota(np.int32, BLOCK // WORD)
        word, rank = word_at(place), rank_at(place)

        def lowest(i: Any, word: Any) -> Any:
            bit = word & (~word + np.uint32(1))
            put(rank + i, word != 0, place * WORD + _ones(bit - np.uint32(1)))
            return word ^ bit

        lax.fori_loop(jnp.int32(0), jnp.max(_ones(word)), lowest, word)
        return carry

    def in_order(i: Any, carry: Any) -> Any:
        element = i * ROWS + lax.iota(np.int32, ROWS)
        put(element, element < BLOCK, element)
        return carry

    full, crowded = ones == BLOCK, ones > BLOCK // CROWDED
    _repeat_if(~crowded & (ones > 0), 1, by_bit)
    _repeat_if(crowded & ~full, BLOCK // ELEMENTS, by_element)
    _repeat_if(full, BLOCK // ROWS, in_order)


def _repeat_if(condition: Any, rounds: int, body: Any) -> None:
    """A loop of no rounds is a branch."""
    rounds = condition.astype(np.int32) * np.int32(rounds)
    lax.fori_loop(jnp.int32(0), rounds, body, jnp.int32(0))


def _words_by_warps(i: Any) -> Any:
    """The places of the words that a crowded block visits in round `i`.

    Those of a warp follow one another, so that it loads many at once; each of its lanes
    then has the same bit of every word.
    """
    shape = (ELEMENTS // WORD // WARPS, WARPS)
    within, warp = (lax.broadcasted_iota(np.int32, shape, axis) for axis in (0, 1))
    return (i * WARPS + warp) * shape[0] + within


def _put_rows(
    out: Any, line: Any, row: Any, valid: Any, number: Any, plan: Plan
) -> None:
    """Stores the coordinates of the elements with these numbers."""
    columns = len(plan.sizes)
    shape = (*row.shape, pl.next_power_of_2(columns))
    column = lax.broadcasted_iota(np.int32, shape, row.ndim)
    place = row[..., None] * plan.integer.type(columns) + plan.place(column)
    values = jnp.zeros(shape, np.uint32)
    for axis, (size, stride) in enumerate(
        zip(plan.sizes, packed_strides(plan.sizes), strict=True)
    ):
        value = number // np.uint32(stride)
        if axis and (plan.part or max(plan.sizes[:axis]) > 1):  # else it is less
            value %= np.uint32(size)
        values = jnp.where(column == axis, value[..., None], values)
    mask = valid[..., None] & (column < columns)
    if plan.rows < plan.elements:
        mask &= row[..., None] < plan.rows
    if plan.interpret:  # where a masked-off lane writes back what it has read
        place = jnp.where(mask, place, plan.values)
    store(out.at[line, place], values, mask=mask)


def _fill(out: Any, line: Any, share: Any, count: Any, plan: Plan) -> None:
    """One of as many shares as there are blocks of the values past the count of a line.

    They are a chunk each in turn: all side by side, wherever the count lies.
    """
    start = count * plan.integer.type(len(plan.sizes))
    cut = lax.div(start, plan.integer.type(CHUNK)).astype(np.int32)
    whole, rest = divmod(plan.values, CHUNK)
    values = jnp.full((CHUNK,), plan.fill or 0, np.uint32)

    def place(chunk: Any) -> Any:
        lane = lax.iota(np.int32, CHUNK)
        return plan.place(chunk) * plan.integer.type(CHUNK) + plan.place(lane)

    def put_whole(i: Any, carry: Any) -> Any:
        store(out.at[line, place(cut + 1 + share + i * plan.blocks)], values)
        return carry

    def put_cut(chunk: Any) -> None:
        valid = (place(chunk) >= start) & (place(chunk) < plan.values)
        inside = jnp.where(valid, place(chunk), plan.values)
        store(out.at[line, inside], values, mask=valid)

    left = jnp.maximum(jnp.int32(whole) - cut - 1 - share, 0)
    rounds = lax.div(left + jnp.int32(plan.blocks - 1), jnp.int32(plan.blocks))
    lax.fori_loop(jnp.int32(0), rounds, put_whole, jnp.int32(0))
    pl.when(share == 0)(lambda: put_cut(cut))
    if rest:
        last = jnp.int32(whole)
        pl.when((share == plan.blocks - 1) & (cut < last))(lambda: put_cut(last))


def _ones(word: Any) -> Any:
    """How many bits of `word` are set."""
    return lax.population_count(word.astype(np.int32))
