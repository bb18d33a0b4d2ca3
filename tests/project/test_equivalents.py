"""The tables of equivalents: what to write instead of calls of other libraries."""

import importlib.util
import re

import jax
import numpy as np
import pytest

from tests.checks import reference_node
from tests.project.texts import TEXTS

JAX = "docs/equivalents.md"
ONNX = "docs/how_to/onnx.md"
# The pages with tables of calls, and what the calls on the left need.
PAGES = {
    JAX: "jax",
    "README.md": "jax",
    "docs/how_to/torch.md": "torch",
    "docs/how_to/tensorflow.md": "tensorflow",
    ONNX: "onnx",
}
ROW = re.compile(r"^\| `(.+?)` \| `(.+?)` \|(?: .*\|)?$", re.MULTILINE)
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def rows(page):
    """The calls of a page on both sides, skipped where their library is missing."""
    library = PAGES[page]
    missing = pytest.mark.skipif(
        importlib.util.find_spec(library) is None, reason=f"{library} is not installed"
    )
    found = ROW.findall(TEXTS[page])
    return [pytest.param(page, *row, marks=missing) for row in found]


def names_of(page):
    """The names of a page's first block of code, and those of ONNX's operators."""
    names = {}
    text = TEXTS[JAX if page == "README.md" else page]
    exec(BLOCK.search(text)[1], names)
    if page == ONNX:
        operators = set(re.findall(r"^\| `(\w+)\(", text, re.MULTILINE))
        names |= {operator: reference_node(operator) for operator in operators}
    return names


@pytest.mark.parametrize(
    ("page", "theirs", "ours"), [row for page in PAGES for row in rows(page)]
)
def test_each_row(page, theirs, ours):
    """Both sides, also where the diagonal `k` is traced."""
    names = names_of(page)
    with jax.numpy_dtype_promotion("standard"):
        expected = np.asarray(eval(theirs, names))
        np.testing.assert_array_equal(eval(ours, names), expected)
        if "k" in names and re.search(r"\bk\b", ours):
            traced = jax.jit(lambda k: eval(ours, names | {"k": k}))(names["k"])
            np.testing.assert_array_equal(traced, expected)


@pytest.mark.parametrize(("page", "theirs", "ours"), rows(ONNX))
def test_each_row_with_integers(page, theirs, ours):
    """An operator of ONNX keeps the type; only NonZero's is always int64."""
    names = names_of(page)
    names["x"] = names["x"].astype("int32")
    expected = eval(theirs, names)
    result = eval(ours, names)
    np.testing.assert_array_equal(result, expected)
    assert expected.dtype in (result.dtype, np.int64)


@pytest.mark.parametrize(
    ("library", "blocks"), [("onnx.reference", 2), ("jaxonnxruntime", 3)]
)
def test_onnx_programs(library, blocks):
    """The programs of the page that run a model, beside ONNX's reference."""
    pytest.importorskip(library)
    from onnx.reference import ReferenceEvaluator

    names = {}
    for block in BLOCK.findall(TEXTS[ONNX])[:blocks]:
        exec(block, names)
    lower, found = ReferenceEvaluator(names["model"]).run(None, names["inputs"])
    for one, other in zip(names["results"], (lower, found), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    if library == "jaxonnxruntime":
        np.testing.assert_array_equal(names["lower"], lower)
        columns = ((0, 0), (0, 20 - found.shape[1]))
        np.testing.assert_array_equal(names["found"], np.pad(found, columns))


@pytest.fixture(scope="module")
def run_by_handlers():
    """Runs one node by the page's handlers for jaxonnxruntime, after a sample of ones.

    `value` is an input, `computed` is Shape's output, and `constant` is a Constant.
    """
    pytest.importorskip("jaxonnxruntime")
    from onnx import parser

    names = {}
    for block in BLOCK.findall(TEXTS[ONNX]):
        exec(block, names)

    def run(node, x):
        model = parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 19]>
        graph (int32[n, m] x, int64[k] value) => (int32[p, q] y)
        <int64[2] axis = {{0, 1}}, int32[2] off_on = {{0, 1}}>
        {{
            computed = Shape(x)
            constant = Constant<value_ints = [2]>()
            y = {node}
        }}
        """)
        inputs = {"x": np.ones_like(x), "value": np.array([1])}
        with jax.enable_x64(True):
            function, parameters = names["call_onnx_model"](model, inputs)
            inputs["x"] = x
            results = function(parameters, inputs)
        return results, names["ReferenceEvaluator"](model).run(None, inputs)

    return run


NODES = ["Pad(x, {})", "Pad(x, axis, , {})", "OneHot(x, {}, off_on)", "Trilu(x, {})"]


@pytest.mark.parametrize("source", ["value", "computed"])
@pytest.mark.parametrize("node", NODES)
def test_handlers_take_no_value_of_the_sample_input(node, source, run_by_handlers):
    """It may be another one in the next call, which the handlers would not notice."""
    text = rf"^\w+: the input '{source}' must be an initializer"
    with pytest.raises(ValueError, match=text):
        run_by_handlers(node.format(source), np.ones((1, 2), np.int32))


def test_handlers_take_constants(run_by_handlers):
    x = np.arange(12, dtype=np.int32).reshape(3, 4)
    found, expected = run_by_handlers("Trilu(x, constant)", x)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("page", PAGES)
def test_no_row_is_left_out(page):
    lines = TEXTS[page].splitlines()
    written = [line for line in lines if line.startswith("| `")]
    assert len(written) == len(rows(page)) > 5
