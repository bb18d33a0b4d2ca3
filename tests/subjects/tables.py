"""Tables and rules that several subjects share.

A support table has the lowest rank, the highest rank and the types of each tensor.
"""

import math

import numpy as np

FLOATS = "FLOAT32 FLOAT16"
SMALL = f"{FLOATS} INT32 INT16 INT8 UINT32 UINT16 UINT8"
ALL = f"{SMALL} FLOAT64 INT64 UINT64"
INDEX = "INT64 INT32 UINT64 UINT32"


def matrices(ranks, types):
    """An input and an output of the same ranks and types."""
    return dict.fromkeys(("InputTensor", "OutputTensor"), (*ranks, types))


def same(*values):
    """Whether all values are equal."""
    return all(value == values[0] for value in values)


def typed(output, data_type, value):
    """Whether a value has the output's type and is in its range."""
    if data_type.name.startswith("FLOAT") or data_type != output.data_type:
        return data_type == output.data_type
    limits = np.iinfo(output.dtype)
    whole = math.isfinite(value) and value == int(value)
    return whole and limits.min <= value <= limits.max
