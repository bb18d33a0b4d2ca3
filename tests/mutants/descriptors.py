"""Faults in what checks and describes: rules, support tables, tensors, descriptors."""

from tests.mutants.fault import faults

CALLS = "test_errors.py::test_calls"
DESCRIBED = "test_errors.py::test_descriptors"
RULES = "test_errors.py::test_rules_of_every_tensor"
OUTPUTS = "test_errors.py::test_rules_of_outputs"
JSON = "test_descriptors.py::test_json_loses_nothing"
LEVELS = "test_support.py::test_every_level"

CHECK = faults(
    "dmljax._check",
    ("test_errors.py",),
    ("condition, True, exc", "True, True, exc", "no rule is enforced", CALLS),
    (
        'error(f"{operator}: {rule}")',
        'DescriptorError(f"{operator}: {rule}")',
        "the kind of error is lost",
        "test_kernels.py::test_what_a_kernel_can_not_address_runs_in_xla",
    ),
    (
        'f"{operator}: {rule}"',
        'f"{rule}"',
        "a message does not name the operator",
        f"{CALLS}[diagonal rank 1]",
    ),
    (
        "first_value == second_value",
        "type(first_value) is type(second_value)",
        "what should be the same need only be of one kind",
        f"{CALLS}[diagonal other shape]",
    ),
    (
        "{show(second_value)}; ",
        "{show(first_value)}; ",
        "a message shows the first value twice",
        f"{CALLS}[diagonal other shape]",
    ),
    (
        "f\"while tensor '{second_name}'",
        "f\"while tensor '{first_name}'",
        "a message names the first tensor twice",
        f"{CALLS}[select other types]",
    ),
    (
        "value in choices,",
        "value in choices[1:],",
        "the first of several choices is refused",
        f"{CALLS}[diagonal rank 1]",
    ),
    (
        "for choice in choices)",
        "for choice in choices[:-1])",
        "a message leaves out the last choice",
        "test_errors.py::test_unknown_implementations[XLA]",
    ),
    (
        '"{" + ",".join(map(str, value)) + "}"',
        '"(" + ",".join(map(str, value)) + ")"',
        "sizes are shown in parentheses",
        f"{CALLS}[diagonal rank 1]",
    ),
    (
        ").upper()",
        ")",
        "types are shown in small letters",
        f"{CALLS}[diagonal other dtype]",
    ),
)

SUPPORT = faults(
    "dmljax._support",
    ("test_support.py",),
    (
        "V6_4 = 0x6400",
        "V6_4 = 0x6401",
        "the newest level has another number",
        "test_support.py::test_feature_levels",
    ),
    (
        "level >= first",
        "level > first",
        "an operator is missing at its first level",
        LEVELS,
    ),
    ("row <= level", "row < level", "a row holds only after its level", LEVELS),
    ("max(row for", "min(row for", "the oldest row holds for ever", LEVELS),
    (
        "support.min_rank <= rank",
        "support.min_rank < rank",
        "the smallest rank is refused",
        LEVELS,
    ),
    (
        "rank <= support.max_rank",
        "rank < support.max_rank",
        "the largest rank is refused",
        LEVELS,
    ),
    (
        "rank <= support.max_rank",
        "True",
        "every larger rank is taken",
        "test_support.py::test_ranks_outside_are_refused",
    ),
    (
        "tensor.data_type in support.data_types",
        "tensor.data_type in UP_TO_64_BITS",
        "every level takes every type",
        "test_support.py::test_types_outside_are_refused",
    ),
    (
        "(DataType.FLOAT32, DataType.FLOAT16)",
        "(DataType.FLOAT32,)",
        "half floats are missing",
        "test_support.py::test_tables",
    ),
    (
        "*UP_TO_32_BITS[2:5]",
        "*UP_TO_32_BITS[2:4]",
        "a small integer type is missing where there are wide ones",
        "test_support.py::test_tables",
    ),
    (
        "DataType.UINT64, DataType.UINT32)",
        "DataType.UINT32)",
        "unsigned wide indices are missing",
        "test_support.py::test_tables[ONE_HOT]",
    ),
    (
        'f"{support.min_rank} to {support.max_rank}"',
        'f"{support.max_rank} to {support.min_rank}"',
        "ranks are shown in the wrong order",
        "test_support.py::test_markdown",
    ),
    (
        "self.name[1:]",
        "self.name",
        "a level is shown with the letter of its name",
        "test_support.py::test_markdown",
    ),
)

TENSOR = faults(
    "dmljax._tensor",
    ("test_errors.py", "test_descriptors.py"),
    (
        "INT64 = 11",
        "INT64 = 14",
        "a type has another number",
        "test_support.py::test_data_types",
    ),
    (
        "sum((size - 1) * stride",
        "sum(size * stride",
        "the extent is that of one more element along each axis",
        "test_descriptors.py::test_implied_size",
    ),
    (
        "-(-self.extent * self.dtype.itemsize // 4) * 4",
        "self.extent * self.dtype.itemsize",
        "the implied size is not rounded up",
        "test_descriptors.py::test_implied_size",
    ),
    (
        "self.total_tensor_size_in_bytes // self.dtype.itemsize",
        "self.total_tensor_size_in_bytes // 4",
        "the length of a buffer assumes elements of 4 bytes",
        "test_descriptors.py::test_the_total_size_of_an_output",
    ),
    (
        "wide = largest >= 2**31",
        "wide = largest >= 2**33",
        "offsets past 31 bits are counted in 32",
        "test_descriptors.py::test_offsets_past_31_bits",
    ),
    (
        "reversed(sizes[1:])",
        "reversed(sizes[:-1])",
        "packed strides leave out the last size",
        "test_operators.py::test_edges[nonzero_coordinates-matrix]",
    ),
    (
        "type(size) is int and size >= 1",
        "type(size) is int and size >= 0",
        "a size may be 0",
        f"{RULES}[size 0]",
        RULES,
    ),
    ("1 <= len(sizes)", "0 <= len(sizes)", "a tensor may have no dimension", RULES),
    (
        "2**32 - 1\n",
        "2**32\n",
        "a tensor may have one element too many",
        "test_errors.py::test_too_many_elements",
        RULES,
    ),
    (
        "len(strides) == len(sizes)",
        "len(strides) >= len(sizes)",
        "there may be too many strides",
        RULES,
    ),
    ("0 <= stride < 2**32", "stride < 2**32", "a stride may be negative", RULES),
    (
        "not output or not _overlaps(sizes",
        "output or not _overlaps(sizes",
        "an output may overlap and an input may not",
        OUTPUTS,
    ),
    (
        "not output or tensor.extent <= MAX_ELEMENTS",
        "tensor.extent <= MAX_ELEMENTS",
        "an input may not span more than an output",
        OUTPUTS,
        "test_errors.py::test_tensors_that_are_large_but_allowed",
    ),
    (
        "total >= implied",
        "total > implied",
        "the implied size itself is refused",
        "test_errors.py::test_tensors_that_are_large_but_allowed",
    ),
    (
        "alignment & (alignment - 1) == 0",
        "alignment % 4 == 0",
        "an alignment need not be a power of two",
        RULES,
    ),
    (
        "alignment >= width",
        "alignment >= 1",
        "an alignment may be smaller than an element",
        RULES,
    ),
    (
        "if stride <= span",
        "if stride < span",
        "elements that just overlap are taken for apart",
        "test_descriptors.py::test_overlap_of_chosen_layouts",
    ),
    (
        "min(have, size - have)",
        "have",
        "more offsets are counted than there are",
        "test_descriptors.py::test_overlap_of_chosen_layouts",
        "test_descriptors.py::test_overlap",
    ),
    (
        "1 if stride == 0 else size for",
        "size for",
        "what a stride of 0 shares is gathered",
        "test_descriptors.py::test_the_gradient_of_a_shared_input_is_a_sum",
    ),
    (
        "np.argsort(order)",
        "order",
        "a permuted input is permuted the other way",
        "test_descriptors.py::test_inputs_of_any_strides",
        "test_descriptors.py::test_read",
    ),
    (
        "values.transpose(order)",
        "values.transpose(np.argsort(order))",
        "a permuted output is permuted the other way",
        "test_descriptors.py::test_an_output_whose_axes_are_rotated",
    ),
    (
        "stride if sizes[axis] > 1 else 0",
        "stride",
        "the stride of a size of 1 has to fit in the type of offsets",
        "test_descriptors.py::test_inputs_of_any_strides",
    ),
)

DESCRIPTOR = faults(
    "dmljax._descriptor",
    ("test_errors.py", "test_descriptors.py", "test_model.py"),
    (
        "isinstance(value, (*kinds, *numbers))",
        "isinstance(value, (*kinds, *numbers, str))",
        "every field may be a string",
        "test_errors.py::test_attributes_of_the_wrong_type",
    ),
    (
        "output = name in self.outputs",
        "output = name not in self.outputs",
        "the rules of outputs hold for inputs",
        OUTPUTS,
    ),
    (
        "for name in same[1:]",
        "for name in same[2:]",
        "the second tensor may have another type",
        f"{DESCRIBED}[pad types]",
    ),
    (
        "tensor.sizes == shape,",
        "len(tensor.sizes) == len(shape),",
        "an output may have other sizes",
        f"{DESCRIBED}[pad output]",
    ),
    (
        "data_type == output,",
        "data_type in (output, DataType.INT32),",
        "a value may have another type than the tensor",
        f"{DESCRIBED}[value type]",
    ),
    (
        "feature_level: FeatureLevel = FeatureLevel.V6_4",
        "feature_level: FeatureLevel = FeatureLevel.V6_3",
        "the default is not the newest level",
        "test_descriptors.py::test_the_level_is_the_newest_unless_said_otherwise",
    ),
    (
        "len(arrays) != len(inputs)",
        "len(arrays) < len(inputs)",
        "there may be too many arrays",
        f"{CALLS}[operator]",
    ),
    (
        "jnp.zeros(tensor.buffer_length",
        "jnp.ones(tensor.buffer_length",
        "the gaps of an output hold 1",
        "test_descriptors.py::test_strides[padding]",
        "test_descriptors.py::test_strides",
    ),
    (
        "array.dtype == tensor.dtype,",
        "array.dtype.itemsize == tensor.dtype.itemsize,",
        "an array may have another type of the same width",
        f"{CALLS}[operator array of other type]",
        "test_model.py::test_a_wrong_model_does_nothing",
    ),
    (
        "array.shape == tensor.sizes,",
        "array.size == math.prod(tensor.sizes),",
        "an array may have other sizes of the same product",
        f"{CALLS}[operator array of other sizes]",
    ),
    (
        "array.shape[0] >= tensor.extent",
        "array.shape[0] >= 1",
        "a buffer may be shorter than its tensor",
        f"{CALLS}[operator buffer too short]",
    ),
    (
        "INT32_MIN <= value <= INT32_MAX",
        "INT32_MIN <= value",
        "an attribute may exceed 32 bits",
        f"{DESCRIBED}[diagonal]",
    ),
    (
        "return np.zeros((), dtype)",
        "return np.asarray(low).astype(dtype)",
        "NaN becomes the smallest integer",
        "test_operators.py::test_padding_truncates_and_saturates",
    ),
    (
        "whole = int(single)",
        "whole = math.floor(single)",
        "a value is rounded down and not toward zero",
        "test_operators.py::test_padding_truncates_and_saturates",
        "test_descriptors.py::test_float_values_in_plain_numbers",
    ),
    (
        "high if single > 0 else low",
        "high",
        "minus infinity becomes the largest integer",
        "test_operators.py::test_padding_truncates_and_saturates",
    ),
    (
        "min(max(whole, low), high)",
        "min(whole, high)",
        "a value does not saturate below",
        "test_operators.py::test_padding_truncates_and_saturates",
    ),
    (
        '"DML_PADDING_MODE_"',
        '"DML_MODE_"',
        "a full name of a mode is not known",
        "test_descriptors.py::test_json_names_of_enums",
    ),
    (
        '"inf" if value > 0 else "-inf"',
        '"inf" if value < 0 else "-inf"',
        "infinity changes its sign in JSON",
        JSON,
        "test_descriptors.py::test_json_of_any_descriptor",
    ),
    (
        '"-inf": -math.inf',
        '"-inf": math.inf',
        "minus infinity is read as infinity",
        "test_descriptors.py::test_json_names_of_numbers",
    ),
    (
        "operators.or_",
        "operators.and_",
        "a list of flags is their intersection",
        "test_model.py::test_the_forms_of_a_tensor",
    ),
    (
        "if type(value) is not int:",
        "if not isinstance(value, int):",
        "true and false are integers of JSON",
        "test_errors.py::test_json",
    ),
    (
        "type(value) is int and value == member.value",
        "value == member.value",
        "true is the enum value with number 1",
        "test_errors.py::test_json",
    ),
    (
        "count not in (None, len(sizes))",
        "count not in (None, count)",
        "a wrong DimensionCount of a tensor is taken",
        "test_model.py::test_a_wrong_tensor",
    ),
    (
        '("Strides", [])',
        '("Strides", None)',
        "an empty list of strides is not null",
        "test_model.py::test_the_forms_of_a_tensor",
    ),
    (
        "range(2**16)",
        "range(2**15)",
        "the bits of a half float have no sign",
        "test_model.py::test_the_forms_of_a_scalar_union",
    ),
    (
        "np.uint16(number).view(np.float16)",
        "np.uint16(number).astype(np.float16)",
        "the bits of a half float are taken for its value",
        "test_model.py::test_the_forms_of_a_scalar_union",
    ),
)

FAULTS = (*CHECK, *SUPPORT, *TENSOR, *DESCRIPTOR)
