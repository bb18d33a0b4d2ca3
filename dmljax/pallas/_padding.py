"""PADDING on a GPU.

A row of the output is a row of the input, the inside, with what is added before and
after it. It may start anywhere in the words of the output, and so elsewhere than in
those of the input: a word of the inside is shifted together out of two words that are
read. Between the insides of two rows there is a gap: the padding, and the words that
are not of one inside alone. Their elements are looked up one by one.

A word has several elements if they are narrower than 4 bytes: words are loaded and
stored, and so there are fewer to compute.
"""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from dmljax._coordinates import Axis, PaddingMode, axes_of, merged, rows_of
from dmljax._tensor import Outputs, index_mode
from dmljax.pallas._elementwise import Number, on_words, place_in
from dmljax.pallas._launch import launch, load, store
from dmljax.pallas._words import (
    as_elements,
    as_words,
    in_lane,
    in_words,
    most_lanes,
    word_type,
)

# The words of a tile of insides, and of gaps. What a row costs besides its words, in
# words: a tile is as wide as is best for that. Measured on an H200.
TILE, GAPS = 512, 128
ROW_COST = 64

# Of words: where they are in the output, what they are, and which of them to store.
Words = tuple[Any, Any, Any]


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is known before the launch.

    Attributes:
      outer: the dimensions outside of a plane.
      plane: the dimension along which there are rows.
      row: the dimension that is a row, in units.
      unit: how many elements side by side are padded alike.
      mode: where the values of the padding come from.
      batch: the leading sizes of the output, along which there may be values.
      shared: those of the sizes in `batch` that the values have.
      dtype: the type of an element.
      lanes: the elements of a word.
      integer: the type of a place in the input or the output.
      interpret: whether Pallas' interpreter runs the kernel.
    """

    outer: tuple[Axis, ...]
    plane: Axis
    row: Axis
    unit: int
    mode: PaddingMode
    batch: tuple[int, ...]
    shared: tuple[int, ...]
    dtype: np.dtype
    lanes: int
    integer: np.dtype
    interpret: bool

    @property
    def word(self) -> np.dtype:
        """The type of a word."""
        return word_type(self.dtype, self.lanes)

    @property
    def shift(self) -> int:
        """The bits of an element's place that say where in its word it is."""
        return self.lanes.bit_length() - 1

    @property
    def planes(self) -> int:
        """How many the output has."""
        return math.prod(axis.output for axis in self.outer)

    @property
    def length(self) -> int:
        """The elements of a row of the output."""
        return self.row.output * self.unit

    @property
    def before(self) -> int:
        """The elements before the inside of a row."""
        return self.row.before * self.unit

    @property
    def inside(self) -> int:
        """The elements of the inside of a row."""
        return self.row.size * self.unit

    @property
    def words(self) -> int:
        """How many the output has."""
        return self.planes * self.plane.output * self.length // self.lanes

    @property
    def width(self) -> int:
        """The words of a row at most that are of its inside alone."""
        return self.inside // self.lanes

    @property
    def gap(self) -> int:
        """The words of a gap at most."""
        return (self.length - self.inside + 2 * self.lanes - 2) // self.lanes

    @property
    def is_aligned(self) -> bool:
        """Whether words of the inside are words of the input."""
        return (self.length | self.inside | self.before) % self.lanes == 0

    @property
    def tile(self) -> tuple[int, int]:
        """The rows of a tile, and its words for each."""
        widths = [2**i for i in range(TILE.bit_length())]
        columns = min(widths, key=lambda n: pl.cdiv(self.width, n) * (n + ROW_COST))
        return min(TILE // columns, pl.next_power_of_2(self.plane.output)), columns

    @property
    def gap_columns(self) -> int:
        """The words of a gap that a program has."""
        return min(pl.next_power_of_2(self.gap), max(GAPS // self.tile[0], 1))

    @property
    def tiles(self) -> tuple[int, int]:
        """The tiles of a plane down, and across: of its insides, or of its gaps."""
        rows, columns = self.tile
        across = pl.cdiv(self.width, columns)
        if self.gap:
            across = max(across, pl.cdiv(self.gap, self.gap_columns))
        return pl.cdiv(self.plane.output, rows), across

    @property
    def small(self) -> np.dtype:
        """The type of a place in a plane."""
        rows = max(self.plane.size, self.plane.output) + self.tile[0]
        fits = rows * (self.length + self.lanes) + TILE < 2**31
        return np.dtype(np.int32) if fits else self.integer

    def source(self, plane: Any) -> tuple[Any, Any]:
        """The plane of the input that one of the output repeats, and if there is."""
        integer = self.integer.type
        inside: Any = None
        place, stride = integer(0), 1
        for axis in reversed(self.outer):
            plane, coordinate = _divided(plane, axis.output)
            inside = _both(inside, self.is_inside(axis, coordinate))
            place += axis.source(coordinate, self.mode) * integer(stride)
            stride *= axis.size
        return place, inside

    def is_inside(self, axis: Axis, coordinate: Any) -> Any:
        """Whether an output coordinate has a source; None if every one has."""
        if self.mode is not PaddingMode.CONSTANT or not axis.is_padded:
            return None
        return axis.is_inside(coordinate)


def padding(x: jax.Array, *value: jax.Array, **static: Any) -> Outputs:
    """The operator."""
    (given,) = value or (jnp.zeros((1,) * x.ndim, x.dtype),)
    return _padding(x, given, **static)


@on_words
def _padding(
    x: jax.Array,
    value: jax.Array,
    *,
    start: tuple[int, ...],
    end: tuple[int, ...],
    mode: PaddingMode,
    interpret: bool,
) -> Outputs:
    batch = x.ndim - len(start)
    sizes = np.broadcast_shapes(x.shape[:batch], value.shape[:batch])
    x = jnp.broadcast_to(x, sizes + x.shape[batch:])
    axes = axes_of(x.shape, start, end)
    shape = tuple(axis.output for axis in axes)
    elements = math.prod(shape)
    if x.size in (0, elements):
        return (x if x.size else jnp.broadcast_to(value, shape),)
    outer, plane, row, unit = rows_of(merged(axes), x.dtype.itemsize)
    lanes = math.gcd(elements, x.size, most_lanes(x.dtype))
    with index_mode(elements + max(TILE, GAPS) * lanes) as integer:
        plan = Plan(
            outer=outer,
            plane=plane,
            row=row,
            unit=unit,
            mode=mode,
            batch=sizes,
            shared=value.shape[:batch],
            dtype=x.dtype,
            # Else a row need not have a word of its own.
            lanes=lanes if row.size * unit >= 2 * lanes else 1,
            integer=integer,
            interpret=interpret,
        )
        (words,) = launch(
            _kernel,
            as_words(x, plan.lanes),
            value.ravel(),
            operator="padding",
            grid=(plan.planes * math.prod(plan.tiles),),
            outputs=(jax.ShapeDtypeStruct((plan.words,), plan.word),),
            warps=1,
            interpret=interpret,
            plan=plan,
        )
    return (as_elements(words, x.dtype).reshape(shape),)


def _kernel(x: Any, value: Any, out: Any, *, plan: Plan) -> None:
    """A tile of a plane: its rows are rows."""
    down, across = plan.tiles
    rows, columns = plan.tile
    rest, j = _divided(pl.program_id(0), across)
    plane, i = _divided(rest, down)
    plane = plane.astype(plan.integer)
    row = i.astype(plan.small) * rows + lax.iota(plan.small, rows)[:, None]

    def insides() -> tuple[Words, ...]:
        column = j.astype(plan.small) * columns + lax.iota(plan.small, columns)[None, :]
        return _insides(x, value, plane, row, column, plan)

    def gaps(row: Any) -> tuple[Words, ...]:
        first = j.astype(plan.small) * plan.gap_columns
        column = first + lax.iota(plan.small, plan.gap_columns)[None, :]
        return _gaps(x, value, plane, row, column, plan)

    def put(parts: tuple[Words, ...]) -> None:
        for to, word, mask in parts:
            if plan.interpret:  # a masked-off lane writes back
                to = jnp.where(mask, to, plan.words)
            store(out.at[to], jnp.broadcast_to(word, mask.shape), mask=mask)

    pl.when(j < pl.cdiv(plan.width, columns))(lambda: put(insides()))
    if not plan.gap:
        return
    has_gaps = j < pl.cdiv(plan.gap, plan.gap_columns)
    pl.when(has_gaps)(lambda: put(gaps(row)))
    if plan.plane.output % rows == 0:  # behind the last row there is one more
        is_last = (plane == plan.planes - 1) & (i == down - 1)
        end = jnp.full((1, 1), plan.plane.output, plan.small)
        pl.when(has_gaps & is_last)(lambda: put(gaps(end)))


def _insides(
    x: Any, value: Any, plane: Any, row: Any, column: Any, plan: Plan
) -> tuple[Words, ...]:
    """The words of rows that are of their insides alone.

    Rows outside of the input are apart: a choice for each word would keep the next ones
    from being loaded.
    """
    head, start = _start(plane, row, plan.plane.output, plan.length, plan)
    start += plan.before
    first = (start + (plan.lanes - 1)) >> plan.shift
    count = ((start + plan.inside) >> plan.shift) - first
    count = jnp.where(row < plan.plane.output, count, 0)
    to = head + (first + column).astype(plan.integer)

    source, inside = plan.source(plane)
    inside = _both(inside, plan.is_inside(plan.plane, row))
    mask = column < (count if inside is None else jnp.where(inside, count, 0))
    from_row = plan.plane.source(row, plan.mode)
    head_from, place = _start(source, from_row, plan.plane.size, plan.inside, plan)
    place += (first << plan.shift) - start
    where = head_from + ((place >> plan.shift) + column).astype(plan.integer)
    word = load(x.at[where], mask=mask)
    if not plan.is_aligned:
        bits = 8 * plan.dtype.itemsize
        shift = ((place & (plan.lanes - 1)) * bits).astype(plan.word)
        more = load(x.at[where + plan.integer.type(1)], mask=mask & (shift > 0))
        # In two steps, as a shift by all bits of a word is not defined.
        most = plan.word.type(bits * plan.lanes - 1)
        more = (more << plan.word.type(1)) << (most - shift)
        word = (word >> shift) | more
    if inside is not None:
        outside = in_words(_value(value, plane, row, plan), plan.dtype, plan.lanes)
        filled = column < jnp.where(inside, 0, count)
        return (to, word, mask), (to, outside, filled)
    return ((to, word, mask),)


def _gaps(
    x: Any, value: Any, plane: Any, row: Any, column: Any, plan: Plan
) -> tuple[Words, ...]:
    """The words of the gaps before rows, and of the one behind the last."""
    head, start = _start(plane, row, plan.plane.output, plan.length, plan)
    first = (start + (plan.before + plan.inside - plan.length)) >> plan.shift
    last = (start + (plan.before + plan.lanes - 1)) >> plan.shift
    to = first + column
    where = head + to.astype(plan.integer)
    # Behind the last row of a plane is the first row of the next one, which has it.
    rows = plan.plane.output + (plane == plan.planes - 1).astype(plan.small)
    mask = (to < last) & (row < rows) & (where >= 0) & (where < plan.words)

    # The row that the gap is before, and the one that it is behind.
    is_first = row == 0
    behind = jnp.where(is_first, plan.plane.output, row) - 1
    plane_behind = jnp.maximum(plane - is_first.astype(plan.integer), 0)
    sources, insides, values = zip(
        _line(value, plane, row, plan),
        _line(value, plane_behind, behind, plan),
        strict=True,
    )
    place = (to << plan.shift) - start
    word: Any = None
    for lane in range(plan.lanes):
        position = place + lane
        is_behind = position < 0
        position = jnp.where(is_behind, position + plan.length, position)
        unit, beside = _divided(position, plan.unit) if plan.unit > 1 else (position, 0)
        inside = plan.is_inside(plan.row, unit)
        if insides[0] is not None:
            inside = _both(inside, _of_row(is_behind, insides))
        position = plan.row.source(unit, plan.mode) * plan.unit + beside
        source = _of_row(is_behind, sources) + position.astype(plan.integer)
        found = _element(x, source, _both(mask, inside), plan)
        if inside is not None:
            other = _of_row(is_behind, values).astype(found.dtype)
            found = jnp.where(inside, found, other)
        found = in_lane(found, np.uint32(lane), plan.dtype, plan.lanes)
        word = found if word is None else word | found
    return ((where, word, mask),)


def _of_row(is_behind: Any, pair: tuple[Any, Any]) -> Any:
    return jnp.where(is_behind, pair[1], pair[0])


def _line(value: Any, plane: Any, row: Any, plan: Plan) -> tuple[Any, Any, Any]:
    """Of rows: where they are in the input, if they are, and what is outside of it."""
    integer = plan.integer.type
    source, inside = plan.source(plane)
    inside = _both(inside, plan.is_inside(plan.plane, row))
    from_row = plan.plane.source(row, plan.mode).astype(plan.integer)
    place = (source * integer(plan.plane.size) + from_row) * integer(plan.inside)
    return place, inside, _value(value, plane, row, plan)


def _start(
    plane: Any, row: Any, height: int, length: int, plan: Plan
) -> tuple[Any, Any]:
    """Where rows start: the words before their plane, and the elements from there."""
    before = plane * plan.integer.type(height * length)
    words = before >> plan.integer.type(plan.shift)
    rest = (before & plan.integer.type(plan.lanes - 1)).astype(plan.small)
    return words, row * plan.small.type(length) + rest


def _element(x: Any, place: Any, mask: Any, plan: Plan) -> Any:
    """The element at a place of the input, as the lowest of a word."""
    if plan.lanes == 1:
        return load(x.at[place], mask=mask)
    bits = 8 * plan.dtype.itemsize
    word = load(x.at[place >> plan.integer.type(plan.shift)], mask=mask)
    lane = (place & plan.integer.type(plan.lanes - 1)).astype(plan.word)
    return (word >> (lane * plan.word.type(bits))).astype(np.dtype(f"uint{bits}"))


def _value(value: Any, plane: Any, row: Any, plan: Plan) -> Any:
    """What is outside of the input in rows."""
    if math.prod(plan.shared) == 1:
        return value[0]
    height = plan.plane.output
    rows = plan.planes * height // math.prod(plan.batch)  # of each of the batch
    row = jnp.minimum(row, height - 1).astype(plan.integer)
    number, _ = _divided(plane * plan.integer.type(height) + row, rows)
    number = Number(plan.integer.type(0), number.astype(np.uint32))
    return load(value.at[place_in(plan.shared, number, plan.batch)])


def _divided(a: Any, size: int) -> tuple[Any, Any]:
    """The quotient by `size` of what is not negative, and the remainder."""
    quotient = lax.div(a, jnp.full_like(a, size))
    return quotient, a - quotient * quotient.dtype.type(size)


def _both(a: Any, b: Any) -> Any:
    """Whether both conditions hold; None is one that always does."""
    return a if b is None else b if a is None else a & b
