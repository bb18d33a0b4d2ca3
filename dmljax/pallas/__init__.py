"""Pallas kernels of NONZERO_COORDINATES and PADDING; not public.

A *kernel* is a function that many programs run at once, each on its share of an array.
`gpu` has the kernels for NVIDIA GPUs, which Pallas compiles through Mosaic GPU, and
`tpu` those for TPUs, which it compiles through Mosaic. A kernel's file offers its
operator one more *form*: a function of whole arrays (`dmljax._types.Form`).

Here belongs how a form runs on such hardware. What an operator computes is in
`dmljax._coordinates`; the kernels for GPUs repeat it for numbers without a sign.
`dmljax._primitive` chooses the form, and imports a kernel when it is lowered.

All files use these words in one sense each. `gpu` and `tpu` define more of them.

- *program*: one run of a kernel, for one point of the grid.
- *plan*: the sizes, types and attributes of a call, and what follows from them before
  it runs. A kernel takes it as a static argument, so that Mosaic sees constants.
- *line*: one tensor of a batch, made flat.
- *offset*: how many elements lie before one in a line, or in another flat array.
- *position*: the coordinate of an element along one dimension.
"""

import jax
from jax.sharding import AbstractMesh

from dmljax._jax import code_per_thread, compute_capability, module

# Pallas' backends, by platform: Mosaic GPU for NVIDIA GPUs, and the one for TPUs.
BACKENDS = {
    "cuda": "jax.experimental.pallas.mosaic_gpu",
    "tpu": "jax.experimental.pallas.tpu",
}
# The oldest GPUs that the kernels run on. Mosaic GPU starts every kernel with
# instructions that Hopper brought. JAX 0.11.2 leaves them out for older GPUs: the
# kernels are then compiled for 8.0 and 8.9 (tests/test_compiled.py).
LEAST_CAPABILITY = (8, 0) if jax.__version_info__ >= (0, 11, 2) else (9, 0)
# The oldest GPUs that they run on by default. No kernel was run on an older one.
LEAST_BY_DEFAULT = (9, 0)
WARP = 32  # the threads of a GPU that run together and can exchange values
# Kernels and forms of one device are lowered within it. Mosaic GPU otherwise asks for
# the GPU of this machine, and the operations of a form how their results are sharded.
NO_MESH = AbstractMesh((), ())


def kernels_available(platform: str) -> bool:
    """Whether the installed JAX has the backend, and what the kernels use of it."""
    name = BACKENDS.get(platform)
    known = name is not None and module(name) is not None
    return known and (platform != "cuda" or code_per_thread() is not None)


def served(platform: str, least: tuple[int, int]) -> bool:
    """Whether the GPUs of this machine, if it has any, are not older than `least`."""
    found = compute_capability()
    return platform != "cuda" or found is None or found >= least
