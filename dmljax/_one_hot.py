"""ONE_HOT: makes sequences with the value *on* at an index, and *off* elsewhere."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from dmljax._arguments import (
    as_array,
    as_axis,
    as_integer,
    as_size,
    drop_weak_type,
    is_integer,
)
from dmljax._call import check_elements, compiled
from dmljax._check import ArgumentError, decide_le, public, require_same, show
from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.support import (
    FLOATS,
    UP_TO_32_BITS,
    UP_TO_64_BITS,
    FeatureLevel,
    support_table,
)
from dmljax._directml.tensor import DataType, TensorDesc
from dmljax._sharding import whole
from dmljax._types import as_bits, constant

# The arguments of the function, as its messages name them.
INDEX = "indices (IndicesTensor)"
VALUES = "values (ValuesTensor)"
AXIS = "axis (Axis)"
# The types of the indices in the support table.
INDICES = (DataType.INT64, DataType.INT32, DataType.UINT64, DataType.UINT32)


@public
def one_hot(
    indices: ArrayLike, values: ArrayLike, /, *, size: int, axis: int = -1
) -> Array:
    """Makes sequences along `axis`, each *on* at its index and *off* elsewhere.

    ``output[.., i, ..] = on if i == position_of(indices[.., 0, ..]) else off``, where
    off is the first element of `values` and on is the second. ``position_of(index)`` is
    index + size for a negative index, and the index itself otherwise. If an index is at
    least `size`, or below -size, its whole sequence is off. An unsigned index is never
    negative.

    Args:
      indices: (..., 1, ...) of any integer type, of size 1 along `axis`.
      values: an array of any type and shape with at least 2 elements. The first two in
        row-major order are off and on. If `values` is a NumPy array that begins with 0
        and 1, XLA can fuse the result further, for example into a cross-entropy.
      size: the number of elements of each sequence, from 1 to 2^31 - 1.
      axis: the dimension of the sequences; a negative axis counts from the end.

    Returns:
      An array (..., size, ...) of the type of `values`, differentiable in `values`.

    Raises:
      DescriptorError: if `axis` is out of range, if `indices` is not an integer array
        of size 1 along `axis`, if `values` has fewer than 2 elements, or if `size` is
        out of range.
      TypeError: if `indices` or `values` is not an array, or if `size` or `axis` is not
        an integer.

    Labels of -1 or -100 often stand for "ignore", but here a negative label counts from
    the end. Move these labels out of range by
    ``jnp.where(labels < 0, size, labels.astype(int))``, and leave their losses out of
    the mean. The cast is necessary because 8-bit labels may not hold the size.

    >>> import jax.numpy as jnp
    >>> indices = jnp.array([[0], [-1], [5]])
    >>> one_hot(indices, jnp.array([4.0, 2.0]), size=3)
    Array([[2., 4., 4.],
           [4., 4., 2.],
           [4., 4., 4.]], dtype=float32)

    See DML_ONE_HOT_OPERATOR_DESC in directml.h.
    """
    values = as_array(VALUES, values)
    return _one_hot(
        as_array(INDEX, indices),
        values,
        as_size("size", size),
        as_integer(AXIS, axis),
        _are_truth_values(values),
        not isinstance(values, jax.core.Tracer),
    )


def _are_truth_values(values: Array | np.ndarray) -> bool:
    """Whether `values` is a NumPy array that begins with 0 and 1."""
    if not isinstance(values, np.ndarray):
        return False
    # -0.0 equals 0, but is no truth value: we compare bits.
    wanted = np.array([0, 1]).astype(values.dtype)
    return bool(values.flat[:2].tobytes() == wanted.tobytes())


@compiled("size", "axis", "are_truth_values", "are_known")
def _one_hot(
    indices: Array,
    values: Array,
    size: int,
    axis: int,
    are_truth_values: bool,
    are_known: bool,
) -> Array:
    """Computes ``one_hot``.

    `are_truth_values`: the caller's `values` begin with 0 and 1. `are_known`: the
    caller's `values` are not traced, which this function can't see.
    """
    if not is_integer(indices.dtype):
        raise ArgumentError(
            f"{INDEX} has data type {show(indices.dtype)}; it must be an "
            "integer type. Write indices.astype('int32'), or call dmljax.onnx.one_hot, "
            "which takes floats."
        )
    rank = indices.ndim
    if rank == 0:
        raise ArgumentError(
            f"{AXIS} is {axis}, while {INDEX} has 0 dimensions; {INDEX} must have "
            "a dimension of size 1 along axis. Write indices[None]."
        )
    axis = as_axis(AXIS, axis, rank)
    if indices.shape[axis] != 1:
        raise ArgumentError(
            f"{INDEX} has sizes {show(indices.shape)}; its size along {AXIS} {axis} is "
            f"{indices.shape[axis]} and must be 1. jnp.expand_dims(indices, axis) adds "
            "an axis of size 1."
        )
    if not decide_le(2, values.size):
        raise ArgumentError(
            f"{VALUES} has sizes {show(values.shape)}; it must have at least 2 "
            "elements, off and on."
        )
    # `position_of` adds the size to an index as an unsigned number. Below 2^31, the
    # size makes no index wrap around that is not negative. A symbolic size needs no
    # check: JAX assumes that it is below 2^31.
    too_large = isinstance(size, int) and size >= 2**31
    if too_large or not decide_le(1, size):
        raise ArgumentError(f"size is {size}; it must be in [1, 2^31).")
    sizes = (*indices.shape[:axis], size, *indices.shape[axis + 1 :])
    check_elements(sizes)
    if indices.dtype.itemsize < 4:  # a type that may not hold `size`
        signed = jnp.issubdtype(indices.dtype, np.signedinteger)
        indices = indices.astype(np.int32 if signed else np.uint32)
    # `position_of` could take the small array of indices. We broadcast first: the full
    # size costs nothing where XLA fuses. A broadcast after `position_of` keeps XLA from
    # some fusions, or takes a further kernel.
    position = position_of(jnp.broadcast_to(indices, sizes), size)
    sharding = jax.typeof(position).sharding
    condition = position == lax.broadcasted_iota(
        position.dtype, sizes, axis, out_sharding=sharding
    )
    # If off and on are 0 and 1, we convert the condition: XLA fuses the conversion
    # further, for example into a mean cross-entropy.
    if are_truth_values:
        return lax.convert_element_type(condition, values.dtype)
    values = drop_weak_type(values)
    # JAX can't flatten a matrix that explicit mesh axes divide, so we gather it first.
    # DirectML ignores the elements past the second.
    off, on = jnp.ravel(whole(values, range(values.ndim)))[:2]
    # `_choose_bits` has no derivative, and a caller may differentiate traced values. So
    # we use it only for known values, and only in the types of floats in which losses
    # are computed: we have timed no others.
    if are_known and values.dtype in (np.float32, np.float16, jnp.bfloat16):
        return _choose_bits(condition, on, off)
    return jnp.where(condition, on, off)


def position_of(index: Array, size: int) -> Array:
    """Returns the position that each index turns on: index + size for a negative index.

    The type of a signed `index` must hold `size`. We read its bits as an unsigned
    number, and take the smaller of index and index + size:

    - index >= 0: the sum does not wrap around, so the index is smaller;
    - -size <= index < 0: the sum wraps around to the position, which is smaller;
    - index < -size: the sum does not wrap around, so the index is smaller. As an
      unsigned number, it is at least `size`, and turns nothing on.
    """
    if not jnp.issubdtype(index.dtype, np.signedinteger):
        return index
    index = lax.bitcast_convert_type(index, jnp.dtype(f"u{index.dtype}"))
    return lax.min(index, lax.add(index, constant(size, index.dtype)))


def _choose_bits(condition: Array, on: Array, off: Array) -> Array:
    """Returns where(condition, on, off) of two scalars: off ^ (condition * (on ^ off)).

    A select of two scalars keeps XLA from its softmax fusion, which a mean
    cross-entropy of smoothed labels needs. These operations on bits allow the fusion.
    """
    on_bits = as_bits(on)
    off_bits = as_bits(off)
    is_on = condition.astype(on_bits.dtype)
    chosen = off_bits ^ (is_on * (on_bits ^ off_bits))
    return lax.bitcast_convert_type(chosen, on.dtype)


class OneHotDesc(OperatorDesc[Array]):
    """Describes ONE_HOT, as DML_ONE_HOT_OPERATOR_DESC does; see ``one_hot``.

    All three tensors have the same rank.

    Attributes:
      indices_tensor: the indices, of the output's sizes, but of size 1 along `axis`.
      values_tensor: at least two elements. The first two are off and on.
      output_tensor: a tensor of the type of `values_tensor`.
      axis: the dimension of the sequences, at least 0 and less than the rank.

    >>> import jax.numpy as jnp
    >>> from dmljax import DataType, TensorDesc, create_operator
    >>> desc = OneHotDesc(TensorDesc(DataType.INT32, (2, 1)),
    ...                   TensorDesc(DataType.FLOAT32, (1, 2)),
    ...                   TensorDesc(DataType.FLOAT32, (2, 3)), axis=1)
    >>> create_operator(desc)(jnp.array([[0], [-1]]), jnp.array([[0.0, 1.0]]))
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """

    operator = "ONE_HOT"
    support = support_table(
        "IndicesTensor",
        "ValuesTensor OutputTensor",
        V2_0=(4, 4, (DataType.UINT32,), FLOATS),
        V2_1=(4, 4, (DataType.UINT32,), UP_TO_32_BITS),
        V3_0=(1, 8, INDICES, UP_TO_32_BITS),
        V4_1=(1, 8, INDICES, UP_TO_64_BITS),
    )
    same_type = ("values_tensor", "output_tensor")

    indices_tensor: TensorDesc
    values_tensor: TensorDesc
    output_tensor: TensorDesc
    axis: int

    def check_rules(self, level: FeatureLevel) -> None:
        """Checks the ranks and the axis. The function checks the rest."""
        # DirectML's page of ONE_HOT requires equal ranks, and so do we. ONNX Runtime
        # breaks this rule: its ValuesTensor always has rank 4.
        indices, values, output = (tensor.sizes for tensor in self.tensors().values())
        rank = len(indices)
        ranks = {
            "IndicesTensor": rank,
            "ValuesTensor": len(values),
            "OutputTensor": len(output),
        }
        require_same("dimension counts", ranks)
        # The C field is unsigned. Only the function counts a negative axis from the
        # end.
        if not 0 <= self.axis < rank:
            raise ArgumentError(
                f"Axis is {self.axis}; it must be in [0, {rank}), as "
                f"tensor 'IndicesTensor' has sizes {show(indices)}."
            )
        # The function checks this, too, but its advice, jnp.expand_dims, is no use
        # here.
        if indices[self.axis] != 1:
            raise ArgumentError(
                f"tensor 'IndicesTensor' has sizes {show(indices)}; its size along "
                f"Axis {self.axis} must be 1."
            )

    def evaluate(self, *arrays: Array) -> tuple[Array]:
        """Returns the output for the indices and the values."""
        size = self.output_tensor.sizes[self.axis]
        return (one_hot(*arrays, size=size, axis=self.axis),)
