"""Faults in the other kernels for GPUs, which Pallas' interpreter runs here."""

from tests.mutants.fault import faults

EDGES = "test_operators.py::test_edges"
DATA_TYPES = "test_operators.py::test_every_data_type"
ROWS = "test_kernels.py::test_padding_of_rows"
VALUES = "test_kernels.py::test_padding_with_values_of_a_batch"
SHARED_WORDS = "test_kernels.py::test_one_hot_of_sequences_that_share_words"
SIDE = "test_kernels.py::test_one_hot_of_sequences_side_by_side"
BATCHES = "test_kernels.py::test_one_hot_of_batches_of_values"
FILLS = "test_kernels.py::test_nonzero_coordinates_fills_from_any_count_on"
RANKS = "test_kernels.py::test_nonzero_coordinates_of_every_rank"
CROWDED = (
    "test_kernels.py"
    "::test_nonzero_coordinates_of_crowded_and_sparse_blocks_side_by_side"
)
FILES = ("test_kernels.py",)

NONZERO = faults(
    "dmljax.pallas._nonzero_coordinates",
    FILES,
    (
        "self.blocks if self.fill is None else 2 * self.blocks",
        "self.blocks",
        "no program fills",
        f"{EDGES}[nonzero_coordinates-fill_7_by_kernel]",
    ),
    (
        "keep = 2**width - 1 - max(zeros)",
        "keep = 2**width - 1",
        "minus zero is not zero",
        f"{EDGES}[nonzero_coordinates-signs_by_kernel]",
    ),
    (
        "(ends - ones).astype(np.uint16)",
        "ends.astype(np.uint16)",
        "a word's rows begin after its own elements",
        f"{EDGES}[nonzero_coordinates-size_65_by_kernel]",
    ),
    (
        "place < bits.shape[1]",
        "place <= bits.shape[1]",
        "one element past the end is counted",
        f"{EDGES}[nonzero_coordinates-none_zero_by_kernel]",
        f"{EDGES}[nonzero_coordinates-last_by_kernel]",
    ),
    (
        "(((word & rest) + rest) | word) & np",
        "((word & rest) + rest) & np",
        "an element of which only the top bit is set is zero",
        "test_kernels.py::test_nonzero_coordinates_of_every_bit_pattern[uint8]",
    ),
    (
        "2 ** len(places) - 1)",
        "2 ** (len(places) - 1) - 1)",
        "the last element of a word is zero",
        "test_kernels.py::test_nonzero_coordinates_of_every_bit_pattern[uint8]",
    ),
    (
        "jnp.cumsum(ones) - ones)",
        "jnp.cumsum(ones))",
        "a block's rows begin after its own",
        f"{EDGES}[nonzero_coordinates-matrix_by_kernel]",
    ),
    (
        "(program >= blocks)",
        "(program > blocks)",
        "the first of the programs that fill writes rows",
        f"{EDGES}[nonzero_coordinates-fill_7_by_kernel]",
    ),
    (
        "_ones(word & (bit - np.uint32(1)))",
        "_ones(word & bit)",
        "an element of a crowded block does not count those before it",
        CROWDED,
        RANKS,
    ),
    (
        "put(rank + i, word != 0",
        "put(rank, word != 0",
        "the bits of a word share a row",
        f"{EDGES}[nonzero_coordinates-none_zero_by_kernel]",
    ),
    (
        "BLOCK // ELEMENTS, by_element",
        "BLOCK // ELEMENTS - 1, by_element",
        "the last share of a crowded block is not written",
        f"{RANKS}[(9001,)-0.9]",
    ),
    (
        "BLOCK // ROWS, in_order",
        "BLOCK // ROWS - 1, in_order",
        "the last share of a full block is not written",
        CROWDED,
        f"{RANKS}[(9001,)-1.0]",
    ),
    (
        "plan.part or max(plan.sizes[:axis]) > 1",
        "max(plan.sizes[:axis]) > 1",
        "the last coordinate of a part is past its size",
        f"{EDGES}[nonzero_coordinates-6_parts_of_(6,_5)_by_kernel]",
    ),
    (
        "(place(chunk) >= start)",
        "(place(chunk) > start)",
        "the first value past the count is not filled",
        f"{EDGES}[nonzero_coordinates-fill_7_by_kernel]",
    ),
    (
        "jnp.int32(whole) - cut - 1 - share",
        "jnp.int32(whole) - cut - 2 - share",
        "the last whole chunk is not filled",
        FILLS,
    ),
    (
        "lax.div(left + jnp.int32(plan.blocks - 1),",
        "lax.div(left,",
        "the last round of chunks is not filled",
        FILLS,
    ),
)

HOT = faults(
    "dmljax.pallas._one_hot",
    FILES,
    (
        "(alike and size >= elements)",
        "alike",
        "a chunk has more than two sequences",
        SHARED_WORDS,
    ),
    (
        "on + self.integer.type(math.prod(self.shared[1]))",
        "on + self.integer.type(1)",
        "on is read from the values that are off",
        BATCHES,
    ),
    (
        "hot + left.astype(hot.dtype)",
        "hot",
        "the second sequence of a chunk begins with the first",
        SHARED_WORDS,
    ),
    (
        "((start < each) & (hot < plan.size), start)",
        "((start < each), start)",
        "an index past the end lights the next sequence",
        SHARED_WORDS,
    ),
    (
        "lane < plan.lanes, word",
        "lane <= plan.lanes, word",
        "one position too many is lit",
        f"{EDGES}[one_hot-axis_2_by_kernel]",
    ),
    (
        "equal >> np.uint32(7)",
        "equal >> np.uint32(6)",
        "the bytes of a word that are lit lack a bit",
        f"{SIDE}[int8",
        SIDE,
    ),
    (
        "jnp.where(index < 0, index + size, index)",
        "index",
        "a negative index lights nothing",
        f"{EDGES}[one_hot-axis_0_by_kernel]",
    ),
    (
        "row - i * rows)",
        "row)",
        "the positions of a tile are counted from the first tile",
        SIDE,
    ),
    (
        "jnp.minimum(n, BELOW)",
        "n",
        "an index past a byte lights another position",
        SIDE,
    ),
)

WORDS = faults(
    "dmljax.pallas._words",
    FILES,
    (
        '1 if dtype.kind == "b" else',
        "",
        "truth values are made of words",
        f"{DATA_TYPES}[one_hot-rows_by_kernel-bool]",
        SHARED_WORDS,
    ),
    (
        "(lane * np.uint32(bits))",
        "((np.uint32(lanes - 1) - lane) * np.uint32(bits))",
        "the elements of a word are in the opposite order",
        f"{SHARED_WORDS}[int8-12-4]",
        SHARED_WORDS,
    ),
    (
        'value.astype(np.dtype(f"uint{bits}")).astype(word)',
        "value.astype(word)",
        "a negative element changes those beside it",
        SHARED_WORDS,
        ROWS,
    ),
    (
        "for lane in range(lanes))",
        "for lane in range(max(lanes - 1, 1)))",
        "the last element of a word is off",
        SHARED_WORDS,
    ),
)

PADDING = faults(
    "dmljax.pallas._padding",
    FILES,
    (
        "2 * self.lanes - 2)",
        "self.lanes - 1)",
        "a gap has a word too few",
        ROWS,
    ),
    (
        "(self.length | self.inside | self.before)",
        "(self.length | self.inside)",
        "rows that are shifted in their words are taken for aligned",
        ROWS,
    ),
    (
        "max(across, pl.cdiv(self.gap, self.gap_columns))",
        "across",
        "a wide gap is not written to its end",
        ROWS,
    ),
    (
        "stride *= axis.size",
        "stride *= axis.output",
        "planes of the input lie as those of the output",
        f"{EDGES}[padding-wrap_all_axes_by_kernel]",
        f"{EDGES}[padding-symmetric_rank",
        f"{EDGES}[padding-constant_rank_8_by_kernel]",
    ),
    (
        "plan.plane.output % rows == 0",
        "plan.plane.output % rows != 0",
        "the gap behind the last row is not written",
        ROWS,
    ),
    (
        "plan.plane.source(row, plan.mode)\n    head_from",
        "row\n    head_from",
        "the rows of a plane are not repeated",
        ROWS,
    ),
    (
        "jnp.where(inside, 0, count)",
        "jnp.where(inside, count, 0)",
        "rows outside of the input are not filled",
        f"{EDGES}[padding-constant_all_axes_by_kernel]",
    ),
    (
        "is_behind = position < 0",
        "is_behind = position <= 0",
        "the first element of a row belongs to the row before",
        f"{EDGES}[padding-wrap_all_axes_by_kernel]",
        ROWS,
    ),
    (
        "math.prod(plan.shared) == 1",
        "math.prod(plan.shared) >= 1",
        "a batch has one value",
        VALUES,
    ),
    (
        "(source * integer(plan.plane.size) + from_row)",
        "(source * integer(plan.plane.output) + from_row)",
        "a row of a gap is read from the wrong plane",
        f"{EDGES}[padding-wrap_all_axes_by_kernel]",
        ROWS,
    ),
    (
        "(more << plan.word.type(1)) <<",
        "more <<",
        "what a shifted word has of the next one is shifted too little",
        ROWS,
    ),
)

FAULTS = (*NONZERO, *HOT, *WORDS, *PADDING)
