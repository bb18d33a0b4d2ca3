"""Faults in the modules that check arguments and write messages."""

from tests.mutants.fault import faults

CALLS = "test_errors.py::test_calls"
PADDING_TRUNCATES_AND_SATURATES = (
    "test_operators.py::test_padding_truncates_and_saturates"
)

FAULTS = (
    *faults(
        "dmljax._check",
        (
            "test_errors.py",
            "test_arguments.py",
        ),
        (
            "if not condition:",
            "if False:",
            "no rule is enforced",
            CALLS,
        ),
        (
            'error(f"{operator}: {rule}")',
            'DescriptorError(f"{operator}: {rule}")',
            "the kind of error is lost",
            "test_lowering.py::test_without_the_backend_the_default_is_xla",
        ),
        (
            'f"{operator}: {rule}"',
            'f"{rule}"',
            "a message does not name the operator",
            f"{CALLS}[diagonal rank 1]",
        ),
        (
            "first_value != second_value",
            "type(first_value) is not type(second_value)",
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
            "while tensor '{second_name}'",
            "while tensor '{first_name}'",
            "a message names the first tensor twice",
            f"{CALLS}[select other types]",
        ),
        (
            "value not in choices:",
            "value not in choices[:1]:",
            "only the first of several choices is taken",
            "test_operators.py::test_named_implementation",
        ),
        (
            "for choice in choices)",
            "for choice in choices[:-1])",
            "a message leaves out the last choice",
            "test_errors.py::test_unknown_implementations[XLA]",
        ),
        (
            'return "{" + ",".join([*items, *more]) + "}"',
            'return "(" + ",".join([*items, *more]) + ")"',
            "sizes are shown in parentheses",
            f"{CALLS}[diagonal rank 1]",
        ),
        (
            'getattr(value, "name", value)).upper()',
            'getattr(value, "name", value))',
            "types are shown in small letters",
            f"{CALLS}[diagonal other dtype]",
        ),
        (
            "class NoKernelError(DescriptorError):",
            "class NoKernelError(Exception):",
            "what a kernel cannot do is an error of another kind",
            "test_lowering.py::test_without_the_backend_a_kernel_is_refused",
        ),
    ),
    *faults(
        "dmljax._arguments",
        (
            "test_arguments.py",
            "test_errors.py",
            "test_operators.py",
        ),
        (
            "return Scalar(cast_float_value(value, dtype, default), None)",
            "return Scalar(cast_float_value(value, dtype), None)",
            "a float is rounded to float32 in x64 mode",
            "test_arguments.py::test_a_large_float_is_the_same_integer_traced_or_not",
        ),
        (
            "abs(value) > LARGEST_DOUBLE",
            "abs(value) > 2**1023",
            "an integer that a double holds is refused",
            "test_arguments.py::test_the_largest_integers_of_a_double",
        ),
        (
            "number and not isinstance(value, bool) and not",
            "number and not",
            "a boolean is a real number",
            "test_arguments.py::test_values_of_descriptors",
        ),
        (
            "return np.zeros((), dtype)",
            "return np.asarray(low).astype(dtype)",
            "NaN becomes the smallest integer",
            PADDING_TRUNCATES_AND_SATURATES,
        ),
        (
            "whole = int(rounded)",
            "whole = math.floor(rounded)",
            "a value is rounded down and not toward zero",
            PADDING_TRUNCATES_AND_SATURATES,
            "test_descriptors.py::test_float_values_in_plain_numbers",
        ),
        (
            "high if rounded > 0 else low",
            "high",
            "minus infinity becomes the largest integer",
            PADDING_TRUNCATES_AND_SATURATES,
        ),
        (
            "min(max(whole, low), high)",
            "min(whole, high)",
            "a value does not saturate below",
            PADDING_TRUNCATES_AND_SATURATES,
        ),
        (
            "cast and isinstance(value, float) and",
            "False and",
            "a float as the value of an integer tensor is not truncated",
            PADDING_TRUNCATES_AND_SATURATES,
        ),
        (
            'dtype.kind in "fiu"',
            'dtype.kind in "fi"',
            "unsigned wide integers are truncated in silence",
            "test_errors.py::test_what_is_no_array[a wide unsigned]",
        ),
        (
            "or dtype == np.complex128",
            "",
            "wide complex numbers are truncated in silence",
            "test_errors.py::test_what_is_no_array[a wide complex]",
        ),
        (
            "array.astype(default) if np.can_cast(least, default) else array",
            "array.astype(default)",
            "a wide Python integer is truncated",
            "test_errors.py::test_a_python_integer_of_more_than_32_bits",
        ),
        (
            "number and dtype.isnative and",
            "number and",
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
            "weak and array.dtype.kind in held,",
            "array.dtype.kind in held,",
            "an array of another type is converted",
            "test_operators.py::test_another_type_is_refused",
        ),
        (
            "if usual and math.copysign(1, value) > 0:",
            "if usual:",
            "minus zero becomes zero",
            "test_operators.py::test_number_takes_the_type",
        ),
        (
            "lax.convert_element_type(array, array.dtype)",
            "array",
            "a weak type comes out again",
            "test_operators.py::test_weak_operands_give_strong_results",
        ),
        (
            "isinstance(value, float) and not value.is_integer()",
            "False",
            "a fraction is an integer",
            "test_operators.py::test_fraction_is_no_integer",
        ),
        (
            "low <= value <= high else",
            "low <= value else",
            "a number past the largest integer is taken",
            "test_operators.py::test_number_is_refused",
        ),
        (
            "value in (0, 1)",
            "value in (0, 1, 2)",
            "2 is a truth value",
            "test_operators.py::test_number_is_refused",
        ),
        (
            '"biu" if is_integer(dtype) else "b"',
            '"biuf" if is_integer(dtype) else "b"',
            "a traced float becomes an integer",
            "test_operators.py::test_weak_type_does_not_lose_its_fraction",
        ),
    ),
)
