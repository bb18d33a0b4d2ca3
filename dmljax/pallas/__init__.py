"""Pallas kernels, one file for each operator that gains from one; not public.

A kernel serves its operator's module as one more form. Those for NVIDIA GPUs are here,
those for TPUs in `tpu`. All are launched by `_launch`, the only caller of Pallas.
"""

import contextlib
import functools
import importlib.util
import warnings
from collections.abc import Iterator

from jax.sharding import AbstractDevice, AbstractMesh, use_abstract_mesh

# By platform: the backend that its kernels need.
BACKENDS = {
    "cuda": "jax.experimental.pallas.triton",
    "tpu": "jax.experimental.pallas.tpu",
}
# What kernels are lowered for, on whatever machine: they are the same for every GPU.
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
    """A context in which kernels are lowered, on any machine and without a warning.

    Pallas' Triton backend is deprecated since JAX 0.11, and the one backend that can
    express our kernels for GPUs: JAX warns when it is imported and when a kernel is
    lowered. Since then it also asks what GPU a kernel is lowered for.
    """
    gpu = contextlib.nullcontext() if platform == "tpu" else use_abstract_mesh(GPU)
    with warnings.catch_warnings(), gpu:
        warnings.filterwarnings(
            "ignore", "The Pallas Triton backend is deprecated", DeprecationWarning
        )
        yield
