"""Garbage for any argument of a public function gets an error that names the argument.

tests/test_arguments.py has the right and wrong arguments that a caller could mean.
"""

import dataclasses
import enum
import functools
import inspect
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dmljax
from dmljax import DescriptorError, ModelError, create_operator
from dmljax._directml.struct import c_name
from tests.samples import created, tensor
from tests.subjects import DESCRIBED, SUBJECTS, padding
from tests.subjects.tables import NONE


class Number(enum.IntEnum):
    TWO = 2  # and no member is zero


def garbage():
    """New values by name, because a call may change or exhaust them."""
    return {
        "an array": jnp.full((2, 2), 1.5),
        "a list": [1.5],
        "a ragged list": [[1], [2, 3]],
        "a list of a huge integer": [10**5000],
        "an IntEnum": Number.TWO,
        "a timedelta64": np.timedelta64(2, "s"),
        "timedeltas": np.ones(2, "m8[s]"),
        "a datetime64": np.datetime64(2, "s"),
        "a bytearray": bytearray(2),
        "a memoryview": memoryview(b"12"),
        "bytes": b"12",
        "text": "twelve",
        "long text": "long " * 5000,
        "None": None,
        "a dict": {1: 2},
        "a set": {1, 2},
        "an object": object(),
        "a class": Number,
        "a generator": (i for i in range(2)),
        "NaN": float("nan"),
        "a huge integer": 10**5000,
        "an imaginary number": 2j,
        "a masked array": np.ma.masked_array([1, 2], [True, False]),
        "a masked number": np.ma.masked_array(1, True),
        "a key": jax.random.key(0),
        "a tensor": tensor("INT8", 2),
    }


# PLACES

MODEL = {"resources": {}, "dispatchables": {}, "commands": []}
# Valid arguments of each public function.
FUNCTIONS = {each.operator.function: each.arguments for each in SUBJECTS.values()}
FUNCTIONS |= {
    dmljax.create_operator: (padding.DESC, 0x6400),
    dmljax.Operator: (padding.DESC, 0x6400),
    dmljax.run_model: (MODEL, None, 9),
}


def called(function, **changes):
    signature = inspect.signature(function)
    right = dict(zip(signature.parameters, FUNCTIONS[function], strict=True))
    bound = inspect.BoundArguments(signature, right | changes)
    return function(*bound.args, **bound.kwargs)


def described_tensor(**changes):
    changed = dataclasses.replace(padding.DESC.input_tensor, **changes)
    return created(padding.DESC, input_tensor=changed)


def fields(struct):
    return [field.name for field in dataclasses.fields(struct)]


def called_operator(input_tensor):
    return create_operator(padding.DESC)(input_tensor)


# By place: a call with one argument by name, and the names of the arguments.
PLACES = {
    "TensorDesc": (described_tensor, fields(padding.DESC.input_tensor)),
    "from_json": (dmljax.PaddingDesc.from_json, ["desc"]),
    "a call": (called_operator, ["input_tensor"]),
}
# Values that are valid in their place.
TAKEN = {
    "run_model": {"device": NONE, "max_elements": {"a huge integer"}},
    "TensorDesc": {"strides": NONE, "total_tensor_size_in_bytes": NONE},
}
for function in FUNCTIONS:
    names = list(inspect.signature(function).parameters)
    PLACES[function.__name__] = (functools.partial(called, function), names)
for name, subject in SUBJECTS.items():
    TAKEN[name] = subject.taken
for each in DESCRIBED.values():
    desc = each.example
    PLACES[type(desc).__name__] = (functools.partial(created, desc), fields(desc))
    TAKEN[type(desc).__name__] = each.taken or {}


def error_of(call, argument, value):
    try:
        call(**{argument: value})
    except (TypeError, DescriptorError, ModelError) as error:
        return error
    return None


@pytest.mark.parametrize("place", PLACES)
def test_garbage(place):
    """One line of ours. A subclass of TypeError would come from NumPy or JAX."""
    call, arguments = PLACES[place]
    for argument in arguments:
        # "a" is also an English word.
        written = rf"{argument} \(" if argument in "abx" else argument
        taken = set()
        for name, value in garbage().items():
            error = error_of(call, argument, value)
            if error is None:
                taken.add(name)
                continue
            message = str(error)
            assert type(error) in (TypeError, DescriptorError, ModelError)
            assert re.search(rf"\b({written}|{c_name(argument)})", message), name
            assert message.isprintable()
            assert len(message) < 500
        assert taken == TAKEN.get(place, {}).get(argument, set()), argument


def test_no_argument_is_left_out():
    descriptors = {type(each.example) for each in DESCRIBED.values()}
    public = {getattr(dmljax, name) for name in dmljax.__all__}
    functions = {each for each in public if inspect.isfunction(each)}
    subclasses = {c for c in public if dmljax.OperatorDesc in getattr(c, "__mro__", ())}
    assert functions == FUNCTIONS.keys() - {dmljax.Operator}
    assert subclasses == descriptors | {dmljax.OperatorDesc}
