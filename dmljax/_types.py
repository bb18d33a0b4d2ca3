"""Types of values, and what they can hold: arguments, arrays, elements and indices.

Tensor descriptions and their rules are in `_directml`.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dmljax._check import DescriptorError, as_python

# A form takes arrays and static attributes, and returns the operator's outputs.
Outputs = tuple[jax.Array, ...]
Form = Callable[..., Outputs]
# The type of an argument that stands for a list of sizes. An array of sizes has one
# dimension.
Sizes = Sequence[int] | np.ndarray

# DirectML's attributes of type INT are INT32.
INT32_MIN = -(2**31)
INT32_MAX = 2**31 - 1
# DirectML counts elements in 32 bits.
MAX_ELEMENTS = 2**32 - 1
LARGEST_DOUBLE = int(np.finfo(np.float64).max)


def is_sequence(values: Any) -> bool:
    """Whether `values` may be a list of integers."""
    if isinstance(values, np.ndarray):
        return values.ndim > 0 and not isinstance(values, np.ma.MaskedArray)
    text = isinstance(values, (str, bytes, bytearray, memoryview))  # are sequences, too
    return isinstance(values, Sequence) and not text


def integer(value: int) -> int:
    """Returns an integer of NumPy or JAX as Python's, with a hash and no overflow.

    Anything else stays as it is, and the checks can name it.
    """
    given: Any = value
    array = isinstance(given, (np.generic, np.ndarray, jax.Array))
    unknown = isinstance(given, (jax.core.Tracer, np.ma.MaskedArray))
    known = array and not unknown and not given.ndim
    return int(given) if known and is_integer(given.dtype) else value


def check_int32(operator: str, name: str, value: int) -> None:
    """Requires that an attribute is an INT of the C struct."""
    if not INT32_MIN <= value <= INT32_MAX:
        raise DescriptorError(
            f"{operator}: {name} is {as_python(value)}; it must be an INT32, "
            f"{INT32_MIN} to {INT32_MAX}."
        )


def is_floating(dtype: np.dtype) -> bool:
    """Whether `dtype` is a real floating-point type, also one of 4 or 8 bits."""
    return jnp.issubdtype(dtype, jnp.floating)


def is_integer(dtype: np.dtype) -> bool:
    """Whether `dtype` is an integer type, including those of 4 bits."""
    # For NumPy, a timedelta64 is one, too.
    return jnp.issubdtype(dtype, jnp.integer) and dtype.kind != "m"


def x64_enabled() -> bool:
    """Whether JAX has 64-bit types: whether its x64 mode is on."""
    return jax.dtypes.canonicalize_dtype(np.int64) == np.int64


def mode_of(*arrays: jax.Array) -> Any:
    """Makes a context in which JAX has the types of these arrays.

    JAX may lower a form where its x64 mode is off, although elements have 64 bits: in
    another thread, or after the context in which the program was traced.
    """
    wide = any(array.dtype.itemsize >= 8 for array in arrays)
    return jax.enable_x64(wide or x64_enabled())


@contextlib.contextmanager
def index_mode(*sizes: int) -> Iterator[np.dtype]:
    """Makes a context in which indices up to these sizes have the type that it yields.

    The type is int32, or int64 if a size needs it. JAX has 64-bit integers only in its
    x64 mode: the context then turns it on. A symbolic size counts as less than 2^31,
    as it does for JAX.
    """
    # int32 is the default because 64-bit arithmetic is slow on GPUs and TPUs.
    wide = any(isinstance(size, int) and size >= 2**31 for size in sizes)
    with jax.enable_x64(wide or x64_enabled()):
        yield np.dtype(np.int64 if wide else np.int32)


def to_scalar(size: Any, dtype: np.dtype | type) -> Any:
    """Returns a size, perhaps a symbolic one, as a scalar of a type."""
    known = isinstance(size, int)
    return np.dtype(dtype).type(size) if known else jnp.asarray(size, dtype)


def packed_strides(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the strides of a packed row-major tensor.

    >>> packed_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides = [1]
    for size in reversed(sizes[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides))
