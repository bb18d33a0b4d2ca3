"""ONE_HOT: sequences that are off everywhere except at one index.

All of the operator is here, except for its formula, `_coordinates.wrapped`.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from dmljax._arguments import as_array, as_integer, as_size, same_type, strong
from dmljax._check import counted, decide_at_most, require, require_same, show
from dmljax._coordinates import countable, wrapped
from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.struct import field
from dmljax._directml.support import (
    FLOATS,
    INDICES,
    UINT32_ONLY,
    UP_TO_32_BITS,
    UP_TO_64_BITS,
    FeatureLevel,
    Support,
)
from dmljax._directml.tensor import TensorDesc
from dmljax._primitive import OperatorPrimitive, compiled
from dmljax._select import select, transpose_select
from dmljax._types import Outputs, integer, is_integer, mode_of

NAME = "ONE_HOT"
# The arguments of the function, as its messages name them.
INDEX = "indices (IndicesTensor)"
VALUES = "values (ValuesTensor)"
AXIS = "axis (Axis)"
SIZE = "size"


SUPPORT = {
    level: {"IndicesTensor": Support(low, high, indices)}
    | dict.fromkeys(("ValuesTensor", "OutputTensor"), Support(low, high, values))
    for level, low, high, indices, values in (
        (FeatureLevel.V2_0, 4, 4, UINT32_ONLY, FLOATS),
        (FeatureLevel.V2_1, 4, 4, UINT32_ONLY, UP_TO_32_BITS),
        (FeatureLevel.V3_0, 1, 8, INDICES, UP_TO_32_BITS),
        (FeatureLevel.V4_1, 1, 8, INDICES, UP_TO_64_BITS),
    )
}


def _xla(
    index: jax.Array, on: jax.Array, off: jax.Array, *, size: int, axis: int
) -> Outputs:
    # The static axis is negative: a batch dimension in front leaves it alone.
    index = countable(index)
    (sizes,) = _sizes(index, on, off, size=size, axis=axis)
    # In full size, all of this costs nothing where XLA fuses it. What is broadcast
    # later keeps XLA from some fusions, or takes a kernel of its own.
    with mode_of(index):
        lit = wrapped(lax.broadcast_in_dim(index, sizes, range(index.ndim)), size)
        position = lax.broadcasted_iota(lit.dtype, sizes, axis + index.ndim)
        condition = lax.eq(lit, position)
    return select(condition, on, off)


def _sizes(*operands: jax.Array, size: int, axis: int) -> list[tuple[int, ...]]:
    sizes = list(jnp.broadcast_shapes(*(x.shape for x in operands)))
    sizes[axis] = size
    return [tuple(sizes)]


ONE_HOT = OperatorPrimitive(
    "one_hot",
    _xla,
    # All dimensions but that of the sequences.
    lambda index, *_, axis, **static: {*range(index.ndim)} - {index.ndim + axis},
    sizes=_sizes,
    linear=2,  # on and off
    transpose=transpose_select,
)


def one_hot(
    indices: ArrayLike, values: ArrayLike, /, *, size: int, axis: int = -1
) -> jax.Array:
    """Makes sequences along `axis` that are off everywhere except at their index.

    ``output[.., i, ..] = on if i == wrapped(indices[.., 0, ..]) else off``, where off
    is the first element of `values` and on is the second. If an index is negative,
    ``wrapped(index)`` is index + size; otherwise it is the index itself. If an index is
    at least `size`, or below -size, its whole sequence is off. An unsigned index is
    never negative.

    Args:
      indices: (..., 1, ...) of any integer type, of size 1 along `axis`.
      values: an array of any type and shape with at least 2 elements. The first two in
        row-major order are off and on.
      size: the number of elements of each sequence, from 1 to 2^31 - 1.
      axis: the dimension of the sequences; a negative one counts from the end.

    Returns:
      An array (..., size, ...) of the type of `values`, differentiable in `values`.

    Raises:
      DescriptorError: if `axis` is out of range, if `indices` is not an integer array
        of size 1 along `axis`, if `values` has fewer than 2 elements, or if `size` is
        out of range.
      TypeError: if `indices` or `values` is not an array, or if `size` or `axis` is not
        an integer.

    Labels of -1 or -100 often stand for "ignore". A negative label counts from the end
    here. Make it out of range: ``jnp.where(labels < 0, size, labels.astype(int))``.

    >>> import jax.numpy as jnp
    >>> indices = jnp.array([[0], [-1], [5]])
    >>> one_hot(indices, jnp.array([4.0, 2.0]), size=3)
    Array([[2., 4., 4.],
           [4., 4., 2.],
           [4., 4., 4.]], dtype=float32)

    See DML_ONE_HOT_OPERATOR_DESC in directml.h.
    """
    return _one_hot(
        as_array(NAME, INDEX, indices),
        as_array(NAME, VALUES, values),
        as_size(NAME, SIZE, size),
        as_integer(NAME, AXIS, axis),
        _are_truth_values(values),
    )


def _are_truth_values(values: ArrayLike) -> bool:
    """Whether off is 0 and on is 1, and JAX knows it while it traces a call."""
    if not isinstance(values, np.ndarray):
        return False
    wanted = np.array([0, 1]).astype(values.dtype)
    return bool(values.ravel()[:2].tobytes() == wanted.tobytes())


@compiled
def _one_hot(
    indices: jax.Array, values: jax.Array, /, size: int, axis: int, truth: bool
) -> jax.Array:
    require(
        NAME,
        is_integer(indices.dtype),
        f"{INDEX} has data type {show(indices.dtype)}; it must be an integer type."
        f"{same_type('indices', indices.dtype, np.dtype(np.int32))} "
        "dmljax.numpy.one_hot also takes floats, and NaN lights nothing there.",
    )
    rank = indices.ndim
    require(
        NAME,
        rank > 0,
        f"{AXIS} is {axis}, while {INDEX} has 0 dimensions; it must have one of size 1 "
        "along axis. Write indices[None].",
    )
    require(
        NAME,
        -rank <= axis < rank,
        f"{AXIS} is {axis}; it must be in [{-rank}, {rank}), as {INDEX} has "
        f"{counted(rank, 'dimension')}.",
    )
    axis %= rank
    names = INDEX, VALUES, AXIS, SIZE
    _check_sizes(names, indices.shape, values.shape, size, axis)
    # Later elements are ignored, as the page says.
    # XLA fuses a conversion of truth values further than a select: the loss of labels
    # takes 0.190 ms on an H200, and 0.225 with a select (results/nvidia-h200.csv, "mean
    # loss of labels" and "[values]").
    if truth:
        off, on = (lax.full((1,) * rank, bit) for bit in (False, True))
    else:
        flat = strong(values).reshape((values.size,) + (1,) * (rank - 1))
        off, on = flat[:1], flat[1:2]
    (output,) = ONE_HOT(strong(indices), on, off, size=size, axis=axis - rank)
    converted: jax.Array = lax.convert_element_type(output, values.dtype)
    return converted


def _check_sizes(
    names: tuple[str, ...],
    indices: tuple[int, ...],
    values: tuple[int, ...],
    size: int,
    axis: int,
) -> tuple[int, ...]:
    """Checks the sizes of the inputs, and returns those of the output."""
    index_name, values_name, axis_name, size_name = names
    require(
        NAME,
        indices[axis] == 1,
        f"{index_name} has sizes {show(indices)}; its size along {axis_name} {axis} is "
        f"{indices[axis]} and must be 1. jnp.expand_dims(indices, axis) adds an axis "
        "of size 1.",
    )
    elements = math.prod(values)
    require(
        NAME,
        decide_at_most(NAME, 2, elements),
        f"{values_name} has sizes {show(values)}, {counted(elements, 'element')}; it "
        "must have at least 2, off and on, as jnp.array([0.0, 1.0]) has.",
    )
    # Positions are counted in int32 where the indices have no wider type. JAX takes a
    # symbolic size to be below 2^31.
    small = not isinstance(size, int) or size < 2**31
    fits = small and decide_at_most(NAME, 1, size)
    require(NAME, fits, f"{size_name} is {size}; it must be in [1, 2^31).")
    return (*indices[:axis], size, *indices[axis + 1 :])


class OneHotDesc(OperatorDesc[jax.Array]):
    """Describes ONE_HOT, as DML_ONE_HOT_OPERATOR_DESC does; see ``one_hot``.

    All three tensors have the same rank.

    Attributes:
      indices_tensor: the indices. Its sizes are those of the output, except along
        `axis`, where its size is 1.
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

    operator = NAME
    support = SUPPORT
    same_type = ("values_tensor", "output_tensor")

    indices_tensor: TensorDesc
    values_tensor: TensorDesc
    output_tensor: TensorDesc
    axis: int = field(converter=integer)

    def output_shapes(self, level: FeatureLevel) -> tuple[tuple[int, ...]]:
        """Returns the sizes of the indices, with the output's size along the axis."""
        del level
        # ONNX Runtime gives ValuesTensor rank 4 whatever the others have. The page
        # forbids that.
        indices, values, output = (tensor.sizes for tensor in self.tensors().values())
        rank = len(indices)
        for name, sizes in (("ValuesTensor", values), ("OutputTensor", output)):
            ranks = (name, len(sizes)), ("IndicesTensor", rank)
            require_same(NAME, "dimension counts", *ranks)
        # The C field is unsigned. Only the function takes an axis from the end.
        require(
            NAME,
            0 <= self.axis < rank,
            f"Axis is {self.axis}; it must be less than the {rank} dimensions of "
            "tensor 'IndicesTensor'.",
        )
        tensors = (f"tensor '{name}Tensor'" for name in ("Indices", "Values"))
        names = *tensors, "Axis", "the size of tensor 'OutputTensor' along Axis"
        size = output[self.axis]
        return (_check_sizes(names, indices, values, size, self.axis),)

    def evaluate(self, *arrays: jax.Array) -> tuple[jax.Array]:
        """Returns the output for the indices and the values."""
        size = self.output_tensor.sizes[self.axis]
        return (_one_hot(*arrays, size, self.axis, False),)
