"""The rows of NONZERO_COORDINATES on a GPU: how a program writes them.

A warp lists the non-zeros of a tile in shared memory, in order, and then writes them. A
thread has one bit word of the tile.

    bit words    .x..  ...x    x.x.      of three threads; of 4 elements in this drawing
    list         1 7 8 10                which elements of the tile are not zero
    rows         from row `start` on, a value of each thread at once

The rows past the count are the *tail*, and hold the fill value. A program fills as many
rows as its share has zeros; `fill_rows` says which.
"""

from collections.abc import Callable, Sequence
from typing import Any

from dmljax._types import packed_strides
from dmljax.pallas.gpu import WARP
from dmljax.pallas.gpu._nonzero_bits import BIT_WORD
from dmljax.pallas.gpu._nonzero_plan import TILE, Program

Values = Callable[[Any], Any]  # a number among those stored -> the value


def write_rows(p: Program, start: Any, offset: Any) -> None:
    """Writes the rows of a program's non-zeros from row `start` on.

    `offset` is that of the share in its tensor.
    """
    t = p.t
    plan = p.plan
    listed = p.listed.part(p.warp * TILE)

    def write_tile(i: Any) -> Sequence[Any]:
        # Warps write tiles side by side, because memory takes neighbours faster.
        tile = i * plan.warps + p.warp
        row = start + p.starts.load(tile)
        nonzeros = p.nonzeros.load(tile)
        of_tile = offset + tile * TILE
        is_full = nonzeros == TILE
        with t.when(row < plan.rows):
            with t.when(is_full):
                _write(p, row, nonzeros, of_tile, lambda i: i)
            with t.when(is_full ^ True):
                _list_nonzeros(p, p.bit_words.load(tile * WARP + p.lane), listed)
                t.warp_barrier()
                _write(p, row, nonzeros, of_tile, listed.load)
                t.warp_barrier()  # before the next tile is listed
        return []

    t.loop(t.select(start < plan.rows, t.constant(plan.tiles), 0), write_tile)


def _list_nonzeros(p: Program, bits: Any, listed: Any) -> None:
    """Lists the non-zeros of a tile. `bits` are the thread's word."""
    count = p.t.ones(bits)

    def list_lowest(bits: Any, slot: Any) -> Sequence[Any]:
        lower = bits - 1
        listed.store(slot, p.lane * BIT_WORD + (p.t.ones(bits ^ lower) - 1))
        return [bits & lower, slot + 1]

    # LLVM unrolls a loop by four if it knows how many rounds it has. Then threads with
    # different numbers of rounds wait for each other twice.
    slot = p.t.warp_scan(count) - count
    p.t.repeat(lambda bits, _: bits != 0, list_lowest, bits, slot)


def _write(p: Program, start: Any, count: Any, offset: Any, element: Values) -> None:
    """Writes the rows of a tile from row `start` on, by a warp.

    The tile has `count` non-zeros, at the offsets `element` in it, and begins at
    `offset` in its tensor. Rows past the last one of the output are left out.
    """
    columns = p.plan.columns

    def value(i: Any) -> Any:
        return _coordinate(p, offset + element(i // columns), i % columns)

    rows = p.t.minimum(count, p.plan.rows - start)
    store_rows(p, start, rows, value, p.lane, WARP)


def _coordinate(p: Program, offset: Any, column: Any) -> Any:
    """Returns the coordinate of an element in a column.

    The first coordinate may exceed its size, because a line may be a part of a tensor.
    """
    found = rest = offset
    for i, stride in enumerate(packed_strides(p.plan.sizes)):
        coordinate = rest // stride
        rest = rest - coordinate * stride
        found = p.t.select(column == i, coordinate, found)
    return found


def store_rows(
    p: Program, start: Any, rows: Any, value: Values, thread: Any, threads: int
) -> None:
    """Stores the values of `rows` rows from row `start` on.

    They are stored by so many threads together. This one has the number `thread`.
    """
    t = p.t
    columns = p.plan.columns
    # Threads that store together begin at a multiple of their number. When we let the
    # eight warps of a program begin at any address, uint8 of rank 4 took 0.46 ms
    # instead of 0.28.
    early = start * columns % threads
    end = early + rows * columns
    out = p.out.part(t.wide(start) * columns - t.wide(early))

    def store(i: Any) -> Sequence[Any]:
        offset = i * threads + thread
        with t.when((offset >= early) & (offset < end)):
            out.store(offset, value(offset - early))
        return []

    t.loop((end + (threads - 1)) // threads, store)


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

    def value(_: Any) -> Any:
        return t.constant(plan.fill)

    store_rows(p, start, stop - start, value, t.thread, t.threads)
