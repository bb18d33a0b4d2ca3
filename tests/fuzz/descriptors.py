"""Makes random descriptors: valid ones, and ones that break one known rule.

How a descriptor of an operator is made is said in tests/subjects/. The support tables
there are typed a second time from the pages, so that a mistake in the package's tables
is not repeated here.
"""

import dataclasses
import math
import random

import numpy as np

import dmljax
from dmljax import DataType as T
from dmljax import FeatureLevel, PaddingMode, TensorDesc, TensorFlags
from tests.samples import INT32_MAX, INT32_MIN
from tests.subjects import DESCRIBED

NONFINITE = (math.inf, -math.inf, math.nan)
MODE_LEVELS = {PaddingMode.SYMMETRIC: 0x3000, PaddingMode.WRAP: 0x6400}


def supported(desc: dmljax.OperatorDesc, level: int) -> bool:
    """Whether the pages support a valid descriptor at a level."""
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


class Maker:
    """Makes random descriptors."""

    def __init__(self, generator: random.Random) -> None:
        self.random = generator

    def desc(self) -> dmljax.OperatorDesc:
        """Makes a descriptor of any operator that is valid at the newest level."""
        return DESCRIBED[self.random.choice(sorted(DESCRIBED))].make(self)

    def level(self) -> FeatureLevel:
        """Chooses the newest level, or any other."""
        newest = self.random.random() < 0.7
        return max(FeatureLevel) if newest else self.random.choice(list(FeatureLevel))

    # Parts

    def sizes(self, low: int = 1, high: int = 8, most: int = 40) -> tuple[int, ...]:
        """Chooses sizes of at most `most` elements, often with ones among them."""
        rank, sizes = self.random.randint(low, high), []
        for _ in range(rank):
            room = most // math.prod(sizes)
            size = self.random.choice((1, 1, 2, 3, 4, 5, 7, 16, 33))
            sizes.append(size if size <= room else 1)
        self.random.shuffle(sizes)
        return tuple(sizes)

    def data_type(self, names: str) -> T:
        """Chooses one of the data types that a support table names."""
        return T[self.random.choice(names.split())]

    def tensor(
        self, data_type: T, sizes: tuple[int, ...], *, output: bool = False
    ) -> TensorDesc:
        """Makes a tensor, packed or with strides, and with any optional fields."""
        strides = None
        if self.random.random() < 0.55:
            strides = self.spread(sizes)
            if not output and self.random.random() < 0.5:
                strides = tuple(self.random.choice((s, 0, 1, 5)) for s in strides)
        tensor = TensorDesc(data_type, sizes, strides)
        changes = {}
        if self.random.random() < 0.2:
            more = self.random.choice((0, 1, 3, 4, 8, 60))
            changes["total_tensor_size_in_bytes"] = tensor.implied_size_in_bytes + more
        if self.random.random() < 0.1:
            changes["flags"] = TensorFlags.OWNED_BY_DML
        if self.random.random() < 0.1:
            power = 2 ** self.random.randint(0, 9)
            width = tensor.dtype.itemsize
            changes["guaranteed_base_offset_alignment"] = max(power, width)
        return dataclasses.replace(tensor, **changes)

    def spread(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Makes strides for any order of the axes, with gaps."""
        order, strides, step = list(range(len(sizes))), [0] * len(sizes), 1
        self.random.shuffle(order)
        step += self.random.choice((0, 0, 1, 2))
        for axis in order:
            strides[axis] = step
            step = step * sizes[axis] + self.random.choice((0, 0, 0, 1, 3))
        return tuple(strides)

    def int32(self) -> int:
        """Chooses a diagonal, near the matrix or at the limits of INT32."""
        far = (INT32_MIN, INT32_MIN + 1, INT32_MAX - 1, INT32_MAX)
        return self.random.choice((*far, *range(-6, 7), 2**30, -(2**30)))

    def number(self, data_type: T) -> int | float:
        """Chooses a number of the data type, now and then a limit, NaN or infinity."""
        if data_type.dtype.kind == "f":
            return self.random.choice(
                (0.0, -0.0, 1.5, -7.25, 0.1, 65504.0, 6e-8, 1e-40, *NONFINITE)
            )
        limits = np.iinfo(data_type.dtype)
        low, high = int(limits.min), int(limits.max)
        return self.random.choice((low, high, 0, 1, high // 3, low // 2, high - 1))

    def float32(self) -> float:
        """Chooses a FLOAT attribute."""
        return self.random.choice(
            (
                *(0.0, -0.0, 10.6, -10.6, 255.5, -1.0, 3e9, -3e9, 1e19, 1e30, 0.1, 7),
                *(*NONFINITE, 65519.9, 65520.0, 1e-8, 2**31, 2**63, 2**64),
            )
        )


def made(name: str, count: int) -> list[dmljax.OperatorDesc]:
    """Makes valid descriptors of one operator, the same in every run."""
    maker = Maker(random.Random(name))
    return [DESCRIBED[name].make(maker) for _ in range(count)]


# Breaking a rule


def broken(maker: Maker, desc: dmljax.OperatorDesc) -> dmljax.OperatorDesc:
    """Breaks one rule of a descriptor, which every page has."""
    name = maker.random.choice(list(desc.tensors()))
    tensor = getattr(desc, name)
    rank, width = len(tensor.sizes), tensor.dtype.itemsize
    axis = maker.random.randrange(rank)

    def replaced(values: tuple[int, ...], value: object) -> tuple[object, ...]:
        return (*values[:axis], value, *values[axis + 1 :])

    changes = [
        {"sizes": replaced(tensor.sizes, maker.random.choice((0, -1, 2**32, 2.0)))},
        {"sizes": (*tensor.sizes, *(1,) * (9 - rank))},
        {"sizes": ()},
        {"strides": (1,) * (rank + 1)},
        {"strides": replaced((1,) * rank, maker.random.choice((-1, 2**32, "1", 1.0)))},
        {"total_tensor_size_in_bytes": tensor.implied_size_in_bytes - 1},
        {"total_tensor_size_in_bytes": maker.random.choice((-1, "8", 1.5))},
        {"guaranteed_base_offset_alignment": maker.random.choice((3, -4, 2**20 + 1))},
        {"data_type": maker.random.choice((T.UNKNOWN, T.UINT4, T.INT4))},
    ]
    if width > 1:
        changes.append({"guaranteed_base_offset_alignment": width // 2})
    if name in desc.outputs and max(tensor.sizes) > 1:
        changes.append({"strides": tuple(int(n == 1) for n in tensor.sizes)})
    others = [
        {key: value}
        for key, value in _broken_attributes(maker, desc).items()
        if hasattr(desc, key)
    ]
    if others and maker.random.random() < 0.4:
        return dataclasses.replace(desc, **maker.random.choice(others))
    changed = dataclasses.replace(tensor, **maker.random.choice(changes))
    return dataclasses.replace(desc, **{name: changed})


def _broken_attributes(maker: Maker, desc: dmljax.OperatorDesc) -> dict[str, object]:
    """Returns, for each attribute, a value that no operator accepts."""
    past = maker.random.choice((INT32_MIN - 1, INT32_MAX + 1, 2**64, 1.5, "0", None))
    start = getattr(desc, "start_padding", ())
    rank = getattr(desc, "dimension_count", 0)
    return {
        "diagonal_fill_begin": past,
        "diagonal_fill_end": past,
        "offset": past,
        "axis": maker.random.choice((8, 2**32 - 1, -9, "0", 1.0)),
        "start_padding": maker.random.choice(
            ((*start, 0), (-1, *start[1:]), start[1:], (2**32, *start[1:]), 1)
        ),
        "dimension_count": maker.random.choice((rank + 1, rank - 1, -rank, 2**32)),
        "padding_mode": maker.random.choice((5, -1, "EDGE", None)),
        "value_data_type": maker.random.choice((T.UNKNOWN, T.INT4, 99, "INT8")),
        "padding_value_data_type": maker.random.choice((T.UNKNOWN, T.INT4, 99)),
    }
