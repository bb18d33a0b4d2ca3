"""The command line: its output; bad input is one line and status 2."""

import doctest
import functools
import io
import json
import os
import pathlib
import shutil
import signal
import sys
from concurrent import futures
from unittest import mock

import jax
import numpy as np
import pytest

import dmljax
from dmljax import __main__ as command_line
from dmljax._model import program
from dmljax._operators import DESCRIPTORS
from tests.checks import python
from tests.model.models import edited, holding, padding_model, save, show, zeros

pytestmark = pytest.mark.usefixtures("folder")


def files(*models):
    """Writes model files, and returns their names."""
    names = []
    for number, model in enumerate(models):
        names.append(f"m{number}.json")
        pathlib.Path(names[-1]).write_text(json.dumps(model))
    return names


def run(*options):
    """Runs the model of a padding, and returns the status."""
    return command_line.main(["run", *files(padding_model()), *options])


def printed(capsys, *arguments):
    """The output of a command that succeeds."""
    assert command_line.main([*arguments]) == 0
    return capsys.readouterr().out


def stream(content=b"", encoding="utf-8"):
    return io.TextIOWrapper(io.BytesIO(content), encoding)


def rejects(capsys, arguments, message):
    """Asserts status 2, no output, and an error of one line with this message."""
    assert command_line.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("dmljax: ")
    assert err.index("\n") == len(err) - 1
    assert message in err


PRINTED = "Resource 'output': 1, 1, 2, 3, 3\n"
WRITTEN = "written.npy (FLOAT32 {5})\n"

# Running models


def test_two_models(monkeypatch):
    """Fault: a header is not flushed, and follows lines on standard error."""
    both = io.BytesIO()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(both))
    names = files(padding_model(), padding_model())
    assert command_line.main(["run", *names]) == 0
    first = f"==> m0.json <==\nwrote {WRITTEN}{PRINTED}"
    second = f"==> m1.json <==\nreplaced {WRITTEN}{PRINTED}"
    assert both.getvalue().decode() == first + second
    assert np.load("written.npy").tolist() == [1, 1, 2, 3, 3]


def test_the_device(monkeypatch):
    """Faults: the option is ignored, or the program does not get the device."""
    execute = mock.Mock(wraps=program.execute)
    monkeypatch.setattr(command_line, "execute", execute)
    for options in ([], ["--device", "cpu"]):
        assert run(*options) == 0
    devices = [call.args[1] for call in execute.call_args_list]
    assert devices == [None, jax.local_devices(backend="cpu")[0]]


def test_check_runs_nothing(capsys, monkeypatch):
    monkeypatch.setattr(command_line, "execute", None)
    assert run("m0.json", "--check") == 0
    assert capsys.readouterr() == ("", 2 * "model 'm0.json': it can run\n")
    assert os.listdir() == ["m0.json"]


def test_standard_input(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", stream(json.dumps(padding_model()).encode()))
    assert printed(capsys, "run", "-") == PRINTED
    long = stream(b" " * (2**24 + 1))
    full = mock.Mock()
    full.buffer.read.side_effect = MemoryError
    with open(os.open(os.devnull, os.O_WRONLY)) as unreadable:
        for stdin, message in (
            (
                stream(b"["),
                "model on standard input: it cannot be read as JSON: Expect",
            ),
            (long, "on standard input: it has more than 16777216 bytes."),
            (full, "model on standard input: there is not enough memory"),
            (None, "on standard input: it is closed, so there is no"),
            (unreadable, "standard input: it cannot be read: Bad file d"),
        ):
            monkeypatch.setattr(sys, "stdin", stdin)
            rejects(capsys, ["run", "-"], message)


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


def test_lines_about_files(capsys):
    pytest.importorskip("PIL")
    commands = [save("r", "r.bin")]
    commands += [save("r", f"r.{end}", dimensions=[2, 3]) for end in ("npy", "png")]
    names = files(holding(zeros("FLOAT32", 6), *commands))
    assert command_line.main(["run", *names, "--no-clobber"]) == 0
    # Fault: the temporary files stay, because they are linked and not renamed.
    assert sorted(os.listdir()) == ["m0.json", "r.bin", "r.npy", "r.png"]
    summaries = "r.bin (24 raw bytes)", "r.npy (FLOAT32 {2,3})", "r.png (3 x 2)"
    assert capsys.readouterr().err == "".join(f"wrote {each}\n" for each in summaries)
    # A planted fault: the line has the name of the file alone.
    pathlib.Path("in").mkdir()
    names = files(holding(zeros("FLOAT32", 6), save("r", "in/r.bin")))
    assert command_line.main(["run", *names]) == 0
    assert capsys.readouterr().err == "wrote in/r.bin (24 raw bytes)\n"


def test_no_file_is_written_twice(capsys):
    """With --no-clobber, neither one model nor two may write a file twice."""
    twice = padding_model()
    twice["commands"].append(twice["commands"][-1])
    first, second, third = files(padding_model(), padding_model(), twice)
    message = "targetPath 'written.npy' is written before, and --no-clobber keeps it."
    rejects(capsys, ["run", third, "--no-clobber"], f"command 4 (writeFile): {message}")
    rejects(capsys, ["run", first, second, "--no-clobber"], "'m1.json', command 3 (w")
    assert not os.path.exists("written.npy")
    assert command_line.main(["run", third]) == 0


def test_a_link_that_is_there_before_is_followed():
    """A planted fault: the path keeps its links, and the link is replaced."""
    os.symlink("other.npy", "written.npy")
    assert run() == 0
    assert os.path.islink("written.npy")
    assert os.path.isfile("other.npy")


@pytest.mark.parametrize("options", [[], ["--no-clobber"]])
def test_a_link_that_is_made_by_then_is_not_followed(options, monkeypatch):
    """The path that was checked is the path that is written."""

    def execute(*arguments):
        pathlib.Path("other").write_text("kept")
        os.symlink("other", "written.npy")
        os.unlink("other") if options else None
        return program.execute(*arguments)

    monkeypatch.setattr(command_line, "execute", execute)
    assert run(*options) == 2 * len(options)
    assert os.path.islink("written.npy") == bool(options)
    if options:
        assert not os.path.exists("other")
    else:
        assert pathlib.Path("other").read_text() == "kept"


def test_a_working_folder_that_goes_away(capsys, folder, monkeypatch):
    (folder / "gone").mkdir()
    monkeypatch.chdir("gone")

    def execute(*arguments):
        shutil.rmtree(folder / "gone")
        return program.execute(*arguments)

    monkeypatch.setattr(command_line, "execute", execute)
    assert run() == 2
    message = "command 3 (writeFile): it cannot be written: No such file or directory"
    assert f"'m0.json', {message}" in capsys.readouterr().err


def test_a_file_that_is_there_by_then_is_kept(capsys, monkeypatch):
    """Another process may be faster."""

    def execute(*arguments):
        pathlib.Path("written.npy").write_text("kept")
        return program.execute(*arguments)

    monkeypatch.setattr(command_line, "execute", execute)
    assert run("--no-clobber") == 2
    assert "it cannot be written: File exists." in capsys.readouterr().err
    assert pathlib.Path("written.npy").read_text() == "kept"


def test_the_limit_and_that_all_models_are_checked_before_any_runs(capsys):
    large = edited(padding_model(), "resources.x", zeros("INT8", 2**28))
    limit = "a model may have 268435456 in all (--max-elements, or max_elements in"
    rejects(capsys, ["run", *files(padding_model(), large)], limit)
    assert not os.path.exists("written.npy")
    few = ["run", "m0.json", "--max-elements", "17"]
    rejects(capsys, few, "there is room for 4; a model may have 17 in all")
    assert run("--max-elements", "18") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND (see dmljax --help)"),
        (["frob"], "invalid choice: 'frob'"),
        (["run", "x.json", "--device", "npu"], "argument --device: invalid choice: 'n"),
        (["run", "x.json", "--a\nb"], "unrecognized arguments: --a b"),
        (["support", "--" + "x" * 10**6], "xxx... (1000054 characters)"),
        (["support", "GEMM"], "the type 'GEMM' is not an operator of dmljax"),
    ],
)
def test_a_wrong_command_line(arguments, message, capsys):
    rejects(capsys, arguments, message)


# Text on the terminal


def test_text_that_the_terminal_cannot_show(monkeypatch):
    names = ["\ud800", "a\x1b[31m\nb", "\u202e", "é"]
    source = padding_model()
    source["resources"] |= {name: zeros("INT8", 2) for name in names}
    source["commands"] = [show(name) for name in names]
    monkeypatch.setattr(sys, "stdout", stream(encoding="ascii"))
    pathlib.Path(*files(source)).rename("é.json")
    assert command_line.main(["run", "é.json", "é.json"]) == 0
    lines = sys.stdout.buffer.getvalue().decode("ascii").splitlines()
    shown = [r"\ud800", r"a\x1b[31m\nb", r"\u202e", r"\xe9"]
    printed = [f"Resource '{name}': 0, 0" for name in shown]
    assert lines == [r"==> \xe9.json <==", *printed] * 2
    monkeypatch.setattr(sys, "stderr", stream(encoding="ascii"))
    assert command_line.main(["run", "\xe9"]) == 2
    sys.stderr.flush()
    error = sys.stderr.buffer.getvalue()
    assert error.startswith(b"dmljax: model '\\xe9': it cannot")


# The end of the process


def test_an_interrupt(capsys, monkeypatch):
    interrupt = mock.Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(command_line, "execute", interrupt)
    assert run() == 130
    assert capsys.readouterr() == ("", "dmljax: interrupted\n")


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("os.chmod", signal.SIGTERM),
        ("os.replace", signal.SIGHUP),
        ("os.link", signal.SIGHUP),
    ],
)
def test_a_signal_while_a_file_is_written(name, number, monkeypatch, request):
    """The temporary file is removed, also if the tests themselves ignore SIGHUP."""
    request.addfinalizer(
        functools.partial(signal.signal, number, signal.signal(number, signal.SIG_DFL))
    )
    pathlib.Path("written.npy").write_bytes(b"kept")
    more = ["--no-clobber", "--output-dir", "new"] if name == "os.link" else []
    os.mkdir("new")

    def terminate(*arguments):
        assert len(os.listdir("new" if more else ".")) == (1 if more else 4)
        os.kill(os.getpid(), number)

    monkeypatch.setattr(name, terminate)
    assert run(*more) == 128 + number
    assert signal.getsignal(number) == signal.SIG_DFL
    assert os.listdir("new") == []
    assert sorted(os.listdir()) == ["m0.json", "new", "written.npy"]
    assert pathlib.Path("written.npy").read_bytes() == b"kept"


def test_handlers_of_signals_are_restored():
    """Fault: Ctrl-C after a written file ends the process by SIG_DFL."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    assert run() == 0
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


@pytest.mark.parametrize("second", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("first", "status"), [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGINT, 130)]
)
def test_a_second_signal_is_ignored_until_the_file_is_removed(
    first, status, second, monkeypatch
):
    before = {number: signal.getsignal(number) for number in (first, second)}
    for number in before:
        by_default = {signal.SIGINT: signal.default_int_handler}
        signal.signal(number, by_default.get(number, signal.SIG_DFL))
    unlink = os.unlink

    def unlink_after_a_signal(path):
        os.kill(os.getpid(), second)
        unlink(path)

    monkeypatch.setattr("os.replace", lambda *_: os.kill(os.getpid(), first))
    monkeypatch.setattr("os.unlink", unlink_after_a_signal)
    assert run() == status
    assert os.listdir() == ["m0.json"]
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None])
def test_a_handler_of_the_caller_stays(handler, monkeypatch):
    """`nohup` ignores SIGHUP, for example."""
    pathlib.Path("written.npy").touch()
    monkeypatch.setattr(os, "chmod", lambda *_: os.kill(os.getpid(), signal.SIGHUP))
    before = signal.signal(signal.SIGHUP, handler)
    assert run() == 0
    assert signal.signal(signal.SIGHUP, before) is handler


def test_windows_has_no_signal_of_a_terminal_that_closes(monkeypatch):
    monkeypatch.delattr(signal, "SIGHUP")
    assert run() == 0


def test_main_in_a_thread(capsys):
    """One model has no header."""
    with futures.ThreadPoolExecutor() as pool:
        assert pool.submit(run).result() == 0
    assert capsys.readouterr().out == PRINTED


def test_a_mistake_of_ours_is_not_hidden(monkeypatch):
    monkeypatch.setattr(command_line, "execute", None)
    with pytest.raises(TypeError):
        run()


def test_a_reader_that_goes_away(capsys, monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert command_line.main(["support"]) == 1
    assert capsys.readouterr().err == ""


full_device = pytest.mark.skipif(
    not os.path.exists("/dev/full"), reason="only Linux has it"
)


@full_device
def test_a_full_disk(capsys, monkeypatch):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert command_line.main(["support"]) == 2
    error = "dmljax: the output cannot be written: No space left on device\n"
    assert capsys.readouterr().err == error


@full_device
@pytest.mark.parametrize(("more", "status"), [([], 0), (["--device", "npu"], 2)])
def test_a_full_standard_error(capsys, monkeypatch, more, status):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        assert run(*more) == status
        assert os.path.exists("written.npy") == (status == 0)
    # Closing does not raise here, so it does not raise at the end of the process.
    assert capsys.readouterr().out == (PRINTED if status == 0 else "")


@pytest.mark.parametrize(
    ("closed", "operator", "status"), [("stdout", "padding", 0), ("stderr", "x", 2)]
)
def test_a_closed_stream(closed, operator, status, capsys, monkeypatch):
    """Fault: an error goes to standard output, where print writes for None."""
    monkeypatch.setattr(sys, closed, None)
    assert command_line.main(["support", operator]) == status
    assert capsys.readouterr() == ("", "")


def test_a_program_without_a_platform():
    """JAX reads this variable when it starts, so we start a new process."""
    done = python("-m", "dmljax", "run", "none.json", JAX_PLATFORMS="nonsense")
    assert done.returncode == 2
    assert done.stdout == ""
    message = "dmljax: JAX finds no device with JAX_PLATFORMS=nonsense; unset it: "
    assert done.stderr.splitlines()[-1].startswith(message)
    assert "Traceback" not in done.stderr


# The other verbs


def test_support(capsys):
    for name in ("PADDING", "padding", "dml_operator_PADDING"):
        lines = printed(capsys, "support", name).splitlines()
        columns = "| from level | tensor | ranks | data types |"
        first = "| 1_0 | InputTensor | 4 to 5 | FLOAT32 FLOAT16 |"
        assert lines[:5] == ["## PADDING", "", columns, "|---|---|---|---|", first]
    text = printed(capsys, "support")
    assert text.count("|\n\n## ") == len(DESCRIPTORS) - 1
    lines = text.splitlines()
    assert [line[3:] for line in lines if line.startswith("#")] == [*DESCRIPTORS]


def test_help_and_version(capsys):
    assert printed(capsys, "--version") == f"{dmljax.__version__}\n"
    assert "example: dmljax run model.json" in printed(capsys, "--help")
    for verb in ("run", "support"):
        words = " ".join(printed(capsys, verb, "--help").split())
        assert f"example: dmljax {verb}" in words
        assert "docs/" not in words  # a wheel has no such files


def test_the_example_of_main():
    """pytest looks for no examples in a file of this name."""
    assert doctest.testmod(command_line) == (0, 1)
