"""The result of nonzero_coordinates: a pytree that takes and puts rows."""

import copy
import math
import operator
import pickle
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import dmljax
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

TAKE = "NonzeroCoordinates.take"
MASK = np.array([0, 1, 0, 1, 1, 0, 0, 1], np.int8)  # with 4 ones
FIVE = np.array([1, 1, 0, 1, 1, 0, 0, 1], np.int8)  # of 8: 4 rows are too few
FLAGS = np.resize([True, False, True, True, False], 70)  # of rows
BATCH = np.stack([MASK, MASK[::-1], 0 * MASK, 0 * MASK + 1])
find = dmljax.nonzero_coordinates


def numbers(*shape):
    """Different values, none of them 0."""
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


def narrow_and_wide(*shape):
    """Two kinds of rows: `put` selects rows of 16 for half of `x`."""
    return [numbers(*shape, width) for width in (2, 16)]


def moved(mask, x, rows, value=-1):
    """What `uses` returns, in NumPy. `rows` begins with the batch and the parts."""
    row = x.shape[mask.ndim :]
    *lines, size = rows.shape[: rows.ndim - len(row)]
    found = mask.reshape(math.prod(lines), -1) != 0
    slots = found.cumsum(1) - 1
    at = np.nonzero(found & (slots < size))  # line and element
    to = at[0], slots[at]  # line and row
    lines = x.reshape(*found.shape, *row), rows.reshape(len(found), size, *row)
    put, given, add, taken = map(np.copy, lines * 2)
    taken[:] = value
    taken[to] = put[at]
    put[at] = given[to]
    given[:, ~FLAGS[:size]] = 0
    add[at] += given[to]
    return taken.reshape(rows.shape), put.reshape(x.shape), add.reshape(x.shape)


def moved_each(mask, x, rows, **options):
    """The same for lists of arrays."""
    each = map(partial(moved, mask, **options), x, rows)
    return [*map(list, zip(*each, strict=True))]


def uses(kept, x, rows, value=-1):
    """Rows of x, x with other rows, and x plus the rows with a flag."""
    where = jnp.broadcast_to(FLAGS[: kept.valid.shape[-1]], kept.valid.shape)
    added = kept.add(x, rows, where=where)
    return kept.take(x, fill_value=value), kept.put(x, rows), added


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
    calls = (find, row), (find, row), (partial(find, parts=1), row), (find, MASK)
    results = [jax.eval_shape(*call) for call in calls]
    assert len(set(map(jax.tree.structure, results))) == 3


def test_exported_bytes():
    """Without `size`, a symbolic size makes a symbolic number of rows."""
    pytest.importorskip("flatbuffers")
    shape = export.symbolic_shape("n, 2")
    types = [struct(dtype, *shape) for dtype in (np.int8, np.float32)]

    def run(mask, x, size):
        kept = find(mask, size=size)
        doubled, pull = jax.vjp(lambda x: kept.put(x, 2 * kept.take(x)), x)
        return kept, doubled, pull(x)[0]

    both = jax.jit(lambda *given: [run(*given, size) for size in (5, None)])
    data = export.export(both)(*types).serialize()
    mask, x = MASK.reshape(4, 2), numbers(4, 2)
    for kept, *found in export.deserialize(data).call(mask, x):
        assert_same(found, [np.where(mask, 2 * x, x)] * 2)
        assert kept.take(x).tolist()[:5] == [*x[mask > 0], 0]


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


def test_trees_of_arrays_of_every_type():
    """Every bit of narrow and wide rows is kept."""
    kept = find(MASK, size=5)
    with jax.enable_x64(True):
        x = [np.full((8, n), v, t) for t, v in EXTREMES.items() for n in (2, 16)]
        rows = [np.zeros_like(a[:5]) for a in x]
        found = jax.jit(lambda x, rows: (kept.take(x), kept.put(x, rows)))(x, rows)
    taken, put, _ = moved_each(MASK, x, rows, value=0)
    assert_same(found, (taken, put))
    x = {"a": numbers(8), "b": (MASK, None)}
    filled = kept.take(x, fill_value={"a": np.float32(0.5), "b": (7, None)})
    assert jax.tree.structure(filled) == jax.tree.structure(x)
    assert [rows.tolist()[4] for rows in jax.tree.leaves(filled)] == [0.5, 7]
    assert kept.take([]) == []


def test_results_are_not_weak():
    given = [jax.ShapeDtypeStruct((n, 16), "f", weak_type=True) for n in (8, 5)]
    found = jax.eval_shape(partial(there_and_back, size=5), MASK, *given)
    assert not any(array.weak_type for array in found)


def test_overflow_of_a_descriptor():
    """Its outputs have a row for each element, and with strides they are flat."""
    rows = tensor("UINT32", 6, 1, strides=(9, 2))
    desc = dmljax.NonzeroCoordinatesDesc(tensor("INT32", 6), tensor("UINT32", 1), rows)
    found = jax.jit(dmljax.create_operator(desc))(np.arange(6, dtype=np.int32))
    assert (found.overflow.tolist(), found.dropped.tolist()) == ([False], [0])


def test_overflow_of_a_scalar_without_a_size_and_of_parts():
    scalar = find(jnp.float32(3), size=0)
    assert (int(scalar.count), scalar.coordinates.shape) == (1, (0, 1))
    assert (bool(scalar.overflow), int(scalar.dropped)) == (True, 1)
    of_scalars = jax.vmap(find)(MASK).take(x := numbers(8, 2))  # a row for each scalar
    assert_same(of_scalars, (x * (MASK[:, None] != 0))[:, None])
    many = find(np.arange(8) > 3, parts=2, size=3)
    assert many.valid.tolist() == [[False] * 3, [True] * 3]
    assert (many.overflow.tolist(), many.dropped.tolist()) == ([False, True], [0, 1])
    # A planted fault: every result without sizes is taken for a descriptor's.
    made = dmljax.NonzeroCoordinates(*find(0 * MASK + 1, size=6))
    assert (bool(made.overflow), int(made.dropped)) == (True, 2)
    most = find(MASK, size=5)._replace(count=np.uint32(2**32 - 1))
    assert_same(most.dropped, np.int32(2**31 - 1))
    with jax.enable_x64(True):
        assert_same(most.dropped, np.int64(2**32 - 6))


# TRANSFORMATIONS


def dot(one, other):
    """The sum of the products of all elements of two trees."""
    pairs = zip(*map(jax.tree.leaves, (one, other)), strict=True)
    return sum((a * b).sum() for a, b in pairs)


@pytest.mark.parametrize("size", [0, 4, 6])
def test_derivatives(size):
    """The slopes of a square, of both orders, in both modes: the uses are linear."""
    kept = find(FIVE, size=size, fill=None)
    at = [narrow_and_wide(8), narrow_and_wide(size), 1]
    at = jax.tree.map(np.float64, at)  # which holds all sums
    to = jax.tree.map(lambda a: 7 - a * a % 13, at)
    twice = jax.tree.map(lambda a: 2 * a, to)

    def energy(at):
        outputs = uses(kept, *jax.tree.map(jnp.square, at))
        return dot(outputs, outputs)

    def moved_product(*factors):
        x, rows, value = jax.tree.map(np.multiply, *factors)
        return moved_each(FIVE, x, rows, value=value)

    def forward(function):
        return lambda at: jax.jvp(function, [at], [to])[1]

    def reverse(function):
        return lambda at: dot(to, jax.grad(function)(at))

    slopes = [forward(energy), reverse(energy)]
    slopes += [mode(slope) for mode in (forward, reverse) for slope in slopes]
    with jax.enable_x64(True):
        found = jax.jit(lambda at: [slope(at) for slope in slopes])(at)
    outputs, first, second = map(moved_product, (at, at, to), (at, twice, twice))
    first, second = dot(outputs, first), dot(first, first) + dot(outputs, second)
    assert jax.device_get(found) == [2 * first] * 2 + [2 * second] * 4


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


# BATCHES, PARTS AND DEVICES


def doubled(search, mask, x):
    """The uses of x with its own rows, doubled."""
    kept = search(mask)
    return uses(kept, x, [2 * rows for rows in kept.take(x)])


def with_gradient(function, mask, x):
    """The outputs, and the gradient of half of the sum of their squares."""
    outputs, pull = jax.vjp(partial(function, mask), x)
    return outputs, *pull(outputs)


def assert_doubled(found, mask, x, *sizes):
    """Compares what `with_gradient` returns. `sizes` are the sizes of the rows."""
    each = [np.broadcast_to(a, (*mask.shape, a.shape[-1])) for a in x]
    rows = [np.zeros((*sizes, a.shape[-1]), a.dtype) for a in x]
    taken, *_ = moved_each(mask, each, rows, value=0)
    rows = [2 * rows for rows in taken]
    assert_same(found[0], moved_each(mask, each, rows))
    # With fill 0 the function is linear. float64 holds the sums.
    linear = moved_each(mask, each, rows, value=0)
    outputs, gradient, x = jax.tree.map(np.float64, (*found, x))
    assert dot(gradient, x) == dot(outputs, linear)


# The sizes of the rows, and the function.
WAYS = {
    "parts": (8, 9, partial(doubled, partial(find, size=9, parts=8))),
    "vmap": (16, 3, jax.vmap(partial(doubled, partial(find, size=3)))),
    "batch": (16, 2, 2, partial(doubled, jax.vmap(partial(find, size=2, parts=2)))),
    "whole": (70, partial(doubled, partial(find, size=70))),
}


@pytest.mark.parametrize(
    ("way", "kind"),
    [
        ("parts", AxisType.Auto),
        ("batch", AxisType.Auto),
        *((way, AxisType.Explicit) for way in WAYS),
    ],
)
def test_parts_send_nothing_to_one_another(way, kind):
    """Neither their devices, nor the rows of parts that have too few."""
    mask = np.random.default_rng(0).integers(2, size=(16, 8), dtype=np.int8)
    x = narrow_and_wide(16, 8)
    *sizes, function = WAYS[way]
    mesh = "8" if jax.device_count() >= 8 else "1"
    sharding = sharding_of(mesh, P("a"), kind)
    placed = jax.device_put((mask, x), sharding)
    program = jax.jit(partial(with_gradient, function)).lower(*placed).compile()
    found = program(*placed)
    assert_doubled(found, mask, x, *sizes)
    (_, *written), gradient = found
    for array in jax.tree.leaves((written, gradient)):
        assert array.sharding.is_equivalent_to(sharding, 3)
    if way != "whole":
        assert collectives(program.as_text()) == []


@needs_devices
def test_vmap_over_explicit_axes_of_masks_for_one_array():
    """Each device has the whole x, and a part of the masks."""
    sharding = sharding_of("8", P("a"), AxisType.Explicit)
    masks, x = np.tile(BATCH, (2, 1)), narrow_and_wide(8)
    function = jax.vmap(partial(doubled, partial(find, size=4)), (0, None))
    with jax.set_mesh(sharding.mesh):
        placed = jax.device_put(masks, sharding)
        found = jax.jit(partial(with_gradient, function))(placed, x)
    assert_doubled(found, masks, x, 8, 4)


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
        return rows, kept.put(x, rows)

    mask, x = FIVE.repeat(2), numbers(16, 16)
    shardings = [sharding_of("2x2", p, AxisType.Explicit) for p in (of_mask, of_x)]
    found = run(*map(jax.device_put, (mask, x), shardings))
    taken, *_ = moved(mask, x, np.zeros_like(found[0]), value=0)
    assert_same(found, (taken, x))
    assert jax.typeof(found[0]).sharding.spec == wanted
    # A planted fault: only the first dimension of the written array stays divided.
    assert found[1].sharding.is_equivalent_to(shardings[1], 2)


@needs_devices
def test_flags_over_explicit_axes():
    """The flags alone are divided."""
    sharding = sharding_of("2x2", P("a"), AxisType.Explicit)
    x, rows = numbers(8, 2), -numbers(6, 2)
    where = jax.device_put(FLAGS[:6], sharding)
    wanted = x.copy()
    wanted[[1, 4, 7]] = rows[[0, 2, 3]]
    assert_same(find(MASK, size=6).put(x, rows, where=where), wanted)


@needs_devices
def test_parts_over_two_mesh_axes():
    sharding = sharding_of("2x2", P(("a", "b")), AxisType.Explicit)
    mask = jax.device_put(np.ones(12), sharding)
    text = "parts is 6; it must be a multiple of 4, the number of devices"
    assert_refused("NONZERO_COORDINATES", text, find, mask, parts=6)


def over_b(function):
    return jax.shard_map(function, in_specs=P("b"), out_specs=P("b"), axis_names={"b"})


@needs_devices
def test_gradients_inside_of_a_shard_map_over_another_axis():
    sharding = sharding_of("2x2", P("b", "a"), AxisType.Explicit)
    x = narrow_and_wide(2, 8)
    function = partial(doubled, partial(find, size=5))
    run = jax.vmap(partial(with_gradient, function, MASK))
    with jax.set_mesh(sharding.mesh):
        found = jax.jit(over_b(run))(jax.device_put(x, sharding))
    assert_doubled(found, np.stack([MASK, MASK]), x, 2, 5)


@needs_devices
@pytest.mark.parametrize("axis", ["a", None])
def test_a_gradient_inside_of_a_shard_map_that_is_not_compiled(axis):
    """Noticed: reads keep residuals, also where no axis divides them."""
    sharding = sharding_of("2x2", P("b", axis), AxisType.Explicit)
    kept = find(MASK, size=5)
    with jax.set_mesh(sharding.mesh):
        placed = jax.device_put(numbers(2, 8), sharding)
        found = over_b(jax.grad(lambda x: kept.take(x[0]).sum()))(placed)
    assert_same(found, np.stack([MASK, MASK]).astype(np.float32))


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
    taken, put, _ = moved(MASK, x, x[:5], x[0])
    for tree in Node(x), {"a": Node(x)}:
        rows = jax.tree.map(lambda x: x[:5], tree)
        assert_same(kept.take(tree, fill_value=Node(x[0])), taken)
        assert_same(kept.put(tree, rows), put)


def test_narrow_rows_past_the_count_are_read_past_the_end():
    """Noticed: `_read_jvp` with mode "clip", whose indices would not be unique."""
    gradient = jax.grad(lambda x: find(MASK).take(x).sum())
    assert "FILL_OR_DROP" in str(jax.make_jaxpr(gradient)(numbers(8)))


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


def test_a_derivative_of_more_than_2_to_the_32_elements():
    """The inverse index counts rows, and not elements."""

    def total(x):
        return find(jnp.zeros(x.shape[:2], np.int8), size=2**16 + 1).take(x).sum()

    many = struct(np.float32, 2**16 - 1, 2**16, 16)
    assert jax.eval_shape(jax.grad(total), many).shape == many.shape
