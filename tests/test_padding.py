"""PADDING: modes by feature level and by number, and the values of both descriptors.

Its wrong calls are in tests/subjects/padding.py, its forms in test_padding_forms.py.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from dmljax import (
    DataType,
    FeatureLevel,
    Padding1Desc,
    PaddingDesc,
    PaddingMode,
    create_operator,
    padding,
)
from dmljax._padding import _padding
from tests.checks import assert_refused, assert_same
from tests.samples import tensor
from tests.subjects.padding import pad

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_the_level_of_a_mode():
    """tests/fuzz/test_descriptors.py has the levels of all modes."""
    x = tensor("FLOAT32", 1, 1, 2, 3)
    for mode, first, before in (("WRAP", "6_4", "6_3"), ("SYMMETRIC", "3_0", "2_1")):
        desc = PaddingDesc(x, x, PaddingMode[mode], 0.0, 4, [0] * 4, [0] * 4)
        desc.check(FeatureLevel[f"V{first}"])
        text = f"{mode} exists from feature level {first} on, while...is {before}"
        assert_refused("PADDING", text, desc.check, FeatureLevel[f"V{before}"])


def test_a_mode_by_its_number_is_no_other_program():
    before = _padding._cache_size()
    wanted = np.pad(X, ((3, 1), (1, 1)), mode="wrap")
    numbers = 4, np.int32(4), np.array(4), jnp.int32(4)
    for mode in (PaddingMode.WRAP, "Wrap", *numbers):
        assert_same(padding(X, (3, 1), (1, 1), mode=mode), wanted)
    assert _padding._cache_size() == before + 1
    assert PaddingMode("Reflect") is PaddingMode.REFLECTION


def test_wrong_modes():
    names = "it must be one of constant, edge, reflection, symmetric, wrap, reflect."
    text = f"mode (PaddingMode) is 7; {names}"
    assert_refused("PADDING", text, pad, mode=np.array(7))
    meanings = dict.fromkeys(("mean", "", -1, True, 4.5, None, DataType.FLOAT32))
    meanings |= {"MIRROR": "reflect", "grid-mirror": "symmetric", "zeros": "constant"}
    meanings |= {"circular": "wrap", "nearest": "edge"}
    for mode, meant in meanings.items():
        text = f"is {mode!r}; {names}" + (f" Write mode={meant!r}." if meant else "")
        assert assert_refused("PADDING", text, pad, mode=mode).endswith(text)
    text = "mode (PaddingMode) is traced;...name it in jax.jit's static_argnums"
    assert_refused("PADDING", text, jax.jit(pad), mode=1, error=TypeError)


def test_the_transpose_of_a_value_has_its_type():
    """Fault: `_unbroadcast` sums int8 in int32, where no dtype is given."""
    call = functools.partial(padding, X.astype(np.int8), (1, 0), (0, 2))
    transpose = jax.linear_transpose(lambda v: call(value=v), np.int8(1))
    assert_same(transpose(jnp.ones((4, 6), np.int8)), (np.int8(12),))


def test_values_of_descriptors(x64):
    """PADDING has a FLOAT value. PADDING1 has a typed value, and keeps its bits.

    A negative zero keeps its sign.
    """
    for name, value, rounded in (
        ("FLOAT64", 0.1, float(np.float32(0.1))),
        ("FLOAT64", 1e300, np.inf),
        ("INT64", 2**53 + 1, 2**53),
        ("UINT64", 2**64 - 1, 2**64 - 1),
        ("FLOAT32", -0.0, -0.0),
    ):
        both = tensor(name, 2), tensor(name, 3), PaddingMode.CONSTANT
        old = PaddingDesc(*both, value, 1, (0,), (1,))
        typed = Padding1Desc(*both, DataType[name], value, 1, (0,), (1,))
        x = np.ones(2, name.lower())
        for desc, expected in ((old, rounded), (typed, value)):
            assert_same(create_operator(desc)(x)[2], np.array(expected, x.dtype))


def test_a_large_float_is_the_same_integer_traced_or_not(both_x64):
    """Both floats are rounded to JAX's default type."""
    x = jnp.zeros((1, 1), jnp.int32)
    call = functools.partial(padding, x, (0, 0), (0, 1))
    traced = jax.jit(lambda v: call(value=v))(123456789.0)
    found = [call(value=123456789.0)[0, -1], traced[0, -1]]
    assert found == [123456789 if both_x64 else 123456792] * 2
