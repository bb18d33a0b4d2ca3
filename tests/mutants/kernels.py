"""Faults in the other kernels for GPUs."""

from tests.mutants.fault import faults

A_WORD_HAS_A_BIT = "test_words.py::test_a_word_has_a_bit_for_each_element"
NONZERO_COORDINATES_OF_EVERY = "test_kernels.py::test_nonzero_coordinates_of_every_rank"
PADDING_OF_ROWS = "test_kernels.py::test_padding_of_rows"
SAMPLES_AND_EDGES = "test_kernels.py::test_samples_and_edges"

FAULTS = (
    *faults(
        "dmljax.pallas._nonzero_bits",
        (
            "test_words.py",
            "test_kernels.py",
        ),
        (
            "keep = 2**width - 1 - max(zeros)",
            "keep = 2**width - 1",
            "minus zero is not zero",
            f"{SAMPLES_AND_EDGES}[nonzero_coordinates-signs_by_kernel]",
        ),
        (
            "(((word & rest) + rest) | word) & np",
            "((word & rest) + rest) & np",
            "an element of which only the top bit is set is zero",
            A_WORD_HAS_A_BIT,
        ),
        (
            "2 ** len(starts) - 1)",
            "2 ** (len(starts) - 1) - 1)",
            "the last element of a word is zero",
            A_WORD_HAS_A_BIT,
        ),
        (
            "if n * size <= 4 and",
            "if n * size <= 2 and",
            "a word has half of its bytes",
            "test_words.py::test_bits_are_read_in_words_of_the_same_memory",
        ),
        (
            "word &= np.uint32(keep * ones)",
            "word &= np.uint32(2**32 - 1)",
            "bits that do not matter make an element non-zero",
            A_WORD_HAS_A_BIT,
        ),
        (
            "sum(1 << (shift - start + i) for",
            "sum(1 << (shift - start) for",
            "the bits of a word are written over one another",
            A_WORD_HAS_A_BIT,
        ),
        (
            "top = ones << (width - 1)",
            "top = ones << (width - 2)",
            "the top bit of an element is not its own",
            A_WORD_HAS_A_BIT,
        ),
        (
            "is_nonzero(x).astype(np.uint8), 1",
            "is_nonzero(x).astype(np.uint8), 0",
            "a wide element is never non-zero",
            "test_words.py::test_what_is_not_zero_is_so_by_its_bits[float64]",
            "test_words.py::test_what_is_not_zero_is_so_by_its_bits",
        ),
    ),
    *faults(
        "dmljax.pallas._nonzero_coordinates",
        (
            "test_kernels.py",
            "test_size.py",
            "test_bounds.py",
            "test_blocks.py",
        ),
        (
            "self.blocks if self.fill is None else 2 * self.blocks",
            "self.blocks",
            "no program fills",
            f"{SAMPLES_AND_EDGES}[nonzero_coordinates-fill_4294967295_by_kernel]",
        ),
        (
            "(ends - nonzeros).astype(np.uint16)",
            "ends.astype(np.uint16)",
            "a word's rows begin after its own elements",
            f"{SAMPLES_AND_EDGES}[nonzero_coordinates-columns_by_kernel-int8]",
        ),
        (
            "source < words.shape[1]",
            "source <= words.shape[1]",
            "one element past the end is counted",
            f"{SAMPLES_AND_EDGES}[nonzero_coordinates-columns_by_kernel-int8]",
            f"{SAMPLES_AND_EDGES}[nonzero_coordinates-size_33_by_kernel]",
        ),
        (
            "jnp.cumsum(nonzeros) - nonzeros)",
            "jnp.cumsum(nonzeros))",
            "a block's rows begin after its own",
            f"{SAMPLES_AND_EDGES}[nonzero_coordinates-columns_by_kernel-int8]",
        ),
        (
            "is_filler = program >= plan.blocks",
            "is_filler = program > plan.blocks",
            "the first of the programs that fill writes rows",
            f"{SAMPLES_AND_EDGES}[nonzero_coordinates-fill_4294967295_by_kernel]",
        ),
        (
            "count_ones(bit_word & (bit - np.uint32(1)))",
            "count_ones(bit_word & bit)",
            "an element of a crowded block does not count those before it",
            "test_kernels.py::test_nonzero_coordinates_of_unlike_blocks_side_by_side",
            NONZERO_COORDINATES_OF_EVERY,
        ),
        (
            "                rank + i,\n",
            "                rank,\n",
            "the bits of a word share a row",
            f"{SAMPLES_AND_EDGES}[nonzero_coordinates-columns_by_kernel-int8]",
        ),
        (
            "BLOCK // ELEMENTS, crowded",
            "BLOCK // ELEMENTS - 1, crowded",
            "the last share of a crowded block is not written",
            f"{NONZERO_COORDINATES_OF_EVERY}[(1001,)",
        ),
        (
            "BLOCK // ROWS, full",
            "BLOCK // ROWS - 1, full",
            "the last share of a full block is not written",
            "test_kernels.py::test_nonzero_coordinates_of_unlike_blocks_side_by_side",
            f"{NONZERO_COORDINATES_OF_EVERY}[(1001,)",
        ),
        (
            "plan.part or max(plan.sizes[:axis]) > 1",
            "max(plan.sizes[:axis]) > 1",
            "the last coordinate of a part is past its size",
            f"{SAMPLES_AND_EDGES}[nonzero_coordinates-6_parts_of_(6,_5)_by_kernel",
        ),
        (
            "(offsets(chunk) >= start)",
            "(offsets(chunk) > start)",
            "the first value past the count is not filled",
            f"{SAMPLES_AND_EDGES}[nonzero_coordinates-fill_4294967295_by_kernel]",
        ),
        (
            "jnp.int32(whole) - cut - 1 - share",
            "jnp.int32(whole) - cut - 2 - share",
            "the last whole chunk is not filled",
            "test_kernels.py::test_nonzero_coordinates_fills_from_any_count_on",
        ),
        (
            "lax.div(left + jnp.int32(plan.blocks - 1),",
            "lax.div(left,",
            "the last round of chunks is not filled",
            "test_kernels.py::test_nonzero_coordinates_fills_from_any_count_on",
        ),
    ),
    *faults(
        "dmljax.pallas._padding",
        (
            "test_kernels.py",
            "test_size.py",
            "test_bounds.py",
            "test_blocks.py",
        ),
        (
            "2 * self.per_word - 2)",
            "self.per_word - 1)",
            "a gap has a word too few",
            PADDING_OF_ROWS,
        ),
        (
            "(self.length | self.inside | self.before)",
            "(self.length | self.inside)",
            "rows that are shifted in their words are taken for aligned",
            PADDING_OF_ROWS,
        ),
        (
            "max(across, pl.cdiv(self.gap, self.gap_columns))",
            "across",
            "a wide gap is not written to its end",
            PADDING_OF_ROWS,
        ),
        (
            "stride *= axis.size",
            "stride *= axis.output",
            "planes of the input lie as those of the output",
            f"{SAMPLES_AND_EDGES}[padding-wrap_rank_4_by_kernel",
            PADDING_OF_ROWS,
        ),
        (
            "plan.plane.output % rows == 0",
            "plan.plane.output % rows != 0",
            "the gap behind the last row is not written",
            PADDING_OF_ROWS,
        ),
        (
            "plan.plane.source(row, plan.mode)\n    from_head",
            "row\n    from_head",
            "the rows of a plane are not repeated",
            PADDING_OF_ROWS,
        ),
        (
            "jnp.where(inside, 0, count)",
            "jnp.where(inside, count, 0)",
            "rows outside of the input are not filled",
            f"{SAMPLES_AND_EDGES}[padding-constant_all_axes_by_kernel]",
        ),
        (
            "is_behind = position < 0",
            "is_behind = position <= 0",
            "the first element of a row belongs to the row before",
            f"{SAMPLES_AND_EDGES}[padding-wrap_all_axes_by_kernel]",
            PADDING_OF_ROWS,
        ),
        (
            "math.prod(plan.shared) == 1",
            "math.prod(plan.shared) >= 1",
            "a batch has one value",
            "test_kernels.py::test_padding_with_values_of_a_batch",
        ),
        (
            "(source * integer(plan.plane.size) + from_row)",
            "(source * integer(plan.plane.output) + from_row)",
            "a row of a gap is read from the wrong plane",
            f"{SAMPLES_AND_EDGES}[padding-wrap_all_axes_by_kernel]",
            PADDING_OF_ROWS,
        ),
        (
            "(more << plan.word.type(1)) <<",
            "more <<",
            "what a shifted word has of the next one is shifted too little",
            PADDING_OF_ROWS,
        ),
    ),
)
