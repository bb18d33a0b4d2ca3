"""Faults in the kernels for GPUs that compute each element from its position."""

from tests.mutants.fault import faults

KERNELS_ARE_LOWERED = "test_tpu_lowering.py::test_kernels_are_lowered"
ONE_HOT_OF_SEQUENCES = "test_kernels.py::test_one_hot_of_sequences_that_share_words"
ONE_HOT_OF_SEQUENCES_SIDE = "test_kernels.py::test_one_hot_of_sequences_side_by_side"
SAMPLES_AND_EDGES = "test_kernels.py::test_samples_and_edges"
VMAP_OF_ALL_OPERANDS = "test_transforms.py::test_vmap_of_all_operands"
WHAT_A_KERNEL_CAN = (
    "test_lowering.py::test_what_a_kernel_can_not_address_is_refused_to_who_asks_for_it"
)

FAULTS = (
    *faults(
        "dmljax.pallas",
        (
            "test_lowering.py",
            "test_tpu_lowering.py",
            "test_kernels.py",
        ),
    ),
    *faults(
        "dmljax.pallas._diagonal_matrix1",
        (
            "test_kernels.py",
            "test_size.py",
            "test_bounds.py",
            "test_blocks.py",
        ),
        (
            "column.astype(np.int32) - row.astype(np.int32)",
            "row.astype(np.int32) - column.astype(np.int32)",
            "diagonals are counted to the left",
            f"{SAMPLES_AND_EDGES}[diagonal_matrix1-from_2_to_-1_by_kernel",
            f"{SAMPLES_AND_EDGES}[diagonal_matrix1-outside_by_kernel",
        ),
        (
            "rows.divided(height)[1]",
            "rows.divided(height)[0]",
            "the row is the number of the matrix",
            f"{SAMPLES_AND_EDGES}[diagonal_matrix1-rank_8_by_kernel]",
            f"{VMAP_OF_ALL_OPERANDS}[diagonal_matrix1-band_by_kernel]",
        ),
        (
            "math.prod(batch) == 1",
            "math.prod(batch) >= 1",
            "a batch is one long matrix",
            f"{SAMPLES_AND_EDGES}[diagonal_matrix1-rank_8_by_kernel]",
            f"{VMAP_OF_ALL_OPERANDS}[diagonal_matrix1-band_by_kernel]",
        ),
        (
            "load(offsets_in(operand.shape, offsets, shape))",
            "load(offsets.total())",
            "a shared operand is read past its end",
            f"{VMAP_OF_ALL_OPERANDS}[diagonal_matrix1-band_by_kernel",
        ),
        (
            "jnp.where(filled, value, x)",
            "jnp.where(filled, x, value)",
            "the value and the input change places",
            f"{SAMPLES_AND_EDGES}[diagonal_matrix1-band_by_kernel-int8]",
        ),
        (
            "offsets.divided(width)",
            "offsets.divided(height)",
            "rows are as long as columns",
            f"{SAMPLES_AND_EDGES}[diagonal_matrix1-band_by_kernel-int8]",
        ),
        (
            "np.broadcast_shapes(*(operand.shape[:-2] for operand in operands))",
            "operands[-1].shape[:-2]",
            "the batch is that of the input alone",
            "test_bounds.py::test_windows_of_heads",
            "test_bounds.py::test_every_span_as_data",
        ),
        (
            "matrix, fill_begin, fill_end)",
            "matrix, fill_end, fill_begin)",
            "the bounds change places",
            f"{SAMPLES_AND_EDGES}[diagonal_matrix1-band_by_kernel-int8]",
        ),
    ),
    *faults(
        "dmljax.pallas._element_wise_if",
        (
            "test_kernels.py",
            "test_size.py",
            "test_bounds.py",
            "test_blocks.py",
        ),
        (
            "astype(bool), first, second)",
            "astype(bool), second, first)",
            "the two sides change places",
            f"{SAMPLES_AND_EDGES}[element_wise_if-rank_1_by_kernel]",
        ),
        (
            "holds.astype(bool)",
            "(holds & 1).astype(bool)",
            "only the lowest bit of the condition counts",
            f"{SAMPLES_AND_EDGES}[element_wise_if-all_bytes_by_kernel]",
        ),
        (
            "load(offsets_in(operand.shape, offsets, shape))",
            "load(offsets.total())",
            "a shared operand is read past its end",
            f"{VMAP_OF_ALL_OPERANDS}[element_wise_if-bytes_by_kernel]",
            (
                "test_transforms.py::test_vmap_of_one_operand_along_every_axis[e"
                "lement_wise_if-bytes_by_kernel]"
            ),
        ),
    ),
    *faults(
        "dmljax.pallas._elementwise",
        (
            "test_kernels.py",
            "test_size.py",
            "test_bounds.py",
            "test_blocks.py",
        ),
        (
            "self.run > 1 and size % self.run == 0",
            "self.run > 1",
            "a block is taken to lie in one row",
            f"{SAMPLES_AND_EDGES}[diagonal_matrix1-band_by_kernel-int8]",
        ),
        (
            "self.base + self.within.astype(self.base.dtype)",
            "self.within.astype(self.base.dtype)",
            "every block writes to the first one",
            "test_kernels.py::test_selects_in_many_blocks[int8",
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
            f"{SAMPLES_AND_EDGES}[element_wise_if-rank_1_by_kernel]",
        ),
        (
            "offsets.total() < elements)",
            "offsets.total() < elements - 1)",
            "the last element is not written",
            f"{SAMPLES_AND_EDGES}[element_wise_if-rank_1_by_kernel]",
        ),
        (
            "if groups and groups[-1][1] == (own > 1):",
            "if groups:",
            "dimensions are joined that are not alike",
            "test_kernels.py::test_one_hot_of_batches_of_values",
            f"{VMAP_OF_ALL_OPERANDS}[diagonal_matrix1-band_by_kernel]",
        ),
        (
            "stride *= size",
            "stride = size",
            "the stride of the third group is wrong",
            (
                "test_kernels.py::test_places_in_an_operand_that_is_shared_along"
                "_some_axes"
            ),
        ),
        (
            "[*_to_bits(x.real), *_to_bits(x.imag)]",
            "[*_to_bits(x.imag), *_to_bits(x.real)]",
            "the parts of a complex number change places",
            (
                "test_words.py::test_elements_are_moved_as_integers_of_their_siz"
                "e[complex64]"
            ),
        ),
        (
            'float{4 * dtype.itemsize}")',
            'float{8 * dtype.itemsize}")',
            "the parts of a complex number are as wide as the whole",
            (
                "test_words.py::test_elements_are_moved_as_integers_of_their_siz"
                "e[complex64]"
            ),
        ),
    ),
    *faults(
        "dmljax.pallas._launch",
        (
            "test_lowering.py",
            "test_tpu_lowering.py",
            "test_kernels.py",
        ),
        (
            "array.dtype.itemsize > 1",
            "array.dtype.itemsize > 0",
            "a kernel takes more bytes than it can address",
            WHAT_A_KERNEL_CAN,
        ),
        (
            "not 2**31 < array.size <= 2**32",
            "not 2**32 < array.size <= 2**33",
            "other numbers of bytes are refused",
            WHAT_A_KERNEL_CAN,
        ),
        (
            "operator.upper(),",
            "operator,",
            "a message has the operator in small letters",
            WHAT_A_KERNEL_CAN,
        ),
        (
            'kernel_name=f"dmljax_{operator}{step}"',
            'kernel_name=f"dmljax_{operator}"',
            "the steps of a kernel have one name",
            (
                "test_lowering.py::test_kernels_are_lowered_for_cuda[nonzero_coo"
                "rdinates]"
            ),
        ),
        (
            'name=f"dmljax_{operator}",\n            interpret',
            'name="dmljax",\n            interpret',
            "a kernel for TPUs has no name",
            f"{KERNELS_ARE_LOWERED}[element_wise_if-float32]",
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
            f"{KERNELS_ARE_LOWERED}[element_wise_if-float32]",
            f"{KERNELS_ARE_LOWERED}[padding-float32]",
        ),
        (
            "return rounds * math.prod(along)",
            "return math.prod(along)",
            "what is fetched again is counted once",
            "test_tpu_lowering.py::test_what_the_pipeline_moves",
        ),
        (
            "size if steps * block - size < block else steps",
            "steps",
            "what is past the end of an array is counted as moved",
            "test_tpu_lowering.py::test_what_the_pipeline_moves",
        ),
    ),
    *faults(
        "dmljax.pallas._words",
        (
            "test_words.py",
            "test_kernels.py",
        ),
        (
            '1 if dtype.kind == "b" else',
            "",
            "truth values are made of words",
            "test_words.py::test_how_many_elements_a_word_has[bool]",
            ONE_HOT_OF_SEQUENCES,
        ),
        (
            "(slot * np.uint32(bits))",
            "((np.uint32(per_word - 1) - slot) * np.uint32(bits))",
            "the elements of a word are in the opposite order",
            f"{ONE_HOT_OF_SEQUENCES}[int8-12-4]",
            ONE_HOT_OF_SEQUENCES,
        ),
        (
            'value.astype(np.dtype(f"uint{bits}")).astype(word)',
            "value.astype(word)",
            "a negative element changes those beside it",
            ONE_HOT_OF_SEQUENCES,
            "test_kernels.py::test_padding_of_rows",
        ),
        (
            "for i in range(per_word))",
            "for i in range(max(per_word - 1, 1)))",
            "the last element of a word is off",
            ONE_HOT_OF_SEQUENCES,
        ),
    ),
    *faults(
        "dmljax.pallas._one_hot",
        (
            "test_kernels.py",
            "test_size.py",
            "test_bounds.py",
            "test_blocks.py",
        ),
        (
            "(alike and size >= elements)",
            "alike",
            "a chunk has more than two sequences",
            ONE_HOT_OF_SEQUENCES,
        ),
        (
            "on + self.integer.type(math.prod(self.shared[1]))",
            "on + self.integer.type(1)",
            "on is read from the values that are off",
            "test_kernels.py::test_one_hot_of_batches_of_values",
        ),
        (
            "hot + left.astype(hot.dtype)",
            "hot",
            "the second sequence of a chunk begins with the first",
            ONE_HOT_OF_SEQUENCES,
        ),
        (
            "((start < each) & (hot < plan.size), start)",
            "((start < each), start)",
            "an index past the end lights the next sequence",
            ONE_HOT_OF_SEQUENCES,
        ),
        (
            "slot < plan.per_word, word",
            "slot <= plan.per_word, word",
            "one position too many is lit",
            f"{ONE_HOT_OF_SEQUENCES}[int8-12-3",
        ),
        (
            "np.uint32(slot), plan.dtype",
            "np.uint32(0), plan.dtype",
            "all sequences of a word light its first slot",
            f"{ONE_HOT_OF_SEQUENCES_SIDE}[int8]",
            ONE_HOT_OF_SEQUENCES_SIDE,
        ),
        (
            "jnp.where(index < 0, index + size, index)",
            "index",
            "a negative index lights nothing",
            f"{SAMPLES_AND_EDGES}[one_hot-axis_0_by_kernel]",
        ),
        (
            "row = (i * rows + lax.iota",
            "row = (lax.iota",
            "the positions of a tile are counted from the first tile",
            ONE_HOT_OF_SEQUENCES_SIDE,
        ),
        (
            "column = (j * columns + lax.iota",
            "column = (lax.iota",
            "the sequences of a tile are those of the first tile",
            ONE_HOT_OF_SEQUENCES_SIDE,
        ),
    ),
)
