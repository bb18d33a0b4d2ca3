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
    """Of one operand or all. The value of PADDING is an operand like any other.

    At last, the first operand has the outer of two batches, and the others the inner.
    """

    def run(sample, *operands):
        def output(axes, count):
            arrays = [
                x[0] if axis is None else jnp.moveaxis(x[:count], 0, axis)
                for x, axis in zip(operands, axes, strict=True)
            ]
            return jax.vmap(sample.run, axes)(*arrays)

        axes = [None] + [0] * len(operands[1:])
        inner = jax.vmap(sample.run, axes, axis_size=dense.BATCH)
        nested = jax.vmap(inner, [0] + [None] * len(operands[1:]))(*operands)
        return nested, list(itertools.starmap(output, batches(operands)))

    def expected(sample, *operands):
        def output(axes, count):
            arrays = dense.with_shared(operands, axes)
            whole = dense.expected_batch(sample, *arrays)
            return jax.tree.map(lambda x: x[:count], whole)

        first, *others = operands
        lines = [dense.expected_batch(sample, [x] * len(first), *others) for x in first]
        each = list(itertools.starmap(output, batches(operands)))
        return dense.stacked(lines), each

    dense.check(uses, dense.batches, run, expected)
