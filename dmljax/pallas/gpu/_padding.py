"""PADDING on a GPU: one launch that copies 16 bytes at a time, away from the padding.

The output is seen as a matrix. Its rows are along the last dimension, after neighbours
that are not padded are merged. If that is small and not padded, such as three colours,
they are along the last two, and the elements that are padded alike are a *unit*.

The *inside* of a row is the part that is not padding along the row. A *chunk* is 16
bytes of the output. The size of a padded row is often odd, so a chunk may begin
anywhere in a row:

    rows of 10     | . a b c d e f g h . | . i j k l m n o p . | . q r s t u ..
    chunks of 4      ------- ======= --------- ======= -------   -------

- Chunks that lie in the inside of one row (`=`) are copied. In the input, their
  elements are neighbours as well, but may begin anywhere in a word. So neighbouring
  words of the input are shifted together.
- The chunks between two insides are a *gap*. A thread stores a word of it, or less if
  the output has no whole number of words. Its elements are looked up one by one: in
  which row each is, and which element of the input it repeats. The elements behind the
  last chunk belong to the last gap.

Here belong the plan of a call and the code of a thread. `_padding_bits` turns elements
of any type into integers, and `_padding_forms` has the formula for numbers with a sign.
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dmljax._padding_forms import PaddingMode, fold
from dmljax._types import Outputs
from dmljax.pallas.gpu import WARP, word_of
from dmljax.pallas.gpu._launch import launch_threads
from dmljax.pallas.gpu._padding_bits import on_bits

CHUNK_BYTES = 16  # of the widest store of a thread
WARPS = 4  # of a program: the fewest that can be launched
# Bytes of neighbouring elements that are not padded. From so many on, they are a row;
# fewer are a unit. Images whose colours are the last dimension, in uint8, take 0.057 ms
# on an H200, and 0.353 if colours are rows (benchmarks/results/nvidia-h200.csv,
# "[rows]").
ROW_BYTES = 256


@dataclasses.dataclass(frozen=True)
class Axis:
    """One dimension: its size, and the padding before and after it."""

    size: int
    before: int
    after: int

    @property
    def output(self) -> int:
        """The size with the padding."""
        return self.before + self.size + self.after

    @property
    def is_padded(self) -> bool:
        """Whether there is any padding."""
        return self.before + self.after > 0


Axes = Sequence[Axis]


def merged(axes: Axes) -> list[Axis]:
    """Merges neighbouring dimensions that are not padded into one.

    For example, {16,3,224,224} becomes {48,224,224} if rows and columns are padded.
    """
    # A kernel finds a position by a division for each dimension, so fewer are faster.
    result: list[Axis] = []
    for axis in axes:
        if result and not (axis.is_padded or result[-1].is_padded):
            axis = Axis(result.pop().size * axis.size, 0, 0)
        result.append(axis)
    return result


@dataclasses.dataclass(frozen=True)
class PaddingPlan:
    """The plan of a call."""

    outer: tuple[Axis, ...]  # the dimensions that count rows
    row: Axis  # the dimension that is a row, in units
    unit: int  # the elements of a unit
    mode: PaddingMode
    values: int  # values of the padding: 1, or one for each of equal groups of rows
    chunk: int  # the elements of a chunk
    store: int  # the elements of a gap that a thread stores at once: a word, or fewer

    @property
    def rows(self) -> int:
        """The rows of the output."""
        return math.prod(axis.output for axis in self.outer)

    @property
    def length(self) -> int:
        """The elements of a row of the output."""
        return self.row.output * self.unit

    @property
    def elements(self) -> int:
        """The elements of the output."""
        return self.rows * self.length

    @property
    def share(self) -> int:
        """The elements of the chunks of a program."""
        return WARPS * WARP * self.chunk

    @property
    def margins(self) -> tuple[int, int]:
        """The padding before and after the inside of a row, in elements."""
        return self.row.before * self.unit, self.row.after * self.unit

    @property
    def inside(self) -> tuple[int, int]:
        """The begin and the end of the inside of a row."""
        before, after = self.margins
        return before, self.length - after

    @property
    def longest_gap(self) -> int:
        """The most stores that fill a gap."""
        # On both sides, a chunk may reach into an inside by all but one element.
        chunks = (sum(self.margins) + 2 * (self.chunk - 1)) // self.chunk
        return chunks * self.chunk // self.store

    @property
    def largest(self) -> int:
        """The largest number that an offset or a sum in `_source_position` can be."""
        axes = (*self.outer, self.row)
        sums = [axis.output + 2 * axis.size for axis in axes if axis.is_padded]
        return max([self.elements + self.length, *sums])


def plan_of(axes: Axes, mode: PaddingMode, values: int, itemsize: int) -> PaddingPlan:
    """Returns the plan for these dimensions, and elements of 1, 2 or 4 bytes."""
    *outer, row = merged(axes)
    unit = 1
    if not row.is_padded and row.size * itemsize < ROW_BYTES:
        unit = row.size
        row = outer.pop()
    chunk = CHUNK_BYTES // itemsize
    # Single bytes in place of words take 1.6 times as long for images of 64 x 64 bytes
    # on an H100.
    store = math.gcd(math.prod(axis.output for axis in axes), 4 // itemsize)
    return PaddingPlan(tuple(outer), row, unit, mode, values, chunk, store)


class PaddingProgram(NamedTuple):
    """A program, as each of its threads sees it: the plan and the memories."""

    t: Any  # the thread
    plan: PaddingPlan
    x: Any  # the input
    value: Any  # the values of the padding
    out: Any  # the output


class SourceRow(NamedTuple):
    """The row of the input that a row of the output repeats."""

    offset: Any  # of the first element of this row
    # Under CONSTANT alone:
    is_inside: Any = None  # false if the whole row of the output is padding
    value: Any = None  # the padding value of this row


class Gap(NamedTuple):
    """The elements of the output from `low` on, up to `high` without `high`."""

    low: Any
    high: Any


@on_bits
def padding(
    x: jax.Array,
    *given: jax.Array,
    start: tuple[int, ...],
    end: tuple[int, ...],
    mode: PaddingMode,
) -> Outputs:
    """The form by kernel. Only CONSTANT is given a value, or one for each batch."""
    # The kernel takes a value in every mode, and reads it in CONSTANT alone.
    (value,) = given or (jnp.zeros((1,) * x.ndim, x.dtype),)
    batch = x.ndim - len(start)
    sizes = np.broadcast_shapes(x.shape[:batch], value.shape[:batch])
    x = jnp.broadcast_to(x, sizes + x.shape[batch:])
    if value.size > 1:
        value = jnp.broadcast_to(value, sizes + value.shape[batch:])
    axes = [Axis(size, 0, 0) for size in sizes]
    axes += map(Axis, x.shape[batch:], start, end)
    shape = tuple(axis.output for axis in axes)
    if not x.size:  # all of the output is padding, or it is empty as well
        return (jnp.broadcast_to(value, shape),)
    if x.shape == shape:  # nothing is added
        return (x,)
    plan = plan_of(axes, mode, value.size, x.dtype.itemsize)
    (output,) = launch_threads(
        _pad_chunks,
        x.reshape(1, -1),
        value.reshape(1, -1),
        operator="padding",
        # The last program may have no chunks, only the elements behind them.
        programs=-(-plan.elements // plan.share),
        warps=WARPS,
        outputs=[jax.ShapeDtypeStruct((1, plan.elements), x.dtype)],
        plan=plan,
    )
    return (output.reshape(shape),)


def _pad_chunks(t: Any, *memories: Any, plan: PaddingPlan) -> None:
    """Writes a program's share: a chunk by each thread, and then the parts of gaps."""
    p = PaddingProgram(t, plan, *memories)
    program, thread = t.program, t.thread
    # Threads of the last program compute offsets up to two shares past the end. These
    # may need 64 bits. A GPU divides such numbers in many instructions.
    if plan.largest + 2 * plan.share >= 2**32:
        program, thread = t.wide(program), t.wide(thread)
    _copy_chunk(p, program * t.threads + thread)
    _fill_gaps(p, program * plan.share)


def _copy_chunk(p: PaddingProgram, chunk: Any) -> None:
    """Writes a chunk, if it lies in the inside of a row.

    Without this, reflect padding of bfloat16 images on an H200 takes 1.85 times as long
    (results/nvidia-h200.csv, "[nothing copied]").
    """
    plan = p.plan
    offset = chunk * plan.chunk
    row, column = _divide(offset, plan.length)
    begin, end = plan.inside
    is_copied = (column >= begin) & (column + plan.chunk <= end)
    with p.t.when(is_copied & (chunk < plan.elements // plan.chunk)):
        source = _find_source_row(p, row)
        words = _load_anywhere(p, source.offset + (column - begin))
        if plan.mode is PaddingMode.CONSTANT:
            fill = word_of([source.value] * (32 // p.x.bits), p.x.bits)
            words = [p.t.select(source.is_inside, word, fill) for word in words]
        p.out.store(offset, *words, elements=plan.chunk)


def _load_anywhere(p: PaddingProgram, offset: Any) -> list[Any]:
    """Loads the elements of a chunk from any offset of the input on, as words."""
    x = p.x
    chunk = p.plan.chunk
    per_word = 32 // x.bits
    # We load words if an element is less than one, and if they end where the input
    # ends: a last word that is not full would reach past the end.
    if per_word == 1 or x.size % per_word:
        return _packed([x.load(offset + i) for i in range(chunk)], x.bits)
    slot = offset % per_word
    first = offset - slot
    offsets = [first + i for i in range(0, chunk, per_word)]
    # If `slot` is 0, the word behind the chunk is not needed, and may not exist.
    offsets.append(p.t.minimum(first + chunk, x.size - per_word))
    words = [x.words(each, per_word)[0] for each in offsets]
    shift = p.t.narrow(slot) * x.bits
    # The shift to the left is by 1 bit and then by 31 - shift bits, because a shift by
    # all bits of a word is not defined.
    return [
        (word >> shift) | ((more << 1) << (31 - shift))
        for word, more in itertools.pairwise(words)
    ]


def _packed(elements: Sequence[Any], bits: int) -> list[Any]:
    """Returns the words that hold these elements, the first in the lowest bits."""
    per_word = 32 // bits
    starts = range(0, len(elements), per_word)
    return [word_of(elements[first : first + per_word], bits) for first in starts]


def _gap_before(p: PaddingProgram, row: Any) -> Gap:
    """Returns the gap before a row of the output, or behind the last row.

    | inside of the row before | after | before | inside of the row |
                                       ^ start
                 chunk |---------------- gap -------------| chunk
    """
    plan = p.plan
    before, after = plan.margins
    start = row * plan.length
    low = p.t.select(row > 0, (start - after) // plan.chunk * plan.chunk, 0)
    high = (start + (before + plan.chunk - 1)) // plan.chunk * plan.chunk
    return Gap(low, high)


def _fill_gaps(p: PaddingProgram, base: Any) -> None:
    """Writes the parts of gaps in a program's share, which begins at `base`.

    We tried programs of their own for the gaps, which wrote them later. The GPU's cache
    had then already written the chunks beside them to memory. Images of 256 x 256, 64Mi
    int8, padded by 3 with CONSTANT, took 0.060 ms on an H200 instead of 0.035.
    """
    t = p.t
    plan = p.plan
    before, after = plan.margins
    stop = t.minimum(base + plan.share, plan.elements)
    # The share has a part of the gap before row r if
    #     base - before < r * length < base + share + after.
    first = (base + (plan.length - before)) // plan.length  # the least such r
    gaps = -(-(plan.share + before + after) // plan.length)  # at most as many rows r
    longest = min(plan.longest_gap, plan.share // plan.store)  # stores of a part

    def fill(i: Any) -> None:
        gap_index, store_index = _divide(i * t.threads + t.thread, longest)
        following = first + gap_index  # the row behind the gap
        gap = _gap_before(p, following)
        low, high = t.maximum(gap.low, base), t.minimum(gap.high, stop)
        offset = low + store_index * plan.store
        exists = (gap_index < gaps) & (following <= plan.rows)
        with t.when(exists & (offset < high)):
            elements = [_load_source(p, offset + k) for k in range(plan.store)]
            p.out.store(offset, *_packed(elements, p.x.bits), elements=plan.store)

    t.loop(-(-gaps * longest // t.threads), fill)


def _load_source(p: PaddingProgram, offset: Any) -> Any:
    """Returns the element at this offset of the output."""
    plan = p.plan
    row, column = _divide(offset, plan.length)
    source = _find_source_row(p, row)
    unit, element = _divide(column, plan.unit)
    position = _source_position(p.t, plan.row, unit, plan.mode)
    found = p.x.load(source.offset + (position * plan.unit + element))
    if plan.mode is not PaddingMode.CONSTANT:
        return found
    is_inside = source.is_inside & _is_inside(p.t, plan.row, unit)
    return p.t.select(is_inside, found, source.value)


def _find_source_row(p: PaddingProgram, row: Any) -> SourceRow:
    """Returns the row of the input that a row of the output repeats."""
    t = p.t
    plan = p.plan
    offset = t.constant(0)
    is_inside = t.constant(0) == 0  # true
    rest = row
    stride = plan.row.size * plan.unit
    for axis in reversed(plan.outer):
        rest, position = _divide(rest, axis.output)
        offset = offset + _source_position(t, axis, position, plan.mode) * stride
        is_inside = is_inside & _is_inside(t, axis, position)
        stride *= axis.size
    if plan.mode is not PaddingMode.CONSTANT:
        return SourceRow(offset)
    rows_of_value = plan.rows // plan.values
    value = p.value.load(row // rows_of_value if plan.values > 1 else 0)
    return SourceRow(offset, is_inside, value)


def _source_position(t: Any, axis: Axis, position: Any, mode: PaddingMode) -> Any:
    """Returns the input position that an output position repeats.

    It is the nearest one where CONSTANT has none, so that a thread may read there.
    `_padding_forms.source_index` has the formula for numbers with a sign.
    """
    if not axis.is_padded:
        return position
    if mode in (PaddingMode.CONSTANT, PaddingMode.EDGE):
        position = t.select(position < axis.before, 0, position - axis.before)
        return t.minimum(position, axis.size - 1)
    period, mirror = fold(axis.size, mode)
    shift = (-axis.before) % period
    position = (position + shift) % period
    return t.minimum(position, mirror - position)


def _is_inside(t: Any, axis: Axis, position: Any) -> Any:
    """Whether an output position is not of the padding."""
    if not axis.is_padded:
        return t.constant(0) == 0  # true
    # Positions before the axis become large numbers.
    return position - axis.before < axis.size


def _divide(a: Any, size: int) -> tuple[Any, Any]:
    """Returns the quotient of a number and a size, and the remainder."""
    quotient = a // size
    return quotient, a - quotient * size
