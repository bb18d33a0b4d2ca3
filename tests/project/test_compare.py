"""The comparison with jax.numpy: the table, the JSON, the summary."""

import json

import pytest

from benchmarks import compare
from benchmarks.compare import Row
from benchmarks.programs import TEN

pytestmark = pytest.mark.usefixtures("standard_promotion")
TINY = ["--elements", "1024", "--rounds", "2"]


def test_all_ten_programs_stand_beside_the_best_spelling_of_jax_numpy():
    found = {case.name.split(", ")[0]: case for case in compare.cases(2**10)}
    assert list(found) == list(TEN)
    for case in found.values():
        assert next(iter(case.functions)) == "dmljax"
        assert len(case.functions) > 1
    for name in ("elements above a limit", "rows of a mask", "edges of graphs"):
        assert list(found[name].functions)[:3] == ["dmljax", "jnp", "jnp scatter"]
    for name in ("reflect padding between two operations", "patches of wrapped images"):
        assert list(found[name].functions) == ["dmljax", "jnp", "jnp take"]


def test_a_line_for_each_spelling(capsys):
    assert compare.main([*TINY, "--only", "rows of a mask"]) == 0
    output = capsys.readouterr()
    *_, first, second, _, last = output.out.splitlines()
    assert first.startswith("rows of a mask, ")
    assert first.endswith("  jnp")
    assert second.endswith("  jnp scatter")
    assert last.startswith("Beside the fastest spelling")
    assert output.err == ""  # there is no bar, as this is no terminal


def test_json(capsys):
    assert compare.main([*TINY, "--only", "router", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["beside"] for row in found["rows"]] == ["jnp one_hot", "jnp equal"]
    assert sum(found["summary"].values()) == 1
    assert found["rows"][0]["ms"] > 0


def test_a_row_says_where_dmljax_is():
    ahead, level, behind = (Row("p", "jnp", 2.0, ms, 0.02) for ms in (3.0, 2.1, 1.0))
    assert ahead.verdict == "ahead"
    assert level.verdict == "level"
    assert behind.verdict == "behind"
    # The noise is larger than the difference.
    assert Row("p", "jnp", 2.0, 3.0, 0.6).verdict == "level"
    assert "  ~60%  jnp" in Row("p", "jnp", 2.0, 3.0, 0.6).line()
    assert ahead.line().split() == ["p", "2", "3", "1.50", "2%", "jnp"]
    # The fastest spelling counts.
    counts = compare.summary([[ahead, behind], [ahead], [level]])
    assert counts == {"ahead": 1, "level": 1, "behind": 1}


def test_a_noisy_program_is_timed_again_and_the_quieter_try_stays(monkeypatch):
    case = next(compare.cases(2**10))
    noises = iter([0.5, 0.2])
    spellings = len(case.functions) - 1

    def row(case, contender, ours, theirs):
        noise = next(noises) if contender == "jnp tril" else 0.0
        return Row(case.name, contender, 1.0, 1.0, noise)

    monkeypatch.setattr(compare, "_row", row)
    rows = compare.rows_of(case, 1)
    assert len(rows) == spellings
    assert max(row.noise for row in rows) == 0.2
    assert list(noises) == []
