"""The programs that users run: all ways compute the same, of arrays of any size."""

import chex
import jax
import numpy as np
import pytest

from benchmarks.programs.ten import PROGRAMS


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_ways_compute_the_same(name):
    random = np.random.default_rng(0)
    functions = PROGRAMS[name].spellings
    inputs = PROGRAMS[name].inputs(2**12, "float32")
    arrays = [random.integers(high, size=n).astype(to) for n, to, high in inputs]
    # Users have promotions that our tests forbid.
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        run = jax.jit(lambda *arrays: [way(*arrays) for way in functions.values()])
        ours, *theirs = run(*arrays)
    assert next(iter(functions)) == "dmljax"
    assert theirs
    for other in theirs:
        chex.assert_trees_all_close(ours, other, rtol=1e-5)
        chex.assert_trees_all_equal_shapes_and_dtypes(ours, other)
    assert np.ptp(ours.astype(np.float32)) > 0
