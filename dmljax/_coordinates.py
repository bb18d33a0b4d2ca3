"""The formulas of the operators, over coordinates.

Each page of DirectML defines its operator by a formula of an output coordinate. Forms
in jax.numpy and kernels for TPUs evaluate the functions here, on arrays of any size or
on scalars inside of a kernel. How a form runs does not belong here. A kernel for GPUs
has a formula of its own, for numbers without a sign.

The functions use `jax.lax` where one of `jax.numpy` would do: a function of jax.numpy
is a `jit` of its own, and JAX traces it for some hundred microseconds.
"""

import enum
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dmljax._tensor import packed_strides
from dmljax._types import INT32_MIN, mode_of

# The most periods over which a position of PADDING is folded without a division. On an
# H200 we measured that padding the middle axes takes 5 to 7 % longer with a division,
# and longer than by jnp.take (results/nvidia-h200.csv, "[division]").
FEW_PERIODS = 2

# DIAGONAL_MATRIX1


def is_filled(
    top_x: jax.Array,
    data: Sequence[jax.Array],
    fill_begin: int | None,
    fill_end: int | None,
    hold: Callable[[tuple[Any, Any]], Sequence[Any]] = tuple,
) -> jax.Array:
    """Whether the value fills diagonal `top_x`, in int32.

    For example, [1, 3) fills diagonals 1 and 2, and [3, 1) fills all but these two.

    The page has ``(end >= begin) ^ (top_x >= begin) ^ (top_x < end)``. On a circle of
    all int32, where INT32_MIN follows INT32_MAX, these are the diagonals from `begin`
    to before `end`, also if `end` is smaller. Unsigned differences are distances there:
    two operations for an element, not four.

    Args:
      top_x: the diagonals of a matrix, or of a part of one.
      data: the operands before the value and the input: both bounds if they are None,
        else nothing.
      fill_begin: the first diagonal that is filled.
      fill_end: one past the last diagonal that is filled.
      hold: gets and returns what is computed of `data` alone, once for a matrix.
    """
    given: Any = (fill_begin, fill_end)
    begin, end = data or map(np.int32, given)
    with np.errstate(over="ignore"):
        # Comparing numbers with a sign after adding INT32_MIN compares them without it.
        first = begin + np.int32(INT32_MIN)
        span = end - first
    if not data:
        return lax.lt(lax.sub(top_x, first), span)
    first, span = hold((first, span))
    return jnp.less(top_x - first, span)


# ONE_HOT


def wrapped(index: jax.Array, size: int) -> jax.Array:
    """Returns the positions that indices light: a negative one counts from the end.

    For example, of size 5 the int8 index -2 lights position 3: without a sign it is
    254, and 254 + 5 wraps around to 3. So a negative index is larger than its sum with
    `size`. One below -size stays too large for a position, and lights nothing.
    """
    if not jnp.issubdtype(index.dtype, np.signedinteger):
        return index
    index = lax.bitcast_convert_type(index, jnp.dtype(f"u{index.dtype}"))
    return lax.min(index, lax.add(index, to_scalar(size, index.dtype)))


def countable(index: Any) -> Any:
    """Returns `index` in a type of at least 32 bits that can count to every size."""
    if index.dtype.itemsize >= 4:
        return index
    signed = jnp.issubdtype(index.dtype, np.signedinteger)
    return index.astype(np.int32 if signed else np.uint32)


# NONZERO_COORDINATES


def is_nonzero(x: jax.Array) -> jax.Array:
    """Says which elements are not zero, by their bits.

    XLA's comparison of floats takes subnormal numbers for zero on a CPU.
    """
    if jnp.issubdtype(x.dtype, np.complexfloating):
        return is_nonzero(x.real) | is_nonzero(x.imag)
    if not jnp.issubdtype(x.dtype, np.floating):
        return x.astype(bool)
    with mode_of(x):
        bits = lax.bitcast_convert_type(x, jnp.dtype(f"uint{jnp.finfo(x.dtype).bits}"))
        tests = (lax.ne(bits, bits.dtype.type(p)) for p in zero_patterns(x.dtype))
        return functools.reduce(lax.bitwise_and, tests, lax.full_like(bits, True, bool))


@functools.cache
def zero_patterns(dtype: np.dtype) -> tuple[int, ...]:
    """Returns the bits of the zeros of a floating-point type: two, one or none.

    >>> [hex(pattern) for pattern in zero_patterns(np.dtype("float16"))]
    ['0x0', '0x8000']
    """
    # A type without a zero turns 0.0 into another number or NaN. We leave it out.
    zeros = np.asarray([0.0, -0.0]).astype(dtype)
    patterns = zeros.view(f"uint{8 * dtype.itemsize}")
    return tuple(sorted({int(pattern) for pattern in patterns[zeros == 0]}))


def fill_rows(coordinates: jax.Array, valid: jax.Array, fill: int | None) -> jax.Array:
    """Puts `fill` into the rows that are not valid. They have 0 so far."""
    # Neither 0 nor None asks for any work: None leaves these rows undefined.
    if not fill:
        return coordinates
    return jnp.where(valid[..., None], coordinates, np.uint32(fill))


def last_sizes(sizes: tuple[int, ...], columns: int) -> tuple[int, ...]:
    """Returns the sizes of the last dimensions, one for each column.

    >>> last_sizes((1, 2, 3), 2), last_sizes((), 1)
    ((2, 3), (1,))
    """
    return ((1,) * columns + sizes)[len(sizes) :]


def unravel(flat: jax.Array, sizes: tuple[int, ...], columns: int) -> jax.Array:
    """Returns the last coordinates, (..., columns), of the elements at these offsets.

    For example, offset 7 of sizes (2, 3, 4) has the coordinates (0, 1, 3). In a part of
    a tensor, the first coordinate may be past the size of the part.
    """
    sizes = last_sizes(sizes, columns)
    strides = packed_strides(sizes)
    # Each coordinate is a quotient and a remainder of its own. A chain of divisions,
    # each of the rest of the one before, would have to run one after the other.
    quotients = [lax.div(flat, to_scalar(stride, np.uint32)) for stride in strides]
    rest = (
        lax.rem(quotient, to_scalar(size, np.uint32))
        for quotient, size in zip(quotients[1:], sizes[1:], strict=True)
    )
    columns_ = [lax.expand_dims(x, [-1]) for x in (quotients[0], *rest)]
    return lax.concatenate(columns_, flat.ndim)


def to_scalar(size: Any, dtype: np.dtype | type) -> Any:
    """Returns a size, perhaps a symbolic one, as a scalar of a type."""
    known = isinstance(size, int)
    return np.dtype(dtype).type(size) if known else jnp.asarray(size, dtype)


# PADDING


class PaddingMode(enum.IntEnum):
    """Says where the values of the padding come from, as DML_PADDING_MODE does.

    On each axis, let i be the output coordinate minus the start padding, and let n be
    the size of the input. With each mode, the output repeats this element of the input:

    - CONSTANT: element i; if i is outside of [0, n) on any axis, the padding value;
    - EDGE: the nearest element, clip(i, 0, n - 1);
    - REFLECTION: the mirror image at the outermost element, 3 2 | 1 2 3 | 2 1;
    - SYMMETRIC: the mirror image at the border, 2 1 | 1 2 3 | 3 2;
    - WRAP: element i mod n, 2 3 | 1 2 3 | 1 2.

    The values are DirectML's numbers. SYMMETRIC exists from feature level 3_0 on, and
    WRAP from 6_4 on. A name makes a mode, in any case: ``PaddingMode("reflection")`` or
    ``PaddingMode("reflect")``, as jax.numpy calls it.

    >>> import dmljax, jax.numpy as jnp
    >>> x = jnp.array([1, 2, 3])
    >>> for mode in PaddingMode:
    ...     print(mode.name, dmljax.padding(x, (2,), (2,), mode=mode).tolist())
    CONSTANT [0, 0, 1, 2, 3, 0, 0]
    EDGE [1, 1, 1, 2, 3, 3, 3]
    REFLECTION [3, 2, 1, 2, 3, 2, 1]
    SYMMETRIC [2, 1, 1, 2, 3, 3, 2]
    WRAP [2, 3, 1, 2, 3, 1, 2]
    """

    __module__ = "dmljax"
    # What other libraries call a mode. A message says which one it is.
    OTHER_NAMES = enum.nonmember(
        {
            "REFLECT": "REFLECTION",
            "MIRROR": "REFLECTION",
            "REPLICATE": "EDGE",
            "NEAREST": "EDGE",
            "CIRCULAR": "WRAP",
            "ZEROS": "CONSTANT",
        }
    )

    CONSTANT = 0
    EDGE = 1
    REFLECTION = 2
    SYMMETRIC = 3
    WRAP = 4

    if TYPE_CHECKING:

        def __new__(cls, value: int | str) -> Self: ...

    @classmethod
    def _missing_(cls, value: object) -> "PaddingMode | None":
        name = value.upper() if isinstance(value, str) else ""
        return cls.__members__.get("REFLECTION" if name == "REFLECT" else name)


def fold(size: int, mode: PaddingMode) -> tuple[int, int]:
    """Returns the period of a mode, and the sum of a position and its mirror image.

    For example, with size 3 SYMMETRIC repeats elements 0 1 2 2 1 0. The period is 6.
    Position 4 has the mirror image 1: they add up to 5, as all such pairs do.
    A periodic mode folds coordinates into an axis of `size` elements: position j of a
    period is element min(j, mirror - j). WRAP mirrors nothing, as j is the smaller one
    in all of its period.
    """
    return {
        # A size of 1 would have the period 0. max_dim with `size` makes it 1, and
        # changes nothing else. Unlike max(..., 1), JAX can compare the result with a
        # symbolic size.
        PaddingMode.REFLECTION: (jax.core.max_dim(2 * size - 2, size), 2 * size - 2),
        PaddingMode.SYMMETRIC: (2 * size, 2 * size - 1),
        PaddingMode.WRAP: (size, 2 * size - 1),
    }[mode]


def source_index(
    position: Any, stop: int, start: int, size: int, mode: PaddingMode
) -> Any:
    """Returns the input coordinate that an output coordinate repeats.

    Args:
      position: the output coordinates, at least 0 and less than `stop`.
      stop: the size of the output, or less where only some of it is computed.
      start: the padding before the axis.
      size: the size of the input.
      mode: a mode other than CONSTANT.
    """

    def scalar(size: int) -> Any:
        return to_scalar(size, position.dtype)

    if mode is PaddingMode.EDGE:
        return lax.clamp(scalar(0), lax.sub(position, scalar(start)), scalar(size - 1))
    period, mirror = fold(size, mode)
    shift = (-start) % period
    shifted = lax.add(position, scalar(shift))
    periods = (stop - 1 + shift) // period
    # We do not know how far the output of a symbolic size reaches.
    if not isinstance(periods, int) or periods > FEW_PERIODS:
        shifted = lax.rem(shifted, scalar(period))
    else:
        for _ in range(periods):
            past = lax.sub(shifted, scalar(period))
            shifted = lax.select(lax.lt(shifted, scalar(period)), shifted, past)
    return lax.min(shifted, lax.sub(scalar(mirror), shifted))
