"""The benchmarks run, and write what a ledger needs. No time is looked at."""

import json

import pytest

from benchmarks import run
from benchmarks.cases import cases

FIELDS = {
    *("operator", "case", "direction", "contender", "bytes"),
    *("ms", "ms_p20", "ms_p80", "share", "launches", "copy_gb_per_s"),
    *("device", "commit", "python", "jax", "numpy", "dmljax"),
}


def test_cases_have_names_of_their_own():
    names = [(c.operator, c.name, c.direction) for c in cases(2**10)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "only",
    [
        *("element_wise_if", "diagonal_matrix1", "one_hot", "nonzero_coordinates"),
        *("CONSTANT (3, 0, 0, 0)", "SYMMETRIC (0, 0, 3, 3)"),
    ],
)
def test_a_run_compares_results_and_writes_lines(only, tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.timing.COPY_BYTES", 2**12)
    ledger = tmp_path / "ledger.jsonl"
    arguments = ["--elements", "1024", "--rounds", "1", "--out", str(ledger)]
    assert run.main([*arguments, "--only", only]) == 0
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert {line["contender"] for line in lines} >= {"dmljax", "jnp"}
    assert all(set(line) == FIELDS and line["ms"] > 0 for line in lines)
