"""The program of a model: its results, its size, and errors of the device."""

import jax
import numpy as np
import pytest

import dmljax
from dmljax._model.output import Targets
from dmljax._model.parse import parse_model
from dmljax._model.program import initial_state, program
from tests.model import models as m


def traced(source):
    """The program of a model for its initial values."""
    parsed = parse_model(source, Targets(), 2**20)
    return jax.jit(program(parsed)).trace(initial_state(parsed))


def test_a_resource_is_shown_as_it_is_at_the_command(capsys):
    bindings = {"InputTensor": "input", "OutputTensor": "output"}
    commands = [
        m.show("output"),
        m.dispatch("pad", **bindings),
        {"type": "PRINT", "resource": "output"},
        m.save("output", "first.bin"),
        m.dispatch("wrap", **bindings),
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


def test_a_resource_that_is_bound_as_two_types():
    """Fault: the type of its last tensor decides how the program holds it."""
    source = m.edited(m.padding_model(), "dispatchables.bits", m.pad(data_type="INT32"))
    copy = m.dispatch("bits", InputTensor="input", OutputTensor="output")
    source["commands"].insert(0, copy)
    assert m.output_of(source) == [1, 1, 2, 3, 3]


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
    for name in "output", "raw":
        dispatch = m.dispatch("pad", InputTensor="input", OutputTensor=name)
        source["commands"].append(dispatch)
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


def test_many_resources_and_commands_take_no_time_to_compile():
    source = m.padding_model()
    source["resources"] |= {f"r{n}": m.zeros("UINT8", 1) for n in range(2000)}
    source["commands"] += [m.show("r7"), m.show("output")] * 500
    assert len(traced(source).lower().as_text()) < 10_000


def test_a_dispatch_takes_only_its_part_of_a_buffer():
    """Otherwise XLA's compiler for CPUs overflows its stack after a few hundred."""
    source = m.edited(m.padding_model(), "output.initialValues.valueCount", 1000)
    source["commands"] *= 9
    equations = traced(source).jaxpr.eqns
    sizes = [out.aval.size for step in equations for out in step.outvars]
    # Each dispatch joins its output with the elements behind it.
    assert sum(size > 5 for size in sizes) <= 2 * 9
