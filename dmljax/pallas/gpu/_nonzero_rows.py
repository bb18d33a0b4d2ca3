"""The rows of NONZERO_COORDINATES on a GPU.

A warp lists the non-zeros of a tile in shared memory, in order, and then writes their
rows. A thread has one bit word of the tile, and stores one value at a time:

    bit words    .x..  ...x    x.x.      of three threads; of 4 elements in this drawing
    list         1 7 8 10                which elements of the tile are not zero
    rows         (0,1) (1,3) (2,0) ..    in sizes (3, 4); side by side in the output
    threads       0 1   2 3   4 5        which thread stores the value

The rows past the count are the *tail*, and hold the fill value.

Here belongs how rows are made and stored. How many lie before a share does not.
"""

from collections.abc import Callable, Sequence
from typing import Any

from dmljax._nonzero_forms import BIT_WORD
from dmljax._types import packed_strides
from dmljax.pallas.gpu import WARP
from dmljax.pallas.gpu._nonzero_plan import TILE, NonzeroProgram

Lookup = Callable[[Any], Any]  # i -> number i of some numbers


def write_rows(p: NonzeroProgram, start: Any, offset: Any) -> None:
    """Writes the rows of a program's non-zeros from row `start` on.

    `offset` is that of the share in its tensor.
    """
    t = p.t
    plan = p.plan
    listed = p.lists.part(p.warp * TILE)

    def write_tile(i: Any) -> None:
        # Warps write tiles side by side, because memory takes neighbours faster.
        tile = i * plan.warps + p.warp
        row = start + p.tile_starts.load(tile)
        count = p.tile_counts.load(tile)
        of_tile = offset + tile * TILE
        with t.when(row < plan.rows):
            # Masks of lengths have many full tiles. They take up to 1.35 times as long
            # on an H100 if full tiles are listed as well.
            with t.when(count == TILE):
                _write_listed(p, row, count, of_tile, lambda i: i)
            with t.when(count != TILE):
                _list_nonzeros(p, p.bit_words.load(tile * WARP + p.lane), listed)
                t.warp_barrier()
                _write_listed(p, row, count, of_tile, listed.load)
                t.warp_barrier()  # before the next tile is listed

    t.loop(t.select(start < plan.rows, plan.tiles, 0), write_tile)


def _list_nonzeros(p: NonzeroProgram, word: Any, listed: Any) -> None:
    """Lists the non-zeros of a tile, given the thread's bit word."""
    t = p.t
    count = t.ones(word)

    def list_lowest(word: Any, slot: Any) -> Sequence[Any]:
        # `word & lower` clears the lowest set bit. `word ^ lower` is that bit and all
        # below it.
        lower = word - 1
        listed.store(slot, p.lane * BIT_WORD + (t.ones(word ^ lower) - 1))
        return [word & lower, slot + 1]

    # LLVM unrolls a loop by four if it knows how many rounds it has. Then threads with
    # different numbers of rounds wait for each other twice.
    slot = t.warp_scan(count) - count
    t.repeat(lambda word, _: word != 0, list_lowest, word, slot)


def _write_listed(
    p: NonzeroProgram, start: Any, count: Any, offset: Any, element: Lookup
) -> None:
    """Writes the rows of a tile from row `start` on, by a warp.

    The tile begins at `offset` in its tensor, and has `count` non-zeros. `element(i)`
    is the place of non-zero i in the tile. Rows past the last one of the output are
    left out.
    """
    columns = p.plan.columns

    def value(i: Any) -> Any:
        return _coordinate(p, offset + element(i // columns), i % columns)

    rows = p.t.minimum(count, p.plan.rows - start)
    _store_rows(p, start, rows, value, p.lane, WARP)


def _coordinate(p: NonzeroProgram, offset: Any, column: Any) -> Any:
    """Returns the coordinate of an element in a column.

    The column differs from thread to thread, so each thread computes all coordinates
    and selects one. The first may exceed its size, because a line may be a part of a
    tensor.
    """
    rest = offset
    found = p.t.constant(0)
    for i, stride in enumerate(packed_strides(p.plan.sizes)):
        coordinate = rest // stride
        rest = rest - coordinate * stride
        found = p.t.select(column == i, coordinate, found)
    return found


def _store_rows(
    p: NonzeroProgram, start: Any, rows: Any, value: Lookup, thread: Any, threads: int
) -> None:
    """Stores the values of `rows` rows from row `start` on.

    This many `threads` call it together, and store side by side. `thread` is the index
    of this one.
    """
    t = p.t
    columns = p.plan.columns
    # The first of the threads stores at a multiple of their number. Stores at any
    # address took 1.6 times as long (docs/development/lab_notes.md, "Aligned fills").
    #
    #     |. . . a|b c d e|f g h i|j . . .|    four threads store the values a to j
    #      0     early               end     offsets
    #
    # The product may wrap. The remainder stays right, as `threads` is a power of two.
    early = start * columns % threads
    end = early + rows * columns
    out = p.out.part(t.wide(start) * columns - t.wide(early))

    def store(i: Any) -> None:
        offset = i * threads + thread
        with t.when((offset >= early) & (offset < end)):
            out.store(offset, value(offset - early))

    t.loop((end + (threads - 1)) // threads, store)


def write_tail(p: NonzeroProgram, before: Any, total: Any) -> None:
    """Fills as many rows as the share has zeros, counted from the end.

    `before` elements before the share are not zero, and `total` of the share. The zeros
    before the share fill the last rows, and those of the share the rows in front of
    these. When all programs have ended, each row is written. For example, programs 0
    and 1 have shares of four:

        elements     0 5 0 0 | 7 1 0 2
        row          0 1 2 3   4 5 6 7
        written by   0 1 1 1   1 0 0 0     rows 4 to 7 get the fill value
    """
    t = p.t
    plan = p.plan
    first = p.index * plan.share
    zeros = t.minimum(plan.elements - first, plan.share) - total
    stop = plan.elements - (first - before)
    start = t.minimum(stop - zeros, plan.rows)
    rows = t.minimum(stop, plan.rows) - start
    _store_rows(p, start, rows, lambda _: t.constant(plan.fill), t.thread, t.threads)
