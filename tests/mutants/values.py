"""Faults in the values that models begin with."""

from tests.mutants.fault import faults

IMAGES_GO_THROUGH_UNCHANGED = "test_model.py::test_images_go_through_unchanged"
THE_DEFAULT_LIMIT = "test_command_line.py::test_the_default_limit"

FAULTS = (
    *faults(
        "dmljax._model.values",
        (
            "test_model.py",
            "test_model_format.py",
        ),
        (
            "1 <= array.size",
            "0 <= array.size",
            "a resource may be empty",
            "test_model.py::test_a_wrong_model_does_nothing",
        ),
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
        (
            "1 <= count",
            "0 <= count",
            "a count may be 0",
            "test_model.py::test_a_wrong_model_does_nothing",
        ),
        (
            "np.float64 if is_floating(data_type.dtype) else",
            "np.float32 if is_floating(data_type.dtype) else",
            "wide floats lose their precision",
            "test_model.py::test_float64_stays_exact_in_x64_mode",
        ),
        (
            "steps[:1] = start",
            "steps[:1] += start",
            "a sequence begins after its start",
            "test_model.py::test_initial_values",
        ),
        (
            "np.add.accumulate(steps, dtype=steps.dtype, out=steps)",
            "np.add.accumulate(steps, dtype=np.float64).astype(steps.dtype)",
            "a sequence is not added up in its type",
            "test_model.py::test_initial_values",
        ),
        (
            'np.frombuffer(content, data_type.dtype.newbyteorder("<"))',
            'np.frombuffer(content[::-1], data_type.dtype.newbyteorder("<"))',
            "a raw file is read from its end",
            "test_model.py::test_raw_files",
        ),
        (
            "data_type not in (DataType.UNKNOWN, own)",
            "False",
            "a file may have another type than the model says",
            "test_model.py::test_a_wrong_source_file",
        ),
        (
            "array.astype(np.uint8)",
            "(~array).astype(np.uint8)",
            "truth values of a file are inverted",
            "test_model.py::test_npy_files",
        ),
    ),
    *faults(
        "dmljax._model.images",
        (
            "test_model.py",
            "test_model_format.py",
            "test_model_differences.py",
        ),
        (
            "with _ONE_THREAD, warnings",
            "with warnings",
            "two threads change the filters of warnings",
            "test_model.py::test_filters_of_warnings_are_restored_when_threads_use_images",
        ),
        (
            "transpose(2, 0, 1).ravel()",
            "transpose(2, 1, 0).ravel()",
            "an image is transposed",
            IMAGES_GO_THROUGH_UNCHANGED,
        ),
        (
            "planes / 255",
            "planes / 256",
            "white is not 1",
            IMAGES_GO_THROUGH_UNCHANGED,
        ),
        (
            "(size.width, size.height)",
            "(size.height, size.width)",
            "an image is resampled to its sizes swapped",
            "test_model.py::test_an_image_resampled_to_its_own_size_is_the_same",
        ),
        (
            '4 if "A" in image.mode',
            '3 if "A" in image.mode',
            "an image loses its transparency",
            IMAGES_GO_THROUGH_UNCHANGED,
        ),
        (
            "sizes[0] != 1 or",
            "",
            "an image may be resampled to a batch",
            "test_model.py::test_a_wrong_image_resource",
        ),
        (
            "[2, 1, 0, 3]",
            "[2, 1, 3, 0]",
            "alpha and red change places",
            "test_model.py::test_the_channel_order",
        ),
        (
            "np.rint(unit * 255)",
            "(unit * 255)",
            "written pixels are rounded down",
            "test_model.py::test_written_floats_are_clipped_and_rounded",
        ),
        (
            "np.nan_to_num(values.astype(np.float64))",
            "np.nan_to_num(values.astype(np.float64), nan=1.0)",
            "NaN is white",
            "test_model.py::test_written_floats_are_clipped_and_rounded",
        ),
        (
            "or batch != 1 or",
            "or",
            "an image may be written of a batch",
            "test_model.py::test_an_image_that_cannot_be_written",
        ),
        (
            '"JPEG": (1, 3)}',
            '"JPEG": (1, 3, 4)}',
            "a JPEG may have four channels",
            "test_model.py::test_an_image_that_cannot_be_written",
        ),
    ),
    *faults(
        "dmljax._model.limits",
        (
            "test_model_format.py",
            "test_command_line.py",
        ),
        (
            "if self.used + size > self.limit:",
            "if size > self.limit:",
            "what is used already is forgotten",
            "test_model_format.py::test_a_budget_counts_all_that_is_taken",
        ),
        (
            "self.used += size",
            "self.used = size",
            "only the last size is counted",
            "test_model_format.py::test_a_budget_counts_all_that_is_taken",
        ),
        (
            "int(memory * DEFAULT_SHARE)",
            "int(memory)",
            "a model may use all of the memory",
            THE_DEFAULT_LIMIT,
        ),
        (
            "min(memory, int(text)) if",
            "max(memory, int(text)) if",
            "a container may use the whole machine's memory",
            THE_DEFAULT_LIMIT,
        ),
        (
            "WITHOUT_SYSCONF = 4 * 2**30",
            "WITHOUT_SYSCONF = 8 * 2**30",
            "another default where the machine does not say",
            THE_DEFAULT_LIMIT,
        ),
        (
            '"K": 2**10',
            '"K": 10**3',
            "a kilobyte has 1000 bytes",
            "test_model_format.py::test_sizes_of_memory",
        ),
        (
            '"T": 2**40',
            '"T": 2**30',
            "a terabyte is a gigabyte",
            "test_model_format.py::test_the_memory_of_the_compiled_program",
        ),
        (
            "if not stat.S_ISREG(status.st_mode):",
            "if False:",
            "a pipe is read",
            "test_model_format.py::test_a_pipe_is_not_waited_for",
        ),
        (
            "budget.check(factor * status.st_size, what)",
            "budget.check(status.st_size, what)",
            "what text takes as an object is not counted",
            "test_model_format.py::test_a_large_model_file",
        ),
    ),
)
