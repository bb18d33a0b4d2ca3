"""The coordinates of PADDING: what an axis repeats beyond its ends."""

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax


class PaddingMode(enum.IntEnum):
    """DML_PADDING_MODE: where the values of the padding come from.

    With i the output coordinate minus the start padding and n the input's size:

    - CONSTANT: a value of its own wherever i is outside [0, n) on any axis.
    - EDGE: the nearest element, clip(i, 0, n - 1).
    - REFLECTION: mirrored, the edge not repeated: 3 2 | 1 2 3 | 2 1.
    - SYMMETRIC: mirrored, the edge repeated: 2 1 | 1 2 3 | 3 2.
    - WRAP: repeated, i mod n: 2 3 | 1 2 3 | 1 2.
    """

    __module__ = "dmljax"

    CONSTANT = 0
    EDGE = 1
    REFLECTION = 2
    SYMMETRIC = 3
    WRAP = 4


def fold(size: int, mode: PaddingMode) -> tuple[int, int]:
    """How a periodic mode folds coordinates into an axis of `size` elements.

    The period, and the sum of each position and its mirror image: position j of a
    period is element min(j, mirror - j).
    """
    return {
        PaddingMode.REFLECTION: (max(2 * size - 2, 1), 2 * size - 2),
        PaddingMode.SYMMETRIC: (2 * size, 2 * size - 1),
        PaddingMode.WRAP: (size, 2 * size - 1),
    }[mode]


def source_index(
    position: Any, stop: int, start: int, size: int, mode: PaddingMode
) -> Any:
    """The input coordinate that the output coordinate `position` < `stop` repeats.

    A division can cost more than all the rest: none is made where one period is left.
    """
    if mode is PaddingMode.EDGE:
        return jnp.clip(position - start, 0, size - 1)
    period, mirror = fold(size, mode)
    shift = (-start) % period
    place, periods = position + shift, (stop - 1 + shift) // period
    if periods > 1:
        place = lax.rem(place, jnp.full_like(place, period))
    elif periods:
        place = jnp.where(place < period, place, place - period)
    return jnp.minimum(place, mirror - place)


@dataclasses.dataclass(frozen=True)
class Axis:
    """One dimension, and how it is padded."""

    size: int
    before: int
    after: int

    @property
    def output(self) -> int:
        """The size with the padding."""
        return self.before + self.size + self.after

    @property
    def is_padded(self) -> bool:
        """Whether there is any padding."""
        return self.before + self.after > 0

    def source(self, position: Any, mode: PaddingMode, stop: int | None = None) -> Any:
        """The input coordinate; where CONSTANT has none, the nearest one.

        From the position `stop` on, or the size of the output, it may be any.
        """
        if not self.is_padded:
            return position
        if mode is PaddingMode.CONSTANT:
            mode = PaddingMode.EDGE
        stop = self.output if stop is None else stop
        return source_index(position, stop, self.before, self.size, mode)

    def is_inside(self, position: Any) -> Any:
        """Whether an output coordinate is one of the input's."""
        return (position >= self.before) & (position < self.before + self.size)


def axes_of(
    shape: tuple[int, ...], start: tuple[int, ...], end: tuple[int, ...]
) -> list[Axis]:
    """The dimensions of an input of `shape`, of which the last are padded by these."""
    whole = (0,) * (len(shape) - len(start))
    return list(map(Axis, shape, whole + start, whole + end))


def merged(axes: Sequence[Axis]) -> list[Axis]:
    """The dimensions, neighbours that are not padded made one."""
    result: list[Axis] = []
    for axis in axes:
        if result and not (axis.is_padded or result[-1].is_padded):
            axis = Axis(result.pop().size * axis.size, 0, 0)
        result.append(axis)
    return result


# Of several unpadded elements side by side, how many bytes are a row of their own.
ROW_BYTES = 256


def rows_of(
    axes: Sequence[Axis], itemsize: int
) -> tuple[tuple[Axis, ...], Axis, Axis, int]:
    """Merged dimensions as rows: those outside of a plane, its two, and the unit.

    A row is the last dimension, or the one before it in units of the last, which is
    small and not padded.
    """
    *outer, row = axes or [Axis(1, 0, 0)]
    unit = 1
    if outer and not row.is_padded and row.size * itemsize < ROW_BYTES:
        unit, row = row.size, outer.pop()
    plane = outer.pop() if outer else Axis(1, 0, 0)
    return tuple(outer), plane, row, unit
