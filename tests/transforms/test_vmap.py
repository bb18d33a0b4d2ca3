"""Batches of every operator: along any axis of any operand, nested, and empty."""

import jax
import jax.numpy as jnp
import numpy as np

from tests.transforms.matrices import (
    BATCH,
    FORMS,
    KERNELS,
    assert_equal,
    batches,
    each_operator,
    expected_batch,
    in_one_program,
)


@each_operator()
def test_vmap_of_one_operand_along_every_axis(uses):
    """The value of PADDING and DIAGONAL_MATRIX1 is an operand as any other."""

    def along(sample, position, axis, stacked):
        arrays = [x[0] for x in stacked]
        arrays[position] = jnp.moveaxis(stacked[position], 0, axis)
        in_axes = [axis if i == position else None for i in range(len(arrays))]
        return jax.vmap(sample.run, in_axes)(*arrays)

    def mapped(sample, *stacked):
        return [
            [along(sample, i, axis, stacked) for axis in range(x.ndim)]
            for i, x in enumerate(stacked)
        ]

    operands = [batches(sample) for sample in uses]
    stacks = [list(map(np.stack, own)) for own in operands]
    outputs = in_one_program(mapped, uses, stacks)
    for sample, own, found in zip(uses, operands, outputs, strict=True):
        for i, by_axis in enumerate(found):
            lines = [x if j == i else [x[0]] * BATCH for j, x in enumerate(own)]
            expected = expected_batch(sample, *lines)
            for output in by_axis:
                assert_equal(output, expected, sample)


@each_operator(FORMS | KERNELS)
def test_vmap_of_all_operands(uses):
    """Each along another axis."""

    def in_axes(operands):
        return [-1 - i % (operand[0].ndim + 1) for i, operand in enumerate(operands)]

    operands = [batches(sample) for sample in uses]
    stacks = [
        [np.stack(x, axis) for x, axis in zip(own, in_axes(own), strict=True)]
        for own in operands
    ]
    axes = dict(zip(uses, map(in_axes, operands), strict=True))
    outputs = in_one_program(
        lambda sample, *arrays: jax.vmap(sample.run, axes[sample])(*arrays),
        *(uses, stacks),
    )
    for sample, own, output in zip(uses, operands, outputs, strict=True):
        assert_equal(output, expected_batch(sample, *own), sample)


@each_operator()
def test_nested_vmap(uses):
    """The first operand in the outer batch and the others in the inner one; and all."""

    def nested(sample, *stacked):
        arrays = [x[0] for x in stacked]
        shared = [None] * (len(arrays) - 1)
        inner = jax.vmap(sample.run, [None, *(0 for _ in shared)]) if shared else None
        apart = jax.vmap(inner or sample.run, [0, *shared])(*arrays)
        return apart, jax.vmap(jax.vmap(sample.run), 1)(*stacked)

    operands = [batches(sample, count=2 * BATCH) for sample in uses]
    stacks = [
        [np.stack(x).reshape(2, BATCH, *x[0].shape) for x in own] for own in operands
    ]
    outputs = in_one_program(nested, uses, stacks)
    for sample, own, (apart, both) in zip(uses, operands, outputs, strict=True):
        first, *others = (x[:BATCH] for x in own)
        rows = [
            expected_batch(sample, [x] * BATCH, *others)
            if others
            else sample.expected(x)
            for x in first
        ]
        assert_equal(apart, jax.tree.map(lambda *xs: np.stack(xs), *rows), sample)
        flat = jax.tree.map(lambda x: x.swapaxes(0, 1).reshape(-1, *x.shape[2:]), both)
        assert_equal(flat, expected_batch(sample, *own), sample)


@each_operator()
def test_vmap_of_few(uses):
    """A batch of one is a batch, and a batch may be empty."""
    operands = [batches(sample, count=1) for sample in uses]
    stacks = [list(map(np.stack, own)) for own in operands]

    def mapped(sample, *arrays):
        run = jax.vmap(sample.run)
        return run(*arrays), run(*(x[:0] for x in arrays))

    outputs = in_one_program(mapped, uses, stacks)
    for sample, own, (one, none) in zip(uses, operands, outputs, strict=True):
        expected = expected_batch(sample, *own)
        assert_equal(one, expected, sample)
        assert_equal(none, jax.tree.map(lambda x: x[:0], expected), sample)
