"""Descriptors are values, and their fields are those of the C structs."""

import dataclasses
import enum
import inspect
import typing

import numpy as np
import pytest

from dmljax import TensorDesc
from dmljax._directml.struct import fields_of
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
    fields = fields_of(type(struct)).values()
    values = [as_written(getattr(struct, f.name), f.annotation) for f in fields]
    return type(struct)(*values)


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
