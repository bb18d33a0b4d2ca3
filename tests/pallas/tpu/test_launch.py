"""The launch of kernels for TPUs: the interpreter finds faults that are planted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

from dmljax.pallas.tpu import LANES, SUBLANES
from dmljax.pallas.tpu._launch import launch_blocks

BLOCK = (SUBLANES, LANES)
SHAPE = (2 * SUBLANES, LANES)


@pytest.fixture
def planted(on_cores):
    """Runs a kernel as two programs, on two cores."""

    def run(kernel, *, into=lambda i: (i, 0), out_of=lambda i: (i, 0), **options):
        with on_cores(2):
            (found,) = launch_blocks(
                kernel,
                jnp.ones(SHAPE, np.float32),
                operator="toy",
                grid=(2,),
                blocks=[pl.BlockSpec(BLOCK, out_of), pl.BlockSpec(BLOCK, into)],
                outputs=[jax.ShapeDtypeStruct(SHAPE, np.float32)],
                **options,
            )
        return found.block_until_ready()

    return run


def copy(x, out):
    out[...] = x[...]


@pytest.mark.parametrize("options", [{}, {"in_order": True}])
def test_programs_that_write_a_block_race_unless_they_run_in_order(
    planted, capfd, options
):
    try:
        planted(copy, into=lambda i: (0, 0), **options)
        found = capfd.readouterr().out
    except Exception as error:
        found = str(error)
    assert ("RACE" in found) == (not options)


def test_it_finds_a_read_outside(planted):
    with pytest.raises(Exception, match=r"(?i)out.of.bounds"):
        planted(copy, out_of=lambda i: (i + 1, 0))


def test_it_fills_memory_with_nan(planted):
    def half(x, out):
        out[: SUBLANES // 2] = x[: SUBLANES // 2]

    result = planted(half)
    assert np.isnan(result).sum() == result.size / 2
