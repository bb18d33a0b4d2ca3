"""The result of nonzero_coordinates: a pytree that takes and puts rows."""

import copy
import functools
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.experimental import checkify
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import dmljax
from benchmarks.collectives import collectives
from dmljax import _nonzero_coordinates_result
from tests.checks import assert_refused, assert_same, needs_devices, struct
from tests.meshes import sharding_of
from tests.samples import tensor
from tests.subjects.nonzero_coordinates import DESC

TAKE, PUT = "NonzeroCoordinates.take", "NonzeroCoordinates.put"
MASK = np.array([0, 1, 0, 1, 1, 0, 0, 1], np.int8)  # with 4 ones
FIVE = np.array([1, 1, 0, 1, 1, 0, 0, 1], np.int8)  # of 8: 4 rows are too few
BATCH = np.stack([MASK, MASK[::-1], 0 * MASK, 0 * MASK + 1])
find = dmljax.nonzero_coordinates


def numbers(*shape):
    """Different values, none of them 0."""
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


def taken(mask, x, size, value=0):
    """The rows of x in NumPy, and `value` past the count."""
    found = x[mask != 0][:size]
    rest = np.full((size - len(found), *x.shape[mask.ndim :]), value, x.dtype)
    return np.concatenate([found, rest])


def put(mask, x, rows):
    """The rows written into x in NumPy."""
    flat = x.reshape(mask.size, *x.shape[mask.ndim :]).copy()
    at = np.flatnonzero(mask)[: len(rows)]
    flat[at] = rows[: len(at)]
    return flat.reshape(x.shape)


def of_lines(masks, x, rows):
    """The rows of each line, -1 past the count, and the line with other rows."""
    found = []
    for mask, line, given in zip(masks, x, rows, strict=True):
        found.append((taken(mask, line, len(given), -1), put(mask, line, given)))
    return tuple(map(np.stack, zip(*found, strict=True)))


@pytest.fixture(params=["default", "select"])
def form(request, monkeypatch):
    """Each form of `put`. The select is for rows of 16 values, and half of `x`."""
    if request.param == "default":
        yield
        return
    table = _nonzero_coordinates_result.WRITE_ON_PLATFORM
    monkeypatch.setitem(table, "cpu", _nonzero_coordinates_result.select_rows)
    jax.clear_caches()
    yield
    jax.clear_caches()


def there_and_back(mask, x, rows, value=-1, **options):
    """The rows of x, and x with other rows."""
    kept = find(mask, **options)
    return kept.take(x, fill_value=value), kept.put(x, rows)


# A TUPLE AND A PYTREE


def test_a_tuple_of_two():
    found = find(MASK, size=5)
    count, coordinates = found
    assert count is found[0] is found.count
    assert coordinates is found[-1] is found.coordinates
    assert found._fields == ("count", "coordinates")
    assert isinstance(found, tuple)
    assert repr(found).startswith("NonzeroCoordinates(count=Array(4,")
    paths = [jax.tree_util.keystr(p) for p, _ in jax.tree.leaves_with_path(found)]
    assert paths == [".count", ".coordinates"]


@pytest.mark.parametrize(
    "passed",
    [
        copy.deepcopy,
        lambda found: pickle.loads(pickle.dumps(found)),
        lambda found: found._replace(count=found.count),
        jax.jit(lambda found: found),
    ],
)
def test_a_result_keeps_the_sizes(passed):
    found = passed(find(MASK, size=5))
    assert type(found) is dmljax.NonzeroCoordinates
    assert_same(found.take(numbers(8)), taken(MASK, numbers(8), 5))
    assert_refused(TAKE, "it must begin with {8}", found.take, numbers(7))


def test_other_sizes_are_another_tree():
    row = MASK[None]
    results = find(row), find(row), find(row, parts=1), find(MASK)
    same, again, *others = map(jax.tree.structure, results)
    assert same == again
    assert len({same, *others}) == 3


@pytest.mark.parametrize(("sizes", "size"), [("4", 5), ("n", 5), ("n", None)])
def test_exported_bytes(sizes, size):
    """Without `size`, a symbolic size makes a symbolic number of rows."""
    pytest.importorskip("flatbuffers")
    shape = export.symbolic_shape(f"{sizes}, 2")
    types = [struct(dtype, *shape) for dtype in (np.int8, np.float32)]

    @jax.jit
    def run(mask, x):
        kept = find(mask, size=size, parts=None)
        return kept, kept.put(x, 2 * kept.take(x)), jax.grad(total)(x, kept)

    def total(x, kept):
        return kept.take(x).sum()

    data = export.export(run)(*types).serialize()
    mask, x = MASK.reshape(4, 2), numbers(4, 2)
    kept, doubled, gradient = export.deserialize(data).call(mask, x)
    assert_same(doubled, np.where(mask, 2 * x, x))
    assert_same(gradient, mask.astype(x.dtype))
    assert_same(kept.take(x), taken(mask, x, size or 8))


# VALUES


@pytest.mark.parametrize(
    ("sizes", "rest", "size", "fill"),
    [
        ((8,), (), 3, None),
        ((8,), (3,), 6, 3),
        ((8,), (2, 3), 9, 0),
        ((2, 4), (), 6, 2**32 - 1),
        ((2, 2, 2), (3,), 2, None),
        ((), (3,), 2, None),
        ((0,), (2,), 3, None),
        ((8,), (0,), 3, None),
        ((8,), (2,), 0, None),
        ((0,), (), 0, None),
    ],
)
def test_rows_of_a_mask_and_back(sizes, rest, size, fill):
    """Too few rows, enough, and too many."""
    mask = np.resize(MASK[1:], sizes)
    x, rows = numbers(*sizes, *rest), -numbers(size, *rest)
    run = jax.jit(functools.partial(there_and_back, size=size, fill=fill))
    wanted = taken(mask, x, size, -1), put(mask, x, rows)
    assert_same(run(mask, x, rows), wanted)


@pytest.mark.parametrize(
    ("platform", "row", "size", "gathers"),
    [("cuda", 16, 4, 1), ("cpu", 16, 4, 0), ("cuda", 15, 4, 0), ("cuda", 16, 3, 0)],
)
def test_gpus_select_wide_rows_for_half_of_the_elements(platform, row, size, gathers):
    def run(mask, x, rows):
        return find(mask, size=size).put(x, rows)

    traced = jax.jit(run).trace(MASK, numbers(8, row), numbers(size, row))
    text = traced.lower(lowering_platforms=(platform,)).as_text()
    assert text.count('"stablehlo.gather"') == gathers


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "bfloat16", "complex64"])
def test_types(dtype):
    x = numbers(8, 2).astype(dtype)
    rows = np.zeros((5, 2), dtype)
    value = dtype == "bool"
    kept = find(MASK, size=5, fill=None)
    assert_same(kept.take(x, fill_value=value), taken(MASK, x, 5, value))
    assert_same(kept.put(x, jax.device_put(rows)), put(MASK, x, rows))


@pytest.mark.parametrize("size", [2, 4, 6])
def test_a_batch_with_and_without_vmap(size, form):
    """If `size` is too small, the rows of a line don't reach another line."""
    x, rows = numbers(4, 8, 16), -numbers(4, size, 16)
    run = functools.partial(there_and_back, size=size)
    wanted = of_lines(BATCH, x, rows)
    assert_same(jax.vmap(run)(BATCH, x, rows), wanted)
    kept = jax.vmap(functools.partial(find, size=size))(BATCH)
    assert_same((kept.take(x, fill_value=-1), kept.put(x, rows)), wanted)
    assert_same(kept.overflow, (BATCH != 0).sum(1) > size)


def test_one_mask_for_a_batch_of_arrays():
    x = numbers(8, 3)
    found = jax.vmap(find(MASK, size=3).take, in_axes=-1, out_axes=-1)(x)
    assert_same(found, taken(MASK, x, 3))


def test_parts(form):
    """One mask, and a batch of matrices. Each part has 4 elements and 3 rows."""
    search = functools.partial(find, parts=2, size=3)
    batch = BATCH.reshape(4, 4, 2)
    for mask, kept in (MASK, search(MASK)), (batch, jax.vmap(search)(batch)):
        x, rows = numbers(*mask.shape, 16), -numbers(*kept.count.shape, 3, 16)
        lines = mask.reshape(-1, 4), x.reshape(-1, 4, 16), rows.reshape(-1, 3, 16)
        took, written = of_lines(*lines)
        assert_same(kept.take(x, fill_value=-1), took.reshape(rows.shape))
        assert_same(kept.put(x, rows), written.reshape(x.shape))


@pytest.mark.parametrize("strides", [None, (9, 2)])
def test_overflow_of_a_descriptor(strides):
    """Its outputs have a row for each element, and with strides they are flat."""
    rows = tensor("UINT32", 6, 1, strides=strides)
    desc = dmljax.NonzeroCoordinatesDesc(tensor("INT32", 6), tensor("UINT32", 1), rows)
    run = dmljax.create_operator(desc)
    for find in (run, jax.jit(run)):
        assert find(np.arange(6, dtype=np.int32)).overflow.tolist() == [False]


def test_overflow_without_a_size_and_of_parts():
    assert not find(MASK).overflow
    assert find(MASK, parts=2, size=2).overflow.tolist() == [False, False]
    assert find(0 * MASK + 1, parts=2, size=3).overflow.tolist() == [True, True]


# TRANSFORMATIONS


@pytest.mark.parametrize("size", [0, 4, 6])
def test_derivatives(size, form):
    """Both functions are linear: each is its own derivative, and they are adjoint."""
    x, rows = numbers(8, 16), numbers(size, 16)
    one = np.float32(1)
    kept = find(FIVE, size=size, fill=None)
    within = np.arange(size)[:, None] < min(size, 5)

    @jax.jit
    def run(x, rows):
        forward = [
            jax.jvp(kept.take, [x], [-x])[1],
            jax.jvp(kept.put, [x, rows], [-x, 2 * rows])[1],
        ]
        _, pull_take = jax.vjp(lambda x, v: kept.take(x, fill_value=v), x, one)
        _, pull_put = jax.vjp(kept.put, x, rows)
        return forward, pull_take(rows), pull_put(x)

    forward, of_take, of_put = run(x, rows)
    assert_same(forward, [taken(FIVE, -x, size), put(FIVE, -x, 2 * rows)])
    past = np.where(within, 0, rows).sum(dtype=np.float32)
    assert_same(of_take, (put(FIVE, 0 * x, rows), past))
    assert_same(of_put, (put(FIVE, x, 0 * rows), taken(FIVE, x, size)))


def test_derivatives_of_second_order(form):
    """With too few rows: the last one is missing."""
    x, tangent = numbers(8, 16) / 64, numbers(8, 16)

    def energy(x):
        kept = find(FIVE, size=4)
        return (kept.put(x, kept.take(x) ** 2) ** 2).sum()

    def dense(x):
        first = np.array([1, 1, 0, 1, 1, 0, 0, 0], bool)[:, None]
        return (jnp.where(first, x**2, x) ** 2).sum()

    def products(function, x, v):
        over = jax.jvp(jax.grad(function), [x], [v])[1]
        return over, jax.grad(lambda x: jax.jvp(function, [x], [v])[1])(x)

    found, wanted = (
        jax.jit(functools.partial(products, f))(x, tangent) for f in (energy, dense)
    )
    jax.tree.map(np.testing.assert_allclose, found, wanted)


def test_vmap_of_a_gradient_and_grad_in_a_scan():
    x = numbers(4, 8, 2)

    def loss(x, mask):
        return (find(mask, size=3).take(x) ** 2).sum() / 2

    wanted = np.stack(
        [put(m, 0 * a, taken(m, a, 3)) for m, a in zip(BATCH, x, strict=True)]
    )
    assert_same(jax.jit(jax.vmap(jax.grad(loss)))(x, BATCH), wanted)

    def total(x):
        return jax.lax.scan(lambda t, both: (t + loss(*both), None), 0.0, (x, BATCH))[0]

    assert_same(jax.jit(jax.grad(total))(x), wanted)


def test_index_checks_find_nothing_in_take():
    def run(x):
        return find(MASK, size=6, fill=99).take(x)

    checked = checkify.checkify(run, errors=checkify.index_checks)
    error, rows = jax.jit(checked)(numbers(8))
    error.throw()
    assert_same(rows, taken(MASK, numbers(8), 6))


# SEVERAL DEVICES


def doubled(search, mask, x):
    """The array with doubled rows."""
    kept = search(mask)
    return kept.put(x, 2 * kept.take(x))


few = functools.partial(find, size=4)
WAYS = {
    "parts": functools.partial(doubled, functools.partial(find, size=9, parts=8)),
    "vmap": jax.vmap(functools.partial(doubled, few)),
    "batch": functools.partial(doubled, jax.vmap(few)),
    "whole": functools.partial(doubled, functools.partial(find, size=70)),
}


@needs_devices
@pytest.mark.parametrize("way", WAYS)
def test_devices_send_nothing_where_the_parts_lie(way, form):
    mask = np.random.default_rng(0).integers(2, size=(16, 8), dtype=np.int8)
    x = numbers(16, 8, 16)

    @jax.jit
    def both(mask, x):
        result, pull = jax.vjp(functools.partial(WAYS[way], mask), x)
        return result, pull(result)[0]

    alone = both(mask, x)
    for kind in AxisType.Auto, AxisType.Explicit:
        sharding = sharding_of("8", P("a"), kind)
        placed = jax.device_put((mask, x), sharding)
        compiled = both.lower(*placed).compile()
        found = compiled(*placed)
        assert_same(found, alone)
        for array in found:
            assert array.sharding.is_equivalent_to(sharding, 3)
        if way != "whole":
            assert collectives(compiled.as_text()) == []


@needs_devices
def test_vmap_over_explicit_axes_of_masks_for_one_array(form):
    """Each device has the whole x, and a part of the masks and rows."""
    mesh = sharding_of("8", P("a"), AxisType.Explicit).mesh
    masks = np.tile(BATCH, (2, 1))
    x, rows = numbers(8, 16), -numbers(8, 4, 16)

    run = jax.vmap(functools.partial(there_and_back, size=4), (0, None, 0))

    def energy(x, masks, rows):
        outputs = run(masks, x, rows)
        return sum(jnp.sum(y**2) for y in outputs), outputs

    program = jax.jit(jax.grad(energy, has_aux=True))
    expected = program(x, masks, rows)
    assert_same(expected[1], of_lines(masks, [x] * 8, rows))
    with jax.set_mesh(mesh):
        placed = [jax.device_put(a, P("a")) for a in (masks, rows)]
        found = program(x, *placed)
    assert_same(found, expected)


@needs_devices
def test_an_array_whose_rows_are_divided_over_the_axis_of_the_parts():
    """The rows are divided by part. A mesh axis divides no second dimension."""
    x = numbers(16, 16)
    kept, placed = (
        jax.device_put(a, sharding_of("8", spec, AxisType.Explicit))
        for a, spec in ((find(FIVE.repeat(2), parts=8), P("a")), (x, P(None, "a")))
    )
    assert_same(kept.take(placed), kept.take(x))


@needs_devices
@pytest.mark.parametrize("size", [2, None])
def test_rows_of_an_empty_array_stay_on_its_device(size):
    device = jax.devices()[3]
    x = jax.device_put(np.zeros((0, 2)), device)
    kept = find(jax.device_put(np.zeros(0, bool), device), size=size)
    assert kept.take(x).devices() == {device}


# ERRORS


def test_wrong_arrays():
    kept = find(MASK, size=5)
    x, rows = numbers(8, 2), numbers(5, 2)
    begin = "x has sizes {7,2}; it must begin with {8}, the sizes of the array that was"
    assert_refused(TAKE, begin, kept.take, x[1:])
    assert_refused(PUT, begin, kept.put, x[1:], rows)
    assert_refused(TAKE, "x has sizes {}; it must begin with {8}", kept.take, x[0, 0])
    sizes = "rows has {4,2}, while take(x) for x of sizes {8,2} has {5,2}; both must"
    assert_refused(PUT, sizes, kept.put, x, rows[1:])
    types = "rows has INT8, while x has FLOAT32;...Write rows.astype('float32')."
    assert_refused(PUT, types, kept.put, x, rows.astype(np.int8))
    types = "rows has INT32, while x has FLOAT32;...FLOAT32 does not hold every value"
    assert_refused(PUT, types, kept.put, x, rows.astype(np.int32))
    fill = "fill_value has sizes {1}; it must be a scalar. jax.vmap gives each"
    assert_refused(TAKE, fill, kept.take, x, fill_value=x[0, :1])
    assert_refused(TAKE, "fill_value is 0.5; INT8", kept.take, MASK, fill_value=0.5)
    text = "x must be an array, not list"
    assert_refused(TAKE, text, kept.take, [1], error=TypeError)
    assert_refused(PUT, "rows must be", kept.put, x, [1], error=TypeError)
    batch = jax.vmap(functools.partial(find, size=2))(BATCH)
    assert_refused(TAKE, "x has sizes {8}; it must begin with {4,8}", batch.take, MASK)


def test_results_that_do_not_fit():
    x = numbers(1, 8)
    few = find(MASK[None], columns=1)
    text = (
        "columns=1, while the array that was searched has sizes {1,8}; write columns=2"
    )
    assert_refused(TAKE, text, few.take, x)
    described = dmljax.create_operator(DESC)(numbers(1, 2, 3))
    for found in (described, dmljax.NonzeroCoordinates(*find(MASK))):
        text = "this result does not know the sizes...Call dmljax.nonzero_coordinates"
        assert_refused(TAKE, text, found.take, x)
        assert_refused(PUT, text, found.put, x, x)


@pytest.mark.parametrize(("sizes", "rows"), [((2**31,), 8), ((2**16, 2**15), None)])
def test_indices_beyond_int32_need_x64(sizes, rows):
    """Those of elements, and those of rows."""

    def run(x):
        return find(x, size=rows).take(x)

    more = struct(np.int8, *sizes)
    assert jax.eval_shape(run, struct(np.int8, sizes[0] - 1, *sizes[1:])).ndim == 1
    assert_refused(TAKE, "need JAX's x64 mode", jax.eval_shape, run, more)
    with jax.enable_x64(True):
        assert jax.eval_shape(run, more).ndim == 1


def test_symbolic_sizes_are_compared():
    a, b = (struct(np.int8, size) for size in export.symbolic_shape("a, b"))
    run = jax.jit(lambda mask, x: find(mask).take(x))
    assert_refused(TAKE, "it must begin with {a}", export.export(run), a, b)


def test_a_derivative_of_more_than_2_to_the_32_elements():
    """The inverse index counts rows, and not elements."""

    def run(x):
        kept = find(jnp.zeros(x.shape, np.int8), size=2**16 + 1)
        return jax.grad(lambda x: kept.take(x).sum())(x)

    many = struct(np.float32, 2**16 - 1, 2**16)
    assert jax.eval_shape(run, many).shape == many.shape


def test_rows_that_xla_can_not_count():
    mask = struct(np.int8, 2**31 - 1)
    x = struct(np.int8, 2**31 - 1, 2**29)

    def run(mask, x):
        return find(mask).take(x)

    text = "sizes {2147483647,536870912}...elements; it must have fewer than 2^59"
    assert_refused(TAKE, text, jax.eval_shape, run, mask, x)
