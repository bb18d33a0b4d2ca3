"""The interpreter for TPUs finds faults that are planted, so nothing gets past it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu

from tests.pallas.tpu.conftest import INTERPRETER, dataclasses


def planted(kernel, *, into=lambda i: (i, 0), out_of=lambda i: (i, 0)):
    """Two programs, on two cores."""
    call = pl.pallas_call(
        kernel,
        grid=(2,),
        in_specs=[pl.BlockSpec((8, 128), out_of)],
        out_specs=pl.BlockSpec((8, 128), into),
        out_shape=jax.ShapeDtypeStruct((16, 128), np.float32),
        interpret=dataclasses.replace(INTERPRETER, num_cores_or_threads=2),
        compiler_params=tpu.CompilerParams(dimension_semantics=("parallel",)),
    )
    try:
        # The two cores wait for each other forever on a GPU.
        with jax.default_device(jax.devices("cpu")[0]):
            return jax.block_until_ready(call(jnp.ones((16, 128), np.float32)))
    finally:
        tpu.reset_tpu_interpret_mode_state()


def copy(x, out):
    out[...] = x[...]


def test_it_finds_a_race(capfd):
    try:
        planted(copy, into=lambda i: (0, 0))
        found = capfd.readouterr().out
    except Exception as error:
        found = str(error)
    assert "RACE" in found


def test_it_finds_a_read_outside():
    with pytest.raises(Exception, match=r"(?i)out.of.bounds"):
        planted(copy, out_of=lambda i: (i + 1, 0))


def test_it_fills_memory_with_nan():
    def half(x, out):
        out[:4] = x[:4]

    result = planted(half)
    assert np.isnan(result).sum() == result.size / 2
