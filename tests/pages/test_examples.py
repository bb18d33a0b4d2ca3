"""The examples of Microsoft's pages: what is printed about them, and the verdicts."""

import dataclasses

import jax
import numpy as np
import pytest

from dmljax import __main__ as command_line
from dmljax._pages.examples import EXAMPLES, Verdict
from dmljax._pages.text import IMPORTS, call

each_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.name)


def test_all_are_shown(capsys):
    assert command_line.main(["examples"]) == 0
    imports, *blocks, last = capsys.readouterr().out.strip().split("\n\n")
    assert imports == IMPORTS
    assert len(blocks) == len(EXAMPLES) == 15
    verdicts = [block.splitlines()[-1].strip() for block in blocks]
    assert sum(v.startswith("agrees with the page.") for v in verdicts) == 14
    assert verdicts[0].startswith("known error of the page: it prints ones for Value 7")
    assert sum("nown error of the page" in verdict for verdict in verdicts) == 2
    assert verdicts[-1] == (
        "agrees with the page. Its printed output misses a comma after the first row."
    )
    for example, block in zip(EXAMPLES, blocks, strict=True):
        assert block.startswith(f"{example.page}: {example.title}\n")
        assert call(example) in block
    assert "\n    IndicesTensor: (Sizes:{1,1,3,1} DataType:UINT32)\n" in blocks[4]
    assert "[7, 6, 5, 6, 7, 8, 7, 6, 5, 6]" in blocks[-2]
    assert last == "14 of 14 agree; in 1 more the page has a known error, as it says"


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
    assert out.count("agrees with the page.") == 1
    assert out.endswith("\n\n1 of 2 agree\n")
