"""Every transformation that an operator promises, on every sample.

An operator is linear in the operands that are filled at will, so the oracle, applied to
unit vectors, gives a matrix for each; and every derivative is exact matrix arithmetic.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from jax.dtypes import float0
from jax.extend.core import jaxprs_in_params
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from jax.test_util import check_grads

import dmljax
from dmljax import PaddingMode
from tests import samples
from tests.checks import each, eight_devices
from tests.subjects import LINEAR, SAMPLES, SUBJECTS

BATCH = 3


def assert_equal(actual, expected):
    """The same tree of values; integers in floats, so that no sum is rounded."""
    actual, expected = jax.tree.leaves(actual), jax.tree.leaves(expected)
    for one, other in zip(actual, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_array_equal(np.asarray(one, other.dtype), other)


def opened(sample, arrays):
    """The function of the open operands alone."""

    def function(*operands):
        values = dict(zip(sample.open_operands, operands, strict=True))
        return sample.run(*(values.get(i, array) for i, array in enumerate(arrays)))

    return function


def only_open(sample, arrays):
    """The open operands."""
    return tuple(arrays[i] for i in sample.open_operands)


def matrix(sample, arrays, position):
    """The oracle as a matrix that maps the operand at `position` to the output."""
    columns = []
    for unit in np.eye(arrays[position].size):
        basis = [
            np.zeros_like(array, float) if i in sample.open_operands else array
            for i, array in enumerate(arrays)
        ]
        basis[position] = unit.reshape(arrays[position].shape)
        columns.append(sample.expected(*basis).ravel())
    return np.stack(columns, axis=1)


def matrices(sample, arrays):
    """A matrix for each open operand."""
    return [matrix(sample, arrays, i) for i in sample.open_operands]


def pushed(dense, tangents):
    """The flat tangent of the output."""
    return sum(a @ tangent.ravel() for a, tangent in zip(dense, tangents, strict=True))


def pulled(dense, cotangent, primals):
    """The cotangent of each operand."""
    pairs = zip(dense, primals, strict=True)
    return [(cotangent.ravel() @ a).reshape(primal.shape) for a, primal in pairs]


def energy(function):
    """A scalar that is quadratic in the output."""
    return lambda *operands: 0.5 * jnp.sum(function(*operands) ** 2)


def variants(array, seed, count=BATCH):
    """A batch of arrays like this one, with the same elements in another order."""
    return [np.roll(array.ravel(), seed + i).reshape(array.shape) for i in range(count)]


def batches(sample, dtype="float32", count=BATCH):
    """For each operand a batch of arrays."""
    filled = [sample.arrays(dtype, seed=seed) for seed in range(count)]
    return [
        [arrays[i] for arrays in filled]
        if i in sample.open_operands
        else variants(operand, i, count)
        for i, operand in enumerate(sample.operands)
    ]


def expected_batch(sample, *operands):
    """The oracle, element by element of a batch."""
    outputs = [sample.expected(*arrays) for arrays in zip(*operands, strict=True)]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *outputs)


each_sample, each_linear = each(SAMPLES), each(LINEAR)
SLOW = pytest.mark.slow
# A type that is conjugated and one that is not, for samples that are not the first.
REPRESENTATIVE = ("float32", "complex64")
FIRST = [subject.samples[0] for subject in SUBJECTS.values()]
each_mode = pytest.mark.parametrize("mode", PaddingMode, ids=lambda mode: mode.name)

# BATCHES


@pytest.mark.parametrize(
    ("sample", "position"),
    [
        # One operand is all operands, which the next test has.
        pytest.param(
            *(sample, i),
            id=f"{sample}-operand{i}",
            marks=SLOW if sample.implementation and len(sample.operands) == 1 else (),
        )
        for sample in SAMPLES
        for i in range(len(sample.operands))
    ],
)
def test_vmap_of_one_operand_along_every_axis(sample, position):
    """The value of PADDING and DIAGONAL_MATRIX1 is an operand as any other."""
    shared = sample.arrays()
    batch = batches(sample)[position]
    ndim = batch[0].ndim
    axes = range(-ndim - 1, ndim + 1)

    def along(axis):
        in_axes = [axis if i == position else None for i in range(len(shared))]
        stacked = jnp.moveaxis(np.stack(batch), 0, axis)
        arrays = [stacked if i == position else x for i, x in enumerate(shared)]
        return jax.vmap(sample.run, in_axes)(*arrays)

    operands = [batch if i == position else [x] * BATCH for i, x in enumerate(shared)]
    expected = expected_batch(sample, *operands)
    for output in jax.jit(lambda: [along(axis) for axis in axes])():
        assert_equal(output, expected)


@each(SAMPLES, slow_by_kernel=False)
def test_vmap_of_all_operands(sample):
    """Each along another axis."""
    operands = batches(sample)
    in_axes = [-1 - i % (operand[0].ndim + 1) for i, operand in enumerate(operands)]
    arrays = [
        np.stack(operand, axis) for operand, axis in zip(operands, in_axes, strict=True)
    ]
    output = jax.vmap(sample.run, in_axes)(*arrays)
    assert_equal(output, expected_batch(sample, *operands))


@each_linear
def test_vmap_out_axes(sample):
    operands = batches(sample)
    arrays = [np.stack(operand) for operand in operands]
    expected = expected_batch(sample, *operands)
    for axis in (1, -1):
        output = jax.vmap(sample.run, out_axes=axis)(*arrays)
        assert_equal(output, np.moveaxis(expected, 0, axis))


@each_sample
def test_nested_vmap(sample):
    """The first operand in the outer batch, the others in the inner one."""
    first, *others = batches(sample)
    arrays = [np.stack(operand) for operand in (first, *others)]
    inner = jax.vmap(sample.run, [None] + [0] * len(others)) if others else sample.run
    output = jax.vmap(inner, [0] + [None] * len(others))(*arrays)
    lines = [[x] * BATCH for x in first]
    rows = (
        expected_batch(sample, line, *others) if others else sample.expected(line[0])
        for line in lines
    )
    assert_equal(output, jax.tree.map(lambda *leaves: np.stack(leaves), *rows))


@each_sample
def test_vmap_twice(sample):
    operands = batches(sample, count=6)
    arrays = [np.stack(operand) for operand in operands]
    arrays = [array.reshape(2, 3, *array.shape[1:]) for array in arrays]
    output = jax.vmap(jax.vmap(sample.run), 1)(*arrays)
    expected = expected_batch(sample, *operands)
    assert_equal(
        output,
        jax.tree.map(
            lambda leaf: leaf.reshape(2, 3, *leaf.shape[1:]).swapaxes(0, 1), expected
        ),
    )


@each_sample
@pytest.mark.parametrize("count", [0, 1])
def test_vmap_of_few(sample, count):
    """A batch of one is a batch, and a batch may be empty."""
    operands = [
        np.stack(operand[:1] * count)
        if count
        else np.zeros((0, *operand[0].shape), operand[0].dtype)
        for operand in batches(sample)
    ]
    output = jax.vmap(sample.run)(*operands)
    expected = sample.expected(*sample.arrays())
    for one, other in zip(
        jax.tree.leaves(output), jax.tree.leaves(expected), strict=True
    ):
        assert (one.shape, one.dtype) == ((count, *other.shape), other.dtype)


# DERIVATIVES


@pytest.mark.parametrize(
    ("sample", "dtype"),
    [
        pytest.param(
            *(sample, dtype),
            id=f"{sample}-{dtype}",
            marks=() if dtype in REPRESENTATIVE or sample in FIRST else SLOW,
        )
        for sample in LINEAR
        for dtype in (("float32",) if sample.implementation else samples.INEXACT)
    ],
    indirect=["dtype"],
)
def test_derivatives(sample, dtype):
    """Forward, reverse, linearized, transposed: all are the matrix."""
    arrays = sample.arrays(dtype)
    function = opened(sample, arrays)
    output = sample.expected(*arrays)
    primals = only_open(sample, arrays)
    tangents = only_open(sample, sample.arrays(dtype, seed=1))
    cotangent = samples.numbers(output.shape, dtype, 2)

    @jax.jit
    def program(primals, tangents, cotangent):
        first, tangent = jax.jvp(function, primals, tangents)
        second, push = jax.linearize(function, *primals)
        third, pull = jax.vjp(function, *primals)
        transposed = jax.linear_transpose(function, *primals)
        return (
            (first, second, third),
            (tangent, push(*tangents)),
            (pull(cotangent), transposed(cotangent)),
        )

    outputs, pushes, pulls = program(primals, tangents, cotangent)
    dense = matrices(sample, arrays)
    assert_equal(outputs, [output] * 3)
    tangent = pushed(dense, tangents).reshape(output.shape).astype(dtype)
    assert_equal(pushes, [tangent] * 2)
    assert_equal(pulls, pulled(dense, cotangent, primals) * 2)
    assert {leaf.dtype for leaf in jax.tree.leaves((pushes, pulls))} == {dtype}


@each_linear
def test_jacobians(sample):
    arrays = sample.arrays()
    primals = only_open(sample, arrays)
    output = sample.expected(*arrays)
    argnums = tuple(range(len(primals)))
    expected = [
        a.reshape(output.shape + primal.shape)
        for a, primal in zip(matrices(sample, arrays), primals, strict=True)
    ]
    for jacobian in (jax.jacfwd, jax.jacrev):
        function = jacobian(opened(sample, arrays), argnums)
        assert_equal(jax.jit(function)(*primals), expected)


@each_linear
def test_gradient_and_hessian(sample):
    """Of a quadratic function of the output, and of one that is not polynomial."""
    arrays = sample.arrays()
    function = opened(sample, arrays)
    primals = only_open(sample, arrays)
    argnums = tuple(range(len(primals)))
    dense = matrices(sample, arrays)
    output = sample.expected(*arrays).ravel()
    sines = energy(lambda *operands: jnp.sin(function(*operands)))
    # d^2/dy^2 of sin(y)^2 / 2
    curvature = np.cos(2 * output)

    @jax.jit
    def program(*primals):
        gradient = jax.grad(energy(function), argnums)(*primals)
        hessians = [
            jax.hessian(f, argnums)(*primals) for f in (energy(function), sines)
        ]
        return gradient, *hessians

    gradient, quadratic, other = program(*primals)
    assert_equal(gradient, pulled(dense, output, primals))
    for i, j in itertools.product(argnums, argnums):
        shape = primals[i].shape + primals[j].shape
        assert_equal(quadratic[i][j], (dense[i].T @ dense[j]).reshape(shape))
        expected = (dense[i].T * curvature @ dense[j]).reshape(shape)
        np.testing.assert_allclose(other[i][j], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("sample", "dtype", "curve", "order", "distance"),
    [
        (sample, *options)
        for sample in LINEAR
        if sample.implementation is None  # derivatives by kernel are compared exactly
        for options in (
            ("float64", "sin", 2, None),
            # The differences of a linear function are exact at any distance.
            ("float32", "positive", 1, 1.0),
        )
    ],
    indirect=["dtype"],
    ids=str,
)
@pytest.mark.slow
def test_numerical_derivatives(sample, dtype, curve, order, distance):
    arrays = sample.arrays(dtype)
    function = opened(sample, arrays)
    primals = [0.5 * primal for primal in only_open(sample, arrays)]
    curved = jax.jit(lambda *operands: getattr(jnp, curve)(function(*operands)))
    check_grads(curved, primals, order, modes=("fwd", "rev"), eps=distance)


@each_linear
def test_gradients_of_batches(sample):
    """With each operand in turn the only one that is shared, or that is not."""
    operands = batches(sample)
    everything = range(len(operands))
    choices = {*((i,) for i in everything), tuple(everything)}
    choices |= {tuple(j for j in everything if j != i) for i in everything}
    argnums = sample.open_operands

    def gradient(batched):
        in_axes = [0 if i in batched else None for i in everything]
        arrays = [
            jnp.asarray(np.stack(x) if i in batched else x[0])
            for i, x in enumerate(operands)
        ]
        return jax.grad(energy(jax.vmap(sample.run, in_axes)), argnums)(*arrays)

    choices = sorted(choice for choice in choices if choice)
    outputs = jax.jit(lambda: [gradient(choice) for choice in choices])()
    for batched, output in zip(choices, outputs, strict=True):
        lines = []
        for b in range(BATCH):
            arrays = [x[b] if i in batched else x[0] for i, x in enumerate(operands)]
            y, primals = sample.expected(*arrays), only_open(sample, arrays)
            lines.append(pulled(matrices(sample, arrays), y, primals))
        expected = [np.stack(column) for column in zip(*lines, strict=True)]
        for i, position in enumerate(argnums):
            if position not in batched:
                expected[i] = expected[i].sum(0)
        assert_equal(output, expected)


@each_linear
def test_batches_of_gradients(sample):
    operands = batches(sample)
    arrays = [np.stack(operand) for operand in operands]
    function = jax.grad(energy(sample.run), sample.open_operands)
    outputs = jax.jit(jax.vmap(function))(*arrays)
    for b, one in enumerate(zip(*operands, strict=True)):
        primals = only_open(sample, one)
        expected = pulled(matrices(sample, one), sample.expected(*one), primals)
        assert_equal([output[b] for output in outputs], expected)


@each_linear
def test_gradient_of_scan(sample):
    """In what is scanned over, and in what is carried along."""
    operands = batches(sample)
    arrays = sample.arrays()
    function = opened(sample, arrays)
    lines = [np.stack(operand) for operand in only_open(sample, operands)]

    def program(scale, lines):
        def step(carry, line):
            scale, total = carry
            y = function(*(scale * x for x in line))
            return (scale, total + 0.5 * jnp.sum(y**2)), None

        (_, total), _ = lax.scan(step, (scale, jnp.float32(0)), lines)
        return total

    by_scale, by_lines = jax.jit(jax.grad(program, (0, 1)))(jnp.float32(2), lines)
    dense = matrices(sample, arrays)
    y = [pushed(dense, [x[b] for x in lines]) for b in range(BATCH)]
    assert_equal(by_scale, np.float32(2 * np.sum(np.square(y))))
    for b in range(BATCH):
        expected = pulled(dense, 4 * y[b], [x[b] for x in lines])
        assert_equal([x[b] for x in by_lines], expected)


@each_linear
@pytest.mark.parametrize(
    "wrapped", [jax.checkpoint, lambda function: jax.jit(jax.jit(function))]
)
def test_gradient_of_wrapped_program(sample, wrapped):
    """Recomputed, and compiled inside of what is compiled."""
    arrays = sample.arrays()
    primals = only_open(sample, arrays)
    function = wrapped(opened(sample, arrays))
    gradient = jax.grad(energy(function), tuple(range(len(primals))))
    expected = pulled(matrices(sample, arrays), sample.expected(*arrays), primals)
    assert_equal(jax.jit(gradient)(*primals), expected)


@each_linear
def test_gradients_repeat(sample):
    """The order of a sum does not change, and so neither do its bits."""
    arrays = sample.arrays()
    _, pull = jax.vjp(opened(sample, arrays), *only_open(sample, arrays))
    shape = sample.expected(*arrays).shape
    cotangent = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    runs = {
        b"".join(np.asarray(bar).tobytes() for bar in jax.jit(pull)(cotangent))
        for _ in range(4)
    }
    assert len(runs) == 1


@each_linear
def test_nan_stays_where_it_belongs(sample):
    """A NaN in one element reaches what depends on it: no sum has it times zero."""
    arrays = sample.arrays()
    function = opened(sample, arrays)
    primals = only_open(sample, arrays)
    dense = matrices(sample, arrays)
    output = sample.expected(*arrays)
    base = samples.numbers(output.shape, "float32", 3)
    cotangents = np.repeat(base[None], output.size, 0)
    each = np.arange(output.size)
    cotangents.reshape(output.size, -1)[each, each] = np.nan
    _, pull = jax.vjp(function, *primals)
    results = jax.jit(jax.vmap(pull))(cotangents)
    pairs = zip(results, pulled(dense, base, primals), dense, strict=True)
    for result, clean, a in pairs:
        expected = np.where(a != 0, np.nan, clean.ravel())
        assert_equal(result.reshape(expected.shape), expected)


# WHAT HAS NO DERIVATIVE


@each_sample
def test_integers_have_tangents_of_type_float0(sample):
    arrays = sample.arrays("int32")
    zeros = tuple(np.zeros(array.shape, float0) for array in arrays)
    output, tangent = jax.jvp(sample.run, arrays, zeros)
    assert_equal(output, sample.expected(*arrays))
    for one, other in zip(
        jax.tree.leaves(tangent), jax.tree.leaves(output), strict=True
    ):
        assert (one.dtype, one.shape) == (float0, other.shape)
    _, pull = jax.vjp(sample.run, *arrays)
    for one, other in zip(pull(tangent), arrays, strict=True):
        assert (one.dtype, one.shape) == (float0, other.shape)


@each_linear
def test_integers_beside_floats(sample):
    """Data operands have a float0 tangent, and the others their own."""
    arrays = sample.arrays()
    tangents = tuple(
        samples.numbers(array.shape, "float32", 1)
        if i in sample.open_operands
        else np.zeros(array.shape, float0)
        for i, array in enumerate(arrays)
    )
    output, tangent = jax.jvp(sample.run, arrays, tangents)
    dense = pushed(matrices(sample, arrays), only_open(sample, tangents))
    assert_equal(output, sample.expected(*arrays))
    assert_equal(tangent, dense.reshape(output.shape))
    _, pull = jax.vjp(sample.run, *arrays)
    types = [cotangent.dtype for cotangent in pull(output)]
    assert types == [tangent.dtype for tangent in tangents]


@each(sample for sample in SAMPLES if not sample.linear)
def test_no_derivative_passes_through_a_program(sample):
    (x,) = sample.arrays()

    def program(x):
        outputs = jax.tree.leaves(sample.run(x))
        weight = sum(jnp.sum(output).astype(np.float32) for output in outputs)
        return jnp.sum(x**2) * weight

    weight = sum(float(np.sum(leaf)) for leaf in sample.expected(x))
    assert_equal(jax.jit(jax.grad(program))(x), 2 * weight * x)
    hessian = 2 * weight * np.eye(x.size).reshape(x.shape * 2)
    assert_equal(jax.jit(jax.hessian(program))(x), hessian)
    batch = np.stack([x, x])
    assert_equal(jax.jit(jax.vmap(jax.grad(program)))(batch), 2 * weight * batch)
    outputs, tangents = jax.jvp(sample.run, (x,), (jnp.ones_like(x),))
    assert_equal(outputs, sample.expected(x))
    assert {leaf.dtype for leaf in jax.tree.leaves(tangents)} == {float0}


def test_coordinates_inside_a_differentiated_program():
    """The elements that are found have a gradient, and the finding has none."""
    x = np.array([[0, 2, 0], [3, 0, -1]], np.float32)

    def program(x):
        count, coordinates = dmljax.nonzero_coordinates(x)
        row = jnp.arange(x.size, dtype=np.uint32)
        found = x[coordinates[:, 0], coordinates[:, 1]]
        return jnp.sum(dmljax.element_wise_if(row < count, found**3, 0.0))

    assert_equal(jax.jit(jax.grad(program))(x), 3 * x**2)


# ELEMENT_WISE_IF: the side that is not selected


@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_unselected_side_gets_exactly_zero(poison):
    condition = np.array([0, 1, 2, 0], np.uint8)
    x = np.array([1, 2, 3, 4], np.float32)
    _, pull = jax.vjp(functools.partial(dmljax.element_wise_if, condition), x, x)
    for side, selected in enumerate((condition != 0, condition == 0)):
        cotangent = np.where(selected, x, poison).astype(np.float32)
        bar = np.asarray(jax.jit(pull)(cotangent)[side])
        assert bar.tobytes() == np.where(selected, x, np.float32(0)).tobytes()


def test_poison_made_upstream_and_its_remedy():
    """What the docstring says of the logarithm."""
    x = np.array([0, 1, 2, -1], np.float32)
    select = dmljax.element_wise_if

    def poisoned(x):
        return jnp.sum(select(x > 0, jnp.log(x), 0.0))

    def remedied(x):
        return jnp.sum(select(x > 0, jnp.log(select(x > 0, x, 1.0)), 0.0))

    assert np.isnan(jax.grad(poisoned)(x)[0])
    expected = np.array([0, 1, 0.5, 0], np.float32)
    assert_equal(jax.grad(remedied)(x), expected)
    assert_equal(jax.jit(jax.grad(remedied))(x), expected)


# PROGRAMS


def equations(jaxpr):
    """The number of equations, those of inner programs included."""
    inner = (sub for eqn in jaxpr.eqns for sub in jaxprs_in_params(eqn.params))
    return len(jaxpr.eqns) + sum(equations(sub) for sub in inner)


def program_text(function, *arrays):
    """The jaxpr and what it is lowered to."""
    lowered = jax.jit(function).lower(*arrays).as_text()
    return str(jax.make_jaxpr(function)(*arrays)) + lowered


def program_size(function, *arrays):
    """The equations of the jaxpr and the operations that it is lowered to."""
    lowered = jax.jit(function).lower(*arrays).as_text()
    operations = lowered.count("stablehlo.")
    return equations(jax.make_jaxpr(function)(*arrays).jaxpr) + operations


def padding_programs(mode, pad):
    """The padding of an axis of 4 by `pad` at both ends, and its derivatives."""
    value = {"value": 2.0} if mode is PaddingMode.CONSTANT else {}

    def forward(x):
        return dmljax.padding(x, (pad, 0), (pad, 1), mode=mode, **value)

    def backward(x):
        return jax.grad(energy(forward))(x)

    def twice(x):
        return jax.grad(energy(backward))(x)

    return forward, backward, jax.vmap(backward), twice


@each_mode
def test_padding_never_scatters(mode):
    """A scatter-add sums in any order, and one element after the other."""
    x = np.ones((2, 4, 3), np.float32)
    for pad in (0, 3, 30):
        forward, backward, batched, twice = padding_programs(mode, pad)
        for function, array in (
            *((forward, x[0]), (backward, x[0]), (twice, x[0])),
            (batched, x),
        ):
            assert "scatter" not in program_text(function, array)


@each_mode
def test_padding_programs_do_not_grow(mode):
    """Folds are summed at once, however many they are; a single one needs no sum."""
    x = np.ones((4, 3), np.float32)
    little, some, much = (
        [program_size(function, x) for function in padding_programs(mode, pad)[:2]]
        for pad in (3, 30, 3000)
    )
    assert some == much
    for one, other in zip(little, much, strict=True):
        assert abs(one - other) <= 24


@each_sample
def test_program_names_the_operator(sample):
    """In a profile and in a jaxpr."""
    jaxpr = str(jax.make_jaxpr(sample.run)(*sample.arrays()))
    assert f"dmljax_{sample.operator}" in jaxpr


# FROM ONE MACHINE TO ANOTHER


def platforms(sample):
    """The platforms that can run a sample."""
    return ("cpu", "cuda") if sample.implementation else ("cpu", "cuda", "tpu")


def exported(sample):
    """A sample as a program for every platform, and its arrays."""
    arrays = sample.arrays()
    program = export.export(jax.jit(sample.run), platforms=platforms(sample))
    return program(*arrays), arrays


@each_sample
def test_export_for_every_platform(sample):
    program, arrays = exported(sample)
    assert set(program.platforms) == set(platforms(sample))
    assert_equal(program.call(*arrays), sample.expected(*arrays))


@pytest.mark.parametrize(
    "sample",
    [
        sample
        for sample in SAMPLES
        if not (sample.implementation or sample.operator == "nonzero_coordinates")
    ],
    ids=str,
)
def test_export_of_a_batch_whose_size_is_not_known(sample):
    """Forward and back; a kernel would have to know it."""
    operands = batches(sample)
    stacked = [np.stack(arrays) for arrays in operands]
    (size,) = export.symbolic_shape("size")
    structs = [jax.ShapeDtypeStruct((size, *x.shape[1:]), x.dtype) for x in stacked]

    def both(*arrays):
        output, back = jax.vjp(jax.vmap(sample.run), *arrays)
        return output, back(output)

    program = export.export(jax.jit(both), platforms=("cpu", "cuda", "tpu"))(*structs)
    output, cotangents = program.call(*stacked)
    assert_equal(output, expected_batch(sample, *operands))
    jax.tree.map(assert_equal, cotangents, both(*stacked)[1])


@each_linear
def test_exported_bytes_with_derivative(sample):
    pytest.importorskip("flatbuffers")
    program, arrays = exported(sample)
    program = export.deserialize(program.serialize(vjp_order=1))
    output = sample.expected(*arrays)
    assert_equal(program.call(*arrays), output)
    cotangents = program.vjp().call(*arrays, output)
    primals = only_open(sample, arrays)
    expected = pulled(matrices(sample, arrays), output, primals)
    assert_equal(only_open(sample, cotangents), expected)


@each(sample for sample in SAMPLES if not sample.linear)
def test_exported_bytes_without_derivative(sample):
    pytest.importorskip("flatbuffers")
    program, arrays = exported(sample)
    program = export.deserialize(program.serialize())
    assert_equal(program.call(*arrays), sample.expected(*arrays))


# BUFFERS AND DEVICES


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
@each_sample
def test_donation(sample):
    arrays = sample.arrays()
    donating = jax.jit(sample.run, donate_argnums=sample.open_operands)
    for _ in range(2):
        output = donating(*map(jnp.array, arrays))
        assert_equal(output, sample.expected(*arrays))


def sharded_batches(sample, mesh):
    """The operands as batches of eight, one for each device."""
    operands = batches(sample, count=8)
    sharding = NamedSharding(mesh, P("batch"))
    return operands, [jax.device_put(np.stack(x), sharding) for x in operands]


def on_axes(uses):
    """Each use on both kinds of axes; on automatic ones a kernel is refused."""
    return pytest.mark.parametrize(
        ("sample", "axis_type"),
        [
            pytest.param(
                *(sample, kind),
                id=f"{kind.name}-{sample}",
                marks=SLOW if sample.implementation else (),
            )
            for sample in uses
            for kind in (AxisType.Auto, AxisType.Explicit)
            if kind is AxisType.Explicit or sample.implementation is None
        ],
    )


@on_axes(SAMPLES)
def test_sharded_batch(sample, axis_type):
    mesh = eight_devices(axis_type)
    operands, arrays = sharded_batches(sample, mesh)
    with jax.set_mesh(mesh):
        output = jax.jit(jax.vmap(sample.run))(*arrays)
    assert_equal(output, expected_batch(sample, *operands))


@on_axes(LINEAR)
def test_gradient_of_sharded_batch(sample, axis_type):
    mesh = eight_devices(axis_type)
    operands, arrays = sharded_batches(sample, mesh)
    gradient = jax.grad(energy(jax.vmap(sample.run)), sample.open_operands)
    with jax.set_mesh(mesh):
        outputs = jax.jit(gradient)(*arrays)
    for b, one in enumerate(zip(*operands, strict=True)):
        primals = only_open(sample, one)
        expected = pulled(matrices(sample, one), sample.expected(*one), primals)
        assert_equal([np.asarray(output)[b] for output in outputs], expected)


@each_sample
def test_shard_map(sample):
    mesh = eight_devices(AxisType.Auto)
    operands, arrays = sharded_batches(sample, mesh)
    mapped = jax.shard_map(
        jax.vmap(sample.run), mesh=mesh, in_specs=P("batch"), out_specs=P("batch")
    )
    assert_equal(jax.jit(mapped)(*arrays), expected_batch(sample, *operands))


@each_linear
def test_gradient_of_shard_map(sample):
    """What every device has its own part of, and what all of them share."""
    mesh = eight_devices(AxisType.Auto)
    operands, arrays = sharded_batches(sample, mesh)
    last = sample.open_operands[-1]
    arrays[last] = jnp.asarray(operands[last][0])
    operands[last] = [operands[last][0]] * 8
    in_axes = [None if i == last else 0 for i in range(len(arrays))]
    in_specs = tuple(P() if i == last else P("batch") for i in range(len(arrays)))
    mapped = jax.shard_map(
        jax.vmap(sample.run, in_axes) if any(a == 0 for a in in_axes) else sample.run,
        mesh=mesh,
        in_specs=in_specs,
        out_specs=P("batch"),
    )
    outputs = jax.jit(jax.grad(energy(mapped), sample.open_operands))(*arrays)
    lines = []
    for one in zip(*operands, strict=True):
        primals = only_open(sample, one)
        lines.append(pulled(matrices(sample, one), sample.expected(*one), primals))
    expected = [np.stack(column) for column in zip(*lines, strict=True)]
    expected[-1] = expected[-1].sum(0)
    assert_equal(outputs, expected)
