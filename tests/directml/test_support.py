"""Feature levels and support tables, compared with tables typed a second time."""

import dataclasses

import pytest

from dmljax import FeatureLevel
from dmljax._operators import DESCRIPTORS
from tests.checks import assert_refused
from tests.samples import tensor
from tests.subjects import DESCRIBED, diagonal_matrix1

LABELS = "1_0 2_0 2_1 3_0 3_1 4_0 4_1 5_0 5_1 5_2 6_0 6_1 6_2 6_3 6_4"
LEVELS = {label: int(label.replace("_", ""), 16) << 8 for label in LABELS.split()}


def test_feature_levels():
    assert LEVELS["3_1"] == 0x3100
    assert {level.label: int(level) for level in FeatureLevel} == LEVELS
    assert [level.name for level in FeatureLevel] == ["V" + label for label in LEVELS]


@pytest.mark.parametrize("operator", DESCRIBED)
def test_tables_are_those_of_the_pages(operator):
    found = {
        level: {
            name: (low, high, " ".join(each.name for each in types))
            for name, (low, high, types) in row.items()
        }
        for level, row in DESCRIPTORS[operator].support.items()
    }
    assert found == DESCRIBED[operator].table


@pytest.mark.parametrize(
    ("level", "data_type", "rank", "text"),
    [
        ("V1_0", "FLOAT32", 4, "the operator exists from feature level 2_0 on, while"),
        ("V2_0", "INT8", 4, "has data type INT8; feature level 2_0 supports FLOAT32 F"),
        # A level without a row has the row of the level before.
        ("V3_1", "INT8", 2, "has rank 2; feature level 3_1 supports 4."),
        ("V6_4", "INT8", 5, "has rank 5; feature level 6_4 supports 2 to 4."),
    ],
)
def test_rules(level, data_type, rank, text):
    item = tensor(data_type, *[1] * rank)
    desc = dataclasses.replace(diagonal_matrix1.OLD, output_tensor=item)
    assert_refused(desc.operator, text, desc.check, FeatureLevel[level])
