"""DirectML's rules a second time: whether a descriptor must be accepted.

The support tables and the rules of each operator are in tests/subjects/, typed from
DirectML's pages. This second version calls no check of the package, so the fuzzer finds
a rule that the package forgets or adds.
"""

import enum
import math
import sys

from dmljax import FeatureLevel, PaddingMode, TensorDesc
from tests import oracles
from tests.subjects import DESCRIBED, tables

MODE_LEVELS = {PaddingMode.SYMMETRIC: 0x3000, PaddingMode.WRAP: 0x6400}
# Tensors that may differ in type from the others.
OTHER_TYPES = ["condition_tensor", "indices_tensor", "output_count_tensor"]
OTHER_TYPES += ["output_coordinates_tensor"]
LARGEST = int(sys.float_info.max)


def accepts(desc, level):
    """Whether the descriptor is legal at a level."""
    fields = vars(desc)
    if not all(_legal(desc.operator, name, value) for name, value in fields.items()):
        return False
    tensors = desc.tensors()
    legal = [_legal_tensor(t, output=n in desc.outputs) for n, t in tensors.items()]
    same = [t.data_type for n, t in tensors.items() if n not in OTHER_TYPES]
    if not (all(legal) and tables.same(*same) and supported(desc, level)):
        return False
    return DESCRIBED[desc.operator].fits(desc)


def supported(desc, level):
    """Whether the tables have the mode, and the ranks and types of all tensors."""
    table = DESCRIBED[desc.operator].table.items()
    rows = [row for label, row in table if FeatureLevel[f"V{label}"] <= level]
    if not rows or level < MODE_LEVELS.get(getattr(desc, "padding_mode", None), 0):
        return False
    for name, tensor in desc.tensors().items():
        low, high, types = rows[-1][name.title().replace("_", "")]
        supports_type = tensor.data_type.name in types.split()
        if not (low <= len(tensor.sizes) <= high and supports_type):
            return False
    return True


def _integers(*values, low=0, high=2**32 - 1):
    return all(type(value) is int and low <= value <= high for value in values)


def _legal(operator, name, value):
    """Whether a field is legal by itself.

    A legal value has the type of the field in the subject's example.
    """
    usual = getattr(DESCRIBED[operator].example, name)
    if isinstance(usual, TensorDesc):
        optional = (operator, name) == ("DIAGONAL_MATRIX1", "input_tensor")
        return isinstance(value, TensorDesc) or (optional and value is None)
    if isinstance(usual, enum.IntEnum):
        return isinstance(value, type(usual))
    if isinstance(usual, tuple):
        return isinstance(value, tuple) and _integers(*value)
    *_, word = name.split("_")
    if word == "value":
        return type(value) is float or _integers(value, low=-LARGEST, high=LARGEST)
    if word in ("axis", "count"):
        return _integers(value)
    return _integers(value, low=-(2**31), high=2**31 - 1)  # a diagonal


def _legal_tensor(tensor, *, output):
    """Whether a tensor is legal by itself."""
    sizes = tensor.sizes
    strides = tensor.strides
    known = 1 <= tensor.data_type <= 11 and 1 <= len(sizes) <= 8
    if not (known and _integers(*sizes, low=1) and math.prod(sizes) < 2**32):
        return False
    if strides and not (_integers(*strides) and len(strides) == len(sizes)):
        return False
    width = tensor.dtype.itemsize
    implied = oracles.implied_bytes(sizes, strides, width)
    total = tensor.total_tensor_size_in_bytes
    size = implied if total is None else total
    if not _integers(size, low=implied, high=2**64 - 1) or tensor.flags not in (0, 1):
        return False
    power = tensor.guaranteed_base_offset_alignment
    powers = [0] + [2**i for i in range(32) if 2**i >= width]
    if not (_integers(power) and power in powers):
        return False
    if not (strides and output):
        return True
    extent = oracles.implied_bytes(sizes, strides, 4) // 4
    if max(extent, (total or 0) // width) >= 2**32:
        return False
    axes = [(n - 1, step) for n, step in zip(sizes, strides, strict=True) if n > 1]
    # Of two equal strides each is within reach of the other.
    for axis in axes:
        others = [other for other in axes if other is not axis and other[1] <= axis[1]]
        if axis[1] <= sum(last * step for last, step in others):
            return False
    return True
