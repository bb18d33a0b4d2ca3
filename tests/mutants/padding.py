"""Faults in PADDING, and in its adjoint."""

from tests.mutants.fault import faults

AUTOMATIC_AXES = "test_sharding.py::test_automatic_axes"
CALLS = "test_errors.py::test_calls"
EXPLICIT_AXES = "test_sharding.py::test_explicit_axes"
PADDING_ADJOINT = "test_properties.py::test_padding_adjoint"
PADDING_MODE_BY_LEVEL = "test_support.py::test_padding_mode_by_level"

FAULTS = (
    *faults(
        "dmljax._padding",
        (
            "test_operators.py",
            "test_errors.py",
            "test_support.py",
        ),
        (
            "FeatureLevel.V3_1: dict.fromkeys(BOTH, Support(1,",
            "FeatureLevel.V3_1: dict.fromkeys(BOTH, Support(4,",
            "a level has another rank",
            "test_support.py::test_tables",
        ),
        (
            "PaddingMode.SYMMETRIC: FeatureLevel.V3_0",
            "PaddingMode.SYMMETRIC: FeatureLevel.V1_0",
            "a mode exists from the first level on",
            PADDING_MODE_BY_LEVEL,
        ),
        (
            "len(pads) == len(sizes)",
            "len(pads) >= len(sizes)",
            "a list may be too long",
            f"{CALLS}[pad end too long]",
        ),
        (
            "decide_at_most(operator, 0, pad)",
            "decide_at_most(operator, -1, pad)",
            "padding may be -1",
            f"{CALLS}[pad start negative]",
            f"{CALLS}[pad]",
        ),
        (
            "decide_at_most(operator, 1, size)",
            "decide_at_most(operator, 0, size)",
            "an empty axis may be repeated",
            f"{CALLS}[pad nothing to repeat]",
        ),
        (
            "desc.dimension_count == len(sizes)",
            "desc.dimension_count >= len(sizes)",
            "a dimension count may be too large",
            "test_errors.py::test_descriptors[pad count]",
        ),
        (
            "level >= first,",
            "True,",
            "every level has every mode",
            PADDING_MODE_BY_LEVEL,
        ),
        (
            "PaddingMode.WRAP: FeatureLevel.V6_4",
            "PaddingMode.WRAP: FeatureLevel.V6_3",
            "WRAP exists a level too early",
            PADDING_MODE_BY_LEVEL,
        ),
        (
            "if type(value) not in (int, float):",
            "if False:",
            "a value that is ignored may be anything",
            "test_arguments.py::test_refused",
        ),
        (
            (
                "self.check_value_type(self.padding_value_data_type, "
                '"PaddingValueDataType")'
            ),
            "pass",
            "PADDING1's value may have another type than its tensors",
            "test_errors.py::test_descriptors",
        ),
    ),
    *faults(
        "dmljax._padding_forms",
        (
            "test_operators.py",
            "test_properties.py",
            "test_transforms.py",
            "test_sharding.py",
        ),
        (
            "index_mode(stop + 2 * size, *x.shape)",
            "index_mode(size)",
            "places of long axes overflow",
            "test_operators.py::test_padding_indices_of_long_axes_do_not_overflow",
            "test_operators.py::test_padding_little_of_long_axes_does_not_overflow",
        ),
        (
            "[(s, e, 0) for",
            "[(e, s, 0) for",
            "start and end change places under CONSTANT",
            "test_operators.py::test_edges[padding-constant_end]",
        ),
        (
            "start, end), padded, value)",
            "start, end), value, padded)",
            "the values of a batch are inside",
            "test_transforms.py::test_vmap_of_all_operands[padding-constant_matrix]",
        ),
        (
            "position < shape[axis] - after",
            "position <= shape[axis] - after",
            "the first element after the inside is inside",
            "test_transforms.py::test_vmap_of_all_operands[padding-constant_matrix]",
        ),
        (
            "<= size - (mode is PaddingMode.REFLECTION)",
            "<= size",
            "REFLECTION by the size itself is a strip beside the input",
            "test_sharding.py::test_parts_of_a_padded_dimension_may_be_uneven",
        ),
        (
            "[*first, x, *last]",
            "[*last, x, *first]",
            "strips of narrow elements are joined at the wrong sides on a CPU",
            "test_properties.py::test_same_bits_as_the_oracle[padding]",
        ),
        (
            "offsets[axis] = before\n",
            "offsets[axis] = after\n",
            "the inside of a gradient is cut off at the wrong place",
            PADDING_ADJOINT,
        ),
        (
            "0 if at_most(first, 0) else size - 1",
            "0",
            "the gradient of EDGE is added to the first element",
            "test_transforms.py::test_derivatives[padding-edge_matrix-float32]",
            PADDING_ADJOINT,
        ),
        (
            "lax.rev(part, (axis,)), last - length + 1",
            "part, last - length + 1",
            "a mirrored gradient is not reversed",
            PADDING_ADJOINT,
            "test_properties.py::test_padding_adjoint_of_many_folds",
        ),
        (
            "mirror - period + 1, size), 0",
            "0, size), 0",
            "a mirrored gradient is added at the start",
            "test_properties.py::test_padding_adjoint_of_many_folds",
        ),
        (
            "((0, before), (before + size, before + size + after))",
            "((0, before), (before + size, before + size + after - 1))",
            "the last element of the padding has no gradient",
            PADDING_ADJOINT,
        ),
        (
            "position >= before + size, strip",
            "position >= size, strip",
            "the padding at the end is selected inside, too (strips)",
            f"{AUTOMATIC_AXES}[EDGE, narrow-2-",
        ),
        (
            "_strip(x, axis, -before, before, mode)",
            "_strip(x, axis, 0, before, mode)",
            "the padding at the start is that behind it (strips)",
            f"{AUTOMATIC_AXES}[WRAP, narrow-2-",
        ),
        (
            "nearest = 0 if first < 0 else size - 1",
            "nearest = size - 1",
            "EDGE repeats the last element at the start (strips)",
            f"{AUTOMATIC_AXES}[EDGE, narrow-2-",
        ),
        (
            "last - length + 1, last + 1, axis=axis)",
            "last - length, last, axis=axis)",
            "a mirrored strip is that beside it (strips)",
            f"{AUTOMATIC_AXES}[SYMMETRIC, narrow-2-",
        ),
    ),
    *faults(
        "dmljax._padding_primitive",
        (
            "test_sharding.py",
            "test_lowering.py",
            "test_transforms.py",
        ),
        (
            "jnp.where(inside, forms.zero(cotangent), cotangent)",
            "jnp.where(inside, cotangent, forms.zero(cotangent))",
            "the value's gradient is that of the inside",
            "test_transforms.py::test_derivatives[padding-constant_matrix-float32]",
        ),
        (
            "> size - (mode is PaddingMode.REFLECTION)",
            "> size",
            "REFLECTION by a whole part reaches past what is exchanged",
            "test_sharding.py::test_explicit_axes_pad_by_a_whole_part",
        ),
        (
            "min(size, before + 1)), before, 0)",
            "min(size, before)), before, 0)",
            "REFLECTION has one element too few at the start of a mesh",
            f"{EXPLICIT_AXES}[REFLECTION, narrow]",
        ),
        (
            "near = min(size, after + 1)",
            "near = min(size, after)",
            "REFLECTION has one element too few at the end of a mesh",
            f"{EXPLICIT_AXES}[REFLECTION, narrow]",
        ),
        (
            "jnp.where(index == 0, cut",
            "jnp.where(index == 1, cut",
            "the second part is taken for the first",
            f"{EXPLICIT_AXES}[EDGE, narrow]",
        ),
        (
            "index == count - 1, cut",
            "index == count, cut",
            "no part is taken for the last",
            f"{EXPLICIT_AXES}[EDGE, narrow]",
        ),
        (
            "index * (own - size), own, axis)",
            "index * own, own, axis)",
            "a part of the output is cut off at the wrong place",
            f"{EXPLICIT_AXES}[EDGE, narrow]",
        ),
        (
            "cut(x, 0, after), axis, -1,",
            "cut(x, 0, after), axis, 1,",
            "the end of a part comes from the wrong neighbour",
            f"{EXPLICIT_AXES}[WRAP, narrow]",
        ),
        (
            "index * own, own, axis)",
            "index, own, axis)",
            "a part of what all devices have is cut off at the wrong place",
            f"{EXPLICIT_AXES}[SYMMETRIC, wide",
        ),
        (
            "part.count(axis) > 1 and any(own)",
            "part.count(axis) > 1 and own[0] > 0",
            "padding at the end alone is not divided",
            "test_sharding.py::test_explicit_axes_pad_at_the_end_alone",
        ),
        (
            "few = row.before + row.after",
            "few = row.before",
            "the rule does not see padding at the end",
            "test_lowering.py::test_the_rule_of_padding_looks_at_rows",
        ),
        (
            "whole = x.dtype != bool and all(",
            "whole = all(",
            "the rule takes truth values for bytes",
            "test_lowering.py::test_the_rule_of_padding_looks_at_rows",
        ),
        (
            "cyclic = [x], mode is PaddingMode.WRAP",
            "cyclic = [x], False",
            "WRAP has no neighbour at the ends of a mesh",
            f"{EXPLICIT_AXES}[WRAP, narrow",
        ),
    ),
)
