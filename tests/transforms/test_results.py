"""The results of every operator equal the oracle's, bit for bit.

Compiling takes most of the time, so we put many samples into a program.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import samples
from tests.checks import assert_same, check, each, needs_x64
from tests.samples import named
from tests.subjects import FIRST, LINEAR, SAMPLES, SUBJECTS

pytestmark = [
    pytest.mark.usefixtures("simulator"),
    pytest.mark.filterwarnings("ignore:Some donated buffers were not usable"),
]


def compiled(uses):
    """A program that runs all samples, each with its own arrays."""

    def program(inputs):
        pairs = zip(uses, inputs, strict=True)
        return [named(samples.Sample.run, one, *own) for one, own in pairs]

    # XLA may write an output into the buffer of a donated input.
    return jax.jit(program, donate_argnums=0)


def assert_all_same(uses, program, inputs):
    for sample, arrays, output in zip(uses, inputs, program(inputs), strict=True):
        name = f"{sample} of {[x.dtype.name for x in arrays]}"
        assert_same(output, sample.expected(*arrays), name)


each_width = pytest.mark.parametrize("wide", [False, True], ids=["32 bits", "64 bits"])


@each_width
@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
def test_data_types(subject, wide):
    """Also NaN, infinity and subnormals: in every place, selected and not."""
    dtypes = [one for one in subject.data_types if (one in samples.WIDE) == wide]
    uses, dtypes = zip(*itertools.product(subject.samples, dtypes), strict=True)
    program = compiled(uses)
    fills = [(samples.numbers, 0)] + [(samples.bits, seed) for seed in range(5)]
    with jax.enable_x64(wide):
        for fill, seed in fills:
            pairs = zip(uses, dtypes, strict=True)
            inputs = [sample.arrays(dtype, fill, seed) for sample, dtype in pairs]
            assert_all_same(uses, program, inputs)


def forms():
    """The jax.numpy forms of every operator; None for a plain function."""
    for name, subject in SUBJECTS.items():
        labels = {None: "plain"}
        if one := subject.primitive:
            of_cpu = one.on_platform.get("cpu")
            labels = {of_cpu: "cpu", one.auto_sharded: "auto", one.definition: "xla"}
            labels.pop(None, None)
        for form, label in labels.items():
            yield pytest.param(name, form, id=f"{name}-{label}")


@each_width
@pytest.mark.parametrize(("name", "form"), list(forms()))
def test_edges(name, form, wide, monkeypatch):
    subject = SUBJECTS[name]
    uses = [edge for edge in subject.edges if needs_x64(edge) == wide]
    if form:
        monkeypatch.setitem(subject.primitive.on_platform, "cpu", form)
    # Whatever another form has compiled is not found again.
    jax.clear_caches()
    with jax.enable_x64(wide):
        inputs = [edge.arrays(fill=samples.bits) for edge in uses]
        assert_all_same(uses, compiled(uses), inputs)
    jax.clear_caches()


@each(FIRST)
def test_without_jit(sample):
    with jax.disable_jit():
        check(sample)


@each(SAMPLES)
def test_calls_outside_of_a_program(sample):
    """NumPy's arrays are arrays, results repeat, and new data compiles nothing."""
    jitted = SUBJECTS[sample.operator].jitted
    sample.run(*sample.arrays())
    size = jitted._cache_size()
    for seed in (1, 2, 2):
        arrays = sample.arrays(fill=samples.bits, seed=seed)
        assert_same(sample.run(*arrays), sample.expected(*arrays))
    assert jitted._cache_size() == size


@each(LINEAR)
def test_weak_operands_give_strong_results(sample):
    weak = list(sample.arrays())
    for i in sample.open_operands:
        weak[i] = jnp.full(weak[i].shape, 2.0)
    # Without an input, the result takes its type from the value.
    assert_same(sample.run(*weak), sample.expected(*map(np.asarray, weak)))
