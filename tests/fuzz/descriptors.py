"""Random descriptors, and odd values for their fields.

tests/subjects/ has a function for each operator that makes its descriptors.
"""

import dataclasses
import math

import numpy as np

from dmljax import DataType as T
from dmljax import TensorDesc
from tests import oracles
from tests.samples import INT32_MAX, INT32_MIN
from tests.subjects import DESCRIBED

# The last is in the middle of two FLOAT16, but only as FLOAT32.
FLOATS = [0.0, -0.0, 1.5, -7.25, 0.1, 65504.0, 65519.9, 65520.0, 6e-8, 1e-40]
FLOATS += [math.inf, -math.inf, math.nan, 1 + 2**-11 + 2**-30]
WHOLE = [10.6, -10.6, 255.5, -1.0, 3e9, -3e9, 1e19, 1e30, 7, 2**31, 2**63, 2**64]


class Maker:
    """Makes random descriptors."""

    def __init__(self, generator):
        self.random = generator

    def desc(self):
        """Makes a descriptor of any operator that is valid at the newest level."""
        return DESCRIBED[self.random.choice(sorted(DESCRIBED))].make(self)

    # Parts

    def sizes(self, low=1, high=8, most=40):
        """Chooses sizes with at most `most` elements, often with axes of size 1."""
        sizes = []
        for _ in range(self.random.randint(low, high)):
            room = most // math.prod(sizes)
            size = self.random.choice((1, 1, 2, 3, 4, 5, 7, 16, 33))
            sizes.append(size if size <= room else 1)
        self.random.shuffle(sizes)
        return tuple(sizes)

    def data_type(self, names):
        """Chooses one of the data types that a support table names."""
        return T[self.random.choice(names.split())]

    def tensor(self, data_type, sizes, *, output=False):
        """Makes a tensor, with any strides or none, and with any optional fields."""
        choose = self.random.choice
        spread = self.spread(sizes)
        layouts = [None, None, oracles.packed_strides(sizes), spread]
        if not output:
            layouts.append(tuple(choose((stride, 0, 1, 5)) for stride in spread))
        tensor = TensorDesc(data_type, sizes, choose(layouts))
        sums = [tensor.implied_size_in_bytes + more for more in (0, 1, 4, 60)]
        power = 2 ** self.random.randint(0, 9)
        aligned = max(power, tensor.dtype.itemsize)
        return dataclasses.replace(
            tensor,
            total_tensor_size_in_bytes=choose([None] * 20 + sums),
            flags=choose((0, 0, 0, 0, 0, 1)),
            guaranteed_base_offset_alignment=choose((0, 0, 0, 0, 0, aligned)),
        )

    def tensors(self, types, *sizes):
        """Makes tensors of one data type. The last is an output."""
        data_type = self.data_type(types)
        tensors = [self.tensor(data_type, each) for each in sizes[:-1]]
        return *tensors, self.tensor(data_type, sizes[-1], output=True)

    def spread(self, sizes):
        """Makes strides for any order of the axes, with gaps."""
        strides = [0] * len(sizes)
        step = 1 + self.random.choice((0, 0, 1, 2))
        for axis in self.random.sample(range(len(sizes)), len(sizes)):
            strides[axis] = step
            if sizes[axis] == 1:  # whose stride counts for nothing
                strides[axis] = self.random.choice((step, 2**32 - 1))
            step = step * sizes[axis] + self.random.choice((0, 0, 0, 1, 3))
        return tuple(strides)

    def int32(self):
        """Chooses a diagonal, near the matrix or at the limits of INT32."""
        far = (INT32_MIN, INT32_MIN + 1, INT32_MAX - 1, INT32_MAX)
        return self.random.choice((*far, *range(-6, 7)))

    def number(self, data_type):
        """Chooses a number of the data type, now and then a limit, NaN or infinity."""
        if data_type.dtype.kind == "f":
            return self.random.choice(FLOATS)
        low, high = np.iinfo(data_type.dtype).min, np.iinfo(data_type.dtype).max
        return self.random.choice((low, high, 0, 1, high // 3, high - 1))

    def float32(self):
        """Chooses a FLOAT attribute."""
        return self.random.choice(FLOATS + WHOLE)


# Limits of C's types and of the rules, and values of other types.
ODD = [-1, 0, 1, 2, 8, 9, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**64]
ODD += [1.5, "1", True, None, 10**5000, "long " * 5000]
ODD += [np.timedelta64(2, "s"), np.ma.masked_array(1, True)]
