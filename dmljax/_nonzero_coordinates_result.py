"""The result of nonzero_coordinates: a tuple that gathers rows and writes them back.

Row r of the coordinates is *valid* if r is less than the count. The methods ask the
count, and never the coordinates, whether a row is valid. So they work for any `fill`,
the number that ``nonzero_coordinates`` writes into the rows that are not valid.
`_nonzero_rows` reads and writes the rows of a caller's array.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, export, lax
from jax.sharding import NamedSharding, PartitionSpec
from jax.typing import ArrayLike

from dmljax._arguments import (
    TURN_ON_X64,
    as_array,
    as_scalar,
    cast_array,
    cast_hint,
    drop_weak_type,
    unwrap_array,
)
from dmljax._call import check_elements, compiled
from dmljax._check import (
    ArgumentError,
    ArgumentTypeError,
    as_python,
    public,
    require_same,
    shortened,
    show,
)
from dmljax._nonzero_forms import valid_rows
from dmljax._nonzero_rows import add_rows, fits_index, read_rows, write_rows
from dmljax._sharding import by_xla, divided_axes, explicit_mesh
from dmljax._types import MAX_ELEMENTS, constant

# The errors of methods for a result without the sizes of the searched array. The key
# says how the sizes were lost.
LOST = {
    "made": (
        "this result has lost the sizes of the searched array: it was made of two "
        "arrays, by hand or by a library such as flax.serialization or optree. If no "
        "valid coordinates repeat, write jax.tree.unflatten(jax.tree.structure(kept), "
        "result), where kept is the result of the search. Otherwise write "
        "x[tuple(jnp.moveaxis(coordinates, -1, 0))]."
    ),
    "descriptor": (
        "a descriptor returned this result, and its tensors may have other sizes than "
        "your array. Call dmljax.nonzero_coordinates."
    ),
    "replaced": (
        "the coordinates of this result were replaced, and may repeat an element, "
        "which a search never does. To read with repeats, write "
        "x[tuple(jnp.moveaxis(coordinates, -1, 0))]."
    ),
}


class _Outputs(NamedTuple):
    # DirectML's name. It hides the method tuple.count, which nobody calls here.
    count: Array  # type: ignore[assignment]
    coordinates: Array


class NonzeroCoordinates(_Outputs):
    """The two outputs of NONZERO_COORDINATES, a pytree.

    The structure of the pytree has the sizes of the searched array, and `parts`, the
    number of parts into which the search cut it. So both branches of a ``jax.lax.cond``
    must return results for equal sizes and parts.

    Attributes:
      count: () uint32, the number of elements that are not zero.
      coordinates: (M, N) uint32, with a row of N columns for each of the M elements of
        the input. If r is less than the count, row r has the coordinates of the r-th
        element that is not zero, in ascending row-major order.

    ``nonzero_coordinates`` describes the shapes with `size` and `parts`. ``take``
    gathers rows of an array, ``put`` writes rows back, and ``add`` adds rows. Each also
    takes a pytree of arrays. Call these methods on the result itself: after ``count,
    coordinates = kept``, `coordinates` is a plain array, and its own ``take`` does
    something else.

    A search never finds an element twice, and the methods rely on this: with repeated
    coordinates, ``put``, ``add`` and the gradient of ``take`` may be wrong. To read at
    coordinates that you changed, write ``x[tuple(jnp.moveaxis(coordinates, -1, 0))]``,
    which also reads at the rows past the count. A method refuses coordinates from
    ``_replace``, but can't see a change by ``jax.tree.map``, ``jax.tree.unflatten`` or
    ``tree_at``.

    In the docstrings of the methods, P is `parts`, and K is the number of rows of each
    part: `size`, or without `size` the number of elements of a part.

    >>> import jax.numpy as jnp
    >>> import dmljax
    >>> kept = dmljax.nonzero_coordinates(jnp.array([0, 5, 7, 0]), size=3)
    >>> kept
    NonzeroCoordinates(count=2, overflow=False, coordinates=uint32[3,1], sizes=(4,), \
parts=None)
    >>> kept.coordinates[: kept.count].tolist()
    [[1], [2]]
    >>> tokens = jnp.array([1.0, 2.0, 3.0, 4.0])
    >>> kept.take(tokens)
    Array([2., 3., 0.], dtype=float32)
    >>> kept.put(tokens, -kept.take(tokens))
    Array([ 1., -2., -3.,  4.], dtype=float32)
    """

    # The static data, (searched, parts, why):
    # - the sizes of the searched array, where a symbolic size is a string; or None;
    # - the number of parts, or None;
    # - why `searched` is None: a key of `LOST`; or None.
    _static: Any = None, None, "made"

    def __repr__(self) -> str:
        """Shows up to 8 known counts, and otherwise types and sizes."""
        count, coordinates = self
        text = f"count={_brief(count)}"
        # A descriptor may return a flat buffer. A function such as jax.eval_shape or
        # jax.tree.map may put a ShapeDtypeStruct or None in the place of an array.
        if _is_known(count) and getattr(coordinates, "ndim", 0) > 1:
            text += f", overflow={_brief(self.overflow)}"
        text += f", coordinates={_brief(coordinates, most=-1)}"  # never elements
        searched, parts, _ = self._static
        if searched is not None:
            text += f", sizes={searched}, parts={parts}"
        return f"NonzeroCoordinates({text})"

    def _replace(self, /, **outputs: Any) -> NonzeroCoordinates:
        static = self._static
        searched, parts, _ = static
        if "coordinates" in outputs and searched is not None:
            static = None, parts, "replaced"
        return nonzero_result(super()._replace(**outputs), static)

    __replace__ = _replace  # of copy.replace, from Python 3.13 on

    @property
    def overflow(self) -> Array:
        """Whether there are more non-zero elements than rows: a bool for each count.

        Only with `size` can this be true. The last non-zero elements are then missing.

        >>> import jax.numpy as jnp
        >>> import dmljax
        >>> bool(dmljax.nonzero_coordinates(jnp.array([5, 6, 7]), size=2).overflow)
        True
        """
        overflow, _ = _excess(self.count, self._row_count)
        return overflow

    @property
    def dropped(self) -> Array:
        """How many non-zero elements have no row: an integer for each count.

        The type is int32, or int64 in x64 mode. A number past int32 saturates.

        >>> import jax.numpy as jnp
        >>> import dmljax
        >>> dmljax.nonzero_coordinates(jnp.array([5, 6, 7]), size=2).dropped
        Array(1, dtype=int32)
        """
        _, dropped = _excess(self.count, self._row_count)
        return dropped

    @property
    def _row_count(self) -> int:
        # A descriptor's output has a row for each element: nothing is dropped. It can
        # be a flat buffer, whose shape does not tell the number of rows. We return a
        # number that no count exceeds.
        *_, why = self._static
        return MAX_ELEMENTS if why == "descriptor" else self.coordinates.shape[-2]

    @property
    @public
    def valid(self) -> Array:
        """Whether each row is before the count: bools, (K,), or (P, K) with `parts`.

        Raises:
          DescriptorError: if a descriptor returned this result.

        >>> import jax.numpy as jnp
        >>> import dmljax
        >>> kept = dmljax.nonzero_coordinates(jnp.array([0, 5, 7, 0]), size=3)
        >>> kept.valid.tolist()
        [True, True, False]
        """
        *_, why = self._static
        if why == "descriptor":
            raise ArgumentError(LOST[why])
        return _valid(self.count, self._row_count)

    @overload
    def take(self, x: ArrayLike, /, *, fill_value: ArrayLike = 0) -> Array: ...
    @overload
    def take(self, x: Any, /, *, fill_value: Any = 0) -> Any: ...
    @public
    def take(self, x: Any, /, *, fill_value: Any = 0) -> Any:
        """Gathers the rows of an array at the coordinates.

        Row r is ``x[tuple(coordinates[r])]`` if r is less than the count, and
        `fill_value` otherwise. The trailing dimensions of `x` form a row: if a mask of
        tokens was searched, a row has the features of a token.

        The call can be differentiated in `x` and in `fill_value`. It reads in range.
        Its derivative in `x` uses an index past the end for rows past the count, which
        ``checkify.index_checks`` reports.

        Args:
          x: an array, or a pytree of arrays, of shape ``(*S, ...)``, where S is the
            shape of the searched array. If a ``vmap`` returned the result, its batch
            comes before S.
          fill_value: the value of the rows past the count: a scalar of the type of `x`,
            or a pytree of scalars, one for each array.

        Returns:
          ``(K, ...)``, or ``(P, K, ...)`` with `parts`; the same pytree as `x`.

        Raises:
          DescriptorError: if `x` does not begin with the sizes S, if the search had
            fewer `columns` than dimensions, if `fill_value` is not a scalar of the type
            of `x`, if a descriptor returned this result, or if its coordinates were
            replaced.
          TypeError: if `x` or `fill_value` is not an array.

        >>> import jax.numpy as jnp
        >>> import dmljax
        >>> kept = dmljax.nonzero_coordinates(jnp.array([True, False, True]), size=3)
        >>> kept.take(jnp.array([[1, 2], [3, 4], [5, 6]]), fill_value=-1).tolist()
        [[1, 2], [5, 6], [-1, -1]]
        >>> kept.take({"a": jnp.array([1, 2, 3]), "b": jnp.array([4, 5, 6])})
        {'a': Array([1, 3, 0], dtype=int32), 'b': Array([4, 6, 0], dtype=int32)}
        """
        arrays = _arrays("x", x)

        def scalar(keys: Any, array: Any, fill: Any) -> Any:
            path = jax.tree_util.keystr(keys)
            name = f"fill_value (of x{path})" if path else "fill_value"
            return as_scalar(name, fill, array.dtype, owner=f"x{path}")

        # For the default fill, 0, `_take` makes zeros in the program: no scalar is sent
        # to the device.
        scalars = None
        if not (type(fill_value) is int and fill_value == 0):
            fills = fill_value
            is_leaf = jax.tree_util.all_leaves([unwrap_array(fill_value)])
            if is_leaf:  # a lone scalar fills all arrays
                fills = jax.tree.map(lambda _: fill_value, arrays)
            _check_tree("fill_value", fills, arrays, " or be a scalar")
            scalars = jax.tree.map_with_path(scalar, arrays, fills)
        return _take(self, arrays, scalars)

    @overload
    def put(
        self, x: ArrayLike, rows: ArrayLike, /, *, where: ArrayLike | None = None
    ) -> Array: ...
    @overload
    def put(self, x: Any, rows: Any, /, *, where: ArrayLike | None = None) -> Any: ...
    @public
    def put(self, x: Any, rows: Any, /, *, where: ArrayLike | None = None) -> Any:
        """Writes rows back to where ``take`` reads them.

        Rows past the count are dropped, and so are rows with a false flag in `where`.
        Here the only number above 25 is copied into the first free place, a 0:

        >>> import jax.numpy as jnp
        >>> import dmljax
        >>> x = jnp.array([30, 0, 20, 0])
        >>> free = dmljax.nonzero_coordinates(x == 0, size=2)
        >>> large = dmljax.nonzero_coordinates(x > 25, size=2)
        >>> free.put(x, large.take(x), where=large.valid)
        Array([30, 30, 20,  0], dtype=int32)

        The call can be differentiated in `x` and in `rows`. Dropped rows have an index
        past the end, as in ``.at[..].set(.., mode="drop")``, and
        ``checkify.index_checks`` reports such an index.

        Args:
          x: an array, or a pytree, as for ``take``.
          rows: an array, or a pytree, of the shape of ``take(x)`` and of the type of
            `x`.
          where: bools of the shape of ``valid``: (K,), or (P, K) with `parts`. None
            writes all rows up to the count.

        Returns:
          `x` with the rows at their coordinates.

        Raises:
          DescriptorError: if the shape of `x`, `rows` or `where` does not fit, if
            `rows` has another type than `x`, or if ``take`` would refuse this result.
          TypeError: if an argument is not an array, or `where` is not bool.
        """
        return _put_or_add(self, "put", x, rows, where)

    @overload
    def add(
        self, x: ArrayLike, rows: ArrayLike, /, *, where: ArrayLike | None = None
    ) -> Array: ...
    @overload
    def add(self, x: Any, rows: Any, /, *, where: ArrayLike | None = None) -> Any: ...
    @public
    def add(self, x: Any, rows: Any, /, *, where: ArrayLike | None = None) -> Any:
        """Adds rows to the array where ``take`` reads them.

        ``add`` drops the same rows as ``put``. Here `x` has an expert's output for all
        tokens, and `rows` another expert's output for the kept tokens:

        >>> import jax.numpy as jnp
        >>> import dmljax
        >>> kept = dmljax.nonzero_coordinates(jnp.array([True, False, True]), size=3)
        >>> kept.add(jnp.array([1, 3, 5]), jnp.array([10, 50, 99]))
        Array([11,  3, 55], dtype=int32)

        Args:
          x: an array, or a pytree, as for ``take``.
          rows: as for ``put``.
          where: as for ``put``.

        Returns:
          `x` plus the rows at their coordinates.

        Raises:
          DescriptorError: as in ``put``.
          TypeError: as in ``put``, or if `x` is bool.
        """
        return _put_or_add(self, "add", x, rows, where)


NonzeroCoordinates.__module__ = "dmljax"


def nonzero_result(outputs: Iterable[Any], static: Any) -> NonzeroCoordinates:
    """Makes a result of its arrays and its static data, `_static`."""
    result = NonzeroCoordinates._make(outputs)
    result._static = static
    return result


# Compiled, so that the number `rows` is a constant of the program. Otherwise each call
# would send it to the device.
_valid = compiled("rows")(valid_rows)


@compiled("rows")
def _excess(count: Array, rows: int) -> tuple[Array, Array]:
    """Returns whether the count exceeds the number of rows, and by how much."""
    most = constant(rows, np.uint32)
    excess = jnp.maximum(count, most) - most
    return jnp.greater(count, most), cast_array(excess, jnp.result_type(int))


def _is_known(value: Any) -> bool:
    """Whether the elements of an array can be read here and now."""
    if isinstance(value, (np.ndarray, np.generic)):
        return True
    if isinstance(value, jax.core.Tracer) or not isinstance(value, Array):
        return False
    return value.is_fully_addressable and not value.is_deleted()


def _brief(value: Any, most: int = 8) -> str:
    """Shows a known array of up to `most` elements, and otherwise type and sizes."""
    if _is_known(value) and value.size <= most:
        return as_python(np.asarray(value).tolist())
    if hasattr(value, "shape"):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    return as_python(value)


# TREES OF ARRAYS


def _is_wrapper(node: Any) -> bool:
    # A wrapper such as nnx.Param is a leaf, even if it is a pytree for JAX.
    return unwrap_array(node) is not node


def _arrays(argument: str, tree: Any) -> Any:
    """Returns a tree of arrays.

    Errors name a leaf in a caller's words: "x" for a lone array, or "x['a']".
    """

    def convert(keys: Any, leaf: Any) -> Any:
        return as_array(argument + jax.tree_util.keystr(keys), leaf)

    if tree is None:  # for JAX, a tree without leaves
        as_array(argument, tree)  # raises an error
    return jax.tree.map_with_path(convert, tree, is_leaf=_is_wrapper)


def _check_tree(argument: str, tree: Any, x: Any, alternative: str = "") -> None:
    """Requires that `tree` has the structure of `x`.

    The message ends with the `alternative`.
    """
    structure: Any = jax.tree.structure(tree, is_leaf=_is_wrapper)
    of_x = jax.tree.structure(x)
    if structure != of_x:
        raise ArgumentError(
            f"{argument} is a tree {shortened(str(structure), 90)}, while x is "
            f"{shortened(str(of_x), 90)}; it must have the same structure"
            f"{alternative}."
        )


def _put_or_add(
    nonzero: NonzeroCoordinates, verb: str, x: Any, rows: Any, where: Any
) -> Any:
    """Puts `rows` into `x`, or adds them: `verb` is "put" or "add"."""
    arrays = _arrays("x", x)
    _check_tree("rows", rows, arrays)
    row_arrays = _arrays("rows", rows)
    if where is not None:
        where = as_array("where", where)
        if where.dtype != np.bool_:
            raise ArgumentTypeError(
                f"where has data type {show(where.dtype)}; it must be bool. "
                "Write where != 0."
            )
    return _put_or_add_compiled(nonzero, arrays, row_arrays, where, verb)


# TAKE, PUT AND ADD


@compiled()
def _take(nonzero: NonzeroCoordinates, arrays: Any, fills: Any) -> Any:
    def take(keys: Any, x: Array, fill: Array) -> Array:
        sizes = _sizes_of_take(nonzero, f"x{jax.tree_util.keystr(keys)}", x)
        check_elements(sizes)
        spec = _rows_spec(x, nonzero, sizes)
        return _over_mesh(read_rows, sizes, spec, nonzero, drop_weak_type(x), fill)

    if fills is None:
        fills = jax.tree.map(lambda x: jnp.zeros((), x.dtype), arrays)
    return jax.tree.map_with_path(take, arrays, fills)


@compiled("verb")
def _put_or_add_compiled(
    nonzero: NonzeroCoordinates,
    arrays: Any,
    row_arrays: Any,
    where: Array | None,
    verb: str,
) -> Any:
    """Does the compiled part of `_put_or_add`."""
    if where is not None and where.shape != nonzero.coordinates.shape[:-1]:
        sizes_of_flags = nonzero.coordinates.shape[:-1]  # (K,), or (.., P, K)
        remedy = " For flags of the elements of x, write where=kept.take(flags)."
        if where.shape in ((), sizes_of_flags[-1:]):
            remedy = " Write jnp.broadcast_to(where, kept.valid.shape)."
        raise ArgumentError(
            f"where has sizes {show(where.shape)}; it must have "
            f"{show(sizes_of_flags)}, one flag per row.{remedy}"
        )

    def update(keys: Any, x: Array, rows: Array) -> Array:
        path = jax.tree_util.keystr(keys)
        name, row_name = f"x{path}", f"rows{path}"
        sizes_of_take = _sizes_of_take(nonzero, name, x)
        call_of_take = f"take({name}) for {name} of sizes {show(x.shape)}"
        remedy = ""
        if rows.ndim == 0:
            value = f"{name} + {row_name}" if verb == "add" else row_name
            remedy = f" For one value, write jnp.where(mask, {value}, {name})."
        sizes = {call_of_take: sizes_of_take, row_name: rows.shape}
        require_same("sizes", sizes, remedy)
        types = {name: x.dtype, row_name: rows.dtype}
        remedy = cast_hint(row_name, rows.dtype, x.dtype)
        require_same("data types", types, remedy)
        if verb == "add" and x.dtype == np.bool_:
            raise ArgumentTypeError(
                f"{name} has bools, which have no sum. Write {name}.astype(int)."
            )
        x, rows = drop_weak_type(x), drop_weak_type(rows)
        if 0 in x.shape:
            return x
        function: Any = add_rows if verb == "add" else write_rows
        spec = jax.typeof(x).sharding.spec
        return _over_mesh(function, x.shape, spec, nonzero, x, rows, where)

    return jax.tree.map_with_path(update, arrays, row_arrays)


def _sizes_of_take(nonzero: NonzeroCoordinates, name: str, x: Array) -> tuple[int, ...]:
    """Returns the sizes of ``take(x)``: (*batch, K, *row) or (*batch, P, K, *row).

    `row` has the trailing sizes of `x`. The sizes of `x` must begin with the batch of a
    vmap and with the sizes of the searched array.
    """
    batch, searched = _batch_and_searched_sizes(nonzero)
    leading = batch + searched
    # In `leading`, a size that was symbolic during the search is a string. It fits any
    # number in `x`: a search that was exported with size "n" may run with n = 4, and
    # its result may go to a program where this size is 4.
    fits = [
        str(wanted) == str(size) or (type(wanted), type(size)) == (str, int)
        for wanted, size in zip(leading, x.shape, strict=False)
    ]
    if x.ndim < len(leading) or not all(fits):
        text = (
            f"{name} has sizes {show(x.shape)}; it must begin with "
            f"{show(leading)}, the sizes of the array that was searched."
        )
        if batch:
            text += (
                f" The first, {show(batch)}, are those of jax.vmap: broadcast {name} "
                "to them, or call this method inside of the vmap."
            )
        elif x.shape[1 : 1 + len(leading)] == leading:
            text += (
                " If channels or layers come first, map the method over them: "
                "jax.vmap(kept.take)(x), or jax.vmap(kept.put)(x, rows)."
            )
        raise ArgumentError(text)
    *batch_and_parts, rows, _ = nonzero.coordinates.shape
    # The coordinates index `x`. In `put` and in gradients, the numbers 0 to K - 1 of
    # the rows are indices, too (`_nonzero_rows._slot_of_element`).
    if not all(map(fits_index, (*x.shape[: len(leading)], rows))):
        raise ArgumentError(
            f"{name} has sizes {show(x.shape)}, and there are {rows} "
            "rows; indices of 2^31 and more need JAX's x64 mode. "
            f"{TURN_ON_X64}."
        )
    return (*batch_and_parts, rows, *x.shape[len(leading) :])


def _batch_and_searched_sizes(
    nonzero: NonzeroCoordinates,
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Returns the sizes of the batch of a vmap, and of the searched array.

    Refuses a result that has lost these sizes, is a slice of a result, or has fewer
    columns than the searched array has dimensions.
    """
    sizes, parts, why = nonzero._static
    if sizes is None:
        raise ArgumentError(LOST[why])
    count, coordinates = nonzero
    has_all_parts = parts is None or count.shape[-1:] == (parts,)
    if not has_all_parts or coordinates.shape[:-2] != count.shape:
        text = "" if parts is None else f" of parts={parts}"
        raise ArgumentError(
            f"the count has sizes {show(count.shape)}, and the coordinates "
            f"have {show(coordinates.shape)}; they are no whole result{text}. Use "
            "the result before you slice it, and inside of the jax.shard_map where it "
            "was made."
        )
    columns = coordinates.shape[-1]
    if columns < len(sizes):
        raise ArgumentError(
            f"the coordinates have columns={columns}, while the array that "
            f"was searched has sizes {show(sizes)}; write columns={len(sizes)}, one "
            "for each dimension, or leave it out."
        )
    batch = count.shape if parts is None else count.shape[:-1]
    return batch, sizes


def _by_parts(
    function: Callable[..., Array],
    sizes: tuple[int, ...],
    nonzero: NonzeroCoordinates,
    x: Array,
    other: Array,
    where: Array | None = None,
) -> Array:
    """Calls a function of `_nonzero_rows` for each tensor of a batch, and each part.

    `function` is called as function(x, other, valid, index): `other` has the rows to
    write, or is the scalar that fills. `sizes` are the sizes of the whole result, which
    is ``take(x)`` or an updated `x`. For example, with `parts=2` an `x` of sizes (6, 5)
    becomes two parts, (2, 3, 5), and x[4, 2] is element [1, 2] of the second part.
    """
    valid = nonzero.valid if where is None else nonzero.valid & where
    searched, parts, _ = nonzero._static
    *batch_and_parts, rows, columns = nonzero.coordinates.shape
    integer = jnp.result_type(int)
    coordinates = lax.convert_element_type(nonzero.coordinates, integer)
    index = [coordinates[..., column] for column in range(columns)]
    if searched == ():
        # The coordinates of a scalar have one column: `x` gets a dimension for it.
        x = jnp.expand_dims(x, len(batch_and_parts))
    if parts is not None:
        # The first dimension after the batch: we cut it into parts in `x`, and it
        # already counts the parts in the coordinates.
        axis = len(batch_and_parts) - 1
        length = x.shape[axis] // parts
        x = x.reshape(*x.shape[:axis], parts, length, *x.shape[axis + 1 :])
        # The coordinates count from the start of `x`, and not of their part.
        part = lax.broadcasted_iota(integer, (*batch_and_parts, rows), axis)
        index[0] = index[0] - part * constant(length, integer)
    in_axes = 0, 0 if other.ndim else None, 0, 0  # a scalar fills all parts
    for _ in batch_and_parts:
        function = jax.vmap(function, in_axes=in_axes)
    return function(x, other, valid, tuple(index)).reshape(sizes)


# SEVERAL DEVICES


def _rows_spec(
    x: Array, nonzero: NonzeroCoordinates, sizes: tuple[int, ...]
) -> list[Any]:
    """Returns the mesh axes of each dimension of ``take(x)``; [] without a mesh.

    For example, with `parts=2` the count has sizes (2,), divided over "p", and `x` has
    (6, 8), with 8 divided over "c". Then ``take(x)`` has `sizes` (2, K, 8) and mesh
    axes ("p",), (), ("c",).
    """
    mesh = explicit_mesh(x, nonzero.count)
    if mesh is None:
        return []
    of_x, of_count = map(divided_axes, (x, nonzero.count))
    # ``take(x)`` has the dimensions of the count, which are the batch and the parts,
    # then K, then the row. Each of the first dimensions of ``take(x)`` gets the mesh
    # axes of the same dimension of `x`, or else of the count. K is whole, and the row
    # is divided as in `x`.
    first = [of_x.get(i) or of_count.get(i, ()) for i in range(nonzero.count.ndim)]
    row_rank = len(sizes) - len(first) - 1
    of_row = range(x.ndim - row_rank, x.ndim)
    axes = [*first, (), *(of_x.get(i, ()) for i in of_row)]
    # A dimension stays whole if one of its mesh axes already divides an earlier one, or
    # if its size is no multiple of the number of devices.
    spec: list[Any] = []
    for size, names in zip(sizes, axes, strict=True):
        devices = math.prod(mesh.shape[name] for name in names)
        is_used = any(name in earlier for name in names for earlier in spec)
        spec.append(() if is_used or size % devices else names)
    return spec


def _over_mesh(
    function: Callable[..., Array],
    sizes: tuple[int, ...],
    spec: Sequence[Any],
    nonzero: NonzeroCoordinates,
    x: Array,
    other: Array,
    where: Array | None = None,
) -> Array:
    """Calls `_by_parts`. XLA divides the call over explicit mesh axes.

    `spec` has the mesh axes of the result.
    """
    operands = nonzero, x, other, where
    run: Callable[..., Array] = functools.partial(_by_parts, function, sizes)
    mesh = explicit_mesh(*jax.tree.leaves(operands))
    if mesh is not None:
        sharding = NamedSharding(mesh, PartitionSpec(*spec))
        # Inside of a caller's shard_map, JAX can't differentiate with residuals over
        # explicit axes (jax-ml/jax#29162). Under jax.checkpoint, it saves none.
        run = jax.checkpoint(by_xla(run, mesh, sharding))
    return run(*operands)


# A PYTREE


jax.tree_util.register_pytree_with_keys(
    NonzeroCoordinates,
    lambda nonzero: (
        [
            (jax.tree_util.GetAttrKey(name), getattr(nonzero, name))
            for name in nonzero._fields
        ],
        nonzero._static,
    ),
    lambda static, outputs: nonzero_result(outputs, static),
)
# Without this registration JAX can't serialize an exported program that takes or
# returns a result.
export.register_pytree_node_serialization(
    NonzeroCoordinates,
    serialized_name="dmljax.NonzeroCoordinates",
    serialize_auxdata=lambda static: repr(static).encode(),
    deserialize_auxdata=lambda data: ast.literal_eval(bytes(data).decode()),
)
