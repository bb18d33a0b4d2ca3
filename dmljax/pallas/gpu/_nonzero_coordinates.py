"""NONZERO_COORDINATES on a GPU: count, exchange counts, write.

XLA packs the flags of a batch of lines, one bit for each element, and fuses the packing
into the code of the mask. The kernel reads only bits. The output has rows, one for each
non-zero element, with a value for each *column* of the coordinates.

A *share* is the part of a line that one program reads, and whose rows it writes. They
belong behind the rows of all earlier shares, so programs tell each other their counts:

    input      0 5 0 0 | 0 0 0 0 | 7 1 0 2     shares of 4 in this drawing
    bit words    .x..      ....      xx.x      in shared memory
    counts         1         0         3       posted to the programs of later shares
    before         0         1         1       the sum of the counts of earlier shares
    offsets      1                 8 9 11      in rows, from row `before` on
    zeros          3         4         1       fill as many rows, from the end on

A program waits for the counts of earlier shares. Each program takes the next share when
it starts, so the programs of earlier shares have started, and they post their counts
before they wait: every program gets an answer
(https://research.nvidia.com/publication/2016-03_single-pass-parallel-prefix-scan).

No program needs the counts of later shares. The rows past the count are the *tail*, and
hold the fill value. They are divided among the programs, too: each fills as many as its
share has zeros. If `size=` asks for fewer rows, no program writes the rows past `size`.
With `fill=None`, nothing is filled.

`_nonzero_forms` defines *bit words*. A *tile* is 1024 elements: a bit word for each
thread of a warp. A *chunk* is one tile or four, which a warp loads at once. A share has
a chunk or more for each warp. `_nonzero_rows` says how rows are written. Lines of one
tile or less are divided in another way (`_nonzero_tiles`).

Nothing reads the input twice, and only counts go from one program to another.

This module has the steps of a program until it writes rows. `_nonzero_plan` divides
lines.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jax import Array, lax

from dmljax._nonzero_forms import BIT_WORD, Layout, on_lines, pack
from dmljax._types import Form, Outputs
from dmljax.pallas.gpu import WARP
from dmljax.pallas.gpu._launch import launch_threads
from dmljax.pallas.gpu._nonzero_plan import (
    TILE,
    LongPlan,
    NonzeroProgram,
    ShortPlan,
    plan_of,
)
from dmljax.pallas.gpu._nonzero_rows import (
    list_ones,
    store_rows,
    write_listed,
    write_tile,
)
from dmljax.pallas.gpu._nonzero_tiles import find_in_tiles


def kernel_of(shape: tuple[int, ...], **static: Any) -> Form | None:
    """Returns the kernel, or None if a grid can't have as many programs as needed."""
    is_possible = plan_of(Layout.of(shape, **static)) is not None
    return nonzero_coordinates if is_possible else None


@on_lines
def nonzero_coordinates(flags: Array, origin: Array | None, layout: Layout) -> Outputs:
    """Finds the coordinates: a form of the operator."""
    plan = plan_of(layout)
    assert plan is not None  # otherwise `kernel_of` returns no kernel
    counts, coordinates = launch_threads(
        find_in_tiles if isinstance(plan, ShortPlan) else find_in_shares,
        pack(flags, plan.padded_elements).reshape(-1),
        *([] if origin is None else [origin]),
        programs=plan.programs,
        warps=plan.warps,
        outputs=[plan.lines, plan.lines * plan.rows * plan.columns],
        posts=plan.posts,
        shared=plan.shared,
        plan=plan,
    )
    # A `size` above the elements of a line is rare, and not worth code in the kernel.
    if layout.rows > plan.rows:
        coordinates = coordinates.reshape(plan.lines, plan.rows, plan.columns)
        more = ((0, 0, 0), (0, layout.rows - plan.rows, 0), (0, 0, 0))
        coordinates = lax.pad(coordinates, np.uint32(plan.fill or 0), more)
    return counts, coordinates


def find_in_shares(t: Any, *memories: Any, plan: LongPlan) -> None:
    """Reads a program's share, and writes its rows."""
    p = NonzeroProgram.of(t, memories, plan)
    share = p.next_share()
    line = share // plan.programs_of_line
    index = share % plan.programs_of_line  # of the share in its line
    _read_share(p, line, index)
    t.barrier()  # each warp sees the counts of all chunks
    # Thread i of a warp has the numbers of chunk i. Each warp computes them for itself.
    chunks = plan.warps * plan.chunks_of_warp
    has_chunk = p.lane < chunks
    loaded = p.chunk_counts.load(t.select(has_chunk, p.lane, 0))
    counts = t.select(has_chunk, loaded, 0)
    ends = t.warp_scan(counts)
    total = t.shuffle(ends, WARP - 1)
    before = _sum_programs(p, share, index, total) if plan.posts else t.constant(0)
    # The last program knows the count of the line.
    with t.when((index == plan.programs_of_line - 1) & (t.thread == 0)):
        p.counts.store(line, before + total)
    offset = p.origin(line) + index * plan.elements_of_share
    starts = before + ends - counts

    def write(i: Any) -> None:
        chunk = i * plan.warps + p.warp  # neighbouring warps write neighbouring rows
        row, count = t.shuffle(starts, chunk), t.shuffle(counts, chunk)
        with t.when(row < plan.rows):
            _write_chunk(p, line, row, count, offset, chunk)

    t.loop(t.select(before < plan.rows, plan.chunks_of_warp, 0), write)
    _write_tail(p, line, index, before, total)


def _read_share(p: NonzeroProgram, line: Any, index: Any) -> None:
    """Stores the bit words of the share, and how many non-zeros each chunk has."""
    t = p.t
    plan = p.plan
    first = index * (plan.warps * plan.chunks_of_warp)  # the first chunk of the share

    def read(i: Any) -> None:
        chunk = i * plan.warps + p.warp  # neighbouring warps load neighbouring words
        word = (first + chunk) * WARP + p.lane
        words = p.words(line, word * plan.tiles_of_chunk, plan.tiles_of_chunk)
        p.bit_words.store((chunk * WARP + p.lane) * plan.tiles_of_chunk, *words)
        count = t.warp_sum(_ones(t, words))
        with t.when(p.lane == 0):
            p.chunk_counts.store(chunk, count)

    t.loop(plan.chunks_of_warp, read)


def _ones(t: Any, words: Sequence[Any]) -> Any:
    """Counts the set bits of some bit words."""
    first, *more = map(t.ones, words)
    return sum(more, first)


def _sum_programs(p: NonzeroProgram, share: Any, index: Any, total: Any) -> Any:
    """Posts the share's total, and returns the sum of all earlier totals in the line.

    A line of 2^32 elements has 2^15 programs, of 2^17 elements each, and a thread waits
    for at most 128 posts. All programs together read 2^29 posts, 2 GiB from the cache,
    while the bits of the line are half a GiB.
    """
    t = p.t
    warps = p.plan.warps
    with t.when(t.thread == 0):
        p.posts.post(share, total)
    first = share - index  # the first share of the line

    def wait(i: Any, found: Any) -> Sequence[Any]:
        return [found + p.posts.wait(first + i * t.threads + t.thread)]

    rounds = (index + (t.threads - 1) - t.thread) // t.threads
    (found,) = t.loop(rounds, wait, t.constant(0))
    of_warp = t.warp_sum(found)
    with t.when(p.lane == 0):
        p.warp_sums.store(p.warp, of_warp)
    t.barrier()
    of_each = p.warp_sums.load(p.lane % warps)
    return t.warp_sum(t.select(p.lane < warps, of_each, 0))


def _write_chunk(
    p: NonzeroProgram, line: Any, row: Any, count: Any, offset: Any, chunk: Any
) -> None:
    """Writes the rows of a chunk with `count` non-zeros, from row `row` of the line on.

    The share begins at `offset` in its tensor.
    """
    t = p.t
    tiles = p.plan.tiles_of_chunk
    first = chunk * (tiles * WARP)  # the first bit word of the chunk
    offset = offset + first * BIT_WORD

    # The non-zeros of a sparse chunk fit in one list, which is faster than a list for
    # each tile (docs/development/lab_notes.md).
    with t.when(count < TILE):
        words = p.bit_words.words(first + p.lane * tiles, tiles)
        ones = _ones(t, words)
        slot = t.warp_scan(ones) - ones
        for i, word in enumerate(words):
            element = (p.lane * tiles + i) * BIT_WORD
            slot = list_ones(p, word, element, slot, TILE)
        write_listed(p, line, row, count, offset)

    def write(i: Any, row: Any) -> Sequence[Any]:
        word = p.bit_words.load(first + i * WARP + p.lane)
        return [write_tile(p, line, row, offset + i * TILE, word)]

    with t.when(count >= TILE):
        t.loop(tiles, write, row)


def _write_tail(
    p: NonzeroProgram, line: Any, index: Any, before: Any, total: Any
) -> None:
    """Fills as many rows as the share has zeros, counted from the end.

    Earlier shares have `before` non-zeros, and this share has `total`. The zeros of
    earlier shares fill the last rows, and the zeros of this share the rows in front of
    those. When all programs have ended, each row is written. For example, programs 0
    and 1 have shares of four:

        elements     0 5 0 0 | 7 1 0 2
        row          0 1 2 3   4 5 6 7
        written by   0 1 1 1   1 0 0 0     rows 4 to 7 get the fill value
    """
    t = p.t
    plan = p.plan
    if plan.fill is None:
        return
    first = index * plan.elements_of_share
    zeros = t.minimum(plan.elements - first, plan.elements_of_share) - total
    stop = plan.elements - (first - before)
    row = t.minimum(stop - zeros, plan.rows)
    rows = t.minimum(stop, plan.rows) - row
    start = t.wide(line) * plan.rows + row
    store_rows(p, start, rows, lambda _: t.constant(plan.fill), t.thread, t.threads)
