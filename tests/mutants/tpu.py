"""Faults in the kernels for TPUs."""

from tests.mutants.fault import faults

BATCHES = "test_tpu.py::test_batches"
MANY_BLOCKS_OF_PADDING = "test_tpu.py::test_many_blocks_of_padding"
MANY_BLOCKS_OF_SELECTS = "test_tpu.py::test_many_blocks_of_selects"
NONZERO_COORDINATES_OF_MANY = "test_tpu.py::test_nonzero_coordinates_of_many_blocks"
SAMPLES_AND_EDGES = "test_tpu.py::test_samples_and_edges"

FAULTS = (
    *faults(
        "dmljax.pallas.tpu._blocks",
        (
            "test_tpu.py",
            "test_tpu_lowering.py",
            "test_bounds.py",
        ),
        (
            "index if axis in own else jnp.int32(0)",
            "index",
            "the block of a shared operand is past its end",
            f"{MANY_BLOCKS_OF_SELECTS}[diagonal_matrix1-float32]",
        ),
        (
            "size if axis in own else 1",
            "size",
            "a shared operand has blocks as large as the output's",
            f"{SAMPLES_AND_EDGES}[diagonal_matrix1-band_by_kernel-float32]",
            f"{MANY_BLOCKS_OF_SELECTS}[diagonal_matrix1-float32]",
        ),
        (
            "pl.program_id(axis) * np.int32(block[axis])",
            "pl.program_id(axis)",
            "the positions of a block are counted from the first one",
            f"{MANY_BLOCKS_OF_SELECTS}[diagonal_matrix1-float32]",
        ),
        (
            "axis %= len(block)",
            "axis %= 2",
            "the positions are those of a matrix",
            f"{SAMPLES_AND_EDGES}[one_hot-columns_by_kernel",
        ),
        (
            "dtype != np.float16 and",
            "",
            "half floats are taken",
            (
                "test_tpu_lowering.py::"
                "test_what_mosaic_has_not_is_refused_to_who_asks_for_it"
            ),
        ),
        (
            "dtype.itemsize <= 4 and",
            "",
            "wide integers are taken",
            (
                "test_tpu_lowering.py::"
                "test_what_mosaic_has_not_is_refused_to_who_asks_for_it"
            ),
        ),
        (
            "output.reshape(shape).astype(operands[-1].dtype)",
            "output.reshape(shape)",
            "truth values come out as bytes",
            f"{SAMPLES_AND_EDGES}[element_wise_if-bytes_by_kernel-bool]",
            f"{SAMPLES_AND_EDGES}[one_hot-rows_by_kernel-bool]",
        ),
        (
            'lax.bitcast_convert_type(x, np.dtype(f"int{8 * x.dtype.itemsize}"))',
            "x",
            "a value that is spread over a block loses its fraction",
            f"{SAMPLES_AND_EDGES}[one_hot-rows_by_kernel-float32]",
        ),
        (
            "pl.cdiv(size, step) * step",
            "max(size // step, 1) * step",
            "what its tiles do not use of an array is left out",
            f"{MANY_BLOCKS_OF_PADDING}[0-float32-pads0-1]",
            MANY_BLOCKS_OF_PADDING,
        ),
        (
            "ones = (1,) * max(2 - len(shape), 0)",
            "ones = (1,) * max(1 - len(shape), 0)",
            "a vector stays a vector",
            f"{SAMPLES_AND_EDGES}[element_wise_if-rank_1]",
        ),
    ),
    *faults(
        "dmljax.pallas.tpu._diagonal_matrix1",
        (
            "test_tpu.py",
            "test_tpu_lowering.py",
            "test_bounds.py",
        ),
        (
            "positions(-1) - positions(-2)",
            "positions(-2) - positions(-1)",
            "diagonals are counted to the left",
            f"{MANY_BLOCKS_OF_SELECTS}[diagonal_matrix1-float32]",
        ),
        (
            "jnp.where(filled, filling, kept)",
            "jnp.where(filled, kept, filling)",
            "the value and the input change places",
            f"{SAMPLES_AND_EDGES}[diagonal_matrix1-band_by_kernel-float32]",
        ),
        (
            "np.broadcast_shapes(*(operand.shape[:-2] for operand in operands))",
            "operands[-1].shape[:-2]",
            "the batch is that of the input alone",
            BATCHES,
        ),
        (
            "*data, filling, kept = values",
            "filling, kept = values[-2:]\n        data = ()",
            "a bound that is data is ignored",
            "test_bounds.py::test_by_the_kernel_for_tpus",
        ),
    ),
    *faults(
        "dmljax.pallas.tpu._element_wise_if",
        (
            "test_tpu.py",
            "test_tpu_lowering.py",
            "test_bounds.py",
        ),
        (
            "astype(bool), first, second)",
            "astype(bool), second, first)",
            "the two sides change places",
            f"{SAMPLES_AND_EDGES}[element_wise_if-bytes_by_kernel-float32]",
        ),
        (
            "holds.astype(bool)",
            "(holds & 1).astype(bool)",
            "only the lowest bit of the condition counts",
            f"{SAMPLES_AND_EDGES}[element_wise_if-bytes_by_kernel-float32]",
        ),
    ),
    *faults(
        "dmljax.pallas.tpu._one_hot",
        (
            "test_tpu.py",
            "test_tpu_lowering.py",
            "test_bounds.py",
        ),
        (
            "size), lit, unlit)",
            "size), unlit, lit)",
            "on and off change places",
            f"{SAMPLES_AND_EDGES}[one_hot-rows_by_kernel-float32]",
        ),
        (
            "positions(axis).astype(indices.dtype)",
            "positions(-1).astype(indices.dtype)",
            "the positions are those of the last axis",
            f"{SAMPLES_AND_EDGES}[one_hot-columns_by_kernel",
        ),
        (
            "index, index.dtype.type(size))",
            "index, index.dtype.type(0))",
            "a wide index past the end lights the first position",
            f"{SAMPLES_AND_EDGES}[one_hot-int64_of_3]",
        ),
        (
            "low = -size if",
            "low = 0 if",
            "a wide negative index lights nothing",
            f"{SAMPLES_AND_EDGES}[one_hot-int64_of_3]",
        ),
    ),
    *faults(
        "dmljax.pallas.tpu._nonzero_coordinates",
        (
            "test_tpu.py",
            "test_tpu_lowering.py",
            "test_bounds.py",
        ),
        (
            "ends - ones, interpret)",
            "ends, interpret)",
            "a row begins after its own elements",
            f"{SAMPLES_AND_EDGES}[nonzero_coordinates-columns_by_kernel-float32]",
        ),
        (
            "flat.shape, 1) < count[:, None]",
            "flat.shape, 1) <= count[:, None]",
            "one row past the count is not filled",
            f"{SAMPLES_AND_EDGES}[nonzero_coordinates-columns_by_kernel-float32]",
            f"{NONZERO_COORDINATES_OF_MANY}[0.1]",
        ),
        (
            "kept = lane < lax.rem",
            "kept = lane <= lax.rem",
            "the first element of a row is that of the row before",
            f"{SAMPLES_AND_EDGES}[nonzero_coordinates-columns_by_kernel-float32]",
        ),
        (
            "lambda i, j: i <= j",
            "lambda i, j: i < j",
            "an element does not count itself",
            f"{SAMPLES_AND_EDGES}[nonzero_coordinates-columns_by_kernel-float32]",
        ),
        (
            "end <= rank",
            "end < rank",
            "the search ends one element too early",
            f"{SAMPLES_AND_EDGES}[nonzero_coordinates-columns_by_kernel-float32]",
        ),
        (
            "(block * np.int32(ROWS) + row)",
            "row",
            "every block counts from 0",
            f"{NONZERO_COORDINATES_OF_MANY}[0.1]",
        ),
        (
            "lambda i, j: i > j",
            "lambda i, j: i >= j",
            "a row counts its own elements as those before it",
            f"{SAMPLES_AND_EDGES}[nonzero_coordinates-columns_by_kernel-float32]",
            f"{NONZERO_COORDINATES_OF_MANY}[0.1]",
        ),
        (
            "pl.when(block > 0)",
            "pl.when(block < 0)",
            "a block writes over the end of the one before",
            f"{NONZERO_COORDINATES_OF_MANY}[0.6]",
        ),
        (
            "window[pl.ds(target + 1, 1)] = offsets",
            "window[pl.ds(target, 1)] = window[pl.ds(target, 1)]",
            "what goes on in the next row is lost",
            f"{NONZERO_COORDINATES_OF_MANY}[0.1]",
        ),
        (
            "- origin[0], SUBLANES)",
            ", SUBLANES)",
            "the tile that the last block has begun is not found",
            f"{NONZERO_COORDINATES_OF_MANY}[1.0]",
            f"{NONZERO_COORDINATES_OF_MANY}[0.6]",
        ),
        (
            "jnp.where(valid, offset, 0)",
            "offset",
            "rows past the count hold anything",
            "test_tpu.py::test_nonzero_coordinates_of_wide_types[complex64]",
        ),
    ),
    *faults(
        "dmljax.pallas.tpu._padding",
        (
            "test_tpu.py",
            "test_tpu_lowering.py",
            "test_bounds.py",
        ),
        (
            "x = jnp.broadcast_to(x, sizes + x.shape[batch:])",
            "x = jnp.asarray(x)",
            "an input that is shared by a batch is not repeated",
            "test_tpu.py::test_batches",
        ),
        (
            "batch == 0 or any(y.size > 1 for y in value)",
            "batch == 0",
            "lines have no values of their own",
            "test_tpu.py::test_batches",
        ),
        (
            "elif any(axis.is_padded for axis in axes)",
            "elif all(axis.is_padded for axis in axes)",
            "an array is not padded unless all its axes are",
            f"{MANY_BLOCKS_OF_PADDING}[2-int8-pads1]",
        ),
        (
            "~axis.is_inside(pl.program_id(i))",
            "axis.is_inside(pl.program_id(i))",
            "the inside of a leading axis is filled",
            f"{MANY_BLOCKS_OF_PADDING}[0-float32-pads0-1]",
        ),
        (
            "_source(axis, index, plan.mode) if i < minor",
            "_source(axis, index, plan.mode) if i < 0",
            "a leading axis is not repeated",
            f"{MANY_BLOCKS_OF_PADDING}[4-float32-pads4-1",
        ),
        (
            "low = jnp.minimum(low, high)",
            "low = high",
            "a tile is looked for where another begins",
            f"{MANY_BLOCKS_OF_PADDING}[2-int8-pads1]",
        ),
        (
            "[high] if mode is PaddingMode.WRAP",
            "[] if mode is PaddingMode.WRAP",
            "where WRAP begins anew, elements are missing",
            f"{MANY_BLOCKS_OF_PADDING}[4-float32-pads5-1",
            f"{MANY_BLOCKS_OF_PADDING}[4-float32-pads6-1",
        ),
        (
            "jnp.minimum(low + 1, top)",
            "low",
            "only one tile is looked at",
            f"{MANY_BLOCKS_OF_PADDING}[2-int8-pads1]",
        ),
        (
            "inside, values, fill)",
            "inside, fill, values)",
            "the value is inside",
            f"{MANY_BLOCKS_OF_PADDING}[0-float32-pads1-1",
        ),
        (
            "_elements(MosaicPaddingPlan(axes, mode)) > ELEMENTS",
            "False",
            "two axes are always padded at once",
            (
                "test_tpu.py::test_rows_and_columns_too_many_for_one_block_are_p"
                "added_in_turn"
            ),
        ),
        (
            "_elements(plan) <= ELEMENTS",
            "True",
            "an axis is padded for which there is no memory",
            (
                "test_tpu_lowering.py::"
                "test_a_padded_axis_that_memory_has_no_place_for_is_refused_or_r"
                "uns_in_xla"
            ),
        ),
        (
            "return tuple(reversed(positions))",
            "return tuple(positions)",
            "the matrices of a block are taken in another order",
            f"{MANY_BLOCKS_OF_PADDING}[2-int8-pads1]",
            BATCHES,
            f"{SAMPLES_AND_EDGES}[padding-constant]",
        ),
        (
            "0 if size == 1 else i for",
            "i for",
            "a shared value is read past its end",
            BATCHES,
        ),
        (
            "sizes = [1 if axis.is_padded else axis.size for axis in leading]",
            "sizes = [1 for axis in leading]",
            "a batch of values is one value",
            BATCHES,
        ),
    ),
)
