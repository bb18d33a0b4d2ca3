"""Models with one operator: their results, and the messages of odd values in them."""

import hypothesis
import jax
import numpy as np
import pytest

import dmljax
from dmljax._directml.struct import c_name
from dmljax._model.output import Targets
from dmljax._model.parse import parse_model
from dmljax._model.program import initial_state, program
from tests.fuzz import expected
from tests.fuzz.descriptors import ODD, Maker
from tests.fuzz.test_descriptors import randoms
from tests.model import models as m
from tests.subjects import DESCRIBED

pytestmark = pytest.mark.slow

# JSON has no NumPy values, and `json` writes no integer of thousands of digits.
VALUES = [v for v in ODD if not isinstance(v, (np.generic, np.ndarray))]
VALUES.remove(10**5000)
VALUES += [10**40, 0.0, -1.5, 1e300, "", "x", "nan", "UINT8", "INT64", "UNKNOWN"]
VALUES += ["WRAP", "deferred", "\x1b[2J\n", [], {}, [1], [[]], {"name": "in"}]


def valid_model(desc):
    """Makes a model of a descriptor. Every tensor has a resource of bytes."""
    resources = {}
    for field, tensor in desc.tensors().items():
        size = tensor.total_tensor_size_in_bytes or tensor.implied_size_in_bytes
        step = field not in desc.outputs  # an output has zeros in its gaps
        values = m.line(-(-size // 8) * 8, 3 * step, 7 * step)
        resources[c_name(field)] = m.data("UINT8", values)
    commands = m.dispatch("d", **{n: n for n in resources}), *map(m.show, resources)
    return m.model(resources, {"d": desc.to_json()}, *commands)


@hypothesis.given(randoms)
def test_results_are_those_of_the_oracles(random):
    desc = Maker(random).desc()
    with jax.enable_x64(True):
        results = dmljax.run_model(valid_model(desc))
    inputs = [results[c_name(n)].view(t.dtype) for n, t in desc.input_tensors().items()]
    wanted = expected.outputs(desc, inputs)
    for name, output in zip(desc.outputs, wanted, strict=True):
        found = results[c_name(name)][: output.nbytes]
        assert found.tobytes() == output.tobytes()


def places(value):
    """Yields every place in a JSON value, as its container and its key."""
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(item, (dict, list)):
            yield from places(item)


@pytest.mark.parametrize("name", DESCRIBED)
def test_odd_values_are_refused_in_words(name, x64):
    """Models differ in their descriptors: a single one is odd in the other places."""
    model = valid_model(DESCRIBED[name].example)
    model["commands"].append(m.save(next(iter(model["resources"])), "r.bin"))
    odd = model if name == "PADDING1" else model["dispatchables"]
    for parent, key in list(places(odd)):
        right = parent[key]
        for parent[key] in VALUES:
            try:
                parsed = parse_model(model, Targets(), 5000)
                jax.eval_shape(program(parsed), initial_state(parsed))
            except dmljax.ModelError as error:
                message = str(error)
                assert message.isprintable()
                assert len(message) < 600
        parent[key] = right
