"""Every derivative of every operator, forward and in reverse, of batches and in loops.

An operator that only moves elements has exact derivatives, which `dense` predicts.
"""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.dtypes import float0

import dmljax
from tests import samples
from tests.checks import each_mode, lowered, struct
from tests.samples import Sample
from tests.subjects import FORMS
from tests.transforms import dense

each_linear = dense.each_operator(
    {name: uses for name, uses in FORMS.items() if uses[0].linear}
)


@each_linear
@pytest.mark.parametrize("dtype", ["bfloat16", "complex64", "float64"], indirect=True)
def test_derivatives(uses, dtype):
    """Forward, reverse, linearized, transposed: all are the matrix."""

    def inputs(sample):
        arrays = sample.arrays(dtype)
        tangents = dense.only_open(sample, sample.arrays(dtype, seed=1))
        shape = sample.expected(*arrays).shape
        return arrays, tangents, samples.numbers(shape, dtype, 2)

    def run(sample, arrays, tangents, cotangent):
        function, primals = dense.opened(sample, arrays)
        first, tangent = jax.jvp(function, primals, tangents)
        second, push = jax.linearize(function, *primals)
        third, pull = jax.vjp(function, *primals)
        transposed = jax.linear_transpose(function, *primals)
        linear = (tangent, push(*tangents)), (pull(cotangent), transposed(cotangent))
        assert {leaf.dtype for leaf in jax.tree.leaves(linear)} == {dtype}
        return (first, second, third), linear

    def expected(sample, arrays, tangents, cotangent):
        output = sample.expected(*arrays)
        push = sample.expected(*sample.arrays(dtype, seed=1))
        return [output] * 3, ([push] * 2, dense.pulled(sample, arrays, cotangent) * 2)

    dense.check(uses, inputs, run, expected)


@each_linear
def test_gradient_and_hessian(uses):
    """Of a quadratic function. The gradient is by jax.checkpoint in a scan."""

    def scanned(function):
        """The second step of a loop."""

        def loop(*operands):
            rows = [jnp.stack([jnp.zeros_like(x), x]) for x in operands]
            step = jax.checkpoint(lambda _, row: (None, function(*row)))
            return lax.scan(step, None, rows)[1][1]

        return loop

    def run(sample, *arrays):
        function, primals = dense.opened(sample, arrays)
        argnums = tuple(range(len(primals)))
        hessian = jax.hessian(dense.energy(function), argnums)(*primals)
        return hessian, jax.grad(dense.energy(scanned(function)), argnums)(*primals)

    def expected(sample, *arrays):
        sizes = [operand.shape for operand in dense.only_open(sample, arrays)]
        maps = zip(dense.matrices(sample, arrays), sizes, strict=True)
        pairs = itertools.product(maps, repeat=2)
        hessian = [(a.T @ b).reshape(one + other) for (a, one), (b, other) in pairs]
        return hessian, dense.expected_gradient(sample, *arrays)

    dense.check(uses, Sample.arrays, run, expected)


@each_linear
def test_gradients_of_batches(uses):
    """For every choice of batched operands. The other operands are shared."""

    def choices(sample):
        """The axes of operands, without the choice of no operand."""
        return list(itertools.product((0, None), repeat=len(sample.operands)))[:-1]

    def run(sample, *operands):
        def gradient(in_axes):
            mapped = dense.energy(jax.vmap(sample.run, in_axes))
            pairs = zip(operands, in_axes, strict=True)
            arrays = [x[0] if axis is None else x for x, axis in pairs]
            return jax.grad(mapped, sample.open_operands)(*arrays)

        return list(map(gradient, choices(sample)))

    def expected(sample, *operands):
        def gradient(in_axes):
            lines = dense.with_shared(operands, in_axes)
            found = dense.expected_gradients(sample, *lines)
            pairs = zip(found, dense.only_open(sample, in_axes), strict=True)
            return [x.sum(0) if axis is None else x for x, axis in pairs]

        return list(map(gradient, choices(sample)))

    dense.check(uses, dense.batches, run, expected)


@each_linear
def test_nan_stays_where_it_belongs(uses):
    """A NaN reaches only the elements that depend on it: no sum has NaN times 0."""

    def inputs(sample):
        arrays = sample.arrays()
        output = sample.expected(*arrays)
        base = samples.numbers(output.shape, "float32", 3)
        one = np.eye(output.size).reshape(-1, *output.shape)
        return arrays, base, np.where(one > 0, np.float32(np.nan), base)

    def run(sample, arrays, base, cotangents):
        function, primals = dense.opened(sample, arrays)
        _, pull = jax.vjp(function, *primals)
        return jax.vmap(pull)(cotangents)

    def expected(sample, arrays, base, cotangents):
        clean = dense.pulled(sample, arrays, base)
        return [
            np.where(a != 0, np.nan, one.ravel()).reshape(-1, *one.shape)
            for a, one in zip(dense.matrices(sample, arrays), clean, strict=True)
        ]

    dense.check(uses, inputs, run, expected)


# OPERANDS WITHOUT A DERIVATIVE


@dense.each_operator()
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_integers_have_tangents_of_type_float0(uses, dtype):
    """All operands, or only integer operands beside floats.

    An output of integers has a tangent of type float0 for any operands.
    """

    def run(sample, *arrays):
        tangents = list(sample.arrays(dtype, seed=1))
        for i, x in enumerate(arrays):
            if x.dtype != "float32":
                tangents[i] = np.zeros(x.shape, float0)
        outputs, tangent = jax.jvp(sample.run, arrays, tuple(tangents))
        _, pull = jax.vjp(sample.run, *arrays)
        types = [(x.dtype, x.shape) for x in pull(tangent)]
        assert types == [(x.dtype, x.shape) for x in tangents]
        return outputs, [x for x in jax.tree.leaves(tangent) if x.dtype != float0]

    def expected(sample, *arrays):
        outputs = sample.expected(*arrays)
        if dtype == "int32" or not sample.linear:
            return outputs, []
        return outputs, [sample.expected(*sample.arrays(dtype, seed=1))]

    dense.check(uses, lambda sample: sample.arrays(dtype), run, expected)


def test_no_derivative_passes_through_a_program():
    """The rows of a search weigh a sum as if they were constant."""

    def program(x):
        weights = [y.sum().astype(np.float32) for y in dmljax.nonzero_coordinates(x)]
        return jnp.sum(x**2) * sum(weights)

    @jax.jit
    def derivatives(x):
        gradient = jax.grad(program)
        return gradient(x), jax.vmap(gradient)(x[None]), jax.hessian(program)(x)

    # Three of these are not zero, at 1, 2 and 3.
    x = np.float32([0, 1, -2, 5])
    expected = 18 * x, 18 * x[None], 18 * np.eye(4)
    dense.assert_equal(derivatives(x), expected)


# PROGRAMS


@each_mode
def test_padding_never_scatters_and_programs_do_not_grow(mode):
    """A scatter-add sums in any order, one element after the other.

    Many folds are summed at once, however many there are. A single fold needs no sum.
    A CPU and a GPU each have forms of their own.
    """

    def both(x, pad):
        backward = jax.grad(
            dense.energy(
                lambda x: dmljax.padding(x, (pad, 0), (pad, 1), mode=mode, value=2.0)
            )
        )
        return jax.grad(dense.energy(backward))(x[0]), jax.vmap(backward)(x)

    x = struct(np.float32, 2, 4, 3)
    sizes = []
    for pad in (3, 99, 3003):  # these begin and end at one place of a period
        run = partial(both, pad=pad)
        texts = [lowered(run, x, platform=name) for name in ("cpu", "cuda")]
        assert not any("scatter" in text for text in texts)
        sizes.append([text.count("stablehlo.") for text in texts])
    one, some, many = sizes
    assert many == some
    assert max(many) <= 1.5 * max(one)
