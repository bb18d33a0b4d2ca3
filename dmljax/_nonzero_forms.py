"""NONZERO_COORDINATES in jax.numpy: its formulas, and the forms that XLA compiles.

`is_nonzero` makes flags of any array. A *form* is one way to compute the primitive
(`_primitive`), and works on *lines*: a line has the flags of one tensor of the batch.
The form finds the *offset* of each set flag, and writes rows of coordinates. For
example, with four flags in a bit word:

    elements    0 5 0 0 | 7 1 0 2     sizes (2, 4)
    bit words   0b0010    0b1011      the first flag is the lowest bit
    offsets     1         4 5 7       how many elements of the line lie before
    rows        (0, 1)    (1, 0) (1, 1) (1, 3)

`nonzero_words` and the kernels pack 32 flags into a *bit word*. `nonzero_walk`, the
form of CPUs, packs 8 flags into a byte, with bits in the same order. With `parts=`,
each part is a tensor of the batch, and its *origin* is the offset of its first element
in the whole array.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dmljax._check import surely_le
from dmljax._types import (
    Form,
    Outputs,
    as_bits,
    constant,
    index_mode,
    packed_strides,
)

BIT_WORD = 32  # the elements of a bit word
# Options of a scatter that drops indices past the end. `unique_indices` promises that
# no two updates meet in an element (jax.lax.scatter). A dropped update meets no other,
# so its index may repeat.
WRITE_ONCE: Any = {
    "mode": "drop",
    "unique_indices": True,
    "wrap_negative_indices": False,
}

# FORMULAS


def is_nonzero(x: Array) -> Array:
    """Says which elements are not zero.

    We compare bits: on a CPU, XLA's comparison of floats takes subnormals for zero.
    """
    if jnp.issubdtype(x.dtype, np.complexfloating):
        return is_nonzero(x.real) | is_nonzero(x.imag)
    if not jnp.issubdtype(x.dtype, np.floating):
        return x.astype(bool)
    # A type without a zero, such as float8_e8m0fnu, turns 0.0 into another number or
    # NaN: `patterns` is then empty.
    zeros = np.asarray([0.0, -0.0]).astype(x.dtype)
    zeros = zeros[zeros == 0]
    patterns = np.unique(zeros.view(f"uint{8 * x.dtype.itemsize}"))
    bits = as_bits(x)
    nonzero = lax.full_like(bits, True, bool)
    for pattern in patterns.tolist():
        # For a float of 4 bits, NumPy's pattern is a uint8, and `bits` are uint4.
        differs = lax.ne(bits, constant(pattern, bits.dtype))
        nonzero = lax.bitwise_and(nonzero, differs)
    return nonzero


def unravel(offset: Array, sizes: tuple[int, ...]) -> Array:
    """Returns the coordinates, (..., columns), of the elements at these offsets.

    For example, offset 7 of sizes (2, 3, 4) has the coordinates (0, 1, 3). The first
    size is not used. So a caller with `parts=` may pass offsets in the whole array with
    the sizes of a part, and gets coordinates in the whole array.
    """
    coordinates = []
    strides = packed_strides(sizes)
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        # We compute each coordinate from the offset. In a chain of divisions and
        # remainders, each division would wait for an earlier one.
        coordinate = lax.div(offset, constant(stride, np.uint32))
        if axis > 0:
            coordinate = lax.rem(coordinate, constant(size, np.uint32))
        coordinates.append(coordinate)
    return jnp.stack(coordinates, -1)


def valid_rows(count: Array, rows: int) -> Array:
    """Says which rows are not past the count: (..., rows) for counts of (...)."""
    shape = *count.shape, rows
    row = lax.broadcasted_iota(np.uint32, shape, count.ndim)
    return lax.lt(row, lax.broadcast_in_dim(count, shape, range(count.ndim)))


# LINES AND BIT WORDS


class Layout(NamedTuple):
    """How a batch of tensors lies in lines."""

    batch: tuple[int, ...]
    sizes: tuple[int, ...]  # of a tensor
    rows: int  # of each line
    columns: int  # the number of coordinates in a row
    fill: int | None  # in the rows past the count; None leaves these rows undefined

    @classmethod
    def of(
        cls, shape: tuple[int, ...], *, rank: int, size: int | None, **more: Any
    ) -> "Layout":
        """Returns the layout of a batch of tensors with `rank` sizes each."""
        batch, sizes = shape[: len(shape) - rank], shape[len(shape) - rank :]
        return cls(batch, sizes, math.prod(sizes) if size is None else size, **more)

    @property
    def lines(self) -> int:
        return math.prod(self.batch)

    @property
    def elements(self) -> int:
        """The elements of a line."""
        return math.prod(self.sizes)

    @property
    def column_sizes(self) -> tuple[int, ...]:
        """The size of the dimension of each column. A scalar has a column of size 1."""
        return self.sizes[-self.columns :] or (1,)


def on_lines(find: Callable[..., Outputs]) -> Form:
    """Turns a function of lines into a form, which takes any batch and rank.

    The function is called as ``find(flags, origins, layout) -> counts, coordinates``:

    - flags (lines, elements), with at least one line, one element and one row;
    - origins (lines,), or None without `parts`, where all origins are 0;
    - counts (lines,);
    - coordinates, `lines * rows * columns` numbers in any shape.

    The form is called as ``form(flags, [origins,] **static) -> counts, coordinates``:

    - flags (*batch, *sizes), also empty;
    - origins (*batch, 1, 1, ..), only if there are `parts`, with a 1 for each size.
      Under vmap, the size of a batch dimension may be 1 instead;
    - counts (*batch,);
    - coordinates (*batch, rows, columns).
    """

    def form(flags: Array, *origin: Array, **static: Any) -> Outputs:
        layout = Layout.of(flags.shape, **static)
        batch = layout.batch
        shape = *batch, layout.rows, layout.columns
        if 0 in (*flags.shape, layout.rows):
            axes = range(len(batch), flags.ndim)
            counts = lax.reduce_sum(flags.astype(np.uint32), axes)
            return counts, lax.full(shape, layout.fill or 0, np.uint32)
        lines = lax.reshape(flags, (layout.lines, layout.elements))
        origins = None
        if origin:
            shape_of_origins = (*batch, *[1] * len(layout.sizes))
            origins = jnp.broadcast_to(origin[0], shape_of_origins)
            origins = lax.reshape(origins, (layout.lines,))
        counts, coordinates = find(lines, origins, layout)
        return lax.reshape(counts, batch), lax.reshape(coordinates, shape)

    return form


def unravel_rows(
    offset: Array,
    counts: Array,
    origin: Array | None,
    layout: Layout,
    *,
    zeros_past_count: bool,
) -> Array:
    """Returns the coordinates of the rows up to each count, and `fill` past it.

    `offset` has (lines, rows). With `zeros_past_count`, the offset of each row past the
    count is 0, and the row gets the coordinates of the line's first element. It may
    keep them if `fill` is None, which allows any coordinates in range. It also keeps
    them if `fill` is 0 and lines have no origins: these coordinates are all 0.
    """
    if origin is not None:
        offset = offset + origin[:, None]
    coordinates = unravel(offset, layout.column_sizes)
    may_keep = layout.fill is None or (layout.fill == 0 and origin is None)
    if zeros_past_count and may_keep:
        return coordinates
    valid = valid_rows(counts, layout.rows)
    return fill_past(valid, coordinates, layout.fill)


def fill_past(valid: Array, rows: Array, fill: int | None) -> Array:
    """Replaces the rows that are not valid by `fill`, or by 0 for None."""
    valid = lax.broadcast_in_dim(valid, rows.shape, range(valid.ndim))
    return lax.select(valid, rows, lax.full_like(rows, fill or 0))


def pack(flags: Array, multiple: int = BIT_WORD) -> Array:
    """Packs flags, (lines, elements), into bytes of eight flags, (lines, bytes).

    The first flag is the lowest bit. Each line is padded with False to a multiple of
    `multiple` flags.
    """
    lines, elements = flags.shape
    length = -(-elements // multiple) * multiple
    flags = lax.pad(flags, False, [(0, 0, 0), (0, length - elements, 0)])
    flags = lax.reshape(flags, (lines, length // 8, 8))
    # If the flags are a constant, XLA would fold the sum while compiling, for seconds
    # (10^6 elements; openxla/xla#1652). A barrier on one operand prevents this: on the
    # weights, because XLA could not fuse `is_nonzero` through a barrier on the flags.
    # NumPy computes the weights: XLA would start a kernel for these eight numbers.
    weights = lax.optimization_barrier(np.left_shift(1, np.arange(8, dtype=np.uint32)))
    # No two weights share a bit, so the sum is the bitwise or. XLA fuses `is_nonzero`
    # into the sum, and reads the input once. Shifts of the flags take longer
    # (docs/development/lab_notes.md).
    weights = lax.broadcast_in_dim(weights, flags.shape, (2,))
    terms = lax.select(flags, weights, lax.full_like(weights, 0))
    packed = lax.reduce_sum(terms, (2,))
    return packed.astype(np.uint8)


# THE DEFINITION


@on_lines
def definition(flags: Array, origin: Array | None, layout: Layout) -> Outputs:
    """Chooses between `nonzero_scatter` and `nonzero_words`, by sizes.

    docs/development/lab_notes.md has the times: "Rows for many elements, without the
    kernel".
    """
    elements, rows = layout.elements, layout.rows
    # For few elements, `nonzero_scatter` is as fast, and compiles in half of the time.
    is_large = isinstance(flags.size, int) and flags.size >= 2**23
    # With a row for each element, `nonzero_words` uses `scatter_bits`, and otherwise
    # `fill_forward`, which is slow for many rows.
    is_fast = rows == elements or not surely_le(elements, 2 * rows)
    find = nonzero_words if is_large and is_fast else nonzero_scatter
    return find(flags, origin, layout)


# THE FORM BY ELEMENTS


def nonzero_scatter(flags: Array, origin: Array | None, layout: Layout) -> Outputs:
    """Writes the offset of each non-zero into its row, by a scatter of all elements."""
    rows = layout.rows
    with index_mode(layout.elements, rows) as integer:
        # Without the barrier XLA would count a constant mask while compiling, for
        # seconds (openxla/xla#1652).
        one = lax.optimization_barrier(lax.full((), 1, integer))
        counted = lax.cumsum(flags.astype(integer) * one, axis=1)
        count = counted[:, -1].astype(np.uint32)
        row = jnp.where(flags, counted - 1, constant(rows, integer))
        offset = jax.vmap(functools.partial(write_offsets, rows=rows))(row)
    return count, unravel_rows(offset, count, origin, layout, zeros_past_count=True)


def write_offsets(row: Array, rows: int) -> Array:
    """Writes the offset of each element of a line into its row, and 0 elsewhere.

    The scatter drops elements without a row, whose index is past the end. All other
    indices are unique, and XLA needs no atomic operations.
    """
    zeros = jnp.zeros(rows, np.uint32)
    return zeros.at[row].set(lax.iota(np.uint32, row.size), **WRITE_ONCE)


# THE FORM BY BIT WORDS


def nonzero_words(
    flags: Array,
    origin: Array | None,
    layout: Layout,
    running_sum: Callable[[Array], Array] = lax.cumsum,
    compact: Callable[..., Array] | None = None,
) -> Outputs:
    """Finds the offsets of the set bits in the bit words of each line.

    `scatter_bits` serves lines with a row for each element, and `fill_forward` lines
    with any other number of rows. Both take a line, as `running_sum` does. A caller may
    pass another function, `compact`, `(words, starts, rows) -> offsets`, which takes
    all lines at once.
    """
    rows = layout.rows
    packed = pack(flags)
    height, size_in_bytes = packed.shape
    packed = lax.reshape(packed, (height, size_in_bytes // 4, 4))
    words = lax.bitcast_convert_type(packed, np.uint32)
    ones = lax.population_count(words)
    count = ones.sum(1, dtype=np.uint32)
    if compact is None:
        compact_line = scatter_bits if rows == layout.elements else fill_forward
        compact = jax.vmap(functools.partial(compact_line, rows=rows))
    else:
        compact = functools.partial(compact, rows=rows)
    with index_mode(layout.elements, rows):
        starts = jax.vmap(running_sum)(ones) - ones  # set bits before each bit word
        offset = compact(words, starts)
    return count, unravel_rows(offset, count, origin, layout, zeros_past_count=True)


def scatter_bits(words: Array, starts: Array, rows: int) -> Array:
    """Writes the offset of each set bit of a line into its row.

    The row is the number of set bits before this bit.
    """
    word = words[:, None]
    bit = lax.broadcasted_iota(np.uint32, (1, BIT_WORD), 1)
    is_set = (word >> bit) & 1 != 0
    below = lax.population_count(word & ((jnp.uint32(1) << bit) - 1))
    row = starts[:, None] + below
    row = jnp.where(is_set, row, constant(rows, np.uint32))
    return write_offsets(row.ravel(), rows)


def fill_forward(words: Array, starts: Array, rows: int) -> Array:
    """Returns the offset of each row of a line.

    Each bit word with a set bit writes its index into its first row: a single write for
    32 elements. A running maximum copies the index to the next rows of the bit word.
    For example, bit words with 2, 0 and 3 set bits write 0 and 2 into the rows 0 and 2,
    and the five rows become 0 0 2 2 2.
    """
    first_row = jnp.where(words == 0, constant(rows, np.uint32), starts)
    indices = lax.iota(np.int32, words.size)
    zeros = jnp.zeros(rows, np.int32)
    index = lax.cummax(zeros.at[first_row].set(indices, **WRITE_ONCE))
    row = lax.iota(np.uint32, rows)
    before = row - starts[index]  # set bits of the bit word below the bit of this row
    bit = find_bit(words[index], before)
    offset = index.astype(np.uint32) * np.uint32(BIT_WORD) + bit
    total = starts[-1] + lax.population_count(words[-1])
    return jnp.where(row < total, offset, 0)


def find_bit(word: Array, before: Array) -> Array:
    """Returns the index of the set bit that has `before` set bits below it."""
    bit = jnp.zeros_like(before)
    # Bisection: go `step` further if at most `before` set bits are below that bit.
    for step in (16, 8, 4, 2, 1):
        further = bit + step
        below = lax.population_count(word & ((jnp.uint32(1) << further) - 1))
        bit = jnp.where(below <= before, further, bit)
    return bit


# THE RUNNING SUM THAT XLA DIVIDES


def sum_in_levels(values: Array) -> Array:
    """Returns the running sum of the values: within blocks, and then over blocks.

    For example, 40 values fill two blocks of 16 and half of a third. Each block has a
    running sum of its own, to which the sum of all earlier blocks is added.

    XLA divides this sum well among devices. For `lax.cumsum` along a divided dimension,
    XLA makes a loop with a step for each value, or gathers the values
    (docs/development/lab_notes.md, "nonzero_coordinates over automatic axes").
    """
    (size,) = values.shape
    if not isinstance(size, int):
        return lax.cumsum(values)  # JAX can't say how many levels there are
    block = 16  # values of a block
    count = -(-size // block)
    padded = jnp.pad(values, (0, count * block - size))
    blocks = padded.reshape(count, 1, block)
    # Sum i of a block has the terms 0 to i. XLA fuses the `where` into the sum, and
    # writes no array of 16 x 16 terms.
    terms = jnp.where(jnp.tri(block, dtype=bool)[None], blocks, 0)
    sums = terms.sum(2, dtype=values.dtype)
    if count > 1:
        totals = sums[:, -1]
        before = sum_in_levels(totals) - totals
        sums = sums + before[:, None]
    return sums.ravel()[:size]


# THE FORM FOR CPUS

BLOCK = 256  # rows whose offsets become coordinates at once


@on_lines
def nonzero_walk(flags: Array, origin: Array | None, layout: Layout) -> Outputs:
    """Walks over the bytes of all lines, and looks up the set bits of each in a table.

    For example, byte 0b10010010 has the bits 1, 4 and 7. The walk writes 1, 4, 7 and
    five other numbers into eight rows, and continues three rows further: the next byte
    overwrites the five. There is no branch, and dense masks take as many rounds as
    sparse masks. The other forms do work for each element, which takes a CPU longer.

    A byte may write past the last row of its line, which does no harm. In the next
    line, the rows up to the count are overwritten when the walk comes to this line, and
    the rows past the count are replaced in the end. Past the last line are eight spare
    rows: XLA clamps the start of a later write to the first of them.
    """
    height, rows = layout.lines, layout.rows
    packed = pack_rounds(flags)
    # In `visit_bytes`, `next_row` also advances for set bits that get no row. It stays
    # below `height * rows + elements`.
    with index_mode(packed.size, height * rows + layout.elements) as signed:
        # We count in an unsigned type, because JAX tests whether a signed index is
        # below 0, which takes a third of a round's time.
        integer = np.dtype(f"uint{8 * signed.itemsize}")
        # The offset of each row of all lines, and of eight spare rows, because each
        # byte writes eight rows. An array of one dimension would be slower.
        offset = lax.full((height * rows + 8, 1), 0, np.uint32)
        counts = lax.full((height,), 0, np.uint32)
        # A loop over lines, around a loop over the bytes of each, would be slower for
        # short lines.
        visit = functools.partial(visit_bytes, packed=packed, layout=layout)
        stop = constant(packed.shape[0], integer)
        state = lax.full((), 0, integer), offset, counts
        _, offset, counts = for_each(stop, visit, state)
        # Where every element has a row, most rows may lie past the count. We unravel
        # only blocks with valid rows.
        if rows == layout.elements and isinstance(rows, int) and rows >= BLOCK:
            return counts, unravel_blocks(integer, offset, counts, origin, layout)
        offset = lax.reshape(offset[:-8], (height, rows))
        return counts, unravel_rows(
            offset, counts, origin, layout, zeros_past_count=False
        )


def pack_rounds(flags: Array) -> Array:
    """Packs the flags of lines into bytes, (rounds of all lines, bytes of a round).

    A round is one iteration of the walk's loop.
    """
    height, elements = flags.shape
    round_bytes = 8
    if isinstance(elements, int) and elements < 8 * round_bytes:
        round_bytes = -(-elements // 8)  # a short line has a single round
    rounds = -(-elements // (8 * round_bytes))  # of a line
    length = rounds * round_bytes * 8
    if length != elements:
        # With barriers XLA copies memory. Otherwise XLA would test each element for
        # being padding (docs/development/lab_notes.md, "The walk of a CPU").
        zeros = lax.optimization_barrier(lax.full((height, length), False))
        flags = lax.dynamic_update_slice(zeros, flags, (0, 0))
        flags = lax.optimization_barrier(flags)
    packed = pack(flags, 8 * round_bytes)
    return lax.reshape(packed, (height * rounds, round_bytes))


def for_each(stop: Any, visit: Callable[..., Any], state: Any) -> Any:
    """Runs `state = visit(i, state)` for each i below `stop`, in the type of `stop`.

    We don't use `lax.fori_loop`, which counts in int32 if the bounds are known, for
    example inside of jax.ensure_compile_time_eval.
    """
    _, state = lax.while_loop(
        lambda carry: lax.lt(carry[0], stop),
        lambda carry: (lax.add(carry[0], stop.dtype.type(1)), visit(*carry)),
        (lax.full_like(stop, 0), state),
    )
    return state


def visit_bytes(
    k: Array, walk: tuple[Array, ...], packed: Array, layout: Layout
) -> tuple[Array, ...]:
    """Visits the bytes of round `k`.

    `walk` is the state: the row of the next set bit, counted through all lines; the
    offset of each row; and the count of each line.
    """
    next_row, offset, counts = walk
    round_bytes = packed.shape[1]
    rounds = constant(packed.shape[0] // layout.lines, k.dtype)  # of a line
    rows = constant(layout.rows, k.dtype)
    line = lax.div(k, rounds)
    round_of_line = lax.rem(k, rounds)
    first_row = line * rows
    is_first_round = lax.eq(round_of_line, k.dtype.type(0))
    next_row = lax.select(is_first_round, first_row, next_row)
    round_offset = round_of_line.astype(np.uint32) * np.uint32(8 * round_bytes)
    table = jnp.asarray(set_bits()[..., None])
    visited = lax.dynamic_index_in_dim(packed, k, keepdims=False)
    # Functions of jax.numpy would take twice as long to trace.
    for i in range(round_bytes):
        byte = lax.index_in_dim(visited, i, keepdims=False)
        index = lax.convert_element_type(byte, k.dtype)
        bits = lax.dynamic_index_in_dim(table, index, keepdims=False)
        offsets = lax.add(bits, lax.add(round_offset, np.uint32(8 * i)))
        offset = lax.dynamic_update_slice_in_dim(offset, offsets, next_row, 0)
        ones = lax.convert_element_type(lax.population_count(byte), k.dtype)
        next_row = lax.add(next_row, ones)
    count = (next_row - first_row).astype(np.uint32)
    counts = lax.dynamic_update_index_in_dim(counts, count, line, 0)
    return next_row, offset, counts


@functools.cache
def set_bits() -> np.ndarray:
    """Returns the indices of the bits of each byte, (256, 8): set bits first.

    >>> set_bits()[0b10010010]
    array([1, 4, 7, 0, 2, 3, 5, 6], dtype=uint32)
    """
    byte = np.arange(256, dtype=np.uint8)
    unset = 1 - np.unpackbits(byte[:, None], axis=1, bitorder="little")
    return np.argsort(unset, axis=1, kind="stable").astype(np.uint32)


def unravel_blocks(
    integer: np.dtype,
    offset: Array,
    counts: Array,
    origin: Array | None,
    layout: Layout,
) -> Array:
    """Does the work of `unravel_rows`, but only for blocks of rows with a valid row.

    The other blocks cost no division. `integer` is the type for counting rows.
    """
    rows, block = integer.type(layout.rows), integer.type(BLOCK)

    def visit_line(line: Array, coordinates: Array) -> Any:
        begin = line * rows
        count = lax.dynamic_index_in_dim(counts, line, keepdims=False).astype(integer)
        end = lax.add(begin, count)

        def visit_block(k: Array, coordinates: Array) -> Array:
            # The last block begins so early that it ends where its line ends.
            start = lax.add(begin, lax.min(lax.mul(k, block), rows - block))
            in_block = lax.dynamic_slice_in_dim(offset, start, BLOCK)
            in_block = lax.reshape(in_block, (BLOCK,))
            if origin is not None:
                in_block += lax.dynamic_index_in_dim(origin, line, keepdims=False)
            valid = lax.lt(lax.add(lax.iota(integer, BLOCK), start), end)
            block_rows = unravel(in_block, layout.column_sizes)
            block_rows = fill_past(valid, block_rows, layout.fill)
            return lax.dynamic_update_slice_in_dim(coordinates, block_rows, start, 0)

        blocks = lax.div(lax.add(count, block - integer.type(1)), block)
        return for_each(blocks, visit_block, coordinates)

    size = layout.lines * layout.rows, len(layout.column_sizes)
    coordinates = lax.full(size, layout.fill or 0, np.uint32)
    lines = constant(layout.lines, integer)
    filled: Array = for_each(lines, visit_line, coordinates)
    return filled
