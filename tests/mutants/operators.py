"""Faults in the operators but for padding: formulas, checks, parts of a mesh."""

from tests.mutants.fault import faults

CALLS = "test_errors.py::test_calls"
DESCRIBED = "test_errors.py::test_descriptors"
EDGES = "test_operators.py::test_edges"
TABLES = "test_support.py::test_tables"
DERIVATIVES = "test_transforms.py::test_derivatives"
PAGE = "test_sharding.py::test_a_program_communicates_what_the_page_says"
EXPLICIT = "test_sharding.py::test_a_program_with_explicit_axes_does_so_too"
DEFINITION = (
    "test_operators.py::test_definition_where_a_platform_has_another_form"
    "[nonzero_coordinates]"
)
ROWS = "test_sharding.py::test_rows_come_to_where_they_belong"

DIAGONAL = faults(
    "dmljax._diagonal_matrix1",
    ("test_operators.py", "test_errors.py", "test_descriptors.py"),
    (
        "fill_end < fill_begin",
        "fill_end <= fill_begin",
        "equal bounds fill everything",
        f"{EDGES}[diagonal_matrix1-from_0_to_0]",
    ),
    (
        "bound <= 1 - height",
        "bound <= 2 - height",
        "the lowest diagonal is decided with the next one",
        f"{EDGES}[diagonal_matrix1-from]",
    ),
    (
        "or bound >= width:",
        "or bound >= width - 1:",
        "the highest diagonal is decided with those past it",
        f"{EDGES}[diagonal_matrix1-from]",
    ),
    (
        "return bound < width",
        "return bound > width",
        "bounds that no diagonal reaches count the other way",
        f"{EDGES}[diagonal_matrix1-from]",
    ),
    (
        "column - row)",
        "row - column)",
        "diagonals are counted to the left",
        f"{EDGES}[diagonal_matrix1-from_2_to_3]",
    ),
    (
        "None if origin else matrix",
        "matrix",
        "a part of a matrix is taken for one of its own",
        f"{EXPLICIT}[diagonal_matrix1",
    ),
    (
        "filled, shape), value, x)",
        "filled, shape), x, value)",
        "the value and the input change places",
        f"{EDGES}[diagonal_matrix1-from_2_to_3]",
    ),
    (
        "column * width - row * height",
        "row * height - column * width",
        "a part of a matrix has its diagonals mirrored",
        f"{EXPLICIT}[diagonal_matrix1",
    ),
    (
        "data_operands=-2",
        "data_operands=-1",
        "the value has no derivative",
        f"{DERIVATIVES}[diagonal_matrix1-band]",
        f"{DERIVATIVES}[diagonal_matrix1]",
    ),
    (
        "min(shape, default=0) < 0",
        "min(shape, default=0) < -9",
        "a shape may have negative sizes",
        f"{CALLS}[diagonal negative shape]",
    ),
    (
        'check_x64(NAME, "dtype", type_)',
        "None",
        "a wide dtype is truncated in silence",
        f"{CALLS}[diagonal dtype wide]",
    ),
    ("rank >= 2", "rank >= 1", "a vector is a matrix", f"{CALLS}[diagonal"),
    (
        "np.float32 if dtype is None",
        "np.float16 if dtype is None",
        "the default type is half float",
        "test_operators.py::test_diagonal_defaults_are_the_identity",
    ),
    (
        "min(self.offset + 1, INT32_MAX)",
        "self.offset + 1",
        "the largest offset overflows",
        "test_descriptors.py::test_diagonal_matrix_offsets",
    ),
    (
        'FeatureLevel.V4_0: {"OutputTensor": Support(2,',
        'FeatureLevel.V4_0: {"OutputTensor": Support(4,',
        "a level of the older operator has another rank",
        TABLES,
    ),
    (
        '("InputTensor", "OutputTensor"), Support(2, 4,',
        '("InputTensor", "OutputTensor"), Support(2, 8,',
        "a descriptor takes more than 4 dimensions",
        TABLES,
    ),
    (
        "x = jnp.zeros((*shape",
        "x = jnp.ones((*shape",
        "without an input the rest holds 1",
        f"{EDGES}[diagonal_matrix1-no_input]",
        EDGES,
    ),
    (
        'check_int32(NAME, "DiagonalFillEnd", fill_end)',
        "None",
        "the second bound may exceed 32 bits",
        f"{CALLS}[diagonal end too small]",
    ),
)

SELECT = faults(
    "dmljax._element_wise_if",
    ("test_operators.py", "test_errors.py"),
    (
        "condition.astype(bool), a, b)",
        "condition.astype(bool), b, a)",
        "the two sides change places",
        f"{EDGES}[element_wise_if-rank_1]",
    ),
    (
        "jnp.where(condition.astype(bool)",
        "jnp.where((condition & 1).astype(bool)",
        "only the lowest bit of the condition counts",
        f"{EDGES}[element_wise_if-all_bytes]",
    ),
    (
        "FeatureLevel.V3_0: _tensors(1, 8,",
        "FeatureLevel.V3_0: _tensors(4, 8,",
        "a level has another rank",
        TABLES,
    ),
    (
        "_tensors(4, 4, FLOAT16_ONLY)",
        "_tensors(4, 4, UP_TO_32_BITS)",
        "the first level takes every type",
        TABLES,
    ),
    (
        "Support(min_rank, max_rank, UINT8_ONLY)",
        "Support(min_rank, max_rank, data_types)",
        "a condition may have the type of the values",
        TABLES,
    ),
    (
        "(np.uint8, np.bool_)",
        "(np.uint8, np.int8, np.bool_)",
        "a condition may be of signed bytes",
        CALLS + "[select",
        "test_operators.py::test_if_condition_types",
    ),
    (
        "data_operands=1",
        "data_operands=2",
        "the first side has no derivative",
        f"{DERIVATIVES}[element_wise_if]",
        f"{DERIVATIVES}[element_wise_if-bytes]",
    ),
    (
        "transpose=transpose_select",
        "transpose=None",
        "there is no derivative",
        f"{DERIVATIVES}[element_wise_if-bytes-float32]",
    ),
    (
        "if all(numbers)",
        "if False and all(numbers)",
        "two numbers are not refused",
        "test_operators.py::test_two_numbers_have_no_type",
    ),
    (
        "(name, value.shape), (",
        "(name, value.shape[1:] and value.shape), (",
        "vectors of other sizes are refused",
        f"{EDGES}[element_wise_if-rank_1]",
    ),
    (
        '("BTensor", self.b_tensor.sizes)',
        '("BTensor", self.a_tensor.sizes)',
        "the sizes of the second side are not checked",
        f"{DESCRIBED}[select sizes of b]",
    ),
    (
        '("a_tensor", "b_tensor", "output_tensor")',
        '("a_tensor", "output_tensor")',
        "the type of the second side is not checked",
        f"{DESCRIBED}[select types of b]",
    ),
    (
        'as_operand(NAME, "BTensor", b, first.dtype)',
        'as_operand(NAME, "BTensor", b, np.dtype(np.float32))',
        "a number as the second side is always a float",
        "test_operators.py::test_number_takes_the_type",
    ),
)

HOT = faults(
    "dmljax._one_hot",
    ("test_operators.py", "test_errors.py", "test_descriptors.py"),
    (
        "jnp.maximum(difference, -size - difference) == 0",
        "difference == 0",
        "a negative index lights nothing",
        f"{EDGES}[one_hot-axis_0]",
        f"{EDGES}[one_hot-int32]",
    ),
    (
        "-size - difference)",
        "1 - size - difference)",
        "a negative index lights the next position too",
        f"{EDGES}[one_hot-int32]",
    ),
    (
        "index.dtype.itemsize >= 4",
        "index.dtype.itemsize >= 1",
        "a narrow index wraps around in long sequences",
        f"{EDGES}[one_hot-int8]",
        f"{EDGES}[one_hot-uint8]",
    ),
    (
        "np.int32 if signed",
        "np.uint32 if signed",
        "a narrow negative index is unsigned",
        f"{EDGES}[one_hot-int8]",
    ),
    (
        "index, position, size), on, off)",
        "index, position, size), off, on)",
        "on and off change places",
        f"{EDGES}[one_hot-rank_1]",
    ),
    (
        "jnp.where(index < 0, index + size, index)",
        "index",
        "a negative index lights nothing where the depth is divided",
        "test_sharding.py::test_the_depth_of_one_hot_is_divided[int32-pallas]",
    ),
    (
        "index >= first)",
        "index > first)",
        "the first position of a part is never lit",
        "test_sharding.py::test_the_depth_of_one_hot_is_divided[int32-pallas]",
    ),
    (
        "index - first, part)",
        "index - first, 0)",
        "an index of another part lights the first position",
        "test_sharding.py::test_the_depth_of_one_hot_is_divided[int32-pallas]",
    ),
    (
        "data_operands=1",
        "data_operands=2",
        "on has no derivative",
        f"{DERIVATIVES}[one_hot-rows-float32]",
        f"{DERIVATIVES}[one_hot]",
    ),
    (
        "-rank <= axis < rank",
        "-rank <= axis <= rank",
        "an axis may be the rank",
        f"{CALLS}[hot axis too large]",
    ),
    (
        "indices[axis] == 1",
        "indices[axis] >= 1",
        "indices may have any size along the axis",
        f"{CALLS}[hot long indices]",
    ),
    (
        "elements >= 2",
        "elements >= 1",
        "one value is enough",
        f"{CALLS}[hot one value]",
    ),
    (
        "1 <= size < 2**31",
        "0 <= size < 2**31",
        "a sequence may be empty",
        f"{CALLS}[hot size 0]",
    ),
    (
        "off, on = strong(values)",
        "on, off = strong(values)",
        "the first value is on",
        f"{EDGES}[one_hot-rank_1]",
    ),
    (
        "8 if min_rank == 1 else 4",
        "8",
        "old levels take up to 8 dimensions",
        TABLES,
    ),
    (
        "FeatureLevel.V3_0: _tensors(1, INDICES",
        "FeatureLevel.V3_0: _tensors(1, UINT32_ONLY",
        "a level lacks types of indices",
        TABLES,
    ),
    (
        "0 <= self.axis < rank[1]",
        "self.axis < rank[1]",
        "the axis of a descriptor may be negative",
        f"{DESCRIBED}[hot axis negative]",
    ),
    (
        "is_integer(indices.dtype)",
        "is_integer(indices.dtype) or indices.dtype == bool",
        "truth values are indices",
        f"{CALLS}[hot bool indices]",
    ),
)

NONZERO = faults(
    "dmljax._nonzero_coordinates",
    ("test_operators.py", "test_errors.py", "test_descriptors.py"),
    (
        "is_nonzero(x.real) | is_nonzero(x.imag)",
        "is_nonzero(x.real) & is_nonzero(x.imag)",
        "a complex number needs both parts",
        f"{EDGES}[nonzero_coordinates-imaginary]",
    ),
    (
        "np.asarray([0.0, -0.0])",
        "np.asarray([0.0, 0.0])",
        "minus zero is not zero",
        f"{EDGES}[nonzero_coordinates-signs]",
    ),
    (
        "lower = (jnp.uint32(1) << lane) - 1",
        "lower = jnp.uint32(1) << lane",
        "an element does not count those before it (scatter)",
        DEFINITION,
    ),
    (
        "jnp.cumsum(ones, axis=1, dtype=np.uint32) - ones",
        "jnp.cumsum(ones, axis=1, dtype=np.uint32)",
        "a word's rows begin after its own elements (scatter)",
        DEFINITION,
    ),
    (
        "row, np.uint32(elements))",
        "row, np.uint32(0))",
        "zeros write to the first row (scatter)",
        DEFINITION,
    ),
    (
        "k // width * elements, row)",
        "k // width, row)",
        "the rows of a batch begin in the wrong place (loop)",
        "test_operators.py::test_nonzero_batch",
    ),
    (
        "(word & -word) - 1)",
        "word & -word)",
        "a bit is never found where it is (loop)",
        f"{EDGES}[nonzero_coordinates-matrix]",
    ),
    (
        "first[k // width] +",
        "first[0] +",
        "every line counts from the first one's number (loop)",
        f"{EDGES}[nonzero_coordinates-4_parts]",
    ),
    (
        "row < count[:, None]",
        "row <= count[:, None]",
        "one row past the count is not filled",
        f"{EDGES}[nonzero_coordinates-fill_7]",
    ),
    (
        "row < count[..., None]",
        "row <= count[..., None]",
        "one row past the count is not filled on a mesh",
        f"{ROWS}[shape0-0.5-7]",
        ROWS,
    ),
    (
        "[quotients[0], *rest[1:]]",
        "rest",
        "the first coordinate of a part stays within the part",
        f"{EDGES}[nonzero_coordinates-4_parts]",
        ROWS,
    ),
    (
        "max(effective_rank(sizes), 1)",
        "1",
        "there may be too few columns",
        f"{CALLS}[nonzero few columns]",
    ),
    (
        "max(len(sizes), 1)",
        "max(len(sizes), 8)",
        "there may be too many columns",
        f"{CALLS}[nonzero many columns]",
    ),
    (
        "if size != 1)",
        "if size != 2)",
        "the effective rank counts the wrong sizes",
        f"{CALLS}[nonzero]",
        "test_operators.py::test_nonzero_columns_are_bounded",
    ),
    (
        "0 <= fill < 2**32",
        "0 <= fill <= 2**32",
        "a fill may have 33 bits",
        f"{CALLS}[nonzero fill too large]",
    ),
    (
        "x.shape[0] % parts == 0",
        "True",
        "parts need not be equal",
        f"{CALLS}[nonzero parts of unequal size]",
    ),
    (
        "np.uint32(x.size // parts)",
        "np.uint32(x.shape[0] // parts)",
        "a part is counted from its row and not from its element",
        f"{EDGES}[nonzero_coordinates-4_parts]",
    ),
    (
        "starts + skipped - here * np.uint32(rows)",
        "starts - here * np.uint32(rows)",
        "rows that began in a part before are not skipped",
        ROWS,
    ),
    (
        "(part + 1) * np.uint32(rows)",
        "part * np.uint32(rows) + np.uint32(rows - 1)",
        "the last row of a part is left out when rows move",
        ROWS,
    ),
    (
        "most + np.uint32(chunk - 1)",
        "most",
        "the last chunk of rows is not sent",
        "test_sharding.py::test_rows_that_move_in_many_chunks",
    ),
    (
        "Support(2, 8, UINT32_ONLY)",
        "Support(1, 8, UINT32_ONLY)",
        "coordinates may have one dimension",
        TABLES,
    ),
    (
        "_check_columns(sizes, coordinates[-1])",
        "None",
        "a descriptor may have too few columns",
        f"{DESCRIBED}[nonzero few columns]",
        f"{DESCRIBED}[nonzero",
    ),
    (
        "return rank > 0",
        "return False",
        "rows do not move between devices",
        f"{PAGE}[nonzero_coordinates-8",
        ROWS,
    ),
)

FAULTS = (*DIAGONAL, *SELECT, *HOT, *NONZERO)
