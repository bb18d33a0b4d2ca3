"""Pallas kernels, one file for each operator that gains from one; not public.

A kernel serves its operator's module as one more form. All of them are launched by
`_launch`, the only caller of Pallas.
"""

import contextlib
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def triton_without_warning() -> Iterator[None]:
    """A context in which using Pallas' Triton backend does not warn.

    It is deprecated since JAX 0.11, and the one backend that can express our kernels.
    JAX warns when it is imported and when a kernel is lowered.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "The Pallas Triton backend is deprecated", DeprecationWarning
        )
        yield
