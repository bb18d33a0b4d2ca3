"""Faults in the kernels for GPUs, which Pallas' interpreter runs here."""

from tests.mutants.fault import faults

EDGES = "test_operators.py::test_edges"
DATA_TYPES = "test_operators.py::test_every_data_type"
VMAP = "test_transforms.py::test_vmap_of_all_operands"
BLOCKS = "test_kernels.py::test_many_blocks"
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
LOWERED = "test_kernels.py::test_kernels_are_lowered_for_cuda"
EXPLICIT = "test_sharding.py::test_a_program_with_explicit_axes_does_so_too"
SHARDS = "test_sharding.py::test_kernels_run_on_each_shard"
REFUSED = (
    "test_kernels.py::test_what_a_kernel_can_not_address_is_refused_to_who_asks_for_it"
)
FILES = ("test_kernels.py",)

PALLAS = faults(
    "dmljax.pallas",
    FILES,
    (
        "class UnsupportedError(DescriptorError)",
        "class UnsupportedError(Exception)",
        "what a kernel cannot do is an error of another kind",
        REFUSED,
    ),
    (
        '"tpu": "dmljax.pallas.tpu"}',
        '"tpu": "dmljax.pallas"}',
        "a TPU runs the kernels of a GPU",
        "test_tpu.py::test_kernels_are_lowered[float32]",
        "test_tpu.py::test_kernels_are_lowered",
    ),
)

DIAGONAL = faults(
    "dmljax.pallas._diagonal_matrix1",
    FILES,
    (
        "column.astype(np.int32) - row.astype(np.int32)",
        "row.astype(np.int32) - column.astype(np.int32)",
        "diagonals are counted to the left",
        f"{EDGES}[diagonal_matrix1-from_2_to_3_by_kernel]",
    ),
    (
        "rows.divided(height)[1]",
        "rows.divided(height)[0]",
        "the row is the number of the matrix",
        f"{EDGES}[diagonal_matrix1-rank_4_by_kernel]",
        f"{VMAP}[diagonal_matrix1-band_by_kernel]",
    ),
    (
        "math.prod(batch) == 1",
        "math.prod(batch) >= 1",
        "a batch is one long matrix",
        f"{EDGES}[diagonal_matrix1-rank_4_by_kernel]",
        f"{VMAP}[diagonal_matrix1-band_by_kernel]",
    ),
    (
        "None if origin else matrix",
        "matrix",
        "a part of a matrix is taken for one of its own",
        f"{SHARDS}[diagonal_matrix1",
    ),
    (
        "top_x.shape), value, x)",
        "top_x.shape), x, value)",
        "the value and the input change places",
        f"{EDGES}[diagonal_matrix1-from_2_to_3_by_kernel]",
    ),
    (
        "number.divided(width)",
        "number.divided(height)",
        "rows are as long as columns",
        f"{EDGES}[diagonal_matrix1-from_2_to_3_by_kernel]",
    ),
    (
        "sum(first, column",
        "sum([], column",
        "a part of a matrix begins at its corner",
        f"{SHARDS}[diagonal_matrix1",
    ),
    (
        "matrix, fill_begin, fill_end)",
        "matrix, fill_end, fill_begin)",
        "the bounds change places",
        f"{EDGES}[diagonal_matrix1-from_2_to_3_by_kernel]",
    ),
)

SELECT = faults(
    "dmljax.pallas._element_wise_if",
    FILES,
    (
        "astype(bool), first, second)",
        "astype(bool), second, first)",
        "the two sides change places",
        f"{EDGES}[element_wise_if-rank_1_by_kernel]",
    ),
    (
        "holds.astype(bool)",
        "(holds & 1).astype(bool)",
        "only the lowest bit of the condition counts",
        f"{EDGES}[element_wise_if-all_bytes_by_kernel]",
    ),
    (
        "load(place_in(operand.shape, number, shape))",
        "load(number.whole())",
        "a shared operand is read past its end",
        f"{VMAP}[element_wise_if-bytes_by_kernel]",
        "test_transforms.py::test_vmap_of_one_operand_along_every_axis"
        "[element_wise_if-bytes_by_kernel]",
    ),
)

ELEMENTWISE = faults(
    "dmljax.pallas._elementwise",
    FILES,
    (
        "self.run > 1 and size % self.run == 0",
        "self.run > 1",
        "a block is taken to lie in one row",
        f"{EDGES}[diagonal_matrix1-from_2_to_3_by_kernel]",
    ),
    (
        "self.first + self.lane.astype(self.first.dtype)",
        "self.lane.astype(self.first.dtype)",
        "every block writes to the first one",
        f"{BLOCKS}[element_wise_if",
    ),
    (
        "grid=(pl.cdiv(elements, block),)",
        "grid=(max(elements // block, 1),)",
        "the last block is not written",
        "test_kernels.py::test_the_last_of_many_blocks_is_cut",
    ),
    (
        "program == whole)",
        "program > whole)",
        "the block that is cut is not written",
        f"{EDGES}[element_wise_if-rank_1_by_kernel]",
    ),
    (
        "number.whole() < elements",
        "number.whole() < elements - 1",
        "the last element is not written",
        f"{EDGES}[element_wise_if-rank_1_by_kernel]",
    ),
    (
        "if groups and groups[-1][1] == (own > 1):",
        "if groups:",
        "dimensions are joined that are not alike",
        BATCHES,
        f"{VMAP}[diagonal_matrix1-band_by_kernel]",
    ),
    (
        "stride *= size",
        "stride = size",
        "the stride of the third group is wrong",
        "test_kernels.py::test_places_in_an_operand_that_is_shared_along_some_axes",
    ),
    (
        "[*_words(x.real), *_words(x.imag)]",
        "[*_words(x.imag), *_words(x.real)]",
        "the parts of a complex number change places",
        f"{DATA_TYPES}[diagonal_matrix1-band_by_kernel-complex64]",
    ),
    (
        'float{4 * dtype.itemsize}")',
        'float{8 * dtype.itemsize}")',
        "the parts of a complex number are as wide as the whole",
        f"{DATA_TYPES}[diagonal_matrix1-band_by_kernel-complex64]",
    ),
)

LAUNCH = faults(
    "dmljax.pallas._launch",
    ("test_kernels.py", "test_tpu.py"),
    (
        "array.dtype.itemsize > 1",
        "array.dtype.itemsize > 0",
        "a kernel takes more bytes than it can address",
        REFUSED,
    ),
    (
        "not 2**31 < array.size <= 2**32",
        "not 2**32 < array.size <= 2**33",
        "other numbers of bytes are refused",
        REFUSED,
    ),
    (
        "operator.upper(),",
        "operator,",
        "a message has the operator in small letters",
        REFUSED,
    ),
    (
        'f"dmljax_{operator}{step}"',
        'f"dmljax_{operator}"',
        "the steps of a kernel have one name",
        f"{LOWERED}[nonzero_coordinates",
    ),
    (
        'f"dmljax_{operator}",',
        '"dmljax",',
        "a kernel for TPUs has no name",
        "test_tpu.py::test_kernels_are_lowered[element_wise_if-float32]",
    ),
    (
        "manual_axis_type=axes)",
        "manual_axis_type=None)",
        "the output of a kernel is the same on all devices",
        "test_kernels.py::test_each_device_of_a_shard_map_runs_the_kernel",
    ),
    (
        "semantics[-1] =",
        "semantics[0] =",
        "blocks that depend on the one before run side by side",
        "test_tpu.py::test_nonzero_coordinates_of_many_blocks[0.1-2]",
    ),
    (
        "jax.enable_x64(False)",
        "jax.enable_x64(True)",
        "places in a grid have 64 bits",
        "test_tpu.py::test_kernels_are_lowered[element_wise_if-float32]",
        "test_tpu.py::test_kernels_are_lowered[padding-float32]",
    ),
)

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

FAULTS = (
    *PALLAS,
    *DIAGONAL,
    *SELECT,
    *ELEMENTWISE,
    *LAUNCH,
    *NONZERO,
    *HOT,
    *WORDS,
    *PADDING,
)
