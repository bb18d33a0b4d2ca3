"""The bits of PADDING on a GPU: elements of any type as unsigned integers.

For example, bfloat16 is moved as uint16, and float64 as two arrays of uint32. So the
kernel has fewer types to compile, and keeps the bits of a NaN.

Here belongs code that knows the types of elements. Where an element goes does not.
"""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.dtypes import itemsize_bits

from dmljax._types import Form, Outputs, mode_of


def on_bits(form: Form) -> Form:
    """Makes a form of operands of any type out of one that moves unsigned integers.

    `form` gets integers of 1, 2 or 4 bytes, or truth values. It is called several times
    for elements of 8 bytes and more. Elements narrower than a byte are widened, because
    no kernel addresses less.
    """

    @functools.wraps(form)
    def on_all_types(*operands: jax.Array, **static: Any) -> Outputs:
        with mode_of(*operands):
            parts = zip(*map(_to_bits, operands), strict=True)
            outputs = [form(*part, **static)[0] for part in parts]
            return (_from_bits(outputs, operands[0].dtype),)

    return on_all_types


def _to_bits(x: jax.Array) -> list[jax.Array]:
    """Returns the bits of `x`: an array, or one for each 4 bytes of an element."""
    dtype = x.dtype
    if jnp.issubdtype(dtype, np.complexfloating):
        return [*_to_bits(x.real), *_to_bits(x.imag)]
    if dtype.kind == "b":  # which JAX does not turn into integers without a copy
        return [x]
    if itemsize_bits(dtype) < 8:
        return _to_bits(x.astype(_widened(dtype)))
    bits = lax.bitcast_convert_type(x, f"uint{8 * min(dtype.itemsize, 4)}")
    return [bits[..., i] for i in range(2)] if dtype.itemsize == 8 else [bits]


def _from_bits(parts: Sequence[jax.Array], dtype: np.dtype) -> jax.Array:
    """Returns the array of type `dtype` with these bits: the inverse of `_to_bits`."""
    if jnp.issubdtype(dtype, np.complexfloating):
        part = np.dtype(f"float{4 * dtype.itemsize}")
        middle = len(parts) // 2
        real = _from_bits(parts[:middle], part)
        return lax.complex(real, _from_bits(parts[middle:], part))
    if dtype.kind == "b":
        return parts[0]
    if itemsize_bits(dtype) < 8:
        return _from_bits(parts, _widened(dtype)).astype(dtype)
    bits = jnp.stack(parts, -1) if len(parts) > 1 else parts[0]
    return lax.bitcast_convert_type(bits, dtype)


def _widened(dtype: np.dtype) -> np.dtype:
    # A type of whole bytes that holds all values of the narrow type.
    return np.dtype(np.float32 if jnp.issubdtype(dtype, np.floating) else np.int8)
