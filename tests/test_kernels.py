"""The kernels: on a CPU in Pallas' interpreter, on a GPU for real."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dmljax
from dmljax import DescriptorError
from dmljax._nonzero_coordinates import OPERATOR
from tests import oracles

# Of one block and of several, even and odd, and of every number of columns.
SHAPES = ((), (5,), (9001,), (3, 700), (2, 3, 4, 5, 7), (1, 2, 1, 2, 1, 2, 1, 300))
DENSITIES = (0.0, 0.01, 0.9, 1.0)
DTYPES = (
    *("float32", "float16", "bfloat16", "float8_e4m3fn", "complex64"),
    *("int32", "int16", "int8", "uint32", "uint16", "uint8", "bool"),
)
NAMES = tuple(f"dmljax_nonzero_coordinates_{x}" for x in ("count", "scan", "write"))


def sparse(shape, density, dtype="float32"):
    """Ones, negative where the type has them, in zeros of both signs."""
    random = np.random.default_rng(0)
    values = np.where(random.random(shape) < density, 1.0, -0.0)
    return np.asarray(values).astype(jnp.dtype(dtype))


def check(x, **options):
    count, coordinates = dmljax.nonzero_coordinates(
        jnp.asarray(x), implementation="pallas", **options
    )
    undefined = options.get("fill", 0) is None
    filled = options | {"fill": 0} if undefined else options
    expected = oracles.nonzero_coordinates(x, **filled)
    assert int(count) == int(expected[0])
    rows = int(count) if undefined else x.size
    np.testing.assert_array_equal(coordinates[:rows], expected[1][:rows])


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_nonzero_coordinates_of_every_rank(shape, density):
    check(sparse(shape, density))


@pytest.mark.parametrize("dtype", DTYPES)
def test_nonzero_coordinates_of_every_type(dtype):
    check(sparse((3, 97), 0.3, dtype))


def test_nonzero_coordinates_by_bits():
    """Subnormals, NaN and infinities are not zero."""
    check(np.array([0.0, -0.0, 1e-45, -1e-45, np.nan, np.inf, 1.0], np.float32))


@pytest.mark.parametrize("options", [{"fill": 7}, {"fill": None}, {"columns": 2}])
def test_nonzero_coordinates_options(options):
    check(sparse((1, 30, 30), 0.3), **options)


def test_nonzero_coordinates_of_crowded_and_sparse_blocks_side_by_side():
    check(np.concatenate([sparse((8192,), 1.0), sparse((20000,), 0.001)]))


def test_nonzero_coordinates_batched():
    x = sparse((2, 3, 4, 50), 0.4)
    kernel, xla = (
        jax.vmap(
            jax.vmap(lambda x, i=i: dmljax.nonzero_coordinates(x, implementation=i))
        )
        for i in ("pallas", "xla")
    )
    jax.tree.map(np.testing.assert_array_equal, kernel(x), xla(x))


def test_nonzero_coordinates_in_a_differentiated_program():
    def loss(x):
        _, rows = dmljax.nonzero_coordinates(x, implementation="pallas")
        return (x[rows[0, 0]] ** 2).sum()

    x = jnp.array([0.0, 3.0, 5.0])
    np.testing.assert_array_equal(jax.grad(loss)(x), [0.0, 6.0, 0.0])


def test_the_kernel_is_not_asked_for_more_than_it_counts():
    struct = jax.ShapeDtypeStruct((2**31,), np.uint8)
    with pytest.raises(DescriptorError, match=r"2147483648 elements.*2\^31"):
        jax.eval_shape(
            lambda x: dmljax.nonzero_coordinates(x, implementation="pallas"), struct
        )


def lowered_for_cuda(function, *arguments):
    """The program's text, made for an NVIDIA GPU on whatever machine this is."""
    gpu = jax.sharding.AbstractDevice(
        device_kind="NVIDIA H200", num_cores=132, platform="gpu"
    )
    mesh = jax.sharding.AbstractMesh((), (), abstract_device=gpu)
    with jax.sharding.use_abstract_mesh(mesh):
        traced = jax.jit(function).trace(*arguments)
        return traced.lower(lowering_platforms=("cuda",)).as_text()


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "bool"])
def test_kernels_are_lowered_for_cuda(dtype):
    struct = jax.ShapeDtypeStruct((5, 3, 1000), dtype)

    def kernel(x):
        return jax.vmap(
            lambda x: dmljax.nonzero_coordinates(x, implementation="pallas")
        )(x)

    text = lowered_for_cuda(kernel, struct)
    assert all(name in text for name in NAMES)
    assert text.count("custom_call") == len(NAMES)
    text = lowered_for_cuda(dmljax.nonzero_coordinates, struct)
    assert "custom_call" not in text


def test_a_batch_may_exceed_what_a_gpu_allows_the_later_dimensions_of_a_grid():
    kernel = functools.partial(OPERATOR.kernels["cuda"], rank=1, columns=1, fill=0)
    struct = jax.ShapeDtypeStruct((70_000, 9000), np.float32)
    calls = [
        equation.params["grid_mapping"].grid
        for equation in jax.make_jaxpr(kernel)(struct).eqns
        if equation.primitive.name == "pallas_call"
    ]
    assert calls == [(140_000,), (70_000,), (140_000,)]
