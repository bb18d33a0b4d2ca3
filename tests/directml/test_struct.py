"""Descriptors are values, and their fields are those of the C structs."""

import dataclasses
import enum
import typing

import numpy as np
import pytest

from dmljax import TensorDesc
from dmljax._directml.struct import MISSING, Field, fields_of
from dmljax._operators import DESCRIPTORS
from tests.fuzz.descriptors import made
from tests.samples import tensor
from tests.subjects import DESCRIBED


def as_written(value, hint):
    """A value as a caller may write it: a list, an array, an integer of NumPy."""
    if isinstance(value, TensorDesc):
        return written(value)
    if isinstance(value, enum.Enum):
        return np.int64(value) if value % 2 else int(value)
    if isinstance(value, tuple):
        return list(value) if len(value) % 2 else np.array(value)
    return np.int64(value) if hint is int and value is not None else value


def written(struct):
    types = fields_of(type(struct)).values()
    fields = {
        field.name: as_written(getattr(struct, field.name), field.type)
        for field in types
    }
    return type(struct)(**fields)


@pytest.mark.parametrize("name", DESCRIBED)
def test_a_descriptor_is_a_value(name):
    """Fields get Python's types: these have a hash, and do not overflow."""
    cls = DESCRIPTORS[name]
    assert cls.operator == name
    assert list(fields_of(cls)) == DESCRIBED[name].fields.split()
    first = next(iter(fields_of(cls).values())).name
    # A NaN differs from itself.
    for desc in (desc for desc in made(name, 10) if "nan" not in repr(desc)):
        same = written(desc)
        assert same == desc
        assert repr(same) == repr(desc)
        changed = dataclasses.replace(desc, **{first: tensor("INT8", 99)})
        assert changed != desc
        assert len({desc, same, changed}) == 2
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(desc, first, None)


def test_types_of_fields():
    """They are looked up once: `create_operator` asks for them several times."""
    assert fields_of(TensorDesc) is fields_of(TensorDesc)
    assert fields_of(TensorDesc)["Strides"] == ("strides", tuple[int, ...], None)

    class Example(typing.NamedTuple):
        optional: typing.Optional[int]  # noqa: UP045
        number: int | float
        either: int | float | None

    assert fields_of(Example) == {
        "optional": Field("optional", int, None),
        "number": Field("number", int | float, MISSING),
        "either": Field("either", int | float, None),
    }
