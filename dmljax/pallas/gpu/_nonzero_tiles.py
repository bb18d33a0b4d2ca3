"""Short lines of NONZERO_COORDINATES on a GPU: a tile has whole lines.

If a line has at most 1024 elements, a warp has as many lines as fit into a tile. A
*group* of threads has a line, with a bit word each. The rows of all these lines lie
side by side in the output, so the list has a slot for each row, and the warp stores all
rows at once. The drawing has a tile of two lines, and three rows a line:

    bit words    .x..  ...x  | x.x.  xx..      of two threads a line
    list         1 7 fill    | 8 10 12         elements of the tile; 13 has no row

`_nonzero_coordinates` has the code of longer lines.
"""

from typing import Any

from dmljax._nonzero_forms import BIT_WORD
from dmljax.pallas.gpu import WARP
from dmljax.pallas.gpu._nonzero_plan import NonzeroProgram, ShortPlan
from dmljax.pallas.gpu._nonzero_rows import (
    coordinate,
    list_ones,
    store_rows,
)

NO_ELEMENT = 2**16 - 1  # in a list: the row is past the count


def find_in_tiles(t: Any, *memories: Any, plan: ShortPlan) -> None:
    """Writes the rows of the lines in the tile of the thread's warp."""
    p = NonzeroProgram.of(t, memories, plan)
    tile = t.wide(t.program) * plan.warps + p.warp
    line = tile * plan.lines_of_tile  # the first line of the tile
    with t.when(line < plan.lines):
        _write_lines(p, line)


def _write_lines(p: NonzeroProgram, line: Any) -> None:
    """Writes the rows of the lines in a tile, of which `line` is the first."""
    t = p.t
    plan = p.plan
    lines = t.narrow(t.minimum(plan.lines - line, plan.lines_of_tile))
    thread_of_group = p.lane % plan.group
    line_of_tile = p.lane // plan.group
    has_line = line_of_tile < lines
    (word,) = p.words(line + t.select(has_line, line_of_tile, 0), thread_of_group, 1)
    word = t.select(has_line, word, 0)
    ones = t.ones(word)
    before = t.warp_scan(ones) - ones
    row = before - t.shuffle(before, line_of_tile * plan.group)
    with t.when(has_line & (thread_of_group == plan.group - 1)):
        p.counts.store(line + line_of_tile, row + ones)
    values = lines * plan.rows

    def mark(i: Any) -> None:
        slot = i * WARP + p.lane
        with t.when(slot < values):
            p.listed.store(slot, t.constant(NO_ELEMENT))

    t.loop((values + (WARP - 1)) // WARP, mark)
    t.warp_barrier()
    slot = line_of_tile * plan.rows  # of the first row of the line
    list_ones(p, word, p.lane * BIT_WORD, slot + row, slot + plan.rows)
    t.warp_barrier()

    def value(i: Any) -> Any:
        slot = i // plan.columns
        element = p.listed.load(slot)
        offset = element % (plan.group * BIT_WORD)
        if p.origins:
            offset = offset + p.origin(line + slot // plan.rows)
        found = coordinate(p, offset, i % plan.columns)
        return t.select(element == NO_ELEMENT, plan.fill or 0, found)

    store_rows(p, line * plan.rows, values, value, p.lane, WARP)
