"""The configuration of the documentation: sphinx-build -b html docs docs/_build."""

import dmljax

project = "dmljax"
author = "the dmljax authors"
release = dmljax.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "models/**"]
html_theme = "alabaster"
html_theme_options = {"description": "Five DirectML operators for JAX"}
autodoc_member_order = "bysource"
autodoc_typehints = "description"
myst_heading_anchors = 3
