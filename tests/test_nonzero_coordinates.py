"""NONZERO_COORDINATES: rows past the count, and `size=`, for which K rows are made.

Its wrong calls and its edge cases are in tests/subjects/nonzero_coordinates.py.
"""

import functools

import jax
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

from dmljax import nonzero_coordinates
from dmljax._nonzero_coordinates_primitive import NONZERO_COORDINATES
from dmljax.pallas.gpu import _lockstep
from tests import oracles
from tests.checks import assert_same
from tests.pallas import blocks

each_form = pytest.mark.parametrize(
    "find",
    ["definition", "cpu", pytest.param("kernel", marks=pytest.mark.slow)],
    indirect=True,
)
by_kernel = functools.partial(nonzero_coordinates, implementation="pallas")


@pytest.fixture
def find(request, monkeypatch):
    """The function by one form (an indirect parameter)."""
    jax.clear_caches()  # nothing that another form has compiled
    if request.param == "definition":
        monkeypatch.delitem(NONZERO_COORDINATES.on_platform, "cpu")
    return by_kernel if request.param == "kernel" else nonzero_coordinates


def matrix(seed=0, shape=(3, 4)):
    return np.random.default_rng(seed).integers(0, 2, shape).astype(np.float32)


# ROWS


@each_form
def test_batches(find):
    """Each line has a count and rows of its own, also if one has nothing."""
    batch = np.stack([matrix(seed, (4, 3)) for seed in range(4)])
    batch[1] = 0
    for options in ({"size": 3, "parts": 2, "fill": 8}, {"fill": 7}, {}):
        call = functools.partial(oracles.nonzero_coordinates, **options)
        found = jax.jit(jax.vmap(functools.partial(find, **options)))(batch)
        assert_same(found, tuple(map(np.stack, zip(*map(call, batch), strict=True))))
    sparse = np.isin(np.arange(200), (3, 50, 90, 120, 130, 170))  # in words 0 to 5
    assert_same(find(sparse, size=8), oracles.nonzero_coordinates(sparse, size=8))
    nothing = jax.vmap(functools.partial(find, size=5))(batch[:0])
    assert [out.shape for out in nothing] == [(0,), (0, 5, 2)]


# MEMORY


def largest(jaxpr):
    """The most elements of an array that a program computes, inner ones included."""
    most = 0
    for equation in jaxpr.eqns:
        inner = map(largest, jaxprs_in_params(equation.params))
        sizes = (out.aval.size for out in equation.outvars)
        most = max(most, *sizes, *inner)
    return most


def test_no_array_of_all_rows():
    """The kernel's arrays are counted where kernels are tested."""
    find = functools.partial(nonzero_coordinates, size=10, columns=1)
    assert largest(jax.make_jaxpr(find)(np.zeros(2**16, np.float32)).jaxpr) == 10


@pytest.mark.parametrize("find", ["definition", "cpu"], indirect=True)
def test_no_memory_of_all_rows(find):
    """The coordinates of all elements would take 16 bytes each, and 32 with `fill`."""
    x = jax.ShapeDtypeStruct((64, 8, 32, 16), np.float32)
    program = jax.jit(functools.partial(find, size=10, fill=7)).lower(x).compile()
    memory = program.memory_analysis()
    assert memory.temp_size_in_bytes <= 2 * 64 * 8 * 32 * 16
    assert memory.output_size_in_bytes < 1000


def test_the_most_elements_and_rows():
    x = jax.ShapeDtypeStruct((65536, 65535), np.int8)
    _, coordinates = jax.eval_shape(nonzero_coordinates, x)
    assert coordinates.shape == (65536 * 65535, 2)
    find = functools.partial(nonzero_coordinates, size=2**32 - 1, fill=2**32 - 1)
    rows = jax.eval_shape(find, jax.ShapeDtypeStruct((5,), np.int8)).coordinates
    assert rows.shape == (2**32 - 1, 1)


# BY THE KERNEL: tests/pallas/gpu has its tests, and these slow ones go through the
# operator.


def wanted(x, size):
    return oracles.nonzero_coordinates(x, size=size, fill=7)


@pytest.mark.slow
@pytest.mark.parametrize("lines", [0, 2])
def test_more_rows_than_elements(lines):
    """In the kernel, whose programs share what is past the elements."""
    x = matrix(1, (lines, 3000)) if lines else matrix()
    size = 5 * x.size + 7
    assert_same(by_kernel(x, size=size, fill=7), wanted(x, size))


@pytest.mark.slow
@pytest.mark.parametrize("rows", [3, 5003])
def test_programs_past_the_last_row_and_one_that_it_cuts(rows):
    """In the kernel; three quarters of the elements are not zero."""
    x = (np.arange(20_000) % 4 > 0).astype(np.float32)
    assert_same(by_kernel(x, size=rows, fill=7), wanted(x, rows))


# The tail has many parts, begins within the last one, or is empty.
LINES = np.arange(60_000) < np.reshape([0, 4097, 12_002, 12_003, 15_000], (-1, 1))


def some_rows(x):
    """By the kernel, and so few rows that programs claim parts of the tail."""
    return by_kernel(x, size=12_003, fill=7)


@pytest.mark.slow
@pytest.mark.parametrize("vmap", [False, True])
def test_programs_claim_parts_of_the_tail(vmap):
    """In the kernel. With `vmap`, each line has a tail of its own."""
    if vmap:
        found = zip(*jax.jit(jax.vmap(some_rows))(LINES), strict=True)
    else:
        program = jax.jit(some_rows)
        found = [program(line) for line in LINES]
    for line, outputs in zip(LINES, found, strict=True):
        assert_same(outputs, wanted(line, 12_003))


@pytest.mark.skipif(not blocks.INTERPRETED, reason="it changes the simulation")
def test_the_last_program_fills_what_no_other_one_claims(monkeypatch):
    """The others read before it has started."""

    def peek(memory, offset):
        programs = memory.threads.shape[0]
        return (memory.threads.program == programs - 1).astype(np.uint32)

    monkeypatch.setattr(_lockstep.Memory, "peek", peek)
    assert_same(some_rows(LINES[1]), wanted(LINES[1], 12_003))
