"""The dimensions of PADDING, as its kernels for GPUs and for TPUs see them."""

import dataclasses
from collections.abc import Sequence


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


def axes_of(
    shape: tuple[int, ...], start: tuple[int, ...], end: tuple[int, ...]
) -> list[Axis]:
    """Returns the dimensions of an input, of which the last are padded by these."""
    whole = (0,) * (len(shape) - len(start))
    return list(map(Axis, shape, whole + start, whole + end))


def merged(axes: Sequence[Axis]) -> list[Axis]:
    """Merges neighbouring dimensions that are not padded into one."""
    # A kernel computes a position by a division for each dimension, so fewer are
    # faster.
    result: list[Axis] = []
    for axis in axes:
        if result and not (axis.is_padded or result[-1].is_padded):
            axis = Axis(result.pop().size * axis.size, 0, 0)
        result.append(axis)
    return result
