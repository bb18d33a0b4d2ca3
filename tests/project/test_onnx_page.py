"""The programs on the page about ONNX run, with the results of ONNX's reference."""

import contextlib
import io
import re

import jax
import numpy as np
import pytest

from tests.project.texts import TEXTS

BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXTS["docs/how_to/onnx.md"], re.M | re.S)
# The blocks before the part about jaxonnxruntime.
REFERENCE = 4
X = np.arange(12, dtype=np.float32).reshape(3, 4) % 5


def run_blocks(blocks):
    """The names after all blocks have run. The printed text is the blocks' comments."""
    names = {}
    for block in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(block, names)
        shown = re.findall(r"^# ?( *\[.*)$", block, re.MULTILINE)
        assert printed.getvalue().splitlines() == shown
    return names


@pytest.fixture(scope="module")
def page():
    """The names of the part about ONNX's reference implementation."""
    pytest.importorskip("onnx.reference")
    return run_blocks(BLOCKS[:REFERENCE])


@pytest.fixture(scope="module")
def whole_page():
    """The names of the whole page."""
    pytest.importorskip("jaxonnxruntime")
    return run_blocks(BLOCKS)


def parse(nodes, version=19):
    """A model with inputs `x` and `value`, a result `y` and some constants."""
    from onnx import parser

    return parser.parse_model(f"""
    <ir_version: 8, opset_import: ["" : {version}]>
    graph (float[n, m] x, int64[k] value) => (float[p, q] y)
    <int64[2] axes = {{0, 1}}, int64[4] pads = {{1, 0, 2, 3}}, float seven = {{7}},
     float[2] off_on = {{0, 1}}> {{ {nodes} }}
    """)


@pytest.mark.parametrize("model", ["tiles", "roots"])
def test_the_models_of_the_page(model, page):
    reference = page["ReferenceEvaluator"](page[model])
    for x in (2 * X, X[1:], X[:, :1], 0 * X):
        (found,) = page["run_onnx"](page[model], {"x": x})
        (expected,) = reference.run(None, {"x": x})
        np.testing.assert_array_equal(found, expected, strict=True)


ATTRIBUTES = 'y = Pad<pads = [1, 0, 2, 3], value = 7.0, mode = "constant">(x)'
INPUTS = "y = Pad(x, pads, seven)"
PADS = [(n, ATTRIBUTES) for n in (2, 10)] + [(n, INPUTS) for n in (11, 13, 18, 21, 25)]


@pytest.mark.parametrize(("version", "node"), PADS)
def test_the_classes_take_pad_of_every_operator_set(version, node, page):
    inputs = {"x": X, "value": np.array([1])}
    (found,) = page["run_onnx"](parse(node, version), inputs)
    expected = np.pad(X, ((1, 2), (0, 3)), constant_values=7)
    np.testing.assert_array_equal(found, expected, strict=True)


def run_by_handlers(page, model, *calls):
    """For each call, the results of jaxonnxruntime and of ONNX's reference."""
    reference = page["ReferenceEvaluator"](model)
    with jax.enable_x64(True):
        function, parameters = page["call_onnx_model"](model, calls[0])
        function = jax.jit(function)
        for inputs in calls:
            yield function(parameters, inputs), reference.run(None, inputs)


def test_handlers_write_no_column_past_the_count(whole_page):
    """The first elements are below the limit, and 0 to 5 are above."""
    model = whole_page["roots"]
    calls = [{"x": x} for x in (2 * X, X + 2, X, X[:, :2] + 1)]
    for found, expected in run_by_handlers(whole_page, model, *calls):
        np.testing.assert_array_equal(found, expected)


STATIC = ["Pad(x, {})", "Pad(x, pads, , {})", "OneHot(x, {}, off_on)"]
SHAPE = "computed = Shape<start = 0, end = 1>(x)"


@pytest.mark.parametrize("source", ["value", "computed"])
@pytest.mark.parametrize("node", STATIC)
def test_handlers_take_no_value_of_the_sample_input(node, source, whole_page):
    """The next call may have another value, and the handlers would not notice it."""
    model = parse(f"{SHAPE} y = {node.format(source)}")
    inputs = {"x": X, "value": np.array([1])}
    text = rf"^\w+: the input '{source}' must be an initializer"
    with pytest.raises(ValueError, match=text):
        next(run_by_handlers(whole_page, model, inputs))


@pytest.mark.parametrize(
    "nodes",
    [
        "y = Trilu(x, value)",
        f"{SHAPE} y = Trilu<upper = 0>(x, computed)",
        "constant = Constant<value_ints = [1]>() y = Trilu(x, constant)",
        "constant = Constant<value_ints = [1]>() y = Pad(x, axes, , constant)",
        "y = Pad(x, pads, seven)",
    ],
)
def test_handlers_take_data_and_constants(nodes, whole_page):
    """Each call has a diagonal of its own, which earlier calls do not decide."""
    calls = [{"x": x, "value": np.array([k])} for x, k in ((X, 1), (X, -1), (X[1:], 2))]
    for found, expected in run_by_handlers(whole_page, parse(nodes), *calls):
        np.testing.assert_array_equal(found, expected)
