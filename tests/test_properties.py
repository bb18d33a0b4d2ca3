"""Properties that hold for all shapes, types and attributes, on drawn examples.

Every example is compiled, so that shapes are drawn from few.
"""

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st

import dmljax
from dmljax import PaddingMode
from tests import oracles, samples
from tests.subjects import SUBJECTS

examples = hypothesis.settings(max_examples=25)

EXAMPLES = {name: subject.examples for name, subject in SUBJECTS.items()}
each_operator = pytest.mark.parametrize("name", EXAMPLES)
# The adjoint of PADDING is compared with an oracle below, which finds more.
BY_INNER_PRODUCT = [
    name for name in EXAMPLES if SUBJECTS[name].samples[0].linear and name != "padding"
]


def with_cotangents(example, arrays, seed):
    """The output, a cotangent for it, and those of the operands, from one program."""

    @jax.jit
    def program(arrays, cotangent):
        output, pull = jax.vjp(example.run, *arrays)
        return output, pull(cotangent)

    shape = jax.eval_shape(example.run, *arrays).shape
    cotangent = samples.numbers(shape, "float32", seed + 3)
    output, bars = program(arrays, cotangent)
    return output, cotangent, bars


# PROPERTIES


@each_operator
@examples
@hypothesis.given(st.data())
def test_same_bits_as_the_oracle(name, data):
    example = data.draw(EXAMPLES[name])
    dtype = data.draw(st.sampled_from(SUBJECTS[name].data_types))
    seed = data.draw(st.integers(0, 9))
    arrays = example.arrays(dtype, samples.bits, seed)
    with jax.enable_x64(dtype in samples.WIDE):
        outputs = jax.tree.leaves(example.run(*map(jax.device_put, arrays)))
    expected = jax.tree.leaves(example.expected(*arrays))
    for output, other in zip(outputs, expected, strict=True):
        assert (output.shape, output.dtype) == (other.shape, other.dtype)
        assert np.asarray(output).tobytes() == other.tobytes()


@pytest.mark.parametrize("name", BY_INNER_PRODUCT)
@examples
@hypothesis.given(st.data())
def test_adjoint(name, data):
    """<A x, y> = <x, A' y>, where every sum is exact."""
    example = data.draw(EXAMPLES[name])
    seed = data.draw(st.integers(0, 9))
    arrays = example.arrays("float32", seed=seed)
    output, cotangent, bars = with_cotangents(example, arrays, seed)
    inner = sum(np.vdot(arrays[i], bars[i]) for i in example.open_operands)
    assert np.vdot(output, cotangent) == inner


@examples
@hypothesis.given(EXAMPLES["padding"], st.integers(0, 9))
def test_padding_adjoint(example, seed):
    """Every fold of the padding comes back to the element that it repeats."""
    arrays = example.arrays("float32", seed=seed)
    _, cotangent, bars = with_cotangents(example, arrays, seed)
    mode, start, end = (example.attributes[key] for key in ("mode", "start", "end"))
    expected = oracles.padding_adjoint(cotangent, start, end, mode=mode.name)
    for bar, other in zip(bars, expected, strict=False):
        np.testing.assert_array_equal(bar, other)


@pytest.mark.parametrize("mode", PaddingMode, ids=lambda mode: mode.name)
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_padding_adjoint_of_many_folds(mode, size):
    """Any amount at either end, so that a fold may begin and end anywhere."""
    operands = np.zeros(size, np.float32), np.float32(0)
    pairs = (0, 7), (9, 0), (4 * size, 5 * size), (4 * size + 1, 11)
    cotangents = [samples.numbers((sum(ends) + size,), "float32", 1) for ends in pairs]

    def pulled(ends, cotangent):
        def pad(x, value):
            start, end = ends
            return dmljax.padding(x, (start,), (end,), mode=mode, value=value)

        return jax.linear_transpose(pad, *operands)(cotangent)

    program = jax.jit(lambda cotangents: list(map(pulled, pairs, cotangents)))
    found = zip(pairs, cotangents, program(cotangents), strict=True)
    for (start, end), cotangent, bars in found:
        expected = oracles.padding_adjoint(cotangent, (start,), (end,), mode=mode.name)
        for bar, other in zip(bars, expected, strict=True):
            np.testing.assert_array_equal(bar, other)


@examples
@hypothesis.given(
    st.sampled_from(PaddingMode), st.sampled_from([(3,), (2, 3)]), st.data()
)
def test_padding_axis_by_axis(mode, shape, data):
    """The axes are independent: padding them one after the other is the same."""
    pads = st.tuples(*[st.integers(0, 9)] * len(shape))
    start, end = data.draw(pads), data.draw(pads)
    x = samples.numbers(shape, "int32", 0)
    expected = dmljax.padding(x, start, end, mode=mode)
    for axis in range(len(shape)):
        one = [
            tuple(pad if i == axis else 0 for i, pad in enumerate(side))
            for side in (start, end)
        ]
        x = dmljax.padding(x, *one, mode=mode)
    np.testing.assert_array_equal(x, expected)


@examples
@hypothesis.given(EXAMPLES["diagonal_matrix1"])
def test_diagonal_spans_complement_each_other(example):
    """Swapped bounds fill what the bounds do not; equal bounds fill nothing."""
    begin, end = (example.attributes[key] for key in ("fill_begin", "fill_end"))
    shape = example.attributes.get("shape", example.operands[-1])
    zeros = np.zeros(shape, bool)
    span = {"value": True, "fill_begin": begin, "fill_end": end}
    swapped = {"value": True, "fill_begin": end, "fill_end": begin}
    first = dmljax.diagonal_matrix1(zeros, **span)
    second = dmljax.diagonal_matrix1(zeros, **swapped)
    assert bool(np.all(np.asarray(first) ^ second)) == (begin != end)
    assert begin != end or not np.asarray(first).any()


@examples
@hypothesis.given(EXAMPLES["nonzero_coordinates"], st.integers(0, 9))
def test_nonzero_coordinates_rebuild_the_input(example, seed):
    (x,) = example.arrays("int8", samples.bits, seed)
    count, coordinates = dmljax.nonzero_coordinates(x)
    rebuilt = np.zeros_like(x)
    for row in np.asarray(coordinates)[: int(count)]:
        place = tuple(row[: x.ndim])
        rebuilt[place] = x[place]
    np.testing.assert_array_equal(rebuilt, x)
