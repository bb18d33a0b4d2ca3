"""The result of nonzero_coordinates: a tuple that gathers rows and writes them back.

Rows past the count are found by the count, and never by what the coordinates hold
there: every `fill` works. How coordinates are found does not belong here.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec, get_abstract_mesh
from jax.typing import ArrayLike

from dmljax._arguments import (
    as_array,
    as_scalar,
    same_type,
    strong,
)
from dmljax._call import check_elements, compiled
from dmljax._check import DescriptorError, at_most, require_same, show
from dmljax._nonzero_forms import WRITE_ONCE, valid_rows
from dmljax._sharding import by_xla, explicit_mesh
from dmljax._types import to_scalar, x64_enabled

TAKE = "NonzeroCoordinates.take"
PUT = "NonzeroCoordinates.put"
Index = tuple[jax.Array, ...]  # the coordinates of rows along each dimension
# The static data of a result: the sizes of the array that was searched, and the number
# of its parts. A symbolic size is its text.
Searched = tuple[tuple[int | str, ...], int | None]


class _Outputs(NamedTuple):
    # DirectML's page has this name. It hides tuple.count, but nobody calls that here.
    count: jax.Array  # type: ignore[assignment]
    coordinates: jax.Array


class NonzeroCoordinates(_Outputs):
    """The two outputs of NONZERO_COORDINATES, a pytree.

    The sizes of the array that was searched, and `parts`, belong to the structure of
    the tree: results of arrays with other sizes are different trees.

    Attributes:
      count: () uint32, the number of elements that are not zero.
      coordinates: (M, N) uint32, for an input of M elements and rows of N columns. If r
        is less than the count, row r has the coordinates of the r-th element that is
        not zero, in ascending row-major order.

    The shapes differ if `size` or `parts` is given, as ``nonzero_coordinates`` says.
    ``take`` gathers rows of an array, and ``put`` writes them back:

    >>> import jax.numpy as jnp
    >>> import dmljax
    >>> kept = dmljax.nonzero_coordinates(jnp.array([0, 5, 7, 0]), size=3)
    >>> int(kept.count), bool(kept.overflow), kept.coordinates[: kept.count].tolist()
    (2, False, [[1], [2]])
    >>> tokens = jnp.array([1.0, 2.0, 3.0, 4.0])
    >>> kept.take(tokens)
    Array([2., 3., 0.], dtype=float32)
    >>> kept.put(tokens, -kept.take(tokens))
    Array([ 1., -2., -3.,  4.], dtype=float32)
    """

    # None: a descriptor returned the result, or a caller made it of two arrays.
    _searched: Searched | None = None

    def _replace(self, /, **outputs: Any) -> Self:
        replaced = super()._replace(**outputs)
        replaced._searched = self._searched
        return replaced

    @property
    def overflow(self) -> jax.Array:
        """Whether there are more elements than rows: a bool array of the count's sizes.

        It is true only with `size`. The last elements are then missing.

        >>> import jax.numpy as jnp
        >>> import dmljax
        >>> bool(dmljax.nonzero_coordinates(jnp.array([5, 6, 7]), size=2).overflow)
        True
        """
        if self.coordinates.ndim != self.count.ndim + 2:
            # A descriptor's output has other sizes, and a row for each element.
            return jnp.zeros(self.count.shape, bool)
        rows = self.coordinates.shape[-2]
        more: jax.Array = self.count > to_scalar(rows, np.uint32)
        return more

    def take(self, x: ArrayLike, /, *, fill_value: ArrayLike = 0) -> jax.Array:
        """Gathers a row of an array for each row of coordinates.

        Row r is ``x[tuple(coordinates[r])]`` if r is less than the count, and
        `fill_value` if not. If `x` has more dimensions than the array that was
        searched, a row has the others: with a mask of tokens, it has the features of a
        token.

        All reads are in range, and ``checkify.index_checks`` finds no error. The call
        can be differentiated in `x` and in `fill_value`. Its derivatives drop rows past
        the count, and elements without a row, and these checks report that.

        Args:
          x: sizes S and then any others, where the array that was searched has sizes S.
            If the result comes out of a ``vmap``, the dimensions of that batch come
            first.
          fill_value: what the rows past the count hold. A scalar of the type of `x`.

        Returns:
          K rows, for K coordinates: sizes K, or P and K with `parts`, and the others.

        Raises:
          DescriptorError: if `x` does not begin with the sizes S, if `columns` left out
            a dimension, if `fill_value` is not a scalar of the type of `x`, or if a
            descriptor returned this result.
          TypeError: if `x` or `fill_value` is not an array.

        >>> import jax.numpy as jnp
        >>> import dmljax
        >>> kept = dmljax.nonzero_coordinates(jnp.array([True, False, True]), size=3)
        >>> kept.take(jnp.array([[1, 2], [3, 4], [5, 6]]), fill_value=-1).tolist()
        [[1, 2], [5, 6], [-1, -1]]
        """
        array = as_array(TAKE, "x", x)
        fill = as_scalar(TAKE, "fill_value", fill_value, array.dtype, owner="x")
        return _take(self, array, fill)

    def put(self, x: ArrayLike, rows: ArrayLike, /) -> jax.Array:
        """Writes a row for each row of coordinates, and returns the new array.

        It is the way back of ``take``. Rows past the count are dropped. Their index is
        past the end of an array, as in ``.at[..].set(.., mode="drop")``, and
        ``checkify.index_checks`` reports that, as it does for every such call. The call
        can be differentiated in `x` and in `rows`.

        Args:
          x: an array as ``take`` gets it.
          rows: an array as ``take`` returns it, of the type of `x`.

        Returns:
          `x` with the rows at their coordinates.

        Raises:
          DescriptorError: if `x` does not begin with the sizes of the array that was
            searched, if `rows` has other sizes or another type than ``take`` returns,
            if `columns` left out a dimension, or if a descriptor returned this result.
          TypeError: if `x` or `rows` is not an array.

        >>> import jax.numpy as jnp
        >>> import dmljax
        >>> kept = dmljax.nonzero_coordinates(jnp.array([True, False, True]), size=3)
        >>> kept.put(jnp.array([1, 3, 5]), jnp.array([10, 50, 99]))
        Array([10,  3, 50], dtype=int32)
        """
        return _put(self, as_array(PUT, "x", x), as_array(PUT, "rows", rows))


NonzeroCoordinates.__module__ = "dmljax"


def nonzero_result(
    searched: Searched | None, outputs: Iterable[Any]
) -> NonzeroCoordinates:
    """Makes a result of its static data and its arrays."""
    found = NonzeroCoordinates._make(outputs)
    found._searched = searched
    return found


# TAKE AND PUT


@compiled()
def _take(kept: NonzeroCoordinates, x: jax.Array, fill: jax.Array) -> jax.Array:
    leading = _leading_dimensions(TAKE, kept, x)
    check_elements(TAKE, kept.coordinates.shape[:-1] + x.shape[leading:])

    def gather(kept: NonzeroCoordinates, x: jax.Array, fill: jax.Array) -> jax.Array:
        parts, valid, index = _in_parts(kept, x)
        if 0 in x.shape[:leading]:
            # Nothing is read, but the result is made of `x`: JAX ignores the device of
            # an argument that a program does not read.
            sizes = valid.shape + x.shape[leading:]
            widths = [(0, math.prod(sizes), 0)]
            rows = lax.pad(x.reshape(0), x.dtype.type(0), widths).reshape(sizes)
        else:
            read = read_rows
            for _ in range(kept.count.ndim):
                read = jax.vmap(read)
            rows = read(parts, valid, index)
        return jnp.where(_repeated(valid, rows), rows, fill)

    # The first dimensions of the rows are those of the count.
    axes = jax.typeof(x).sharding.spec
    counts = jax.typeof(kept.count).sharding.spec
    first = [own or other for own, other in zip(axes, counts, strict=False)]
    spec = [*first, None, *axes[leading:]]
    # A mesh axis can divide one dimension. A later one is made whole.
    used: set[str] = set()
    for dimension, names in enumerate(spec):
        entry = {names} if isinstance(names, str) else set(names or ())
        if used & entry:
            spec[dimension] = None
        used |= entry
    return _over_mesh(gather, spec, kept, strong(x), fill)


@compiled()
def _put(kept: NonzeroCoordinates, x: jax.Array, rows: jax.Array) -> jax.Array:
    leading = _leading_dimensions(PUT, kept, x)
    given = f"take(x) for x of sizes {show(x.shape)}"
    wanted = kept.coordinates.shape[:-1] + x.shape[leading:]
    remedy = ""
    if rows.ndim == 0:
        remedy = " jnp.where(mask, rows, x) writes one value to all of them."
    require_same(PUT, "sizes", ("rows", rows.shape), (given, wanted), remedy)
    remedy = same_type("rows", rows.dtype, x.dtype)
    require_same(PUT, "data types", ("rows", rows.dtype), ("x", x.dtype), remedy)

    def write(kept: NonzeroCoordinates, x: jax.Array, rows: jax.Array) -> jax.Array:
        parts, valid, index = _in_parts(kept, x)
        write_part = write_rows
        for _ in range(kept.count.ndim):
            write_part = jax.vmap(write_part)
        return write_part(parts, rows, valid, index).reshape(x.shape)

    if 0 in x.shape[:leading] + rows.shape:
        return strong(x)
    spec = jax.typeof(x).sharding.spec
    return _over_mesh(write, spec, kept, strong(x), strong(rows))


def _leading_dimensions(name: str, kept: NonzeroCoordinates, x: jax.Array) -> int:
    """Returns how many dimensions of `x` come before those of a row.

    They are those of a batch, and those of the array that was searched. The sizes of
    both must be the same.
    """
    searched = kept._searched
    if searched is None:
        raise DescriptorError(
            f"{name}: this result does not know the sizes of the array that was "
            "searched, because it is one of a descriptor, or was made of two arrays. "
            "Call dmljax.nonzero_coordinates."
        )
    sizes, parts = searched
    columns = kept.coordinates.shape[-1]
    if columns < len(sizes):
        raise DescriptorError(
            f"{name}: the coordinates have columns={columns}, while the array that was "
            f"searched has sizes {show(sizes)}; write columns={len(sizes)}, one for "
            "each dimension, or leave it out."
        )
    batch = kept.count.shape
    if parts is not None:
        batch = batch[:-1]
    wanted = batch + sizes
    found = x.shape[: len(wanted)]
    fits = len(found) == len(wanted)
    for size, own in zip(wanted, found, strict=False):
        # In a later program, a number may stand for a symbolic size.
        same = size == (own if isinstance(size, int) else str(own))
        fits = fits and (same or (isinstance(size, str) and isinstance(own, int)))
    if not fits:
        text = (
            f"{name}: x has sizes {show(x.shape)}; it must begin with "
            f"{show(wanted)}, the sizes of the array that was searched."
        )
        if batch:
            text += (
                f" The first, {show(batch)}, are those of jax.vmap: broadcast x to "
                "them, or call this method inside of the vmap."
            )
        raise DescriptorError(text)
    # Without x64 mode JAX indexes with int32, and would wrap a larger index in silence.
    # The inverse index has the numbers of rows. JAX takes symbolic sizes to be below
    # 2^31.
    rows = kept.coordinates.shape[-2]
    largest = max((n for n in (*found, rows) if isinstance(n, int)), default=0)
    if largest >= 2**31 and not x64_enabled():
        raise DescriptorError(
            f"{name}: x has sizes {show(x.shape)}, and there are {rows} rows; "
            "indices of 2^31 and more need JAX's x64 mode. Turn it on by "
            "jax.config.update('jax_enable_x64', True)."
        )
    return len(wanted)


def _in_parts(
    kept: NonzeroCoordinates, x: jax.Array
) -> tuple[jax.Array, jax.Array, Index]:
    """Returns `x` in parts, which rows of each are valid, and where they lie in it.

    For example, with `parts=2`, a tensor of sizes (6, 5) has sizes (2, 3, 5), and row 4
    is row 1 of the second part.
    """
    assert kept._searched is not None
    sizes, parts = kept._searched
    *batch, rows, columns = kept.coordinates.shape
    integer = np.int64 if x64_enabled() else np.int32
    coordinates = lax.convert_element_type(kept.coordinates, integer)
    index = [coordinates[..., column] for column in range(columns)]
    if not sizes:  # a scalar has a coordinate as well: 0
        x = x.reshape(*batch, 1, *x.shape[len(batch) :])
    if parts is not None:
        axis = len(batch) - 1
        length = x.shape[axis] // parts
        x = x.reshape(*x.shape[:axis], parts, length, *x.shape[axis + 1 :])
        part = lax.broadcasted_iota(integer, (*batch, rows), axis)
        index[0] = index[0] - part * to_scalar(length, integer)
    return x, valid_rows(kept.count, rows), tuple(index)


def _over_mesh(
    function: Callable[..., jax.Array], spec: Sequence[Any], *operands: Any
) -> jax.Array:
    """Calls a function that XLA divides, also where mesh axes are explicit.

    `spec` has the mesh axes of the result.
    """
    mesh = explicit_mesh(*jax.tree.leaves(operands))
    if mesh is None:
        return function(*operands)
    sharding = NamedSharding(mesh, PartitionSpec(*spec))
    result: jax.Array = by_xla(function, mesh, sharding)(*operands)
    return result


# ROWS AND THEIR DERIVATIVES. The *inverse index* has the row of each element. The
# derivative of `take` is a scatter by the inverse index, because its transpose is then
# a gather. JAX would transpose a gather into a scatter that adds up, and "rows of a
# mask and back" with its gradient takes three times as long on a CPU
# (benchmarks/results/x86_64-cpu.csv). The derivative of `put` is a scatter by the
# index, whose transpose is a gather as well. It needs the inverse index only to know
# which elements were overwritten: the transpose of `scatter_rows` would write zeros to
# them, which takes longer on a CPU. `select_rows` reads by the inverse index, too. All
# of this is custom_jvp and no primitive: JAX transposes each derivative by itself.


@jax.custom_jvp
def read_rows(x: jax.Array, valid: jax.Array, index: Index) -> jax.Array:
    """Reads the valid rows, and element 0 for the others: all are in range."""
    inside = tuple(jnp.where(valid, column, 0) for column in index)
    # Over explicit mesh axes, JAX asks how the rows are divided: a row as `x` is.
    kinds = get_abstract_mesh().axis_types
    spec = None
    if AxisType.Explicit in kinds:
        spec = PartitionSpec(None, *jax.typeof(x).sharding.spec[len(index) :])
    return x.at[inside].get(mode="promise_in_bounds", out_sharding=spec)


@read_rows.defjvp
def _read_rows_jvp(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    rows = read_rows(*primals)
    zeros = jnp.zeros_like(rows)
    if rows.shape[0] == 0:  # JAX can't transpose a scatter into an empty array
        return rows, zeros
    tangent = zeros.at[_inverse(*primals)].add(tangents[0], **WRITE_ONCE)
    return rows, tangent


@jax.custom_jvp
def write_rows(
    x: jax.Array, rows: jax.Array, valid: jax.Array, index: Index
) -> jax.Array:
    """Writes the valid rows into x."""
    elements = math.prod(x.shape[: len(index)])
    values = math.prod(x.shape[len(index) :])  # of a row
    # A scatter moves the rows alone, but it writes into the array. XLA copies the array
    # first if the program was called with it, or needs it later. On an H100, a select
    # takes 0.56 to 0.64 of the time for 2^20 elements, and 0.88 to 0.93 for 2^12
    # (benchmarks/results/nvidia-h100-80gb-hbm3.csv, "rows of a mask and back"; "[rows
    # scattered]" is the scatter). The select lost for rows of one value. In a loop that
    # overwrites its array, a scatter copies nothing, and a select takes 1.1 times as
    # long with a row for each element, and twice as long with half as many rows
    # (docs/development/lab_notes.md). So we chose the select for rows of 16 values and
    # more, if there are rows for at least half of the elements.
    if not (at_most(elements, 2 * rows.shape[0]) and at_most(16, values)):
        return scatter_rows(x, rows, valid, index)
    written: jax.Array = lax.platform_dependent(
        x, rows, valid, index, **WRITE_ON_PLATFORM, default=scatter_rows
    )
    return written


def scatter_rows(
    x: jax.Array, rows: jax.Array, valid: jax.Array, index: Index
) -> jax.Array:
    """Writes each valid row to its place. A scatter drops places past the end."""
    places = _past_the_end(x, valid, index)
    return x.at[places].set(rows, **WRITE_ONCE)


def select_rows(
    x: jax.Array, rows: jax.Array, valid: jax.Array, index: Index
) -> jax.Array:
    """Reads the row of each element, and keeps the element if it has none."""
    inverse = _inverse(x, valid, index)
    has_row = inverse < to_scalar(rows.shape[0], np.uint32)
    own = read_rows(rows, has_row, (inverse,))
    return jnp.where(_repeated(has_row, x), own, x)


# The forms that are faster on a platform than a scatter. On a CPU the select took eight
# times as long (docs/development/lab_notes.md). We timed no TPU and no other GPU. XLA
# may divide these forms: on two H100s the select took no longer.
WRITE_ON_PLATFORM = {"cuda": select_rows}


@write_rows.defjvp
def _write_rows_jvp(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    x, rows, valid, index = primals
    x_tangent, rows_tangent, *_ = tangents
    has_row = _inverse(x, valid, index) < to_scalar(rows.shape[0], np.uint32)
    others = jnp.where(_repeated(has_row, x), jnp.zeros_like(x_tangent), x_tangent)
    places = _past_the_end(x, valid, index)
    tangent = others.at[places].add(rows_tangent, **WRITE_ONCE)
    return write_rows(*primals), tangent


def _inverse(x: jax.Array, valid: jax.Array, index: Index) -> jax.Array:
    """Returns the row of each element, and the number of rows if it has none."""
    sizes = x.shape[: len(index)]
    rows = valid.shape[0]
    none = jnp.full(sizes, to_scalar(rows, np.uint32))
    return scatter_rows(none, lax.iota(np.uint32, rows), valid, index)


def _repeated(first: jax.Array, x: jax.Array) -> jax.Array:
    """Returns an array of the sizes of `x`: a value of `first` for a whole row."""
    return lax.broadcast_in_dim(first, x.shape, range(first.ndim))


def _past_the_end(x: jax.Array, valid: jax.Array, index: Index) -> Index:
    """Returns the index, where rows past the count have a place past the end of x."""
    first, *others = index
    return jnp.where(valid, first, to_scalar(x.shape[0], first.dtype)), *others


# A PYTREE


def _flatten(found: NonzeroCoordinates) -> tuple[Any, Searched | None]:
    keys = map(jax.tree_util.GetAttrKey, found._fields)
    return tuple(zip(keys, found, strict=True)), found._searched


jax.tree_util.register_pytree_with_keys(NonzeroCoordinates, _flatten, nonzero_result)
# Without this registration JAX can't write an exported program as bytes if the program
# takes or returns a result.
export.register_pytree_node_serialization(
    NonzeroCoordinates,
    serialized_name="dmljax.NonzeroCoordinates",
    serialize_auxdata=lambda searched: repr(searched).encode(),
    deserialize_auxdata=lambda data: ast.literal_eval(bytes(data).decode()),
)
