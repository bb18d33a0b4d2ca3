"""Faults in descriptors and in their JSON."""

from tests.mutants.fault import faults

CALLS = "test_errors.py::test_calls"
DESCRIPTORS = "test_errors.py::test_descriptors"
THE_FORMS_OF_A_SCALAR = "test_model.py::test_the_forms_of_a_scalar_union"

FAULTS = (
    *faults(
        "dmljax._descriptor",
        (
            "test_errors.py",
            "test_descriptors.py",
            "test_arguments.py",
        ),
        (
            "return plain_integer(value)",
            "return value",
            "an integer of NumPy stays in a descriptor",
            "test_arguments.py::test_what_sizes_and_modes_may_be",
        ),
        (
            "isinstance(value, kind),",
            "isinstance(value, (kind, str)),",
            "every field may be a string",
            "test_errors.py::test_attributes_of_the_wrong_type",
        ),
        (
            "output = name in self.outputs",
            "output = name not in self.outputs",
            "the rules of outputs hold for inputs",
            "test_errors.py::test_rules_of_outputs",
        ),
        (
            "if value is not None or not optional:",
            "if not optional:",
            "a field that may be None is not checked",
            "test_model_format.py::test_new_kinds_of_fields_are_checked",
        ),
        (
            "_check_kind(operator, name, item, typing.get_args(kind)[0])",
            "pass",
            "the elements of a list are not checked",
            "test_model_format.py::test_new_kinds_of_fields_are_checked",
        ),
        (
            "for name in same[1:]",
            "for name in same[2:]",
            "the second tensor may have another type",
            f"{DESCRIPTORS}[pad types]",
        ),
        (
            "tensor.sizes == shape,",
            "len(tensor.sizes) == len(shape),",
            "an output may have other sizes",
            f"{DESCRIPTORS}[pad output]",
        ),
        (
            "data_type == output,",
            "data_type in (output, DataType.INT32),",
            "a value may have another type than the tensor",
            f"{DESCRIPTORS}[value type]",
        ),
        (
            "if is_enum(kind) and is_number_of(value, kind):",
            "if False:",
            "an enum is not taken by its number",
            "test_errors.py::test_an_enum_by_its_number",
        ),
        (
            "self.support, level, named)",
            "self.support, max(FeatureLevel), named)",
            "the support is that of the newest level",
            "test_support.py::test_every_level",
        ),
        (
            "if n not in self.outputs}",
            "if n in self.outputs}",
            "the inputs are the outputs",
            "test_descriptors.py::test_packed",
        ),
        (
            'f"DML_OPERATOR_{self.operator}"',
            'f"DML_{self.operator}"',
            "the type in JSON is not that of a model file",
            "test_model.py::test_the_model_of_a_page_example_agrees_with_it",
            "test_model.py::test_the_models_on_disk_are_the_ones_that_are_made",
        ),
        (
            "as_sizes(operator, name, value)",
            "pass",
            "a list need not be of integers",
            "test_errors.py::test_attributes_of_the_wrong_type",
        ),
    ),
    *faults(
        "dmljax._operator",
        (
            "test_callables.py",
            "test_descriptors.py",
            "test_errors.py",
        ),
        (
            (
                "desc: OperatorDesc[Result], *, feature_level: FeatureLevel | "
                "int = FeatureLevel.V6_4"
            ),
            (
                "desc: OperatorDesc[Result], *, feature_level: FeatureLevel | "
                "int = FeatureLevel.V6_3"
            ),
            "the default is not the newest level",
            "test_descriptors.py::test_the_level_is_the_newest_unless_said_otherwise",
        ),
        (
            "len(arrays) != len(names)",
            "len(arrays) < len(names)",
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
            "type(self.desc), self.feature_level, *values",
            "type(self.desc), *values",
            "operators of two levels are equal",
            "test_callables.py::test_operators_that_differ",
        ),
        (
            "return value, value == 0 and math.copysign(1, value) < 0",
            "return value",
            "minus zero is zero",
            "test_callables.py::test_operators_that_differ",
        ),
        (
            "return np.float64(value).tobytes()",
            "return value",
            "NaN is not NaN",
            "test_callables.py::test_an_operator_is_a_value[PADDING]",
        ),
        (
            "return make(written) if make else written[0]",
            "return written[0]",
            "the second output is lost",
            "test_descriptors.py::test_named_results",
        ),
        (
            "self.desc.check(level)",
            "self.desc.check(max(FeatureLevel))",
            "every level is the newest",
            "test_support.py::test_every_level",
        ),
    ),
    *faults(
        "dmljax._json",
        (
            "test_model.py",
            "test_model_format.py",
            "test_descriptors.py",
            "test_errors.py",
        ),
        (
            "value = value.item()",
            "pass",
            "a scalar of NumPy is written as it is",
            "test_descriptors.py::test_json_of_numpys_scalars",
        ),
        (
            'f"DML_{words}_"',
            'f"DML{words}_"',
            "a full name of a mode is not known",
            "test_descriptors.py::test_json_names_of_enums",
        ),
        (
            '"inf" if value > 0 else "-inf"',
            '"inf" if value < 0 else "-inf"',
            "infinity changes its sign in JSON",
            "test_descriptors.py::test_json_loses_nothing",
            "test_descriptors.py::test_json_of_any_descriptor",
        ),
        (
            '"-inf": -math.inf',
            '"-inf": math.inf',
            "minus infinity is read as infinity",
            "test_descriptors.py::test_json_names_of_numbers",
        ),
        (
            "functools.reduce(operators.or_, flags, kind(0))",
            "functools.reduce(operators.and_, flags, kind(0))",
            "a list of flags is their intersection",
            "test_model.py::test_the_forms_of_a_tensor",
        ),
        (
            "if type(value) is not int or not LOWEST",
            "if not isinstance(value, int) or not LOWEST",
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
            "0 <= number < 2**16",
            "0 <= number < 2**15",
            "the bits of a half float have no sign",
            THE_FORMS_OF_A_SCALAR,
        ),
        (
            "np.uint16(number).view(np.float16)",
            "np.uint16(number).astype(np.float16)",
            "the bits of a half float are taken for its value",
            THE_FORMS_OF_A_SCALAR,
        ),
        (
            'return data_type.name.capitalize().replace("Uint", "UInt")',
            "return data_type.name.capitalize()",
            "the members of unsigned types have another name",
            THE_FORMS_OF_A_SCALAR,
        ),
        (
            "if type(value) is not bool:",
            "if False:",
            "1 is true",
            "test_model_format.py::test_new_kinds_of_fields_need_no_new_code",
        ),
        (
            "elif f.default is dataclasses.MISSING:",
            "elif False:",
            "a field may be missing",
            "test_model.py::test_a_wrong_model_does_nothing",
        ),
        (
            'name.removesuffix("s")',
            "name",
            "flags keep their plural",
            "test_model_format.py::test_new_kinds_of_fields_need_no_new_code",
        ),
        (
            '{"minProperties": 1, "maxProperties": 1}',
            '{"maxProperties": 1}',
            "the schema takes a union of nothing",
            "test_model_format.py::test_the_schema_refuses_what_is_refused",
        ),
        (
            '"additionalProperties": False,\n    }',
            '"additionalProperties": True,\n    }',
            "the schema takes unknown fields",
            "test_model_format.py::test_the_schema_refuses_what_is_refused",
        ),
    ),
)
