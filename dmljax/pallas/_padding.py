"""PADDING as its kernels for GPUs and TPUs see it: dimensions, and the bits of them.

`padding_form` makes the form of the operator out of a function that launches a kernel.
The function pads an array of unsigned integers, whatever the type of the elements.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.dtypes import itemsize_bits

from dmljax._coordinates import PaddingMode
from dmljax._types import Form, Outputs, is_floating, mode_of


@dataclasses.dataclass(frozen=True)
class Axis:
    """One dimension: its size, and the padding before and after it."""

    size: int
    before: int
    after: int

    @property
    def output(self) -> int:
        """The size with the padding."""
        return self.before + self.size + self.after

    @property
    def is_padded(self) -> bool:
        """Whether there is any padding."""
        return self.before + self.after > 0


Axes = Sequence[Axis]


def merged(axes: Axes) -> list[Axis]:
    """Merges neighbouring dimensions that are not padded into one.

    For example, {16,3,224,224} becomes {48,224,224} if rows and columns are padded.
    """
    # A kernel finds a position by a division for each dimension, so fewer are faster.
    result: list[Axis] = []
    for axis in axes:
        if result and not (axis.is_padded or result[-1].is_padded):
            axis = Axis(result.pop().size * axis.size, 0, 0)
        result.append(axis)
    return result


def padding_form(pad: Callable[..., jax.Array], *direct: Any) -> Form:
    """Makes the form by kernel, given how a kernel pads an array that needs padding.

    `pad` takes the array; the value, of size 1 or with a value for each element of the
    batch; an `Axis` for each dimension; the mode, and `interpret`. In modes other than
    CONSTANT the value is 0. The result may have any shape. `direct` are the types that
    `pad` takes as they are.
    """

    def form(
        x: jax.Array,
        *given: jax.Array,
        start: tuple[int, ...],
        end: tuple[int, ...],
        mode: PaddingMode,
        interpret: Any,
    ) -> Outputs:
        (value,) = given or (jnp.zeros((1,) * x.ndim, x.dtype),)
        batch = x.ndim - len(start)
        sizes = np.broadcast_shapes(x.shape[:batch], value.shape[:batch])
        x = jnp.broadcast_to(x, sizes + x.shape[batch:])
        if value.size > 1:
            value = jnp.broadcast_to(value, sizes + value.shape[batch:])
        pads = ((0,) * batch + start, (0,) * batch + end)
        axes = list(map(Axis, x.shape, *pads))
        shape = tuple(axis.output for axis in axes)
        if x.size in (0, math.prod(shape)):
            return (x if x.size else jnp.broadcast_to(value, shape),)
        return (pad(x, value, axes, mode, interpret).reshape(shape),)

    return on_bits(form, direct)


def on_bits(form: Form, direct: Sequence[Any] = ()) -> Form:
    """Makes a form of operands of any type out of one that moves unsigned integers.

    `form` gets integers of 1, 2 or 4 bytes, or truth values. Thus a kernel has fewer
    types to compile, and keeps the bits of a NaN. Elements of 8 bytes and more are
    moved in several calls, and what is narrower than a byte is widened, because no
    kernel addresses less.
    """

    def on_all_types(*operands: jax.Array, **static: Any) -> Outputs:
        if operands[0].dtype in direct:
            return form(*operands, **static)
        with mode_of(*operands):
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
    # Floats of less than a byte have no integer type of their size in memory.
    return np.dtype(np.float32 if is_floating(dtype) else np.int8)
