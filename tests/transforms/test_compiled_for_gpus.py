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
from dmljax import PaddingMode, _primitive
from dmljax.pallas import _platforms
from tests import meshes

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jax_cuda13_plugin") is None
    or jax.default_backend() != "cpu",
    reason="the compiler for NVIDIA GPUs is not installed, or there is a GPU",
)
# As XLA describes the device that it compiles for.
DESCRIPTION = pathlib.Path(__file__).with_name("h200.txtpb")
struct = jax.ShapeDtypeStruct
LINE = struct((1 << 20,), np.float32)
PADS = (0, 0, 3, 5)


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


def finder(**options):
    return functools.partial(
        dmljax.nonzero_coordinates, implementation="pallas", **options
    )


def padder(mode=PaddingMode.CONSTANT, implementation="pallas"):
    options = {"mode": mode, "implementation": implementation}
    return lambda x: dmljax.padding(x, PADS, PADS, **options)


def images(dtype, shape=(4, 8, 64, 66)):
    return struct(shape, dtype)


# KERNELS


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
@pytest.mark.parametrize("fill", [0, None])
def test_nonzero_coordinates_is_one_kernel(dtype, fill):
    """And a fill of the few words through which programs tell each other counts."""
    x = struct((1 << 20,), dtype)
    program = compiled(finder(fill=fill), x)
    assert launches(program) == 2
    assert temporaries(program) <= 0.001 * x.size
    small = compiled(finder(fill=fill), struct((99,), dtype))
    assert launches(small) == 1


@pytest.mark.parametrize(
    ("implementation", "dtype"),
    [
        (None, "float32"),
        *(("pallas", d) for d in ("float32", "bfloat16", "int8", "bool")),
    ],
)
@pytest.mark.parametrize("mode", PaddingMode)
def test_padding_is_one_kernel(mode, implementation, dtype):
    """By kernel, elements become words and elements again without a copy."""
    program = compiled(padder(mode, implementation), images(dtype))
    assert (launches(program), temporaries(program)) == (1, 0)


def compile_for_a_gpu_before_hopper(capability):
    """Compiles kernels for it. Mosaic GPU asks the mesh for the device."""

    class Old(AbstractDevice):
        compute_capability = capability

    old = Old(device_kind="an NVIDIA GPU", num_cores=108, platform="gpu")
    _primitive.NO_MESH = AbstractMesh((), (), abstract_device=old)
    for dtype in ("float32", "float16", "uint8"):
        for shape in ((1 << 20,), (4, 2, 2, 2, 64, 8, 8)):  # few columns, and many
            program = compiled(finder(), struct(shape, dtype), capability=capability)
            assert launches(program) == 2
        program = compiled(padder(), images(dtype), capability=capability)
        assert launches(program) == 1


@pytest.mark.skipif(
    _platforms.LEAST_CAPABILITY > (8, 0),
    reason="this JAX begins kernels with instructions of Hopper",
)
@pytest.mark.parametrize("capability", ["8.0", "8.9"])
def test_kernels_are_compiled_for_gpus_before_hopper(capability):
    """In a new process, because one assembles code for the first of its GPUs alone."""
    code = f"import {__name__} as t; t.compile_for_a_gpu_before_hopper({capability!r})"
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=DESCRIPTION.parents[2],
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        check=True,
    )


# XLA'S FORMS


LARGE = images(np.float32, (16, 64, 255, 257))


@pytest.mark.parametrize(
    ("mode", "x", "pads"),
    [
        *((mode, images(np.float32), PADS) for mode in PaddingMode),
        *((PaddingMode.EDGE, LARGE, p) for p in (PADS, (0, 0, 0, 5), (0, 0, 1, 1))),
    ],
)
def test_the_gradient_of_padding_is_one_kernel(mode, x, pads):
    """The sums of edges, too, where all is large."""

    def adjoint(cotangent):
        pad = functools.partial(dmljax.padding, mode=mode)
        return jax.linear_transpose(lambda x: pad(x, pads, pads), x)(cotangent)[0]

    shape = tuple(n + 2 * p for n, p in zip(x.shape, pads, strict=True))
    program = compiled(adjoint, struct(shape, np.float32))
    assert "scatter" not in program.as_text()
    assert (launches(program), temporaries(program)) == (1, 0)


def test_the_selects_of_a_pipeline_are_one_kernel():
    def pipeline(condition, x):
        x = dmljax.element_wise_if(condition, x * 2, jnp.abs(x))
        x = x.reshape(1024, -1)
        return dmljax.diagonal_matrix1(x, value=0, fill_begin=0, fill_end=9) + 1

    program = compiled(pipeline, struct(LINE.shape, np.uint8), LINE)
    assert (launches(program), temporaries(program)) == (1, 0)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "bool"])
def test_one_hot_is_one_kernel(dtype):
    one_hot = functools.partial(dmljax.one_hot, size=127)
    program = compiled(one_hot, struct((1 << 12, 1), np.int32), struct((2,), dtype))
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


@meshes.divisions(["8", "2x4"])
def test_eight_gpus_communicate_what_the_page_says(case, mesh, spec):
    sizes, names = meshes.MESHES[mesh]
    types = (AxisType.Auto,) * len(sizes)
    square = Mesh(devices(8).reshape(sizes), names, axis_types=types)
    sharding = NamedSharding(square, spec)
    program = compiled(case.function, *case.arrays, sharding=sharding)
    parts = meshes.parts_of(mesh, spec)
    meshes.check_sent(program.as_text(), case, parts, AxisType.Auto)


@pytest.mark.slow
def test_eight_gpus_send_as_many_bytes_as_the_page_says():
    meshes.check_bytes(devices(8))
