"""The pictures of the documentation show what the package computes."""

import pytest

from docs import make_picture, make_pictures
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
