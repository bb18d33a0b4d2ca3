"""The plan of NONZERO_COORDINATES on a GPU, and the memories of a program.

A plan divides lines among programs and warps, and says which memories they have.
`_nonzero_coordinates` defines tiles, chunks and shares.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from dmljax._nonzero_forms import BIT_WORD, Layout
from dmljax.pallas.gpu import WARP

TILE = WARP * BIT_WORD  # elements of a tile
WARPS = 8  # of a program, at most
# Tiles of a chunk: a thread loads four bit words at once, 16 bytes. In a line of up to
# FEW_TILES, each chunk is one tile, so that more warps have work.
CHUNK = 4
FEW_TILES = 16
# Shares grow where there would be more programs. A GPU has some 132 processors, and
# each runs several programs at once.
PROGRAMS = 1024
# Chunks of a warp. All chunks of a share are at most 32, a chunk for each thread of the
# warp that adds up their counts.
MOST_CHUNKS = WARP // WARPS


class ShortPlan(Layout):
    """The plan for lines of at most a tile: a warp has the lines that fit in a tile."""

    posts = 0  # no programs share a line

    @property
    def warps(self) -> int:
        """The warps of a program."""
        return WARPS

    @property
    def group(self) -> int:
        """The threads of a line, with a bit word each: a power of two."""
        return 1 << ((self.elements - 1) // BIT_WORD).bit_length()

    @property
    def lines_of_tile(self) -> int:
        """The lines of a tile."""
        return WARP // self.group

    @property
    def padded_elements(self) -> int:
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
    def tiles_of_chunk(self) -> int:
        """The tiles of a chunk."""
        return 1 if self.tiles <= FEW_TILES else CHUNK

    @property
    def chunks_of_warp(self) -> int:
        """The chunks of a share for each warp."""
        of_line = -(-self.tiles // (self.warps * self.tiles_of_chunk))
        return min(MOST_CHUNKS, of_line, -(-of_line * self.lines // PROGRAMS))

    @property
    def elements_of_share(self) -> int:
        """The elements of a share. The last share of a line may have fewer."""
        return self.warps * self.chunks_of_warp * self.tiles_of_chunk * TILE

    @property
    def padded_elements(self) -> int:
        """The elements of a line in memory: a multiple of one load."""
        load = self.tiles_of_chunk * BIT_WORD
        return -(-self.elements // load) * load

    @property
    def programs_of_line(self) -> int:
        """The programs of a line."""
        return -(-self.elements // self.elements_of_share)

    @property
    def programs(self) -> int:
        """The programs of all lines."""
        return self.lines * self.programs_of_line

    @property
    def posts(self) -> int:
        """A post for each program, and a counter; 0 if a program has a whole line."""
        return self.programs + 1 if self.programs_of_line > 1 else 0

    @property
    def shared(self) -> list[tuple[int, Any]]:
        """The sizes and types of the shared memories of a `NonzeroProgram`."""
        chunks = self.warps * self.chunks_of_warp
        return [
            (self.warps * TILE, np.uint16),  # lists
            (chunks * self.tiles_of_chunk * WARP, np.uint32),  # bit_words
            (chunks, np.uint32),  # chunk_counts
            (self.warps, np.uint32),  # warp_sums
        ]


def plan_of(layout: Layout) -> ShortPlan | LongPlan | None:
    """Returns the plan of a call, or None for more programs than a grid can have."""
    kind = ShortPlan if layout.elements <= TILE else LongPlan
    # The kernel writes at most a row for each element.
    plan = kind(*layout._replace(rows=min(layout.rows, layout.elements)))
    return plan if plan.programs < 2**31 else None


@dataclasses.dataclass(frozen=True)
class NonzeroProgram:
    """A program, as seen by each of its threads: the plan and the memories."""

    t: Any  # the thread
    plan: Any
    bytes: Any  # the flags of all lines
    origins: Sequence[Any]  # empty, or with `parts=` an array: the offset of each line
    counts: Any  # where the number of non-zeros of each line goes
    out: Any  # the rows of all lines
    posts: Any  # of all programs, or None if a program has a whole line
    listed: Any  # some non-zeros of the warp
    # The threads of a program share these, which short lines do not have:
    bit_words: Any = None  # of the share
    chunk_counts: Any = None  # for each chunk of the share, how many non-zeros it has
    warp_sums: Any = None  # for each warp, a sum of posts

    @classmethod
    def of(cls, t: Any, memories: Sequence[Any], plan: Any) -> "NonzeroProgram":
        """Returns the program of a thread, given the memories of the launch."""
        # `launch_threads` says in which order: `posts` come after the origins.
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
        """Takes the next share, counted through all lines, and returns its number."""
        t = self.t
        if self.posts is None:
            return t.program
        with t.when(t.thread == 0):
            self.warp_sums.store(0, self.posts.take(self.plan.programs))
        t.barrier()
        return self.warp_sums.load(0)

    def words(self, line: Any, first: Any, count: int) -> list[Any]:
        """Loads `count` bit words of a line from bit word `first` on.

        Words past the end of the line are 0.
        """
        t = self.t
        words_of_line = self.plan.padded_elements // BIT_WORD
        is_inside = first < words_of_line
        offset = t.wide(line) * words_of_line + t.select(is_inside, first, 0)
        size = BIT_WORD // 8  # bytes
        found = self.bytes.words(offset * size, count * size)
        return [t.select(is_inside, word, 0) for word in found]

    def origin(self, line: Any) -> Any:
        """Returns the offset of a line in its tensor: 0, unless lines are parts."""
        offset = self.t.constant(0)
        for origins in self.origins:
            offset = offset + origins.load(line)
        return offset
