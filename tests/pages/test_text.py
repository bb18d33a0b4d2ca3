"""What is printed about an example of Microsoft's pages, and about all of them."""

import dataclasses

import jax
import numpy as np
import pytest

from dmljax import __main__ as command_line
from dmljax._pages.examples import EXAMPLES
from dmljax._pages.text import IMPORTS, call


def test_all_have_a_line(capsys):
    assert command_line.main(["examples"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    shown = [line.split(maxsplit=1) for line in lines if line.startswith(" ")]
    assert [name for name, _ in shown] == [example.name for example in EXAMPLES]
    verdicts = [verdict for _, verdict in shown]
    assert verdicts.count("agrees with the page") == 14
    assert verdicts[0].startswith("known error of the page: it prints ones for Value 7")
    verdicts_shown = {f"    {name:33}{verdict}" for name, verdict in shown}
    addresses = {example.address for example in EXAMPLES}
    assert {*lines} - verdicts_shown == addresses
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
