"""Faults in PADDING: its coordinates, its forms, its adjoint, its parts."""

from tests.mutants.fault import faults

CALLS = "test_errors.py::test_calls"
DESCRIBED = "test_errors.py::test_descriptors"
EDGES = "test_operators.py::test_edges"
TABLES = "test_support.py::test_tables"
DERIVATIVES = "test_transforms.py::test_derivatives"
UNEVEN = "test_sharding.py::test_parts_of_a_padded_dimension_may_be_uneven"
PAGE = "test_sharding.py::test_a_program_communicates_what_the_page_says"
VMAP = "test_transforms.py::test_vmap_of_all_operands"
ADJOINT = "test_properties.py::test_padding_adjoint"
FOLDS = "test_properties.py::test_padding_adjoint_of_many_folds"
ROWS = "test_kernels.py::test_padding_of_rows"

AXIS = faults(
    "dmljax._axis",
    ("test_operators.py", "test_properties.py", "test_kernels.py"),
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
        "max(2 * size - 2, 1)",
        "max(2 * size - 1, 1)",
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
        "if periods > 1",
        "if periods > 2",
        "three periods are folded as two",
        f"{EDGES}[padding-symmetric]",
        f"{EDGES}[padding-]",
    ),
    (
        "place < period, place",
        "place <= period, place",
        "the first element of the second period is past the end",
        f"{EDGES}[padding-wrap_end]",
        f"{EDGES}[padding-wrap]",
    ),
    (
        "jnp.minimum(place, mirror - place)",
        "place",
        "nothing is mirrored",
        f"{EDGES}[padding-reflection_end]",
        f"{EDGES}[padding-symmetric]",
    ),
    (
        "position < self.before + self.size",
        "position <= self.before + self.size",
        "the first element after the inside is inside (kernels)",
        f"{EDGES}[padding-constant_end_by_kernel]",
        f"{EDGES}[padding-constant]",
    ),
    (
        "self.before + self.after > 0",
        "self.before > 0",
        "padding at the end alone is none (kernels)",
        f"{EDGES}[padding-wrap_end_by_kernel]",
    ),
    (
        "result and not (axis.is_padded or",
        "result and not (axis.is_padded and",
        "a padded dimension is joined to its neighbour (kernels)",
        f"{EDGES}[padding-wrap_middle_axis_by_kernel]",
    ),
    (
        "unit, row = row.size,",
        "unit, row = 1,",
        "a unit of a row is one element (kernels)",
        f"{EDGES}[padding-wrap_middle_axis_by_kernel]",
    ),
    (
        "whole + start, whole + end",
        "whole + end, whole + start",
        "start and end change places (kernels)",
        f"{EDGES}[padding-wrap_end_by_kernel]",
    ),
)

PADDING = faults(
    "dmljax._padding",
    ("test_operators.py", "test_properties.py", "test_errors.py"),
    (
        "FeatureLevel.V3_1: dict.fromkeys(BOTH, Support(1,",
        "FeatureLevel.V3_1: dict.fromkeys(BOTH, Support(4,",
        "a level has another rank",
        TABLES,
    ),
    (
        "PaddingMode.SYMMETRIC: FeatureLevel.V3_0",
        "PaddingMode.SYMMETRIC: FeatureLevel.V1_0",
        "a mode exists from the first level on",
        "test_support.py::test_padding_mode_by_level",
    ),
    (
        "index_mode(max(stop + 2 * size, *known))",
        "index_mode(size)",
        "places of long axes overflow",
        "test_operators.py::test_padding_indices_of_long_axes_do_not_overflow",
        "test_operators.py::test_padding_little_of_long_axes_does_not_overflow",
    ),
    (
        "[(s, e, 0) for",
        "[(e, s, 0) for",
        "start and end change places under CONSTANT",
        f"{EDGES}[padding-constant_end]",
    ),
    (
        "_inside(padded.shape, start, end), padded, value)",
        "_inside(padded.shape, start, end), value, padded)",
        "the values of a batch are inside",
        f"{VMAP}[padding-constant_matrix]",
    ),
    (
        "position < shape[axis] - after",
        "position <= shape[axis] - after",
        "the first element after the inside is inside",
        f"{VMAP}[padding-constant_matrix]",
    ),
    (
        "[i for i, a in enumerate(axes) if a.size % parts == 0 and not a.is_padded]",
        "[i for i, a in enumerate(axes) if a.size % parts == 0]",
        "parts are cut along a padded axis",
        "test_operators.py::test_form_of_a_program_of_its_own[int8]",
        "test_operators.py::test_form_of_a_program_of_its_own",
    ),
    (
        "offsets[axis] = before\n",
        "offsets[axis] = after\n",
        "the inside of a gradient is cut off at the wrong place",
        ADJOINT,
    ),
    (
        "0 if first < 0 else size - 1",
        "0",
        "the gradient of EDGE is added to the first element",
        f"{DERIVATIVES}[padding-edge_matrix-float32]",
        ADJOINT,
    ),
    (
        "lax.rev(part, (axis,)), last - length + 1",
        "part, last - length + 1",
        "a mirrored gradient is not reversed",
        ADJOINT,
        FOLDS,
    ),
    (
        "mirror - period + 1, size), 0",
        "0, size), 0",
        "a mirrored gradient is added at the start",
        FOLDS,
    ),
    (
        "((0, before), (before + size, before + size + after))",
        "((0, before), (before + size, before + size + after - 1))",
        "the last element of the padding has no gradient",
        ADJOINT,
    ),
    (
        "inside, _zero(cotangent), cotangent)",
        "inside, cotangent, _zero(cotangent))",
        "the value's gradient is that of the inside",
        f"{DERIVATIVES}[padding-constant_matrix-float32]",
    ),
    (
        "size - (mode is PaddingMode.REFLECTION)",
        "size",
        "REFLECTION by a whole part reaches past what is exchanged",
        UNEVEN,
        f"{PAGE}[REFLECTION",
    ),
    (
        "min(size, before + 1)), before, 0)",
        "min(size, before)), before, 0)",
        "REFLECTION has one element too few at the start of a mesh",
        f"{PAGE}[REFLECTION, halo-8",
    ),
    (
        "near = min(size, after + 1)",
        "near = min(size, after)",
        "REFLECTION has one element too few at the end of a mesh",
        f"{PAGE}[REFLECTION, halo-8",
    ),
    (
        "jnp.where(index == 0, cut",
        "jnp.where(index == 1, cut",
        "the second part is taken for the first",
        f"{PAGE}[EDGE, halo-8",
    ),
    (
        "index == parts - 1, cut",
        "index == parts, cut",
        "no part is taken for the last",
        f"{PAGE}[EDGE, halo-8",
    ),
    (
        "index * (part - size), part",
        "index * part, part",
        "a part of the output is cut off at the wrong place",
        f"{PAGE}[EDGE, halo-8",
    ),
    (
        "cut(x, 0, after), axis, -1,",
        "cut(x, 0, after), axis, 1,",
        "the end of a part comes from the wrong neighbour",
        f"{PAGE}[WRAP, halo-8",
    ),
    (
        "position < size, cotangent, _zero(cotangent))",
        "position < size + 1, cotangent, _zero(cotangent))",
        "what lies past the end of an uneven part has a gradient",
        UNEVEN,
    ),
    (
        "any(start + end)",
        "any(start)",
        "padding at the end alone is not divided",
        "test_sharding.py::test_padding_at_the_end_alone_sends_the_halo",
    ),
    (
        "FEW_ADDED * (row.before + row.after)",
        "FEW_ADDED * row.before",
        "the rule does not see padding at the end",
        "test_kernels.py::test_the_rule_of_padding_looks_at_rows",
    ),
    (
        "x.dtype != bool and",
        "True and",
        "the rule takes truth values for bytes",
        "test_kernels.py::test_the_rule_of_padding_looks_at_rows",
    ),
    (
        "type(value) is float and is_integer",
        "False and is_integer",
        "a float as the value of an integer tensor is not truncated",
        "test_operators.py::test_padding_truncates_and_saturates",
    ),
    (
        "len(pads) == len(sizes)",
        "len(pads) >= len(sizes)",
        "a list may be too long",
        f"{CALLS}[pad end too long]",
    ),
    (
        "pad >= 0 for pad in pads",
        "pad >= -1 for pad in pads",
        "padding may be -1",
        f"{CALLS}[pad start negative]",
        f"{CALLS}[pad",
    ),
    (
        "mode == PaddingMode.CONSTANT or not empty",
        "True",
        "an empty axis may be repeated",
        f"{CALLS}[pad nothing to repeat]",
    ),
    (
        "desc.dimension_count == len(sizes)",
        "desc.dimension_count >= len(sizes)",
        "a dimension count may be too large",
        f"{DESCRIBED}[pad count]",
    ),
    (
        "level >= first,",
        "True,",
        "every level has every mode",
        "test_support.py::test_padding_mode_by_level",
    ),
    (
        "part = lax.optimization_barrier(part) if apart else part",
        "part = part",
        "the sums of EDGE are made in one kernel",
        "test_operators.py::test_sums_of_edges_made_apart_are_the_adjoint",
    ),
)

FAULTS = (*AXIS, *PADDING)
