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
from dmljax.pallas.gpu import WARP
from dmljax.pallas.gpu._nonzero_bits import BIT_WORD
from dmljax.pallas.gpu._nonzero_plan import (
    LISTED,
    PIECE,
    TILE,
    WORDS,
    NonzeroPlan,
    Program,
)
from dmljax.pallas.gpu._words import unpacked


def piece_tiles(p: Program, ends: Any, own: Any) -> Any:
    """Returns the tiles of a piece, so that a list has room for every piece.

    Each thread of a warp has PIECE tiles of the share. They have `own` non-zeros, and
    together with all tiles before them `ends`.
    """
    t, plan, piece = p.t, p.plan, p.t.constant(1)
    if not plan.pieces:
        return piece
    threads = plan.tiles // PIECE  # that together have the tiles of the largest piece
    first = p.lane // threads * threads
    # A lane without tiles may ask here for a lane past the last one. Its number is not
    # used.
    most = t.shuffle(ends, first + (threads - 1)) - t.shuffle(ends - own, first)
    has_tiles = p.lane < plan.warps * threads
    for tiles, nonzeros in zip(plan.pieces, (own, most), strict=True):
        too_many = t.select(has_tiles & (nonzeros > TILE), t.constant(1), 0)
        piece = t.select(t.warp_sum(too_many) == 0, tiles, piece)
    return piece


def count_piece(p: Program, tile: Any, piece: Any) -> tuple[Any, Any]:
    """Counts the non-zeros of the `piece` tiles from `tile` of the share on.

    Returns how many of them lie before the thread's bit words, and how many there are.
    """
    t, bit_words = p.t, p.bit_words.part(tile * WORDS)
    first = p.lane * piece

    def count(i: Any, found: Any) -> Sequence[Any]:
        return [found + t.ones(_bit_word(bit_words, first + i))]

    (found,) = t.loop(piece, count, t.constant(0))
    ends = t.warp_scan(found)
    return ends - found, t.shuffle(ends, WARP - 1)


def _bit_word(bit_words: Any, index: Any) -> Any:
    """Loads a bit word of a piece, given how many lie before it."""
    return bit_words.load(index + index // WARP)


def write_rows(
    p: Program, start: Any, offset: Any, piece: Any, counted: Sequence[Any]
) -> None:
    """Writes the rows of a program's non-zeros from row `start` on.

    Args:
      p: the program.
      start: how many non-zeros of the line lie before the share.
      offset: the offset of the share in its tensor.
      piece: the tiles of a piece.
      counted: what `count_piece` returns for the warp's first piece.
    """
    t, plan, listed = p.t, p.plan, p.listed.part(p.warp * LISTED)
    rounds = t.constant(plan.tiles) // piece

    def write_piece(i: Any, before: Any, nonzeros: Any) -> Sequence[Any]:
        # Warps write pieces side by side, because memory takes neighbours faster.
        tile = (i * plan.warps + p.warp) * piece
        row = start + p.starts.load(tile)
        of_piece = offset + tile * TILE
        words = p.bit_words.part(tile * WORDS)
        # If the first tile of a piece is full, its other tiles are empty.
        is_full = p.nonzeros.load(tile) == TILE
        with t.when(row < plan.rows):
            with t.when(is_full):
                _write(p, row, t.constant(TILE), of_piece, _neighbours)
            with t.when(is_full ^ True):
                # A list begins some elements late, so that a thread loads from it at
                # once what it stores at once.
                late = row % plan.rows_at_once if plan.whole_rows else t.constant(0)
                _list_nonzeros(p, words, piece, late + before, listed)
                t.warp_barrier()
                elements = _listed_from(listed, late, plan)
                _write(p, row, nonzeros, of_piece, elements)
                t.warp_barrier()  # before the next piece is listed
        # The first piece is counted before this loop, so each round counts the next
        # one. Behind the last piece there is nothing to count.
        tiles = t.select(i + 1 == rounds, 0, piece)
        return count_piece(p, tile + tiles * plan.warps, tiles)

    t.loop(t.select(start < plan.rows, rounds, 0), write_piece, *counted)


# elements(i, count) gives the offsets in the piece of some non-zeros: of number i and
# of those behind it.
Elements = Callable[[Any, int], list[Any]]


def _neighbours(i: Any, count: int) -> list[Any]:
    """The `Elements` of a full tile."""
    return [i + k for k in range(count)]


def _listed_from(listed: Any, late: Any, plan: NonzeroPlan) -> Elements:
    """The `Elements` of a list that begins `late`."""

    def elements(i: Any, count: int) -> list[Any]:
        if count > 1 and plan.whole_rows:
            return unpacked(listed.words(late + i, count), count, 16)
        return [listed.load(late + i + k) for k in range(count)]

    return elements


def _list_nonzeros(
    p: Program, bit_words: Any, piece: Any, slot: Any, listed: Any
) -> None:
    """Lists the non-zeros of the thread's bit words of a piece, from `slot` on."""
    t = p.t

    def list_word(i: Any, slot: Any) -> Sequence[Any]:
        index = p.lane * piece + i

        def list_lowest(bits: Any, slot: Any) -> Sequence[Any]:
            lower = bits - 1
            listed.store(slot, index * BIT_WORD + (t.ones(bits ^ lower) - 1))
            return [bits & lower, slot + 1]

        bits = _bit_word(bit_words, index)
        # LLVM unrolls a loop whose number of rounds is known by four. Then threads with
        # different numbers of rounds wait for each other twice.
        _, slot = t.repeat(lambda bits, _: bits != 0, list_lowest, bits, slot)
        return [slot]

    t.loop(piece, list_word, slot)


def _write(p: Program, start: Any, count: Any, offset: Any, elements: Elements) -> None:
    """Writes the rows of a piece from row `start` on, by a warp.

    The piece has `count` non-zeros, and begins at `offset` in its tensor. Rows past the
    last one of the output are left out.
    """
    t, plan = p.t, p.plan

    def values(i: Any, count: int) -> list[Any]:
        row, column = i // plan.columns, i % plan.columns
        of_rows = elements(row, plan.rows_at_once if count > 1 else 1)
        return _from_column(p, column, (offset + e for e in of_rows), count)

    rows = t.minimum(count, plan.rows - start)
    store_rows(p, start, rows, values, p.lane, WARP)


def _from_column(
    p: Program, column: Any, offsets: Iterable[Any], count: int
) -> list[Any]:
    """Returns `count` values of the rows of these elements, from a column on.

    For example, four values of two elements with three columns, from column 2 on:

        a0 a1 a2 b0 b1 b2
              -----------
    """
    columns = p.plan.columns
    each = [value for offset in offsets for value in _unravel(offset, p.plan)]
    found = each[:count]
    # The first value is in one of these columns.
    step = math.gcd(columns, count)
    for begin in range(step, columns, step):
        pairs = zip(each[begin : begin + count], found, strict=True)
        found = [p.t.select(column == begin, *pair) for pair in pairs]
    return found


def _unravel(offset: Any, plan: NonzeroPlan) -> list[Any]:
    """Returns the coordinates of an element; the first one may be past its size."""
    found = []
    for stride in packed_strides(plan.sizes)[:-1]:
        found.append(offset // stride)
        offset = offset - found[-1] * stride
    return [*found, offset]


def store_rows(
    p: Program,
    start: Any,
    rows: Any,
    values: Callable[[Any, int], list[Any]],
    thread: Any,
    threads: int,
) -> None:
    """Stores the values of `rows` rows from row `start` on.

    Args:
      p: the program.
      start: the first row.
      rows: how many rows.
      values: takes i and a count, which is 1 or `plan.stored`, and returns so many
        values of the rows, from the value with the number i on.
      thread: the thread's number among those that store these rows together.
      threads: how many these are.
    """
    t, width, columns = p.t, p.plan.stored, p.plan.columns
    # Threads that store together begin at a multiple of what they store at once. Where
    # the eight warps of a program filled 4 KiB from any address on, uint8 of rank 4
    # took 0.46 ms instead of 0.28.
    #
    #     0      early     whole              rest  end     offsets from there on
    #            |.........|====|====|====|===|.....|
    #
    # The loop stores `width` values at a time. What lies before and behind these is
    # less than `width` values each, and is stored one by one.
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
