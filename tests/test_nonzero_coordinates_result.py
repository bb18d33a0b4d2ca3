"""The result of nonzero_coordinates: a pytree that takes and puts rows."""

import copy
import operator
import pickle
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, test_util
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import dmljax
from dmljax import _nonzero_rows
from tests.checks import (
    Parameter,
    assert_refused,
    assert_same,
    lowered,
    needs_devices,
    struct,
)
from tests.collectives import collectives
from tests.meshes import sharding_of
from tests.samples import tensor
from tests.subjects.nonzero_coordinates import DESC
from tests.transforms.dense import stacked

TAKE = "NonzeroCoordinates.take"
MASK = np.array([0, 1, 0, 1, 1, 0, 0, 1], np.int8)  # with 4 ones
FIVE = np.array([1, 1, 0, 1, 1, 0, 0, 1], np.int8)  # of 8: 4 rows are too few
FLAGS = np.array([1, 0, 1, 1, 0, 1, 0, 1, 1], bool)  # of the first rows
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


def put(mask, x, rows, share=0, where=True):
    """The rows written into x in NumPy, with a share of what they replace."""
    flat = x.reshape(mask.size, *x.shape[mask.ndim :]).copy()
    at = np.flatnonzero(mask)[: len(rows)]
    flags = np.broadcast_to(where, len(rows))[: len(at)]
    at, rows = at[flags], rows[: len(at)][flags]
    flat[at] = rows + share * flat[at]
    return flat.reshape(x.shape)


def moved(mask, x, rows, value=-1):
    """What `uses` returns."""
    flags = True, FLAGS[: len(rows)]
    written = [put(mask, x, rows, share, w) for share in (0, 1) for w in flags]
    return taken(mask, x, len(rows), value), *written


@pytest.fixture(params=[2, 16], ids=["scatter", "select"])
def form(request):
    """The number of values in a row: `put` selects rows of 16 for half of `x`."""
    return request.param


def uses(kept, x, rows):
    """Rows of x, and x with other rows and plus these: all of them, and the flagged."""
    where = jnp.broadcast_to(FLAGS[: kept.valid.shape[-1]], kept.valid.shape)
    written = [
        write(x, rows, where=flags)
        for write in (kept.put, kept.add)
        for flags in (None, where)
    ]
    return kept.take(x, fill_value=-1), *written


def there_and_back(mask, x, rows, **options):
    return uses(find(mask, **options), x, rows)


def refused(text, method, *arguments, **options):
    name = f"NonzeroCoordinates.{method.__name__}"
    assert_refused(name, text, method, *arguments, **options)


# A TUPLE AND A PYTREE


def test_a_tuple_of_two():
    found = find(MASK, size=5)
    count, coordinates = found
    assert isinstance(found, tuple)
    assert count is found[0] is found.count
    assert coordinates is found[-1] is found.coordinates
    paths = [jax.tree_util.keystr(p) for p, _ in jax.tree.leaves_with_path(found)]
    assert paths == [".count", ".coordinates"]


def test_repr_is_short():
    """Of numbers, of a program, and of other leaves than arrays."""
    shown = []
    jax.jit(lambda mask: shown.append(repr(find(mask, parts=2, size=1))))(MASK)
    known = find(MASK, parts=2, size=1)
    others = jax.tree.map(lambda _: None, known), jax.tree.map(jnp.ravel, known)
    shown += map(repr, (known, *others))
    fields = (
        "count=uint32[2], coordinates=uint32[2,1,1]",
        "count=[2, 2], overflow=[True, True], coordinates=uint32[2,1,1]",
        "count=None, coordinates=None",
        "count=[2, 2], coordinates=uint32[2]",
    )
    assert shown == [f"NonzeroCoordinates({n}, sizes=(8,), parts=2)" for n in fields]
    # Faults: 8 counts are too many, or 9 are few; a donated count is read.
    for parts, text in ((8, "count=[0, 1, "), (9, "count=uint32[9]")):
        assert text in repr(find(np.resize(MASK, parts), parts=parts))
    known.count.delete()
    assert "(count=uint32[2], coordinates" in repr(known)


@pytest.mark.parametrize(
    "passed",
    [
        copy.deepcopy,
        lambda found: pickle.loads(pickle.dumps(found)),
        lambda found: found.__replace__(count=found.count),  # by copy.replace
        jax.jit(lambda found: found),
    ],
)
def test_a_result_keeps_the_sizes(passed):
    kept = find(MASK, size=3, parts=2)
    found = passed(kept)
    assert type(found) is dmljax.NonzeroCoordinates
    assert_same(found.take(numbers(8)), kept.take(numbers(8)))
    refused("it must begin with {8}", found.take, numbers(7))


def test_other_sizes_are_another_tree():
    row = MASK[None]
    results = find(row), find(row), find(row, parts=1), find(MASK)
    assert len(set(map(jax.tree.structure, results))) == 3


@pytest.mark.parametrize(("sizes", "size"), [("4", 5), ("n", 5), ("n", None)])
def test_exported_bytes(sizes, size):
    """Without `size`, a symbolic size makes a symbolic number of rows."""
    pytest.importorskip("flatbuffers")
    shape = export.symbolic_shape(f"{sizes}, 2")
    types = [struct(dtype, *shape) for dtype in (np.int8, np.float32)]

    @jax.jit
    def run(mask, x):
        kept = find(mask, size=size)
        doubled, pull = jax.vjp(lambda x: kept.put(x, 2 * kept.take(x)), x)
        return kept, doubled, pull(x)[0]

    data = export.export(run)(*types).serialize()
    mask, x = MASK.reshape(4, 2), numbers(4, 2)
    kept, *found = export.deserialize(data).call(mask, x)
    assert_same(found, [np.where(mask, 2 * x, x)] * 2)
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
        ((2, 0), (), 3, None),  # fault: only the first size is compared with 0
        ((8,), (0,), 3, None),
    ],
)
def test_rows_of_a_mask_and_back(sizes, rest, size, fill):
    """Too few rows, enough, and too many."""
    mask = np.resize(MASK[1:], sizes)
    x, rows = numbers(*sizes, *rest), -numbers(size, *rest)
    run = jax.jit(partial(there_and_back, size=size, fill=fill))
    assert_same(run(mask, x, rows), moved(mask, x, rows))


@pytest.mark.parametrize(
    ("platform", "row", "size", "gathers"),
    [
        ("cuda", 16, 4, 1),
        ("cpu", 16, 4, 1),
        ("tpu", 16, 4, 0),
        ("cuda", 15, 4, 0),
        ("cuda", 16, 3, 0),
    ],
)
def test_wide_rows_for_half_of_the_elements_are_selected(platform, row, size, gathers):
    arrays = numbers(8, row), numbers(size, row)
    text = lowered(find(MASK, size=size).put, *arrays, platform=platform)
    assert text.count('"stablehlo.gather"') == gathers


EXTREMES = {"bool": True, "int8": -128, "uint8": 255, "uint32": 2**32 - 1}
EXTREMES |= {"int32": 2**24 + 1, "bfloat16": 3, "float64": 1 / 3, "complex64": 1 + 2j}


def test_trees_of_arrays_of_every_type(form):
    """Every bit of narrow and wide rows is kept."""
    kept = find(MASK, size=5)
    with jax.enable_x64(True):
        arrays = [np.full((8, form), v, t) for t, v in EXTREMES.items()]
        x = {"a": numbers(8), "b": (None, arrays)}
        rows = jax.tree.map(lambda a: a[:5] * np.array(0, a.dtype), x)
        found = jax.jit(lambda x, rows: (kept.take(x), kept.put(x, rows)))(x, rows)
    pairs = partial(taken, MASK, size=5), partial(put, MASK)
    wanted = jax.tree.map(pairs[0], x), jax.tree.map(pairs[1], x, rows)
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    assert_same(found, wanted)
    x = {"a": numbers(8, 2), "b": (MASK, None)}
    filled = kept.take(x, fill_value={"a": np.float32(0.5), "b": (7, None)})
    assert (filled["a"][4, 0], filled["b"][0][4]) == (0.5, 7)
    assert kept.take([]) == []


@pytest.mark.parametrize("size", [0, 5])
def test_results_are_not_weak(size):
    given = jnp.full((8, 16), 2.0), jnp.full((size, 16), 3.0)
    wanted = moved(MASK, *map(np.asarray, given))
    assert_same(there_and_back(MASK, *given, size=size), wanted)


@pytest.mark.parametrize("size", [2, 6])
def test_batches_and_parts(size, form):
    """If `size` is too small, the rows of a line don't reach another line."""
    search = partial(find, size=size)
    cut = partial(search, parts=2)
    batch = BATCH.reshape(4, 4, 2)
    for mask, kept in (
        (BATCH, jax.vmap(search)(BATCH)),
        (MASK, cut(MASK)),
        (batch, jax.vmap(cut)(batch)),
    ):
        x, rows = numbers(*mask.shape, form), -numbers(*kept.valid.shape, form)
        n = kept.count.size
        lines = mask.reshape(n, -1), x.reshape(n, -1, form), rows.reshape(n, size, form)
        pairs = zip(stacked(map(moved, *lines)), (rows, x, x, x, x), strict=True)
        wanted = [found.reshape(like.shape) for found, like in pairs]
        assert_same(uses(kept, x, rows), wanted)
        counts = (lines[0] != 0).sum(1, dtype=np.int32).reshape(kept.count.shape)
        assert_same(kept.overflow, counts > size)
        assert_same(kept.dropped, np.maximum(counts - size, 0))
        assert_same(kept.valid, np.arange(size) < counts[..., None])
        if mask is BATCH:
            run = jax.vmap(partial(there_and_back, size=size))
            assert_same(run(mask, x, rows), wanted)


@pytest.mark.parametrize("strides", [None, (9, 2)])
def test_overflow_of_a_descriptor(strides):
    """Its outputs have a row for each element, and with strides they are flat."""
    rows = tensor("UINT32", 6, 1, strides=strides)
    desc = dmljax.NonzeroCoordinatesDesc(tensor("INT32", 6), tensor("UINT32", 1), rows)
    described = dmljax.create_operator(desc)
    found = jax.jit(described)(np.arange(6, dtype=np.int32))
    assert (found.overflow.tolist(), found.dropped.tolist()) == ([False], [0])


def test_overflow_of_a_scalar_without_a_size_and_of_parts():
    scalar = find(jnp.float32(3), size=0)
    assert (int(scalar.count), scalar.coordinates.shape) == (1, (0, 1))
    assert (bool(scalar.overflow), int(scalar.dropped)) == (True, 1)
    of_scalars = jax.vmap(find)(MASK).take(x := numbers(8, 2))  # a row for each scalar
    assert_same(of_scalars, (x * (MASK[:, None] != 0))[:, None])
    many = find(0 * MASK + 1, parts=2, size=3)
    assert (many.overflow.tolist(), many.dropped.tolist()) == ([True, True], [1, 1])
    # A planted fault: every result without sizes is taken for a descriptor's.
    made = dmljax.NonzeroCoordinates(*find(0 * MASK + 1, size=6))
    assert (bool(made.overflow), int(made.dropped)) == (True, 2)
    most = find(MASK, size=5)._replace(count=np.uint32(2**32 - 1))
    assert_same(most.dropped, np.int32(2**31 - 1))
    with jax.enable_x64(True):
        assert_same(most.dropped, np.int64(2**32 - 6))


# TRANSFORMATIONS


@pytest.mark.parametrize("size", [0, 4, 6])
def test_derivatives(size, form):
    """JAX compares derivatives of both orders with differences, in both modes."""
    kept = find(FIVE, size=size, fill=None)

    @jax.jit
    def squares(x, rows, value):
        return kept.take(x**2, fill_value=value**2), uses(kept, x**2, rows**2)

    with jax.enable_x64(True):  # differences of float32 are too coarse
        x, rows = (numbers(n, form).astype(float) / 64 for n in (8, size))
        test_util.check_grads(squares, (x, rows, 0.5), order=2)


def test_a_second_call_sends_nothing_to_the_device():
    kept, x = find(jnp.asarray(MASK), size=6), jnp.asarray(numbers(8))

    def run():
        rows = kept.take(x)
        written = kept.put(x, rows, where=kept.valid), kept.add(x, rows)
        return rows, written, kept.valid, kept.dropped, kept.overflow

    wanted = run()
    with jax.transfer_guard("disallow"):
        found = run()
    assert_same(found, wanted)


# SEVERAL DEVICES


def doubled(search, mask, x):
    """The array with doubled rows, and some of these added."""
    kept = search(mask)
    rows = 2 * kept.take(x)
    where = kept.take(x[..., 0] % 3 > 0)
    return kept.add(kept.put(x, rows), rows, where=where)


few = partial(find, size=4)
WAYS = {
    "parts": partial(doubled, partial(find, size=9, parts=8)),
    "vmap": jax.vmap(partial(doubled, few)),
    "batch": partial(doubled, jax.vmap(few)),
    "whole": partial(doubled, partial(find, size=70)),
}


@needs_devices
@pytest.mark.parametrize("way", WAYS)
def test_devices_send_nothing_where_the_parts_lie(way, form):
    mask = np.random.default_rng(0).integers(2, size=(16, 8), dtype=np.int8)
    x = numbers(16, 8, form)

    @jax.jit
    def both(mask, x):
        result, pull = jax.vjp(partial(WAYS[way], mask), x)
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
    x, rows = numbers(8, form), -numbers(8, 4, form)

    run = jax.vmap(partial(there_and_back, size=4), (0, None, 0))

    @jax.jit
    def program(x, masks, rows):
        outputs, pull = jax.vjp(lambda x: run(masks, x, rows), x)
        return outputs, pull(outputs)

    expected = program(x, masks, rows)
    with jax.set_mesh(mesh):
        placed = [jax.device_put(a, P("a")) for a in (masks, rows)]
        found = program(x, *placed)
    assert_same(found, expected)


@needs_devices
@pytest.mark.parametrize(
    ("parts", "of_mask", "of_x", "wanted"),
    [
        # The rows are divided by part. A mesh axis divides no second dimension.
        (4, P("a"), P(None, "a"), P("a", None, None)),
        (4, P("a"), P(None, "b"), P("a", None, "b")),
        (4, P(("a", "b")), P(), P(("a", "b"), None, None)),
        (4, P("a"), P("b"), P("b", None, None)),
        # The devices can't share the parts, which are whole.
        (1, P(), P("a", "b"), P(None, None, "b")),
        (2, P(), P(("a", "b")), P(None, None, None)),
        (None, P("a"), P("a", "b"), P(None, "b")),
    ],
)
def test_rows_are_divided_by_part_and_as_the_array(parts, of_mask, of_x, wanted):
    @jax.jit
    def run(mask, x):
        kept = find(mask, parts=parts, size=3)
        rows = kept.take(x)
        return rows, kept.valid, kept.dropped, kept.put(x, rows)

    inputs = FIVE.repeat(2), numbers(16, 16)
    shardings = [sharding_of("2x2", p, AxisType.Explicit) for p in (of_mask, of_x)]
    found = run(*map(jax.device_put, inputs, shardings))
    assert_same(found, run(*inputs))
    assert jax.typeof(found[0]).sharding.spec == wanted
    # A planted fault: only the first dimension of the written array stays divided.
    assert found[-1].sharding.is_equivalent_to(shardings[1], 2)


@needs_devices
def test_flags_over_explicit_axes():
    """The flags alone are divided."""
    sharding = sharding_of("2x2", P("a"), AxisType.Explicit)
    kept, x, rows = find(MASK, size=6), numbers(8, 2), -numbers(6, 2)
    where = jax.device_put(FLAGS[:6], sharding)
    assert_same(kept.put(x, rows, where=where), put(MASK, x, rows, 0, FLAGS[:6]))


@needs_devices
def test_parts_over_two_mesh_axes():
    sharding = sharding_of("2x2", P(("a", "b")), AxisType.Explicit)
    mask = jax.device_put(np.ones(12), sharding)
    text = "parts is 6; it must be a multiple of 4, the number of devices"
    assert_refused("NONZERO_COORDINATES", text, find, mask, parts=6)


@needs_devices
@pytest.mark.parametrize("axis", ["a", None])
def test_gradients_inside_of_a_shard_map_over_another_axis(form, axis):
    """If it is not compiled, and no explicit axis is left, reads keep residuals."""
    x = numbers(2, 8, form)
    sharding = sharding_of("2x2", P("b", axis), AxisType.Explicit)

    def loss(x):
        kept = find(MASK, size=5)
        put = kept.put(x, 2 * kept.take(x))
        packed = dmljax.numpy.compress(jnp.asarray(MASK), x, 0, size=5)
        return (kept.add(put, packed) ** 2).sum() / 2

    gradient = jax.grad(lambda x: loss(x[0]))
    with jax.set_mesh(sharding.mesh):
        mapped = jax.shard_map(
            gradient, in_specs=P("b"), out_specs=P("b"), axis_names={"b"}
        )
        found = (jax.jit(mapped) if axis else mapped)(jax.device_put(x, sharding))
    assert_same(found, np.where(MASK[:, None], 9 * x, x))


# ERRORS


def test_wrong_arrays():
    kept = find(MASK, size=5)
    batch = jax.vmap(partial(find, size=2))(BATCH)
    take, put, add = kept.take, kept.put, kept.add
    x, rows = numbers(8, 2), numbers(5, 2)
    for text, method, *arrays in (
        ("x has sizes {7,2}; it must begin with {8}, the sizes of the", take, x[1:]),
        ("x has sizes {}; it must begin with {8}", take, x[0, 0]),
        ("layers come first, map the method over them: jax.vmap(", take, x[None]),
        ("{8}; it must begin with {4,8}...The first, {4}, are", batch.take, MASK),
        ("rows has {4,2}, while take(x) for x of sizes {8,2}", put, x, rows[1:]),
        ("For one value, write jnp.where(mask, x + rows, x).", add, x, x[0, 0]),
        ("For one value, write jnp.where(mask, rows, x).", put, x, x[0, 0]),
        ("INT8, while x has...Write rows.astype('f", put, x, rows.astype(np.int8)),
    ):
        refused(text, method, *arrays)
    fill = "fill_value has sizes {1}; it must be a scalar. jax.vmap gives each"
    refused(fill, take, x, fill_value=x[0, :1])
    wrong = partial(refused, error=TypeError)
    wrong("x must be a number or an array, not NoneType", take, None)
    wrong("rows['a'] must be a number or an array, not str", put, {"a": x}, {"a": "a"})
    wrong("x has bools, which have no sum. Write x.as", add, MASK > 0, MASK[:5] > 0)


def test_wrong_flags():
    kept, parts = find(MASK, size=5), find(MASK, size=5, parts=2)
    x = numbers(8)
    for found, where, text in (
        (kept, FLAGS[:4], "where has sizes {4}; it must have {5}, one flag per row"),
        (kept, MASK > 0, "For flags of the elements of x, write where=kept.take("),
        (kept, np.True_, "sizes {}...Write jnp.broadcast_to(where, kept.valid.sha"),
        (parts, FLAGS[:5], "{5}; it must have {2,5}...Write jnp.broadcast_to(w"),
    ):
        refused(text, found.put, x, found.take(x), where=where)
    for where, text in (
        # A planted fault: unsigned flags are taken.
        (MASK[:5].view(np.uint8), "where has data type UINT8; it must be bool. Write"),
        (list(FLAGS[:5]), "where must be a number or an array, not list"),
    ):
        refused(text, kept.put, x, x[:5], where=where, error=TypeError)


def test_wrong_leaves():
    """An error names the leaf."""
    kept = find(MASK, size=5)
    x = {"a": numbers(8), "b": MASK}
    short = {"a": x["a"][:5], "b": MASK[:4]}
    refused("x['a'] has sizes {5}; it must begin with {8}", kept.take, short)
    refused("rows['b'] has {4}, while take(x['b'])", kept.put, x, short)
    tree = "rows is a tree PyTreeDef(*), while x is PyTreeDef({'a': *, 'b': *})"
    refused(tree, kept.add, x, MASK)
    refused("fill_value (of x['b']) is 0.5; INT8", kept.take, x, fill_value=0.5)
    tree = "it must have the same structure or be a scalar"
    refused(tree, kept.take, x, fill_value=[0])


class Node(Parameter):
    """An array in an object that is a pytree, too, as flax's nnx.Param is."""


jax.tree_util.register_pytree_node(
    Node, lambda node: ((node.value,), None), lambda _, leaves: Node(*leaves)
)


def test_a_parameter_is_an_array():
    """Noticed: trees without `unwrap_array`, which would return a parameter."""
    kept, x = find(MASK, size=5), numbers(8)
    for tree in Node(x), {"a": Node(x)}:
        assert_same(kept.take(tree, fill_value=Node(x[0])), taken(MASK, x, 5, 1))
        assert_same(
            kept.put(tree, jax.tree.map(lambda x: x[:5], tree)), put(MASK, x, x[:5])
        )


def test_the_read_of_narrow_rows_past_the_count_is_0_with_a_derivative():
    """Noticed: `_read_jvp` with mode "clip" in place of "fill"."""
    read = partial(jax.jvp, _nonzero_rows._read)
    valid, index = np.array([True, False]), (np.array([1, 0]),)
    arguments = jax.tree.map(jnp.asarray, (numbers(3), valid, index))
    zeros = jax.tree.map(lambda a: np.zeros(a.shape, jax.dtypes.float0), arguments[1:])
    values, tangents = read(arguments, (arguments[0], *zeros))
    assert values.tolist() == tangents.tolist() == [2, 0]


def test_results_that_do_not_fit():
    whole = find(MASK)
    described = dmljax.create_operator(DESC)(numbers(1, 2, 3))
    for text, *results in (
        (
            "columns=1, while...sizes {1,8}; write columns=2",
            find(MASK[None], columns=1),
        ),
        (
            "it was made of two arrays, by hand or by a library",
            whole._make(whole)._replace(coordinates=whole.coordinates),
            jax.jit(lambda found: found)(type(whole)(*whole)),
        ),
        (
            "a descriptor returned this...Call dmljax.nonzero_coordinates",
            described,
            # Fault: replaced coordinates change why such a result can't take rows.
            described._replace(coordinates=described.coordinates[:1]),
        ),
        (
            "were replaced...write x[tuple(jnp.moveaxis(coordinates, -1, 0))]",
            whole._replace(coordinates=[[1], [1], [0]]),
        ),
        (
            "sizes {1}...they are no whole result of parts=2",
            jax.tree.map(lambda a: a[:1], find(MASK, parts=2)),
        ),
        (
            "sizes {2}...they are no whole result. Use",
            whole._replace(count=whole.coordinates[:2, 0]),
        ),
    ):
        for found in results:
            refused(text, found.take, MASK)
            refused(text, found.put, MASK, MASK)
    restored = jax.tree.unflatten(jax.tree.structure(whole), tuple(whole))
    assert_same(restored.take(MASK), whole.take(MASK))
    valid = operator.attrgetter("valid")
    assert_refused("NonzeroCoordinates.valid", "a descriptor", valid, described)


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


@pytest.mark.parametrize("width", [1, 16])
def test_a_derivative_of_more_than_2_to_the_32_elements(width):
    """The inverse index counts rows, and not elements."""

    def total(x):
        return find(jnp.zeros(x.shape[:2], np.int8), size=2**16 + 1).take(x).sum()

    many = struct(np.float32, 2**16 - 1, 2**16, width)
    assert jax.eval_shape(jax.grad(total), many).shape == many.shape
