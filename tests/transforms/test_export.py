"""Exported programs: as bytes, for other platforms, with symbolic sizes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import dmljax
from dmljax import PaddingMode
from tests.checks import needs_kernels
from tests.pallas.nonzero import by_kernel as find
from tests.samples import Sample
from tests.subjects import KERNELS, SUBJECTS
from tests.subjects.nonzero_coordinates import oracle
from tests.subjects.padding import padded
from tests.transforms import dense

F32 = np.float32
# JAX's name for this machine's platform in an export.
HERE = {"gpu": "cuda"}.get(jax.default_backend(), jax.default_backend())


def numbers(*shape):
    return np.arange(np.prod(shape), dtype=F32).reshape(shape) % 7 - 2


# EVERY OPERATOR


def check_exports(uses, *platforms):
    """As bytes, with the derivative if there is one."""
    linear = uses[0].linear

    def expected(sample, *arrays):
        output = sample.expected(*arrays)
        return output, dense.pulled(sample, arrays, output) if linear else []

    def exported(program, inputs):
        made = export.export(program, platforms=platforms)(inputs)
        read = export.deserialize(made.serialize(vjp_order=int(linear)))
        outputs = read.call(inputs)
        if not linear:
            return [(output, []) for output in outputs]
        leaves, structure = jax.tree.flatten(inputs)
        pulled = structure.unflatten(read.vjp().call(*leaves, *outputs))
        return zip(outputs, map(dense.only_open, uses, pulled), strict=True)

    dense.check(uses, Sample.arrays, Sample.run, expected, exported)


@dense.each_operator()
def test_export_for_every_platform(uses):
    check_exports(uses, "cpu", "cuda", "tpu")


@needs_kernels
@pytest.mark.usefixtures("plain_kernels")
@dense.each_operator(KERNELS)
def test_export_of_a_kernel(uses):
    """The kernels here are for CPUs and for NVIDIA GPUs."""
    check_exports(uses, "cpu", "cuda")


# SYMBOLIC SIZES


def with_gradient(function):
    """The outputs, and the cotangents of the operands."""

    def both(*operands):
        output, pull = jax.vjp(function, *operands)
        return output, pull(output)

    return both


def of_a_matrix(x, value):
    """Constant arguments, and arguments that depend on the sizes."""
    return [subject.symbolic(x, value) for subject in SUBJECTS.values()]


def test_height_and_width():
    """Forward and gradient, for a batch whose size is not known either."""
    batched = jax.jit(with_gradient(jax.vmap(of_a_matrix)))
    # Along the width there is a single element to repeat.
    arrays = numbers(2, 3, 1), np.full(2, F32(5))
    types = export.symbolic_args_specs(arrays, ("b, h, w", "b"))
    program = export.export(batched, platforms={HERE, "cuda"})(*types)
    dense.assert_equal(program.call(*arrays), batched(*arrays))


@pytest.mark.parametrize("mode", [PaddingMode.REFLECTION, PaddingMode.SYMMETRIC])
def test_a_constraint_makes_the_gradient_slices(mode):
    """Sizes larger than the padding: no remainder, and no sum over folds."""
    function = with_gradient(partial(padded, mode))
    for constraints in ((), ("h >= 4", "w >= 4")):
        x = export.symbolic_args_specs(numbers(4, 4), "h, w", constraints=constraints)
        module = export.export(jax.jit(function))(x).mlir_module()
        assert ("stablehlo.dynamic_reshape" in module) == (not constraints)


def of_each(function):
    """The oracle's `jax.vmap`."""
    return lambda batch: dense.stacked(list(map(function, batch)))


def in_every_way(find, vmap, x):
    """The first size of a batch is a symbol, and all others are known."""
    return (
        vmap(partial(find, size=2, parts=3, fill=9))(x),
        find(x, size=5),
        find(x, size=x.shape[0]),
    )


@pytest.mark.parametrize(
    ("function", "spec", "x"),
    [
        (in_every_way, "b, 3, 4", numbers(2, 3, 4)),
        (lambda find, _, x: find(x, fill=9), "b, h, w", numbers(2, 3, 4)),
        # A CPU computes the coordinates of 256 rows and more in blocks.
        (lambda find, vmap, x: vmap(find)(x), "b, 300", numbers(2, 300)),
    ],
)
def test_nonzero_coordinates(function, spec, x):
    jitted = jax.jit(partial(function, dmljax.nonzero_coordinates, jax.vmap))
    symbolic = export.symbolic_args_specs(x, spec)
    program = export.export(jitted, platforms={HERE, "cuda"})(symbolic)
    dense.assert_equal(program.call(x), function(oracle, of_each, x))


LINE = numbers(6)
COLUMN = np.zeros((3, 1), np.int32)
UNDECIDED = {
    "h - 3 >= 0": lambda x: dmljax.padding(x, (0,), (x.shape[0] - 3,)),
    "h - 1 >= 1": lambda x: dmljax.padding(x[1:], (0,), (3,), mode=PaddingMode.WRAP),
    "h >= 2": lambda x: dmljax.one_hot(COLUMN, x, size=3),
    "h - 2 >= 1": lambda x: dmljax.one_hot(COLUMN, jnp.ones(2), size=x.shape[0] - 2),
    "h - 3 >= 1": lambda x: dmljax.nonzero_coordinates(x, size=x.shape[0] - 3),
    "h - 4 >= 0": lambda x: dmljax.diagonal_matrix1(shape=(2, x.shape[0] - 4)),
}


@pytest.mark.parametrize("constraint", UNDECIDED)
def test_undecided_constraints(constraint):
    """The error names the constraint to add. With the constraint, the export works."""
    function = jax.jit(UNDECIDED[constraint])
    x = export.symbolic_args_specs(LINE, "h")
    with pytest.raises(dmljax.DescriptorError) as raised:
        export.export(function)(x)
    assert f"constraints=['{constraint}']" in str(raised.value)
    x = export.symbolic_args_specs(LINE, "h", constraints=[constraint])
    export.export(function)(x)


IN_PARTS = partial(dmljax.nonzero_coordinates, parts=2)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (partial(find, size=2), "the sizes are symbolic"),  # a kernel needs numbers
        # Fault: the sizes of the operands alone, and not of the outputs.
        (lambda x: find(np.ones(4), size=x.shape[0]), "the sizes are symbolic"),
        (IN_PARTS, r"such as '2\*b' is a multiple"),
        (lambda x: dmljax.element_wise_if(x > 0, x, x[1:]), r"\{h - 1\}"),
    ],
)
def test_symbolic_sizes_that_are_refused(function, text):
    with pytest.raises(dmljax.DescriptorError, match=text):
        export.export(jax.jit(function))(export.symbolic_args_specs(LINE, "h"))


def test_parts_of_a_symbolic_size():
    export.export(jax.jit(IN_PARTS))(export.symbolic_args_specs(LINE, "2*b"))
