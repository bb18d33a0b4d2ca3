"""The fuzzer keeps each failure, and its exit status says whether there was one."""

import pytest

from tests.fuzz import __main__ as fuzz
from tests.fuzz import expected


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


@pytest.mark.parametrize("failures", [0, 2])
def test_the_exit_status(tmp_path, monkeypatch, failures):
    def batch(self):
        for _ in range(failures):
            self.report.fail("a failure", "its cause")

    monkeypatch.setattr(fuzz.DescriptorFuzzer, "batch", batch)
    monkeypatch.setattr(fuzz.jax.config, "update", lambda name, value: None)
    monkeypatch.chdir(tmp_path)
    arguments = [
        "--minutes",
        "0",
        "--only",
        "descriptors",
        "--keep",
        f"{tmp_path}/kept",
    ]
    assert fuzz.main(arguments) == bool(failures)
    assert len(list(tmp_path.glob("kept/*"))) == failures
