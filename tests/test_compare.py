"""The comparison with jax.numpy: its table, and that all ways compute the same."""

import functools

import chex
import jax
import numpy as np
import pytest

import dmljax
from dmljax import _compare
from dmljax.__main__ import main
from dmljax._programs import PROGRAMS

ELEMENTS = 2**12


@pytest.fixture
def results(monkeypatch):
    """What was timed returned, by way; users have promotions that our tests forbid."""
    found = []

    def in_turns(ways, arrays, seconds):
        found.append({way: run(*arrays) for way, run in ways.items()})
        return {way: [2.0**i, 1.0] for i, way in enumerate(ways)}

    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        monkeypatch.setattr(_compare, "_in_turns", in_turns)
        yield found


def test_a_line_for_each_way_and_equal_results(results):
    lines = list(_compare.lines(ELEMENTS))
    names = [
        (name, way)
        for name, program in PROGRAMS.items()
        for way in program.ways
        if way != "dmljax"
    ]
    assert len(lines) == 5 + len(names)
    assert f"dmljax {dmljax.__version__}, jax {jax.__version__}" in lines[1]
    for (name, way), line in zip(names, lines[5:], strict=True):
        assert line.startswith(name)
        assert line.endswith(f"  {way}")
    # Of rounds of 1 and 1, and of 2 and 1 seconds.
    assert lines[5].split()[2:6] == ["1000", "1500", "1.50", "100%"]
    for by_way in results:
        ours, *theirs = by_way.values()
        assert theirs
        for other in theirs:
            chex.assert_trees_all_close(ours, other, rtol=1e-5)
            chex.assert_trees_all_equal_shapes_and_dtypes(ours, other)
        assert np.ptp(ours.astype(np.float32)) > 0


def test_ways_take_turns(monkeypatch):
    monkeypatch.setattr(_compare, "FLIGHT", 1)
    runs = []
    ways = {way: functools.partial(runs.append, way) for way in ("dmljax", "jnp")}
    times = _compare._in_turns(ways, [], seconds=0.0)
    assert [len(rounds) for rounds in times.values()] == [_compare.FEWEST] * 2
    # Each was compiled and timed once; then both run in each round.
    rounds = np.reshape(runs[2 * len(ways) :], (_compare.FEWEST, len(ways)))
    assert all(set(names) == set(ways) for names in rounds.tolist())


def test_the_command(monkeypatch, capsys):
    monkeypatch.setattr(_compare, "lines", lambda: iter(["a", "b"]))
    assert main(["compare"]) == 0
    assert capsys.readouterr().out == "a\nb\n"
