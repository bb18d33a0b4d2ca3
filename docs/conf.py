"""The configuration of the documentation.

    python -m sphinx -W -b html docs docs/_build/html

The build needs no network.

People also read the pages on GitHub, which knows no directive of Sphinx. So a directive
stands in a comment, `<!-- site`, which the build opens. The build leaves out the text
between `<!-- not on the site -->` and `<!-- end -->`.
"""

import pathlib
import re
import sys
import zlib
from typing import get_type_hints

import sphinx.application
import sphinx.search
from docutils import nodes
from jax.typing import ArrayLike, DTypeLike
from sphinx.search.en import SearchEnglish
from sphinx.util.typing import stringify_annotation

import dmljax
from dmljax._directml.support import support_markdown
from dmljax._operators import DESCRIPTORS

HERE = pathlib.Path(__file__).parent
# Figures of the benchmarks are pages, and the registry makes lists.
sys.path.insert(0, str(HERE.parent))

project = "dmljax"
author = "the dmljax authors"
release = dmljax.__version__
copyright = f"{author}. Apache-2.0"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "models/**", "inventories/**"]

html_theme = "furo"
html_title = f"dmljax {release}"
html_static_path = ["_static"]
html_css_files = ["dmljax.css"]
html_js_files = ["dmljax.js"]
html_favicon = "_static/favicon.svg"
# "View this page" shows the Markdown that the build copies beside the page.
html_theme_options = {"top_of_page_buttons": ["view"]}

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_format = "short"

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

# Prompts are not part of what the copy button copies.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


class Search(SearchEnglish):
    """A search that also finds `where`. Elsewhere this is a word without meaning."""

    stopwords = SearchEnglish.stopwords - {"where"}


sphinx.search.languages["en"] = Search

# What people search for, and the page that answers. A main entry of the index is the
# first result of the search.
SEARCHED = {
    "faq": (
        "NonConcreteBooleanIndexError",
        "ConcretizationTypeError",
        "masked_select",
        "masked_scatter",
        "masked_fill",
        "gather",
    ),
    "index": ("which function",),
    "how_to/export": ("flatbuffers", "jax2onnx"),
    "how_to/nan": ("double where",),
    "how_to/tensorflow": ("boolean_mask",),
    "operators/one_hot": ("label smoothing", "cross entropy", "ignore_index"),
    "operators/padding": ("reflect",),
    "recipes": (
        "non-maximum suppression",
        "NMS",
        "radius graph",
        "neighbour list",
        "particles",
        "evict",
        "pack sequences",
        "partition",
        "unique",
        "filter",
        "hard negatives",
        "channels first",
    ),
    "tutorials/attention": (
        "attention mask",
        "causal mask",
        "key mask",
        "padding mask",
        "softmax",
        "sliding window",
        "kv cache",
    ),
    "tutorials/compact": (
        "dynamic shapes",
        "data-dependent shape",
        "stream compaction",
        "boolean mask",
        "x[mask]",
        "overflow",
        "training step",
        "top_k",
        "optax",
    ),
    "tutorials/devices": ("data parallel", "several GPUs", "shard_map"),
    "tutorials/experts": (
        "mixture of experts",
        "MoE",
        "top-2 experts",
        "ragged",
        "ragged_dot",
    ),
    "tutorials/images": (
        "random crop",
        "augmentation",
        "stft",
        "frames",
        "spectrogram",
        "audio",
    ),
    "tutorials/network": ("convolution", "flax", "equinox", "ReflectionPad2d"),
    "tutorials/sparse": ("segment_sum", "adjacency matrix"),
}

INVENTORIES = {
    "jax": "https://docs.jax.dev/en/latest/",
    "numpy": "https://numpy.org/doc/stable/",
    "python": "https://docs.python.org/3/",
}


def inventory(name: str) -> str:
    """The names of docs/inventories/<name>.txt as a file that intersphinx reads.

    The files list the names that the pages link to. We download no inventory.
    """
    lines = (HERE / "inventories" / f"{name}.txt").read_text().splitlines()
    entries = "".join(f"{line} -\n" for line in lines if line)
    header = f"# Sphinx inventory version 2\n# Project: {name}\n# Version: \n"
    header += "# The remainder of this file is compressed using zlib.\n"
    path = HERE / "_build" / f"{name}.inv"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(header.encode() + zlib.compress(entries.encode()))
    return str(path)


def open_comments(app: sphinx.application.Sphinx, page: str, source: list[str]) -> None:
    """Shows what is for the site alone, and leaves out what is not for it."""
    from docs.lists import listed

    del app
    text = re.sub(
        "<!-- not on the site -->.*?<!-- end -->\n",
        "",
        listed(source[0]),
        flags=re.DOTALL,
    )
    source[0] = re.sub("<!-- site\n(.*?)\n-->", r"\1", text, flags=re.DOTALL)
    if page == "descriptors":
        tables = [support_markdown(n, cls.support) for n, cls in DESCRIPTORS.items()]
        source[0] = "\n\n".join([source[0], *tables])


def add_to_titles(app: sphinx.application.Sphinx, page: str, source: list[str]) -> None:
    """Adds the words that people search for after the title. The page has them, too."""
    del app
    searched = SEARCHED.get(page, ())
    text = " ".join(source[0].lower().split())
    absent = [word for word in searched if word.lower() not in text]
    if absent:
        raise ValueError(f"{page} has no sentence with {absent}")
    words = "".join(f"   ! single: {word}\n" for word in searched)
    block = f"\n```{{eval-rst}}\n.. index::\n{words}```\n" if words else ""
    title = re.compile(r"^# .*\n", re.MULTILINE)
    source[0] = title.sub(lambda line: line[0] + block, source[0], count=1)


def write_figures(app: sphinx.application.Sphinx) -> None:
    """Writes the pages that have the ledger's figures."""
    from benchmarks import plot

    plot.write_pages(pathlib.Path(app.srcdir))


def cut_empty_lines(app: sphinx.application.Sphinx, page: nodes.document) -> None:
    """Cuts the empty line that doctest needs at the end of a block of code."""
    del app
    for block in page.findall(nodes.literal_block):
        text = block.astext().rstrip()
        # Sphinx colours a block only if its text is what stands in its source.
        block.rawsource = text
        block[:] = [nodes.Text(text)]


def hide_figures(app: sphinx.application.Sphinx, page: nodes.document) -> None:
    """Keeps figures and pages for developers out of the search of users."""
    del page
    name = app.env.docname
    if name.startswith(("benchmarks_", "development/")):
        app.env.metadata[name]["nosearch"] = "yes"


def name_types(app: sphinx.application.Sphinx, *_: object) -> None:
    """Writes the names of long types, where Sphinx would write all that they are."""
    mode = get_type_hints(dmljax.padding)["mode"]
    names = {
        ArrayLike: "ArrayLike",
        DTypeLike: "DTypeLike",
        mode: "~dmljax.PaddingMode | str | int",
    }
    for types in app.env.current_document.autodoc_annotations.values():
        for kind, name in names.items():
            whole = stringify_annotation(kind, "smart")
            types |= {key: text.replace(whole, name) for key, text in types.items()}


def setup(app: sphinx.application.Sphinx) -> None:
    """Is called by Sphinx."""
    app.connect("builder-inited", write_figures)
    app.connect("source-read", open_comments)
    app.connect("source-read", add_to_titles)
    # Before Sphinx's own handler: that one writes the types.
    app.connect("object-description-transform", name_types, priority=400)
    app.connect("doctree-read", cut_empty_lines)
    app.connect("doctree-read", hide_figures)


intersphinx_mapping = {
    name: (address, inventory(name)) for name, address in INVENTORIES.items()
}
