"""The pages about JAX are true: the tables of equivalents and of transformations."""

import pathlib
import re

import jax
import numpy as np
import pytest

TESTS = pathlib.Path(__file__).parent
DOCS = TESTS.parent / "docs"
PAGE = (DOCS / "equivalents.md").read_text()
SETUP = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL).group(1)
LINES = re.findall(r"^\| `(.+?)` \| `(.+?)` \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("theirs", "ours"), LINES)
def test_each_line(theirs, ours):
    """Both sides, also where the diagonal `k` is traced."""
    names = {}
    exec(SETUP, names)
    with jax.numpy_dtype_promotion("standard"):
        expected = np.asarray(eval(theirs, names))
        np.testing.assert_array_equal(eval(ours, names), expected)
        if re.search(r"\bk\b", ours):
            traced = jax.jit(lambda k: eval(ours, names | {"k": k}))(names["k"])
            np.testing.assert_array_equal(traced, expected)


def test_no_line_is_left_out():
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert len(rows) == len(LINES) > 20


def test_the_tests_of_transformations_exist():
    """Each row of the table has some, and each that it names is there."""
    text = (DOCS / "transformations.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    known = set()
    for path in TESTS.glob("test_*.py"):
        known |= set(re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE))
    for row in rows:
        named = re.findall(r"`(test_\w+)`", row)
        assert named, row
        assert set(named) <= known, row
