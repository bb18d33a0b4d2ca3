"""Support tables that several subjects share.

A table has the lowest rank, the highest rank and the types of each tensor.
"""

FLOATS = "FLOAT32 FLOAT16"
SMALL = f"{FLOATS} INT32 INT16 INT8 UINT32 UINT16 UINT8"
ALL = f"{SMALL} FLOAT64 INT64 UINT64"
INDEX = "INT64 INT32 UINT64 UINT32"


def table(*groups, **levels):
    """A table of tensors with the same ranks. Each group has types of its own."""
    return {
        level: {
            name: (low, high, types)
            for names, types in zip(groups, lists, strict=True)
            for name in names.split()
        }
        for level, (low, high, *lists) in levels.items()
    }


def matrices(**levels):
    """The table of an input and an output of the same ranks and types."""
    return table("InputTensor OutputTensor", **levels)
