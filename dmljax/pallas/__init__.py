"""Pallas kernels, one file for each operator that gains from one; not public.

A *kernel* is a function that many programs run at once, each on its share of an array.
This folder has the kernels for NVIDIA GPUs, which Pallas compiles through Triton or
through Mosaic GPU, and `tpu` has those for TPUs. A kernel's file offers its
operator one more *form*: a function of whole arrays (`dmljax._tensor.Form`). Here
belongs how a form runs on such hardware. What an operator computes is in
`dmljax._coordinates`, and `dmljax._primitive` chooses the form.

Read `_launch` first, which makes every call of Pallas. `_elementwise` and `tpu._blocks`
are frames that several operators share, and `_words` packs narrow elements. `_threads`
is for kernels that say what one thread does, and `_lockstep` runs them on a CPU.

All files use these words in one sense each:

- *program*: one run of a kernel's body, for one point of the grid.
- *plan*: what is known about a call before it runs, such as sizes and types. A kernel
  takes it as a static argument, so that Triton and Mosaic see constants.
- *block*: what one program handles. *tile*: a two-dimensional block on a GPU; on a TPU,
  the rows and columns of an array that share vector registers.
- *position*: the coordinate of an element along one dimension.
- *offset*: how many elements, or words, lie before one in a flat array.
- *shared*: an operand is shared along a dimension if it has size 1 there while the
  output has more. All output elements along it then read the same element.
- *bits*: an integer that has the same bits as an element, whatever its type.
- *word*: an unsigned integer that holds one, two or four neighbouring elements. *slot*:
  which of these an element is; slot 0 is the lowest bits. GPUs only.
- *bit word*: 32 bits that say which of 32 elements are not zero. Only
  `_nonzero_coordinates` has them.
- *masked*: a masked load or store skips elements for which its mask is false.
"""

import contextlib
import importlib.util
import warnings
from collections.abc import Iterator, Mapping

import jax
from jax.sharding import AbstractDevice, AbstractMesh, use_abstract_mesh

from dmljax._jax import code_per_thread, compute_capability

# The backends of Pallas: Triton and Mosaic GPU for NVIDIA GPUs, and the one for TPUs.
BACKENDS = {
    "triton": "jax.experimental.pallas.triton",
    "mosaic": "jax.experimental.pallas.mosaic_gpu",
    "tpu": "jax.experimental.pallas.tpu",
}
# The oldest GPUs that the kernels of a backend run on. Mosaic GPU starts every kernel
# with instructions that Hopper brought. JAX 0.11.2 leaves them out for older GPUs: the
# kernels are then compiled for 8.0 and 8.9 (tests/test_compiled.py).
LEAST_CAPABILITY = {"mosaic": (8, 0) if jax.__version_info__ >= (0, 11, 2) else (9, 0)}
# The oldest GPUs that they run on by default. No kernel was run on an older one.
LEAST_BY_DEFAULT = {"mosaic": (9, 0)}
WARP = 32  # the threads of a GPU that run together and can exchange values
NO_MESH = AbstractMesh((), ())
# JAX 0.11 and later ask which GPU a Triton kernel is lowered for, and a machine without
# a GPU has no answer. The lowered kernels are the same for every GPU, so this one
# stands for all.
GPU = AbstractMesh(
    *((), ()),
    abstract_device=AbstractDevice(
        device_kind="NVIDIA H200", num_cores=132, platform="gpu"
    ),
)


def kernels_available(backend: str) -> bool:
    """Whether the installed JAX has this backend, and what the kernels use of it."""
    known = importlib.util.find_spec(BACKENDS[backend]) is not None
    return known and (backend != "mosaic" or code_per_thread() is not None)


def served(backend: str, least: Mapping[str, tuple[int, int]]) -> bool:
    """Whether the GPUs of this machine, if it has any, are not older than `least`."""
    found = compute_capability()
    return backend not in least or found is None or found >= least[backend]


@contextlib.contextmanager
def kernels_lowered(backend: str) -> Iterator[None]:
    """A context in which kernels are lowered on any machine and without a warning."""
    # Mosaic GPU asks for the GPU of this machine, unless a mesh names another one.
    scopes = {"triton": GPU, "mosaic": NO_MESH}
    mesh = scopes.get(backend)
    scope = use_abstract_mesh(mesh) if mesh else contextlib.nullcontext()
    with warnings.catch_warnings(), scope:
        # JAX 0.11 deprecated Pallas' Triton backend, and warns when it is imported and
        # whenever a kernel is lowered.
        warnings.filterwarnings(
            "ignore", "The Pallas Triton backend is deprecated", DeprecationWarning
        )
        yield
