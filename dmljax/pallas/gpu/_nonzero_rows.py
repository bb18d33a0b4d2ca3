"""The rows of NONZERO_COORDINATES on a GPU: how a program writes them.

A warp lists the non-zeros of a tile in shared memory, in order, and then writes them. A
thread has one bit word of the tile.

    bit words    .x..  ...x    x.x.      of three threads; of 4 elements in this drawing
    list         1 7 8 10                which elements of the tile are not zero
    rows         from row `start` on, four values of a thread at once

The rows past the count are the *tail*, and hold the fill value. A program fills as many
rows as its share has zeros; `fill_rows` says which.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from dmljax._types import packed_strides
from dmljax.pallas.gpu import WARP
from dmljax.pallas.gpu._nonzero_bits import BIT_WORD
from dmljax.pallas.gpu._nonzero_plan import LISTED, TILE, Program

# (i, count) -> the values i .. i + count - 1
Some = Callable[[Any, int], list[Any]]


def write_rows(p: Program, start: Any, offset: Any) -> None:
    """Writes the rows of a program's non-zeros from row `start` on.

    `offset` is that of the share in its tensor.
    """
    t = p.t
    plan = p.plan
    listed = p.listed.part(p.warp * LISTED)

    def write_tile(i: Any) -> Sequence[Any]:
        # Warps write tiles side by side, because memory takes neighbours faster.
        tile = i * plan.warps + p.warp
        row = start + p.starts.load(tile)
        nonzeros = p.nonzeros.load(tile)
        of_tile = offset + tile * TILE
        is_full = nonzeros == TILE
        with t.when(row < plan.rows):
            with t.when(is_full):
                count = t.constant(TILE)
                _write(p, row, count, of_tile, lambda i, n: [i + k for k in range(n)])
            with t.when(is_full ^ True):
                # A list begins some elements late, so that a thread loads from it at
                # once what it stores at once.
                late = row % plan.rows_at_once if plan.whole_rows else t.constant(0)
                _list_nonzeros(p, p.bit_words.load(tile * WARP + p.lane), late, listed)
                t.warp_barrier()

                def elements(i: Any, count: int) -> list[Any]:
                    if count > 1 and plan.whole_rows:
                        words = listed.words(late + i, count)  # two elements in each
                        return [word >> k & 0xFFFF for word in words for k in (0, 16)]
                    return [listed.load(late + i + k) for k in range(count)]

                _write(p, row, nonzeros, of_tile, elements)
                t.warp_barrier()  # before the next tile is listed
        return []

    t.loop(t.select(start < plan.rows, t.constant(plan.tiles), 0), write_tile)


def _list_nonzeros(p: Program, bits: Any, first: Any, listed: Any) -> None:
    """Lists the non-zeros of a tile from `first` on. `bits` are the thread's word."""
    count = p.t.ones(bits)

    def list_lowest(bits: Any, slot: Any) -> Sequence[Any]:
        lower = bits - 1
        listed.store(slot, p.lane * BIT_WORD + (p.t.ones(bits ^ lower) - 1))
        return [bits & lower, slot + 1]

    # LLVM unrolls a loop by four if it knows how many rounds it has. Then threads with
    # different numbers of rounds wait for each other twice.
    slot = first + p.t.warp_scan(count) - count
    p.t.repeat(lambda bits, _: bits != 0, list_lowest, bits, slot)


def _write(p: Program, start: Any, count: Any, offset: Any, elements: Some) -> None:
    """Writes the rows of a tile from row `start` on, by a warp.

    The tile has `count` non-zeros, at the offsets `elements` in it, and begins at
    `offset` in its tensor. Rows past the last one of the output are left out.
    """
    columns = p.plan.columns

    def values(i: Any, count: int) -> list[Any]:
        row, column = i // columns, i % columns
        coordinates: list[Any] = []
        for element in elements(row, p.plan.rows_at_once if count > 1 else 1):
            coordinates += _unravel(p, offset + element)
        return _cut(p, coordinates, column, count)

    rows = p.t.minimum(count, p.plan.rows - start)
    store_rows(p, start, rows, values, p.lane, WARP)


def _cut(p: Program, values: Sequence[Any], column: Any, count: int) -> list[Any]:
    """Returns `count` of the values of some rows, from a column of the first row on.

    Only the GPU knows the column, so we select among all cuts. For example, four values
    of two rows of six columns begin in column 0, 2 or 4, because threads store at
    multiples of four values:

        a0 a1 a2 a3 a4 a5 b0 b1 b2 b3 b4 b5
        -----------
              -----------
                    -----------
    """
    columns = p.plan.columns
    found = list(values[:count])
    step = math.gcd(columns, count)
    for begin in range(step, columns, step):
        cut = values[begin : begin + count]
        for i, value in enumerate(cut):
            found[i] = p.t.select(column == begin, value, found[i])
    return found


def _unravel(p: Program, offset: Any) -> list[Any]:
    """Returns the coordinates of an element. The first one may exceed its size."""
    found = []
    for stride in packed_strides(p.plan.sizes)[:-1]:
        found.append(offset // stride)
        offset = offset - found[-1] * stride
    return [*found, offset]


def store_rows(
    p: Program, start: Any, rows: Any, values: Some, thread: Any, threads: int
) -> None:
    """Stores the values of `rows` rows from row `start` on.

    `values` are asked for one at a time, or `plan.stored`. The rows are stored by so
    many threads together. This one has the number `thread`.
    """
    t = p.t
    width = p.plan.stored
    columns = p.plan.columns
    # Threads that store together begin at a multiple of the values of one store. When
    # we let the eight warps of a program fill 4 KiB from any address on, uint8 of rank
    # 4 took 0.46 ms instead of 0.28.
    #
    #     0      early     whole              rest  end     offsets from there on
    #            |.........|====|====|====|===|.....|
    #
    # The loop stores `width` values at a time. Before and behind these lie fewer than
    # `width` values each, which are stored one by one.
    step = width * threads
    early = start * columns % step
    end = early + rows * columns
    out = p.out.part(t.wide(start) * columns - t.wide(early))
    whole = t.minimum((early + (width - 1)) // width * width, end)
    rest = t.maximum(end // width * width, whole)
    if columns % width:
        is_before = thread < width
        offset = t.select(is_before, early + thread, rest + thread - width)
        stop = t.select(is_before, whole, end)
        with t.when((thread < 2 * width) & (offset < stop)):
            out.store(offset, *values(offset - early, 1))

    def store(i: Any) -> Sequence[Any]:
        offset = i * step + thread * width
        with t.when((offset >= whole) & (offset < rest)):
            out.store(offset, *values(offset - early, width))
        return []

    t.loop((rest + (step - 1)) // step, store)


def fill_rows(p: Program, before: Any, total: Any) -> None:
    """Fills as many rows as the share has zeros, counted from the end.

    `before` elements before the share are not zero, and `total` of the share. For
    example, two programs have shares of four. Program 0 writes row 0 and fills the rows
    `a`, and program 1 writes rows 1 to 3 and fills row `b`:

        elements   0 5 0 0 | 7 1 0 2
        rows       0 1 1 1 b a a a
    """
    t = p.t
    plan = p.plan
    first = p.index * plan.share
    stop = plan.elements - (first - before)
    start = stop - (t.minimum(plan.elements - first, plan.share) - total)
    start, stop = t.minimum(start, plan.rows), t.minimum(stop, plan.rows)

    def values(_: Any, count: int) -> list[Any]:
        return [t.constant(plan.fill)] * count

    store_rows(p, start, stop - start, values, t.thread, t.threads)
