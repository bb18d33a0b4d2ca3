"""The command line: what it shows, and that bad input is one line and status 2."""

import doctest
import functools
import io
import json
import os
import pathlib
import re
import signal
import sys
from concurrent import futures
from unittest import mock

import numpy as np
import pytest

import dmljax
from dmljax import __main__ as command_line
from dmljax._model.schema import model_schema
from dmljax._operators import DESCRIPTORS
from tests.checks import python
from tests.model.models import edited, holding, padding_model, save, show, zeros

pytestmark = pytest.mark.usefixtures("folder")


def files(*models):
    """Writes model files, and returns their names."""
    names = [f"m{number}.json" for number in range(len(models))]
    for name, model in zip(names, models, strict=True):
        pathlib.Path(name).write_text(json.dumps(model))
    return names


def run(*options):
    """Runs the model of a padding, and returns the status."""
    return command_line.main(["run", *files(padding_model()), *options])


def stream(content=b"", encoding="utf-8"):
    return io.TextIOWrapper(io.BytesIO(content), encoding)


def rejects(capsys, arguments, message):
    """Asserts status 2, an empty output, and one line of error with this message."""
    assert command_line.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("dmljax: ")
    assert err.index("\n") == len(err) - 1
    assert message in err


PRINTED = "Resource 'output': 1, 1, 2, 3, 3\n"
WRITTEN = "written.npy (FLOAT32 {5})\n"

# Running models


def test_two_models(capsys):
    names = files(padding_model(), padding_model())
    assert command_line.main(["run", *names, "--device", "cpu"]) == 0
    out, err = capsys.readouterr()
    assert out == f"==> m0.json <==\n{PRINTED}==> m1.json <==\n{PRINTED}"
    assert err == f"wrote {WRITTEN}replaced {WRITTEN}"
    assert np.load("written.npy").tolist() == [1, 1, 2, 3, 3]


def test_one_model_has_no_header_and_may_be_timed(capsys):
    assert run("--timing") == 0
    out, err = capsys.readouterr()
    assert out == PRINTED
    line = r"model 'm0.json': compile (\S+) ms, run (\S+) ms"
    compiled, ran = re.fullmatch(line, err.splitlines()[1]).groups()
    assert float(compiled) > float(ran) > 0


def test_nothing_is_printed_if_a_file_can_not_be_written(capsys, monkeypatch):
    monkeypatch.setattr(os, "replace", mock.Mock(side_effect=OSError(5, "no")))
    rejects(capsys, ["run", *files(padding_model(), padding_model())], "be written: no")


def test_check_runs_nothing(capsys, monkeypatch):
    monkeypatch.setattr(command_line, "compile_model", None)
    assert run("--check") == 0
    assert capsys.readouterr() == ("", "model 'm0.json': it can run\n")
    assert os.listdir() == ["m0.json"]


def test_standard_input(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", stream(json.dumps(padding_model()).encode()))
    assert command_line.main(["run", "-"]) == 0
    assert capsys.readouterr().out == PRINTED
    for content, message in {
        b"[": "model on standard input: it is not JSON: line 1, column 2",
        b" " * 2**16: "model on standard input: it needs 3.5 MiB of memory; a mod",
    }.items():
        monkeypatch.setattr(sys, "stdin", stream(content))
        rejects(capsys, ["run", "-", "--max-memory", "1M"], message)
    full = mock.Mock(buffer=mock.Mock(read=mock.Mock(side_effect=MemoryError)))
    monkeypatch.setattr(sys, "stdin", full)
    rejects(capsys, ["run", "-"], "model on standard input: there is not enough memory")
    rejects(capsys, ["run", "-", "-"], "standard input holds one model; name - once")
    monkeypatch.setattr(sys, "stdin", None)
    rejects(capsys, ["run", "-"], "standard input is closed, so there is no model to")
    with open(os.open(os.devnull, os.O_WRONLY)) as unreadable:
        monkeypatch.setattr(sys, "stdin", unreadable)
        rejects(capsys, ["run", "-"], "standard input: it cannot be read: Bad file d")


def test_where_files_are_written(capsys, folder):
    (folder / "there").mkdir()
    assert run("--output-dir", "there") == 0
    assert f"wrote there/{WRITTEN}" in capsys.readouterr().err
    assert (folder / "there/written.npy").exists()
    assert run("--output-dir", "there" + "/../there" * 100) == 0
    assert "/../... (917 characters) (FLOAT32 {5})\n" in capsys.readouterr().err
    message = "targetPath 'written.npy' is there already, and --no-clobber keeps it."
    into = ["run", "m0.json", "--output-dir"]
    rejects(capsys, [*into, "there", "--no-clobber"], message)
    rejects(capsys, [*into, "no"], f"it is relative to '{folder}/no', and no folder")
    rejects(capsys, [*into, ""], "--output-dir is empty; write . for the current folde")


def test_no_file_is_written_twice(capsys):
    """Neither by one model nor by two, if files are not to be replaced."""
    twice = padding_model()
    twice["commands"].append(twice["commands"][-1])
    first, second, third = files(padding_model(), padding_model(), twice)
    message = "'m2.json', command 4 (writeFile): it cannot be written: File exists."
    rejects(capsys, ["run", third, "--no-clobber"], message)
    assert not os.path.exists("written.npy")
    assert command_line.main(["run", first, second, "--no-clobber"]) == 2
    out, err = capsys.readouterr()
    assert out == f"==> m0.json <==\n{PRINTED}"
    assert err.startswith(f"wrote {WRITTEN}dmljax: model 'm1.json', command 3 (writeFi")
    assert command_line.main(["run", third]) == 0


def test_the_memory_limit_and_that_all_models_are_checked_before_any_runs(capsys):
    large = edited(padding_model(), "resources.x", zeros("INT8", 2**32 - 1))
    limit = "a model may use 2 GiB (--max-memory, or max_memory in Python)."
    for models in ([padding_model(), large], [large]):
        names = files(*models)
        rejects(capsys, ["run", *names, "--max-memory", "2G"], limit)
        assert not os.path.exists("written.npy")
    rejects(capsys, ["run", *names, "--max-memory", "x"], "'x' is not a size such as")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND (see dmljax --help)"),
        (["frob"], "invalid choice: 'frob'"),
        (["run"], "the following arguments are required: MODEL.json (see dmljax run"),
        (["run", "none.json"], "model 'none.json': it cannot be read: No such file"),
        (["run", "x.json", "--device", "npu"], "argument --device: invalid choice: 'n"),
        (["run", "x.json", "--device", "tpu"], "device 'tpu' is not present"),
        (["run", "x.json", "--a\nb"], "unrecognized arguments: --a b"),
        (["support", "--" + "x" * 10**6], "xxx... (1000054 characters)"),
        (["support", "GEMM"], "the type 'GEMM' is not an operator of dmljax"),
        (["examples", "gemm"], "no example is named 'gemm'; there are diagonal_"),
    ],
)
def test_a_wrong_command_line(arguments, message, capsys):
    rejects(capsys, arguments, message)


# What the terminal shows


def test_progress_on_a_terminal(monkeypatch):
    terminal = stream(encoding="ascii")
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    assert run() == 0
    text = terminal.buffer.getvalue().decode("ascii")
    assert "\r\x1b[Kcompiling model 1 of 1: m0.json\r" in text
    assert text.endswith(f"\r\x1b[K\rwrote {WRITTEN}")


def test_names_that_the_terminal_cannot_show(monkeypatch):
    names = ["\ud800", "a\x1b[31m\nb", "\u202e", "é"]
    source = padding_model()
    source["resources"] |= {name: zeros("INT8", 2) for name in names}
    source["commands"] = [show(name) for name in names]
    monkeypatch.setattr(sys, "stdout", stream(encoding="ascii"))
    assert command_line.main(["run", *files(source)]) == 0
    lines = sys.stdout.buffer.getvalue().decode("ascii").splitlines()
    shown = [r"\ud800", r"a\x1b[31m\nb", r"\u202e", r"\xe9"]
    assert lines == [f"Resource '{name}': 0, 0" for name in shown]


def test_an_error_that_the_terminal_cannot_show(monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream(encoding="ascii"))
    assert command_line.main(["run", "\xe9.json"]) == 2
    sys.stderr.flush()
    error = sys.stderr.buffer.getvalue()
    assert error.startswith(b"dmljax: model '\\xe9.json': it cannot")


# How it ends


def test_an_interrupt(capsys, monkeypatch):
    interrupt = mock.Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(command_line, "compile_model", interrupt)
    assert run() == 130
    assert capsys.readouterr() == ("", "dmljax: interrupted\n")


@pytest.mark.parametrize("number", command_line.ENDING)
@pytest.mark.parametrize("more", [[], ["--no-clobber"]])
def test_a_signal_while_files_are_written(capsys, monkeypatch, number, more):
    """Before and after each call that makes, names or removes a file."""
    names = ["0.bin", "1.bin"]
    saves = [save("r", name) for name in names]
    [source] = files(holding(zeros("UINT8", 8), *saves))
    write_outputs = command_line.write_outputs
    outcomes = []
    left = 0
    usual = command_line.ENDING[number]
    before = signal.signal(number, usual)  # nohup ignores SIGHUP

    def event():
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), number)

    def watched(call, *arguments):
        event()
        result = call(*arguments)
        event()
        return result

    def write(*arguments):
        with monkeypatch.context() as patch:
            for name in ("open", "link", "replace", "unlink"):
                call = functools.partial(watched, getattr(os, name))
                patch.setattr(os, name, call)
            return write_outputs(*arguments)

    monkeypatch.setattr(command_line, "write_outputs", write)
    while left <= 0:
        left = len(outcomes) + 1
        status = command_line.main(["run", source, *more])
        written = [name for name in names if pathlib.Path(name).exists()]
        assert sorted(os.listdir()) == sorted([*written, source])
        outcomes.append((status, written))
        for name in written:
            os.unlink(name)
    ended = 130 if number == signal.SIGINT else 128 + number
    *signalled, last = outcomes
    assert {status for status, _ in signalled} == {ended}
    assert [written for _, written in signalled if written not in ([], names)] == []
    assert {len(written) for _, written in signalled} == {0, 2}
    assert last == (0, names)
    assert signal.signal(number, before) is usual


@pytest.mark.parametrize("number", command_line.ENDING)
def test_a_signal_that_is_ignored_stays_so(capsys, number):
    """As nohup ignores SIGHUP."""
    before = signal.signal(number, signal.SIG_IGN)
    assert run() == 0
    assert signal.signal(number, before) is signal.SIG_IGN


def test_main_in_a_thread(capsys):
    with futures.ThreadPoolExecutor() as pool:
        assert pool.submit(run).result() == 0
    assert capsys.readouterr().out == PRINTED


def test_a_mistake_of_ours_is_not_hidden(monkeypatch):
    monkeypatch.setattr(command_line, "compile_model", None)
    with pytest.raises(TypeError):
        run()


def test_a_reader_that_goes_away(capsys, monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert command_line.main(["support"]) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has it")
def test_a_full_disk(capsys, monkeypatch):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert command_line.main(["support"]) == 2
    error = "dmljax: the output cannot be written: No space left on device\n"
    assert capsys.readouterr().err == error


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has it")
@pytest.mark.parametrize(("more", "status"), [([], 0), (["--device", "npu"], 2)])
def test_a_full_standard_error(capsys, monkeypatch, more, status):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        assert run(*more) == status
        assert os.path.exists("written.npy") == (status == 0)
    # Closing has not raised, as it would not raise at the end of the process.
    assert capsys.readouterr().out == (PRINTED if status == 0 else "")


def test_a_closed_output(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert command_line.main(["support", "padding"]) == 0
    assert capsys.readouterr().err == ""


def test_a_program_without_a_platform():
    """JAX reads this variable when it starts, so the program is a process."""
    done = python("-m", "dmljax", "run", "none.json", JAX_PLATFORMS="nonsense")
    assert done.returncode == 2
    assert done.stdout == ""
    message = "dmljax: JAX finds no device with JAX_PLATFORMS=nonsense; unset it: "
    assert done.stderr.splitlines()[-1].startswith(message)
    assert "Traceback" not in done.stderr


# The other verbs


def test_support(capsys):
    for name in ("PADDING", "padding", "DML_OPERATOR_PADDING"):
        assert command_line.main(["support", name]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "## PADDING"
        assert lines[4] == "| 1_0 | InputTensor | 4 to 5 | FLOAT32 FLOAT16 |"
    assert command_line.main(["support"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[3:] for line in lines if line.startswith("#")] == [*DESCRIPTORS]


def test_the_schema(capsys):
    assert command_line.main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == model_schema()


def test_help_and_version(capsys):
    assert command_line.main(["--version"]) == 0
    assert capsys.readouterr().out == f"{dmljax.__version__}\n"
    assert command_line.main(["--help"]) == 0
    assert "example: dmljax run docs/models/" in capsys.readouterr().out
    for verb in ("run", "examples", "support", "schema"):
        assert command_line.main([verb, "--help"]) == 0
        words = " ".join(capsys.readouterr().out.split())
        assert f"example: dmljax {verb}" in words
        assert "docs/model_files.md" in words


def test_the_example_of_main():
    """pytest looks for no examples in a file of this name."""
    assert doctest.testmod(command_line) == (0, 1)
