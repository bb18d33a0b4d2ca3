"""Properties that hold for all shapes, types and attributes, on drawn examples.

Every example is compiled, so that shapes are drawn from few.
"""

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st

from tests import samples
from tests.checks import assert_same
from tests.subjects import SUBJECTS

examples = hypothesis.settings(max_examples=25)
LINEAR = [name for name, subject in SUBJECTS.items() if subject.samples[0].linear]


@pytest.mark.parametrize("name", SUBJECTS)
@examples
@hypothesis.given(st.data())
def test_same_bits_as_the_oracle(name, data):
    example = data.draw(SUBJECTS[name].examples)
    dtype = data.draw(st.sampled_from(SUBJECTS[name].data_types))
    arrays = example.arrays(dtype, samples.bits, data.draw(st.integers(0, 9)))
    with jax.enable_x64(dtype in samples.WIDE):
        outputs = example.run(*map(jax.device_put, arrays))
    assert_same(outputs, example.expected(*arrays))


@pytest.mark.parametrize("name", LINEAR)
@examples
@hypothesis.given(st.data())
def test_adjoint(name, data):
    """<A x, y> = <x, A' y>, where every sum is exact."""
    example, seed = data.draw(SUBJECTS[name].examples), data.draw(st.integers(0, 9))
    arrays = example.arrays("float32", seed=seed)
    shape = jax.eval_shape(example.run, *arrays).shape
    cotangent = samples.numbers(shape, "float32", seed + 3)

    @jax.jit
    def program(arrays, cotangent):
        output, pull = jax.vjp(example.run, *arrays)
        return output, pull(cotangent)

    output, bars = program(arrays, cotangent)
    inner = sum(np.vdot(arrays[i], bars[i]) for i in example.open_operands)
    assert np.vdot(output, cotangent) == inner
