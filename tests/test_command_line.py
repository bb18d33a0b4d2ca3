"""The command line: what it shows, and one line with status 2 for what is wrong."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dmljax
from dmljax import __main__ as command_line
from dmljax._examples import EXAMPLES
from dmljax._model import OPERATORS
from tests.test_model import edited, padding_model


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def models(folder):
    """Writes model files; their names."""

    def write(*sources):
        names = [f"m{number}.json" for number in range(len(sources))]
        for name, source in zip(names, sources, strict=True):
            (folder / name).write_text(json.dumps(source))
        return names

    return write


def rejects(capsys, arguments, *parts):
    """Asserts status 2, an empty output and one line of error with the parts."""
    assert command_line.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("dmljax: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert "Traceback" not in err
    for part in parts:
        assert part in err


def test_run(models, capsys):
    names = models(padding_model(), padding_model())
    assert command_line.main(["run", *names, "--device", "cpu"]) == 0
    out, err = capsys.readouterr()
    assert out == "Resource 'output': 1, 1, 2, 3, 3\n" * 2
    assert err == ""
    assert np.load("written.npy").tolist() == [1, 1, 2, 3, 3]


def test_timing(models, capsys):
    assert command_line.main(["run", *models(padding_model()), "--timing"]) == 0
    out, err = capsys.readouterr()
    assert out == "Resource 'output': 1, 1, 2, 3, 3\n"
    words = err.split()
    assert words[:3] == ["model", "'m0.json':", "compile"]
    assert words[4:6] == ["ms,", "run"]
    assert float(words[3]) > 0
    assert float(words[6]) > 0


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
        (["run", "a\0b"], ["it is not JSON: embedded null byte"]),
        (["run", "x.json", "--device", "npu"], ["--device", "'npu'"]),
        (["run", "x.json", "--device", "tpu"], ["device 'tpu' is not present"]),
        (["run", "x.json", "--speed"], ["unrecognized arguments: --speed"]),
        (["support", "GEMM"], ["'GEMM'", "DIAGONAL_MATRIX1", "PADDING1"]),
    ],
)
def test_a_wrong_command_line(arguments, parts, capsys):
    rejects(capsys, arguments, *parts)


@pytest.mark.parametrize(
    ("edit", "parts"),
    [
        (("resources", "a\nb", 3), ["resource 'a b': it is 3"]),
        (("commands", 0, "bindings", "InputTensor", "x"), ["command 1 (dispatch)"]),
        (("dispatchables", "pad", "type", "GEMM"), ["those that are here: DIAGONAL"]),
        (("commands", 2, "targetPath", "no/x.npy"), ["folder that does not exist"]),
    ],
)
def test_a_wrong_model(edit, parts, models, capsys):
    names = models(edited(padding_model(), *edit))
    rejects(capsys, ["run", *names], "model 'm0.json', ", *parts)


def test_a_name_that_the_terminal_cannot_show(models, capsys, monkeypatch):
    source = padding_model()
    source["resources"]["\ud800"] = source["resources"]["output"]
    source["commands"] = [{"type": "print", "resource": "\ud800"}]
    assert command_line.main(["run", *models(source)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("dmljax: ")
    assert "surrogates not allowed" in err


def test_examples(capsys):
    assert command_line.main(["examples"]) == 0
    out = capsys.readouterr().out
    blocks = out.strip().split("\n\n")
    assert len(blocks) == len(EXAMPLES) == 15
    verdicts = [block.splitlines()[-1].strip() for block in blocks]
    assert (
        sum(verdict.startswith("agrees with the page.") for verdict in verdicts) == 14
    )
    assert verdicts[0].startswith("differs from the page: it prints ones for Value 7")
    assert "[[7, 6, 5, 6, 7, 8, 7, 6, 5, 6]" in out.replace("[[[[", "[[")
    assert blocks[0].startswith("DML_DIAGONAL_MATRIX1_OPERATOR_DESC: ")
    assert "create_operator(OneHotDesc(indices_tensor, values_tensor, " in out


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_verdict_looks_at_every_element_of_every_output(example):
    outputs = example.expected or example.printed
    right = [np.array(output) for output in outputs]
    assert example.verdict(right) is not None
    for i in range(len(right)):
        wrong = [output.copy() for output in right]
        wrong[i].flat[-1] += 1
        assert example.verdict(wrong) is None


def test_an_example_that_disagrees(capsys, monkeypatch):
    wrong = dataclasses.replace(EXAMPLES[1], printed=([[0] * 5] * 4,))
    monkeypatch.setattr(command_line, "EXAMPLES", (wrong, EXAMPLES[2]))
    assert command_line.main(["examples"]) == 1
    out = capsys.readouterr().out
    assert out.count("DISAGREES") == 1
    assert out.count("agrees with the page.") == 1


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
        *OPERATORS
    ]


def test_help_and_version(capsys):
    assert command_line.main(["--help"]) == 0
    assert command_line.main(["run", "--help"]) == 0
    assert "--timing" in capsys.readouterr().out
    assert command_line.main(["--version"]) == 0
    assert capsys.readouterr().out == f"{dmljax.__version__}\n"


@pytest.fixture
def program():
    """How to start ``python -m dmljax`` as a process of its own."""
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
