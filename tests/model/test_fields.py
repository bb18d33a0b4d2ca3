"""Kinds of values."""

import pytest

from dmljax._model.fields import BOOLEAN, NUMBER, STRING
from dmljax._model.format import DATA_TYPE, EXECUTION_FLAGS, INTEGERS, SIZES, UNSIGNED

FLAG = "DML_EXECUTION_FLAG_DISABLE_META_COMMANDS"


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
    assert all(map(kind.accepts, values))
    assert not any(map(kind.accepts, others))
