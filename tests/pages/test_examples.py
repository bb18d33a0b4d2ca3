"""The examples of Microsoft's pages: their verdicts."""

import numpy as np
import pytest

from dmljax._pages.examples import EXAMPLES, Verdict


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.name)
def test_a_verdict_looks_at_every_element_of_every_output(example):
    for outputs in filter(None, (example.printed, example.expected)):
        right = [np.array(output) for output in outputs]
        assert example.verdict(right) is not Verdict.DISAGREES
        for i in range(len(right)):
            wrong = [output.copy() for output in right]
            wrong[i].flat[-1] += 9
            assert example.verdict(wrong) is Verdict.DISAGREES
