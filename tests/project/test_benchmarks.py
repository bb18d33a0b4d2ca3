"""The benchmarks run, check and write what a ledger needs. No time is looked at."""

import dataclasses
import re
import shlex

import jax
import jax.numpy as jnp
import matplotlib.figure
import numpy as np
import pytest

import benchmarks.cases
from benchmarks import forms, ledger, libraries, oracles, plot, run, scaling, tpu
from benchmarks.case import FORMS
from benchmarks.cases import cases
from benchmarks.command import device_name
from benchmarks.data import Data
from dmljax._operators import OPERATORS

LINEAR = [name for name, one in OPERATORS.items() if one.primitive.linear]
# The commit is named, as the tests may run where there is no git.
QUICK = ("--rounds", "1", "--commit", "test")
SMALL = (*QUICK, "--elements", "1024")


@pytest.fixture(scope="module")
def all_cases():
    return list(cases(2**10))


@pytest.fixture
def small_ceilings(monkeypatch):
    sizes = {"cpu": 2**12, "gpu": 2**12}
    monkeypatch.setattr("benchmarks.timing.CEILING_BYTES", sizes)


# CASES


def test_cases_have_names_of_their_own(all_cases):
    labels = [case.label for case in all_cases]
    assert len(set(labels)) == len(labels)


def test_every_operator_is_timed_by_itself_and_in_a_pipeline():
    found = {(case.operator, case.context) for case in cases(2**12)}
    assert found >= {(n, c) for n in OPERATORS for c in ("operator", "pipeline")}
    assert {context for _, context in found} >= {"program", "call", "form"}


def test_a_case_knows_its_smallest_traffic(all_cases):
    named = {(case.name, case.direction): case for case in all_cases}
    select = named["float32 (1024,), uint8 condition", "forward"]
    assert (select.bytes, select.elements) == (13 * 1024, 1024)
    undefined = named["float32 (1024,), 50.0% non-zero, undefined tail", "forward"]
    (x,) = undefined.arrays()
    assert undefined.bytes == 4 * (1024 + np.count_nonzero(x) + 1)
    (hot,) = (c for n, c in named.items() if "indices" in n[0] and n[1] == "gradient")
    assert hot.bytes == 4 * (1024 + 8 + 2)


def test_forms_for_a_gpu_are_two_programs():
    """A pair whose plan is read nowhere would compare a form with itself.

    The hash of a kernel does not depend on the names of the functions that build it.
    """
    for case in forms.cases("gpu", 2**26):
        (x,) = case.inputs
        struct = jax.ShapeDtypeStruct(x.shape, x.dtype)
        traced = (jax.jit(form).trace(struct) for form in case.functions.values())
        texts = (x.lower(lowering_platforms=("cuda",)).as_text() for x in traced)
        pattern = r'kernel_hash = "(?:[^"\\]|\\.)*"'
        special, plain = (re.findall(pattern, text) for text in texts)
        assert special or plain
        assert special != plain, case.name


# RUNS


@pytest.mark.parametrize(
    "only",
    [
        *("element_wise_if float16", "of b", "diagonal_matrix1 identity", "64, 64"),
        *("uint8 indices", "axis 1", "int32 indices gradient"),
        *("EDGE (0, 0, 3, 3) of float32 (4, 4, 8, 8)", "SYMMETRIC (0, 0, 7, 7)"),
        *("REFLECTION (0, 0, 3, 5)", "CONSTANT (0, 0, 0, 0), (0, 0, 0, 3)"),
        *("uint8 (1024,), 50.0%", "64 rows"),
        *("CONSTANT by 1, float32", "REFLECTION by 1, bf"),
        *("router", "causal softmax, bfloat16", "edges of 1 graphs", "4 KiB", " form"),
    ],
)
def test_a_run_checks_results_and_writes_lines(only, tmp_path, small_ceilings):
    assert run.main([*SMALL, "--out", str(tmp_path), "--only", only]) == 0
    lines = ledger.read(device_name(jax.devices()[0]), tmp_path)
    expected = {"dmljax special", "dmljax plain"} if only == " form" else {"dmljax"}
    assert {line["contender"] for line in lines} >= expected
    for line in lines:
        assert line["wall_ms"] > 0
        assert shlex.split(line["command"])[-1] == only
        inside = line["contender"].startswith("dmljax") and line["context"] != "call"
        assert bool(line["compile_ms"] and line["peak_mib"]) >= inside


def test_a_run_is_resumed_where_it_stopped(
    tmp_path, small_ceilings, monkeypatch, capsys
):
    monkeypatch.setattr(run, "cases", lambda elements: list(cases(elements))[:2])
    arguments = [*SMALL, "--out", str(tmp_path)]
    first, second = (case.label for case in list(cases(2**10))[:2])
    run.main([*arguments, "--only", first])
    capsys.readouterr()
    run.main([*arguments, "--resume"])
    shown = capsys.readouterr().out
    assert second in shown
    assert first not in shown


@pytest.mark.parametrize("module", [run, scaling, tpu])
def test_a_ledger_that_cannot_be_written_is_an_error_at_once(module, tmp_path):
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(FileExistsError):
        module.main(["--commit", "test", "--out", str(path)])


@pytest.mark.parametrize("module", [run, scaling, tpu])
def test_a_run_of_no_case_is_an_error(module, tmp_path):
    with pytest.raises(SystemExit, match="no case has 'nothing' in its text"):
        module.main(["--out", str(tmp_path / "new"), "--only", "nothing"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("operator", "direction"),
    [(name, "forward") for name in OPERATORS] + [(name, "gradient") for name in LINEAR],
)
@pytest.mark.parametrize("contender", ["dmljax", "jnp"])
def test_one_wrong_element_is_an_error(all_cases, operator, direction, contender):
    case = next(
        case
        for case in all_cases
        if (case.operator, case.direction) == (operator, direction)
    )
    if contender not in case.functions:
        assert not hasattr(benchmarks.cases, f"{operator}_cases")
        pytest.skip("batches of a sample are compared with no other library")

    def wrong(*arrays):
        leaves, tree = jax.tree.flatten(case.functions[contender](*arrays))
        last = leaves[-1]
        if case.wrt is None:
            leaves[-1] = last.reshape(-1).at[-1].add(1).reshape(last.shape)
        else:  # linear: a wrong cotangent has a wrong element
            leaves[-1] = last * 2
        return jax.tree.unflatten(tree, leaves)

    bad = dataclasses.replace(case, functions={contender: wrong})
    with pytest.raises(RuntimeError, match=f"{contender} is wrong in {operator}"):
        run.time_case(bad, libraries.ALL, {bad.ceiling: 10.0}, rounds=1)


def test_poison_takes_the_place_of_a_result():
    result = jnp.arange(4)
    libraries.ALL["dmljax"].before_check((result,))
    assert result.is_deleted()


def test_what_is_not_installed_is_left_out_and_said_so(monkeypatch, capsys):
    monkeypatch.setattr(libraries, "_installed", lambda name: name in {"jax", "numpy"})
    assert set(libraries.available("cpu")) == {"dmljax", "jnp", "numpy"}
    assert "torch is left out: no torch" in capsys.readouterr().err
    assert set(libraries.available("gpu")) == {"dmljax", "jnp"}


# ORACLES AND DATA


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


# THE LEDGER AND ITS PAGES


def test_a_new_figure_replaces_the_old_one(tmp_path):
    one, two = ({"operator": "padding", "name": n, "contender": "jnp"} for n in "12")
    old, new = ({"device": "A GPU", "commit": commit} for commit in ("old", "new"))
    ledger.write("A GPU", old, [x | {"ms": 0.123456} for x in (one, two)], tmp_path)
    ledger.write("A GPU", new, [one | {"ms": 2e-5}], tmp_path)
    found = ledger.read("a-gpu", tmp_path)
    assert [(x["ms"], x["commit"]) for x in found] == [(2e-5, "new"), (0.1235, "old")]
    ledger.write("A GPU", new, [two | {"ms": None}], tmp_path)
    assert ledger.lines("A GPU", tmp_path)["padding", "2", "", ""]["jnp"]["ms"] is None
    # No figure is of the old run any more.
    assert [row["commit"] for row in ledger._load(tmp_path / "runs.csv")] == ["new"]


@pytest.mark.parametrize(
    ("device", "elements"),
    [("NVIDIA H200", 2**26), ("NVIDIA H100 80GB HBM3", 2**26), ("x86_64 CPU", 2**22)],
)
def test_the_ledger_has_what_is_timed_today_and_nothing_else(device, elements):
    platform = "gpu" if "NVIDIA" in device else "cpu"
    timed = {c.label: c for c in (*cases(elements), *forms.cases(platform, elements))}
    for label, row in ledger.lines(device).items():
        assert timed[" ".join(label)].functions.keys() >= row.keys()
    assert sum(path.stat().st_size for path in ledger.RESULTS.iterdir()) < 10**6


def test_the_tables_of_the_page_are_those_of_the_ledger():
    text = (plot.DOCS / "benchmarks.md").read_text()
    assert plot.with_tables(text, ledger.lines(plot.OVERVIEW)) == text


def test_each_table_of_the_ledger_becomes_a_page(tmp_path, monkeypatch):
    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", lambda *_, **__: None)
    plot.write_pages(tmp_path)
    tables = {path.stem for path in ledger.RESULTS.glob("*.csv")}
    pages = {path.stem: path.read_text() for path in tmp_path.rglob("*.md")}
    expected = {f"benchmarks_{name}" for name in tables - {"runs", "cases", "tpu"}}
    assert set(pages) == expected | {"tpu_estimates"}
    assert "\n| float32 (67108864,), 1.0%" in pages["benchmarks_nvidia-h200"]
    text = (plot.DOCS / "benchmarks.md").read_text().lower().replace(" ", "-")
    for anchor in re.findall(r"benchmarks\.md#([\w-]+)", "".join(pages.values())):
        assert f"\n##-{anchor}\n" in text


def test_figures_are_microseconds_of_the_device_and_of_the_host():
    ours = {"ms": 0.1424, "wall_ms": 1.5, "share": 0.5}
    row = {"dmljax": ours, "jnp": {"ms": None, "wall_ms": 0.0005}}
    table = plot.figures({("padding", "x", "gradient", ""): row}, ["dmljax", "jnp"])
    assert table.splitlines()[2] == "| x, gradient | 142 / 1500 | 0.5 | 0.50 |"


# SEVERAL DEVICES AND TPUS

several = pytest.mark.skipif(jax.device_count() < 8, reason="there are few devices")


@several
def test_scaling_is_timed(tmp_path):
    arguments = [*QUICK, "--elements", "131072", "--out", str(tmp_path), "--only"]
    assert scaling.main([*arguments, "rows divided gradient, automatic"]) == 0
    (name,) = (p.stem for p in tmp_path.glob("*-scaling.csv"))
    found = ledger.lines(name, tmp_path)
    assert len(found) == 4  # weak and strong, the diagonal's and the halo's
    for key, row in found.items():
        assert list(row) == ["1 device", "2 devices", "4 devices", "8 devices"]
        assert all(line["ms"] > 0 for line in row.values())
        if key[3].startswith("weak"):
            ratio = row["1 device"]["ms"] / row["8 devices"]["ms"]
            efficiency = row["8 devices"]["efficiency"]
            assert efficiency == pytest.approx(ratio, rel=0.01, abs=0.001)


@several
@pytest.mark.parametrize("work", scaling.WORK, ids=lambda work: work.label)
def test_all_that_scales_is_the_same_on_all_devices(work):
    """One that is not stops the run before it is timed."""
    scaling.check(work, 4)


def test_a_schedule_counts_as_often_as_its_loops_go_round():
    loop = ["0x1 LB: > { vld }", "0x2 : > { scmp.ge.s32 s1, 10 /* loop exit test */ }"]
    assert tpu.cycles("\n".join(["0x0 : { vadd }", *loop, "0x3 : { vst }"])) == 22


def test_a_case_for_tpus_has_all_forms_and_jax_numpy():
    for case in tpu.cases():
        has_kernel = OPERATORS[case.operator].primitive.kernels.get("tpu")
        forms = FORMS if has_kernel else ("dmljax",)
        assert tuple(tpu.contenders(case)) == (*forms, "jnp")
