"""Faults in support tables, tensor descriptions, strides and overlaps."""

from tests.mutants.fault import faults

EVERY_LEVEL = "test_support.py::test_every_level"
OVERLAPS_AGREE_WITH_THE_ORACLE = (
    "test_model_format.py::test_overlaps_agree_with_the_oracle"
)
OVERLAPS_OF_LARGE_TENSORS = "test_model_format.py::test_overlaps_of_large_tensors"
RULES_OF_EVERY_TENSOR = "test_errors.py::test_rules_of_every_tensor"
TABLES = "test_support.py::test_tables"

FAULTS = (
    *faults(
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
            EVERY_LEVEL,
        ),
        (
            "row <= level",
            "row < level",
            "a row holds only after its level",
            EVERY_LEVEL,
        ),
        (
            "max(row for",
            "min(row for",
            "the oldest row holds for ever",
            EVERY_LEVEL,
        ),
        (
            "support.min_rank <= rank",
            "support.min_rank < rank",
            "the smallest rank is refused",
            EVERY_LEVEL,
        ),
        (
            "rank <= support.max_rank",
            "rank < support.max_rank",
            "the largest rank is refused",
            EVERY_LEVEL,
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
            TABLES,
        ),
        (
            "*UP_TO_32_BITS[2:5]",
            "*UP_TO_32_BITS[2:4]",
            "a small integer type is missing where there are wide ones",
            TABLES,
        ),
        (
            "DataType.UINT64, DataType.UINT32)",
            "DataType.UINT32)",
            "unsigned wide indices are missing",
            f"{TABLES}[ONE_HOT]",
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
    ),
    *faults(
        "dmljax._tensor",
        (
            "test_errors.py",
            "test_descriptors.py",
        ),
        (
            "INT32_MIN <= value <= INT32_MAX",
            "INT32_MIN <= value",
            "an attribute may exceed 32 bits",
            "test_errors.py::test_descriptors[diagonal]",
        ),
        (
            "return values.ndim > 0",
            "return True",
            "a number of NumPy is a list",
            "test_arguments.py::test_sizes_of_rank_0_are_refused",
        ),
        (
            "return int(value) if known and not value.ndim",
            "return int(value) if not known and not value.ndim",
            "integers of NumPy stay as they are",
            "test_arguments.py::test_what_sizes_and_modes_may_be",
        ),
        (
            "freeze(self, name, plain_integer(getattr(self, name)))",
            "freeze(self, name, getattr(self, name))",
            "NumPy's numbers of bytes are refused",
            "test_arguments.py::test_what_sizes_and_modes_may_be",
        ),
        (
            "UINT64 = 10\n    INT64 = 11",
            "UINT64 = 11\n    INT64 = 10",
            "two types have each other's numbers",
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
            "size >= 2**31 for size in sizes",
            "size >= 2**33 for size in sizes",
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
            f"{RULES_OF_EVERY_TENSOR}[size 0]",
            RULES_OF_EVERY_TENSOR,
        ),
        (
            "1 <= len(sizes)",
            "0 <= len(sizes)",
            "a tensor may have no dimension",
            RULES_OF_EVERY_TENSOR,
        ),
        (
            "2**32 - 1\n",
            "2**32\n",
            "a tensor may have one element too many",
            "test_errors.py::test_too_many_elements",
            RULES_OF_EVERY_TENSOR,
        ),
        (
            "len(strides) == len(sizes)",
            "len(strides) >= len(sizes)",
            "there may be too many strides",
            RULES_OF_EVERY_TENSOR,
        ),
        (
            "0 <= stride < 2**32",
            "stride < 2**32",
            "a stride may be negative",
            RULES_OF_EVERY_TENSOR,
        ),
        (
            "overlap(sizes, strides) if output else False",
            "False if output else overlap(sizes, strides)",
            "an output may overlap and an input may not",
            "test_errors.py::test_rules_of_outputs",
        ),
        (
            "not output or tensor.extent <= MAX_ELEMENTS",
            "tensor.extent <= MAX_ELEMENTS",
            "an input may not span more than an output",
            "test_errors.py::test_rules_of_outputs",
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
            RULES_OF_EVERY_TENSOR,
        ),
        (
            "width <= alignment < 2**32",
            "1 <= alignment < 2**32",
            "an alignment may be smaller than an element",
            RULES_OF_EVERY_TENSOR,
        ),
    ),
    *faults(
        "dmljax._strides",
        ("test_descriptors.py",),
        (
            "index_mode(tensor.extent, buffer.size) as integer:\n        dense",
            "index_mode(tensor.extent) as integer:\n        dense",
            "the length of the buffer that is read does not count",
            "test_descriptors.py::test_buffers_that_are_longer_than_their_tensors",
        ),
        (
            "index_mode(tensor.extent, buffer.size) as integer:\n        return",
            "index_mode(tensor.extent) as integer:\n        return",
            "the length of the buffer that is written does not count",
            "test_descriptors.py::test_buffers_that_are_longer_than_their_tensors",
        ),
        (
            "1 if stride == 0 else size for",
            "size for",
            "what a stride of 0 shares is gathered",
            "test_descriptors.py::test_the_gradient_of_a_shared_input_is_a_sum",
        ),
        (
            "np.argsort(corner.order)",
            "corner.order",
            "a permuted input is permuted the other way",
            "test_descriptors.py::test_inputs_of_any_strides",
            "test_descriptors.py::test_read",
        ),
        (
            "values.transpose(corner.order)",
            "values.transpose(np.argsort(corner.order))",
            "a permuted output is permuted the other way",
            "test_descriptors.py::test_an_output_whose_axes_are_rotated",
        ),
        (
            "stride if sizes[axis] > 1 else 0",
            "stride",
            "the stride of a size of 1 has to fit in the type of offsets",
            "test_descriptors.py::test_inputs_of_any_strides",
        ),
        (
            "rest or inner < count",
            "inner < count",
            "a stride need not be a multiple of the one within",
            "test_descriptors.py::test_write",
        ),
        (
            "kept.append(count)\n        whole.append(inner)",
            "kept.append(inner)\n        whole.append(inner)",
            "gaps are taken for elements",
            "test_descriptors.py::test_inputs_of_any_strides",
            "test_descriptors.py::test_read",
        ),
        (
            "[(0, missing, 0)]",
            "[(missing, 0, 0)]",
            "the gap that a buffer lacks at its end is added before it",
            "test_descriptors.py::test_inputs_of_any_strides",
        ),
        (
            "offsets += lax",
            "offsets = lax",
            "an offset is that along the last axis alone",
            "test_descriptors.py::test_inputs_of_any_strides",
            "test_descriptors.py::test_read",
        ),
    ),
    *faults(
        "dmljax._overlap",
        (
            "test_model_format.py",
            "test_descriptors.py",
        ),
        (
            "math.lcm(s, t) <= min(s * reach, t * extent)",
            "math.lcm(s, t) <= max(s * reach, t * extent)",
            "axes that just miss each other are taken to meet",
            OVERLAPS_AGREE_WITH_THE_ORACLE,
        ),
        (
            "if _pair_meets(axes) or _too_many(axes):\n        return True",
            "if _pair_meets(axes) or _too_many(axes):\n        return False",
            "axes that meet are taken to miss each other",
            OVERLAPS_AGREE_WITH_THE_ORACLE,
        ),
        (
            "if any(stride == 0 for stride, _ in axes):",
            "if False:",
            "a stride of 0 does not overlap",
            OVERLAPS_OF_LARGE_TENSORS,
        ),
        (
            "size - 1) for size, stride in given if size > 1",
            "size) for size, stride in given if size > 1",
            "an axis reaches one element too far",
            OVERLAPS_AGREE_WITH_THE_ORACLE,
        ),
        (
            "return math.prod(reach + 1 for _, reach in axes) > offsets",
            "return math.prod(reach + 2 for _, reach in axes) > offsets",
            "more coordinates are counted than there are",
            OVERLAPS_AGREE_WITH_THE_ORACLE,
        ),
        (
            "reach = min(reach, limit) // step",
            "reach = min(reach, limit)",
            "an axis reaches as far as its multiple would",
            OVERLAPS_AGREE_WITH_THE_ORACLE,
        ),
        (
            "for s, r in others) // stride",
            "for s, r in others) // (stride + 1)",
            "an axis reaches less far than the others allow",
            OVERLAPS_AGREE_WITH_THE_ORACLE,
        ),
        (
            "step = common // math.gcd(common, stride) if others",
            "step = common if others",
            "an axis is left out that the others can meet",
            OVERLAPS_AGREE_WITH_THE_ORACLE,
        ),
        (
            "MOST_SUMS = 2**20",
            "MOST_SUMS = 2**4",
            "the search gives up too early",
            OVERLAPS_AGREE_WITH_THE_ORACLE,
            OVERLAPS_OF_LARGE_TENSORS,
        ),
        (
            "first[first > 0], second[second > 0]",
            "first, second",
            "no difference at all is an overlap",
            OVERLAPS_AGREE_WITH_THE_ORACLE,
            OVERLAPS_OF_LARGE_TENSORS,
        ),
        (
            "np.arange(-reach, reach + 1",
            "np.arange(-reach, reach",
            "the last sum along an axis is missing",
            OVERLAPS_AGREE_WITH_THE_ORACLE,
            OVERLAPS_OF_LARGE_TENSORS,
        ),
    ),
)
