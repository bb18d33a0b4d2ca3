"""The output of a model: printed text and written files."""

import os
import stat
from unittest import mock

import numpy as np
import pytest

import dmljax
from tests.model import models as m

# Text


BITS = "[ 0] -2 (0xFFFE)|" + "|".join(f"[ {n}] 0 (0x   0)" for n in range(1, 10))


@pytest.mark.parametrize(
    ("data_type", "values", "text"),
    [
        ("INT8", [-65], " -65"),
        ("UINT32", [2**32 - 1], " 4294967295"),
        ("FLOAT32", [1e6, 123456, 0.1, -0.0], " 1e+06, 123456, 0.1, -0"),
        ("INT16", [-2] + 9 * [0], f"|{BITS}"),
    ],
)
def test_printed_numbers(data_type, values, text, capsys):
    command = m.show("r", verbose="|" in text)
    dmljax.run_model(m.holding(m.data(data_type, values), command))
    assert capsys.readouterr().out == f"Resource 'r':{text}\n".replace("|", "\n")


def test_separators_of_a_long_text(capsys):
    """Faults at element 4096 of another piece: no separator, or the index 0."""
    commands = m.show("r"), m.show("r", verbose=True)
    dmljax.run_model(m.holding(m.data("UINT16", [*range(4098)]), *commands))
    out = capsys.readouterr().out
    assert ", 4095, 4096, 4097\n" in out
    assert "[4095] 4095 (0x FFF)\n[4096] 4096 (0x1000)\n" in out


# Files


def test_arrays_and_raw_data(folder):
    longest = "\U0001d11e" * 63  # 252 bytes, and the temporary name has more characters
    sizes = {"flat.npy": [3], "sized.NPY": [1, 3], "deep.npy": [1] * 63 + [3]}
    commands = [m.save("r", name, dimensions=sizes[name]) for name in sizes]
    commands += [m.save("r", path) for path in (folder / "raw.bin", longest)]
    dmljax.run_model(m.holding(m.data("INT16", [1, -2, 3]), *commands))
    assert {*os.listdir()} == {*sizes, "raw.bin", longest}
    for name in sizes:
        expected = np.int16([1, -2, 3]).reshape(sizes[name])
        np.testing.assert_array_equal(np.load(name), expected, strict=True)
    assert np.fromfile("raw.bin", "<i2").tolist() == [1, -2, 3]


@pytest.mark.parametrize(
    ("protected", "message"),
    [
        ("", "is in a folder that cannot be written."),
        ("kept.bin", "is there already, and is read-only."),
    ],
)
def test_a_target_without_permission(folder, monkeypatch, protected, message):
    """The superuser may write everywhere, so we replace `os.access`."""
    (folder / "kept.bin").touch()
    asked = folder / protected, os.W_OK
    monkeypatch.setattr(os, "access", lambda *arguments: arguments != asked)
    refused = m.refused_resource(m.zeros("FLOAT32", 5), m.save("r", "kept.bin"))
    assert refused.endswith(f"targetPath 'kept.bin' {message}")


def test_a_working_folder_that_is_gone(folder, monkeypatch):
    (folder / "gone").mkdir()
    monkeypatch.chdir("gone")
    (folder / "gone").rmdir()
    refused = m.refused_resource(m.zeros("FLOAT32", 5), m.save("r", "r.npy"))
    assert refused.endswith(
        "relative to the current directory, which no longer exists."
    )


# Writing


def test_a_full_disk(folder, capsys, monkeypatch):
    """Nothing is printed, no file is cut, and files written earlier stay."""
    (folder / "written.npy").write_bytes(b"kept")
    source = m.padding_model()
    source["commands"].insert(1, m.save("output", "new.bin"))
    full = mock.Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr(np, "save", full)
    message = "(writeFile): it cannot be written: No space left on device."
    assert m.refusal(source).endswith(message)
    assert capsys.readouterr().out == ""
    assert sorted(os.listdir()) == ["new.bin", "written.npy"]
    assert (folder / "written.npy").read_bytes() == b"kept"


@pytest.mark.parametrize("mode", [0o600, 0o755, 0o6751, 0o1777])
def test_a_file_gets_the_permissions_of_the_file_that_it_replaces(
    folder, monkeypatch, mode
):
    """A private file is private under its temporary name, too. It loses set-uid."""

    seen = []

    def see(*_, **__):
        seen.append({stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()})

    monkeypatch.setattr(np, "save", see)
    (folder / "written.npy").touch()
    (folder / "written.npy").chmod(mode)
    dmljax.run_model(m.padding_model())
    see()
    assert seen == [{mode, mode & 0o777}, {mode & 0o777}]
