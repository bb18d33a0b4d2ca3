"""Feature levels and support tables, compared with tables typed a second time."""

import itertools

import pytest

from dmljax import DataType, DescriptorError, FeatureLevel, create_operator
from dmljax._directml.support import support_markdown
from dmljax._operators import DESCRIPTORS
from tests.checks import assert_refused
from tests.samples import tensor
from tests.subjects import DESCRIBED

LABELS = "1_0 2_0 2_1 3_0 3_1 4_0 4_1 5_0 5_1 5_2 6_0 6_1 6_2 6_3 6_4"
LEVELS = {label: int(label.replace("_", ""), 16) << 8 for label in LABELS.split()}
TABLES = {name: described.table for name, described in DESCRIBED.items()}
SUPPORTS = {name: desc.support for name, desc in DESCRIPTORS.items()}
ROWS = [(name, level) for name, table in TABLES.items() for level in table]
CELLS = [(*row, tensor) for row in ROWS for tensor in TABLES[row[0]][row[1]]]
each_operator = pytest.mark.parametrize("operator", TABLES)


def test_feature_levels():
    assert LEVELS["3_1"] == 0x3100
    assert {level.label: int(level) for level in FeatureLevel} == LEVELS
    assert [level.name for level in FeatureLevel] == ["V" + label for label in LEVELS]
    assert sorted(FeatureLevel) == list(FeatureLevel)


@each_operator
def test_tables(operator):
    """The package's tables, as Markdown, are those that are typed a second time."""
    markdown = support_markdown(operator, SUPPORTS[operator])
    head, *lines = markdown.split("\n\n")
    assert head == f"## {operator}"
    columns, dashes, *lines = "\n".join(lines).splitlines()
    assert columns == "| from level | tensor | ranks | data types |"
    assert dashes == "|---" * 4 + "|"
    found = []
    for line in lines:
        level, name, ranks, types = line.strip("| ").split(" | ")
        low, _, high = ranks.partition(" to ")
        found.append((level, name, int(low), int(high or low), sorted(types.split())))
    wanted = [
        (level, name, low, high, sorted(types.split()))
        for level, tensors in TABLES[operator].items()
        for name, (low, high, types) in tensors.items()
    ]
    assert sorted(found) == sorted(wanted)


# DESCRIPTORS AT A LEVEL


def described(operator, ranks, types):
    """A descriptor whose tensors have these ranks and types, by C name."""
    tensors = []
    for name, rank in ranks.items():
        # Sizes with which the tensors of every operator fit together.
        sizes = (*[1] * 9, 2 if name == "ValuesTensor" else 1)[10 - rank :]
        tensors.append(tensor(types[name], *sizes))
    output = ranks.get("OutputTensor", 0), types.get("OutputTensor", "FLOAT32")
    attributes = DESCRIBED[operator].attributes(output[0], DataType[output[1]])
    return DESCRIPTORS[operator](*tensors, *attributes)


def ranked(row, rank):
    """Ranks for all tensors of a row: the allowed ones nearest to `rank`."""
    return {name: min(max(rank, low), high) for name, (low, high, _) in row.items()}


def typed(row, data_type):
    """Types for all tensors of a row: `data_type` for those that take it."""
    names = {name: types.split() for name, (_, _, types) in row.items()}
    return {n: data_type if data_type in ts else ts[-1] for n, ts in names.items()}


def supported(row):
    """Every (ranks, types) of a row: each rank with each type of a tensor."""
    lows, highs, types = zip(*row.values(), strict=True)
    every_type = sorted({name for names in types for name in names.split()})
    pairs = itertools.product(range(min(lows), max(highs) + 1), every_type)
    return [(ranked(row, rank), typed(row, data_type)) for rank, data_type in pairs]


def message_of(descriptor, label):
    """Why a level refuses the descriptor, or an empty text if it does not."""
    try:
        create_operator(descriptor, feature_level=FeatureLevel[f"V{label}"])
    except DescriptorError as error:
        return str(error)
    return ""


def is_in(row, ranks, types):
    return all(
        low <= ranks[name] <= high and types[name] in names.split()
        for name, (low, high, names) in row.items()
    )


@pytest.mark.usefixtures("x64")
@each_operator
def test_what_each_level_supports(operator):
    """A level without a row of its own has the newest row before it."""
    *_, newest = TABLES[operator].values()
    first, *_ = TABLES[operator]
    for ranks, types in supported(newest):
        descriptor = described(operator, ranks, types)
        row = None
        for label in LEVELS:
            row = TABLES[operator].get(label, row)
            message = message_of(descriptor, label)
            if row is None:
                assert message == (
                    f"{operator}: the operator exists from feature level {first} on, "
                    f"while the feature level asked for is {label}."
                )
            elif is_in(row, ranks, types):
                assert message == ""
            else:
                assert message.startswith(f"{operator}: tensor '")
                assert f"feature level {label} supports " in message


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("operator", "label", "name"), CELLS)
def test_ranks_and_types_outside_of_a_row(operator, label, name):
    row = TABLES[operator][label]
    low, high, names = row[name]
    level = FeatureLevel[f"V{label}"]
    right = typed(row, names.split()[0])
    lowest = ranked(row, low)
    wrong = []
    for rank in (low - 1, high + 1):
        wrong.append((lowest | {name: rank}, right, f"{rank} dimension"))
    for kind in DataType:
        if kind.name not in names.split():
            types = right | {name: kind.name}
            wrong.append((lowest, types, f"data type {kind.name}"))
    for ranks, types, text in wrong:
        desc = described(operator, ranks, types)
        text = f"tensor '{name}' has {text}"
        assert_refused(operator, text, create_operator, desc, feature_level=level)


@pytest.mark.parametrize("label", TABLES["NONZERO_COORDINATES"])
def test_coordinates_may_have_other_ranks_than_the_input(label):
    row = TABLES["NONZERO_COORDINATES"][label]
    ranges = [range(low, high + 1) for low, high, _ in row.values()]
    for ranks in itertools.product(*ranges):
        ranks = dict(zip(row, ranks, strict=True))
        desc = described("NONZERO_COORDINATES", ranks, typed(row, "FLOAT32"))
        assert message_of(desc, label) == ""
