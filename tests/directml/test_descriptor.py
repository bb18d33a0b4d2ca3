"""The checks that all descriptors share: types of fields, then of tensors, then sizes.

test_tensor.py has the rules of a single tensor, and tests/subjects/ the rules of an
operator.
"""

import dataclasses
import functools
import importlib
import pickle

import numpy as np
import pytest

from dmljax import (
    DataType,
    DescriptorError,
    DiagonalMatrix1Desc,
    DiagonalMatrixDesc,
    FeatureLevel,
    OperatorDesc,
    Padding1Desc,
    PaddingDesc,
    PaddingMode,
    create_operator,
)
from tests.checks import assert_refused
from tests.samples import created, tensor
from tests.subjects import diagonal_matrix1, padding

FILL = diagonal_matrix1.DESC
PAD = padding.DESC
STATIC = "must be an integer that is known when the program is traced, not"
SEQUENCE = "must be a sequence of integers, one for each axis, not"
REAL = "it must be a real number that a floating-point type holds"
KIND = "it must be a TensorDesc"


@pytest.mark.parametrize(
    ("desc", "field", "value", "text"),
    [
        (PAD, "dimension_count", 0.5, f"{STATIC} float"),
        (PAD, "end_padding", np.array(3), f"{SEQUENCE} ndarray"),
        (PAD, "padding_mode", 7, "is 7; it must be one of CONSTANT, EDGE"),
        (PAD, "input_tensor", "x", f"is 'x'; {KIND}"),
        (FILL, "output_tensor", None, f"is None; {KIND}"),
        (PAD, "padding_value", 1j, f"is 1j; {REAL}"),
        (FILL, "value", 1j, f"is 1j; {REAL}"),  # an integer would be right
    ],
)
def test_types_of_fields(desc, field, value, text):
    """A wrong type is an error when the descriptor is made."""
    error = TypeError if text.startswith("must") else DescriptorError
    change = functools.partial(dataclasses.replace, desc, **{field: value})
    assert_refused(desc.operator, f"{field} {text}", change, error=error)


def test_the_type_of_numpys_scalar_is_that_of_the_output():
    text = "Value has data type FLOAT16, while the tensor has FLOAT32; both must be"
    assert_refused("DIAGONAL_MATRIX1", text, created, FILL, value=np.float16(1))
    text = "Value has data type INT64, which needs JAX's x64 mode"
    assert_refused("DIAGONAL_MATRIX1", text, created, FILL, value=np.int64(1))
    created(FILL, value=np.float32(1))


def test_a_half_is_rounded_to_float32_first():
    """As FLOAT32 the value is in the middle of 1 and the next half, and then even."""
    value = 1 + 2**-11 + 2**-30
    assert np.float16(value) > 1
    half = DataType.FLOAT16
    x = tensor("FLOAT16", 1, 1, 1, 1)
    longer = tensor("FLOAT16", 1, 1, 1, 2)
    pads = (4, (0, 0, 0, 0), (0, 0, 0, 1))
    for desc in (
        PaddingDesc(x, longer, PaddingMode.CONSTANT, value, *pads),
        Padding1Desc(x, longer, PaddingMode.CONSTANT, half, value, *pads),
        DiagonalMatrix1Desc(x, x, half, value, 0, 1),
        DiagonalMatrixDesc(x, 0, value),
    ):
        inputs = [np.zeros((1,) * 4, half.dtype) for _ in desc.input_tensors()]
        assert np.max(create_operator(desc)(*inputs)) == 1


def test_a_number_past_the_largest_float_is_infinity():
    """Fault: NumPy warns."""
    assert PAD.scalar("PaddingValue", 1e300, is_float=True) == np.inf


def test_the_first_of_several_errors():
    """The order: each tensor, its support, x64 mode, all tensors, attributes."""
    wrong = {
        "dimension_count": 3,
        "input_tensor": tensor("FLOAT64", 2, 0),
        "output_tensor": tensor("UINT4", 9, 9),
        "start_padding": (-1, 0),
    }
    for text, mended in (
        ("'InputTensor' has sizes {2,0}", {"input_tensor": tensor("FLOAT64", 2, 3)}),
        ("data type UINT4; feature level", {"output_tensor": tensor("INT32", 9, 9)}),
        (
            "tensor 'InputTensor' has data type FLOAT64, which needs JAX's",
            {"input_tensor": tensor("FLOAT32", 2, 3)},
        ),
        ("mismatched tensor data types", {"output_tensor": tensor("FLOAT32", 9, 9)}),
        ("DimensionCount is 3", {"dimension_count": 2}),
        ("(StartPadding) is {-1,0}", {"start_padding": (1, 0)}),
        ("'OutputTensor' has {9,9}", {"output_tensor": tensor("FLOAT32", 3, 5)}),
    ):
        assert_refused("PADDING", text, created, PAD, **wrong)
        wrong |= mended
    created(PAD, **wrong)


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
    text = "order is 2; it must be one of FORWARD"
    assert_refused("TILE", text, dataclasses.replace, desc, order=2)
    # The sizes of the output are those of `evaluate`.
    wrong = dataclasses.replace(desc, output_tensor=tensor("FLOAT32", 5))
    assert_refused("TILE", "has {5}, while...attributes give it {4}", created, wrong)
    x, y = tensor("INT8", 2), tensor("INT8", 4)
    wrong = dataclasses.replace(desc, input_tensor=x, output_tensor=y)
    text = "'InputTensor' has data type INT8; feature level 6_4 supports FLOAT32 FLOAT1"
    assert_refused("TILE", text, created, wrong)


def test_methods_of_a_descriptor():
    class Partial(OperatorDesc):
        operator = "PARTIAL"

        def output_shapes(self, level):
            return ()

    with pytest.raises(TypeError, match="evaluate"):
        Partial()
    assert PAD.output_shapes(FeatureLevel.V6_4) == ((3, 5),)
