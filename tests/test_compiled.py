"""Programs down to machine code for an NVIDIA H200, where its compiler is installed.

No GPU is needed: `pip install jax-cuda13-plugin jax-cuda13-pjrt` of the version of JAX,
`nvidia-cuda-nvcc` and `nvidia-nvvm`. What is launched and what memory is needed is read
off the compiled program.
"""

import functools
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import topologies
from jax.sharding import AbstractDevice, AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import dmljax
from dmljax import PaddingMode, _primitive, pallas
from tests import test_sharding

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jax_cuda13_plugin") is None
    or jax.default_backend() != "cpu",
    reason="the compiler for NVIDIA GPUs is not installed, or there is a GPU",
)
# As XLA describes the device that it compiles for.
DESCRIPTION = pathlib.Path(__file__).with_name("h200.txtpb")
struct = jax.ShapeDtypeStruct
IMAGES = struct((4, 8, 64, 66), np.float32)
BYTES = struct((1 << 20,), np.uint8)
LINE = struct((1 << 20,), np.float32)


@functools.cache
def devices(count, capability="9.0"):
    """H200s that can be compiled for, or like ones of another compute capability."""
    description = DESCRIPTION.read_text()
    if capability != "9.0":
        numbers = "major: {}\n    minor: {}".format(*capability.split("."))
        description, changed = re.subn(
            r"major: 9\n    feature_extension: ACCELERATED_FEATURES",
            numbers,
            description.replace("9.0a", capability),
        )
        assert changed == 1
    topology = topologies.get_topology_desc(
        platform="cuda", target_config=description, topology=f"1x{count}x1"
    )
    return np.array(topology.devices[:count])


def compiled(function, *arguments, sharding=None, capability="9.0"):
    sharding = sharding or NamedSharding(Mesh(devices(1, capability), ("d",)), P())
    placed = [struct(a.shape, a.dtype, sharding=sharding) for a in arguments]
    return jax.jit(function).lower(*placed).compile()


def launches(program):
    """The kernels of the entry computation: the rest renames memory."""
    entry = program.as_text().split("\nENTRY ", 1)[1]
    return len(re.findall(r" (?:fusion|custom-call|copy|reduce|scatter)\(", entry))


def temporaries(program):
    return program.memory_analysis().temp_size_in_bytes


def kernel(function, **options):
    return functools.partial(function, implementation="pallas", **options)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_a_select_is_one_kernel(dtype):
    x = struct((1 << 20,), dtype)
    matrix = struct((3, 255, 257), dtype)
    for program in (
        compiled(kernel(dmljax.element_wise_if), BYTES, x, x),
        compiled(kernel(dmljax.element_wise_if), struct(x.shape, bool), x, x),
        compiled(lambda m: kernel(dmljax.diagonal_matrix1, fill_end=9)(m), matrix),
    ):
        assert (launches(program), temporaries(program)) == (1, 0)


@pytest.mark.parametrize("size", [128, 127])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool"])
def test_one_hot_is_one_kernel(dtype, size):
    """Words become elements, and the values one operand, without a copy."""
    indices, values = struct((1 << 12, 1), np.int32), struct((2,), dtype)
    one_hot = functools.partial(dmljax.one_hot, size=size)
    for form in (kernel(one_hot), one_hot):
        program = compiled(form, indices, values)
        assert (launches(program), temporaries(program)) == (1, 0)


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
@pytest.mark.parametrize("fill", [0, None])
def test_nonzero_coordinates_is_one_kernel(dtype, fill):
    """And a fill of the few words through which programs tell each other counts."""
    x = struct((1 << 20,), dtype)
    program = compiled(kernel(dmljax.nonzero_coordinates, fill=fill), x)
    assert launches(program) == 2
    assert temporaries(program) <= 0.001 * x.size
    small = compiled(
        kernel(dmljax.nonzero_coordinates, fill=fill), struct((99,), dtype)
    )
    assert launches(small) == 1


def chosen(x, **options):
    return dmljax.element_wise_if(x, x, x, **options)


def compile_for_a_gpu_before_hopper(capability):
    """Compiles kernels for it. Mosaic GPU asks the mesh for the device."""

    class Old(AbstractDevice):
        compute_capability = capability

    old = Old(device_kind="an NVIDIA GPU", num_cores=108, platform="gpu")
    _primitive.NO_MESH = AbstractMesh((), (), abstract_device=old)
    x = struct((1 << 20,), np.uint8)
    assert launches(compiled(kernel(chosen), x, capability=capability)) == 1
    find = kernel(dmljax.nonzero_coordinates)
    for dtype in ("float32", "float16", "uint8"):
        for shape in ((1 << 20,), (4, 2, 2, 2, 64, 8, 8)):  # few columns, and many
            program = compiled(find, struct(shape, dtype), capability=capability)
            assert launches(program) == 2


@pytest.mark.skipif(
    pallas.LEAST_CAPABILITY > (8, 0),
    reason="this JAX begins kernels with instructions of Hopper",
)
@pytest.mark.parametrize("capability", ["8.0", "8.9"])
def test_kernels_are_compiled_for_gpus_before_hopper(capability):
    """In a new process, because one assembles code for the first of its GPUs alone."""
    call = f"test_compiled.compile_for_a_gpu_before_hopper({capability!r})"
    subprocess.run(
        [sys.executable, "-c", f"from tests import test_compiled; {call}"],
        cwd=DESCRIPTION.parent.parent,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        check=True,
    )


@pytest.mark.parametrize("mode", PaddingMode)
def test_padding_is_one_kernel(mode):
    pads = (0, 0, 3, 5)
    pad = functools.partial(dmljax.padding, mode=mode)
    program = compiled(lambda x: pad(x, pads, pads), IMAGES)
    assert (launches(program), temporaries(program)) == (1, 0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool"])
@pytest.mark.parametrize("mode", PaddingMode)
def test_padding_by_kernel_is_one_kernel(mode, dtype):
    """Elements are words of the input and become elements again without a copy."""
    pads = (0, 0, 3, 5)
    pad = kernel(dmljax.padding, mode=mode)
    program = compiled(lambda x: pad(x, pads, pads), struct((4, 8, 64, 66), dtype))
    assert (launches(program), temporaries(program)) == (1, 0)


def gradient_of_padding(images, pads, mode):
    def adjoint(x):
        pad = jax.linear_transpose(
            lambda x: dmljax.padding(x, pads, pads, mode=mode), images
        )
        return pad(x)[0]

    shape = tuple(n + 2 * p for n, p in zip(images.shape, pads, strict=True))
    program = compiled(adjoint, struct(shape, np.float32))
    assert "scatter" not in program.as_text()
    return program


@pytest.mark.parametrize("mode", PaddingMode)
def test_the_gradient_of_padding_is_one_kernel(mode):
    program = gradient_of_padding(IMAGES, (0, 0, 3, 5), mode)
    assert (launches(program), temporaries(program)) == (1, 0)


@pytest.mark.parametrize("pads", [(0, 0, 3, 5), (0, 0, 0, 5), (0, 0, 1, 1)])
def test_the_sums_of_edges_are_one_kernel_where_all_is_large(pads):
    images = struct((16, 64, 255, 257), np.float32)
    program = gradient_of_padding(images, pads, PaddingMode.EDGE)
    assert (launches(program), temporaries(program)) == (1, 0)


def test_xla_fuses_the_selects_of_a_pipeline():
    def pipeline(condition, x):
        x = dmljax.element_wise_if(condition, x * 2, jnp.abs(x))
        x = dmljax.diagonal_matrix1(x.reshape(1024, -1), value=0, fill_end=9)
        return x + 1

    program = compiled(pipeline, BYTES, LINE)
    assert (launches(program), temporaries(program)) == (1, 0)


def test_the_gradient_of_one_hot_reads_the_cotangent_once():
    indices, values = struct((1 << 12, 1), np.int32), struct((2,), np.float32)

    def pull(indices, values, cotangent):
        one_hot = functools.partial(dmljax.one_hot, indices, size=128)
        return jax.vjp(one_hot, values)[1](cotangent)[0]

    program = compiled(pull, indices, values, struct((1 << 12, 128), np.float32))
    entry = program.as_text().split("\nENTRY ", 1)[1]
    (cotangent,) = re.findall(r"(%\S+) = f32\[4096,128\]\S* parameter", entry)
    assert entry.count(f"{cotangent}, ") + entry.count(f"{cotangent})") == 1


@test_sharding.divisions(["8", "2x4"])
def test_eight_gpus_communicate_what_the_page_says(case, mesh, spec):
    sizes, names = test_sharding.MESHES[mesh]
    types = (AxisType.Auto,) * len(sizes)
    square = Mesh(devices(8).reshape(sizes), names, axis_types=types)
    program = compiled(
        case.function,
        *(struct(array.shape, array.dtype) for array in case.arrays),
        sharding=NamedSharding(square, spec),
    )
    found = test_sharding.collectives(program.as_text())
    parts = test_sharding.parts_of(mesh, spec)
    meaning = test_sharding.MEANINGS[test_sharding.table()[case.line][AxisType.Auto]]
    assert meaning(found, case=case, parts=parts, gradient=False), found
