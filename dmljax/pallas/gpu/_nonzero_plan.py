"""The plan of NONZERO_COORDINATES on a GPU, and the memories of a program.

Here belongs how a line is divided among programs, and which memories they have.
`_nonzero_coordinates` defines shares, tiles and rows.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dmljax.pallas.gpu import WARP
from dmljax.pallas.gpu._nonzero_bits import BIT_WORD

TILE = WARP * BIT_WORD  # elements of a tile
WARPS = 8  # of a program
# An H100 or H200 has 132 processors, and each runs four programs at once. All of an
# array's programs run together, if there are no more than these.
PROGRAMS = 512
MOST_TILES = 16  # for each warp; their bit words are in shared memory
LOAD_BYTES = 16  # that a thread loads at once, the most that it can
COUNTED = 4  # tiles whose non-zeros a thread adds up


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
    # The constant as it is when the plan is made: tests make it small before.
    warps: int = dataclasses.field(default_factory=lambda: WARPS)  # of a program

    @property
    def columns(self) -> int:  # the values of a row
        return len(self.sizes)

    @property
    def tiles(self) -> int:  # of a share for each warp
        of_line = -(-self.elements // (self.warps * TILE))
        of_all = of_line * self.batch
        return min(MOST_TILES, of_line, -(-of_all // PROGRAMS))

    @property
    def share(self) -> int:  # its elements; the last share of a line may have fewer
        return self.warps * self.tiles * TILE

    @property
    def programs(self) -> int:  # of a line
        return -(-self.elements // self.share)

    @property
    def posts(self) -> int:  # of a line; a single program needs none
        return 0 if self.programs == 1 else self.programs

    def loaded(self, whole: bool) -> int:
        """Returns how many elements a thread loads at once, of a whole tile or another.

        Loads are aligned, so all lines must start, and a cut tile end, between two.
        """
        most = LOAD_BYTES * 8 // self.width
        return most if whole and self.batch == 1 else math.gcd(most, self.elements)

    @property
    def shared(self) -> list[tuple[int, Any]]:
        """The sizes and types of the shared memories, in the order of `Program`."""
        tiles = self.warps * self.tiles
        return [
            (tiles * WARP, np.uint32),
            (tiles, np.uint32),
            (tiles, np.uint32),
            (self.warps * TILE, np.uint16),
            (self.warps, np.uint32),
        ]


@dataclasses.dataclass(frozen=True)
class Program:
    """A program, as each of its threads sees it: the plan and the memories."""

    t: Any  # the thread
    plan: NonzeroPlan
    index: Any  # how many programs of the line come before this one
    bits: Any  # the elements of the line, as `as_bits` makes them
    origins: Sequence[Any]  # of a part of a tensor: the offset of the line in it
    count: Any  # where the line's number of non-zeros goes
    out: Any  # the rows of the line
    posts: Any  # of the line, if the plan has any
    # The rest is shared by the threads.
    bit_words: Any  # of the share, WARP for each tile
    nonzeros: Any  # for each tile of the share, how many non-zeros it has
    starts: Any  # for each tile, how many non-zeros of the share lie before it
    listed: Any  # a list for each warp
    sums: Any  # a number for each warp

    @classmethod
    def of(cls, t: Any, memories: Sequence[Any], plan: NonzeroPlan) -> "Program":
        """Returns the program of a thread, given the memories of the launch."""
        shared = len(plan.shared)
        of_line = list(memories[:-shared])
        index = t.program
        # A grid of two dimensions would limit one of them to 65 535.
        if plan.batch > 1:
            index, line = t.program % plan.programs, t.program // plan.programs
            of_line = [memory.at(line) for memory in of_line]
        posts = of_line.pop() if plan.posts else None
        bits, *origins, count, out = of_line
        own = memories[-shared:]
        return cls(t, plan, index, bits, origins, count, out, posts, *own)

    @property
    def warp(self) -> Any:  # of the thread
        return self.t.thread // WARP

    @property
    def lane(self) -> Any:  # of the thread
        return self.t.thread % WARP
