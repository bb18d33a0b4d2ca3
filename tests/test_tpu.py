"""The kernels for TPUs, without one: in the interpreter for TPUs, and lowered.

The interpreter keeps a TPU's memories apart. Here it runs two cores that share the
programs, reports their races, fills what nobody has written with NaN, and does not let
a kernel read outside of an array.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu

import dmljax
from dmljax import _operator
from tests import samples
from tests.samples import SUBJECTS
from tests.test_operators import assert_same, needs_x64

INTERPRETER = tpu.InterpretParams(
    detect_races=True,
    uninitialized_memory="nan",
    out_of_bounds_reads="raise",
    num_cores_or_threads=2,
)
WITH_KERNEL = [name for name, one in SUBJECTS.items() if "tpu" in one.primitive.kernels]
TYPES = (
    *("float32", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int32", "int16", "int8"),
    *("uint32", "uint16", "uint8", "bool", "int4", "uint4"),
)
REFUSED = ("float16", "complex64")
each_operator = pytest.mark.parametrize("name", WITH_KERNEL)


@pytest.fixture
def interpreted(monkeypatch, capfd):
    """Every operator is its kernel for TPUs, interpreted; and no race is reported.

    The interpreter has effects, for which a primitive's lowering has no place: the
    kernel takes the place of the primitive.
    """

    def call(self, *operands, implementation, **static):
        assert implementation == "pallas"
        return self.kernels["tpu"](*operands, **static, interpret=INTERPRETER)

    monkeypatch.setattr(_operator.Operator, "__call__", call)
    jax.clear_caches()
    yield
    jax.clear_caches()
    tpu.reset_tpu_interpret_mode_state()
    assert "RACE" not in capfd.readouterr().out


def uses(name, *, edges=False):
    """The operator's samples, by its kernel."""
    subject = SUBJECTS[name]
    found = subject.samples + (subject.edges if edges else ())
    return [one.by_kernel() for one in found if one.implementation is None]


def run(sample, dtype="float32", fill=samples.bits):
    arrays = sample.arrays(dtype, fill)
    assert_same(sample.run(*map(jnp.asarray, arrays)), sample.expected(*arrays))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("dtype", TYPES)
@each_operator
def test_every_type(name, dtype):
    for sample in uses(name):
        run(sample, dtype)


@pytest.mark.usefixtures("interpreted")
@each_operator
def test_edges(name):
    for sample in uses(name, edges=True):
        with jax.enable_x64(needs_x64(sample)):
            run(sample)
