"""The formulas of the operators, over coordinates.

Each operator's page defines it by a formula of an output coordinate. Here are these
formulas, and the arithmetic of coordinates that they share. The jax.numpy forms and the
kernels evaluate the same functions, so nothing here depends on how a form is run.
"""

import dataclasses
import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dmljax._tensor import Form, Outputs, packed_strides, x64_enabled

# DIAGONAL_MATRIX1


def fills(
    top_x: Any,
    data: Sequence[Any],
    matrix: tuple[int, int],
    fill_begin: int | None,
    fill_end: int | None,
) -> Any:
    """Whether the value fills diagonal `top_x`, in int32: the formula of the page.

    ``(end >= begin) ^ (top_x >= begin) ^ (top_x < end)``, the last comparison turned
    around. The bounds are compared with and never added to: they may be INT32_MIN and
    INT32_MAX.

    Args:
      top_x: the diagonals, counted within `matrix`.
      data: the operands before the value and the input. If the bounds are None, the
        last two are the bounds. One more, the first, is the diagonal of the matrix's
        first element. It is 0 but in a part of a matrix.
      matrix: the sizes of the matrix.
      fill_begin: the first diagonal that is filled.
      fill_end: one past the last diagonal that is filled.
    """
    begin: Any = fill_begin
    end: Any = fill_end
    if begin is None:
        *data, begin, end = data
    for origin in data:
        top_x = top_x + origin
    limits = None if data else matrix
    begins, ends = (_reaches(top_x, limits, bound) for bound in (begin, end))
    filled = (end < begin) ^ begins ^ ends
    known = isinstance(filled, bool)
    return jnp.broadcast_to(filled, top_x.shape) if known else filled


def _reaches(top_x: Any, matrix: tuple[int, int] | None, bound: Any) -> Any:
    """``top_x >= bound``, a Python bool where it is the same for the whole matrix.

    XLA then compares once instead of twice, or not at all. `matrix` is None if its
    sizes do not limit `top_x`.
    """
    if matrix is None or not all(isinstance(n, int) for n in (*matrix, bound)):
        return top_x >= bound
    height, width = matrix
    if bound <= 1 - height or bound >= width:
        return bound < width
    return top_x >= bound


# ONE_HOT


def is_lit(index: Any, position: Any, size: int) -> Any:
    """Whether `index` lights `position`, which is in [0, size) and of its type.

    A negative index counts from the end, so ``index - position`` is 0 or -size: then
    the greater one of the difference and its mirror image is 0. The difference may wrap
    around for an index far outside; the result is still not 0. XLA fuses one comparison
    as it fuses that of an index and a position, but splits a fusion that has two.
    """
    if not jnp.issubdtype(index.dtype, np.signedinteger):
        return index == position
    difference = index - position
    return jnp.maximum(difference, -size - difference) == 0


def countable(index: Any) -> Any:
    """`index` in a type of at least 32 bits, which counts to every size."""
    if index.dtype.itemsize >= 4:
        return index
    signed = jnp.issubdtype(index.dtype, np.signedinteger)
    return index.astype(np.int32 if signed else np.uint32)


# NONZERO_COORDINATES


def is_nonzero(x: jax.Array) -> jax.Array:
    """Which elements are not zero, decided by their bits.

    A comparison of floats would take subnormals for zero where they are flushed. The
    bits of zero differ by type: some have no negative zero, or no zero at all.
    """
    if jnp.issubdtype(x.dtype, np.complexfloating):
        return is_nonzero(x.real) | is_nonzero(x.imag)
    if not jnp.issubdtype(x.dtype, np.floating):
        return x.astype(bool)
    nonzero = jnp.ones(x.shape, bool)
    # JAX may lower this in another thread, which is not in x64 mode.
    with jax.enable_x64(x.dtype.itemsize == 8 or x64_enabled()):
        bits = lax.bitcast_convert_type(x, jnp.dtype(f"uint{jnp.finfo(x.dtype).bits}"))
        for pattern in zero_patterns(x.dtype):
            nonzero &= bits != jnp.asarray(pattern, bits.dtype)
    return nonzero


def zero_patterns(dtype: np.dtype) -> tuple[int, ...]:
    """The bits of the zeros of a floating-point type.

    >>> [hex(pattern) for pattern in zero_patterns(np.dtype("float16"))]
    ['0x0', '0x8000']
    """
    # A type without a zero turns 0.0 into its smallest number.
    zeros = np.asarray([0.0, -0.0]).astype(dtype)
    patterns = zeros.view(f"uint{8 * dtype.itemsize}")
    return tuple(sorted({int(pattern) for pattern in patterns[zeros == 0]}))


def by_lines(lines: Callable[..., Outputs]) -> Form:
    """The operator as a form, given what it does with independent lines of elements.

    A *line* is one tensor of a batch, flat. `lines` takes x as (lines, elements), of
    any such sizes but 0; the sizes of the tensor, as `sizes=`; the number of rows to
    return for each line, as `rows=`; and `columns=`, `fill=` and what else a form
    takes. It returns (lines,) counts and (lines, rows, columns) coordinates.

    A second operand is the number of each line's first element, (lines,). It is 0
    unless the line is a part of a tensor.
    """

    def form(
        x: jax.Array,
        *first: jax.Array,
        rank: int,
        size: int | None,
        columns: int,
        fill: int | None,
        **static: Any,
    ) -> Outputs:
        batch, sizes = x.shape[: x.ndim - rank], x.shape[x.ndim - rank :]
        elements = math.prod(sizes)
        rows = elements if size is None else size
        shape = (*batch, rows, columns)
        if 0 in (*x.shape, *shape):
            count = is_nonzero(x).sum(range(len(batch), x.ndim), dtype=np.uint32)
            return count, jnp.full(shape, fill or 0, np.uint32)
        numbers = (jnp.broadcast_to(f, (*batch, *[1] * rank)).ravel() for f in first)
        count, coordinates = lines(
            x.reshape(math.prod(batch), elements),
            *numbers,
            sizes=sizes,
            rows=rows,
            columns=columns,
            fill=fill,
            **static,
        )
        return count.reshape(batch), coordinates.reshape(shape)

    return form


def filled(coordinates: jax.Array, valid: jax.Array, fill: int | None) -> jax.Array:
    """The coordinates, with `fill` in rows that are not valid, which have 0 so far."""
    if not fill:
        return coordinates
    return jnp.where(valid[..., None], coordinates, np.uint32(fill))


def last_sizes(sizes: tuple[int, ...], columns: int) -> tuple[int, ...]:
    """The sizes of the last dimensions, one for each column of the coordinates.

    >>> last_sizes((1, 2, 3), 2), last_sizes((), 1)
    ((2, 3), (1,))
    """
    return ((1,) * columns + sizes)[len(sizes) :]


def unravel(flat: jax.Array, sizes: tuple[int, ...], columns: int) -> jax.Array:
    """(..., columns): the last coordinates of the elements with numbers `flat`.

    The first coordinate may be past its size, in a part of a tensor.
    """
    sizes = last_sizes(sizes, columns)
    strides = packed_strides(sizes)
    quotients = [flat // uint32(stride) for stride in strides]
    rest = [q % uint32(size) for q, size in zip(quotients, sizes, strict=True)]
    return jnp.stack([quotients[0], *rest[1:]], axis=-1)


def uint32(size: int) -> Any:
    """A size, which may be symbolic, as a scalar."""
    return np.uint32(size) if isinstance(size, int) else jnp.asarray(size, np.uint32)


# PADDING


class PaddingMode(enum.IntEnum):
    """DML_PADDING_MODE: where the values of the padding come from.

    With i the output coordinate minus the start padding and n the input's size:

    - CONSTANT: a value of its own wherever i is outside [0, n) on any axis.
    - EDGE: the nearest element, clip(i, 0, n - 1).
    - REFLECTION: mirrored, the edge not repeated: 3 2 | 1 2 3 | 2 1.
    - SYMMETRIC: mirrored, the edge repeated: 2 1 | 1 2 3 | 3 2.
    - WRAP: repeated, i mod n: 2 3 | 1 2 3 | 1 2.
    """

    __module__ = "dmljax"

    CONSTANT = 0
    EDGE = 1
    REFLECTION = 2
    SYMMETRIC = 3
    WRAP = 4


def fold(size: int, mode: PaddingMode) -> tuple[int, int]:
    """How a periodic mode folds coordinates into an axis of `size` elements.

    The period, and the sum of each position and its mirror image: position j of a
    period is element min(j, mirror - j).
    """
    return {
        # The maximum is 1 for a size of 1, and else the first of both. JAX can compare
        # it with the size if that is symbolic.
        PaddingMode.REFLECTION: (jax.core.max_dim(2 * size - 2, size), 2 * size - 2),
        PaddingMode.SYMMETRIC: (2 * size, 2 * size - 1),
        PaddingMode.WRAP: (size, 2 * size - 1),
    }[mode]


def source_index(
    position: Any, stop: int, start: int, size: int, mode: PaddingMode
) -> Any:
    """The input coordinate that the output coordinate `position` < `stop` repeats.

    A division can cost more than the rest of a kernel, so there is none where the
    output is known to reach over at most two periods.
    """
    if mode is PaddingMode.EDGE:
        return jnp.clip(position - start, 0, size - 1)
    period, mirror = fold(size, mode)
    shift = (-start) % period
    shifted, periods = position + shift, (stop - 1 + shift) // period
    if not isinstance(periods, int) or periods > 1:  # or it is symbolic
        shifted = lax.rem(shifted, jnp.full_like(shifted, period))
    elif periods:
        shifted = jnp.where(shifted < period, shifted, shifted - period)
    return jnp.minimum(shifted, mirror - shifted)


@dataclasses.dataclass(frozen=True)
class Axis:
    """One dimension, and how it is padded."""

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

    def source(self, position: Any, mode: PaddingMode, stop: int | None = None) -> Any:
        """The input coordinate; where CONSTANT has none, the nearest one.

        From the position `stop` on, or the size of the output, it may be any.
        """
        if not self.is_padded:
            return position
        if mode is PaddingMode.CONSTANT:
            mode = PaddingMode.EDGE
        stop = self.output if stop is None else stop
        return source_index(position, stop, self.before, self.size, mode)

    def is_inside(self, position: Any) -> Any:
        """Whether an output coordinate is one of the input's."""
        return (position >= self.before) & (position < self.before + self.size)


def axes_of(
    shape: tuple[int, ...], start: tuple[int, ...], end: tuple[int, ...]
) -> list[Axis]:
    """The dimensions of an input of `shape`, of which the last are padded by these."""
    whole = (0,) * (len(shape) - len(start))
    return list(map(Axis, shape, whole + start, whole + end))


def merged(axes: Sequence[Axis]) -> list[Axis]:
    """The dimensions, where neighbours that are not padded count as one."""
    result: list[Axis] = []
    for axis in axes:
        if result and not (axis.is_padded or result[-1].is_padded):
            axis = Axis(result.pop().size * axis.size, 0, 0)
        result.append(axis)
    return result


# From so many bytes on, unpadded elements side by side are a row of their own in the
# kernel of PADDING. A choice of layout, measured on an H200.
ROW_BYTES = 256


def rows_of(
    axes: Sequence[Axis], itemsize: int
) -> tuple[tuple[Axis, ...], Axis, Axis, int]:
    """Merged dimensions as rows: those outside of a plane, its two, and the unit.

    A row is the last dimension, or the one before it in units of the last, which is
    small and not padded.
    """
    *outer, row = axes or [Axis(1, 0, 0)]
    unit = 1
    if outer and not row.is_padded and row.size * itemsize < ROW_BYTES:
        unit, row = row.size, outer.pop()
    plane = outer.pop() if outer else Axis(1, 0, 0)
    return tuple(outer), plane, row, unit
