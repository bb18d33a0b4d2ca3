"""Every derivative of every operator, forward and in reverse, of batches and in loops.

An operator that only moves elements has exact derivatives, which `matrices` predicts.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.dtypes import float0

import dmljax
from dmljax import PaddingMode
from tests import samples
from tests.transforms.matrices import (
    BATCH,
    FORMS,
    KERNELS,
    assert_equal,
    batches,
    each_operator,
    energy,
    expected_gradient,
    expected_gradients,
    in_one_program,
    matrices,
    only_open,
    opened,
    pulled,
    pushed,
)

each_linear = each_operator(linear=True)


def derivative_cases():
    """Every operator in every type that has a derivative, and the kernels in one."""
    for name, uses in (FORMS | KERNELS).items():
        if uses[0].linear:
            for dtype in samples.INEXACT if name in FORMS else ("float32",):
                yield pytest.param(uses, dtype, id=f"{name}-{dtype}")


@pytest.mark.parametrize(
    ("uses", "dtype"), list(derivative_cases()), indirect=["dtype"]
)
def test_derivatives(uses, dtype):
    """Forward, reverse, linearized, transposed: all are the matrix."""

    def derive(sample, arrays, tangents, cotangent):
        function, primals = opened(sample, arrays), only_open(sample, arrays)
        first, tangent = jax.jvp(function, primals, tangents)
        second, push = jax.linearize(function, *primals)
        third, pull = jax.vjp(function, *primals)
        transposed = jax.linear_transpose(function, *primals)
        return (
            (first, second, third),
            (tangent, push(*tangents)),
            (pull(cotangent), transposed(cotangent)),
        )

    inputs = []
    for sample in uses:
        arrays = sample.arrays(dtype)
        tangents = only_open(sample, sample.arrays(dtype, seed=1))
        shape = sample.expected(*arrays).shape
        inputs.append((arrays, tangents, samples.numbers(shape, dtype, 2)))
    found = in_one_program(derive, uses, inputs)
    for sample, given, derived in zip(uses, inputs, found, strict=True):
        (arrays, tangents, cotangent), (outputs, pushes, pulls) = given, derived
        output, dense = sample.expected(*arrays), matrices(sample, arrays)
        tangent = pushed(dense, tangents).reshape(output.shape).astype(dtype)
        assert_equal(outputs, [output] * 3, sample)
        assert_equal(pushes, [tangent] * 2, sample)
        primals = only_open(sample, arrays)
        assert_equal(pulls, pulled(dense, cotangent, primals) * 2, sample)
        assert {leaf.dtype for leaf in jax.tree.leaves((pushes, pulls))} == {dtype}


@each_linear
def test_gradient_and_hessian(uses):
    """Of a quadratic function, and of one that is no polynomial; and the Jacobians."""

    def derive(sample, *arrays):
        function, primals = opened(sample, arrays), only_open(sample, arrays)
        argnums = tuple(range(len(primals)))
        quadratic = energy(function)
        sines = energy(lambda *operands: jnp.sin(function(*operands)))
        return (
            jax.grad(quadratic, argnums)(*primals),
            [jax.hessian(f, argnums)(*primals) for f in (quadratic, sines)],
            [f(function, argnums)(*primals) for f in (jax.jacfwd, jax.jacrev)],
        )

    inputs = [sample.arrays() for sample in uses]
    found = in_one_program(derive, uses, inputs)
    for sample, arrays, derived in zip(uses, inputs, found, strict=True):
        gradient, (quadratic, other), jacobians = derived
        primals, dense = only_open(sample, arrays), matrices(sample, arrays)
        output = sample.expected(*arrays)
        assert_equal(gradient, pulled(dense, output, primals), sample)
        shapes = [primal.shape for primal in primals]
        pairs = list(zip(dense, shapes, strict=True))
        expected = [a.reshape(output.shape + shape) for a, shape in pairs]
        assert_equal(jacobians, expected * 2, sample)
        # d^2/dy^2 of sin(y)^2 / 2
        curvature = np.cos(2 * output.ravel())
        for i, j in itertools.product(range(len(primals)), repeat=2):
            shape = shapes[i] + shapes[j]
            assert_equal(
                quadratic[i][j], (dense[i].T @ dense[j]).reshape(shape), sample
            )
            curved = (dense[i].T * curvature @ dense[j]).reshape(shape)
            np.testing.assert_allclose(other[i][j], curved, rtol=1e-5, atol=1e-5)


@each_linear
def test_gradients_of_batches(uses):
    """With each operand in turn the only one that is shared, or that is not."""

    def choices(sample):
        everything = range(len(sample.operands))
        found = {*((i,) for i in everything), tuple(everything)}
        found |= {tuple(j for j in everything if j != i) for i in everything}
        return sorted(choice for choice in found if choice)

    def derive(sample, *stacked):
        def gradient(batched):
            pairs = list(enumerate(stacked))
            arrays = [x if i in batched else x[0] for i, x in pairs]
            in_axes = [0 if i in batched else None for i, _ in pairs]
            mapped = energy(jax.vmap(sample.run, in_axes))
            return jax.grad(mapped, sample.open_operands)(*arrays)

        batch_of_gradients = jax.vmap(
            jax.grad(energy(sample.run), sample.open_operands)
        )
        return batch_of_gradients(*stacked), list(map(gradient, choices(sample)))

    operands = [batches(sample) for sample in uses]
    stacks = [list(map(np.stack, own)) for own in operands]
    found = in_one_program(derive, uses, stacks)
    for sample, own, (of_each, of_all) in zip(uses, operands, found, strict=True):
        assert_equal(of_each, expected_gradients(sample, *own), sample)
        for batched, gradient in zip(choices(sample), of_all, strict=True):
            lines = [x if i in batched else x[:1] * BATCH for i, x in enumerate(own)]
            expected = expected_gradients(sample, *lines)
            for i, position in enumerate(sample.open_operands):
                if position not in batched:
                    expected[i] = expected[i].sum(0)
            assert_equal(gradient, expected, sample)


@each_linear
def test_gradient_of_scan(uses):
    """In what is scanned over, and in what is carried along."""

    def derive(sample, arrays, lines):
        function = opened(sample, arrays)

        def program(scale, lines):
            def step(carry, line):
                scale, total = carry
                y = function(*(scale * x for x in line))
                return (scale, total + 0.5 * jnp.sum(y**2)), None

            (_, total), _ = lax.scan(step, (scale, jnp.float32(0)), lines)
            return total

        return jax.grad(program, (0, 1))(jnp.float32(2), lines)

    inputs = [
        (sample.arrays(), list(map(np.stack, only_open(sample, batches(sample)))))
        for sample in uses
    ]
    found = in_one_program(derive, uses, inputs)
    for sample, given, (by_scale, by_lines) in zip(uses, inputs, found, strict=True):
        arrays, lines = given
        dense = matrices(sample, arrays)
        y = [pushed(dense, [x[b] for x in lines]) for b in range(BATCH)]
        assert_equal(by_scale, np.float32(2 * np.sum(np.square(y))), sample)
        for b in range(BATCH):
            expected = pulled(dense, 4 * y[b], [x[b] for x in lines])
            assert_equal([x[b] for x in by_lines], expected, sample)


@each_linear
def test_gradient_of_wrapped_program(uses):
    """Recomputed, and compiled inside of what is compiled."""

    def derive(sample, *arrays):
        function, primals = opened(sample, arrays), only_open(sample, arrays)
        return [
            jax.grad(energy(wrapped), tuple(range(len(primals))))(*primals)
            for wrapped in (jax.checkpoint(function), jax.jit(jax.jit(function)))
        ]

    inputs = [sample.arrays() for sample in uses]
    found = in_one_program(derive, uses, inputs)
    for sample, arrays, gradients in zip(uses, inputs, found, strict=True):
        assert_equal(gradients, expected_gradient(sample, arrays) * 2, sample)


@each_linear
def test_gradients_repeat(uses):
    """The order of a sum does not change, and so neither do its bits."""

    def pull(sample, arrays):
        output, pull = jax.vjp(opened(sample, arrays), *only_open(sample, arrays))
        return pull(np.random.default_rng(0).normal(size=output.shape).astype("f4"))

    program = jax.jit(lambda inputs: list(map(pull, uses, inputs)))
    inputs = [sample.arrays() for sample in uses]
    runs = [jax.tree.leaves(program(inputs)) for _ in range(4)]
    assert len({b"".join(np.asarray(x).tobytes() for x in run) for run in runs}) == 1


@each_linear
def test_nan_stays_where_it_belongs(uses):
    """A NaN in one element reaches what depends on it: no sum has it times zero."""

    def pull(sample, arrays, cotangents):
        _, pull = jax.vjp(opened(sample, arrays), *only_open(sample, arrays))
        return jax.vmap(pull)(cotangents)

    inputs = []
    for sample in uses:
        arrays = sample.arrays()
        shape = sample.expected(*arrays).shape
        size = int(np.prod(shape))
        base = samples.numbers(shape, "float32", 3)
        cotangents = np.repeat(base[None], size, 0)
        cotangents.reshape(size, size)[np.eye(size, dtype=bool)] = np.nan
        inputs.append((arrays, cotangents))
    found = in_one_program(pull, uses, inputs)
    for sample, (arrays, cotangents), results in zip(uses, inputs, found, strict=True):
        base = samples.numbers(cotangents.shape[1:], "float32", 3)
        dense = matrices(sample, arrays)
        clean = pulled(dense, base, only_open(sample, arrays))
        for result, one, a in zip(results, clean, dense, strict=True):
            expected = np.where(a != 0, np.nan, one.ravel())
            assert_equal(result.reshape(expected.shape), expected, sample)


# WHAT HAS NO DERIVATIVE


@each_operator()
def test_integers_have_tangents_of_type_float0(uses):
    """Those of data, and those of operands in which the operator is linear."""
    for sample in uses:
        arrays = sample.arrays("int32")
        zeros = tuple(np.zeros(array.shape, float0) for array in arrays)
        output, tangent = jax.jvp(sample.run, arrays, zeros)
        assert_equal(output, sample.expected(*arrays), sample)
        leaves = zip(jax.tree.leaves(tangent), jax.tree.leaves(output), strict=True)
        for one, other in leaves:
            assert (one.dtype, one.shape) == (float0, other.shape)
        _, pull = jax.vjp(sample.run, *arrays)
        for one, other in zip(pull(tangent), arrays, strict=True):
            assert (one.dtype, one.shape) == (float0, other.shape)


@each_linear
def test_integers_beside_floats(uses):
    """Data operands have a float0 tangent, and the others their own."""
    for sample in uses:
        arrays = sample.arrays()
        tangents = tuple(
            samples.numbers(array.shape, "float32", 1)
            if i in sample.open_operands
            else np.zeros(array.shape, float0)
            for i, array in enumerate(arrays)
        )
        output, tangent = jax.jvp(sample.run, arrays, tangents)
        dense = pushed(matrices(sample, arrays), only_open(sample, tangents))
        assert_equal(tangent, dense.reshape(output.shape), sample)
        _, pull = jax.vjp(sample.run, *arrays)
        types = [cotangent.dtype for cotangent in pull(output)]
        assert types == [tangent.dtype for tangent in tangents]


@each_operator(linear=False)
def test_no_derivative_passes_through_a_program(uses):
    def derive(sample, x):
        def program(x):
            outputs = jax.tree.leaves(sample.run(x))
            weight = sum(jnp.sum(output).astype(np.float32) for output in outputs)
            return jnp.sum(x**2) * weight

        gradient = jax.grad(program)
        batch = jax.vmap(gradient)(jnp.stack([x, x]))
        return gradient(x), batch, jax.hessian(program)(x)

    inputs = [sample.arrays() for sample in uses]
    found = in_one_program(derive, uses, inputs)
    for sample, (x,), derived in zip(uses, inputs, found, strict=True):
        weight = sum(float(np.sum(leaf)) for leaf in sample.expected(x))
        gradient = 2 * weight * x
        hessian = 2 * weight * np.eye(x.size).reshape(x.shape * 2)
        assert_equal(derived, (gradient, np.stack([gradient] * 2), hessian), sample)
        _, tangents = jax.jvp(sample.run, (x,), (jnp.ones_like(x),))
        assert {leaf.dtype for leaf in jax.tree.leaves(tangents)} == {float0}


# PROGRAMS


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
@each_operator()
def test_donation(uses):
    """What the operands lay in may hold the outputs; the next call has its own."""
    inputs = [sample.arrays() for sample in uses]
    given = list(map(only_open, uses, inputs))
    functions = list(map(opened, uses, inputs))

    @functools.partial(jax.jit, donate_argnums=0)
    def program(given):
        return [function(*own) for function, own in zip(functions, given, strict=True)]

    for _ in range(2):
        outputs = program(jax.tree.map(jnp.array, given))
        for sample, arrays, output in zip(uses, inputs, outputs, strict=True):
            assert_equal(output, sample.expected(*arrays), sample)


def lowered(mode, pad):
    """The texts of programs that pad an axis of 4, with derivatives of both orders.

    They are lowered for a CPU and for a GPU, which have forms of their own.
    """
    value = {"value": 2.0} if mode is PaddingMode.CONSTANT else {}

    def forward(x):
        return dmljax.padding(x, (pad, 0), (pad, 1), mode=mode, **value)

    def backward(x):
        return jax.grad(energy(forward))(x)

    def both(x):
        return jax.grad(energy(backward))(x[0]), jax.vmap(backward)(x)

    traced = jax.jit(both).trace(jax.ShapeDtypeStruct((2, 4, 3), np.float32))
    return [traced.lower(lowering_platforms=(p,)).as_text() for p in ("cpu", "cuda")]


@pytest.mark.parametrize("mode", PaddingMode, ids=lambda mode: mode.name)
def test_padding_never_scatters_and_programs_do_not_grow(mode):
    """A scatter-add sums in any order, and one element after the other.

    Folds are summed at once, however many they are. A single fold needs no sum.
    """
    sizes = []
    for pad in (3, 30, 3000):
        texts = lowered(mode, pad)
        assert not any("scatter" in text for text in texts)
        sizes.append([text.count("stablehlo.") for text in texts])
    one, some, many = sizes
    assert many == some
    assert max(many) <= 1.5 * max(one)
