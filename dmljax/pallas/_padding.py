"""PADDING on a GPU: one launch, which writes words.

The output is seen as *planes* of *rows*: the last dimension is a row, the one before it
counts the rows of a plane, and the others count planes (`_coordinates.rows_of`). If the
last dimension is small and not padded, such as three colours, a row is the last two
dimensions, and what is padded alike is a *unit* of several elements. The *inside* of a
row is a row of the input, or the padding's value where CONSTANT has no such row. What
is before and behind the inside is padding.

A word holds several elements if they are narrower than 4 bytes. Rows may start and end
anywhere in a word, so words are sorted by what they hold. Here is the padding `.` of
rows of six elements by two before and two behind, in words of four:

    elements   . . a b c d e f . . . . g h i j k l . .
    rows      |- row 0 -----------|- row 1 -----------|
    words     |  gap  |inside |  gap  |inside |  gap  |

- An *inside* word has elements of one inside alone. In the input they are neighbours
  too, but may start at another slot: so two words of the input are shifted together.
- The words between two insides are a *gap*. Each of their elements is looked up alone.

A program is one warp. It has a tile of a plane: its rows are rows, its columns words.
First it writes inside words of these rows, then words of the gap before each row. The
gap behind the last row of all belongs to the last programs.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from dmljax._coordinates import PaddingMode, axes_of, merged, rows_of
from dmljax._tensor import Outputs, index_mode
from dmljax.pallas._elementwise import Offsets, offsets_in, on_bits
from dmljax.pallas._launch import launch, load, store
from dmljax.pallas._padding_plan import GAPS, TILE, PaddingPlan, both, divided
from dmljax.pallas._words import (
    as_elements,
    as_words,
    in_every_slot,
    in_slot,
    most_per_word,
)

# What to store: the offsets of words in the output, the words, and a mask.
Stores = tuple[Any, Any, Any]


def padding(x: jax.Array, *value: jax.Array, **static: Any) -> Outputs:
    """The form by kernel. In modes other than CONSTANT a 0 stands for the value."""
    (one,) = value or (jnp.zeros((1,) * x.ndim, x.dtype),)
    return _padding(x, one, **static)


@on_bits
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
    # Words have no rest at the end of the input or of the output.
    per_word = math.gcd(elements, x.size, most_per_word(x.dtype))
    # The last tile may reach past the end, and its offsets must not wrap around.
    with index_mode(elements + max(TILE, GAPS) * per_word) as integer:
        plan = PaddingPlan(
            outer=outer,
            plane=plane,
            row=row,
            unit=unit,
            mode=mode,
            batch=sizes,
            shared=value.shape[:batch],
            dtype=x.dtype,
            # Wherever an inside of two words' size starts, it has an inside word.
            # Without one, two gaps would meet, and a gap knows two rows only.
            per_word=per_word if row.size * unit >= 2 * per_word else 1,
            integer=integer,
            interpret=interpret,
        )
        (words,) = launch(
            _kernel,
            as_words(x, plan.per_word),
            value.ravel(),
            operator="padding",
            grid=(plan.planes * math.prod(plan.tiles),),
            outputs=(jax.ShapeDtypeStruct((plan.words,), plan.word),),
            warps=1,
            interpret=interpret,
            plan=plan,
        )
    return (as_elements(words, x.dtype).reshape(shape),)


def _kernel(x: Any, value: Any, out: Any, *, plan: PaddingPlan) -> None:
    """Writes the insides and the gaps of a tile."""
    down, across = plan.tiles
    rows, columns = plan.tile
    rest, j = divided(pl.program_id(0), across)
    plane, i = divided(rest, down)
    plane = plane.astype(plan.integer)
    row = i.astype(plan.short) * rows + lax.iota(plan.short, rows)[:, None]

    def insides() -> tuple[Stores, ...]:
        column = j.astype(plan.short) * columns + lax.iota(plan.short, columns)[None, :]
        return _insides(x, value, plane, row, column, plan)

    def gaps(row: Any) -> tuple[Stores, ...]:
        first = j.astype(plan.short) * plan.gap_columns
        column = first + lax.iota(plan.short, plan.gap_columns)[None, :]
        return _gaps(x, value, plane, row, column, plan)

    def write(stores: tuple[Stores, ...]) -> None:
        for target, word, mask in stores:
            # The interpreter writes the old value where a store is masked. That must
            # not be a word of another row, so it goes out of range.
            if plan.interpret:
                target = jnp.where(mask, target, plan.words)
            store(out.at[target], jnp.broadcast_to(word, mask.shape), mask=mask)

    # Loading all before anything is stored was tried on an H200: it gave 0.87 of the
    # ceiling instead of 0.82 for rows of odd length, but 0.81 instead of 0.84 for
    # CONSTANT.
    pl.when(j < pl.cdiv(plan.width, columns))(lambda: write(insides()))
    if not plan.gap:
        return
    has_gaps = j < pl.cdiv(plan.gap, plan.gap_columns)
    pl.when(has_gaps)(lambda: write(gaps(row)))
    # The gap behind the last row is the one before a row that does not exist. It needs
    # a tile of its own if all rows of the last tile exist.
    if plan.plane.output % rows == 0:
        is_last = (plane == plan.planes - 1) & (i == down - 1)
        end = jnp.full((1, 1), plan.plane.output, plan.short)
        pl.when(has_gaps & is_last)(lambda: write(gaps(end)))


def _insides(
    x: Any, value: Any, plane: Any, row: Any, column: Any, plan: PaddingPlan
) -> tuple[Stores, ...]:
    """The inside words of rows."""
    # An inside starts `start` elements behind the word `head`. Its words are `count` of
    # those behind `head`, from the word `first` on.
    head, start = _row_offset(plane, row, plan.plane.output, plan.length, plan)
    start += plan.before
    first = (start + (plan.per_word - 1)) >> plan.shift
    count = ((start + plan.inside) >> plan.shift) - first
    count = jnp.where(row < plan.plane.output, count, 0)
    target = head + (first + column).astype(plan.integer)

    # In the input, the first of these words starts at the element `offset`.
    source, inside = plan.source(plane)
    inside = both(inside, plan.is_inside(plan.plane, row))
    mask = column < (count if inside is None else jnp.where(inside, count, 0))
    from_row = plan.plane.source(row, plan.mode)
    from_head, offset = _row_offset(
        source, from_row, plan.plane.size, plan.inside, plan
    )
    offset += (first << plan.shift) - start
    word_source = from_head + ((offset >> plan.shift) + column).astype(plan.integer)
    word = load(x.at[word_source], mask=mask)
    if not plan.is_aligned:
        bits = 8 * plan.dtype.itemsize
        shift = ((offset & (plan.per_word - 1)) * bits).astype(plan.word)
        more = load(x.at[word_source + plan.integer.type(1)], mask=mask & (shift > 0))
        # The shift to the left is by 1 bit and then by the rest, because a shift by all
        # bits of a word is not defined.
        most = plan.word.type(bits * plan.per_word - 1)
        more = (more << plan.word.type(1)) << (most - shift)
        word = (word >> shift) | more
    if inside is not None:
        # Rows that CONSTANT fills are stores of their own. A choice for each word was
        # measured on an H200 at 0.68 and 0.60 of the ceiling instead of 0.84 and 0.91:
        # conditions have few registers, and the loads of the next words wait for them.
        fill = _fill_value(value, plane, row, plan)
        outside = in_every_slot(fill, plan.dtype, plan.per_word)
        filled = column < jnp.where(inside, 0, count)
        return (target, word, mask), (target, outside, filled)
    return ((target, word, mask),)


def _gaps(
    x: Any, value: Any, plane: Any, row: Any, column: Any, plan: PaddingPlan
) -> tuple[Stores, ...]:
    """The words of the gaps before rows."""
    head, start = _row_offset(plane, row, plan.plane.output, plan.length, plan)
    # From behind the inside of the row before, up to where this row's inside begins.
    first = (start + (plan.before + plan.inside - plan.length)) >> plan.shift
    last = (start + (plan.before + plan.per_word - 1)) >> plan.shift
    to = first + column
    target = head + to.astype(plan.integer)
    # The gap behind the last row of a plane is the one before the next plane. Only
    # behind the last plane there is a gap more than there are rows.
    rows = plan.plane.output + (plane == plan.planes - 1).astype(plan.short)
    mask = (to < last) & (row < rows) & (target >= 0) & (target < plan.words)

    # A gap has elements of the row that it is before, and of the row that it is behind.
    is_first = row == 0
    behind = jnp.where(is_first, plan.plane.output, row) - 1
    plane_behind = jnp.maximum(plane - is_first.astype(plan.integer), 0)
    sources, insides, fills = zip(
        _input_row(value, plane, row, plan),
        _input_row(value, plane_behind, behind, plan),
        strict=True,
    )
    offset = (to << plan.shift) - start
    word: Any = None
    for slot in range(plan.per_word):
        position = offset + slot
        is_behind = position < 0
        position = jnp.where(is_behind, position + plan.length, position)
        unit, beside = divided(position, plan.unit) if plan.unit > 1 else (position, 0)
        inside = plan.is_inside(plan.row, unit)
        if insides[0] is not None:
            inside = both(inside, _of_row(is_behind, insides))
        position = plan.row.source(unit, plan.mode) * plan.unit + beside
        source = _of_row(is_behind, sources) + position.astype(plan.integer)
        found = _load_element(x, source, both(mask, inside), plan)
        if inside is not None:
            other = _of_row(is_behind, fills).astype(found.dtype)
            found = jnp.where(inside, found, other)
        found = in_slot(found, np.uint32(slot), plan.dtype, plan.per_word)
        word = found if word is None else word | found
    return ((target, word, mask),)


def _of_row(is_behind: Any, pair: tuple[Any, Any]) -> Any:
    return jnp.where(is_behind, pair[1], pair[0])


def _input_row(
    value: Any, plane: Any, row: Any, plan: PaddingPlan
) -> tuple[Any, Any, Any]:
    """For rows: their offset in the input, whether they are in it, and their fill."""
    integer = plan.integer.type
    source, inside = plan.source(plane)
    inside = both(inside, plan.is_inside(plan.plane, row))
    from_row = plan.plane.source(row, plan.mode).astype(plan.integer)
    offset = (source * integer(plan.plane.size) + from_row) * integer(plan.inside)
    return offset, inside, _fill_value(value, plane, row, plan)


def _row_offset(
    plane: Any, row: Any, height: int, length: int, plan: PaddingPlan
) -> tuple[Any, Any]:
    """Where rows start: the words before their plane, and the elements from there on.

    The plane has `height` rows of `length` elements. It may start inside a word.
    """
    before = plane * plan.integer.type(height * length)
    words = before >> plan.integer.type(plan.shift)
    rest = (before & plan.integer.type(plan.per_word - 1)).astype(plan.short)
    return words, row * plan.short.type(length) + rest


def _load_element(x: Any, offset: Any, mask: Any, plan: PaddingPlan) -> Any:
    """The bits of the input's elements at these offsets, each apart from its word."""
    if plan.per_word == 1:
        return load(x.at[offset], mask=mask)
    bits = 8 * plan.dtype.itemsize
    word = load(x.at[offset >> plan.integer.type(plan.shift)], mask=mask)
    slot = (offset & plan.integer.type(plan.per_word - 1)).astype(plan.word)
    return (word >> (slot * plan.word.type(bits))).astype(np.dtype(f"uint{bits}"))


def _fill_value(value: Any, plane: Any, row: Any, plan: PaddingPlan) -> Any:
    """The value of the padding in rows."""
    if math.prod(plan.shared) == 1:
        return value[0]
    height = plan.plane.output
    rows = plan.planes * height // math.prod(plan.batch)  # rows of one input of a batch
    row = jnp.minimum(row, height - 1).astype(plan.integer)
    batch, _ = divided(plane * plan.integer.type(height) + row, rows)
    batch = Offsets(plan.integer.type(0), batch.astype(np.uint32))
    return load(value.at[offsets_in(plan.shared, batch, plan.batch)])
