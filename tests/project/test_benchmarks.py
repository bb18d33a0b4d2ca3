"""The benchmarks run, check results, and write the ledger's rows. Times are ignored."""

import dataclasses
import functools
import re
import shlex

import jax
import numpy as np
import pytest
from jax.sharding import AxisType

from benchmarks import __main__ as command
from benchmarks import (
    divided,
    forms,
    ledger,
    libraries,
    oracles,
    plot,
    run,
    scaling,
    tpu,
    tracing,
)
from benchmarks.cases import cases
from benchmarks.command import device_name
from benchmarks.data import Data
from benchmarks.programs import PROGRAMS, one_hot, padding
from benchmarks.programs.program import TINY, cases_of
from dmljax import PaddingMode
from dmljax._operators import OPERATORS
from tests import meshes, samples
from tests.checks import needs_devices, needs_kernels, slow
from tests.project.texts import words_of

# Programs are written as users write them.
pytestmark = pytest.mark.usefixtures("standard_promotion")
# The commit is named, as the tests may run where there is no git.
QUICK = ("--rounds", "1", "--commit", "test")
SMALL = (*QUICK, "--elements", "1024")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """The arrays that are copied, and those that are compared, are small."""
    sizes = {"cpu": 2**12, "gpu": 2**12}
    monkeypatch.setattr("benchmarks.timing.CEILING_BYTES", sizes)
    monkeypatch.setitem(scaling.CHECKED, "cpu", 2**16)


@functools.cache
def every(platform, elements=2**26):
    """All cases: it takes half a second to make them."""
    return list(cases(platform, elements))


# CASES


def test_cases_have_names_of_their_own():
    for named in (every("cpu"), every("gpu"), (*divided.WORK, *divided.BESIDE_JNP)):
        labels = [one.label for one in named]
        assert len(set(labels)) == len(labels)


def test_a_case_knows_its_smallest_traffic():
    named = {(case.name, case.direction): case for case in every("cpu", 2**10)}
    select = named["two tensors, 4 KiB", "forward"]
    assert select.bytes == 13 * 1024
    assert select.elements == 1024
    undefined = named["float32 (1024,), 1.0% non-zero, undefined tail", "forward"]
    (x,) = undefined.arrays()
    assert undefined.bytes == 4 * (1024 + np.count_nonzero(x) + 1)
    logarithm = named["safe logarithm, float32 (1, 1024)", "gradient"]
    assert logarithm.bytes == 4 * 4 * 1024  # two inputs, the result and the gradient


# PROGRAMS

# All programs with one type; their other types are slow tests.
TIMED = []
ON_CPUS = {**dict(padding.on_cpu()), **dict(one_hot.on_cpu()), **PROGRAMS}
for name, one in ON_CPUS.items():
    first, *others = one.dtypes
    TIMED.append((name, one, first))
    TIMED += [slow(name, one, kind) for kind in others]


@pytest.mark.parametrize(("name", "program", "dtype"), TIMED)
def test_a_program_computes_the_same_in_every_spelling(name, program, dtype):
    """We compile all spellings as one program. A gradient has the result, too."""
    *_, case = cases_of("cpu", name, program, TINY, [dtype])
    arrays = case.arrays()
    functions = {
        name: function
        for name, function in case.functions.items()
        if libraries.ALL[name.split()[0]] is libraries.ALL["jnp"]
    }
    assert len(functions) >= 2

    def spellings(*arrays):
        return {name: function(*arrays) for name, function in functions.items()}

    sampled = case.oracle(*arrays)
    for name, result in jax.jit(spellings)(*arrays).items():
        if not name.startswith("reference"):
            compare(sampled, *jax.tree.leaves(result), typed=name.startswith("dmljax"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_can_be_copied_out_and_run(name):
    """We compile nothing: the result has a shape only if all names are defined."""
    scope = {}
    text = command.code(name, TINY)
    text = text.replace("jax.jit(", "functools.partial(jax.eval_shape, ")
    exec(text, scope)
    case = next(cases_of("gpu", name, PROGRAMS[name], TINY, PROGRAMS[name].dtypes[:1]))
    assert scope["result"].shape == case.output.shape
    assert "# jnp" in text


def test_the_list_of_programs(capsys):
    assert command.main([]) == 0
    output = capsys.readouterr().out
    for name in PROGRAMS:
        assert f"    {name} " in output
    assert "def rows_of_mask(" in output
    assert command.main(["no", "such"]) == 2
    assert "no program is named 'no such'" in capsys.readouterr().err


# FORMS

# Forms of operators with a kernel for NVIDIA GPUs.
OF_KERNELS = {"rows", "nothing copied", "no kernel"}
WHERE = [
    pytest.param(word, platform, marks=needs_kernels if word in OF_KERNELS else ())
    for word, plain in forms.FORMS.items()
    for platform in plain.platforms.split()
]


@pytest.mark.parametrize(("word", "platform"), WHERE)
def test_a_plain_form_is_another_program_than_the_special_one(word, platform):
    """A plain form that replaces an unused name would leave the program as it is.

    The hash of a kernel does not depend on the names of the functions that build it.
    """
    known = tpu.cases() if platform == "tpu" else every(platform)
    contender = f"{forms.FORMS[word].of} [{word}]"

    def text(case, name):
        structs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in case.inputs]
        with forms.replaced(name):
            traced = jax.jit(case.functions[name]).trace(*structs)
            target = "cuda" if platform == "gpu" else platform
            found = traced.lower(lowering_platforms=(target,)).as_text()
        return re.findall(r'kernel_hash = "(?:[^"\\]|\\.)*"', found) or found

    found = [case for case in known if contender in case.functions]
    assert any(text(c, contender) != text(c, forms.FORMS[word].of) for c in found)


def test_the_older_padding_is_a_padding():
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    mode = PaddingMode.REFLECTION
    pad = functools.partial(forms.selected, start=(1, 2), end=(3, 0), mode=mode)
    (padded,) = jax.jit(pad)(x)
    np.testing.assert_array_equal(padded, np.pad(x, ((1, 3), (2, 0)), "reflect"))


# RUNS


@pytest.mark.parametrize(
    "only", ["undefined tail", "two tensors, 4 KiB", "label smoothing, float32"]
)
def test_a_run_checks_results_and_writes_lines(only, tmp_path):
    assert run.main([*SMALL, "--out", str(tmp_path), "--only", only]) == 0
    lines = ledger.read(device_name(jax.devices()[0]), tmp_path)
    contenders = {line["contender"] for line in lines}
    assert "dmljax" in contenders
    assert "dmljax [select]" in contenders or "label" not in only
    for line in lines:
        assert line["wall_ms"] > 0
        assert shlex.split(line["command"])[-1] == only
        inside = line["contender"].startswith("dmljax") and line["context"] != "call"
        assert bool(line["compile_ms"] and line["peak_mib"]) >= inside


each_run = pytest.mark.parametrize("module", [run, scaling, tpu])


@each_run
def test_a_ledger_that_cannot_be_written_is_an_error_at_once(module, tmp_path):
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(FileExistsError):
        module.main(["--commit", "test", "--out", str(path)])


@each_run
def test_a_run_of_no_case_is_an_error(module, tmp_path):
    with pytest.raises(SystemExit, match="no case has 'nothing' in its text"):
        module.main(["--out", str(tmp_path / "new"), "--only", "nothing"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("contender", ["dmljax", "jnp"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_one_wrong_element_is_an_error(operator, contender):
    of_operator = (operator, "program")
    known = every("cpu", 2**10)
    case = next(c for c in known if (c.operator, c.context) == of_operator)
    name = next(n for n in case.functions if n.split()[0] == contender)

    def wrong(*arrays):
        *leaves, last = jax.tree.leaves(case.functions[name](*arrays))
        return *leaves, last.reshape(-1).at[-1].add(1).reshape(last.shape)

    bad = dataclasses.replace(case, functions={name: wrong}, direction="forward")
    with pytest.raises(RuntimeError, match=f"{name} is wrong in {operator}"):
        run.time_case(bad, libraries.ALL, {bad.ceiling: 10.0}, rounds=1)


def test_poison_takes_the_place_of_a_result():
    result = jax.device_put(np.arange(4))
    libraries.ALL["dmljax"].before_check((result,))
    assert result.is_deleted()


def test_a_missing_library_is_left_out_with_a_message(monkeypatch, capsys):
    monkeypatch.setattr(libraries, "_installed", lambda name: name in {"jax", "numpy"})
    own = {"dmljax", "jnp", "reference"}
    assert set(libraries.available("cpu")) == own | {"numpy"}
    assert "torch is left out: no torch" in capsys.readouterr().err
    assert set(libraries.available("gpu")) == own


# ORACLES AND DATA


def compare(sampled, *results, typed=True):
    oracles.compare(sampled, results, libraries.ALL["numpy"].take, typed=typed)


def test_wrong_sizes_and_types_are_errors():
    right = np.arange(6, dtype=np.float32).reshape(2, 3)
    sampled = [oracles.Sample(right.shape, oracles.grid(right.shape), right)]
    compare(sampled, right)
    compare(sampled, right.astype(np.float64), typed=False)
    with pytest.raises(AssertionError, match="type float64 instead of float32"):
        compare(sampled, right.astype(np.float64))
    with pytest.raises(AssertionError, match=r"sizes \(3, 2\) instead of \(2, 3\)"):
        compare(sampled, right.T, typed=False)


def test_the_rows_past_the_count_may_be_missing_but_not_wrong():
    x = np.array([[0, 5], [7, 0]], np.float32)
    sampled = oracles.nonzero_coordinates(x)
    rows = np.array([[0, 1], [1, 0], [0, 0], [0, 0]], np.uint32)
    count = np.array(2, np.uint32)
    compare(sampled, count, rows)
    compare(sampled, rows[:2].astype(np.int64), typed=False)
    with pytest.raises(AssertionError, match="1 outputs instead of 2"):
        compare(sampled, rows)
    poisoned = rows.copy()
    poisoned[3] = 0xA5A5A5A5
    with pytest.raises(AssertionError):
        compare(sampled, count, poisoned)
    compare(oracles.nonzero_coordinates(x, undefined=True), count, poisoned)


@pytest.mark.parametrize("mode", samples.NUMPY)
def test_the_sampled_oracles_of_padding_agree_with_numpy(mode, monkeypatch):
    monkeypatch.setattr(oracles, "COMPARED", 81)
    x = Data((5, 40), "float32").array()
    pads = ((0, 2), (3, 4))
    (forward,) = oracles.padding(x, pads=pads, mode=mode)
    wanted = np.pad(x, pads, mode)[np.ix_(*forward.axes)]
    np.testing.assert_array_equal(forward.values, wanted)
    assert {2, 3, 42, 43} <= set(forward.axes[1])


def test_data_is_made_from_a_block_and_counted_without_being_made():
    data = Data((2**11, 2**10), "uint8", density=0.1)
    assert data.nonzeros() == np.count_nonzero(data.array())
    assert not np.array_equal(data.array()[0], data.array()[2**10])


# THE LEDGER AND ITS PAGES


def test_a_new_figure_replaces_the_old_one(tmp_path):
    one = {"operator": "padding", "name": "1", "contender": "jnp", "ms": 0.123456}
    two = one | {"name": "2"}
    old = {"device": "A GPU", "commit": "old"}
    new = {"device": "A GPU", "commit": "new"}
    ledger.write("A GPU", old, [one, two], tmp_path)
    ledger.write("A GPU", new, [one | {"ms": 2e-5}], tmp_path)
    found = ledger.read("a-gpu", tmp_path)
    assert [(x["ms"], x["commit"]) for x in found] == [(2e-5, "new"), (0.1235, "old")]
    ledger.write("A GPU", new, [two | {"ms": None}], tmp_path)
    assert ledger.lines("A GPU", tmp_path)["padding", "2", "", ""]["jnp"]["ms"] is None
    # No figure is of the old run any more.
    assert [row["commit"] for row in ledger._load(tmp_path / "runs.csv")] == ["new"]


@pytest.mark.parametrize(
    "device", ["NVIDIA H200", "NVIDIA H100 80GB HBM3", plot.CPU, plot.NEWEST]
)
def test_the_ledger_has_the_cases_of_today_and_no_others(device):
    platform = "cpu" if "CPU" in device else "gpu"
    known = *every(platform, run.ELEMENTS[platform]), *tracing.work()
    timed = {one.label: one for one in known}
    for label, row in ledger.lines(device).items():
        assert timed[" ".join(label)].functions.keys() >= row.keys()
    assert sum(path.stat().st_size for path in ledger.RESULTS.iterdir()) < 10**6


def test_tables_and_a_picture_in_git_are_those_of_the_ledger(tmp_path, monkeypatch):
    docs = plot.DOCS
    pages = {
        path.name: path.read_text() for path in (docs / "benchmarks.md", plot.README)
    }
    marked = r"^(<!-- python -m benchmarks\.plot .* -->\n)(\|.*\n)+"
    for name, text in pages.items():
        (tmp_path / name).write_text(re.sub(marked, r"\1", text, flags=re.MULTILINE))
    monkeypatch.setattr(plot, "DOCS", tmp_path)
    monkeypatch.setattr(plot, "README", tmp_path / "README.md")
    plot.main()
    for name, text in pages.items():
        assert (tmp_path / name).read_text() == text
    drawn = words_of(tmp_path / "benchmarks_overview.svg")
    assert drawn == words_of(docs / "benchmarks_overview.svg")
    assert "causal attention" in "".join(drawn)


def test_each_table_of_the_ledger_becomes_a_page(tmp_path):
    plot.write_pages(tmp_path)
    pictures = {path.name: path.read_text() for path in tmp_path.glob("*.svg")}
    tables = {path.stem for path in ledger.RESULTS.glob("*.csv")}
    pages = {path.stem: path.read_text() for path in tmp_path.rglob("*.md")}
    expected = {f"benchmarks_{name}" for name in tables - {"runs", "cases", "tpu"}}
    assert set(pages) == expected | {"tpu_estimates"}
    assert set(re.findall(r"!\[.+\]\((.+)\)", "".join(pages.values()))) == set(pictures)
    for name, picture in pictures.items():
        # A phone shows a picture at full size: 350 pixels, at 96 per inch (72 points).
        width, _ = re.findall(r' (?:width|height)="([\d.]+)pt"', picture)[:2]
        assert float(width) <= 350 * 72 / 96, name
        assert set(re.findall(r"font-size: ([\d.]+)px", picture)) == {"9"}, name
        assert "prefers-color-scheme: dark" in picture, name
    assert "\n| float32 (67108864,), 1.0%" in pages["benchmarks_nvidia-h200"]


def test_figures_name_all_contenders_from_the_fastest_on():
    row = {
        "jnp": {"wall_ms": 0.5},
        "torch": {"wall_ms": 0.25},
        "dmljax": {"ms": 0.1424, "wall_ms": 1.5, "share": 0.5},
    }
    table = plot.figures({("padding", "x", "gradient", ""): row})
    cells = "| x, gradient | 1.50 | 0.142 | 0.50 | PyTorch 0.250; jax.numpy 0.500 |"
    assert table.splitlines()[2] == cells


# SEVERAL DEVICES AND TPUS


def scaled(folder, *only):
    """Times small arrays on several devices, and returns the ledger's lines."""
    arguments = [*QUICK, "--elements", "131072", "--out", str(folder)]
    failed = scaling.main([*arguments, *only])
    (path,) = folder.glob("*-scaling.csv")
    return failed, ledger.lines(path.stem, folder)


def assert_efficiency(line, single, column):
    ratio = single[column] / line[column]
    assert line["efficiency"] == pytest.approx(ratio, rel=0.01, abs=0.001)


@needs_devices
def test_scaling_is_timed(tmp_path):
    failed, found = scaled(tmp_path, "--only", "rows divided, gradient, automatic")
    assert not failed
    assert len(found) == 4  # weak and strong, the diagonal's and the padding's
    for key, row in found.items():
        assert list(row) == ["1 device", "2 devices", "4 devices", "8 devices"]
        assert all(line["ms"] > 0 for line in row.values())
        last = row["8 devices"]
        assert (last["sent"] > 0) == key[1].startswith("REFLECTION")
        if key[3].startswith("weak"):
            assert_efficiency(last, row["1 device"], "ms")


@needs_devices
def test_a_program_is_timed_beside_its_twin(tmp_path, monkeypatch, capsys):
    """With explicit axes jnp.pad can't pad a divided dimension: there is no twin."""
    monkeypatch.setattr(scaling, "counts", lambda: [1, 2])
    only = "a table between two operations, float32"
    failed, found = scaled(tmp_path, "--only", only)
    assert not failed
    shown = capsys.readouterr().out.splitlines()
    rows = {key[3]: row for key, row in found.items()}
    automatic = rows["weak scaling, automatic axes"]
    explicit = rows["weak scaling, explicit axes"]
    assert [*explicit, *(f"jnp, {count}" for count in explicit)] == [*automatic]
    for row in (automatic, explicit):
        assert row["1 device"]["sent"] == 0
        assert row["2 devices"]["sent"] > 0
        for contender, line in row.items():
            single = contender.replace("2 devices", "1 device")
            assert_efficiency(line, row[single], "wall_ms")
    (text,) = (x for x in shown if "2 devices" in x and "of jax.numpy's time" in x)
    ours, twin = (automatic[n]["wall_ms"] for n in ("2 devices", "jnp, 2 devices"))
    said = re.search(r"2 times the work in ([\d.]+) times .*; ([\d.]+) of", text)
    times = ours / automatic["1 device"]["wall_ms"]
    assert float(said[1]) == pytest.approx(times, rel=0.1)
    assert float(said[2]) == pytest.approx(ours / twin, abs=0.01)


@needs_devices
def test_scaling_goes_on_after_a_program_that_fails(tmp_path, monkeypatch, capsys):
    """A result that differs from the twin's is an error, and has no figure."""
    wrong = dataclasses.replace(
        divided.BY_VMAP, function=lambda lines: divided.found_by_vmap(lines) + 1
    )
    monkeypatch.setattr(scaling, "counts", lambda: [1, 2])
    monkeypatch.setattr(scaling, "WORK", [])
    monkeypatch.setattr(scaling, "BESIDE_JNP", [wrong, divided.BY_PARTS])
    failed, found = scaled(tmp_path)
    assert failed == 1
    assert "fails: AssertionError" in capsys.readouterr().out
    assert [key[1] for key in found] == [divided.BY_PARTS.case]


# All twins in one type with automatic axes; their other types are slow tests.
COMPARED = [*divided.WORK]
for work in divided.BESIDE_JNP:
    first = not {"float32", "uint8"} & {*work.dtypes} and work.axes == "automatic"
    if work.twin:
        COMPARED.append(work if first else slow(work))
on_one_device = functools.cache(functools.partial(scaling.results, devices=1))


@needs_devices
@pytest.mark.parametrize("work", COMPARED, ids=lambda work: work.label)
def test_several_devices_have_the_results_of_one_or_of_the_twin(work):
    """Different results stop the run before the work is timed."""
    function = work.twin or work.function
    # One device has the same program for both kinds of axes.
    other = dataclasses.replace(work, function=function, kind=AxisType.Auto)
    scaling.check(work, 4, on_one_device(dataclasses.replace(other, divided=None)))


@needs_devices
@pytest.mark.slow
def test_the_page_has_the_bytes_that_eight_devices_send():
    meshes.check_bytes(jax.devices()[:8])


def test_a_schedule_counts_as_often_as_its_loops_go_round():
    loop = ["0x1 LB: > { vld }", "0x2 : > { scmp.ge.s32 s1, 10 /* loop exit test */ }"]
    assert tpu.cycles("\n".join(["0x0 : { vadd }", *loop, "0x3 : { vst }"])) == 22


def test_a_case_for_tpus_has_jax_numpy_for_a_twin():
    for case in tpu.cases():
        if case.dtype == "float32":
            structs = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in case.inputs]
            for name in ("dmljax", "jnp"):
                results = jax.eval_shape(case.functions[name], *structs)
                assert jax.tree.leaves(results)[-1].shape == case.output.shape
