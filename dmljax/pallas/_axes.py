"""The dimensions of PADDING, as its kernels for GPUs and for TPUs see them."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from dmljax._coordinates import PaddingMode, source_index


@dataclasses.dataclass(frozen=True)
class Axis:
    """One dimension: its size, and the padding before and after it."""

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
        """Returns the input coordinate of an output coordinate.

        It is the nearest one where CONSTANT has none, so that a kernel may read there.
        `stop` is by default the size of the output. For positions that are not below
        it, the result may be any coordinate of the input.
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
    """Returns the dimensions of an input, of which the last are padded by these."""
    whole = (0,) * (len(shape) - len(start))
    return list(map(Axis, shape, whole + start, whole + end))


def merged(axes: Sequence[Axis]) -> list[Axis]:
    """Merges neighbouring dimensions that are not padded into one."""
    # A kernel computes a coordinate by a division for each dimension, so fewer are
    # faster.
    result: list[Axis] = []
    for axis in axes:
        if result and not (axis.is_padded or result[-1].is_padded):
            axis = Axis(result.pop().size * axis.size, 0, 0)
        result.append(axis)
    return result
