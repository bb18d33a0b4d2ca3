"""NONZERO_COORDINATES in jax.numpy: the forms that XLA compiles.

Each form first packs the line into *bit words*. A bit word has one bit for each of 32
elements, set if the element is not zero. Then each form compacts the set bits into rows
of coordinates, in its own way. For example, with four elements in a bit word:

    elements    0 5 0 0 | 7 1 0 2     sizes (2, 4)
    bit words   0b0010    0b1011      the first element is the lowest bit
    offsets     1         4 5 7       how many elements lie before it in the line
    rows        (0, 1)    (1, 0) (1, 1) (1, 3)
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dmljax._jax import varying_alike
from dmljax._types import (
    Form,
    Outputs,
    index_mode,
    mode_of,
    packed_strides,
    to_scalar,
)

BIT_WORD = 32  # the elements of a bit word
BLOCK = 16  # numbers that one level of a running sum adds up
MANY = 2**23  # elements from which on bit words pay


def is_nonzero(x: jax.Array) -> jax.Array:
    """Says which elements are not zero, by their bits.

    XLA's comparison of floats takes subnormal numbers for zero on a CPU.
    """
    if jnp.issubdtype(x.dtype, np.complexfloating):
        return is_nonzero(x.real) | is_nonzero(x.imag)
    if not jnp.issubdtype(x.dtype, np.floating):
        return x.astype(bool)
    with mode_of(x):
        bits = lax.bitcast_convert_type(x, jnp.dtype(f"uint{jnp.finfo(x.dtype).bits}"))
        tests = (lax.ne(bits, bits.dtype.type(p)) for p in zero_patterns(x.dtype))
        return functools.reduce(lax.bitwise_and, tests, lax.full_like(bits, True, bool))


@functools.cache
def zero_patterns(dtype: np.dtype) -> tuple[int, ...]:
    """Returns the bits of the zeros of a floating-point type: two, one or none.

    >>> [hex(pattern) for pattern in zero_patterns(np.dtype("float16"))]
    ['0x0', '0x8000']
    """
    # A type without a zero turns 0.0 into another number or NaN. We leave it out.
    zeros = np.asarray([0.0, -0.0]).astype(dtype)
    patterns = zeros.view(f"uint{8 * dtype.itemsize}")
    return tuple(sorted({int(pattern) for pattern in patterns[zeros == 0]}))


def fill_rows(coordinates: jax.Array, valid: jax.Array, fill: int | None) -> jax.Array:
    """Puts `fill` into the rows that are not valid. They have 0 so far."""
    # Neither 0 nor None asks for any work: None leaves these rows undefined.
    if not fill:
        return coordinates
    return jnp.where(valid[..., None], coordinates, np.uint32(fill))


def last_sizes(sizes: tuple[int, ...], columns: int) -> tuple[int, ...]:
    """Returns the sizes of the last dimensions, one for each column.

    >>> last_sizes((1, 2, 3), 2), last_sizes((), 1)
    ((2, 3), (1,))
    """
    return ((1,) * columns + sizes)[len(sizes) :]


def unravel(flat: jax.Array, sizes: tuple[int, ...], columns: int) -> jax.Array:
    """Returns the last coordinates, (..., columns), of the elements at these offsets.

    For example, offset 7 of sizes (2, 3, 4) has the coordinates (0, 1, 3). In a part of
    a tensor, the first coordinate may be past the size of the part.
    """
    sizes = last_sizes(sizes, columns)
    strides = packed_strides(sizes)
    # Each coordinate is a quotient and a remainder of its own. A chain of divisions,
    # each of the rest of the one before, would have to run one after the other.
    quotients = [lax.div(flat, to_scalar(stride, np.uint32)) for stride in strides]
    rest = (
        lax.rem(quotient, to_scalar(size, np.uint32))
        for quotient, size in zip(quotients[1:], sizes[1:], strict=True)
    )
    columns_ = [lax.expand_dims(x, [-1]) for x in (quotients[0], *rest)]
    return lax.concatenate(columns_, flat.ndim)


def _pack(x: jax.Array) -> jax.Array:
    """Packs the bits of x != 0, for x of (lines, elements), as (lines, bit words)."""
    lines, elements = x.shape
    words = -(-elements // BIT_WORD)
    lanes = lax.convert_element_type(is_nonzero(x), np.uint32)
    lanes = lax.pad(
        lanes, np.uint32(0), ((0, 0, 0), (0, words * BIT_WORD - elements, 0))
    )
    lanes = lax.reshape(lanes, (lines, words, BIT_WORD))
    # The barrier keeps XLA from computing the bit words of a constant mask on the host,
    # at 2 to 3 s for 10^6 elements. A barrier on the input would keep the comparison
    # out of the fusion, and take a quarter longer.
    lane = lax.optimization_barrier(lax.iota(np.uint32, BIT_WORD))
    lane = lax.broadcast_in_dim(lane, lanes.shape, (2,))
    # Each term has a bit of its own: the sum is the same as an or. We sum because
    # GPUs can't reduce an or among each other. XLA fuses the comparison into the sum,
    # and reads the input once.
    bits = lax.shift_left(lanes, lane)
    packed: jax.Array = lax.reduce(bits, np.uint32(0), lax.add, (2,))
    return packed


def by_lines(lines: Callable[..., Outputs]) -> Form:
    """Makes a form of NONZERO_COORDINATES out of a function of independent lines.

    `lines` takes x as (lines, elements), with sizes of at least 1; the sizes of the
    tensor, as `sizes=`; the number of rows to return for each line, as `rows=`; and
    `columns=`, `fill=` and what else a form takes. It returns (lines,) counts and
    (lines, rows, columns) coordinates. If there is a second operand, (lines,), it has
    the offset of each line's first element: 0, unless the line is a part of a tensor.
    """

    def form(
        x: jax.Array, *first: jax.Array, rank: int, size: int | None, **static: Any
    ) -> Outputs:
        batch, sizes = x.shape[: x.ndim - rank], x.shape[x.ndim - rank :]
        elements = math.prod(sizes)
        rows = elements if size is None else size
        shape = (*batch, rows, static["columns"])
        # Kernels and scatters need something to work on. Without elements, or without
        # rows, the outputs are simple.
        if 0 in (*x.shape, *shape):
            count = is_nonzero(x).sum(range(len(batch), x.ndim), dtype=np.uint32)
            return count, jnp.full(shape, static["fill"] or 0, np.uint32)
        flat = x.reshape(math.prod(batch), elements)
        offsets = (jnp.broadcast_to(f, (*batch, *[1] * rank)).ravel() for f in first)
        count, coordinates = lines(flat, *offsets, sizes=sizes, rows=rows, **static)
        return count.reshape(batch), coordinates.reshape(shape)

    return form


def _by_bit_words(compact: Callable[..., jax.Array]) -> Form:
    """Makes a form of the operator, given how set bits are compacted into rows.

    `compact` takes the bit words, the offset of each line's first element, and
    `sizes=`, `rows=` and `columns=`. It returns (lines, rows, columns) coordinates,
    with 0 past the count.
    """

    @by_lines
    def form(
        x: jax.Array, *first: jax.Array, fill: int | None, **static: Any
    ) -> Outputs:
        words = _pack(x)
        ones = lax.population_count(words)
        count = lax.reduce(ones, np.uint32(0), lax.add, (1,))
        # `first` is empty, or has the offsets of the lines' first elements.
        offset = sum(first, lax.full((x.shape[0],), 0, np.uint32))
        coordinates = compact(words, offset, **static)
        row = lax.broadcasted_iota(np.uint32, coordinates.shape[:2], 1)
        return count, fill_rows(coordinates, row < count[:, None], fill)

    return form


def by_size(
    x: jax.Array, *first: jax.Array, rank: int, size: int | None, **static: Any
) -> Outputs:
    """Chooses the form by the number of elements, and by the rows that are asked for.

    A symbolic number of elements takes the form for few of them. Without the kernel, an
    H200 takes 0.224 ms by `_fill` for the elements above a limit of 2^26, and 0.497 by
    a scatter in jax.numpy. For 2^18 elements, `_each_element` takes 0.054, and the
    scatter 0.056 (results/nvidia-h200.csv, "[no kernel]" and "jnp scatter").
    """
    few = not isinstance(x.size, int) or x.size < MANY
    form = _of_few if few else _of_all_rows if size is None else _of_some_rows
    return form(x, *first, rank=rank, size=size, **static)


def divisible(x: jax.Array, *first: jax.Array, size: Any, **static: Any) -> Outputs:
    """Compacts by sums that XLA divides well, and else as `by_size` does for many."""
    form = _divisible_all_rows if size is None else _divisible_some_rows
    return form(x, *first, size=size, **static)


def _each_element(
    x: jax.Array,
    *first: jax.Array,
    sizes: tuple[int, ...],
    rows: int,
    columns: int,
    fill: int | None,
) -> Outputs:
    """Compacts by a running count, and a scatter with an index for each element.

    The indices take memory for each element, which few elements can afford.
    """
    lines, elements = x.shape
    with index_mode(elements, rows) as integer:
        bits = is_nonzero(x)
        # Without the barrier XLA would count a constant mask on the host, for 7 s if it
        # has 10^6 elements.
        one = lax.optimization_barrier(lax.full((), 1, integer))
        ends = lax.cumsum(lax.convert_element_type(bits, integer) * one, axis=1)
        row = jnp.where(bits, ends - 1, to_scalar(rows, integer))
        offset = sum(first, lax.full((lines,), 0, np.uint32))
        flat = jax.vmap(functools.partial(_write, rows))(row, offset)
    count = lax.convert_element_type(ends[:, -1], np.uint32)
    coordinates = unravel(flat, sizes, columns)
    row = lax.broadcasted_iota(np.uint32, coordinates.shape[:2], 1)
    return count, fill_rows(coordinates, row < count[:, None], fill)


def _compact(
    find: Callable[..., jax.Array],
    running_sum: Callable[[jax.Array], jax.Array],
    words: jax.Array,
    first: jax.Array,
    sizes: tuple[int, ...],
    rows: int,
    columns: int,
) -> jax.Array:
    """Compacts by a function of the bit words of one line and their running count."""
    with index_mode(math.prod(sizes), rows):
        ones = lax.population_count(words)
        starts = jax.vmap(running_sum)(ones) - ones  # set bits before each bit word
        flat = jax.vmap(functools.partial(find, rows))(words, starts, first)
    return unravel(flat, sizes, columns)  # element 0, past the count, gives zeros


def _sum_in_levels(numbers: jax.Array) -> jax.Array:
    """The running sum by sums within blocks, and by a running sum of the blocks.

    For example, 40 numbers fill two blocks of 16 and half of a third. Each block is
    summed alone. The running sum of the three totals says what lies before each block.

    XLA divides this sum well among devices. Along a divided dimension, `lax.cumsum`
    takes four times as long for twice as many numbers. On two H200s we measured 0.36 s
    for 2^15 numbers, and 0.5 ms for 2^20 with this sum.
    """
    (size,) = numbers.shape
    if not isinstance(size, int):
        return lax.cumsum(numbers)  # JAX can't say how many levels there are
    count = -(-size // BLOCK)
    blocks = jnp.pad(numbers, (0, count * BLOCK - size)).reshape(count, BLOCK)
    row, column = (lax.broadcasted_iota(np.int32, (BLOCK, BLOCK), i) for i in (0, 1))
    # XLA fuses the choice into the sum, and writes no array of all pairs.
    pairs = jnp.where(column <= row, blocks[:, None, :], np.zeros((), numbers.dtype))
    sums = pairs.sum(2, dtype=numbers.dtype)
    if count > 1:
        ends = _sum_in_levels(sums[:, -1])
        sums = sums + (ends - sums[:, -1])[:, None]
    return sums.ravel()[:size]


def _write(rows: int, row: jax.Array, first: jax.Array) -> jax.Array:
    """Writes the offset of each element of a line into its row.

    An element that is zero has a row past the end, where the scatter drops it. The
    other rows are unique, and XLA needs no atomic operations.
    """
    offset = first + lax.iota(np.uint32, row.size)
    return (
        jnp.zeros(rows, np.uint32)
        .at[row]
        .set(offset, mode="drop", unique_indices=True, wrap_negative_indices=False)
    )


def _scatter(
    rows: int, words: jax.Array, starts: jax.Array, first: jax.Array
) -> jax.Array:
    """Writes each element's offset into its row: how many non-zeros are before it."""
    lane = lax.broadcasted_iota(np.uint32, (1, BIT_WORD), 1)
    lower = (jnp.uint32(1) << lane) - 1
    row = starts[:, None] + lax.population_count(words[:, None] & lower)
    is_set = (words[:, None] >> lane) & 1
    row = jnp.where(is_set.astype(bool), row, to_scalar(rows, np.uint32))
    return _write(rows, row.ravel(), first)


def _fill(
    rows: int, words: jax.Array, starts: jax.Array, first: jax.Array
) -> jax.Array:
    """Finds the bit word of each row by a forward fill, and then the bit in it.

    A bit word that has a bit writes its number into its first row: one write for 32
    elements. A running maximum hands the number on to the rows up to the next one.
    """
    row = lax.iota(np.uint32, rows)
    place = jnp.where(words == 0, to_scalar(rows, np.uint32), starts)
    number = lax.iota(np.int32, words.size)
    begins = (
        jnp.zeros(rows, np.int32)
        .at[place]
        .set(number, mode="drop", unique_indices=True, wrap_negative_indices=False)
    )
    word = lax.cummax(begins)
    rank = row - starts[word]
    # Bisection: the bit is `step` further if at most `rank` bits are set below that.
    bits = words[word]
    lane = jnp.zeros_like(row)
    for step in (16, 8, 4, 2, 1):
        below = (jnp.uint32(1) << (lane + step)) - 1
        further = lax.population_count(bits & below) <= rank
        lane += jnp.where(further, np.uint32(step), np.uint32(0))
    offset = first + word.astype(np.uint32) * np.uint32(BIT_WORD) + lane
    total = starts[-1] + lax.population_count(words[-1])
    return jnp.where(row < total, offset, 0)


_of_few = by_lines(_each_element)
_of_all_rows = _by_bit_words(functools.partial(_compact, _scatter, lax.cumsum))
_of_some_rows = _by_bit_words(functools.partial(_compact, _fill, lax.cumsum))
_divisible_all_rows, _divisible_some_rows = (
    _by_bit_words(functools.partial(_compact, find, _sum_in_levels))
    for find in (_scatter, _fill)
)


@_by_bit_words
def walk_bit_words(
    words: jax.Array, first: jax.Array, sizes: tuple[int, ...], rows: int, columns: int
) -> jax.Array:
    """Compacts by one walk over the bit words, visiting the set bits in their order.

    A core of a CPU does this faster than anything that it would do for each element
    (results/x86_64-cpu.csv, "[scatter]").
    """
    lines, width = words.shape
    with index_mode(words.size * BIT_WORD, lines * rows) as integer:
        zero = lax.full((), 0, integer)
        one, each = (to_scalar(n, integer) for n in (1, rows))
        flat = lax.reshape(words, (lines * width,))

        def visit_word(k: jax.Array, state: Any) -> Any:
            # `row` counts through all lines. A new line begins at its own rows.
            line, within = (f(k, to_scalar(width, integer)) for f in (lax.div, lax.rem))
            begin = lax.mul(line, each)
            row = lax.select(lax.eq(within, zero), begin, state[0])
            word = lax.dynamic_index_in_dim(flat, k, keepdims=False)
            within = lax.convert_element_type(within, np.uint32)
            offset = lax.add(
                lax.dynamic_index_in_dim(first, line, keepdims=False),
                lax.mul(within, np.uint32(BIT_WORD)),
            )
            end = lax.add(begin, each)

            def has_bit(state: Any) -> Any:
                word, row, _ = state
                return lax.bitwise_and(lax.ne(word, np.uint32(0)), lax.lt(row, end))

            def visit_bit(state: Any) -> Any:
                word, row, found = state
                # `word & (word - 1)` is the bit word without its lowest set bit, and
                # what that leaves of `word` is the bit alone.
                rest = lax.bitwise_and(word, lax.sub(word, np.uint32(1)))
                lane = lax.population_count(
                    lax.sub(lax.bitwise_xor(word, rest), np.uint32(1))
                )
                coordinates = unravel(lax.add(offset, lane), sizes, columns)
                found = lax.dynamic_update_index_in_dim(found, coordinates, row, 0)
                return rest, lax.add(row, one), found

            return lax.while_loop(has_bit, visit_bit, (word, row, state[1]))[1:]

        found = lax.full((lines * rows, columns), 0, np.uint32)
        # Inside a shard_map JAX requires that a loop's state varies over the same mesh
        # axes before and after a round.
        row, found, _ = varying_alike(zero, found, words)
        stop = to_scalar(words.size, integer)
        _, found = lax.fori_loop(zero, stop, visit_word, (row, found))
    return lax.reshape(found, (lines, rows, columns))
