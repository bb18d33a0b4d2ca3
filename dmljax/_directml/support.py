"""Feature levels and support tables: the ranks and types of tensors at each level.

An operator declares its table in its descriptor, as data. A table limits descriptors
only: the public functions take every type and rank that JAX has.
"""

import enum
from collections.abc import Mapping
from typing import Any

from dmljax._check import ArgumentError
from dmljax._directml.tensor import DataType, TensorDesc


class FeatureLevel(enum.IntEnum):
    """Names the versions of DirectML's operators, as DML_FEATURE_LEVEL does.

    A later level has a greater number. ``create_operator`` checks a descriptor at one
    level, by default at the newest.

    >>> FeatureLevel.V6_4 > FeatureLevel.V5_2, FeatureLevel.V5_2.label
    (True, '5_2')
    >>> FeatureLevel(0x3100).name
    'V3_1'
    """

    __module__ = "dmljax"

    V1_0 = 0x1000
    V2_0 = 0x2000
    V2_1 = 0x2100
    V3_0 = 0x3000
    V3_1 = 0x3100
    V4_0 = 0x4000
    V4_1 = 0x4100
    V5_0 = 0x5000
    V5_1 = 0x5100
    V5_2 = 0x5200
    V6_0 = 0x6000
    V6_1 = 0x6100
    V6_2 = 0x6200
    V6_3 = 0x6300
    V6_4 = 0x6400

    @property
    def label(self) -> str:
        """The level as DirectML writes it, such as 6_4."""
        return self.name[1:]


# The lists of types in the tables. Messages and the documentation show types
# in this order: floats before integers, signed before unsigned, wide before narrow.
FLOATS = (DataType.FLOAT32, DataType.FLOAT16)
UP_TO_64_BITS = (
    DataType.FLOAT64,
    *FLOATS,
    DataType.INT64,
    DataType.INT32,
    DataType.INT16,
    DataType.INT8,
    DataType.UINT64,
    DataType.UINT32,
    DataType.UINT16,
    DataType.UINT8,
)
UP_TO_32_BITS = tuple(t for t in UP_TO_64_BITS if t.dtype.itemsize <= 4)

# By feature level and by the C name of a tensor: the least and the greatest number of
# its dimensions, and its data types. A level that is missing has the entry of the level
# before it. Before the first level, the operator does not exist.
SupportTable = Mapping[
    FeatureLevel, Mapping[str, tuple[int, int, tuple[DataType, ...]]]
]


def support_table(*groups: str, **levels: tuple[Any, ...]) -> SupportTable:
    """Makes the support table of an operator whose tensors all have the same ranks.

    Each of `groups` names tensors of the same types. A level gives the least and the
    greatest rank of all tensors, and then the types of each group.

    >>> table = support_table("InputTensor OutputTensor", V2_0=(4, 5, FLOATS))
    >>> table[FeatureLevel.V2_0]["OutputTensor"] == (4, 5, FLOATS)
    True
    """
    return {
        FeatureLevel[level]: {
            name: (low, high, types)
            for group, types in zip(groups, lists, strict=True)
            for name in group.split()
        }
        for level, (low, high, *lists) in levels.items()
    }


def check_support(
    table: SupportTable,
    level: FeatureLevel,
    tensors: Mapping[str, TensorDesc],
) -> None:
    """Requires that `level` supports the ranks and the types of all tensors."""
    levels = [each for each in table if each <= level]
    if not levels:
        raise ArgumentError(
            f"the operator exists from feature level {min(table).label} on, "
            f"while the feature level asked for is {level.label}."
        )
    # The newest entry is complete, and replaces the entries of earlier levels.
    entry = table[max(levels)]
    supports = f"feature level {level.label} supports"
    for name, tensor in tensors.items():
        low, high, data_types = entry[name]
        ranks, types = _as_text(*entry[name])
        rank = len(tensor.sizes)
        if not low <= rank <= high:
            raise ArgumentError(f"tensor '{name}' has rank {rank}; {supports} {ranks}.")
        if tensor.data_type not in data_types:
            raise ArgumentError(
                f"tensor '{name}' has data type {tensor.data_type.name}; "
                f"{supports} {types}."
            )


def support_markdown(operator: str, table: SupportTable) -> str:
    """Writes the support table of an operator in Markdown."""
    lines = [
        f"## {operator}",
        "",
        "| from level | tensor | ranks | data types |",
        "|---|---|---|---|",
    ]
    for level, tensors in table.items():
        for name, entry in tensors.items():
            ranks, types = _as_text(*entry)
            lines.append(f"| {level.label} | {name} | {ranks} | {types} |")
    return "\n".join(lines)


def _as_text(low: int, high: int, data_types: tuple[DataType, ...]) -> tuple[str, str]:
    """Returns the ranks and the types of an entry as text."""
    ranks = f"{low} to {high}"
    if low == high:
        ranks = str(low)
    return ranks, " ".join(data_type.name for data_type in data_types)
