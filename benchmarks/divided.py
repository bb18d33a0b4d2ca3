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
from benchmarks.programs import nonzero_coordinates, padding
from benchmarks.programs.diagonal_matrix1 import causal, causal_by_iota
from benchmarks.programs.one_hot import chosen, chosen_where
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
Shapes = Sequence[tuple[int, ...]]


@dataclasses.dataclass(frozen=True)
class Work:
    """A program on arrays divided along a dimension.

    Attributes:
      operator: its name.
      case: the work, in words.
      function: takes the arrays.
      twin: the function in jax.numpy that we time beside it, if any.
      shapes: maps the number of elements to the sizes of the arrays.
      dtypes: their types.
      copied: the positions of the arrays that every device has as a whole.
      gradient: whether we time the gradient by the last array.
      kind: the kind of the mesh axis.
      dimension: the dimension that is divided.
      rtol: as in `Case`, between the function and its twin.
    """

    operator: str
    case: str
    function: Callable[..., Any]
    twin: Callable[..., Any] | None
    shapes: Callable[[int], Shapes]
    dtypes: Sequence[str]
    copied: Sequence[int] = ()
    gradient: bool = False
    kind: AxisType = AxisType.Auto
    dimension: int = 0
    rtol: float = 0.0

    @property
    def axes(self) -> str:
        """The kind of the mesh axis, as a word."""
        return "explicit" if self.kind == AxisType.Explicit else "automatic"

    @property
    def direction(self) -> str:
        """The direction, as in the ledger of one device."""
        return "gradient" if self.gradient else "forward"

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
        inputs = list(map(jax.ShapeDtypeStruct, self.shapes(elements), self.dtypes))
        if self.gradient:
            inputs.append(jax.eval_shape(self.function, *inputs))
        along = (None,) * self.dimension
        copied, divided = (
            NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), (*along, "d"))
        )
        return [
            x.update(sharding=copied if i in self.copied else divided)
            for i, x in enumerate(inputs)
        ]


# SIZES


def matrices(elements: int, count: int = 1) -> Shapes:
    return [(elements // COLUMNS, COLUMNS)] * count


def scores(elements: int) -> Shapes:
    return [(elements // LINE, 1, LINE // 32, 32)]


def labels(elements: int) -> Shapes:
    return [(elements // CLASSES,)]


def images(elements: int) -> Shapes:
    return [(elements // math.prod(IMAGE), *IMAGE)]


def long_images(elements: int) -> Shapes:
    channels, rows, columns = IMAGE
    count = rows // 16
    return [(count, channels, elements // (count * channels * columns), columns)]


def photographs(elements: int) -> Shapes:
    return [(elements // 4 // math.prod(PHOTOGRAPH), *PHOTOGRAPH), padding.WEIGHTS]


def tokens(elements: int) -> Shapes:
    return [(elements // FEATURES,), (elements // FEATURES, FEATURES)]


def lines(elements: int) -> Shapes:
    return [(elements // LINE, LINE)]


def line(elements: int) -> Shapes:
    return [(elements,)]


# PROGRAMS


def padded_rows(x: jax.Array, pad: Any = dnp.pad) -> jax.Array:
    """Pads the rows of a matrix between two operations."""
    padded: jax.Array = pad(x * 2, ((ROWS, ROWS), (0, 0)), "reflect")
    return padded + 1


def padded_images(x: jax.Array, pad: Any = dnp.pad) -> jax.Array:
    """Pads rows and columns of images between two operations."""
    padded: jax.Array = pad(x * 2, ((0, 0), (0, 0), (4, 4), (4, 4)), "reflect")
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
    select = dmljax.element_wise_if
    shapes = functools.partial(matrices, count=3)
    yield Work("element_wise_if", F32, select, jnp.where, shapes, (U8, F32, F32))
    words = "causal mask, float32, batch divided"
    yield Work("diagonal_matrix1", words, causal, causal_by_iota, scores, (F32,))
    words = "reflect padding of a table between two operations, the padded rows divided"
    pads = by_pad(padded_rows)
    yield Work("padding", f"{words}, {F32}", *pads, matrices, (F32,))
    words = "6 reflect-padded convolutions, bfloat16, batch divided"
    pads = by_pad(padding.convolutions)
    both = BF16, BF16
    yield Work("padding", words, *pads, photographs, both, copied=(1,), rtol=0.05)
    words = "rows of a mask in parts, with size"
    yield Work("nonzero_coordinates", words, rows_in_parts, None, tokens, (U8, F32))


def forward() -> Iterator[Work]:
    """The work that we time forward alone."""
    hot = functools.partial(chosen, classes=CLASSES)
    twin = functools.partial(chosen_where, classes=CLASSES)
    yield Work("one_hot", f"of {CLASSES}, float32", hot, twin, labels, ("int32",))
    for dtype in (F32, BF16, U8):
        words = f"reflect padding between two operations, {dtype}, batch divided"
        pads = by_pad(padding.between)
        yield Work("padding", words, *pads, images, (dtype,))
    words = "reflect padding between two operations, float32, the padded rows divided"
    pads = by_pad(padded_images)
    yield Work("padding", words, *pads, long_images, (F32,), dimension=2)
    ours: Any = dmljax.nonzero_coordinates
    run, twins = found_by_vmap, functools.partial(found_by_vmap, find=jnp.argwhere)
    words = "lines of bools by vmap, with size"
    yield Work("nonzero_coordinates", words, run, twins, lines, ("bool",))
    for words, find in (
        ("in parts", functools.partial(ours, parts=PARTS)),
        ("as a whole", ours),
    ):
        words = f"float32, 10 % non-zero, {words}, all rows"
        yield Work("nonzero_coordinates", words, find, None, line, (F32,))


def work() -> Iterator[Work]:
    """All work, with both kinds of axes."""
    for one in with_gradients():
        for each in (one, dataclasses.replace(one, gradient=True)):
            yield from both_axes(each)
    for one in forward():
        yield from both_axes(one)
    # With explicit axes, JAX demands a sharding in its call.
    yield Work(
        "nonzero_coordinates",
        "rows of a mask as a whole, with size",
        lambda keep, x: nonzero_coordinates.rows_of_mask(x, keep),
        None,
        tokens,
        (U8, F32),
    )


def both_axes(one: Work) -> Iterator[Work]:
    """The work with automatic and with explicit axes.

    With explicit axes jnp.pad refuses a divided dimension: it slices a single row, and
    devices can't share a single row.
    """
    yield one
    twin = None if "rows divided" in one.case else one.twin
    yield dataclasses.replace(one, twin=twin, kind=AxisType.Explicit)


WORK = tuple(work())
