"""What docs/conf.py tells Sphinx, without a build. The session `site` runs it."""

import collections
import pathlib
import re
import types
import typing
import zlib
from unittest import mock

import pytest

import dmljax
from tests.project.texts import ROOT

nodes = pytest.importorskip("docutils.nodes")
pytest.importorskip("sphinx.application")
pytest.importorskip("myst_parser")
from docs import conf  # noqa: E402


def test_the_site_shows_what_is_for_it():
    """Faults of docs/conf.py: comments stay closed, words or tables are lost."""
    page = "<!-- not on the site -->\nB\n<!-- end -->\n<!-- site\nC\n-->\n"
    page = f"# A\n{2 * page}"
    for name in ("faq", "descriptors"):
        conf.open_comments(None, name, source := [page])
        opened, *tables = source[0].split("\n\n")
        assert opened.rstrip() == "# A\nC\nC"
        assert bool(tables) == (name == "descriptors")
    with pytest.raises(ValueError, match=r"faq has no sentence with .*'gather'"):
        conf.add_to_titles(None, "faq", source)
    source = ["# A\n" + " ".join(conf.SEARCHED["faq"]).upper() + "\n# B\n"]
    conf.add_to_titles(None, "faq", source)
    assert source[0].startswith("# A\n\n```{eval-rst}\n.. index::\n")
    assert re.findall("! single: (.*)", source[0]) == [*conf.SEARCHED["faq"]]
    env = types.SimpleNamespace(metadata=collections.defaultdict(dict))
    for env.docname in ("benchmarks", "benchmarks_cpu", "development/design", "faq"):
        conf.hide_figures(types.SimpleNamespace(env=env), None)
    assert [*env.metadata] == ["benchmarks_cpu", "development/design"]
    # Fault: a word is lost. tests/project/test_site.py searches for each.
    assert sum(map(len, conf.SEARCHED.values())) == 63
    assert "where" not in conf.Search.stopwords
    static = ROOT / "docs/_static"
    files = [*conf.html_css_files, *conf.html_js_files]
    assert {path.name for path in static.iterdir()} == {*files, "favicon.svg"}


SETTINGS = """
project dmljax
author the dmljax authors
release VERSION
copyright the dmljax authors. Apache-2.0
extensions myst_parser sphinx.ext.autodoc sphinx.ext.autosummary \
sphinx.ext.intersphinx sphinx.ext.napoleon sphinx_copybutton
exclude_patterns _build models/** inventories/**
html_theme furo
html_title dmljax VERSION
html_static_path _static
html_css_files dmljax.css
html_js_files dmljax.js
html_favicon _static/favicon.svg
autodoc_member_order bysource
autodoc_typehints description
autodoc_typehints_format short
myst_enable_extensions attrs_block attrs_inline colon_fence dollarmath
myst_heading_anchors 3
copybutton_prompt_text >>> |\\.\\.\\. |\\$ 
copybutton_prompt_is_regexp True
"""


def test_the_settings_of_the_site():
    """Faults: a setting is misspelt, which Sphinx ignores, or has another value."""
    lines = SETTINGS.replace("VERSION", dmljax.__version__).strip().split("\n")
    # Sphinx ignores a setting that it does not know: the names are all that it has.
    own = {
        name: " ".join(value) if isinstance(value, list) else str(value)
        for name, value in vars(conf).items()
        if isinstance(value, str | list | int) and re.match("[a-z]", name)
    }
    assert own == dict(line.split(" ", 1) for line in lines)
    assert conf.html_theme_options == {"top_of_page_buttons": ["view"]}
    # The prompts of the blocks on pages, and no other text.
    lines = [">>> x", "... x", "$ dmljax run", "x $ y", "x >>> 1"]
    rest = [re.sub(f"^({conf.copybutton_prompt_text})", "", line) for line in lines]
    assert rest == ["x", "x", "dmljax run", *lines[3:]]


def test_the_inventories_of_the_site():
    """Faults: a library or an address is lost; names that no file has."""
    names = {path.stem for path in (ROOT / "docs/inventories").glob("*.txt")}
    assert conf.intersphinx_mapping.keys() == conf.INVENTORIES.keys() == names
    for name, (address, file) in conf.intersphinx_mapping.items():
        assert re.fullmatch(
            rf"https://docs\.{name}\..*/|https://{name}\.org/.*/", address
        )
        *header, entries = pathlib.Path(file).read_bytes().split(b"\n", 4)
        assert header[0] == b"# Sphinx inventory version 2"
        assert header[1].decode() == f"# Project: {name}"
        lines = zlib.decompress(entries).decode().splitlines()
        text = (ROOT / "docs/inventories" / f"{name}.txt").read_text()
        assert [line.removesuffix(" -") for line in lines] == text.split("\n")[:-1]


def test_the_functions_that_sphinx_calls():
    """Faults: a function is not connected, or to another event."""
    app = mock.Mock()
    conf.setup(app)
    connected = [
        (event, function.__name__, *options.values())
        for (event, function), options in app.connect.call_args_list
    ]
    assert connected == [
        ("builder-inited", "write_figures"),
        ("source-read", "open_comments"),
        ("source-read", "add_to_titles"),
        ("object-description-transform", "name_types", 400),
        ("doctree-read", "cut_empty_lines"),
        ("doctree-read", "hide_figures"),
    ]


def test_blocks_of_code_end_with_their_last_line():
    page = nodes.paragraph()
    page += nodes.literal_block("a\n\nb\n\n", "a\n\nb\n\n")
    conf.cut_empty_lines(None, page)
    assert page[0].astext() == page[0].rawsource == "a\n\nb"


def test_the_site_names_long_types():
    """Fault: a signature lists the members of ArrayLike, or of the modes."""
    hints = typing.get_type_hints(dmljax.padding)
    annotations = {
        name: conf.stringify_annotation(hints[name], "smart") for name in ("x", "mode")
    }
    annotations["y"] = f"{annotations['x']} | None"
    document = types.SimpleNamespace(
        autodoc_annotations={"dmljax.padding": annotations}
    )
    env = types.SimpleNamespace(current_document=document)
    conf.name_types(types.SimpleNamespace(env=env), None)
    named = {"x": "ArrayLike", "mode": "~dmljax.PaddingMode | str | int"}
    assert annotations == named | {"y": "ArrayLike | None"}
