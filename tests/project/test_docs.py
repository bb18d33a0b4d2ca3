"""The documentation is true: examples, outputs, names and links."""

import ast
import contextlib
import doctest
import importlib.util
import inspect
import itertools
import os
import pydoc
import re
import subprocess
import sys
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import dmljax
from dmljax.__main__ import main
from dmljax._operators import DESCRIPTORS
from docs import first_minute, programs
from tests import compiling
from tests.checks import needs_devices
from tests.project.test_equivalents import PAGES
from tests.project.texts import ROOT, SOURCES, TEXTS

# EXAMPLES

EXAMPLES = [
    page for page, text in TEXTS.items() if ">>>" in text and page.startswith("docs/")
]


@pytest.mark.parametrize("page", EXAMPLES)
def test_examples_and_messages(page):
    # An exported program is for the default platform, and must run there.
    device = None if page == "docs/how_to/export.md" else jax.devices("cpu")[0]
    with jax.default_device(device):
        failed, attempted = doctest.testfile(
            str(ROOT / page), module_relative=False, optionflags=doctest.ELLIPSIS
        )
    assert attempted
    assert not failed


# tests/project/test_recipes.py runs the recipes and most tutorials.
PROGRAMS = [
    pytest.param(page, marks=[pytest.mark.slow] if "devices" in page else [])
    for page, text in TEXTS.items()
    if programs.shown(text)
    and not re.match("docs/(recipes|tutorials/(?!devices))", page)
]


@pytest.mark.usefixtures("model_of_the_page")
@pytest.mark.parametrize("page", PROGRAMS)
def test_a_program_prints_its_comments(page, tmp_path):
    """A reader copies all blocks of a page into a file, and runs it anywhere."""
    program = programs.program(TEXTS[page])
    for library in re.findall(r"^(?:import|from) (\w+)", program, re.MULTILINE):
        pytest.importorskip(library)
    file = tmp_path / "program.py"
    file.write_text(program)
    # Devices of the tests are not those of a reader. A tutorial asks for two.
    known = {"XLA_FLAGS": " ".join(compiling.FAST), "JAX_PLATFORMS": "cpu"}
    environment = os.environ | known | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, file]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.stdout == programs.shown(TEXTS[page])


def test_a_program_is_all_blocks_and_all_comments():
    """Faults: blocks that begin with a comment are left out, or second lines."""
    blocks = "# 1\nprint(1)\n# 1\n# 2\n", "# Fragment\nx\n", ">>> x\n", "y\n"
    page = "".join(f"```python\n{block}```\n" for block in blocks)
    assert programs.program(page) == blocks[0] + "\n\n" + blocks[3]
    assert programs.shown(page) == "1\n2\n"


FENCED = re.compile(r"^ *```(.*)\n((?:.*\n)*?) *```$", re.MULTILINE)
BLOCKS = [
    (page, *found) for page, text in TEXTS.items() for found in FENCED.findall(text)
]
FRAGMENTS = [block for *_, block in BLOCKS if block.startswith("# Fragment")]
LANGUAGES = "console json python sh text {eval-rst} {toctree}"


def test_a_test_runs_every_block_of_python():
    """Faults: ```py in place of ```python, or a page whose program prints nothing."""
    for page, language, block in BLOCKS:
        known = ["", *LANGUAGES.split()]
        assert language in known or language.startswith("{include} "), page
        doctest_of_a_page = block.startswith(">>>") and page in EXAMPLES
        assert doctest_of_a_page or not re.search("^ *>>>|[+]SKIP", block, re.M), page
        if language == "python" and block not in FRAGMENTS and not doctest_of_a_page:
            assert programs.shown(TEXTS[page]) or page in PAGES, page
    marks = re.findall("^ *(?:```|~~~)", "\n".join(TEXTS.values()), re.M)
    assert len(marks) == 2 * len(BLOCKS)


@pytest.mark.slow
@needs_devices
@pytest.mark.usefixtures("standard_promotion")
@pytest.mark.parametrize("block", FRAGMENTS, ids=lambda block: block.split("\n")[0])
def test_a_fragment_runs(block, folder):
    """With what its page describes: a network, an optimizer, two devices."""
    mesh = jax.make_mesh((2,), ("devices",), devices=jax.devices()[:2])
    names = {"jax": jax, "jnp": jnp, "dml": dmljax}
    names["everywhere"] = jax.NamedSharding(mesh, jax.P())
    names |= dict.fromkeys("qkv", jnp.ones((1, 8, 2, 64), "bfloat16"))
    if "flax" in block:
        nnx, optax = map(pytest.importorskip, ("flax.nnx", "optax"))
        conv = nnx.Conv(1, 8, (3, 3), padding="VALID", rngs=nnx.Rngs(0))
        optimizer = nnx.Optimizer(conv, optax.adam(1), wrt=nnx.Param)
        names |= {"nnx": nnx, "conv": conv, "network": conv, "optimizer": optimizer}
        names["x"] = x = jnp.arange(40.0).reshape(2, 4, 5, 1)
        exec(block, names)
        arrays = nnx.state((conv, optimizer))
        if "conv(x)" in block:
            wide = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)], "reflect")
            np.testing.assert_array_equal(names["x"], wide)
            assert names["y"].shape == (2, 4, 5, 8)
    elif "equinox" in block:
        eqx, optax = map(pytest.importorskip, ("equinox", "optax"))
        names["network"] = eqx.nn.Conv2d(1, 8, 3, key=KEY)
        names |= {"eqx": eqx, "optimizer": optax.adam(1)}
        exec(block.split("; ")[1].split("\n")[0], names)
        exec(block, names)
        arrays = eqx.filter((names["network"], names["state"]), eqx.is_array)
    elif "NVIDIA" in block:
        if jax.default_backend() != "gpu":
            block = block.replace("cudnn", "xla")
        exec(block, names)
    else:
        converts = importlib.util.find_spec("jax2onnx")
        function = re.search(r"^def .*?\n\n", block, re.M | re.S)[0]
        exec(block if converts else function, names)
        assert not converts or (folder / "attend.onnx").exists()
        # A call in the same process.
        assert names["attend"](jnp.ones((4, 4)))[0].tolist() == [1, 0, 0, 0]
    if "everywhere" in block:
        assert {len(leaf.devices()) for leaf in jax.tree.leaves(arrays)} == {2}


KEY = jax.random.key(0)


@pytest.mark.slow
def test_a_layer_that_pads_is_padding_before_the_layer():
    """The calls of equinox in a sentence, which claims.md quotes."""
    eqx = pytest.importorskip("equinox")
    x = jnp.arange(20.0).reshape(1, 4, 5)
    wide = dmljax.padding(x, (0, 1, 1), (0, 1, 1), mode="reflect")
    alone = eqx.nn.Conv2d(1, 8, 3, key=KEY)
    padded = eqx.nn.Conv2d(1, 8, 3, padding=1, padding_mode="REFLECT", key=KEY)
    np.testing.assert_array_equal(alone(wide), padded(x))


def test_the_first_minute_sees_a_wrong_result(folder, capsys, monkeypatch):
    """Faults: values or gradients are compared with themselves; exchanged names.

    The first function is wrong, and the second has right values alone.
    """
    ours, theirs, timed = dmljax.numpy.extract, jnp.extract, []

    def wrong(mask, x, size):
        return ours(mask, x, size=size) + 1

    def without_gradient(mask, x, size):
        return theirs(mask, jax.lax.stop_gradient(x), size=size)

    def best(function, x):
        timed.append(function)
        return f" {len(timed)}", np.asarray(function(x))

    monkeypatch.setattr(dmljax.numpy, "extract", wrong)
    monkeypatch.setattr(first_minute, "scatter", without_gradient)
    monkeypatch.setattr(first_minute, "best", best)
    first_minute.main(2**15)
    # Fault: a time without jit.
    assert [hasattr(each, "lower") for each in timed] == [False] + 6 * [True]
    lines = [" ".join(x.split()) for x in capsys.readouterr().out.splitlines()]
    for line in (
        "dmljax.numpy.extract 2 3 False False",
        "jax.numpy, a scatter 4 5 True False",
        "jax.numpy.extract 6 7 True True",
    ):
        assert line in lines
    photograph = np.asarray(Image.open(ROOT / "docs/models/astronaut.jpg"))
    wide = np.pad(photograph, ((256, 256), (256, 256), (0, 0)), mode="reflect")
    with Image.open("reflection.png") as picture:
        np.testing.assert_array_equal(picture, wide)


def test_the_first_minute_shows_the_shortest_time_of_a_whole_call(monkeypatch):
    """Faults: a time ends before the result is there, or is another unit."""
    events = mock.Mock()
    events.perf_counter.side_effect = [0, 5, 10, 11, 20, 23]
    events.block_until_ready.side_effect = events.function.side_effect = lambda x: x
    for module in ("jax", "time"):
        monkeypatch.setattr(first_minute, module, events)
    assert first_minute.best(events.function, 7) == ("    1000.0", 7)
    call = ["function", "block_until_ready"]
    timed = ["perf_counter", *call, "perf_counter"]
    assert [name for name, *_ in events.method_calls] == call + 3 * timed


@pytest.mark.parametrize("size", [1, 1023, 1024, 1025, 3000])
def test_the_scatter_of_the_first_minute_is_right_at_the_borders_of_blocks(size):
    scatter = jax.jit(first_minute.scatter, static_argnames="size")
    x = np.arange(1, 3073, dtype=np.float32)
    inner = x % 1024
    for mask in (x > 0, x < 0, inner == 0, inner == 1, inner > 1, x > 1024, x < 1026):
        expected = np.pad(x[mask], (0, size))[:size]
        np.testing.assert_array_equal(scatter(mask, x, size=size), expected)


@pytest.mark.parametrize(
    ("enum", "page"),
    [
        (dmljax.PaddingMode, "docs/operators/padding.md"),
        (dmljax.DataType, "docs/descriptors.md"),
        (dmljax.TensorFlags, "docs/descriptors.md"),
    ],
)
def test_every_member_of_an_enum_is_in_its_table(enum, page):
    row = rf"\| `{enum.__name__}` \|.*\n\|[-|]+\n((?:\|.*\n)+)"
    (table,) = re.findall(row, TEXTS[page])
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", table, re.MULTILINE)
    assert {name: int(x, 0) for name, x in rows} == {**enum.__members__}


CONSOLE = re.findall(
    r"^```console\n\$ dmljax (.+)\n([^$]*?)^```$",
    TEXTS["docs/model_files.md"],
    re.MULTILINE,
)


@pytest.fixture
def model_of_the_page(folder):
    """The file that docs/model_files.md shows, in the current directory."""
    block = r"^```json\n(.*?)^```$"
    (text,) = re.findall(block, TEXTS["docs/model_files.md"], re.MULTILINE | re.DOTALL)
    path = folder / "model.json"
    path.write_text(text)
    return path


@pytest.mark.usefixtures("model_of_the_page")
@pytest.mark.parametrize(("arguments", "shown"), CONSOLE)
def test_commands_print_the_output_on_the_pages(arguments, shown, capsys):
    assert main(arguments.split()) == 0
    printed = capsys.readouterr()
    assert printed.out + printed.err == shown


# NAMES AND LINKS


def test_every_public_name_is_documented():
    text = "".join(TEXTS.values())
    documented = re.findall(r"auto(?!module)\w+:: dmljax\.(\w+)", text)
    assert set(documented) == set(dmljax.__all__)
    listed = re.findall(r"^ +dmljax\.([\w.]+)$", TEXTS["docs/reference/index.md"], re.M)
    expected = set(dmljax.__all__) - {"Implementation"}
    expected |= {f"numpy.{name}" for name in dmljax.numpy.__all__}
    expected |= {f"onnx.{name}" for name in dmljax.onnx.__all__}
    assert set(listed) == expected


PACKAGE = [path for path in SOURCES if path.is_relative_to(ROOT / "dmljax")]
PREFIXES = {"dml": "dmljax", "dnp": "dmljax.numpy", "dox": "dmljax.onnx"}
PREFIXES |= {"jnp": "jax.numpy", "lax": "jax.lax", "np": "numpy"}
DOTTED = re.compile(
    r"(?<![\w./'\"])(dml|dmljax|dnp|dox|jnp|jax|lax|np)((?:\.[a-zA-Z]\w*)+)"
)


def named(text):
    """The object with a dotted name; None if there is none."""
    prefix, name = DOTTED.fullmatch(text).groups()
    return pydoc.locate(PREFIXES.get(prefix, prefix) + name)


def inline(text):
    """The code in the sentences of a page."""
    return re.findall(r"`([^`]+)`", FENCED.sub("", text))


@pytest.mark.parametrize("page", TEXTS)
def test_names_and_arguments_on_a_page_exist(page):
    """Fault: a function or an argument is misspelt, in a sentence or a comment."""
    names = {found[0] for found in DOTTED.finditer(TEXTS[page])}
    assert {name for name in names if named(name) is None} == set()
    of_a_result = re.findall(r"\bkept\.(\w+)", TEXTS[page])
    assert {*of_a_result} <= {*dir(dmljax.NonzeroCoordinates)}
    for call in calls(inline(TEXTS[page])):
        function = ast.unparse(call.func)
        if re.match(r"d(ml|np|ox)\w*[.]", function) and DOTTED.fullmatch(function):
            words = {word.arg: 0 for word in call.keywords}
            inspect.signature(named(function)).bind_partial(*call.args, **words)


@pytest.mark.parametrize("page", [*TEXTS, *PACKAGE])
def test_coordinates_index_an_array_by_columns(page):
    """Fault: `x[tuple(coordinates)]`, which takes a row for an axis."""
    text = TEXTS.get(page) or page.read_text()
    found = re.findall(r"\[tuple\(([^()]*)\)\]|index = tuple\(([^()]*)\)", text)
    one_row = r"coordinates\[r\]"
    for code in filter(None, itertools.chain(*found)):
        assert re.fullmatch(rf"[\w.]+\.T|{one_row}", code), code


def calls(codes):
    for code in codes:
        with contextlib.suppress(SyntaxError):
            nodes = ast.walk(ast.parse(code))
            yield from (node for node in nodes if isinstance(node, ast.Call))


# Names of other modules and libraries, and of programs that no page has, are sources:
# linear_call softmax_cross_entropy_with_integer_labels hop_length n_fft pad_mode
# all_elements CheckFeatureSupport CompileOperator CreateOperator channelOrder
# roofline out_axes "Float32" "repeats"


def test_words_with_an_underscore_are_in_the_sources():
    """Fault: a name that is misspelt in a sentence, without its module."""
    texts = [path.read_text() for path in SOURCES] + [block for *_, block in BLOCKS]
    known = set(re.findall(r"\w+", "\n".join(texts))) | {path.stem for path in SOURCES}
    known |= {*dir(jax), *dir(jax.numpy), *dir(jax.lax), *jax.config.values}
    # The calls in PAGES run.
    pages = TEXTS.keys() - PAGES.keys() - {"docs/development/lab_notes.md"}
    codes = [code for page in pages for code in inline(TEXTS[page])]
    words = re.findall(
        r"\b[a-z0-9]+_\w+|(?<=\w\.)[a-z]\w{3,}|\w+Error\b|\b[A-Z][a-z]+[A-Z]\w+",
        "\n".join(codes),
    )
    assert set(words) - known == set()
    # Faults: another string, or a name of another module, in the texts of a release.
    code = "\n".join(
        x for page in pages if "/" not in page for x in inline(TEXTS[page])
    )
    assert {*re.findall(r"^[a-z]\w{3,}$", code, re.M)} <= known
    quoted = re.findall(r'"[\w.]+"|(?<![\w./])[a-z]\w*[.]\w{4,}', code)
    everywhere = "\n".join(texts)
    unknown = {x for x in quoted if not re.search(rf"{re.escape(x)}(?!\w)", everywhere)}
    assert {x for x in unknown if not pydoc.locate(x)} == set()
    # Arguments, as in `size=`.
    known = set(re.findall(r"(\w+)(?:=|: )", "\n".join(texts)))
    assert {code[:-1] for code in codes if re.fullmatch(r"\w+=", code)} <= known


def test_operators_in_sentences_exist():
    """Fault: PADDING2 in place of PADDING1."""
    text = "\n".join(FENCED.sub("", text) for text in TEXTS.values())
    words = r"\b(?:PADDING|DIAGONAL|ONE_HOT|ELEMENT_WISE|NONZERO)\w*"
    assert {*re.findall(words, text)} <= {*DESCRIPTORS}


def test_paths_in_sentences_exist():
    path = re.compile(r"[\w./]+[.](py|md|toml|yml)")
    files = [str(ROOT / file) for file in (*SOURCES, *TEXTS)]
    for page, text in TEXTS.items():
        for name in filter(path.fullmatch, inline(text)):
            # A file that a contributor adds, and a file of another repository
            if "tile" not in name and name != "claims.md":
                assert any(x.endswith(f"/{name}") for x in files), f"{page}: {name}"
        for pattern in re.findall(r"\b[\w/]+/\*[\w.]*", " ".join(inline(text))):
            assert [*ROOT.glob(pattern), *(ROOT / "dmljax").glob(pattern)], pattern


def test_links_between_pages_lead_somewhere():
    """Those to pictures as well: people read the pages on GitHub."""
    for page, text in TEXTS.items():
        # Brackets in code are no links.
        prose = re.sub(r"^```.*?^```$|`[^`\n]+`", "code", text, flags=re.M | re.S)
        for link, place in re.findall(r"\]\(([^)#:]*)#?([^):]*)\)", prose):
            path = (ROOT / page).parent / link if link else ROOT / page
            assert path.exists(), f"{page} links to {link}"
            if place:
                assert place in anchors(path.read_text()), f"{page}: {link}#{place}"


def anchors(text):
    """The anchors of a page on GitHub. On the site, Sphinx checks its own."""
    found = re.findall(r"^#+ (.*)$", FENCED.sub("", text), re.M)
    return {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in found}


PICTURE = re.compile(r"!\[([^\]]+)\]\(([^)]+\.svg)\)(?:\n.*\(\./(.*)\.md\))?")


def test_each_picture_has_its_own_words():
    """Faults: two pictures or two descriptions are exchanged, or a picture is lost."""
    of_words, shown = re.compile(r"[a-z]{3,}|\d+"), set()
    for page, text in TEXTS.items():
        pictures = []
        for description, file, linked in PICTURE.findall(text):
            path = (ROOT / page).parent / file
            shown.add(path.name)
            if linked.isalpha():
                assert path.stem == f"gallery_{linked}"
                continue
            drawn = re.findall(r"<(?:title|text).*?>([^<]+)<", path.read_text())
            words = of_words.findall(f"{path.stem} {drawn}".lower().replace("_", " "))
            pictures.append((set(of_words.findall(description.lower())), set(words)))

        def fit(one, other):
            return len(one[0] & other[1]) / len(other[1]) ** 0.5

        for one, two in itertools.combinations(pictures, 2):
            assert fit(one, one) + fit(two, two) > fit(one, two) + fit(two, one), page
    assert shown >= {path.name for path in (ROOT / "docs/pictures").iterdir()}
