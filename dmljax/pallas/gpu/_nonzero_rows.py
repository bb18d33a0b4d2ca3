"""The rows of NONZERO_COORDINATES on a GPU.

A warp lists the non-zeros of a tile in shared memory, in order, and then writes their
rows. A thread has one bit word of the tile, and stores one value at a time:

    bit words    .x..  ...x    x.x.      of three threads; of 4 elements in this drawing
    list         1 7 8 10                which elements of the tile are not zero
    rows         (0,1) (1,3) (2,0) ..    in sizes (3, 4); side by side in the output
    threads       0 1   2 3   4 5        which thread stores the value

The rows past the count are the *tail*, and hold the fill value. A program fills as many
rows as its share has zeros; `write_tail` says which.

Here belongs how rows are made and stored. How many lie before a share does not.
"""

from collections.abc import Callable, Sequence
from typing import Any

from dmljax._types import packed_strides
from dmljax.pallas.gpu import WARP
from dmljax.pallas.gpu._nonzero_bits import BIT_WORD
from dmljax.pallas.gpu._nonzero_plan import TILE, NonzeroProgram

Lookup = Callable[[Any], Any]  # i -> number i of some numbers


def write_rows(p: NonzeroProgram, start: Any, offset: Any) -> None:
    """Writes the rows of a program's non-zeros from row `start` on.

    `offset` is that of the share in its tensor.
    """
    t = p.t
    plan = p.plan
    listed = p.lists.part(p.warp * TILE)

    def write_tile(i: Any) -> Sequence[Any]:
        # Warps write tiles side by side, because memory takes neighbours faster.
        tile = i * plan.warps + p.warp
        row = start + p.tile_starts.load(tile)
        count = p.tile_counts.load(tile)
        of_tile = offset + tile * TILE
        is_full = count == TILE
        with t.when(row < plan.rows):
            # Masks of lengths have many full tiles. They take up to 1.35 times as long
            # on an H100 if full tiles are listed as well.
            with t.when(is_full):
                _write_tile(p, row, count, of_tile, lambda i: i)
            with t.when(is_full ^ True):
                _list_nonzeros(p, p.bit_words.load(tile * WARP + p.lane), listed)
                t.warp_barrier()
                _write_tile(p, row, count, of_tile, listed.load)
                t.warp_barrier()  # before the next tile is listed
        return []

    t.loop(t.select(start < plan.rows, t.constant(plan.tiles), 0), write_tile)


def _list_nonzeros(p: NonzeroProgram, bits: Any, listed: Any) -> None:
    """Lists the non-zeros of a tile. `bits` are the thread's bit word."""
    count = p.t.ones(bits)

    def list_lowest(bits: Any, slot: Any) -> Sequence[Any]:
        # `bits & lower` clears the lowest set bit. `bits ^ lower` is that bit and all
        # below it.
        lower = bits - 1
        listed.store(slot, p.lane * BIT_WORD + (p.t.ones(bits ^ lower) - 1))
        return [bits & lower, slot + 1]

    # LLVM unrolls a loop by four if it knows how many rounds it has. Then threads with
    # different numbers of rounds wait for each other twice.
    slot = p.t.warp_scan(count) - count
    p.t.repeat(lambda bits, _: bits != 0, list_lowest, bits, slot)


def _write_tile(
    p: NonzeroProgram, start: Any, count: Any, offset: Any, element: Lookup
) -> None:
    """Writes the rows of a tile from row `start` on, by a warp.

    The tile begins at `offset` in its tensor, and has `count` non-zeros. Number i is
    `element(i)` of the tile. Rows past the last one of the output are left out.
    """
    columns = p.plan.columns

    def value(i: Any) -> Any:
        return _coordinate(p, offset + element(i // columns), i % columns)

    rows = p.t.minimum(count, p.plan.rows - start)
    _store_rows(p, start, rows, value, p.lane, WARP)


def _coordinate(p: NonzeroProgram, offset: Any, column: Any) -> Any:
    """Returns the coordinate of an element in a column.

    The first coordinate may exceed its size, because a line may be a part of a tensor.
    """
    found = rest = offset
    for i, stride in enumerate(packed_strides(p.plan.sizes)):
        coordinate = rest // stride
        rest = rest - coordinate * stride
        found = p.t.select(column == i, coordinate, found)
    return found


def _store_rows(
    p: NonzeroProgram, start: Any, rows: Any, value: Lookup, thread: Any, threads: int
) -> None:
    """Stores the values of `rows` rows from row `start` on.

    So many threads store side by side. This one is number `thread` of them.
    """
    t = p.t
    columns = p.plan.columns
    # The first of the threads stores at a multiple of their number.
    # When we let the eight warps of a program begin at any address, uint8 of rank 4
    # took 0.46 ms instead of 0.28.
    #
    #     |. . . a|b c d e|f g h i|j . . .|    four threads store the values a to j
    #      0     early               end     offsets
    early = start * columns % threads
    end = early + rows * columns
    out = p.out.part(t.wide(start) * columns - t.wide(early))

    def store(i: Any) -> Sequence[Any]:
        offset = i * threads + thread
        with t.when((offset >= early) & (offset < end)):
            out.store(offset, value(offset - early))
        return []

    t.loop((end + (threads - 1)) // threads, store)


def write_tail(p: NonzeroProgram, before: Any, total: Any) -> None:
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
    zeros = t.minimum(plan.elements - first, plan.share) - total
    stop = plan.elements - (first - before)
    start = t.minimum(stop - zeros, plan.rows)
    rows = t.minimum(stop, plan.rows) - start

    def value(_: Any) -> Any:
        return t.constant(plan.fill)

    _store_rows(p, start, rows, value, t.thread, t.threads)
