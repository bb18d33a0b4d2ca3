"""Small runs of the kernels, for compute-sanitizer.

    python -m tests.pallas.gpu.sanitized

The kernel has whole and cut shares, aligned and unaligned.
"""

import functools

import jax
import numpy as np
import pytest

from tests.pallas import blocks
from tests.pallas.nonzero import by_kernel as find

random = np.random.default_rng(0)


def runs():
    """Lines of all lengths, sparse and dense, and an array of rank 3.

    Then come lines of many programs, lines with few rows, and short lines: several of a
    tile, and several tiles of a line.
    """
    for elements in (1, 1024, 8192, 20000, 20001, 70_000):
        for density in (0.01, 0.9):
            yield _with_and_without_fill((elements,), density)
    yield find(_sparse((3, 65, 127), 0.9))
    few = jax.vmap(functools.partial(find, size=20))
    with pytest.MonkeyPatch.context() as patch:
        blocks.put(patch, blocks.SMALL)
        for density in (0.01, 0.2, 0.6):
            yield _with_and_without_fill((200_000,), density)
        for shape in ((2, 100_000), (70, 16), (9, 1000), (9, 3, 500), (9, 3000)):
            yield few(_sparse(shape, 0.1))


def _with_and_without_fill(shape, density):
    x = _sparse(shape, density)
    return find(x), find(x, fill=None)


def _sparse(shape, density):
    return random.random(shape) < density


if __name__ == "__main__":
    for result in runs():
        jax.block_until_ready(result)
    print("every kernel ran")
