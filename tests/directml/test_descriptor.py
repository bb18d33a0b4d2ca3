"""Descriptors are values. All share checks: types of fields, of tensors, then sizes.

test_tensor.py has the rules of a single tensor, and tests/subjects/ the rules of an
operator.
"""

import dataclasses
import importlib
import pickle
import typing

import jax.numpy as jnp
import numpy as np
import pytest

from dmljax import (
    DataType,
    DescriptorError,
    FeatureLevel,
    OperatorDesc,
    PaddingDesc,
    PaddingMode,
    TensorDesc,
    TensorFlags,
    create_operator,
)
from dmljax._directml.struct import fields_of
from tests.checks import assert_refused
from tests.samples import created, tensor
from tests.subjects import diagonal_matrix1, padding

FILL = diagonal_matrix1.DESC
PAD = padding.DESC
REAL = "it must be a real number that a floating-point type holds"


def test_a_descriptor_is_a_value():
    """Fields get Python's types: these have a hash, and do not overflow."""
    exact = TensorDesc(DataType(1), (2,), (1,), 8, TensorFlags(1), 16)
    given = TensorDesc(np.int64(1), [2], np.int8([1]), jnp.int32(8), 1, np.uint8(16))
    desc = PaddingDesc(exact, exact, PaddingMode(1), 0.5, 1, (0,), (0,))
    same = PaddingDesc(given, given, np.int8(1), 0.5, np.array(1), range(1), [0])
    assert same == desc
    assert repr(same) == repr(desc)
    assert len({desc, same, dataclasses.replace(desc, end_padding=[1])}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        desc.dimension_count = 2


def test_fields_of_a_struct():
    """They are looked up once: each descriptor asks for them."""
    assert fields_of(TensorDesc) is fields_of(TensorDesc)

    class Example(typing.NamedTuple):
        optional: typing.Optional[int]  # noqa: UP045
        any_of: int | str | None

    found = [field.annotation for field in fields_of(Example).values()]
    assert found == [int, int | str]


@pytest.mark.parametrize(
    ("desc", "field", "value", "text"),
    [
        (PAD, "dimension_count", 0.5, "must be an integer that is known when the"),
        (PAD, "end_padding", np.array(3), "must be a sequence of integers, one for"),
        (PAD, "padding_mode", 7, "is 7; it must be one of CONSTANT, EDGE"),
        (PAD, "input_tensor", "x", "is 'x'; it must be a TensorDesc"),
        (FILL, "output_tensor", None, "is None; it must be a TensorDesc"),
        (PAD, "padding_value", 1j, f"is 1j; {REAL}"),
        (FILL, "value", 1j, f"is 1j; {REAL}"),  # an integer would be right
    ],
)
def test_types_of_fields(desc, field, value, text):
    """A wrong type is an error when the descriptor is made."""
    error = TypeError if text.startswith("must") else DescriptorError
    change = {field: value, "error": error}
    text = f"{field} {text}"
    assert_refused(desc.operator, text, dataclasses.replace, desc, **change)


def test_the_type_of_numpys_scalar_is_that_of_the_output():
    for value, text in (
        (np.float16(1), "has data type FLOAT16, while the tensor has FLOAT32; both"),
        (np.int64(1), "has data type INT64, which needs JAX's x64 mode"),
    ):
        assert_refused("DIAGONAL_MATRIX1", f"Value {text}", created, FILL, value=value)
    created(FILL, value=np.float32(1))


def test_a_half_is_rounded_to_float32_first():
    """As FLOAT32 the value is in the middle of 1 and the next half, and then even."""
    value = 1 + 2**-11 + 2**-30
    assert np.float16(value) > 1
    half = dataclasses.replace(FILL, output_tensor=tensor("FLOAT16", 2, 3))
    for is_float in (False, True):
        assert half.scalar("Value", value, is_float=is_float) == 1


def test_a_number_past_the_largest_float_is_infinity():
    """Fault: NumPy warns."""
    assert PAD.scalar("PaddingValue", 1e300, is_float=True) == np.inf


# A descriptor as a user writes it, in a private module of another package. The types of
# the fields are strings, and only this module has the enum.
TILE = """
from __future__ import annotations
import enum
from typing import ClassVar
import jax.numpy as jnp
from dmljax import DataType, FeatureLevel, OperatorDesc, TensorDesc

class TileOrder(enum.IntEnum):
    FORWARD = 0
    BACKWARD = 1

ANY = (1, 8, (DataType.FLOAT32, DataType.FLOAT16))

class TileDesc(OperatorDesc):
    input_tensor: TensorDesc
    output_tensor: TensorDesc
    repeats: tuple[int, ...]
    order: TileOrder

    operator: ClassVar[str] = "TILE"
    support = {FeatureLevel.V3_1: {"InputTensor": ANY, "OutputTensor": ANY}}

    def evaluate(self, x):
        tiled = jnp.tile(x, self.repeats)
        return (jnp.flip(tiled) if self.order is TileOrder.BACKWARD else tiled,)
"""


def test_a_descriptor_that_a_user_writes_in_a_private_module(tmp_path, monkeypatch):
    """Fault: a package whose name begins with ours is taken for a part of dmljax."""
    (tmp_path / "dmljaxtra").mkdir()
    (tmp_path / "dmljaxtra/_ops.py").write_text(TILE)
    monkeypatch.syspath_prepend(tmp_path)
    ops = importlib.import_module("dmljaxtra._ops")
    assert ops.TileDesc.__module__ == "dmljaxtra._ops"
    x, y = tensor("FLOAT32", 2), tensor("FLOAT32", 4)
    desc = ops.TileDesc(x, y, (2,), ops.TileOrder.BACKWARD)
    assert pickle.loads(pickle.dumps(desc)) == desc
    assert ops.TileDesc.from_json(desc.to_json()["desc"]) == desc
    assert create_operator(desc)(np.float32([1, 2])).tolist() == [2, 1, 2, 1]
    # The sizes of the output are those of `evaluate`.
    for change, text in (
        ({"order": 2}, "order is 2; it must be one of FORWARD"),
        ({"output_tensor": x}, "has {2}, while...attributes give it {4}"),
        (
            {"input_tensor": tensor("INT8", 2)},
            "has data type INT8; feature level 6_4 supports FLOAT32 FLOAT16.",
        ),
    ):
        assert_refused("TILE", text, created, desc, **change)


def test_methods_of_a_descriptor():
    class Partial(OperatorDesc):
        operator = "PARTIAL"

    with pytest.raises(TypeError, match="evaluate"):
        Partial()
    assert PAD.output_shapes(FeatureLevel.V6_4) == ((3, 5),)
