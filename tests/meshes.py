"""Meshes of virtual devices, and the collectives that the operators' pages promise.

The page of each operator has a table: the data that devices send, with automatic and
explicit mesh axes. `check_both` compares the collectives of a compiled program with the
words of this table, and its results with the results of one device.
"""

import functools
import itertools
import math
import operator
import re

import jax
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from benchmarks import divided, scaling
from tests.collectives import bytes_sent, collectives, show_bytes
from tests.project.texts import ROOT, TEXTS, section
from tests.sharded import SHAPE, array
from tests.subjects import SUBJECTS
from tests.subjects.nonzero_coordinates import MASK
from tests.transforms.dense import assert_equal

DOCS = ROOT / "docs"
# Neighbours along the dimension of ("b", "a") are others in the mesh.
TWICE = P("a", "b"), P("b", None, "a"), P(("b", "a"))
# By the sizes of a mesh: the ways to divide an array of three dimensions.
SPECS = {
    "2": (P("a"),),
    "4": (P("a"),),
    "8": (P("a"), P(None, None, "a")),
    "2x2": TWICE,
    "2x4": TWICE,
}
CASES = {name: case for one in SUBJECTS.values() for name, case in one.sharded.items()}


# The most elements that a device receives, by the words in the tables.
MEANINGS = {
    "nothing": lambda case, parts: 0,
    "the strips": lambda case, parts: (
        4 * sum(case.pads) * math.prod(SHAPE[1:]) // math.prod(parts[1:])
    ),
    # With automatic axes, XLA sums over one mesh axis after the other.
    "the sums": lambda case, parts: 2 * sum(count > 1 for count in parts),
    "the output twice": lambda case, parts: (
        2 * math.prod(shape_of(case)) // math.prod(parts[1:])
    ),
    "the tensor": lambda case, parts: math.inf,
    "as `jnp.argwhere`": lambda case, parts: 3 * MASK.size,
    "counts": lambda case, parts: MASK.size // 8,
}
# The kind of the collectives, by the words that name it.
KINDS = {"the sums": "all-reduce", "the tensor": "all-gather"}


@functools.cache
def table(name):
    """The rows of an operator's page: the words for automatic and for explicit axes."""
    row = r"^\| (`.*?) \| (.*?) \| (.*?) \| (.*?) \|$"
    page = f"docs/operators/{name}.md"
    # A missing page breaks no test of another operator.
    text = section(page, "Sharding") if page in TEXTS else ""
    return {
        (call, along): {AxisType.Auto: auto, AxisType.Explicit: explicit}
        for call, along, auto, explicit in re.findall(row, text, re.MULTILINE)
    }


each_kind = pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])


# PROGRAMS


def axes_of(mesh):
    """The sizes and the names of the axes."""
    sizes = tuple(map(int, mesh.split("x")))
    # Fault that the long name shows: a name is taken for several axes.
    return sizes, ("a", "b", "long")[: len(sizes)]


def parts_of(mesh, spec):
    """The number of parts of each dimension."""
    part = NamedSharding(AbstractMesh(*axes_of(mesh)), spec).shard_shape(SHAPE)
    return tuple(map(operator.floordiv, SHAPE, part))


def divisions(*meshes, devices=8, once=False):
    """Tests of each case, with the divisions of these meshes to which its row applies.

    With `once`, that is only the first of them. A case is skipped if it needs more than
    `devices`.
    """
    uses = {}
    for (name, case), mesh in itertools.product(CASES.items(), meshes):
        few = math.prod(axes_of(mesh)[0]) > devices
        skip = pytest.mark.skipif(few, reason="there are fewer devices here")
        for spec in SPECS[mesh]:
            if case.fits(parts_of(mesh, spec)):
                label = f"{name}-{mesh}-{spec}"
                use = pytest.param(case, mesh, spec, id=label, marks=skip)
                uses.setdefault(name if once else label, use)
    return pytest.mark.parametrize(("case", "mesh", "spec"), uses.values())


def sharding_of(mesh, spec, kind=AxisType.Auto, platform="cpu"):
    """A sharding over the first devices of a platform."""
    sizes, names = axes_of(mesh)
    devices = jax.devices(platform)[: math.prod(sizes)]
    types = (kind,) * len(sizes)
    made = jax.make_mesh(sizes, names, axis_types=types, devices=devices)
    return NamedSharding(made, spec)


def run(function, sharding, *arrays, one=None):
    """Runs a sharded program, and compares its outputs with the outputs of one device.

    Returns the text of the compiled program and its outputs. `one` has the outputs of
    one device, if we know them.
    """
    jitted = jax.jit(function)
    with jax.set_mesh(sharding.mesh):
        placed = [jax.device_put(x, sharding) for x in arrays]
        compiled = jitted.lower(*placed).compile()
        outputs = compiled(*placed)
    assert_equal(outputs, jitted(*arrays) if one is None else one)
    return compiled.as_text(), outputs


def pulled_back(case):
    """The function that pulls a cotangent back to the last operand, and its arrays."""

    def pull(*operands):
        *first, last, cotangent = operands
        return jax.vjp(lambda x: case.function(*first, x), last)[1](cotangent)[0]

    return pull, (*case.arrays, array(shape=shape_of(case)))


@functools.cache
def shape_of(case):
    """The shape of the output."""
    return jax.eval_shape(case.function, *case.arrays).shape


def programs_of(case):
    """A call, and its gradient if any: functions and their arrays."""
    programs = [(case.function, case.arrays)]
    if case.differentiable and case.divided:
        programs.append(pulled_back(case))
    return programs


@functools.cache
def on_one_device(case):
    """The outputs of the programs on one device, for comparison with all meshes."""
    return jax.jit(lambda: [call(*arrays) for call, arrays in programs_of(case)])()


def check_sent(text, case, parts, kind):
    """Compares the collectives of a compiled program with the word on the page."""
    found = collectives(text)
    name = next(name for name in SUBJECTS if f"`{name}`" in case.row[0])
    word = table(name)[case.row][kind]
    sizes = [one.elements for one in found]
    assert sum(sizes) <= MEANINGS[word](case, parts), f"{word}: {found}"
    if word in KINDS:
        assert {one.kind for one in found} == {KINDS[word]}
    assert word != "the tensor" or max(sizes) == MASK.size
    if word == "nothing" and case.divided:
        # Fault: each device makes the mask of all elements, and takes its part.
        assert ",".join(map(str, shape_of(case))) not in text


def check_both(case, mesh, spec, kind, platform="cpu"):
    """Checks the programs of a case against the page and one device."""
    sharding = sharding_of(mesh, spec, kind, platform)
    parts = parts_of(mesh, spec)
    pairs = zip(programs_of(case), on_one_device(case), strict=True)
    for (function, arrays), one in pairs:
        text, outputs = run(function, sharding, *arrays, one=one)
        check_sent(text, case, parts, kind)
        last = jax.tree.leaves(outputs)[-1]
        if case.divided:
            same = last.sharding.is_equivalent_to(sharding, last.ndim)
            assert same, "the output is divided otherwise; see `divided=` of Case"


def check_bytes(devices):
    """Compares the bytes that each of eight devices sends with the page."""
    row = r"^\| (.*) \| ([\d.]+ [KM]?i?B) \| ([\d.]+ [KM]?i?B) \|$"
    page = {}
    text = TEXTS["docs/tutorials/devices.md"]
    for title, *cells in re.findall(row, text, re.MULTILINE):
        for axes, sent in zip(("automatic", "explicit"), cells, strict=True):
            page[title, axes] = sent
    found = {}
    for work in divided.WORK:
        program, _ = scaling.compiled(work, devices, 8 * 2**20)
        sent = bytes_sent(program.as_text(), len(devices))
        if sent:
            found[work.title, work.axes] = show_bytes(sent)
    assert page == found
