"""What a model prints, and the files that it writes."""

import contextlib
import itertools
import os
import re
import shutil
import stat
import sys
import tempfile

import numpy as np
import pytest

import dmljax
from dmljax._model import run
from dmljax._model.output import Targets
from dmljax._model.parse import parse_model
from dmljax._model.run import compile_model, print_outputs, write_outputs
from tests.model import models as m
from tests.model.test_values import MIXED

# Text


@pytest.mark.parametrize(
    ("data_type", "values", "text"),
    [
        ("INT8", [-65], "-65"),
        ("UINT32", [2**32 - 1], "4294967295"),
        ("FLOAT32", [1e6, 123456, 0.1, -0.0], "1e+06, 123456, 0.1, -0"),
        ("FLOAT16", ["nan", "inf", "-inf", 0.1], "nan, inf, -inf, 0.0999756"),
    ],
)
def test_what_is_printed(data_type, values, text, capsys):
    dmljax.run_model(m.model({"a b": m.data(data_type, values)}, {}, m.show("a b")))
    assert capsys.readouterr().out == f"Resource 'a b': {text}\n"


def test_what_is_printed_with_bits(capsys):
    resource = m.data("INT16", [-2, *range(9)])
    dmljax.run_model(m.holding(resource, m.show("r", verbose=True)))
    _, first, second, *_, last = capsys.readouterr().out.splitlines()
    shown = ["[ 0] -2 (0xFFFE)", "[ 1] 0 (0x   0)", "[ 9] 8 (0x   8)"]
    assert [first, second, last] == shown


def test_text_for_which_there_is_no_memory(monkeypatch):
    monkeypatch.setattr(run, "text_of", lambda *given, **more: bytearray(2**62))
    message = "model, command 2 (print): there is not enough memory for it."
    assert m.refusal(m.padding_model()) == message


def test_a_list_of_mixed_types_is_not_printed():
    mixed = {"initialValues": MIXED}
    message = m.refusal(m.holding(mixed, m.show("r")))
    assert message.endswith("types and cannot be printed; write it to a file.")
    message = m.refusal(m.holding(mixed, m.save("r", "r.npy")))
    assert "a .npy file needs one data type, and the resource has a list" in message


# Files


def test_arrays_and_raw_data(folder):
    source = m.holding(
        m.data("INT32", [1, -2, 3]),
        m.save("r", "flat.npy"),
        m.save("r", "sized.NPY", dimensions=[1, 3]),
        m.save("r", folder / "raw.bin"),
    )
    dmljax.run_model(source)
    assert sorted(os.listdir()) == ["flat.npy", "raw.bin", "sized.NPY"]
    for array, expected in (
        (np.load("flat.npy"), [1, -2, 3]),
        (np.load("sized.NPY"), [[1, -2, 3]]),
        (np.fromfile("raw.bin", "<i4"), [1, -2, 3]),
    ):
        assert array.dtype == np.int32
        assert array.tolist() == expected


@pytest.mark.parametrize(
    ("path", "more", "message"),
    [
        ("r.npy", {"dimensions": [2, 3]}, "'dimensions' is {2,3}, 6 elements, while"),
        ("r.npy", {"dimensions": [1] * 70 + [5]}, "at most 64 dimensions."),
        (".", {}, "targetPath '.' is there already, and is not a file."),
        ("/dev/null", {}, "is there already, and is not a file."),
        ("a\0b", {}, "is not a path: "),
        ("x" * 300, {}, "x' cannot be written: File name too long."),
        ("kept.bin/r.npy", {}, "is in a folder that does not exist; it is relative to"),
    ],
)
def test_a_wrong_target(folder, path, more, message):
    (folder / "kept.bin").write_bytes(b"kept")
    command = m.save("r", path, **more)
    refused = m.refusal(m.holding(m.zeros("FLOAT32", 5), command))
    assert refused.startswith("model, command 1 (writeFile): ")
    assert message in refused


@pytest.mark.parametrize(
    ("protected", "message"),
    [
        ("", "targetPath 'kept.bin' is in a folder that cannot be written."),
        ("kept.bin", "targetPath 'kept.bin' is there already, and is read-only."),
    ],
)
def test_a_target_without_permission(folder, monkeypatch, protected, message):
    """The superuser may write everything: we say what is not allowed."""
    (folder / "kept.bin").write_bytes(b"kept")
    monkeypatch.setattr(os, "access", lambda path, mode: path != folder / protected)
    refused = m.refusal(m.holding(m.zeros("FLOAT32", 5), m.save("r", "kept.bin")))
    assert refused.endswith(message)
    assert (folder / "kept.bin").read_bytes() == b"kept"


# All or nothing


@pytest.mark.parametrize(
    ("name", "number"),
    [("os.open", 2), ("dmljax._model.output._to_npy", 1), ("os.replace", 3)],
)
def test_a_full_disk(folder, capsys, monkeypatch, name, number):
    """The function fails when it is called for this time: files lack room, or names."""
    (folder / "kept.bin").write_bytes(b"kept")
    source = m.padding_model()
    saves = [m.save("output", name) for name in ("new.bin", "kept.bin")]
    source["commands"][1:1] = saves
    module, _, function = name.rpartition(".")
    works = getattr(sys.modules[module], function)
    calls = itertools.count(1)

    def fail(*arguments):
        if next(calls) == number:
            raise OSError(28, "No space left on device")
        return works(*arguments)

    monkeypatch.setattr(name, fail)
    message = r"^model, command \d \(writeFile\): it cannot be written: No space left"
    assert re.match(message, m.refusal(source))
    assert next(calls) > number
    assert capsys.readouterr().out == ""
    assert os.listdir() == ["kept.bin"]
    assert (folder / "kept.bin").read_bytes() == b"kept"


def test_a_file_that_another_process_makes_first(folder, capsys):
    """Both have found that there is none. One of them fails, and writes nothing."""
    source = m.padding_model()
    source["commands"] += [m.save("output", "other.bin")]
    parsed = parse_model(source, Targets(clobber=False))
    results = compile_model(parsed, None)()
    (folder / "other.bin").write_bytes(b"kept")
    message = r"command 4 \(writeFile\): it cannot be written: File exists\.$"
    with pytest.raises(dmljax.ModelError, match=message):
        write_outputs(parsed, results)
    assert os.listdir() == ["other.bin"]
    (folder / "other.bin").unlink()
    lines = ["wrote written.npy (FLOAT32 {5})", "wrote other.bin (20 raw bytes)"]
    assert write_outputs(parsed, results) == lines
    assert sorted(os.listdir()) == ["other.bin", "written.npy"]


def modes(folder):
    return [stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()]


@pytest.mark.parametrize(
    ("before", "during", "after"),
    [(0o600, 0o600, 0o600), (0o6755, 0o600, 0o755), (None, 0o644, 0o644)],
)
def test_a_private_file_stays_private(folder, monkeypatch, before, during, after):
    def note(*arguments):
        seen.extend(modes(folder))
        for name in {*os.listdir()} - {"written.npy"}:
            assert re.fullmatch(r"\.written\.npy\..{8}\.tmp", name)
        works(*arguments)

    seen = []
    works = os.chmod if before else os.replace
    monkeypatch.setattr(os, works.__name__, note)
    if before is not None:
        (folder / "written.npy").touch()
        works(folder / "written.npy", before)
    old = os.umask(0o022)
    dmljax.run_model(m.padding_model())
    os.umask(old)
    assert during in seen
    assert modes(folder) == [after]


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser gives files away")
@pytest.mark.parametrize("owner", [(1234, -1), (-1, 1234)])
def test_the_bits_of_another_owner_are_not_taken(folder, owner):
    (folder / "written.npy").touch(0o666)
    os.chown("written.npy", *owner)
    dmljax.run_model(m.padding_model())
    assert modes(folder) == [0o600]


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser becomes another user")
def test_a_file_of_another_owner_in_a_sticky_folder():
    """Nobody else may replace it there, nor remove another link to it."""
    with tempfile.TemporaryDirectory() as folder:
        path = shutil.copy(__file__, f"{folder}/kept.bin")
        os.chown(path, 1234, -1)
        os.chmod(path, 0o666)
        os.chmod(folder, 0o1777)
        os.seteuid(4321)
        message = m.refusal(m.holding(m.zeros("UINT8", 1), m.save("r", path)))
        os.seteuid(0)
        assert message.endswith("it cannot be written: Operation not permitted.")
        assert os.listdir(folder) == ["kept.bin"]


# Memory


@pytest.mark.parametrize(
    "command",
    [
        m.show("r"),
        m.show("r", verbose=True),
        m.save("r", "x" * 250),
        m.save("r", "r.npy"),
        m.save("r", "r.png", dimensions=[2**9, 2**9]),
    ],
)
def test_what_is_shown_takes_the_memory_that_is_counted(command):
    def parsed(*commands):
        return parse_model(m.holding(m.zeros("FLOAT32", 2**18), *commands))

    model = parsed(command)
    if command["type"] == "writeFile":
        taken = model.commands[0].output.working_bytes
    else:
        taken = model.budget.used - parsed().budget.used
    results = compile_model(model, None)()
    with (
        open(os.devnull, "w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        m.memory(taken),
    ):
        write_outputs(model, results)
        print_outputs(model, results)
