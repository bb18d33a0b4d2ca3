"""The texts of the documentation, by their paths in the checkout."""

import pathlib
import re

from docs.lists import listed

ROOT = pathlib.Path(__file__).parents[2]
TEXTS = {
    path.relative_to(ROOT).as_posix(): listed(path.read_text(encoding="utf-8"))
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if "_build" not in path.parts
}
FOLDERS = ["dmljax", "tests", "benchmarks", "docs", ".github"]
FILES = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.*")]
SOURCES = [
    path
    for path in (*ROOT.glob("*.*"), *FILES)
    if path.suffix in (".py", ".yml", ".toml", ".json") and "_build" not in path.parts
]


def section(page, heading):
    """The part of a page below a heading."""
    return TEXTS[page].split(f"\n## {heading}\n")[1].split("\n## ")[0]


def words_of(picture):
    """The words in a picture. Another version of Matplotlib may put them elsewhere."""
    return re.findall(r"<text.*?>([^<]+)<", picture.read_text())
