"""Expected results: the formulas of the operators in NumPy, at a grid of coordinates.

They share no code with dmljax. We compare small results in full, and large results at a
grid: on each axis the borders, the special coordinates of an operator, and random
others. The oracle of a program stands beside the program.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

# We compare about this many elements of a result, and all of a smaller result.
COMPARED = 2**17
# How far sums of products may be off. A GPU multiplies float32 with 11 bits (TF32).
RTOL = {"float32": 0.01, "bfloat16": 0.05}


@dataclasses.dataclass(frozen=True)
class Sample:
    """The expected values of an output at a grid of coordinates.

    Attributes:
      shape: the sizes of the output.
      axes: for each axis, the coordinates in the grid.
      values: the expected values at the grid.
      rows: if not None, an output of only this many leading rows is right as well. A
        static shape alone defines the rest.
      rtol: how far a number may be off, as a part of itself.
      atol: how far any number may be off besides.
    """

    shape: tuple[int, ...]
    axes: tuple[np.ndarray, ...]
    values: np.ndarray
    rows: int | None = None
    rtol: float = 0.0
    atol: float = 0.0

    def leading(self) -> "Sample":
        """The sample of an output of the leading rows alone."""
        kept = self.axes[0] < self.rows
        axes = (self.axes[0][kept], *self.axes[1:])
        shape = (int(self.rows or 0), *self.shape[1:])
        return dataclasses.replace(
            self, shape=shape, axes=axes, values=self.values[kept], rows=None
        )

    def positions(self) -> np.ndarray:
        """The row-major numbers of the grid's elements."""
        if not self.shape:
            return np.zeros((), np.int64)
        return np.ravel_multi_index(np.ix_(*self.axes), self.shape)


Take = Callable[[Any, np.ndarray], np.ndarray]
Oracle = Callable[..., list[Sample]]


def compare(
    samples: Sequence[Sample], outputs: Sequence[Any], take: Take, *, typed: bool
) -> None:
    """Raises AssertionError if an output differs from its sample.

    The samples belong to the last outputs: a library without a count returns only the
    last output. `take` reads elements of its arrays by number. `typed` demands an
    output for each sample, of the same type.
    """
    least = len(samples) if typed else 1
    assert len(outputs) >= least, f"{len(outputs)} outputs instead of {least}"
    for sample, output in zip(samples[::-1], outputs[::-1], strict=False):
        shape = tuple(output.shape)
        if sample.rows is not None and shape[:1] == (sample.rows,):
            sample = sample.leading()
        assert shape == sample.shape, f"sizes {shape} instead of {sample.shape}"
        found = take(output, sample.positions())
        assert not typed or found.dtype == sample.values.dtype, (
            f"type {found.dtype} instead of {sample.values.dtype}"
        )
        np.testing.assert_allclose(
            np.asarray(found, np.float64),
            np.asarray(sample.values, np.float64),
            rtol=sample.rtol,
            atol=sample.atol,
        )


def grid(
    shape: Sequence[int], special: Mapping[int, np.ndarray] | None = None
) -> tuple[np.ndarray, ...]:
    """For each axis the coordinates to compare, including the `special` coordinates."""
    if math.prod(shape) <= COMPARED:
        return tuple(np.arange(size) for size in shape)
    count = int(COMPARED ** (1 / len(shape)))
    random = np.random.default_rng(0)
    axes = []
    for axis, size in enumerate(shape):
        border = np.arange(min(count // 3, size))
        parts = [border, size - 1 - border, random.integers(0, size, count // 3)]
        parts.append((special or {}).get(axis, border))
        axis_coordinates = np.unique(np.concatenate(parts))
        inside = (axis_coordinates >= 0) & (axis_coordinates < size)
        axes.append(axis_coordinates[inside])
    return tuple(axes)


def element_wise_if(condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> Any:
    """Selects a where the condition is not 0, else b."""
    axes = grid(condition.shape)
    at = np.ix_(*axes)
    return [Sample(a.shape, axes, np.where(condition[at] != 0, a[at], b[at]))]


def padding(x: np.ndarray, *, pads: Sequence[tuple[int, int]], mode: str) -> Any:
    """The elements at the padded indices of each axis; 0 for none."""
    sources = [_sources(*line, mode) for line in zip(x.shape, pads, strict=True)]
    joints = {
        axis: np.array([start - 1, start, start + size - 1, start + size])
        for axis, ((start, _), size) in enumerate(zip(pads, x.shape, strict=True))
    }
    shape = tuple(len(source) for source in sources)
    axes = grid(shape, joints)
    at = np.ix_(*(source[line] for source, line in zip(sources, axes, strict=True)))
    values = x[at]
    inside = np.ones((), bool)
    for source in at:
        inside = inside & (source >= 0)
    return [Sample(shape, axes, np.where(inside, values, x.dtype.type(0)))]


def _sources(size: int, pads: tuple[int, int], mode: Any) -> np.ndarray:
    """For each position on a padded axis the index of its source; -1 for none."""
    outside: dict[str, Any] = {"constant_values": -1} if mode == "constant" else {}
    sources: np.ndarray = np.pad(np.arange(size), pads, mode, **outside)
    return sources


def nonzero_coordinates(
    x: np.ndarray, *, undefined: bool = False, size: int | None = None
) -> Any:
    """The count and the coordinates; zeros past the count unless they are undefined."""
    numbers = np.flatnonzero(x)
    count = len(numbers)
    shape = (x.size if size is None else size, x.ndim)
    rows, columns = grid(shape, {0: count + np.arange(-3, 4)})
    if undefined:
        rows = rows[rows < count]
    found = rows[rows < count]
    values = np.zeros((len(rows), x.ndim), np.uint32)
    values[: len(found)] = np.stack(np.unravel_index(numbers[found], x.shape), -1)
    return [
        Sample((), (), np.array(count, np.uint32)),
        Sample(shape, (rows, columns), values[:, columns], rows=min(count, shape[0])),
    ]
