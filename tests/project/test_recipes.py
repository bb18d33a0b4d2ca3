"""The programs on the pages compute what they say, for other inputs than their own.

A case gives inputs and the results of a plain reference. The section runs with these
inputs in place of its own; what it prints, or `code` after it, is compared. `PROSE` in
the code is the code in a sentence, behind the words in `prose`.
"""

import ast
import contextlib
import doctest
import functools
import io
import os
import re
from types import SimpleNamespace

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

import dmljax as dml
from docs import programs
from tests.checks import needs_devices
from tests.project.texts import TEXTS, section

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("standard_promotion", "folder"),
]
CASES = []


def case(page, heading, code="printed", *prose, marks=()):
    def add(make):
        values = f"docs/{page}.md", heading, code, prose, make
        CASES.append(pytest.param(*values, marks=marks, id=f"{page}-{make.__name__}"))
        return make

    return add


@functools.cache
def run(page):
    """The names and the output of a program, whose imports and names are its own."""
    program, names = programs.program(TEXTS[page]), {}
    for library in re.findall(r"^(?:import|from) (\w+)", program, re.MULTILINE):
        pytest.importorskip(library)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(program, names)
    return names, printed.getvalue()


@functools.cache
def names_of(page):
    """The names of a page: its program runs once; doctests and fragments define."""
    names = {"jax": jax, "jnp": jnp, "dml": dml} | run(page)[0]
    for block in programs.BLOCK.findall(TEXTS[page]):
        if block.startswith((">>>", "# Fragment")):
            examples = doctest.DocTestParser().get_examples(block)
            tree = ast.parse("".join(x.source for x in examples) or block)
            tree.body = [x for x in tree.body if isinstance(x, ast.FunctionDef)]
            exec(compile(tree, page, "exec"), names)
    return names


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
    with jax.default_device(jax.devices("cpu")[0]):
        assert run(page)[1] == programs.shown(TEXTS[page])


def rerun(page, heading, inputs):
    """The names of a section that runs without its assignments to the inputs."""
    tree = ast.parse(programs.program(section(page, heading)))

    def replaced(node):
        targets = node.targets if isinstance(node, ast.Assign) else []
        names = [x for target in targets for x in ast.walk(target)]
        return any(isinstance(x, ast.Name) and x.id in inputs for x in names)

    tree.body = [node for node in tree.body if not replaced(node)]
    names = names_of(page) | inputs | {"printed": []}
    names["print"] = lambda *values: names["printed"].extend(values)
    exec(compile(tree, page, "exec"), names)
    return names


def filled(rows, size, fill=0):
    return np.array([*rows, *[fill] * size][:size])


def softmax(scores, allowed):
    """With zeros in a row where nothing is allowed."""
    powers = np.exp(scores - scores.max(-1, keepdims=True)) * allowed
    return powers / np.maximum(powers.sum(-1, keepdims=True), 1e-30)


def attention(q, k, v, allowed):
    """`allowed` takes a query and a key by their numbers."""
    scores = q @ np.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5
    table = [[allowed(i, j) for j in range(k.shape[-2])] for i in range(q.shape[-2])]
    weights = softmax(scores, np.array(table))
    return weights @ v, weights


# RECIPES


# Faults: `jnp.maximum(width, 0)` without the maximum; a suppressed box suppresses.
@case(
    "recipes",
    "Non-maximum suppression (NMS)",
    "[nms(*trial, size=4) for trial in trials]",
)
def nms(random, limit, _):
    def overlaps(a, b):
        sides = [min(a[i + 2], b[i + 2]) - max(a[i], b[i]) for i in (0, 1)]
        both = sides[0] * sides[1] if min(sides) > 0 else 0
        areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
        return both > limit * (sum(areas) - both)

    trials, expected = [], []
    for most in (3, 6, 6, 6, 6):
        # Boxes of two groups are disjoint in both axes, others overlap or touch.
        low = random.integers(0, 4, (8, 2)) + 9 * (np.arange(8)[:, None] % 2)
        boxes = np.concatenate([low, low + random.integers(1, 5, (8, 2))], 1) * 1.0
        scores = (random.permutation(8) - 1) / 10
        kept = []
        for i in np.argsort(-scores)[:most]:
            near = any(overlaps(boxes[i], boxes[j]) for j in kept)
            if scores[i] > 0.1 and not near:
                kept.append(i)
        trials.append((boxes, scores, limit, most))
        expected.append(filled(kept, 4, -1))
    return {"trials": trials}, *expected


@case(
    "recipes",
    "Radius graph and neighbour list",
    "[*printed, PROSE, PROSE, (lambda table: PROSE)(neighbours.coordinates[..., 0])]",
    "A sum of lengths is",
    "first: `near` has n² elements. **jax.numpy alone**:",
    "To read by the neighbour list, write",
)
def radius_graph(random, share, _):
    points = random.choice([-2, -1.5, -1, -0.5, 0, 0.5, 1], (5, 2)) * (3 - 2 * share)
    points[1] = points[0] + [1.5, 0]
    squares = [[(a - b) @ (a - b) for a in points] for b in points]
    near = [[j for j in range(5) if j != i and squares[i][j] < 2.25] for i in range(5)]
    edges = [(i, j) for i in range(5) for j in near[i]]
    lengths = [squares[i][j] for i, j in edges]
    listed = [*edges, *[(5, 5)] * 8][:8]
    table = [filled(row, 2, 5) for row in near]
    return (
        {"points": points},
        *np.transpose(listed),
        filled(lengths, 8),
        table,
        any(len(row) > 2 for row in near),
        np.sqrt(lengths[:8]).sum(),
        listed,
        [[points[j] if j < 5 else (0, 0) for j in row] for row in table],
    )


@case(
    "recipes",
    "Particles that die and are born in a scan",
    "[*jax.tree.leaves(lax.scan(live, particles, wanted)), *PROSE]",
    "False False] ``` **jax.numpy alone**:",
)
def particles(random, share, _):
    alive, age = random.random(4) < share, random.integers(0, 4, 4)
    steps = random.integers(0, 4, 6)
    inputs = {"particles": {"alive": alive, "age": age}, "wanted": steps}
    inputs["alive"] = alive[:3]
    slots = filled(np.flatnonzero(~alive[:3]), 2, 3)
    sums, lacks = [], []
    for wanted in steps:
        alive, age = alive & (age < 2), age + 1
        free = [i for i in range(4) if not alive[i]]
        for i in free[: min(wanted, 2)]:
            alive[i], age[i] = True, 0
        sums.append(alive.sum())
        lacks.append(min(len(free), 2) < wanted)
    return inputs, age, alive, sums, lacks, slots


@case("recipes", "Two masks: write elements of one into places of the other")
def two_masks(random, share, _):
    mass = random.choice([-1.0, 0.0, 0.0, 5.0, 8.0, 9.0], 7) * (share > 0)
    name = random.permutation(7)
    slots, parents = np.flatnonzero(mass == 0)[:3], np.flatnonzero(mass > 5)[:3]
    expected = mass.copy(), name.copy()
    for slot, parent in zip(slots, parents, strict=False):
        expected[0][slot], expected[1][slot] = mass[parent], name[parent]
    return {"state": {"mass": mass, "name": name}}, *expected


# Fault: rows past the count get the number of a sequence.
@case(
    "recipes",
    "Pack sequences, apply a layer, and unpack",
    "attend(tokens, real)",
)
def pack(random, share, _):
    tokens = random.normal(size=(3, 4, 8))
    real = random.random((3, 4)) < share
    expected = np.zeros_like(tokens)
    places = np.argwhere(real)
    for sequence in range(3):
        rows = [t for s, t in places[:7] if s == sequence]
        x = tokens[sequence, rows]
        expected[sequence, rows] = softmax(x @ x.T, True) @ x if rows else 0
    return {"tokens": tokens, "real": real}, expected, len(places) > 7


# Fault: counts stay unsigned, and a difference is 2^32 too large.
@case(
    "recipes",
    "Evict from a KV cache",
    "(lambda kept, length: (kept, length - 8))(*evict(cache, length))",
)
def evict(random, share, _):
    length = random.integers(0, 9, 3)
    cache = random.normal(size=(3, 8))
    stay = [[t for t in range(n) if t == 0 or n - t <= 3] for n in length]
    rows = [filled(row[places], 8) for row, places in zip(cache, stay, strict=True)]
    return (
        {"cache": {"k": cache}, "length": length},
        np.stack(rows),
        [len(places) - 8 for places in stay],
    )


def best(scores, among, k):
    """The numbers of the highest scores, in falling order; the first of equals."""
    return sorted(among, key=lambda i: (-scores[i], i))[:k]


# Fault: the indices of `top_k` are not sorted.
@case("recipes", "The K best, in the order of the array")
def k_best(random, share, _):
    x, scores = random.permutation([1.0, 3, 7, 8, 9]), random.integers(-3, 3, 5) / 10
    top = sorted(best(scores, range(5), 3))
    kept = [i for i in top if x[i] < 8]
    put = [-a if i in kept else a for i, a in enumerate(x)]
    return {"x": x, "scores": scores}, x[top], filled(x[kept], 3), put, len(kept)


# Fault: elements outside of the mask are among the best.
@case("recipes", "Drop by priority, not by place")
def priority(random, share, _):
    x, scores = random.normal(size=5), random.integers(-3, 3, 5) / 10
    mask = random.random(5) < share
    marked = np.flatnonzero(mask)
    kept = sorted(best(scores, marked, 3))
    inputs = {"x": x, "scores": scores, "mask": mask}
    dropped = len(marked) - len(kept)
    return inputs, filled(x[marked], 3), filled(x[kept], 3), dropped


@case(
    "recipes",
    "A stable partition, and left to right padding",
    "[*printed, partition(mask), PROSE, PROSE]",
    "[[5, 6, 0, 0], [7, 8, 9, 0]] ``` **jax.numpy alone**:",
    "far slower.",
)
def partition(random, share, _):
    x, mask = random.permutation(10)[:5] * 1.0, random.random(5) < share
    prompts = np.zeros((3, 4), int)
    for row, length in zip(prompts, (0, 4, random.integers(5)), strict=True):
        row[4 - length :] = random.integers(1, 9, length)
    left = np.stack([filled(row[row != 0], 4) for row in prompts])
    order = [i for side in (True, False) for i in range(5) if mask[i] == side]
    lower = [a for a in x if a < 6] + [a for a in x if a >= 6]
    return {"x": x, "mask": mask, "prompts": prompts}, lower, left, order, order, left


# Fault: no hard negative, and a division by zero.
@case(
    "recipes",
    "Hard negatives",
    "[*jax.tree.leaves(jax.value_and_grad(loss, has_aux=True)(weights)), PROSE]",
    "is as good for the K highest losses:",
)
def hard_negatives(random, share, names):
    weights, x = 4 * share * random.normal(size=4), np.asarray(names["inputs"])
    products = x @ weights
    if share == 0.25:  # a single hard negative
        scale = (
            2
            * np.log(np.exp(2) - 1)
            / np.sort(products[np.arange(64) % 4 > 0])[-2:].sum()
        )
        weights, products = scale * weights, scale * products
    losses = np.log1p(np.exp(products))
    hard = [i for i in range(64) if i % 4 > 0 and losses[i] > 2]
    rows, number = hard[:16], max(len(hard[:16]), 1)
    gradient = (x[rows] / (1 + np.exp(-products[rows]))[:, None]).sum(0) / number
    value = losses[rows].sum() / number
    inputs = {"weights": weights, "losses": losses}
    highest = sorted((losses[i] for i in range(64) if i % 4 > 0), reverse=True)[:3]
    return inputs, value, len(hard), len(hard) > 16, gradient, highest


# TUTORIALS


@case(
    "tutorials/attention",
    "A softmax of masked scores",
    "attend(q, k, v, 2, fill_end)",
)
def attend(random, share, _):
    q, k, v = (random.normal(size=(2, n, 4)) for n in (4, 5, 5))
    end = -1 if share else None
    seen = attention(q, k, v, lambda i, j: j - i < 2 and (not share or j - i >= -1))
    return {"q": q, "k": k, "v": v, "fill_end": end}, *seen


# Fault: the lowest number of float32 is -inf in bfloat16.
@case(
    "tutorials/attention",
    None,
    "attend(zeros, zeros[1:], zeros[1:], fill_begin=0)[1]",
)
def masked_row(*_):
    return {"zeros": jnp.zeros((3, 2), "bfloat16")}, [[0.5, 0.5], [1, 0], [0.5, 0.5]]


@case(
    "tutorials/attention",
    "The key mask of a tokenizer",
    "[*attend_batch(*batch, keep), PROSE]",
    "the last of more keys, write",
)
def attend_batch(random, share, _):
    q, k, v = batch = [random.normal(size=(3, 2, 5, 4)) for _ in range(3)]
    keep = random.random((3, 5)) < share
    seen = [
        attention(q[b], k[b], v[b], lambda i, j, b=b: keep[b, j] and j <= i)
        for b in range(3)
    ]
    queries, keys = np.mgrid[:3, :5]
    scores = np.zeros((1, 1, 3, 5))
    inputs = {"batch": batch, "keep": keep, "queries": queries, "keys": keys}
    # The last of 3 queries sees all of 5 keys.
    aligned = [[j <= i + 2 for j in range(5)] for i in range(3)]
    return inputs | {"scores": scores}, *map(np.stack, zip(*seen, strict=True)), aligned


@case(
    "tutorials/attention",
    "A window for each head",
    "[*attend_heads(*heads, windows), PROSE]",
    "A head keeps the diagonals from",
)
def attend_heads(random, share, _):
    heads = [random.normal(size=(4, 6, 3)) for _ in range(3)]
    windows = np.array([1, 2, 6, random.integers(1, 9)], "int32")
    seen = [
        attention(*qkv, lambda i, j, w=w: 0 <= i - j < w)
        for *qkv, w in zip(*heads, windows, strict=True)
    ]
    inputs = {"heads": heads, "windows": windows, "window": 3}
    return inputs, *map(np.stack, zip(*seen, strict=True)), -2


@case(
    "tutorials/attention",
    None,
    "[[PROSE <= key for key in range(9)], PROSE]",
    "and with a window from",
    "the diagonals from `fill_end` to",
)
def window_of_a_query(random, share, _):
    window = int(1 + 4 * share)
    inputs = {"offset": 6, "window": window, "fill_begin": 1}
    return inputs, [6 - key < window for key in range(9)], 0


@case("tutorials/compact", None, "[positive(x), jax.grad(energy)(x)]")
def positive(random, share, _):
    x = random.integers(-3 * (1 - share), 4, 12) / 2
    kept = [i for i in range(12) if x[i] > 0]
    gradient = [2 * x[i] if i in kept[:8] else 0 for i in range(12)]
    return {"x": x}, filled(x[kept], 8), gradient


# Fault: rows past the count get group 0, where zeros change no sum.
@case("tutorials/compact", "A count, the rows, and the way back", "groups")
def groups(random, share, _):
    scores = random.choice([0.6, 0.9], 20, p=[1 - share, share])
    return {"scores": scores}, filled(np.flatnonzero(scores > 0.6) // 5, 8, 4)


@case(
    "tutorials/compact",
    None,
    "[(both := checkify.checkify(complete)(mask, x))[0].get() is None, both[1]]",
)
def complete(random, share, _):
    x, mask = random.normal(size=6), np.arange(6) < 1 + 4 * share
    return {"x": x, "mask": mask}, mask.sum() <= 3, filled(x[mask], 3)


# Fault: an empty mask, and a division by zero.
@case(
    "tutorials/compact",
    None,
    "jax.value_and_grad(loss, has_aux=True)(weights, mask, 8)",
)
def compact_loss(random, share, names):
    x, targets = np.asarray(names["inputs"]), np.asarray(names["targets"])[:, 0]
    weights, mask = random.normal(size=(3, 1)), random.random(64) < share / 4
    mask = np.arange(64) == 5 if share == 0.25 else mask
    rows = np.flatnonzero(mask)[:8]
    made = np.tanh(x[rows] @ weights[:, 0])
    number = max(len(rows), 1)
    value = ((made - targets[rows]) ** 2).sum() / number
    slopes = 2 * (made - targets[rows]) * (1 - made**2) / number
    gradient = (slopes[:, None] * x[rows]).sum(0)[:, None]
    return {"weights": weights, "mask": mask}, value, mask.sum() > 8, gradient


# A planted fault: the branches are exchanged.
@case(
    "tutorials/compact",
    None,
    "[PROSE, PROSE]",
    "Within a single program,",
    "can *poison* its loss,",
)
def poison(*_):
    names = {"overflow": np.array([True, False]), "value": np.array([1.0, 2.0])}
    names |= {"all_elements": lambda: 1.0, "selected": lambda: 2.0}
    return names | {"kept": SimpleNamespace(overflow=True)}, 1, [np.nan, 2]


# A planted fault: "gpu", which is the name of no platform in a program.
@case(
    "how_to/export",
    None,
    "['cuda' in PROSE(jax.ShapeDtypeStruct((4,), jnp.float32)).platforms]",
    "before `deserialize`.",
)
def platforms(*_):
    return {"export": jax.export, "find": jnp.tanh}, True


@case(
    "tutorials/experts",
    None,
    "[*assign(router, x), *layer(router, weights, x), dropless(router, weights, x), "
    "PROSE.count]",
    "the list of the first expert is",
)
def experts(random, share, _):
    x, router = random.normal(size=(24, 8)) + share, random.normal(size=(8, 4))
    weights = random.normal(size=(4, 8, 8)) / 3
    probabilities = softmax(x @ router, True)
    chosen, gates = np.zeros((4, 24), bool), np.zeros((4, 24))
    for t in range(24):
        for e in best(probabilities[t], range(4), 2):
            chosen[e, t], gates[e, t] = True, probabilities[t, e]
    capped, whole = x.copy(), x.copy()
    for e in range(4):
        for number, t in enumerate(np.flatnonzero(chosen[e])):
            made = gates[e, t] * np.tanh(x[t] @ weights[e])
            whole[t] += made
            capped[t] += made * (number < 12)
    kept = jax.vmap(lambda mask: dml.nonzero_coordinates(mask, size=12))(chosen)
    inputs = {"x": x, "router": router, "weights": weights, "kept": kept}
    counts = chosen.sum(1)
    return inputs, chosen, gates, capped, counts, whole, counts[0]


@case("tutorials/images", "A random crop", "crop(keys, pictures)")
def crop(random, share, _):
    keys = jax.random.split(jax.random.key(int(8 * share)), 3)
    pictures, crops = random.random((3, 128, 128, 3)), []
    for key, picture in zip(keys, pictures, strict=True):
        row, column = jax.random.randint(key, (2,), 0, 201)
        wide = np.pad(picture, ((100, 100), (100, 100), (0, 0)), "reflect")
        crops.append(wide[row : row + 128, column : column + 128])
    return {"keys": keys, "pictures": pictures}, np.stack(crops)


@case("tutorials/images", None, "[(s := stft(signal)).real, s.imag]")
def stft(random, share, _):
    signal = random.normal(size=64 + int(32 * share))
    wide = np.pad(signal, 32, "reflect")
    steps = np.arange(64)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * steps / 64)
    waves = np.exp(-2j * np.pi * np.outer(steps, np.arange(33)) / 64)
    frames = [wide[16 * t : 16 * t + 64] for t in range(1 + len(signal) // 16)]
    spectrum = np.stack([(frame * window) @ waves for frame in frames])
    return {"signal": signal}, spectrum.real, spectrum.imag


@case(
    "tutorials/sparse",
    None,
    "[(both := pass_messages(a, nodes))[0], *both[1], both[1].overflow, "
    "jax.grad(lambda a: pass_messages(a, nodes)[0].sum())(a)]",
)
def messages(random, share, names):
    adjacency = random.normal(size=(10, 10)) * (random.random((10, 10)) < share)
    nodes = random.normal(size=(10, 4))
    expected, gradient = nodes.copy(), np.zeros((10, 10))
    edges = np.argwhere(adjacency)
    for i, j in edges[:32]:
        expected[j] += adjacency[i, j] * nodes[i]
        gradient[i, j] = nodes[i].sum()
    inputs = {"a": adjacency, "nodes": nodes}
    rows = np.concatenate([edges, np.full((32, 2), 10)])[:32]
    return inputs, expected, len(edges), rows, len(edges) > 32, gradient


@case("tutorials/sparse", "A batch of graphs", "[senders, received]")
def batch_of_graphs(random, share, _):
    batch = random.normal(size=(3, 10, 10)) * (random.random((3, 10, 10)) < share / 6)
    received, places = np.zeros(30), np.argwhere(batch)
    for g, i, j in places:
        received[10 * g + j] += batch[g, i, j]
    # A node past the last graph fills.
    senders = filled([10 * g + i for g, i, _ in places], 96, 330)
    return {"batch": batch}, senders, received


# Faults: a collective that the page's own program lacks is left out.
@case(
    "tutorials/devices",
    None,
    "[re.findall(COLLECTIVES, text) == names]",
    marks=needs_devices,
)
def names_of_collectives(*_):
    names = ["all-gather", "all-reduce", "all-to-all", "collective-permute"]
    names += ["reduce-scatter"]
    lines = [f"x = f32[2] {x}(y), y = {x}-done(z)" for x in names]
    starts = [f"y = f32[2] {x}-start(x), metadata={{{x}}}" for x in names]
    return {"text": "\n".join(lines + starts), "names": names * 2}, True


# HOW-TO PAGES


# Fault: `fill_begin=0`.
@case("how_to/export", None, "[attend(scores), pad(row), to_a_multiple_of_8(scores)]")
def export(random, share, _):
    scores, row = random.normal(size=(4, 9)), random.normal(size=3)
    allowed = [[j <= i for j in range(9)] for i in range(4)]
    wide = np.pad(scores, ((0, 4), (0, 7)), "reflect")
    inputs = {"scores": scores, "row": row}
    return inputs, softmax(scores, np.array(allowed)), row[[2, 1, 0, 1, 2]], wide


@case(
    "how_to/nan",
    None,
    "[safe_log(x), jax.vmap(jax.grad(safe_log))(x), weights(10 * x, -jnp.inf)]",
)
def safe_log(random, share, _):
    x = np.array([-1, 0, 0.25, 0.9, 1])
    return {"x": x}, [0, 0, *np.log(x[2:])], [0, 0, *1 / x[2:]], [0, 0, 0, 0, 1]


# Fault: NonZero returns int32.
@case("how_to/onnx", None, "(lambda y: [y, y.dtype == int])(*run_onnx(model, inputs))")
def onnx(random, share, names):
    model = """
    <ir_version: 8, opset_import: ["" : 18]>
    graph (float[3, 4] x) => (int64[2, n] y) { y = NonZero(x) }
    """
    x = (random.random((3, 4)) < share).astype("float32")
    model = names["parser"].parse_model(model)
    return {"model": model, "inputs": {"x": x}}, np.argwhere(x).T, True


def as_of_jax(value):
    return jnp.asarray(value) if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize(("page", "heading", "code", "prose", "make"), CASES)
def test_a_program_is_right_for_other_inputs(
    page, heading, code, prose, make, monkeypatch
):
    monkeypatch.setenv("XLA_FLAGS", os.environ["XLA_FLAGS"])
    text = " ".join(TEXTS[page].split())
    for words in prose:
        (found,) = re.findall(f"{re.escape(words)} `([^`]+)`", text)
        code = code.replace("PROSE", found, 1)
    with jax.default_device(jax.devices("cpu")[0]):
        for seed, share in enumerate((0, 0.25, 0.5, 1)):
            random = np.random.default_rng(seed)
            inputs, *expected = make(random, share, names_of(page))
            inputs = jax.tree.map(as_of_jax, inputs)
            names = rerun(page, heading, inputs) if heading else names_of(page)
            result = eval(code, names | inputs)
            values = result if isinstance(result, list) else jax.tree.leaves(result)
            for actual, value in zip(values, expected, strict=True):
                np.testing.assert_allclose(actual, value, rtol=1e-4, atol=1e-5)
