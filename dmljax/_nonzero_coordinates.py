"""NONZERO_COORDINATES: the coordinates of all elements that are not zero.

The forms are in `_nonzero_forms`, and the result is in `_nonzero_coordinates_result`.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import numpy as np
from jax import Array, lax
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec
from jax.typing import ArrayLike

from dmljax import _nonzero_forms as forms
from dmljax._arguments import as_array, as_integer, as_size
from dmljax._call import compiled
from dmljax._check import ArgumentError, as_python, decide_le, public, show
from dmljax._directml.descriptor import OperatorDesc
from dmljax._directml.support import UP_TO_32_BITS, FeatureLevel, SupportTable
from dmljax._directml.tensor import DataType, TensorDesc
from dmljax._nonzero_coordinates_result import NonzeroCoordinates, nonzero_result
from dmljax._nonzero_kernels import Implementation, choose_kernel
from dmljax._primitive import OperatorPrimitive
from dmljax._sharding import Division, divided_axes, explicit_mesh
from dmljax._types import MAX_ELEMENTS, constant

X = "x (InputTensor)"  # the argument of the function, as its messages name it


@public
def nonzero_coordinates(
    x: ArrayLike,
    /,
    *,
    columns: int | None = None,
    fill: int | None = 0,
    parts: int | None = None,
    size: int | None = None,
    implementation: Implementation = None,
) -> NonzeroCoordinates:
    """Finds the coordinates of all elements that are not zero.

    If r is less than the count, ``coordinates[r]`` holds the coordinates of the r-th
    element that is not zero, in ascending row-major order. The other rows are the rows
    past the count, and hold `fill`.

    Both 0.0 and -0.0 are zero. NaN, infinities and subnormal numbers are not.

    Coordinates are uint32 and wrap below 0: write ``.astype(int)`` before you subtract.
    Rows past the count hold 0 by default, and 0 is an index as well: if `x` is the
    adjacency matrix of a graph, (n, n), each row past the count stands for an edge from
    node 0 to itself. With ``fill=n`` these rows are out of bounds. Then, for an array
    `a` of the sizes of `x`, and ``index = tuple(coordinates.T)``, ``a.at[index].add``
    skips these rows, and ``a.at[index].get(mode="fill", fill_value=0)`` reads 0 for
    them, also under ``jit`` and ``grad``.

    Args:
      x: (...) of any type and rank, of M elements.
      columns: the number N of coordinates in a row, at least 1. A row has the last N
        coordinates of an element: only leading dimensions of size 1 may be left out.
        None stands for the rank, or for 1 if `x` is a scalar.
      fill: the UINT32 number in the rows past the count. With None these rows are
        undefined, and the call may be faster.
      parts: the number P of equal parts into which the first dimension is cut.
        (DirectML has no such field.) Each part has its own count and its own rows, with
        coordinates in the whole array. If the first dimension is sharded over D
        devices, and P is a multiple of D, the devices send nothing to each other; over
        explicit mesh axes, P must be a multiple of D. None stands for the whole array
        with a single count.
      size: the number K of rows to return, for each part if `parts` is given.
        (DirectML has no such field.) The count still includes all elements that are not
        zero: K was too small if the count is larger. A symbolic size must be at least
        1. None stands for a row for each element.
      implementation: None chooses the Pallas kernel on an NVIDIA GPU from Hopper on, if
        `x` or the coordinates have 2^20 elements or more, and the program is neither
        exported nor divided by XLA; otherwise XLA's code. "xla" and "pallas" force
        one of the two.

    Returns:
      A ``NonzeroCoordinates``: the count, () uint32, and the coordinates, (M, N) uint32
      or (K, N) with `size`. With `parts`, counts are (P,), and coordinates are
      (P, M / P, N) or (P, K, N). In a function that is differentiated, coordinates are
      constants.

    Raises:
      DescriptorError: if `columns`, `fill` or `size` is out of range, if `parts` does
        not divide the first size, or is no multiple of the number of devices over which
        explicit axes shard it, if `x` has more than 2^32 - 1 elements, or if
        `implementation` is unknown, or is "pallas" where no kernel can run.
      TypeError: if `x` is not an array, or if `columns`, `fill`, `parts` or `size` is
        not an integer.

    >>> import jax.numpy as jnp
    >>> count, coordinates = nonzero_coordinates(jnp.array([[0, 5], [0, 7]]))
    >>> int(count), coordinates[:2].tolist(), coordinates[2:].tolist()
    (2, [[0, 1], [1, 1]], [[0, 0], [0, 0]])
    >>> count, coordinates = nonzero_coordinates(jnp.array([0, 5, 6, 0, 7, 0]), parts=2)
    >>> count.tolist(), coordinates[..., 0].tolist()
    ([2, 1], [[1, 2, 0], [4, 0, 0]])
    >>> count, coordinates = nonzero_coordinates(jnp.array([0, 5, 6, 0, 7, 0]), size=2)
    >>> int(count), coordinates[:, 0].tolist()
    (3, [1, 2])

    See DML_NONZERO_COORDINATES_OPERATOR_DESC in directml.h.
    """
    # A caller may pass an array by mistake, which `in` would compare by elements: we
    # ask for the type first.
    is_name = implementation is None or isinstance(implementation, str)
    if not is_name or implementation not in (None, "xla", "pallas"):
        raise ArgumentError(
            f"implementation is {as_python(implementation)}; it must be one of "
            "None, 'xla', 'pallas'."
        )
    x = as_array(X, x)
    if columns is not None:
        columns = as_integer("columns", columns)
    if fill is not None:
        fill = as_integer("fill", fill)
    if parts is not None:
        parts = as_integer("parts", parts)
    if size is not None:
        size = as_size("size", size, "an upper bound of the count")
    return _nonzero_coordinates(x, columns, fill, parts, size, implementation)


@compiled("columns", "fill", "parts", "size", "implementation")
def _nonzero_coordinates(
    x: Array,
    columns: int | None,
    fill: int | None,
    parts: int | None,
    size: int | None,
    implementation: Implementation,
) -> NonzeroCoordinates:
    # JAX can't compare most symbolic sizes with a limit: these are not checked.
    if isinstance(x.size, int) and x.size > MAX_ELEMENTS:
        raise ArgumentError(
            f"{X} has sizes {show(x.shape)}, {x.size} elements; at most "
            f"{MAX_ELEMENTS} are allowed."
        )
    # Only leading dimensions of size 1 may be left out.
    leading_ones = next((i for i, n in enumerate(x.shape) if n != 1), x.ndim)
    low, high = max(x.ndim - leading_ones, 1), max(x.ndim, 1)
    columns = high if columns is None else columns
    if not low <= columns <= high:
        allowed = str(low) if low == high else f"{low} to {high}"
        raise ArgumentError(
            f"columns is {columns}; for {X} of sizes {show(x.shape)} it "
            f"must be {allowed}."
        )
    if fill is not None and not 0 <= fill < 2**32:
        raise ArgumentError(
            f"fill is {fill}; it must be a UINT32, 0 to {2**32 - 1}. Write fill=x.size "
            f"for coordinates out of bounds. If you want {fill} in the rows of an "
            f"array y, call the result's .take(y, fill_value={fill})."
        )
    if size is not None:
        # A symbolic size must be at least 1, because JAX can't scatter into an array
        # that may be empty. It is never too large: JAX assumes that it is below 2^31.
        is_known = isinstance(size, int)
        fewest = 0 if is_known else 1
        if not decide_le(fewest, size) or (is_known and size > MAX_ELEMENTS):
            raise ArgumentError(
                f"size is {size}; it must be a number of rows, {fewest} to "
                f"{MAX_ELEMENTS}."
            )
    mesh = explicit_mesh(x)  # refuses an unreduced array
    flags = forms.is_nonzero(x)
    operands = (flags,) if parts is None else _split(flags, parts, mesh)
    outputs = NONZERO_COORDINATES(
        *operands,
        rank=x.ndim,
        size=size,
        columns=columns,
        fill=fill,
        implementation=implementation,
    )
    # The result keeps a symbolic size as a string, because the result may leave the
    # program in which the symbol has a meaning.
    searched = tuple(n if isinstance(n, int) else str(n) for n in x.shape)
    return nonzero_result(outputs, (searched, parts, None))


def _split(x: Array, parts: int, mesh: AbstractMesh | None) -> tuple[Array, Array]:
    """Cuts `x` into a batch of parts, and returns the origin of each part, too."""
    if parts <= 0:
        raise ArgumentError(f"parts is {parts}; it must be at least 1.")
    if x.ndim == 0 or x.shape[0] % parts != 0:
        hint = ""
        if x.ndim > 0 and not isinstance(x.shape[0], int):
            hint = f" A symbolic size such as '{parts}*b' is a multiple."
        raise ArgumentError(
            f"parts is {parts}; it must divide the first dimension of {X}, "
            f"which has sizes {show(x.shape)}.{hint}"
        )
    sharding = None
    if mesh is not None:
        # A part may not straddle two devices: finding its rows would need an exchange.
        names = divided_axes(x).get(0, ())
        devices = math.prod(mesh.shape[name] for name in names)
        if parts % devices != 0:
            raise ArgumentError(
                f"parts is {parts}; it must be a multiple of {devices}, the "
                "number of devices over which the first dimension is sharded."
            )
        # The first dimension becomes two. We have to say which one is sharded, and it
        # is the dimension of the parts.
        first, *rest = jax.typeof(x).sharding.spec
        sharding = NamedSharding(mesh, PartitionSpec(first, None, *rest))
    shape = (parts, x.shape[0] // parts, *x.shape[1:])
    in_parts = lax.reshape(x, shape, out_sharding=sharding)
    origins = lax.iota(np.uint32, parts) * constant(x.size // parts, np.uint32)
    return in_parts, origins.reshape((parts,) + (1,) * x.ndim)


def _outputs(
    flags: Array, *_: Array, implementation: Implementation = None, **static: Any
) -> list[jax.ShapeDtypeStruct]:
    """Returns the types of the counts and of the coordinates."""
    layout = forms.Layout.of(flags.shape, **static)
    shapes = layout.batch, (*layout.batch, layout.rows, layout.columns)
    return [jax.ShapeDtypeStruct(shape, np.uint32) for shape in shapes]


def _division(
    flags: Array, *_: Array, rank: int, size: int | None, **__: Any
) -> Division:
    """Says that only the batch is independent, and what to do with other dimensions.

    Each row of coordinates depends on all earlier elements of the tensor. Without
    `size=`, each device first gathers the flags, which is faster
    (docs/tutorials/devices.md). With `size=`, XLA divides the work, sends a number for
    every 32 elements, and replicates the outputs.
    """
    return Division(range(flags.ndim - rank), "gather" if size is None else "replicate")


NONZERO_COORDINATES = OperatorPrimitive(
    "nonzero_coordinates",
    definition=forms.definition,
    outputs=_outputs,
    division=_division,
    on_platform={"cpu": forms.nonzero_walk},
    auto_sharded=forms.on_lines(
        functools.partial(forms.nonzero_words, running_sum=forms.sum_in_levels)
    ),
    kernel=choose_kernel,
)

SUPPORT: SupportTable = {
    FeatureLevel.V3_0: {
        "InputTensor": (4, 5, UP_TO_32_BITS),
        "OutputCountTensor": (4, 5, (DataType.UINT32,)),
        "OutputCoordinatesTensor": (4, 5, (DataType.UINT32,)),
    },
    FeatureLevel.V4_0: {
        "InputTensor": (1, 8, UP_TO_32_BITS),
        "OutputCountTensor": (1, 8, (DataType.UINT32,)),
        "OutputCoordinatesTensor": (2, 8, (DataType.UINT32,)),
    },
}


class NonzeroCoordinatesDesc(OperatorDesc[NonzeroCoordinates]):
    """Describes NONZERO_COORDINATES, as DML_NONZERO_COORDINATES_OPERATOR_DESC does.

    The operator returns a ``NonzeroCoordinates``, whose arrays have the sizes of the
    output tensors; for a tensor with strides, the array is a flat buffer. The rows past
    the count hold 0.

    Attributes:
      input_tensor: the tensor that is searched, of M elements.
      output_count_tensor: UINT32. Every size is 1.
      output_coordinates_tensor: UINT32, of sizes {1.., M, N}. A row has the last N
        coordinates. Only leading dimensions of size 1 may be left out. N is at least 1.

    >>> import jax.numpy as jnp
    >>> import dmljax
    >>> from dmljax import DataType, TensorDesc
    >>> desc = dmljax.NonzeroCoordinatesDesc(TensorDesc(DataType.FLOAT32, (1, 3)),
    ...                                      TensorDesc(DataType.UINT32, (1,)),
    ...                                      TensorDesc(DataType.UINT32, (3, 2)))
    >>> found = dmljax.create_operator(desc)(jnp.array([[0.0, 5.0, 7.0]]))
    >>> found.count.tolist(), found.coordinates.tolist()
    ([2], [[0, 1], [0, 2], [0, 0]])

    DirectML has no fields for `fill`, `parts` and `size` of ``nonzero_coordinates``.
    """

    operator = "NONZERO_COORDINATES"
    support = SUPPORT
    outputs = ("output_count_tensor", "output_coordinates_tensor")
    same_type = ()

    input_tensor: TensorDesc
    output_count_tensor: TensorDesc
    output_coordinates_tensor: TensorDesc

    def evaluate(self, *arrays: Array) -> NonzeroCoordinates:
        """Returns the count and the coordinates, of the ranks of their tensors."""
        # DirectML leaves the rows past the count undefined. Here they are 0.
        *leading, _, columns = self.output_coordinates_tensor.sizes
        count, rows = nonzero_coordinates(*arrays, columns=columns)
        outputs = (
            count.reshape((1,) * len(self.output_count_tensor.sizes)),
            rows.reshape((1,) * len(leading) + rows.shape),
        )
        return nonzero_result(outputs, (None, None, "descriptor"))
