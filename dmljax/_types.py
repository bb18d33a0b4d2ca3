"""Sizes, elements and indices: annotations, limits, strides, and modes for 64 bits.

Forms, kernels and operators share these. The types that callers may pass, and their
conversions, are in `_arguments`. Tensor descriptions are in `_directml`.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.export import is_symbolic_dim

Outputs = tuple[Array, ...]  # of an operator
# A form, `(*operands, **static) -> outputs`.
Form = Callable[..., Outputs]
# An argument that lists sizes. An array of sizes has rank 1.
Sizes = Sequence[int] | np.ndarray

# DirectML's attributes of type INT are INT32.
INT32_MIN = -(2**31)
INT32_MAX = 2**31 - 1
# DirectML counts elements in 32 bits.
MAX_ELEMENTS = 2**32 - 1
# The types that JAX narrows outside of its x64 mode.
WIDE = frozenset(map(np.dtype, ("int64", "uint64", "float64", "complex128")))


def keeps_64_bits() -> bool:
    """Whether JAX computes with arrays of 64 bits, and does not truncate them.

    JAX keeps 64 bits in x64 mode. Where ``jax_explicit_x64_dtypes`` is "allow", JAX
    keeps the 64 bits of its own arrays, and truncates NumPy's.
    """
    if jax.dtypes.canonicalize_dtype(np.int64) == np.int64:
        return True
    explicit = getattr(jax.config, "jax_explicit_x64_dtypes", None)  # not in JAX 0.9.0
    return getattr(explicit, "name", "") == "ALLOW"


def constant(value: Any, dtype: np.dtype | type) -> Array | np.ndarray:
    """Returns a constant of a type, also of 64 bits outside of JAX's x64 mode.

    The value is a known or symbolic size, or a NumPy array that has this type already.
    """
    if is_symbolic_dim(value):
        return jnp.asarray(value, dtype)
    is_number = isinstance(value, int)
    array: np.ndarray = np.dtype(dtype).type(value) if is_number else value
    if jax.dtypes.canonicalize_dtype(array.dtype) == array.dtype:
        return array
    with jax.enable_x64(True):
        return jnp.asarray(array)


@contextlib.contextmanager
def index_mode(*sizes: int) -> Iterator[np.dtype]:
    """Makes a context for indices up to these sizes, and yields the type of indices.

    The type is int32, or int64 if a size needs 64 bits: the context then turns on JAX's
    x64 mode. A symbolic size counts as less than 2^31, as for JAX.
    """
    # We prefer int32: 64-bit arithmetic is slow on GPUs and TPUs.
    wide = any(isinstance(size, int) and size >= 2**31 for size in sizes)
    with jax.enable_x64(True) if wide else contextlib.nullcontext():
        yield np.dtype(np.int64 if wide else np.int32)


def as_bits(x: Array) -> Array:
    """Returns the bits of floats as unsigned integers; leaves other types alone."""
    if not jnp.issubdtype(x.dtype, np.floating):
        return x
    return lax.bitcast_convert_type(x, jnp.dtype(f"uint{jnp.finfo(x.dtype).bits}"))


def packed_strides(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the strides of a packed row-major tensor.

    >>> packed_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides = [1]
    for size in reversed(sizes[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides))
