"""The interpreter for TPUs keeps a TPU's memories apart.

It reports races, also of cores that share the programs, fills unwritten memory
with NaN, and does not let a kernel read outside of an array.
"""

import jax
import pytest
from jax.experimental.pallas import tpu

from tests.pallas import blocks


@pytest.fixture
def on_cores():
    """For a number of cores, a context in which the interpreter runs kernels."""

    def interpreter(cores):
        settings = tpu.InterpretParams(
            detect_races=True,
            uninitialized_memory="nan",
            out_of_bounds_reads="raise",
            num_cores_or_threads=cores,
        )
        return tpu.force_tpu_interpret_mode(settings)

    # Its cores wait for each other forever on a GPU.
    with jax.default_device(jax.devices("cpu")[0]):
        yield interpreter
    tpu.reset_tpu_interpret_mode_state()


@pytest.fixture
def interpreter(on_cores, monkeypatch, capfd):
    """The same with small blocks; it reports no race, or the test fails."""
    blocks.put(monkeypatch, blocks.SMALL_ON_TPU)
    yield on_cores
    assert "RACE" not in capfd.readouterr().out
