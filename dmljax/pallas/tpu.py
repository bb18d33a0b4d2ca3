"""The kernel of NONZERO_COORDINATES for TPUs, through Mosaic; not public.

A TPU has no instruction for the scatter of `nonzero_words`. So the kernel finds the bit
word of each row, and XLA does the rest. For example, with bit words of 4 elements:

    bit words    0110   0000   1101      the first row of each is 0, 2 and 2
    rows         0110 0110 | 1101 1101 1101

The kernel visits the bit words in order. Each one overwrites all rows of one or two
registers from its first row on. Then the next one overwrites the rows from its own
first row on.

A *register* here has 128 *lanes*. Pallas copies *blocks* of arrays into fast memory,
and scalars into a memory of their own, SMEM
(https://docs.jax.dev/en/latest/pallas/tpu/details.html). We have not run the kernel on
a TPU: docs/how_to/implementation.md says how we checked it.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu

from dmljax._jax import varying_keyword
from dmljax._nonzero_forms import (
    BIT_WORD,
    Layout,
    find_bit,
    nonzero_words,
    on_lines,
    valid_rows,
)
from dmljax._types import Form

LANES = 128
WORDS = 1024  # bit words of a block


def kernel_of(shape: tuple[int, ...], **static: Any) -> Form | None:
    """Returns the kernel; None if elements or rows need more than 31 bits."""
    layout = Layout.of(shape, **static)
    elements = pl.cdiv(layout.elements, BIT_WORD) * BIT_WORD * layout.lines
    most = max(elements, layout.lines * (layout.rows + BIT_WORD))
    return nonzero_coordinates if most < 2**31 - 2 * WORDS * BIT_WORD else None


def compact(words: Array, starts: Array, rows: int) -> Array:
    """Returns the offsets of the first `rows` set bits of each line, and 0 past them.

    `words` and `starts` are (lines, bit words of a line).
    """
    lines, width = words.shape
    # The last bit word that we need of a line may have set bits past the rows.
    most = lines * (rows + BIT_WORD)
    words = jnp.where(starts < rows, words, 0)
    count = lax.population_count(words).sum(1, dtype=np.uint32)
    ends = jnp.cumsum(count)
    # For the kernel, all lines are a single line: their rows lie without gaps.
    begin = ends - count
    # A bit word without rows gets the end of its line as its first row.
    first = begin[:, None] + jnp.minimum(starts, count[:, None])
    bits, places = _fill_forward(words.ravel(), first.ravel(), ends[-1:], most)
    before = places % np.uint32(BIT_WORD)
    offset = (places - before + find_bit(bits, before)).ravel()
    # With uint32 indices and few rows, the compiler mixes the types of indices, and may
    # end the process.
    start = begin.astype(np.int32)
    of_line = jax.vmap(lambda i: lax.dynamic_slice(offset, (i,), (rows,)))(start)
    origin = lax.iota(np.uint32, lines) * np.uint32(width * BIT_WORD)
    return jnp.where(valid_rows(count, rows), of_line - origin[:, None], 0)


# The form of the operator.
nonzero_coordinates = on_lines(functools.partial(nonzero_words, compact=compact))


def _fill_forward(words: Array, first: Array, count: Array, most: int) -> list[Array]:
    """Returns the bit word and the place of each row.

    `first` is the first row of each bit word. A place is 32 times the index of the bit
    word, plus the number of set bits before the bit of the row.
    """
    blocks = pl.cdiv(words.size, WORDS)
    missing = blocks * WORDS - words.size
    words = jnp.append(words, jnp.zeros(missing, np.uint32))
    first = jnp.append(first, jnp.broadcast_to(count, missing))
    # The first row of each block of bit words, and the number of all rows.
    bounds = jnp.append(first[::WORDS], count)
    rows = WORDS * BIT_WORD  # of a block
    of_scalars = pl.BlockSpec(
        (1, 1, WORDS), lambda block, *_: (block, 0, 0), memory_space=tpu.SMEM
    )
    # The rows of a block of bit words lie in one block of the output or in two, and the
    # kernel runs once for each of the two. Blocks of the output are visited in order,
    # and a block stays in memory until the next one.
    of_rows = pl.BlockSpec(
        (rows // LANES, LANES),
        lambda block, part, bounds: (lax.div(bounds[block + part], np.int32(rows)), 0),
    )
    shape = (most // rows + 1) * rows // LANES, LANES
    launch = pl.pallas_call(
        _fill_block,
        grid_spec=tpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1,
            grid=(blocks, 2),
            in_specs=[of_scalars] * 2,
            out_specs=[of_rows] * 2,
        ),
        out_shape=[
            jax.ShapeDtypeStruct(shape, np.int32, **varying_keyword(jax.typeof(words)))
        ]
        * 2,
        name="dmljax_nonzero_coordinates",
    )
    scalars = [bounds.astype(np.int32)]
    for of_words in words, first:
        scalars.append(of_words.astype(np.int32).reshape(-1, 1, WORDS))
    # Mosaic takes indices of 32 bits only. In x64 mode JAX would make them 64.
    with jax.enable_x64(False):
        outputs = launch(*scalars)
    return [x.astype(np.uint32) for x in outputs]


def _fill_block(bounds: Any, words: Any, first: Any, bits: Any, places: Any) -> None:
    """Writes the rows of a block of bit words that lie in one block of the output.

    `bounds`, `words` and `first` are scalars. `bits` and `places` are the output.
    """
    block, part = pl.program_id(0), pl.program_id(1)
    rows = np.int32(bits.size)
    begin, end = bounds[block], bounds[block + 1]
    output_block = lax.div(bounds[block + part], rows)
    lane = lax.broadcasted_iota(np.int32, (1, LANES), 1)

    def overwrite(i: Any, register: Any) -> None:
        row = register * LANES + lane
        is_before = row < first[0, 0, i]
        place = (block * WORDS + i) * BIT_WORD
        place += (row - first[0, 0, i]) & (BIT_WORD - 1)

        @pl.when(lax.div(register * LANES, rows) == output_block)
        def _() -> None:
            at = pl.ds(lax.rem(register, np.int32(len(bits))), 1)
            bits[at] = jnp.where(is_before, bits[at], words[0, 0, i])
            places[at] = jnp.where(is_before, places[at], place)

    def visit(i: Any, carry: Any) -> Any:
        register = lax.div(first[0, 0, i], np.int32(LANES))
        overwrite(i, register)
        overwrite(i, register + 1)
        return carry

    # There is no work for a block without set bits, and none for part 1 if all rows lie
    # in one block of the output.
    @pl.when((begin < end) & (lax.div(begin, rows) + part <= output_block))
    def _() -> None:
        lax.fori_loop(0, WORDS, visit, 0)
