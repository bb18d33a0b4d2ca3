"""Random model files, some of them damaged: they are refused, or run as they say."""

import contextlib
import pathlib
import tempfile

import hypothesis
import jax
import pytest

import dmljax
from dmljax._directml.struct import c_name
from tests.fuzz import expected, models
from tests.fuzz.descriptors import Maker
from tests.fuzz.test_descriptors import randoms

pytestmark = pytest.mark.slow

# Damage may multiply the elements.
MOST = 5000


@hypothesis.given(randoms)
def test_a_model_gives_the_results_of_the_oracles_or_is_refused(random):
    desc = Maker(random).desc()
    source = models.valid_model(desc)
    error = ""
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        jax.enable_x64(True),
    ):
        results = dmljax.run_model(source)
        pathlib.Path("model.json").write_bytes(models.damaged(random, source))
        try:
            dmljax.run_model("model.json", max_elements=MOST)
        except dmljax.ModelError as raised:
            error = str(raised)
    inputs = [results[c_name(n)].view(t.dtype) for n, t in desc.input_tensors().items()]
    wanted = expected.outputs(desc, inputs)
    for name, output in zip(desc.outputs, wanted, strict=True):
        found = results[c_name(name)][: output.nbytes]
        assert found.tobytes() == output.tobytes()
    assert error.isprintable()
    assert len(error) < 600
