"""Random descriptors: whether they are accepted, and their results."""

import contextlib

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st

import dmljax
from tests.checks import assert_same
from tests.fuzz import expected
from tests.fuzz.descriptors import Maker, changed
from tests.fuzz.rules import accepts

pytestmark = pytest.mark.slow

# Hypothesis chooses only the seed. Examples whose numbers it chooses are much alike,
# and find few faults.
randoms = st.randoms(use_true_random=True)


def error_of(desc, level):
    """The message that refuses a descriptor; "" if it is accepted."""
    try:
        dmljax.create_operator(desc, feature_level=level)
    except (dmljax.DescriptorError, TypeError) as error:
        return str(error)
    return ""


@hypothesis.given(randoms)
def test_the_rules_are_those_of_the_pages(random):
    """Few random descriptors break a rare rule, so each example tries many."""
    maker = Maker(random)
    for _ in range(100):
        desc = maker.desc()
        level = maker.level()
        with contextlib.suppress(dmljax.DescriptorError, TypeError):
            for _ in range(random.choice((0, 0, 1, 1, 2))):
                desc = changed(maker, desc)
        with jax.enable_x64(True):
            error = error_of(desc, level)
        assert accepts(desc, level) == (not error), (desc, level, error)
        assert not error or error.startswith(f"{desc.operator}: ")
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
