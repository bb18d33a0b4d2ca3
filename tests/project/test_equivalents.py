"""The tables of equivalents: calls of dmljax for calls of other libraries."""

import importlib.util
import re
import sys
import types

import jax
import numpy as np
import pytest

from tests.checks import reference_node
from tests.project.texts import TEXTS

ONNX = "docs/how_to/onnx.md"
# The pages with tables of calls, and the module of the calls on the left.
PAGES = {
    "docs/how_to/numpy.md": "jax",
    "docs/how_to/torch.md": "torch",
    "docs/how_to/tensorflow.md": "tensorflow",
    ONNX: "onnx",
}
ROW = re.compile(r"^\| `(.+?)` \| `(.+?)` \|(?: `(.+?)` \|)?(?: .*\|)?$", re.MULTILINE)
BLOCK = re.compile(r"```python\n((?!>>>).*?)```", re.DOTALL)


def rows(page):
    """Their call and ours, in one or two spellings, skipped without their library."""
    library = PAGES[page]
    has_calls = importlib.util.find_spec(library) or library == "tensorflow"
    missing = pytest.mark.skipif(not has_calls, reason=f"{library} is not installed")
    found = ROW.findall(TEXTS[page])
    return [pytest.param(page, *row, marks=missing) for row in found]


def tensorflow():
    """The functions of the page on TensorFlow, by NumPy.

    No environment of ours has TensorFlow, which takes 2 GB.
    """

    def band_part(t, lower, upper):
        t = t if lower < 0 else np.triu(t, -lower)
        return t if upper < 0 else np.tril(t, upper)

    def set_diag(t, diagonal):
        return np.where(np.eye(*t.shape), np.reshape(diagonal, (-1, 1)), t)

    def one_hot(labels, depth, on_value=1.0, off_value=0.0, axis=-1):
        lit = np.where(labels[:, None] == np.arange(depth), on_value, off_value)
        return np.moveaxis(lit, -1, axis)

    return types.SimpleNamespace(
        boolean_mask=lambda t, mask: t[mask],
        where=lambda chosen, *of: np.where(chosen, *of) if of else np.argwhere(chosen),
        pad=lambda t, pads, mode="constant", **fill: np.pad(
            t, pads, mode.lower(), **fill
        ),
        math=np,
        linalg=types.SimpleNamespace(band_part=band_part, set_diag=set_diag),
        one_hot=one_hot,
        eye=np.eye,
        reshape=np.reshape,
        range=np.arange,
        constant=np.array,
    )


def names_of(page):
    """The names of a page's first block of code, and those of ONNX's operators."""
    names = {}
    exec(BLOCK.search(TEXTS[page])[1], names)
    if page == ONNX:
        operators = set(re.findall(r"^\| `(\w+)\(", TEXTS[page], re.MULTILINE))
        names |= {operator: reference_node(operator) for operator in operators}
    return names


@pytest.mark.parametrize(
    ("page", "theirs", "ours", "longer"), [row for page in PAGES for row in rows(page)]
)
def test_each_row(page, theirs, ours, longer, monkeypatch):
    """All spellings, also where the diagonal `k` is traced."""
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow())
    names = names_of(page)
    with jax.numpy_dtype_promotion("standard"):
        # Operation by operation, a search of jax.numpy compiles twenty programs.
        run = jax.jit if "jnp.argwhere" in theirs else lambda call: call
        expected = np.asarray(run(lambda: eval(theirs, names))())
        for call in filter(None, (ours, longer)):
            np.testing.assert_array_equal(eval(call, names), expected)
            if "k" in names and re.search(r"\bk\b", call):
                traced = jax.jit(lambda k, call=call: eval(call, names | {"k": k}))
                np.testing.assert_array_equal(traced(names["k"]), expected)


@pytest.mark.parametrize("page", PAGES)
def test_no_row_is_left_out(page):
    lines = TEXTS[page].splitlines()
    written = [line for line in lines if line.startswith("| `")]
    assert len(written) == len(rows(page)) > 5
