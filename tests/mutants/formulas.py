"""Faults in the formulas of operators."""

from tests.mutants.fault import faults

DEFINITION_WHERE_A_PLATFORM = (
    "test_operators.py::test_definition_where_a_platform_has_another_form"
)
EDGES = "test_operators.py::test_edges"
EVERY_SIZE = "test_size.py::test_every_size"
EXPLICIT_AXES = "test_sharding.py::test_explicit_axes"
OPTIONS = "test_size.py::test_options"
SAMPLES_AND_EDGES = "test_kernels.py::test_samples_and_edges"

FAULTS = (
    *faults(
        "dmljax._coordinates",
        (
            "test_operators.py",
            "test_bounds.py",
            "test_size.py",
            "test_kernels.py",
        ),
        (
            "filled = (end < begin)",
            "filled = (end <= begin)",
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
            "limits = None if data else matrix",
            "limits = matrix",
            "a part of a matrix is taken for one of its own",
            "test_bounds.py::test_over_explicit_axes",
            f"{EXPLICIT_AXES}[diagonal_matrix1",
        ),
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
            "[quotients[0], *rest[1:]]",
            "rest",
            "the first coordinate of a part stays within the part",
            f"{EDGES}[nonzero_coordinates-4_parts]",
            f"{EDGES}[nonzero_coordinates-6_parts_of_(6,_5)]",
        ),
        (
            "WRAP = 4",
            "WRAP = 5",
            "a mode has another number",
            "test_support.py::test_padding_modes",
        ),
        (
            "jnp.clip(position - start, 0,",
            "jnp.clip(position - start, 1,",
            "EDGE repeats the second element",
            f"{EDGES}[padding-edge]",
        ),
        (
            "max_dim(2 * size - 2, size), 2",
            "max_dim(2 * size - 1, size), 2",
            "REFLECTION has a period one too long",
            f"{EDGES}[padding-reflection]",
        ),
        (
            "(2 * size, 2 * size - 1)",
            "(2 * size - 1, 2 * size - 1)",
            "SYMMETRIC has a period one too short",
            f"{EDGES}[padding-symmetric]",
        ),
        (
            "(size, 2 * size - 1)",
            "(size + 1, 2 * size - 1)",
            "WRAP has a period one too long",
            f"{EDGES}[padding-wrap]",
        ),
        (
            "(-start) % period",
            "start % period",
            "a period is counted from the wrong side",
            f"{EDGES}[padding-wrap]",
        ),
        (
            "periods > 1:",
            "periods > 2:",
            "three periods are folded as two",
            f"{EDGES}[padding-symmetric]",
            f"{EDGES}[padding-]",
        ),
        (
            "shifted < period, shifted,",
            "shifted <= period, shifted,",
            "the first element of the second period is past the end",
            f"{EDGES}[padding-wrap_end]",
            f"{EDGES}[padding-wrap]",
        ),
        (
            "jnp.minimum(shifted, mirror - shifted)",
            "shifted",
            "nothing is mirrored",
            f"{EDGES}[padding-reflection_end]",
            f"{EDGES}[padding-symmetric]",
        ),
        (
            "position < self.before + self.size",
            "position <= self.before + self.size",
            "the first element after the inside is inside (kernels)",
            "test_tpu.py::test_many_blocks_of_padding",
        ),
        (
            "self.before + self.after > 0",
            "self.before > 0",
            "padding at the end alone is none (kernels)",
            f"{SAMPLES_AND_EDGES}[padding-constant_end_by_kernel",
        ),
        (
            "result and not (axis.is_padded or",
            "result and not (axis.is_padded and",
            "a padded dimension is joined to its neighbour (kernels)",
            f"{SAMPLES_AND_EDGES}[padding-wrap_middle_axis_by_kernel]",
        ),
        (
            "unit, row = row.size,",
            "unit, row = 1,",
            "a unit of a row is one element (kernels)",
            f"{SAMPLES_AND_EDGES}[padding-wrap_middle_axis_by_kernel]",
        ),
        (
            "whole + start, whole + end",
            "whole + end, whole + start",
            "start and end change places (kernels)",
            f"{SAMPLES_AND_EDGES}[padding-wrap_far_by_kernel]",
        ),
        (
            "for origin in data:",
            "for origin in ():",
            "a part of a matrix begins at its corner",
            "test_bounds.py::test_over_explicit_axes",
            f"{EXPLICIT_AXES}[diagonal_matrix1",
        ),
        (
            "jnp.full(shape, fill or 0, np.uint32)",
            "jnp.full(shape, 0, np.uint32)",
            "the rows of an empty tensor are not filled",
            f"{EDGES}[nonzero_coordinates-first_40]",
            OPTIONS,
        ),
        (
            "((1,) * columns + sizes)[len(sizes) :]",
            "((1,) * columns + sizes)[:columns]",
            "the columns are those of the first dimensions",
            f"{EDGES}[nonzero_coordinates-columns",
        ),
        (
            "np.uint32(fill))",
            "np.uint32(0))",
            "rows past the count are zeros",
            f"{EDGES}[nonzero_coordinates-fill_7]",
        ),
    ),
    *faults(
        "dmljax._nonzero_coordinates_primitive",
        (
            "test_operators.py",
            "test_size.py",
            "test_sharding.py",
        ),
        (
            "lower = (jnp.uint32(1) << lane) - 1",
            "lower = jnp.uint32(1) << lane",
            "an element does not count those before it (scatter)",
            f"{DEFINITION_WHERE_A_PLATFORM}[nonzero_coordinates]",
        ),
        (
            "jax.vmap(running_sum)(ones) - ones",
            "jax.vmap(running_sum)(ones)",
            "a word's rows begin after its own elements (scatter)",
            f"{DEFINITION_WHERE_A_PLATFORM}[nonzero_coordinates]",
        ),
        (
            "row, uint32(rows)).ravel()",
            "row, uint32(0)).ravel()",
            "zeros write to the first row (scatter)",
            f"{DEFINITION_WHERE_A_PLATFORM}[nonzero_coordinates]",
        ),
        (
            "k % width == 0, line * rows, state[0]",
            "k % width == 0, line, state[0]",
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
            "first[line] + (k",
            "first[0] + (k",
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
            "jnp.where(row < total, number, 0)",
            "jnp.where(row <= total, number, 0)",
            "one row past the count is not empty (search)",
            OPTIONS,
        ),
        (
            'side="right") - 1',
            'side="left") - 1',
            "a row looks for its bit a word too early (search)",
            EVERY_SIZE,
        ),
        (
            "rank = row - starts[word]",
            "rank = row",
            "a bit is looked for by its rank in the line (search)",
            OPTIONS,
        ),
        (
            "(16, 8, 4, 2, 1)",
            "(16, 8, 4, 2)",
            "the last step of the search in a word is missing",
            EVERY_SIZE,
        ),
        (
            "column <= row",
            "column < row",
            "a word does not count for those after it (running sum in levels)",
            "test_sharding.py::test_automatic_axes[nonzero_coordinates",
        ),
        (
            "(ends - sums[:, -1])[:, None]",
            "ends[:, None]",
            "a block counts twice (running sum in levels)",
            "test_sharding.py::test_automatic_axes[nonzero_coordinates",
        ),
        (
            "layout.whole | within",
            "layout.whole",
            "a tensor is divided among devices",
            f"{EXPLICIT_AXES}[nonzero_coordinates-2x4",
        ),
        (
            "return (word != 0) & (row < end)",
            "return word != 0",
            "rows past the last one are written over others (loop)",
            "test_size.py::test_batches",
            OPTIONS,
        ),
        (
            "word.astype(np.uint32) * np.uint32(WORD) + lane",
            "word.astype(np.uint32) * np.uint32(WORD)",
            "a row has the number of its word's first element (search)",
            EVERY_SIZE,
        ),
    ),
)
