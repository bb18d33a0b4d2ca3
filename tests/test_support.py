"""Feature levels and support tables, compared with tables typed a second time."""

import itertools

import pytest

from dmljax import (
    DataType,
    DescriptorError,
    FeatureLevel,
    PaddingMode,
    TensorDesc,
    create_operator,
)
from dmljax._operators import DESCRIPTORS
from dmljax._support import support_markdown
from tests.subjects import SUBJECTS

LEVELS = {
    "1_0": 0x1000,
    "2_0": 0x2000,
    "2_1": 0x2100,
    "3_0": 0x3000,
    "3_1": 0x3100,
    "4_0": 0x4000,
    "4_1": 0x4100,
    "5_0": 0x5000,
    "5_1": 0x5100,
    "5_2": 0x5200,
    "6_0": 0x6000,
    "6_1": 0x6100,
    "6_2": 0x6200,
    "6_3": 0x6300,
    "6_4": 0x6400,
}
DATA_TYPES = {
    "UNKNOWN": 0,
    "FLOAT32": 1,
    "FLOAT16": 2,
    "UINT32": 3,
    "UINT16": 4,
    "UINT8": 5,
    "INT32": 6,
    "INT16": 7,
    "INT8": 8,
    "FLOAT64": 9,
    "UINT64": 10,
    "INT64": 11,
    "UINT4": 12,
    "INT4": 13,
}
MODES = {
    "CONSTANT": (0, "1_0"),
    "EDGE": (1, "1_0"),
    "REFLECTION": (2, "1_0"),
    "SYMMETRIC": (3, "3_0"),
    "WRAP": (4, "6_4"),
}

TABLES = {
    name: table
    for subject in SUBJECTS.values()
    for name, table in subject.tables.items()
}
ATTRIBUTES = {
    name: attributes
    for subject in SUBJECTS.values()
    for name, attributes in subject.attributes.items()
}
SUPPORTS = {name: cls.support for name, cls in DESCRIPTORS.items()}
ROWS = [(name, level) for name, table in TABLES.items() for level in table]
CELLS = [(*row, tensor) for row in ROWS for tensor in TABLES[row[0]][row[1]]]


def level_named(label):
    return FeatureLevel["V" + label]


def level_before(label):
    """Returns the level before `label`, or None for the first one."""
    labels = list(LEVELS)
    index = labels.index(label)
    return labels[index - 1] if index else None


def row_at(operator, label):
    """Returns the row of the operator's table that holds at `label`, or None."""
    holding = [row for row in TABLES[operator] if LEVELS[row] <= LEVELS[label]]
    return TABLES[operator][holding[-1]] if holding else None


def sizes_of(tensor, rank):
    """Returns sizes of a rank with which the tensors of every operator fit together."""
    last = 2 if tensor == "ValuesTensor" else 1
    return (*[1] * 9, last)[10 - rank :]


def described(operator, ranks, types):
    """Makes a descriptor whose tensors have these ranks and types, by C name."""
    tensors = [
        TensorDesc(types[name], sizes_of(name, rank)) for name, rank in ranks.items()
    ]
    ranks = {"OutputTensor": 0, **ranks}
    types = {"OutputTensor": None, **types}
    attributes = ATTRIBUTES[operator](ranks["OutputTensor"], types["OutputTensor"])
    return DESCRIPTORS[operator](*tensors, *attributes)


def typed(row, data_type):
    """Returns types for all tensors of a row: `data_type` for those that take it."""
    names = {name: types.split() for name, (_, _, types) in row.items()}
    return {
        name: DataType[data_type if data_type in types else types[-1]]
        for name, types in names.items()
    }


def ranked(row, rank):
    """Returns ranks for all tensors of a row: the allowed ones nearest to `rank`."""
    return {name: min(max(rank, low), high) for name, (low, high, _) in row.items()}


def supported(row):
    """Returns every (ranks, types) of a row: each rank with each type of a tensor."""
    low = min(low for low, _, _ in row.values())
    high = max(high for _, high, _ in row.values())
    types = sorted({t for _, _, types in row.values() for t in types.split()})
    return [
        (ranked(row, rank), typed(row, data_type))
        for rank in range(low, high + 1)
        for data_type in types
    ]


def every_rank(row):
    """Returns every combination of the ranks that the tensors of a row may have."""
    ranges = [range(low, high + 1) for low, high, _ in row.values()]
    return [dict(zip(row, ranks, strict=True)) for ranks in itertools.product(*ranges)]


def message_of(descriptor, label):
    """Returns why a level refuses the descriptor, or an empty text if it does not."""
    try:
        create_operator(descriptor, feature_level=level_named(label))
    except DescriptorError as error:
        return str(error)
    return ""


def test_feature_levels():
    assert {level.label: int(level) for level in FeatureLevel} == LEVELS
    assert [level.name for level in FeatureLevel] == ["V" + name for name in LEVELS]
    assert sorted(FeatureLevel) == list(FeatureLevel)
    assert len(FeatureLevel) == 15


def test_data_types():
    assert {data_type.name: int(data_type) for data_type in DataType} == DATA_TYPES


def test_padding_modes():
    numbers = {mode: number for mode, (number, _) in MODES.items()}
    assert {mode.name: int(mode) for mode in PaddingMode} == numbers


@pytest.mark.parametrize("operator", TABLES)
def test_tables(operator):
    found = {
        level.label: {
            name: (low, high, sorted(data_type.name for data_type in types))
            for name, (low, high, types) in tensors.items()
        }
        for level, tensors in SUPPORTS[operator].items()
    }
    expected = {
        level: {
            name: (low, high, sorted(types.split()))
            for name, (low, high, types) in tensors.items()
        }
        for level, tensors in TABLES[operator].items()
    }
    assert found == expected


@pytest.mark.parametrize("operator", TABLES)
def test_descriptors_are_checked_against_their_table(operator):
    assert DESCRIPTORS[operator].support is SUPPORTS[operator]
    assert DESCRIPTORS[operator].operator == operator


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("operator", "label"), ROWS)
def test_accepted(operator, label):
    for ranks, types in supported(TABLES[operator][label]):
        descriptor = described(operator, ranks, types)
        assert message_of(descriptor, label) == ""


@pytest.mark.parametrize("label", TABLES["NONZERO_COORDINATES"])
def test_coordinates_may_have_other_ranks_than_the_input(label):
    row = TABLES["NONZERO_COORDINATES"][label]
    for ranks in every_rank(row):
        descriptor = described("NONZERO_COORDINATES", ranks, typed(row, "FLOAT32"))
        assert message_of(descriptor, label) == ""


def is_new(ranks, types, before):
    """Whether the row before lacks one of these ranks or types."""
    return any(
        not low <= ranks[name] <= high or types[name].name not in names.split()
        for name, (low, high, names) in before.items()
    )


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("label", LEVELS)
@pytest.mark.parametrize("operator", TABLES)
def test_every_level(operator, label):
    """A level without a row of its own has the newest row before it."""
    row = row_at(operator, label)
    newest = list(TABLES[operator].values())[-1]
    for ranks, types in supported(newest):
        message = message_of(described(operator, ranks, types), label)
        refused = row is None or is_new(ranks, types, row)
        assert bool(message) == refused
        assert not refused or (message.startswith(f"{operator}: ") and label in message)


@pytest.mark.parametrize(
    ("operator", "label", "first"),
    [
        (operator, label, first)
        for operator, (first, *_) in TABLES.items()
        for label in LEVELS
        if LEVELS[label] < LEVELS[first]
    ],
)
def test_before_the_first_level(operator, label, first):
    ranks, types = supported(TABLES[operator][first])[0]
    message = message_of(described(operator, ranks, types), label)
    assert message == (
        f"{operator}: the operator exists from feature level {first} on, while the "
        f"feature level asked for is {label}."
    )


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("operator", "label"), [row for row in ROWS if level_before(row[1])]
)
def test_what_a_row_adds_is_refused_at_the_level_before(operator, label):
    below = level_before(label)
    before = row_at(operator, below)
    added = [
        case
        for case in supported(TABLES[operator][label])
        if before is None or is_new(*case, before)
    ]
    assert added
    for ranks, types in added:
        message = message_of(described(operator, ranks, types), below)
        assert message.startswith(f"{operator}: ")
        assert below in message


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("operator", "label", "tensor"), CELLS)
def test_ranks_outside_are_refused(operator, label, tensor):
    row = TABLES[operator][label]
    low, high, _ = row[tensor]
    types = typed(row, row[tensor][2].split()[0])
    for rank in (low - 1, high + 1):
        ranks = ranked(row, low) | {tensor: rank}
        message = message_of(described(operator, ranks, types), label)
        assert message.startswith(f"{operator}: tensor '{tensor}' has {rank} dim")
        assert "1 to 8" in message or label in message


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("operator", "label", "tensor"), CELLS)
def test_types_outside_are_refused(operator, label, tensor):
    row = TABLES[operator][label]
    low, _, names = row[tensor]
    for data_type in DATA_TYPES.keys() - set(names.split()):
        types = typed(row, names.split()[0]) | {tensor: DataType[data_type]}
        message = message_of(described(operator, ranked(row, low), types), label)
        assert message.startswith(f"{operator}: tensor '{tensor}' has data type ")
        assert data_type in message


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("data_type", ["UNKNOWN", "UINT4", "INT4"])
@pytest.mark.parametrize("operator", TABLES)
def test_types_that_no_operator_takes(operator, data_type):
    newest = list(TABLES[operator].values())[-1]
    ranks = {name: high for name, (_, high, _) in newest.items()}
    types = dict.fromkeys(newest, DataType[data_type])
    assert data_type in message_of(described(operator, ranks, types), "6_4")


@pytest.mark.parametrize("operator", ["PADDING", "PADDING1"])
@pytest.mark.parametrize("mode", MODES)
def test_padding_mode_by_level(operator, mode):
    tensor = TensorDesc(DataType.FLOAT32, (1, 1, 1, 2))
    value = (0.0,) if operator == "PADDING" else (DataType.FLOAT32, 0.0)
    padding = (4, (0,) * 4, (0,) * 4)
    descriptor = DESCRIPTORS[operator](
        tensor, tensor, PaddingMode[mode], *value, *padding
    )
    first = next(iter(TABLES[operator]))
    for label in LEVELS:
        if LEVELS[label] < LEVELS[first]:
            assert f"from feature level {first} on" in message_of(descriptor, label)
        elif LEVELS[label] < LEVELS[MODES[mode][1]]:
            message = message_of(descriptor, label)
            assert message.startswith(f"{operator}: PaddingMode {mode} exists from ")
            assert f"{MODES[mode][1]} on" in message
            assert label in message
        else:
            assert message_of(descriptor, label) == ""


def rows_of(markdown):
    """Returns the cells of a support table: level, tensor, ranks, data types."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")][2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [
        (level, name, ranks, set(types.split())) for level, name, ranks, types in cells
    ]


@pytest.mark.parametrize("operator", TABLES)
def test_markdown(operator):
    markdown = support_markdown(operator, SUPPORTS[operator])
    expected = [
        (
            level,
            name,
            f"{low} to {high}" if low < high else f"{low}",
            set(types.split()),
        )
        for level, tensors in TABLES[operator].items()
        for name, (low, high, types) in tensors.items()
    ]
    assert markdown.startswith(f"## {operator}\n\n| from level | tensor | ranks |")
    assert rows_of(markdown) == expected
