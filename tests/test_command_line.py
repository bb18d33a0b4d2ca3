"""The command line: what it shows, and that bad input is one line and status 2."""

import dataclasses
import doctest
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import dmljax
from dmljax import __main__ as command_line
from dmljax._model import limits as _memory
from dmljax._operators import DESCRIPTORS
from dmljax._pages.examples import EXAMPLES, Verdict
from dmljax._pages.text import IMPORTS, call
from tests.test_model import edited, padding_model


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def models(folder):
    """Writes model files, and returns their names."""

    def write(*sources):
        names = [f"m{number}.json" for number in range(len(sources))]
        for name, source in zip(names, sources, strict=True):
            (folder / name).write_text(json.dumps(source))
        return names

    return write


def rejects(capsys, arguments, *parts):
    """Asserts status 2, an empty output, and one line of error with these parts."""
    assert command_line.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("dmljax: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert "Traceback" not in err
    for part in parts:
        assert part in err


PRINTED = "Resource 'output': 1, 1, 2, 3, 3\n"


def test_run(models, capsys):
    names = models(padding_model(), padding_model())
    assert command_line.main(["run", *names, "--device", "cpu"]) == 0
    out, err = capsys.readouterr()
    assert out == f"==> m0.json <==\n{PRINTED}==> m1.json <==\n{PRINTED}"
    assert (
        err == "wrote written.npy (FLOAT32 {5})\nreplaced written.npy (FLOAT32 {5})\n"
    )
    assert np.load("written.npy").tolist() == [1, 1, 2, 3, 3]


def test_one_model_has_no_header(models, capsys):
    assert command_line.main(["run", *models(padding_model())]) == 0
    assert capsys.readouterr().out == PRINTED


def test_timing(models, capsys):
    assert command_line.main(["run", *models(padding_model()), "--timing"]) == 0
    out, err = capsys.readouterr()
    assert out == PRINTED
    words = err.splitlines()[1].split()
    assert words[:3] == ["model", "'m0.json':", "compile"]
    assert words[4:6] == ["ms,", "run"]
    assert float(words[3]) > 0
    assert float(words[6]) > 0


def test_check_runs_nothing(models, capsys, folder, monkeypatch):
    monkeypatch.setattr(command_line, "compile_model", None)
    assert command_line.main(["run", *models(padding_model()), "--check"]) == 0
    assert capsys.readouterr() == ("", "model 'm0.json': it can run\n")
    assert [path.name for path in folder.iterdir()] == ["m0.json"]


def test_standard_input(folder, capsys, monkeypatch):
    text = io.TextIOWrapper(io.BytesIO(json.dumps(padding_model()).encode()))
    monkeypatch.setattr(sys, "stdin", text)
    assert command_line.main(["run", "-"]) == 0
    assert capsys.readouterr().out == PRINTED
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"[")))
    rejects(
        capsys, ["run", "-"], "model on standard input: it is not JSON: line 1, col"
    )
    rejects(capsys, ["run", "-", "-"], "name - once")
    monkeypatch.setattr(sys, "stdin", None)
    rejects(capsys, ["run", "-"], "standard input is closed")
    with open(os.open(os.devnull, os.O_WRONLY)) as unreadable:
        monkeypatch.setattr(sys, "stdin", unreadable)
        rejects(capsys, ["run", "-"], "standard input cannot be read: Bad file desc")


def test_where_files_are_written(models, capsys, folder):
    (folder / "there").mkdir()
    names = models(padding_model())
    assert command_line.main(["run", *names, "--output-dir", "there"]) == 0
    assert "wrote there/written.npy" in capsys.readouterr().err
    assert (folder / "there/written.npy").exists()
    again = ["run", *names, "--output-dir", "there", "--no-clobber"]
    rejects(
        capsys, again, "targetPath 'written.npy' is there already, and --no-clobber"
    )
    rejects(capsys, ["run", *names, "--output-dir", "no"], "relative to", "/no'")


def test_no_file_is_written_twice(models, capsys, folder):
    """Neither by one model nor by two, if files are not to be replaced."""
    once, twice = padding_model(), padding_model()
    twice["commands"].append(twice["commands"][-1])
    first, second, third = models(once, once, twice)
    message = "targetPath 'written.npy' is written twice, and --no-clobber"
    for names in ((first, second), (third,)):
        rejects(capsys, ["run", *names, "--no-clobber"], message)
        assert not (folder / "written.npy").exists()
        assert command_line.main(["run", *names]) == 0
        (folder / "written.npy").unlink()
        capsys.readouterr()
    assert command_line.main(["run", first, "--no-clobber"]) == 0


def test_a_file_that_is_read_only_is_kept(models, capsys, folder, monkeypatch):
    (folder / "written.npy").write_bytes(b"kept")
    writable = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: writable(path, mode) and os.path.isdir(path)
    )
    rejects(capsys, ["run", *models(padding_model())], "already, and is read-only")
    assert (folder / "written.npy").read_bytes() == b"kept"


def test_the_memory_limit(models, capsys):
    big = {"valueCount": 2_500_000_000, "value": 0}
    source = edited(padding_model(), "resources", "input", "initialValues", big)
    names = models(source)
    part = (
        "the field 'valueCount' is 2500000000, which needs 9.31 GiB of memory; a model"
    )
    rejects(capsys, ["run", *names, "--max-memory", "4G"], part, "may use 4 GiB (--max")
    rejects(capsys, ["run", *names, "--max-memory", "x"], "'x' is not a size such as")


def test_the_default_limit(monkeypatch, tmp_path):
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**20}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    container = tmp_path / "memory.max"
    monkeypatch.setattr(_memory, "CONTAINER_LIMITS", (container,))
    assert _memory.default_limit() == 2 * 2**30
    container.write_text("max\n")
    assert _memory.default_limit() == 2 * 2**30
    container.write_text("1073741824\n")
    assert _memory.default_limit() == 2**29
    monkeypatch.delattr(os, "sysconf")
    assert _memory.default_limit() == 4 * 2**30


class Terminal(io.StringIO):
    """A standard error that says that it is a terminal."""

    encoding = "ascii"

    def isatty(self):
        return True


def test_progress_on_a_terminal(models, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert command_line.main(["run", *models(padding_model())]) == 0
    text = sys.stderr.getvalue()
    assert "\r\x1b[Kcompiling model 1 of 1: m0.json\r" in text
    assert text.endswith("\r\x1b[K\rwrote written.npy (FLOAT32 {5})\n")


def test_an_interrupt(models, capsys, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(command_line, "compile_model", interrupt)
    assert command_line.main(["run", *models(padding_model())]) == 130
    assert capsys.readouterr() == ("", "dmljax: interrupted\n")


def test_a_mistake_of_ours_is_not_hidden(models, monkeypatch):
    monkeypatch.setattr(command_line, "compile_model", None)
    with pytest.raises(TypeError):
        command_line.main(["run", *models(padding_model())])


def test_all_models_are_checked_before_any_runs(models, capsys, folder):
    wrong = edited(padding_model(), "commands", 1, "resource", "none")
    names = models(padding_model(), wrong)
    rejects(capsys, ["run", *names], "model 'm1.json', command 2 (print): ", "'none'")
    assert not (folder / "written.npy").exists()


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ([], ["COMMAND", "dmljax --help"]),
        (["frob"], ["invalid choice: 'frob'"]),
        (["run"], ["MODEL.json"]),
        (["run", "none.json"], ["model 'none.json': it cannot be read: No such file"]),
        (["run", "."], ["model '.': it cannot be read: Is a directory"]),
        (["run", "a\0b"], ["it is not a path: embedded null byte"]),
        (["run", "x.json", "--device", "npu"], ["--device", "'npu'"]),
        (["run", "x.json", "--device", "tpu"], ["device 'tpu' is not present"]),
        (["run", "x.json", "--speed"], ["unrecognized arguments: --speed"]),
        (["run", "x.json", "--a\nb"], ["unrecognized arguments: --a b"]),
        (["support", "GEMM"], ["'GEMM'", "DIAGONAL_MATRIX1", "PADDING1"]),
    ],
)
def test_a_wrong_command_line(arguments, parts, capsys):
    rejects(capsys, arguments, *parts)


@pytest.mark.parametrize(
    ("edit", "parts"),
    [
        (("resources", "a\nb", 3), ["resource 'a\\nb': it is 3"]),
        (("commands", 0, "bindings", "InputTensor", "x"), ["command 1 (dispatch)"]),
        (
            ("dispatchables", "pad", "type", "GEMM"),
            ["'GEMM'", "the operators are "],
        ),
        (("commands", 2, "targetPath", "no/x.npy"), ["folder that does not exist"]),
    ],
)
def test_a_wrong_model(edit, parts, models, capsys):
    names = models(edited(padding_model(), *edit))
    rejects(capsys, ["run", *names], "model 'm0.json', ", *parts)


def test_names_that_the_terminal_cannot_show(models, capsys, monkeypatch):
    source = padding_model()
    names = ["\ud800", "a\x1b[31m\nb", "\u202e", "é"]
    for name in names:
        source["resources"][name] = source["resources"]["output"]
    source["commands"] = [{"type": "print", "resource": name} for name in names]
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stdout)
    assert command_line.main(["run", *models(source)]) == 0
    lines = stdout.buffer.getvalue().decode("ascii").splitlines()
    shown = [r"\ud800", r"a\x1b[31m\nb", r"\u202e", r"\xe9"]
    assert lines == [f"Resource '{name}': 0, 0, 0, 0, 0" for name in shown]


def test_an_error_that_the_terminal_cannot_show(monkeypatch):
    stderr = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stderr", stderr)
    assert command_line.main(["run", "\xe9.json"]) == 2
    stderr.flush()
    assert stderr.buffer.getvalue().startswith(b"dmljax: model '\\xe9.json': it cannot")


def test_examples(capsys):
    assert command_line.main(["examples"]) == 0
    imports, *blocks, last = capsys.readouterr().out.strip().split("\n\n")
    assert imports == IMPORTS
    assert len(blocks) == len(EXAMPLES) == 15
    verdicts = [block.splitlines()[-1].strip() for block in blocks]
    assert sum(v.startswith("agrees with the page.") for v in verdicts) == 14
    assert verdicts[0].startswith("known error of the page: it prints ones for Value 7")
    assert sum("nown error of the page" in verdict for verdict in verdicts) == 2
    assert "[[7, 6, 5, 6, 7, 8, 7, 6, 5, 6]" in blocks[-2].replace("[[[[", "[[")
    assert blocks[0].startswith("DML_DIAGONAL_MATRIX1_OPERATOR_DESC: ")
    for example, block in zip(EXAMPLES, blocks, strict=True):
        assert call(example) in block
    assert "\n    IndicesTensor: (Sizes:{1,1,3,1} DataType:UINT32)\n" in blocks[4]
    assert last == "14 of 14 agree; in 1 more the page has a known error, as it says"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_verdict_looks_at_every_element_of_every_output(example):
    for outputs in filter(None, (example.printed, example.expected)):
        right = [np.array(output) for output in outputs]
        assert example.verdict(right) is not Verdict.DISAGREES
        for i in range(len(right)):
            wrong = [output.copy() for output in right]
            wrong[i].flat[-1] += 9
            assert example.verdict(wrong) is Verdict.DISAGREES


@pytest.mark.parametrize("example", EXAMPLES[::4], ids=lambda example: example.name)
def test_the_call_of_an_example_can_be_pasted(example):
    names = {}
    exec(IMPORTS, names)
    outputs = jax.tree.leaves(eval(call(example), names))
    for output, expected in zip(outputs, example.outputs(), strict=True):
        np.testing.assert_array_equal(output, expected)


def test_an_example_that_disagrees(capsys, monkeypatch):
    wrong = dataclasses.replace(EXAMPLES[1], printed=([[0] * 5] * 4,))
    monkeypatch.setattr(command_line, "EXAMPLES", (wrong, EXAMPLES[2]))
    assert command_line.main(["examples"]) == 1
    out = capsys.readouterr().out
    assert out.count("DISAGREES") == 1
    assert out.count("agrees with the page.") == 1
    assert out.endswith("\n\n1 of 2 agree\n")


@pytest.mark.parametrize("name", ["PADDING", "padding", "DML_OPERATOR_PADDING"])
def test_support_of_one_operator(name, capsys):
    assert command_line.main(["support", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "## PADDING"
    assert lines[4] == "| 1_0 | InputTensor | 4 to 5 | FLOAT32 FLOAT16 |"


def test_support_of_all_operators(capsys):
    assert command_line.main(["support"]) == 0
    out = capsys.readouterr().out
    assert [line[3:] for line in out.splitlines() if line.startswith("#")] == [
        *DESCRIPTORS
    ]


def test_help_and_version(capsys):
    assert command_line.main(["--help"]) == 0
    assert command_line.main(["run", "--help"]) == 0
    assert "--timing" in capsys.readouterr().out
    assert command_line.main(["--version"]) == 0
    assert capsys.readouterr().out == f"{dmljax.__version__}\n"
    for verb in ("run", "examples", "support", "schema"):
        assert command_line.main([verb, "--help"]) == 0
        words = " ".join(capsys.readouterr().out.split())
        assert f"example: dmljax {verb}" in words
        assert "docs/model_files.md" in words


def test_the_example_of_main():
    """pytest looks for no examples in a file of this name."""
    assert doctest.testmod(command_line) == (0, 1)


@pytest.fixture
def program():
    """Returns the command that starts ``python -m dmljax`` as a process of its own."""
    root = Path(dmljax.__file__).parent.parent
    command = [sys.executable, "-m", "dmljax"]
    return command, os.environ | {"PYTHONPATH": str(root), "JAX_PLATFORMS": "cpu"}


def test_the_module_as_a_program(program):
    command, env = program
    done = subprocess.run(
        [*command, "run", "none.json"], env=env, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("dmljax: model 'none.json': it cannot be read")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_goes_away(program):
    command, env = program
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*command, "support"], env=env, **pipe) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has it")
def test_a_full_disk(program):
    command, env = program
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*command, "support"], env=env, stdout=full, stderr=subprocess.PIPE
        )
    error = b"dmljax: the output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, error)


on_a_gpu = jax.default_backend() == "gpu"


@pytest.mark.parametrize(
    "platform",
    [
        pytest.param("cuda", marks=pytest.mark.skipif(on_a_gpu, reason="it is there")),
        "nonsense",
    ],
)
def test_a_platform_that_jax_does_not_find(program, folder, platform):
    command, env = program
    done = subprocess.run(
        [*command, "run", "none.json"],
        env=env | {"JAX_PLATFORMS": platform},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (2, "")
    *_, last = done.stderr.splitlines()
    assert last.startswith(
        f"dmljax: JAX finds no device with JAX_PLATFORMS={platform};"
    )
    assert "Traceback" not in done.stderr


def test_a_closed_output(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert command_line.main(["support", "padding"]) == 0
    assert capsys.readouterr().err == ""
