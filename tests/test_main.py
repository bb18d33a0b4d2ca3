"""The command line: its output; bad input is one line and status 2."""

import contextlib
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


@pytest.fixture
def meanwhile(monkeypatch):
    """Does something after the check of the models, before the first one runs."""

    def execute(action, *arguments):
        action()
        return program.execute(*arguments)

    return lambda action: monkeypatch.setattr(
        command_line, "execute", functools.partial(execute, action)
    )


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
    """A program runs where its initial values are."""
    first, *_, last = jax.devices("cpu")
    put = mock.Mock(wraps=jax.device_put)
    monkeypatch.setattr(jax, "device_put", put)
    dmljax.run_model(padding_model(), device=last)
    assert run("--device", "cpu") == run() == 0
    assert [call.args[1] for call in put.call_args_list] == [last, first, None]


def test_check_runs_nothing(capsys, monkeypatch):
    interrupt = mock.Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(command_line, "execute", interrupt)
    assert run("m0.json", "--check") == 0
    assert capsys.readouterr() == ("", 2 * "model 'm0.json': it can run\n")
    assert os.listdir() == ["m0.json"]
    assert run() == 130
    assert capsys.readouterr() == ("", "dmljax: interrupted\n")
    interrupt.side_effect = TypeError  # a mistake of ours is not hidden
    with pytest.raises(TypeError):
        run()


def test_standard_input(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", stream(json.dumps(padding_model()).encode()))
    assert printed(capsys, "run", "-") == PRINTED
    long = stream(b" " * (2**24 + 1))
    full = mock.Mock(**{"buffer.read.side_effect": MemoryError})
    with open(os.open(os.devnull, os.O_WRONLY)) as unreadable:
        for stdin, message in (
            (stream(b"["), "model on standard input: it cannot be read as JSON: E"),
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


def test_lines_about_files(capsys, folder):
    pytest.importorskip("PIL")
    (folder / "in").mkdir()
    images = [save("r", path, dimensions=[2, 3]) for path in ("r.npy", "r.png")]
    names = files(holding(zeros("FLOAT32", 6), save("r", "in/r.bin"), *images))
    assert command_line.main(["run", *names, "--no-clobber"]) == 0
    # Fault: the temporary files stay, because they are linked and not renamed.
    assert sorted(os.listdir()) == ["in", "m0.json", "r.npy", "r.png"]
    assert capsys.readouterr().err.splitlines() == [
        "wrote in/r.bin (24 raw bytes)",
        "wrote r.npy (FLOAT32 {2,3})",
        "wrote r.png (3 x 2)",
    ]


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


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ([], "replaced written.npy"),
        (["--no-clobber"], "cannot be written: File exists."),
    ],
)
def test_a_link_that_is_made_by_then(options, error, meanwhile, capsys):
    """It is replaced or kept, and never followed: the checked path is written."""
    pathlib.Path("other").write_text("kept")
    meanwhile(lambda: os.symlink("other", "written.npy"))
    assert run(*options) == 2 * len(options)
    assert error in capsys.readouterr().err
    assert os.path.islink("written.npy") == bool(options)
    assert pathlib.Path("other").read_text() == "kept"


def test_a_folder_that_becomes_a_file(capsys, folder, monkeypatch, meanwhile):
    """Fault: the temporary file can only be missing, not out of reach."""
    (folder / "old").mkdir()
    monkeypatch.chdir("old")
    meanwhile(lambda: (shutil.rmtree(folder / "old"), (folder / "old").touch()))
    assert run() == 2
    message = "command 3 (writeFile): it cannot be written: Not a directory."
    assert f"'m0.json', {message}" in capsys.readouterr().err


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
        (["run", "x.json", "--device", "npu"], "argument --device: invalid choice: 'n"),
        (["run", "x.json", "--a\nb"], "unrecognized arguments: --a b"),
        (["support", "--" + "x" * 10**6], "xxx... (1000054 characters)"),
        (["support", "GEMM"], "the type 'GEMM' is not an operator of dmljax"),
    ],
)
def test_a_wrong_command_line(arguments, message, capsys):
    rejects(capsys, arguments, message)


def test_an_error_of_400_characters_is_whole(capsys):
    resources = {letter * 50: zeros("INT8", 1) for letter in "abcdefgh"}
    source = padding_model() | {"resources": resources}
    rejects(capsys, ["run", *files(source)], "'" + "h" * 50 + "'")


# Text on the terminal


def test_text_that_the_terminal_cannot_show(monkeypatch):
    names = {"\ud800": r"\ud800", "a\x1b[31m\nb": r"a\x1b[31m\nb", "é": r"\xe9"}
    source = padding_model()
    source["resources"] |= {name: zeros("INT8", 2) for name in names}
    source["commands"] = list(map(show, names))
    out, err = stream(encoding="ascii"), stream(encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    pathlib.Path(*files(source)).rename("é.json")
    assert command_line.main(["run", "é.json", "é.json"]) == 0
    lines = out.buffer.getvalue().decode().splitlines()
    printed = [f"Resource '{name}': 0, 0" for name in names.values()]
    assert lines == [r"==> \xe9.json <==", *printed] * 2
    assert command_line.main(["run", "é"]) == 2
    assert err.buffer.getvalue().startswith(b"dmljax: model '\\xe9': it cannot")


# The end of the process


@contextlib.contextmanager
def handled(handlers):
    """Puts handlers of signals, and requires them at the end."""
    before = {number: signal.signal(number, each) for number, each in handlers.items()}
    yield
    left = {number: signal.signal(number, each) for number, each in before.items()}
    assert left == handlers


@pytest.mark.parametrize(
    ("name", "first", "second", "status"),
    [
        ("os.chmod", signal.SIGTERM, signal.SIGHUP, 143),
        ("os.replace", signal.SIGINT, signal.SIGTERM, 130),
        ("os.link", signal.SIGHUP, signal.SIGINT, 129),
    ],
)
def test_signals_while_a_file_is_written(name, first, second, status, monkeypatch):
    """The second is ignored until the temporary file is removed."""
    unlink = os.unlink

    def unlink_after_a_signal(path):
        os.kill(os.getpid(), second)
        unlink(path)

    monkeypatch.setattr(name, lambda *_: os.kill(os.getpid(), first))
    monkeypatch.setattr("os.unlink", unlink_after_a_signal)
    options = ["--no-clobber"] * (name == "os.link")
    names = ["m0.json", "written.npy"][: 2 - len(options)]
    for kept in names:
        pathlib.Path(kept).write_text("kept")
    defaults = dict.fromkeys((signal.SIGTERM, signal.SIGHUP), signal.SIG_DFL)
    with handled(defaults | {signal.SIGINT: signal.default_int_handler}):
        assert run(*options) == status
    assert sorted(os.listdir()) == names
    assert options or pathlib.Path("written.npy").read_text() == "kept"


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None])
def test_a_handler_of_the_caller_stays(handler, monkeypatch):
    """`nohup` ignores SIGHUP, for example."""
    monkeypatch.setattr(os, "replace", lambda *_: os.kill(os.getpid(), signal.SIGHUP))
    with handled({signal.SIGHUP: handler}):
        assert run() == 0


def test_windows_has_no_signal_of_a_terminal_that_closes(monkeypatch):
    monkeypatch.delattr(signal, "SIGHUP")
    assert run() == 0


def test_main_in_a_thread(capsys):
    """One model has no header."""
    with futures.ThreadPoolExecutor() as pool:
        assert pool.submit(run).result() == 0
    assert capsys.readouterr().out == PRINTED


def broken():
    """A pipe whose reader went away."""
    reader, writer = os.pipe()
    os.close(reader)
    return open(writer, "w")


def full():
    if not os.path.exists("/dev/full"):
        pytest.skip("only Linux has it")
    return open("/dev/full", "w")


FULL = "dmljax: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize(
    ("name", "make", "command", "status", "shown"),
    [
        ("stdout", broken, "support", 1, ("", "")),
        ("stdout", full, "support", 2, ("", FULL)),
        ("stderr", full, "run m0.json", 0, (PRINTED, "")),
        ("stderr", full, "run absent.json", 2, ("", "")),
        # Fault: an error goes to standard output, where print writes for None.
        ("stdout", contextlib.nullcontext, "support padding", 0, ("", "")),
        ("stderr", contextlib.nullcontext, "support x", 2, ("", "")),
    ],
)
def test_a_stream_that_takes_no_text(
    name, make, command, status, shown, capsys, monkeypatch
):
    """Its closing does not raise here, so it does not raise at the end of Python."""
    files(padding_model())
    with make() as stream:
        monkeypatch.setattr(sys, name, stream)
        assert command_line.main(command.split()) == status
    assert capsys.readouterr() == shown


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
    text = printed(capsys, "support", "padding", "dml_operator_ONE_HOT")
    head = "| from level | tensor | ranks | data types |\n|---|---|---|---|\n"
    first = "| 1_0 | InputTensor | 4 to 5 | FLOAT32 FLOAT16 |\n"
    assert text.startswith(f"## PADDING\n\n{head}{first}")
    assert "|\n\n## ONE_HOT\n" in text
    lines = printed(capsys, "support").splitlines()
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
