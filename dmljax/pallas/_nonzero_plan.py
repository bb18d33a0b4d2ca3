"""What is known about a call of NONZERO_COORDINATES on a GPU before it runs.

Here belong the sizes of blocks and tiles, and how the three launches divide the work.
`_nonzero_coordinates` says what lines, blocks, tiles and rows are, and what each launch
does. Times were measured on an H200 with 64Mi elements of 4 bytes and one column.
"""

import dataclasses
import math
from typing import Any

from dmljax.pallas import WARP
from dmljax.pallas._nonzero_bits import BIT_WORD

TILE = WARP * BIT_WORD  # elements of a tile
# Blocks of 4096 and 16384 elements were up to 2 % faster or slower, by density.
BLOCK = 8192  # elements of a block
LOAD_BYTES = 16  # that a thread loads at once, the most that it can
COUNT_BYTES = 4096  # bytes that each warp of the first launch reads


@dataclasses.dataclass(frozen=True)
class NonzeroPlan:
    """What is known about a call before it runs, the same for all three launches.

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
    def blocks(self) -> int:
        """The blocks of a line."""
        return -(-self.elements // BLOCK)

    @property
    def tiles(self) -> int:
        """The tiles of a block."""
        return BLOCK // TILE

    @property
    def columns(self) -> int:
        """The values of a row."""
        return len(self.sizes)

    @property
    def count_warps(self) -> int:
        """The warps of a program of the first launch; no launch has less than four."""
        return min(self.tiles, max(4, BLOCK * self.width // 8 // COUNT_BYTES))

    @property
    def fillers(self) -> int:
        """The programs of a line that fill, each as many rows as a block may have."""
        return 0 if self.fill is None else -(-self.rows // BLOCK)

    def loaded(self, whole: bool) -> int:
        """The elements that a thread loads at once; `whole` says of a whole block.

        Loads are aligned, so all lines must start, and a cut block end, between two.
        """
        most = LOAD_BYTES * 8 // self.width
        return most if whole and self.batch == 1 else math.gcd(most, self.elements)

    def program_and_line(self, t: Any, programs: int) -> tuple[Any, Any]:
        """Returns the program's number among those of its line, and the line."""
        # A grid of two dimensions would limit one of them to 65 535.
        if self.batch == 1:
            return t.program, 0
        return t.program % programs, t.program // programs
