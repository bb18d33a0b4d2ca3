"""dmljax.numpy beside jax.numpy, by random calls: types, weak types and values."""

import warnings

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

import dmljax.numpy as dnp
from tests.checks import assert_alike
from tests.samples import NUMPY as MODES

pytestmark = pytest.mark.slow

TYPES = "bool int8 uint8 int16 uint16 int32 uint32 float16 bfloat16 float32 complex64"
TYPES += " int64 uint64 float64"
# Numbers that only some types hold. No subnormal one: jax.numpy takes them for 0.
NUMBERS = st.sampled_from(
    [
        *(0, 1, -1, 2, 127, 128, 255, 256, 300, -129, 2**31 - 1, -(2**31)),
        *(0.0, -0.0, 0.5, -1.5, 300.7, 65504.0, 7e4, 1e30, 3e9, -3e9, 1e-5),
        *(float("nan"), float("inf"), -float("inf"), True, False),
    ]
)


@st.composite
def arrays(draw, sizes=(2, 3)):
    """An array of NumPy or JAX, of any type, weak or not."""
    dtype = draw(st.sampled_from(TYPES.split()))
    count = int(np.prod(sizes))
    numbers = draw(st.lists(NUMBERS, min_size=count, max_size=count))
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        array = np.array(numbers, np.float64).astype(dtype).reshape(sizes)
    weak = jnp.full(sizes, draw(NUMBERS))
    return draw(st.sampled_from([array, jax.device_put(array), weak]))


PAIRS = st.tuples(NUMBERS, NUMBERS)
CONSTANTS = NUMBERS | PAIRS | st.tuples(PAIRS, PAIRS) | arrays(())
CHOSEN = {"size": st.integers(1, 6), "fill_value": NUMBERS | arrays(())}
FILLS = [None, -1, 9, np.uint8(7), np.int8(-1), np.uint32(9), np.int16(7), True]
FOUND = {"size": st.integers(0, 6), "fill_value": st.sampled_from(FILLS)}
TRIANGLE = {"k": st.integers(-3, 3)}
# The arguments of each function, besides one array of the usual sizes.
ARGUMENTS = {
    "pad": {
        "pad_width": st.sampled_from([0, 1, (1, 2), ((1, 0), (2, 4))]),
        "mode": st.sampled_from(MODES),
    },
    **dict.fromkeys(["tril", "triu"], TRIANGLE),
    "one_hot": {
        # jax.nn.one_hot gives two ones if the type of the indices can't count the
        # classes (test_numpy.py): int8 counts to 127, and bfloat16 to 256.
        "num_classes": st.sampled_from([0, 1, 3, 100]),
        "dtype": st.sampled_from([None, bool, float, int, "bfloat16"]),
        "axis": st.sampled_from([0, 1, -1]),
    },
    **dict.fromkeys(["extract", "compress"], CHOSEN),
    **dict.fromkeys(["argwhere", "flatnonzero", "nonzero", "where"], FOUND),
}
SIZES = {"one_hot": [(4,)], "extract": [(6,), (2, 3)], "compress": [(6,), (2, 3)]}


@st.composite
def calls(draw):
    """The name of a function, its arrays, and its other arguments."""
    name = draw(st.sampled_from(dnp.__all__))
    given = [draw(arrays(sizes)) for sizes in SIZES.get(name, [(2, 3)])]
    options = draw(st.fixed_dictionaries(ARGUMENTS[name]))
    if options.get("mode") == "constant":
        options["constant_values"] = draw(CONSTANTS)
    return name, given, options


def outcome(library, call, jitted):
    """The results, or the error."""
    name, given, options = call
    function = getattr(library, name, jax.nn.one_hot)
    run = jax.jit if jitted else lambda call: call
    try:
        with warnings.catch_warnings(action="ignore"):
            return run(lambda: function(*given, **options))()
    except (TypeError, ValueError, OverflowError) as error:
        return error


@pytest.mark.usefixtures("standard_promotion")
@hypothesis.given(calls(), st.booleans(), st.booleans())
def test_random_calls(call, jitted, x64):
    with jax.enable_x64(x64):
        expected, found = (outcome(library, call, jitted) for library in (jnp, dnp))
    # dmljax.numpy takes some numbers that jax.numpy refuses.
    hypothesis.assume(not isinstance(expected, Exception))
    if isinstance(found, Exception):
        raise found
    assert_alike(found, expected)
