"""Programs that are exported: as bytes, for other platforms, with symbolic sizes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import dmljax
from dmljax import PaddingMode
from tests.samples import Sample
from tests.transforms import dense

F32 = np.float32
# What JAX calls the platform of this machine in an export.
HERE = {"gpu": "cuda"}.get(jax.default_backend(), jax.default_backend())
each_linear = dense.each_operator(linear=True)


def numbers(*shape):
    return np.arange(np.prod(shape), dtype=F32).reshape(shape) % 7 - 2


# EVERY OPERATOR


@dense.each_operator(dense.FORMS | dense.KERNELS)
def test_export_for_every_platform(uses):
    """The kernels here are for CPUs and for NVIDIA GPUs."""
    platforms = ("cpu", "cuda") if uses[0].implementation else ("cpu", "cuda", "tpu")

    def exported(program, inputs):
        return export.export(program, platforms=platforms)(inputs).call(inputs)

    dense.check(uses, Sample.arrays, Sample.run, Sample.expected, exported)


@each_linear
def test_exported_bytes_with_derivative(uses):
    pytest.importorskip("flatbuffers")
    inputs = [sample.arrays() for sample in uses]
    outputs = [sample.expected(*own) for sample, own in zip(uses, inputs, strict=True)]
    functions, primals = zip(*map(dense.opened, uses, inputs), strict=True)

    @jax.jit
    def program(primals):
        return [f(*own) for f, own in zip(functions, primals, strict=True)]

    written = export.export(program)(primals).serialize(vjp_order=1)
    read = export.deserialize(written)
    dense.assert_equal(read.call(primals), outputs)
    found = read.vjp().call(*jax.tree.leaves(primals), *outputs)
    dense.assert_equal(found, list(map(dense.pulled, uses, inputs, outputs)))


def test_the_result_of_nonzero_coordinates_as_bytes():
    """A program that returns the NamedTuple gives it back when it is read again."""
    pytest.importorskip("flatbuffers")
    x = numbers(3, 4)
    program = export.export(jax.jit(dmljax.nonzero_coordinates))(x)
    found = export.deserialize(program.serialize()).call(x)
    assert isinstance(found, dmljax.NonzeroCoordinates)
    dense.assert_equal(found, dmljax.nonzero_coordinates(x))


@each_linear
def test_export_of_a_batch_whose_size_is_not_known(uses):
    """Forward and back; a kernel would have to know it."""
    (size,) = export.symbolic_shape("size")

    def run(sample, *operands):
        output, pull = jax.vjp(jax.vmap(sample.run), *operands)
        return output, dense.only_open(sample, pull(output))

    def expected(sample, *operands):
        gradients = dense.expected_gradients(sample, *operands)
        return dense.expected_batch(sample, *operands), gradients

    def exported(program, inputs):
        structs = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct((size, *x.shape[1:]), x.dtype), inputs
        )
        return export.export(program, platforms=("cpu", "cuda"))(structs).call(inputs)

    dense.check(uses, dense.batches, run, expected, exported)


# SYMBOLIC SIZES


def structs(arrays, specs, constraints=()):
    """Types with symbolic sizes: of each array, as its spec says."""
    types = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays]
    return export.symbolic_args_specs(types, list(specs), constraints=constraints)


def with_gradient(function, data):
    """The outputs, and the cotangents of the operands after the first `data`."""

    def both(*operands):
        fixed, free = operands[:data], operands[data:]
        output, pull = jax.vjp(lambda *xs: function(*fixed, *xs), *free)
        return output, pull(output)

    return both


def padded(mode, start, end):
    return lambda x: dmljax.padding(x, start, end, mode=mode)


def of_a_matrix(x, value):
    """Padding of more than the input has; and by amounts that depend on its sizes."""
    height, width = x.shape
    to_a_multiple = (0, width), (-height % 8, 1)
    fill = functools.partial(dmljax.diagonal_matrix1, value=value)
    return [
        *(padded(mode, (1, 3), (2, 0))(x) for mode in PaddingMode),
        padded(PaddingMode.REFLECTION, *to_a_multiple)(x),
        dmljax.padding(x, *to_a_multiple, value=value),
        fill(x, fill_begin=-1, fill_end=2),
        fill(shape=x.shape, fill_begin=1, fill_end=height // 2),
    ]


def hot(indices, values):
    return dmljax.one_hot(indices, values, size=indices.shape[2] + 1, axis=1)


COLUMN = np.zeros((3, 1), np.int32)
CONDITION = np.array([[0, 1, 2], [1, 0, 0]], np.uint8)
INDICES = np.array([[[1, -1, 4]], [[0, 2, -4]]], np.int8)
# A function, how many of its operands are data, the sizes, operands to call it with.
USES = {
    "padding and diagonal_matrix1": (
        *(of_a_matrix, 0, ("h, w", "")),
        [(numbers(*sizes), F32(5)) for sizes in ((2, 1), (8, 3))],
    ),
    "element_wise_if": (
        *(dmljax.element_wise_if, 1, ("h, w",) * 3),
        [(CONDITION, numbers(2, 3), numbers(2, 3) + 9)],
    ),
    "one_hot": (
        *(hot, 1, ("h, 1, w", "2")),
        [(INDICES, numbers(2)), (INDICES[:, :, :1], numbers(2))],
    ),
}


@pytest.mark.parametrize("use", USES)
def test_height_and_width(use):
    """Forward and gradient: lowered for one matrix, and run for a symbolic batch."""
    function, data, specs, calls = USES[use]
    alone = with_gradient(function, data)
    export.export(jax.jit(alone), platforms=["cuda"])(*structs(calls[0], specs))
    batched = jax.jit(with_gradient(jax.vmap(function), data))
    stacks = [[np.stack([x, x[..., ::-1] if x.ndim else x]) for x in c] for c in calls]
    types = structs(stacks[0], [f"b, {spec}" if spec else "b" for spec in specs])
    program = export.export(batched, platforms=[HERE])(*types)
    for xs in stacks:
        dense.assert_equal(program.call(*xs), batched(*xs))


@pytest.mark.parametrize("mode", [PaddingMode.REFLECTION, PaddingMode.SYMMETRIC])
def test_a_constraint_makes_the_gradient_slices(mode):
    """Sizes larger than the padding: no remainder, and no sum over folds."""
    function = with_gradient(padded(mode, (1, 3), (2, 0)), 0)
    for constraints, divides in (((), True), (("h >= 4", "w >= 4"), False)):
        types = structs([numbers(4, 4)], ["h, w"], constraints)
        module = export.export(jax.jit(function))(*types).mlir_module()
        assert ("stablehlo.dynamic_reshape" in module) == divides


def in_every_way(x):
    """The first size of a batch is a symbol, and all others are known."""
    find = dmljax.nonzero_coordinates
    return (
        jax.vmap(find)(x),
        jax.vmap(functools.partial(find, size=2, parts=3, fill=9))(x),
        find(x, size=5),
        find(x, size=x.shape[0]),
    )


@pytest.mark.parametrize(
    ("function", "spec"),
    [
        (in_every_way, "b, 3, 4"),
        (functools.partial(dmljax.nonzero_coordinates, fill=9), "b, h, w"),
    ],
)
def test_nonzero_coordinates(function, spec):
    arrays = [numbers(2, 3, 4), np.zeros((1, 3, 4), F32)]
    types = structs(arrays[:1], [spec])
    jitted = jax.jit(function)
    export.export(jitted, platforms=["cuda"])(*types)
    program = export.export(jitted, platforms=[HERE])(*types)
    for x in arrays:
        dense.assert_equal(program.call(x), jitted(x))


UNDECIDED = {
    "h - 3 >= 0": lambda x: dmljax.padding(x, (0,), (x.shape[0] - 3,)),
    "h - 1 >= 1": lambda x: dmljax.padding(x[1:], (0,), (3,), mode=PaddingMode.WRAP),
    "h >= 2": lambda x: dmljax.one_hot(COLUMN, x, size=3),
    "h - 2 >= 1": lambda x: dmljax.one_hot(COLUMN, jnp.ones(2), size=x.shape[0] - 2),
    "h - 3 >= 1": lambda x: dmljax.nonzero_coordinates(x, size=x.shape[0] - 3),
    "h - 4 >= 0": lambda x: dmljax.diagonal_matrix1(shape=(2, x.shape[0] - 4)),
}


@pytest.mark.parametrize("constraint", UNDECIDED)
def test_what_cannot_be_decided(constraint):
    """The error says which constraint to add; with it, the program is exported."""
    function = jax.jit(UNDECIDED[constraint])
    (x,) = structs([numbers(6)], ["h"])
    with pytest.raises(dmljax.DescriptorError) as raised:
        export.export(function)(x)
    assert f"constraints=['{constraint}']" in str(raised.value)
    (x,) = structs([numbers(6)], ["h"], [constraint])
    export.export(function)(x)


def test_a_kernel_needs_numbers():
    (x,) = structs([numbers(6)], ["h"])
    function = jax.jit(lambda x: dmljax.padding(x, (1,), (0,), implementation="pallas"))
    with pytest.raises(dmljax.DescriptorError, match="the sizes are symbolic"):
        export.export(function)(x)


def test_sizes_that_differ():
    x, y = structs([numbers(6), numbers(6)], ["h", "k"])
    with pytest.raises(dmljax.DescriptorError, match=r"\{h\}|\{k\}"):
        export.export(jax.jit(lambda x, y: dmljax.element_wise_if(x > 0, x, y)))(x, y)
