"""The format of model files: all that DxDispatch reads besides the plain case."""

import copy
import dataclasses
import enum
import json
import os
import re

import jax
import jsonschema
import numpy as np
import pytest

import dmljax
from dmljax import __main__ as command_line
from dmljax._json import enum_prefix, from_json, schema_of, to_json
from dmljax._model import limits as _memory
from dmljax._model import parse as _model_parse
from dmljax._model import run as _model
from dmljax._model.jsonc import read_jsonc
from dmljax._model.schema import model_schema
from dmljax._operators import DESCRIPTORS
from dmljax._overlap import overlap
from docs import make_models
from tests import oracles
from tests.test_model import (
    data,
    dispatch,
    edited,
    model,
    pad,
    padding_model,
    save,
    show,
)

ROOT = make_models.FOLDER.parent.parent


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(source, **options):
    """Returns the message that refuses a model: one line that is not too long."""
    with pytest.raises(dmljax.ModelError) as caught:
        dmljax.run_model(source, **options)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 500
    return message


# Text


COMMENTED = """// A comment /* not a block
{ "a//b": "/* no */ comment \\" // ", /* one
 */ "list": [1, 2, // two
 3,], "object": {"x": 1 , /* , */ },
}  // the end"""


def test_comments_and_trailing_commas():
    expected = {"a//b": '/* no */ comment " // ', "list": [1, 2, 3], "object": {"x": 1}}
    assert read_jsonc(COMMENTED.encode()) == expected
    assert read_jsonc(b'\xef\xbb\xbf{"a": "\xc3\xa9",}') == {"a": "\u00e9"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[,]", "line 1, column 2"),
        ("[1,,]", "line 1, column 4"),
        ("{,}", "line 1, column 2"),
        ("/* a\n b */ [1 /* , */ 2]", "line 2, column 18"),
        ("[1, // one,\r\n 2 3]", "line 2, column 4"),
        ("[1] /* open", "line 1, column 5: Extra data"),
        ('["open // ]', "line 1, column 2: Unterminated"),
        ("[1] [2]", "line 1, column 5: Extra data"),
        ("[NaN]", 'NaN is not a number in JSON; write "nan"'),
        ("[-Infinity]", "-Infinity is not a number in JSON"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "the name 'c' occurs twice"),
        ("1" * 5000, "an integer of thousands of digits"),
    ],
)
def test_text_that_is_wrong(text, message):
    with pytest.raises(dmljax.ModelError, match=re.escape(message)):
        read_jsonc(text.encode())


@pytest.mark.parametrize(
    "text",
    ['"\\' * 200_000, "/*" * 200_000, "[" + "," * 200_000, "[" + ", " * 200_000 + "/"],
)
def test_text_is_read_in_linear_time(text):
    with pytest.raises(dmljax.ModelError):
        read_jsonc(text.encode())


def test_a_duplicate_among_many_names():
    text = json.dumps({str(n): n for n in range(40_000)})[:-1] + ', "39999": 1}'
    with pytest.raises(dmljax.ModelError, match="'39999' occurs twice"):
        read_jsonc(text.encode())


# Resources


def test_an_offset_of_the_initial_values():
    source = padding_model()
    more = {"initialValuesOffsetInBytes": 8, "sizeInBytes": 20}
    source["resources"]["input"] |= more
    source["resources"]["output"]["initialValues"]["valueCount"] = 7
    source["dispatchables"]["pad"] = pad((5,))
    output = dmljax.run_model(source)["output"]
    assert output.tolist() == [0, 0, 0, 1, 2, 3, 3]


def test_an_offset_between_elements():
    more = {"initialValuesOffsetInBytes": 3, "sizeInBytes": 8}
    source = model({"r": data("UINT16", [0x0201, 0x0403], **more)}, {})
    assert dmljax.run_model(source)["r"].tolist() == [0, 0x0100, 0x0302, 0x0004]


@pytest.mark.parametrize("more", [{}, {"sizeInBytes": 19}])
def test_values_that_reach_past_the_buffer(more):
    more["initialValuesOffsetInBytes"] = 8
    source = edited(
        padding_model(), "resources", "input", data("FLOAT32", [1] * 3, **more)
    )
    assert "have 12 bytes and begin at byte 8; it must be at least 20" in refusal(
        source
    )


MIXED = [
    {"name": "count", "type": "UINT32", "value": 6},
    {"type": "DML_TENSOR_DATA_TYPE_FLOAT16", "value": 1.5},
    {"type": "INT8", "value": -1},
    {"type": "FLOAT64", "value": "inf"},
]
MIXED_BYTES = np.uint32(6).tobytes() + np.float16(1.5).tobytes() + b"\xff"
MIXED_BYTES += np.float64(np.inf).tobytes()


def test_a_list_of_mixed_types():
    more = {"initialValuesDataType": "UNKNOWN", "sizeInBytes": 20}
    resource = {"initialValues": MIXED} | more
    source = model({"r": resource}, {}, save("r", "r.bin"))
    expected = MIXED_BYTES + bytes(5)
    assert dmljax.run_model(source)["r"].tobytes() == expected
    with open("r.bin", "rb") as file:
        assert file.read() == expected


@pytest.mark.parametrize(
    ("values", "command", "message"),
    [
        (MIXED, show("r"), "cannot be printed; write it to a file"),
        (MIXED, save("r", "r.npy"), "write raw data (.bin)"),
        ([*MIXED, 7], show("r"), "initialValues[4]: it is 7; it must be an object"),
        ([{"type": "INT8", "value": 128}], show("r"), "field 'value' is 128; INT8"),
        ([{"type": "INT8"}], show("r"), "initialValues[0]: the field 'value' is miss"),
        ([{"type": "UNKNOWN", "value": 1}], show("r"), "'type' is UNKNOWN"),
        ([{"type": "INT8", "value": 1, "v": 1}], show("r"), "no field 'v'"),
        ([1], show("r"), "'initialValuesDataType' is missing or UNKNOWN"),
    ],
)
def test_a_wrong_list_of_mixed_types(values, command, message):
    assert message in refusal(model({"r": {"initialValues": values}}, {}, command))


def test_a_source_in_the_current_directory(folder):
    (folder / "models").mkdir()
    np.array([1, 2], "<u2").tofile("in.bin")
    source = model({"r": data("UINT16", {"sourcePath": "in.bin"})}, {})
    (folder / "models/m.json").write_text(json.dumps(source))
    assert dmljax.run_model("models/m.json")["r"].tolist() == [1, 2]
    np.array([3, 4], "<u2").tofile("models/in.bin")
    assert dmljax.run_model("models/m.json")["r"].tolist() == [3, 4]


# Bindings


def bound(data_type, values, binding, sizes=(2,), tensor_type="UINT16", **more):
    """Returns the elements that a tensor has in a resource of another type."""
    nothing = (0,) * len(sizes)
    source = model(
        {
            "in": data(data_type, values, **more),
            "out": data(tensor_type, {"valueCount": int(np.prod(sizes)), "value": 0}),
        },
        {"pad": pad(sizes, nothing, nothing, data_type=tensor_type)},
        dispatch("pad", InputTensor=binding, OutputTensor="out"),
    )
    return dmljax.run_model(source)["out"].tolist()


@pytest.mark.parametrize(
    ("data_type", "values", "binding", "expected"),
    [
        ("UINT32", [0x00020001], "in", [1, 2]),
        ("UINT8", [1, 0, 2, 0], "in", [1, 2]),
        ("FLOAT32", [1.0], "in", [0, 0x3F80]),
        ("UINT16", [9, 1, 2], {"name": "in", "elementOffset": 1}, [1, 2]),
        ("UINT8", [9, 1, 0, 2, 0], {"name": "in", "elementOffset": 1}, [1, 2]),
        (
            "UINT16",
            [0x0100, 0x0200, 0],
            {"name": "in", "elementOffset": 1, "elementSizeInBytes": 1},
            [1, 2],
        ),
        ("UINT16", [1, 2], {"name": "in", "elementCount": 2}, [1, 2]),
        (
            "UINT8",
            [9, 9, 1, 0, 2, 0],
            [{"name": "in", "elementOffset": 1, "elementSizeInBytes": 2}],
            [1, 2],
        ),
        ("UINT8", [1, 0, 2], "in", [1, 2]),  # the buffer is rounded up to 4 bytes
        (
            "UINT16",
            [1, 2],
            {"name": "in", "format": "R16_UINT", "elementStride": 9, "shape": [7]},
            [1, 2],
        ),
    ],
)
def test_a_tensor_in_a_buffer(data_type, values, binding, expected):
    assert bound(data_type, values, binding) == expected


@pytest.mark.parametrize(
    ("binding", "message"),
    [
        ({"name": "in", "elementOffset": 1}, "spans 2 elements of UINT16, .* has 1"),
        ({"name": "in", "elementOffset": 9}, "'in' has 0 where it is bound"),
        ({"name": "in", "elementCount": 1}, "spans 2 elements of UINT16, .* has 1"),
        ({"name": "in", "elementCount": 3}, "reaches to byte 6, while .* has 4 bytes"),
        ({"name": "in", "elementOffset": -1}, "'elementOffset' is -1; it must be an"),
        ({"name": "in", "format": 1}, "the field 'format' is 1; it must be a string"),
        ({"name": "in", "shape": 1}, "the field 'shape' is 1; it must be a list of"),
        ({"name": "in", "elementOfset": 1}, "no field 'elementOfset'; the fields are"),
        ({"elementOffset": 1}, "the field 'name' is missing"),
        (["in", "in"], "must be the name of one resource"),
        ("", "resource '' is not in the model"),
    ],
)
def test_a_wrong_binding(binding, message):
    with pytest.raises(dmljax.ModelError, match=message):
        bound("UINT16", [1, 2], binding)


def test_the_alignment_that_a_tensor_is_promised():
    source = model(
        {"in": data("UINT16", [1, 2, 3, 4])},
        {"pad": pad((2,), (0,), (0,), data_type="UINT16")},
        dispatch(
            "pad",
            InputTensor={"name": "in", "elementOffset": 1},
            OutputTensor={"name": "in", "elementOffset": 2},
        ),
    )
    assert dmljax.run_model(source)["in"].tolist() == [1, 2, 2, 3]
    tensor = source["dispatchables"]["pad"]["desc"]["InputTensor"]
    tensor["GuaranteedBaseOffsetAlignment"] = 4
    assert "begins at byte 2, while the tensor has" in refusal(source)


def test_an_output_as_another_type():
    desc = {
        "InputTensor": {"DataType": "UINT8", "Sizes": [3]},
        "OutputCountTensor": {"DataType": "UINT32", "Sizes": [1]},
        "OutputCoordinatesTensor": {"DataType": "UINT32", "Sizes": [3, 1]},
    }
    source = model(
        {"in": data("UINT8", [5, 0, 7]), "out": data("UINT16", [9] * 9)},
        {"nz": {"type": "NONZERO_COORDINATES", **desc}},
        dispatch(
            "nz",
            InputTensor="in",
            OutputCountTensor={"name": "out", "elementOffset": 1},
            OutputCoordinatesTensor={"name": "out", "elementOffset": 3},
        ),
    )
    assert dmljax.run_model(source)["out"].tolist() == [9, 2, 0, 0, 0, 2, 0, 0, 0]
    bindings = source["commands"][0]["bindings"]
    bindings["OutputCoordinatesTensor"]["elementOffset"] = 2
    assert "same bytes of resource 'out'" in refusal(source)


# Dispatchables


def test_fields_beside_the_type():
    source = padding_model()
    desc = source["dispatchables"]["pad"].pop("desc")
    source["dispatchables"]["pad"] |= desc | {"dmlCompileType": "DmlCompileOp"}
    assert dmljax.run_model(source)["output"].tolist() == [1, 1, 2, 3, 3]
    source["dispatchables"]["pad"]["Sizes"] = [3]
    assert "'desc' has an unknown field 'Sizes'" in refusal(source)


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "hlsl", "sourcePath": "add.hlsl", "compiler": "dxc"},
        {"type": "onnx", "sourcePath": "model.onnx"},
        {"type": "dmlSerializedGraph", "sourcePath": "graph.bin"},
        {"type": "DML_OPERATOR_ELEMENT_WISE_ADD", "desc": {"ATensor": {}}},
        {"type": "DML_OPERATOR_GEMM", "dmlCompileType": "DmlCompileGraph", "desc": {}},
        {"Type": "ACTIVATION_ELU", "Alpha": 0.5},
    ],
)
def test_other_dispatchables_are_refused_by_name(fields):
    source = edited(padding_model(), "dispatchables", "pad", fields)
    message = refusal(source)
    assert f"'{fields.get('type') or fields['Type']}'" in message
    assert message.endswith(f"the operators are {', '.join(DESCRIPTORS)}.")


def test_another_operator_is_refused_before_any_data_is_read():
    source = edited(padding_model(), "dispatchables", "pad", {"type": "onnx"})
    source["resources"]["input"]["initialValues"] = "deferred"
    assert "the type 'onnx' is not an operator" in refusal(source)


PAD = ("dispatchables", "pad")


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ((*PAD, "dmlCompileType", 1), "'dmlCompileType' is 1; it must be a string"),
        ((*PAD, "executionFlags", [1]), "'executionFlags' is [1]; it must be a string"),
        ((*PAD, "flags", "NONE"), "there is no field 'flags'; the fields are type"),
        ((*PAD, "bindings", {"A": "x"}), "the resource 'x' is not in the model"),
        ((*PAD, "bindings", {"A": 1}), "the binding of 'A' is 1"),
        (("$schema", 1), "the field '$schema' is 1; it must be a string"),
        (("resource", {}), "there is no field 'resource'; the fields are resources"),
        (("commands", 1, "verbose", 1), "'verbose' is 1; it must be true or false"),
        (("commands", 1, "resorce", "x"), "there is no field 'resorce'"),
        (("commands", 0, "threadGroupCount", 1), "'threadGroupCount' is 1; it must be"),
        (("commands", 0, "type", "a\x1b[31m\n"), r"(a\x1b[31m\n): there is no such"),
        (("resources", "input", "sizeInByte", 8), "no field 'sizeInByte'"),
        (("resources", "input", "resampleMode", 1), "is 1; it must be 'scale'"),
        (("commands", 2, "dimensions", [1] * 70 + [5]), "has 71 elements; a .npy file"),
        (
            ("commands", 2, "targetPath", "x" * 300),
            "cannot be written: File name too l",
        ),
    ],
)
def test_fields_are_checked(edit, message):
    assert message in refusal(edited(padding_model(), *edit))


HUGE = 10**4000


@pytest.mark.parametrize(
    "edit",
    [
        (*PAD, "desc", "InputTensor", "Sizes", [HUGE] * 8),
        (*PAD, "desc", "StartPadding", [HUGE]),
        (*PAD, "desc", "OutputTensor", "Strides", [HUGE]),
        (*PAD, "desc", "OutputTensor", "TotalTensorSizeInBytes", HUGE),
        (*PAD, "desc", "PaddingMode", "x" * 1_000_000),
        (*PAD, "desc", "PaddingMode", HUGE),
        (*PAD, "desc", "DimensionCount", HUGE),
        (*PAD, "desc", "x" * 1_000_000, 1),
        (*PAD, "type", "x" * 1_000_000),
        ("resources", "x" * 1_000_000, 1),
        ("resources", "input", "initialValues", [HUGE]),
        ("resources", "input", "initialValuesDataType", "x" * 1_000_000),
        ("resources", "input", "sizeInBytes", HUGE),
        ("commands", 2, "dimensions", [HUGE]),
        ("commands", 2, "dimensions", [2**32 - 1] * 1000),
        ("commands", 0, "type", "x" * 1_000_000),
    ],
)
def test_long_values_are_shortened(edit):
    refusal(edited(padding_model(), *edit))


def test_many_names_are_shortened():
    source = padding_model()
    source["resources"] |= {f"r{n}": data("UINT8", [n]) for n in range(200)}
    source["commands"][1]["resource"] = "none"
    assert "'r9', ... (202 in all)" in refusal(source)


def test_numbers_of_thousands_of_digits_in_python():
    tensor = dmljax.TensorDesc(dmljax.DataType.INT8, (HUGE, HUGE))
    with pytest.raises(dmljax.DescriptorError, match="about 2\\^26575 elements"):
        dmljax.create_operator(dmljax.DiagonalMatrixDesc(tensor, 0, 1.0))


# Memory


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            ("resources", "output", "initialValues", "valueCount", 2_500_000),
            "'valueCount' is 2500000, which needs 9.54 MiB of memory",
        ),
        (("resources", "output", "sizeInBytes", 10**6), "needs 2.86 MiB of memory bes"),
        (
            ("resources", "input", "initialValues", {"sourcePath": "b.bin"}),
            "'b.bin' ne",
        ),
        (
            ("resources", "input", "initialValues", {"sourcePath": "/dev/zero"}),
            "input': sourcePath '/dev/zero' is a folder, a device or a pipe, not a f",
        ),
    ],
)
def test_memory_is_counted_before_it_is_allocated(folder, edit, message):
    with open("b.bin", "wb") as file:
        file.truncate(2**30)
    assert message in refusal(edited(padding_model(), *edit), max_memory=2**20)


def test_a_pipe_is_not_waited_for(folder):
    os.mkfifo("pipe.json")
    assert "json': it is a folder, a device or a pipe, not a file." in refusal(
        "pipe.json"
    )


def test_a_large_model_file(folder):
    (folder / "m.json").write_text(" " * 100_000)
    assert "it needs 3.05 MiB of memory; a model may" in refusal(
        "m.json", max_memory=2**20
    )


@pytest.mark.parametrize("size", [[1, 3, 60_000, 60_000], [1, 1, 2**32 - 1, 1]])
def test_an_image_that_is_too_large(size):
    image = pytest.importorskip("PIL.Image")
    image.new("L", (3, 2)).save("in.png")
    resource = data("FLOAT32", {"sourcePath": "in.png"}, resampleSize=size)
    assert "of memory; a model may use" in refusal(
        model({"r": resource}, {}), max_memory=2**30
    )


def test_a_header_that_claims_too_much():
    np.save("in.npy", np.zeros(3))
    with open("in.npy", "r+b") as file:
        content = file.read().replace(b"(3,), }   ", b"(10**9,), }"[:10])
        content = content.replace(b"'shape': (3,)", b"'shape':(3e9)")
        file.seek(0)
        file.write(content)
    assert "'in.npy' cannot be converted" in refusal(
        model({"r": {"initialValues": {"sourcePath": "in.npy"}}}, {})
    )


def test_what_a_dispatch_works_with_is_counted():
    desc = {
        "ConditionTensor": {"DataType": "UINT8", "Sizes": [99], "Strides": [0]},
        "ATensor": {"DataType": "INT8", "Sizes": [99], "Strides": [0]},
        "BTensor": {"DataType": "INT8", "Sizes": [99], "Strides": [0]},
        "OutputTensor": {"DataType": "INT8", "Sizes": [99]},
    }
    names = ("ConditionTensor", "ATensor", "BTensor")
    source = model(
        {"c": data("UINT8", [1]), "x": data("INT8", [7]), "y": data("INT8", [0] * 100)},
        {"if": {"type": "ELEMENT_WISE_IF", "desc": desc}},
        dispatch("if", **dict(zip(names, "cxx", strict=True)), OutputTensor="y"),
    )
    assert "tensor 'ConditionTensor' needs 891 bytes" in refusal(
        source, max_memory=1000
    )
    assert dmljax.run_model(source, max_memory=10_000)["y"].tolist() == [7] * 99 + [0]


def test_the_memory_of_the_compiled_program(monkeypatch):
    class Needs:
        temp_size_in_bytes = 2**40

    monkeypatch.setattr(jax.stages.Compiled, "memory_analysis", lambda self: Needs)
    assert "model: the compiled program needs 1 TiB" in refusal(padding_model())


def test_a_budget_counts_all_that_is_taken():
    budget = _memory.Budget(10)
    budget.take(4, "a")
    budget.take(4, "b")
    budget.check(2, "c")
    with pytest.raises(dmljax.ModelError, match=r"c needs 3 bytes .* besides 8 bytes"):
        budget.check(3, "c")


def test_sizes_of_memory():
    assert _memory.parse_size("700") == 700
    assert _memory.parse_size("2KiB") == 2048
    with pytest.raises(ValueError, match="'-1G' is not a size"):
        _memory.parse_size("-1G")


def test_many_resources_and_commands_take_no_time_to_compile(capsys):
    source = padding_model()
    source["resources"] |= {f"r{n}": data("UINT8", [n % 256]) for n in range(2000)}
    source["commands"] += [show("r7"), show("output")] * 500
    parsed = _model_parse.parse_model(source)
    text = jax.jit(_model.program(parsed)).lower(_model.initial_state(parsed)).as_text()
    assert len(text) < 10_000
    results = dmljax.run_model(source)
    assert results["r300"].tolist() == [300 % 256]
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "Resource 'output': 1, 1, 2, 3, 3",
        *["Resource 'r7': 7", "Resource 'output': 1, 1, 2, 3, 3"] * 500,
    ]


# Overlaps


@pytest.mark.parametrize(
    ("sizes", "strides", "expected"),
    [
        ([2] * 8, [2**29 - 7919 * i * i for i in range(8)], True),
        ([2] * 8, [2**29 + 3**i for i in range(8)], False),
        ((50_000, 40_000), (40_001, 3), False),
        ((50_000, 40_000), (39_999, 3), True),
        ((3, 224, 224, 4), (1, 3, 672, 150_528), False),
        ((1600, 1600, 1600), (1_000_003, 999, 1), True),
        ((40, 40, 40, 40), (27, 2531, 99_991, 1_048_583), False),
        ((3, 1), (0, 0), True),
        ((600, 601, 602), (1_100_003, 1_100_007, 1_100_011), None),
    ],
)
def test_overlaps_of_large_tensors(sizes, strides, expected):
    assert overlap(tuple(sizes), tuple(strides)) is expected


def test_overlaps_agree_with_the_oracle():
    generator = np.random.default_rng(0)
    found = set()
    for _ in range(300):
        rank = generator.integers(1, 6)
        sizes = tuple(generator.integers(1, 5, rank).tolist())
        strides = tuple(generator.integers(0, generator.choice([7, 60]), rank).tolist())
        expected = oracles.strides_overlap(sizes, strides)
        assert overlap(sizes, strides) is expected, (sizes, strides)
        found.add(expected)
    assert found == {True, False}


# JSON by the types of the fields


class RoundMode(enum.IntEnum):
    NEAREST_EVEN = 0
    TOWARD_ZERO = 1


class StepFlags(enum.IntFlag):
    NONE = 0
    FIRST = 1
    LAST = 2


@dataclasses.dataclass(frozen=True)
class SixthDesc(dmljax.OperatorDesc):
    """A descriptor that no operator has, with kinds of fields that no other has."""

    operator = "SIXTH"
    output_shapes = evaluate = None

    output_tensor: dmljax.TensorDesc
    round_mode: RoundMode
    has_exclusive_sum: bool
    scales: tuple[float, ...]
    modes: tuple[RoundMode, ...] = ()
    scale: float | None = None
    axis: int | None = None
    last_mode: RoundMode | None = None
    step_flags: StepFlags = StepFlags.NONE


SIXTH = SixthDesc(
    dmljax.TensorDesc(dmljax.DataType.INT8, (2,)),
    RoundMode.TOWARD_ZERO,
    True,
    [0.5, 2],
    [1, RoundMode.NEAREST_EVEN],
    axis=np.int64(3),
    last_mode=1,
    step_flags=StepFlags.FIRST | StepFlags.LAST,
)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("scales", (0.5, "2"), "SIXTH: Scales is '2'; it must be a real number"),
        ("scales", 0.5, "SIXTH: Scales must be a sequence, not float"),
        ("modes", (2,), "SIXTH: Modes is 2; it must be one of NEAREST_EVEN, TOWARD"),
        ("last_mode", 7, "SIXTH: LastMode is 7; it must be one of NEAREST_EVEN, TOW"),
        ("axis", 1.0, "SIXTH: Axis must be an integer"),
        ("has_exclusive_sum", 1, "SIXTH: HasExclusiveSum is 1; it must be bool"),
    ],
)
def test_new_kinds_of_fields_are_checked(field, value, message):
    SIXTH.check_fields()
    wrong = dataclasses.replace(SIXTH, **{field: value})
    with pytest.raises((TypeError, dmljax.DescriptorError), match=message):
        wrong.check_fields()


def test_new_kinds_of_fields_need_no_new_code():
    assert enum_prefix(RoundMode) == "DML_ROUND_MODE_"
    assert enum_prefix(StepFlags) == "DML_STEP_FLAG_"
    written = to_json(SIXTH)
    assert written == {
        "OutputTensor": {"DataType": "INT8", "Sizes": [2]},
        "RoundMode": "TOWARD_ZERO",
        "HasExclusiveSum": True,
        "Scales": [0.5, 2],
        "Modes": ["TOWARD_ZERO", "NEAREST_EVEN"],
        "Axis": 3,
        "LastMode": "TOWARD_ZERO",
        "StepFlags": ["FIRST", "LAST"],
    }
    full = written | {"RoundMode": "DML_ROUND_MODE_TOWARD_ZERO", "Scale": None}
    assert from_json(SixthDesc, full, "SIXTH", "desc") == SIXTH
    with pytest.raises(dmljax.DescriptorError, match="is 1; it must be true or false"):
        from_json(SixthDesc, written | {"HasExclusiveSum": 1}, "SIXTH", "desc")
    definitions = {}
    schema = schema_of(SixthDesc, definitions) | {"$defs": definitions}
    jsonschema.validate(full, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(written | {"HasExclusiveSum": 1}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(written | {"RoundMode": "UP"}, schema)


# The schema


@pytest.fixture(scope="module")
def valid():
    """Whether the JSON Schema accepts a model."""
    schema = model_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema).is_valid


def test_the_schema_accepts_the_models_of_the_documentation(valid):
    models = make_models.model_files()
    assert all(valid(json.loads(text)) for text in models.values())


def full_model():
    """Makes a model with every form of every object that is read."""
    source = edited(padding_model(), "$schema", "model.schema.json")
    source["resources"] |= {
        "mixed": {"initialValues": MIXED, "initialValuesDataType": None},
        "line": data(
            "FLOAT32", {"valueCount": 3, "valueStart": 1, "valueDelta": "inf"}
        ),
        "image": data("UINT8", {"sourcePath": "a.png"}, resampleSize=[1, 3, 5, 7]),
    }
    desc = source["dispatchables"]["pad"]["desc"]
    union = {"PaddingValueDataType": "FLOAT32", "PaddingValue": {"Float32": "nan"}}
    wrapped = {"Type": "BUFFER", "Desc": desc["InputTensor"] | {"DimensionCount": 1}}
    source["dispatchables"] |= {
        "beside": {"Type": "PADDING", **desc},
        "union": {"type": "DML_OPERATOR_PADDING1", "Desc": desc | union},
        "wrapped": {"type": "PADDING", "desc": desc | {"InputTensor": wrapped}},
    }
    source["commands"] += [
        {"type": "PRINT", "resource": "output", "verbose": True},
        dispatch(
            "pad", InputTensor=[{"name": "input", "elementOffset": 1}], Extra=None
        ),
    ]
    return source


def test_the_schema_accepts_every_form(valid):
    assert valid(full_model())


@pytest.mark.parametrize(
    "edit",
    [
        ("resource", {}),
        ("resources", "input", "sizeInByte", 1),
        ("resources", "input", "sizeInBytes", -1),
        ("resources", "input", "initialValues", "deferred"),
        ("resources", "input", "initialValues", []),
        ("resources", "input", "initialValues", {"valueCount": 1}),
        ("resources", "mixed", "initialValues", [{"type": "INT8"}]),
        (*PAD, "type", "hlsl"),
        (*PAD, "desc", "PaddingMode", "MIRROR"),
        (*PAD, "desc", "Axis", 1),
        (*PAD, "desc", "OutputTensor", "Sizes", [2.5]),
        ("dispatchables", "beside", "Axis", 1),
        ("dispatchables", "union", "Desc", "PaddingValue", {}),
        ("commands", 0, "bindings", "InputTensor", {"elementOffset": 1}),
        ("commands", 1, "type", "plot"),
        ("commands", 1, "verbose", 1),
        ("commands", 2, "dimensions", 5),
    ],
)
def test_the_schema_refuses_what_is_refused(valid, edit):
    source = edited(copy.deepcopy(full_model()), *edit)
    assert not valid(source)
    refusal(source)


def test_the_command_prints_the_schema(capsys):
    assert command_line.main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == model_schema()
