"""ONE_HOT on a GPU.

There are two ways, by what lies side by side in the output. If it is the positions of
a sequence, a program has consecutive chunks of the output, of up to 16 bytes: a chunk
needs the index of its sequence, or of two, and then a comparison for each of its words.
If it is other sequences, a program has a tile of positions and sequences, and reads an
index once for all positions of the tile; but elements of 4 bytes and more, and few in
all, are chunks of their own.

A word has several elements if they are narrower than 4 bytes: words are stored, and so
there are fewer to compute.
"""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from dmljax._coordinates import countable
from dmljax._tensor import Outputs, index_mode
from dmljax.pallas._elementwise import Number, on_words, place_in
from dmljax.pallas._launch import launch, load, store
from dmljax.pallas._words import (
    WORD_BYTES,
    as_elements,
    in_lane,
    in_words,
    most_lanes,
    word_type,
)

CHUNK_BYTES = 16
# Of a block of chunks, and where a word has several elements; the words of a tile, and
# the elements of its rows at most. Measured on an H200.
BLOCK_BYTES, NARROW_BYTES = 4096, 8192
TILE, ROW = 4096, 1024


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is known before the launch.

    Attributes:
      batch: the sizes outside of the axis.
      size: the positions along the axis.
      inner: the product of the sizes inside of the axis.
      shared: those of the sizes in `batch` that the index, off and on have.
      dtype: the type of an element.
      lanes: the elements of a word.
      integer: the type of a place in the output.
      interpret: whether Pallas' interpreter runs the kernel.
    """

    batch: tuple[int, ...]
    size: int
    inner: int
    shared: tuple[tuple[int, ...], ...]
    dtype: np.dtype
    lanes: int
    integer: np.dtype
    interpret: bool

    @property
    def word(self) -> np.dtype:
        """The type of a word."""
        return word_type(self.dtype, self.lanes)

    @property
    def words(self) -> int:
        """How many the output has."""
        return math.prod(self.batch) * self.size * self.inner // self.lanes

    @property
    def block(self) -> int:
        """The words of a block of chunks."""
        size = BLOCK_BYTES if self.lanes == 1 else NARROW_BYTES
        return size // self.word.itemsize

    @property
    def chunk(self) -> int:
        """The words of a chunk: of one sequence, or of two that differ in the index."""
        if self.inner > 1:
            return 1
        wide = CHUNK_BYTES // self.word.itemsize
        while not _fits(self.size, wide * self.lanes, self.shared):
            wide //= 2
        return wide

    @property
    def tile(self) -> tuple[int, int]:
        """The positions of a tile, and its words for each."""
        across = pl.next_power_of_2(self.inner // self.lanes)
        width = min(across, ROW // self.lanes)
        return min(TILE // width, pl.next_power_of_2(self.size)), width

    @property
    def tiles(self) -> tuple[int, int]:
        """How many tiles there are down and across."""
        rows, columns = self.tile
        across = self.inner // self.lanes
        return pl.cdiv(self.size, rows), pl.cdiv(across, columns)

    def places(self, sequences: Number) -> list[Any]:
        """Where the sequences have their index, and their off and on, which follow."""
        index, off, on = (
            place_in(sizes, sequences, self.batch) for sizes in self.shared
        )
        return [index, off, on + self.integer.type(math.prod(self.shared[1]))]


@on_words
def one_hot(
    index: jax.Array,
    on: jax.Array,
    off: jax.Array,
    *,
    size: int,
    axis: int,
    interpret: bool,
) -> Outputs:
    """The operator."""
    if jnp.iinfo(index.dtype).bits < 8:
        index = index.astype(np.int8)
    operands, dtype = (index, off, on), off.dtype
    shape = list(np.broadcast_shapes(*(operand.shape for operand in operands)))
    shape[axis] = size
    elements, inner = math.prod(shape), math.prod(shape[axis:][1:])
    if not elements:
        return (jnp.zeros(shape, dtype),)
    shared = tuple(operand.shape[:axis] for operand in operands)
    tiled = inner > 1 and dtype.itemsize < WORD_BYTES and size * inner >= ROW
    beside = inner if tiled else 1  # elements that words may be made of
    if inner == 1:
        beside = elements if _fits(size, most_lanes(dtype), shared) else size
    with index_mode(elements + NARROW_BYTES) as integer:
        plan = Plan(
            batch=tuple(shape[:axis]),
            size=size,
            inner=inner,
            shared=shared,
            dtype=dtype,
            lanes=math.gcd(beside, most_lanes(dtype)),
            integer=integer,
            interpret=interpret,
        )
        blocks = pl.cdiv(plan.words, plan.block)
        tiles = math.prod(plan.batch) * math.prod(plan.tiles)
        (words,) = launch(
            _in_tiles if tiled else _in_chunks,
            index.ravel(),
            # Off and on as they were in ValuesTensor, if that had no more.
            lax.concatenate([off.ravel(), on.ravel()], 0),
            operator="one_hot",
            grid=(tiles if tiled else blocks,),
            outputs=(jax.ShapeDtypeStruct((plan.words,), plan.word),),
            warps=4,
            interpret=interpret,
            plan=plan,
        )
    return (as_elements(words, dtype).reshape(shape),)


def _fits(size: int, elements: int, shared: tuple[tuple[int, ...], ...]) -> bool:
    """Whether consecutive elements are of one sequence, or of two with one on and off.

    Then also the index has all sizes of the batch.
    """
    alike = all(math.prod(sizes) == 1 for sizes in shared[1:])
    return size % elements == 0 or (alike and size >= elements)


def _in_chunks(index: Any, values: Any, out: Any, *, plan: Plan) -> None:
    """A block of chunks: they are its rows, and their words its columns."""
    chunk, integer = plan.chunk, plan.integer.type
    rows = plan.block // chunk
    each = chunk * plan.lanes  # elements of a chunk
    program = pl.program_id(0)
    first = program.astype(plan.integer) * integer(rows)
    row = lax.iota(np.uint32, rows)[:, None]
    column = lax.iota(np.uint32, chunk)[None, :]
    number = Number(first * integer(each), row * np.uint32(each), run=rows * each)
    head = (first + row.astype(plan.integer)) * integer(chunk)
    place = head + column.astype(plan.integer)

    def put(masked: bool) -> None:
        mask = head < plan.words if masked else None
        rest, beside = number.divided(plan.inner)
        sequences, position = rest.divided(plan.size)
        where, *places = plan.places(sequences)
        off, on = (_read(values, place, mask) for place in places)
        if plan.inner > 1:
            where = where * integer(plan.inner) + beside.astype(plan.integer)
        hot = _from_start(_read(index, where, mask), plan.size)
        start = hot - position.astype(hot.dtype)
        starts = [(start < each, start)]
        if plan.size % each and math.prod(plan.batch) > 1:
            starts = [((start < each) & (hot < plan.size), start)]
            left = np.uint32(plan.size) - position  # to the start of the next sequence
            more = left < each
            if masked:
                more &= where + integer(1) < math.prod(plan.batch)
            hot = load(index.at[where + integer(1)], mask=more)
            hot = _from_start(hot, plan.size)
            starts.append((more & (hot < each), hot + left.astype(hot.dtype)))
        word = in_words(off, plan.dtype, plan.lanes)
        for inside, hot in starts:
            # Counted from the chunk's first element; where none is lit, behind it.
            lane = jnp.where(inside, hot, each).astype(np.uint32)
            lane = lane - column * np.uint32(plan.lanes)
            change = in_lane(on ^ off, lane, plan.dtype, plan.lanes)
            word = jnp.where(lane < plan.lanes, word ^ change, word)
        store(out.at[place], word, mask=place < plan.words if masked else None)

    whole, rest = divmod(plan.words, rows * chunk)
    if whole:
        pl.when(program < whole)(lambda: put(False))
    if rest:
        pl.when(program == whole)(lambda: put(True))


def _in_tiles(index: Any, values: Any, out: Any, *, plan: Plan) -> None:
    """A tile: its rows are positions, its columns words of sequences side by side."""
    program, integer = pl.program_id(0), plan.integer.type
    down, across = plan.tiles
    group = lax.div(program, jnp.int32(down * across))
    i = lax.rem(lax.div(program, jnp.int32(across)), jnp.int32(down))
    j = lax.rem(program, jnp.int32(across))
    rows, columns = plan.tile
    row = (i * rows + lax.iota(np.int32, rows))[:, None]
    column = (j * columns + lax.iota(np.int32, columns))[None, :]
    width = plan.inner // plan.lanes
    place = integer(plan.size) * group.astype(plan.integer) + row.astype(plan.integer)
    place = place * integer(width) + column.astype(plan.integer)
    sequences = Number(integer(0), group.astype(np.uint32))
    head, *places = plan.places(sequences)
    head = head * integer(width) + column.astype(plan.integer)
    off, on = (values[place] for place in places)

    def put(masked: bool) -> None:
        mask = column < width if masked else None
        lanes = []
        for lane in range(plan.lanes):
            where = head * integer(plan.lanes) + integer(lane)
            lanes.append(_from_start(load(index.at[where], mask=mask), plan.size))
        word = in_words(off, plan.dtype, plan.lanes)
        for lane, hot in enumerate(lanes):
            change = in_lane(on ^ off, np.uint32(lane), plan.dtype, plan.lanes)
            word = jnp.where(hot == row.astype(hot.dtype), word ^ change, word)
        inside: Any = (row < plan.size) & (column < width) if masked else None
        to: Any = place
        if plan.interpret and masked:  # a masked-off lane writes back
            to = jnp.where(inside, place, plan.words)
        store(out.at[to], jnp.broadcast_to(word, plan.tile), mask=inside)

    whole = (i < plan.size // rows) & (j < width // columns)
    pl.when(whole)(lambda: put(False))
    if plan.size % rows or width % columns:
        pl.when(~whole)(lambda: put(True))


def _read(reference: Any, where: Any, mask: Any) -> Any:
    shared = jnp.ndim(where) == 0
    return reference[where] if shared else load(reference.at[where], mask=mask)


def _from_start(index: Any, size: int) -> Any:
    """The index counted from the start of `size` positions, without a sign."""
    index = countable(index)
    if not jnp.issubdtype(index.dtype, np.signedinteger):
        return index
    index = jnp.where(index < 0, index + size, index)
    return index.astype(np.dtype(f"uint{8 * index.dtype.itemsize}"))
