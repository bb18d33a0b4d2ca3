"""NONZERO_COORDINATES on a GPU: count, tell the others, write.

The input is a batch of *lines*: independent tensors, flat. The output has *rows*, one
for each non-zero element, with one value for each *column* of the coordinates. Where a
row goes depends on how many non-zeros lie before it in the line, so programs tell each
other what they counted. Each program has a *share* of a line, and does all of it:

    input      0 5 0 0 | 0 0 0 0 | 7 1 0 2     shares of 4 in this drawing
    read         .x..      ....      xx.x      bit words, in shared memory
    counts         1         0         3       posted to the programs behind
    before         0         1         1       the sum of what was posted before
    rows         1                 8 9 11      from row `before` on
    zeros          3         4         1       fill as many rows, from the end on

A program waits for the counts of those before it. A GPU starts programs in the order of
their numbers, so those have started, and they post their counts before they wait: every
program gets an answer. (NVIDIA's library of parallel algorithms, CUB, relies on this
order, too.)

A program need not know how many non-zeros lie behind it. The zeros before it fill the
last rows, and its own zeros fill the rows in front of those. So a program writes as
many rows as it has elements, and when all have ended, every row is written. If `size=`
asks for more rows, the programs share the rest. If it asks for fewer, those past the
last are left out, and if it asks for few, `_nonzero_fill` has another way. With
`fill=None`, nothing is filled.

A *bit word* has one bit for each of 32 elements, set if the element is not zero. A
*tile* is 1024 elements: a bit word for each thread of a warp. A share has one tile or
more for each warp. `_nonzero_rows` says how rows are written.

Nothing reads the input twice, and only some numbers go from one program to another.
The kernel is code for one thread (`_threads`), which `_lockstep` runs on a CPU. How
bits are tested is in `_nonzero_bits`.
"""

import functools
import operator
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from dmljax._check import NoKernelError, require
from dmljax._coordinates import last_sizes
from dmljax._types import Outputs
from dmljax.pallas import WARP
from dmljax.pallas.gpu._launch import launch_threads
from dmljax.pallas.gpu._nonzero_bits import (
    BIT_WORD,
    as_bits,
    bits_of_words,
    transposed,
)
from dmljax.pallas.gpu._nonzero_fill import (
    claim_part,
    fill_parts,
    fill_rows,
    post_start,
    post_tail,
)
from dmljax.pallas.gpu._nonzero_plan import PIECE, TILE, NonzeroPlan
from dmljax.pallas.gpu._nonzero_rows import (
    LISTED,
    WORDS,
    count_piece,
    piece_tiles,
    write_rows,
)


def nonzero_coordinates(
    x: jax.Array,
    *first: jax.Array,
    sizes: tuple[int, ...],
    rows: int,
    columns: int,
    fill: int | None,
    interpret: bool,
) -> Outputs:
    """The form by a kernel, for lines: `by_lines` says what it takes and returns."""
    batch, elements = x.shape
    bits, width, keep = as_bits(x)
    last = last_sizes(sizes, columns)
    plan = NonzeroPlan(batch, elements, rows, last, width, keep, fill)
    _, past = plan.rows_past_elements
    for holds, problem in (
        (
            (plan.share + past) * columns < 2**31,
            f"size={rows} is too large for the kernel and {elements} elements",
        ),
        (
            plan.programs * batch < 2**31,
            f"the kernel can't find elements in {batch} tensors at once",
        ),
    ):
        message = f"{problem}; use implementation=None or 'xla'."
        require("NONZERO_COORDINATES", holds, message, NoKernelError)

    def lines(size: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct((batch, size), np.uint32)

    count, coordinates = launch_threads(
        _kernel,
        bits,
        *(offset.reshape(batch, 1) for offset in first),
        operator="nonzero_coordinates",
        programs=plan.programs * batch,
        warps=plan.warps,
        outputs=[lines(1), lines(rows * columns)],
        posts=[(batch, plan.posts)] if plan.posts else [],
        shared=[
            (plan.warps * plan.tiles * WORDS, np.uint32),  # bit words
            (plan.warps * plan.tiles, np.uint32),  # non-zeros of tiles
            (plan.warps * plan.tiles, np.uint32),  # non-zeros before tiles
            (plan.warps * LISTED, np.uint16),
            (plan.warps, np.uint32),  # sums of warps
            (3, np.uint32),  # what the program claims
        ],
        interpret=interpret,
        plan=plan,
    )
    return count[:, 0], coordinates.reshape(batch, rows, columns)


def _kernel(t: Any, *memories: Any, plan: NonzeroPlan) -> None:
    """Reads a program's share, and writes its rows."""
    *arrays, bit_words, nonzeros, starts, listed, sums, claimed = memories
    program, line = plan.program_and_line(t)
    arrays = [array.at(line) for array in arrays]
    posts = arrays.pop() if plan.posts else None
    bits, *first, count, out = arrays
    if plan.claims:
        post_start(t, program, posts, plan)
    _read(t, program, bits, bit_words, nonzeros, plan)
    t.barrier()
    total, ends, found = _scan(t, nonzeros, starts, plan)
    if posts is not None:
        with t.when(t.thread == 0):
            posts.post(program, total)
    # The posts of other programs take time to arrive. What does not depend on them is
    # done meanwhile.
    piece = piece_tiles(t, ends, found, plan)
    counted = count_piece(t, t.thread // WARP * piece, piece, bit_words)
    before = t.constant(0)
    if plan.claims:
        claim_part(t, posts, claimed, plan)
    if posts is not None:
        before = _before(t, program, total, posts, sums, plan)
    with t.when((program == plan.programs - 1) & (t.thread == 0)):
        count.store(0, before + total)
        if plan.claims:
            post_tail(t, before + total, posts, plan)
    t.barrier()  # so that all warps see the starts of tiles
    offset = sum((reference.load(0) for reference in first), program * plan.share)
    memories = bit_words, nonzeros, starts, listed, out
    if plan.fill is None or plan.claims:
        write_rows(t, before, offset, piece, counted, memories, plan)
    else:
        fills_first = program < plan.fill_first
        with t.when(fills_first):
            fill_rows(t, program, before, total, out, plan)
        write_rows(t, before, offset, piece, counted, memories, plan)
        with t.when(fills_first ^ True):
            fill_rows(t, program, before, total, out, plan)
    if plan.claims:
        fill_parts(t, before + total, posts, claimed, out, plan)


def _read(
    t: Any, program: Any, bits: Any, bit_words: Any, nonzeros: Any, plan: NonzeroPlan
) -> None:
    """Stores the bit words of the share, and how many non-zeros each tile has."""
    warp, at_once = t.thread // WARP, plan.at_once
    first = program * (plan.warps * plan.tiles)

    def step(i: Any) -> Sequence[Any]:
        tile = (i * plan.warps + warp) * at_once
        words, counts = bit_words.part(tile * WORDS), nonzeros.part(tile)
        # Only near the end of the line, each load is tested.
        whole = first + tile + at_once <= plan.elements // TILE
        with t.when(whole):
            memories = bits, words, counts
            _read_tiles(t, memories, first + tile, at_once, plan, whole=True)
        if plan.elements % plan.share:
            with t.when(whole ^ True):

                def read_one(k: Any) -> Sequence[Any]:
                    memories = bits, words.part(k * WORDS), counts.part(k)
                    _read_tiles(t, memories, first + tile + k, 1, plan, whole=False)
                    return []

                t.loop(at_once, read_one)
        return []

    t.loop(plan.tiles // at_once, step)


def _read_tiles(
    t: Any,
    memories: Sequence[Any],
    tile: Any,
    tiles: int,
    plan: NonzeroPlan,
    *,
    whole: bool,
) -> None:
    """As `_read`, for some tiles of a warp that are whole, or for one that is cut.

    Args:
      t: the thread.
      memories: the input; the tiles' bit words; and how many non-zeros each tile has.
      tile: the number of the first tile in its line.
      tiles: how many there are.
      plan: what is known about the call.
      whole: whether they are whole.
    """
    bits, bit_words, nonzeros = memories
    lane, loaded = t.thread % WARP, plan.loaded(whole)
    loads = BIT_WORD // loaded  # of a thread, for a tile
    per_element = plan.width // bits.bits  # 2 for elements of 8 bytes
    first = t.wide(tile * TILE + lane * loaded) * per_element
    last = plan.elements // TILE
    rest = t.select(tile <= last, t.constant(plan.elements) - tile * TILE, 0)

    def load(k: int) -> Any:
        """Tests for each element that a thread loads whether it is not zero."""
        offset, count = k * WARP * loaded, loaded * per_element
        if whole:
            # A constant offset takes no register. With more than 64 registers for a
            # thread, a processor runs three programs at once and not four.
            words = bits.part(first).words(offset * per_element, count)
            return bits_of_words(words, plan.width, plan.keep)
        inside = lane * loaded + offset < rest  # the tile may be past the line's end
        words = bits.words(t.select(inside, first + offset * per_element, 0), count)
        return t.select(inside, bits_of_words(words, plan.width, plan.keep), 0)

    each = [load(k) for k in range(tiles * loads)]
    for i in range(tiles):
        # Threads load side by side, so each of them has bits of several bit words. They
        # exchange these bits, until each thread has a bit word.
        chunks = enumerate(each[i * loads : (i + 1) * loads])
        word = functools.reduce(operator.or_, (c << (k * loaded) for k, c in chunks))
        place = lane % loads * loaded + lane // loads
        bit_words.store(place + i * WORDS, transposed(t, word, loaded))
        total = t.warp_sum(t.ones(word))
        with t.when(lane == 0):
            nonzeros.store(i, total)


def _scan(
    t: Any, nonzeros: Any, starts: Any, plan: NonzeroPlan
) -> tuple[Any, Any, Any]:
    """Stores how many non-zeros of the share lie before each tile.

    Each warp does this for itself, and each of its threads for PIECE neighbouring
    tiles. Returns how many non-zeros the share has; how many the thread's tiles and all
    tiles before them have; and how many the thread's tiles have.
    """
    lane = t.thread % WARP
    has_tiles = lane < plan.warps * plan.tiles // PIECE
    first = t.select(has_tiles, lane, 0) * PIECE
    each = [t.select(has_tiles, n, 0) for n in nonzeros.words(first, PIECE)]
    before = [t.constant(0)]
    for n in each:
        before.append(before[-1] + n)
    found = before.pop()
    ends = t.warp_scan(found)
    with t.when(has_tiles & (t.thread < WARP)):
        starts.store(first, *(ends - found + n for n in before))
    return t.shuffle(ends, WARP - 1), ends, found


def _before(
    t: Any, program: Any, total: Any, posts: Any, sums: Any, plan: NonzeroPlan
) -> Any:
    """Returns how many non-zeros lie before the program's share.

    A program waits for the counts of those before it in its group, and for the sums of
    the groups before. The last program of a group posts the group's sum. So no program
    of a long line reads all counts.
    """

    def posted(first: Any, count: Any) -> Any:
        """The sum of `count` numbers."""

        def wait(i: Any, found: Any) -> Sequence[Any]:
            return [found + posts.wait(first + i * t.threads + t.thread)]

        rounds = (count + (t.threads - 1) - t.thread) // t.threads
        (found,) = t.loop(rounds, wait, t.constant(0))
        return _sum(t, found, sums, plan)

    place, group = program % plan.group, program // plan.group
    before = posted(program - place, place)
    if plan.groups == 1:
        return before
    is_last = (place == plan.group - 1) & (group < plan.groups - 1)
    with t.when(is_last & (t.thread == 0)):
        posts.post(group + plan.programs, before + total)
    return before + posted(t.constant(plan.programs), group)


def _sum(t: Any, number: Any, sums: Any, plan: NonzeroPlan) -> Any:
    """The sum of the numbers of all threads of a program."""
    warp, lane = t.thread // WARP, t.thread % WARP
    number = t.warp_sum(number)
    t.barrier()  # so that nobody still reads the sums of before
    with t.when(lane == 0):
        sums.store(warp, number)
    t.barrier()
    return t.warp_sum(t.select(lane < plan.warps, sums.load(lane % plan.warps), 0))
