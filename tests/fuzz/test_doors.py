"""dmljax.numpy beside jax.numpy, by random arrays: types, weak types and values."""

import warnings

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

import dmljax.numpy as dnp
from tests.checks import assert_alike
from tests.doors import DOORS

pytestmark = pytest.mark.slow

TYPES = "bool int8 uint8 int16 uint16 int32 uint32 float16 bfloat16 float32 complex64"
TYPES += " int64 uint64 float64"
# Numbers that only some types hold. No subnormal one: jax.numpy takes them for 0.
NUMBERS = st.sampled_from(
    [
        *(0, 1, -1, 127, 256, 300, -129, 2**31 - 1, -(2**31)),
        *(-0.0, 0.5, -1.5, 300.7, 65504.0, 1e30, -3e9, 1e-5),
        *(float("nan"), float("inf"), -float("inf"), True, False),
    ]
)
FILLS = [-1, 9, np.uint8(7), np.int8(-1), np.uint32(9), np.int16(7), True]
RESULTS = [None, bool, float, int, "bfloat16"]
CALLS = [call for call in DOORS if call[0].__module__ == "dmljax.numpy"]


@st.composite
def arrays(draw, sizes):
    """An array of NumPy or JAX, of any type, weak or not, or a number."""
    dtype = draw(st.sampled_from(TYPES.split()))
    count = int(np.prod(sizes))
    numbers = draw(st.lists(NUMBERS, min_size=count, max_size=count))
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        array = np.array(numbers, np.float64).astype(dtype).reshape(sizes)
    weak = numbers[0] if not sizes else jnp.full(sizes, numbers[0])
    return draw(st.sampled_from([array, jax.device_put(array), weak]))


@st.composite
def calls(draw):
    """A call of the table with other arrays and other numbers."""
    function, *given = draw(st.sampled_from(CALLS))
    leaves, tree = jax.tree.flatten(given)
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, np.integer):
            leaves[i] = draw(st.sampled_from(FILLS))
        elif isinstance(leaf, (np.ndarray, np.floating)):
            leaves[i] = draw(arrays(leaf.shape))
    arguments, options = jax.tree.unflatten(tree, leaves)
    if function is dnp.one_hot:
        options["dtype"] = draw(st.sampled_from(RESULTS))
    return function, arguments, options


def outcome(function, call, jitted):
    """The results, or the error."""
    _, arguments, options = call
    run = jax.jit if jitted else lambda call: call
    try:
        with warnings.catch_warnings(action="ignore"):
            return run(lambda: function(*arguments, **options))()
    except (TypeError, ValueError, OverflowError) as error:
        return error


@pytest.mark.usefixtures("standard_promotion")
@hypothesis.given(calls(), st.booleans(), st.booleans())
def test_random_calls(call, jitted, x64):
    ours, *_ = call
    theirs = getattr(jnp, ours.__name__, jax.nn.one_hot)
    with jax.enable_x64(x64):
        expected, found = (outcome(each, call, jitted) for each in (theirs, ours))
    # dmljax.numpy takes some numbers that jax.numpy refuses.
    hypothesis.assume(not isinstance(expected, Exception))
    if isinstance(found, Exception):
        raise found
    assert_alike(found, expected)
