"""Pallas kernels, one file for each operator that gains from one; not public.

A *kernel* is a function that many programs run at once, each on its share of an array.
This folder has the kernels for NVIDIA GPUs, which Pallas compiles through Triton, and
`tpu` has those for TPUs, which it compiles through Mosaic. A kernel's file offers its
operator one more *form*: a function of whole arrays (`dmljax._tensor.Form`). Here
belongs how a form runs on such hardware. What an operator computes is in
`dmljax._coordinates`, and `dmljax._primitive` chooses the form.

Read `_launch` first, which makes every call of Pallas. `_elementwise` and `tpu._blocks`
are frames that several operators share, and `_words` packs narrow elements.

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
import functools
import importlib.util
import warnings
from collections.abc import Iterator

from jax.sharding import AbstractDevice, AbstractMesh, use_abstract_mesh

# The backend of Pallas that the kernels for each platform need.
BACKENDS = {
    "cuda": "jax.experimental.pallas.triton",
    "tpu": "jax.experimental.pallas.tpu",
}
# JAX 0.11 and later ask which GPU a Triton kernel is lowered for, and a machine without
# a GPU has no answer. The lowered kernels are the same for every GPU, so this one
# stands for all.
GPU = AbstractMesh(
    *((), ()),
    abstract_device=AbstractDevice(
        device_kind="NVIDIA H200", num_cores=132, platform="gpu"
    ),
)


@functools.cache
def kernels_available(platform: str) -> bool:
    """Whether the installed JAX has the backend of the kernels for `platform`."""
    return importlib.util.find_spec(BACKENDS[platform]) is not None


@contextlib.contextmanager
def kernels_lowered(platform: str) -> Iterator[None]:
    """A context in which kernels are lowered on any machine and without a warning."""
    gpu = contextlib.nullcontext() if platform == "tpu" else use_abstract_mesh(GPU)
    with warnings.catch_warnings(), gpu:
        # JAX 0.11 deprecated Pallas' Triton backend, and warns when it is imported and
        # whenever a kernel is lowered. No other backend can express these kernels:
        # Mosaic GPU has no cumulative sum, and no load or store at computed indices.
        warnings.filterwarnings(
            "ignore", "The Pallas Triton backend is deprecated", DeprecationWarning
        )
        yield
