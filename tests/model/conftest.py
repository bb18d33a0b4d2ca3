"""Every test here has an empty folder of its own as its current directory."""

import pytest


@pytest.fixture(autouse=True)
def folder(folder):
    return folder
