"""The examples of Microsoft's pages: what is printed about them, and the verdicts."""

import dataclasses

import jax
import numpy as np
import pytest

from dmljax import __main__ as command_line
from dmljax._pages.examples import EXAMPLES, Verdict
from dmljax._pages.text import IMPORTS, call

each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.name)


def test_all_have_a_line(capsys):
    assert command_line.main(["examples"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    shown = [line.split(maxsplit=1) for line in lines if line.startswith(" ")]
    assert [name for name, _ in shown] == [example.name for example in EXAMPLES]
    verdicts = [verdict for _, verdict in shown]
    assert verdicts.count("agrees with the page") == 14
    assert verdicts[0].startswith("known error of the page: it prints ones for Value 7")
    assert {*lines} - {f"    {name:33}{verdict}" for name, verdict in shown} == {
        example.address for example in EXAMPLES
    }
    assert last == "14 of 14 agree; in 1 more the page has a known error, as it says"


def test_some_are_shown_whole(capsys):
    assert command_line.main(["examples", "PADDING"]) == 0
    imports, block, *blocks, last = capsys.readouterr().out.strip().split("\n\n")
    assert imports == IMPORTS
    blocks = [block.removeprefix(f"{EXAMPLES[-1].address}\n"), *blocks]
    assert len(blocks) == 4
    for example, block in zip(EXAMPLES[-4:], blocks, strict=True):
        assert block.startswith(f"{example.page}: {example.title}\n")
        assert call(example) in block
        assert block.endswith(
            "    agrees with the page. Its printed output misses a comma after the "
            "first row."
        )
    assert "\n    InputTensor: (Sizes:{1,1,4,4} DataType:FLOAT32)\n" in blocks[0]
    assert "[7, 6, 5, 6, 7, 8, 7, 6, 5, 6]" in blocks[2]
    assert last == "4 of 4 agree"


def test_the_option_shows_all_whole(capsys, monkeypatch):
    monkeypatch.setattr(command_line, "EXAMPLES", EXAMPLES[8:11])
    assert command_line.main(["examples", "--verbose"]) == 0
    out = capsys.readouterr().out
    assert [out.count(call(example)) for example in EXAMPLES[8:11]] == [1, 1, 1]
    assert "agrees with the page. Known error of the page: its sentence" in out


def test_a_name_that_no_example_has(capsys):
    assert command_line.main(["examples", "gemm"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("dmljax: no example is named 'gemm'; there are diagonal_")


@each_example
def test_a_verdict_looks_at_every_element_of_every_output(example):
    for outputs in filter(None, (example.printed, example.expected)):
        right = [np.array(output) for output in outputs]
        assert example.verdict(right) is not Verdict.DISAGREES
        for i in range(len(right)):
            wrong = [output.copy() for output in right]
            wrong[i].flat[-1] += 9
            assert example.verdict(wrong) is Verdict.DISAGREES


@pytest.mark.parametrize("example", EXAMPLES[::4], ids=lambda each: each.name)
def test_the_call_of_an_example_can_be_pasted(example):
    names = {}
    exec(IMPORTS, names)
    outputs = jax.tree.leaves(eval(call(example), names))
    for output, expected in zip(outputs, example.outputs(), strict=True):
        np.testing.assert_array_equal(output, expected)


def test_an_example_that_disagrees(capsys, monkeypatch):
    wrong = dataclasses.replace(EXAMPLES[1], printed=([0] * 20,))
    monkeypatch.setattr(command_line, "EXAMPLES", (wrong, EXAMPLES[2]))
    assert command_line.main(["examples"]) == 1
    out = capsys.readouterr().out
    assert out.count("DISAGREES with the page, which has ([0, 0, 0, 0") == 1
    assert out.count("agrees with the page\n") == 1
    assert out.endswith("\n1 of 2 agree\n")
