"""PADDING on a GPU: one launch, in which each element is looked up by itself.

The output is seen as *planes* of *rows*: the last dimension is a row, the one before it
counts the rows of a plane, and the others count planes. If the last dimension is small
and not padded, such as three colours, a row is the last two dimensions, and what is
padded alike is a *unit* of several elements.

The *inside* of a row is what is not padding along the row. A *chunk* is 16 bytes of the
output. The size of a padded row is often odd, so a chunk may begin anywhere in a row:

    rows of 10     | . a b c d e f g h . | . i j k l m n o p . | . q r s t u ..
    chunks of 4    |------- ======= --------- ======= ------- --------- =======

- Chunks that lie in the inside of one row (`=`) are copied. In the input, their
  elements are neighbours as well, but may begin anywhere in a word. So neighbouring
  words of the input are shifted together.
- The chunks between two insides are a *gap*. A thread writes a word of them, or less if
  the output has no whole number of words. Each element is looked up by itself: in which
  row it is, and which element of the input it repeats. What is behind the last chunk
  belongs to the last gap.

Times in this file were measured on an H200 with 64Mi int8, images of 256 x 256 padded
by 3 with CONSTANT. Looking up all elements took 0.070 ms instead of 0.035.
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dmljax._coordinates import PaddingMode, fold
from dmljax._types import Outputs
from dmljax.pallas._axes import Axis, axes_of, merged
from dmljax.pallas.gpu import WARP
from dmljax.pallas.gpu._launch import launch_threads
from dmljax.pallas.gpu._words import on_bits, packed

CHUNK_BYTES = 16  # of a chunk: the widest load and store of a thread
WARPS = 4  # of a program: the fewest that can be launched
# Bytes of neighbouring elements that are not padded. From so many on, they are a row;
# fewer are a unit. Measured on an H200.
ROW_BYTES = 256


@dataclasses.dataclass(frozen=True)
class PaddingPlan:
    """The plan of a call.

    Attributes:
      outer: the dimensions that count planes.
      plane: the dimension that counts the rows of a plane.
      row: the dimension that is a row, in units.
      unit: the elements of a unit.
      mode: where the values of the padding come from.
      values: how many padding values there are, each for as many neighbouring rows.
      chunk: the elements of a chunk.
      word: how many elements of a gap a thread looks up and stores at once: those of a
        word at most.
    """

    outer: tuple[Axis, ...]
    plane: Axis
    row: Axis
    unit: int
    mode: PaddingMode
    values: int
    chunk: int
    word: int

    @property
    def rows(self) -> int:
        """The rows of the output."""
        return self.plane.output * math.prod(axis.output for axis in self.outer)

    @property
    def length(self) -> int:
        """The elements of a row of the output."""
        return self.row.output * self.unit

    @property
    def elements(self) -> int:
        """The elements of the output."""
        return self.rows * self.length

    @property
    def inside(self) -> tuple[int, int]:
        """Where in a row its inside begins, and where it ends."""
        begin = self.row.before * self.unit
        return begin, begin + self.row.size * self.unit

    @property
    def gap(self) -> int:
        """The most words that a gap can have."""
        begin, end = self.inside
        if end - begin == self.length and self.length % self.chunk == 0:
            return 0  # all is copied
        longest = self.length - (end - begin) + 2 * (self.chunk - 1)
        return longest // self.chunk * self.chunk // self.word

    @property
    def most(self) -> int:
        """A bound of the output's offsets, and of the sums in `_source_position`."""
        axes = (*self.outer, self.plane, self.row)
        sums = (axis.output + 2 * axis.size for axis in axes if axis.is_padded)
        return max(self.elements + self.length, *sums)


class Source(NamedTuple):
    """What a row of the output repeats.

    Attributes:
      offset: the offset of a row of the input.
      inside: in mode CONSTANT, whether it is this row; otherwise it is the value.
      value: in mode CONSTANT, the value of the padding.
    """

    offset: Any
    inside: Any
    value: Any


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
    if value.size > 1:
        value = jnp.broadcast_to(value, sizes + value.shape[batch:])
    axes = axes_of(x.shape, start, end)
    shape = tuple(axis.output for axis in axes)
    elements = math.prod(shape)
    if x.size in (0, elements):
        return (x if x.size else jnp.broadcast_to(value, shape),)
    outer, plane, row, unit = rows_of(merged(axes), x.dtype.itemsize)
    plan = PaddingPlan(
        outer=outer,
        plane=plane,
        row=row,
        unit=unit,
        mode=mode,
        values=value.size,
        chunk=CHUNK_BYTES // x.dtype.itemsize,
        # A word is of two rows at most: no row has fewer than two elements, and words
        # begin at multiples of their size.
        word=math.gcd(elements, 4 // x.dtype.itemsize),
    )
    threads = WARPS * WARP
    (output,) = launch_threads(
        _pad_chunks,
        x.reshape(1, -1),
        value.reshape(1, -1),
        operator="padding",
        # The last one may have no chunks, and then has what is behind them.
        programs=-(-elements // (threads * plan.chunk)),
        warps=WARPS,
        outputs=(jax.ShapeDtypeStruct((1, elements), x.dtype),),
        shared=(),
        interpret=interpret,
        plan=plan,
    )
    return (output.reshape(shape),)


def _pad_chunks(t: Any, x: Any, value: Any, out: Any, *, plan: PaddingPlan) -> None:
    """Writes the chunks of a program, one for each thread."""
    each = t.threads * plan.chunk  # elements of a program
    # Some numbers may need 64 bits, which a GPU divides in many instructions.
    wide = plan.most + 2 * each >= 2**32
    program, thread = (t.wide(n) if wide else n for n in (t.program, t.thread))
    _copy(t, program * t.threads + thread, x, value, out, plan)
    if plan.gap:
        _fill_gaps(t, program * each, each, x, value, out, plan)


def _copy(t: Any, chunk: Any, x: Any, value: Any, out: Any, plan: PaddingPlan) -> None:
    """Writes a chunk, if it lies in the inside of a row."""
    offset = chunk * plan.chunk
    row, column = _divide(offset, plan.length)
    begin, end = plan.inside
    inside = (column >= begin) & (column + plan.chunk <= end)
    with t.when(inside & (chunk < plan.elements // plan.chunk)):
        source = _find_source(t, row, value, plan)
        words = _load_anywhere(t, x, source.offset + (column - begin), plan.chunk)
        if plan.mode is PaddingMode.CONSTANT:
            fill = packed([source.value] * plan.chunk, x.bits)
            pairs = zip(words, fill, strict=True)
            words = [t.select(source.inside, *pair) for pair in pairs]
        out.put(offset, plan.chunk, words)


def _load_anywhere(t: Any, x: Any, offset: Any, count: int) -> list[Any]:
    """Loads neighbouring elements from any offset on, as words."""
    per_word = 32 // x.bits
    if per_word == 1 or count % per_word or x.size % per_word:
        return packed([x.load(offset + i) for i in range(count)], x.bits)
    slot = offset % per_word
    first = offset - slot
    offsets = [first + i for i in range(0, count, per_word)]
    # If the elements are whole words, the word behind them is not needed, and there may
    # be none.
    offsets.append(t.minimum(first + count, x.size - per_word))
    words = [x.words(each, per_word)[0] for each in offsets]
    shift = t.narrow(slot) * x.bits
    # The shift to the left is by 1 bit and then by the rest, because a shift by all
    # bits of a word is not defined.
    return [
        (word >> shift) | ((more << 1) << (shift ^ 31))
        for word, more in itertools.pairwise(words)
    ]


def _fill_gaps(
    t: Any, base: Any, each: int, x: Any, value: Any, out: Any, plan: PaddingPlan
) -> None:
    """Writes what a program has of gaps: its elements are `each` from `base` on.

    Gap i lies before row i, and one more gap behind the last row:

        | inside of row i-1 | behind | begin | inside of row i |
                                     ^ start of row i
                  chunk |---------- gap i -----------| chunk

    Programs of their own for the gaps wrote them later. The GPU's cache had then
    already written the chunks beside them to memory, and the call took 0.060 ms instead
    of 0.035.
    """
    begin, end = plan.inside
    behind = plan.length - end
    first = t.select(base < begin, 0, (base - begin) // plan.length + 1)
    # How many gaps a program may have a part of, and how many words of each.
    gaps = -(-(each + behind + begin) // plan.length)
    words = min(plan.gap, each // plan.word)

    def fill_word(i: Any) -> Sequence[Any]:
        number, word = _divide(i * t.threads + t.thread, words)
        gap = first + number
        start = gap * plan.length
        low = t.select(gap > 0, (start - behind) // plan.chunk * plan.chunk, 0)
        high = (start + (begin + plan.chunk - 1)) // plan.chunk * plan.chunk
        low = t.maximum(low, base)
        high = t.minimum(t.minimum(high, base + each), plan.elements)
        offset = low + word * plan.word
        with t.when((number < gaps) & (gap <= plan.rows) & (offset < high)):
            elements = _look_up(t, offset, x, value, plan)
            out.put(offset, plan.word, packed(elements, x.bits))
        return []

    t.loop(-(-gaps * words // t.threads), fill_word)


def _look_up(t: Any, offset: Any, x: Any, value: Any, plan: PaddingPlan) -> list[Any]:
    """Returns the elements of a word of the output, which may be of two rows."""
    row, column = _divide(offset, plan.length)
    source = _find_source(t, row, value, plan)
    if plan.length % plan.word == 0:
        columns = (column + i for i in range(plan.word))
        return [_load_source(t, x, source, each, plan) for each in columns]
    # The last row is followed by none.
    following = t.select(row < plan.rows - 1, row + 1, row)
    following = _find_source(t, following, value, plan)
    found = []
    for i in range(plan.word):
        is_next = column + i >= plan.length
        position = t.select(is_next, column + i - plan.length, column + i)
        pairs = zip(following, source, strict=True)
        own = Source(*(t.select(is_next, *pair) for pair in pairs))
        found.append(_load_source(t, x, own, position, plan))
    return found


def _load_source(t: Any, x: Any, row: Source, column: Any, plan: PaddingPlan) -> Any:
    """Returns the element in this column of a row of the output."""
    unit, beside = _divide(column, plan.unit)
    position = _source_position(t, plan.row, unit, plan.mode)
    element = x.load(row.offset + (position * plan.unit + beside))
    if plan.mode is not PaddingMode.CONSTANT:
        return element
    inside = row.inside & _is_inside(t, plan.row, unit)
    return t.select(inside, element, row.value)


def _find_source(t: Any, row: Any, value: Any, plan: PaddingPlan) -> Source:
    """Returns what a row of the output repeats."""
    offset, inside, stride = (
        t.constant(0),
        t.constant(0) == 0,
        plan.row.size * plan.unit,
    )
    rest = row
    for axis in (plan.plane, *reversed(plan.outer)):
        rest, position = _divide(rest, axis.output)
        offset = offset + _source_position(t, axis, position, plan.mode) * stride
        inside = inside & _is_inside(t, axis, position)
        stride *= axis.size
    if plan.mode is not PaddingMode.CONSTANT:
        return Source(offset, inside, t.constant(0))
    of_each = plan.rows // plan.values  # rows
    return Source(offset, inside, value.load(row // of_each if plan.values > 1 else 0))


def _source_position(t: Any, axis: Axis, position: Any, mode: PaddingMode) -> Any:
    """Returns the input position that an output position repeats.

    It is the nearest one where CONSTANT has none, so that a thread may read there.
    `_coordinates.source_index` has the formula for numbers with a sign.
    """
    if not axis.is_padded:
        return position
    if mode in (PaddingMode.CONSTANT, PaddingMode.EDGE):
        position = t.select(position < axis.before, 0, position - axis.before)
        return t.minimum(position, axis.size - 1)
    period, mirror = fold(axis.size, mode)
    shift = (-axis.before) % period
    position = position + shift
    periods = (axis.output - 1 + shift) // period
    if periods > 1:
        position = position % period
    elif periods:
        position = t.select(position < period, position, position - period)
    if mode is PaddingMode.WRAP:
        return position
    return t.minimum(position, mirror - position)


def _is_inside(t: Any, axis: Axis, position: Any) -> Any:
    """Whether an output position is not of the padding."""
    if not axis.is_padded:
        return t.constant(0) == 0
    # Positions before the axis become large numbers.
    return position - axis.before < axis.size


def rows_of(
    axes: Sequence[Axis], itemsize: int
) -> tuple[tuple[Axis, ...], Axis, Axis, int]:
    """Splits merged dimensions into those that count planes, a plane, a row and a unit.

    A row is the last dimension in units of 1, or the one before it in units of the
    last, if that is small and not padded.
    """
    *outer, row = axes
    unit = 1
    if outer and not row.is_padded and row.size * itemsize < ROW_BYTES:
        unit, row = row.size, outer.pop()
    plane = outer.pop() if outer else Axis(1, 0, 0)
    return tuple(outer), plane, row, unit


def _divide(a: Any, size: int) -> tuple[Any, Any]:
    """Returns the quotient of a number and a size, and the remainder."""
    quotient = a // size
    return quotient, a - quotient * size
