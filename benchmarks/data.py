"""Inputs of any size, made quickly: a block of random numbers, repeated."""

import dataclasses
import functools
import math

import numpy as np

# Odd, and no divisor of any size: no two rows of an array are alike.
BLOCK = 2**20 + 7


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
    """

    shape: tuple[int, ...]
    dtype: str
    low: int = 1
    high: int = 101
    density: float = 1.0
    seed: int = 0

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def array(self) -> np.ndarray:
        """The array. The newest arrays stay in memory."""
        return _array(self)


@functools.lru_cache(maxsize=4)
def _array(data: Data) -> np.ndarray:
    random = np.random.default_rng(data.seed)
    length = min(BLOCK, data.size)
    numbers = random.integers(data.low, data.high, length)
    numbers *= random.random(length) < data.density
    return np.resize(numbers.astype(data.dtype), data.shape)
