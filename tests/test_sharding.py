"""One program over many devices: values, and what is communicated.

docs/sharding.md says in a table what each operator communicates. Every line of it is
compiled here, on meshes of eight virtual devices; the collectives of the program are
those that the table's words stand for, and its results those of one device.
"""

import dataclasses
import functools
import math
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import dmljax
from dmljax import PaddingMode, _nonzero_coordinates, _padding, _partition

DOCS = pathlib.Path(__file__).parent.parent / "docs"
SHAPE = (64, 8, 8)
MESHES = {
    "2": ((2,), ("a",)),
    "4": ((4,), ("a",)),
    "8": ((8,), ("a",)),
    "2x2": ((2, 2), ("a", "b")),
    "2x4": ((2, 4), ("a", "b")),
}
# Along which dimensions an array is sharded, on one and on two mesh axes.
SPECS = {
    1: (P("a"), P(None, "a"), P(None, None, "a")),
    2: (P("a", "b"), P(None, "a", "b"), P("b", None, "a"), P(("a", "b"))),
}
# Of the padded, first dimension: within a part, and beyond one of four or eight.
HALO, WIDE = (3, 5), (17, 7)


def array(dtype="float32", shape=SHAPE):
    line = np.arange(np.prod(shape)) * 7 % 11 - 3
    return line.reshape(shape).astype(dtype)


@dataclasses.dataclass(frozen=True)
class Case:
    """A call, and its line in the table.

    Attributes:
      function: of arrays that are sharded alike; it takes `implementation=`.
      arrays: what it is called with, in the last of which it is differentiated.
      line: the operator and the dimensions that are sharded, as the table has them.
      fits: whether the line speaks of this division, given by the parts of each
        dimension.
      kernel: whether it is also run by a kernel for GPUs.
      implementation: which `function` asks for.
    """

    function: Callable
    arrays: tuple
    line: tuple[str, str]
    fits: Callable = lambda parts: True
    differentiable: bool = True
    kernel: bool = True
    implementation: str | None = None

    def by_kernel(self):
        """The same call, by the operator's kernel."""
        function = functools.partial(self.function, implementation="pallas")
        return dataclasses.replace(self, function=function, implementation="pallas")


def element_wise_if(condition, a, b, **options):
    return dmljax.element_wise_if(condition, a, b, **options)


def diagonal_matrix1(x, **options):
    return dmljax.diagonal_matrix1(x, value=2, fill_begin=-9, fill_end=4, **options)


def one_hot(indices, **options):
    values = np.array([5, 9], np.float32)
    return dmljax.one_hot(indices, values, size=32, axis=1, **options)


def pad(x, pads, mode, **options):
    start, end = ((n, 0, 0) for n in pads)
    return dmljax.padding(x, start, end, mode=mode, **options)


def in_parts(x, **options):
    return dmljax.nonzero_coordinates(x, parts=16, **options)


def padding_case(pads, mode, line, fits, kernel):
    function = functools.partial(pad, pads=pads, mode=mode)
    return Case(function, (array(),), ("`padding`", line), fits, kernel=kernel)


def first_whole(parts):
    return parts[0] == 1


def only_first(parts):
    return parts[0] > 1 and set(parts[1:]) == {1}


def more_than_a_part(parts):
    return parts[0] > 1 and max(WIDE) > SHAPE[0] // parts[0]


MASK = (array() > 2).astype(np.uint8)
BY_KERNEL = (PaddingMode.CONSTANT, PaddingMode.REFLECTION)
CASES = {
    "element_wise_if": Case(
        element_wise_if,
        (array("bool"), array(), -array()),
        ("`element_wise_if`", "any dimensions"),
    ),
    "diagonal_matrix1": Case(
        diagonal_matrix1,
        (array(),),
        ("`diagonal_matrix1`", "batch, rows, columns"),
    ),
    "one_hot": Case(
        one_hot,
        (array("int32", (64, 1, 8)),),
        ("`one_hot`", "batch, depth"),
        lambda parts: parts[1] == 1,  # depth is a dimension of the output alone
        differentiable=False,
    ),
    **{
        f"{mode.name}, {name}": padding_case(
            pads, mode, line, fits, kernel=name == "halo" and mode in BY_KERNEL
        )
        for mode in PaddingMode
        for name, pads, line, fits in (
            ("whole", HALO, "dimensions that are not padded", first_whole),
            ("halo", HALO, "a padded dimension", lambda parts: parts[0] > 1),
            ("wide", WIDE, "a dimension padded by more than a part", more_than_a_part),
        )
    },
    "nonzero_coordinates": Case(
        dmljax.nonzero_coordinates,
        (MASK,),
        ("`nonzero_coordinates`", "the first dimension"),
        only_first,
        differentiable=False,
    ),
    "nonzero_coordinates, vmap": Case(
        lambda x, **options: jax.vmap(
            lambda line: dmljax.nonzero_coordinates(line, **options)
        )(x),
        (MASK,),
        ("`nonzero_coordinates`", "the batch of a vmap"),
        only_first,
        differentiable=False,
    ),
    "nonzero_coordinates, parts": Case(
        in_parts,
        (MASK,),
        ("`nonzero_coordinates`, `parts`", "the first dimension"),
        only_first,
        differentiable=False,
    ),
}


KERNELS = [name for name, case in CASES.items() if case.kernel]


def no_collective(parts, *, gradient):
    return []


def halo(parts, *, gradient):
    rest = math.prod(SHAPE[1:]) // math.prod(parts[1:])
    return [("collective-permute", n * rest) for n in HALO]


def whole_dimension(parts, *, gradient):
    rest = math.prod(SHAPE[1:]) // math.prod(parts[1:])
    size = SHAPE[0] // parts[0] if gradient else SHAPE[0]
    return [("reduce-scatter" if gradient else "all-gather", size * rest)]


def counts_and_rows(parts, *, gradient):
    rows = math.prod(SHAPE) // parts[0]  # less than a chunk: all go at once
    return [("all-reduce", parts[0]), ("all-to-all", parts[0] * rows)]


# What the words of the table stand for: kinds of collectives and their elements.
MEANINGS = {
    "nothing": no_collective,
    "the halo": halo,
    "the dimension": whole_dimension,
    "counts and rows": counts_and_rows,
}


@functools.cache
def table():
    """What each line of the page says, by operator and dimensions."""
    lines = re.findall(
        r"^\| (`.*?) \| (.*?) \| (.*?) \|$",
        (DOCS / "sharding.md").read_text(),
        re.MULTILINE,
    )
    return {(operator, along): words for operator, along, words in lines}


def parts_of(mesh, spec):
    sizes = dict(zip(*reversed(MESHES[mesh]), strict=True))

    def parts(entry):
        names = entry if isinstance(entry, tuple) else (entry,)
        return math.prod(sizes[name] for name in names if name)

    return tuple(map(parts, (*spec, None, None, None)))[:3]


def divisions(meshes=("2", "4", "8", "2x4"), *, kernels=False, devices=8):
    """The cases under the specs of these meshes that their lines speak of.

    With `kernels` also by those that there are. What needs more than so many devices is
    skipped.
    """
    cases = dict(CASES)
    if kernels:
        cases |= {f"{name} by kernel": CASES[name].by_kernel() for name in KERNELS}
    return pytest.mark.parametrize(
        ("case", "mesh", "spec"),
        [
            pytest.param(
                *(case, mesh, spec),
                id=f"{name}-{mesh}-{spec}",
                marks=pytest.mark.skipif(
                    math.prod(MESHES[mesh][0]) > devices,
                    reason="there are fewer devices here",
                ),
            )
            for name, case in cases.items()
            for mesh in meshes
            for spec in SPECS[len(MESHES[mesh][0])]
            if case.fits(parts_of(mesh, spec))
        ],
    )


def sharding_of(mesh, spec, kind=AxisType.Auto, platform="cpu"):
    sizes, names = MESHES[mesh]
    devices = jax.devices(platform)[: np.prod(sizes)]
    types = (kind,) * len(sizes)
    made = jax.make_mesh(sizes, names, axis_types=types, devices=devices)
    return NamedSharding(made, spec)


def collectives(text):
    """The collectives in a compiled program: kinds, and elements that each brings.

    One may bring several arrays; one that is started apart from its end names, before
    its results, its operands, and on a TPU scalars of its own after them.
    """
    kinds = "all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter"
    found = []
    for arrays, kind, start in re.findall(rf"= (.*?) ({kinds})(-start)?\(", text):
        sizes = [
            math.prod(int(size) for size in shape.split(",") if size)
            for shape in re.findall(r"\w\[([\d,]*)\]", arrays)
            if shape or not start
        ]
        results = sizes[len(sizes) // 2 :] if start else sizes
        if kind == "all-to-all":  # its parts may be arrays of their own
            results = [sum(results)]
        found += [(kind, size) for size in results]
    return found


def run(function, sharding, *arrays):
    """The collectives of the compiled program, and what it computes."""
    placed = [jax.device_put(x, sharding) for x in arrays]
    compiled = jax.jit(function).lower(*placed).compile()
    return collectives(compiled.as_text()), compiled(*placed)


def means(case, parts, *, gradient=False):
    """The collectives that the page promises."""
    meaning = MEANINGS[table()[case.line]]
    return sorted(meaning(parts, gradient=gradient))


def check(case, function, sharding, arrays, promised):
    """A sharded program against the table and against one device."""
    found, outputs = run(function, sharding, *arrays)
    assert sorted(found) == promised
    expected = jax.tree.leaves(function(*map(jnp.asarray, arrays)))
    for output, whole in zip(jax.tree.leaves(outputs), expected, strict=True):
        np.testing.assert_array_equal(np.asarray(output), np.asarray(whole))
    last = jax.tree.leaves(outputs)[-1]
    if last.ndim == case.arrays[0].ndim:
        assert last.sharding.is_equivalent_to(sharding, last.ndim)


def check_both(case, mesh, spec, kind, platform="cpu"):
    """A call and, if there is one, its gradient."""
    sharding, parts = sharding_of(mesh, spec, kind, platform), parts_of(mesh, spec)
    promised = functools.partial(means, case, parts)
    check(case, case.function, sharding, case.arrays, promised())
    if not case.differentiable:
        return

    def pull(*operands):
        *first, last, cotangent = operands
        return jax.vjp(lambda x: case.function(*first, x), last)[1](cotangent)[0]

    shape = jax.eval_shape(case.function, *case.arrays).shape
    operands = (*case.arrays, array(shape=shape))
    check(case, pull, sharding, operands, promised(gradient=True))


@divisions()
def test_a_program_communicates_what_the_page_says(case, mesh, spec):
    check_both(case, mesh, spec, AxisType.Auto)


@divisions(meshes=["2x4"])
def test_a_program_with_explicit_axes_does_so_too(case, mesh, spec):
    check_both(case, mesh, spec, AxisType.Explicit)


def test_every_line_of_the_page_has_a_case():
    assert {case.line for case in CASES.values()} == set(table())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, AxisType.Auto) for name in KERNELS),
        *((name, AxisType.Explicit) for name in KERNELS[:6]),
    ],
)
def test_kernels_run_on_each_shard(name, kind):
    spec = P("a", None, "b") if "non" not in name else P(("a", "b"))
    check_both(CASES[name].by_kernel(), "2x4", spec, kind)


@pytest.mark.parametrize("implementation", ["xla", "pallas"])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "int8"])
def test_the_depth_of_one_hot_is_divided(implementation, dtype):
    """Which only the sharding of the output can ask for."""
    indices = (np.arange(64) % 50 - 20).astype(dtype).reshape(8, 1, 8)
    sharding = sharding_of("2x4", P("a"))
    hot = functools.partial(one_hot, implementation=implementation)
    placed = jax.device_put(indices, sharding)
    wanted = NamedSharding(sharding.mesh, P("a", "b"))
    program = jax.jit(hot, out_shardings=wanted).lower(placed).compile()
    assert collectives(program.as_text()) == []
    np.testing.assert_array_equal(program(placed), hot(jnp.asarray(indices)))


@pytest.mark.parametrize(
    ("mode", "pads"),
    [
        *((mode, (3, 2)) for mode in PaddingMode),
        (PaddingMode.EDGE, (0, 1)),
        (PaddingMode.WRAP, (5, 0)),
        (PaddingMode.REFLECTION, (70, 61)),
        (PaddingMode.REFLECTION, (8, 0)),  # by a whole part
    ],
)
def test_parts_of_a_padded_dimension_may_be_uneven(mode, pads):
    """Such an output is gathered in the end, and its cotangent comes so."""
    function, x = functools.partial(pad, pads=pads, mode=mode), array()

    def twice(x):
        y = function(x)
        return jnp.sum(y * jnp.where(y > 1, y, 2 * y)), function(jnp.abs(x))

    def pull(x):
        (_, y), grad = jax.value_and_grad(twice, has_aux=True)(x)
        return y, grad

    _, outputs = run(pull, sharding_of("8", P("a")), x)
    for output, expected in zip(outputs, pull(jnp.asarray(x)), strict=True):
        np.testing.assert_array_equal(output, expected)


def test_padding_at_the_end_alone_sends_the_halo():
    function = functools.partial(pad, pads=(0, 8), mode=PaddingMode.EDGE)
    found, _ = run(function, sharding_of("8", P("a")), array())
    assert found == [("collective-permute", 8 * math.prod(SHAPE[1:]))]


def test_an_input_that_does_not_divide():
    """Which only the sharding of the output can ask to be divided."""
    function = functools.partial(pad, pads=(2, 2), mode=PaddingMode.EDGE)
    wanted = sharding_of("8", P("a"))
    x = jax.device_put(array()[:60], NamedSharding(wanted.mesh, P()))
    output = jax.jit(function, out_shardings=wanted)(x)
    np.testing.assert_array_equal(output, function(jnp.asarray(array()[:60])))


@pytest.mark.parametrize(
    ("density", "fill"), [(0, 7), (0.02, 7), (0.5, 7), (0.5, 0), (0.5, None), (1, 7)]
)
@pytest.mark.parametrize("shape", [(64,), (16, 5), (8, 1, 3), (24, 2, 1, 3)])
def test_rows_come_to_where_they_belong(density, shape, fill):
    x = np.random.default_rng(5).random(shape) < density
    x[: shape[0] // 2] &= density != 0.5  # all the rows of one half move
    found = functools.partial(dmljax.nonzero_coordinates, fill=fill)
    _, (count, rows) = run(found, sharding_of("8", P("a")), x)
    expected = np.argwhere(x)
    assert count == len(expected)
    np.testing.assert_array_equal(rows[: len(expected)], expected)
    if fill is not None:
        assert (np.asarray(rows[len(expected) :]) == fill).all()


@pytest.mark.parametrize("seed", range(6))
def test_rows_that_move_in_many_chunks(seed, monkeypatch):
    """Of sizes that do not divide, and parts from empty to full."""
    monkeypatch.setattr(_nonzero_coordinates, "CHUNK", 3)
    random = np.random.default_rng(seed)
    lines, rows = int(random.integers(1, 4)), 8 * int(random.integers(1, 40))
    density = random.choice([0, 0.1, 0.9, 1], size=(lines, 8, 1))
    x = random.random((lines, 8, rows // 8)) < density
    x = x.reshape(lines, rows)
    found = jax.vmap(lambda line: dmljax.nonzero_coordinates(line, fill=9))
    _, (counts, coordinates) = run(found, sharding_of("8", P(None, "a")), x)
    for line, count, got in zip(x, counts, coordinates, strict=True):
        expected = np.flatnonzero(line)
        assert count == len(expected)
        np.testing.assert_array_equal(got[:count, 0], expected)
        assert (np.asarray(got[count:]) == 9).all()


@pytest.mark.parametrize("rows", [2**31 - 1, 2**31])
def test_rounds_of_rows_that_take_32_bits_to_count(rows):
    """The second of two parts is full, and all of its rows go to the first."""
    starts, counts = jnp.zeros((1, 2), np.uint32), jnp.array([[0, rows]], np.uint32)
    chunk = rows // 16
    rounds = _nonzero_coordinates._rounds(starts, counts, rows, chunk)
    assert rounds == -(-rows // chunk)


@pytest.mark.parametrize(
    "spec", [P("a"), P(None, "b"), P("a", "b"), P(("a", "b"))], ids=str
)
def test_a_batch_of_sharded_lines(spec):
    x = np.random.default_rng(6).random((8, 8, 3)) < 0.4
    found = jax.vmap(dmljax.nonzero_coordinates)
    _, outputs = run(found, sharding_of("2x4", spec), x)
    expected = found(jnp.asarray(x))
    for output, whole in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(output, whole)


def test_other_dimensions_of_nonzero_are_gathered_and_right():
    sharding = sharding_of("2x4", P("a", "b"))
    found, outputs = run(dmljax.nonzero_coordinates, sharding, MASK)
    assert ("all-gather", MASK.size // 2) in found
    expected = dmljax.nonzero_coordinates(jnp.asarray(MASK))
    for output, whole in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(output, whole)


def in_a_loop(x):
    """Operators whose results go round, in whole numbers that stay small."""

    def step(x, _):
        y = pad(x, HALO, PaddingMode.SYMMETRIC)[:64]
        y = dmljax.element_wise_if(y > 1, -2 * y, y + 1)
        count, rows = dmljax.nonzero_coordinates(y[:, 0, 0])
        return y + rows[:, :, None].astype(y.dtype), count

    final, counts = jax.lax.scan(step, x, None, length=3)
    return jnp.sum(final * final), counts


def test_a_scan_and_its_gradient():
    program = jax.value_and_grad(in_a_loop, has_aux=True)
    _, outputs = run(program, sharding_of("8", P("a")), array())
    expected = program(jnp.asarray(array()))
    for one, other in zip(*map(jax.tree.leaves, (outputs, expected)), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_second_derivatives(kind):
    """Exactly: a quadratic form of small whole numbers."""

    def loss(x):
        y = dmljax.padding(x, (1,), (7,), mode=PaddingMode.REFLECTION)
        return jnp.sum(dmljax.element_wise_if(y > 0, y * y, 3 * y))

    x = array(shape=(16,))
    direction = jnp.asarray(x[::-1].copy())

    def both(x, direction):
        return jax.jvp(jax.grad(loss), (x,), (direction,))

    _, outputs = run(both, sharding_of("8", P("a"), kind), x, direction)
    expected = both(jnp.asarray(x), direction)
    np.testing.assert_array_equal(outputs, expected)
    if kind == AxisType.Auto:  # JAX's own hessian makes a matrix that is sharded twice
        _, hessian = run(jax.hessian(loss), sharding_of("8", P("a")), x)
        np.testing.assert_array_equal(hessian, jax.hessian(loss)(jnp.asarray(x)))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize("name", ["SYMMETRIC, halo", "nonzero_coordinates", "one_hot"])
def test_an_exported_program(name, kind):
    """It is right; and with explicit axes it communicates what the table says."""
    case, sharding = CASES[name], sharding_of("8", P("a"), kind)
    placed = [jax.device_put(x, sharding) for x in case.arrays]
    # A NamedTuple would have to be registered with jax.export by the user.
    exported = jax.export.export(
        jax.jit(lambda *arrays: jax.tree.leaves(case.function(*arrays))),
        platforms=["cpu"],
    )(*placed)
    again = jax.jit(jax.export.deserialize(exported.serialize()).call)
    outputs = again(*placed)
    for one, other in zip(
        *map(jax.tree.leaves, (outputs, case.function(*map(jnp.asarray, case.arrays)))),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)
    if kind == AxisType.Explicit:
        found = collectives(again.lower(*placed).compile().as_text())
        assert sorted(found) == means(case, (8, 1, 1))


def test_64_bit_types(x64):
    x = np.arange(64) * 2**40
    function = functools.partial(
        dmljax.padding, mode=PaddingMode.WRAP, implementation="xla"
    )
    _, output = run(lambda x: function(x, (3,), (5,)), sharding_of("8", P("a")), x)
    np.testing.assert_array_equal(output, np.pad(x, (3, 5), mode="wrap"))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float64", "complex128"])
def test_nonzero_coordinates_in_x64_mode(dtype, kind, x64):
    case = CASES["nonzero_coordinates"]
    wide = dataclasses.replace(case, arrays=(MASK.astype(dtype),))
    check_both(wide, "8", P("a"), kind)


def test_shardings_of_the_program_alone():
    """JAX does not say what the mesh is, and XLA's words for shardings are enough."""
    sharding = sharding_of("2x4", P(("a", "b")))
    function = functools.partial(pad, pads=HALO, mode=PaddingMode.EDGE)
    both = jax.jit(function, in_shardings=sharding, out_shardings=sharding)
    np.testing.assert_array_equal(both(array()), function(jnp.asarray(array())))
    found = collectives(both.lower(array()).compile().as_text())
    assert sorted(found) == means(CASES["EDGE, halo"], (8, 1, 1))


def test_a_part_of_a_mesh_axis_divides_a_dimension():
    """As after a reshape; the names of mesh axes have no words for it."""
    x = array(shape=(16, 8))

    def function(x):
        y = dmljax.padding(
            x.reshape(2, 8, 8), (0, 4, 0), (0, 4, 0), mode=PaddingMode.EDGE
        )
        return y, *dmljax.nonzero_coordinates(y, parts=2)

    _, outputs = run(function, sharding_of("2x4", P("b", "a")), x)
    for one, other in zip(outputs, function(jnp.asarray(x)), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "dimensions",
    [
        [tuple(range(9, -1, -1))],
        [(), (7, 0, 9), (3,), (8, 1, 2, 4)],
        [(9,), (0, 5)],
    ],
    ids=str,
)
def test_what_a_sharding_says_is_found_without_a_search(dimensions):
    """Of the ten halves of 1024 devices, those that divide each dimension, in order.

    There are millions of orders, so that trying them would not end.
    """
    mesh = _partition._fine_mesh((1024,))
    spec = P(*(tuple(mesh.axis_names[i] for i in halves) for halves in dimensions))
    rank = len(dimensions)
    assert _partition._spec(NamedSharding(mesh, spec), mesh, rank) == spec


@pytest.mark.parametrize("order", [[0, 2, 3, 4, 5, 1, 6, 7], range(7, -1, -1)])
def test_a_sharding_for_which_there_are_no_words(order):
    """Devices in an order that no mesh axes make: nothing is said of it.

    In the first, one step along a mesh axis leads to another row and another column.
    """
    mesh = _partition._fine_mesh((8,))
    square = Mesh(mesh.devices.ravel()[list(order)].reshape(2, 4), ("a", "b"))
    assert _partition._spec(NamedSharding(square, P("a", "b")), mesh, 2) == P()


@pytest.mark.parametrize("implementation", [None, "xla", "pallas"])
def test_several_meshes_in_one_program(implementation):
    """Each call is divided over the mesh of what it is given."""
    flat, square = sharding_of("8", P("a")), sharding_of("2x4", P("a", "b"))

    @jax.jit
    def both(x, y):
        rows = dmljax.nonzero_coordinates(x, implementation=implementation)
        return rows.coordinates, pad(y, HALO, PaddingMode.EDGE)

    rows, padded = both(jax.device_put(MASK, flat), jax.device_put(array(), square))
    np.testing.assert_array_equal(rows[: np.count_nonzero(MASK)], np.argwhere(MASK))
    edge = np.pad(array(), (HALO, (0, 0), (0, 0)), mode="edge")
    np.testing.assert_array_equal(padded, edge)


def explicit(spec, *arrays):
    sharding = sharding_of("2x4", spec, AxisType.Explicit)
    return [jax.device_put(x, sharding) for x in arrays]


def test_explicit_axes_say_what_they_cannot_do():
    (x,) = explicit(P("a", "b"), array())
    with pytest.raises(dmljax.DescriptorError, match=r"2 devices can't share the 65 "):
        dmljax.padding(x, (1, 0, 0), (0, 0, 0))
    with pytest.raises(dmljax.DescriptorError, match=r"{b} along dimension 1, .*whole"):
        dmljax.nonzero_coordinates(x)
    (other,) = explicit(P("b", "a"), array())
    with pytest.raises(dmljax.DescriptorError, match="does not go with it; use"):
        dmljax.element_wise_if(x > 0, x, other)
    (row,), (column,) = explicit(P("a"), array()), explicit(P(None, "a"), array())
    with pytest.raises(dmljax.DescriptorError, match="does not go with it; use"):
        dmljax.element_wise_if(jnp.asarray(array() > 0), row, column)
    with pytest.raises(dmljax.DescriptorError, match="parts is 3; it must be a mult"):
        dmljax.nonzero_coordinates(explicit(P("a"), MASK[:48])[0], parts=3)


@pytest.fixture
def padding_without_a_kernel(monkeypatch):
    """As an operator that gains from none."""
    monkeypatch.delitem(_padding.OPERATOR.kernels, "cuda")
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.usefixtures("padding_without_a_kernel")
@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_a_kernel_that_is_not_there_is_an_error_at_once(kind):
    function = functools.partial(pad, pads=HALO, mode=PaddingMode.EDGE)
    x = jax.device_put(array(), sharding_of("8", P("a"), kind))
    with pytest.raises(NotImplementedError, match=r"^PADDING: .*no kernel for"):
        jax.jit(functools.partial(function, implementation="pallas")).lower(x)


def test_explicit_axes_meet_what_is_not_sharded():
    (x,) = explicit(P("a", "b"), array())
    output = dmljax.element_wise_if(jnp.asarray(array() > 0), x, 0)
    assert output.sharding.spec == P("a", "b", None)
    np.testing.assert_array_equal(output, np.where(array() > 0, array(), 0))


def test_two_processes():
    """The example of the page, over the loopback device."""
    command = [sys.executable, str(DOCS / "two_processes.py")]
    environment = os.environ | {"PYTHONPATH": str(DOCS.parent)}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    kept = [i for i in range(16) if i % 3 == 0]
    rows = kept + [0] * 10
    padded = [int(i % 3 == 0) for i in [*range(12, 16), *range(16)]]
    for process in (0, 1):
        half, ten = rows[process * 8 :][:8], padded[process * 10 :][:10]
        assert f"process {process}, rows: {half}" in done.stdout
        assert f"process {process}, padded: {ten}" in done.stdout
    assert "process 0, counts: [2, 1]" in done.stdout
    assert "process 1, counts: [1, 2]" in done.stdout
