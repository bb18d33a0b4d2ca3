"""PADDING on a GPU: one launch, in which each element is looked up by itself.

The output is seen as *planes* of *rows*: the last dimension is a row, the one before it
counts the rows of a plane, and the others count planes (`_coordinates.rows_of`). If the
last dimension is small and not padded, such as three colours, a row is the last two
dimensions, and what is padded alike is a *unit* of several elements.

The *inside* of a row is what is not padding along the row. A *chunk* is 16 bytes of the
output. The size of a padded row is often odd, so a chunk may begin anywhere in a row:

    rows of 10     | . a b c d e f g h . | . i j k l m n o p . | . q r s t u ..
    chunks of 4    |------- ======= --------- ======= ------- --------- =======

- Chunks that lie in the inside of one row (`=`) are copied. In the input, their
  elements are neighbours as well, but may begin anywhere in a word of 32 bits. So
  neighbouring words of the input are shifted together.
- The chunks between two insides are a *gap*. A thread writes a word of 32 bits of them,
  or less if the output has no whole number of words. Each element is looked up by
  itself: in which row it is, and which element of the input it repeats. What is behind
  the last chunk belongs to the last gap.

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
from dmljax.pallas import WARP
from dmljax.pallas._axes import Axis, axes_of, merged
from dmljax.pallas.gpu._launch import launch_threads
from dmljax.pallas.gpu._words import on_bits, packed

CHUNK_BYTES = 16  # of a chunk: the widest load and store of a thread
WARPS = 4  # of a program: the fewest that can be launched
# Bytes of neighbouring elements that are not padded. From so many on, they are a row of
# their own in PADDING's kernel for GPUs. Fewer are a unit of the dimension before them,
# such as the colours of an image whose channels come last. Measured on an H200.
ROW_BYTES = 256


@dataclasses.dataclass(frozen=True)
class Group:
    """Neighbouring dimensions of the output in which each operand is alike.

    Attributes:
      size: the product of their sizes.
      owned: for each operand, whether it has these dimensions. Otherwise it is shared
        along them.
      asked: whether `condition` takes the coordinate.
      run: how many coordinates the chunks of a run have, one chunk for each. It is 1 in
        all groups but one.
    """

    size: int
    owned: tuple[bool, ...]
    asked: bool
    run: int = 1

    @property
    def runs(self) -> int:
        """How many runs the coordinates are divided into."""
        return -(-self.size // self.run)


@dataclasses.dataclass(frozen=True)
class PaddingPlan:
    """What is known about a call of PADDING before it runs.

    Attributes:
      outer: the dimensions that count planes.
      plane: the dimension that counts the rows of a plane.
      row: the dimension that is a row, in units.
      unit: the elements of a unit.
      mode: where the values of the padding come from.
      batch: the leading dimensions of the output, along which there may be several
        values.
      chunk: the elements of a chunk.
      word: how many elements of a gap a thread looks up and stores at once: those of 4
        bytes at most.
    """

    outer: tuple[Axis, ...]
    plane: Axis
    row: Axis
    unit: int
    mode: PaddingMode
    batch: tuple[Group, ...]
    chunk: int
    word: int

    @property
    def elements(self) -> int:
        """The elements of the output."""
        return self.rows * self.length

    @property
    def chunks(self) -> int:
        """The whole chunks of the output."""
        return self.elements // self.chunk

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
        """A bound of the offsets in the output, and of the sums in `_source_of`."""
        axes = (*self.outer, self.plane, self.row)
        sums = (axis.output + 2 * axis.size for axis in axes if axis.is_padded)
        return max(self.elements + self.length, *sums)

    @property
    def rows(self) -> int:
        """The rows of the output."""
        return self.plane.output * math.prod(axis.output for axis in self.outer)

    @property
    def length(self) -> int:
        """The elements of a row of the output."""
        return self.row.output * self.unit


class Source(NamedTuple):
    """What a row of the output repeats.

    Attributes:
      first: the offset of the input's row.
      inside: whether there is one; True if every row has one.
      fill: the value of the padding.
    """

    first: Any
    inside: Any
    fill: Any


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
    plan = PaddingPlan(
        outer=outer,
        plane=plane,
        row=row,
        unit=unit,
        mode=mode,
        batch=tuple(groups_of(sizes, [value.shape[:batch]])),
        chunk=CHUNK_BYTES // x.dtype.itemsize,
        # A word is of two rows at most: no row has fewer than two elements, and words
        # begin at multiples of their size.
        word=math.gcd(elements, 4 // x.dtype.itemsize),
    )
    threads = WARPS * WARP
    (output,) = launch_threads(
        _kernel,
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


def _kernel(t: Any, x: Any, value: Any, out: Any, *, plan: PaddingPlan) -> None:
    each = t.threads * plan.chunk  # elements of a program
    # Some numbers may need 64 bits, which a GPU divides in many instructions.
    wide = plan.most + 2 * each >= 2**32
    program, thread = (t.wide(n) if wide else n for n in (t.program, t.thread))
    _copy(t, program * t.threads + thread, x, value, out, plan)
    if plan.gap:
        _fill_gaps(t, program * each, each, x, value, out, plan)


def _copy(t: Any, number: Any, x: Any, value: Any, out: Any, plan: PaddingPlan) -> None:
    """Writes a chunk, if it lies in the inside of a row."""
    offset = number * plan.chunk
    row, column = divided(offset, plan.length)
    begin, end = plan.inside
    inside = (column >= begin) & (column + plan.chunk <= end)
    with t.when(inside & (number < plan.chunks)):
        source = _source(t, row, value, plan)
        words = _neighbours(t, x, source.first + (column - begin), plan.chunk)
        if source.inside is not True:
            every = packed([source.fill] * plan.chunk, x.bits)
            words = [
                t.select(source.inside, word, fill)
                for word, fill in zip(words, every, strict=True)
            ]
        out.put(offset, plan.chunk, words)


def _neighbours(t: Any, x: Any, offset: Any, count: int) -> list[Any]:
    """So many neighbouring elements from any offset on, as words of 32 bits."""
    per_word = 32 // x.bits
    if per_word == 1 or count % per_word or x.size % per_word:
        return packed([x.load(offset + i) for i in range(count)], x.bits)
    slot = offset % per_word
    first, last = offset - slot, x.size - per_word
    places = [first + i for i in range(0, count, per_word)]
    # If the elements are whole words, the word behind them is not needed, and there may
    # be none.
    behind = first + count
    places.append(t.select(behind < last, behind, last))
    words = [x.words(place, per_word)[0] for place in places]
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

    Gap i lies before row i, and the gap with the number `rows` behind the last row.
    Programs of their own for the gaps wrote them later. The GPU's cache had then
    already written the chunks beside them to memory, and the call took 0.060 ms instead
    of 0.035.
    """
    begin, end = plan.inside
    behind = plan.length - end  # elements between an inside and the next row
    first = t.select(base < begin, 0, (base - begin) // plan.length + 1)
    # How many gaps a program may have a part of, and how many words of each.
    gaps = -(-(each + behind + begin) // plan.length)
    words = min(plan.gap, each // plan.word)

    def step(i: Any) -> Sequence[Any]:
        number, word = divided(i * t.threads + t.thread, words)
        gap = first + t.as_wide(number, first)
        row = gap * plan.length  # where it starts
        low = t.select(gap > 0, (row - behind) // plan.chunk * plan.chunk, 0)
        low = t.select(low > base, low, base)
        high = (row + (begin + plan.chunk - 1)) // plan.chunk * plan.chunk
        high = t.select(high < base + each, high, base + each)
        high = t.select(high < plan.elements, high, plan.elements)
        offset = low + t.as_wide(word, first) * plan.word
        with t.when((number < gaps) & (gap <= plan.rows) & (offset < high)):
            elements = _looked_up(t, offset, x, value, plan)
            out.put(offset, plan.word, packed(elements, x.bits))
        return []

    t.loop(-(-gaps * words // t.threads), step)


def _looked_up(t: Any, offset: Any, x: Any, value: Any, plan: PaddingPlan) -> list[Any]:
    """The elements of a word of the output, which may be of two rows."""
    row, column = divided(offset, plan.length)
    source = _source(t, row, value, plan)
    following = source
    if plan.length % plan.word:
        # The last row is followed by none.
        last = plan.rows - 1
        following = _source(t, t.select(row < last, row + 1, row), value, plan)
    found = []
    for slot in range(plan.word):
        position = column + slot
        own = source
        if following is not source:
            is_next = position >= plan.length
            position = t.select(is_next, position - plan.length, position)
            own = Source(
                *(
                    _select(t, is_next, *both)
                    for both in zip(following, source, strict=True)
                )
            )
        found.append(_element(t, x, own, position, plan))
    return found


def _select(t: Any, condition: Any, one: Any, other: Any) -> Any:
    return one if one is True else t.select(condition, one, other)


def _element(t: Any, x: Any, row: Source, position: Any, plan: PaddingPlan) -> Any:
    """The element at a position of a row of the output."""
    unit, beside = divided(position, plan.unit) if plan.unit > 1 else (position, 0)
    within = _source_of(t, plan.row, unit, plan.mode) * plan.unit + beside
    found = x.load(row.first + within)
    inside = _both(row.inside, _is_inside(plan.row, unit, plan.mode))
    return _select(t, inside, found, row.fill) if inside is not True else found


def _source(t: Any, row: Any, value: Any, plan: PaddingPlan) -> Source:
    """What a row of the output repeats."""
    plane, within = divided(row, plan.plane.output)
    axes = [(plan.plane, within)]
    for axis in reversed(plan.outer):
        plane, position = divided(plane, axis.output)
        axes.append((axis, position))
    first: Any = 0
    inside: Any = True
    stride = plan.row.size * plan.unit
    for axis, position in axes:
        first = _source_of(t, axis, position, plan.mode) * stride + first
        stride *= axis.size
        inside = _both(inside, _is_inside(axis, position, plan.mode))
    place: Any = 0
    stride = 1
    rest = row // (plan.rows // math.prod(group.size for group in plan.batch))
    for group in reversed(plan.batch):
        rest, position = divided(rest, group.size)
        if group.owned[0]:
            place = position * stride + place
            stride *= group.size
    constant = plan.mode is PaddingMode.CONSTANT
    return Source(first, inside, value.load(place) if constant else True)


def _source_of(t: Any, axis: Axis, position: Any, mode: PaddingMode) -> Any:
    """The input coordinate that an output coordinate repeats.

    It is the nearest one where CONSTANT has none, so that a thread may read there.
    `_coordinates.source_index` has the formula for numbers with a sign.
    """
    if not axis.is_padded:
        return position
    last = axis.size - 1
    if mode in (PaddingMode.CONSTANT, PaddingMode.EDGE):
        position = t.select(position < axis.before, 0, position - axis.before)
        return t.select(position < last, position, last)
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
    mirrored = t.constant(mirror, position) - position
    return t.select(position < mirrored, position, mirrored)


def _is_inside(axis: Axis, position: Any, mode: PaddingMode) -> Any:
    """Whether an output coordinate has a source; True if every one has."""
    if mode is not PaddingMode.CONSTANT or not axis.is_padded:
        return True
    # Positions before the axis become large numbers.
    return position - axis.before < axis.size


def _both(a: Any, b: Any) -> Any:
    """Whether both conditions hold. True is a condition that always holds."""
    return a if b is True else b if a is True else a & b


def rows_of(
    axes: Sequence[Axis], itemsize: int
) -> tuple[tuple[Axis, ...], Axis, Axis, int]:
    """Splits merged dimensions for a kernel that writes the output row by row.

    Returns the outer dimensions, the two dimensions of a plane, which is made of rows,
    and the number of elements in a unit. A row is the last dimension in units of 1, or
    the one before it in units of the last, if that is small and not padded.
    """
    *outer, row = axes or [Axis(1, 0, 0)]
    unit = 1
    if outer and not row.is_padded and row.size * itemsize < ROW_BYTES:
        unit, row = row.size, outer.pop()
    plane = outer.pop() if outer else Axis(1, 0, 0)
    return tuple(outer), plane, row, unit


def groups_of(
    shape: Sequence[int], operands: Sequence[Sequence[int]], asked: Sequence[int] = ()
) -> list[Group]:
    """The groups of the output's dimensions: at least one, and as few as there can be.

    Each group costs a division.
    """
    groups: list[Group] = []
    for axis, size in enumerate(shape):
        if size == 1 and axis not in asked:
            continue
        owned = tuple(sizes[axis] > 1 for sizes in operands)
        alike = groups and groups[-1].owned == owned and not groups[-1].asked
        if alike and axis not in asked:
            size *= groups.pop().size
        groups.append(Group(size, owned, axis in asked))
    return groups or [Group(1, (False,) * len(operands), False)]


def divided(a: Any, size: int) -> tuple[Any, Any]:
    """The quotient of a number and a size, and the remainder."""
    quotient = a // size
    return quotient, a - quotient * size
