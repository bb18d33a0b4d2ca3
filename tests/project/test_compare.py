"""The comparison with jax.numpy: its table, and that all ways take turns."""

import functools

import jax
import numpy as np

import dmljax
from benchmarks import compare
from benchmarks.programs.ten import PROGRAMS


def test_a_line_for_each_way(monkeypatch, standard_promotion):
    timed = []

    def in_turns(ways, arrays, seconds):
        timed.extend(jax.eval_shape(run, *arrays) for run in ways.values())
        return {way: [2.0**i, 1.0] for i, way in enumerate(ways)}

    monkeypatch.setattr(compare, "_in_turns", in_turns)
    lines = list(compare.lines(2**12))
    names = [
        (name, way)
        for name, program in PROGRAMS.items()
        for way in program.ways
        if way != "dmljax"
    ]
    assert len(timed) == len(names) + len(PROGRAMS)
    assert len(lines) == 5 + len(names)
    assert f"dmljax {dmljax.__version__}, jax {jax.__version__}" in lines[1]
    for (name, way), line in zip(names, lines[5:], strict=True):
        assert line.startswith(name)
        assert line.endswith(f"  {way}")
    # Of rounds of 1 and 1, and of 2 and 1 seconds.
    assert lines[5].split()[2:6] == ["1000", "1500", "1.50", "100%"]


def test_ways_take_turns(monkeypatch):
    monkeypatch.setattr(compare, "FLIGHT", 1)
    runs = []
    ways = {way: functools.partial(runs.append, way) for way in ("dmljax", "jnp")}
    times = compare._in_turns(ways, [], seconds=0.0)
    assert [len(rounds) for rounds in times.values()] == [compare.FEWEST] * 2
    # Each was compiled and timed once; then both run in each round.
    rounds = np.reshape(runs[2 * len(ways) :], (compare.FEWEST, len(ways)))
    assert all(set(names) == set(ways) for names in rounds.tolist())


def test_the_command(monkeypatch, capsys):
    monkeypatch.setattr(compare, "lines", lambda: iter(["a", "b"]))
    assert compare.main() == 0
    assert capsys.readouterr().out == "a\nb\n"
