"""Programs on divided arrays, with twins in jax.numpy, for `benchmarks.scaling`."""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import dmljax
from benchmarks.programs import padding
from benchmarks.programs.diagonal_matrix1 import causal, causal_by_iota
from benchmarks.programs.one_hot import chosen, chosen_where
from benchmarks.programs.program import Shape
from dmljax import numpy as dnp

CPU = jax.default_backend() == "cpu"
COLUMNS, CLASSES, FEATURES = 512, 128, 64
# (channels, rows, columns) of images, and sizes of photographs and of a line.
IMAGE = (4, 16, 16) if CPU else (64, 256, 256)
PHOTOGRAPH = (8, 8, 64) if CPU else (128, 128, 64)
LINE = 2**10 if CPU else 2**20
PARTS = 64  # parts that keep their rows; a multiple of the devices
ROWS = 8  # of padding above and below: up to 16 devices share them evenly
F32, BF16, U8 = "float32", "bfloat16", "uint8"


@dataclasses.dataclass(frozen=True)
class Work:
    """A program on arrays divided along their first dimension.

    Attributes:
      operator: its name.
      case: the work, in words.
      function: takes the arrays.
      twin: the function in jax.numpy that we time beside it, if any.
      inputs: the type of each array, and its sizes after the first dimension.
      each: the number of elements for one index of the first dimension.
      copied: the types and sizes of arrays that follow, whole on every device.
      gradient: whether we time the gradient by the last array.
      kind: the kind of the mesh axis.
      rtol: as in `Case`, between the function and its twin.
    """

    operator: str
    case: str
    function: Callable[..., Any]
    twin: Callable[..., Any] | None
    inputs: Sequence[tuple[str, Shape]]
    each: int
    copied: Sequence[tuple[str, Shape]] = ()
    gradient: bool = False
    kind: AxisType = AxisType.Auto
    rtol: float = 0.0

    @property
    def axes(self) -> str:
        """The kind of the mesh axis, as a word."""
        return "explicit" if self.kind == AxisType.Explicit else "automatic"

    @property
    def title(self) -> str:
        """The name of the work, without the kind of the axis."""
        return f"{self.operator}, {self.case}" + ", gradient" * self.gradient

    @property
    def label(self) -> str:
        """The unique name. `--only` chooses work by a part of it."""
        return f"{self.title}, {self.axes} axes"

    def run(self, *operands: jax.Array) -> Any:
        """The function to time; the last operand of a gradient is the cotangent."""
        if not self.gradient:
            return self.function(*operands)
        *first, last, cotangent = operands
        return jax.vjp(lambda x: self.function(*first, x), last)[1](cotangent)[0]

    def structs(self, elements: int, mesh: Mesh) -> list[jax.ShapeDtypeStruct]:
        """The arrays and their shardings; a gradient adds the cotangent."""
        divided = NamedSharding(mesh, PartitionSpec("d"))
        whole = NamedSharding(mesh, PartitionSpec())
        found = [
            jax.ShapeDtypeStruct(
                (elements // self.each, *sizes), dtype, sharding=divided
            )
            for dtype, sizes in self.inputs
        ]
        for dtype, sizes in self.copied:
            found.append(jax.ShapeDtypeStruct(sizes, dtype, sharding=whole))
        if self.gradient:
            cotangent = jax.eval_shape(self.function, *found)
            found.append(cotangent.update(sharding=divided))
        return found


# PROGRAMS


def padded_rows(x: jax.Array, pad: Any = dnp.pad) -> jax.Array:
    """Pads the rows of a matrix between two operations."""
    padded: jax.Array = pad(x * 2, ((ROWS, ROWS), (0, 0)), "reflect")
    return padded + 1


def found_by_vmap(lines: jax.Array, find: Any = dmljax.nonzero_coordinates) -> Any:
    """The coordinates in each line; an eighth of a line has room."""
    found: Any = jax.vmap(functools.partial(find, size=lines.shape[1] // 8))(lines)
    return found if find is jnp.argwhere else found.coordinates


def rows_in_parts(keep: jax.Array, x: jax.Array) -> jax.Array:
    """The kept rows of each part, at most a quarter of its rows."""
    size = len(keep) // PARTS // 4
    return dmljax.nonzero_coordinates(keep, parts=PARTS, size=size).take(x)


# THE WORK


def by_pad(run: Callable[..., Any]) -> tuple[Any, Any]:
    """A program of `padding`, and its twin."""
    return run, functools.partial(run, pad=jnp.pad)


def with_gradients() -> Iterator[Work]:
    """The work whose gradient we time as well."""
    row = (COLUMNS,)
    yield Work(
        "element_wise_if",
        F32,
        dmljax.element_wise_if,
        jnp.where,
        [(U8, row), (F32, row), (F32, row)],
        COLUMNS,
    )
    yield Work(
        "diagonal_matrix1",
        "causal mask, float32, batch divided",
        causal,
        causal_by_iota,
        [(F32, (1, LINE // 32, 32))],
        LINE,
    )
    yield Work(
        "padding",
        "reflect padding of a table between two operations, the padded rows divided, "
        "float32",
        *by_pad(padded_rows),
        [(F32, row)],
        COLUMNS,
    )
    yield Work(
        "padding",
        "6 reflect-padded convolutions, bfloat16, batch divided",
        *by_pad(padding.convolutions),
        [(BF16, PHOTOGRAPH)],
        4 * math.prod(PHOTOGRAPH),
        copied=[(BF16, padding.WEIGHTS)],
        rtol=0.05,
    )
    yield Work(
        "nonzero_coordinates",
        "rows of a mask in parts, with size",
        rows_in_parts,
        None,
        [(U8, ()), (F32, (FEATURES,))],
        FEATURES,
    )


def forward() -> Iterator[Work]:
    """The work that we time forward alone."""
    yield Work(
        "one_hot",
        f"of {CLASSES}, float32",
        functools.partial(chosen, classes=CLASSES),
        functools.partial(chosen_where, classes=CLASSES),
        [("int32", ())],
        CLASSES,
    )
    for dtype in (F32, BF16, U8):
        yield Work(
            "padding",
            f"reflect padding between two operations, {dtype}, batch divided",
            *by_pad(padding.between),
            [(dtype, IMAGE)],
            math.prod(IMAGE),
        )
    yield Work(
        "nonzero_coordinates",
        "lines of bools by vmap, with size",
        found_by_vmap,
        functools.partial(found_by_vmap, find=jnp.argwhere),
        [("bool", (LINE,))],
        LINE,
    )
    for words, parts in (("in parts", PARTS), ("as a whole", None)):
        yield Work(
            "nonzero_coordinates",
            f"float32, 10 % non-zero, {words}, all rows",
            functools.partial(dmljax.nonzero_coordinates, parts=parts),
            None,
            [(F32, ())],
            1,
        )


def work() -> Iterator[Work]:
    """All work, with both kinds of axes.

    With explicit axes jnp.pad refuses a divided dimension: it slices a single row, and
    devices can't share a single row.
    """
    gradients = (dataclasses.replace(one, gradient=True) for one in with_gradients())
    for one in (*with_gradients(), *gradients, *forward()):
        yield one
        twin = None if "rows divided" in one.case else one.twin
        yield dataclasses.replace(one, twin=twin, kind=AxisType.Explicit)


WORK = tuple(work())
