"""The launch of kernels for TPUs: the interpreter finds faults that are planted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu

from dmljax.pallas.tpu import LANES, SUBLANES
from dmljax.pallas.tpu._launch import launch_blocks
from tests.pallas.tpu.conftest import on_cores

BLOCK = (SUBLANES, LANES)
SHAPE = (2 * SUBLANES, LANES)


def planted(kernel, *, into=lambda i: (i, 0), out_of=lambda i: (i, 0), **options):
    """Two programs, on two cores."""
    try:
        # The two cores wait for each other forever on a GPU.
        with jax.default_device(jax.devices("cpu")[0]):
            (found,) = launch_blocks(
                kernel,
                jnp.ones(SHAPE, np.float32),
                operator="toy",
                grid=(2,),
                blocks=[pl.BlockSpec(BLOCK, out_of), pl.BlockSpec(BLOCK, into)],
                outputs=[jax.ShapeDtypeStruct(SHAPE, np.float32)],
                interpret=on_cores(2),
                **options,
            )
            return found.block_until_ready()
    finally:
        tpu.reset_tpu_interpret_mode_state()


def copy(x, out):
    out[...] = x[...]


@pytest.mark.parametrize("options", [{}, {"in_order": True}])
def test_programs_that_write_a_block_race_unless_they_run_in_order(capfd, options):
    try:
        planted(copy, into=lambda i: (0, 0), **options)
        found = capfd.readouterr().out
    except Exception as error:
        found = str(error)
    assert ("RACE" in found) == (not options)


def test_it_finds_a_read_outside():
    with pytest.raises(Exception, match=r"(?i)out.of.bounds"):
        planted(copy, out_of=lambda i: (i + 1, 0))


def test_it_fills_memory_with_nan():
    def half(x, out):
        out[: SUBLANES // 2] = x[: SUBLANES // 2]

    result = planted(half)
    assert np.isnan(result).sum() == result.size / 2
