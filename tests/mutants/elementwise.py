"""Faults in how kernels are launched, and in those for GPUs that go by element."""

from tests.mutants.fault import faults

EDGES = "test_operators.py::test_edges"
DATA_TYPES = "test_operators.py::test_every_data_type"
VMAP = "test_transforms.py::test_vmap_of_all_operands"
BLOCKS = "test_kernels.py::test_many_blocks"
BATCHES = "test_kernels.py::test_one_hot_of_batches_of_values"
LOWERED = "test_kernels.py::test_kernels_are_lowered_for_cuda"
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

FAULTS = (*PALLAS, *DIAGONAL, *SELECT, *ELEMENTWISE, *LAUNCH)
