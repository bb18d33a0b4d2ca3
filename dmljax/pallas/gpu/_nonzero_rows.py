"""The rows of NONZERO_COORDINATES on a GPU: what a program writes.

When the bit words of a program's share are in shared memory, `_nonzero_coordinates`
calls `piece_tiles` and `count_piece`. When it knows how many non-zeros lie before the
share, it calls `write_rows`. `_nonzero_fill` writes the rows past the count, with
`store_rows`.

A *piece* is some neighbouring tiles whose non-zeros one warp lists in shared memory, in
order, and then writes. A thread has neighbouring bit words of a piece, as many as there
are tiles. A list has room for the elements of one tile, so a piece has more tiles if
few elements are not zero. That takes less time for each tile.

    bit words    .x..  ...x    x.x.      of three threads; of 4 elements in this drawing
    list         1 7 8 10                which elements of the piece are not zero
    rows         from row `start` on, four values of a thread at once
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dmljax._tensor import packed_strides
from dmljax.pallas import WARP
from dmljax.pallas.gpu._nonzero_bits import BIT_WORD
from dmljax.pallas.gpu._nonzero_plan import PIECE, STORED, TILE, NonzeroPlan
from dmljax.pallas.gpu._words import unpacked

LISTED = TILE + STORED  # places of a list
# A bit word of padding behind those of a tile lets threads read every fourth or every
# 16th word without access to the same bank.
WORDS = WARP + 1  # that a tile takes in shared memory


def piece_tiles(t: Any, ends: Any, found: Any, plan: NonzeroPlan) -> Any:
    """The tiles of a piece, so that no piece has more non-zeros than a list can hold.

    Args:
      t: the thread. Each thread of a warp has PIECE tiles of the share.
      ends: how many non-zeros its tiles and all tiles before them have.
      found: how many its tiles have.
      plan: what is known about the call.
    """
    piece = t.constant(1)
    if not plan.pieces:
        return piece
    lane = t.thread % WARP
    threads = plan.tiles // PIECE  # that together have the tiles of the largest piece
    first = lane // threads * threads
    # A lane without tiles may ask here for a lane past the last one. Its number is not
    # used.
    most = t.shuffle(ends, first + (threads - 1)) - t.shuffle(ends - found, first)
    has_tiles = lane < plan.warps * threads
    for tiles, nonzeros in zip(plan.pieces, (found, most), strict=True):
        too_many = t.select(has_tiles & (nonzeros > TILE), t.constant(1), 0)
        piece = t.select(t.warp_sum(too_many) == 0, tiles, piece)
    return piece


def write_rows(
    t: Any,
    start: Any,
    offset: Any,
    piece: Any,
    counted: Sequence[Any],
    memories: Sequence[Any],
    plan: NonzeroPlan,
) -> None:
    """Writes the rows of a program's non-zeros from row `start` on.

    Args:
      t: the thread.
      start: the first row.
      offset: the number of the first element of the share in its tensor.
      piece: the tiles of a piece.
      counted: what `count_piece` returns for the warp's first piece.
      memories: the bit words of the share; for each of its tiles, how many non-zeros
        it has, and how many of the share lie before it; the lists of the warps; and the
        output.
      plan: what is known about the call.
    """
    bit_words, nonzeros, starts, listed, out = memories
    warp = t.thread // WARP
    listed = listed.part(warp * LISTED)

    rounds = t.constant(plan.tiles) // piece

    def step(i: Any, *of_piece: Any) -> Sequence[Any]:
        # Warps write pieces side by side, because memory takes neighbours faster.
        tile = (i * plan.warps + warp) * piece
        row = start + starts.load(tile)
        number = offset + tile * TILE
        words = bit_words.part(tile * WORDS)
        # If the first tile of a piece is full, its other tiles are empty.
        is_full = nonzeros.load(tile) == TILE
        with t.when(row < plan.rows):
            with t.when(is_full):
                count = t.constant(TILE)
                _write(t, out, row, count, number, _neighbours, plan)
            with t.when(is_full ^ True):
                _write_listed(
                    t, row, number, piece, of_piece, (words, listed, out), plan
                )
        # The first piece is counted before this loop, so each round counts the next
        # one. Behind the last piece there is nothing to count.
        is_last = i + 1 == rounds
        tiles = t.select(is_last, 0, piece)
        return count_piece(t, tile + tiles * plan.warps, tiles, bit_words)

    t.loop(t.select(start < plan.rows, rounds, 0), step, *counted)


def count_piece(t: Any, tile: Any, piece: Any, bit_words: Any) -> tuple[Any, Any]:
    """Counts the non-zeros of a piece.

    Args:
      t: the thread.
      tile: the first tile of the piece.
      piece: how many tiles it has.
      bit_words: those of the share.

    Returns how many non-zeros of the piece lie before the thread's bit words, and how
    many the piece has.
    """
    bit_words = bit_words.part(tile * WORDS)
    first = t.thread % WARP * piece

    def count(i: Any, found: Any) -> Sequence[Any]:
        return [found + t.ones(_bit_word(bit_words, first + i))]

    (found,) = t.loop(piece, count, t.constant(0))
    ends = t.warp_scan(found)
    return ends - found, t.shuffle(ends, WARP - 1)


def _bit_word(bit_words: Any, word: Any) -> Any:
    """A bit word of a piece, given how many lie before it."""
    return bit_words.load(word + word // WARP)


def _neighbours(row: Any, count: int) -> list[Any]:
    """The elements of rows of a full tile."""
    return [row + k for k in range(count)]


def _write_listed(
    t: Any,
    start: Any,
    offset: Any,
    piece: Any,
    counted: Sequence[Any],
    memories: Sequence[Any],
    plan: NonzeroPlan,
) -> None:
    """Lists the non-zeros of a piece, and writes their rows, by a warp.

    Args:
      t: the thread.
      start: the first row.
      offset: the number of the piece's first element in its tensor.
      piece: the tiles of the piece.
      counted: what `count_piece` returns for it.
      memories: the bit words of the piece; the list of the warp; and the output.
      plan: what is known about the call.
    """
    bit_words, listed, out = memories
    before, nonzeros = counted
    # A list begins some places late, so that a thread reads at once what it stores at
    # once.
    late = start % plan.rows_at_once if plan.whole_rows else t.constant(0)
    _list(t, bit_words, piece, late + before, listed)
    t.warp_barrier()

    def elements(row: Any, count: int) -> list[Any]:
        if count > 1 and plan.whole_rows:
            return unpacked(listed.words(late + row, count), count, 16)
        return [listed.load(late + row + k) for k in range(count)]

    _write(t, out, start, nonzeros, offset, elements, plan)
    t.warp_barrier()  # before the next piece is listed


def _write(
    t: Any,
    out: Any,
    start: Any,
    count: Any,
    offset: Any,
    elements: Callable[[Any, int], list[Any]],
    plan: NonzeroPlan,
) -> None:
    """Writes the rows of `count` elements from row `start` on, by a warp.

    Those past the last row are left out.

    Args:
      t: the thread.
      out: the output.
      start: the first row.
      count: how many elements.
      offset: the number of the piece's first element in its tensor.
      elements: takes a row, counted from the first one, and how many rows; gives the
        numbers of their elements in the piece.
      plan: what is known about the call.
    """

    def values(value: Any, count: int) -> list[Any]:
        row, column = value // plan.columns, value % plan.columns
        of_rows = elements(row, plan.rows_at_once if count > 1 else 1)
        numbers = (offset + element for element in of_rows)
        return _from_column(t, column, numbers, count, plan)

    left = t.constant(plan.rows) - start
    rows = t.select(count < left, count, left)
    store_rows(t, out, start, rows, values, t.thread % WARP, WARP, plan)


def _list(t: Any, bit_words: Any, piece: Any, place: Any, listed: Any) -> None:
    """Lists the non-zeros of a thread's bit words.

    Args:
      t: the thread.
      bit_words: those of the piece.
      piece: the tiles of the piece.
      place: the place of the list for the thread's first non-zero.
      listed: the list.
    """

    def lowest(bits: Any) -> tuple[Any, Any]:
        """The number of the lowest bit that is set, and the other bits."""
        lower = bits - 1
        return t.ones(bits ^ lower) - 1, bits & lower

    def list_word(i: Any, place: Any) -> Sequence[Any]:
        word = t.thread % WARP * piece + i
        before = word * BIT_WORD

        def list_bit(bits: Any, place: Any) -> Sequence[Any]:
            bit, bits = lowest(bits)
            listed.store(place, before + bit)
            return [bits, place + 1]

        bits = _bit_word(bit_words, word)
        # LLVM unrolls a loop whose number of rounds is known by four. Then threads with
        # different numbers of rounds wait for each other twice.
        _, place = t.repeat(lambda bits, _: bits != 0, list_bit, bits, place)
        return [place]

    t.loop(piece, list_word, place)


def _from_column(
    t: Any, column: Any, numbers: Iterable[Any], count: int, plan: NonzeroPlan
) -> list[Any]:
    """Neighbouring values of rows of which the first is cut.

    Args:
      t: the thread.
      column: the column of the first value.
      numbers: those of the rows' elements.
      count: how many values; 1 or `plan.stored`.
      plan: what is known about the call.
    """
    each = [value for number in numbers for value in _unraveled(number, plan)]
    found = each[:count]
    # The first value is in one of these columns.
    step = math.gcd(plan.columns, count)
    for first in range(step, plan.columns, step):
        others = each[first : first + count]
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


def store_rows(
    t: Any,
    out: Any,
    start: Any,
    rows: Any,
    values: Callable[[Any, int], list[Any]],
    thread: Any,
    threads: int,
    plan: NonzeroPlan,
) -> None:
    """Stores the values of `rows` rows from row `start` on.

    Args:
      t: the thread.
      out: the output.
      start: the first row.
      rows: how many rows.
      values: takes a number and a count, which is 1 or `plan.stored`, and gives so many
        values of the rows, the first of which has this number.
      thread: the thread's number among those that store these rows together.
      threads: how many these are.
      plan: what is known about the call.
    """
    width, columns = plan.stored, plan.columns
    # Threads that store together begin at a multiple of what they store at once. Where
    # the eight warps of a program filled 4 KiB from any address on, uint8 of rank 4
    # took 0.46 ms instead of 0.28.
    step = width * threads
    early = start * columns % step
    end = early + rows * columns
    out = out.part(t.wide(start) * columns - t.wide(early))
    # The loop stores `width` values at a time, from place `first` to place `last`. The
    # few values before and behind are stored one by one, outside of the loop.
    first = (early + (width - 1)) // width * width
    first = t.select(first < end, first, end)
    last = end // width * width
    last = t.select(last < first, first, last)
    if columns % width:
        is_before = thread < width
        place = t.select(is_before, early + thread, last + thread - width)
        stop = t.select(is_before, first, end)
        with t.when((thread < 2 * width) & (place < stop)):
            out.store(place, *values(place - early, 1))

    def store(i: Any) -> Sequence[Any]:
        place = i * step + thread * width
        with t.when((place >= first) & (place < last)):
            out.store(place, *values(place - early, width))
        return []

    t.loop((last + (step - 1)) // step, store)
