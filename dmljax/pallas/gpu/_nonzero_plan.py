"""The plan of NONZERO_COORDINATES on a GPU, and the memories of a program.

Here belongs how a line is divided among programs, and which memories they have. The
code that runs on the GPU does not. `_nonzero_coordinates` defines shares and tiles.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dmljax._nonzero_forms import BIT_WORD
from dmljax.pallas.gpu import WARP

TILE = WARP * BIT_WORD  # elements of a tile
WARPS = 8  # of a program
# An H100 or H200 has 132 processors, and each runs four programs at once. All programs
# of an array run together, if there are no more than these.
PROGRAMS = 512
LOAD_BYTES = 16  # of the widest load of a thread
COUNTED = 4  # neighbouring tiles whose counts a thread adds up
# The tiles of a warp. A share has no more tiles than one warp can sum, and a multiple
# of COUNTED.
MOST_TILES = WARP * COUNTED // WARPS


@dataclasses.dataclass(frozen=True)
class NonzeroPlan:
    """The plan of a call."""

    batch: int  # the number of lines
    elements: int  # the elements of a line
    rows: int  # to write for each line, at most one for each element
    sizes: tuple[int, ...]  # of the dimensions that have a column
    width: int  # the bits of an element
    keep: int  # the bits that make an element non-zero if one is set
    fill: int | None  # the values of rows past the count; None leaves them alone
    # The constant is read when a plan is made: tests set it to a smaller number.
    warps: int = dataclasses.field(default_factory=lambda: WARPS)  # of a program

    @property
    def columns(self) -> int:
        """The values of a row."""
        return len(self.sizes)

    @property
    def tiles(self) -> int:
        """The tiles that each warp has of a share."""
        of_line = -(-self.elements // (self.warps * TILE))
        of_all = of_line * self.batch
        return min(MOST_TILES, of_line, -(-of_all // PROGRAMS))

    @property
    def share(self) -> int:
        """The elements of a share. The last share of a line may have fewer."""
        return self.warps * self.tiles * TILE

    @property
    def programs(self) -> int:
        """The programs of a line."""
        return -(-self.elements // self.share)

    @property
    def integers(self) -> int:
        """The integers that `as_bits` makes of an element."""
        return max(self.width // 32, 1)

    def load_size(self, is_whole: bool) -> int:
        """Returns the number of elements that a thread loads at once.

        A load must be aligned to its size. If the size divides the elements of a line,
        each line begins at a load, and no load reaches past its end. A whole tile of a
        single line needs neither.
        """
        most = LOAD_BYTES * 8 // self.width
        if is_whole and self.batch == 1:
            return most
        return math.gcd(most, self.elements)

    @property
    def posts(self) -> list[tuple[int, int]]:
        """The sizes of the posts: one for each program, if a line has several."""
        return [(self.batch, self.programs)] if self.programs > 1 else []

    @property
    def shared(self) -> list[tuple[int, Any]]:
        """The sizes and types of the shared memories of a `NonzeroProgram`."""
        tiles = self.warps * self.tiles
        return [
            (tiles * WARP, np.uint32),  # bit_words
            (tiles, np.uint32),  # tile_counts
            (tiles, np.uint32),  # tile_starts
            (self.warps * TILE, np.uint16),  # lists
            (self.warps, np.uint32),  # warp_sums
        ]


@dataclasses.dataclass(frozen=True)
class NonzeroProgram:
    """A program, as each of its threads sees it: the plan and the memories."""

    t: Any  # the thread
    plan: NonzeroPlan
    index: Any  # how many programs of the line come before this one
    line: Any  # its elements, as `as_bits` makes them
    origins: Sequence[Any]  # of a part of a tensor: the offset of the line in it
    count: Any  # where the line's number of non-zeros goes
    out: Any  # the rows of the line
    posts: Any  # of the line, if it has several programs
    # The threads share the rest.
    bit_words: Any  # of the share, WARP for each tile
    tile_counts: Any  # for each tile of the share, how many non-zeros it has
    tile_starts: Any  # for each tile, how many non-zeros of the share lie before it
    lists: Any  # for each warp, the non-zeros of a tile
    warp_sums: Any  # for each warp, a sum of posts

    @classmethod
    def of(cls, t: Any, memories: Sequence[Any], plan: NonzeroPlan) -> "NonzeroProgram":
        """Returns the program of a thread, given the memories of the launch."""
        shared = memories[-len(plan.shared) :]
        of_line = list(memories[: -len(plan.shared)])
        index = t.program
        # A grid of two dimensions would limit one of them to 65 535.
        if plan.batch > 1:
            index = t.program % plan.programs
            of_line = [memory.at(t.program // plan.programs) for memory in of_line]
        posts = of_line.pop() if plan.posts else None
        line, *origins, count, out = of_line
        return cls(t, plan, index, line, origins, count, out, posts, *shared)

    @property
    def warp(self) -> Any:
        """The index of the thread's warp."""
        return self.t.thread // WARP

    @property
    def lane(self) -> Any:
        """The index of the thread in its warp."""
        return self.t.thread % WARP
