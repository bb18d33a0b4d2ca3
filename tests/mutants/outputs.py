"""Faults in what is shown, such as files, the schema, examples and the command line."""

from tests.mutants.fault import faults

AN_EXAMPLE_THAT_DISAGREES = "test_command_line.py::test_an_example_that_disagrees"
A_VERDICT_LOOKS_AT = (
    "test_command_line.py::test_a_verdict_looks_at_every_element_of_every_output"
)
A_WRONG_COMMAND_LINE = "test_command_line.py::test_a_wrong_command_line"
A_WRONG_MODEL_DOES = "test_model.py::test_a_wrong_model_does_nothing"
EXAMPLES = "test_command_line.py::test_examples"
THE_CALL_OF_AN_EXAMPLE = (
    "test_command_line.py::test_the_call_of_an_example_can_be_pasted"
)
THE_SCHEMA_ACCEPTS_EVERY = "test_model_format.py::test_the_schema_accepts_every_form"
THE_SCHEMA_REFUSES_WHAT_IS_REFUSED = (
    "test_model_format.py::test_the_schema_refuses_what_is_refused"
)

FAULTS = (
    *faults(
        "dmljax._model.output",
        (
            "test_model.py",
            "test_command_line.py",
            "test_model_differences.py",
        ),
        (
            "shutil.copymode(output.path, temporary)",
            "pass",
            "a private file becomes readable when it is replaced",
            "test_model.py::test_a_private_file_stays_private",
        ),
        (
            "if path in targets.planned:",
            "if False:",
            "a file is written twice that may not be replaced",
            "test_command_line.py::test_no_file_is_written_twice",
        ),
        (
            "cleanup.callback(temporary.unlink, missing_ok=True)",
            "cleanup.callback(temporary.exists)",
            "what cannot be written leaves files behind",
            "test_model.py::test_a_file_that_fails_late_leaves_nothing",
            "test_model.py::test_a_full_disk",
        ),
        (
            "not os.path.isdir(path.parent)",
            "False",
            "the folder of a file to write is not looked for",
            A_WRONG_MODEL_DOES,
        ),
        (
            'values.dtype.newbyteorder("<")',
            'values.dtype.newbyteorder(">")',
            "a raw file is written with its bytes swapped",
            "test_model.py::test_raw_files",
        ),
        (
            'f"{value:g}"',
            'f"{value:.4g}"',
            "numbers are printed with too few digits",
            "test_model.py::test_what_is_printed",
        ),
        (
            "if given and math.prod(given) != length:",
            "if False:",
            "dimensions may be those of another resource",
            A_WRONG_MODEL_DOES,
        ),
        (
            "if exists and not targets.clobber:",
            "if False:",
            "--no-clobber replaces files",
            "test_command_line.py::test_where_files_are_written",
        ),
        (
            "if exists and not os.path.isfile(path):",
            "if False:",
            "a folder may be replaced",
            A_WRONG_MODEL_DOES,
        ),
        (
            "    name = escaped(name)\n",
            "",
            "the name of a resource moves the cursor",
            "test_command_line.py::test_names_that_the_terminal_cannot_show",
        ),
        (
            'verb = "replaced" if',
            'verb = "wrote" if',
            "a file that is replaced is said to be new",
            "test_command_line.py::test_run",
        ),
        (
            "if len(given) > MOST_DIMENSIONS:",
            "if False:",
            "a file may have any number of dimensions",
            "test_model_format.py::test_fields_are_checked",
        ),
        (
            "os.path.realpath(targets.folder / name)",
            "os.path.realpath(name)",
            "--output-dir is ignored",
            "test_command_line.py::test_where_files_are_written",
        ),
        (
            'text.encode(encoding, "backslashreplace")',
            "text.encode(encoding)",
            "a name that cannot be printed is a traceback",
            "test_command_line.py::test_names_that_the_terminal_cannot_show",
        ),
    ),
    *faults(
        "dmljax._model.schema",
        ("test_model_format.py",),
        (
            '_named(or_null({"$ref": "#/$defs/binding"}))',
            '_named({"$ref": "#/$defs/binding"})',
            "a tensor without a binding is refused",
            THE_SCHEMA_ACCEPTS_EVERY,
        ),
        (
            '"items": NUMBER_SCHEMA, "minItems": 1}',
            '"items": NUMBER_SCHEMA}',
            "no values are taken",
            THE_SCHEMA_REFUSES_WHAT_IS_REFUSED,
        ),
        (
            '[f"{PREFIX}{name}", name]',
            '[f"{PREFIX}{name}"]',
            "the short name of an operator is refused",
            THE_SCHEMA_ACCEPTS_EVERY,
        ),
        (
            'for desc in ("desc", "Desc")\n    ]',
            'for desc in ("desc",)\n    ]',
            "Desc is not desc",
            THE_SCHEMA_ACCEPTS_EVERY,
        ),
        (
            'any_case = "".join(f"[{c.lower()}{c.upper()}]" for c in name)',
            "any_case = name",
            "a command in capitals is refused",
            THE_SCHEMA_ACCEPTS_EVERY,
        ),
        (
            '{"type": types, "bindings": {"$ref": "#/$defs/bindings"}}\n',
            '{"type": types}\n',
            "the bindings of a command may be anything",
            THE_SCHEMA_REFUSES_WHAT_IS_REFUSED,
        ),
        (
            '"items": schema_of_fields(MIXED_ELEMENT),',
            '"items": {},',
            "an element of a mixed list may be anything",
            THE_SCHEMA_REFUSES_WHAT_IS_REFUSED,
        ),
        (
            'inner | struct["properties"]',
            "inner",
            "fields beside the type are refused",
            THE_SCHEMA_ACCEPTS_EVERY,
        ),
        (
            '"items": {"$ref": "#/$defs/command"}}',
            '"items": {}}',
            "a command may be anything",
            THE_SCHEMA_REFUSES_WHAT_IS_REFUSED,
        ),
    ),
    *faults(
        "dmljax._pages.examples",
        (
            "test_command_line.py",
            "test_model.py",
        ),
        (
            "all(np.array_equal",
            "any(np.array_equal",
            "one right output of several is enough",
            A_VERDICT_LOOKS_AT,
        ),
        (
            "self.expected is not None and _agree(outputs, self.expected)",
            "self.expected is not None",
            "a page that errs excuses every result",
            A_VERDICT_LOOKS_AT,
        ),
        (
            "np.array_equal(output[: len(array)], array)",
            "np.array_equal(output[:1], array[:1])",
            "only the first rows are compared",
            A_VERDICT_LOOKS_AT,
        ),
        (
            "(INT32_MIN, 1)",
            "(INT32_MIN, 0)",
            "a bound of the page is wrong",
            EXAMPLES,
        ),
        (
            "(0, 0, 1, 2)",
            "(0, 0, 2, 1)",
            "a padding of the page is wrong",
            EXAMPLES,
        ),
        (
            "        9.0,\n",
            "        8.0,\n",
            "a value of the page is wrong",
            EXAMPLES,
        ),
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
    ),
    *faults(
        "dmljax._pages.text",
        ("test_command_line.py",),
        (
            'verdict)}"]), verdict',
            'verdict)}"]), Verdict.AGREES',
            "every example is right",
            AN_EXAMPLE_THAT_DISAGREES,
        ),
        (
            'f"{name}={value!r}"',
            'f"{c_name(name)}={value!r}"',
            "the call that is shown has C names",
            THE_CALL_OF_AN_EXAMPLE,
        ),
        (
            "if verdict is Verdict.KNOWN_ERROR:",
            "if False:",
            "a known error is shown as agreement",
            EXAMPLES,
        ),
        (
            "compared = len(verdicts) - wrong",
            "compared = len(verdicts)",
            "known errors are counted as compared",
            EXAMPLES,
        ),
        (
            "{count[Verdict.AGREES]} of",
            "{compared} of",
            "all examples are counted as right",
            AN_EXAMPLE_THAT_DISAGREES,
        ),
        (
            'f"Known error of the page: {example.known_error}"',
            '""',
            "a known error of a page that agrees is not shown",
            EXAMPLES,
        ),
        (
            'f"{type(value).__name__}.{value.name}"',
            "value.name",
            "the call has a mode without its enum",
            THE_CALL_OF_AN_EXAMPLE,
        ),
        (
            "{array.tolist()}, {array.dtype.name!r})",
            "{array.tolist()})",
            "the call has arrays without their types",
            THE_CALL_OF_AN_EXAMPLE,
        ),
        (
            "    lines.append(call(example))\n",
            "",
            "the call is not shown",
            EXAMPLES,
        ),
        (
            'f"{c_name(name)}: (Sizes',
            'f"{name}: (Sizes',
            "a tensor is not shown by its C name",
            EXAMPLES,
        ),
    ),
    *faults(
        "dmljax.__main__",
        ("test_command_line.py",),
        (
            "Targets(arguments.output_dir, not arguments.no_clobber)",
            "Targets(arguments.output_dir, True)",
            "files are replaced in spite of --no-clobber",
            "test_command_line.py::test_where_files_are_written",
        ),
        (
            "INTERRUPTED = 2, 1, 1, 130",
            "INTERRUPTED = 1, 1, 1, 130",
            "the status of wrong input is 1",
            A_WRONG_COMMAND_LINE,
        ),
        (
            "INTERRUPTED = 2, 1, 1, 130",
            "INTERRUPTED = 2, 0, 1, 130",
            "the status of a wrong result is 0",
            AN_EXAMPLE_THAT_DISAGREES,
        ),
        (
            "if Verdict.DISAGREES in verdicts",
            "if verdicts[-1] is Verdict.DISAGREES",
            "only the last example counts",
            AN_EXAMPLE_THAT_DISAGREES,
        ),
        (
            "checking = arguments.check or len(sources) > 1",
            "checking = arguments.check",
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
            "text = escaped(f\"dmljax: {' '.join(message.split())}\")",
            'text = f"dmljax: {message}"',
            "a message may have several lines",
            A_WRONG_COMMAND_LINE,
        ),
        (
            'text.encode(encoding, "backslashreplace").decode(encoding)',
            "text.encode(encoding).decode(encoding)",
            "a name that cannot be shown is a traceback",
            "test_command_line.py::test_an_error_that_the_terminal_cannot_show",
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
            A_WRONG_COMMAND_LINE,
        ),
        (
            '"\\n\\n".join(tables)',
            '"".join(tables)',
            "support tables run into one another",
            "test_command_line.py::test_support_of_all_operators",
        ),
    ),
)
