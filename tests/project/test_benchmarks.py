"""The benchmarks run, compare results, and write rows. Times are ignored."""

import dataclasses
import functools
import re
import shlex
import sys
from unittest import mock

import jax
import numpy as np
import pytest

from benchmarks import (
    compare,
    divided,
    forms,
    ledger,
    libraries,
    plot,
    run,
    scaling,
    timing,
)
from benchmarks import shapes as scan
from benchmarks.cases import cases
from benchmarks.command import device_name
from benchmarks.programs import FRONT, PROGRAMS
from benchmarks.programs.nonzero_coordinates import lines
from benchmarks.programs.program import CPU, QUICK, cases_of, quick
from tests import meshes
from tests.checks import needs_devices, needs_kernels, slow
from tests.project.texts import words_of

# Programs are written as users write them.
pytestmark = [
    pytest.mark.usefixtures("standard_promotion"),
    # torch.compile of PyTorch 2.11 calls torch.jit.
    pytest.mark.filterwarnings("ignore:`torch:DeprecationWarning"),
]
# The commit is named, as the tests may run where there is no git.
ONCE = ("--rounds", "1", "--commit", "test")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """The array that is copied is small."""
    sizes = {"cpu": 2**12, "gpu": 2**12}
    monkeypatch.setattr("benchmarks.timing.COPIED_BYTES", sizes)


@functools.cache
def every(platform, elements=2**26):
    """All cases: it takes half a second to make them."""
    return list(cases(platform, elements))


# CASES AND PROGRAMS


def test_a_copy_reads_and_writes(monkeypatch):
    """4096 bytes in a millisecond."""
    monkeypatch.setattr(timing, "wall_times", lambda *_, **__: {"copy": [1.0]})
    assert timing.copy_speed(libraries.ALL["numpy"], rounds=1) == 2 * 4096 / 1e6


def test_torch_may_multiply_as_xla_does(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", torch := mock.MagicMock())
    libraries.ALL["torch"].put(np.ones(1))
    torch.set_float32_matmul_precision.assert_called_with("high")


def test_cases_have_names_of_their_own():
    for named in (
        every("cpu", 2**22),
        every("gpu"),
        divided.WORK,
        list(scan.scan("gpu")),
    ):
        labels = [one.label for one in named]
        assert len(set(labels)) == len(labels)


def test_a_case_knows_its_smallest_traffic():
    named = {(case.name, case.direction): case for case in every("gpu")}
    select = named["two tensors, 4 KiB", "forward"]
    assert select.bytes == 13 * 1024
    assert select.elements == 1024
    mean = named["masked mean, float32 (65536, 1024)", "gradient"]
    # The array and its gradient, the mask, and a number for each row in and out.
    assert mean.bytes == 9 * 2**26 + 8 * 2**16


def smaller(program):
    """The program with at most 256 elements in a dimension, or 2048 in a line."""
    most = 256 if len(program.shapes[CPU][0]) > 1 else 2048
    large = quick(program.shapes[CPU])
    shapes = [tuple(min(size, most) for size in shape) for shape in large]
    return dataclasses.replace(program, shapes={QUICK: shapes})


# A run compares the results of a program again before it times it, also in bfloat16.
TIMED = [("lines", lines((64, 40)), "bool")]
for name, one in PROGRAMS.items():
    types = [kind for kind in one.dtypes if kind != "bfloat16"]
    TIMED += [slow(name, smaller(one), kind) for kind in types]


@pytest.mark.parametrize(("name", "program", "dtype"), TIMED)
def test_a_program_computes_the_same_in_every_spelling(name, program, dtype):
    """A gradient has the result, too."""
    of_type = dataclasses.replace(program, dtypes=(dtype,))
    # A platform without a name has all types, and no contender of a GPU.
    *_, case = cases_of("", name, of_type, QUICK)
    calls, errors = run.checked(case, {n: libraries.ALL[n] for n in ("dmljax", "jnp")})
    assert not errors
    assert len(calls) >= 2


# FORMS

# Forms of operators with a kernel for NVIDIA GPUs.
OF_KERNELS = {"no kernel"}
WHERE = [
    pytest.param(word, platform, marks=needs_kernels if word in OF_KERNELS else ())
    for word, plain in forms.FORMS.items()
    for platform in plain.platforms.split()
]


@pytest.mark.parametrize(("word", "platform"), WHERE)
def test_a_plain_form_is_another_program_than_the_special_one(word, platform):
    """A plain form that replaces an unused name would leave the program as it is."""
    contender = f"{forms.FORMS[word].of} [{word}]"

    def text(case, name):
        with forms.replaced(name):
            traced = jax.jit(case.functions[name]).trace(*case.structs)
            target = "cuda" if platform == "gpu" else platform
            return traced.lower(lowering_platforms=(target,)).as_text()

    scanned = [forms.with_plain(case, platform) for case in scan.scan(platform)]
    known = [*every(platform, run.ELEMENTS[platform]), *scanned]
    found = [case for case in known if contender in case.functions]
    assert any(text(c, contender) != text(c, forms.FORMS[word].of) for c in found)


# RUNS


@pytest.mark.parametrize("only", ["two tensors, 4 KiB", "label smoothing, float32"])
def test_a_run_checks_results_and_writes_lines(only, tmp_path):
    elements = "--elements", str(QUICK)
    assert run.main([*ONCE, *elements, "--out", str(tmp_path), "--only", only]) == 0
    lines = ledger.read(device_name(jax.devices()[0]), tmp_path)
    contenders = {line["contender"] for line in lines}
    assert "dmljax" in contenders
    assert "dmljax [select]" in contenders or "label" not in only
    for line in lines:
        assert line["wall_ms"] > 0
        assert shlex.split(line["command"])[-1] == only


@pytest.mark.parametrize("module", [run, scaling, scan])
def test_a_run_of_no_case_is_an_error(module, tmp_path):
    with pytest.raises(SystemExit, match="no case has 'nothing' in its text"):
        module.main(["--out", str(tmp_path / "new"), "--only", "nothing"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("operator", sorted({p.operator for p in PROGRAMS.values()}))
def test_one_wrong_element_is_an_error(operator):
    of_operator = (operator, "program")
    known = every("cpu", QUICK)
    case = next(c for c in known if (c.operator, c.context) == of_operator)

    def wrong(*arrays):
        *leaves, last = jax.tree.leaves(case.functions["dmljax"](*arrays))
        return *leaves, last.reshape(-1).at[-1].add(1).reshape(last.shape)

    bad = dataclasses.replace(
        case, functions={"dmljax": case.functions["dmljax"], "jnp": wrong}
    )
    calls, (error,) = run.checked(bad, libraries.ALL)
    assert list(calls) == ["dmljax"]
    assert error.startswith(f"jnp in {operator}")


def test_rows_past_the_count_may_be_missing_but_not_wrong():
    library = libraries.ALL["numpy"]
    samples = [run.sample(np.array([3, 5, 0, 0]), library)]
    run.compare(samples, [np.array([3, 5])], library, 0)
    for wrong in ([3], [3, 5, 1], [3, 5, 0, 0, 0]):
        with pytest.raises(AssertionError):
            run.compare(samples, [np.array(wrong)], library, 0)


def test_poison_takes_the_place_of_a_result():
    result = jax.device_put(np.arange(4))
    libraries.ALL["dmljax"].before_check((result,))
    assert result.is_deleted()


def test_a_missing_library_is_left_out_with_a_message(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name != "torch")
    monkeypatch.setattr(libraries, "_nvcc", lambda: None)
    own = {"dmljax", "jnp", "reference"}
    assert set(libraries.available("cpu")) == own | {"numpy"}
    assert set(libraries.available("gpu")) == own
    said = capsys.readouterr().err
    assert "torch is left out: no torch" in said
    assert "cub is left out: no nvcc" in said


def test_a_scan_of_shapes(tmp_path, capsys):
    only = "{0: (16, 16)}, wrap", "--write"
    assert scan.main([*ONCE, "--out", str(tmp_path), "--only", *only]) == 0
    assert "behind in " in capsys.readouterr().out
    (path,) = tmp_path.glob("*-shapes.csv")
    found = ledger.lines(path.stem, tmp_path)
    assert [key[2] for key in found] == ["forward", "gradient"]


def test_the_comparison_has_a_line_for_each_spelling(capsys):
    arguments = [*ONCE, "--elements", str(QUICK)]
    assert compare.main([*arguments, "--only", "rows of a mask and back"]) == 0
    printed = capsys.readouterr().out
    assert "\nrows of a mask and back, 50 % chosen, room for 62.5 %" in printed
    found = re.findall(r"^    (.+) \S+ \(\S+\)$", printed, re.MULTILINE)
    assert found[:2] == ["jnp", "jnp scatter"]
    assert [case.name.split(", ")[0] for case in compare.cases(QUICK)] == list(FRONT)


# THE LEDGER AND ITS PAGES


def test_a_new_figure_replaces_the_old_one(tmp_path):
    one = {"operator": "padding", "name": "1", "contender": "jnp", "wall_ms": 0.123456}
    two = one | {"name": "2"}
    old = {"device": "A GPU", "commit": "old"}
    new = {"device": "A GPU", "commit": "new"}
    ledger.write("A GPU", old, [one, two], tmp_path)
    ledger.write("A GPU", new, [one | {"wall_ms": 2e-5}], tmp_path)
    found = ledger.read("a-gpu", tmp_path)
    assert [(x["wall_ms"], x["commit"]) for x in found] == [
        (2e-5, "new"),
        (0.1235, "old"),
    ]
    ledger.write("A GPU", new, [two | {"wall_ms": None}], tmp_path)
    assert ledger.lines("A GPU", tmp_path)["padding", "2", "", ""]["jnp"] is not None
    # No figure is of the old run any more.
    assert [row["commit"] for row in ledger._load(tmp_path / "runs.csv")] == ["new"]


@pytest.mark.parametrize("path", sorted(ledger.RESULTS.glob("*.csv")))
def test_the_ledger_has_the_cases_of_today_and_no_others(path):
    assert path.stat().st_size < 10**5
    if path.stem.endswith(("-scaling", "-shapes", "cases", "runs")):
        return
    kind = "cpu" if "cpu" in path.stem else "gpu"
    known = {one.label: one for one in every(kind, run.ELEMENTS[kind])}
    for label, row in ledger.lines(path.stem).items():
        assert known[" ".join(label)].functions.keys() >= row.keys()


def test_the_tables_and_the_picture_in_git_are_those_of_the_ledger(
    tmp_path, monkeypatch
):
    docs, pages = tmp_path / "docs", ("docs/benchmarks.md", "README.md")
    docs.mkdir()
    marked = r"^(<!-- python -m benchmarks\.plot .* -->\n)(\|.*\n)+"
    texts = {page: (plot.DOCS.parent / page).read_text() for page in pages}
    for page, text in texts.items():
        empty, tables = re.subn(marked, r"\1", text, flags=re.MULTILINE)
        assert tables == (1 if page == "README.md" else 2)
        (tmp_path / page).write_text(empty)
    drawn = words_of(plot.DOCS / "benchmarks_overview.svg")
    monkeypatch.setattr(plot, "DOCS", docs)
    plot.main()
    assert {page: (tmp_path / page).read_text() for page in pages} == texts
    assert words_of(docs / "benchmarks_overview.svg") == drawn
    assert "causal attention" in "".join(drawn)


def test_figures_name_all_contenders_from_the_fastest_on():
    row = {
        "jnp": {"wall_ms": 0.5},
        "torch": {"wall_ms": 0.25},
        "dmljax": {"wall_ms": 1.5, "share": 0.5},
    }
    table = plot.figures({("padding", "x", "gradient", "program"): row})
    times = "torch 0.250; jnp 0.500; dmljax 1.50"
    cells = f"| padding | x | gradient | program | {times} | 0.500 |"
    assert table.splitlines()[2] == cells


# SEVERAL DEVICES


def scaled(folder, *only):
    """Times small arrays on several devices, and returns the ledger's lines."""
    arguments = [*ONCE, "--elements", "16384", "--out", str(folder)]
    failed = scaling.main([*arguments, *only])
    (path,) = folder.glob("*-scaling.csv")
    return failed, ledger.lines(path.stem, folder)


@needs_devices
def test_a_program_is_timed_beside_its_twin(tmp_path, monkeypatch):
    """With explicit axes jnp.pad can't pad a divided dimension: there is no twin."""
    monkeypatch.setattr(scaling, "counts", lambda: [1, 2])
    failed, found = scaled(
        tmp_path, "--only", "a table between two operations", "--rounds", "3"
    )
    assert not failed
    rows = {key[2:]: row for key, row in found.items()}
    automatic = rows["forward", "weak scaling, automatic axes"]
    explicit = rows["forward", "weak scaling, explicit axes"]
    assert {*explicit, *(f"jnp, {count}" for count in explicit)} == {*automatic}
    for row in (automatic, explicit):
        for contender, line in row.items():
            single = row[contender.replace("2 devices", "1 device")]
            ratio = single["wall_ms"] / line["wall_ms"]
            assert line["efficiency"] == pytest.approx(ratio, rel=0.01, abs=0.001)


@needs_devices
def test_scaling_goes_on_after_a_program_that_fails(tmp_path, monkeypatch, capsys):
    """A result that differs from the twin's is an error, and has no figure."""
    one, other = (x for x in divided.WORK if "bools by" in x.case)
    wrong = dataclasses.replace(
        one, function=lambda lines: divided.found_by_vmap(lines) + 1
    )
    monkeypatch.setattr(scaling, "counts", lambda: [1, 2])
    monkeypatch.setattr(scaling, "WORK", [wrong, other])
    failed, found = scaled(tmp_path)
    assert failed == 1
    assert "fails: AssertionError" in capsys.readouterr().out
    assert [key[3] for key in found] == ["weak scaling, explicit axes"]


@needs_devices
@pytest.mark.slow
def test_all_divided_work_runs_on_four_devices(tmp_path, monkeypatch):
    """Each program has the results of its twin."""
    monkeypatch.setattr(scaling, "counts", lambda: [4])
    monkeypatch.setattr(scaling, "words_for", lambda devices: "1 device")
    monkeypatch.setattr(
        scaling, "wall_times", lambda calls, **_: {name: [1] for name in calls}
    )
    assert scaled(tmp_path)[0] == 0


@needs_devices
@pytest.mark.slow
def test_the_page_has_the_bytes_that_eight_devices_send():
    meshes.check_bytes(jax.devices()[:8])
