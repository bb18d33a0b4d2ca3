"""NONZERO_COORDINATES on a GPU: count, scan, write.

The input is a batch of *lines*: independent tensors, flat. The output has *rows*, one
for each non-zero element, with one value for each *column* of the coordinates. Where a
row goes depends on how many non-zeros lie before it. Programs do not wait for each
other here, so this is computed in three launches. A *bit word* has one bit for each of
32 elements, set if the element is not zero. A *tile* is what one warp handles, a bit
word for each of its threads, and a block is BLOCK elements of a line.

    input      0 5 0 0 | 0 0 0 0 | 7 1 0 2     blocks of 4 in this drawing
    count
      words      .x..      ....      xx.x      bit words
      counts       1         0         3       non-zeros of a block; a tile's *rank* is
                                               how many lie before it in its block
    scan
      starts       0         1         1       the first row of each block
      count                              4
    write
      rows         1                 8 9 11    then fill from row 4 on

1. `_count`: a program reads a block, and leaves its bit words, the ranks of its tiles
   and its count. Nothing reads the input again.
2. `_scan`: a program adds up the counts of a line.
3. `_write`: a program lists the elements of a block that are not zero in shared memory,
   row by row, and then stores their coordinates. Other programs of the same launch fill
   the rows past the count.

The kernels are code for one thread (`_threads`), which `_lockstep` runs on a CPU. How
bits are tested is in `_nonzero_bits`. Times in this file were measured on an H200 with
64Mi elements of 4 bytes and one column; docs/benchmarks.md has the rest.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from dmljax._coordinates import by_lines, last_sizes
from dmljax._tensor import Outputs, packed_strides
from dmljax.pallas import WARP
from dmljax.pallas._launch import launch_threads
from dmljax.pallas._nonzero_bits import (
    BIT_WORD,
    as_bits,
    bits_of_words,
    transposed,
)
from dmljax.pallas._nonzero_plan import BLOCK, TILE, NonzeroPlan

SCAN_WARPS = 32  # of the one program that adds up a line, the most that it can have
SCANNED = 8  # counts of blocks that each thread of the second launch adds up at a time
# Threads store rows of so many columns at once. Others pass shared memory before.
STORED_AT_ONCE = (1, 2, 4)


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
    bits, width, keep = as_bits(x)
    last = last_sizes(sizes, columns)
    plan = NonzeroPlan(batch, elements, rows, last, width, keep, fill)
    return _run(bits, first, plan, interpret)


def _run(
    bits: jax.Array, first: Sequence[jax.Array], plan: NonzeroPlan, interpret: bool
) -> Outputs:
    """The three launches, for (batch, ...) bits.

    `first` is empty, or has the offset of each line's first element in its tensor.
    """

    def lines(size: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((plan.batch, size), np.uint32)

    launched = functools.partial(
        launch_threads, operator="nonzero_coordinates", interpret=interpret, plan=plan
    )
    # The arrays between the launches have 1/8 byte for each element.
    bit_words, ranks, counts = launched(
        _count,
        bits,
        step="_count",
        programs=plan.blocks * plan.batch,
        warps=plan.count_warps,
        outputs=[lines(plan.blocks * n) for n in (BLOCK // BIT_WORD, plan.tiles, 1)],
        shared=[(plan.tiles, np.uint32)],
    )
    starts, count = launched(
        _scan,
        counts,
        step="_scan",
        programs=plan.batch,
        warps=SCAN_WARPS,
        outputs=[lines(plan.blocks), lines(1)],
        shared=[(SCAN_WARPS, np.uint32)],
    )
    stride = _stride(plan.columns)
    (coordinates,) = launched(
        _write,
        *(bit_words, ranks, counts, starts, count),
        *(offset.reshape(plan.batch, 1) for offset in first),
        step="_write",
        programs=(plan.blocks + plan.fillers) * plan.batch,
        warps=plan.tiles,
        outputs=[lines(plan.rows * plan.columns)],
        shared=[(BLOCK, np.uint16), (BLOCK // BIT_WORD * stride, np.uint32)],
    )
    return count[:, 0], coordinates.reshape(plan.batch, plan.rows, plan.columns)


def _stride(columns: int) -> int:
    """Returns the distance of a warp's rows in shared memory; 0 if they are not there.

    An odd number keeps the threads of a warp off each other's banks.
    """
    return 0 if columns in STORED_AT_ONCE else columns | 1


def _count(t: Any, *memories: Any, plan: NonzeroPlan) -> None:
    """The first launch: a block's bit words, the ranks of its tiles, and its count."""
    *arrays, sums = memories
    block, line = plan.program_and_line(t, plan.blocks)
    arrays = [array.at(line) for array in arrays]
    # Only the block that reaches past the end of the line tests where it ends.
    whole, rest = divmod(plan.elements, BLOCK)
    if whole:
        with t.when(block < whole):
            _count_block(t, block, [*arrays, sums], plan, whole=True)
    if rest:
        with t.when(block == whole):
            _count_block(t, block, [*arrays, sums], plan, whole=False)


def _count_block(
    t: Any, block: Any, memories: Sequence[Any], plan: NonzeroPlan, *, whole: bool
) -> None:
    """As `_count`, for a block that is inside of the line as a whole, or is cut."""
    bits, bit_words, ranks, counts, sums = memories
    warp, lane = t.thread // WARP, t.thread % WARP
    tiles, loaded = plan.tiles // plan.count_warps, plan.loaded(whole)
    read = functools.partial(_bits_of_load, t, bits, loaded=loaded, plan=plan)
    loads = BIT_WORD // loaded  # of a thread, for a tile
    first = block * BLOCK + warp * (tiles * TILE) + lane * loaded
    each = [read(first + k * WARP * loaded, whole) for k in range(tiles * loads)]
    for i in range(tiles):
        # Threads load side by side, so a thread has chunks of several words. They
        # exchange them, until each thread has a word.
        chunks = enumerate(each[i * loads : (i + 1) * loads])
        word = functools.reduce(operator.or_, (c << (k * loaded) for k, c in chunks))
        word = transposed(t, word, loaded)
        tile, place = warp * tiles + i, lane % loads * loaded + lane // loads
        bit_words.store((block * plan.tiles + tile) * WARP + place, word)
        total = t.warp_sum(t.ones(word))
        with t.when(lane == 0):
            sums.store(tile, total)
    t.barrier()
    with t.when(t.thread < WARP):
        each = t.select(lane < plan.tiles, sums.load(lane % plan.tiles), 0)
        ends = t.warp_scan(each)
        with t.when(lane < plan.tiles):
            ranks.store(block * plan.tiles + lane, ends - each)
        with t.when(lane == plan.tiles - 1):
            counts.store(block, ends)


def _bits_of_load(
    t: Any, bits: Any, start: Any, whole: bool, *, loaded: int, plan: NonzeroPlan
) -> Any:
    """Tests for each element that a thread loads whether it is not zero."""
    inside = start < plan.elements
    start = start if whole else t.select(inside, start, 0)
    per_element = plan.width // bits.bits  # 2 for elements of 8 bytes
    words = bits.words(start * per_element, loaded * per_element)
    found = bits_of_words(words, plan.width, plan.keep)
    return found if whole else t.select(inside, found, 0)


def _scan(t: Any, *memories: Any, plan: NonzeroPlan) -> None:
    """The second launch: the first row of each block, and the count of the line.

    It takes 0.0025 ms. A single pass with programs that look back at each other was
    tried instead, and was slower.
    """
    *arrays, sums = memories
    _, line = plan.program_and_line(t, 1)
    counts, starts, count = (array.at(line) for array in arrays)
    warp, lane = t.thread // WARP, t.thread % WARP

    def step(i: Any, total: Any) -> Sequence[Any]:
        first = (i * SCAN_WARPS + warp) * (WARP * SCANNED) + lane
        blocks = [first + k * WARP for k in range(SCANNED)]
        inside = [block < plan.blocks for block in blocks]
        each = [
            t.select(valid, counts.load(t.select(valid, block, 0)), 0)
            for block, valid in zip(blocks, inside, strict=True)
        ]
        ends = [t.warp_scan(nonzeros) for nonzeros in each]
        sums_before = [t.constant(0)]
        for end in ends:
            sums_before.append(sums_before[-1] + t.shuffle(end, WARP - 1))
        with t.when(lane == 0):
            sums.store(warp, sums_before[-1])
        t.barrier()
        of_warps = t.select(lane < SCAN_WARPS, sums.load(lane % SCAN_WARPS), 0)
        ends_of_warps = t.warp_scan(of_warps)
        before = total + t.shuffle(ends_of_warps - of_warps, warp)
        for k in range(SCANNED):
            with t.when(inside[k]):
                starts.store(blocks[k], before + sums_before[k] + ends[k] - each[k])
        t.barrier()  # before the next step writes the sums
        return [total + t.shuffle(ends_of_warps, WARP - 1)]

    rounds = -(-plan.blocks // (SCAN_WARPS * WARP * SCANNED))
    (total,) = t.loop(rounds, step, t.constant(0))
    with t.when(t.thread == 0):
        count.store(0, total)


def _write(t: Any, *memories: Any, plan: NonzeroPlan) -> None:
    """The third launch: a program writes a block's rows, or fills past the count."""
    *arrays, elements, exchange = memories
    program, line = plan.program_and_line(t, plan.blocks + plan.fillers)
    arrays = [array.at(line) for array in arrays]
    count, out = arrays[4], arrays[-1]
    # Programs that write rows and programs that fill take turns, as long as there are
    # both, so that memory is busy while others find out what to write. In a launch
    # where all programs that fill come last, 0.1 % took 0.075 ms instead of 0.070.
    pairs = min(plan.blocks, plan.fillers)
    paired = program < 2 * pairs
    share = t.select(paired, program // 2, program - pairs)
    is_filler = t.select(paired, program % 2, int(plan.fillers > plan.blocks)) == 1
    with t.when(is_filler ^ True):
        _write_block(t, share, *arrays, elements, exchange, plan=plan)
    if plan.fill is not None:
        with t.when(is_filler):
            _fill(t, share, count.load(0), out, plan)


def _write_block(t: Any, block: Any, *memories: Any, plan: NonzeroPlan) -> None:
    """Writes the rows of a block's non-zeros."""
    bit_words, ranks, counts, starts, _, *first, out, elements, exchange = memories
    bit_word = bit_words.load(block * (BLOCK // BIT_WORD) + t.thread)
    rank = ranks.load(block * plan.tiles + t.thread // WARP)
    nonzeros, start = counts.load(block), starts.load(block)
    rows = nonzeros
    if plan.rows < plan.elements:
        left = t.select(start < plan.rows, t.constant(plan.rows) - start, 0)
        rows = t.select(nonzeros < left, nonzeros, left)
    # In a full block, element i has row i.
    is_full = nonzeros == BLOCK
    with t.when((is_full ^ True) & (rows != 0)):
        _list_elements(t, bit_word, rank, elements)
    offset = sum((reference.load(0) for reference in first), block * BLOCK)

    def coordinates(row: Any) -> list[Any]:
        element = t.select(is_full, row, elements.load(row))
        return _unraveled(offset + element, plan)

    _store_rows(t, start, rows, coordinates, out, exchange, plan)


def _list_elements(t: Any, bit_word: Any, rank: Any, elements: Any) -> None:
    """Lists in shared memory which elements of the block are not zero.

    A warp that looks at one bit word at a time, a thread at each bit, was slower: 0.053
    ms instead of 0.048 for half of the elements.
    """
    ones = t.ones(bit_word)
    first = rank + t.warp_scan(ones) - ones

    def lowest(i: Any, bit_word: Any) -> Sequence[Any]:
        bit = bit_word & (t.constant(0) - bit_word)
        elements.store(first + i, t.thread * BIT_WORD + t.ones(bit - 1))
        return [bit_word ^ bit]

    t.loop(ones, lowest, bit_word)
    t.barrier()


def _store_rows(
    t: Any,
    start: Any,
    rows: Any,
    coordinates: Callable[[Any], list[Any]],
    out: Any,
    exchange: Any,
    plan: NonzeroPlan,
) -> None:
    """Stores the block's first `rows` rows from row `start` of the output on."""
    warp, lane, columns = t.thread // WARP, t.thread % WARP, plan.columns
    stride = _stride(columns)
    # A warp begins at a multiple of 32 rows of the output, and so stores whole sectors
    # of memory. In the first rows it has then nothing to do.
    early = start % WARP

    def step(i: Any) -> Sequence[Any]:
        first = i * t.threads + warp * WARP - early  # of the warp's rows
        row = first + lane
        inside = row < rows  # which is false, too, for numbers below 0
        row = t.select(inside, row, 0)
        values = coordinates(row)
        if not stride:
            with t.when(inside):
                out.store(t.wide(start + row) * columns, *values)
            return []
        for column, value in enumerate(values):
            exchange.store(t.thread * stride + column, value)
        t.warp_barrier()
        for k in range(columns):
            value = lane + k * WARP
            row, column = value // columns, value % columns
            with t.when(first + row < rows):
                target = t.wide(start + first + row) * columns + t.wide(column)
                out.store(target, exchange.load((warp * WARP + row) * stride + column))
        t.warp_barrier()
        return []

    t.loop((rows + early + (t.threads - 1)) // t.threads, step)


def _unraveled(offset: Any, plan: NonzeroPlan) -> list[Any]:
    """The coordinates of an element, of which the first may be past its size."""
    found = []
    for stride in packed_strides(plan.sizes)[:-1]:
        found.append(offset // stride)
        offset = offset - found[-1] * stride
    return [*found, offset]


def _fill(t: Any, share: Any, count: Any, out: Any, plan: NonzeroPlan) -> None:
    """Fills what is past the count of the share's BLOCK rows."""
    first = share * BLOCK
    rows = t.constant(plan.rows) - first
    rows = t.select(rows < BLOCK, rows, BLOCK)
    past = t.select(count > first, count - first, 0)
    # In values from here on, counted from the first of the share.
    start, stop = past * plan.columns, rows * plan.columns
    base = t.wide(first) * plan.columns
    fill = t.constant(plan.fill or 0)
    # Lines that do not start at a multiple of 16 bytes are filled value by value.
    aligned = plan.batch == 1 or plan.rows * plan.columns % 4 == 0
    width = 4 if aligned else 1
    skipped = start // (t.threads * width)

    def step(i: Any) -> Sequence[Any]:
        value = ((skipped + i) * t.threads + t.thread) * width
        whole = (value >= start) & (value + width <= stop)
        with t.when(whole):
            out.store(base + t.wide(value), *[fill] * width)
        with t.when(whole ^ True):  # four values that the count or the end cuts
            for k in range(width if width > 1 else 0):
                with t.when((value + k >= start) & (value + k < stop)):
                    out.store(base + t.wide(value + k), fill)
        return []

    rounds = (stop + (t.threads * width - 1)) // (t.threads * width) - skipped
    with t.when(start < stop):
        t.loop(rounds, step)
