"""All types of the operators, and bit patterns of these types."""

import numpy as np

from tests import samples, subjects

TYPES = sorted({name for one in subjects.SUBJECTS.values() for name in one.data_types})


def patterns(dtype):
    """Every bit pattern of types up to 16 bits; else special values and random bits."""
    if dtype.name in ("bool", "int4", "uint4"):
        return np.arange(-8, 8).astype(dtype)
    if dtype.itemsize <= 2:
        every = np.arange(2 ** (8 * dtype.itemsize))
        return every.astype(f"u{dtype.itemsize}").view(dtype)
    lines = [samples.any_bits((512,), dtype, seed) for seed in range(8)]
    one_bit = np.packbits(np.eye(8 * dtype.itemsize, dtype=bool), bitorder="little")
    return np.concatenate([*lines, one_bit.view(dtype)])
