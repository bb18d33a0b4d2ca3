"""The plan of NONZERO_COORDINATES on a GPU, and the memories of a program.

Here belongs how lines are divided among programs and warps, and which memories they
have. Code for the GPU does not. `_nonzero_coordinates` defines chunks and shares.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from dmljax._nonzero_forms import BIT_WORD, Layout
from dmljax.pallas.gpu import WARP

TILE = WARP * BIT_WORD  # elements of a tile
WARPS = 8  # of a program, at most
# Tiles of a chunk: a thread loads four bit words at once, 16 bytes. A line of at most
# FEW_TILES has a chunk for each tile: more warps have work.
CHUNK = 4
FEW_TILES = 16
# A share grows where there would be more programs. A GPU has some 132 processors, and
# each runs several programs at once.
PROGRAMS = 1024
# The chunks of a warp. A share has no more chunks than one warp can sum.
MOST_CHUNKS = WARP // WARPS


class ShortPlan(Layout):
    """The plan for lines of at most a tile: a warp has a tile of whole lines."""

    posts = 0  # no programs share a line

    @property
    def warps(self) -> int:
        """The warps of a program."""
        return WARPS

    @property
    def group(self) -> int:
        """The threads of a line in a tile, a bit word each: a power of two."""
        return 1 << ((self.elements - 1) // BIT_WORD).bit_length()

    @property
    def lines_of_tile(self) -> int:
        """The lines of a tile."""
        return WARP // self.group

    @property
    def length(self) -> int:
        """The elements of a line in memory."""
        return self.group * BIT_WORD

    @property
    def programs(self) -> int:
        """The programs of all lines."""
        return -(-self.lines // (self.lines_of_tile * self.warps))

    @property
    def shared(self) -> list[tuple[int, Any]]:
        """The sizes and types of the shared memories of a `NonzeroProgram`."""
        return [(self.warps * TILE, np.uint16)]  # lists


class LongPlan(Layout):
    """The plan for longer lines: a line has one program or several."""

    @property
    def tiles(self) -> int:
        """The tiles of a line. The last one may be cut."""
        return -(-self.elements // TILE)

    @property
    def warps(self) -> int:
        """The warps of a program."""
        # Mosaic GPU starts warps in groups of four.
        return min(-(-self.tiles // 4) * 4, WARPS)

    @property
    def chunk(self) -> int:
        """The tiles of a chunk."""
        return 1 if self.tiles <= FEW_TILES else CHUNK

    @property
    def chunks(self) -> int:
        """The chunks of a share for each warp."""
        of_line = -(-self.tiles // (self.warps * self.chunk))
        return min(MOST_CHUNKS, of_line, -(-of_line * self.lines // PROGRAMS))

    @property
    def share(self) -> int:
        """The elements of a share. The last share of a line may have fewer."""
        return self.warps * self.chunks * self.chunk * TILE

    @property
    def length(self) -> int:
        """The elements of a line in memory: whole loads of a bit word for each tile."""
        load = self.chunk * BIT_WORD
        return -(-self.elements // load) * load

    @property
    def programs_of_line(self) -> int:
        """The programs of a line."""
        return -(-self.elements // self.share)

    @property
    def programs(self) -> int:
        """The programs of all lines."""
        return self.lines * self.programs_of_line

    @property
    def posts(self) -> int:
        """The words of programs with shared lines: a post for each, and a counter."""
        return self.programs + 1 if self.programs_of_line > 1 else 0

    @property
    def shared(self) -> list[tuple[int, Any]]:
        """The sizes and types of the shared memories of a `NonzeroProgram`."""
        chunks = self.warps * self.chunks
        return [
            (self.warps * TILE, np.uint16),  # lists
            (chunks * self.chunk * WARP, np.uint32),  # bit_words
            (chunks, np.uint32),  # chunk_counts
            (self.warps, np.uint32),  # warp_sums
        ]


def plan_of(layout: Layout) -> ShortPlan | LongPlan | None:
    """Returns the plan of a call, or None for more programs than a grid has."""
    kind = ShortPlan if layout.elements <= TILE else LongPlan
    # A line has at most a row for each element.
    plan = kind(*layout._replace(rows=min(layout.rows, layout.elements)))
    return plan if plan.programs < 2**31 else None


@dataclasses.dataclass(frozen=True)
class NonzeroProgram:
    """A program, as seen by each of its threads: the plan and the memories."""

    t: Any  # the thread
    plan: Any
    bytes: Any  # the flags of all lines
    origins: Sequence[Any]  # of parts of a tensor: the offset of each line
    counts: Any  # where the number of non-zeros of each line goes
    out: Any  # the rows of all lines
    posts: Any  # of all programs, if programs share a line
    listed: Any  # some non-zeros of the warp
    # The threads of a program share these, which short lines do not have:
    bit_words: Any = None  # of the share
    chunk_counts: Any = None  # for each chunk of the share, how many non-zeros it has
    warp_sums: Any = None  # for each warp, a sum of posts

    @classmethod
    def of(cls, t: Any, memories: Sequence[Any], plan: Any) -> "NonzeroProgram":
        """Returns the program of a thread, given the memories of the launch."""
        flags, *origins, counts, out = memories[: -len(plan.shared)]
        posts = origins.pop() if plan.posts else None
        lists, *shared = memories[-len(plan.shared) :]
        listed = lists.part(t.thread // WARP * TILE)
        return cls(t, plan, flags, origins, counts, out, posts, listed, *shared)

    @property
    def warp(self) -> Any:
        """The index of the thread's warp."""
        return self.t.thread // WARP

    @property
    def lane(self) -> Any:
        """The index of the thread in its warp."""
        return self.t.thread % WARP

    def next_share(self) -> Any:
        """Takes the next share of all lines."""
        t = self.t
        if self.posts is None:
            return t.program
        with t.when(t.thread == 0):
            self.warp_sums.store(0, self.posts.take(self.plan.programs))
        t.barrier()
        return self.warp_sums.load(0)

    def words(self, line: Any, word: Any, count: int) -> list[Any]:
        """Loads `count` bit words of a line from bit word `word` on.

        Words past the end of the line are 0.
        """
        t = self.t
        words = self.plan.length // BIT_WORD
        is_inside = word < words
        first = t.wide(line) * words + t.select(is_inside, word, 0)
        size = BIT_WORD // 8  # bytes
        found = self.bytes.words(first * size, count * size)
        return [t.select(is_inside, word, 0) for word in found]

    def origin(self, line: Any) -> Any:
        """Returns the offset of a line in its tensor: 0, but for parts of a tensor."""
        offset = self.t.constant(0)
        for origins in self.origins:
            offset = offset + origins.load(line)
        return offset
