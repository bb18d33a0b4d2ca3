"""The pictures of the documentation show what the package does, and can be read."""

import io
import re

import numpy as np
import pytest
from PIL import Image

from docs import cells, make_pictures

PAGES = [*make_pictures.DOCS.rglob("*.md"), make_pictures.DOCS.parent / "README.md"]
PAGES = [page for page in PAGES if "_build" not in page.parts]


@pytest.mark.parametrize("name", make_pictures.DRAWN)
def test_a_picture_is_what_the_package_computes(name):
    file = make_pictures.FOLDER / f"{name}.svg"
    assert file.read_text() == make_pictures.DRAWN[name]()


def test_photographs_are_what_the_model_files_write():
    """Another version of the JPEG library may round a little differently."""
    for name, content in make_pictures.photographs().items():
        file = make_pictures.FOLDER / f"photograph_{name}.jpg"
        with Image.open(file) as shown, Image.open(io.BytesIO(content)) as expected:
            assert shown.size == expected.size
            difference = np.abs(np.int32(shown) - np.int32(expected))
        assert difference.mean() < 2, name


def test_every_file_is_drawn_and_shown_with_a_description():
    files = {path.name for path in make_pictures.FOLDER.iterdir()}
    drawn = {f"{name}.svg" for name in make_pictures.DRAWN}
    drawn |= {f"photograph_{name}.jpg" for name in make_pictures.PHOTOGRAPHS}
    assert files == drawn
    text = "".join(page.read_text() for page in PAGES)
    shown = re.findall(r"!\[([^]]+)\]\([./]*pictures/([\w.]+)\)", text)
    assert {file for _, file in shown} == files
    assert all(len(description) > 20 for description, _ in shown)


def luminance(colour):
    """The relative luminance of a colour, as WCAG 2.1 defines it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [
        p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colours", [cells.LIGHT, cells.DARK], ids=["light", "dark"])
@pytest.mark.parametrize("kind", cells.LIGHT)
def test_text_can_be_read_on_its_colour(colours, kind):
    """WCAG asks for a contrast of 4.5 between text and what is behind it."""
    area, text = (luminance(getattr(colours[kind], p)) for p in ("area", "text"))
    contrast = (max(area, text) + 0.05) / (min(area, text) + 0.05)
    assert contrast >= 4.5


def test_a_picture_explains_its_colours_and_fits_the_page():
    shown = cells.line(cells.block("x", [1, 2], [["value", "new"]]))
    with pytest.raises(ValueError, match=r"does not explain \{'new'\}"):
        cells.picture("x", [shown], {"value": "the input"})
    wide = cells.line(cells.block("x", range(40)))
    with pytest.raises(ValueError, match="pixels wide"):
        cells.picture("x", [wide], {"value": "the input"})
    with pytest.raises(ValueError, match="'red'"):
        cells.block("x", [1], "red")
