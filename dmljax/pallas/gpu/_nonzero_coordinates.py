"""NONZERO_COORDINATES on a GPU: count, tell the others, write.

The input is a batch of lines. The output has rows, one for each non-zero element,
with a value for each *column* of the coordinates. The place of a row is the number of
non-zeros before it in the line, so programs tell each other their counts. Each
program has a *share* of a line, and does all of it:

    input      0 5 0 0 | 0 0 0 0 | 7 1 0 2     shares of 4 in this drawing
    read         .x..      ....      xx.x      bit words, in shared memory
    counts         1         0         3       posted to the programs behind
    before         0         1         1       the sum of the counts before
    offsets      1                 8 9 11      in rows, from row `before` on
    zeros          3         4         1       fill as many rows, from the end on

A program waits for the counts of those before it. A GPU starts programs in the order of
their indices, so those have started, and they post their counts before they wait: every
program gets an answer. NVIDIA's CUB relies on this order, too
(https://research.nvidia.com/publication/2016-03_single-pass-parallel-prefix-scan).

A program need not know the number of non-zeros behind it. The rows past the count are
divided among the programs, too: each fills as many as its share has zeros
(`write_tail`). If `size=` asks for fewer rows, those past the last are left out. With
`fill=None`, nothing is filled.

A *bit word* is that of `_nonzero_forms`. A *tile* is 1024 elements: a bit word for each
thread of a warp. A share has one tile or more for each warp. `_nonzero_rows` says how
rows are written.

Nothing reads the input twice, and only counts go from one program to another.

Here belong the steps of a program until it writes rows. `_nonzero_bits` tests elements,
`_nonzero_plan` divides a line, and `_nonzero_rows` writes rows.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax import lax

from dmljax._check import NoKernelError
from dmljax._nonzero_forms import BIT_WORD
from dmljax._types import Outputs
from dmljax.pallas.gpu import WARP, word_of
from dmljax.pallas.gpu._launch import launch_threads
from dmljax.pallas.gpu._nonzero_bits import as_bits, flags_of_words, transposed
from dmljax.pallas.gpu._nonzero_plan import COUNTED, TILE, NonzeroPlan, NonzeroProgram
from dmljax.pallas.gpu._nonzero_rows import write_rows, write_tail


def nonzero_coordinates(
    x: jax.Array,
    *origins: jax.Array,
    sizes: tuple[int, ...],
    rows: int,
    columns: int,
    fill: int | None,
) -> Outputs:
    """Finds the non-zeros of lines.

    `x`, `sizes` and `rows` are those of a `Lines`. `origins` has its `origin`, or
    nothing if each is 0.
    """
    batch, elements = x.shape
    bits, width, keep = as_bits(x)
    sizes = sizes[-columns:] or (1,)  # a scalar has one coordinate
    written = min(rows, elements)
    plan = NonzeroPlan(batch, elements, written, sizes, width, keep, fill)
    programs = plan.programs * batch
    if programs >= 2**31:  # more than a grid can have
        raise NoKernelError(
            f"NONZERO_COORDINATES: the kernel can't find elements in {batch} tensors "
            "at once; use implementation=None or 'xla'."
        )
    count, coordinates = launch_threads(
        _find_rows,
        bits,
        *(origin.reshape(batch, 1) for origin in origins),
        operator="nonzero_coordinates",
        programs=programs,
        warps=plan.warps,
        outputs=[
            jax.ShapeDtypeStruct((batch, 1), np.uint32),
            jax.ShapeDtypeStruct((batch, written * columns), np.uint32),
        ],
        posts=plan.posts,
        shared=plan.shared,
        plan=plan,
    )
    coordinates = coordinates.reshape(batch, written, columns)
    if rows > written:  # this is rare, and not worth a path in the kernel
        more = ((0, 0, 0), (0, rows - written, 0), (0, 0, 0))
        coordinates = lax.pad(coordinates, np.uint32(fill or 0), more)
    return count[:, 0], coordinates


def _find_rows(t: Any, *memories: Any, plan: NonzeroPlan) -> None:
    """Reads a program's share, and writes its rows."""
    p = NonzeroProgram.of(t, memories, plan)
    _read_share(p)
    t.barrier()  # so that each warp sees the counts of all tiles
    total = _sum_tiles(p)
    before = _sum_programs(p, total) if plan.posts else t.constant(0)
    # The last program knows the count of the line.
    with t.when((p.index == plan.programs - 1) & (t.thread == 0)):
        p.count.store(0, before + total)
    t.barrier()  # so that all warps see the starts of tiles
    offset = p.index * plan.share
    for origin in p.origins:
        offset = offset + origin.load(0)
    write_rows(p, before, offset)
    if plan.fill is not None:
        write_tail(p, before, total)


def _read_share(p: NonzeroProgram) -> None:
    """Stores the bit words of the share, and how many non-zeros each tile has."""
    t = p.t
    plan = p.plan
    first = p.index * (plan.warps * plan.tiles)  # the first tile of the share

    def read(i: Any) -> None:
        tile = i * plan.warps + p.warp
        whole_tiles = plan.elements // TILE
        with t.when(first + tile < whole_tiles):
            _store_tile(p, tile, _load_whole(p, first + tile))
        with t.when(first + tile >= whole_tiles):
            _store_tile(p, tile, _load_cut(p, first + tile))

    t.loop(plan.tiles, read)


def _load_whole(p: NonzeroProgram, tile: Any) -> list[Any]:
    """Loads a whole tile of the line.

    A thread loads `size` neighbouring elements, then as many that lie `WARP * size`
    elements further on, and so on. The result has the flags of each load, as `_load`
    returns them.
    """
    size = p.plan.load_size(True)
    start = p.t.wide(tile * TILE + p.lane * size)
    memory = p.line.part(start * p.plan.integers)
    # An offset that is constant takes no register. With more than 64 registers for a
    # thread, a processor runs three programs at once and not four.
    return [_load(p, memory, k * WARP * size, size) for k in range(BIT_WORD // size)]


def _load_cut(p: NonzeroProgram, tile: Any) -> list[Any]:
    """Loads a tile that may reach past the end of the line, or lie past it.

    Each load is tested. A program takes up to 1.23 times as long on an H100 if all
    tiles are loaded in this way.
    """
    t = p.t
    elements = p.plan.elements
    size = p.plan.load_size(False)
    start = t.wide(tile * TILE + p.lane * size)
    rest = t.select(tile <= elements // TILE, elements - tile * TILE, 0)
    loads = []
    for k in range(BIT_WORD // size):
        offset = k * WARP * size
        is_inside = p.lane * size + offset < rest
        flags = _load(p, p.line, t.select(is_inside, start + offset, 0), size)
        loads.append(t.select(is_inside, flags, 0))
    return loads


def _load(p: NonzeroProgram, memory: Any, element: Any, size: int) -> Any:
    """Loads `size` elements from this one on, and returns their flags."""
    plan = p.plan
    integers = plan.integers
    words = memory.words(element * integers, size * integers)
    return flags_of_words(words, plan.width, plan.keep)


def _store_tile(p: NonzeroProgram, tile: Any, loads: Sequence[Any]) -> None:
    """Stores the bit words of a tile and their count, given the flags of each load."""
    # Threads load side by side: each of them has flags of several bit words. They
    # exchange these flags, until each thread has a bit word. A group is as many threads
    # as there are loads, k of them. Thread i of group g ends with the flags of load i
    # of its whole group. They are bit word i * size + g, since load i has `size` bit
    # words, one for each group.
    t = p.t
    size = BIT_WORD // len(loads)  # elements of a load, and groups of a warp
    mixed = word_of(loads, size)
    index = p.lane % len(loads) * size + p.lane // len(loads)
    p.bit_words.store(tile * WARP + index, transposed(t, mixed, size))
    count = t.warp_sum(t.ones(mixed))
    with t.when(p.lane == 0):
        p.tile_counts.store(tile, count)


def _sum_tiles(p: NonzeroProgram) -> Any:
    """Stores how many non-zeros lie before each tile, and returns those of the share.

    Each warp sums for itself, and each of its threads for COUNTED neighbouring tiles.
    """
    t = p.t
    has_tiles = p.lane < p.plan.warps * p.plan.tiles // COUNTED
    tile = t.select(has_tiles, p.lane, 0) * COUNTED
    counts = [t.select(has_tiles, n, 0) for n in p.tile_counts.words(tile, COUNTED)]
    *before, own = itertools.accumulate(counts, initial=t.constant(0))
    ends = t.warp_scan(own)
    with t.when(has_tiles & (t.thread < WARP)):
        p.tile_starts.store(tile, *(ends - own + n for n in before))
    return t.shuffle(ends, WARP - 1)


def _sum_programs(p: NonzeroProgram, total: Any) -> Any:
    """Posts the share's total, and returns the sum of those of the programs before.

    A line of 2^32 elements has 2^15 programs, of 2^17 elements each, and a thread waits
    for at most 128 posts. All programs together read 2^29 posts. These are 2 GiB from
    the cache, while the line is 4 GiB or more from memory.
    """
    t = p.t
    warps = p.plan.warps
    with t.when(t.thread == 0):
        p.posts.post(p.index, total)

    def wait(i: Any, found: Any) -> Sequence[Any]:
        return [found + p.posts.wait(i * t.threads + t.thread)]

    rounds = (p.index + (t.threads - 1) - t.thread) // t.threads
    (found,) = t.loop(rounds, wait, t.constant(0))
    of_warp = t.warp_sum(found)
    with t.when(p.lane == 0):
        p.warp_sums.store(p.warp, of_warp)
    t.barrier()
    of_each = p.warp_sums.load(p.lane % warps)
    return t.warp_sum(t.select(p.lane < warps, of_each, 0))
