"""Meshes of virtual devices, and what the pages of the operators say is sent on them.

The page of each operator says in a table what devices send, with automatic and explicit
mesh axes. `check_both` compares the collectives of a compiled program with the words of
the table, and its results with those of one device.
"""

import functools
import math
import pathlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.sharded import SHAPE, Case, array
from tests.subjects import SUBJECTS
from tests.subjects.nonzero_coordinates import MASK

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
Parts = tuple[int, ...]
# The kinds of collectives, and the elements that each brings.
Found = list[tuple[str, int]]


def rest_of(parts: Parts) -> int:
    """The elements of one index of the first dimension that a device holds."""
    return math.prod(SHAPE[1:]) // math.prod(parts[1:])


def nothing(found: Found, case: Case, parts: Parts, gradient: bool) -> bool:
    return found == []


def halo(found: Found, case: Case, parts: Parts, gradient: bool) -> bool:
    rest = rest_of(parts)
    return found == sorted(("collective-permute", n * rest) for n in case.pads)


def strips(found: Found, case: Case, parts: Parts, gradient: bool) -> bool:
    strip = sum(case.pads) * rest_of(parts)
    return sum(size for _, size in found) <= 4 * strip


def sums(found: Found, case: Case, parts: Parts, gradient: bool) -> bool:
    # With automatic axes, XLA adds up along one mesh axis after the other.
    axes = sum(count > 1 for count in parts)
    numbers = sum(size for _, size in found)
    return {kind for kind, _ in found} == {"all-reduce"} and numbers <= 2 * axes


def dimension(found: Found, case: Case, parts: Parts, gradient: bool) -> bool:
    size = SHAPE[0] // parts[0] if gradient else SHAPE[0]
    kind = "reduce-scatter" if gradient else "all-gather"
    return found == [(kind, size * rest_of(parts))]


def output_twice(found: Found, case: Case, parts: Parts, gradient: bool) -> bool:
    size = (SHAPE[0] + sum(case.pads)) * rest_of(parts)
    return sum(size for _, size in found) <= 2 * size


def tensor(found: Found, case: Case, parts: Parts, gradient: bool) -> bool:
    return {kind for kind, _ in found} == {"all-gather"} and max(found)[1] == MASK.size


def as_argwhere(found: Found, case: Case, parts: Parts, gradient: bool) -> bool:
    return sum(size for _, size in found) <= 3 * MASK.size


def counts(found: Found, case: Case, parts: Parts, gradient: bool) -> bool:
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
def table() -> dict[tuple[str, str], dict[AxisType, str]]:
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


# PROGRAMS


def parts_of(mesh: str, spec: P) -> Parts:
    """The number of parts of each dimension."""
    sizes = dict(zip(*reversed(MESHES[mesh]), strict=True))

    def parts(entry: Any) -> int:
        names = entry if isinstance(entry, tuple) else (entry,)
        return math.prod(sizes[name] for name in names if name)

    return tuple(map(parts, (*spec, None, None, None)))[:3]


def divisions(
    meshes: Sequence[str] = ("2", "4", "8", "2x4"),
    devices: int = 8,
    alike: Sequence[P] = (),
) -> pytest.MarkDecorator:
    """The cases under the specs of these meshes that their lines speak of.

    Cases that need more than so many devices are skipped. Meshes of 2 and of 4 devices
    are slow tests: 8 devices have the same collectives, and more ways to divide. So are
    the specs `alike`, which divide as others do.
    """

    def marks(mesh: str, spec: P) -> list[pytest.MarkDecorator]:
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


def sharding_of(
    mesh: str, spec: P, kind: AxisType = AxisType.Auto, platform: str = "cpu"
) -> NamedSharding:
    """A sharding over the first devices of a platform."""
    sizes, names = MESHES[mesh]
    devices = jax.devices(platform)[: math.prod(sizes)]
    types = (kind,) * len(sizes)
    made = jax.make_mesh(sizes, names, axis_types=types, devices=devices)
    return NamedSharding(made, spec)


def collectives(text: str) -> Found:
    """The collectives in the text of a compiled program.

    One may bring several arrays. One that is started apart from its end names, before
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


def run(
    function: Callable[..., Any], sharding: NamedSharding, *arrays: Any
) -> tuple[Found, Any]:
    """The collectives of the compiled program, and what it computes."""
    placed = [jax.device_put(x, sharding) for x in arrays]
    compiled = jax.jit(function).lower(*placed).compile()
    return collectives(compiled.as_text()), compiled(*placed)


def assert_equal(outputs: Any, expected: Any, what: str = "") -> None:
    """The same values, wherever they lie."""
    for one, other in zip(*map(jax.tree.leaves, (outputs, expected)), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other), err_msg=what)


def pulled_back(case: Case) -> tuple[Callable[..., Any], tuple[np.ndarray, ...]]:
    """The function that pulls a cotangent back to the last operand, and its arrays."""

    def pull(*operands: Any) -> Any:
        *first, last, cotangent = operands
        return jax.vjp(lambda x: case.function(*first, x), last)[1](cotangent)[0]

    shape = jax.eval_shape(case.function, *case.arrays).shape
    return pull, (*case.arrays, array(shape=shape))


@functools.cache
def on_one_device(case: Case, gradient: bool = False) -> Any:
    """What is compared with the outputs on all the meshes."""
    function, arrays = pulled_back(case) if gradient else (case.function, case.arrays)
    return jax.jit(function)(*arrays)


def check_both(
    case: Case, mesh: str, spec: P, kind: AxisType, platform: str = "cpu"
) -> None:
    """A call and, if there is one, its gradient: against the page and one device."""
    sharding = sharding_of(mesh, spec, kind, platform)
    means = MEANINGS[table()[case.line][kind]]
    for gradient in (False, True)[: 1 + case.differentiable]:
        function, arrays = (
            pulled_back(case) if gradient else (case.function, case.arrays)
        )
        found, outputs = run(function, sharding, *arrays)
        assert means(found, case, parts_of(mesh, spec), gradient), found
        assert_equal(outputs, on_one_device(case, gradient))
        last = jax.tree.leaves(outputs)[-1]
        if case.divided:
            assert last.sharding.is_equivalent_to(sharding, last.ndim)
