"""One program over many devices: results, and what the devices send one another.

The page of each operator says in a table what it sends, with automatic and explicit
mesh axes. Every line of it is compiled here on meshes of eight virtual devices. The
collectives of the compiled program are compared with the words of the table, and its
results with those of one device.
"""

import dataclasses
import functools
import math
import os
import pathlib
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import serialize_executable
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import dmljax
from dmljax import DescriptorError, PaddingMode
from tests.sharded import SHAPE, array
from tests.subjects import SUBJECTS
from tests.subjects.nonzero_coordinates import MASK, in_parts, lines
from tests.subjects.one_hot import columns_of_32
from tests.subjects.padding import NARROW, pad_rows

DOCS = pathlib.Path(__file__).parent.parent / "docs"
MESHES = {
    "2": ((2,), ("a",)),
    "4": ((4,), ("a",)),
    "8": ((8,), ("a",)),
    "2x2": ((2, 2), ("a", "b")),
    "2x4": ((2, 4), ("a", "b")),
}
SPECS = {
    "2": (P("a"),),
    "4": (P("a"),),
    "8": (P("a"), P(None, None, "a")),
    "2x2": (P("a", "b"), P("b", None, "a"), P(("a", "b"))),
    "2x4": (P("a", "b"), P("b", None, "a"), P(("a", "b"))),
}
CASES = {
    name: case
    for subject in SUBJECTS.values()
    for name, case in subject.sharded.items()
}


def rest_of(parts):
    """The elements of one index of the first dimension that a device holds."""
    return math.prod(SHAPE[1:]) // math.prod(parts[1:])


def nothing(found, case, parts, gradient):
    return found == []


def halo(found, case, parts, gradient):
    rest = rest_of(parts)
    return found == sorted(("collective-permute", n * rest) for n in case.pads)


def strips(found, case, parts, gradient):
    strip = sum(case.pads) * rest_of(parts)
    return sum(size for _, size in found) <= 4 * strip


def sums(found, case, parts, gradient):
    # With automatic axes, XLA adds up along one mesh axis after the other.
    axes = sum(count > 1 for count in parts)
    numbers = sum(size for _, size in found)
    return {kind for kind, _ in found} == {"all-reduce"} and numbers <= 2 * axes


def dimension(found, case, parts, gradient):
    size = SHAPE[0] // parts[0] if gradient else SHAPE[0]
    kind = "reduce-scatter" if gradient else "all-gather"
    return found == [(kind, size * rest_of(parts))]


def output_twice(found, case, parts, gradient):
    size = (SHAPE[0] + sum(case.pads)) * rest_of(parts)
    return sum(size for _, size in found) <= 2 * size


def tensor(found, case, parts, gradient):
    return {kind for kind, _ in found} == {"all-gather"} and max(found)[1] == MASK.size


def as_argwhere(found, case, parts, gradient):
    return sum(size for _, size in found) <= 3 * MASK.size


def counts(found, case, parts, gradient):
    return sum(size for _, size in found) <= MASK.size // 16


# What the words of the table stand for, as a check of the collectives.
MEANINGS = {
    "nothing": nothing,
    "the halo": halo,
    "the strips": strips,
    "the sums": sums,
    "the dimension": dimension,
    "the output twice": output_twice,
    "the tensor": tensor,
    "as `jnp.argwhere`": as_argwhere,
    "counts": counts,
}


@functools.cache
def table():
    """The words for automatic and for explicit axes, by call and dimensions."""
    pages = (path.read_text() for path in (DOCS / "operators").glob("*.md"))
    sections = (page.partition("\n## Sharding\n")[2] for page in pages)
    tables = "\n".join(section.partition("\n## ")[0] for section in sections)
    row = r"^\| (`.*?) \| (.*?) \| (.*?) \| (.*?) \|$"
    lines = re.findall(row, tables, re.MULTILINE)
    return {
        (operator, along): {AxisType.Auto: auto, AxisType.Explicit: explicit}
        for operator, along, auto, explicit in lines
    }


def test_every_line_of_the_page_has_a_case():
    """A line has a case in a subject, and a new word has one of the MEANINGS."""
    assert {case.line for case in CASES.values()} == set(table())
    words = {word for by_axes in table().values() for word in by_axes.values()}
    assert words == set(MEANINGS)


# THE PROGRAMS


def parts_of(mesh, spec):
    sizes = dict(zip(*reversed(MESHES[mesh]), strict=True))

    def parts(entry):
        names = entry if isinstance(entry, tuple) else (entry,)
        return math.prod(sizes[name] for name in names if name)

    return tuple(map(parts, (*spec, None, None, None)))[:3]


def divisions(meshes=("2", "4", "8", "2x4"), devices=8, alike=()):
    """The cases under the specs of these meshes that their lines speak of.

    Cases that need more than so many devices are skipped. Meshes of 2 and of 4 devices
    are slow tests: 8 devices have the same collectives, and more ways to divide. So are
    the specs `alike`, which divide as others do.
    """

    def marks(mesh, spec):
        needed = math.prod(MESHES[mesh][0])
        reason = "there are fewer devices here"
        slow = [pytest.mark.slow] if mesh in ("2", "4") or spec in alike else []
        return [pytest.mark.skipif(needed > devices, reason=reason), *slow]

    return pytest.mark.parametrize(
        ("case", "mesh", "spec"),
        [
            pytest.param(
                *(case, mesh, spec), id=f"{name}-{mesh}-{spec}", marks=marks(mesh, spec)
            )
            for name, case in CASES.items()
            for mesh in meshes
            for spec in SPECS[mesh]
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
        found += [(kind, size) for size in results]
    return sorted(found)


def run(function, sharding, *arrays):
    """The collectives of the compiled program, and what it computes."""
    placed = [jax.device_put(x, sharding) for x in arrays]
    compiled = jax.jit(function).lower(*placed).compile()
    return collectives(compiled.as_text()), compiled(*placed)


def assert_equal(outputs, expected):
    for one, other in zip(*map(jax.tree.leaves, (outputs, expected)), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def program_of(case, gradient):
    """The function of a call or of its gradient, and what it is called with."""
    return pulled_back(case) if gradient else (case.function, case.arrays)


@functools.cache
def on_one_device(case, gradient=False):
    """What is compared with the outputs of all the meshes."""
    function, arrays = program_of(case, gradient)
    return jax.jit(function)(*arrays)


def check(case, sharding, means, gradient):
    """A sharded program against the table and against one device."""
    function, arrays = program_of(case, gradient)
    found, outputs = run(function, sharding, *arrays)
    assert means(found, gradient=gradient), found
    assert_equal(outputs, on_one_device(case, gradient))
    last = jax.tree.leaves(outputs)[-1]
    if case.divided:
        assert last.sharding.is_equivalent_to(sharding, last.ndim)


def pulled_back(case):
    """The function that pulls a cotangent back to the last operand."""

    def pull(*operands):
        *first, last, cotangent = operands
        return jax.vjp(lambda x: case.function(*first, x), last)[1](cotangent)[0]

    shape = jax.eval_shape(case.function, *case.arrays).shape
    return pull, (*case.arrays, array(shape=shape))


def check_both(case, mesh, spec, kind, platform="cpu"):
    """A call and, if there is one, its gradient."""
    sharding, parts = sharding_of(mesh, spec, kind, platform), parts_of(mesh, spec)
    means = functools.partial(
        MEANINGS[table()[case.line][kind]], case=case, parts=parts
    )
    check(case, sharding, means, gradient=False)
    if case.differentiable:
        check(case, sharding, means, gradient=True)


@divisions(alike=[P("b", None, "a"), P(("a", "b"))])
def test_automatic_axes(case, mesh, spec):
    check_both(case, mesh, spec, AxisType.Auto)


@divisions(meshes=["2x4"], alike=[P("b", None, "a")])
def test_explicit_axes(case, mesh, spec):
    check_both(case, mesh, spec, AxisType.Explicit)


@pytest.mark.parametrize(
    "name",
    ["element_wise_if", "diagonal_matrix1", "one_hot", "REFLECTION, narrow"],
)
def test_explicit_axes_run_kernels_on_each_part(name):
    check_both(CASES[name].by_kernel(), "2x4", P("a", None, "b"), AxisType.Explicit)


@pytest.mark.parametrize(
    "function", [lines, pytest.param(in_parts, marks=pytest.mark.slow)]
)
def test_explicit_axes_run_kernels_on_each_line(function):
    kernel = functools.partial(function, implementation="pallas")
    sharding = sharding_of("2x4", P("a"), AxisType.Explicit)
    found, outputs = run(kernel, sharding, MASK[:, :1, :1])
    assert found == []
    assert_equal(outputs, jax.jit(function)(MASK[:, :1, :1]))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int8"])
def test_the_depth_of_one_hot_is_divided(dtype):
    """Which only the sharding of the output can ask for."""
    indices = (np.arange(64) % 50 - 20).astype(dtype).reshape(8, 1, 8)
    sharding = sharding_of("2x4", P("a"))
    placed = jax.device_put(indices, sharding)
    wanted = NamedSharding(sharding.mesh, P("a", "b"))
    program = jax.jit(columns_of_32, out_shardings=wanted).lower(placed).compile()
    assert collectives(program.as_text()) == []
    assert_equal(program(placed), columns_of_32(indices))


def test_the_gradient_of_one_hot_over_explicit_axes():
    """A cotangent may be divided along the depth, as no operand can be."""
    indices = (np.arange(64) % 50 - 20).astype(np.int32).reshape(8, 1, 8)
    values = jnp.array([5, 9], np.float32)

    def pull(cotangent):
        hot = functools.partial(dmljax.one_hot, jnp.asarray(indices), size=32, axis=1)
        return jax.vjp(hot, values)[1](cotangent)[0]

    cotangent = array(shape=(8, 32, 8))
    sharding = sharding_of("2x4", P(None, "b", "a"), AxisType.Explicit)
    found = jax.jit(pull)(jax.device_put(cotangent, sharding))
    np.testing.assert_array_equal(found, jax.jit(pull)(cotangent))


@pytest.mark.parametrize(
    ("mode", "pads"),
    [
        *((mode, (3, 2)) for mode in PaddingMode),
        (PaddingMode.EDGE, (0, 1)),
        (PaddingMode.WRAP, (5, 0)),
        (PaddingMode.REFLECTION, (140, 131)),
        (PaddingMode.REFLECTION, (128, 0)),  # by the size itself
    ],
)
def test_parts_of_a_padded_dimension_may_be_uneven(mode, pads):
    function, x = functools.partial(pad_rows, pads=pads, mode=mode), array()

    def twice(x):
        y = function(x)
        return jnp.sum(y * jnp.where(y > 1, y, 2 * y)), function(jnp.abs(x))

    def pull(x):
        (_, y), grad = jax.value_and_grad(twice, has_aux=True)(x)
        return y, grad

    _, outputs = run(pull, sharding_of("8", P("a")), x)
    assert_equal(outputs, jax.jit(pull)(x))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize(
    "spec", [P("a", "b"), P(None, "a"), P(None, None, ("a", "b")), P("b", None, "a")]
)
def test_a_batch_of_lines_that_are_sharded_anyhow(spec, kind):
    _, outputs = run(lines, sharding_of("2x4", spec, kind), MASK[:8, :, :])
    assert_equal(outputs, jax.jit(lines)(MASK[:8, :, :]))


@pytest.mark.parametrize("fill", [0, 7, None])
def test_rows_of_a_sharded_tensor(fill):
    found = functools.partial(dmljax.nonzero_coordinates, fill=fill)
    _, (count, rows) = run(found, sharding_of("8", P("a")), MASK)
    expected = np.argwhere(MASK)
    assert count == len(expected)
    np.testing.assert_array_equal(rows[: len(expected)], expected)
    if fill is not None:
        assert (np.asarray(rows[len(expected) :]) == fill).all()


# WHAT PROGRAMS DO WITH THEM


def in_a_loop(x):
    """Operators whose results go round, in whole numbers that stay small."""

    def step(x, _):
        y = pad_rows(x, NARROW, PaddingMode.SYMMETRIC)[:128]
        y = dmljax.element_wise_if(y > 1, -2 * y, y + 1)
        count, rows = dmljax.nonzero_coordinates(y[:, 0, 0])
        return y + rows[:, :, None].astype(y.dtype), count

    final, counts = jax.lax.scan(step, x, None, length=3)
    return jnp.sum(final * final), counts


def test_a_scan_and_its_gradient():
    program = jax.value_and_grad(in_a_loop, has_aux=True)
    _, outputs = run(program, sharding_of("8", P("a")), array())
    assert_equal(outputs, jax.jit(program)(array()))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_second_derivatives(kind):
    """Exactly: a quadratic form of small whole numbers."""

    def loss(x):
        y = dmljax.padding(x, (1,), (7,), mode=PaddingMode.REFLECTION)
        return jnp.sum(dmljax.element_wise_if(y > 0, y * y, 3 * y))

    x = array(shape=(16,))
    direction = x[::-1].copy()

    def both(x, direction):
        return jax.jvp(jax.grad(loss), (x,), (direction,))

    _, outputs = run(both, sharding_of("8", P("a"), kind), x, direction)
    assert_equal(outputs, jax.jit(both)(x, direction))
    if kind == AxisType.Auto:  # JAX's own hessian makes a matrix that is sharded twice
        _, hessian = run(jax.hessian(loss), sharding_of("8", P("a")), x)
        assert_equal(hessian, jax.jit(jax.hessian(loss))(x))


EXPORTED = ["SYMMETRIC, narrow", "nonzero_coordinates", "one_hot"]


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize("name", EXPORTED)
def test_an_exported_program_communicates_as_the_compiled_one(name, kind):
    case, sharding = CASES[name], sharding_of("8", P("a"), kind)
    placed = [jax.device_put(x, sharding) for x in case.arrays]
    program = jax.jit(lambda *arrays: jax.tree.leaves(case.function(*arrays)))
    exported = jax.export.export(program, platforms=["cpu"])(*placed)
    again = jax.jit(jax.export.deserialize(exported.serialize()).call)
    assert_equal(again(*placed), on_one_device(case))
    texts = (f.lower(*placed).compile().as_text() for f in (program, again))
    compiled, called = map(collectives, texts)
    assert called == compiled


ROUND_TRIPS = [name for name in CASES if not name.endswith(("batch", "wide"))]


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_a_compiled_program_is_serialized(name):
    case, sharding = CASES[name], sharding_of("2", P("a"))
    placed = [jax.device_put(x, sharding) for x in case.arrays]
    program = jax.jit(lambda *arrays: jax.tree.leaves(case.function(*arrays)))
    parts = serialize_executable.serialize(program.lower(*placed).compile())
    again = serialize_executable.deserialize_and_load(
        *parts, backend="cpu", execution_devices=list(sharding.mesh.devices.flat)
    )
    assert_equal(again(*placed), program(*placed))


@pytest.mark.slow
def test_a_second_process_finds_every_program_in_the_persistent_cache(tmp_path):
    """Batch- and row-sharded programs of all operators, forward and gradient."""

    def hits_and_misses():
        done = subprocess.run(
            [sys.executable, "-m", "tests.cached_programs", str(tmp_path)],
            capture_output=True,
            text=True,
            check=False,
            cwd=DOCS.parent,
        )
        assert done.returncode == 0, done.stderr
        return [int(number) for number in done.stdout.split()]

    first_hits, first_misses = hits_and_misses()
    assert first_hits == 0
    assert first_misses >= len(ROUND_TRIPS)
    assert hits_and_misses() == [first_misses, 0]


def test_a_kernel_that_xla_would_have_to_divide_is_refused():
    """The message shows the shard_map in which it runs."""
    x = jax.device_put(array(), sharding_of("8", P("a")))
    message = r"^PADDING: .*XLA may divide .*jax\.shard_map\(f, mesh=mesh, in_specs="
    with pytest.raises(DescriptorError, match=message):
        jax.jit(
            lambda x: pad_rows(x, NARROW, PaddingMode.EDGE, implementation="pallas")
        ).lower(x)
    # Only the sharding of the output says that this program is for several devices.
    fill = functools.partial(dmljax.diagonal_matrix1, shape=SHAPE)
    kernel = functools.partial(fill, implementation="pallas")
    with pytest.raises(DescriptorError, match=r"^DIAGONAL_MATRIX1: .*XLA may divide"):
        jax.jit(kernel, out_shardings=x.sharding).lower()


def select(x, **options):
    return dmljax.element_wise_if(x > 0, x, x + 1, **options)


@pytest.mark.parametrize(
    "function", [select, pytest.param(lines, marks=pytest.mark.slow)]
)
def test_a_kernel_runs_on_each_part_in_a_shard_map(function):
    sharding = sharding_of("2x4", P(("a", "b")))
    kernel = functools.partial(function, implementation="pallas")
    mapped = jax.shard_map(
        kernel, mesh=sharding.mesh, in_specs=sharding.spec, out_specs=sharding.spec
    )
    mask = MASK[:, :1, :1]
    found, outputs = run(mapped, sharding, mask)
    assert found == []
    assert_equal(outputs, jax.jit(function)(mask))


def test_a_kernel_in_a_shard_map_over_some_axes_is_refused():
    sharding = sharding_of("2x4", P("a"))
    kernel = functools.partial(select, implementation="pallas")
    mapped = jax.shard_map(
        kernel,
        mesh=sharding.mesh,
        in_specs=P("a"),
        out_specs=P("a"),
        axis_names={"a"},
        check_vma=False,
    )
    message = r"over the axes that are not manual\. Leave out axis_names="
    with pytest.raises(DescriptorError, match=message):
        jax.jit(mapped).lower(array())


def test_64_bit_types(x64):
    x = np.arange(64) * 2**40
    function = functools.partial(dmljax.padding, mode=PaddingMode.WRAP)
    _, output = run(lambda x: function(x, (3,), (5,)), sharding_of("8", P("a")), x)
    np.testing.assert_array_equal(output, np.pad(x, (3, 5), mode="wrap"))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize("dtype", ["int64", "complex128"])
def test_nonzero_coordinates_in_x64_mode(dtype, kind, x64):
    case = CASES["nonzero_coordinates"]
    wide = dataclasses.replace(case, arrays=(MASK.astype(dtype),))
    check_both(wide, "8", P("a"), kind)


def test_a_part_of_a_mesh_axis_divides_a_dimension():
    """As after a reshape; the names of mesh axes have no words for it."""
    x = array(shape=(16, 8))

    def function(x):
        y = dmljax.padding(
            x.reshape(2, 8, 8), (0, 4, 0), (0, 4, 0), mode=PaddingMode.EDGE
        )
        return y, *dmljax.nonzero_coordinates(y, parts=2)

    _, outputs = run(function, sharding_of("2x4", P("b", "a")), x)
    assert_equal(outputs, function(jnp.asarray(x)))


@pytest.mark.parametrize("order", [[0, 2, 3, 4, 5, 1, 6, 7], range(7, -1, -1)])
def test_devices_in_any_order(order):
    devices = np.array(jax.devices("cpu"))[list(order)].reshape(2, 4)
    sharding = NamedSharding(Mesh(devices, ("a", "b")), P("a", "b"))
    function = functools.partial(pad_rows, pads=NARROW, mode=PaddingMode.REFLECTION)
    _, outputs = run(function, sharding, array())
    assert_equal(outputs, function(jnp.asarray(array())))


def test_several_meshes_in_one_program():
    """Each call is divided over the mesh of what it is given."""
    flat, square = sharding_of("8", P("a")), sharding_of("2x4", P("a", "b"))

    @jax.jit
    def both(x, y):
        rows = dmljax.nonzero_coordinates(x)
        return rows.coordinates, pad_rows(y, NARROW, PaddingMode.EDGE)

    rows, padded = both(jax.device_put(MASK, flat), jax.device_put(array(), square))
    np.testing.assert_array_equal(rows[: np.count_nonzero(MASK)], np.argwhere(MASK))
    edge = np.pad(array(), (NARROW, (0, 0), (0, 0)), mode="edge")
    np.testing.assert_array_equal(padded, edge)


# EXPLICIT AXES


def explicit(spec, *arrays):
    sharding = sharding_of("2x4", spec, AxisType.Explicit)
    return [jax.device_put(x, sharding) for x in arrays]


def test_explicit_axes_say_what_they_cannot_do():
    (x,) = explicit(P("a", "b"), array())
    with pytest.raises(DescriptorError, match=r"2 devices can't share the 129 "):
        dmljax.padding(x, (1, 0, 0), (0, 0, 0))
    (other,) = explicit(P("b", "a"), array())
    with pytest.raises(DescriptorError, match="does not go with it; use"):
        dmljax.element_wise_if(x > 0, x, other)
    (row,), (column,) = explicit(P("a"), array()), explicit(P(None, "a"), array())
    with pytest.raises(DescriptorError, match="does not go with it; use"):
        dmljax.element_wise_if(jnp.asarray(array() > 0), row, column)
    (other,) = explicit(P("b"), array())
    with pytest.raises(DescriptorError, match="does not go with it; use"):
        dmljax.element_wise_if(jnp.asarray(array() > 0), row, other)
    with pytest.raises(DescriptorError, match="parts is 3; it must be a mult"):
        dmljax.nonzero_coordinates(explicit(P("a"), MASK[:48])[0], parts=3)


def explicit_padding(pads, mode):
    function = functools.partial(pad_rows, pads=pads, mode=mode)
    found, output = run(function, sharding_of("8", P("a"), AxisType.Explicit), array())
    np.testing.assert_array_equal(output, function(jnp.asarray(array())))
    return found


def test_explicit_axes_pad_by_a_whole_part():
    explicit_padding((16, 0), PaddingMode.REFLECTION)


def test_explicit_axes_pad_at_the_end_alone():
    found = explicit_padding((0, 8), PaddingMode.EDGE)
    assert found == [("collective-permute", 8 * math.prod(SHAPE[1:]))]


@pytest.mark.parametrize("spec", [P(("b", "a")), P(("a", "b"))])
@pytest.mark.parametrize("mode", PaddingMode)
def test_explicit_axes_in_the_order_of_the_mesh_and_in_another(mode, spec):
    """Neighbours along the dimension are others in the mesh."""
    pad = functools.partial(pad_rows, pads=NARROW, mode=mode)

    def energy(x):
        return jnp.sum(pad(x) ** 2)

    (x,) = explicit(spec, array())
    np.testing.assert_array_equal(jax.jit(pad)(x), pad(jnp.asarray(array())))
    gradient = jax.grad(energy)(jnp.asarray(array()))
    np.testing.assert_array_equal(jax.jit(jax.grad(energy))(x), gradient)


def test_explicit_axes_meet_what_is_not_sharded():
    (x,) = explicit(P("a", "b"), array())
    output = dmljax.element_wise_if(jnp.asarray(array() > 0), x, 0)
    assert output.sharding.spec == P("a", "b", None)
    np.testing.assert_array_equal(output, np.where(array() > 0, array(), 0))


@pytest.mark.slow
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
        assert f"process {process}, rows: {rows}" in done.stdout
        ten = padded[process * 10 :][:10]
        assert f"process {process}, padded: {ten}" in done.stdout
    assert "process 0, counts: [2, 1]" in done.stdout
    assert "process 1, counts: [1, 2]" in done.stdout
