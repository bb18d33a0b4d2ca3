"""What is known about a call of PADDING on a GPU before it runs.

Here belong the sizes of tiles, and how rows, words and gaps are counted. `_padding`
says what planes, rows, units, insides and gaps are, and writes them.
"""

import dataclasses
import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from dmljax._coordinates import Axis, PaddingMode
from dmljax.pallas._words import word_type

# The words of a tile of insides, and of a tile of gaps. On an H200, tiles of 256 to
# 4096 words and 1 to 8 warps gave 0.36 to 0.85 of the ceiling.
TILE, GAPS = 512, 128
# What a row of a tile costs besides its words, in words. It decides how wide a tile is.
# Measured on an H200.
ROW_COST = 64


@dataclasses.dataclass(frozen=True)
class PaddingPlan:
    """What is known about a call of PADDING before it runs.

    Attributes:
      outer: the dimensions that count planes.
      plane: the dimension that counts the rows of a plane.
      row: the dimension that is a row, in units.
      unit: the elements of a unit.
      mode: where the values of the padding come from.
      batch: the leading sizes of the output, along which there may be several values.
      shared: the sizes of the values in `batch`, 1 where a value is shared.
      dtype: the type of an element.
      per_word: the elements of a word, a power of two.
      integer: the type of an offset in the input or the output.
      interpret: whether Pallas' interpreter runs the kernel.
    """

    outer: tuple[Axis, ...]
    plane: Axis
    row: Axis
    unit: int
    mode: PaddingMode
    batch: tuple[int, ...]
    shared: tuple[int, ...]
    dtype: np.dtype
    per_word: int
    integer: np.dtype
    interpret: bool

    @property
    def word(self) -> np.dtype:
        """The type of a word."""
        return word_type(self.dtype, self.per_word)

    @property
    def shift(self) -> int:
        """The lowest bits of an element's offset, which are its slot."""
        return self.per_word.bit_length() - 1

    @property
    def planes(self) -> int:
        """The planes of the output."""
        return math.prod(axis.output for axis in self.outer)

    @property
    def length(self) -> int:
        """The elements of a row of the output."""
        return self.row.output * self.unit

    @property
    def before(self) -> int:
        """The elements of a row before its inside."""
        return self.row.before * self.unit

    @property
    def inside(self) -> int:
        """The elements of the inside of a row."""
        return self.row.size * self.unit

    @property
    def words(self) -> int:
        """The words of the output."""
        return self.planes * self.plane.output * self.length // self.per_word

    @property
    def width(self) -> int:
        """The most inside words that a row can have."""
        return self.inside // self.per_word

    @property
    def gap(self) -> int:
        """The most words that a gap can have."""
        return (self.length - self.inside + 2 * self.per_word - 2) // self.per_word

    @property
    def is_aligned(self) -> bool:
        """Whether every inside word is a word of the input as it is."""
        return (self.length | self.inside | self.before) % self.per_word == 0

    @property
    def tile(self) -> tuple[int, int]:
        """The rows and the columns of a tile of insides."""
        # Triton has only arrays whose sizes are powers of two.
        widths = [2**i for i in range(TILE.bit_length())]
        columns = min(widths, key=lambda n: pl.cdiv(self.width, n) * (n + ROW_COST))
        return min(TILE // columns, pl.next_power_of_2(self.plane.output)), columns

    @property
    def gap_columns(self) -> int:
        """The columns of a tile of gaps, which has as many rows as one of insides."""
        return min(pl.next_power_of_2(self.gap), max(GAPS // self.tile[0], 1))

    @property
    def tiles(self) -> tuple[int, int]:
        """How many tiles a plane has down, and across: for its insides and its gaps."""
        rows, columns = self.tile
        across = pl.cdiv(self.width, columns)
        if self.gap:
            across = max(across, pl.cdiv(self.gap, self.gap_columns))
        return pl.cdiv(self.plane.output, rows), across

    @property
    def short(self) -> np.dtype:
        """The type of an offset from the start of a plane."""
        # A GPU computes in 32 bits, and 64 take it several instructions. Only the start
        # of a plane needs these, unless one plane alone has 2^31 elements.
        rows = max(self.plane.size, self.plane.output) + self.tile[0]
        fits = rows * (self.length + self.per_word) + TILE < 2**31
        return np.dtype(np.int32) if fits else self.integer

    def source(self, plane: Any) -> tuple[Any, Any]:
        """The plane of the input that a plane repeats, and whether there is one."""
        integer = self.integer.type
        inside: Any = None
        source, stride = integer(0), 1
        for axis in reversed(self.outer):
            plane, position = divided(plane, axis.output)
            inside = both(inside, self.is_inside(axis, position))
            source += axis.source(position, self.mode) * integer(stride)
            stride *= axis.size
        return source, inside

    def is_inside(self, axis: Axis, position: Any) -> Any:
        """Whether an output position has a source; None if every one has."""
        if self.mode is not PaddingMode.CONSTANT or not axis.is_padded:
            return None
        return axis.is_inside(position)


def divided(a: Any, size: int) -> tuple[Any, Any]:
    """The quotient of `a` and `size`, and the remainder; `a` is not negative."""
    # `//` and `%` would add instructions that round the quotient of negative numbers.
    quotient = lax.div(a, jnp.full_like(a, size))
    return quotient, a - quotient * quotient.dtype.type(size)


def both(a: Any, b: Any) -> Any:
    """Whether both conditions hold. None is a condition that always holds."""
    return a if b is None else b if a is None else a & b
