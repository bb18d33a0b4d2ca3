"""The rows of NONZERO_COORDINATES on a GPU: what a program writes.

`_nonzero_coordinates` calls `write_rows` when the bit words of a program's share are in
shared memory, and `fill_rows` for the rows past the count.

A *piece* is some neighbouring tiles whose non-zeros one warp lists in shared memory, in
order, and then writes. A thread has neighbouring bit words of a piece, as many as there
are tiles. A list has as many places as a tile has elements, so a piece has more tiles
where few elements are not zero. That takes less time for each tile.

    bit words    .x..  ...x    x.x.      of three threads; of 4 elements in this drawing
    list         1 7 8 10                which elements of the piece are not zero
    rows         from row `start` on, four values of a thread at once
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dmljax._tensor import packed_strides
from dmljax.pallas import WARP
from dmljax.pallas._nonzero_bits import BIT_WORD
from dmljax.pallas._nonzero_plan import PIECE, STORED, TILE, NonzeroPlan
from dmljax.pallas._words import unpacked

LISTED = TILE + STORED  # places of a list
# A bit word of padding behind those of a tile lets threads read every fourth or every
# 16th word without access to the same bank.
WORDS = WARP + 1  # that a tile takes in shared memory


def piece_tiles(t: Any, nonzeros: Any, ends: Any, plan: NonzeroPlan) -> Any:
    """The tiles of a piece, so that no piece has more non-zeros than a list can hold.

    Args:
      t: the thread. Each thread of a warp has PIECE tiles of the share.
      nonzeros: those of its tiles.
      ends: those of its tiles and of all tiles before them.
      plan: what is known about the call.
    """
    piece = t.constant(1)
    if not plan.pieces:
        return piece
    lane = t.thread % WARP
    threads = plan.tiles // PIECE  # that together have the tiles of the largest piece
    first = lane // threads * threads
    most = t.shuffle(ends, first + (threads - 1)) - t.shuffle(ends - nonzeros, first)
    has_tiles = lane < plan.warps * threads
    for tiles, found in zip(plan.pieces, (nonzeros, most), strict=True):
        too_many = t.select(has_tiles & (found > TILE), t.constant(1), 0)
        piece = t.select(t.warp_sum(too_many) == 0, tiles, piece)
    return piece


def write_rows(
    t: Any,
    start: Any,
    offset: Any,
    piece: Any,
    memories: Sequence[Any],
    plan: NonzeroPlan,
) -> None:
    """Writes the rows of a program's non-zeros from row `start` on.

    Args:
      t: the thread.
      start: the first row.
      offset: the number of the first element of the share in its tensor.
      piece: the tiles of a piece.
      memories: the bit words of the share; for each of its tiles, how many non-zeros
        of the share lie before it; the lists of the warps; and the output.
      plan: what is known about the call.
    """
    bit_words, starts, listed, out = memories
    warp = t.thread // WARP
    listed = listed.part(warp * LISTED)

    def step(i: Any) -> Sequence[Any]:
        # Warps write pieces side by side, because memory takes neighbours faster.
        tile = (i * plan.warps + warp) * piece
        row = start + starts.load(tile)
        memories = bit_words.part(tile * WORDS), listed, out
        with t.when(row < plan.rows):
            _write_piece(t, row, offset + tile * TILE, piece, memories, plan)
        return []

    rounds = t.constant(plan.tiles) // piece
    t.loop(t.select(start < plan.rows, rounds, 0), step)


def _write_piece(
    t: Any,
    start: Any,
    offset: Any,
    piece: Any,
    memories: Sequence[Any],
    plan: NonzeroPlan,
) -> None:
    """As `write_rows`, for one piece of a warp."""
    bit_words, listed, out = memories
    lane = t.thread % WARP
    first = lane * piece  # bit word of the thread

    def bit_word(i: Any) -> Any:
        word = first + i
        return bit_words.load(word + word // WARP)

    def count(i: Any, found: Any) -> Sequence[Any]:
        return [found + t.ones(bit_word(i))]

    (found,) = t.loop(piece, count, t.constant(0))
    ends = t.warp_scan(found)
    nonzeros = t.shuffle(ends, WARP - 1)
    # A list begins some places late, so that a thread reads at once what it stores at
    # once, or so that the values which it stores never begin in front of the list.
    late = start % plan.rows_at_once if plan.whole_rows else t.constant(1)
    # In a full piece, element i has row i.
    is_full = nonzeros == piece * TILE
    with t.when(is_full ^ True):
        _list(t, bit_word, first, piece, late + ends - found, listed)
    t.warp_barrier()

    def values(value: Any) -> list[Any]:
        place, column = value // plan.columns, value % plan.columns
        count = plan.rows_at_once
        if plan.whole_rows:
            elements = unpacked(listed.words(place, count), count, 16)
        else:
            elements = [listed.load(place + k) for k in range(count)]
        numbers = (
            offset + t.select(is_full, place - late + k, element)
            for k, element in enumerate(elements)
        )
        return _from_column(t, column, numbers, plan)

    left = t.constant(plan.rows) - start
    rows = t.select(nonzeros < left, nonzeros, left)
    _store(t, out, start, rows, values, lane, WARP, late, plan)
    t.warp_barrier()  # before the next piece is listed


def _list(
    t: Any, bit_word: Any, first: Any, words: Any, place: Any, listed: Any
) -> None:
    """Lists the non-zeros of a thread's bit words from a place of the list on.

    The thread has `words` of them, of which the first one has this number.
    """

    def list_word(i: Any, place: Any) -> Sequence[Any]:
        before = (first + i) * BIT_WORD - 1

        def list_lowest(bits: Any, place: Any) -> Sequence[Any]:
            lower = bits - 1
            listed.store(place, before + t.ones(bits ^ lower))
            return [bits & lower, place + 1]

        # LLVM unrolls a loop whose number of rounds is known by four. Then threads with
        # different numbers of rounds wait for each other twice.
        _, place = t.repeat(lambda bits, _: bits != 0, list_lowest, bit_word(i), place)
        return [place]

    t.loop(words, list_word, place)


def _from_column(
    t: Any, column: Any, numbers: Iterable[Any], plan: NonzeroPlan
) -> list[Any]:
    """The values that are stored at once, of rows of which the first is cut.

    Args:
      t: the thread.
      column: the column of the first value.
      numbers: those of the rows' elements.
      plan: what is known about the call.
    """
    each = [value for number in numbers for value in _unraveled(number, plan)]
    found = each[: plan.stored]
    # Values that are stored at once begin in one of these columns.
    step = math.gcd(plan.columns, plan.stored)
    for first in range(step, plan.columns, step):
        others = each[first : first + plan.stored]
        pairs = zip(others, found, strict=True)
        found = [t.select(column == first, *pair) for pair in pairs]
    return found


def _unraveled(number: Any, plan: NonzeroPlan) -> list[Any]:
    """The coordinates of an element, of which the first may be past its size."""
    found = []
    for stride in packed_strides(plan.sizes)[:-1]:
        found.append(number // stride)
        number = number - found[-1] * stride
    return [*found, number]


def fill_rows(
    t: Any, program: Any, before: Any, total: Any, out: Any, plan: NonzeroPlan
) -> None:
    """Fills as many rows as the program's share has zeros, counted from the end."""
    first = program * plan.share
    elements = t.constant(plan.elements) - first
    elements = t.select(elements < plan.share, elements, plan.share)
    more, each = plan.rows_past_elements

    def past(programs: Any) -> Any:
        return t.select(programs * each < more, programs * each, more)

    stop = t.constant(plan.elements + more) - (first - before)
    start = stop - (elements - total) - past(program + 1)
    stop = stop - past(program)
    start, stop = (t.select(n < plan.rows, n, plan.rows) for n in (start, stop))
    fill = [t.constant(plan.fill)] * plan.stored
    _store(t, out, start, stop - start, lambda _: fill, t.thread, t.threads, 0, plan)


def _store(
    t: Any,
    out: Any,
    start: Any,
    rows: Any,
    values: Callable[[Any], list[Any]],
    thread: Any,
    threads: int,
    late: Any,
    plan: NonzeroPlan,
) -> None:
    """Stores the values of `rows` rows from row `start` on.

    Args:
      t: the thread.
      out: the output.
      start: the first row.
      rows: how many rows.
      values: gives `plan.stored` neighbouring values, of which the first has this
        number.
      thread: the thread's number among those that store these rows together.
      threads: how many these are.
      late: how many rows lie between value 0 and the first value of row `start`.
      plan: what is known about the call.
    """
    width, columns = plan.stored, plan.columns
    # Threads that store together begin at a multiple of what they store at once. Where
    # the eight warps of a program filled 4 KiB from any address on, uint8 of rank 4
    # took 0.46 ms instead of 0.28.
    early = start * columns % (width * threads)
    end = early + rows * columns
    out = out.part(t.wide(start) * columns - t.wide(early))

    def step(i: Any) -> Sequence[Any]:
        place = (i * threads + thread) * width
        some = (place + width > early) & (place < end)
        found = values(t.select(some, place - early + late * columns, 0))
        whole = (place >= early) & (place + width <= end)
        with t.when(whole):
            out.store(place, *found)
        if width > 1:
            with t.when(some & (whole ^ True)):  # values that the start or the end cuts
                for k in range(width):
                    with t.when((place + k >= early) & (place + k < end)):
                        out.store(place + k, found[k])
        return []

    t.loop((end + (width * threads - 1)) // (width * threads), step)
