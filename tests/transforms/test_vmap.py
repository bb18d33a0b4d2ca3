"""Batches of every operator: along any axis of any operand, nested, and empty."""

import jax
import jax.numpy as jnp
import pytest

from tests.subjects import FORMS, KERNELS
from tests.transforms import dense

pytestmark = pytest.mark.usefixtures("simulator")


@dense.each_operator()
def test_vmap_of_one_operand_along_every_axis(uses):
    """The value of PADDING and of DIAGONAL_MATRIX1 is an operand like any other."""

    def run(sample, *operands):
        outputs = []
        for i, x in enumerate(operands):
            arrays = [y[0] for y in operands]
            in_axes = [None] * len(operands)
            for axis in range(x.ndim):
                arrays[i] = jnp.moveaxis(x, 0, axis)
                in_axes[i] = axis
                outputs.append(jax.vmap(sample.run, tuple(in_axes))(*arrays))
        return outputs

    def expected(sample, *operands):
        outputs = []
        for i, x in enumerate(operands):
            batches = list(map(dense.shared, operands))
            batches[i] = x
            outputs += [dense.expected_batch(sample, *batches)] * x.ndim
        return outputs

    dense.check(uses, dense.batches, run, expected)


@dense.each_operator(FORMS | KERNELS)
def test_vmap_of_all_operands(uses):
    """Each operand along another axis, in batches of several, one, and none."""
    counts = (dense.BATCH, 1, 0)

    def run(sample, *operands):
        axes = [-1 - i % x.ndim for i, x in enumerate(operands)]

        def first(count):
            arrays = [x[:count] for x in operands]
            moved = map(jnp.moveaxis, arrays, [0] * len(axes), axes)
            return jax.vmap(sample.run, axes)(*moved)

        return [first(count) for count in counts]

    def expected(sample, *operands):
        whole = dense.expected_batch(sample, *operands)
        return [jax.tree.map(lambda x, n=n: x[:n], whole) for n in counts]

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
