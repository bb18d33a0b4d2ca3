"""The rows of NONZERO_COORDINATES on a GPU: what a program writes.

A *piece* is some neighbouring tiles. One warp lists their non-zeros in shared memory,
in order, and then writes them. A thread has neighbouring bit words of a piece, as many
as there are tiles. A list has room for the elements of one tile: a piece has more tiles
if few elements are not zero. That takes less time for each tile.

    bit words    .x..  ...x    x.x.      of three threads; of 4 elements in this drawing
    list         1 7 8 10                which elements of the piece are not zero
    rows         from row `start` on, four values of a thread at once

The rows past the count are the *tail*, and hold the fill value. There are two ways to
divide the tail among programs:

- `fill_rows`: a program fills as many rows as its share has zeros. It knows which rows
  these are, and waits for no count but those of the programs before it.
- `fill_parts`: if `size=` asks for few rows, only the last programs have zeros for
  which there is a row. Then all programs *claim* parts of the tail: they count in a
  word of memory. They wait until the last program has counted where the tail begins.

A program must not wait for one that has not started, which may start only when others
have ended. Programs start in the order of their indices, so all have started when the
last one has. It says so at its beginning. A program that would claim before that claims
nothing. The last program fills what nobody else claims.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from dmljax._tensor import packed_strides
from dmljax.pallas.gpu import WARP
from dmljax.pallas.gpu._nonzero_bits import BIT_WORD
from dmljax.pallas.gpu._nonzero_plan import LISTED, PIECE, TILE, WORDS, Program

# Takes a number and a count, and gives what has this number, and the next ones.
Some = Callable[[Any, int], list[Any]]


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

    `offset` is that of the share in its tensor. A piece has `piece` tiles, and
    `counted` is what `count_piece` returns for the warp's first one.
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
                count = t.constant(TILE)
                _write(p, row, count, of_piece, lambda i, n: [i + k for k in range(n)])
            with t.when(is_full ^ True):
                # A list begins some elements late, so that a thread loads from it at
                # once what it stores at once.
                late = row % plan.rows_at_once if plan.whole_rows else t.constant(0)
                _list_nonzeros(p, words, piece, late + before, listed)
                t.warp_barrier()

                def elements(i: Any, count: int) -> list[Any]:
                    if count > 1 and plan.whole_rows:
                        words = listed.words(late + i, count)  # two elements in each
                        return [word >> k & 0xFFFF for word in words for k in (0, 16)]
                    return [listed.load(late + i + k) for k in range(count)]

                _write(p, row, nonzeros, of_piece, elements)
                t.warp_barrier()  # before the next piece is listed
        # The first piece is counted before this loop, so each round counts the next
        # one. Behind the last piece there is nothing to count.
        tiles = t.select(i + 1 == rounds, 0, piece)
        return count_piece(p, tile + tiles * plan.warps, tiles)

    t.loop(t.select(start < plan.rows, rounds, 0), write_piece, *counted)


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
        # LLVM unrolls a loop by four if it knows how many rounds it has. Then threads
        # with different numbers of rounds wait for each other twice.
        _, slot = t.repeat(lambda bits, _: bits != 0, list_lowest, bits, slot)
        return [slot]

    t.loop(piece, list_word, slot)


def _write(p: Program, start: Any, count: Any, offset: Any, elements: Some) -> None:
    """Writes the rows of a piece from row `start` on, by a warp.

    The piece has `count` non-zeros, at the offsets `elements` in it, and begins at
    `offset` in its tensor. Rows past the last one of the output are left out.
    """
    t, columns = p.t, p.plan.columns

    def values(i: Any, count: int) -> list[Any]:
        row, column = i // columns, i % columns
        of_rows = elements(row, p.plan.rows_at_once if count > 1 else 1)
        # For example, four values of two rows of three columns, from column 2 on:
        #
        #     a0 a1 a2 b0 b1 b2
        #           -----------
        each = [value for e in of_rows for value in _unravel(p, offset + e)]
        found = each[:count]
        # The first value is in one of these columns.
        step = math.gcd(columns, count)
        for begin in range(step, columns, step):
            pairs = zip(each[begin : begin + count], found, strict=True)
            found = [t.select(column == begin, *pair) for pair in pairs]
        return found

    rows = t.minimum(count, p.plan.rows - start)
    store_rows(p, start, rows, values, p.lane, WARP)


def _unravel(p: Program, offset: Any) -> list[Any]:
    """Returns the coordinates of an element; the first one may be past its size."""
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


# THE TAIL


def fill_rows(p: Program, before: Any, total: Any) -> None:
    """Fills as many rows as the share has zeros, counted from the end.

    `before` elements before the share are not zero, and `total` of the share. For
    example, two programs have shares of four. Program 0 writes row 0 and fills the rows
    `a`, and program 1 writes rows 1 to 3 and fills row `b`:

        elements   0 5 0 0 | 7 1 0 2
        rows       0 1 1 1 b a a a

    If `size=` asks for fewer rows, those past the last one are left out.
    """
    t, plan = p.t, p.plan
    first = p.index * plan.share
    stop = plan.elements - (first - before)
    start = stop - (t.minimum(plan.elements - first, plan.share) - total)
    _fill(p, t.minimum(start, plan.rows), t.minimum(stop, plan.rows))


def claim_part(p: Program) -> None:
    """Claims a part of the tail, if the last program of the line has started.

    A program does this before it knows where the tail begins, while it waits for the
    counts of others.
    """
    t, (post, _, claims) = p.t, p.plan.tail
    with t.when(t.thread == t.threads - 1):  # It waits for the fewest counts.
        started = p.posts.peek(post)
        p.claimed.store(0, started)
        with t.when(started != 0):
            p.claimed.store(1, p.posts.claim(claims))


def fill_parts(p: Program, count: Any) -> None:
    """Fills the part of the tail that the program has claimed, and claims others.

    `count` elements are not zero, of the program's share and before it.
    """
    t, plan, (_, post, claims) = p.t, p.plan, p.plan.tail
    with t.when((p.claimed.load(0) != 0) & (count < plan.rows)):
        with t.when(t.thread == 0):
            p.claimed.store(2, p.posts.wait(post))
        t.barrier()
        begin = p.claimed.load(2)
        first = begin // plan.part * plan.part
        parts = (t.constant(plan.rows) - first + (plan.part - 1)) // plan.part

        def fill(part: Any) -> Sequence[Any]:
            t.barrier()  # so that all threads have read which part it is
            with t.when(t.thread == 0):  # while the others already fill
                p.claimed.store(1, p.posts.claim(claims))
            low = first + part * plan.part
            high = low + plan.part
            _fill(p, t.maximum(low, begin), t.minimum(high, plan.rows))
            t.barrier()
            return [p.claimed.load(1)]

        t.repeat(lambda part: part < parts, fill, p.claimed.load(1))


def _fill(p: Program, start: Any, stop: Any) -> None:
    """Fills the rows from `start` to `stop` by all threads of a program."""

    def values(_: Any, count: int) -> list[Any]:
        return [p.t.constant(p.plan.fill)] * count

    store_rows(p, start, stop - start, values, p.t.thread, p.t.threads)
