"""NONZERO_COORDINATES: formulas, batches in each form, memory, the kernel."""

import math
import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import dmljax.numpy as dnp
from dmljax import nonzero_coordinates
from dmljax._nonzero_coordinates import NONZERO_COORDINATES
from dmljax._nonzero_forms import (
    is_nonzero,
    nonzero_scatter,
    nonzero_walk,
    nonzero_words,
    on_lines,
    pack,
    sum_in_levels,
)
from tests import samples, subjects
from tests.checks import assert_same, launches, needs_devices, needs_kernels, struct
from tests.meshes import sharding_of
from tests.subjects.nonzero_coordinates import oracle

MANY = 2**23  # elements of bit words

# THE FORMULAS


TYPES = sorted({name for one in subjects.SUBJECTS.values() for name in one.data_types})


def patterns(dtype):
    """Every bit pattern of types up to 16 bits; else special values and random bits."""
    if dtype.name in ("bool", "int4", "uint4"):
        return np.arange(-8, 8).astype(dtype)
    if dtype.itemsize <= 2:
        every = np.arange(2 ** (8 * dtype.itemsize))
        return every.astype(f"u{dtype.itemsize}").view(dtype)
    lines = [samples.any_bits((512,), dtype, seed) for seed in range(8)]
    one_bit = np.packbits(np.eye(8 * dtype.itemsize, dtype=bool), bitorder="little")
    return np.concatenate([*lines, one_bit.view(dtype)])


# Types with one zero, and without any.
FEWER_ZEROS = ["float8_e4m3b11fnuz", "float8_e8m0fnu"]


@pytest.mark.parametrize("dtype", [*TYPES, *FEWER_ZEROS], indirect=True)
def test_flags_of_every_bit_pattern(dtype):
    """Zeros fill the last byte, up to a multiple of 128 elements."""
    x = patterns(dtype)
    with np.errstate(invalid="ignore"):  # signalling NaN
        expected = np.pad(x != 0, (0, -x.size % 128))
    flags = np.packbits(expected, bitorder="little")
    found = pack(is_nonzero(jnp.asarray(x))[None], 128)
    np.testing.assert_array_equal(found, flags[None])


# EACH FORM


def finding(form, rank=1, size=None, fill=0):
    """The program of a form, with a column for each dimension."""
    columns = max(rank, 1)
    return jax.jit(partial(form, rank=rank, size=size, columns=columns, fill=fill))


FORMS = [
    on_lines(nonzero_scatter),
    on_lines(nonzero_words),
    nonzero_walk,
    NONZERO_COORDINATES.auto_sharded,
]
each_form = pytest.mark.parametrize("form", FORMS)


def share(density, shape=(3, 5, 67)):
    """Three lines of a mask, the last without anything. 335 is no multiple of 32."""
    batch = np.random.default_rng(0).random(shape) < density
    batch[-1] = False
    return batch


@each_form
@pytest.mark.parametrize("size", [None, 1, 64, 400])
def test_rows_of_each_form(form, size):
    """Sizes that are too small for some lines, or larger than a line.

    `fill` is the operator's attribute; None leaves zeros.
    """
    fills = None, 0, 9
    find = jax.jit(lambda x: [finding(form, 2, size, fill)(x) for fill in fills])
    batches = [share(density) for density in (0, 0.03, 0.5, 1)]
    # A planted fault: the last 256 rows of a full last line begin past its end, and
    # JAX reads and writes them at different places.
    batches.append(batches[-1][::-1])
    for batch in batches:
        for found, fill in zip(find(batch), fills, strict=True):
            lines = [oracle(mask, size=size, fill=fill) for mask in batch]
            assert_same(found, tuple(map(np.stack, zip(*lines, strict=True))))


@each_form
@pytest.mark.parametrize(
    ("shape", "size", "fill"),
    [((2, 0, 3), 4, 7), ((2, 3, 0), None, 0), ((0, 5, 2), 3, 0), ((2, 5, 2), 0, 0)],
)
def test_each_form_of_nothing(form, shape, size, fill):
    """Without elements, lines or rows, outputs still have their sizes and counts."""
    found = finding(form, 2, size, fill)(np.ones(shape, bool))
    counts = np.full(shape[0], shape[1] * shape[2], np.uint32)
    assert_same(found, (counts, np.full((shape[0], size or 0, 2), fill, np.uint32)))
    found = finding(form, 0, 0, fill)(np.True_)
    assert_same(found, (np.uint32(1), np.zeros((0, 1), np.uint32)))


@needs_devices
@pytest.mark.parametrize("spec", [P(), P("a")])
def test_wide_types_outside_of_x64_mode(spec):
    """Over automatic axes, by the form that XLA divides. In float32, 1e-300 is 0."""
    x = 1e-300 * np.eye(8)
    with jax.enable_x64(True):
        placed = jax.device_put(x, sharding_of("8", spec))
        traced = jax.jit(nonzero_coordinates).trace(placed)
    found = traced.lower().compile()(placed)
    assert_same(tuple(found), oracle(x))


@each_form
@pytest.mark.parametrize("size", [40, None])
def test_each_form_counts_from_the_first_element_of_a_part(form, size):
    """The lines are two parts of a tensor. Each has more than 40 rows.

    A planted fault: rows that a CPU unravels in blocks are counted from the part.
    """
    x = share(0.3, (10, 67))
    first = np.array([0, 5 * 67], np.uint32).reshape(2, 1, 1)
    found = finding(form, 2, size)(x.reshape(2, 5, 67), first)
    assert_same(found, oracle(x, parts=2, size=size))


@pytest.mark.parametrize(
    ("shape", "size", "expected"),
    [
        ((MANY - 1,), 8, False),
        ((MANY,), 8, True),
        ((2, MANY // 2), MANY // 4 - 1, True),
        ((2, MANY // 2), MANY // 4, False),
        ((MANY,), MANY, True),
    ],
)
def test_bit_words_for_many_elements_and_rows_for_few(shape, size, expected):
    find = finding(NONZERO_COORDINATES.definition, size=size)
    text = find.lower(struct(np.bool_, *shape)).as_text()
    assert ("popcnt" in text) == expected


def test_the_walk_counts_all_rows():
    """Up to 2^32 - 1 rows and elements in a line, and with `vmap` more in all lines."""
    for lines, size, dtype in (
        ((2, 2**10), 2**30 - 2**10, np.uint32),
        ((2, 2**10), 2**30, np.uint64),
        ((2**20, 2**14), 1, np.uint64),  # fault: the bytes of all lines are not counted
    ):
        traced = finding(nonzero_walk, size=size).trace(struct(np.bool_, *lines))
        (loop,) = (x for x in traced.jaxpr.eqns if x.primitive.name == "while")
        types = {x.aval.dtype for x in loop.outvars if not x.aval.shape}
        assert types == {np.dtype(dtype)}


@each_form
@pytest.mark.parametrize(("elements", "size"), [(8, 2**31), (2**31, 8)])
def test_more_rows_or_elements_than_31_bits_count(form, elements, size):
    """A planted fault: the type of indices follows from the elements alone."""
    text = finding(form, size=size).lower(struct(np.bool_, elements)).as_text()
    assert re.search(r"tensor<(\d+x)*u?i64>", text)


# MEMORY


@pytest.mark.parametrize("form", [NONZERO_COORDINATES.definition, nonzero_walk])
def test_no_memory_of_all_rows(form):
    """The coordinates of all elements would take 16 bytes each, and 32 with `fill`."""
    x = struct(np.bool_, MANY // 2**12, 8, 32, 16)
    memory = finding(form, 4, 10, 7).lower(x).compile().memory_analysis()
    assert memory.temp_size_in_bytes <= 2 * MANY
    assert memory.output_size_in_bytes < 1000


@pytest.mark.parametrize("size", [1, 16, 40, 5000])
def test_a_sum_in_levels_is_the_running_sum(size):
    numbers = np.arange(size, dtype=np.uint32) % 33
    expected = np.cumsum(numbers, dtype=np.uint32)
    assert_same(jax.jit(sum_in_levels)(numbers), expected)


def large_constants(program, *arrays):
    """The elements of each constant in the code for a CPU, above the walk's table."""
    text = jax.jit(program).lower(*arrays).compile().as_text()
    constants = re.findall(r"= \w+\[([\d,]+)\]\S* constant\(", text)
    elements = {math.prod(map(int, shape.split(","))) for shape in constants}
    return {size for size in elements if size > 2**11}


@each_form
@pytest.mark.parametrize("size", [None, 2**12])
def test_a_constant_mask_is_not_folded(form, size):
    """XLA computes on the host what has no barrier, for seconds if a mask is large.

    It converts the mask, and computes no bit words, sums and coordinates.
    """
    mask = share(0.5, (2, 2**8, 2**9))

    def program(more):
        count, coordinates = finding(form, 2, size)(jnp.asarray(mask))
        return count + more, coordinates

    assert large_constants(program, np.uint32(0)) == {mask.size}


def test_doors_fold_no_constant_mask():
    """A mask of NumPy is searched while a program is traced, and is not in it."""
    mask = share(0.5, (2**17,))
    for program in (
        lambda x: dnp.extract(jnp.asarray(mask), x, size=2**12),
        lambda x: (dnp.nonzero(jnp.asarray(mask), size=2**12), x),
    ):
        assert large_constants(program, np.ones(2**17, np.float32)) == {mask.size}


# THE KERNEL


@needs_kernels
def test_nonzero_coordinates_runs_its_kernel_from_a_size_on():
    for size, expected in (2**20, 1), (2**20 - 1, 0):
        assert launches(nonzero_coordinates, struct(np.uint8, size)) == expected
