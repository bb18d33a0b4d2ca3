"""The benchmarks run, check and write what a ledger needs. No time is looked at."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import matplotlib
import matplotlib.figure
import numpy as np
import pytest

import benchmarks.cases
from benchmarks import (
    calls,
    choose,
    forms,
    ledger,
    libraries,
    oracles,
    plot,
    plot_scaling,
    run,
    scaling,
)
from benchmarks.cases import cases
from benchmarks.data import Data
from dmljax._operators import OPERATORS
from tests import test_sharding

FIELDS = {
    *("device", "commit", "date", "python", "dmljax", "jax", "jaxlib", "numpy"),
    *("torch", "cupy", "onnxruntime", "copy_gb_per_s", "fill_gb_per_s"),
    *("operator", "case", "direction", "context", "dtype", "elements", "contender"),
    *("bytes", "ceiling", "ms", "ms_p20", "ms_p80", "share", "launches"),
    *("wall_ms", "wall_ms_p20", "wall_ms_p80", "compile_ms", "peak_bytes"),
}
LINEAR = [name for name, one in OPERATORS.items() if one.primitive.linear]
CEILING_BYTES = {"cpu": 2**12, "gpu": 2**12}
BANDWIDTHS = {"copy": 10.0, "fill": 10.0}
# The commit is named, as the tests may run where there is no git.
QUICK = ("--rounds", "1", "--commit", "test")


@pytest.fixture(scope="module")
def all_cases():
    return list(cases(2**10))


def _first(all_cases, operator, direction="forward"):
    return next(
        case
        for case in all_cases
        if (case.operator, case.direction) == (operator, direction)
    )


def test_cases_have_names_of_their_own(all_cases):
    labels = [case.label for case in all_cases]
    assert len(set(labels)) == len(labels)


def test_every_operator_is_timed_alone_and_in_a_pipeline():
    found = {(case.operator, case.context) for case in cases(2**12)}
    assert found >= {(name, c) for name in OPERATORS for c in choose.CONTEXTS}


def test_a_case_knows_its_smallest_traffic(all_cases):
    named = {(case.name, case.direction): case for case in all_cases}
    select = named["float32 x 1024, uint8 condition", "forward"]
    assert (select.bytes, select.elements) == (13 * 1024, 1024)
    undefined = named["float32 (1024,), 50.0% non-zero, undefined tail", "forward"]
    (x,) = undefined.arrays()
    assert undefined.bytes == 4 * (1024 + np.count_nonzero(x) + 1)
    (hot,) = (c for n, c in named.items() if "indices" in n[0] and n[1] == "gradient")
    assert hot.bytes == 4 * (1024 + 8 + 2)


@pytest.mark.parametrize(
    "only",
    [
        *("element_wise_if float16", "of b", "diagonal_matrix1 identity", "64, 64"),
        *("uint8 indices", "axis 1", "int32 indices gradient"),
        *("EDGE (0, 0, 3, 3) of float32 (4, 4, 8, 8)", "SYMMETRIC (0, 0, 7, 7)"),
        *(
            "REFLECTION (0, 0, 3, 5)",
            "WRAP (3, 0, 0, 0)",
            "CONSTANT (0, 0, 0, 0), (0, 0, 0, 3)",
        ),
        *("uint8 (1024,), 50.0%", "(8, 2, 2, 2, 2, 2, 2, 2)"),
        *("float64 (512,)", "64 rows", "CONSTANT by 1, float32", "REFLECTION by 1, bf"),
        *("router", "causal softmax, bfloat16", "edges of 1 graphs"),
    ],
)
def test_a_run_checks_results_and_writes_lines(only, tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.timing.CEILING_BYTES", CEILING_BYTES)
    out = tmp_path / "ledger.jsonl"
    arguments = [*QUICK, "--elements", "1024", "--out", str(out)]
    assert run.main([*arguments, "--only", only]) == 0
    lines = ledger.read(out)
    assert {line["contender"] for line in lines} >= {"dmljax", "jnp"}
    for line in lines:
        assert set(line) == FIELDS
        assert line["ms"] > 0
        assert line["wall_ms"] > 0
    ours = [line for line in lines if line["contender"] == "dmljax"]
    assert all(line["compile_ms"] > 0 and line["peak_bytes"] > 0 for line in ours)


def test_a_form_for_speed_is_timed_beside_the_plain_one(tmp_path):
    pair = next(p for p in forms.PAIRS if p.platform == jax.default_backend())
    out = tmp_path / "forms.jsonl"
    arguments = [*QUICK, "--elements", "4096", "--out", str(out)]
    assert forms.main([*arguments, "--only", pair.case]) == 0
    lines = ledger.read(out)
    assert [line["contender"] for line in lines] == ["special", "plain"]
    assert all(line["ms"] > 0 for line in lines)


def test_forms_that_differ_are_not_timed():
    pair = forms.PAIRS[0]
    pair = dataclasses.replace(pair, special=lambda x: x, plain=lambda x: x + 1)
    with pytest.raises(RuntimeError, match=r"the forms of padding .* differ"):
        forms.time_pair(pair, 4096, 1)


def test_forms_for_a_gpu_are_two_programs():
    """A pair whose constant is read nowhere would compare a form with itself.

    The hash of a kernel does not depend on the names of the functions that build it.
    """
    for pair in forms.PAIRS:
        if pair.platform == "gpu":
            struct = jax.ShapeDtypeStruct(tuple(pair.shape(2**26)), pair.dtype)
            special, plain = (
                re.findall(
                    r'kernel_hash = "(?:[^"\\]|\\.)*"',
                    jax.jit(form)
                    .trace(struct)
                    .lower(lowering_platforms=("cuda",))
                    .as_text(),
                )
                for form in (pair.special, pair.plain)
            )
            assert special or plain
            assert special != plain, pair.case


def test_calls_are_timed_beside_jax_numpy(tmp_path):
    out = tmp_path / "calls.jsonl"
    assert calls.main([*QUICK, "--out", str(out), "--only", "reflect"]) == 0
    lines = ledger.read(out)
    assert {line["size"] for line in lines} == set(calls.SIDES)
    named = {line["contender"]: line for line in lines}
    assert named["dmljax"]["beside"] == "jnp"
    assert named["dmljax"]["ratio"] > 0
    assert all(line["us"] > 0 for line in lines)


@pytest.mark.parametrize("module", [run, calls, forms, scaling])
def test_a_ledger_that_cannot_be_written_is_an_error_at_once(
    module, tmp_path, monkeypatch
):
    timed = []
    monkeypatch.setattr("time.perf_counter", lambda: timed.append(1))
    with pytest.raises(IsADirectoryError):
        module.main([*QUICK, "--out", str(tmp_path)])
    assert not timed


def test_a_run_is_resumed_where_it_stopped(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.timing.CEILING_BYTES", CEILING_BYTES)
    monkeypatch.setattr(run, "cases", lambda elements: list(cases(elements))[:2])
    out = tmp_path / "ledger.jsonl"
    arguments = [*QUICK, "--elements", "1024", "--out", str(out)]
    first, second = (case.label for case in list(cases(2**10))[:2])
    run.main([*arguments, "--only", first])
    capsys.readouterr()
    run.main([*arguments, "--resume"])
    shown = capsys.readouterr().out
    assert second in shown
    assert first not in shown


@pytest.mark.parametrize("module", [run, calls, forms, scaling])
def test_a_run_of_no_case_is_an_error(module, tmp_path):
    arguments = [*QUICK, "--out", str(tmp_path / "ledger.jsonl")]
    with pytest.raises(SystemExit, match="no case has 'nothing' in its text"):
        module.main([*arguments, "--only", "nothing"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("operator", "direction"),
    [(name, "forward") for name in OPERATORS] + [(name, "gradient") for name in LINEAR],
)
@pytest.mark.parametrize("contender", ["dmljax", "jnp"])
def test_one_wrong_element_is_an_error(all_cases, operator, direction, contender):
    case = _first(all_cases, operator, direction)
    if contender not in case.functions:
        assert not hasattr(benchmarks.cases, f"{operator}_cases")
        pytest.skip("batches of a sample are compared with no other library")

    def wrong(function):
        def call(*arrays):
            leaves, tree = jax.tree.flatten(function(*arrays))
            last = leaves[-1]
            if case.wrt is None:
                leaves[-1] = last.reshape(-1).at[-1].add(1).reshape(last.shape)
            else:  # linear: a wrong cotangent has a wrong element
                leaves[-1] = last * 2
            return jax.tree.unflatten(tree, leaves)

        return call

    functions = {contender: wrong(case.functions[contender])}
    case = dataclasses.replace(case, functions=functions)
    with pytest.raises(RuntimeError, match=f"{contender} is wrong in {operator}"):
        run.time_case(case, libraries.ALL, BANDWIDTHS, rounds=1)


def test_wrong_sizes_and_types_are_errors():
    right = np.arange(6, dtype=np.float32).reshape(2, 3)
    sample = oracles.Sample(right.shape, oracles.grid(right.shape), right)
    take = libraries.ALL["numpy"].take
    oracles.compare([sample], [right], take, typed=True)
    oracles.compare([sample], [right.astype(np.float64)], take, typed=False)
    with pytest.raises(AssertionError, match="type float64 instead of float32"):
        oracles.compare([sample], [right.astype(np.float64)], take, typed=True)
    with pytest.raises(AssertionError, match=r"sizes \(3, 2\) instead of \(2, 3\)"):
        oracles.compare([sample], [right.T], take, typed=False)


def test_the_rows_past_the_count_may_be_missing_but_not_wrong():
    x = np.array([[0, 5], [7, 0]], np.float32)
    samples = oracles.nonzero_coordinates(x)
    rows = np.array([[0, 1], [1, 0], [0, 0], [0, 0]], np.uint32)
    take = libraries.ALL["numpy"].take
    count = np.array(2, np.uint32)
    oracles.compare(samples, [count, rows], take, typed=True)
    oracles.compare(samples, [rows[:2].astype(np.int64)], take, typed=False)
    with pytest.raises(AssertionError, match="1 outputs instead of 2"):
        oracles.compare(samples, [rows], take, typed=True)
    poisoned = rows.copy()
    poisoned[3] = 0xA5A5A5A5
    with pytest.raises(AssertionError):
        oracles.compare(samples, [count, poisoned], take, typed=True)
    undefined = oracles.nonzero_coordinates(x, undefined=True)
    oracles.compare(undefined, [count, poisoned], take, typed=True)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
def test_the_sampled_oracles_of_padding_agree_with_numpy(mode, monkeypatch):
    monkeypatch.setattr(oracles, "COMPARED", 81)
    x = Data((5, 40), "float32").array()
    pads = ((0, 2), (3, 4))
    (forward,) = oracles.padding(x, pads=pads, mode=mode)
    np.testing.assert_array_equal(
        forward.values, np.pad(x, pads, mode)[np.ix_(*forward.axes)]
    )
    assert {2, 3, 42, 43} <= set(forward.axes[1])
    (back,) = oracles.padding_gradient(
        np.ones((7, 47), np.float32), x, pads=pads, mode=mode
    )
    assert back.values.size < x.size
    ones = jnp.zeros_like(x)
    sums = jax.grad(lambda x: jnp.pad(x, pads, mode=mode).sum())(ones)
    np.testing.assert_array_equal(back.values, sums[np.ix_(*back.axes)])


def test_data_is_made_from_a_block_and_counted_without_being_made():
    data = Data((2**11, 2**10), "uint8", density=0.1)
    assert data.nonzeros() == np.count_nonzero(data.array())
    assert not np.array_equal(data.array()[0], data.array()[2**10])


def test_poison_takes_the_place_of_a_result():
    result = jnp.arange(4)
    libraries.ALL["dmljax"].before_check((result,))
    assert result.is_deleted()


def test_what_is_not_installed_is_left_out_and_said_so(monkeypatch, capsys):
    monkeypatch.setattr(libraries, "_installed", lambda name: name in {"jax", "numpy"})
    calls = {"dmljax, outside jit", "jnp, outside jit"}
    assert set(libraries.available("cpu")) == {"dmljax", "jnp", "numpy", *calls}
    assert "torch is left out: no torch" in capsys.readouterr().err
    forms = {"dmljax, xla", "dmljax, pallas"}
    assert set(libraries.available("gpu")) == {"dmljax", "jnp", *calls, *forms}


def _line(elements, context, contender, ms, **more):
    defaults = {"operator": "one_hot", "direction": "forward", "dtype": "float32"}
    case = {"case": f"of {elements}", "context": context, "elements": elements}
    return defaults | case | {"contender": contender, "ms": ms} | more


def _pair(elements, pallas, *, contexts=("alone", "pipeline"), **more):
    return [
        _line(elements, context, contender, ms, **more)
        for context in contexts
        for contender, ms in (("dmljax, pallas", pallas), ("dmljax, xla", 2.0))
    ]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(_pair(64, 1) + _pair(128, 1.9), {4: 64}, id="wins everywhere"),
        pytest.param(_pair(64, 3) + _pair(128, 1), {4: 128}, id="wins when large"),
        pytest.param(_pair(64, 1) + _pair(128, 3), {}, id="loses when large"),
        pytest.param(_pair(64, 1) + _pair(128, 2.01), {4: 64}, id="a tie when large"),
        pytest.param(_pair(64, 2.01) + _pair(128, 1), {4: 128}, id="a tie when small"),
        pytest.param(_pair(64, 3) + _pair(64, 1), {4: 64}, id="the newest line counts"),
        pytest.param(
            _pair(64, 1) + _pair(64, 3, contexts=["pipeline"]),
            {},
            id="loses in a pipeline",
        ),
        pytest.param(_pair(64, 1, contexts=["alone"]), {}, id="no pipeline measured"),
        pytest.param(
            _pair(64, 1) + _pair(64, 3, case="other", dtype="int8"),
            {4: 64},
            id="types of their own",
        ),
        pytest.param(
            _pair(64, 1) + _pair(64, 3, case="other", contexts=["alone"]),
            {},
            id="loses in another case of the size",
        ),
        pytest.param(
            _pair(64, 1) + _pair(64, 3, direction="gradient"),
            {4: 64},
            id="gradients have no say",
        ),
        pytest.param([_line(64, "alone", "jnp", 1.0)], {}, id="no kernel"),
    ],
)
def test_the_rule_in_a_pipeline_by_the_ledger(lines, expected):
    assert choose.rule(lines)["pipeline"].get("one_hot", {}) == expected


def test_the_rule_alone_asks_for_no_pipeline():
    lines = _pair(64, 3) + _pair(128, 1, contexts=["alone"])
    lines += _pair(128, 3, contexts=["pipeline"])
    assert choose.rule(lines) == {"alone": {"one_hot": {4: 128}}, "pipeline": {}}


@pytest.mark.parametrize("rule", [{}, {"one_hot": {4: 64, 1: 2**20}, "a": {2: 1}}])
def test_the_rule_becomes_a_module(rule):
    rules = {"cuda": {"alone": rule, "pipeline": {}}}
    text = choose.source(rules)
    module = {}
    exec(text, module)
    assert module["KERNEL_FROM"] == rules
    assert max(map(len, text.splitlines())) <= 88


def test_the_default_is_that_of_the_ledger():
    assert choose.TARGET.read_text() == choose.source(choose.rules())


def test_pages_are_those_of_the_ledgers(tmp_path, monkeypatch):
    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", lambda *_, **__: None)
    plot.main(tmp_path)
    pages = [path.name for path in tmp_path.iterdir()]
    assert len(pages) == 5
    for page in pages:
        assert (tmp_path / page).read_text() == (plot.DOCS / page).read_text()


def test_a_ledger_becomes_a_page_and_pictures(tmp_path, monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.setattr("benchmarks.timing.CEILING_BYTES", CEILING_BYTES)
    out = tmp_path / "device.jsonl"
    arguments = [*QUICK, "--elements", "4096", "--out", str(out)]
    run.main([*arguments, "--only", "one_hot int8"])
    plot.write(out, tmp_path)
    page = (tmp_path / "benchmarks_device.md").read_text()
    assert "## In a pipeline" in page
    others = "NumPy" if jax.default_backend() == "cpu" else ""
    assert f"| case | dmljax | jax.numpy | {others}" in page
    assert "### one_hot\n" in page
    assert "| int8 (32, 128), axis -1, int32 indices |" in page
    written = {path.name for path in tmp_path.glob("*.png")}
    assert written == {"benchmarks_device.png", "benchmarks_device_share.png"}


several = pytest.mark.skipif(jax.device_count() < 8, reason="there are few devices")


@several
def test_scaling_is_timed_drawn_and_tabulated(tmp_path):
    out = tmp_path / "device_scaling.jsonl"
    arguments = [*QUICK, "--elements", "131072", "--out", str(out)]
    only = "rows divided gradient, automatic"
    assert scaling.main([*arguments, "--only", only]) == 0
    lines = ledger.read(out)
    found = [(line["scaling"], line["devices"], line["elements"]) for line in lines]
    weak = [("weak", 2**i, 2 ** (17 + i)) for i in range(4)]
    strong = [("strong", 2**i, 2**17) for i in range(4)]
    assert found == 2 * (weak + strong)  # the diagonal's and the halo's
    assert {line["communicates"] for line in lines} == {"nothing", "the strips"}
    for line in lines:
        single = next(one for one in lines if one["case"] == line["case"])
        assert line["ms"] > 0
        assert single["devices"] == 1
        if line["scaling"] == "weak":
            ratio = single["ms"] / line["ms"]
            assert line["efficiency"] == pytest.approx(ratio, rel=0.01, abs=0.001)
    matplotlib.use("Agg")
    plot_scaling.write(out, tmp_path)
    page = (tmp_path / "benchmarks_device_scaling.md").read_text()
    assert page.count("| the strips |") == 2
    assert (tmp_path / "benchmarks_device_scaling.png").stat().st_size > 0


@several
@pytest.mark.parametrize("work", scaling.WORK, ids=lambda work: work.label)
def test_all_that_scales_is_the_same_on_all_devices(work):
    """One that is not stops the run before it is timed."""
    expected = scaling.results(work, 1, scaling.CHECKED)
    assert any(array.any() for array in expected)
    for one, other in zip(
        scaling.results(work, 4, scaling.CHECKED), expected, strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_work_says_what_the_page_of_sharding_says():
    said = {word for by in test_sharding.table().values() for word in by.values()}
    assert {work.communicates for work in scaling.WORK} <= said
