"""Descriptors are values, and their fields are those of the C structs."""

import dataclasses
import inspect
import typing

import jax.numpy as jnp
import numpy as np
import pytest

from dmljax import DataType, PaddingDesc, PaddingMode, TensorDesc, TensorFlags
from dmljax._directml.struct import fields_of
from dmljax._operators import DESCRIPTORS
from tests.subjects import DESCRIBED


@pytest.mark.parametrize("name", DESCRIBED)
def test_fields_are_those_of_the_struct(name):
    assert DESCRIPTORS[name].operator == name
    assert list(fields_of(DESCRIPTORS[name])) == DESCRIBED[name].fields.split()


def test_a_descriptor_is_a_value():
    """Fields get Python's types: these have a hash, and do not overflow."""
    exact = TensorDesc(DataType(1), (2,), (1,), 8, TensorFlags(1), 16)
    given = TensorDesc(np.int64(1), [2], np.int8([1]), jnp.int32(8), 1, np.uint8(16))
    desc = PaddingDesc(exact, exact, PaddingMode.EDGE, 0.5, 1, (0,), (0,))
    same = PaddingDesc(given, given, np.int8(1), 0.5, np.array(1), range(1), [0])
    assert same == desc
    assert repr(same) == repr(desc)
    changed = dataclasses.replace(desc, end_padding=[1])
    assert len({desc, same, changed}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        desc.dimension_count = 2


def test_types_of_fields():
    """They are looked up once: each descriptor asks for them."""
    assert fields_of(TensorDesc) is fields_of(TensorDesc)

    class Example(typing.NamedTuple):
        optional: typing.Optional[int]  # noqa: UP045
        either: int | str
        any_of: int | str | None

    fields = fields_of(Example).values()
    assert [(field.annotation, field.default) for field in fields] == [
        (int, None),
        (int | str, inspect.Parameter.empty),
        (int | str, None),
    ]
