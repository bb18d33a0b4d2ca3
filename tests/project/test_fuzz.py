"""The fuzzer keeps each failure, and its exit status says whether there was one."""

import pytest

from tests.fuzz import __main__ as fuzz


@pytest.fixture
def report(x64, tmp_path, monkeypatch):
    """The report of a small batch."""
    monkeypatch.setattr(fuzz, "BATCH", 12)
    return fuzz.Report(0, tmp_path)


@pytest.mark.parametrize("kind", ["descriptors", "models"])
def test_a_failure_is_kept(report, monkeypatch, kind):
    """A wrong result, and a rule that the package does not have."""
    monkeypatch.setattr(fuzz, "accepts", lambda desc, level: True)
    monkeypatch.setattr(fuzz.expected, "same_bits", lambda given, wanted: False)
    monkeypatch.setattr(fuzz.damage, "final_bytes", lambda model: {})
    getattr(fuzz.Fuzzer(0, report), kind)()
    kept = [path.read_bytes() for path in report.folder.iterdir()]
    counts = report.counts
    assert len(kept) == counts["failures"] > 0
    wrong = [content for content in kept if b" differs from the oracle\n" in content]
    assert len(wrong) == counts["run"] + counts["models run"] > 0
    refused = [content for content in kept if content.startswith(b"accepted: False")]
    assert len(wrong) + len(refused) == len(kept)
    assert (len(refused) > 0) == (kind == "descriptors")


def test_nothing_fails(report):
    fuzz.Fuzzer(0, report).models()
    assert report.counts["models run"] > 0
    assert report.counts["failures"] == 0


@pytest.mark.parametrize("failures", [0, 2])
def test_the_exit_status(capsys, folder, monkeypatch, failures):
    def batch(self):
        for _ in range(failures):
            self.report.fail("a failure", "its cause")

    monkeypatch.setattr(fuzz.Fuzzer, "descriptors", batch)
    monkeypatch.setattr(fuzz.jax.config, "update", lambda name, value: None)
    options = ["--minutes=0", "--only=descriptors", "--seed=7", "--keep=kept"]
    assert fuzz.main(options) == bool(failures)
    assert len(list(folder.glob("kept/*"))) == failures
    assert f"\n| 7 | 0 | 0 | 0 | 0 | {failures} | 0.000 | " in capsys.readouterr().out
