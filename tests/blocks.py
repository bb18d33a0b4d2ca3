"""The sizes of the kernels' blocks, which the tests make small.

Pallas' interpreter takes time for every element of a block, and arrays would have to be
large to have several blocks. With the sizes below, a few hundred elements are many
blocks, of which the last one is cut.
"""

from types import ModuleType

import jax
import pytest

from dmljax.pallas import (
    _elementwise,
    _nonzero_coordinates,
    _nonzero_plan,
    _one_hot,
    _padding,
    _padding_plan,
)
from dmljax.pallas.tpu import _nonzero_coordinates as _tpu_nonzero_coordinates

Sizes = dict[ModuleType, dict[str, int]]

# Of the kernels for NVIDIA GPUs.
SMALL: Sizes = {
    _elementwise: {"BLOCK_BYTES": 64},
    _one_hot: {"BLOCK_BYTES": 64, "NARROW_BYTES": 64, "TILE": 32, "ROW": 16},
    # Two modules have the same name for the size of a block, or of a tile.
    _padding: {"TILE": 16, "GAPS": 4},
    _padding_plan: {"TILE": 16, "GAPS": 4},
    _nonzero_coordinates: {"BLOCK": 2048, "SCAN_WARPS": 2, "SCANNED": 1},
    _nonzero_plan: {"BLOCK": 2048},
}
# Of those for TPUs, whose interpreter takes time for every row.
SMALL_ON_TPU: Sizes = {_tpu_nonzero_coordinates: {"ROWS": 8, "REACH": 24}}
REAL: Sizes = {
    module: {name: getattr(module, name) for name in sizes}
    for module, sizes in SMALL.items()
}
# Only Pallas' interpreter needs small blocks; a GPU runs the blocks that users run.
INTERPRETED = jax.default_backend() != "gpu"


def put(patch: pytest.MonkeyPatch, sizes: Sizes) -> None:
    """Gives the constants of the kernels these values."""
    for module, constants in sizes.items():
        for name, value in constants.items():
            patch.setattr(module, name, value)
