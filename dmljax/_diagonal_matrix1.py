"""DIAGONAL_MATRIX1: fills a span of diagonals with a value."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.export import is_symbolic_dim
from jax.typing import ArrayLike, DTypeLike

from dmljax._arguments import (
    as_array,
    as_dtype,
    as_integer,
    as_scalar,
    as_sizes,
    cast_array,
    check_x64,
    drop_weak_type,
    is_integer,
    unwrap_array,
)
from dmljax._call import check_elements, compiled
from dmljax._check import (
    ArgumentError,
    ArgumentTypeError,
    as_python,
    decide_le,
    public,
    require_same,
    show,
)
from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.support import (
    FLOATS,
    UP_TO_32_BITS,
    UP_TO_64_BITS,
    FeatureLevel,
    support_table,
)
from dmljax._directml.tensor import DataType, TensorDesc
from dmljax._types import INT32_MAX, INT32_MIN, Sizes, constant

# The arguments of the function, as its messages name them.
X = "x (InputTensor)"
BEGIN = "fill_begin (DiagonalFillBegin)"
END = "fill_end (DiagonalFillEnd)"


class _MainDiagonal:
    def __repr__(self) -> str:
        return "<main diagonal>"


# The default of both bounds. None means unbounded.
MAIN_DIAGONAL: Any = _MainDiagonal()


@public
def diagonal_matrix1(
    x: ArrayLike | None = None,
    /,
    *,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    value: ArrayLike = 1,
    fill_begin: ArrayLike | None = MAIN_DIAGONAL,
    fill_end: ArrayLike | None = MAIN_DIAGONAL,
) -> Array:
    """Fills the diagonals in [fill_begin, fill_end) with `value`; keeps the rest.

    The element ``[..., row, column]`` is on diagonal ``top_x = column - row``. Diagonal
    0 is the main diagonal, and positive diagonals lie to its right. An element is
    filled if ``(fill_end >= fill_begin) ^ (top_x >= fill_begin) ^ (top_x < fill_end)``.

    If fill_begin < fill_end, the diagonals in [fill_begin, fill_end) are filled. If
    fill_begin > fill_end, all diagonals outside of [fill_end, fill_begin) are filled.
    If the bounds are equal, nothing is filled. If both are left out, the main diagonal
    is filled, as by jnp.fill_diagonal for a matrix. (In three dimensions,
    jnp.fill_diagonal fills the elements ``x[i, i, i]``.)

    Args:
      x: (..., height, width) of any type. The leading dimensions are a
        batch. None stands for an array of zeros with `shape` and `dtype`.
      shape: the sizes of the result, required if `x` is None. Otherwise None stands for
        the sizes of `x`, and other sizes are an error.
      dtype: the type of the result. None stands for the type of `x`, or for float32 if
        `x` is None. If there is an `x`, another type is an error.
      value: a scalar of the type of the result. A Python number is converted to
        this type, and must fit.
      fill_begin: INT32, the first filled diagonal. A Python integer is part of the
        program. A scalar ``jax.Array`` of any integer type is data: no new program is
        compiled for another value, and under ``vmap`` each matrix may have its own
        bounds. Such a bound may exceed INT32: it is below or past every diagonal. None
        is below every diagonal.
      fill_end: INT32, one past the last filled diagonal. None is past every diagonal.

    Returns:
      An array (..., height, width), differentiable in `x` and `value`.

    Raises:
      DescriptorError: if the rank is below 2, if a size is negative, if a matrix has
        more than 2^31 rows or 2^31 or more columns, if a bound is a Python integer
        beyond INT32, or a ``jax.Array`` but no scalar, if `shape`, `dtype` or `value`
        does not agree with `x`, or if the result would have 2^59 elements or more.
      TypeError: if `x` is not an array, if both `x` and `shape` are None, if a bound is
        not an integer, or if one bound is given and the other is left out.

    >>> diagonal_matrix1(shape=(2, 4), value=7, fill_begin=0, fill_end=2)
    Array([[7., 7., 0., 0.],
           [0., 7., 7., 0.]], dtype=float32)

    Mask the scores of attention by the lowest number of their type: no query sees a
    later key.

    >>> import jax.numpy as jnp
    >>> scores = jnp.ones((2, 2), jnp.bfloat16)
    >>> lowest = jnp.finfo(scores.dtype).min
    >>> diagonal_matrix1(scores, value=lowest, fill_begin=1, fill_end=None)
    Array([[1, -3.38953e+38],
           [1, 1]], dtype=bfloat16)

    See DML_DIAGONAL_MATRIX1_OPERATOR_DESC in directml.h.
    """
    zeros = scalar = None
    if x is None:
        if shape is None:
            raise ArgumentTypeError("x (InputTensor) or shape must be given.")
        sizes = as_sizes("shape", shape)
        for size in sizes:
            if not decide_le(0, size):
                raise ArgumentError(f"shape is {show(sizes)}; no size may be negative.")
        result_type = as_dtype(np.float32 if dtype is None else dtype)
        check_x64("the result (dtype)", result_type)
        zeros = jax.ShapeDtypeStruct(sizes, result_type)
    else:
        x = as_array(X, x)
        result_type = x.dtype
        if shape is not None:
            both = {X: x.shape, "shape": as_sizes("shape", shape)}
            require_same("sizes", both, " Leave shape out.")
        if dtype is not None:
            types = {X: result_type, "dtype": as_dtype(dtype)}
            require_same("data types", types, " Leave dtype out.")
    # A scalar of None stands for 0, a frequent value, as a constant of the program:
    # outside of jit, passing a number takes as long as the rest of a call. The float
    # 0.0 is passed, because it could be -0.0.
    if not (type(value) is int and value == 0):
        scalar = as_scalar("value (Value)", value, result_type)
    if fill_begin is MAIN_DIAGONAL and fill_end is MAIN_DIAGONAL:
        begin, end = 0, 1
    else:
        begin = _as_bound(BEGIN, fill_begin, INT32_MIN, END)
        end = _as_bound(END, fill_end, INT32_MAX, BEGIN)
    if isinstance(begin, int) and isinstance(end, int):
        return _diagonal_matrix1(x, scalar, (), zeros, (begin, end))
    return _diagonal_matrix1(x, scalar, (begin, end), zeros, None)


def _as_bound(name: str, bound: Any, unbounded: int, other: str) -> Any:
    """Returns a bound as a Python integer, or as an array of data.

    The bound None gives `unbounded`. `other` is the name of the other bound.
    """
    if bound is MAIN_DIAGONAL:
        raise ArgumentTypeError(
            f"{other} is given, and {name} is not. Write {name.split()[0]}=None for no "
            "bound, or fill_end=fill_begin + 1 for one diagonal."
        )
    if bound is None:
        return unbounded
    diagonal = as_diagonal(name, bound)
    if isinstance(diagonal, int):
        check_int32(name, diagonal)
    return diagonal


def as_diagonal(name: str, number: Any) -> Any:
    """Returns the number of a diagonal as a Python integer, or as an array of data."""
    if is_symbolic_dim(number):  # no number yet when the program is traced
        return jnp.asarray(number)
    number = unwrap_array(number)
    if not isinstance(number, Array):
        return as_integer(name, number)
    if not is_integer(number.dtype):
        raise ArgumentTypeError(
            f"{name} has data type {show(number.dtype)}; it must have an integer type."
        )
    return as_scalar(name, number, number.dtype)


def check_int32(name: str, value: int) -> None:
    """Requires an INT of the C struct."""
    if not INT32_MIN <= value <= INT32_MAX:
        raise ArgumentError(
            f"{name} is {as_python(value)}; it must be an INT32, "
            f"{INT32_MIN} to {INT32_MAX}."
        )


@compiled("zeros", "span")
def _diagonal_matrix1(
    x: Array | None,
    value: Array | None,
    bounds: tuple[ArrayLike, ...],
    zeros: jax.ShapeDtypeStruct | None,
    span: tuple[int, int] | None,
) -> Array:
    """Computes ``diagonal_matrix1``; no `x` means `zeros`, and no `value` means 0.

    The bounds are known integers in `span`, or else scalars of data in `bounds`.
    """
    template: Any = zeros if x is None else x
    shape = template.shape
    rank = len(shape)
    name = "the result (shape)" if x is None else X
    if rank < 2:
        raise ArgumentError(
            f"{name} has sizes {show(shape)}; a matrix has at least 2 "
            "dimensions. x[None] and shape=(1, n) have one row."
        )
    height, width = shape[-2:]
    # JAX takes symbolic sizes to be below 2^31. Within these limits, INT32_MIN is below
    # and INT32_MAX past every diagonal, as a bound of None should be.
    tall = isinstance(height, int) and height > 2**31
    wide = isinstance(width, int) and width >= 2**31
    if tall or wide:
        raise ArgumentError(
            f"{name} has sizes {show(shape)}; a matrix has at most 2^31 "
            "rows and less than 2^31 columns, because the number of a diagonal is an "
            "INT32."
        )
    check_elements(shape)
    if x is not None and 0 in shape:
        # jnp.where would not read an empty `x`, and could use another device.
        return drop_weak_type(x)
    sharding = None if x is None else jax.typeof(x).sharding
    # The iotas have the full size of the output, and take no memory. Broadcasting a
    # mask along the batch, as jnp.tril does, would end XLA's softmax fusion.
    row, column = (
        lax.broadcasted_iota(np.int32, shape, axis, out_sharding=sharding)
        for axis in (rank - 2, rank - 1)
    )
    if span is None:
        scalars = map(jnp.asarray, bounds)
        top_x, is_ordered, begin, end = _spread(row, column, *scalars)
    else:
        top_x = column - row
        begin, end = map(np.int32, span)
        is_ordered = end >= begin
    # The comparisons with both bounds agree between the bounds, and differ outside,
    # whichever bound is smaller.
    is_below = top_x < end
    if span is not None and end == INT32_MAX:
        # Every diagonal is below this bound, but XLA would compare.
        is_below = True
    filled = is_ordered ^ ((top_x >= begin) ^ is_below)
    # Without an `x`, all elements share a single zero, and no array is read.
    zero = constant(0, template.dtype)
    on, off = (zero if array is None else drop_weak_type(array) for array in (value, x))
    return jnp.where(filled, on, off)


def _spread(row: Array, column: Array, begin: Array, end: Array) -> Any:
    """Broadcasts bounds that are data to all elements.

    Returns the number of each element's diagonal, whether begin <= end, and both bounds
    as INT32.
    """
    sharding = jax.typeof(row).sharding
    # We compare bounds before they saturate: the order of two bounds past all diagonals
    # decides between filling nothing and filling everything.
    if begin.dtype == end.dtype:
        is_ordered = begin <= end
    else:
        # No type holds all int64 and uint64. Numbers of the same sign have the order of
        # their bits.
        itemsize = max(begin.dtype.itemsize, end.dtype.itemsize)
        unsigned = np.dtype(f"uint{8 * itemsize}")
        bits_ordered = begin.astype(unsigned) <= end.astype(unsigned)
        is_ordered = jnp.where((begin < 0) == (end < 0), bits_ordered, begin < 0)
    scalars = is_ordered, *(cast_array(n, row.dtype) for n in (begin, end))
    is_ordered, begin, end = (
        lax.broadcast_in_dim(scalar, row.shape, (), out_sharding=sharding)
        for scalar in scalars
    )
    # XLA removes a select between equal arrays. Under vmap, the select gives the batch
    # of the bounds to the iotas. Without it, JAX broadcasts `column - row` along this
    # batch, and XLA computes the heads of a batch together: a softmax with a window for
    # each head is then slower.
    row, column = (lax.select_n(is_ordered, each, each) for each in (row, column))
    return column - row, is_ordered, begin, end


class DiagonalMatrix1Desc(OperatorDesc[Array]):
    """Describes ``diagonal_matrix1``, as DML_DIAGONAL_MATRIX1_OPERATOR_DESC does.

    Attributes:
      input_tensor: the tensor whose elements are kept where nothing is filled, of the
        type and the sizes of the output. None stands for zeros.
      output_tensor: 2 to 4 dimensions. Those before the last two are a batch.
      value_data_type: the type of the output.
      value: the number that fills the diagonals.
      diagonal_fill_begin: INT32, the first diagonal that is filled.
      diagonal_fill_end: INT32, one past the last diagonal that is filled.

    >>> from dmljax import TensorDesc, create_operator
    >>> matrix = TensorDesc(DataType.INT32, (2, 3))
    >>> desc = DiagonalMatrix1Desc(None, matrix, DataType.INT32, 7, 1, 3)
    >>> create_operator(desc)()
    Array([[0, 7, 7],
           [0, 0, 7]], dtype=int32)
    """

    operator = "DIAGONAL_MATRIX1"
    support = support_table("InputTensor OutputTensor", V5_1=(2, 4, UP_TO_64_BITS))

    input_tensor: TensorDesc | None
    output_tensor: TensorDesc
    value_data_type: DataType
    value: float
    diagonal_fill_begin: int
    diagonal_fill_end: int

    def evaluate(self, *arrays: Array) -> tuple[Array]:
        """Returns the output for the input, or for zeros."""
        output = diagonal_matrix1(
            *arrays,
            shape=None if arrays else self.output_tensor.sizes,
            dtype=self.output_tensor.dtype,
            value=self.scalar("Value", self.value),
            fill_begin=self.diagonal_fill_begin,
            fill_end=self.diagonal_fill_end,
        )
        return (output,)


class DiagonalMatrixDesc(OperatorDesc[Array]):
    """Describes DIAGONAL_MATRIX, as DML_DIAGONAL_MATRIX_OPERATOR_DESC does.

    The operator is ``diagonal_matrix1`` with a single diagonal and without an input.

    Attributes:
      output_tensor: 2 to 4 dimensions. Those before the last two are a batch.
      offset: INT32, the diagonal that is filled.
      value: a FLOAT. For an integer tensor it is truncated toward zero, and saturates.

    >>> from dmljax import TensorDesc, create_operator
    >>> desc = DiagonalMatrixDesc(TensorDesc(DataType.INT32, (2, 3)), 1, 7.0)
    >>> create_operator(desc)()
    Array([[0, 7, 0],
           [0, 0, 7]], dtype=int32)
    """

    operator = "DIAGONAL_MATRIX"
    support = support_table(
        "OutputTensor",
        V2_0=(4, 4, FLOATS),
        V2_1=(4, 4, UP_TO_32_BITS),
        V4_0=(2, 4, UP_TO_32_BITS),
        V5_1=(2, 4, UP_TO_64_BITS),
    )

    output_tensor: TensorDesc
    offset: int
    value: float

    def check_rules(self, level: FeatureLevel) -> None:
        """Checks the diagonal. The function checks the rest."""
        check_int32("Offset", self.offset)

    def evaluate(self, *arrays: Array) -> tuple[Array]:
        """Returns the output, which depends only on the attributes."""
        output = self.output_tensor
        zeros = jax.ShapeDtypeStruct(output.sizes, output.dtype)
        value: Any = self.scalar("Value", self.value, is_float=True)
        # The bound is an INT32. With an offset of INT32_MAX, nothing is filled: no
        # matrix has this diagonal.
        span = self.offset, min(self.offset + 1, INT32_MAX)
        return (_diagonal_matrix1(None, value, (), zeros, span),)
