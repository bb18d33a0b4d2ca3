"""Faults in model files, their data, the command line and the pages' examples."""

from tests.mutants.fault import faults

WRONG = "test_model.py::test_a_wrong_model_does_nothing"
VALUES = "test_model.py::test_initial_values"
NPY = "test_model.py::test_npy_files"
SOURCE = "test_model.py::test_a_wrong_source_file"
IMAGE = "test_model.py::test_a_wrong_image_resource"
THROUGH = "test_model.py::test_images_go_through_unchanged"
WRITTEN = "test_model.py::test_written_floats_are_clipped_and_rounded"
UNWRITABLE = "test_model.py::test_an_image_that_cannot_be_written"
LINE = "test_command_line.py::test_a_wrong_command_line"
EXAMPLES = "test_command_line.py::test_examples"
VERDICT = "test_command_line.py::test_a_verdict_looks_at_every_element_of_every_output"

MODEL = faults(
    "dmljax._model",
    ("test_model.py", "test_command_line.py"),
    (
        "-(-values.nbytes // 4) * 4",
        "values.nbytes",
        "the size of a resource is not rounded up",
        "test_model.py::test_a_total_size_counts_the_rounding_to_four_bytes",
    ),
    (
        "not values.nbytes <= size <=",
        "not 0 <= size <=",
        "a resource may be smaller than its values",
        WRONG,
    ),
    (
        "whole[: values.size] = values",
        "whole[-values.size :] = values",
        "the values are at the end of a larger resource",
        "test_model.py::test_size_in_bytes_makes_room_in_whole_elements",
    ),
    (
        "name.upper().removeprefix(PREFIX)",
        "name.removeprefix(PREFIX)",
        "the name of an operator has to be in capitals",
        "test_command_line.py::test_support_of_one_operator",
    ),
    (
        "described.check(max(FeatureLevel))",
        "described.check(FeatureLevel.V6_3)",
        "a model is not checked at the newest level",
        "test_model.py::test_a_resource_is_shown_as_it_is_at_the_command",
    ),
    (
        'first | take(fields, "bindings", dict)',
        'take(fields, "bindings", dict) | first',
        "a dispatchable's bindings win over the command's",
        "test_model.py::test_bindings_of_the_dispatchable_serve_too",
    ),
    (
        "for key, value in given.items() if value}",
        "for key, value in given.items()}",
        "an optional tensor may not be null",
        "test_model.py::test_an_optional_tensor_is_absent_or_null",
    ),
    (
        "len(set(outputs)) < len(outputs)",
        "len(set(outputs)) > len(outputs)",
        "two outputs may be one resource",
        "test_model.py::test_two_outputs_in_one_resource",
    ),
    (
        "isinstance(value, list) and len(value) == 1",
        "isinstance(value, list)",
        "the second of several bindings is ignored",
        WRONG,
    ),
    (
        'isinstance(source, dict) and not source.get("elementOffset")',
        "isinstance(source, dict)",
        "the offset of a binding is ignored",
        WRONG,
    ),
    (
        "tensor.data_type != resource.data_type",
        "tensor.dtype.itemsize != resource.data_type.dtype.itemsize",
        "a tensor may have another type than its resource",
        WRONG,
    ),
    (
        "tensor.extent > resource.values.size",
        "tensor.extent > resource.values.size + 1",
        "a tensor may span more than its resource",
        WRONG,
    ),
    (
        "total > resource.size_in_bytes",
        "total > 2 * resource.size_in_bytes",
        "a tensor may have more bytes than its resource",
        WRONG,
    ),
    (
        "write(tensor, value, state[bindings[name]])",
        "write(tensor, value, 0 * state[bindings[name]])",
        "elements that no output covers are lost",
        "test_model.py::test_elements_that_no_output_covers_stay",
    ),
    (
        "len(fields) < len(pairs)",
        "len(fields) > len(pairs)",
        "a name may occur twice in one object",
        "test_model.py::test_a_file_that_is_no_model",
    ),
    (
        "cleanup.callback(temporary.unlink, missing_ok=True)",
        "cleanup.callback(temporary.exists)",
        "what cannot be written leaves files behind",
        "test_model.py::test_a_file_that_fails_late_leaves_nothing",
        "test_model.py::test_a_full_disk",
    ),
    (
        "if isinstance(command, Dispatch):",
        "if isinstance(command, Dispatch) and not snapshots:",
        "nothing runs after the first print",
        "test_model.py::test_a_resource_is_shown_as_it_is_at_the_command",
    ),
    (
        "not os.path.isdir(path.parent)",
        "False",
        "the folder of a file to write is not looked for",
        WRONG,
    ),
)

DATA = faults(
    "dmljax._model_data",
    ("test_model.py",),
    (
        "if type(value) is not kind:",
        "if not isinstance(value, kind):",
        "true and false are integers of a model",
        WRONG,
    ),
    (
        "type(value) is int and value >= 1",
        "type(value) is int",
        "dimensions may be negative",
        WRONG,
    ),
    ("1 <= array.size", "0 <= array.size", "a resource may be empty", WRONG),
    (
        "limits.min <= value <= limits.max",
        "value <= limits.max",
        "a value may be too small for its type",
        "test_model.py::test_a_wrong_number_in_uint8_data",
    ),
    (
        "type(value) is int and limits",
        "isinstance(value, int) and limits",
        "true and false are values",
        "test_model.py::test_a_wrong_number_in_uint8_data",
    ),
    ("1 <= count", "0 <= count", "a count may be 0", WRONG),
    (
        "np.float64 if floating else",
        "np.float32 if floating else",
        "wide floats lose their precision",
        "test_model.py::test_float64_stays_exact_in_x64_mode",
    ),
    (
        "steps[:1] = start",
        "steps[:1] += start",
        "a sequence begins after its start",
        VALUES,
    ),
    (
        "np.add.accumulate(steps, dtype=steps.dtype)",
        "np.add.accumulate(steps, dtype=np.float64).astype(steps.dtype)",
        "a sequence is not added up in its type",
        VALUES,
    ),
    (
        'data_type.dtype.newbyteorder("<")',
        'data_type.dtype.newbyteorder(">")',
        "a raw file is read with its bytes swapped",
        "test_model.py::test_raw_files",
    ),
    (
        'values.dtype.newbyteorder("<")',
        'values.dtype.newbyteorder(">")',
        "a raw file is written with its bytes swapped",
        "test_model.py::test_raw_files",
    ),
    (
        "data_type not in (DataType.UNKNOWN, own)",
        "False",
        "a file may have another type than the model says",
        SOURCE,
    ),
    (
        "transpose(2, 0, 1).ravel()",
        "transpose(2, 1, 0).ravel()",
        "an image is transposed",
        THROUGH,
    ),
    ("planes / 255", "planes / 256", "white is not 1", THROUGH),
    (
        "image.resize((width, height)",
        "image.resize((height, width)",
        "an image is resampled to its sizes swapped",
        "test_model.py::test_an_image_resampled_to_its_own_size_is_the_same",
    ),
    (
        '4 if "A" in image.mode',
        '3 if "A" in image.mode',
        "an image loses its transparency",
        THROUGH,
    ),
    (
        "sizes[0] != 1 or",
        "",
        "an image may be resampled to a batch",
        IMAGE,
    ),
    (
        "[2, 1, 0, 3]",
        "[2, 1, 3, 0]",
        "alpha and red change places",
        "test_model.py::test_the_channel_order",
    ),
    (
        'f"{value:g}"',
        'f"{value:.4g}"',
        "numbers are printed with too few digits",
        "test_model.py::test_what_is_printed",
    ),
    (
        "np.rint(unit * 255)",
        "(unit * 255)",
        "written pixels are rounded down",
        WRITTEN,
    ),
    (
        "np.nan_to_num(values.astype(np.float64))",
        "np.nan_to_num(values.astype(np.float64), nan=1.0)",
        "NaN is white",
        WRITTEN,
    ),
    (
        "or batch != 1 or",
        "or",
        "an image may be written of a batch",
        UNWRITABLE,
    ),
    (
        '(1, 3) if extension != ".png" else (1, 3, 4)',
        "(1, 3, 4)",
        "a JPEG may have four channels",
        UNWRITABLE,
    ),
    (
        "array.astype(np.uint8)",
        "(~array).astype(np.uint8)",
        "truth values of a file are inverted",
        NPY,
    ),
)

COMMAND_LINE = faults(
    "dmljax.__main__",
    ("test_command_line.py",),
    (
        "NO_READER = 2, 1, 1",
        "NO_READER = 1, 1, 1",
        "the status of wrong input is 1",
        LINE,
    ),
    (
        "NO_READER = 2, 1, 1",
        "NO_READER = 2, 0, 1",
        "the status of a wrong result is 0",
        "test_command_line.py::test_an_example_that_disagrees",
    ),
    (
        "right &= agrees",
        "right = agrees",
        "only the last example counts",
        "test_command_line.py::test_an_example_that_disagrees",
    ),
    (
        "[parse_model(path) for path in arguments.models]",
        "(parse_model(path) for path in arguments.models)",
        "models run before the next ones are checked",
        "test_command_line.py::test_all_models_are_checked_before_any_runs",
    ),
    (
        "int(done.code or 0)",
        "int(done.code or 1)",
        "--help is an error",
        "test_command_line.py::test_help_and_version",
    ),
    (
        "*str(error).split()",
        "str(error)",
        "a message may have several lines",
        "test_command_line.py::test_a_wrong_model",
    ),
    (
        "OSError, UnicodeError)",
        "OSError)",
        "a name that cannot be shown is a traceback",
        "test_command_line.py::test_a_name_that_the_terminal_cannot_show",
    ),
    (
        "if arguments.timing:",
        "if not arguments.timing:",
        "times are shown to who does not ask",
        "test_command_line.py::test_timing",
    ),
    (
        "find_device(arguments.device)",
        "find_device(None)",
        "--device is ignored",
        LINE,
    ),
    (
        '"\\n\\n".join(tables)',
        '"".join(tables)',
        "support tables run into one another",
        "test_command_line.py::test_support_of_all_operators",
    ),
)

PAGE_EXAMPLES = faults(
    "dmljax._examples",
    ("test_command_line.py", "test_model.py"),
    (
        "all(np.array_equal",
        "any(np.array_equal",
        "one right output of several is enough",
        VERDICT,
    ),
    (
        "self.expected is not None and _agree(outputs, self.expected)",
        "self.expected is not None",
        "a page that errs excuses every result",
        VERDICT,
    ),
    (
        "np.array_equal(output[: len(array)], array)",
        "np.array_equal(output[:1], array[:1])",
        "only the first rows are compared",
        VERDICT,
    ),
    (
        'return "\\n    ".join(lines), verdict is not None',
        'return "\\n    ".join(lines), True',
        "every example is right",
        "test_command_line.py::test_an_example_that_disagrees",
    ),
    ("(INT32_MIN, 1)", "(INT32_MIN, 0)", "a bound of the page is wrong", EXAMPLES),
    ("(0, 0, 1, 2)", "(0, 0, 2, 1)", "a padding of the page is wrong", EXAMPLES),
    ("        9.0,\n", "        8.0,\n", "a value of the page is wrong", EXAMPLES),
    (
        'f"DML_{self.desc.operator}_OPERATOR_DESC"',
        'f"DML_{self.desc.operator}_DESC"',
        "the name of a page is wrong",
        EXAMPLES,
    ),
    (
        "[[[[-3], [100], [3]]]]",
        "[[[[-4], [100], [3]]]]",
        "an index of the page is wrong",
        EXAMPLES,
    ),
    (
        "arguments.append(field.name)",
        "arguments.append(c_name(field.name))",
        "the call that is shown has C names",
        EXAMPLES,
    ),
)

FAULTS = (*MODEL, *DATA, *COMMAND_LINE, *PAGE_EXAMPLES)
