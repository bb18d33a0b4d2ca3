"""Kernels for NVIDIA GPUs as programs, lowered on any machine and not run.

They have the blocks that users run. Which form runs is tested in test_primitive.py.
"""

import functools

import jax
import numpy as np
import pytest

import dmljax
from dmljax import DescriptorError, PaddingMode
from dmljax.pallas.gpu import _nonzero_coordinates
from tests.subjects import SUBJECTS

pytestmark = pytest.mark.usefixtures("real_blocks")
find = functools.partial(dmljax.nonzero_coordinates, implementation="pallas")


def lowered(function, *arrays):
    """The program's text for an NVIDIA GPU, whatever machine this is."""
    traced = jax.jit(function).trace(*arrays)
    return traced.lower(lowering_platforms=("cuda",)).as_text()


def launches(function, *arrays):
    """How many kernels a program launches."""
    return lowered(function, *arrays).count("@mosaic_gpu_v2(")


# WHAT IS LOWERED

TYPES = ("float32", "float16", "bfloat16", "uint8", "bool")
WIDE = ("float64", "int64", "complex128")
KERNELS = [name for name, one in SUBJECTS.items() if one.kernel_samples]
each_operator = pytest.mark.parametrize("name", KERNELS)


@pytest.mark.parametrize("dtype", TYPES + WIDE, indirect=True)
@each_operator
def test_every_type(name, dtype):
    """Every type once, and all samples in one type. Wide ones may be moved in words."""
    found = SUBJECTS[name].kernel_samples
    for sample in found if dtype == "float32" else found[:1]:
        most = max(dtype.itemsize // 4, 1)
        assert 1 <= launches(sample.run, *sample.arrays(dtype)) <= most


@each_operator
def test_wide_types_outside_of_x64_mode(name):
    """As in a thread of JAX's that is not in the mode in which they were traced."""
    sample = SUBJECTS[name].kernel_samples[0]
    with jax.enable_x64(True):
        traced = jax.jit(sample.run).trace(*sample.arrays("float64"))
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "@mosaic_gpu_v2(" in text


def test_places_that_need_all_32_bits():
    struct = jax.ShapeDtypeStruct((2**31 + 1,), np.uint8)
    assert launches(find, struct) == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mode", [PaddingMode.CONSTANT, PaddingMode.WRAP])
@pytest.mark.parametrize("shape", [(2**31 + 8, 8), (4, 2**31 + 8), (2**31 + 8, 8, 1)])
def test_padding_of_rows_past_32_bits(shape, mode):
    pads = (0, 4, 0)[: len(shape)]
    pad = functools.partial(dmljax.padding, mode=mode, implementation="pallas")
    struct = jax.ShapeDtypeStruct(shape, np.uint8)
    assert launches(lambda x: pad(x, pads, pads), struct) == 1


# HOW NONZERO_COORDINATES IS LAUNCHED


@pytest.fixture
def launched(monkeypatch):
    """A list to which each launch adds its options."""
    options_of, launch = [], _nonzero_coordinates.launch_threads

    def record(*arguments, **options):
        options_of.append(options)
        return launch(*arguments, **options)

    monkeypatch.setattr(_nonzero_coordinates, "launch_threads", record)
    jax.clear_caches()
    return options_of


def test_no_array_has_a_value_for_each_row(launched):
    """Programs keep bits to themselves, and K rows are written."""
    x = jax.ShapeDtypeStruct((2**20,), np.float32)
    lowered(functools.partial(find, size=10), x)
    (options,) = launched
    assert [out.size for out in options["outputs"]] == [1, 10]
    assert options["posts"] == [(1, options["programs"])]
    assert options["programs"] <= x.size // 8192


def test_a_batch_may_exceed_what_a_gpu_allows_the_later_dimensions_of_a_grid(launched):
    lowered(jax.vmap(find), jax.ShapeDtypeStruct((70_000, 300_000), np.uint8))
    (options,) = launched
    shares = -(-300_000 // (16 * 8192))
    assert options["programs"] == 70_000 * shares
    assert options["posts"] == [(70_000, shares)]


def test_a_line_of_one_program_waits_for_nobody(launched):
    lowered(jax.vmap(find), jax.ShapeDtypeStruct((70_000, 8192), np.float32))
    assert launched[0]["posts"] == []
    assert launched[0]["programs"] == 70_000


def test_a_batch_of_more_tensors_than_a_grid_has_programs_is_refused():
    struct = jax.ShapeDtypeStruct((2**31, 1), np.uint8)
    with pytest.raises(DescriptorError, match="in 2147483648 tensors at once; use"):
        lowered(jax.vmap(find), struct)
    assert launches(jax.vmap(dmljax.nonzero_coordinates), struct) == 0
