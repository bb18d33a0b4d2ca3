"""Feature levels and support tables, compared with tables typed a second time."""

import pytest

from dmljax import DataType, FeatureLevel, create_operator
from dmljax._directml.support import support_markdown
from dmljax._operators import DESCRIPTORS
from tests.checks import assert_refused
from tests.samples import tensor
from tests.subjects import DESCRIBED

LABELS = "1_0 2_0 2_1 3_0 3_1 4_0 4_1 5_0 5_1 5_2 6_0 6_1 6_2 6_3 6_4"
LEVELS = {label: int(label.replace("_", ""), 16) << 8 for label in LABELS.split()}
TABLES = {name: described.table for name, described in DESCRIBED.items()}
each_operator = pytest.mark.parametrize("operator", TABLES)


def test_feature_levels():
    assert LEVELS["3_1"] == 0x3100
    assert {level.label: int(level) for level in FeatureLevel} == LEVELS
    assert [level.name for level in FeatureLevel] == ["V" + label for label in LEVELS]
    assert sorted(FeatureLevel) == list(FeatureLevel)


@each_operator
def test_tables(operator):
    """The package's tables, as Markdown, against the tables of tests/subjects/."""
    head = f"## {operator}\n\n| from level | tensor | ranks | data types |\n"
    rows = support_markdown(operator, DESCRIPTORS[operator].support)
    found = []
    for line in rows.removeprefix(f"{head}|---|---|---|---|\n").splitlines():
        *cells, types = line.strip("| ").split(" | ")
        found.append((*cells, sorted(types.split())))
    wanted = []
    for level, tensors in TABLES[operator].items():
        for name, (low, high, types) in tensors.items():
            ranks = f"{low} to {high}" if low < high else str(low)
            wanted.append((level, name, ranks, sorted(types.split())))
    assert found == wanted


# DESCRIPTORS AT A LEVEL


def described(operator, ranks, types):
    """A descriptor whose tensors have these ranks and types, by C name."""
    tensors = []
    for name, rank in ranks.items():
        # Sizes of 1 fit together for every operator; ONE_HOT has two values.
        sizes = (*[1] * 9, 2 if name == "ValuesTensor" else 1)[10 - rank :]
        tensors.append(tensor(types[name], *sizes))
    output = ranks.get("OutputTensor", 0), types.get("OutputTensor", "FLOAT32")
    attributes = DESCRIBED[operator].attributes(output[0], DataType[output[1]])
    return DESCRIPTORS[operator](*tensors, *attributes)


def ranked(row, rank):
    """For each tensor of a row the allowed rank nearest to `rank`."""
    return {name: min(max(rank, low), high) for name, (low, high, _) in row.items()}


def typed(row, data_type):
    """For each tensor of a row `data_type` if it is allowed, else an allowed type."""
    names = {name: types.split() for name, (_, _, types) in row.items()}
    return {n: data_type if data_type in ts else ts[-1] for n, ts in names.items()}


def check_at(level, operator, ranks, types, text):
    """Makes the operator, or asserts that an error with `text` refuses it."""
    desc = described(operator, ranks, types)
    if text:
        assert_refused(operator, text, create_operator, desc, feature_level=level)
    else:
        create_operator(desc, feature_level=level)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("label", LEVELS)
@each_operator
def test_ranks_and_types_at_each_level(operator, label):
    """A level without a row has the row of the level before."""
    level = FeatureLevel[f"V{label}"]
    first = min(TABLES[operator])
    if label < first:
        row = TABLES[operator][first]
        text = f"the operator exists from feature level {first} on, while the feature "
        text += f"level asked for is {label}."
        check_at(level, operator, ranked(row, 4), typed(row, "FLOAT32"), text)
        return
    newest = max(each for each in TABLES[operator] if each <= label)
    row = TABLES[operator][newest]
    right = typed(row, "FLOAT32")
    supports = f"; feature level {label} supports"
    for name, (low, high, names) in row.items():
        for rank in range(low, high + 1):
            check_at(level, operator, ranked(row, rank), right, "")
        for rank in {low - 1, high + 1} - {0, 9}:  # no tensor has these ranks
            ranks = ranked(row, low) | {name: rank}
            text = f"tensor '{name}' has {rank} dimension...{supports}"
            check_at(level, operator, ranks, right, text)
        for kind in list(DataType)[1:]:
            types = typed(row, kind.name)
            text = ""
            if kind.name not in names.split():
                types = right | {name: kind.name}
                text = f"tensor '{name}' has data type {kind.name}{supports}"
            check_at(level, operator, ranked(row, low), types, text)
