"""Random model files, some of them damaged: they are refused, or run as they say."""

import contextlib
import json
import pathlib
import tempfile

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


@hypothesis.given(randoms)
def test_a_model_gives_the_results_of_the_oracles_or_is_refused(random):
    source = models.valid_model(Maker(random))
    for text in (json.dumps(source).encode(), models.damaged(random, source)):
        error = ""
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.chdir(folder),
            jax.enable_x64(True),
        ):
            pathlib.Path("model.json").write_bytes(text)
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
