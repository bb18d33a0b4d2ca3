"""The rows of NONZERO_COORDINATES on a GPU.

A warp lists non-zeros in shared memory, in order, and then writes their rows. Each
thread has one bit word of a tile, and stores one value at a time:

    bit words    .x..  ...x    x.x.      of three threads; of 4 elements in this drawing
    list         1 7 8 10                which elements of the tile are not zero
    rows         (0,1) (1,3) (2,0) ..    in sizes (3, 4); side by side in the output
    threads       0 1   2 3   4 5        which thread stores the value

This module writes rows; `_nonzero_coordinates` decides where they start.
"""

from collections.abc import Callable, Sequence
from typing import Any

from dmljax._nonzero_forms import BIT_WORD
from dmljax._types import packed_strides
from dmljax.pallas.gpu import WARP
from dmljax.pallas.gpu._nonzero_plan import TILE, NonzeroProgram

Lookup = Callable[[Any], Any]  # i -> number i of some numbers


def write_tile(
    p: NonzeroProgram,
    line: Any,
    row: Any,
    offset: Any,
    word: Any,
) -> Any:
    """Writes the rows of a tile from row `row` of its line on, by a warp.

    `word` is the thread's bit word. The tile begins at `offset` in its tensor. The
    result is the row after the last row of the tile.
    """
    t = p.t
    ones = t.ones(word)
    ends = t.warp_scan(ones)
    count = t.shuffle(ends, WARP - 1)
    with t.when((count > 0) & (row < p.plan.rows)):
        # A mask such as `position < length` has many full tiles, which are faster
        # without a list.
        with t.when(count == TILE):
            _write_elements(p, line, row, count, offset, lambda i: i)
        with t.when(count != TILE):
            list_ones(p, word, p.lane * BIT_WORD, ends - ones, TILE)
            write_listed(p, line, row, count, offset)
    return row + count


def list_ones(
    p: NonzeroProgram,
    word: Any,
    element: Any,
    slot: Any,
    stop: Any,
) -> Any:
    """Lists the set bits of a bit word, from this slot of the warp's list on.

    `element` is the element of the word's lowest bit. The list ends before slot `stop`.
    The result is the slot after the last used one.
    """
    t = p.t

    def list_lowest(word: Any, slot: Any) -> Sequence[Any]:
        # `word & lower` clears the lowest set bit. `word ^ lower` has this bit and all
        # lower bits.
        lower = word - 1
        p.listed.store(slot, element + (t.ones(word ^ lower) - 1))
        return [word & lower, slot + 1]

    def is_listed(word: Any, slot: Any) -> Any:
        return (word != 0) & (slot < stop)

    # This is no `t.loop`: LLVM unrolls a loop with a known number of rounds by four, so
    # that threads with different numbers of rounds wait for each other twice.
    _, slot = t.repeat(is_listed, list_lowest, word, slot)
    return slot


def write_listed(
    p: NonzeroProgram, line: Any, row: Any, count: Any, offset: Any
) -> None:
    """Writes the rows of `count` listed non-zeros from row `row` of a line on.

    The list counts elements from `offset` in the tensor on.
    """
    p.t.warp_barrier()
    _write_elements(p, line, row, count, offset, p.listed.load)
    p.t.warp_barrier()  # before the list is overwritten


def _write_elements(
    p: NonzeroProgram, line: Any, row: Any, count: Any, offset: Any, element: Lookup
) -> None:
    columns = p.plan.columns

    def value(i: Any) -> Any:
        return coordinate(p, offset + element(i // columns), i % columns)

    rows = p.t.minimum(count, p.plan.rows - row)
    start = p.t.wide(line) * p.plan.rows + row
    store_rows(p, start, rows, value, p.lane, WARP)


def coordinate(p: NonzeroProgram, offset: Any, column: Any) -> Any:
    """Returns the coordinate of an element in a column.

    The column differs from thread to thread, so each thread computes all coordinates
    and selects one. The first coordinate may exceed its size, because a line may be a
    part of a tensor.
    """
    rest = offset
    result = p.t.constant(0)
    for i, stride in enumerate(packed_strides(p.plan.column_sizes)):
        quotient = rest // stride
        rest = rest - quotient * stride
        result = p.t.select(column == i, quotient, result)
    return result


def store_rows(
    p: NonzeroProgram, start: Any, rows: Any, value: Lookup, thread: Any, threads: int
) -> None:
    """Stores the values of `rows` rows, from row `start` of all lines on.

    All of `threads` threads, a power of two, make this call together, and store side by
    side. `thread` is the index of the calling thread.
    """
    t = p.t
    columns = p.plan.columns
    # The first thread stores at a multiple of the number of threads: of 128 bytes for a
    # warp, of 512 or 1024 for a program. Stores at other addresses are slower
    # (docs/development/lab_notes.md, "Aligned fills").
    #
    #     |. . . a|b c d e|f g h i|j . . .|    four threads store the values a to j
    #      0     begin               end     offsets
    first = start * columns
    begin = t.narrow(first) % threads
    end = begin + rows * columns
    out = p.out.part(first - begin)

    def store(i: Any) -> None:
        offset = i * threads + thread
        with t.when((offset >= begin) & (offset < end)):
            out.store(offset, value(offset - begin))

    t.loop((end + (threads - 1)) // threads, store)
