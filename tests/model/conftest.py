"""Every test of a model runs in an empty folder."""

import pytest


@pytest.fixture(autouse=True)
def folder(folder):
    return folder
