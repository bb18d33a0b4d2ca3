"""ONE_HOT on a GPU: one launch, in chunks or in tiles.

The output has the sizes (batch, size, inner), if the dimensions before the axis count
as one, and those behind it. A *sequence* is what lies along the axis: `size` positions,
of which at most one, the *hot* one, has the value `on`. All others have `off`.

- If inner is 1, the positions of a sequence are neighbours in memory. A program has a
  block of *chunks*: consecutive words of the output, up to 16 bytes, that lie in one
  sequence or in two. For a chunk it loads one index, or two, and compares the index
  with each word of the chunk. Here a chunk is four elements, and a sequence has seven:

      output      0 0 1 0 0 0 0 0 0 0 0 0 1 0 ..
      sequences  |- index 2 ---|- index 5 ---|
      chunks     |       |       |       |

- If inner is larger, the neighbours of an element belong to other sequences. A program
  has a *tile*: its rows are positions, its columns are words of sequences side by side.
  It loads the index of each sequence once, for all positions of the tile.
- If inner is larger, but the output is small or its elements have 4 bytes or more, a
  program has a block of chunks of one element.

Words hold several elements if these are narrower than 4 bytes, so that fewer are
computed and stored.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from dmljax._coordinates import countable
from dmljax._tensor import Outputs, index_mode
from dmljax.pallas._elementwise import Offsets, offsets_in, on_bits
from dmljax.pallas._launch import launch, load, store
from dmljax.pallas._words import (
    WORD_BYTES,
    as_elements,
    in_every_slot,
    in_slot,
    most_per_word,
    word_type,
)

# The bytes of a chunk at most: the widest store of a GPU's thread.
CHUNK_BYTES = 16
# The bytes of a block of chunks, for words of one element and for words of several.
# The best of those tried on an H200.
BLOCK_BYTES, NARROW_BYTES = 4096, 8192
# The words of a tile at most, and the elements of one of its rows at most. On an H200,
# tiles of 1024 to 8192 words, rows of 64 to 1024, and 2 to 8 warps were not better.
TILE, ROW = 4096, 1024


@dataclasses.dataclass(frozen=True)
class OneHotPlan:
    """What is known about a call of ONE_HOT before it runs.

    Attributes:
      batch: the sizes before the axis.
      size: the positions along the axis.
      inner: the product of the sizes behind the axis.
      shared: for each of index, off and on, its sizes in `batch`, 1 where it is shared.
      dtype: the type of an element.
      per_word: the elements of a word.
      integer: the type of an offset in the output.
      interpret: whether Pallas' interpreter runs the kernel.
    """

    batch: tuple[int, ...]
    size: int
    inner: int
    shared: tuple[tuple[int, ...], ...]
    dtype: np.dtype
    per_word: int
    integer: np.dtype
    interpret: bool

    @property
    def word(self) -> np.dtype:
        """The type of a word."""
        return word_type(self.dtype, self.per_word)

    @property
    def words(self) -> int:
        """The words of the output."""
        return math.prod(self.batch) * self.size * self.inner // self.per_word

    @property
    def block(self) -> int:
        """The words of a block of chunks."""
        size = BLOCK_BYTES if self.per_word == 1 else NARROW_BYTES
        return size // self.word.itemsize

    @property
    def chunk(self) -> int:
        """The words of a chunk."""
        if self.inner > 1:
            return 1
        words = CHUNK_BYTES // self.word.itemsize
        while not _reaches_two(self.size, words * self.per_word, self.shared):
            words //= 2
        return words

    @property
    def tile(self) -> tuple[int, int]:
        """The rows of a tile, and its columns."""
        # Triton has only arrays whose sizes are powers of two.
        across = pl.next_power_of_2(self.inner // self.per_word)
        columns = min(across, ROW // self.per_word)
        return min(TILE // columns, pl.next_power_of_2(self.size)), columns

    @property
    def tiles(self) -> tuple[int, int]:
        """How many tiles there are down the axis, and across."""
        rows, columns = self.tile
        across = self.inner // self.per_word
        return pl.cdiv(self.size, rows), pl.cdiv(across, columns)

    def operand_offsets(self, sequences: Offsets) -> list[Any]:
        """The offsets of the index, of off and of on for sequences of the batch.

        Off and on are one array, in which all of on follows all of off.
        """
        index, off, on = (
            offsets_in(sizes, sequences, self.batch) for sizes in self.shared
        )
        return [index, off, on + self.integer.type(math.prod(self.shared[1]))]


@on_bits
def one_hot(
    index: jax.Array,
    on: jax.Array,
    off: jax.Array,
    *,
    size: int,
    axis: int,
    interpret: bool,
) -> Outputs:
    """The form by kernel: `on` where `index` lights a position along `axis`."""
    if jnp.iinfo(index.dtype).bits < 8:  # a GPU addresses no less than a byte
        index = index.astype(np.int8)
    operands, dtype = (index, off, on), off.dtype
    shape = list(np.broadcast_shapes(*(operand.shape for operand in operands)))
    shape[axis] = size
    elements, inner = math.prod(shape), math.prod(shape[axis:][1:])
    if not elements:
        return (jnp.zeros(shape, dtype),)
    shared = tuple(operand.shape[:axis] for operand in operands)
    # Elements of 4 bytes or more make no words, and a small output fills no tile. Both
    # are chunks of one element instead.
    tiled = inner > 1 and dtype.itemsize < WORD_BYTES and size * inner >= ROW
    neighbours = _neighbours(shape, axis, dtype, shared) if inner == 1 or tiled else 1
    # The last block may reach past the end, and its offsets must not wrap around.
    with index_mode(elements + NARROW_BYTES) as integer:
        plan = OneHotPlan(
            batch=tuple(shape[:axis]),
            size=size,
            inner=inner,
            shared=shared,
            dtype=dtype,
            per_word=math.gcd(neighbours, most_per_word(dtype)),
            integer=integer,
            interpret=interpret,
        )
        blocks = pl.cdiv(plan.words, plan.block)
        tiles = math.prod(plan.batch) * math.prod(plan.tiles)
        (words,) = launch(
            _in_tiles if tiled else _in_chunks,
            index.ravel(),
            # The operator slices off and on from one ValuesTensor. If that has no other
            # elements, this restores it, and XLA can leave out both.
            lax.concatenate([off.ravel(), on.ravel()], 0),
            operator="one_hot",
            grid=(tiles if tiled else blocks,),
            outputs=(jax.ShapeDtypeStruct((plan.words,), plan.word),),
            warps=4,
            interpret=interpret,
            plan=plan,
        )
    return (as_elements(words, dtype).reshape(shape),)


def _neighbours(
    shape: Sequence[int],
    axis: int,
    dtype: np.dtype,
    shared: tuple[tuple[int, ...], ...],
) -> int:
    """How many elements are neighbours in one chunk, or in one row of a tile.

    A word may be made of any of these, so its size divides their number.
    """
    inner = math.prod(shape[axis:][1:])
    if inner > 1:
        return inner
    across = _reaches_two(shape[axis], most_per_word(dtype), shared)
    return math.prod(shape) if across else shape[axis]


def _reaches_two(size: int, elements: int, shared: tuple[tuple[int, ...], ...]) -> bool:
    """Whether `elements` neighbours need one index, or two with the same off and on.

    They need one if their number divides a sequence, and two at most if a sequence is
    not shorter. If off and on are shared by all sequences, the index is not shared, so
    the second index follows the first one.
    """
    alike = all(math.prod(sizes) == 1 for sizes in shared[1:])
    return size % elements == 0 or (alike and size >= elements)


def _in_chunks(index: Any, values: Any, out: Any, *, plan: OneHotPlan) -> None:
    """Writes a block as a matrix: its rows are chunks, its columns their words."""
    chunk, integer = plan.chunk, plan.integer.type
    rows, each = plan.block // chunk, chunk * plan.per_word  # chunks; their elements
    program = pl.program_id(0)
    first = program.astype(plan.integer) * integer(rows)
    row = lax.iota(np.uint32, rows)[:, None]
    column = lax.iota(np.uint32, chunk)[None, :]
    elements = Offsets(first * integer(each), row * np.uint32(each), run=rows * each)
    head = (first + row.astype(plan.integer)) * integer(chunk)
    target = head + column.astype(plan.integer)

    def write(masked: bool) -> None:
        mask = head < plan.words if masked else None
        rest, beside = elements.divided(plan.inner)
        sequences, position = rest.divided(plan.size)
        source, *pair = plan.operand_offsets(sequences)
        off, on = (_read(values, offset, mask) for offset in pair)
        if plan.inner > 1:
            source = source * integer(plan.inner) + beside.astype(plan.integer)
        hot = _from_start(_read(index, source, mask), plan.size)
        # `start` counts from the first element of the chunk to the hot one. It is
        # unsigned, so it is large if the hot one lies before the chunk. An index past
        # its sequence is too large, too, if the chunk ends no later than the sequence.
        start = hot - position.astype(hot.dtype)
        starts = [(start < each, start)]
        if plan.size % each and math.prod(plan.batch) > 1:
            # A chunk may begin in one sequence and end in the next one.
            starts = [((start < each) & (hot < plan.size), start)]
            left = np.uint32(plan.size) - position  # elements up to the next sequence
            more = left < each
            if masked:
                more &= source + integer(1) < math.prod(plan.batch)
            hot = load(index.at[source + integer(1)], mask=more)
            hot = _from_start(hot, plan.size)
            starts.append((more & (hot < each), hot + left.astype(hot.dtype)))
        word = in_every_slot(off, plan.dtype, plan.per_word)
        for inside, hot in starts:
            # If the chunk has no hot element, one behind its end stands for it. A word
            # without the hot slot sees one that is too large, wrapped around or not.
            slot = jnp.where(inside, hot, each).astype(np.uint32)
            slot = slot - column * np.uint32(plan.per_word)
            change = in_slot(on ^ off, slot, plan.dtype, plan.per_word)
            word = jnp.where(slot < plan.per_word, word ^ change, word)
        store(out.at[target], word, mask=target < plan.words if masked else None)

    # Triton makes masked loads and stores narrow, so only the last block is masked.
    whole, rest = divmod(plan.words, rows * chunk)
    if whole:
        pl.when(program < whole)(lambda: write(False))
    if rest:
        pl.when(program == whole)(lambda: write(True))


def _in_tiles(index: Any, values: Any, out: Any, *, plan: OneHotPlan) -> None:
    """Writes a tile: its rows are positions, its columns words of sequences."""
    program, integer = pl.program_id(0), plan.integer.type
    # Programs go across first, then down, then through the batch. Neighbours in time
    # are then neighbours in memory.
    down, across = plan.tiles
    group = lax.div(program, jnp.int32(down * across))
    i = lax.rem(lax.div(program, jnp.int32(across)), jnp.int32(down))
    j = lax.rem(program, jnp.int32(across))
    rows, columns = plan.tile
    row = (i * rows + lax.iota(np.int32, rows))[:, None]
    column = (j * columns + lax.iota(np.int32, columns))[None, :]
    width = plan.inner // plan.per_word
    target = integer(plan.size) * group.astype(plan.integer) + row.astype(plan.integer)
    target = target * integer(width) + column.astype(plan.integer)
    batch = Offsets(integer(0), group.astype(np.uint32))
    head, *pair = plan.operand_offsets(batch)
    head = head * integer(width) + column.astype(plan.integer)
    off, on = (values[offset] for offset in pair)

    def write(masked: bool) -> None:
        mask = column < width if masked else None
        # All indices are loaded before the first one is used, so that a thread waits
        # for all of them at the same time.
        indices = []
        for slot in range(plan.per_word):
            source = head * integer(plan.per_word) + integer(slot)
            loaded = load(index.at[source], mask=mask)
            indices.append(_from_start(loaded, plan.size))
        word = in_every_slot(off, plan.dtype, plan.per_word)
        for slot, hot in enumerate(indices):
            change = in_slot(on ^ off, np.uint32(slot), plan.dtype, plan.per_word)
            word = jnp.where(hot == row.astype(hot.dtype), word ^ change, word)
        inside: Any = (row < plan.size) & (column < width) if masked else None
        to: Any = target
        # The interpreter writes the old value where a store is masked. Words past the
        # end of a row would overwrite the next row, so they go past the end of all.
        if plan.interpret and masked:
            to = jnp.where(inside, target, plan.words)
        store(out.at[to], jnp.broadcast_to(word, plan.tile), mask=inside)

    whole = (i < plan.size // rows) & (j < width // columns)
    pl.when(whole)(lambda: write(False))
    if plan.size % rows or width % columns:
        pl.when(~whole)(lambda: write(True))


def _read(reference: Any, offset: Any, mask: Any) -> Any:
    """The elements at these offsets; one offset for the whole block is a scalar."""
    one = jnp.ndim(offset) == 0
    return reference[offset] if one else load(reference.at[offset], mask=mask)


def _from_start(index: Any, size: int) -> Any:
    """The position that an index lights, unsigned; `size` or more if it lights none."""
    index = countable(index)
    if not jnp.issubdtype(index.dtype, np.signedinteger):
        return index
    # What is still negative becomes a large number, which lights nothing.
    index = jnp.where(index < 0, index + size, index)
    return index.astype(np.dtype(f"uint{8 * index.dtype.itemsize}"))
