"""Models that run: their results, as one program, and the device."""

import itertools
import logging
import re

import jax
import numpy as np
import pytest

import dmljax
from dmljax._model.parse import parse_model
from dmljax._model.run import execute, find_device, initial_state, program
from tests.model import models as m
from tests.project.texts import ROOT

# The models of the documentation

MODELS = ROOT / "docs/models"
PAGES = [p for p in MODELS.glob("*.json") if "learn.microsoft.com" in p.read_text()]
# The comment before a command `print`: the output of the page, row by row.
OUTPUT = re.compile(r"^ *// (\w+):\n((?: *//   [\d, ]+\n)+)", re.MULTILINE)


def test_all_examples_of_the_pages_are_there():
    assert len(PAGES) == 15


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


# Results of commands


def traced(source):
    """The program of a model for its initial values."""
    parsed = parse_model(source)
    return jax.jit(program(parsed)).trace(initial_state(parsed))


def test_a_resource_is_shown_as_it_is_at_the_command(capsys):
    bindings = {"InputTensor": "input", "OutputTensor": "output"}
    commands = [
        m.show("output"),
        m.dispatch("pad", **bindings),
        {"type": "PRINT", "resource": "output"},
        m.save("output", "first.bin"),
        m.dispatch("wrap", **bindings),
        m.save("output", "second.bin"),
        m.show("output"),
    ]
    source = m.edited(m.padding_model(), "commands", commands)
    source["dispatchables"]["wrap"] = m.pad(mode="WRAP")
    dmljax.run_model(source)
    assert capsys.readouterr().out.splitlines() == [
        "Resource 'output': 0, 0, 0, 0, 0",
        "Resource 'output': 1, 1, 2, 3, 3",
        "Resource 'output': 3, 1, 2, 3, 1",
    ]
    assert np.fromfile("first.bin", "<f4").tolist() == [1, 1, 2, 3, 3]
    assert np.fromfile("second.bin", "<f4").tolist() == [3, 1, 2, 3, 1]


OWNED = ["DML_TENSOR_FLAG_OWNED_BY_DML"]


@pytest.mark.parametrize(
    ("flags", "expected"), [("NONE", [1, 1, 1, 2, 2]), (OWNED, [1, 1, 2, 3, 3])]
)
def test_an_owned_input_keeps_its_initial_values(flags, expected):
    """Any other input is read at the command, before it is overwritten."""
    both = {"InputTensor": "output", "OutputTensor": "output"}
    source = m.edited(m.padding_model(), "pad.bindings", both)
    for tensor in both:
        source = m.edited(source, f"pad.desc.{tensor}.Flags", flags)
    source["resources"]["output"] = m.data("FLOAT32", [1, 2, 3, 9, 9])
    source["commands"] = [m.dispatch("pad")] * 2
    assert m.output_of(source) == expected


def test_elements_and_their_bytes_are_returned_by_one_program():
    """Without a barrier between them, XLA's compiler for GPUs ends the process."""
    source = m.edited(m.padding_model(), "resources.raw", m.zeros("UINT8", 20))
    source["commands"] = [
        m.dispatch("pad", InputTensor="input", OutputTensor=name)
        for name in ("output", "raw")
    ]
    results = dmljax.run_model(source)
    assert results["output"].tolist() == [1, 1, 2, 3, 3]
    assert results["raw"].tobytes() == results["output"].tobytes()
    lines = traced(source).lower().as_text().splitlines()
    converted = [n for n, line in enumerate(lines) if ".bitcast_convert" in line]
    assert len(converted) == 2  # one reads the bytes as elements, the other writes them
    assert all(".optimization_barrier" in lines[n - 1] for n in converted)


@pytest.mark.parametrize("setting", [jax.disable_jit, jax.debug_nans, jax.debug_infs])
def test_settings_for_debugging_do_not_change_a_model(setting):
    with setting(True):
        output = m.padded("input.initialValues", ["nan", 2, "inf"])
    np.testing.assert_array_equal(output, [np.nan, np.nan, 2, np.inf, np.inf])


# The size of the program


def test_many_resources_and_commands_take_no_time_to_compile(capsys):
    source = m.padding_model()
    source["resources"] |= {f"r{n}": m.data("UINT8", [n % 256]) for n in range(2000)}
    source["commands"] += [m.show("r7"), m.show("output")] * 500
    assert len(traced(source).lower().as_text()) < 10_000
    assert dmljax.run_model(source)["r300"].tolist() == [300 % 256]
    lines = capsys.readouterr().out.splitlines()
    output = "Resource 'output': 1, 1, 2, 3, 3"
    assert lines == [output, *["Resource 'r7': 7", output] * 500]


def test_a_dispatch_takes_only_its_part_of_a_buffer():
    """Otherwise XLA's compiler for CPUs overflows its stack after a few hundred."""
    places = [{"name": "all", "elementOffset": 3 * n} for n in range(21)]
    source = m.model(
        {"all": m.data("INT32", [1, 2, 3], sizeInBytes=12 * len(places))},
        {"copy": m.pad((3,), (0,), (0,), data_type="INT32")},
    )
    for one, other in itertools.pairwise(places):
        copy = m.dispatch("copy", InputTensor=one, OutputTensor=other)
        source["commands"].append(copy)
    assert dmljax.run_model(source)["all"].tolist() == [1, 2, 3] * len(places)
    jaxpr = traced(source).jaxpr
    assert len(jaxpr.out_avals) == 1  # the buffer at the end
    sizes = [out.aval.size for step in jaxpr.eqns for out in step.outvars]
    # Each dispatch joins its output with the elements before and behind it.
    assert sum(size > 3 for size in sizes) <= 3 * len(places)


# The machine


@pytest.mark.parametrize("device", ["cpu", "device"])
def test_the_device(device):
    chosen = jax.devices("cpu")[-1] if device == "device" else device
    results = execute(parse_model(m.padding_model()), find_device(chosen))
    found = jax.devices("cpu")[0] if device == "cpu" else chosen
    assert results.resources["output"].devices() == {found}
    assert dmljax.run_model(m.padding_model(), device=chosen)["output"][0] == 1


def test_a_device_that_is_not_there():
    message = m.refusal(m.padding_model(), device="npu")
    assert message.startswith("device 'npu' is not present: ")
    assert "'cpu'" in message  # JAX lists the platforms of this machine
    with pytest.raises(TypeError, match=r"device is 0; it must be a jax\.Device,"):
        dmljax.run_model(m.padding_model(), device=0)


@pytest.mark.parametrize("error", [RuntimeError, AssertionError])
def test_jax_without_a_device(error, monkeypatch):
    def refuse():
        raise error("no\nplatform")

    monkeypatch.setattr(jax, "local_devices", refuse)
    message = m.refusal(m.padding_model())
    assert message.startswith("JAX finds no device")
    assert message.endswith(": no platform")


def test_an_error_of_the_device(monkeypatch):
    def refuse(*arguments):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of\nmemory")

    monkeypatch.setattr(jax, "device_put", refuse)
    assert m.refusal(m.padding_model()) == (
        "model: the device could not run it: RESOURCE_EXHAUSTED: out of memory"
    )
