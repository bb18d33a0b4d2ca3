"""The primitive of NONZERO_COORDINATES: batches by each form, memory, the kernel."""

import functools

import jax
import numpy as np
import pytest

from dmljax import nonzero_coordinates
from dmljax._nonzero_coordinates_primitive import NONZERO_COORDINATES, _sum_in_levels
from tests import oracles
from tests.checks import assert_same, launches


@pytest.fixture
def find(request, monkeypatch):
    """The function by one form (an indirect parameter)."""
    jax.clear_caches()  # nothing that another form has compiled
    if request.param == "definition":
        monkeypatch.delitem(NONZERO_COORDINATES.on_platform, "cpu")
    asked = "pallas" if request.param == "kernel" else None
    return functools.partial(nonzero_coordinates, implementation=asked)


# ROWS


@pytest.mark.parametrize(
    "find",
    ["definition", "cpu", pytest.param("kernel", marks=pytest.mark.slow)],
    indirect=True,
)
def test_batches(find):
    """Each line has a count and rows of its own, also if one has nothing."""
    batch = np.random.default_rng(0).integers(0, 2, (4, 4, 3)).astype(np.float32)
    batch[1] = 0
    for options in ({"size": 3, "parts": 2, "fill": 8}, {"fill": 7}, {}):
        found = jax.jit(jax.vmap(functools.partial(find, **options)))(batch)
        expected = [oracles.nonzero_coordinates(x, **options) for x in batch]
        counts, coordinates = zip(*expected, strict=True)
        assert_same(found, (np.stack(counts), np.stack(coordinates)))
    sparse = np.isin(np.arange(200), (3, 50, 90, 120, 130, 170))  # in words 0 to 5
    assert_same(find(sparse, size=8), oracles.nonzero_coordinates(sparse, size=8))
    nothing = jax.vmap(functools.partial(find, size=5))(batch[:0])
    assert [out.shape for out in nothing] == [(0,), (0, 5, 2)]


@pytest.mark.parametrize("size", [1, 16, 17, 257, 5000])
def test_running_sums_in_levels(size):
    """A level has blocks of 16 numbers."""
    numbers = np.random.default_rng(0).integers(0, 33, size, np.uint32)
    assert_same(jax.jit(_sum_in_levels)(numbers), np.cumsum(numbers, dtype=np.uint32))


# MEMORY


@pytest.mark.parametrize("find", ["definition", "cpu"], indirect=True)
def test_no_memory_of_all_rows(find):
    """The coordinates of all elements would take 16 bytes each, and 32 with `fill`."""
    x = jax.ShapeDtypeStruct((64, 8, 32, 16), np.float32)
    program = jax.jit(functools.partial(find, size=10, fill=7)).lower(x).compile()
    memory = program.memory_analysis()
    assert memory.temp_size_in_bytes <= 2 * 64 * 8 * 32 * 16
    assert memory.output_size_in_bytes < 1000


# THE KERNELS


def test_nonzero_coordinates_runs_its_kernel_from_a_size_on():
    for dtype in ("uint8", "float32"):
        for size, expected in (2**12, 1), (2**12 - 1, 0):
            x = jax.ShapeDtypeStruct((size,), dtype)
            assert launches(nonzero_coordinates, x) == expected


def test_a_kernel_that_never_ran_on_a_tpu_is_not_the_default():
    x = jax.ShapeDtypeStruct((2**20,), np.uint8)
    for implementation, expected in (None, 0), ("pallas", 1):
        find = functools.partial(nonzero_coordinates, implementation=implementation)
        assert launches(find, x, platform="tpu") == expected
