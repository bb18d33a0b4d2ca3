"""NONZERO_COORDINATES: the coordinates of all elements that are not zero."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec
from jax.typing import ArrayLike

from dmljax._check import require, show
from dmljax._descriptor import OperatorDesc
from dmljax._operator import (
    Choice,
    Form,
    Implementation,
    Operator,
    Outputs,
    alike_in_shard_map,
    as_array,
    as_integer,
    in_context,
    kernel,
)
from dmljax._partition import (
    Layout,
    Partition,
    Place,
    aligned,
    explicit_mesh,
    explicit_parts,
)
from dmljax._support import (
    UINT32_ONLY,
    UP_TO_32_BITS,
    FeatureLevel,
    Support,
    SupportTable,
)
from dmljax._tensor import (
    MAX_ELEMENTS,
    TensorDesc,
    index_mode,
    packed_strides,
    x64_enabled,
)

NAME = "NONZERO_COORDINATES"
WORD = 32  # elements, one bit each
CHUNK = 4096  # rows that devices exchange at a time, at least
SUPPORT: SupportTable = {
    FeatureLevel.V3_0: {
        "InputTensor": Support(4, 5, UP_TO_32_BITS),
        "OutputCountTensor": Support(4, 5, UINT32_ONLY),
        "OutputCoordinatesTensor": Support(4, 5, UINT32_ONLY),
    },
    FeatureLevel.V4_0: {
        "InputTensor": Support(1, 8, UP_TO_32_BITS),
        "OutputCountTensor": Support(1, 8, UINT32_ONLY),
        "OutputCoordinatesTensor": Support(2, 8, UINT32_ONLY),
    },
}


class NonzeroCoordinates(NamedTuple):
    """The outputs of NONZERO_COORDINATES.

    Attributes:
      count: () uint32, the number of elements that are not zero.
      coordinates: (M, N) uint32, their coordinates in ascending order.
    """

    # The page's name; it hides tuple.count, which nobody calls here.
    count: jax.Array  # type: ignore[assignment]
    coordinates: jax.Array


NonzeroCoordinates.__module__ = "dmljax"


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
    # XLA may ask for the program of a part in a thread that is not in x64 mode.
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
    zeros = np.asarray([0.0, -0.0]).astype(dtype)  # what is no zero stays none
    patterns = zeros.view(f"uint{8 * dtype.itemsize}")
    return tuple(sorted({int(pattern) for pattern in patterns[zeros == 0]}))


def _packed(x: jax.Array) -> jax.Array:
    """(batch, words): the bits of x != 0 for x of (batch, elements), 32 to a word."""
    batch, elements = x.shape
    words = -(-elements // WORD)
    nonzero = jnp.pad(is_nonzero(x), ((0, 0), (0, words * WORD - elements)))
    lanes = nonzero.reshape(batch, words, WORD).astype(np.uint32)
    lane = lax.broadcasted_iota(np.uint32, lanes.shape, 2)
    return (lanes << lane).sum(2, dtype=np.uint32)


def _compact_by_scatter(
    words: jax.Array, first: jax.Array, sizes: tuple[int, ...], columns: int
) -> jax.Array:
    """Every element finds its row, the number of non-zeros before it, and writes."""
    batch, elements = words.shape[0], math.prod(sizes)
    ones = lax.population_count(words)
    starts = jnp.cumsum(ones, axis=1, dtype=np.uint32) - ones
    lane = lax.broadcasted_iota(np.uint32, (1, 1, WORD), 2)
    lower = (jnp.uint32(1) << lane) - 1
    row = starts[..., None] + lax.population_count(words[..., None] & lower)
    selected = (words[..., None] >> lane) & 1
    row = jnp.where(selected.astype(bool), row, np.uint32(elements))  # dropped
    row = row.reshape(batch, -1)
    with index_mode(elements):

        def scatter(row: jax.Array, first: jax.Array) -> jax.Array:
            number = first + lax.iota(np.uint32, row.size)
            return (
                lax.full_like(row[:elements], 0)
                .at[row]
                .set(
                    number,
                    mode="drop",
                    unique_indices=True,
                    wrap_negative_indices=False,
                )
            )

        flat = jax.vmap(scatter)(row, first)
    return unravel(flat, sizes, columns)  # element 0, past the count, gives zeros


def _compact_by_loop(
    words: jax.Array, first: jax.Array, sizes: tuple[int, ...], columns: int
) -> jax.Array:
    """One walk over the words that visits their set bits: the best order for a core."""
    (batch, width), elements = words.shape, math.prod(sizes)
    with index_mode(words.size * WORD) as integer:

        def visit_word(k: jax.Array, state: Any) -> Any:
            row, rows = state
            row = jnp.where(k % width == 0, k // width * elements, row)
            word = lax.dynamic_index_in_dim(words.ravel(), k, keepdims=False)
            number = first[k // width] + (k % width).astype(np.uint32) * WORD

            def visit_bit(state: Any) -> Any:
                word, row, rows = state
                lane = lax.population_count((word & -word) - 1)
                coordinates = unravel(number + lane, sizes, columns)
                rows = lax.dynamic_update_index_in_dim(rows, coordinates, row, 0)
                return word & (word - 1), row + 1, rows

            bits = lax.while_loop(lambda s: s[0] != 0, visit_bit, (word, row, rows))
            return bits[1:]

        zero = jnp.zeros((), integer)
        rows = jnp.zeros((batch * elements, columns), np.uint32)
        row, rows, _ = alike_in_shard_map(zero, rows, words)
        stop = jnp.asarray(words.size, integer)
        _, rows = lax.fori_loop(zero, stop, visit_word, (row, rows))
    coordinates: jax.Array = rows.reshape(batch, elements, columns)
    return coordinates


def by_lines(lines: Callable[..., Outputs]) -> Form:
    """The operator, given what it does with independent lines of elements.

    `lines` takes them as (lines, elements), of any such sizes but 0; the sizes of the
    tensor that a line is, as `sizes=`; and `columns=`, `fill=` and what else a form
    takes. It returns (lines,) counts and (lines, elements, columns) coordinates.

    A second operand is the number of each line's first element, (lines,), which is 0
    but in a part of a tensor.
    """

    def form(
        x: jax.Array, *first: jax.Array, rank: int, columns: int, **static: Any
    ) -> Outputs:
        batch, sizes = x.shape[: x.ndim - rank], x.shape[x.ndim - rank :]
        elements = math.prod(sizes)
        shape = (*batch, elements, columns)
        if x.size == 0:
            return jnp.zeros(batch, np.uint32), jnp.zeros(shape, np.uint32)
        ones = (1,) * rank
        numbers = (jnp.broadcast_to(f, batch + ones).ravel() for f in first)
        count, coordinates = lines(
            x.reshape(-1, elements), *numbers, sizes=sizes, columns=columns, **static
        )
        return count.reshape(batch), coordinates.reshape(shape)

    return form


def _form(compact: Callable[..., jax.Array]) -> Form:
    """The operator, given how the coordinates of the set bits are compacted.

    `compact` takes the words, the numbers of the first elements, the sizes and the
    number of columns, and returns (lines, elements, columns) with 0 in the rows past
    the count.
    """

    def form(
        x: jax.Array,
        *first: jax.Array,
        sizes: tuple[int, ...],
        columns: int,
        fill: int | None,
    ) -> Outputs:
        words = _packed(x)
        count = lax.population_count(words).sum(1, dtype=np.uint32)
        number = sum(first, jnp.zeros(x.shape[0], np.uint32))
        coordinates = compact(words, number, sizes, columns)
        row = lax.broadcasted_iota(np.uint32, coordinates.shape[:2], 1)
        return count, filled(coordinates, row < count[:, None], fill)

    return by_lines(form)


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

    The first of them may be past its size, in a part of a tensor.
    """
    sizes = last_sizes(sizes, columns)
    strides = packed_strides(sizes)
    quotients = [flat // np.uint32(stride) for stride in strides]
    rest = [q % np.uint32(size) for q, size in zip(quotients, sizes, strict=True)]
    return jnp.stack([quotients[0], *rest[1:]], axis=-1)


def _layout(
    operands: Sequence[tuple[int, ...]],
    outputs: Sequence[tuple[int, ...]],
    *,
    rank: int,
    **static: Any,
) -> Layout:
    """Batches are divided, and the rows as the first dimension that they speak of."""
    end = len(operands[0]) - rank + 1
    layout = aligned(operands, outputs, **static)
    (x, *first), (count, coordinates) = layout.operands, layout.outputs
    sizes = tuple(f"size{i}" for i in range(rank - 1))
    return Layout(
        (x[:end] + sizes, *first),
        (count, (*coordinates[:end], "columns")),
        layout.whole | {*sizes, "columns"},
    )


def _shard(
    place: Place,
    x: jax.Array,
    *first: jax.Array,
    rank: int,
    columns: int,
    fill: int | None,
    **static: Any,
) -> Outputs:
    """The rows of the device, found where they are and moved to where they belong."""
    axis = x.ndim - rank
    if not rank or place.parts(axis) == 1 or not x.size:
        return OPERATOR(x, *first, rank=rank, columns=columns, fill=fill, **static)
    batch, sizes = x.shape[:axis], x.shape[axis:]
    elements = np.uint32(math.prod(sizes))
    lines = x.reshape(-1, elements)
    before = place.index(axis).astype(np.uint32) * elements
    count, rows = OPERATOR(
        lines,
        before.reshape(1, 1),
        **static | {"rank": 1, "columns": 1, "fill": None},
    )
    counts = place.collected(count, axis)
    number = _moved(place, axis, rows[..., 0], counts)
    count = counts.sum(-1, dtype=np.uint32).reshape(batch)
    number = number.reshape(*batch, elements)
    row = before + lax.broadcasted_iota(np.uint32, number.shape, axis)
    valid = row < count[..., None]
    number = sum((f.reshape(*f.shape[:axis], 1) for f in first), number)
    coordinates = unravel(jnp.where(valid, number, 0), sizes, columns)
    return count, filled(coordinates, valid, fill)


def _moved(place: Place, axis: int, number: jax.Array, counts: jax.Array) -> jax.Array:
    """Rows that are dense in each part, brought to where they are dense in all.

    They are given as (lines, rows) numbers, and how many there are as (lines, parts)
    counts; what lies past them does not matter. What stays on its device is copied, the
    rest sent a chunk at a time to and from each part: as often as rows have to move,
    which all devices know, and no more than a fraction of a part at once.
    """
    (lines, rows), parts = number.shape, counts.shape[1]
    chunk = max(min(rows, CHUNK), rows // (8 * parts))
    starts = jnp.cumsum(counts, 1, dtype=np.uint32) - counts
    own = place.index(axis)
    here = own.astype(np.uint32)
    of_own = functools.partial(lax.dynamic_index_in_dim, index=own, axis=1)
    # The first of the own rows that go to each part; and of the rows that come from
    # each part how many they are, and where they begin.
    part = lax.broadcasted_iota(np.uint32, counts.shape, 1)
    going, _ = _span(part, rows, of_own(starts), of_own(counts))
    skipped, coming = _span(here, rows, starts, counts)
    begin = jnp.where(coming == 0, 0, starts + skipped - here * np.uint32(rows))
    lane = lax.iota(np.uint32, chunk)
    with index_mode(rows + chunk) as integer:
        place_of = lax.broadcasted_iota(np.uint32, (lines, rows + chunk), 1)
        place_of -= of_own(begin)  # what lies before wraps around, to a large number
        stays = _at(number, jnp.minimum(place_of + of_own(going), rows - 1))
        moved = jnp.where(place_of < of_own(coming), stays, 0)
        coming = jnp.where(part == here, 0, coming)

        def exchange(k: Any, moved: Any) -> Any:
            nth = k.astype(np.uint32) * np.uint32(chunk) + lane
            index = jnp.minimum(going[..., None] + nth[None, None], rows - 1)
            sent = _at(number, index.reshape(lines, -1)).reshape(index.shape)
            came = place.exchanged(sent, axis, 1)

            def put(i: Any, moved: Any) -> Any:
                line, source = i // parts, i % parts
                first = jnp.minimum(begin[line, source] + nth[0], rows)
                at = (line.astype(integer), first.astype(integer))
                old = lax.dynamic_slice(moved, at, (1, chunk))[0]
                new = jnp.where(nth < coming[line, source], came[line, source], old)
                return lax.dynamic_update_slice(moved, new[None], at)

            return lax.fori_loop(0, lines * parts, put, moved)

        rounds = _rounds(starts, counts, rows, chunk)
        filled: jax.Array = lax.fori_loop(0, rounds, exchange, moved)
    return filled[:, :rows]


def _span(
    part: jax.Array, rows: int, start: jax.Array, count: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Of `count` rows from `start` on: how many lie before a part, how many in it."""

    def before(bound: jax.Array) -> jax.Array:
        return jnp.minimum(jnp.maximum(bound, start) - start, count)

    first = before(part * np.uint32(rows))
    return first, before((part + 1) * np.uint32(rows)) - first


def _rounds(starts: jax.Array, counts: jax.Array, rows: int, chunk: int) -> jax.Array:
    """How many chunks the most rows are that one part sends to another."""
    parts = counts.shape[1]
    source, target = (
        lax.broadcasted_iota(np.uint32, (1, parts, parts), i) for i in (1, 2)
    )
    _, size = _span(target, rows, starts[..., None], counts[..., None])
    most = jnp.max(jnp.where(source == target, 0, size))
    chunks = lax.div(most + np.uint32(chunk - 1), np.uint32(chunk))
    return chunks.astype(np.int32)


def _at(x: jax.Array, index: jax.Array) -> jax.Array:
    return jnp.take_along_axis(x, index, -1, mode="promise_in_bounds")


def _moves(*, rank: int, **static: Any) -> bool:
    del static
    return rank > 0


OPERATOR = Operator(
    "nonzero_coordinates",
    _form(_compact_by_scatter),
    Partition(_shard, _layout, _moves),
    xla_on={"cpu": _form(_compact_by_loop)},
    kernels={
        "cuda": kernel("nonzero_coordinates"),
        "tpu": kernel("nonzero_coordinates", "tpu"),
    },
)


def nonzero_coordinates(
    x: ArrayLike,
    /,
    *,
    columns: int | None = None,
    fill: int | None = 0,
    parts: int | None = None,
    implementation: Implementation = None,
) -> NonzeroCoordinates:
    """Finds the coordinates of all elements that are not zero, in a static shape.

    ``coordinates[r]`` holds the last `columns` coordinates of the r-th element with
    ``x[c] != 0`` in ascending row-major order, for r < count.

    Both zeros, 0.0 and -0.0, are zero. NaN, infinities and subnormal numbers are not.

    Args:
      x: (...) of any type and rank, of M elements (InputTensor).
      columns: the number N of coordinates in a row: at least the rank of `x` without
        its leading sizes of 1, at most its rank, and at least 1. None for the rank.
      fill: what the rows at and past the count hold, a UINT32. None leaves them
        undefined, which may be faster.
      parts: ours: into how many equal parts to take the first dimension. Each part has
        a count and rows of its own, with the coordinates of the whole. Where devices
        share the first dimension, nothing is exchanged between them. None for one
        count, and rows without gaps.
      implementation: None for the fastest, "xla" or "pallas".

    Returns:
      A ``NonzeroCoordinates`` of a count, () uint32, and coordinates, (M, N) uint32;
      with `parts` P, of counts, (P,), and coordinates, (P, M / P, N). It has no
      derivative; it passes through a differentiated program.

    Raises:
      DescriptorError: if `columns` or `fill` is out of range, `parts` does not divide
        the first size, or `x` has more than 2^32 - 1 elements.
      TypeError: if `x` is not an array, or `columns`, `fill` or `parts` no integer.

    >>> import jax.numpy as jnp
    >>> count, coordinates = nonzero_coordinates(jnp.array([[0, 5], [0, 7]]))
    >>> int(count), coordinates[:2].tolist(), coordinates[2:].tolist()
    (2, [[0, 1], [1, 1]], [[0, 0], [0, 0]])
    >>> count, coordinates = nonzero_coordinates(jnp.array([0, 5, 6, 0, 7, 0]), parts=2)
    >>> count.tolist(), coordinates[..., 0].tolist()
    ([2, 1], [[1, 2, 0], [4, 0, 0]])

    See DML_NONZERO_COORDINATES_OPERATOR_DESC in directml.h.
    """
    x = as_array(NAME, "InputTensor", x)
    if columns is not None:
        columns = as_integer(NAME, "columns", columns)
    if fill is not None:
        fill = as_integer(NAME, "fill", fill)
        require(
            NAME,
            0 <= fill < 2**32,
            f"fill is {fill}; it must be a UINT32, 0 to {2**32 - 1}.",
        )
    if parts is not None:
        parts = as_integer(NAME, "parts", parts)
        require(
            NAME,
            parts > 0 and x.ndim > 0 and x.shape[0] % parts == 0,
            f"parts is {parts}; it must divide the first dimension of tensor "
            f"'InputTensor', which has sizes {show(x.shape)}.",
        )
    outputs: NonzeroCoordinates = _nonzero_coordinates(
        x, columns, fill, parts, in_context(implementation)
    )
    return outputs


@functools.partial(jax.jit, static_argnums=(1, 2, 3, 4))
def _nonzero_coordinates(
    x: jax.Array,
    columns: int | None,
    fill: int | None,
    parts: int | None,
    implementation: Choice,
) -> NonzeroCoordinates:
    rank, columns = x.ndim, max(x.ndim, 1) if columns is None else columns
    _check_columns(x.shape, columns)
    with jax.named_scope("dmljax.nonzero_coordinates"):
        operands = (x,) if parts is None else _in_parts(x, parts)
        outputs = OPERATOR(
            *operands,
            rank=rank,
            columns=columns,
            fill=fill,
            implementation=implementation,
        )
    return NonzeroCoordinates(*outputs)


def _in_parts(x: jax.Array, parts: int) -> tuple[jax.Array, jax.Array]:
    """The parts of the first dimension as a batch, and each one's first number."""
    devices = explicit_parts(x, 0)
    require(
        NAME,
        parts % devices == 0,
        f"parts is {parts}; it must be a multiple of {devices}, the number of devices "
        "over which the first dimension is sharded.",
    )
    shape, sharding = (parts, x.shape[0] // parts, *x.shape[1:]), None
    mesh = explicit_mesh(x)
    if mesh:  # then a reshape must be told which of both dimensions stays sharded
        first, *rest = jax.typeof(x).sharding.spec
        sharding = NamedSharding(mesh, PartitionSpec(first, None, *rest))
    split = lax.reshape(x, shape, out_sharding=sharding)
    numbers = lax.iota(np.uint32, parts) * np.uint32(x.size // parts)
    return split, numbers.reshape((parts,) + (1,) * x.ndim)


def effective_rank(sizes: tuple[int, ...]) -> int:
    """The number of dimensions without the leading ones of size 1.

    >>> effective_rank((1, 2, 1, 4)), effective_rank((1, 1))
    (3, 0)
    """
    leading = next((i for i, size in enumerate(sizes) if size != 1), len(sizes))
    return len(sizes) - leading


def _check_columns(sizes: tuple[int, ...], columns: int) -> None:
    require(
        NAME,
        math.prod(sizes) <= MAX_ELEMENTS,
        f"tensor 'InputTensor' has sizes {show(sizes)}, {math.prod(sizes)} elements; "
        f"at most {MAX_ELEMENTS} are allowed.",
    )
    low, high = max(effective_rank(sizes), 1), max(len(sizes), 1)
    require(
        NAME,
        low <= columns <= high,
        f"the coordinates have {columns} columns; for an input of sizes {show(sizes)} "
        f"they must have {low} to {high}.",
    )


@dataclasses.dataclass(frozen=True)
class NonzeroCoordinatesDesc(OperatorDesc):
    """DML_NONZERO_COORDINATES_OPERATOR_DESC: see ``nonzero_coordinates``.

    Attributes:
      input_tensor: of M elements.
      output_count_tensor: UINT32, of one element.
      output_coordinates_tensor: UINT32, of sizes {1.., M, N}.
    """

    __module__ = "dmljax"
    operator: ClassVar[str] = NAME
    support: ClassVar[SupportTable] = SUPPORT
    outputs: ClassVar[tuple[str, ...]] = (
        "output_count_tensor",
        "output_coordinates_tensor",
    )
    same_type: ClassVar[tuple[str, ...]] = ()

    input_tensor: TensorDesc
    output_count_tensor: TensorDesc
    output_coordinates_tensor: TensorDesc

    def output_shapes(
        self, level: FeatureLevel
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """One element, and as many rows as the input has elements."""
        del level
        sizes = self.input_tensor.sizes
        coordinates = self.output_coordinates_tensor.sizes
        _check_columns(sizes, coordinates[-1])
        rows = (math.prod(sizes), coordinates[-1])
        count = (1,) * len(self.output_count_tensor.sizes)
        return count, (1,) * (len(coordinates) - 2) + rows

    def evaluate(self, *arrays: jax.Array) -> NonzeroCoordinates:
        """The count and the coordinates, in the sizes of their tensors."""
        columns = self.output_coordinates_tensor.sizes[-1]
        outputs = nonzero_coordinates(*arrays, columns=columns)
        shaped = (
            value.reshape(tensor.sizes)
            for value, tensor in zip(
                outputs, self.output_tensors().values(), strict=True
            )
        )
        return NonzeroCoordinates(*shaped)
