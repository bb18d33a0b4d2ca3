"""NONZERO_COORDINATES on a GPU: count, tell the others, write.

The input is a batch of lines. The output has rows, one for each non-zero element,
with a value for each *column* of the coordinates. Where a row goes depends on how many
non-zeros lie before it in the line, so programs tell each other their counts. Each
program has a *share* of a line, and does all of it:

    input      0 5 0 0 | 0 0 0 0 | 7 1 0 2     shares of 4 in this drawing
    read         .x..      ....      xx.x      bit words, in shared memory
    counts         1         0         3       posted to the programs behind
    before         0         1         1       the sum of the counts before
    rows         1                 8 9 11      from row `before` on
    zeros          3         4         1       fill as many rows, from the end on

A program waits for the counts of those before it. A GPU starts programs in the order of
their indices, so those have started, and they post their counts before they wait: every
program gets an answer. NVIDIA's CUB relies on this order, too
(https://research.nvidia.com/publication/2016-03_single-pass-parallel-prefix-scan).

A program need not know how many non-zeros lie behind it. The zeros before it fill the
last rows, and its own zeros fill the rows in front of those. A program writes as
many rows as it has elements, and when all have ended, every row is written. If `size=`
asks for fewer rows, those past the last are left out. With `fill=None`, nothing is
filled.

A *bit word* has one bit for each of 32 elements, set if the element is not zero. A
*tile* is 1024 elements: a bit word for each thread of a warp. A share has one tile or
more for each warp. `_nonzero_rows` says how rows are written.

Nothing reads the input twice, and only some numbers go from one program to another.
"""

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax import lax

from dmljax._nonzero_forms import last_sizes
from dmljax._types import Outputs
from dmljax.pallas._platforms import require_fit
from dmljax.pallas.gpu import WARP
from dmljax.pallas.gpu._launch import launch_threads
from dmljax.pallas.gpu._nonzero_bits import BIT_WORD, as_bits, bits_of_words, transposed
from dmljax.pallas.gpu._nonzero_plan import COUNTED, TILE, NonzeroPlan, Program
from dmljax.pallas.gpu._nonzero_rows import fill_rows, write_rows


def nonzero_coordinates(
    x: jax.Array,
    *origins: jax.Array,
    sizes: tuple[int, ...],
    rows: int,
    columns: int,
    fill: int | None,
) -> Outputs:
    """The form by kernel, for lines, as `by_lines` describes it."""
    batch, elements = x.shape
    bits, width, keep = as_bits(x)
    last = last_sizes(sizes, columns)
    written = min(rows, elements)
    plan = NonzeroPlan(batch, elements, written, last, width, keep, fill)
    problem = f"the kernel can't find elements in {batch} tensors at once"
    require_fit("NONZERO_COORDINATES", plan.programs * batch < 2**31, problem)
    offsets = [origin.reshape(batch, 1) for origin in origins]
    outputs = [
        jax.ShapeDtypeStruct((batch, 1), np.uint32),
        jax.ShapeDtypeStruct((batch, written * columns), np.uint32),
    ]
    count, coordinates = launch_threads(
        _find_rows,
        bits,
        *offsets,
        operator="nonzero_coordinates",
        programs=plan.programs * batch,
        warps=plan.warps,
        outputs=outputs,
        posts=[(batch, plan.posts)] if plan.posts else [],
        shared=plan.shared,
        plan=plan,
    )
    coordinates = coordinates.reshape(batch, written, columns)
    if rows > written:  # this is rare, and not worth a way of its own in the kernel
        more = ((0, 0, 0), (0, rows - written, 0), (0, 0, 0))
        coordinates = lax.pad(coordinates, np.uint32(fill or 0), more)
    return count[:, 0], coordinates


def _find_rows(t: Any, *memories: Any, plan: NonzeroPlan) -> None:
    """Reads a program's share, and writes its rows."""
    p = Program.of(t, memories, plan)
    _read_share(p)
    t.barrier()
    total = _count_before_tiles(p)
    before = t.constant(0)
    if plan.posts:
        before = _count_before_share(p, total)
    with t.when((p.index == plan.programs - 1) & (t.thread == 0)):
        p.count.store(0, before + total)
    t.barrier()  # so that all warps see the starts of tiles
    offset = sum((origin.load(0) for origin in p.origins), p.index * plan.share)
    write_rows(p, before, offset)
    if plan.fill is not None:
        fill_rows(p, before, total)


def _read_share(p: Program) -> None:
    """Stores the bit words of the share, and how many non-zeros each tile has."""
    plan = p.plan
    before = p.index * (plan.warps * plan.tiles)  # tiles of the line before the share

    def read(i: Any) -> Sequence[Any]:
        tile = i * plan.warps + p.warp
        is_whole = before + tile < plan.elements // TILE
        with p.t.when(is_whole):
            _store_tile(p, tile, _load_whole(p, before + tile))
        with p.t.when(is_whole ^ True):
            _store_tile(p, tile, _load_cut(p, before + tile))
        return []

    p.t.loop(plan.tiles, read)


def _load_whole(p: Program, tile: Any) -> list[Any]:
    """Loads a whole tile of the line.

    A thread has neighbouring elements, then those that lie WARP times as far, and so
    on. The result has a number for each load, of bits: whether an element is not zero.
    """
    plan = p.plan
    loaded = plan.loaded(True)
    scale = plan.width // p.bits.bits  # words of an element: 2 for 8 bytes
    line = p.bits.part(p.t.wide(tile * TILE + p.lane * loaded) * scale)
    found = []
    for k in range(BIT_WORD // loaded):
        # A constant offset takes no register. With more than 64 registers for a thread,
        # a processor runs three programs at once and not four.
        words = line.words(k * WARP * loaded * scale, loaded * scale)
        found.append(bits_of_words(words, plan.width, plan.keep))
    return found


def _load_cut(p: Program, tile: Any) -> list[Any]:
    """Loads a tile that may reach past the end of the line, or lie past it.

    Here each load is tested. If all tiles were loaded like this, a line of 2^26 + 1
    elements of uint8 would take 1.23 times as long.
    """
    plan = p.plan
    loaded = plan.loaded(False)
    scale = plan.width // p.bits.bits
    start = p.t.wide(tile * TILE + p.lane * loaded) * scale
    rest = p.t.select(tile <= plan.elements // TILE, plan.elements - tile * TILE, 0)
    found = []
    for k in range(BIT_WORD // loaded):
        offset = k * WARP * loaded
        inside = p.lane * loaded + offset < rest
        there = p.t.select(inside, start + offset * scale, 0)
        words = p.bits.words(there, loaded * scale)
        bits = bits_of_words(words, plan.width, plan.keep)
        found.append(p.t.select(inside, bits, 0))
    return found


def _store_tile(p: Program, tile: Any, loads: Sequence[Any]) -> None:
    """Stores the bit words of a tile, given the bits of each load of a thread."""
    # Threads load side by side: each of them has bits of several bit words. They
    # exchange these bits, until each thread has a bit word.
    size = BIT_WORD // len(loads)
    shifted = (bits << (k * size) for k, bits in enumerate(loads))
    mixed = functools.reduce(operator.or_, shifted)
    index = p.lane % len(loads) * size + p.lane // len(loads)
    p.bit_words.store(tile * WARP + index, transposed(p.t, mixed, size))
    total = p.t.warp_sum(p.t.ones(mixed))
    with p.t.when(p.lane == 0):
        p.nonzeros.store(tile, total)


def _count_before_tiles(p: Program) -> Any:
    """Stores how many non-zeros of the share lie before each tile.

    Each warp does this for itself, and each of its threads for COUNTED neighbouring
    tiles. Returns how many non-zeros the share has.
    """
    t = p.t
    has_tiles = p.lane < p.plan.warps * p.plan.tiles // COUNTED
    tile = t.select(has_tiles, p.lane, 0) * COUNTED
    each = [t.select(has_tiles, n, 0) for n in p.nonzeros.words(tile, COUNTED)]
    *before, own = itertools.accumulate(each, initial=t.constant(0))
    ends = t.warp_scan(own)
    with t.when(has_tiles & (t.thread < WARP)):
        p.starts.store(tile, *(ends - own + n for n in before))
    return t.shuffle(ends, WARP - 1)


def _count_before_share(p: Program, total: Any) -> Any:
    """Returns how many non-zeros lie before the share. It has `total` itself.

    A program posts its total, and waits for the totals of those before it.
    """
    t = p.t
    with t.when(t.thread == 0):
        p.posts.post(p.index, total)

    # A line of 2^32 elements has 2^15 programs, and a thread waits for at most 128
    # posts. All programs together read 2^29 posts, of 4 bytes: half as many bytes as
    # the line has at least, and all from the cache.
    def wait(i: Any, found: Any) -> Sequence[Any]:
        return [found + p.posts.wait(i * t.threads + t.thread)]

    rounds = (p.index + (t.threads - 1) - t.thread) // t.threads
    (found,) = t.loop(rounds, wait, t.constant(0))
    of_warp = t.warp_sum(found)
    with t.when(p.lane == 0):
        p.sums.store(p.warp, of_warp)
    t.barrier()
    of_warps = p.sums.load(p.lane % p.plan.warps)
    return t.warp_sum(t.select(p.lane < p.plan.warps, of_warps, 0))
