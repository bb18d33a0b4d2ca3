"""The pictures of the documentation show what the package computes."""

import base64
import io
import re

import jax
import numpy as np
import pytest
from PIL import Image

from docs import cells, make_picture, make_pictures
from tests.project.texts import words_of


@pytest.mark.slow
def test_the_pictures_in_git_have_the_numbers_of_today(tmp_path, monkeypatch):
    """Another version of Matplotlib draws other bytes, and the same words."""
    committed = make_pictures.FOLDER
    monkeypatch.setattr(make_pictures, "FOLDER", tmp_path)
    make_pictures.main()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {path.name for path in committed.iterdir()}
    readme = make_picture.PICTURE
    monkeypatch.setattr(make_picture, "PICTURE", tmp_path / readme.name)
    make_picture.main()
    for path in tmp_path.iterdir():
        old = readme if path.name == readme.name else committed / path.name
        assert sorted(words_of(path)) == sorted(words_of(old)), path.name
        assert "prefers-color-scheme: dark" in old.read_text(), path.name
        if jax.default_backend() == "cpu" and version(path) == version(old):
            assert_same_shapes(path.read_text(), old.read_text())


def test_a_picture_is_no_wider_than_a_page():
    """Fault: pictures of twice the width are taken."""
    wide = [cells.line(cells.block("", np.zeros((1, 20), int)))]
    legend = {kind: kind for kind in cells.COLOURS}
    cells.picture("narrow", [cells.line(cells.block("", [[0]]))], legend)
    with pytest.raises(ValueError, match=r"'wide' is .* pixels wide; a page has 690"):
        cells.picture("wide", wide, legend)


def version(path):
    return re.search(r"Matplotlib v[\d.]+|$", path.read_text())[0]


NUMBER = r"(?<![#\w])-?\d+(?:\.\d+)?"
DATA = r'base64,([^"]+)"'


def assert_same_shapes(new, old):
    """Faults: two labels or two colours are exchanged, or another array is drawn."""
    shapes = [re.sub(f'{DATA}|[mp][0-9a-f]{{10}}|id=".*?"', "", x) for x in (new, old)]
    one, other = (re.sub(NUMBER, "", shape) for shape in shapes)
    assert one == other
    one, other = (np.float64(re.findall(NUMBER, shape)) for shape in shapes)
    np.testing.assert_allclose(one, other, atol=2)
    for one, other in zip(re.findall(DATA, new), re.findall(DATA, old), strict=True):
        np.testing.assert_allclose(pixels(one), pixels(other), atol=16)


def pixels(data):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))).astype(float)
