"""Feature levels and support tables, compared with tables typed a second time."""

import functools
import itertools

import pytest

from dmljax import DataType, FeatureLevel
from dmljax._directml.support import check_support, support_markdown
from dmljax._operators import DESCRIPTORS
from tests.checks import assert_refused
from tests.samples import tensor
from tests.subjects import DESCRIBED

LABELS = "1_0 2_0 2_1 3_0 3_1 4_0 4_1 5_0 5_1 5_2 6_0 6_1 6_2 6_3 6_4"
LEVELS = {label: int(label.replace("_", ""), 16) << 8 for label in LABELS.split()}
TABLES = {name: described.table for name, described in DESCRIBED.items()}


def test_feature_levels():
    assert LEVELS["3_1"] == 0x3100
    assert {level.label: int(level) for level in FeatureLevel} == LEVELS
    assert [level.name for level in FeatureLevel] == ["V" + label for label in LEVELS]
    assert sorted(FeatureLevel) == list(FeatureLevel)


def test_a_table_in_markdown():
    support = DESCRIPTORS["DIAGONAL_MATRIX"].support
    *head, first, second, third, last = support_markdown("X", support).splitlines()
    columns = "| from level | tensor | ranks | data types |"
    assert head == ["## X", "", columns, "|---|---|---|---|"]
    assert first == "| 2_0 | OutputTensor | 4 | FLOAT32 FLOAT16 |"
    assert second.startswith("| 2_1 | OutputTensor | 4 | ")
    assert third.startswith("| 4_0 | OutputTensor | 2 to 4 | ")
    assert last.startswith("| 5_1 | OutputTensor | 2 to 4 | ")


@pytest.mark.parametrize("label", LEVELS)
@pytest.mark.parametrize("operator", TABLES)
def test_ranks_and_types_at_each_level(operator, label):
    """A level without a row has the row of the level before."""
    support = DESCRIPTORS[operator].support
    assert [each.label for each in support] == list(TABLES[operator])
    check = functools.partial(
        check_support, operator, support, FeatureLevel[f"V{label}"]
    )
    first = min(TABLES[operator])
    if label < first:
        text = f"the operator exists from feature level {first} on, while the feature "
        text += f"level asked for is {label}."
        assert_refused(operator, text, check, {})
        return
    row = TABLES[operator][max(each for each in TABLES[operator] if each <= label)]
    supports = f"; feature level {label} supports"
    right = {}
    for name, (low, _, types) in row.items():
        right[name] = tensor(types.split()[0], *[1] * low)
    for name, (low, high, types) in row.items():
        for rank, data_type in itertools.product(range(1, 9), list(DataType)[1:]):
            tensors = right | {name: tensor(data_type.name, *[1] * rank)}
            if not low <= rank <= high:
                text = f"tensor '{name}' has rank {rank}{supports}"
                assert_refused(operator, text, check, tensors)
            elif data_type.name not in types.split():
                text = f"tensor '{name}' has data type {data_type.name}{supports}"
                assert_refused(operator, text, check, tensors)
            else:
                check(tensors)
