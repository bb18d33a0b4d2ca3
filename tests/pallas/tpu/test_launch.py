"""The launch of kernels for TPUs: races between programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

from dmljax.pallas.tpu import LANES, SUBLANES
from dmljax.pallas.tpu._launch import launch_blocks

BLOCK = (SUBLANES, LANES)
SHAPE = (2 * SUBLANES, LANES)


@pytest.mark.parametrize("options", [{}, {"in_order": True}])
def test_programs_that_write_a_block_race_unless_they_run_in_order(
    on_cores, capfd, options
):
    """Two programs write the first block, on two cores."""

    def copy(x, out):
        out[...] = x[...]

    try:
        with on_cores(2):
            (found,) = launch_blocks(
                copy,
                jnp.ones(SHAPE, np.float32),
                operator="toy",
                grid=(2,),
                blocks=[
                    pl.BlockSpec(BLOCK, lambda i: (i, 0)),
                    pl.BlockSpec(BLOCK, lambda i: (0, 0)),
                ],
                outputs=[jax.ShapeDtypeStruct(SHAPE, np.float32)],
                **options,
            )
            found.block_until_ready()
        found = capfd.readouterr().out
    except Exception as error:
        found = str(error)
    assert ("RACE" in found) == (not options)
