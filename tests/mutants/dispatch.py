"""Faults in what all operators share: arguments, derivatives, batches, devices."""

from tests.mutants.fault import faults

CALLS = "test_errors.py::test_calls"
EDGES = "test_operators.py::test_edges"
NUMBERS = "test_operators.py::test_number_is_refused"
NO_ARRAY = "test_errors.py::test_what_is_no_array"
DERIVATIVES = "test_transforms.py::test_derivatives"
PAGE = "test_sharding.py::test_a_program_communicates_what_the_page_says"
EXPLICIT = "test_sharding.py::test_a_program_with_explicit_axes_does_so_too"
UNEVEN = "test_sharding.py::test_parts_of_a_padded_dimension_may_be_uneven"
CANNOT = "test_sharding.py::test_explicit_axes_say_what_they_cannot_do"

OPERATOR = faults(
    "dmljax._operator",
    ("test_operators.py", "test_errors.py", "test_transforms.py"),
    (
        "jnp.moveaxis(operand, dim, 0)",
        "operand",
        "the batch stays where it is",
        "test_transforms.py::test_vmap_of_one_operand_along_every_axis",
    ),
    (
        "all(_is_zero(t) for t in linear_tangents)",
        "any(_is_zero(t) for t in linear_tangents)",
        "the derivative in one operand alone is zero",
        f"{DERIVATIVES}[diagonal_matrix1-band-float32]",
        "test_transforms.py::test_gradient_and_hessian",
    ),
    (
        "[(cotangent, zero), (zero, cotangent)]",
        "[(zero, cotangent), (cotangent, zero)]",
        "the cotangents of a select change places",
        f"{DERIVATIVES}[element_wise_if-bytes-float32]",
    ),
    (
        '{"implementation": "xla"} if shared',
        '{"implementation": "xla"} if not shared',
        "what is selected for a gradient is not the kernel's",
        "test_kernels.py::test_gradients_of_batches_run_the_kernel",
    ),
    (
        'implementation != "pallas" or bool(self.kernels)',
        "True",
        "an operator without a kernel takes one",
        "test_errors.py::test_a_kernel_that_is_not_there",
    ),
    (
        '(None, "xla", "pallas")',
        '(None, "xla", "pallas", "cuda")',
        "there is one more implementation",
        "test_errors.py::test_unknown_implementations",
    ),
    (
        'interpret = platform in ("", "cpu")',
        'interpret = platform == "cpu"',
        "a kernel is not interpreted outside of jit",
        "test_operators.py::test_without_jit[diagonal_matrix1]",
        "test_operators.py::test_without_jit",
    ),
    (
        "for array in arrays) >= least",
        "for array in arrays) > least",
        "the smallest array of the rule is not the kernel's",
        "test_kernels.py::test_the_rule_looks_at_type_and_size",
    ),
    (
        "and kernels_available(platform)",
        "and True",
        "a kernel is the default without its backend",
        "test_kernels.py::test_without_the_backend_the_default_is_xla",
    ),
    (
        "and _is_local(context)",
        "and True",
        "a kernel is the default in a program for many devices",
        "test_tpu.py::test_a_sharded_program_runs_no_kernel_by_default",
    ),
    (
        "_trace_state() == _TOP_LEVEL",
        "_trace_state() != _TOP_LEVEL",
        "a call in a program is taken for a program of its own",
        "test_kernels.py::test_a_call_knows_whether_it_is_a_program_of_its_own",
    ),
    (
        "contextlib.suppress(UnsupportedError)",
        "contextlib.suppress()",
        "what only a kernel cannot do is an error",
        "test_kernels.py::test_what_a_kernel_can_not_address_runs_in_xla",
    ),
    (
        "if everywhere - own\n",
        "if False\n",
        "what is the same on all devices has no sum over them",
        "test_transforms.py::test_gradient_of_shard_map",
    ),
    (
        'dtype.kind in "fiu"',
        'dtype.kind in "fi"',
        "unsigned wide integers are truncated in silence",
        f"{NO_ARRAY}[a wide unsigned]",
    ),
    (
        "or dtype == np.complex128",
        "",
        "wide complex numbers are truncated in silence",
        f"{NO_ARRAY}[a wide complex]",
    ),
    (
        "array.astype(default) if np.can_cast(least, default) else array",
        "array.astype(default)",
        "a wide Python integer is truncated",
        "test_errors.py::test_a_python_integer_of_more_than_32_bits",
    ),
    (
        "or not array.dtype.isnative",
        "",
        "swapped bytes are taken as they are",
        "test_errors.py::test_byte_order",
    ),
    (
        "array.shape == ()",
        "array.size == 1",
        "a vector of one element is a scalar",
        "test_operators.py::test_value_is_a_scalar",
        f"{CALLS}[value a]",
    ),
    (
        "weak and array.dtype.kind in _kinds_held(dtype)",
        "array.dtype.kind in _kinds_held(dtype)",
        "an array of another type is converted",
        "test_operators.py::test_another_type_is_refused",
    ),
    (
        "constant.array().tobytes() == np.asarray(scalar).tobytes()",
        "constant.array() == np.asarray(scalar)",
        "minus zero becomes zero",
        "test_operators.py::test_number_takes_the_type",
    ),
    (
        "lax.convert_element_type(_given(array), array.dtype)",
        "_given(array)",
        "a weak type comes out again",
        "test_operators.py::test_weak_operands_give_strong_results",
    ),
    (
        "(typed, other) if weak_a else (other, typed)",
        "(other, typed) if weak_a else (typed, other)",
        "two operands change places if one is weak",
        "test_operators.py::test_weak_type_gives_way",
    ),
    (
        "and value == int(value)",
        "and True",
        "a fraction is an integer",
        "test_operators.py::test_fraction_is_no_integer",
    ),
    (
        "low <= value <= high else",
        "low <= value else",
        "a number past the largest integer is taken",
        NUMBERS,
    ),
    (
        "value in (0, 1)",
        "value in (0, 1, 2)",
        "2 is a truth value",
        NUMBERS,
    ),
    (
        '"biu" if is_integer(dtype) else "b"',
        '"biuf" if is_integer(dtype) else "b"',
        "a traced float becomes an integer",
        "test_operators.py::test_weak_type_does_not_lose_its_fraction",
    ),
)

PARTITION = faults(
    "dmljax._partition",
    ("test_sharding.py",),
    (
        "(i + by) % parts",
        "(i - by) % parts",
        "parts are sent the other way",
        f"{PAGE}[WRAP, halo-8",
    ),
    (
        "around or 0 <= i + by",
        "around or 0 < i + by",
        "nothing is sent to the first part",
        UNEVEN,
    ),
    (
        "part == self.index(dimension)",
        "part >= self.index(dimension)",
        "counts of other parts are added up",
        f"{PAGE}[nonzero_coordinates-8",
    ),
    (
        "_name(i) if size != 1 else",
        "_name(i) if True else",
        "what is shared is divided like the rest",
        "test_sharding.py::test_kernels_run_on_each_shard[diagonal_matrix1]",
        "test_sharding.py::test_kernels_run_on_each_shard",
    ),
    (
        "and min(sizes) % parts == 0",
        "and max(sizes) % parts == 0",
        "only the largest size has to be divisible",
        "test_sharding.py::test_an_input_that_does_not_divide",
    ),
    (
        "name not in self.layout.whole and",
        "True and",
        "what has to be whole is divided",
        "test_sharding.py::test_other_dimensions_of_nonzero_are_gathered_and_right",
    ),
    (
        'or platform == "tpu"',
        "",
        "the compiler for TPUs is asked for parts",
        "test_tpu.py::test_a_sharded_program_leaves_partitioning_to_xla",
    ),
    (
        "or exported or",
        "or",
        "an exported program asks for parts",
        "test_sharding.py::test_an_exported_program",
    ),
    (
        "sorted(line, reverse=True)",
        "sorted(line)",
        "mesh axes have the wrong order",
        f"{PAGE}[WRAP, halo-2x4",
    ),
    (
        "return spec if same else PartitionSpec()",
        "return spec",
        "a sharding without words has wrong ones",
        "test_sharding.py::test_a_sharding_for_which_there_are_no_words",
    ),
    (
        "AxisType.Auto not in types and not divided",
        "not divided",
        "an array on automatic axes is taken for whole",
        "test_kernels.py::test_a_sharded_program_runs_the_kernel_on_each_device",
        "test_tpu.py::test_a_sharded_program_leaves_partitioning_to_xla",
    ),
    (
        "name not in division.layout.whole,",
        "True,",
        "explicit axes divide what has to be whole",
        CANNOT,
    ),
    (
        "axes[name] == over and others.isdisjoint(over)",
        "axes[name] == over",
        "an explicit axis divides two dimensions",
        CANNOT,
    ),
    (
        "            size % parts == 0,\n            f",
        "            True,\n            f",
        "explicit parts may be uneven",
        CANNOT,
    ),
    (
        "_parts(dict(sharding.mesh.shape), divided.get(_name(dimension), ()))",
        "1",
        "parts= does not see the devices",
        f"{EXPLICIT}[nonzero_coordinates, parts",
        CANNOT,
    ),
)

FAULTS = (*OPERATOR, *PARTITION)
