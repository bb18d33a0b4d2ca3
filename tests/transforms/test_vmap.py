"""Batches of every operator: along any axis of any operand, nested, and empty."""

import itertools

import jax
import jax.numpy as jnp
import pytest

from tests.subjects import FORMS, KERNELS
from tests.transforms import dense

pytestmark = pytest.mark.usefixtures("simulator")


def batches(operands):
    """Yields an axis for each operand, or None, and the number of arrays."""
    for i, x in enumerate(operands):
        for axis in range(x.ndim):
            yield [axis if i == j else None for j in range(len(operands))], dense.BATCH
    for count in (dense.BATCH, 1, 0):
        yield [-1 - i % x.ndim for i, x in enumerate(operands)], count


@dense.each_operator(FORMS | KERNELS)
def test_vmap_along_every_axis(uses):
    """Of one operand or all. The value of PADDING is an operand like any other."""

    def run(sample, *operands):
        def output(axes, count):
            arrays = [
                x[0] if axis is None else jnp.moveaxis(x[:count], 0, axis)
                for x, axis in zip(operands, axes, strict=True)
            ]
            return jax.vmap(sample.run, axes)(*arrays)

        return list(itertools.starmap(output, batches(operands)))

    def expected(sample, *operands):
        def output(axes, count):
            arrays = dense.with_shared(operands, axes)
            whole = dense.expected_batch(sample, *arrays)
            return jax.tree.map(lambda x: x[:count], whole)

        return list(itertools.starmap(output, batches(operands)))

    dense.check(uses, dense.batches, run, expected)


@dense.each_operator()
def test_nested_vmap(uses):
    """The first operand in the outer batch, the others in the inner."""

    def run(sample, first, *others):
        rest = [0] * len(others)
        inner = jax.vmap(sample.run, [None, *rest], axis_size=dense.BATCH)
        return jax.vmap(inner, [0] + [None] * len(others))(first, *others)

    def expected(sample, first, *others):
        batches = [([x] * len(first), *others) for x in first]
        return dense.stacked(
            [dense.expected_batch(sample, *batch) for batch in batches]
        )

    dense.check(uses, dense.batches, run, expected)
