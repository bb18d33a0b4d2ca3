"""Descriptors are values, and their fields are those of the C structs."""

import dataclasses
import enum
import typing

import numpy as np
import pytest

from dmljax import DataType, PaddingMode, TensorDesc, TensorFlags
from dmljax._directml.struct import c_name, field_types, integers, member
from dmljax._operators import DESCRIPTORS
from tests.fuzz.descriptors import made
from tests.samples import tensor
from tests.subjects import DESCRIBED

each_descriptor = pytest.mark.parametrize("name", DESCRIBED)


@each_descriptor
def test_fields_are_those_of_the_struct(name):
    kind = DESCRIPTORS[name]
    assert kind.operator == name
    assert list(map(c_name, field_types(kind))) == DESCRIBED[name].fields.split()


@each_descriptor
def test_a_descriptor_is_a_value(name):
    """The test of operators copies and pickles them."""
    for desc in made(name, 10):
        same = dataclasses.replace(desc)
        assert same == desc
        assert hash(same) == hash(desc)
        assert repr(same) == repr(desc)
        first = next(iter(field_types(type(desc))))
        changed = dataclasses.replace(desc, **{first: tensor("INT8", 99)})
        assert changed != desc
        assert len({desc, same, changed}) == 2
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(desc, first, None)


def as_given(value, hint):
    """A value as a caller may write it: a list, an array, a number."""
    if isinstance(value, TensorDesc):
        return given(value)
    if isinstance(value, enum.Enum):
        return np.int64(value) if value % 2 else int(value)
    if isinstance(value, tuple):
        return list(value) if len(value) % 2 else np.array(value)
    return np.int64(value) if hint is int and value is not None else value


def given(struct):
    types = field_types(type(struct))
    values = {n: as_given(getattr(struct, n), hint) for n, (hint, _) in types.items()}
    return type(struct)(**values)


@each_descriptor
def test_fields_are_converted(name):
    """The fields have Python's types: these have a hash, and do not overflow."""
    for desc in made(name, 10):
        assert repr(given(desc)) == repr(desc)
        assert hash(given(desc)) == hash(desc)


def test_values_that_no_converter_takes_stay():
    """The checks refuse them later, with the operator's name in the message."""
    for convert, values in (
        (integers, (1, "12", None, np.array(3))),
        (member(PaddingMode), ("EDGE", 7, True, 1.0, DataType.FLOAT32)),
    ):
        for value in values:
            assert convert(value) is value
    assert integers([np.int8(3), "x"]) == (3, "x")
    assert member(PaddingMode)(np.uint8(1)) is PaddingMode.EDGE


def test_types_of_fields():
    """They are looked up once: `create_operator` asks for them several times."""
    assert field_types(TensorDesc) is field_types(TensorDesc)
    assert field_types(TensorDesc)["strides"] == (tuple[int, ...], True)
    assert field_types(TensorDesc)["flags"] == (TensorFlags, False)

    class Example(typing.NamedTuple):
        optional: typing.Optional[int]  # noqa: UP045
        number: int | float

    found = field_types(Example)
    assert found == {"optional": (int, True), "number": (int | float, False)}
