"""Small runs of the kernels, for compute-sanitizer.

    python -m tests.pallas.gpu.sanitized

Each kernel has whole and cut blocks, aligned and unaligned.
"""

import functools

import jax
import numpy as np
import pytest

from dmljax.pallas.gpu import _nonzero_plan
from tests.pallas import blocks
from tests.pallas.nonzero import by_kernel as find

DTYPES = (np.float32, np.float16, np.uint8)  # a kernel for each size of an element
ELEMENTS = (1, 8192, 20000, 20001)
random = np.random.default_rng(0)


def nonzero_coordinates(dtype):
    """Lines of all lengths, sparse and dense, and an array of rank 3.

    Then come lines of many programs, and lines with few rows.
    """
    for elements in ELEMENTS:
        for density in (0.01, 0.9):
            yield _with_and_without_fill((elements,), density, dtype)
    yield find(_sparse((3, 65, 127), 0.9, dtype))
    with pytest.MonkeyPatch.context() as patch:
        blocks.put(patch, {_nonzero_plan: blocks.SMALL[_nonzero_plan]})
        for density in (0.01, 0.2, 0.6):
            yield _with_and_without_fill((100_000,), density, dtype)
        few = functools.partial(find, size=20_000)
        yield jax.vmap(few)(_sparse((2, 100_000), 0.1, dtype))


def _with_and_without_fill(shape, density, dtype):
    x = _sparse(shape, density, dtype)
    return find(x), find(x, fill=None)


def _sparse(shape, density, dtype):
    return (random.random(shape) < density).astype(dtype)


if __name__ == "__main__":
    for dtype in DTYPES:
        for result in nonzero_coordinates(dtype):
            jax.block_until_ready(result)
    print("every kernel ran")
