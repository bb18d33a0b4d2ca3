"""Faults in how model files are read and run."""

from tests.mutants.fault import faults

A_RESOURCE_IS_SHOWN = "test_model.py::test_a_resource_is_shown_as_it_is_at_the_command"
A_TENSOR_IN_A_BUFFER = "test_model_format.py::test_a_tensor_in_a_buffer"
A_WRONG_MODEL_DOES = "test_model.py::test_a_wrong_model_does_nothing"
COMMENTS_AND_TRAILING_COMMAS = "test_model_format.py::test_comments_and_trailing_commas"
FIELDS_ARE_CHECKED = "test_model_format.py::test_fields_are_checked"
TEXT_THAT_IS_WRONG = "test_model_format.py::test_text_that_is_wrong"

FAULTS = (
    *faults(
        "dmljax._model.jsonc",
        (
            "test_model_format.py",
            "test_model.py",
        ),
        (
            "len(fields) < len(pairs)",
            "len(fields) > len(pairs)",
            "a name may occur twice in one object",
            "test_model.py::test_a_file_that_is_no_model",
        ),
        (
            'decode("utf-8-sig")',
            'decode("utf-8")',
            "a byte order mark is an error",
            COMMENTS_AND_TRAILING_COMMAS,
        ),
        (
            "COMMA.sub(_blank, COMMENT.sub(_blank, text))",
            "COMMENT.sub(_blank, COMMA.sub(_blank, text))",
            "a comma before a comment is not the last",
            COMMENTS_AND_TRAILING_COMMAS,
        ),
        (
            'r\'"(?:[^"\\\\]|\\\\.)*+"?\'',
            'r\'"[^"]*+"?\'',
            "a quote in a string ends it",
            COMMENTS_AND_TRAILING_COMMAS,
        ),
        (
            're.sub(r"[^\\n\\r]", " ", match[1])',
            '""',
            "columns are counted without comments",
            TEXT_THAT_IS_WRONG,
        ),
        (
            "(//[^\\n\\r]*+|",
            "(//.*+|",
            "a comment goes on in the next line",
            COMMENTS_AND_TRAILING_COMMAS,
        ),
        (
            "|[\\[{{,]\\s*+,|",
            "|",
            "a comma with nothing before it is left out",
            TEXT_THAT_IS_WRONG,
        ),
        (
            ", parse_constant=_no_constant",
            "",
            "NaN is a number of JSON",
            TEXT_THAT_IS_WRONG,
        ),
        (
            "line {error.lineno}, column {error.colno}",
            "line {error.colno}, column {error.lineno}",
            "lines and columns change places",
            TEXT_THAT_IS_WRONG,
        ),
        (
            "if name in seen:",
            "if name not in seen:",
            "the first name of an object is taken for a duplicate",
            "test_model_format.py::test_a_duplicate_among_many_names",
        ),
    ),
    *faults(
        "dmljax._model.fields",
        (
            "test_model_format.py",
            "test_model.py",
        ),
        (
            "if len(given) > 1:",
            "if len(given) > 2:",
            "of two spellings of a field one is ignored",
            "test_model.py::test_a_wrong_model_does_nothing",
        ),
        (
            "lambda value: type(value) in kinds",
            "lambda value: isinstance(value, kinds)",
            "true and false are integers of a model",
            "test_model.py::test_a_wrong_number_in_uint8_data",
        ),
        (
            "type(value) is int and 1 <= value < 2**32",
            "type(value) is int and value < 2**32",
            "dimensions may be negative",
            A_WRONG_MODEL_DOES,
        ),
        (
            "type(value) is int and 0 <= value < 2**64",
            "type(value) is int",
            "an offset may be negative",
            "test_model_format.py::test_a_wrong_binding",
        ),
        (
            "type(value) is list and all(map(test, value))",
            "type(value) is list",
            "a list may hold anything",
            A_WRONG_MODEL_DOES,
        ),
        (
            "for name in names if prefix",
            "for name in names if not prefix",
            "the full name of a type is not known",
            "test_model.py::test_initial_values",
        ),
        (
            "unknown = [key for key in fields if key not in table]",
            "unknown: list[str] = []",
            "an unknown field is ignored",
            FIELDS_ARE_CHECKED,
        ),
        (
            "if key not in fields and field.required:",
            "if False:",
            "a field that is required may be missing",
            A_WRONG_MODEL_DOES,
        ),
        (
            "if key in fields and (field.required or fields[key] is not None):",
            "if key in fields and field.required:",
            "fields that are not required may hold anything",
            FIELDS_ARE_CHECKED,
        ),
        (
            "for key, item in fields.items() if item is not None",
            "for key, item in fields.items()",
            "null is not absent",
            "test_model_differences.py::test_null",
        ),
        (
            "        if not field.required:\n",
            "        if field.required:\n",
            "the schema takes null for what is required alone",
            "test_model_format.py::test_the_schema_accepts_every_form",
        ),
        (
            "needed = [key for key, field in table.items() if field.required]",
            "needed: list[str] = []",
            "the schema requires nothing",
            "test_model_format.py::test_the_schema_refuses_what_is_refused",
        ),
        (
            'in UP_TO_64_BITS), "UNKNOWN")',
            "in UP_TO_64_BITS),)",
            "a list of mixed types cannot say so",
            "test_model_format.py::test_a_list_of_mixed_types",
        ),
    ),
    *faults(
        "dmljax._model.format",
        (
            "test_model.py",
            "test_model_format.py",
            "test_command_line.py",
        ),
        (
            "self.content[: self.length * self.dtype.itemsize]",
            "self.content[: self.length]",
            "the values of a resource end too early",
            "test_model.py::test_initial_values",
        ),
        (
            'Field(OBJECT, "Buffers, by name.", required=True)',
            'Field(OBJECT, "Buffers, by name.")',
            "a model needs no resources",
            A_WRONG_MODEL_DOES,
        ),
        (
            "in (list, dict, str)",
            "in (list, dict)",
            "deferred values are not known",
            A_WRONG_MODEL_DOES,
        ),
        (
            '"verbose": Field(BOOLEAN',
            '"verbose": Field(UNSIGNED',
            "verbose is a number",
            FIELDS_ARE_CHECKED,
        ),
        (
            '"elementOffset": Field(UNSIGNED',
            '"elementOffset": Field(STRING',
            "an offset is a string",
            A_TENSOR_IN_A_BUFFER,
        ),
        (
            '"dimensions": Field(SIZES',
            '"dimensions": Field(INTEGERS',
            "dimensions may be negative",
            A_WRONG_MODEL_DOES,
        ),
        (
            'Field(choice(["scale"])',
            "Field(STRING",
            "an image may be scaled in any way",
            "test_model.py::test_a_wrong_image_resource",
        ),
        (
            'PREFIX = "DML_OPERATOR_"',
            'PREFIX = "DML_"',
            "an operator is not known by its full name",
            "test_command_line.py::test_support_of_one_operator",
        ),
        (
            "if not isinstance(c, Dispatch))",
            "if isinstance(c, Print))",
            "a file is no output",
            "test_command_line.py::test_run",
        ),
    ),
    *faults(
        "dmljax._model.parse",
        (
            "test_model.py",
            "test_model_format.py",
            "test_command_line.py",
        ),
        (
            'raise ModelError(f"standard input cannot be read',
            'raise OSError(f"standard input cannot be read',
            "an error of standard input is one of the output",
            "test_command_line.py::test_standard_input",
        ),
        (
            "-(-values.nbytes // 4) * 4",
            "values.nbytes",
            "the size of a resource is not rounded up",
            "test_model.py::test_a_total_size_counts_the_rounding_to_four_bytes",
        ),
        (
            "not offset + values.nbytes <= size <=",
            "not 0 <= size <=",
            "a resource may be smaller than its values",
            A_WRONG_MODEL_DOES,
        ),
        (
            "content[offset : offset + values.nbytes] =",
            "content[size - values.nbytes :] =",
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
            "desc.check(max(FeatureLevel))",
            "desc.check(FeatureLevel.V6_3)",
            "a model is not checked at the newest level",
            A_RESOURCE_IS_SHOWN,
        ),
        (
            '{**first, **fields["bindings"]}',
            '{**fields["bindings"], **first}',
            "a dispatchable's bindings win over the command's",
            "test_model.py::test_bindings_of_the_dispatchable_serve_too",
        ),
        (
            "for key, value in given.items() if value is not None}",
            "for key, value in given.items()}",
            "an optional tensor may not be null",
            "test_model.py::test_an_optional_tensor_is_absent_or_null",
        ),
        (
            "if other == name and offset < stop",
            "if other != name and offset < stop",
            "two outputs may be one resource",
            "test_model.py::test_two_outputs_in_one_resource",
        ),
        (
            "isinstance(value, list) and len(value) == 1",
            "isinstance(value, list)",
            "the second of several bindings is ignored",
            A_WRONG_MODEL_DOES,
        ),
        (
            'fields.get("elementOffset", 0) * element',
            "0",
            "the offset of a binding is ignored",
            A_WRONG_MODEL_DOES,
        ),
        (
            "same = tensor.data_type == resource.data_type and",
            "same =",
            "a tensor of another type is read as the resource's",
            A_TENSOR_IN_A_BUFFER,
        ),
        (
            "if tensor.extent > have:",
            "if tensor.extent > have + 1:",
            "a tensor may span more than its resource",
            A_WRONG_MODEL_DOES,
        ),
        (
            "if total > room:",
            "if total > 2 * room:",
            "a tensor may have more bytes than its resource",
            A_WRONG_MODEL_DOES,
        ),
    ),
    *faults(
        "dmljax._model.run",
        (
            "test_model.py",
            "test_model_format.py",
            "test_command_line.py",
        ),
        (
            "with jax.disable_jit(False), jax.debug_nans(False), jax",
            "with jax",
            "settings for debugging hold for models",
            "test_model.py::test_settings_for_debugging_do_not_change_a_model",
        ),
        (
            'if reason else ""',
            'if not device else ""',
            "why a device can't be started is not said",
            "test_model.py::test_a_device_that_jax_cannot_start",
        ),
        (
            "lax.bitcast_convert_type(lax.optimization_barrier(values), dtype)",
            "lax.bitcast_convert_type(values, dtype)",
            "XLA may join elements and their bytes in one kernel",
            "test_model.py::test_elements_and_their_bytes_are_returned_by_one_program",
        ),
        (
            "write(tensor, value, elements), offset",
            "write(tensor, value, 0 * elements), offset",
            "elements that no output covers are lost",
            "test_model.py::test_elements_that_no_output_covers_stay",
        ),
        (
            "if isinstance(command, Dispatch):\n                with",
            (
                "if isinstance(command, Dispatch) and not versions:\n           "
                "     with"
            ),
            "nothing runs after the first dispatch that is shown",
            A_RESOURCE_IS_SHOWN,
        ),
        (
            "elements[: resource.length]",
            "elements",
            "the rest of a buffer is shown",
            "test_model_format.py::test_an_output_as_another_type",
        ),
        (
            "resource.content if name in model.reinterpreted else resource.values",
            "resource.values",
            "a buffer is never bytes",
            A_TENSOR_IN_A_BUFFER,
        ),
        (
            "return buffer[offset // width :] if offset else buffer",
            "return buffer",
            "the offset of a binding is ignored where the type is the same",
            A_TENSOR_IN_A_BUFFER,
        ),
        (
            "part = buffer[offset : offset + count * width]",
            "part = buffer[: count * width]",
            "the offset of a binding is ignored where the type is another",
            A_TENSOR_IN_A_BUFFER,
        ),
        (
            "start = offset // buffer.dtype.itemsize",
            "start = offset",
            "an output is written as many elements later as it should bytes",
            "test_model_format.py::test_the_alignment_that_a_tensor_is_promised",
        ),
        (
            "if version[1]:",
            "if version[1] > 1:",
            "what one dispatch has written is shown as before",
            A_RESOURCE_IS_SHOWN,
        ),
        (
            'model.budget.check(needs.temp_size_in_bytes, "the compiled program")',
            "pass",
            "what the program works with is not counted",
            "test_model_format.py::test_the_memory_of_the_compiled_program",
        ),
        (
            "buffer = changed.get(resource, state[resource])",
            "buffer = state[resource]",
            "the second output in a buffer erases the first",
            "test_model_format.py::test_an_output_as_another_type",
        ),
        (
            "if device not in present:",
            "if False:",
            "a device that is not there is no error of the model",
            "test_model.py::test_a_device_that_is_not_there",
        ),
    ),
)
