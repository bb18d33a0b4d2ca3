"""The fuzzer reports each failure, and its exit status says whether there was one."""

import sys

import pytest

from tests.fuzz import __main__ as fuzz
from tests.fuzz import expected


@pytest.mark.parametrize(("ending", "status"), [("exit 0", 0), ("kill -ABRT $$", -6)])
def test_a_process_that_is_aborted_is_a_failure(
    tmp_path, monkeypatch, capsys, ending, status
):
    # It stands for the Python of each process. The last argument is its seed.
    python = tmp_path / "python"
    last = 'shift $(($# - 1)); echo "seed $1"'
    python.write_text(f"#!/bin/sh\n{last}\necho '   3 checked'\n{ending}\n")
    python.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(python))
    assert fuzz.main(["--jobs", "2", "--seed", "8"]) == bool(status)
    expected_lines = []
    for seed in (8, 9):
        expected_lines.append(f"seed {seed}")
        if status:
            failed = f"FAILED: the process of seed {seed} ended with {status}"
            expected_lines.append(failed)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [*expected_lines, "        6 checked"]


@pytest.mark.parametrize("fuzzer", [fuzz.DescriptorFuzzer, fuzz.ModelFuzzer])
def test_a_wrong_result_is_kept(x64, tmp_path, monkeypatch, fuzzer):
    monkeypatch.setattr(fuzz, "BATCH", 2)
    monkeypatch.setattr(expected, "same_bits", lambda given, wanted: False)
    monkeypatch.setattr(fuzz.damage, "final_bytes", lambda model: {})
    report = fuzz.Report(0, tmp_path)
    fuzzer(0, report).batch()
    kept = [path.read_bytes() for path in tmp_path.iterdir()]
    assert len(kept) == report.failures == 2
    assert all(b" differs from the oracle\n" in content for content in kept)
