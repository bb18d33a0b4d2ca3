"""NONZERO_COORDINATES on a GPU: count, scan, write.

The input is a batch of *lines*: independent tensors, flat. The output has *rows*, one
for each non-zero element, with one value for each *column* of the coordinates. Where a
row goes depends on how many non-zeros lie before it. Programs do not wait for each
other here, so this is computed in three launches. A block is BLOCK elements of a line,
and a *bit word* has one bit for each of 32 elements, set if the element is not zero.

    input      0 5 0 0 | 0 0 0 0 | 7 1 0 2     blocks of 4 in this drawing
    count
      words      .x..      ....      xx.x      bit words; a word's *rank* is how many
      counts       1         0         3       non-zeros lie before it in its block
    scan
      starts       0         1         1       the first row of each block
      count                              4
    write
      rows         1                 8 9 11    then fill from row 4 on

1. `_count`: a program reads a block, and leaves its bit words, their ranks, and the
   block's count. Nothing reads the input again.
2. `_scan`: a program adds up the counts of a line.
3. `_write`: a program writes the rows of one block, in one of three ways. If the block
   is *full*, element i has row i. If it is *crowded*, the program visits all elements,
   each of which finds its row from its bit word and the word's rank. Otherwise the
   program visits all bit words at once: first the lowest set bit of each, then the
   next. Other programs of the same launch fill the rows past the count.

Times in this file were measured on an H200 with 64Mi elements and one column;
docs/benchmarks.md has the rest. How bits are tested and counted is in `_nonzero_bits`.
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

from dmljax._coordinates import by_lines, last_sizes
from dmljax._tensor import Outputs, index_mode, packed_strides
from dmljax.pallas._launch import launch, load, store
from dmljax.pallas._nonzero_bits import (
    BIT_WORD,
    as_bits,
    count_ones,
    nonzero_bits,
    packed,
)

# The following were measured over densities from 0.1 % to 100 % and elements of 1, 2
# and 4 bytes. No value is the best for each; these are for all. For example, blocks of
# 16384 elements gave 0.82 of the ceiling up to 1 %, but 0.67 at 10 %.
BLOCK = 8192  # elements of a block
CROWDED = 16  # a block with more non-zeros than one in so many is crowded
ELEMENTS = 2048  # elements that a crowded block visits at a time
ROWS = 512  # rows that a full block writes at a time
CHUNK = 2048  # values past the count that a program fills at a time
COUNT_BYTES = 4096  # bytes that each warp of the first launch reads
SCANNED = 4096  # counts of blocks that the second launch adds up at a time
WARPS = 4  # of a program in the last launch


@dataclasses.dataclass(frozen=True)
class NonzeroPlan:
    """What is known about a call before it runs, the same for all three launches.

    Attributes:
      batch: the number of lines.
      elements: the elements of a line.
      rows: the rows to write for each line. Those of non-zeros past them are left out.
      sizes: the sizes of the dimensions that have a column.
      width: the bits of an element.
      keep: those of its bits that make it non-zero if one of them is set.
      fill: the value of all columns in rows past the count; None to leave them alone.
      part: whether lines are parts of tensors. Then an operand has the offset of each
        line's first element, and first coordinates may be past their size.
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
        """The type of an offset in a line of the input or of the output."""
        largest = max(self.elements, self.values) + BLOCK
        return np.dtype(np.int32 if largest < 2**31 else np.int64)

    @property
    def blocks(self) -> int:
        """The blocks of a line."""
        return -(-self.elements // BLOCK)

    @property
    def values(self) -> int:
        """The values in all rows of a line."""
        return self.rows * len(self.sizes)

    def offset(self, a: Any, b: Any = 0) -> Any:
        """`a + b` in the type of an offset."""
        return a.astype(self.integer) + jnp.asarray(b).astype(self.integer)

    def program_and_line(self, programs: int) -> tuple[Any, Any]:
        """Which of the `programs` of a line this is, and the line."""
        # A grid of two dimensions would limit one of them to 65 535.
        program = pl.program_id(0)
        # With a constant 0, Triton knows that the line starts at an aligned address.
        if self.batch == 1:
            return program, 0
        number = jnp.int32(programs)
        return lax.rem(program, number), lax.div(program, number)

    @property
    def writers(self) -> int:
        """The programs of a line that write: one for each block, and as many that fill.

        Filling in programs of their own, after the rows, was measured to be 0.005 to
        0.010 ms faster for sparse inputs than filling in the programs that write rows.
        """
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
    """The form by kernels, for lines: `by_lines` says what it takes and returns."""
    batch, elements = x.shape
    bits, keep = as_bits(x)
    plan = NonzeroPlan(
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


def _run(bits: jax.Array, first: Sequence[jax.Array], plan: NonzeroPlan) -> Outputs:
    """The three launches, for (batch, elements) bits.

    `first` is empty, or has the offset of each line's first element in its tensor.
    """
    shape = (plan.batch, plan.blocks * BLOCK // BIT_WORD)
    bit_word = jax.ShapeDtypeStruct(shape, np.uint32)
    # A rank is less than BLOCK. What lies between the launches is 1/8 byte and 1/16
    # byte for each element: 12 MiB beside the 64 MiB of 64Mi elements of uint8.
    rank = jax.ShapeDtypeStruct(shape, np.uint16)
    per_block = jax.ShapeDtypeStruct((plan.batch, plan.blocks), np.uint32)
    per_line = jax.ShapeDtypeStruct((plan.batch,), np.uint32)
    values = jax.ShapeDtypeStruct((plan.batch, plan.values), np.uint32)
    launched = functools.partial(
        launch, operator="nonzero_coordinates", interpret=plan.interpret, plan=plan
    )
    bit_words, ranks, counts = launched(
        _count,
        packed(bits),
        step="_count",
        grid=(plan.blocks * plan.batch,),
        outputs=(bit_word, rank, per_block),
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
        *(bit_words, ranks, counts, starts, count, *first),
        step="_write",
        grid=(plan.writers * plan.batch,),
        outputs=(values,),
        warps=WARPS,
    )
    return count, coordinates.reshape(plan.batch, plan.rows, len(plan.sizes))


def _count(
    words: Any, bit_words: Any, ranks: Any, counts: Any, *, plan: NonzeroPlan
) -> None:
    """The first launch: a block's bit words, their ranks, and the block's count.

    The block is a matrix here. A row has the words of which one bit word is made.
    """
    block, line = plan.program_and_line(plan.blocks)
    each = plan.elements // words.shape[1]  # elements of a word
    shape = (BLOCK // BIT_WORD, BIT_WORD // each)
    column = lax.broadcasted_iota(np.int32, shape, 1)
    inside = lax.broadcasted_iota(np.int32, shape, 0) * shape[1] + column
    source = plan.offset(block) * (BLOCK // each) + plan.offset(inside)
    target = block * shape[0] + lax.iota(np.int32, shape[0])

    def count(mask: Any) -> None:
        other = None if mask is None else 0
        word = load(words.at[line, source], mask=mask, other=other).astype(np.uint32)
        bits = nonzero_bits(word, plan.width, plan.keep)
        bits <<= (column * each).astype(np.uint32)
        # No two words of a row set the same bit, so the sum of the row is their union.
        bit_word = jnp.sum(bits, axis=1, dtype=np.uint32)
        nonzeros = count_ones(bit_word)
        ends = jnp.cumsum(nonzeros)
        store(bit_words.at[line, target], bit_word)
        store(ranks.at[line, target], (ends - nonzeros).astype(np.uint16))
        counts[line, block] = jnp.sum(nonzeros).astype(np.uint32)

    # Triton makes masked loads narrow, so only the block that reaches past the end of
    # the line is masked.
    whole, rest = divmod(plan.elements, BLOCK)
    if whole:
        pl.when(block < whole)(lambda: count(None))
    if rest:
        pl.when(block == whole)(lambda: count(source < words.shape[1]))


def _scan(counts: Any, starts: Any, count: Any, *, plan: NonzeroPlan) -> None:
    """The second launch: the first row of each block, and the count of the line.

    One program adds up a line. It takes 0.003 ms for 64Mi elements: a single pass with
    programs that look back at each other was tried instead, and was wrong in Triton.
    """
    line, blocks = pl.program_id(0), plan.blocks
    size = min(SCANNED, pl.next_power_of_2(blocks))

    def step(i: Any, total: Any) -> Any:
        block = i * size + lax.iota(np.int32, size)
        inside = block < blocks
        nonzeros = load(counts.at[line, block], mask=inside, other=0)
        nonzeros = nonzeros.astype(np.int32)
        before = total + plan.offset(jnp.cumsum(nonzeros) - nonzeros)
        # The interpreter writes the old value where a store is masked. That must not be
        # a block of the next line, so it goes out of range.
        target = jnp.where(inside, block, blocks)
        store(starts.at[line, target], before.astype(np.uint32), mask=inside)
        return total + plan.offset(jnp.sum(nonzeros))

    steps = jnp.int32(pl.cdiv(blocks, size))
    total = lax.fori_loop(jnp.int32(0), steps, step, plan.integer.type(0))
    count[line] = total.astype(np.uint32)


def _write(*references: Any, plan: NonzeroPlan) -> None:
    """The third launch: a program writes a block's rows, or fills past the count."""
    count, out = references[4], references[-1]
    program, line = plan.program_and_line(plan.writers)
    if plan.fill is None:
        _write_block(*references, plan=plan, block=program, line=line)
        return
    # A GPU starts programs in order. Those that write rows come first, while the bit
    # words that they read are still in the cache.
    is_filler = program >= plan.blocks
    share = lax.rem(program, jnp.int32(plan.blocks))
    write = functools.partial(
        _write_block, *references, plan=plan, block=share, line=line
    )
    total = jnp.minimum(plan.offset(count[line]), plan.integer.type(plan.rows))
    pl.when(~is_filler)(write)
    pl.when(is_filler)(lambda: _fill(out, line, share, total, plan))


def _write_block(*references: Any, plan: NonzeroPlan, block: Any, line: Any) -> None:
    """Writes the rows of a block's non-zeros in one of three ways."""
    bit_words, ranks, counts, starts, _, *first, out = references
    first_word = block * (BLOCK // BIT_WORD)
    start = plan.offset(starts[line, block])
    nonzeros = counts[line, block].astype(np.int32)
    if plan.rows < plan.elements:  # a block past the last row has nothing to write
        nonzeros = jnp.where(start < plan.rows, nonzeros, 0)

    def bit_word_at(i: Any) -> Any:
        return load(bit_words.at[line, first_word + i])

    def rank_at(i: Any) -> Any:
        return load(ranks.at[line, first_word + i]).astype(np.int32)

    def write(rank: Any, valid: Any, element: Any) -> None:
        row = plan.offset(start, rank)
        offset = block.astype(np.uint32) * np.uint32(BLOCK) + element.astype(np.uint32)
        offset = sum((reference[line] for reference in first), offset)
        _write_rows(out, line, row, valid, offset, plan)

    def crowded(i: Any, carry: Any) -> Any:
        # A warp has bit words that follow one another, and each of its threads the same
        # bit of all of them, so that it loads many words at once. This was measured to
        # take a half-full input from 0.065 ms to 0.048.
        shape = (ELEMENTS // BIT_WORD // WARPS, WARPS)
        within, warp = (lax.broadcasted_iota(np.int32, shape, n) for n in (0, 1))
        index = (i * WARPS + warp) * shape[0] + within
        bit_word, rank = bit_word_at(index)[..., None], rank_at(index)[..., None]
        shift = lax.broadcasted_iota(np.uint32, (1, 1, BIT_WORD), 2)
        bit = np.uint32(1) << shift
        rank += count_ones(bit_word & (bit - np.uint32(1)))
        element = index[..., None].astype(np.uint32) * np.uint32(BIT_WORD) + shift
        write(rank, bit_word & bit != 0, element)
        return carry

    def sparse(i: Any, carry: Any) -> Any:
        # Searching for the element of each row instead was 0.002 to 0.006 ms slower for
        # sparse inputs, and 0.009 faster at 10 %.
        index = lax.iota(np.int32, BLOCK // BIT_WORD)
        bit_word, rank = bit_word_at(index), rank_at(index)

        def lowest(i: Any, bit_word: Any) -> Any:
            bit = bit_word & (~bit_word + np.uint32(1))
            write(
                rank + i,
                bit_word != 0,
                index * BIT_WORD + count_ones(bit - np.uint32(1)),
            )
            return bit_word ^ bit

        lax.fori_loop(jnp.int32(0), jnp.max(count_ones(bit_word)), lowest, bit_word)
        return carry

    def full(i: Any, carry: Any) -> Any:
        element = i * ROWS + lax.iota(np.int32, ROWS)
        write(element, element < BLOCK, element)
        return carry

    is_full, is_crowded = nonzeros == BLOCK, nonzeros > BLOCK // CROWDED
    _repeat_if(~is_crowded & (nonzeros > 0), 1, sparse)
    _repeat_if(is_crowded & ~is_full, BLOCK // ELEMENTS, crowded)
    _repeat_if(is_full, BLOCK // ROWS, full)


def _repeat_if(condition: Any, rounds: int, body: Any) -> None:
    """Runs the body so many times if the condition holds, and not at all otherwise."""
    # Triton lowers no `cond` here, so a loop of zero rounds stands for the branch that
    # is not taken.
    rounds = condition.astype(np.int32) * np.int32(rounds)
    lax.fori_loop(jnp.int32(0), rounds, body, jnp.int32(0))


def _write_rows(
    out: Any, line: Any, row: Any, valid: Any, offset: Any, plan: NonzeroPlan
) -> None:
    """Stores the coordinates of the elements at these offsets of their tensors."""
    columns = len(plan.sizes)
    # Triton has only arrays whose sizes are powers of two; the columns left over are
    # masked.
    shape = (*row.shape, pl.next_power_of_2(columns))
    column = lax.broadcasted_iota(np.int32, shape, row.ndim)
    target = row[..., None] * plan.integer.type(columns) + plan.offset(column)
    values = jnp.zeros(shape, np.uint32)
    for axis, (size, stride) in enumerate(
        zip(plan.sizes, packed_strides(plan.sizes), strict=True)
    ):
        value = offset // np.uint32(stride)
        # A division takes a GPU many instructions. A remainder is needed only if a
        # coordinate before this one can be other than 0.
        if axis and (plan.part or max(plan.sizes[:axis]) > 1):
            value %= np.uint32(size)
        values = jnp.where(column == axis, value[..., None], values)
    mask = valid[..., None] & (column < columns)
    if plan.rows < plan.elements:
        mask &= row[..., None] < plan.rows
    if plan.interpret:  # it writes the old value where a store is masked
        target = jnp.where(mask, target, plan.values)
    store(out.at[line, target], values, mask=mask)


def _fill(out: Any, line: Any, share: Any, count: Any, plan: NonzeroPlan) -> None:
    """Fills a share of the values past the count of a line, of `plan.blocks` shares.

    The shares take the chunks past the count in turn. So all of them have work, side by
    side in memory, wherever the count lies:

        | rows | cut chunk | share 0 | share 1 | .. | share 0 | .. | the rest |
    """
    start = count * plan.integer.type(len(plan.sizes))
    cut = lax.div(start, plan.integer.type(CHUNK)).astype(np.int32)
    whole, rest = divmod(plan.values, CHUNK)
    values = jnp.full((CHUNK,), plan.fill or 0, np.uint32)

    def offsets(chunk: Any) -> Any:
        within = lax.iota(np.int32, CHUNK)
        return plan.offset(chunk) * plan.integer.type(CHUNK) + plan.offset(within)

    def fill_whole(i: Any, carry: Any) -> Any:
        store(out.at[line, offsets(cut + 1 + share + i * plan.blocks)], values)
        return carry

    def fill_masked(chunk: Any) -> None:
        valid = (offsets(chunk) >= start) & (offsets(chunk) < plan.values)
        target = jnp.where(valid, offsets(chunk), plan.values)
        store(out.at[line, target], values, mask=valid)

    left = jnp.maximum(jnp.int32(whole) - cut - 1 - share, 0)
    rounds = lax.div(left + jnp.int32(plan.blocks - 1), jnp.int32(plan.blocks))
    lax.fori_loop(jnp.int32(0), rounds, fill_whole, jnp.int32(0))
    # Only the chunk that the count cuts, and the end of the line, need a mask.
    pl.when(share == 0)(lambda: fill_masked(cut))
    if rest:
        last = jnp.int32(whole)
        pl.when((share == plan.blocks - 1) & (cut < last))(lambda: fill_masked(last))
