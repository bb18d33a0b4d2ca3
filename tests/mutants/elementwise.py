"""Faults in the kernels for GPUs that compute each element from its position."""

from tests.mutants.fault import faults

KERNELS_ARE_LOWERED = "test_tpu_lowering.py::test_kernels_are_lowered"
ONE_HOT_OF_SEQUENCES = "test_kernels.py::test_one_hot_of_sequences_that_share_words"
ONE_HOT_OF_SEQUENCES_SIDE = "test_kernels.py::test_one_hot_of_sequences_side_by_side"
SAMPLES_AND_EDGES = "test_kernels.py::test_samples_and_edges"
VMAP_OF_ALL_OPERANDS = "test_transforms.py::test_vmap_of_all_operands"
MOVED = "test_words.py::test_elements_are_moved_as_unsigned_integers"

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
            "test_words.py",
            "test_bounds.py",
            "test_blocks.py",
        ),
        (
            "column - row + SIGN",
            "row - column + SIGN",
            "diagonals are counted to the left",
            "test_bounds.py::test_every_span_as_data",
        ),
        (
            "(diagonal >= end)",
            "(diagonal > end)",
            "one diagonal too many is filled",
            f"{SAMPLES_AND_EDGES}[diagonal_matrix1-band_by_kernel-int8]",
        ),
        (
            " ^ (end < begin)",
            "",
            "bounds in the other order fill the rest",
            f"{SAMPLES_AND_EDGES}[diagonal_matrix1-from_2_to_-1_by_kernel]",
            "test_bounds.py::test_every_span_as_data",
        ),
        (
            "np.broadcast_shapes(*(operand.shape[:-2] for operand in operands))",
            "operands[-1].shape[:-2]",
            "the batch is that of the input alone",
            "test_bounds.py::test_windows_of_heads",
            "test_bounds.py::test_every_span_as_data",
        ),
        (
            "begin, end = begin + SIGN, end + SIGN",
            "pass",
            "bounds that are data have another order",
            "test_bounds.py::test_every_span_as_data",
        ),
        (
            "diagonal = diagonal + origin",
            "diagonal = diagonal + origin + SIGN",
            "a part of a matrix has diagonals in another order",
            "test_bounds.py::test_over_explicit_axes",
        ),
        (
            "diagonal = diagonal + origin",
            "diagonal = diagonal - origin",
            "a part of a matrix lies on the other side",
            "test_sharding.py::test_explicit_axes_run_kernels_on_each_part",
        ),
        (
            "np.uint32((b + 2**31) % 2**32)",
            "np.uint32(b % 2**32)",
            "bounds have another order than diagonals",
            f"{SAMPLES_AND_EDGES}[diagonal_matrix1-band_by_kernel-int8]",
        ),
    ),
    *faults(
        "dmljax.pallas._element_wise_if",
        (
            "test_kernels.py",
            "test_words.py",
            "test_bounds.py",
            "test_blocks.py",
        ),
        (
            "condition != 0",
            "condition == 1",
            "only the lowest bit of the condition counts",
            f"{SAMPLES_AND_EDGES}[element_wise_if-all_bytes_by_kernel]",
        ),
        (
            "(operand.shape for operand in operands)",
            "(operand.shape for operand in operands[1:])",
            "the batch is that of the two sides alone",
            "test_kernels.py::test_selects_in_many_blocks",
        ),
    ),
    *faults(
        "dmljax.pallas.gpu._elementwise",
        (
            "test_kernels.py",
            "test_words.py",
            "test_bounds.py",
            "test_blocks.py",
        ),
        (
            "whole else number < runs",
            "whole else number <= runs",
            "a chunk past the end is written",
            "test_kernels.py::test_the_last_of_many_blocks_is_cut",
            "test_kernels.py::test_selects_in_many_blocks",
        ),
        (
            "programs=-(-runs // (WARPS * WARP * each)),",
            "programs=max(runs // (WARPS * WARP * each), 1),",
            "the last block is not written",
            "test_kernels.py::test_the_last_of_many_blocks_is_cut",
            "test_kernels.py::test_selects_in_many_blocks",
        ),
        (
            "(program * each + i) * t.threads",
            "(program + i) * t.threads",
            "programs write the chunks of others",
            "test_kernels.py::test_one_hot_along_every_axis_in_many_blocks",
            ONE_HOT_OF_SEQUENCES,
        ),
        (
            "groups[-1].owned == owned and not groups",
            "not groups",
            "dimensions are joined that are not alike",
            "test_kernels.py::test_dimensions_in_which_operands_are_alike_are_one_group",
        ),
        (
            "*own, a, b =",
            "*own, b, a =",
            "the two sides change places",
            f"{SAMPLES_AND_EDGES}[element_wise_if-rank_1_by_kernel]",
        ),
        (
            "stride *= groups[i].size",
            "stride = groups[i].size",
            "the stride of the third group is wrong",
            "test_kernels.py::test_operands_that_are_shared_along_some_axes",
        ),
        (
            "(slot if i == last else 0)",
            "0",
            "the elements of a chunk have one coordinate",
            f"{SAMPLES_AND_EDGES}[diagonal_matrix1-band_by_kernel-int8]",
            ONE_HOT_OF_SEQUENCES,
        ),
        (
            "coordinates.append(coordinate * group.run)",
            "coordinates.append(coordinate)",
            "runs in a middle group lie over one another",
            ONE_HOT_OF_SEQUENCES_SIDE,
        ),
        (
            "offset * groups[0].run",
            "offset",
            "runs in the first group lie over one another",
            "test_kernels.py::test_one_hot_along_every_axis_in_many_blocks",
        ),
        (
            "coordinates[i] = coordinates[i] + step",
            "pass",
            "all chunks of a run are its first one",
            ONE_HOT_OF_SEQUENCES_SIDE,
        ),
        (
            "if group.size % group.run:",
            "if False:",
            "the last run reaches into the next dimension",
            ONE_HOT_OF_SEQUENCES_SIDE,
        ),
        (
            "return -(-self.size // self.run)",
            "return self.size // self.run",
            "the last run is not written",
            ONE_HOT_OF_SEQUENCES_SIDE,
        ),
        (
            "line[slot % len(line)]",
            "line[0]",
            "the elements of a chunk are alike",
            f"{SAMPLES_AND_EDGES}[element_wise_if-rank_1_by_kernel]",
        ),
        (
            "chunk if groups[-1].owned[i] else 1",
            "chunk",
            "a shared operand is read past its end",
            "test_kernels.py::test_operands_that_are_shared_along_some_axes",
        ),
    ),
    *faults(
        "dmljax.pallas.gpu._words",
        ("test_words.py", "test_kernels.py"),
        (
            "(i % per_word * bits)",
            "(i // per_word * bits)",
            "the elements of a word are its first one",
            "test_words.py::test_elements_of_words",
        ),
        (
            "n << (i * bits)",
            "n << i",
            "the elements of a word lie over one another",
            "test_words.py::test_elements_of_words",
        ),
        (
            "[*_to_bits(x.real), *_to_bits(x.imag)]",
            "[*_to_bits(x.imag), *_to_bits(x.real)]",
            "the parts of a complex number change places",
            f"{MOVED}[complex64]",
        ),
        (
            'float{4 * dtype.itemsize}")',
            'float{8 * dtype.itemsize}")',
            "the parts of a complex number are as wide as the whole",
            f"{MOVED}[complex64]",
        ),
        (
            "for i in range(2)]",
            "for i in (1, 0)]",
            "the halves of an element of 8 bytes change places",
            f"{MOVED}[int64]",
        ),
        (
            "2**bits - 1)",
            "2 ** (bits - 1) - 1)",
            "an element loses its highest bit",
            "test_words.py::test_elements_of_words",
        ),
        (
            "min(x.dtype.itemsize, 4)",
            "min(x.dtype.itemsize, 2)",
            "an element of 4 bytes is moved as two of 2",
            f"{MOVED}[float32]",
        ),
        (
            "np.float32 if is_floating(x.dtype) else np.int8",
            "np.int8",
            "floats of 4 bits are moved as integers",
            "test_words.py::test_floats_of_four_bits_are_moved_as_wider_ones",
        ),
    ),
    *faults(
        "dmljax.pallas.gpu._launch",
        (
            "test_lowering.py",
            "test_tpu_lowering.py",
            "test_kernels.py",
        ),
        (
            'kernel_name=f"dmljax_{operator}"',
            'kernel_name="dmljax"',
            "a kernel for GPUs has no name",
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
        (
            "(n if axis in self.axes else 1 for axis, n in enumerate(grid)),",
            "(n for axis, n in enumerate(grid)),",
            "a block that stays is counted for every program",
            "test_tpu_lowering.py::test_what_the_pipeline_moves",
        ),
    ),
    *faults(
        "dmljax.pallas._one_hot",
        (
            "test_kernels.py",
            "test_words.py",
            "test_bounds.py",
            "test_blocks.py",
        ),
        (
            "-size - 1 if signed else 0, size)",
            "-size if signed else 0, size - 1)",
            "an index of 64 bits that is too large lights the last position",
            f"{SAMPLES_AND_EDGES}[one_hot-int64_of_3]",
        ),
        (
            "return index, bits if signed else 0",
            "return index, bits",
            "an unsigned index may be negative",
            f"{SAMPLES_AND_EDGES}[one_hot-uint8_of_300]",
        ),
        (
            "np.uint32(1 << (signed - 1))",
            "np.uint32(1 << (signed - 2))",
            "another bit is the sign",
            f"{SAMPLES_AND_EDGES}[one_hot-axis_0_by_kernel]",
            f"{SAMPLES_AND_EDGES}[one_hot-int8_of_3]",
        ),
        (
            "index >= np.uint32(2**31), index + size, index)",
            "index >= np.uint32(2**31), index, index)",
            "a negative index lights nothing",
            f"{SAMPLES_AND_EDGES}[one_hot-axis_0_by_kernel]",
        ),
        (
            "return position == index",
            "return position == index + 1",
            "the position behind the index is lit",
            f"{SAMPLES_AND_EDGES}[one_hot-axis_0_by_kernel]",
        ),
        (
            "asked=(axis % len(shape),)",
            "asked=(0,)",
            "the positions are those along the first dimension",
            f"{SAMPLES_AND_EDGES}[one_hot-axis_2_by_kernel]",
            ONE_HOT_OF_SEQUENCES,
        ),
        (
            "shape[axis] = size",
            "shape[-1] = size",
            "the sequences go along the last dimension",
            f"{SAMPLES_AND_EDGES}[one_hot-axis_0_by_kernel]",
            ONE_HOT_OF_SEQUENCES_SIDE,
        ),
        (
            "    elif bits < 8:",
            "    elif bits < 4:",
            "an index of less than a byte is loaded as one",
            f"{SAMPLES_AND_EDGES}[one_hot-int4_of_40]",
        ),
    ),
)
