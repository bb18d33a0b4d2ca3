"""The pictures of the documentation are up to date and readable."""

import re

import numpy as np
import pytest
from matplotlib import colors

from docs import cells, make_picture, make_pictures
from tests.project.texts import TEXTS, words_of


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The pictures that the build of the documentation writes."""
    folder = tmp_path_factory.mktemp("pictures")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(make_pictures, "FOLDER", folder)
        make_pictures.main()
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_every_picture_is_drawn_and_shown_with_a_description(files):
    text = "".join(TEXTS.values())
    shown = re.findall(r"!\[([^]]+)\]\([./]*pictures/([\w.]+)\)", text)
    assert {file for _, file in shown} == set(files)
    assert all(len(description) > 20 for description, _ in shown)


def test_pictures_are_no_wider_than_a_page_and_follow_the_dark_mode(files):
    for name, text in files.items():
        width = re.search(r'viewBox="([^"]+)"', text)[1].split()[2]
        # An inch has 72 of Matplotlib's points, and 96 pixels of a page.
        scale = 96 / 72 if f'width="{width}pt"' in text else 1
        assert float(width) * scale <= cells.WIDTH + 2, name
        assert "prefers-color-scheme: dark" in text, name


def test_the_picture_in_readme_is_up_to_date(tmp_path, monkeypatch):
    in_git = make_picture.PICTURE
    monkeypatch.setattr(make_picture, "PICTURE", tmp_path / "drawn.svg")
    make_picture.main()
    assert words_of(make_picture.PICTURE) == words_of(in_git)


def luminance(colour):
    """The relative luminance of a colour, as WCAG 2.1 defines it."""
    parts = np.array(colors.to_rgb(colour))
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return linear @ (0.2126, 0.7152, 0.0722)


@pytest.mark.parametrize("colours", [cells.LIGHT, cells.DARK], ids=["light", "dark"])
@pytest.mark.parametrize("kind", cells.LIGHT)
def test_text_can_be_read_on_its_colour(colours, kind):
    """WCAG asks for a contrast of at least 4.5 between text and background."""
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
