"""Objects that are checked by a table of their fields."""

import pytest

import dmljax
from dmljax._model.fields import (
    STRING,
    Field,
    at,
    conforms,
    find_spelling,
    look_up,
    read_fields,
)
from dmljax._model.format import (
    BOOLEAN,
    DATA_TYPE,
    EXECUTION_FLAGS,
    INTEGERS,
    NUMBER,
    SIZES,
    UNSIGNED,
)

FLAG = "DML_EXECUTION_FLAG_DISABLE_META_COMMANDS"
TABLE = {"name": Field(STRING, "", required=True), "verbose": Field(BOOLEAN, "")}


def test_fields_that_are_null_are_absent():
    assert read_fields({"verbose": None, "name": "x"}, TABLE) == {"name": "x"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (3, "it is 3; it must be an object."),
        ({}, "the field 'name' is missing; it must be a string."),
        ({"name": None}, "the field 'name' is null; it must be a string."),
        ({"name": 1}, "the field 'name' is 1; it must be a string."),
        ({"nam": "x"}, "there is no field 'nam'; the fields are name, verbose."),
    ],
)
def test_wrong_fields(fields, message):
    with pytest.raises(dmljax.ModelError) as caught:
        read_fields(fields, TABLE)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("kind", "values", "others"),
    [
        (STRING, ["", "a"], [1, ["a"], {}]),
        (BOOLEAN, [True, False], [0, "true"]),
        (NUMBER, [1, 2.5, "nan"], [True, [1]]),
        (UNSIGNED, [0, 2**64 - 1], [-1, 2**64, 1.0, True, "1"]),
        (SIZES, [[], [1, 2**32 - 1]], [[0], [2**32], [1.0], [True], 1]),
        (INTEGERS, [[-1, 2**70]], [[1.0], ["1"], 1]),
        (EXECUTION_FLAGS, [FLAG, [], [FLAG, "NONE"]], [1, [1], "none", ["FAST"]]),
        (DATA_TYPE, ["UNKNOWN", "DML_TENSOR_DATA_TYPE_FLOAT64"], ["INT4", "int8", 1]),
    ],
)
def test_kinds_of_values(kind, values, others):
    assert all(conforms(value, kind.schema) for value in values)
    assert not any(conforms(value, kind.schema) for value in others)


def test_spellings():
    assert find_spelling({"desc": None, "Desc": {}}, "desc") == "Desc"
    assert find_spelling({}, "desc") is None
    with pytest.raises(dmljax.ModelError, match="it has both of the fields 'desc', 'D"):
        find_spelling({"desc": {}, "Desc": {}}, "desc")


def test_a_name_that_is_not_there():
    message = "the resource 'x' is not in the model; it has 'a', 'b'."
    with pytest.raises(dmljax.ModelError, match=message):
        look_up("x", "resource", {"a": 1, "b": 2})


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (dmljax.ModelError("wrong"), "here: wrong"),
        (dmljax.DescriptorError("PADDING: wrong"), "here: PADDING: wrong"),
        (MemoryError(), "here: there is not enough memory for it."),
        (RecursionError(), "here: it is nested too deeply."),
    ],
)
def test_the_place_of_an_error(error, message):
    with pytest.raises(dmljax.ModelError) as caught, at("here"):
        raise error
    assert str(caught.value) == message
