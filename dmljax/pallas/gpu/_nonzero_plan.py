"""The plan of NONZERO_COORDINATES on a GPU, and what a program of it has.

Here belongs how a line is divided among programs, and which memories they have.
`_nonzero_coordinates` says what shares, tiles and rows are.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dmljax.pallas.gpu import WARP
from dmljax.pallas.gpu._nonzero_bits import BIT_WORD

TILE = WARP * BIT_WORD  # elements of a tile
WARPS = 8  # of a program
# An H100 or H200 has 132 processors, and each runs four programs at once. So all of an
# array's programs run together, if there are no more than these.
PROGRAMS = 512
MOST_TILES = 16  # for each warp, whose bit words a program keeps in shared memory
GROUP = 512  # programs of a group, of which the last one posts their sum
LOAD_BYTES = 16  # that a thread loads at once, the most that it can
# A thread makes so many loads at once, if it has several tiles. A tile of wide elements
# takes more of them.
LOADS = 4
STORED = 4  # values that a thread stores at once, the most that it can
PIECE = 4  # tiles of a piece of middle size
CLAIM = 1024  # rows, of which a part of the tail has a multiple
CLAIMS = 2  # parts for each program, at most
LISTED = TILE + STORED  # elements of a warp's list
# A bit word of padding behind those of a tile lets threads read every fourth or every
# 16th word without access to the same bank.
WORDS = WARP + 1  # that a tile takes in shared memory


class Tail(NamedTuple):
    """The offsets of the posts by which programs divide the tail of a line.

    Attributes:
      started: whether the last program of the line has started.
      begin: the first row of the tail.
      claims: how many parts of the tail programs have claimed.
    """

    started: int
    begin: int
    claims: int


@dataclasses.dataclass(frozen=True)
class NonzeroPlan:
    """The plan of a call.

    Attributes:
      batch: the number of lines.
      elements: the elements of a line.
      rows: the rows to write for each line. Those of non-zeros past them are left out.
      sizes: the sizes of the dimensions that have a column.
      width: the bits of an element.
      keep: those of its bits that make it non-zero if one of them is set.
      fill: the value of all columns in rows past the count; None to leave them alone.
    """

    batch: int
    elements: int
    rows: int
    sizes: tuple[int, ...]
    width: int
    keep: int
    fill: int | None

    @property
    def columns(self) -> int:
        """The values of a row."""
        return len(self.sizes)

    @property
    def warps(self) -> int:
        """The warps of a program."""
        return WARPS

    @property
    def tiles(self) -> int:
        """The tiles of a share for each warp."""
        of_line = -(-self.elements // (WARPS * TILE))
        of_all = of_line * self.batch
        # Shares are smaller if this fills all rounds of programs alike. A last round of
        # few programs would not keep the memory busy.
        rounds = -(-of_all // (PROGRAMS * MOST_TILES))
        tiles = min(of_line, -(-of_all // (PROGRAMS * rounds)))
        return tiles if tiles < PIECE else -(-tiles // PIECE) * PIECE

    @property
    def pieces(self) -> tuple[int, ...]:
        """The sizes that a piece may have, in tiles, besides one tile.

        A thread adds up PIECE tiles, and so knows how many non-zeros such a piece has.
        """
        return () if self.tiles % PIECE else (PIECE, self.tiles)

    @property
    def at_once(self) -> int:
        """The tiles that a warp loads at once."""
        return math.gcd(self.tiles, max(1, LOADS * self.loaded(True) // BIT_WORD))

    @property
    def share(self) -> int:
        """The elements of a share; the last one of a line may have fewer."""
        return WARPS * self.tiles * TILE

    @property
    def programs(self) -> int:
        """The programs of a line."""
        return -(-self.elements // self.share)

    @property
    def fill_first(self) -> int:
        """How many programs of a line fill rows before they write those of non-zeros.

        The other programs fill afterwards. Writing the rows of non-zeros computes, and
        filling waits for memory. A processor runs programs of both kinds, so it does
        both at once. With uint8, of which 10 % are not zero, this takes 5 % less time,
        and without it the share of a copy's speed is 0.84 (`benchmarks.forms`).
        """
        return self.programs // 2

    @property
    def group(self) -> int:
        """The programs of a group."""
        return GROUP

    @property
    def groups(self) -> int:
        """The groups of the programs of a line."""
        return -(-self.programs // self.group)

    @property
    def posts(self) -> int:
        """The words of a line by which its programs tell each other numbers.

        They are the counts of programs, the sums of all groups but the last one, and
        those of `tail`. The only program of a line needs none.
        """
        if self.programs == 1:
            return 0
        return self.tail.started + (len(Tail._fields) if self.claims else 0)

    @property
    def claims(self) -> bool:
        """Whether programs claim parts of the tail, which are the rows past the count.

        If there are more rows, each program knows by itself which ones it fills. And
        fewer are filled by one program as fast as by all.
        """
        few = CLAIM < self.rows <= self.elements // 2
        return few and self.programs > 1 and self.fill is not None

    @property
    def tail(self) -> Tail:
        """The posts about the tail, which follow all others."""
        others = self.programs + self.groups - 1
        return Tail(*range(others, others + len(Tail._fields)))

    @property
    def part(self) -> int:
        """The rows of a part of the tail."""
        parts = CLAIMS * min(self.programs, PROGRAMS)
        return -(-self.rows // (parts * CLAIM)) * CLAIM

    @property
    def stored(self) -> int:
        """The values that a thread stores at once.

        They are several only if every line starts at a multiple of them.
        """
        aligned = self.batch == 1 or self.rows * self.columns % STORED == 0
        return STORED if aligned else 1

    @property
    def rows_at_once(self) -> int:
        """The most rows that have some of the values that a thread stores at once.

        Four values are four rows of one column, one row of four, or parts of two rows
        of three.
        """
        if self.columns % self.stored == 0:
            return 1
        return self.stored // self.columns if self.whole_rows else 2

    @property
    def whole_rows(self) -> bool:
        """Whether the values that a thread stores at once are one row, or several."""
        return self.stored % self.columns == 0

    @property
    def rows_past_elements(self) -> tuple[int, int]:
        """How many more rows than elements there are, and how many a program fills."""
        more = max(self.rows - self.elements, 0)
        return more, -(-more // self.programs)

    def loaded(self, whole: bool) -> int:
        """Returns how many elements a thread loads at once, of a whole tile or another.

        Loads are aligned, so all lines must start, and a cut tile end, between two.
        """
        most = LOAD_BYTES * 8 // self.width
        return most if whole and self.batch == 1 else math.gcd(most, self.elements)

    def shared(self) -> list[tuple[int, Any]]:
        """Returns the sizes and types of a program's shared memories."""
        tiles = self.warps * self.tiles
        return [
            (tiles * WORDS, np.uint32),  # bit_words
            (tiles, np.uint32),  # nonzeros
            (tiles, np.uint32),  # starts
            (self.warps * LISTED, np.uint16),  # listed
            (self.warps, np.uint32),  # sums
            (3, np.uint32),  # claimed
        ]


@dataclasses.dataclass(frozen=True)
class Program:
    """A program, as each of its threads sees it: the plan and the memories.

    Attributes:
      t: the thread.
      plan: the plan of the call.
      index: how many programs of the line come before this one.
      bits: the elements of the line, as `as_bits` makes them.
      origins: of a part of a tensor, the offset of the line in it; else empty.
      count: where the line's number of non-zeros goes.
      out: the rows of the line.
      posts: the posts of the line, if the plan has any.
      bit_words: those of the share, WORDS for each tile.
      nonzeros: for each tile of the share, how many non-zeros it has.
      starts: for each tile, how many non-zeros of the share lie before it.
      listed: a list for each warp.
      sums: a number for each warp.
      claimed: whether the program fills parts of the tail, which part it has claimed,
        and where the tail begins.
    """

    t: Any
    plan: NonzeroPlan
    index: Any
    bits: Any
    origins: Sequence[Any]
    count: Any
    out: Any
    posts: Any
    bit_words: Any
    nonzeros: Any
    starts: Any
    listed: Any
    sums: Any
    claimed: Any

    @classmethod
    def of(cls, t: Any, memories: Sequence[Any], plan: NonzeroPlan) -> "Program":
        """Returns the program of a thread, given the memories of the launch."""
        index, line = t.program, 0
        # A grid of two dimensions would limit one of them to 65 535.
        if plan.batch > 1:
            index, line = t.program % plan.programs, t.program // plan.programs
        shared = len(plan.shared())
        bits, *arrays = [memory.at(line) for memory in memories[:-shared]]
        posts = arrays.pop() if plan.posts else None
        *origins, count, out = arrays
        own = memories[-shared:]
        return cls(t, plan, index, bits, origins, count, out, posts, *own)

    @property
    def warp(self) -> Any:
        """The thread's warp in the program."""
        return self.t.thread // WARP

    @property
    def lane(self) -> Any:
        """The thread's index in its warp."""
        return self.t.thread % WARP
