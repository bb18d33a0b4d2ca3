"""Helpers for several files of tests: comparisons, errors, lowered programs."""

import os
import re
import subprocess
import sys

import jax
import numpy as np
import pytest

from dmljax import DescriptorError, PaddingMode
from dmljax._jax import code_per_thread
from tests import samples
from tests.project.texts import ROOT

# Tests that lower a kernel for NVIDIA GPUs. tests/test_nonzero_kernels.py names the
# versions of JAX that can.
needs_kernels = pytest.mark.skipif(
    code_per_thread() is None,
    reason="this JAX is older than those that have run our kernels",
)
needs_devices = pytest.mark.skipif(
    jax.device_count() < 8, reason="there are few devices"
)
each_mode = pytest.mark.parametrize("mode", PaddingMode, ids=lambda mode: mode.name)


def slow(*case):
    """The arguments of a case for the slow tests."""
    return pytest.param(*case, marks=pytest.mark.slow)


def python(*arguments, under=(), **environment):
    """Runs Python in a new process, under a command if any, and captures its output."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [*under, sys.executable, *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def struct(dtype, *sizes):
    """Describes an array."""
    return jax.ShapeDtypeStruct(sizes, dtype)


def assert_same(actual, expected, name=""):
    """Same type (not weak), same sizes and same bits, output by output."""
    wanted = jax.tree.leaves(expected)
    for one, other in zip(jax.tree.leaves(actual), wanted, strict=True):
        assert isinstance(one, jax.Array)
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert not jax.typeof(one).weak_type
        raw = (np.frombuffer(np.asarray(x).tobytes(), np.uint8) for x in (one, other))
        np.testing.assert_array_equal(*raw, name)


def assert_alike(ours, theirs, given=""):
    """Compares values, types, weak types, and sizes."""
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), given
        assert one.weak_type == other.weak_type, given
        # For NumPy, a NaN of bfloat16 is no NaN.
        kind = np.float32 if one.dtype == "bfloat16" else one.dtype
        values = [np.asarray(x, kind) for x in (one, other)]
        np.testing.assert_array_equal(*values, str(given))


def assert_refused(operator, text, call, *arguments, error=DescriptorError, **options):
    """Asserts an error: the operator, then the pieces of `text` between "..."."""
    with pytest.raises(error) as raised:
        call(*arguments, **options)
    message = str(raised.value)
    assert type(raised.value) is error
    assert message.startswith(f"{operator}: ")
    assert message.endswith(".")
    assert message.isprintable()
    assert len(message) < 400
    pieces = map(re.escape, text.split("..."))
    assert re.search(".*".join(pieces), message), message
    return message


def assert_wrong(wrong):
    """The message is the same in a program, and shows no dimension of a batch."""
    operator, text, call, arrays, error = wrong
    message = assert_refused(operator, text, call, *arrays, error=error)
    jitted = jax.jit(call)
    mapped = jax.vmap(lambda _, *arrays: call(*arrays))
    batch = [np.arange(2, dtype=np.int32)] + [np.stack([x, x]) for x in arrays]
    for run, given in ((jitted, arrays), (mapped, batch), (jax.jit(mapped), batch)):
        with pytest.raises(error) as raised:
            run(*given)
        assert str(raised.value) == message


def lowered(function, *arrays, platform="cuda"):
    """The program's text for a platform, whatever machine this is."""
    traced = jax.jit(function).trace(*arrays)
    text: str = traced.lower(lowering_platforms=(platform,)).as_text()
    return text


def launches(function, *arrays, platform="cuda"):
    """How many kernels of Pallas a program launches."""
    text = lowered(function, *arrays, platform=platform)
    return text.count({"cuda": "@mosaic_gpu_v2(", "tpu": "@tpu_custom_call("}[platform])


class Parameter:
    """An object like flax's nnx.Param: it holds an array, and is none itself."""

    def __init__(self, value):
        self.value = value
        self.shape = value.shape
        self.dtype = value.dtype

    def __jax_array__(self):
        return self.value


def check(sample, dtype="float32", fill=samples.bits, seed=0):
    """One sample against its oracle."""
    arrays = sample.arrays(dtype, fill, seed)
    assert_same(sample.run(*map(jax.device_put, arrays)), sample.expected(*arrays))


def each(uses):
    """A test for each sample; a sample by kernel is a slow test."""
    cases = [slow(sample) if sample.implementation else sample for sample in uses]
    return pytest.mark.parametrize("sample", cases, ids=str)


def needs_x64(sample):
    """Whether one of the sample's arrays has a 64-bit type."""
    return any(getattr(x, "dtype", None) in samples.WIDE for x in sample.operands)


def reference_node(operator):
    """A node of ONNX as a function, by ONNX's reference implementation."""
    from onnx import helper, reference

    def run(*inputs, **attributes):
        arrays = {}
        for i, x in enumerate(inputs):
            # ONNX's floats are float32, and its counts are int64.
            arrays[f"input{i}"] = np.asarray(x, "f4" if isinstance(x, float) else None)
        node = helper.make_node(operator, list(arrays), ["output"], **attributes)
        return reference.ReferenceEvaluator(node).run(None, arrays)[0]

    return run
