"""The tables of equivalents: what to write instead of calls of other libraries."""

import importlib.util
import pathlib
import re

import jax
import numpy as np
import pytest

DOCS = pathlib.Path(__file__).parent.parent.parent / "docs"
# The pages with tables of calls, and what the calls on the left need.
PAGES = {
    "equivalents.md": "jax",
    "how_to/torch.md": "torch",
    "how_to/tensorflow.md": "tensorflow",
    "how_to/onnx.md": "onnx",
}
ROW = re.compile(r"^\| `(.+?)` \| `(.+?)` \|(?: .*\|)?$", re.MULTILINE)


def rows(page):
    """The calls of a page on both sides, skipped where their library is missing."""
    library = PAGES[page]
    missing = pytest.mark.skipif(
        importlib.util.find_spec(library) is None, reason=f"{library} is not installed"
    )
    text = (DOCS / page).read_text()
    return [pytest.param(page, *row, marks=missing) for row in ROW.findall(text)]


def names_of(page):
    """The names of a page's first block of code, and those of ONNX's operators."""
    names = {}
    text = (DOCS / page).read_text()
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], names)
    if PAGES[page] == "onnx":
        operators = set(re.findall(r"^\| `(\w+)\(", text, re.MULTILINE))
        names |= {operator: node(operator) for operator in operators}
    return names


def node(operator):
    """A node of ONNX as a function, by ONNX's reference implementation."""
    from onnx import TensorProto, helper, reference

    def run(*inputs, **attributes):
        arrays = {f"input{i}": typed(x) for i, x in enumerate(inputs)}
        made = helper.make_node(operator, list(arrays), ["output"], **attributes)
        types = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape
            )
            for name, x in arrays.items()
        ]
        output = helper.make_tensor_value_info("output", TensorProto.FLOAT, None)
        graph = helper.make_graph([made], operator, types, [output])
        opset = [helper.make_opsetid("", 19)]
        model = helper.make_model(graph, opset_imports=opset)
        return reference.ReferenceEvaluator(model).run(None, arrays)[0]

    return run


def typed(x):
    """An input of a node: floats are float32, and numbers that count are int64."""
    return np.asarray(x, np.float32 if isinstance(x, float) else None)


@pytest.mark.parametrize(
    ("page", "theirs", "ours"), [row for page in PAGES for row in rows(page)]
)
def test_each_row(page, theirs, ours):
    """Both sides, also where the diagonal `k` is traced."""
    names = names_of(page)
    with jax.numpy_dtype_promotion("standard"):
        expected = np.asarray(eval(theirs, names))
        np.testing.assert_array_equal(eval(ours, names), expected)
        if re.search(r"\bk\b", ours):
            traced = jax.jit(lambda k: eval(ours, names | {"k": k}))(names["k"])
            np.testing.assert_array_equal(traced, expected)


@pytest.mark.parametrize("page", PAGES)
def test_no_row_is_left_out(page):
    lines = (DOCS / page).read_text().splitlines()
    written = [line for line in lines if line.startswith("| `")]
    assert len(written) == len(rows(page)) > 10
