"""Batches of every operator: along any axis of any operand, nested, and empty."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from tests.transforms import dense


@dense.each_operator()
def test_vmap_of_one_operand_along_every_axis(uses):
    """The value of PADDING and of DIAGONAL_MATRIX1 is an operand like any other."""

    def along(sample, position, axis, operands):
        arrays = [x[0] for x in operands]
        arrays[position] = jnp.moveaxis(operands[position], 0, axis)
        in_axes = [axis if i == position else None for i in range(len(arrays))]
        return jax.vmap(sample.run, in_axes)(*arrays)

    def run(sample, *operands):
        return [
            along(sample, i, axis, operands)
            for i, x in enumerate(operands)
            for axis in range(x.ndim)
        ]

    def expected(sample, *operands):
        outputs = []
        for i, x in enumerate(operands):
            batches = list(map(dense.shared, operands))
            batches[i] = x
            outputs += [dense.expected_batch(sample, *batches)] * x.ndim
        return outputs

    dense.check(uses, dense.batches, run, expected)


@dense.each_operator(dense.FORMS | dense.KERNELS)
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
    """The first operand in the outer batch, the others in the inner; all in both."""

    def run(sample, first, *others):
        apart = sample.run
        if others:
            apart = jax.vmap(apart, [None] + [0] * len(others))
        apart = jax.vmap(apart, [0] + [None] * len(others))
        pairs = (x.reshape(2, dense.BATCH, *x.shape[1:]) for x in (first, *others))
        both = jax.vmap(jax.vmap(sample.run), 1)(*pairs)
        return apart(first, *others), both

    def expected(sample, first, *others):
        count = len(first)
        rows = (
            dense.expected_batch(sample, [x] * count, *others)
            if others
            else sample.expected(x)
            for x in first
        )
        both = dense.expected_batch(sample, first, *others)
        both = jax.tree.map(lambda x: x.reshape(2, dense.BATCH, *x.shape[1:]), both)
        return (
            jax.tree.map(lambda *xs: np.stack(xs), *rows),
            jax.tree.map(lambda x: x.swapaxes(0, 1), both),
        )

    batches = functools.partial(dense.batches, count=2 * dense.BATCH)
    dense.check(uses, batches, run, expected)
