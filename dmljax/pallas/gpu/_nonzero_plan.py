"""What is known about a call of NONZERO_COORDINATES on a GPU before it runs.

Here belongs how a line is divided among programs. `_nonzero_coordinates` says what
lines, shares, tiles and rows are.
"""

import dataclasses
import math
from typing import Any, NamedTuple

from dmljax.pallas import WARP
from dmljax.pallas.gpu._nonzero_bits import BIT_WORD

TILE = WARP * BIT_WORD  # elements of a tile
WARPS = 8  # of a program
# An H100 or H200 has 132 processors, and each runs four programs at once. So all of an
# array's programs run together, if there are no more than these.
PROGRAMS = 512
MOST_TILES = 16  # for each warp, whose bit words a program keeps in shared memory
GROUP = 512  # programs
LOAD_BYTES = 16  # that a thread loads at once, the most that it can
# A thread makes so many loads at once, if it has several tiles. A tile of wide elements
# takes more of them.
LOADS = 4
STORED = 4  # values that a thread stores at once, the most that it can
PIECE = 4  # tiles of a piece of middle size
CLAIM = 1024  # rows, of which a part of the tail has a multiple
CLAIMS = 2  # parts for each program, at most


class Tail(NamedTuple):
    """The places of words through which programs divide the tail of a line.

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
    """What is known about a call before it runs.

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
        """The tiles of pieces that have several. There are pieces of one tile as well.

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
        """The programs of a group, of which the last one posts their sum."""
        return GROUP

    @property
    def groups(self) -> int:
        """The groups of the programs of a line."""
        return -(-self.programs // self.group)

    @property
    def posts(self) -> int:
        """The words of a line through which its programs tell each other numbers.

        They are the counts of programs, the sums of all groups but the last one, and
        those of `tail`. The only program of a line needs none.
        """
        if self.programs == 1:
            return 0
        counts = self.programs + self.groups - 1
        return counts + len(Tail._fields) if self.claims else counts

    @property
    def claims(self) -> bool:
        """Whether programs claim parts of the tail, which are the rows past the count.

        If there are more rows, each program knows by itself which ones it fills. And
        fewer are filled by one program as fast as by all.
        """
        few = CLAIM < self.rows <= self.elements // 2
        return few and self.programs > 1 and self.fill is not None

    @property
    def tail(self) -> "Tail":
        """The places of the words that are about the tail."""
        first = self.programs + self.groups - 1
        return Tail(*range(first, first + len(Tail._fields)))

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
        """The rows that the values which a thread stores at once can belong to."""
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
        """The elements that a thread loads at once; `whole` says of a whole tile.

        Loads are aligned, so all lines must start, and a cut tile end, between two.
        """
        most = LOAD_BYTES * 8 // self.width
        return most if whole and self.batch == 1 else math.gcd(most, self.elements)

    def program_and_line(self, t: Any) -> tuple[Any, Any]:
        """Returns the program's number among those of its line, and the line."""
        # A grid of two dimensions would limit one of them to 65 535.
        if self.batch == 1:
            return t.program, 0
        return t.program % self.programs, t.program // self.programs
