"""NONZERO_COORDINATES in jax.numpy: its formulas, and the forms that XLA compiles.

A form takes a batch of tensors, (*batch, *sizes), of `rank` sizes each. It returns the
counts, (*batch,), and the coordinates, (*batch, rows, columns). It works on lines: each
tensor is a line of elements. If there is a second operand, `origin`, it has the
offset of each line in its whole array. This is 0, unless a line is a part of a tensor.

`nonzero_words` and the kernels pack a line into *bit words*. A bit word has a bit for
each of 32 elements, set if the element is not zero. The lowest bit is bit 0. The walk
of a CPU packs a line into bytes, with bits in the same order. All of them compact the
set bits into rows of coordinates, each in a different way. For example, with four
elements in a bit word:

    elements    0 5 0 0 | 7 1 0 2     sizes (2, 4)
    bit words   0b0010    0b1011      the first element is the lowest bit
    offsets     1         4 5 7       how many elements lie before it in the line
    rows        (0, 1)    (1, 0) (1, 1) (1, 3)
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dmljax._check import at_most
from dmljax._types import Outputs, as_bits, index_mode, mode_of, to_scalar

BIT_WORD = 32  # the elements of a bit word
MANY = 2**23  # elements of all lines together, from which on bit words pay
# Options of a scatter whose indices are unique but for those past the end. It drops
# these, and writes to no element twice, as `unique_indices` promises XLA.
WRITE_ONCE: Any = {
    "mode": "drop",
    "unique_indices": True,
    "wrap_negative_indices": False,
}

# FORMULAS


def is_nonzero(x: Array) -> Array:
    """Says which elements are not zero, by their bits.

    XLA's comparison of floats takes subnormal numbers for zero on a CPU.
    """
    if jnp.issubdtype(x.dtype, np.complexfloating):
        return is_nonzero(x.real) | is_nonzero(x.imag)
    if not jnp.issubdtype(x.dtype, np.floating):
        return x.astype(bool)
    # A type without a zero turns 0.0 into another number or NaN. We leave it out.
    zeros = np.asarray([0.0, -0.0]).astype(x.dtype)
    zeros = zeros[zeros == 0]
    patterns = np.unique(zeros.view(f"uint{8 * x.dtype.itemsize}"))
    with mode_of(x):
        bits = as_bits(x)
        nonzero = lax.full_like(bits, True, bool)
        for pattern in patterns.tolist():
            differs = lax.ne(bits, bits.dtype.type(pattern))
            nonzero = lax.bitwise_and(nonzero, differs)
        return nonzero


def unravel(offset: Array, sizes: tuple[int, ...]) -> Array:
    """Returns the coordinates, (..., columns), of the elements at these offsets.

    For example, offset 7 of sizes (2, 3, 4) has the coordinates (0, 1, 3). In a part of
    a tensor, the first coordinate may be past the size of the part.
    """
    coordinates = []
    for axis, size in enumerate(sizes):
        # Each coordinate is computed from the offset. In a chain of divisions and
        # remainders, each division would wait for the division before.
        stride = math.prod(sizes[axis + 1 :])
        coordinate = lax.div(offset, to_scalar(stride, np.uint32))
        if axis > 0:
            coordinate = lax.rem(coordinate, to_scalar(size, np.uint32))
        coordinates.append(coordinate)
    return jnp.stack(coordinates, -1)


def valid_rows(count: Array, rows: int) -> Array:
    """Says which rows are not past the count: (..., rows) for counts of (...)."""
    row = lax.broadcasted_iota(np.uint32, (*count.shape, rows), count.ndim)
    return row < count[..., None]


# LINES AND BIT WORDS


class Lines(NamedTuple):
    """A batch of tensors, each of which is a line. All sizes are at least 1."""

    x: Array  # (lines, elements)
    origin: Array  # (lines,): the offset of each line in its whole array
    sizes: tuple[int, ...]  # of a tensor, for each column of the coordinates
    rows: int  # that a form returns for each line


def flatten_lines(
    x: Array,
    origin: Array | None = None,
    *,
    rank: int,
    size: int | None,
    columns: int,
) -> tuple[Lines, Callable[[Array, Array], Outputs]]:
    """Returns the lines of a batch, and a function that restores the batch.

    The function takes (lines,) counts and (lines, rows, columns) coordinates.
    """
    split = x.ndim - rank
    rows = math.prod(x.shape[split:]) if size is None else size
    wanted = (*map(slice, x.shape[:split]), slice(rows))
    # Scatters need something to work on. An array without elements gets a zero, and a
    # line without rows gets a row. `restore` drops these again.
    is_enlarged = 0 in (*x.shape, rows)
    if is_enlarged:
        rows = max(rows, 1)
    if 0 in x.shape:
        x = jnp.pad(x, [(0, int(n == 0)) for n in x.shape])
    batch, sizes = x.shape[:split], x.shape[split:]

    def restore(count: Array, coordinates: Array) -> Outputs:
        count = count.reshape(batch)
        coordinates = coordinates.reshape(*batch, *coordinates.shape[1:])
        if is_enlarged:
            return count[wanted[:-1]], coordinates[wanted]
        return count, coordinates

    lines = math.prod(batch)
    flat = x.reshape(lines, math.prod(sizes))
    if origin is None:
        origins = lax.full((lines,), 0, np.uint32)
    else:
        origins = jnp.broadcast_to(origin, (*batch, *[1] * rank)).ravel()
    # A scalar has a coordinate, too. Dimensions that are left out have size 1.
    return Lines(flat, origins, sizes[-columns:] or (1,), rows), restore


def unravel_rows(offset: Array, counts: Array, lines: Lines, fill: int | None) -> Array:
    """Returns the coordinates of the rows up to each count, and `fill` past it.

    `offset` has (lines, rows). Where `fill` is None, its rows past the count are
    unraveled like the others: coordinates of 0, if the offset is 0.
    """
    coordinates = unravel(offset, lines.sizes)
    if fill is None:
        return coordinates
    valid = valid_rows(counts, lines.rows)[..., None]
    return jnp.where(valid, coordinates, np.uint32(fill))


def pack(x: Array, multiple: int = BIT_WORD) -> Array:
    """Packs the flags of x != 0, for x of (lines, elements), as (lines, bytes).

    A byte has the flags of eight elements, the first in the lowest bit. Zeros are
    added to a line up to a multiple of so many elements.
    """
    lines, elements = x.shape
    length = -(-elements // multiple) * multiple
    flags = is_nonzero(x)
    flags = jnp.pad(flags, [(0, 0), (0, length - elements)])
    flags = lax.reshape(flags, (lines, length // 8, 8))
    # The barrier keeps XLA from packing a constant mask on the host, at 2 to 3 s for
    # 10^6 elements (openxla/xla#1652). A barrier on the input would keep the comparison
    # out of the fusion, and take a quarter longer. The weights are a constant: in front
    # of the barrier, XLA would start a kernel to compute eight numbers.
    weights = lax.optimization_barrier(np.left_shift(1, np.arange(8, dtype=np.uint32)))
    # No two weights share a bit, so their sum is the same as an or. XLA fuses the
    # comparison into the sum, and reads the input once. For 2^26 stored bools on an
    # H200, this select takes 0.023 ms, a shift of the flags 0.040, and sums over 32
    # flags about 0.06 (docs/development/lab_notes.md).
    packed = jnp.where(flags, weights, 0).sum(2, dtype=np.uint32)
    return packed.astype(np.uint8)


# THE DEFINITION


def definition(
    x: Array, *origin: Array, rank: int, size: int | None, **static: Any
) -> Outputs:
    """Chooses the form by the numbers of elements and rows.

    We timed "elements above a limit" on an H200, by `nonzero_words`, by
    `nonzero_scatter` and by a scatter in jax.numpy, in milliseconds
    (benchmarks/results/nvidia-h200.csv: "dmljax xla" is the form that we choose, "[bit
    words]" and "[elements]" are the other one):

    - 2 % of 2^24 elements: 0.083, 0.144, 0.138; of 2^22 elements: 0.052, 0.051, 0.052;
    - 50 % of 2^26 elements, with a row for 5 of 8: 0.802, 0.667, 0.601.

    Below 2^23 elements the forms are level, and `nonzero_scatter` compiles in half of
    the time. A symbolic number of elements takes it as well.
    """
    few = not isinstance(x.size, int) or x.size < MANY
    elements = math.prod(x.shape[x.ndim - rank :])
    for_half = size is not None and at_most(elements, 2 * size)
    form = nonzero_scatter if few or for_half else nonzero_words
    return form(x, *origin, rank=rank, size=size, **static)


# THE FORM FOR FEW ELEMENTS, OR ROWS FOR MOST OF THEM


def nonzero_scatter(
    x: Array,
    *origin: Array,
    fill: int | None,
    **static: Any,
) -> Outputs:
    """Counts element by element, and writes the offset of each into its row.

    Compiled for an H200, it takes 1.3 to 1.5 bytes of temporary memory for an element.
    `nonzero_words` takes 0.6 with rows for 3 % of the elements, and 6.4 with rows for
    half of them.
    """
    lines, restore = flatten_lines(x, *origin, **static)
    with index_mode(lines.x.shape[1], lines.rows) as integer:
        bits = is_nonzero(lines.x)
        # Without the barrier XLA would count a constant mask on the host, for 7 s if it
        # has 10^6 elements (openxla/xla#1652).
        one = lax.optimization_barrier(lax.full((), 1, integer))
        ends = lax.cumsum(bits.astype(integer) * one, axis=1)
        count = ends[:, -1].astype(np.uint32)
        row = jnp.where(bits, ends - 1, to_scalar(lines.rows, integer))
        write = functools.partial(write_offsets, rows=lines.rows)
        offset = jax.vmap(write)(row, lines.origin)
    # The rows past the count have the offset 0, and need no fill to be 0.
    return restore(count, unravel_rows(offset, count, lines, fill or None))


def write_offsets(row: Array, origin: Array, rows: int) -> Array:
    """Writes the offset of each element of a line into its row, and 0 elsewhere.

    An element that is zero has a row past the end, where the scatter drops it. The
    other rows are unique, and XLA needs no atomic operations.
    """
    offset = origin + lax.iota(np.uint32, row.size)
    zeros = jnp.zeros(rows, np.uint32)
    return zeros.at[row].set(offset, **WRITE_ONCE)


# THE FORM FOR MANY ELEMENTS


def nonzero_words(
    x: Array,
    *origin: Array,
    size: int | None,
    fill: int | None,
    running_sum: Callable[[Array], Array] = lax.cumsum,
    compact: Callable[..., Array] | None = None,
    **static: Any,
) -> Outputs:
    """Compacts bit words by a scatter, or by a forward fill if `size` is given.

    `compact` replaces these: `(words, starts, origin, rows) -> offsets`, for all lines
    at once. `running_sum` takes a single line.
    """
    lines, restore = flatten_lines(x, *origin, size=size, **static)
    packed = pack(lines.x)
    height, size_in_bytes = packed.shape
    packed = lax.reshape(packed, (height, size_in_bytes // 4, 4))
    words = lax.bitcast_convert_type(packed, np.uint32)
    ones = lax.population_count(words)
    count = ones.sum(1, dtype=np.uint32)
    if compact is None:
        of_line = scatter_bits if size is None else fill_forward
        compact = jax.vmap(functools.partial(of_line, rows=lines.rows))
    else:
        compact = functools.partial(compact, rows=lines.rows)
    with index_mode(lines.x.shape[1], lines.rows):
        starts = jax.vmap(running_sum)(ones) - ones  # set bits before each bit word
        offset = compact(words, starts, lines.origin)
    # The rows past the count have the offset 0, and need no fill to be 0.
    return restore(count, unravel_rows(offset, count, lines, fill or None))


def scatter_bits(words: Array, starts: Array, origin: Array, rows: int) -> Array:
    """Writes the offset of each set bit of a line into its row.

    The row is the number of set bits before this bit.
    """
    word = words[:, None]
    bit = lax.broadcasted_iota(np.uint32, (1, BIT_WORD), 1)
    is_set = (word >> bit) & 1 != 0
    row = starts[:, None] + ones_below(word, bit)
    row = jnp.where(is_set, row, to_scalar(rows, np.uint32))
    return write_offsets(row.ravel(), origin, rows)


def fill_forward(words: Array, starts: Array, origin: Array, rows: int) -> Array:
    """Returns the offset of each row of a line, and finds its bit word by a fill.

    A bit word that has a bit writes its index into its first row: a single write for 32
    elements. A running maximum copies the index to the rows up to the next bit word.
    """
    begin = jnp.where(words == 0, to_scalar(rows, np.uint32), starts)
    index = lax.iota(np.int32, words.size)
    zeros = jnp.zeros(rows, np.int32)
    word = lax.cummax(zeros.at[begin].set(index, **WRITE_ONCE))
    row = lax.iota(np.uint32, rows)
    before = row - starts[word]  # set bits of the word below the bit of this row
    bit = find_bit(words[word], before)
    offset = origin + word.astype(np.uint32) * np.uint32(BIT_WORD) + bit
    total = starts[-1] + lax.population_count(words[-1])
    return jnp.where(row < total, offset, 0)


def find_bit(word: Array, before: Array) -> Array:
    """Returns the index of the set bit that has `before` set bits below it."""
    bit = jnp.zeros_like(before)
    # Bisection: the bit is `step` further if at most `before` set bits are below that.
    for step in (16, 8, 4, 2, 1):
        further = bit + step
        bit = jnp.where(ones_below(word, further) <= before, further, bit)
    return bit


def ones_below(word: Array, bit: Array) -> Array:
    """Counts the set bits of a bit word below the bit of this index."""
    lower = (jnp.uint32(1) << bit) - 1
    return lax.population_count(word & lower)


# THE RUNNING SUM THAT XLA DIVIDES


def sum_in_levels(values: Array) -> Array:
    """The running sum by sums within blocks, and by a running sum of the blocks.

    For example, 40 values fill two blocks of 16 and half of a third. Each block is
    summed alone. The running sum of the three totals gives the sum before each block.

    XLA divides this sum well among devices. Of `lax.cumsum` along a divided dimension,
    XLA of JAX 0.11.2 makes a loop, with a step for each value: 0.36 s for 2^15 values
    on two H200s, and 0.5 ms for 2^20 with this sum. XLA of JAX 0.12.0.1 gathers the
    values (docs/development/lab_notes.md, "nonzero_coordinates over automatic axes").
    """
    (size,) = values.shape
    if not isinstance(size, int):
        return lax.cumsum(values)  # JAX can't say how many levels there are
    block = 16  # values that a level adds up
    count = -(-size // block)
    padded = jnp.pad(values, (0, count * block - size))
    blocks = padded.reshape(count, 1, block)
    shape = (1, block, block)
    up_to = lax.broadcasted_iota(np.int32, shape, 1)
    term = lax.broadcasted_iota(np.int32, shape, 2)
    # XLA fuses the choice into the sum, and writes no array of all pairs.
    terms = jnp.where(term <= up_to, blocks, 0)
    sums = terms.sum(2, dtype=values.dtype)
    if count > 1:
        totals = sums[:, -1]
        before = sum_in_levels(totals) - totals
        sums = sums + before[:, None]
    return sums.ravel()[:size]


# THE FORM FOR CPUS

BLOCK = 256  # rows whose offsets become coordinates at once


def nonzero_walk(
    x: Array,
    *origin: Array,
    size: int | None,
    fill: int | None,
    **static: Any,
) -> Outputs:
    """Walks over the bytes of all lines in order, and looks up the set bits of each.

    For example, byte 0b10010010 has the bits 1, 4 and 7. The walk writes them, and five
    other numbers, into eight rows. It continues three rows further, so the next byte
    overwrites the five. There is no branch, and dense masks take as many rounds as
    sparse masks. On a CPU this is faster than the other forms, which do work for each
    element (benchmarks/results/x86_64-cpu.csv, "[scatter]").
    """
    lines, restore = flatten_lines(x, *origin, size=size, **static)
    height, elements = lines.x.shape
    packed = pack_rounds(lines.x)
    with index_mode(packed.size, height * lines.rows + elements) as signed:
        # JAX would test signed indices for numbers below 0: a third of a round's time.
        index = np.dtype(f"uint{8 * signed.itemsize}")
        zero = lax.full((), 0, index)
        # The offset of each row of all lines, and eight rows more: a byte writes eight
        # rows, however few bits it has. With one dimension, it takes 1.3 times as long.
        offset = lax.full((height * lines.rows + 8, 1), 0, np.uint32)
        counts = lax.full((height,), 0, np.uint32)
        # We chose a single loop for all lines. For lines of 64 elements, a loop over
        # lines around a loop over the bytes of each took twice as long.
        visit = functools.partial(visit_bytes, packed=packed, lines=lines)
        stop = to_scalar(packed.shape[0], index)
        _, offset, counts = for_each(stop, visit, (zero, offset, counts))
        # Without `size`, a line may have many more rows than set bits.
        if size is None and isinstance(lines.rows, int) and lines.rows >= BLOCK:
            coordinates = unravel_blocks(index, offset, counts, lines, fill or 0)
        else:
            offset = lax.reshape(offset[:-8], (height, lines.rows))
            coordinates = unravel_rows(offset, counts, lines, fill or 0)
    return restore(counts, coordinates)


def pack_rounds(x: Array) -> Array:
    """Packs the flags of lines as (rounds of all lines, bytes of a round)."""
    height, elements = x.shape
    step = 8  # bytes of a round, or all of a shorter line
    if isinstance(elements, int) and elements < 8 * step:
        step = -(-elements // 8)
    rounds = -(-elements // (8 * step))  # of a line
    length = rounds * step * 8
    flags = is_nonzero(x)
    if length != elements:
        # The barriers make this a copy of memory. Otherwise XLA tests for each element
        # whether it is padding, and with JAX 0.12 within `pack`: 2^22 bools then take 9
        # ms in place of 1.4 (docs/development/lab_notes.md, "The walk of a CPU").
        zeros = lax.optimization_barrier(lax.full((height, length), False))
        flags = lax.dynamic_update_slice(zeros, flags, (0, 0))
        flags = lax.optimization_barrier(flags)
    return lax.reshape(pack(flags, 8 * step), (height * rounds, step))


def for_each(stop: Any, visit: Callable[..., Any], state: Any) -> Any:
    """Runs `state = visit(i, state)` for each i below `stop`, in the type of `stop`.

    Where the bounds are known, as inside of jax.ensure_compile_time_eval,
    `lax.fori_loop` counts in int32, whatever the type of its bounds.
    """
    _, state = lax.while_loop(
        lambda carry: carry[0] < stop,
        lambda carry: (carry[0] + 1, visit(*carry)),
        (lax.full_like(stop, 0), state),
    )
    return state


def visit_bytes(
    k: Array, walk: tuple[Array, ...], packed: Array, lines: Lines
) -> tuple[Array, ...]:
    """Visits the bytes of round `k`.

    The state of the walk is the row of the next set bit, counted through all lines, the
    offset of each row, and the count of each line.
    """
    row, offset, counts = walk
    rounds = to_scalar(packed.shape[0] // lines.x.shape[0], k.dtype)  # of a line
    rows = to_scalar(lines.rows, k.dtype)
    line = lax.div(k, rounds)
    within = lax.rem(k, rounds)
    begin = line * rows
    end = begin + rows
    row = jnp.where(within == 0, begin, row)
    origin = lax.dynamic_index_in_dim(lines.origin, line, keepdims=False)
    origin += within.astype(np.uint32) * np.uint32(8 * packed.shape[1])
    table = jnp.asarray(set_bits())
    visited = lax.dynamic_index_in_dim(packed, k, keepdims=False)
    for i, byte in enumerate(visited):
        bits = lax.dynamic_index_in_dim(table, byte.astype(k.dtype), keepdims=False)
        offsets = (origin + np.uint32(8 * i) + bits)[:, None]
        # A line writes past its end. The next line overwrites that, or these rows are
        # past its count, and are filled: with `fill or 0`, and never with None.
        first = lax.min(row, end)
        offset = lax.dynamic_update_slice_in_dim(offset, offsets, first, 0)
        row += lax.population_count(byte).astype(k.dtype)
    count = (row - begin).astype(np.uint32)
    counts = lax.dynamic_update_index_in_dim(counts, count, line, 0)
    return row, offset, counts


@functools.cache
def set_bits() -> np.ndarray:
    """Returns the indices of the bits of each byte, (256, 8): first those that are set.

    >>> set_bits()[0b10010010]
    array([1, 4, 7, 0, 2, 3, 5, 6], dtype=uint32)
    """
    byte = np.arange(256, dtype=np.uint8)
    unset = 1 - np.unpackbits(byte[:, None], axis=1, bitorder="little")
    return np.argsort(unset, axis=1, kind="stable").astype(np.uint32)


def unravel_blocks(
    dtype: np.dtype, offset: Array, counts: Array, lines: Lines, fill: int
) -> Array:
    """Unravels rows as `unravel_rows` does, up to the last valid block of each line.

    Later blocks cost no division. `dtype` is the type that counts rows.
    """
    height = counts.size
    rows, block = dtype.type(lines.rows), dtype.type(BLOCK)

    def visit_line(line: Array, coordinates: Array) -> Array:
        begin = line * rows
        count = lax.dynamic_index_in_dim(counts, line, keepdims=False)
        end = begin + count.astype(dtype)

        def visit_block(k: Array, coordinates: Array) -> Array:
            start = lax.min(begin + k * block, begin + rows - block)
            in_block = lax.dynamic_slice_in_dim(offset, start, BLOCK)[:, 0]
            valid = start + lax.iota(dtype, BLOCK) < end
            block_rows = unravel(in_block, lines.sizes)
            block_rows = jnp.where(valid[:, None], block_rows, np.uint32(fill))
            return lax.dynamic_update_slice_in_dim(coordinates, block_rows, start, 0)

        blocks = lax.div(end - begin + block - 1, block)
        visited: Array = for_each(blocks, visit_block, coordinates)
        return visited

    columns = len(lines.sizes)
    coordinates = lax.full((height * lines.rows, columns), fill, np.uint32)
    stop = to_scalar(height, dtype)
    coordinates = for_each(stop, visit_line, coordinates)
    return lax.reshape(coordinates, (height, lines.rows, columns))
