"""Elements of any type, as the words that kernels for GPUs compute with.

A thread of a GPU loads and stores words of 32 bits. `packed` and `unpacked` put
elements into words and take them out. `on_bits` lets a kernel see elements that it only
moves as unsigned integers.
"""

import functools
import operator
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.dtypes import itemsize_bits

from dmljax._types import Form, Outputs, is_floating, x64_enabled


def unpacked(words: Sequence[Any], count: int, bits: int) -> list[Any]:
    """Returns the elements of words, each in a number of its own."""
    per_word = 32 // bits
    return [
        (words[i // per_word] >> (i % per_word * bits)) & (2**bits - 1)
        for i in range(count)
    ]


def packed(elements: Sequence[Any], bits: int) -> list[Any]:
    """Returns the words that hold these elements, the first in the lowest bits."""
    shifted = [n << (i * bits % 32) for i, n in enumerate(elements)]
    groups = (shifted[i : i + 32 // bits] for i in range(0, len(shifted), 32 // bits))
    return [functools.reduce(operator.or_, group) for group in groups]


def on_bits(form: Form) -> Form:
    """Makes a form of operands of any type out of one that moves unsigned integers.

    `form` gets integers of 1, 2 or 4 bytes, or truth values. So a kernel has fewer
    types to compile, and keeps the bits of a NaN. Elements of 8 bytes and more are
    moved in several calls, and what is narrower than a byte is widened, because a GPU
    addresses no less.
    """

    def on_all_types(*operands: jax.Array, **static: Any) -> Outputs:
        # JAX may lower this in another thread, which is not in x64 mode although there
        # are elements of 64 bits.
        wide = any(x.dtype.itemsize >= 8 for x in operands)
        with jax.enable_x64(wide or x64_enabled()):
            parts = zip(*map(_to_bits, operands), strict=True)
            outputs = [form(*part, **static)[0] for part in parts]
            return (_from_bits(outputs, operands[0].dtype),)

    return on_all_types


def _to_bits(x: jax.Array) -> list[jax.Array]:
    """Returns the bits of `x`: an array, or one for each 4 bytes of an element."""
    if jnp.issubdtype(x.dtype, np.complexfloating):
        return [*_to_bits(x.real), *_to_bits(x.imag)]
    if x.dtype.kind == "b":  # which JAX does not turn into integers without a copy
        return [x]
    if itemsize_bits(x.dtype) < 8:
        return _to_bits(x.astype(_widened(x.dtype)))
    bits = lax.bitcast_convert_type(x, np.dtype(f"uint{8 * min(x.dtype.itemsize, 4)}"))
    return [bits[..., i] for i in range(2)] if x.dtype.itemsize == 8 else [bits]


def _from_bits(parts: Sequence[jax.Array], dtype: np.dtype) -> jax.Array:
    """Returns the array of type `dtype` with these bits: the inverse of `_to_bits`."""
    if jnp.issubdtype(dtype, np.complexfloating):
        half, part = len(parts) // 2, np.dtype(f"float{4 * dtype.itemsize}")
        return lax.complex(*(_from_bits(p, part) for p in (parts[:half], parts[half:])))
    if dtype.kind == "b":
        return parts[0]
    if itemsize_bits(dtype) < 8:
        return _from_bits(parts, _widened(dtype)).astype(dtype)
    bits = jnp.stack(parts, -1) if len(parts) > 1 else parts[0]
    return lax.bitcast_convert_type(bits, dtype)


def _widened(dtype: np.dtype) -> np.dtype:
    # Floats of less than a byte have no integer type of their size in memory.
    return np.dtype(np.float32 if is_floating(dtype) else np.int8)
