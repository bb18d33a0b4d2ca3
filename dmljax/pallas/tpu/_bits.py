"""Elements of any type, as the integers of 32 bits that PADDING moves on a TPU."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.dtypes import itemsize_bits

from dmljax._check import NoKernelError, require, show
from dmljax._types import is_floating


def for_mosaic(*operands: jax.Array) -> list[jax.Array]:
    """Returns the operands of PADDING in types that Mosaic computes with.

    Booleans, and integers of less than a byte, become bytes. Types of which Mosaic has
    no vectors are an error; by default the operator then runs in XLA's form instead.
    """
    for operand in operands:
        require(
            "PADDING",
            _has_vectors_of(operand.dtype),
            f"the kernel for TPUs takes no {show(operand.dtype)}, for which Mosaic has "
            "no vectors; use implementation=None or 'xla'.",
            NoKernelError,
        )
    return [x.astype(np.int8) if _is_narrow(x.dtype) else x for x in operands]


def _has_vectors_of(dtype: np.dtype) -> bool:
    """Whether Mosaic has vectors of this type, or of one that holds its values."""
    if is_floating(dtype):
        # A TPU computes with bfloat16, and not with float16.
        return dtype != np.float16 and itemsize_bits(dtype) in (8, 16, 32)
    return dtype.itemsize <= 4 and not jnp.issubdtype(dtype, np.complexfloating)


def _is_narrow(dtype: np.dtype) -> bool:
    boolean = jnp.issubdtype(dtype, np.bool_)
    return boolean or (not is_floating(dtype) and itemsize_bits(dtype) < 8)


def to_bits(x: Any) -> Any:
    """Returns the bits of `x` as int32, inside a kernel."""
    if is_floating(x.dtype):
        x = lax.bitcast_convert_type(x, np.dtype(f"int{8 * x.dtype.itemsize}"))
    return x.astype(np.int32)


def from_bits(bits: Any, dtype: np.dtype) -> Any:
    """Returns the values of type `dtype` with these bits: the inverse of `to_bits`."""
    if is_floating(dtype):
        bits = bits.astype(np.dtype(f"int{8 * dtype.itemsize}"))
        return lax.bitcast_convert_type(bits, dtype)
    return bits.astype(dtype)
