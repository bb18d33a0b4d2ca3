"""Faults in the kernels for TPUs, which Pallas' interpreter runs here."""

from tests.mutants.fault import faults

SELECTS = "test_tpu.py::test_many_blocks_of_selects"
PADDED = "test_tpu.py::test_many_blocks_of_padding"
TYPES = "test_tpu.py::test_every_type"
EDGES = "test_tpu.py::test_edges"
BATCHES = "test_tpu.py::test_batches"
LOWERED = "test_tpu.py::test_kernels_are_lowered"
NOT_THERE = "test_tpu.py::test_what_mosaic_has_not_is_refused_to_who_asks_for_it"
COUNTED = "test_tpu.py::test_nonzero_coordinates_of_many_blocks"
NO_PLACE = (
    "test_tpu.py"
    "::test_a_padded_axis_that_memory_has_no_place_for_is_refused_or_runs_in_xla"
)
FILES = ("test_tpu.py",)

BLOCKS = faults(
    "dmljax.pallas.tpu._blocks",
    FILES,
    (
        "number if axis in own else jnp.int32(0)",
        "number",
        "the block of a shared operand is past its end",
        f"{SELECTS}[bfloat16",
    ),
    (
        "size if axis in own else 1",
        "size",
        "a shared operand has blocks as large as the output's",
        f"{TYPES}[diagonal_matrix1-float32]",
        f"{SELECTS}[bfloat16",
    ),
    (
        "pl.program_id(axis) * np.int32(block[axis])",
        "pl.program_id(axis)",
        "the positions of a block are counted from the first one",
        f"{SELECTS}[bfloat16",
    ),
    (
        "axis %= len(block)",
        "axis %= 2",
        "the positions are those of a matrix",
        f"{EDGES}[one_hot]",
    ),
    (
        "dtype != np.float16 and",
        "",
        "half floats are taken",
        NOT_THERE,
    ),
    (
        "dtype.itemsize <= 4 and",
        "",
        "wide integers are taken",
        NOT_THERE,
    ),
    (
        "output.reshape(shape).astype(operands[-1].dtype)",
        "output.reshape(shape)",
        "truth values come out as bytes",
        f"{TYPES}[element_wise_if-bool]",
        f"{TYPES}[one_hot-bool]",
    ),
    (
        'lax.bitcast_convert_type(x, np.dtype(f"int{8 * x.dtype.itemsize}"))',
        "x",
        "a value that is spread over a block loses its fraction",
        f"{TYPES}[one_hot-float32]",
    ),
    (
        "pl.cdiv(size, step) * step",
        "max(size // step, 1) * step",
        "what its tiles do not use of an array is left out",
        f"{PADDED}[0-float32-1]",
        PADDED,
    ),
    (
        "ones = (1,) * max(2 - len(shape), 0)",
        "ones = (1,) * max(1 - len(shape), 0)",
        "a vector stays a vector",
        f"{EDGES}[element_wise_if]",
    ),
)

DIAGONAL = faults(
    "dmljax.pallas.tpu._diagonal_matrix1",
    FILES,
    (
        "positions(-1) - positions(-2)",
        "positions(-2) - positions(-1)",
        "diagonals are counted to the left",
        f"{SELECTS}[bfloat16",
    ),
    (
        "top_x.shape), filling, kept)",
        "top_x.shape), kept, filling)",
        "the value and the input change places",
        f"{TYPES}[diagonal_matrix1-float32]",
    ),
    (
        "None if origin else matrix",
        "matrix",
        "a part of a matrix is taken for one of its own",
        f"{SELECTS}[bfloat16",
    ),
    (
        "sum(origin, positions",
        "sum([], positions",
        "a part of a matrix begins at its corner",
        f"{SELECTS}[bfloat16",
    ),
)

SELECT = faults(
    "dmljax.pallas.tpu._element_wise_if",
    FILES,
    (
        "astype(bool), first, second)",
        "astype(bool), second, first)",
        "the two sides change places",
        f"{TYPES}[element_wise_if-float32]",
    ),
    (
        "holds.astype(bool)",
        "(holds & 1).astype(bool)",
        "only the lowest bit of the condition counts",
        f"{TYPES}[element_wise_if-float32]",
    ),
)

HOT = faults(
    "dmljax.pallas.tpu._one_hot",
    FILES,
    (
        "size), lit, unlit)",
        "size), unlit, lit)",
        "on and off change places",
        f"{TYPES}[one_hot-float32]",
    ),
    (
        "positions(axis).astype(indices.dtype)",
        "positions(-1).astype(indices.dtype)",
        "the positions are those of the last axis",
        f"{SELECTS}[bfloat16",
    ),
    (
        "index, index.dtype.type(size))",
        "index, index.dtype.type(0))",
        "a wide index past the end lights the first position",
        f"{EDGES}[one_hot]",
    ),
    (
        "low = -size if",
        "low = 0 if",
        "a wide negative index lights nothing",
        f"{EDGES}[one_hot]",
    ),
)

NONZERO = faults(
    "dmljax.pallas.tpu._nonzero_coordinates",
    FILES,
    (
        "ends - ones, interpret)",
        "ends, interpret)",
        "a row begins after its own elements",
        f"{TYPES}[nonzero_coordinates-float32]",
    ),
    (
        "flat.shape, 1) < count[:, None]",
        "flat.shape, 1) <= count[:, None]",
        "one row past the count is not filled",
        f"{TYPES}[nonzero_coordinates-float32]",
        f"{COUNTED}[0.1",
    ),
    (
        "kept = lane < lax.rem",
        "kept = lane <= lax.rem",
        "the first element of a row is that of the row before",
        f"{TYPES}[nonzero_coordinates-float32]",
    ),
    (
        "lambda i, j: i <= j",
        "lambda i, j: i < j",
        "an element does not count itself",
        f"{TYPES}[nonzero_coordinates-float32]",
    ),
    (
        "end <= rank",
        "end < rank",
        "the search ends one element too early",
        f"{TYPES}[nonzero_coordinates-float32]",
    ),
    (
        "(block * np.int32(ROWS) + row)",
        "row",
        "every block counts from 0",
        f"{COUNTED}[0.1",
    ),
    (
        "lambda i, j: i > j",
        "lambda i, j: i >= j",
        "a row counts its own elements as those before it",
        f"{TYPES}[nonzero_coordinates-float32]",
        f"{COUNTED}[0.1",
    ),
    (
        "pl.when(block > 0)",
        "pl.when(block < 0)",
        "a block writes over the end of the one before",
        f"{COUNTED}[0.6",
    ),
    (
        "window[pl.ds(place + 1, 1)] = numbers",
        "window[pl.ds(place, 1)] = window[pl.ds(place, 1)]",
        "what goes on in the next row is lost",
        f"{COUNTED}[0.1",
    ),
    (
        "- origin[0], SUBLANES)",
        ", SUBLANES)",
        "the tile that the last block has begun is not found",
        f"{COUNTED}[1.0",
        f"{COUNTED}[0.6",
    ),
    (
        "jnp.where(valid, number, 0)",
        "number",
        "rows past the count hold anything",
        "test_tpu.py::test_nonzero_coordinates_of_wide_types[complex64]",
    ),
)

PADDING = faults(
    "dmljax.pallas.tpu._padding",
    FILES,
    (
        "elif any(axis.is_padded for axis in axes)",
        "elif all(axis.is_padded for axis in axes)",
        "an array is not padded unless all its axes are",
        f"{PADDED}[2-int8-1]",
    ),
    (
        "~axis.is_inside(pl.program_id(i))",
        "axis.is_inside(pl.program_id(i))",
        "the inside of a leading axis is filled",
        f"{PADDED}[0-float32-1]",
    ),
    (
        "axis, number, plan.mode) if i < minor",
        "axis, number, plan.mode) if i < 0",
        "a leading axis is not repeated",
        f"{PADDED}[1-float32-1]",
    ),
    (
        "low = jnp.minimum(low, high)",
        "low = high",
        "a tile is looked for where another begins",
        f"{PADDED}[2-float32-1]",
    ),
    (
        "[high] if mode is PaddingMode.WRAP",
        "[high] if mode is PaddingMode.EDGE",
        "where WRAP begins anew, elements are missing",
        f"{PADDED}[4-float32-1]",
    ),
    (
        "jnp.minimum(low + 1, top)",
        "low",
        "only one tile is looked at",
        f"{PADDED}[2-float32-1]",
    ),
    (
        "inside, values, fill)",
        "inside, fill, values)",
        "the value is inside",
        f"{PADDED}[0-float32-1]",
    ),
    (
        "_elements(Plan(axes, mode)) > ELEMENTS",
        "False and ELEMENTS",
        "two axes are always padded at once",
        "test_tpu.py::test_rows_and_columns_too_many_for_one_block_are_padded_in_turn",
    ),
    (
        "_elements(plan) <= ELEMENTS",
        "True",
        "an axis is padded for which there is no memory",
        NO_PLACE,
    ),
    (
        "return tuple(reversed(place))",
        "return tuple(place)",
        "the matrices of a block are taken in another order",
        f"{PADDED}[2-int8-1]",
        BATCHES,
        "test_tpu.py::test_edges[padding]",
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
)

FAULTS = (*BLOCKS, *DIAGONAL, *SELECT, *HOT, *NONZERO, *PADDING)
