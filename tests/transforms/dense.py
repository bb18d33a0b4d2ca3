"""Expected derivatives and batches of samples, computed without JAX.

An operator is linear in its open operands. The oracle, applied to unit vectors, gives a
matrix for each open operand, and every derivative is exact arithmetic of matrices.
`check` runs all samples of an operator in one program.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.samples import named
from tests.subjects import FORMS

BATCH = 3


def each_operator(groups=FORMS):
    """A test for each group of samples."""
    chosen = [
        # The kernel of NONZERO_COORDINATES takes long to simulate.
        pytest.param(
            uses, id=name, marks=pytest.mark.slow if uses[0].implementation else ()
        )
        for name, uses in groups.items()
    ]
    return pytest.mark.parametrize("uses", chosen)


def assert_equal(actual, expected, sample=""):
    """Compares two trees of values. Floats hold integers, so that no sum is rounded."""
    pairs = zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True)
    for one, other in pairs:
        assert one.shape == other.shape, sample
        one = np.asarray(one, other.dtype)
        np.testing.assert_array_equal(one, other, err_msg=str(sample))


def check(
    uses, inputs_of, run, expected, execute=lambda program, inputs: program(inputs)
):
    """Compares `run(sample, *inputs)` with `expected(sample, *inputs)` for each sample.

    One program computes all samples, because compiling takes most of the time.
    `execute` maps the program and the inputs to the outputs.
    """
    inputs = [tuple(inputs_of(sample)) for sample in uses]

    @jax.jit
    def program(inputs):
        pairs = zip(uses, inputs, strict=True)
        return [named(run, sample, *own) for sample, own in pairs]

    for sample, own, output in zip(uses, inputs, execute(program, inputs), strict=True):
        assert_equal(output, expected(sample, *own), sample)


# ONE SAMPLE


def opened(sample, arrays):
    """The function of the open operands alone, and these operands."""

    def function(*operands):
        given = list(arrays)
        for i, operand in zip(sample.open_operands, operands, strict=True):
            given[i] = operand
        return sample.run(*given)

    return function, only_open(sample, arrays)


def only_open(sample, arrays):
    """The open operands."""
    return tuple(arrays[i] for i in sample.open_operands)


def matrices(sample, arrays):
    """For each open operand, the matrix from the operand to the flat output."""
    basis = list(arrays)
    for i in sample.open_operands:
        basis[i] = np.zeros_like(arrays[i], float)
    found = []
    for i in sample.open_operands:
        zero, columns = basis[i], []
        for unit in np.eye(zero.size):
            basis[i] = unit.reshape(zero.shape)
            columns.append(sample.expected(*basis).ravel())
        basis[i] = zero
        found.append(np.stack(columns, axis=1))
    return found


def pulled(sample, arrays, cotangent):
    """The cotangent of each open operand."""
    pairs = zip(matrices(sample, arrays), only_open(sample, arrays), strict=True)
    return [(cotangent.ravel() @ a).reshape(operand.shape) for a, operand in pairs]


def energy(function):
    """A scalar that is quadratic in the output."""
    return lambda *operands: 0.5 * jnp.sum(function(*operands) ** 2)


def expected_gradient(sample, *arrays):
    """The gradient of the energy in each open operand."""
    return pulled(sample, arrays, sample.expected(*arrays))


# BATCHES


def batches(sample, count=BATCH):
    """For each operand a batch of different arrays."""
    return stacked(
        [
            array if i in sample.open_operands else np.roll(array, i + seed)
            for i, array in enumerate(sample.arrays(seed=seed))
        ]
        for seed in range(count)
    )


def with_shared(operands, axes):
    """Batches of copies of the first array in place of the operands of axis None."""
    return [
        np.stack([x[0]] * len(x)) if axis is None else x
        for x, axis in zip(operands, axes, strict=True)
    ]


def stacked(outputs):
    """A batch of outputs."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *outputs)


def expected_batch(sample, *operands):
    """The oracle, element by element of a batch."""
    each = zip(*operands, strict=True)
    return stacked([sample.expected(*arrays) for arrays in each])


def expected_gradients(sample, *operands):
    """The gradient of the energy of a batch in each open operand."""
    each = zip(*operands, strict=True)
    return stacked([expected_gradient(sample, *arrays) for arrays in each])


def with_gradient(sample, *operands, mapped=None):
    """The outputs, and the gradient of their energy in each open operand, if any."""
    mapped = mapped or jax.vmap(sample.run)
    if not sample.linear:
        return mapped(*operands), []
    output, pull = jax.vjp(mapped, *operands)
    return output, only_open(sample, pull(output))


def expected_with_gradient(sample, *operands):
    """The outputs of a batch, and its gradients, if any."""
    gradients = expected_gradients(sample, *operands) if sample.linear else []
    return expected_batch(sample, *operands), gradients
