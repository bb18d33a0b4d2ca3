"""Random model files, some of them damaged: they are refused, or run as they say."""

import contextlib
import json
import pathlib

import hypothesis
import jax
import pytest

import dmljax
from dmljax._model.output import Targets
from dmljax._model.parse import parse_model
from tests.fuzz import models
from tests.fuzz.descriptors import Maker
from tests.fuzz.test_descriptors import randoms

pytestmark = pytest.mark.slow

# The oracles are loops in Python, so we keep the models small.
MOST = 5000


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory):
    """The current directory, where models write their files."""
    with contextlib.chdir(tmp_path_factory.mktemp("models")):
        yield


@hypothesis.given(randoms)
def test_a_model_gives_the_results_of_the_oracles_or_is_refused(random):
    source = models.valid_model(Maker(random))
    for text in (json.dumps(source).encode(), models.damaged(random, source)):
        pathlib.Path("model.json").write_bytes(text)
        error = ""
        with jax.enable_x64(True):
            try:
                results = dmljax.run_model("model.json", max_elements=MOST)
            except dmljax.ModelError as raised:
                error = str(raised)
            else:
                parsed = parse_model("model.json", Targets(), MOST)
                wanted = models.final_bytes(parsed)
                assert {n: array.tobytes() for n, array in results.items()} == wanted
        assert not error or error.isprintable()
        assert len(error) < 600
