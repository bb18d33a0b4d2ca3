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
PAGES = [p for p in MODELS.glob("*.json") if "learn.microsoft.com" in p.read_text()]
# The comment before a command `print`: the output of the page, row by row.
OUTPUT = re.compile(r"^ *// (\w+):\n((?: *//   [\d, ]+\n)+)", re.MULTILINE)


def test_all_examples_of_the_pages_are_there():
    assert len(PAGES) >= 15


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_model_prints_the_output_on_its_page(path, capsys):
    dmljax.run_model(path)
    expected = [
        f"Resource '{name}': {', '.join(re.findall(r'[0-9]+', rows))}"
        for name, rows in OUTPUT.findall(path.read_text())
    ]
    assert capsys.readouterr().out.splitlines() == expected


def test_a_chain_of_four_operators_is_one_program(folder, capsys, caplog):
    (folder / "docs/models/out").mkdir(parents=True)
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        results = dmljax.run_model(MODELS / "chain.json")
    finished = [m for m in caplog.messages if m.startswith("Finished XLA compilation")]
    assert len(finished) == 1
    assert "dmljax_model" in finished[0]
    matrix = np.arange(1, 10, dtype=np.float32).reshape(3, 3)
    triangle = np.triu(np.pad(matrix, 1, mode="reflect"))
    np.testing.assert_array_equal(results["triangle"], triangle.ravel())
    count = np.count_nonzero(triangle)
    assert capsys.readouterr().out.splitlines()[1] == f"Resource 'count': {count}"
    coordinates = np.load("docs/models/out/coordinates.npy")
    np.testing.assert_array_equal(coordinates[:count], np.argwhere(triangle))


# The machine


def test_the_device(monkeypatch):
    """The program runs where its initial values are."""
    first, *_, last = jax.devices("cpu")
    put = mock.Mock(wraps=jax.device_put)
    monkeypatch.setattr(jax, "device_put", put)
    for device, chosen in (("cpu", first), (last, last)):
        dmljax.run_model(m.padding_model(), device=device)
        assert put.call_args.args[1] == chosen


def test_a_device_that_is_not_there():
    message = m.refusal(m.padding_model(), device="npu")
    assert message.startswith("device 'npu' is not present: ")
    assert "'cpu'" in message  # JAX lists the platforms of this machine
    for device in 0, "":
        text = rf"device is {device!r}; it must be a jax\.Device,"
        with pytest.raises(TypeError, match=text):
            dmljax.run_model("absent.json", device=device)  # the device comes first


@pytest.mark.parametrize("error", [RuntimeError, AssertionError])
def test_jax_without_a_device(error, monkeypatch):
    def refuse():
        raise error("no\nplatform")

    monkeypatch.setattr(jax, "local_devices", refuse)
    message = m.refusal(m.padding_model())
    assert message.startswith("JAX finds no device")
    assert message.endswith(": no platform.")
