"""Kernels run every sample and edge, and are lowered for a GPU and for a TPU.

test_compiled_for_gpus.py and test_compiled_for_tpus.py go on to machine code.
"""

import jax
import pytest

from tests import samples
from tests.checks import (
    check,
    launches,
    needs_kernels,
    needs_x64,
)
from tests.subjects.nonzero_coordinates import KERNEL_EDGES, KERNEL_SAMPLES

pytestmark = pytest.mark.usefixtures("simulator")

USES = KERNEL_SAMPLES + KERNEL_EDGES


@pytest.mark.slow
@pytest.mark.parametrize("sample", USES, ids=str)
def test_samples_and_edges(sample):
    """New data in a compiled program costs nothing."""
    with jax.enable_x64(needs_x64(sample)):
        check(sample, fill=samples.numbers)
        for seed in range(5):
            check(sample, seed=seed)


# PROGRAMS


@needs_kernels
@pytest.mark.usefixtures("real_blocks")
def test_samples_on_a_gpu():
    """A kernel reads flags, so the type of an array does not matter."""
    for sample in KERNEL_SAMPLES:
        assert launches(sample.run, *sample.arrays()) == 1


@pytest.mark.parametrize(("x64", "uses"), [(False, USES), (True, KERNEL_SAMPLES)])
def test_samples_and_edges_on_a_tpu(x64, uses):
    for sample in uses:
        with jax.enable_x64(x64 or needs_x64(sample)):
            arrays = sample.arrays()
            # Nothing is to be found in an empty array, or without rows.
            found = jax.tree.leaves((arrays, jax.eval_shape(sample.run, *arrays)))
            launched = launches(sample.run, *arrays, platform="tpu")
            assert launched == all(x.size for x in found)
