"""Programs compiled to machine code for an NVIDIA H200, without a GPU.

The tests need `jax-cuda13-plugin` and `jax-cuda13-pjrt` of JAX's version,
`nvidia-cuda-nvcc` and `nvidia-nvvm`, and are skipped without these. A compiled program
shows its launches and its memory.
"""

import functools
import importlib.util
import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import topologies
from jax.sharding import AbstractDevice, AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import dmljax
from dmljax import PaddingMode, _jax
from tests import meshes
from tests.checks import python, struct
from tests.pallas.nonzero import by_kernel as find

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jax_cuda13_plugin") is None
    or jax.default_backend() != "cpu",
    reason="the compiler for NVIDIA GPUs is not installed, or there is a GPU",
)
# XLA's description of an H200.
DESCRIPTION = pathlib.Path(__file__).with_name("h200.txtpb")
PADS = (0, 0, 3, 5)


@functools.cache
def devices(count, capability="9.0"):
    """H200s to compile for, or such GPUs of another compute capability."""
    description = DESCRIPTION.read_text()
    if capability != "9.0":
        major, minor = capability.split(".")
        description, changed = re.subn(
            r"major: 9\n    feature_extension: ACCELERATED_FEATURES",
            f"major: {major}\n    minor: {minor}",
            description.replace("9.0a", capability),
        )
        assert changed == 1
    topology = topologies.get_topology_desc(
        platform="cuda", target_config=description, topology=f"1x{count}x1"
    )
    return np.array(topology.devices[:count])


def compiled(function, *arguments, sharding=None, capability="9.0"):
    sharding = sharding or NamedSharding(Mesh(devices(1, capability), ("d",)), P())
    placed = [
        jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding) for a in arguments
    ]
    return jax.jit(function).lower(*placed).compile()


def launches(program):
    """The kernels of the entry computation: the rest renames memory."""
    kernels = r" (?:fusion|custom-call|copy|reduce|scatter)\("
    _, entry = program.as_text().split("\nENTRY ", 1)
    return len(re.findall(kernels, entry))


def assert_one_kernel(program):
    """Asserts one launch, and no memory besides the arguments and the outputs."""
    assert launches(program) == 1
    assert program.memory_analysis().temp_size_in_bytes == 0


# KERNELS


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
@pytest.mark.parametrize("fill", [0, None])
def test_nonzero_coordinates_is_one_kernel_that_reads_bits(dtype, fill):
    """XLA packs the bits, and fills the words by which programs post."""
    x = struct(dtype, 1 << 20)
    filling = functools.partial(find, fill=fill)
    program = compiled(filling, x)
    assert launches(program) == 3
    assert program.memory_analysis().temp_size_in_bytes <= 0.126 * x.size
    # A single program posts nothing.
    assert launches(compiled(filling, struct(dtype, 99))) == 2


def compile_for_a_gpu_before_hopper(capability):
    """Compiles kernels for older GPUs. Mosaic GPU asks the mesh for the device."""

    class Old(AbstractDevice):
        compute_capability = capability

    old = Old(device_kind="an NVIDIA GPU", num_cores=108, platform="gpu")
    mesh = AbstractMesh((), (), abstract_device=old)
    _jax.AbstractMesh = lambda *_: mesh
    for dtype in ("float32", "float16", "uint8"):
        for shape in ((1 << 20,), (4, 2, 2, 2, 64, 8, 8)):  # few columns, many columns
            program = compiled(find, struct(dtype, *shape), capability=capability)
            assert launches(program) == 3


@pytest.mark.skipif(
    jax.__version_info__ < (0, 11, 2),
    reason="this JAX begins kernels with instructions of Hopper",
)
@pytest.mark.parametrize("capability", ["8.0", "8.9"])
def test_kernels_are_compiled_for_gpus_before_hopper(capability):
    """In a new process, because a process assembles code only for its first GPU."""
    code = f"import {__name__} as t; t.compile_for_a_gpu_before_hopper({capability!r})"
    done = python("-c", code, JAX_PLATFORMS="cpu")
    assert done.returncode == 0, done.stderr


# XLA'S FORMS


SMALL = struct(np.float32, 4, 8, 64, 66)
LARGE = struct(np.float32, 16, 64, 255, 257)


@pytest.mark.parametrize(
    ("mode", "x", "pads"),
    [(mode, SMALL, PADS) for mode in PaddingMode]
    + [(PaddingMode.EDGE, LARGE, pads) for pads in (PADS, (0, 0, 0, 5), (0, 0, 1, 1))],
)
def test_padding_and_its_gradient_are_one_kernel_each(mode, x, pads):
    """Also the sums of edges of large arrays."""

    def padded(x):
        return dmljax.padding(x, pads, pads, mode=mode)

    assert_one_kernel(compiled(padded, x))
    adjoint = jax.linear_transpose(padded, x)
    program = compiled(adjoint, jax.eval_shape(padded, x))
    assert "scatter" not in program.as_text()
    assert_one_kernel(program)


def test_the_selects_of_a_pipeline_are_one_kernel():
    def pipeline(condition, indices, x):
        x = dmljax.element_wise_if(condition, x * 2, jnp.abs(x))
        hot = dmljax.one_hot(indices, x[0, :2], size=x.shape[1], axis=1)
        return dmljax.diagonal_matrix1(x + hot, value=0, fill_begin=0, fill_end=9) + 1

    condition, x = struct(np.uint8, 1024, 1024), struct(np.float32, 1024, 1024)
    assert_one_kernel(compiled(pipeline, condition, struct(np.int32, 1024, 1), x))


# SEVERAL DEVICES


def check_sent(devices, case, mesh, spec, kind):
    """Compares the collectives of a program with the page, and returns its text."""
    sizes, names = meshes.axes_of(mesh)
    over = Mesh(devices.reshape(sizes), names, axis_types=(kind,) * len(sizes))
    sharding = NamedSharding(over, spec)
    text = compiled(case.function, *case.arrays, sharding=sharding).as_text()
    meshes.check_sent(text, case, meshes.parts_of(mesh, spec), kind)
    return text


@meshes.divisions("8", "2x4")
def test_eight_gpus_communicate_as_the_page_says(case, mesh, spec):
    check_sent(devices(8), case, mesh, spec, AxisType.Auto)
