"""Block sizes of the kernels: small ones for tests, and those of users.

With real sizes only large arrays have several programs, and a CPU takes long to
simulate them. With the small sizes, a few hundred or thousand elements have several
programs, and the last program is cut.
"""

import jax

from dmljax.pallas.gpu import _nonzero_plan

# Of the kernels for NVIDIA GPUs.
SMALL = {
    _nonzero_plan: {
        "WARPS": 4,
        "PROGRAMS": 3,
        "MOST_CHUNKS": 2,
        "FEW_TILES": 6,
    }
}
REAL = {
    module: {name: getattr(module, name) for name in sizes}
    for module, sizes in SMALL.items()
}
# Only a CPU simulates the kernels for GPUs, with small blocks.
SIMULATED = jax.default_backend() != "gpu"


def put(patch, sizes):
    """Gives the constants of the kernels these values."""
    for module, constants in sizes.items():
        for name, value in constants.items():
            patch.setattr(module, name, value)
