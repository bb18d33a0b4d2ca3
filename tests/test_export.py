"""Programs that are exported: as bytes, for other platforms, with symbolic sizes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import dmljax
from dmljax import PaddingMode

F32 = np.float32


def assert_equal(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


def numbers(*shape):
    return np.arange(np.prod(shape), dtype=F32).reshape(shape) % 7 - 2


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


# A KERNEL IS NEVER IN AN EXPORT UNLESS IT WAS ASKED FOR

# What JAX calls the platform of this machine in an export.
HERE = {"gpu": "cuda"}.get(jax.default_backend(), jax.default_backend())
LARGE = jax.ShapeDtypeStruct((2**25,), np.uint8)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_a_plain_export_has_no_kernel(platform):
    """Both are large enough for kernels to be the default, inside of jit or alone."""
    for function in (
        dmljax.nonzero_coordinates,
        lambda x: dmljax.diagonal_matrix1(x.reshape(2**12, -1)),
    ):
        program = export.export(jax.jit(function), platforms=[platform])(LARGE)
        assert "custom_call" not in program.mlir_module()


@pytest.mark.parametrize(
    "function", [dmljax.nonzero_coordinates, dmljax.diagonal_matrix1]
)
def test_a_kernel_that_was_asked_for_is_exported(function):
    """JAX promises that later versions run the calls of Mosaic GPU."""

    def run(x):
        return function(x.reshape(2**12, -1), implementation="pallas")

    program = export.export(jax.jit(run), platforms=["cuda"])
    assert program(LARGE).mlir_module().count("@mosaic_gpu_v2(") == 1


def test_the_result_of_nonzero_coordinates_as_bytes():
    """A program that returns the NamedTuple gives it back when it is read again."""
    pytest.importorskip("flatbuffers")
    x = numbers(3, 4)
    program = export.export(jax.jit(dmljax.nonzero_coordinates))(x)
    found = export.deserialize(program.serialize()).call(x)
    assert isinstance(found, dmljax.NonzeroCoordinates)
    assert_equal(found, dmljax.nonzero_coordinates(x))


# SYMBOLIC SIZES

CONDITION = np.array([[0, 1, 2], [1, 0, 0]], np.uint8)
INDICES = np.array([[[1, -1, 4]], [[0, 2, -4]]], np.int8)


def padded(mode, start, end):
    return lambda x: dmljax.padding(x, start, end, mode=mode)


# A function, how many of its operands are data, the sizes, operands to call it with.
USES = {
    **{
        # Without any constraint: the padding may be larger than the input.
        f"padding {mode.name}": (
            padded(mode, (1, 3), (2, 0)),
            0,
            ("h, w",),
            [(numbers(2, 1),), (numbers(4, 6),)],
        )
        for mode in PaddingMode
    },
    **{
        # Up to a multiple of 8, and by the input's own size.
        f"padding {mode.name} to a multiple": (
            lambda x, mode=mode: dmljax.padding(
                x, (0, x.shape[1]), (-x.shape[0] % 8, 1), mode=mode
            ),
            0,
            ("h, w",),
            [(numbers(3, 1),), (numbers(8, 3),)],
        )
        for mode in (PaddingMode.CONSTANT, PaddingMode.REFLECTION)
    },
    "padding by a value": (
        lambda x, value: dmljax.padding(x, (1, 0), (0, 2), value=value),
        0,
        ("h, w", ""),
        [(numbers(2, 3), F32(5)), (numbers(1, 1), F32(6))],
    ),
    "diagonal_matrix1": (
        lambda x, value: dmljax.diagonal_matrix1(
            x, value=value, fill_begin=-1, fill_end=2
        ),
        0,
        ("h, w", ""),
        [(numbers(2, 5), F32(5)), (numbers(4, 1), F32(6))],
    ),
    "diagonal_matrix1 of a shape": (
        lambda x, value: dmljax.diagonal_matrix1(
            shape=x.shape, value=value, fill_begin=1, fill_end=x.shape[0] // 2
        ),
        1,
        ("h, w", ""),
        [(numbers(2, 5), F32(5)), (numbers(7, 4), F32(6))],
    ),
    "element_wise_if": (
        dmljax.element_wise_if,
        1,
        ("h, w",) * 3,
        [(CONDITION, numbers(2, 3), numbers(2, 3) + 9)],
    ),
    "one_hot": (
        lambda indices, values: dmljax.one_hot(
            indices, values, size=indices.shape[2] + 1, axis=1
        ),
        1,
        ("h, 1, w", "2"),
        [(INDICES, numbers(2)), (INDICES[:, :, :1], numbers(2))],
    ),
}


# They take the same path as others, and compile again for each shape.
ALIKE = (
    *("padding EDGE", "padding SYMMETRIC", "padding CONSTANT to a multiple"),
    *("a batch of parts", "the rows"),
)


def each(uses):
    return pytest.mark.parametrize(
        "use",
        [
            pytest.param(use, marks=pytest.mark.slow if use in ALIKE else ())
            for use in uses
        ],
    )


@each(USES)
def test_height_and_width(use):
    """Forward and gradient: lowered for one matrix, and run for a symbolic batch."""
    function, data, specs, calls = USES[use]
    alone = with_gradient(function, data)
    export.export(jax.jit(alone), platforms=["cuda"])(*structs(calls[0], specs))
    batched = jax.jit(with_gradient(jax.vmap(function), data))
    batches = [
        [np.stack([x, x[..., ::-1] if x.ndim else x]) for x in xs] for xs in calls
    ]
    types = structs(batches[0], [f"b, {spec}" if spec else "b" for spec in specs])
    program = export.export(batched, platforms=[HERE])(*types)
    for xs in batches:
        assert_equal(program.call(*xs), batched(*xs))


@pytest.mark.parametrize("mode", [PaddingMode.REFLECTION, PaddingMode.SYMMETRIC])
def test_a_constraint_makes_the_gradient_slices(mode):
    """Sizes larger than the padding: no remainder, and no sum over folds."""
    function = with_gradient(padded(mode, (1, 3), (2, 0)), 0)
    for constraints, divides in (((), True), (("h >= 4", "w >= 4"), False)):
        types = structs([numbers(4, 4)], ["h, w"], constraints)
        module = export.export(jax.jit(function))(*types).mlir_module()
        assert ("stablehlo.dynamic_reshape" in module) == divides


FINDING = {
    "a batch": (jax.vmap(dmljax.nonzero_coordinates), "b, 3, 4"),
    "a batch of parts": (
        jax.vmap(lambda x: dmljax.nonzero_coordinates(x, size=2, parts=3, fill=9)),
        "b, 3, 4",
    ),
    "the first size": (lambda x: dmljax.nonzero_coordinates(x, size=5), "b, 3, 4"),
    "all sizes": (lambda x: dmljax.nonzero_coordinates(x, fill=9), "b, h, w"),
    "the rows": (lambda x: dmljax.nonzero_coordinates(x, size=x.shape[0]), "b, 3, 4"),
}


@each(FINDING)
def test_nonzero_coordinates(use):
    function, spec = FINDING[use]
    arrays = [numbers(2, 3, 4), numbers(5, 3, 4), np.zeros((1, 3, 4), F32)]
    types = structs(arrays[:1], [spec])
    jitted = jax.jit(function)
    export.export(jitted, platforms=["cuda"])(*types)
    program = export.export(jitted, platforms=[HERE])(*types)
    for x in arrays[::2]:
        assert_equal(program.call(x), jitted(x))


UNDECIDED = {
    "h - 3 >= 0": lambda x: dmljax.padding(x, (0,), (x.shape[0] - 3,)),
    "h - 1 >= 1": lambda x: dmljax.padding(x[1:], (0,), (3,), mode=PaddingMode.WRAP),
    "h >= 2": lambda x: dmljax.one_hot(np.zeros((3, 1), np.int32), x, size=3),
    "h - 2 >= 1": lambda x: dmljax.one_hot(
        np.zeros((3, 1), np.int32), jnp.ones(2), size=x.shape[0] - 2
    ),
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
