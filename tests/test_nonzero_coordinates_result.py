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
from tests.checks import assert_refused, struct
from tests.meshes import each_kind, sharding_of
from tests.subjects.nonzero_coordinates import DESC

TAKE, PUT = "NonzeroCoordinates.take", "NonzeroCoordinates.put"
MASK = np.array([0, 1, 0, 1, 1, 0, 0, 1], np.int8)  # with 4 ones
BATCH = np.stack([MASK, MASK[::-1], 0 * MASK, 0 * MASK + 1])
find = dmljax.nonzero_coordinates


def numbers(*shape, dtype="float32"):
    """Different values, none of them 0."""
    return (np.arange(np.prod(shape)) + 1).reshape(shape).astype(dtype)


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


def there_and_back(mask, x, rows, value=-1, **options):
    """The rows of x, and x with other rows."""
    kept = find(mask, **options)
    return kept.take(x, fill_value=value), kept.put(x, rows)


def assert_equal(found, expected):
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    types = [[x.dtype for x in jax.tree.leaves(t)] for t in (found, expected)]
    assert types[0] == types[1]


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
    assert_equal(found.take(numbers(8)), taken(MASK, numbers(8), 5))
    assert_refused(TAKE, "it must begin with {8}", found.take, numbers(7))


def test_other_sizes_are_another_tree():
    trees = [
        jax.tree.structure(find(MASK.reshape(s), columns=2)) for s in ((1, 8),) * 2
    ]
    assert trees[0] == trees[1]
    parts = jax.tree.structure(find(MASK.reshape(1, 8), columns=2, parts=1))
    assert len({trees[0], parts, jax.tree.structure(find(MASK))}) == 3


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
    assert_equal(doubled, np.where(mask, 2 * x, x))
    assert_equal(gradient, mask.astype(x.dtype))
    assert_equal(kept.take(x), taken(mask, x, size or 8))


# VALUES

# Sizes of the mask and of its rows, and the number of rows: too few, enough, too many.
SHAPES = [
    ((8,), (), 3),
    ((8,), (3,), 6),
    ((8,), (2, 3), 9),
    ((8,), (2,), 4),
    ((2, 4), (), 6),
    ((2, 2, 2), (3,), 2),
    ((), (3,), 2),
    ((), (), 1),
    ((0,), (2,), 3),
    ((2, 0), (2,), 3),
    ((8,), (0,), 3),
    ((8,), (2,), 0),
    ((0,), (), 0),
]


FILLS = [(*SHAPES[1], fill) for fill in (0, 3, 2**32 - 1)]


@pytest.mark.parametrize(
    ("sizes", "rest", "size", "fill"), [*((*shape, None) for shape in SHAPES), *FILLS]
)
def test_rows_of_a_mask_and_back(sizes, rest, size, fill):
    mask = np.resize(MASK[1:], sizes)
    x, rows = numbers(*sizes, *rest), -numbers(size, *rest)
    run = jax.jit(functools.partial(there_and_back, size=size, fill=fill))
    wanted = taken(mask, x, size, -1), put(mask, x, rows)
    assert_equal(run(mask, x, rows), wanted)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "bfloat16", "complex64"])
def test_types(dtype):
    x = numbers(8, 2).astype(dtype)
    rows = jnp.zeros((5, 2), dtype)
    value = dtype == "bool"
    kept = find(MASK, size=5, fill=None)
    assert_equal(kept.take(x, fill_value=value), taken(MASK, x, 5, value))
    assert_equal(kept.put(x, rows), put(MASK, x, np.asarray(rows)))


@pytest.mark.parametrize("size", [2, 4, 6])
def test_a_batch_with_and_without_vmap(size):
    """If `size` is too small, the rows of a line don't reach another line."""
    x, rows = numbers(4, 8, 3), -numbers(4, size, 3)
    run = functools.partial(there_and_back, size=size)
    wanted = [
        (taken(m, a, size, -1), put(m, a, r))
        for m, a, r in zip(BATCH, x, rows, strict=True)
    ]
    wanted = tuple(map(np.stack, zip(*wanted, strict=True)))
    assert_equal(jax.vmap(run)(BATCH, x, rows), wanted)
    kept = jax.vmap(functools.partial(find, size=size))(BATCH)
    assert_equal((kept.take(x, fill_value=-1), kept.put(x, rows)), wanted)
    assert_equal(kept.overflow, (BATCH != 0).sum(1) > size)


def test_one_array_for_a_batch_of_masks_and_one_mask_for_a_batch_of_arrays():
    x = numbers(8, 3)
    found = jax.vmap(lambda mask: find(mask, size=3).take(x))(BATCH)
    assert_equal(found, np.stack([taken(mask, x, 3) for mask in BATCH]))
    kept = find(MASK, size=3)
    found = jax.vmap(kept.take, in_axes=-1, out_axes=-1)(x)
    assert_equal(found, taken(MASK, x, 3))


def test_parts():
    x, rows = numbers(8, 3), -numbers(2, 3, 3)
    kept = find(MASK, parts=2, size=3)
    halves = list(zip(np.split(MASK, 2), np.split(x, 2), rows, strict=True))
    assert_equal(kept.take(x), np.stack([taken(m, a, 3) for m, a, _ in halves]))
    assert_equal(kept.put(x, rows), np.concatenate([put(*half) for half in halves]))
    batch = jax.vmap(functools.partial(find, parts=2, size=3))(BATCH)
    x = numbers(4, 8, 3)
    wanted = [
        taken(mask, part, 3)
        for mask, part in zip(BATCH.reshape(8, 4), x.reshape(8, 4, 3), strict=True)
    ]
    assert_equal(batch.take(x), np.reshape(wanted, (4, 2, 3, 3)))


@pytest.mark.parametrize("strides", [None, (9, 2)])
def test_overflow_of_a_descriptor(strides):
    """Its outputs have a row for each element, and with strides they are flat."""
    x = dmljax.TensorDesc(dmljax.DataType.INT32, (6,))
    count = dmljax.TensorDesc(dmljax.DataType.UINT32, (1,))
    rows = dmljax.TensorDesc(dmljax.DataType.UINT32, (6, 1), strides)
    run = dmljax.create_operator(dmljax.NonzeroCoordinatesDesc(x, count, rows))
    for find in (run, jax.jit(run)):
        assert find(np.arange(6, dtype=np.int32)).overflow.tolist() == [False]


def test_overflow_without_a_size_and_of_parts():
    assert not find(MASK).overflow
    assert find(MASK, parts=2, size=2).overflow.tolist() == [False, False]
    assert find(0 * MASK + 1, parts=2, size=3).overflow.tolist() == [True, True]


# TRANSFORMATIONS


@pytest.mark.parametrize("size", [3, 6])
def test_derivatives(size):
    """Both functions are linear: each is its own derivative, and they are adjoint."""
    x, rows = numbers(8, 2), numbers(size, 2)
    zeros = np.zeros_like(x)
    kept = find(MASK, size=size, fill=None)
    within = np.arange(size)[:, None] < min(size, 4)

    @jax.jit
    def run(x, rows):
        forward = [
            jax.jvp(kept.take, [x], [-x])[1],
            jax.jvp(kept.put, [x, rows], [-x, 2 * rows])[1],
        ]
        _, pull_take = jax.vjp(lambda x, v: kept.take(x, fill_value=v), x, 1.0)
        _, pull_put = jax.vjp(kept.put, x, rows)
        return forward, pull_take(rows), pull_put(x)

    forward, of_take, of_put = run(x, rows)
    assert_equal(forward, [taken(MASK, -x, size), put(MASK, -x, 2 * rows)])
    past = np.where(within, 0, rows).sum(dtype=np.float32)
    assert_equal(of_take, (put(MASK, zeros, rows), past))
    assert_equal(of_put, (put(MASK, x, 0 * rows), taken(MASK, x, size)))


def test_derivatives_of_second_order():
    x, tangent = numbers(8, 2) / 8, numbers(8, 2)

    def energy(x):
        kept = find(MASK, size=3)
        return (kept.put(x, kept.take(x) ** 2) ** 2).sum()

    def dense(x):
        on = jnp.asarray(MASK[:, None].astype(bool) & (np.arange(8) < 7)[:, None])
        return (jnp.where(on, x**2, x) ** 2).sum()

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
    assert_equal(jax.jit(jax.vmap(jax.grad(loss)))(x, BATCH), wanted)

    def total(x):
        return jax.lax.scan(lambda t, both: (t + loss(*both), None), 0.0, (x, BATCH))[0]

    assert_equal(jax.jit(jax.grad(total))(x), wanted)


def test_index_checks_find_nothing_in_take():
    def run(x):
        return find(MASK, size=6, fill=99).take(x)

    error, rows = checkify.checkify(run, errors=checkify.index_checks)(numbers(8))
    error.throw()
    assert_equal(rows, taken(MASK, numbers(8), 6))


# SEVERAL DEVICES


@pytest.mark.skipif(jax.device_count() < 8, reason="there are few devices")
@each_kind
@pytest.mark.parametrize("way", ["parts", "vmap", "batch", "whole"])
def test_devices_send_nothing_where_the_parts_lie(kind, way):
    sharding = sharding_of("8", P("a"), kind)
    random = np.random.default_rng(0)
    mask = random.integers(2, size=(16, 8)).astype(np.int8)
    x = numbers(16, 8, 4)
    size = {"parts": 5, "vmap": 3, "batch": 3, "whole": 40}[way]

    def double(kept, x):
        return kept.put(x, 2 * kept.take(x))

    def run(mask, x):
        def one(mask, x):
            return double(find(mask, size=size), x)

        if way == "vmap":
            return jax.vmap(one)(mask, x)
        if way == "batch":
            return double(jax.vmap(functools.partial(find, size=size))(mask), x)
        parts = 8 if way == "parts" else None
        return double(find(mask, size=size, parts=parts), x)

    def both(mask, x):
        result, pull = jax.vjp(functools.partial(run, mask), x)
        return result, pull(result)[0]

    alone = jax.jit(both)(mask, x)
    placed = [jax.device_put(a, sharding) for a in (mask, x)]
    compiled = jax.jit(both).lower(*placed).compile()
    found = compiled(*placed)
    assert_equal(found, alone)
    for array in found:
        assert array.sharding.is_equivalent_to(sharding, 3)
    if way != "whole":
        assert collectives(compiled.as_text()) == []


@pytest.mark.skipif(jax.device_count() < 8, reason="there are few devices")
def test_vmap_over_explicit_axes_of_masks_for_one_array():
    """Each device has the whole x, and a part of the masks and rows."""
    mesh = sharding_of("8", P("a"), AxisType.Explicit).mesh
    masks = np.tile(BATCH, (2, 1))
    x, rows = numbers(8, 3), -numbers(8, 3, 3)

    def run(x, masks, rows):
        def one(mask, rows):
            return there_and_back(mask, x, rows, size=3)

        return jax.vmap(one)(masks, rows)

    def total(x, *others):
        one, two = run(x, *others)
        return jnp.sin(one).sum() + jnp.sin(two).sum()

    expected = run(x, masks, rows), jax.grad(total)(x, masks, rows)
    with jax.set_mesh(mesh):
        placed = [jax.device_put(a, P("a")) for a in (masks, rows)]
        found = jax.jit(run)(x, *placed), jax.jit(jax.grad(total))(x, *placed)
    assert_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)


@pytest.mark.skipif(jax.device_count() < 8, reason="there are few devices")
@pytest.mark.parametrize("size", [2, None])
def test_rows_of_an_empty_array_stay_on_its_device(size):
    device = jax.devices()[3]
    x = jax.device_put(jnp.zeros((0, 2)), device)
    kept = find(jax.device_put(jnp.zeros(0, bool), device), size=size)
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
    fill = "fill_value has sizes {2}; it must be a scalar"
    assert_refused(TAKE, fill, kept.take, x, fill_value=x[0])
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
    made = dmljax.NonzeroCoordinates(*find(MASK))
    for found in (described, made):
        text = "this result does not know the sizes...Call dmljax.nonzero_coordinates"
        assert_refused(TAKE, text, found.take, x)
        assert_refused(PUT, text, found.put, x, x)


def test_indices_beyond_int32_need_x64():
    kept = jax.eval_shape(functools.partial(find, size=8), MASK)
    assert kept.coordinates.shape == (8, 1)

    def run(x):
        return find(x, size=8).take(x)

    largest, more = (struct(np.int8, n) for n in (2**31 - 1, 2**31))
    assert jax.eval_shape(run, largest).shape == (8,)
    assert_refused(TAKE, "need JAX's x64 mode", jax.eval_shape, run, more)
    with jax.enable_x64(True):
        assert jax.eval_shape(run, more).shape == (8,)


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
