"""Models of the documentation, and the device."""

import logging
import re
from unittest import mock

import jax
import numpy as np
import pytest

import dmljax
from tests.model import models as m
from tests.project.texts import ROOT

# The models of the documentation

MODELS = ROOT / "docs/models"
# The chain is below.
PATHS = [path for path in MODELS.glob("*.json") if path.stem != "chain"]
# The comment before a command `print`: the output of the page, row by row.
OUTPUT = re.compile(r"^ *// (\w+):\n((?: *//   [\d, ]+\n)+)", re.MULTILINE)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_model_prints_the_output_on_its_page(path, folder, capsys):
    pytest.importorskip("PIL")
    (folder / "docs/models/out").mkdir(parents=True)
    dmljax.run_model(path)
    expected = [
        f"Resource '{name}': {', '.join(re.findall(r'[0-9]+', rows))}"
        for name, rows in OUTPUT.findall(path.read_text())
    ]
    assert capsys.readouterr().out.splitlines() == expected


def test_a_chain_of_four_operators_is_one_program(folder, caplog):
    (folder / "docs/models/out").mkdir(parents=True)
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        results = dmljax.run_model(MODELS / "chain.json")
    finished = [m for m in caplog.messages if m.startswith("Finished XLA compilation")]
    assert len(finished) == 1
    assert "dmljax_model" in finished[0]
    matrix = np.arange(1, 10, dtype=np.float32).reshape(3, 3)
    triangle = np.triu(np.pad(matrix, 1, mode="reflect"))
    coordinates = np.load("docs/models/out/coordinates.npy")
    found = coordinates[: results["count"].item()]
    np.testing.assert_array_equal(found, np.argwhere(triangle))


# The machine


def test_a_device_that_is_not_there():
    message = m.refusal(m.padding_model(), device="npu")
    assert message.startswith("device 'npu' is not present: ")
    assert "'cpu'" in message  # JAX lists the platforms of this machine
    for device in 0, "":
        text = rf"device is {device!r}; it must be a jax\.Device,"
        with pytest.raises(TypeError, match=text):
            dmljax.run_model("absent.json", device=device)  # the device comes first


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        (
            "device_put",
            jax.errors.JaxRuntimeError,
            "model: the device could not run it",
        ),
        ("device_put", MemoryError, "model: the device could not run it: "),
        ("local_devices", RuntimeError, "JAX finds no device"),
        ("local_devices", AssertionError, "JAX finds no device"),
    ],
)
def test_an_error_of_jax(name, error, message, monkeypatch):
    monkeypatch.setattr(jax, name, mock.Mock(side_effect=error("out of\nmemory.")))
    refused = m.refusal(m.padding_model())
    assert refused.startswith(message)
    assert refused.endswith(": out of memory.")
