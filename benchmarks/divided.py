"""Operators and programs on divided arrays, for `benchmarks.scaling`.

`WORK` has single operators and some programs. `BESIDE_JNP` has programs and their twins
in jax.numpy.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import dmljax
from benchmarks.programs import diagonal_matrix1, nonzero_coordinates, padding
from dmljax import numpy as dnp
from dmljax._operators import OPERATORS

COLUMNS = 512
DEPTH = 128
IMAGE = (4, 64, 64)
FEATURES = 64
# The keys of a query, and the sides of the images of a convolution.
KEYS, SIDE = {"cpu": 128, "gpu": 1024}, {"cpu": 16, "gpu": 128}
# The elements of a line, and the sides of the images of two programs.
LINE, SMALL_SIDE = {"cpu": 2**10, "gpu": 2**20}, {"cpu": 8, "gpu": 128}
LARGE_IMAGE = {"cpu": (4, 16, 16), "gpu": (64, 256, 256)}
PARTS = 64  # parts that keep their rows; a multiple of the devices
ROWS = 8  # of padding above and below: up to 16 devices share them evenly
REFLECTION = dmljax.PaddingMode.REFLECTION


@dataclasses.dataclass(frozen=True)
class Work:
    """An operator or a program, on arrays divided along a dimension.

    Attributes:
      operator: its name.
      case: the work, in words.
      function: takes the arrays.
      shapes: maps the number of elements to the sizes of the arrays.
      dtypes: their types.
      copied: the positions of the arrays that every device has as a whole.
      gradient: whether we time the gradient by the last array.
      divided: the form that XLA divides with automatic axes, if one device runs another
        form by default.
      kind: the kind of the mesh axis.
      dimension: the dimension that is divided.
      rtol: the relative error that we allow between several devices and one, for sums.
      atol: an additional error that we allow, as a part of the largest number.
      timed_in_turns: whether we use the host's clock, as for the programs of
        `benchmarks.run`, in place of each device's clock.
      twin: the function in jax.numpy that we time beside it.
    """

    operator: str
    case: str
    function: Callable[..., Any]
    shapes: Callable[[int], Sequence[tuple[int, ...]]]
    dtypes: Sequence[str]
    copied: Sequence[int] = ()
    gradient: bool = False
    divided: Callable[..., Any] | None = None
    kind: AxisType = AxisType.Auto
    dimension: int = 0
    rtol: float = 0.0
    atol: float = 0.0
    timed_in_turns: bool = False
    twin: Callable[..., Any] | None = None

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
        beside = ", beside jax.numpy" if self.timed_in_turns else ""
        return f"{self.title}, {self.axes} axes{beside}"

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


def _matrix(elements: int) -> tuple[int, int]:
    return elements // COLUMNS, COLUMNS


def _strips(x: jax.Array) -> Any:
    static = {"start": (3, 3), "end": (3, 3), "mode": REFLECTION}
    return _divisible("padding")(x, **static)


def _strips_by_1(x: jax.Array, *_: Any) -> Any:
    static = {"start": (1, 1, 0), "end": (1, 1, 0), "mode": REFLECTION}
    return _divisible("padding")(x, **static)[0]


def _in_parts_by_divisible(x: jax.Array, size: int | None = None, fill: int = 0) -> Any:
    first = jnp.arange(PARTS, dtype=np.uint32)[:, None] * np.uint32(x.size // PARTS)
    static = {"rank": 1, "size": size, "columns": 1, "fill": fill}
    return _divisible("nonzero_coordinates")(x.reshape(PARTS, -1), first, **static)


def _scores(elements: int) -> list[tuple[int, ...]]:
    keys = KEYS[jax.default_backend()]
    return [(elements // keys**2, keys, keys)]


def _photographs(elements: int) -> list[tuple[int, ...]]:
    side = SIDE[jax.default_backend()]
    channels = padding.CHANNELS
    weights = padding.BLOCKS, channels, 3, 3, channels
    return [(elements // (side**2 * channels), side, side, channels), weights]


def _tokens(elements: int) -> list[tuple[int, ...]]:
    return [(elements // FEATURES,), (elements // FEATURES, FEATURES)]


def _compacted(find: Callable[..., Any], keep: jax.Array, x: jax.Array) -> jax.Array:
    """The kept rows of each part, at most a quarter of its rows."""
    length = len(keep) // PARTS
    rows = find(keep, size=length // 4, fill=len(keep))[1][..., 0]
    local = rows - jnp.arange(PARTS, dtype=np.uint32)[:, None] * np.uint32(length)
    take: Any = jax.vmap(lambda x, i: x.at[i].get(mode="fill", fill_value=0))
    kept: jax.Array = take(x.reshape(PARTS, length, -1), local)
    return kept


def _divisible(operator: str) -> Callable[..., Any]:
    form = OPERATORS[operator].primitive.divisible
    assert form is not None
    return form


def _with_gradient(work: Work) -> tuple[Work, Work]:
    # The gradient of an operator has one form on all platforms that scale, so we
    # compare the gradient of a program only with the default form.
    return work, dataclasses.replace(work, gradient=True, divided=None)


def _explicit(work: Work) -> Work:
    return dataclasses.replace(work, divided=None, kind=AxisType.Explicit)


def _both(*works: Work) -> Iterator[Work]:
    yield from works
    yield from map(_explicit, works)


FLOAT, ON = ("float32",), np.array([[0, 1]], np.float32)
IMAGES = Work(
    "padding",
    "REFLECTION 3 of float32 images, batch divided",
    lambda x: dmljax.padding(x, (0, 0, 3, 3), (0, 0, 3, 3), mode=REFLECTION),
    lambda n: [(n // math.prod(IMAGE), *IMAGE)],
    FLOAT,
    divided=_strips,
)
HALO = Work(
    "padding",
    f"REFLECTION {ROWS} of float32, the padded rows divided",
    lambda x: dmljax.padding(x, (ROWS, 0), (ROWS, 0), mode=REFLECTION),
    lambda n: [_matrix(n)],
    FLOAT,
)
IN_PARTS = Work(
    "nonzero_coordinates",
    "float32, 10 % non-zero, in parts",
    lambda x: dmljax.nonzero_coordinates(x, parts=PARTS),
    lambda n: [(n,)],
    FLOAT,
    divided=_in_parts_by_divisible,
)
SELECT = Work(
    "element_wise_if",
    "float32",
    dmljax.element_wise_if,
    lambda n: [_matrix(n)] * 3,
    ("uint8", *FLOAT, *FLOAT),
)
TRIANGLE = Work(
    "diagonal_matrix1",
    "strictly upper triangle, float32, rows divided",
    lambda x: dmljax.diagonal_matrix1(x, value=0, fill_begin=-(2**31), fill_end=1),
    lambda n: [_matrix(n)],
    FLOAT,
)
ONE_HOT = Work(
    "one_hot",
    f"of {DEPTH}, float32",
    lambda indices, off_on: dmljax.one_hot(indices, off_on + ON, size=DEPTH),
    lambda n: [(n // DEPTH, 1), (1, 2)],
    ("int32", *FLOAT),
    copied=(1,),
)
WHOLE = Work(
    "nonzero_coordinates",
    "float32, 10 % non-zero, as a whole",
    dmljax.nonzero_coordinates,
    lambda n: [(n,)],
    FLOAT,
)
SOFTMAX = Work(
    "diagonal_matrix1",
    "program: causal softmax, float32, batch divided",
    diagonal_matrix1.masked_softmax,
    _scores,
    FLOAT,
    rtol=1e-5,
    atol=1e-6,  # the gradient subtracts numbers that are as large as the cotangent
)
CONVOLUTIONS = Work(
    "padding",
    "program: 6 reflect-padded convolutions, float32, batch divided",
    padding.convolutions,
    _photographs,
    FLOAT * 2,
    copied=(1,),
    divided=functools.partial(padding.convolutions, pad=_strips_by_1),
    rtol=1e-2,  # a product may have the 11 bits of TF32, and another algorithm has 24
)
COMPACTED = Work(
    "nonzero_coordinates",
    "program: rows of a mask in parts, with size",
    functools.partial(
        _compacted, functools.partial(dmljax.nonzero_coordinates, parts=PARTS)
    ),
    _tokens,
    ("uint8", *FLOAT),
    divided=functools.partial(_compacted, _in_parts_by_divisible),
)
ROWS_OF_MASK = Work(
    "nonzero_coordinates",
    "program: rows of a mask as a whole, with size",
    lambda keep, x: nonzero_coordinates.rows_of_mask(x, keep),
    _tokens,
    ("uint8", *FLOAT),
)
WORK = (
    *_both(*_with_gradient(SELECT)),
    *_both(*_with_gradient(TRIANGLE)),
    *_both(*_with_gradient(ONE_HOT)),
    *_both(*_with_gradient(IMAGES)),
    *_both(*_with_gradient(HALO)),
    *_both(IN_PARTS),
    *_both(WHOLE),
    *_both(*_with_gradient(SOFTMAX)),
    *_both(*_with_gradient(CONVOLUTIONS)),
    *_both(*_with_gradient(COMPACTED)),
    ROWS_OF_MASK,  # with explicit axes, JAX demands a sharding in its call
)


# PROGRAMS BESIDE JAX.NUMPY


def _small_images(elements: int) -> list[tuple[int, ...]]:
    return [(elements // math.prod(IMAGE), *IMAGE)]


def _large_images(elements: int) -> list[tuple[int, ...]]:
    image = LARGE_IMAGE[jax.default_backend()]
    return [(elements // math.prod(image), *image)]


def _few_photographs(elements: int) -> list[tuple[int, ...]]:
    side, channels = SMALL_SIDE[jax.default_backend()], padding.CHANNELS
    weights = padding.BLOCKS, channels, 3, 3, channels
    return [(elements // 4 // (side**2 * channels), side, side, channels), weights]


def _table(elements: int) -> list[tuple[int, ...]]:
    return [_matrix(2 * elements)]


def _long_images(elements: int) -> list[tuple[int, ...]]:
    channels, rows, columns = LARGE_IMAGE[jax.default_backend()]
    images = rows // 16
    row = images * channels * columns
    return [(images, channels, 2 * elements // row, columns)]


def _bool_lines(elements: int) -> list[tuple[int, ...]]:
    line = LINE[jax.default_backend()]
    return [(elements // line, line)]


def _bools(elements: int) -> list[tuple[int, ...]]:
    return [(elements,)]


def padded_rows(x: jax.Array, pad: Any = dnp.pad) -> jax.Array:
    """Pads the rows of a matrix between two operations."""
    padded: jax.Array = pad(x * 2, ((ROWS, ROWS), (0, 0)), "reflect")
    return padded + 1


def padded_images(x: jax.Array, pad: Any = dnp.pad) -> jax.Array:
    """Pads rows and columns of images between two operations."""
    padded: jax.Array = pad(x * 2, ((0, 0), (0, 0), (4, 4), (4, 4)), "reflect")
    return padded + 1


def found_by_vmap(lines: jax.Array) -> jax.Array:
    """The coordinates in each line; an eighth of a line has room."""
    find: Any = functools.partial(dmljax.nonzero_coordinates, size=lines.shape[1] // 8)
    found: jax.Array = jax.vmap(find)(lines).coordinates
    return found


def jnp_found_by_vmap(lines: jax.Array) -> jax.Array:
    """The same by jnp.argwhere."""
    find: Any = functools.partial(jnp.argwhere, size=lines.shape[1] // 8)
    found: jax.Array = jax.vmap(find)(lines)
    return found


def found_in_parts(x: jax.Array) -> jax.Array:
    """The coordinates in each part; an eighth of a part has room."""
    line = LINE[jax.default_backend()]
    return dmljax.nonzero_coordinates(
        x, parts=x.size // line, size=line // 8
    ).coordinates


def jnp_found_in_parts(x: jax.Array) -> jax.Array:
    """found_in_parts by jnp.argwhere, with the same zeros past the count."""
    line = LINE[jax.default_backend()]
    find: Any = functools.partial(jnp.argwhere, size=line // 8, fill_value=line)
    rows = jax.vmap(find)(x.reshape(-1, line))
    first = line * jnp.arange(x.size // line)[:, None, None]
    return jnp.where(rows == line, 0, rows + first)


def _in_turns(
    operator: str,
    case: str,
    functions: tuple[Callable[..., Any], Callable[..., Any]],
    shapes: Callable[[int], Sequence[tuple[int, ...]]],
    dtypes: Sequence[str],
    **options: Any,
) -> Work:
    function, twin = functions
    words = f"program: {case}"
    options = {"timed_in_turns": True, "twin": twin, **options}
    return Work(operator, words, function, shapes, dtypes, **options)


def _by_pad(run: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    return run, functools.partial(run, pad=jnp.pad)


def _batches_of_images(dtype: str) -> Iterator[Work]:
    """Padding whose batch is divided, alone and between two operations."""
    for images, shapes in (("small", _small_images), ("large", _large_images)):
        words = f"{dtype}, {images} images, batch divided"
        for name, run in (
            ("reflect padding", padding.reflected),
            ("reflect padding between two operations", padding.between),
        ):
            yield _in_turns(
                "padding", f"{name}, {words}", _by_pad(run), shapes, (dtype,)
            )


def _divided_axes(dtype: str) -> Iterator[Work]:
    """Padding along the divided dimension.

    With explicit axes jnp.pad refuses it: jnp.pad slices one row, and devices can't
    share one row.
    """
    for name, run, shapes, dimension in (
        ("a table", padded_rows, _table, 0),
        ("images", padded_images, _long_images, 2),
    ):
        work = _in_turns(
            "padding",
            f"reflect padding of {name} between two operations, {dtype}, the padded "
            "rows divided",
            _by_pad(run),
            shapes,
            (dtype,),
            dimension=dimension,
        )
        yield work
        yield dataclasses.replace(_explicit(work), twin=None)


FEW_CONVOLUTIONS = _in_turns(
    "padding",
    "6 reflect-padded convolutions of few images, bfloat16, batch divided",
    _by_pad(padding.convolutions),
    _few_photographs,
    ("bfloat16", "bfloat16"),
    copied=(1,),
    rtol=0.05,
    atol=0.05,
)
BY_VMAP = _in_turns(
    "nonzero_coordinates",
    "lines of bools by vmap, with size",
    (found_by_vmap, jnp_found_by_vmap),
    _bool_lines,
    ("bool",),
)
BY_PARTS = _in_turns(
    "nonzero_coordinates",
    "bools in parts, with size",
    (found_in_parts, jnp_found_in_parts),
    _bools,
    ("bool",),
)
BESIDE_JNP = (
    *_both(*_batches_of_images("float32")),
    *_both(*_batches_of_images("bfloat16")),
    *_both(*_batches_of_images("uint8")),
    *_divided_axes("float32"),
    *_divided_axes("bfloat16"),
    *_both(*_with_gradient(FEW_CONVOLUTIONS)),
    *_both(BY_VMAP, BY_PARTS),
)
