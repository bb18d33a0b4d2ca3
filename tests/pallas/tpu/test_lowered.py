"""The kernels for TPUs, lowered on any machine and not run; and what is refused.

test_compiled.py goes on to machine code.
"""

import functools

import jax
import numpy as np
import pytest

import dmljax
from dmljax import DescriptorError, PaddingMode
from tests.checks import needs_x64
from tests.pallas.tpu.test_padding import TYPES
from tests.subjects import SUBJECTS

WITH_KERNEL = [name for name, one in SUBJECTS.items() if "tpu" in one.primitive.kernels]
# Their size is that of another type that is lowered.
ALIKE = ("float16", "float8_e5m2", "uint32", "uint16", "uint8", "uint4")
each_operator = pytest.mark.parametrize("name", WITH_KERNEL)


def cuts_rows(sample):
    """Whether it asks for another number of rows, which the kernel for TPUs refuses."""
    return sample.operator == "nonzero_coordinates" and "size" in sample.attributes


def uses(name, *, edges=True):
    """What the kernel for TPUs runs of the operator's samples and edges."""
    subject = SUBJECTS[name]
    found = subject.kernel_samples + (subject.kernel_edges if edges else ())
    return [sample for sample in found if not cuts_rows(sample)]


def has_work(sample):
    """Whether there is something to read and to write, and not the same."""
    arrays = sample.arrays()
    outputs = jax.tree.leaves(sample.expected(*arrays))
    same = sample.operator == "padding" and outputs[0].shape == arrays[0].shape
    return not same and all(x.size for x in (*outputs, *arrays))


def launches(function, *arrays):
    """How many kernels a program for TPUs launches, whatever machine this is."""
    traced = jax.jit(lambda *xs: function(*xs)).trace(*arrays)
    text = traced.lower(lowering_platforms=("tpu",)).as_text()
    return text.count("@tpu_custom_call(")


@pytest.mark.parametrize(
    "dtype", [pytest.param(d, marks=[pytest.mark.slow] * (d in ALIKE)) for d in TYPES]
)
@each_operator
def test_every_type(name, dtype):
    sample, *_ = uses(name, edges=False)
    assert launches(sample.run, *sample.arrays(dtype)) == 1


@each_operator
def test_samples_and_edges(name):
    for sample in uses(name):
        with jax.enable_x64(needs_x64(sample)):
            assert launches(sample.run, *sample.arrays()) == has_work(sample)


# WHAT IS REFUSED


def test_another_number_of_rows():
    refused = [s for s in SUBJECTS["nonzero_coordinates"].kernel_edges if cuts_rows(s)]
    for sample in filter(has_work, refused):
        with pytest.raises(DescriptorError, match=r"rows, one for each element.*'xla'"):
            launches(sample.run, *sample.arrays())


def test_more_elements_than_31_bits_count():
    x = jax.ShapeDtypeStruct((2**31,), np.uint8)
    find = functools.partial(dmljax.nonzero_coordinates, implementation="pallas")
    with pytest.raises(DescriptorError, match=r"counts 2147483648 elements.*'xla'"):
        launches(find, x)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("dtype", ["complex64", "float64", "int64"])
def test_types_that_mosaic_has_not(dtype):
    sample = SUBJECTS["padding"].kernel_samples[0]
    expected = rf"^PADDING: .*no {dtype.upper()}.*None or 'xla'"
    with pytest.raises(DescriptorError, match=expected):
        launches(sample.run, *sample.arrays(dtype))


def test_a_padded_axis_that_memory_has_no_room_for():
    def pad(x):
        mode = PaddingMode.WRAP
        return dmljax.padding(x, (0, 1), (0, 0), mode=mode, implementation="pallas")

    x = jax.ShapeDtypeStruct((2, 2**20), np.float32)
    with pytest.raises(DescriptorError, match=r"^PADDING: .*\{2,1048577\}.*'xla'"):
        launches(pad, x)
