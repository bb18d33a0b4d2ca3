"""NONZERO_COORDINATES with `size=`: K rows instead of M, and no memory of M rows."""

import functools

import jax
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

import dmljax
from dmljax import DescriptorError
from dmljax._nonzero_coordinates_primitive import NONZERO_COORDINATES
from dmljax.pallas.gpu import _lockstep
from tests import blocks, oracles

# By the definition, by the form for a CPU, and by the kernel, which is interpreted.
FORMS = ("definition", "cpu", "kernel")
each_form = pytest.mark.parametrize(
    "find",
    [*FORMS[:2], pytest.param("kernel", marks=pytest.mark.slow)],
    indirect=True,
)
# No row, fewer than there are non-zeros, as many, a row for each element, and more.
# The kernel has fewer of them.
SIZES = (0, 1, 4, 6, 12, 15)


def matrix(seed=0, shape=(3, 4)):
    return np.random.default_rng(seed).integers(0, 2, shape).astype(np.float32)


def expected(x, size, *, fill=0, parts=None, **options):
    """The oracle's rows, cut at `size` or followed by rows of `fill`."""
    count, rows = oracles.nonzero_coordinates(x, fill=fill, parts=parts, **options)
    missing = max(size - rows.shape[-2], 0)
    more = [(0, 0)] * (rows.ndim - 2) + [(0, missing), (0, 0)]
    return count, np.pad(rows, more, constant_values=fill)[..., :size, :]


@pytest.fixture
def find(request, monkeypatch):
    """The function by one form (an indirect parameter)."""
    if request.param == "kernel":
        return functools.partial(dmljax.nonzero_coordinates, implementation="pallas")
    if request.param == "definition":
        monkeypatch.delitem(NONZERO_COORDINATES.on_platform, "cpu")
    return dmljax.nonzero_coordinates


@pytest.fixture(autouse=True)
def fresh():
    """Nothing compiled by another form."""
    jax.clear_caches()


def assert_found(outputs, wanted):
    for one, other in zip(outputs, wanted, strict=True):
        assert one.dtype == np.uint32
        np.testing.assert_array_equal(one, other)


@pytest.fixture
def few(find):
    """Whether the form is slow here, so that a test takes fewer cases."""
    return isinstance(find, functools.partial)


@each_form
def test_every_size(find, few):
    x = np.array([[0, 3, 0, 1], [2, 0, 5, 0], [0, 0, 1, 9]], np.float32)
    sizes = SIZES[2::3] if few else SIZES
    outputs = jax.jit(lambda x: [find(x, size=size, fill=9) for size in sizes])(x)
    for size, found in zip(sizes, outputs, strict=True):
        assert_found(found, expected(x, size, fill=9))


CASES = (
    (matrix(1, (1, 1, 4, 9)), 50, {"columns": 3, "fill": 2**32 - 1}),
    (np.ones((2, 3), np.int8), 2, {"parts": 2}),
    (matrix(1, (1, 1, 4, 9)), 5, {"columns": 2}),
    (matrix(2, (1, 70)), 33, {"columns": 1}),
    (np.ones((2, 3), np.int8), 4, {"parts": 2, "fill": 7}),
    (np.ones((2, 3), np.int8), 0, {"parts": 1}),
    (np.zeros((2, 0), np.int8), 2, {"fill": 3}),
    (np.eye(3, dtype=np.int8), 7, {}),
    (np.zeros((2, 3), np.int8), 2, {"fill": 3}),
)


@each_form
def test_options(find, few):
    cases = CASES[:2] if few else CASES

    @jax.jit
    def program(*arrays):
        pairs = zip(arrays, cases, strict=True)
        return [find(x, size=size, **options) for x, (_, size, options) in pairs]

    outputs = program(*(x for x, _, _ in cases))
    for found, (x, size, options) in zip(outputs, cases, strict=True):
        assert_found(found, expected(x, size, **options))


@each_form
def test_rows_that_are_left_alone(find):
    x = matrix()
    size = np.count_nonzero(x) + 1
    count, rows = find(x, size=size, fill=None)
    wanted, valid = expected(x, size)
    assert count == wanted
    np.testing.assert_array_equal(rows[:wanted], valid[:wanted])


@each_form
def test_batches(find):
    batch = np.stack([matrix(seed, (4, 3)) for seed in range(4)])
    parts = jax.jit(jax.vmap(lambda x: find(x, size=3, parts=2, fill=8)))(batch)
    for i, x in enumerate(batch):
        assert_found([out[i] for out in parts], expected(x, 3, parts=2, fill=8))
    nothing = jax.vmap(lambda x: find(x, size=5))(batch[:0])
    assert [out.shape for out in nothing] == [(0,), (0, 5, 2)]


def largest(jaxpr):
    """The most elements of an array that a program computes, inner ones included."""
    most = 0
    for equation in jaxpr.eqns:
        inner = map(largest, jaxprs_in_params(equation.params))
        sizes = (out.aval.size for out in equation.outvars)
        most = max(most, *sizes, *inner)
    return most


@pytest.mark.parametrize("form", ["definition", "cpu"])
def test_no_memory_of_all_rows(form, monkeypatch):
    """The coordinates of all elements would take 16 bytes each, and 32 with `fill`."""
    if form == "definition":
        monkeypatch.delitem(NONZERO_COORDINATES.on_platform, "cpu")
    x = jax.ShapeDtypeStruct((64, 8, 32, 16), np.float32)
    elements = 64 * 8 * 32 * 16
    find = jax.jit(lambda x: dmljax.nonzero_coordinates(x, size=10, fill=7))
    memory = find.lower(x).compile().memory_analysis()
    assert memory.temp_size_in_bytes <= 2 * elements
    assert memory.output_size_in_bytes < 1000


@pytest.mark.parametrize("lines", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_more_rows_than_elements(lines):
    """In the kernel, whose programs share what is past the elements."""
    find = functools.partial(dmljax.nonzero_coordinates, implementation="pallas")
    x = matrix(1, (lines, 3000)) if lines else matrix()
    size = 5 * x.size + 7
    assert_found(find(x, size=size, fill=7), expected(x, size, fill=7))


def test_more_rows_than_the_kernel_counts_are_refused():
    """The default form writes them. Nothing is run here: they have 8 GiB and more."""

    def find(implementation):
        return lambda x: dmljax.nonzero_coordinates(
            x, size=2**31, implementation=implementation
        )

    x = jax.ShapeDtypeStruct((5,), np.float32)
    jax.jit(find(None)).lower(x)
    with pytest.raises(DescriptorError, match=r"size=2147483648 is too large for the"):
        jax.jit(find("pallas")).lower(x)


@pytest.mark.parametrize("rows", [pytest.param(3, marks=pytest.mark.slow), 5003])
def test_programs_past_the_last_row_and_one_that_it_cuts(rows):
    """In the kernel; three quarters of the elements are not zero."""
    find = functools.partial(dmljax.nonzero_coordinates, implementation="pallas")
    x = (np.arange(20_000) % 4 > 0).astype(np.float32)
    assert_found(find(x, size=rows, fill=7), expected(x, rows, fill=7))


# The tail has many parts, begins within the last one, or is empty.
LINES = np.arange(60_000) < np.reshape([0, 4097, 12_002, 12_003, 15_000], (-1, 1))


def some_rows(x):
    """By the kernel, and so few rows that programs claim parts of the tail."""
    return dmljax.nonzero_coordinates(x, size=12_003, fill=7, implementation="pallas")


@pytest.mark.parametrize("vmap", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_programs_claim_parts_of_the_tail(vmap):
    """In the kernel. With `vmap`, each line has a tail of its own."""
    if vmap:
        found = zip(*jax.jit(jax.vmap(some_rows))(LINES), strict=True)
    else:
        program = jax.jit(some_rows)
        found = [program(line) for line in LINES]
    for line, outputs in zip(LINES, found, strict=True):
        assert_found(outputs, expected(line, 12_003, fill=7))


@pytest.mark.skipif(not blocks.INTERPRETED, reason="it changes the simulation")
def test_the_last_program_fills_what_no_other_one_claims(monkeypatch):
    """The others read before it has started."""

    def peek(memory, offset):
        programs = memory.threads.shape[0]
        return (memory.threads.program == programs - 1).astype(np.uint32)

    monkeypatch.setattr(_lockstep.Memory, "peek", peek)
    assert_found(some_rows(LINES[1]), expected(LINES[1], 12_003, fill=7))


def test_no_array_of_all_rows():
    """The kernel's arrays are counted in test_lowering.py."""
    find = functools.partial(dmljax.nonzero_coordinates, size=10, columns=1)
    assert largest(jax.make_jaxpr(find)(np.zeros(2**16, np.float32)).jaxpr) == 10
