"""Random descriptors: their results, and the messages of wrong ones."""

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st

import dmljax
from tests.checks import assert_same
from tests.fuzz import expected
from tests.fuzz.descriptors import Maker, changed

pytestmark = pytest.mark.slow

# Hypothesis chooses only the seed. Examples whose numbers it chooses are much alike,
# and find few faults.
randoms = st.randoms(use_true_random=True)


@hypothesis.given(randoms)
def test_wrong_fields_are_refused_in_words(random):
    """Few random descriptors break a rare rule, so each example tries many."""
    maker = Maker(random)
    for _ in range(100):
        desc, error = maker.desc(), ""
        try:
            for _ in range(random.choice((1, 1, 2))):
                desc = changed(maker, desc)
            dmljax.create_operator(desc, feature_level=maker.level())
        except (dmljax.DescriptorError, TypeError) as raised:
            error = str(raised)
        names = f"{desc.operator}: ", "TensorDesc: "
        assert not error or error.startswith(names), (desc, error)
        assert error.isprintable()
        assert len(error) < 500


@hypothesis.given(randoms)
def test_results_are_those_of_the_oracles(random):
    """Random types, sizes and strides, with and without gaps, in a program."""
    maker = Maker(random)
    generator = np.random.default_rng(random.getrandbits(32))
    descs = [maker.desc() for _ in range(5)]
    inputs = [expected.random_inputs(generator, desc) for desc in descs]
    with jax.enable_x64(True):
        operators = list(map(dmljax.create_operator, descs))
        results = jax.jit(
            lambda inputs: [f(*x) for f, x in zip(operators, inputs, strict=True)]
        )(inputs)
    for desc, arrays, result in zip(descs, inputs, results, strict=True):
        assert_same(result, expected.outputs(desc, arrays), repr(desc))
