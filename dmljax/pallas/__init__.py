"""Pallas kernels, one file for each operator that gains from one; not public.

A kernel serves its operator's module as one more form. All of them are launched by
`_launch`, the only caller of Pallas.
"""

import contextlib
import functools
import importlib.util
import warnings
from collections.abc import Iterator

from jax.sharding import AbstractDevice, AbstractMesh, use_abstract_mesh

from dmljax._check import DescriptorError

# What kernels are lowered for, on whatever machine: they are the same for every GPU.
GPU = AbstractMesh(
    *((), ()),
    abstract_device=AbstractDevice(
        device_kind="NVIDIA H200", num_cores=132, platform="gpu"
    ),
)


class UnaddressableError(DescriptorError):
    """The backend cannot address arrays of this size."""


@functools.cache
def kernels_available() -> bool:
    """Whether the installed JAX has the backend that the kernels need."""
    return importlib.util.find_spec("jax.experimental.pallas.triton") is not None


@contextlib.contextmanager
def kernels_lowered() -> Iterator[None]:
    """A context in which kernels are lowered, on any machine and without a warning.

    Pallas' Triton backend is deprecated since JAX 0.11, and the one backend that can
    express our kernels: JAX warns when it is imported and when a kernel is lowered.
    Since then it also asks what GPU a kernel is lowered for.
    """
    with warnings.catch_warnings(), use_abstract_mesh(GPU):
        warnings.filterwarnings(
            "ignore", "The Pallas Triton backend is deprecated", DeprecationWarning
        )
        yield
