"""The kernels for NVIDIA GPUs: results.

On a CPU `_lockstep` runs them with small blocks, on a GPU they run for real. What a
kernel does differs by the size of an element, by the launch plan and at the edges of a
block; that the types of one size are alike is tested in `test_words.py`.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dmljax
from dmljax import PaddingMode
from dmljax.pallas import _elementwise, _nonzero_plan
from tests import blocks, oracles, samples
from tests.checks import check, needs_x64
from tests.subjects import SUBJECTS

# One type of each size, and truth values.
SIZES = ("int8", "float16", "float32", "float64", "bool")
# It reads truth values as bytes.
SIZES_OF = {"nonzero_coordinates": ("int8", "float16", "float32", "float64")}


SLOW = pytest.mark.slow


def some(cases, of_each):
    """All cases, of which the first of each `of_each` is not a slow test."""
    return [
        pytest.param(*case, marks=SLOW if i % of_each else ())
        for i, case in enumerate(cases)
    ]


def uses():
    """A sample in a type of each size, the others and the edges in one type."""
    for name, subject in SUBJECTS.items():
        first, *others = subject.kernel_samples
        for dtype in SIZES_OF.get(name, SIZES):
            # The largest program; other tests have these sizes in larger arrays.
            slow = name in SIZES_OF and dtype in ("float16", "float32")
            marks = SLOW if slow else ()
            yield pytest.param(first, dtype, id=f"{first}-{dtype}", marks=marks)
        for sample in others:
            yield pytest.param(sample, "int8", id=f"{sample}-int8")
        for edge in subject.kernel_edges:
            dtype = "float64" if needs_x64(edge) else "float32"
            yield pytest.param(edge, dtype, id=str(edge), marks=SLOW)


@pytest.mark.parametrize(("sample", "dtype"), list(uses()), indirect=["dtype"])
def test_samples_and_edges(sample, dtype):
    """New data in a compiled program costs nothing."""
    check(sample, dtype, samples.numbers)
    for seed in range(5):
        check(sample, dtype, samples.bits, seed)


def same_by_kernel_and_by_xla(function, *operands):
    kernel, xla = (
        functools.partial(function, implementation=i)(*operands)
        for i in ("pallas", "xla")
    )
    jax.tree.map(np.testing.assert_array_equal, kernel, xla)


# NONZERO_COORDINATES

# Of one block and of several, even and odd, and of every number of columns.
SHAPES = (
    *((), (5,), (1001 if blocks.INTERPRETED else 9001,), (3, 700)),
    *((2, 3, 4, 25, 7), (1, 2, 1, 2, 1, 2, 1, 300)),
)
DENSITIES = (0.0, 0.01, 0.9, 1.0)


def sparse(shape, density, dtype="float32"):
    """Ones, negative where the type has them, in zeros of both signs."""
    random = np.random.default_rng(0)
    values = np.where(random.random(shape) < density, 1.0, -0.0)
    return np.asarray(values).astype(jnp.dtype(dtype))


def check_coordinates(x, **options):
    count, coordinates = dmljax.nonzero_coordinates(
        x, implementation="pallas", **options
    )
    undefined = options.get("fill", 0) is None
    filled = options | {"fill": 0} if undefined else options
    expected = oracles.nonzero_coordinates(x, **filled)
    assert int(count) == int(expected[0])
    rows = int(count) if undefined else x.size
    found = np.asarray(coordinates)[:rows]  # without a program of JAX that slices
    np.testing.assert_array_equal(found, expected[1][:rows])


# Rows of 2 and of 5 columns: the values that a thread stores at once are two rows, or
# parts of rows. Other tests have rows of 1.
@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(shape, marks=() if i in (3, 4) else SLOW, id=str(shape))
        for i, shape in enumerate(SHAPES)
    ],
)
def test_nonzero_coordinates_of_every_rank(shape):
    for density in DENSITIES:
        check_coordinates(sparse(shape, density))


@pytest.mark.parametrize(
    ("dtype", "more"),
    some(
        [("uint8", 8), ("uint8", 2), ("uint8", 1), ("bfloat16", 1), ("bfloat16", 2)], 3
    ),
)
def test_nonzero_coordinates_of_elements_that_are_loaded_together(dtype, more):
    """As many as an aligned load has, if their number is a multiple of it."""
    for density in (0.3, 0.02):
        check_coordinates(sparse((4096 + more,), density, dtype))


# With the small sizes, a warp has one tile of a share, four, or eight. So there are
# pieces of one tile, of four, and of eight.
@pytest.mark.parametrize("elements", [12_000, 40_000, 60_000])
@pytest.mark.parametrize("density", [0, 0.02, 0.2, 0.6, 1])
def test_nonzero_coordinates_of_every_density(elements, density):
    check_coordinates(sparse((elements,), density, "int8"), columns=1)


def test_nonzero_coordinates_of_groups_of_programs():
    """A program waits for its own group and for those before it."""
    if blocks.INTERPRETED:
        check_coordinates(sparse((250_000,), 0.1, "int8"), columns=1)


def test_nonzero_coordinates_of_whole_shares_alone():
    for density in DENSITIES:
        check_coordinates(sparse((12 * 1024,), density, "int8"))


@pytest.mark.parametrize(
    "options", some([({"fill": None},), ({"fill": 7},), ({"columns": 2},)], 3)
)
def test_nonzero_coordinates_options(options):
    for density in DENSITIES:
        check_coordinates(sparse((1, 30, 30), density), **options)


def test_nonzero_coordinates_fills_from_any_count_on():
    """The count may cut the four values that a thread fills at once, or a share."""
    place = np.arange(10_001)
    for count in (0, 3, 4, 2047, 4096, place.size - 1):
        check_coordinates((place < count).astype(np.int8), fill=9)


def test_nonzero_coordinates_of_unlike_tiles_side_by_side():
    """A full tile beside an empty one, sparse ones, and a run in a sparse tile.

    All bits of the run's words are set, and few in others.
    """
    tile = _nonzero_plan.TILE
    empty, full = np.zeros(tile), np.ones(tile)
    few = empty.copy()
    few[[5, tile - 1]] = 1
    run = few.copy()
    run[60:100] = 1
    orders = (full, empty, few, run), (run, few, full, empty)
    for tiles in (*(order * 3 for order in orders), (full, empty, empty, empty) * 12):
        line = np.concatenate([*tiles, few[: tile // 2]])
        check_coordinates(line.astype(np.int8))


@pytest.mark.slow
def test_nonzero_coordinates_of_lines_that_are_not_aligned():
    x = sparse((3, 4125), 0.4)
    same_by_kernel_and_by_xla(
        lambda x, **i: jax.vmap(functools.partial(dmljax.nonzero_coordinates, **i))(x),
        x,
    )


# ONE_HOT


@pytest.mark.usefixtures("small_blocks")
def test_the_last_of_many_blocks_is_cut():
    x = jnp.arange(1.0, 36.0)
    output = dmljax.element_wise_if(x > 9, x, -x, implementation="pallas")
    np.testing.assert_array_equal(output, jnp.where(x > 9, x, -x))


def test_dimensions_in_which_operands_are_alike_are_one_group():
    """But for those whose coordinates are asked for."""
    shapes = [(2, 1, 4, 1, 6), (2, 3, 4, 5, 6)]
    found = _elementwise.groups_of((2, 3, 4, 5, 6), shapes)
    whole = [group.owned for group in found]
    assert [group.size for group in found] == [2, 3, 4, 5, 6]
    assert whole == [(True, True), (False, True)] * 2 + [(True, True)]
    found = _elementwise.groups_of((2, 3, 1, 5, 6), [(2, 3, 1, 5, 6)], asked=(3,))
    assert [group.size for group in found] == [6, 5, 6]


def test_operands_that_are_shared_along_some_axes():
    """The dimensions of one operand lie in three groups."""
    shapes = ((2, 1, 4, 1, 6), (2, 3, 4, 5, 6), (1, 3, 1, 5, 1))
    condition, a, b = (samples.numbers(shape, np.uint8, 0) for shape in shapes)
    select = SUBJECTS["element_wise_if"].primitive
    same_by_kernel_and_by_xla(select, condition % 2, a, b)


@pytest.mark.parametrize(
    ("dtype", "axis"),
    some(itertools.product(("float32", "float16", "int8"), (0, 1, 2)), 2),
)
def test_one_hot_along_every_axis_in_many_blocks(axis, dtype):
    shape = [3, 5, 71 if blocks.INTERPRETED else 5001]
    shape[axis] = 1
    indices = np.random.default_rng(0).integers(-40, 40, shape).astype(np.int32)
    values = np.array([2, 3], dtype)
    one_hot = functools.partial(dmljax.one_hot, size=33, axis=axis)
    same_by_kernel_and_by_xla(one_hot, indices, values)


# How many sequences, and the positions of each: fewer than a chunk of 16 bytes has, as
# many, or more; and totals that a word divides or not.
@pytest.mark.parametrize(
    ("dtype", "sequences", "size"),
    [
        *some([("int8", 12, size) for size in (3, 2, 16, 4, 17, 6, 1, 15, 33)], 2),
        *some([("float16", 12, size) for size in (3, 2, 8, 7, 9, 1)], 2),
        *some([("float32", 12, size) for size in (3, 1, 4, 5)], 2),
        *some([("bool", 12, size) for size in (17, 3, 16)], 3),
        *some([("int8", n, 17) for n in (7, 1, 2)], 3),
        *some([("float16", n, 17) for n in (1, 2, 7)], 3),
    ],
)
def test_one_hot_of_sequences_that_share_words(dtype, sequences, size):
    """Also indices of no position, whose place is in the sequence before or after."""
    for seed in range(3):
        random = np.random.default_rng(seed)
        indices = random.integers(-2 * size, 2 * size, (sequences, 1)).astype(np.int32)
        values = np.array([5, -1]).astype(dtype)
        result = dmljax.one_hot(indices, values, size=size, implementation="pallas")
        expected = oracles.one_hot(indices, values, size=size, axis=-1)
        np.testing.assert_array_equal(result, expected)


# Outside of the axis, along it and inside: in chunks of several elements and of one.
# The second sizes are for real blocks.
SIDE_BY_SIDE = [
    ("int8", (2, 20, 44), (2, 40, 724)),
    ("int8", (2, 16, 32), (2, 300, 264)),
    ("int8", (3, 9, 10), (3, 9, 130)),
    ("int8", (2, 35, 2), (2, 1030, 2)),
    ("int8", (2, 3, 70), (2, 3, 2060)),
    ("int8", (5, 3, 4), (50, 5, 8)),
    ("float16", (2, 9, 10), (2, 40, 130)),
    ("float16", (2, 17, 8), (2, 129, 64)),
    ("float16", (5, 3, 4), (50, 4, 4)),
    ("bool", (2, 9, 10), (2, 40, 130)),
    ("bool", (5, 3, 4), (50, 5, 8)),
    ("float32", (2, 9, 10), (2, 40, 130)),
]


@pytest.mark.parametrize(
    ("dtype", "sizes"),
    some([(dtype, sizes[not blocks.INTERPRETED]) for dtype, *sizes in SIDE_BY_SIDE], 2),
)
def test_one_hot_of_sequences_side_by_side(dtype, sizes):
    outer, size, inner = sizes
    random = np.random.default_rng(0)
    indices = random.integers(-2 * size, 2 * size, (outer, 1, inner)).astype(np.int32)
    values = jnp.array([5, -1]).astype(dtype)
    one_hot = functools.partial(dmljax.one_hot, size=size, axis=1)
    same_by_kernel_and_by_xla(one_hot, indices, values)


@pytest.mark.parametrize(
    ("dtype", "in_axes"),
    some(itertools.product(("float32", "int8"), [(0, 0), (0, None), (None, 0)]), 2),
)
def test_one_hot_of_batches_of_values(dtype, in_axes):
    random = np.random.default_rng(0)
    indices = random.integers(-9, 9, (4, 9, 1)).astype(np.int32)
    values = random.integers(0, 99, (4, 2)).astype(dtype)
    operands = [
        x if axis == 0 else x[0]
        for x, axis in zip((indices, values), in_axes, strict=True)
    ]
    same_by_kernel_and_by_xla(
        lambda *x, **i: jax.vmap(
            functools.partial(dmljax.one_hot, size=7, **i), in_axes
        )(*x),
        *operands,
    )


@pytest.mark.parametrize("shared", ["on", "off"])
def test_one_hot_of_a_value_for_each_sequence_and_one_for_all(shared):
    indices, one = np.arange(6, dtype=np.int32)[:, None], np.full((1, 1), 9, np.int8)
    each = np.arange(10, 16, dtype=np.int8)[:, None]
    on, off = (one, each) if shared == "on" else (each, one)
    one_hot = functools.partial(SUBJECTS["one_hot"].primitive, size=5, axis=-1)
    same_by_kernel_and_by_xla(one_hot, indices, on, off)


# PADDING

# Rows of one word and of many, of which the first and the last are shared with padding
# or with other rows; elements side by side that are padded alike; planes.
ROWS = (
    ((40,), (3,), (5,)),
    ((3, 2, 3, 24), (0, 0, 3, 3), (0, 0, 3, 3)),
    ((5, 7, 21), (1, 2, 3), (2, 0, 4)),
    ((2, 5, 6, 3), (0, 2, 1, 0), (0, 1, 2, 0)),
    ((4, 100), (2, 0), (1, 0)),
    ((4, 3, 100), (1, 1, 0), (0, 1, 0)),
    ((6, 2), (0, 5), (0, 7)),
    ((17, 64), (0, 30), (0, 63)),
    ((2, 200), (0, 4), (0, 4)),
    ((16, 1), (1, 0), (2, 0)),
    ((12, 1), (0, 1), (0, 0)),  # several rows in a word
    ((3, 1), (0, 5), (0, 0)),  # rows that end behind the last whole chunk
    ((7, 1), (0, 0), (0, 1)),
    ((600,), (200,), (190,)),  # padding of more than a program
    ((2, 1, 2, 1, 2, 1, 2, 3), (1,) * 8, (0,) * 8),
)
CONSTANT, EDGE, REFLECTION, SYMMETRIC, WRAP = PaddingMode


@pytest.mark.parametrize(
    ("dtype", "mode", "rows"),
    [
        *some([("int8", CONSTANT, rows) for rows in ROWS], 2),
        *some([("int8", REFLECTION, rows) for rows in ROWS[1::2]], 2),
        *some([("float16", CONSTANT, rows) for rows in ROWS[::2]], 3),
        *(("int8", SYMMETRIC, ROWS[6]), ("int8", WRAP, ROWS[2])),
        *(("float32", EDGE, ROWS[2]), ("float64", CONSTANT, ROWS[3])),
        pytest.param("int8", EDGE, ROWS[2], marks=SLOW),
    ],
    indirect=["dtype"],
    ids=str,
)
def test_padding_of_rows(dtype, mode, rows):
    shape, start, end = rows
    x = np.random.default_rng(0).integers(0, 99, shape).astype(dtype)
    pad = functools.partial(dmljax.padding, x, start, end, mode=mode, value=7)
    same_by_kernel_and_by_xla(pad)


BATCHES_OF_VALUES = [((3, 1), (3, 4)), ((3, 4), (3, 4)), ((1, 4), (3, 1))]


@pytest.mark.parametrize(
    ("dtype", "batches"),
    some(itertools.product(("int8", "float32"), BATCHES_OF_VALUES), 2),
)
def test_padding_with_values_of_a_batch(dtype, batches):
    sizes, own = batches
    random = np.random.default_rng(0)
    x = jnp.asarray(random.integers(0, 99, (*own, 5, 20)).astype(dtype))
    value = jnp.asarray(random.integers(0, 99, (*sizes, 1, 1)).astype(dtype))
    whole = np.broadcast_shapes(sizes, own)
    kernel, xla = (
        SUBJECTS["padding"].primitive(
            *(operand, value),
            start=(1, 2),
            end=(0, 3),
            mode=PaddingMode.CONSTANT,
            implementation=i,
        )[0]
        for i, operand in (
            ("pallas", x),
            ("xla", jnp.broadcast_to(x, whole + x.shape[2:])),
        )
    )
    np.testing.assert_array_equal(kernel, xla)


# SELECTS


@pytest.mark.parametrize("dtype", some([("int8",), ("float16",), ("float32",)], 3))
def test_selects_in_many_blocks(dtype):
    """Rows whose ends are inside of blocks, and operands of which some are shared."""
    shape = (2, 3, 7, 13) if blocks.INTERPRETED else (2, 3, 70, 131)
    x = samples.numbers(shape, dtype, 0)
    condition = samples.numbers(shape, "uint8", 1)
    same_by_kernel_and_by_xla(dmljax.element_wise_if, condition, x, x[::-1])
    for operands in (
        *((condition, x[0], x), (condition[0], x, x[0])),
        (condition, x[0], x[0]),
    ):
        in_axes = tuple(0 if y.shape == shape else None for y in operands)
        same_by_kernel_and_by_xla(
            lambda *y, in_axes=in_axes, **i: jax.vmap(
                functools.partial(dmljax.element_wise_if, **i), in_axes
            )(*y),
            *operands,
        )
    fill = functools.partial(dmljax.diagonal_matrix1, value=9, fill_begin=-3)
    same_by_kernel_and_by_xla(fill, x)
