"""Small runs of the kernels of one operator, for compute-sanitizer.

    python -m tests.pallas.gpu.sanitized nonzero_coordinates

Each kernel has whole and cut blocks, aligned and unaligned.
"""

import argparse
import functools

import jax
import numpy as np
import pytest

import dmljax
from dmljax.pallas.gpu import _nonzero_plan
from tests.pallas import blocks

DTYPES = (np.float32, np.float16, np.uint8)  # a kernel for each size of an element
ELEMENTS = (1, 8192, 20000, 20001)
PALLAS = {"implementation": "pallas"}
random = np.random.default_rng(0)


def nonzero_coordinates(dtype):
    """Lines of all lengths, sparse and dense, and an array of rank 3.

    Then come lines of many programs, and lines with few rows.
    """
    for elements in ELEMENTS:
        for density in (0.01, 0.9):
            x = _sparse((elements,), density, dtype)
            for fill in (0, None):
                yield dmljax.nonzero_coordinates(x, fill=fill, **PALLAS)
    yield dmljax.nonzero_coordinates(_sparse((3, 65, 127), 0.9, dtype), **PALLAS)
    with pytest.MonkeyPatch.context() as patch:
        blocks.put(patch, {_nonzero_plan: blocks.SMALL[_nonzero_plan]})
        for density in (0.01, 0.2, 0.6):
            x = _sparse((100_000,), density, dtype)
            for fill in (0, None):
                yield dmljax.nonzero_coordinates(x, fill=fill, **PALLAS)
        few = functools.partial(dmljax.nonzero_coordinates, size=20_000, **PALLAS)
        yield jax.vmap(few)(_sparse((2, 100_000), 0.1, dtype))


def _sparse(shape, density, dtype):
    return (random.random(shape) < density).astype(dtype)


def padding(dtype):
    """All modes, with two and three axes, short rows, and one long row."""
    for shape, pads in (
        ((7, 65, 128), (0, 3, 3)),
        ((5, 33, 21, 3), (1, 2, 9, 0)),
        ((3, 2), (0, 1)),
        ((7, 3), (1, 0)),
        ((20_000,), (5_000,)),
    ):
        image = random.integers(0, 9, shape).astype(dtype)
        for mode in dmljax.PaddingMode:
            yield dmljax.padding(image, pads, pads, mode=mode, **PALLAS)


RUNS = {run.__name__: run for run in (nonzero_coordinates, padding)}


def main():
    """Runs the kernels of an operator."""
    parser = argparse.ArgumentParser(
        prog="tests.pallas.gpu.sanitized", description=__doc__
    )
    parser.add_argument("operator", choices=RUNS)
    run = RUNS[parser.parse_args().operator]
    for dtype in DTYPES:
        for result in run(dtype):
            jax.block_until_ready(result)
    print("every kernel ran")


if __name__ == "__main__":
    main()
