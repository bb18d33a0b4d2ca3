"""Elements of any type, as the words of 32 bits that kernels for GPUs compute with.

A thread of a GPU loads and stores words. `packed` and `unpacked` put elements into
words and take them out. `on_bits` lets a kernel see elements that it only moves as
unsigned integers.
"""

import functools
import operator as operators
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dmljax._types import Form, Outputs, is_floating, x64_enabled


def unpacked(words: Sequence[Any], count: int, bits: int) -> list[Any]:
    """The elements of words of 32 bits, each in a number of its own."""
    if bits == 32 or count == 1:
        return list(words)
    per_word = 32 // bits
    return [
        (words[i // per_word] >> (i % per_word * bits)) & (2**bits - 1)
        for i in range(count)
    ]


def packed(elements: Sequence[Any], bits: int) -> list[Any]:
    """Words of 32 bits that hold elements of fewer bits, the first in the lowest."""
    per_word = 32 // bits
    return [
        functools.reduce(
            operators.or_,
            (n << (i * bits) for i, n in enumerate(elements[first:][:per_word])),
        )
        for first in range(0, len(elements), per_word)
    ]


def on_bits(form: Form) -> Form:
    """`form` for every type of its last two operands, which it only moves.

    The form gets the bits of these operands as unsigned integers of 1, 2 or 4 bytes, or
    truth values. So a kernel has fewer types to compile, and keeps the bits of a NaN.
    Elements of 8 bytes and more are moved in several calls, and what is narrower than a
    byte is widened, because a GPU addresses no less.
    """

    def on_all_types(*operands: jax.Array, **static: Any) -> Outputs:
        *data, a, b = operands
        # JAX may lower this in another thread, which is not in x64 mode although there
        # are elements of 64 bits.
        with jax.enable_x64(any(map(_has_64_bits, operands)) or x64_enabled()):
            outputs = [
                form(*data, *parts, **static)[0]
                for parts in zip(_to_bits(a), _to_bits(b), strict=True)
            ]
            return (_from_bits(outputs, a.dtype),)

    return on_all_types


def _has_64_bits(x: jax.Array) -> bool:
    wide = 16 if jnp.issubdtype(x.dtype, np.complexfloating) else 8
    return bool(x.dtype.itemsize >= wide)


def _to_bits(x: jax.Array) -> list[jax.Array]:
    """The bits of `x`: an array, or one for each 4 bytes of an element."""
    if jnp.issubdtype(x.dtype, np.complexfloating):
        return [*_to_bits(x.real), *_to_bits(x.imag)]
    if x.dtype.kind == "b":  # which JAX does not turn into integers without a copy
        return [x]
    if (jnp.finfo if is_floating(x.dtype) else jnp.iinfo)(x.dtype).bits < 8:
        # Floats of less than a byte have no integer type of their size in memory.
        return _to_bits(x.astype(np.float32 if is_floating(x.dtype) else np.int8))
    bits = lax.bitcast_convert_type(x, np.dtype(f"uint{8 * min(x.dtype.itemsize, 4)}"))
    return [bits[..., i] for i in range(2)] if x.dtype.itemsize == 8 else [bits]


def _from_bits(parts: Sequence[jax.Array], dtype: np.dtype) -> jax.Array:
    """The array of type `dtype` that has these bits: the inverse of `_to_bits`."""
    if jnp.issubdtype(dtype, np.complexfloating):
        half, part = len(parts) // 2, np.dtype(f"float{4 * dtype.itemsize}")
        return lax.complex(*(_from_bits(p, part) for p in (parts[:half], parts[half:])))
    if dtype.kind == "b":
        return parts[0]
    if (jnp.finfo if is_floating(dtype) else jnp.iinfo)(dtype).bits < 8:
        wide = np.dtype(np.float32 if is_floating(dtype) else np.int8)
        return _from_bits(parts, wide).astype(dtype)
    bits = jnp.stack(parts, -1) if len(parts) > 1 else parts[0]
    return lax.bitcast_convert_type(bits, dtype)
