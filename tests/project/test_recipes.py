"""The programs on the pages compute what they say, for other inputs than their own.

A case gives names, and the results of `code` with them after the page's program. With a
heading, this section runs again, without its assignments to these names, and `printed`
is what it prints. `PROSE` in the code is the code in a sentence, behind the words in
`prose`.
"""

import doctest
import re
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from docs import plots, programs
from tests.project.texts import TEXTS, section

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("standard_promotion")]


def case(page, code, inputs, *expected, heading=None, prose=()):
    values = f"docs/{page}.md", heading, code, prose, inputs, expected
    return pytest.param(*values, id=f"{page}: {heading or code}")


def run(page):
    """The names of a page's program and doctests, and what the program prints."""
    program = programs.program(TEXTS[page])
    for library in re.findall(r"^(?:import|from) (\w+)", program, re.MULTILINE):
        pytest.importorskip(library)
    with jax.default_device(jax.devices("cpu")[0]):
        names, printed = plots.run(page)
        for example in doctest.DocTestParser().get_examples(TEXTS[page]):
            exec(example.source, names)
    return names, printed


LONG = [
    page
    for page in TEXTS
    if re.match("docs/(recipes|tutorials/(?!index|devices))", page)
]


@pytest.mark.parametrize("page", LONG)
def test_a_long_program_prints_its_comments(page):
    """Fault: a recipe prints nothing, or something else."""
    sections = TEXTS[page].split("\n## ")[1:] if "recipes" in page else [TEXTS[page]]
    assert all(map(programs.shown, sections))
    assert run(page)[1] == programs.shown(TEXTS[page])


RECIPES = [
    # Fault: a box with the score 0.1.
    case(
        "recipes",
        "nms(boxes, scores, limit=0.5, most=3, size=3)",
        {"scores": np.array([0.1, 0.05, 0.7, 0.6])},
        [2, 3, -1],
    ),
    case(
        "recipes",
        "[PROSE, PROSE, (lambda table: PROSE)(neighbours.coordinates[..., 0])]",
        {},
        4 + 2 * 2**0.5,
        [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (4, 4), (4, 4)],
        [[(1, 0), (1, 1)], [(0, 0), (1, 1)], [(0, 0), (1, 0)], [(0, 0), (0, 0)]],
        prose=(
            "A sum of lengths is",
            "first: `near` has n² elements. **jax.numpy alone**:",
            "To read by the neighbour list, write",
        ),
    ),
    # Fault: more newborn than `BORN`, for whom there is room, are no lack.
    case(
        "recipes",
        "[*lax.scan(live, empty, wanted)[1], *PROSE]",
        {"wanted": np.array([3, 0, 2, 0]), "alive": np.array([True, False, True])},
        [2, 2, 3, 1],
        [True, False, True, False],
        [1, 3],
        prose=["False False] ``` **jax.numpy alone**:"],
    ),
    # Fault: the longer list decides.
    *(
        case(
            "recipes",
            "printed",
            {"state": {"mass": np.array(mass), "name": np.arange(4)}},
            *expected,
            heading="Two masks: write elements of one into places of the other",
        )
        for mass, *expected in (
            ([3.0, 0, 0, 9], [3, 9, 0, 9], [0, 3, 2, 3]),
            ([3.0, 0, 8, 9], [3, 8, 8, 9], [0, 2, 2, 3]),
        )
    ),
    # Fault: rows past the count get the number of a sequence.
    case(
        "recipes",
        "[attend(jnp.ones((3, 4, 1)), one)[0][one]]",
        {"one": np.arange(4) == np.array([[0], [3], [1]])},
        np.ones((3, 1)),
    ),
    # Fault: counts stay unsigned, and a difference is 2^32 too large.
    case("recipes", "[lengths - 8]", {}, [-4, -5]),
    # Fault: the indices of `top_k` are not sorted.
    case(
        "recipes",
        "printed",
        {"scores": np.array([0.5, 0.9, 0.1, 0.8, 0.2])},
        [5, 1, 2],
        [5, 1, 2],
        [-5, -1, 7, -2, 9],
        3,
        heading="The K best, in the order of the array",
    ),
    # Fault: elements outside of the mask are among the best.
    case(
        "recipes",
        "printed",
        {"mask": np.array([False, False, True, False, True])},
        [7, 9, 0],
        [7, 9, 0],
        0,
        heading="Drop by priority, not by place",
    ),
    case(
        "recipes",
        "[PROSE, PROSE]",
        {"mask": np.array([False, True, False, True])},
        [1, 3, 0, 2],
        [[5, 6, 0, 0], [7, 8, 9, 0]],
        prose=("[[5, 6, 0, 0], [7, 8, 9, 0]] ``` **jax.numpy alone**:", "far slower."),
    ),
    # Fault: the mean of a loss over more negatives than there are rows.
    case(
        "recipes",
        "[loss(w)[0], *loss(w)[1]]",
        {"w": np.full(4, 9.0), "inputs": np.ones((64, 4))},
        *(36.0, 48, True),
        heading="Hard negatives",
    ),
    # Fault: no hard negative, and a division by zero.
    case(
        "recipes",
        "[*jax.tree.leaves(jax.value_and_grad(loss, has_aux=True)(zeros)), PROSE]",
        {"zeros": np.zeros(4), "losses": -np.arange(64.0)},
        *(0, 0, False, np.zeros(4)),
        [-1, -2, -3],
        prose=["is as good for the K highest losses:"],
    ),
]


def attention(q, k, v, allowed):
    """The output and the weights, with zeros in a row where nothing is allowed."""
    powers = np.exp(q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5) * allowed
    weights = powers / np.maximum(powers.sum(-1, keepdims=True), 1e-30)
    return weights @ v, weights


# For each: sequences, heads, tokens, size.
QKV = np.random.default_rng(0).normal(size=(3, 3, 2, 5, 4))
KEEP = np.arange(5) >= np.array([[0], [2], [5]])
CAUSAL = np.tri(5, dtype=bool)
QUERIES, KEYS = np.mgrid[:3, :5]
TUTORIALS = [
    case(
        "tutorials/attention",
        "[*attend(*qkv), *attend(*qkv, 2, -1)]",
        {"qkv": [*QKV]},
        *attention(*QKV, CAUSAL),
        *attention(*QKV, np.tri(5, k=1) - np.tri(5, k=-2)),
    ),
    # Fault: the lowest number of float32 is -inf in bfloat16.
    case(
        "tutorials/attention",
        "attend(zeros, zeros, zeros, fill_begin=0)[1]",
        {"zeros": np.zeros((2, 1), jnp.bfloat16)},
        [[0.5, 0.5], [1, 0]],
    ),
    case(
        "tutorials/attention",
        "[*attend_batch(*qkv, keep), PROSE]",
        {"qkv": [*QKV], "keep": KEEP, "queries": QUERIES, "keys": KEYS}
        | {"scores": np.zeros((1, 1, 3, 5))},
        *attention(*QKV, KEEP[:, None, None] & CAUSAL),
        # The last of 3 queries sees all of 5 keys.
        np.tri(3, 5, k=2),
        prose=["the last of more keys, write"],
    ),
    case(
        "tutorials/attention",
        "[*attend_heads(*qkv, windows), PROSE, PROSE, PROSE]",
        {"qkv": [*QKV[:, 0]], "windows": np.array([1, 3], "int32")}
        | {"window": 3, "offset": 6, "fill_begin": 1},
        *attention(
            *QKV[:, 0], CAUSAL ^ np.stack([np.tri(5, k=-k) > 0 for k in (1, 3)])
        ),
        *(-2, 4, 0),
        prose=(
            "A head keeps the diagonals from",
            "and with a window from",
            "the diagonals from `fill_end` to",
        ),
    ),
    # Fault: rows past the count get group 0, where zeros change no sum.
    case("tutorials/compact", "groups[count:]", {}, [4, 4]),
    # A full result is no error.
    case(
        "tutorials/compact",
        "[checkify.checkify(complete)(x > 4, x)[0].get() is None]",
        {},
        True,
    ),
    # Fault: an empty mask, and a division by zero.
    case(
        "tutorials/compact",
        "jax.value_and_grad(loss, has_aux=True)(zeros, mask & False, 8)",
        {"zeros": np.zeros((3, 1))},
        *(0, False, np.zeros((3, 1))),
    ),
    # A planted fault: the branches are exchanged.
    case(
        "tutorials/compact",
        "[PROSE, PROSE]",
        {
            "kept": SimpleNamespace(overflow=True),
            "all_elements": lambda: 1.0,
            "selected": lambda: 2.0,
            "overflow": np.array([True, False]),
            "value": np.array([1.0, 2.0]),
        },
        1,
        [np.nan, 2],
        prose=("Within a single program,", "can *poison* its loss,"),
    ),
    case(
        "tutorials/experts",
        "[PROSE.count]",
        {},
        11,
        prose=["the list of the first expert is"],
    ),
    # Faults: edges past the count are edges of node 0; a node of another graph.
    case(
        "tutorials/sparse",
        "[pass_messages(adjacency, nodes)[1].coordinates[22:], edges[2], senders[31:], "
        "pass_messages(adjacency + 1, nodes)[1].overflow, "
        "received - batch.sum(1).ravel(), "
        "weights[:31] - batch.reshape(30, 10)[senders, receivers % 10][:31]]",
        {},
        *(10, 10, 330, True, 0, 0),
    ),
]

PICTURE = np.arange(128.0 * 128 * 3).reshape(128, 128, 3)
WIDE = np.pad(PICTURE, ((100, 100), (100, 100), (0, 0)), "reflect")
SIGNAL = np.random.default_rng(0).normal(size=96)
FRAMES = np.lib.stride_tricks.sliding_window_view(np.pad(SIGNAL, 32, "reflect"), 64)
SCORES = np.arange(36.0).reshape(4, 9)
MODEL = """
<ir_version: 8, opset_import: ["" : 18]>
graph (float[1] x) => (int64[1, n] y) { y = NonZero(x) }
"""
OTHERS = [
    case(
        "tutorials/images",
        "(lambda key: crop(key[None], picture[None])[0] - jax.lax.dynamic_slice("
        "wide, (*jax.random.randint(key, (2,), 0, 201), 0), (128, 128, 3)))"
        "(jax.random.key(0))",
        {"picture": PICTURE, "wide": WIDE},
        0,
    ),
    case(
        "tutorials/images",
        "stft(signal)",
        {"signal": SIGNAL},
        np.fft.rfft(FRAMES[::16] * np.hanning(65)[:-1]),
    ),
    # A planted fault: "gpu", which is the name of no platform in a program.
    case(
        "how_to/export",
        "['cuda' in PROSE(image).platforms, to_a_multiple_of_8(scores)]",
        {"scores": SCORES},
        True,
        np.pad(SCORES, ((0, 4), (0, 7)), "reflect"),
        prose=["before `deserialize`."],
    ),
    case(
        "how_to/nan",
        "[safe_log(x), jax.vmap(jax.grad(safe_log))(x), weights(x + 9, -jnp.inf)]",
        {"x": np.array([-1, 0, 0.5])},
        *([0, 0, np.log(0.5)], [0, 0, 2], [0, 0, 1]),
    ),
    # Fault: NonZero returns int32.
    case(
        "how_to/onnx",
        "[run_onnx(parser.parse_model(model), {'x': x})[0].dtype == int]",
        {"model": MODEL, "x": np.ones(1, "float32")},
        True,
    ),
]
CASES = RECIPES + TUTORIALS + OTHERS


def as_of_jax(value):
    return jnp.asarray(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize(
    ("page", "heading", "code", "prose", "inputs", "expected"), CASES
)
def test_a_program_is_right_for_other_inputs(
    page, heading, code, prose, inputs, expected
):
    text = " ".join(TEXTS[page].split())
    for words in prose:
        (found,) = re.findall(f"{re.escape(words)} `([^`]+)`", text)
        code = code.replace("PROSE", found, 1)
    printed = []
    names = run(page)[0] | jax.tree.map(as_of_jax, inputs) | {"printed": printed}
    with jax.default_device(jax.devices("cpu")[0]):
        if heading:
            names["print"] = lambda *values: printed.extend(values)
            program = programs.program(section(page, heading))
            given = "|".join(inputs)
            exec(re.sub(f"^({given}) = .*", "", program, flags=re.M), names)
        result = eval(code, names)
    values = result if isinstance(result, list) else jax.tree.leaves(result)
    for actual, value in zip(values, expected, strict=True):
        np.testing.assert_allclose(actual, value, rtol=1e-4, atol=1e-5)


def test_the_collectives_of_the_page():
    """Faults: a name that the page's own program lacks; "-done", a word in metadata."""
    page = TEXTS["docs/tutorials/devices.md"]
    pattern = eval(re.search(r"^COLLECTIVES = (\(.*?^\))", page, re.M | re.S)[1])
    names = ["all-gather", "all-reduce", "all-to-all", "collective-permute"]
    for name in [*names, "reduce-scatter"]:
        text = f"x = f32[2] {name}(y), y = {name}-done(z), {{{name}}} {name}-start(x)"
        assert re.findall(pattern, text) == [name] * 2
