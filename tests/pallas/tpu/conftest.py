"""The interpreter for TPUs, with the separate memories of a TPU.

It reports races, also between cores that share the programs, fills unwritten memory
with NaN, and refuses reads outside of an array.
"""

import jax
import pytest
from jax.experimental.pallas import tpu

from tests.pallas import blocks


@pytest.fixture
def on_cores():
    """A function `cores -> context`, where the interpreter has so many cores."""

    def interpreter(cores):
        settings = tpu.InterpretParams(
            detect_races=True,
            uninitialized_memory="nan",
            out_of_bounds_reads="raise",
            num_cores_or_threads=cores,
        )
        return tpu.force_tpu_interpret_mode(settings)

    # On a GPU, the interpreter's cores wait for each other forever.
    with jax.default_device(jax.devices("cpu")[0]):
        yield interpreter
    tpu.reset_tpu_interpret_mode_state()


@pytest.fixture
def interpreter(on_cores, monkeypatch, capfd):
    """Like `on_cores`, with small blocks; the test fails if there is a race."""
    blocks.put(monkeypatch, blocks.SMALL_ON_TPU)
    yield on_cores
    assert "RACE" not in capfd.readouterr().out
