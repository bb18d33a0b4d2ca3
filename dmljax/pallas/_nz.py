"""draft"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax import lax

from dmljax._coordinates import by_lines, last_sizes
from dmljax._tensor import Outputs, index_mode, packed_strides
from dmljax.pallas._nonzero_bits import BIT_WORD, as_bits64 as as_bits, nonzero_bits
from dmljax.pallas._launch import launch_threads

WARP = 32
BLOCK = 8192
TILE = WARP * BIT_WORD  # elements of which a warp makes a bit word per thread
COUNT_BYTES = 4096
SCAN_THREADS = 1024
SCANNED = 8
TILES = BLOCK // TILE
WRITE_WARPS = 8
LOAD_BYTES = 16
VECTOR_COLUMNS = (1, 2, 4)


@dataclasses.dataclass(frozen=True)
class NonzeroPlan:
    batch: int
    elements: int
    rows: int
    sizes: tuple[int, ...]
    width: int
    keep: int
    fill: int | None
    interpret: bool

    @property
    def blocks(self) -> int:
        return -(-self.elements // BLOCK)

    @property
    def columns(self) -> int:
        return len(self.sizes)

    @property
    def values(self) -> int:
        return self.rows * self.columns

    @property
    def writers(self) -> int:
        return self.blocks + self.fillers

    @property
    def fillers(self) -> int:
        return 0 if self.fill is None else -(-self.rows // BLOCK)

    def program_and_line(self, t: Any, programs: int) -> tuple[Any, Any]:
        if self.batch == 1:
            return t.program, 0
        return t.program % programs, t.program // programs

    def count_warps(self) -> int:
        return max(4, BLOCK * self.width // 8 // COUNT_BYTES)

    def vector(self, whole: bool) -> int:
        """The elements that a thread loads at once."""
        size = self.width // 8
        if whole and self.batch == 1:
            return LOAD_BYTES // size
        return math.gcd(LOAD_BYTES // size, self.elements)


@by_lines
def nonzero_coordinates(
    x: jax.Array,
    *first: jax.Array,
    sizes: tuple[int, ...],
    rows: int,
    columns: int,
    fill: int | None,
    interpret: bool,
) -> Outputs:
    batch, elements = x.shape
    bits, width, keep = as_bits(x)
    plan = NonzeroPlan(
        batch=batch,
        elements=elements,
        rows=rows,
        sizes=last_sizes(sizes, columns),
        width=width,
        keep=keep,
        fill=fill,
        interpret=interpret,
    )
    with index_mode(elements, plan.values):
        return _run(bits, first, plan)


def _run(bits: jax.Array, first: Sequence[jax.Array], plan: NonzeroPlan) -> Outputs:
    def of(size, dtype=np.uint32):
        return jax.ShapeDtypeStruct((plan.batch, size), np.dtype(dtype))

    launched = functools.partial(
        launch_threads,
        operator="nonzero_coordinates",
        interpret=plan.interpret,
        plan=plan,
    )
    bit_words, ranks, counts = launched(
        _count,
        bits,
        step="_count",
        programs=plan.blocks * plan.batch,
        threads=WARP * plan.count_warps(),
        outputs=(of(plan.blocks * BLOCK // BIT_WORD), of(plan.blocks * TILES), of(plan.blocks)),
        shared=((WARP, np.uint32),),
    )
    starts, count = launched(
        _scan,
        counts,
        step="_scan",
        programs=plan.batch,
        threads=SCAN_THREADS,
        outputs=(of(plan.blocks), of(1)),
        shared=((WARP, np.uint32),),
    )
    staged = 1 if plan.columns in VECTOR_COLUMNS else BLOCK // BIT_WORD * (plan.columns | 1)
    (coordinates,) = launched(
        _write,
        *(bit_words, ranks, counts, starts, count),
        *(f.reshape(plan.batch, 1) for f in first),
        step="_write",
        programs=plan.writers * plan.batch,
        threads=BLOCK // BIT_WORD,
        outputs=(of(plan.values),),
        shared=((BLOCK, np.uint16), (staged, np.uint32)),
    )
    return count[:, 0], coordinates.reshape(plan.batch, plan.rows, plan.columns)


def _count(t, bits, bit_words, ranks, counts, sums, *, plan):
    block, line = plan.program_and_line(t, plan.blocks)
    memories = (bits.at(line), bit_words.at(line), ranks.at(line), counts.at(line), sums)
    whole, rest = divmod(plan.elements, BLOCK)
    if whole and not rest:
        _count_block(t, block, *memories, plan=plan, whole=True)
        return
    if whole:
        with t.when(block < whole):
            _count_block(t, block, *memories, plan=plan, whole=True)
    with t.when(block == whole):
        _count_block(t, block, *memories, plan=plan, whole=False)


def _count_block(t, block, bits, bit_words, ranks, counts, sums, *, plan, whole):
    warp, lane = t.thread // WARP, t.thread % WARP
    tiles = BLOCK // TILE // plan.count_warps()
    each = plan.vector(whole)  # elements of a load
    loads = BIT_WORD // each
    words_each = max(plan.width // 32, 1)  # memory elements of an element

    def load(tile, k):
        index = block * BLOCK + (warp * tiles + tile) * TILE + k * WARP * each
        index = index + lane * each
        if whole:
            return bits.words(index * words_each, each * words_each), None
        inside = index < plan.elements
        index = t.select(inside, index, 0)
        return bits.words(index * words_each, each * words_each), inside

    loaded = [[load(tile, k) for k in range(loads)] for tile in range(tiles)]
    for tile in range(tiles):
        word = t.constant(0)
        for k, (words, inside) in enumerate(loaded[tile]):
            chunk = tested(words, plan)
            if inside is not None:
                chunk = t.select(inside, chunk, 0)
            word = word | (chunk << (k * each))
        word = transposed(t, word, each)
        place = (lane % loads) * each + lane // loads
        first = (block * BLOCK // BIT_WORD) + (warp * tiles + tile) * WARP
        bit_words.store(first + place, word)
        total = t.warp_sum(t.ones(word))
        with t.when(lane == 0):
            sums.store(warp * tiles + tile, total)
    t.barrier()
    with t.when(t.thread < WARP):
        each = t.select(lane < TILES, sums.load(lane % TILES), 0)
        ends = t.warp_scan(each)
        with t.when(lane < TILES):
            ranks.store(block * TILES + lane, ends - each)
        with t.when(lane == TILES - 1):
            counts.store(block, ends)


def tested(words, plan):
    """A bit for each element of a load."""
    if plan.width == 64:
        words = [
            (low & np.uint32(plan.keep % 2**32)) | (high & np.uint32(plan.keep >> 32))
            for low, high in zip(words[::2], words[1::2], strict=True)
        ]
        parts, per_word = [nonzero_bits(w, 32, 2**32 - 1) for w in words], 1
    else:
        parts = [nonzero_bits(w, plan.width, plan.keep) for w in words]
        per_word = 32 // plan.width
    result = parts[0]
    for i, part in enumerate(parts[1:], 1):
        result = result | (part << (i * per_word))
    return result


def transposed(t, word, each):
    """Chunk i of thread j of a group becomes chunk j of thread i; chunks of `each` bits."""
    group = BIT_WORD // each
    lane = t.thread % WARP
    step = group // 2
    while step:
        low = sum((2**each - 1) << (i * each) for i in range(group) if not i & step)
        other = t.shuffle_xor(word, step)
        shift = step * each
        upper = (word & np.uint32(low ^ (2**32 - 1))) | ((other >> shift) & np.uint32(low))
        lower = (word & np.uint32(low)) | ((other << shift) & np.uint32(low ^ (2**32 - 1)))
        word = t.select((lane & step) == 0, lower, upper)
        step //= 2
    return word


def _scan(t, counts, starts, count, sums, *, plan):
    line = 0 if plan.batch == 1 else t.program
    counts, starts, count = counts.at(line), starts.at(line), count.at(line)
    size = SCAN_THREADS * SCANNED
    warp, lane = t.thread // WARP, t.thread % WARP

    def step(i, total):
        index = [
            i * size + warp * (WARP * SCANNED) + k * WARP + lane for k in range(SCANNED)
        ]
        inside = [k < plan.blocks for k in index]
        each = [
            t.select(i, counts.load(t.select(i, k, 0)), 0)
            for k, i in zip(index, inside, strict=True)
        ]
        ends = [t.warp_scan(e) for e in each]
        befores, before = [], t.constant(0)
        for end in ends:
            befores.append(before)
            before = before + t.shuffle(end, WARP - 1)
        with t.when(lane == 0):
            sums.store(warp, before)
        t.barrier()
        of_warps = sums.load(lane)
        ends_of_warps = t.warp_scan(of_warps)
        begin = total + t.shuffle(ends_of_warps - of_warps, warp)
        for k in range(SCANNED):
            with t.when(inside[k]):
                starts.store(index[k], begin + befores[k] + ends[k] - each[k])
        t.barrier()
        return [total + t.shuffle(ends_of_warps, WARP - 1)]

    rounds = -(-plan.blocks // size)
    if rounds == 1:
        (total,) = step(t.constant(0), t.constant(0))
    else:
        (total,) = t.loop(rounds, step, t.constant(0))
    with t.when(t.thread == 0):
        count.store(0, total)


def _write(t, *memories, plan):
    bit_words, ranks, counts, starts, count, *first, out, places, staged = memories
    program, line = plan.program_and_line(t, plan.writers)
    bit_words, ranks, counts, starts, count = (m.at(line) for m in (bit_words, ranks, counts, starts, count))
    first = [f.at(line) for f in first]
    args = (bit_words, ranks, counts, starts, first, out.at(line), places, staged, plan)
    if not plan.fillers:
        _write_block(t, program, *args)
        return
    paired = program < 2 * plan.fillers
    is_filler = paired & (program % 2 == 1)
    block = t.select(paired, program // 2, program - plan.fillers)
    with t.when(is_filler ^ True):
        _write_block(t, block, *args)
    with t.when(is_filler):
        _fill(t, block, count.load(0), out.at(line), plan)


def _write_block(t, block, bit_words, ranks, counts, starts, first, out, places, staged, plan):
    """Each warp writes the rows of one tile."""
    warp, lane = t.thread // WARP, t.thread % WARP
    word = bit_words.load(block * (BLOCK // BIT_WORD) + t.thread)
    rank = ranks.load(block * TILES + warp)
    nonzeros, start = counts.load(block), starts.load(block)
    valid = nonzeros
    if plan.rows < plan.elements:
        left = t.select(start < plan.rows, t.constant(plan.rows) - start, 0)
        valid = t.select(nonzeros < left, nonzeros, left)
    offset = block * BLOCK
    for f in first:
        offset = offset + f.load(0)
    is_full = nonzeros == BLOCK
    write = functools.partial(_write_rows, t, start, valid, offset, out, staged, plan)

    def place():
        ones = t.ones(word)
        first_row = rank + t.warp_scan(ones) - ones

        def step(i, word):
            bit = word & (t.constant(0) - word)
            places.store(first_row + i, t.thread * BIT_WORD + t.ones(bit - 1))
            return [word ^ bit]

        t.loop(ones, step, word)
        t.barrier()

    if MERGED:
        with t.when((is_full ^ True) & (valid != 0)):
            place()
        write(lambda row: t.select(is_full, row, places.load(row)))
    else:
        with t.when(is_full):
            write(lambda row: row)
        with t.when((is_full ^ True) & (valid != 0)):
            place()
            write(places.load)


def _write_rows(t, start, valid, offset, out, staged, plan, element):
    """Rows start at multiples of 32, so that a warp stores whole sectors."""
    warp, lane = t.thread // WARP, t.thread % WARP
    shift = start % WARP
    rounds = (valid + shift + (t.threads - 1)) // t.threads
    columns = plan.columns

    def step(i):
        row = i * t.threads + t.thread - shift
        inside = row < valid
        row = t.select(inside, row, 0)
        numbers = coordinates(offset + element(row), plan)
        if columns in VECTOR_COLUMNS:
            with t.when(inside):
                out.store(t.wide(start + row) * columns, *numbers)
            return []
        for k, number in enumerate(numbers):
            staged.store(t.thread * (columns | 1) + k, number)
        t.warp_barrier()
        base = i * t.threads + warp * WARP - shift
        for k in range(columns):
            value = lane + k * WARP
            r = value // columns
            place = (warp * WARP + r) * (columns | 1) + value % columns
            with t.when((base + r) < valid):
                out.store(t.wide(start + base) * columns + t.wide(value), staged.load(place))
        t.warp_barrier()
        return []

    t.loop(rounds, step)


def coordinates(offset, plan):
    result = []
    for stride in packed_strides(plan.sizes)[:-1]:
        quotient = offset // stride
        result.append(quotient)
        offset = offset - quotient * stride
    return [*result, offset]


def _fill(t, share, count, out, plan):
    """Fills a span of rows past the count."""
    span = BLOCK
    first = share * span
    columns = plan.columns
    total = count
    if plan.rows < plan.elements:
        total = t.select(count < plan.rows, count, plan.rows)
    size = min(span, plan.rows)
    value = t.constant(plan.fill)
    aligned = plan.batch == 1 or plan.values % 4 == 0
    end = min(plan.rows, 2**32 - 1)
    begin = t.select(first < total, total, first)  # first row
    stop = first + span
    stop = t.select(stop < first, t.constant(plan.rows), stop)
    stop = t.select(stop < plan.rows, stop, plan.rows)
    with t.when(begin < stop):
        base = t.wide(first) * columns
        lo, hi = (begin - first) * columns, (stop - first) * columns  # values in the span
        step = 4 if aligned else 1
        vectors = t.threads * step
        start = lo // vectors
        rounds = (hi + (vectors - 1)) // vectors - start
        def body(i):
            at = (start + i) * vectors + t.thread * step
            if step == 1:
                with t.when((at >= lo) & (at < hi)):
                    out.store(base + t.wide(at), value)
                return []
            with t.when((at >= lo) & (at + step <= hi)):
                out.store(base + t.wide(at), *[value] * step)
            with t.when((at + step > lo) & (at < hi) & ((at < lo) | (at + step > hi))):
                for k in range(step):
                    with t.when((at + k >= lo) & (at + k < hi)):
                        out.store(base + t.wide(at + k), value)
            return []
        t.loop(rounds, body)
