"""PADDING and its adjoint as primitives: what devices send, and which kernels run."""

import functools
import math

import jax
import numpy as np
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from benchmarks.collectives import collectives
from dmljax import PaddingMode, padding
from tests.checks import launches
from tests.meshes import run, sharding_of
from tests.sharded import SHAPE, array
from tests.subjects.padding import pad_rows

# MANY DEVICES

each_kind = pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])


@each_kind
@pytest.mark.parametrize(
    ("pads", "mode"),
    [((16, 0), PaddingMode.REFLECTION), ((0, 8), PaddingMode.EDGE)],
)
def test_rows_that_a_padding_sends(pads, mode, kind):
    """A whole part at the start, and some rows at the end alone."""
    function = functools.partial(pad_rows, pads=pads, mode=mode)
    text, _ = run(function, sharding_of("8", P("a"), kind), array())
    found = sum(one.elements for one in collectives(text))
    assert 0 < found <= 4 * sum(pads) * math.prod(SHAPE[1:])


@each_kind
def test_columns_padded_by_more_than_a_part(kind):
    """A part has two columns."""
    pad = functools.partial(padding, mode=PaddingMode.SYMMETRIC)
    sharding = sharding_of("8", P(None, "a"), kind)
    run(lambda x: pad(x, (0, 5), (0, 3)), sharding, array(shape=(3, 16)))


# THE KERNELS


def test_padding_runs_its_kernel_if_it_is_asked_for():
    def pad(x, **options):
        return padding(x, (8, 8), (8, 8), mode=PaddingMode.EDGE, **options)

    for implementation, expected in (None, 0), ("xla", 0), ("pallas", 1):
        function = functools.partial(pad, implementation=implementation)
        x = jax.ShapeDtypeStruct((2**9, 2**9), np.int8)
        assert launches(function, x) == expected


def test_the_gradient_of_a_padding_by_kernel_launches_no_other():
    """The adjoint has no kernel."""

    def pad(x):
        return padding(x, (8,), (8,), implementation="pallas")

    def gradient(x, cotangent):
        output, pull = jax.vjp(pad, x)
        return output, pull(cotangent)

    assert launches(gradient, np.ones(64, "f4"), np.ones(80, "f4")) == 1
