"""Support tables that several subjects share.

A table has the lowest rank, the highest rank and the types of each tensor.
"""

FLOATS = "FLOAT32 FLOAT16"
SMALL = f"{FLOATS} INT32 INT16 INT8 UINT32 UINT16 UINT8"
ALL = f"{SMALL} FLOAT64 INT64 UINT64"
INDEX = "INT64 INT32 UINT64 UINT32"


def matrices(ranks, types):
    """An input and an output of the same ranks and types."""
    return dict.fromkeys(("InputTensor", "OutputTensor"), (*ranks, types))
