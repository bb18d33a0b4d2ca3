"""Random descriptors: their results, and the messages of odd values."""

import dataclasses
import itertools

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st

import dmljax
from tests.checks import assert_same
from tests.fuzz import expected
from tests.fuzz.descriptors import ODD, Maker
from tests.subjects import DESCRIBED

pytestmark = pytest.mark.slow

# Hypothesis chooses only the seed. Examples whose numbers it chooses are much alike,
# and find few faults.
randoms = st.randoms(use_true_random=True)


@pytest.mark.parametrize("name", DESCRIBED)
def test_odd_values_are_refused_in_words(name):
    desc = DESCRIBED[name].example
    for tensor in ("", *desc.tensors()):
        owner = getattr(desc, tensor) if tensor else desc
        for field, odd in itertools.product(
            vars(owner), [*ODD, *itertools.pairwise(ODD)]
        ):
            try:
                changed = dataclasses.replace(owner, **{field: odd})
                if tensor:
                    changed = dataclasses.replace(desc, **{tensor: changed})
                dmljax.create_operator(changed)
            except (dmljax.DescriptorError, TypeError) as error:
                message = str(error)
                assert message.startswith((f"{name}: ", "TensorDesc: "))
                assert message.isprintable()
                assert len(message) < 500


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
