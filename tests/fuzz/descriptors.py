"""Makes random descriptors: valid ones, and ones that break one known rule.

The support tables are typed a second time from the pages, so that a mistake in the
package's tables is not repeated here.
"""

import dataclasses
import math
import random

import numpy as np

import dmljax
from dmljax import DataType as T
from dmljax import FeatureLevel, PaddingMode, TensorDesc, TensorFlags

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
FLOATS = (T.FLOAT32, T.FLOAT16)
NARROW = (*FLOATS, T.INT32, T.INT16, T.INT8, T.UINT32, T.UINT16, T.UINT8)
ALL = (*NARROW, T.FLOAT64, T.INT64, T.UINT64)
INDICES = (T.INT64, T.INT32, T.UINT64, T.UINT32)
# For each operator, rows of a level, the ranks and types that tensors may have from it
# on, and the types of indices. Conditions and counts have types of their own.
LEVELS = {
    "DIAGONAL_MATRIX1": [(0x5100, (2, 4), ALL, ())],
    "DIAGONAL_MATRIX": [
        (0x2000, (4, 4), FLOATS, ()),
        (0x2100, (4, 4), NARROW, ()),
        (0x4000, (2, 4), NARROW, ()),
        (0x5100, (2, 4), ALL, ()),
    ],
    "ONE_HOT": [
        (0x2000, (4, 4), FLOATS, (T.UINT32,)),
        (0x2100, (4, 4), NARROW, (T.UINT32,)),
        (0x3000, (1, 8), NARROW, INDICES),
        (0x4100, (1, 8), ALL, INDICES),
    ],
    "ELEMENT_WISE_IF": [
        (0x2000, (4, 4), (T.FLOAT16,), ()),
        (0x3000, (1, 8), NARROW, ()),
        (0x5000, (1, 8), ALL, ()),
    ],
    "NONZERO_COORDINATES": [(0x3000, (4, 5), NARROW, ()), (0x4000, (1, 8), NARROW, ())],
    "PADDING": [
        (0x1000, (4, 5), FLOATS, ()),
        (0x2100, (4, 5), NARROW, ()),
        (0x3100, (1, 8), NARROW, ()),
        (0x5000, (1, 8), ALL, ()),
    ],
    "PADDING1": [(0x5000, (1, 8), ALL, ())],
}
MODE_LEVELS = {PaddingMode.SYMMETRIC: 0x3000, PaddingMode.WRAP: 0x6400}


def supported(desc: dmljax.OperatorDesc, level: int) -> bool:
    """Whether the pages support a valid descriptor at a level."""
    rows = [row for row in LEVELS[desc.operator] if row[0] <= level]
    if not rows or level < MODE_LEVELS.get(getattr(desc, "padding_mode", None), 0):
        return False
    _, (low, high), types, indices = rows[-1]
    for name, tensor in desc.tensors().items():
        rank, least = len(tensor.sizes), low
        if name == "output_coordinates_tensor":
            least = max(low, 2)
        if not least <= rank <= high:
            return False
        own = {"indices_tensor": indices, "condition_tensor": (T.UINT8,)}
        own |= dict.fromkeys(("output_count_tensor", "output_coordinates_tensor"))
        choices = own.get(name, types)
        if choices and tensor.data_type not in choices:
            return False
    return True


class Maker:
    """Makes random descriptors."""

    def __init__(self, generator: random.Random) -> None:
        self.random = generator

    def desc(self) -> dmljax.OperatorDesc:
        """Makes a descriptor of any operator that is valid at the newest level."""
        return getattr(self, self.random.choice(sorted(LEVELS)).lower())()

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
                (0.0, -0.0, 1.5, -7.25, 0.1, math.inf, -math.inf, 65504.0, 6e-8, 1e-40)
            )
        limits = np.iinfo(data_type.dtype)
        low, high = int(limits.min), int(limits.max)
        return self.random.choice((low, high, 0, 1, high // 3, low // 2, high - 1))

    def float32(self) -> float:
        """Chooses a FLOAT attribute."""
        return self.random.choice(
            (
                *(0.0, -0.0, 10.6, -10.6, 255.5, -1.0, 3e9, -3e9, 1e19, 1e30, 0.1, 7),
                *(math.inf, -math.inf, 65519.9, 65520.0, 1e-8, 2**31, 2**63, 2**64),
            )
        )

    # Operators

    def diagonal_matrix1(self) -> dmljax.DiagonalMatrix1Desc:
        sizes, data_type = self.sizes(2, 4), self.random.choice(ALL)
        given = self.random.random() < 0.6
        return dmljax.DiagonalMatrix1Desc(
            self.tensor(data_type, sizes) if given else None,
            self.tensor(data_type, sizes, output=True),
            data_type,
            self.number(data_type),
            self.int32(),
            self.int32(),
        )

    def diagonal_matrix(self) -> dmljax.DiagonalMatrixDesc:
        output = self.tensor(self.random.choice(ALL), self.sizes(2, 4), output=True)
        return dmljax.DiagonalMatrixDesc(output, self.int32(), self.float32())

    def one_hot(self) -> dmljax.OneHotDesc:
        sizes = self.sizes()
        axis, data_type = self.random.randrange(len(sizes)), self.random.choice(ALL)
        values = list(self.sizes(len(sizes), len(sizes), most=5))
        if math.prod(values) < 2:
            values[self.random.randrange(len(sizes))] = 2
        return dmljax.OneHotDesc(
            self.tensor(
                self.random.choice(INDICES), (*sizes[:axis], 1, *sizes[axis + 1 :])
            ),
            self.tensor(data_type, tuple(values)),
            self.tensor(data_type, sizes, output=True),
            axis,
        )

    def element_wise_if(self) -> dmljax.ElementWiseIfDesc:
        sizes, data_type = self.sizes(), self.random.choice(ALL)
        return dmljax.ElementWiseIfDesc(
            self.tensor(T.UINT8, sizes),
            self.tensor(data_type, sizes),
            self.tensor(data_type, sizes),
            self.tensor(data_type, sizes, output=True),
        )

    def nonzero_coordinates(self) -> dmljax.NonzeroCoordinatesDesc:
        sizes = self.sizes(most=30)
        effective = len(sizes) - next(
            (i for i, size in enumerate(sizes) if size > 1), len(sizes)
        )
        columns = self.random.randint(max(effective, 1), len(sizes))
        rows = (math.prod(sizes), columns)
        ones = (1,) * self.random.randint(0, 6)
        count = (1,) * self.random.randint(1, 8)
        return dmljax.NonzeroCoordinatesDesc(
            self.tensor(self.random.choice(NARROW), sizes),
            self.tensor(T.UINT32, count, output=True),
            self.tensor(T.UINT32, (*ones, *rows), output=True),
        )

    def _padded(self) -> tuple[TensorDesc, TensorDesc, tuple[int, ...], ...]:
        sizes, data_type = self.sizes(most=20), self.random.choice(ALL)
        room, start, end = 150, [], []
        padded = list(sizes)
        for axis, size in enumerate(sizes):
            others = math.prod(padded) // size
            most = max(room // others - size, 0)
            both = [
                min(self.random.choice((0, 0, 1, 2, 3, 9)), most // 2) for _ in "se"
            ]
            start.append(both[0])
            end.append(both[1])
            padded[axis] = size + sum(both)
        source = self.tensor(data_type, sizes)
        output = self.tensor(data_type, tuple(padded), output=True)
        return source, output, tuple(start), tuple(end)

    def padding(self) -> dmljax.PaddingDesc:
        source, output, start, end = self._padded()
        mode = self.random.choice(list(PaddingMode))
        rank = len(start)
        return dmljax.PaddingDesc(
            source, output, mode, self.float32(), rank, start, end
        )

    def padding1(self) -> dmljax.Padding1Desc:
        source, output, start, end = self._padded()
        mode, data_type = self.random.choice(list(PaddingMode)), output.data_type
        value = self.number(data_type)
        return dmljax.Padding1Desc(
            source, output, mode, data_type, value, len(start), start, end
        )


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
