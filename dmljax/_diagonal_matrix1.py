"""DIAGONAL_MATRIX1: fills a span of diagonals with a value.

All of the operator is here, except for its formula, `_coordinates.is_filled`. The older
DIAGONAL_MATRIX is here, too.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.export import is_symbolic_dim
from jax.typing import ArrayLike, DTypeLike

from dmljax._arguments import (
    LEFT_OUT,
    Scalar,
    as_array,
    as_dtype,
    as_integer,
    as_scalar,
    as_sizes,
    cast_float_value,
    check_x64,
    convert_scalar,
    strong,
    unwrapped,
)
from dmljax._check import counted, decide_at_most, require, require_same, show
from dmljax._coordinates import is_filled
from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.struct import field, member
from dmljax._directml.support import (
    FLOATS,
    UP_TO_32_BITS,
    UP_TO_64_BITS,
    FeatureLevel,
    Support,
)
from dmljax._directml.tensor import DataType, TensorDesc
from dmljax._primitive import OperatorPrimitive, compiled
from dmljax._select import select, transpose_select
from dmljax._types import INT32_MAX, INT32_MIN, Outputs, Sizes, check_int32, integer

NAME = "DIAGONAL_MATRIX1"
# The arguments of the function, as its messages name them.
X = "x (InputTensor)"
VALUE = "value (Value)"
BEGIN = "fill_begin (DiagonalFillBegin)"
END = "fill_end (DiagonalFillEnd)"
SUPPORT = {
    FeatureLevel.V5_1: dict.fromkeys(
        ("InputTensor", "OutputTensor"), Support(2, 4, UP_TO_64_BITS)
    )
}
DIAGONAL_MATRIX_SUPPORT = {
    FeatureLevel.V2_0: {"OutputTensor": Support(4, 4, FLOATS)},
    FeatureLevel.V2_1: {"OutputTensor": Support(4, 4, UP_TO_32_BITS)},
    FeatureLevel.V4_0: {"OutputTensor": Support(2, 4, UP_TO_32_BITS)},
    FeatureLevel.V5_1: {"OutputTensor": Support(2, 4, UP_TO_64_BITS)},
}


def _xla(*operands: jax.Array, matrix: tuple[int, int], **static: Any) -> Outputs:
    # `is_filled` explains the operands in front. Diagonals are counted in int32, as the
    # bounds are. The iotas have the full size of the output, and take no memory. With a
    # mask that is broadcast along the batch, XLA's softmax fusion is 1.8 to 3 times as
    # slow (results/nvidia-h200.csv, "causal softmax" and "jnp tril").
    *data, value, x = operands
    (sizes,) = _sizes(*operands, matrix=matrix)
    row, column = (lax.broadcasted_iota(np.int32, sizes, x.ndim - i) for i in (2, 1))
    # XLA for GPUs chooses the blocks of a fusion by the number of its operations, also
    # of those on single numbers. The barrier keeps these out of a softmax: it takes
    # 0.092 ms with the barrier, 0.101 without (results/nvidia-h200.csv, "each head").
    static["hold"] = lax.optimization_barrier
    return select(is_filled(column - row, data, **static), value, x)


def _sizes(
    *operands: jax.Array, matrix: tuple[int, int], **static: Any
) -> list[tuple[int, ...]]:
    del static
    return [(*jnp.broadcast_shapes(*(x.shape[:-2] for x in operands)), *matrix)]


DIAGONAL_MATRIX1 = OperatorPrimitive(
    "diagonal_matrix1",
    _xla,
    # The batch. The diagonal of an element depends on its row and column.
    lambda *operands, **static: range(operands[-1].ndim - 2),
    sizes=_sizes,
    linear=2,  # the value and the input
    transpose=transpose_select,
)


def diagonal_matrix1(
    x: ArrayLike | None = None,
    /,
    *,
    shape: Sizes | None = None,
    dtype: DTypeLike | None = None,
    value: ArrayLike = 1,
    fill_begin: ArrayLike | None = LEFT_OUT,
    fill_end: ArrayLike | None = LEFT_OUT,
) -> jax.Array:
    """Fills the diagonals in [fill_begin, fill_end) with `value`, and keeps the others.

    The element ``[..., row, column]`` is on diagonal ``top_x = column - row``. Diagonal
    0 is the main diagonal, and positive diagonals lie to its right. An element is
    filled if ``(fill_end >= fill_begin) ^ (top_x >= fill_begin) ^ (top_x < fill_end)``.

    If fill_begin < fill_end, the diagonals in [fill_begin, fill_end) are filled. If
    fill_begin > fill_end, all diagonals outside of [fill_end, fill_begin) are filled.
    If the bounds are equal, nothing is filled. If both are left out, the main diagonal
    is filled, as jnp.fill_diagonal does it for a matrix. (Of an array with three
    dimensions, that function fills the elements ``x[i, i, i]``.)

    Args:
      x: (..., height, width) of any type. The leading dimensions are a
        batch. None stands for an array of zeros with `shape` and `dtype`.
      shape: the sizes of the result. They are required if `x` is None. Otherwise None
        stands for the sizes of `x`, and other sizes are an error.
      dtype: the type of the result. None stands for the type of `x`, or for float32 if
        `x` is None. If there is an `x`, another type is an error.
      value: a scalar of the type of the result. A Python number is converted to
        this type, and is an error if it does not fit.
      fill_begin: INT32, the first diagonal that is filled. A
        Python number is part of the program. A scalar ``jax.Array`` is data: no new
        program is compiled for another value, and under ``vmap`` each matrix may have
        bounds of its own. None is below every diagonal.
      fill_end: INT32, one past the last diagonal that is filled. None
        is past every diagonal.

    Returns:
      An array (..., height, width), differentiable in `x` and `value`.

    Raises:
      DescriptorError: if the rank is below 2, if a matrix has more than 2^31 rows or
        columns, if a bound is not an INT32, or if `shape`, `dtype` or `value` does not
        agree with `x`.
      TypeError: if `x` is not an array, if both `x` and `shape` are None, or if one
        bound is given and the other is left out.

    >>> diagonal_matrix1(shape=(2, 4), value=7, fill_begin=0, fill_end=2)
    Array([[7., 7., 0., 0.],
           [0., 7., 7., 0.]], dtype=float32)

    Mask the scores of attention: no query sees a later key. The value is the lowest
    number of their type.

    >>> import jax.numpy as jnp
    >>> scores = jnp.ones((2, 2), jnp.bfloat16)
    >>> lowest = jnp.finfo(scores.dtype).min
    >>> diagonal_matrix1(scores, value=lowest, fill_begin=1, fill_end=None)
    Array([[1, -3.38953e+38],
           [1, 1]], dtype=bfloat16)

    See DML_DIAGONAL_MATRIX1_OPERATOR_DESC in directml.h.
    """
    zeros: Any = None
    if x is None:
        zeros = _describe(shape, dtype)
    else:
        x = as_array(NAME, X, x)
        if shape is not None:
            sizes = ("shape", as_sizes(NAME, "shape", shape)), (X, x.shape)
            require_same(NAME, "sizes", *sizes, " Leave shape out.")
        if dtype is not None:
            types = ("dtype", as_dtype(NAME, dtype)), (X, x.dtype)
            require_same(NAME, "data types", *types, " Leave dtype out.")
    value, constant = as_scalar(NAME, VALUE, value, x if zeros is None else zeros)
    begin, end, bounds = _split_bounds(fill_begin, fill_end)
    return _diagonal_matrix1(x, value, bounds, constant, zeros, begin, end)


def _describe(shape: Sizes | None, dtype: DTypeLike | None) -> jax.ShapeDtypeStruct:
    """Describes the zeros that stand for an input of None."""
    if shape is None:
        raise TypeError(f"{NAME}: x (InputTensor) or shape must be given.")
    sizes = as_sizes(NAME, "shape", shape)
    holds = all(decide_at_most(NAME, 0, size) for size in sizes)
    require(NAME, holds, f"shape is {show(sizes)}; no size may be negative.")
    kind = as_dtype(NAME, np.float32 if dtype is None else dtype)
    check_x64(NAME, "the result (dtype)", kind)
    return jax.ShapeDtypeStruct(sizes, kind)


def _split_bounds(
    fill_begin: ArrayLike | None, fill_end: ArrayLike | None
) -> tuple[int | None, int | None, tuple[Any, ...]]:
    """Returns both bounds as attributes, or None and None, and both bounds as data."""
    if fill_begin is LEFT_OUT and fill_end is LEFT_OUT:
        return 0, 1, ()
    # No matrix has diagonal INT32_MIN, but one with 2^31 columns has INT32_MAX. All
    # diagonals from `begin` on are all outside of [INT32_MIN, begin).
    begin: Any = INT32_MIN if fill_begin is None else fill_begin
    end: Any = INT32_MIN if fill_end is None else fill_end
    # Other bounds than Python's integers cost some microseconds, as a small call does.
    if not (type(begin) is int and type(end) is int):
        if begin is LEFT_OUT or end is LEFT_OUT:
            one, other = (END, BEGIN) if begin is LEFT_OUT else (BEGIN, END)
            raise TypeError(
                f"{NAME}: {one} is given, and {other} is not. Write {other.split()[0]}="
                "None for no bound, or fill_end=fill_begin + 1 for one diagonal."
            )
        # A symbolic size is no number yet when the program is traced: it is data.
        bounds = (jnp.asarray(x) if is_symbolic_dim(x) else x for x in (begin, end))
        begin, end = map(unwrapped, bounds)
        named = (BEGIN, begin), (END, end)
        if isinstance(begin, jax.Array) or isinstance(end, jax.Array):
            begin, end = (_as_bound(*bound) for bound in named)
            if fill_end is None:
                begin = jnp.maximum(begin, np.int32(INT32_MIN + 1))
            return None, None, (begin, end)
        begin, end = (as_integer(NAME, *bound) for bound in named)
    return begin + (fill_end is None and begin == INT32_MIN), end, ()


def _as_bound(name: str, bound: ArrayLike) -> Any:
    """Returns a bound as an int32 scalar. A Python number that is traced saturates."""
    if isinstance(bound, jax.Array):
        bound = as_array(NAME, name, bound)  # refuses random keys
        truth = bound.dtype == np.bool_  # which `convert_scalar` takes for a number
        require(NAME, not truth, f"{name} has data type BOOL; it must have INT32.")
        int32 = np.dtype(np.int32)
        return convert_scalar(
            NAME, name, Scalar(bound, None), int32, owner="a diagonal"
        )
    number = as_integer(NAME, name, bound)
    check_int32(NAME, name, number)
    return np.asarray(number, np.int32)


def _check_diagonals(operator: str, name: str, shape: tuple[int, ...]) -> None:
    # JAX takes a symbolic size to be below 2^31.
    small = all(size <= 2**31 for size in shape[-2:] if isinstance(size, int))
    require(
        operator,
        small,
        f"{name} has sizes {show(shape)}; a matrix has at most 2^31 rows and 2^31 "
        "columns, because the number of a diagonal is an INT32.",
    )


@compiled
def _diagonal_matrix1(
    x: jax.Array | None,
    value: jax.Array | None,
    bounds: tuple[jax.Array, ...],
    /,
    constant: int | None,
    zeros: jax.ShapeDtypeStruct | None,
    fill_begin: int | None,
    fill_end: int | None,
) -> jax.Array:
    described: Any = zeros if x is None else x
    shape = described.shape
    rank = len(shape)
    # A descriptor has been checked: these messages are those of the function.
    name = "the result (shape)" if x is None else X
    require(
        NAME,
        rank >= 2,
        f"{name} has sizes {show(shape)}, {counted(rank, 'dimension')}; a matrix has "
        "at least 2. x[None] and shape=(1, n) have one row.",
    )
    _check_diagonals(NAME, name, shape)
    if fill_begin is not None and fill_end is not None:
        check_int32(NAME, BEGIN, fill_begin)
        check_int32(NAME, END, fill_end)
    filling = convert_scalar(NAME, VALUE, Scalar(value, constant), described.dtype)
    scalars = [strong(y).reshape((1,) * rank) for y in (*bounds, filling)]
    # One zero for each matrix is shared by its elements: no array is read.
    if x is None:
        x = jnp.zeros((*shape[:-2], 1, 1), described.dtype)
    (output,) = DIAGONAL_MATRIX1(
        *scalars, strong(x), matrix=shape[-2:], fill_begin=fill_begin, fill_end=fill_end
    )
    return output


class DiagonalMatrix1Desc(OperatorDesc[jax.Array]):
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

    operator = NAME
    support = SUPPORT

    input_tensor: TensorDesc | None
    output_tensor: TensorDesc
    value_data_type: DataType = field(converter=member(DataType))
    value: int | float
    diagonal_fill_begin: int = field(converter=integer)
    diagonal_fill_end: int = field(converter=integer)

    def output_shapes(self, level: FeatureLevel) -> tuple[tuple[int, ...]]:
        """Returns the sizes of the input, or of the output if there is no input."""
        del level
        check_int32(NAME, "DiagonalFillBegin", self.diagonal_fill_begin)
        check_int32(NAME, "DiagonalFillEnd", self.diagonal_fill_end)
        self.check_value_type(self.value_data_type, "ValueDataType")
        self.scalar("Value", self.value)
        _check_diagonals(NAME, "tensor 'OutputTensor'", self.output_tensor.sizes)
        return ((self.input_tensor or self.output_tensor).sizes,)

    def evaluate(self, *arrays: jax.Array) -> tuple[jax.Array]:
        """Returns the output for the input, if there is one."""
        value = self.scalar("Value", self.value)
        bounds = self.diagonal_fill_begin, self.diagonal_fill_end
        (x,) = arrays or (None,)
        output = self.output_tensor
        zeros = None if arrays else jax.ShapeDtypeStruct(output.sizes, output.dtype)
        return (_diagonal_matrix1(x, value.array, (), value.constant, zeros, *bounds),)


class DiagonalMatrixDesc(OperatorDesc[jax.Array]):
    """Describes DIAGONAL_MATRIX, as DML_DIAGONAL_MATRIX_OPERATOR_DESC does.

    The operator is ``diagonal_matrix1`` with a single diagonal and without an input.

    Attributes:
      output_tensor: 2 to 4 dimensions. Those before the last two are a batch.
      offset: INT32, the diagonal that is filled.
      value: a FLOAT. For an integer tensor it is converted as the value of PADDING is:
        truncated toward zero, and limited to the range of the type.

    >>> from dmljax import TensorDesc, create_operator
    >>> desc = DiagonalMatrixDesc(TensorDesc(DataType.INT32, (2, 3)), 1, 7.0)
    >>> create_operator(desc)()
    Array([[0, 7, 0],
           [0, 0, 7]], dtype=int32)
    """

    operator = "DIAGONAL_MATRIX"
    support = DIAGONAL_MATRIX_SUPPORT

    output_tensor: TensorDesc
    offset: int = field(converter=integer)
    value: float

    def output_shapes(self, level: FeatureLevel) -> tuple[tuple[int, ...]]:
        """Returns the sizes of the output itself, because there is no input."""
        del level
        check_int32(self.operator, "Offset", self.offset)
        sizes = self.output_tensor.sizes
        _check_diagonals(self.operator, "tensor 'OutputTensor'", sizes)
        return (sizes,)

    def evaluate(self, *arrays: jax.Array) -> tuple[jax.Array]:
        """Returns the output. It depends on the attributes alone."""
        output = self.output_tensor
        zeros = jax.ShapeDtypeStruct(output.sizes, output.dtype)
        value = cast_float_value(self.value, output.dtype)
        # The bounds are INT32: an offset of INT32_MAX gets an empty span. No matrix has
        # such a diagonal.
        end = min(self.offset + 1, INT32_MAX)
        return (_diagonal_matrix1(None, value, (), None, zeros, self.offset, end),)
