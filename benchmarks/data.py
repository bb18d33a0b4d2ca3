"""Inputs of any size, made quickly: a block of random numbers, repeated."""

import dataclasses
import functools
import math

import numpy as np

# Odd, and no divisor of any size: no two rows of an array are alike.
BLOCK = 2**20 + 7
# The largest random number plus 1, and the mean of the random numbers.
HIGH, MEAN = 101, 50.5


@dataclasses.dataclass(frozen=True)
class Data:
    """An array, not yet made.

    Small integers in every type: sums and gradients of them are exact.

    Attributes:
      shape: its sizes.
      dtype: its type's name.
      low: the least number in it.
      high: the largest number plus 1.
      density: the share of the elements that keep their number; all others become 0.
      seed: arrays with different seeds differ.
      values: numbers to repeat, in place of random numbers.
    """

    shape: tuple[int, ...]
    dtype: str
    low: int = 1
    high: int = HIGH
    density: float = 1.0
    seed: int = 0
    values: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * np.dtype(self.dtype).itemsize

    def array(self) -> np.ndarray:
        """The array. The newest arrays stay in memory."""
        return _array(self)

    def nonzeros(self) -> int:
        """The number of elements that are not zero, without making the array."""
        block = _block(self) != 0
        blocks, rest = divmod(self.size, block.size)
        return int(blocks * block.sum() + block[:rest].sum())


@functools.lru_cache(maxsize=4)
def _array(data: Data) -> np.ndarray:
    return np.resize(_block(data), data.shape)


def _block(data: Data) -> np.ndarray:
    if data.values:
        return np.array(data.values, data.dtype)
    random = np.random.default_rng(data.seed)
    length = min(BLOCK, data.size)
    numbers = random.integers(data.low, data.high, length)
    kept = random.random(length) < data.density
    return np.where(kept, numbers, 0).astype(data.dtype)
