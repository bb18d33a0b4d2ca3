"""Block sizes of the kernels: small ones for tests, and those of users.

With real sizes only large arrays have several programs, and a CPU takes long to
simulate them. With the small sizes, a few hundred or thousand elements have several
programs, and the last program is cut.
"""

import jax

from dmljax.pallas.gpu import _nonzero_plan

# These are the sizes of the kernel for NVIDIA GPUs.
SMALL = {"WARPS": 4, "PROGRAMS": 3, "MOST_CHUNKS": 2, "FEW_TILES": 6}
REAL = {name: getattr(_nonzero_plan, name) for name in SMALL}
# Only a CPU simulates the kernels for GPUs, with small blocks.
SIMULATED = jax.default_backend() != "gpu"


def put(patch, sizes):
    """Gives the constants of the kernel these values."""
    for name, value in sizes.items():
        patch.setattr(_nonzero_plan, name, value)
