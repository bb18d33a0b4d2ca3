"""Faults in the functions and descriptors of operators."""

from tests.mutants.fault import faults

CALLS = "test_errors.py::test_calls"
DERIVATIVES = "test_transforms.py::test_derivatives"
DESCRIPTORS = "test_errors.py::test_descriptors"
EDGES = "test_operators.py::test_edges"
TABLES = "test_support.py::test_tables"
THE_GRADIENT_OF_ONE = (
    "test_sharding.py::test_the_gradient_of_one_hot_over_explicit_axes"
)

FAULTS = (
    *faults(
        "dmljax._diagonal_matrix1_primitive",
        (
            "test_operators.py",
            "test_errors.py",
            "test_bounds.py",
            "test_descriptors.py",
        ),
        (
            "fills(column - row, data",
            "fills(row - column, data",
            "diagonals are counted to the left",
            f"{EDGES}[diagonal_matrix1-from_2_to_3]",
        ),
        (
            "jnp.where(filled, value, x),)",
            "jnp.where(filled, x, value),)",
            "the value and the input change places",
            f"{EDGES}[diagonal_matrix1-from_2_to_3]",
        ),
        (
            "column * width - row * height",
            "row * height - column * width",
            "a part of a matrix has its diagonals mirrored",
            "test_sharding.py::test_explicit_axes[diagonal_matrix1]",
        ),
        (
            "linear=2,",
            "linear=1,",
            "the value has no derivative",
            f"{DERIVATIVES}[diagonal_matrix1-band]",
            f"{DERIVATIVES}[diagonal_matrix1]",
        ),
    ),
    *faults(
        "dmljax._diagonal_matrix1",
        (
            "test_operators.py",
            "test_errors.py",
            "test_bounds.py",
            "test_descriptors.py",
        ),
        (
            "given = map(unwrapped, (fill_begin, fill_end))",
            "given = fill_begin, fill_end",
            "a bound may not wrap an array",
            "test_arguments.py::test_bounds_that_wrap_an_array",
        ),
        (
            "all(size <= 2**31 for",
            "all(size <= 2**33 for",
            "the numbers of diagonals may wrap around",
            "test_errors.py::test_calls",
            "test_errors.py::test_descriptors",
        ),
        (
            "decide_at_most(NAME, 0, size)",
            "decide_at_most(NAME, -9, size)",
            "a shape may have negative sizes",
            f"{CALLS}[diagonal negative shape]",
        ),
        (
            'check_x64(NAME, "dtype", type_)',
            "None",
            "a wide dtype is truncated in silence",
            f"{CALLS}[diagonal dtype wide]",
        ),
        (
            "rank >= 2",
            "rank >= 1",
            "a vector is a matrix",
            f"{CALLS}[diagonal]",
        ),
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
    ),
    *faults(
        "dmljax._one_hot",
        (
            "test_operators.py",
            "test_errors.py",
            "test_sharding.py",
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
            THE_GRADIENT_OF_ONE,
        ),
        (
            "index >= first)",
            "index > first)",
            "the first position of a part is never lit",
            THE_GRADIENT_OF_ONE,
        ),
        (
            "index - first, own)",
            "index - first, 0)",
            "an index of another part lights the first position",
            THE_GRADIENT_OF_ONE,
        ),
        (
            "linear=2,",
            "linear=1,",
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
            "decide_at_most(NAME, 2, elements)",
            "decide_at_most(NAME, 1, elements)",
            "one value is enough",
            f"{CALLS}[hot one value]",
        ),
        (
            "decide_at_most(NAME, 1, size) and",
            "decide_at_most(NAME, 0, size) and",
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
            f"{DESCRIPTORS}[hot axis negative]",
        ),
        (
            "is_integer(indices.dtype)",
            "is_integer(indices.dtype) or indices.dtype == bool",
            "truth values are indices",
            f"{CALLS}[hot bool indices]",
        ),
        (
            "own = part.outputs[0][axis]\n    if own != size:",
            "own = part.outputs[0][axis]\n    if False:",
            "every part of a divided depth is the first",
            THE_GRADIENT_OF_ONE,
        ),
    ),
    *faults(
        "dmljax._element_wise_if",
        (
            "test_operators.py",
            "test_errors.py",
            "test_arguments.py",
        ),
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
            f"{CALLS}[select]",
            "test_operators.py::test_if_condition_types",
        ),
        (
            "linear=2,",
            "linear=1,",
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
            "if not is_python_number(b):",
            "if True:",
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
            f"{DESCRIPTORS}[select sizes of b]",
        ),
        (
            '("a_tensor", "b_tensor", "output_tensor")',
            '("a_tensor", "output_tensor")',
            "the type of the second side is not checked",
            f"{DESCRIPTORS}[select types of b]",
        ),
        (
            '"BTensor", b, a)',
            '"BTensor", b, np.empty(0, np.float32))',
            "a number as the second side is always a float",
            "test_operators.py::test_number_takes_the_type",
        ),
        (
            "return strong(first), strong(second)",
            "return strong(second), strong(first)",
            "two arrays change places",
            f"{EDGES}[element_wise_if-rank_1]",
        ),
        (
            "elif _gives_way(second) > _gives_way(first):",
            "elif False:",
            "a weak second operand does not give way",
            "test_operators.py::test_weak_type_gives_way",
        ),
    ),
    *faults(
        "dmljax._nonzero_coordinates",
        (
            "test_operators.py",
            "test_errors.py",
            "test_size.py",
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
            "uint32(x.size // parts)",
            "uint32(x.shape[0] // parts)",
            "a part is counted from its row and not from its element",
            f"{EDGES}[nonzero_coordinates-4_parts]",
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
            f"{DESCRIPTORS}[nonzero few columns]",
            f"{DESCRIPTORS}[nonzero]",
        ),
        (
            "0 <= size <= MAX_ELEMENTS if known",
            "0 < size <= MAX_ELEMENTS if known",
            "no rows cannot be asked for",
            "test_size.py::test_every_size",
        ),
        (
            "parts % devices == 0,",
            "True,",
            "parts need not be equal on all devices",
            "test_sharding.py::test_explicit_axes_say_what_they_cannot_do",
        ),
        (
            "not isinstance(elements, int) or elements <= MAX_ELEMENTS,",
            "True,",
            "there may be too many elements to count",
            "test_errors.py::test_too_many_elements",
        ),
    ),
)
