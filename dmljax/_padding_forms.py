"""PADDING and its adjoint in jax.numpy: the forms that XLA compiles.

The *adjoint* is the transpose of padding as a linear map: each input element gets the
sum of the output elements that repeat it. We write the adjoint with slices, reversals
and sums in a fixed order, in a program whose size is bounded, however wide the padding
is. The scatter-add that JAX would derive from a gather is slower, and may sum in
another order in the next run.

The *inside* of an output is its copy of the input. A *strip* is the padding on one side
of one axis. The *phase* of a coordinate is its position in the period of a mode. The
primitives are in `_padding`.
"""

import enum
import functools
import itertools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dmljax._check import surely_le
from dmljax._jax import VERSION
from dmljax._types import Outputs, as_bits, constant, index_mode

# The paddings of one side, before or after: a number for each of the operator's own
# axes. Axes that a vmap puts in front have no number.
Pads = tuple[int, ...]
# Many slices compile slowly: `join` makes slices if a strip has at most 8 times the
# size of the axis, and `_runs` if it has at most 8 periods.
MAX_UNROLLED = 8


class PaddingMode(enum.IntEnum):
    """Where the values of the padding come from: DML_PADDING_MODE.

    On each axis, let i be the output coordinate minus the start padding, and let n be
    the size of the input. The output repeats this element of the input:

    - CONSTANT: element i, or the padding value if i is outside of [0, n) on any axis;
    - EDGE: the nearest element, clip(i, 0, n - 1);
    - REFLECTION: the mirror image at the outermost element, 3 2 | 1 2 3 | 2 1;
    - SYMMETRIC: the mirror image at the border, 2 1 | 1 2 3 | 3 2;
    - WRAP: element i mod n, 2 3 | 1 2 3 | 1 2.

    The values are DirectML's numbers. SYMMETRIC exists from feature level 3_0 on, and
    WRAP from 6_4 on. A name in lower or upper case makes a mode:
    ``PaddingMode("reflection")``, or ``PaddingMode("reflect")`` as in jax.numpy.

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
    C_PREFIX = enum.nonmember("DML_PADDING_MODE_")  # of the names in C
    # Other libraries' names of modes: error messages say what to write instead. Only
    # "reflect" is also accepted, by PaddingMode("reflect").
    OTHER_NAMES = enum.nonmember(
        {
            "REFLECT": "REFLECTION",
            "MIRROR": "REFLECTION",
            "REFLECT_101": "REFLECTION",
            "GRID-MIRROR": "SYMMETRIC",
            "SYMM": "SYMMETRIC",
            "REPLICATE": "EDGE",
            "NEAREST": "EDGE",
            "BORDER": "EDGE",
            "CIRCULAR": "WRAP",
            "PERIODIC": "WRAP",
            "GRID-WRAP": "WRAP",
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

    @property
    def numpy_name(self) -> Any:
        """The name of the mode in NumPy and in jax.numpy."""
        return "reflect" if self is PaddingMode.REFLECTION else self.name.lower()

    @classmethod
    def _missing_(cls, value: object) -> "PaddingMode | None":
        name = value.upper() if isinstance(value, str) else ""
        return cls.REFLECTION if name == "REFLECT" else cls.__members__.get(name)


def period_and_mirror_sum(size: int, mode: PaddingMode) -> tuple[int, int]:
    """Returns the period of a mode, and the sum of a phase and its mirror image.

    For example, SYMMETRIC of size 3 repeats elements 0 1 2 2 1 0, with the period 6.
    Phases 1 and 4 are mirror images: both hold element 1, and their sum is 5. So phase
    j holds element min(j, mirror_sum - j).

    WRAP has no mirror images. We give it the mirror_sum of SYMMETRIC: each phase j of
    WRAP is below `size`, and min(j, mirror_sum - j) is then j.
    """
    if mode is PaddingMode.REFLECTION:
        mirror_sum = 2 * size - 2
        # The period is 1 for size 1, and otherwise 2 * size - 2. For a symbolic size,
        # JAX sees in max(2 * size - 2, size) that the period is at least `size`, as
        # slices in `_sum_of_periods` require, and does not see it in max(.., 1).
        return jax.core.max_dim(mirror_sum, size), mirror_sum
    mirror_sum = 2 * size - 1
    if mode is PaddingMode.SYMMETRIC:
        return 2 * size, mirror_sum
    assert mode is PaddingMode.WRAP
    return size, mirror_sum


def source_index(position: Any, start: int, size: int, mode: PaddingMode) -> Any:
    """Returns the input coordinate for each output coordinate.

    Args:
      position: the output coordinates, at least 0.
      start: the padding before the axis.
      size: the size of the input.
      mode: a mode other than CONSTANT.
    """
    scalar = functools.partial(constant, dtype=position.dtype)
    if mode is PaddingMode.EDGE:
        coordinate = lax.sub(position, scalar(start))
        return lax.clamp(scalar(0), coordinate, scalar(size - 1))
    period, mirror_sum = period_and_mirror_sum(size, mode)
    shifted = lax.add(position, scalar(-start % period))  # never negative, for lax.rem
    phase = lax.rem(shifted, scalar(period))
    return lax.min(phase, lax.sub(scalar(mirror_sum), phase))


def by_axes(
    pad: Callable[..., Array],
    x: Array,
    *value: Array,
    start: Pads,
    end: Pads,
    mode: PaddingMode,
    last_first: bool = True,
) -> Outputs:
    """Pads axis by axis with `pad(x, axis, before, after, mode)`.

    Under CONSTANT, XLA's own pad takes all axes at once, and `pad` is not called.

    With `last_first`, the last axis is padded first. If `pad` gathers, a reduction of
    the padded array, such as a mean, is then several times as fast
    (docs/development/lab_notes.md, "The order of gathers").
    """
    axes = padded_axes(x.ndim, start, end)
    if mode is not PaddingMode.CONSTANT:
        for axis, before, after in reversed(axes) if last_first else axes:
            x = pad(x, axis, before, after, mode)
        return (x,)
    config = [(0, 0, 0)] * x.ndim
    for axis, before, after in axes:
        config[axis] = (before, after, 0)
    if value and value[0].size == 1:
        return (lax.pad(x, value[0].reshape(()), config),)
    # XLA's pad takes a scalar. After a vmap over the value, each batch element has its
    # own value: we pad with zeros, and select the values afterwards.
    padded = lax.pad(x, lax.full((), 0, x.dtype), config)
    if value:
        padded = jnp.where(is_inside(padded.shape, start, end), padded, *value)
    return (padded,)


def padded_type(
    *operands: Array, start: Pads, end: Pads, **_: Any
) -> list[jax.ShapeDtypeStruct]:
    """Returns the type of a padded array, whose batch may come from the value alone."""
    sizes = list(jnp.broadcast_shapes(*(x.shape for x in operands)))
    for axis, before, after in padded_axes(len(sizes), start, end):
        sizes[axis] += before + after
    return [jax.ShapeDtypeStruct(sizes, operands[0].dtype)]


def cropped_type(
    cotangent: Array, *, start: Pads, end: Pads, **_: Any
) -> list[jax.ShapeDtypeStruct]:
    """Returns the type of the adjoint's result, without the padding."""
    start, end = (tuple(-n for n in pads) for pads in (start, end))
    return padded_type(cotangent, start=start, end=end)


def padded_axes(rank: int, start: Pads, end: Pads) -> list[tuple[int, int, int]]:
    """Returns (axis, before, after) for each axis with padding."""
    axes = zip(range(rank - len(start), rank), start, end, strict=True)
    return [(axis, before, after) for axis, before, after in axes if before or after]


def are_known(*sizes: int) -> bool:
    """Whether no size is symbolic."""
    return all(isinstance(size, int) for size in sizes)


def gather(x: Array, axis: int, before: int, after: int, mode: PaddingMode) -> Array:
    """Pads along one axis by computed indices: the default form.

    A negative padding crops: with `after` = -size, only the strip before the axis is
    left. XLA fuses the gathers of all axes into a single loop.
    """
    size = x.shape[axis]
    count = before + size + after
    # `source_index` computes with numbers below `count` plus a period, and a period is
    # at most 2 * size.
    with index_mode(count + 2 * size) as integer:
        index = source_index(lax.iota(integer, count), before, size, mode)
        return _gathered(x, axis, index, 0)


def gather_by_table(
    x: Array, axis: int, before: int, after: int, mode: PaddingMode
) -> Array:
    """Pads along one axis by constant indices: the gather for CPUs.

    The dimensions before the axis are batching dimensions of the gather, so XLA for
    CPUs leaves the axes in order. Otherwise XLA moves the axis to the front, and
    transposes the result in a program with several outputs, such as a value and its
    gradient (docs/development/lab_notes.md, "Padding on a CPU").
    """
    size = x.shape[axis]
    count = before + size + after
    # A table needs known sizes, and a huge table would make the program huge.
    if not are_known(before, after, *x.shape) or count > 2**20:
        return gather(x, axis, before, after, mode)
    if count >= 4 * size:
        # Without a barrier, XLA fuses the operation that makes `x` into the gather, and
        # computes an element again for each repetition.
        x = lax.optimization_barrier(x)
    with index_mode(*x.shape) as integer:
        coordinates = np.arange(size, dtype=integer)
        index = np.pad(coordinates, (before, after), mode.numpy_name)
        return _gathered(x, axis, index, axis)


def _gathered(x: Array, axis: int, index: Any, batched: int) -> Array:
    """Returns the elements of `x` at `index` along `axis`.

    The first `batched` dimensions are batching dimensions of the gather: none, or all
    before `axis`. In both cases the index takes the place of `axis`, and all other
    dimensions have the same position in the result as in `x`.
    """
    batch = tuple(range(batched))
    whole_axes = [i for i in range(batched, x.ndim) if i != axis]
    # Each index is a vector of a single coordinate.
    index_shape = *x.shape[:batched], index.shape[0], 1
    # We don't write x[:, index]: it takes 3 times as long to trace.
    return lax.gather(
        x,
        lax.broadcast_in_dim(index, index_shape, [batched]),
        lax.GatherDimensionNumbers(
            offset_dims=tuple(whole_axes),
            collapsed_slice_dims=(axis,),
            start_index_map=(axis,),
            operand_batching_dims=batch,
            start_indices_batching_dims=batch,
        ),
        [n if i in whole_axes else 1 for i, n in enumerate(x.shape)],
        # Every index is in range: XLA need not compare it with the size.
        mode="promise_in_bounds",
    )


def place_in_zeros(part: Array, axis: int, offset: int, size: int) -> Array:
    """Puts `part` at `offset` into zeros of `size` along `axis`."""
    config = [(0, 0, 0)] * part.ndim
    config[axis] = (offset, size - offset - part.shape[axis], 0)
    return lax.pad(part, lax.full((), 0, part.dtype), config)


def write_strips(
    x: Array, axis: int, before: int, after: int, mode: PaddingMode
) -> Array:
    """Pads along one axis by zeros, and writes the strips over the zeros.

    If devices divide the axis, XLA turns the gathers of both strips into a single
    all-reduce. Slices and reversals would become four collectives, which wait for each
    other. A gather of all positions would become an all-reduce of the whole output.
    """
    size = x.shape[axis]
    end = before + size
    padded = place_in_zeros(x, axis, before, end + after)
    # The padding -size removes all of `x`, so that `gather` returns one strip alone.
    strips = (0, before, (before, -size)), (end, after, (-size, after))
    with index_mode(end + after) as integer:
        for offset, width, paddings in strips:
            if width:
                strip = gather(x, axis, *paddings, mode)
                at = constant(offset, integer)
                padded = lax.dynamic_update_slice_in_dim(padded, strip, at, axis)
    return padded


def pad_strips(x: Array, *value: Array, **static: Any) -> Outputs:
    """Pads by writing strips into a larger array: XLA divides it well among devices.

    On a single device, or with explicit mesh axes, the gather is faster.
    """
    is_complex = x.dtype.kind == "c"  # JAX does not cast complex numbers to bits
    if static["mode"] is PaddingMode.CONSTANT or is_complex:
        return by_axes(write_strips, x, *value, **static)
    # We pad bits: XLA for CPUs copies them, but converts bfloat16 to float32 and back.
    (bits,) = by_axes(write_strips, as_bits(x), **static)
    # At the end of a program, XLA for GPUs makes a kernel of each update. We add an xor
    # with 0, which changes no bits, and XLA fuses all updates with it. The barrier
    # hides the 0: XLA would remove an xor with a known 0
    # (docs/development/lab_notes.md, "Strips over automatic axes").
    zero = lax.optimization_barrier(lax.full((), 0, bits.dtype))
    bits = lax.bitwise_xor(bits, lax.broadcast(zero, bits.shape))
    return (lax.bitcast_convert_type(bits, x.dtype),)


def join(
    x: Array,
    axis: int,
    before: int,
    after: int,
    mode: PaddingMode,
    otherwise: Callable[..., Array] = gather,
) -> Array:
    """Pads along one axis by jnp.pad, which joins slices to `x`.

    A strip is a single slice under EDGE. In the other modes, it has a slice for each
    mirror image or repetition of `x`. If this makes many slices, or a size is symbolic,
    `otherwise` pads.
    """
    size = x.shape[axis]
    is_known = are_known(before, size, after)
    if not is_known or (
        mode is not PaddingMode.EDGE and max(before, after) > MAX_UNROLLED * size
    ):
        return otherwise(x, axis, before, after, mode)
    around = [(0, 0)] * x.ndim
    around[axis] = (before, after)
    return jnp.pad(x, around, mode=mode.numpy_name)


def pad_cpu(x: Array, *value: Array, **static: Any) -> Outputs:
    """Pads by `join` or by `gather_by_table`, whichever is faster on a CPU.

    `join` passes over the array once for each padded axis, and copies blocks that are
    contiguous in memory. `gather_by_table` passes over it once for all axes, and reads
    an index for each element. We join

    - a single axis: XLA would fuse a gather into a reduction that follows, and gather
      the same elements again and again. A gather is faster only between two elementwise
      operations (docs/development/lab_notes.md, "Padding on a CPU");
    - several axes, if the blocks are long and the type is narrow.
    """
    if x.ndim == 1:
        # XLA for CPUs joins slices of vectors by masked loads, which touch addresses
        # outside of the array. AMD processors are slow at the masked loads of a
        # reversed slice (docs/development/lab_notes.md, "Padding on a CPU"). So we pad
        # a row (1, n) in place of a vector (n,).
        (row,) = pad_cpu(lax.expand_dims(x, [0]), *value, **static)
        return (lax.squeeze(row, [0]),)
    axes = padded_axes(x.ndim, static["start"], static["end"])
    if len(axes) == 1:
        # XLA joined bfloat16 element by element before JAX 0.11.2.
        joins = x.dtype != jnp.bfloat16 or VERSION >= (0, 11, 2)
    else:
        # For shape (4, 6, 5, 3) whose axes 0 and 2 are padded, a join copies blocks of
        # 5 * 3 elements, and a gather copies slices of 3.
        last = axes[-1][0] if axes else x.ndim
        block, slice_size = math.prod(x.shape[last:]), math.prod(x.shape[last + 1 :])
        # A join pays off for blocks of 224 elements, and not for 64: we chose 96. A
        # gather copies a slice of 16 elements or more as a whole, and is then as fast
        # as a join.
        is_long = are_known(*x.shape[last:]) and block >= 96 and slice_size < 16
        # bfloat16 has the kind "V", and is gathered along several axes.
        joins = is_long and x.dtype.itemsize <= 2 and x.dtype.kind in "biuf"
    if joins:
        along = functools.partial(join, otherwise=gather_by_table)
        return by_axes(along, x, *value, **static, last_first=False)
    return by_axes(gather_by_table, x, *value, **static)


def is_inside(shape: tuple[int, ...], start: Pads, end: Pads) -> Array:
    """Returns a mask of the output elements that are copies of the input, the inside.

    The mask has size 1 along axes without padding.
    """
    result = jnp.ones((1,) * len(shape), bool)
    for axis, before, after in padded_axes(len(shape), start, end):
        sizes = [1] * len(shape)
        sizes[axis] = shape[axis]
        with index_mode(shape[axis]) as integer:
            position = lax.broadcasted_iota(integer, sizes, axis)
            result &= (position >= before) & (position < shape[axis] - after)
    return result


# THE ADJOINT

# The adjoint adds each strip of the cotangent to the elements of the inside that the
# strip repeats. A strip is a *direct run* if it repeats these elements in ascending
# order, and a *reversed run* if in descending order, in both cases once each.
# `_summand` returns what is added to the inside:
#
# - under EDGE, the sum of the strip;
# - for a direct run, the run itself;
# - for a reversed run, the run in reverse;
# - for any other strip, the sum of its periods.


def adjoint(
    cotangent: Array, *, start: Pads, end: Pads, mode: PaddingMode, cut: bool = False
) -> Outputs:
    """Adds the strips of the cotangent to its inside, axis by axis.

    CONSTANT drops the strips. By default, each strip has one summand, which is extended
    by zeros to the size of the inside, and XLA adds all summands in one loop. With
    `cut`, we cut the strips into runs. We also cut the inside into pieces, at both ends
    of each summand, add the summands to the pieces, and join the pieces.
    """
    axes = padded_axes(cotangent.ndim, start, end)
    # Pieces are faster from the first axis on, and sums with zeros from the last.
    for axis, before, after in axes if cut else reversed(axes):
        size = cotangent.shape[axis] - before - after
        part = functools.partial(lax.slice_in_dim, cotangent, axis=axis)
        total = part(before, before + size)
        # Both strips as [first, stop). Coordinate 0 is the first element of the inside.
        strips = [(-before, 0), (size, size + after)]
        if mode is PaddingMode.CONSTANT:
            strips = []
        elif cut and mode is not PaddingMode.EDGE:
            strips = [run for strip in strips for run in _runs(*strip, size, mode)]
        summands = [
            _summand(part(before + first, before + stop), first, size, axis, mode)
            for first, stop in strips
            if not surely_le(stop, first)  # not empty, or symbolic
        ]
        if cut:
            total = _join_sums(total, summands, axis)
        else:
            for strip, at in summands:
                total += place_in_zeros(strip, axis, at, size)
        cotangent = total
    return (cotangent,)


def adjoint_cpu(
    cotangent: Array, *, start: Pads, end: Pads, mode: PaddingMode
) -> Outputs:
    """Cuts the inside into pieces, except for short strips along a single axis.

    Without `cut`, a strip is extended by zeros, so XLA for CPUs adds to every element
    of the inside, and converts each bfloat16 to float32 and back. In return, all sums
    share one loop. So we leave the inside whole only along a single axis with strips
    shorter than the inside, in types of four bytes or more
    (docs/development/lab_notes.md, "The adjoint of padding on a CPU").
    """
    if cotangent.ndim == 1:  # see `pad_cpu`
        row = lax.expand_dims(cotangent, [0])
        (inside,) = adjoint_cpu(row, start=start, end=end, mode=mode)
        return (lax.squeeze(inside, [0]),)
    axes = padded_axes(cotangent.ndim, start, end)
    is_known = are_known(*cotangent.shape, *start, *end)
    cut = is_known and mode is not PaddingMode.CONSTANT
    if cut and len(axes) == 1 and cotangent.dtype.itemsize >= 4:
        ((axis, before, after),) = axes
        cut = max(before, after) >= cotangent.shape[axis] - before - after
    return adjoint(cotangent, start=start, end=end, mode=mode, cut=cut)


def _runs(first: int, stop: int, size: int, mode: PaddingMode) -> list[tuple[int, int]]:
    """Cuts the strip [first, stop) into direct and reversed runs.

    For example, REFLECTION continues a b c d by c b | a b c d, a reversed and a direct
    run:

    >>> _runs(4, 10, 4, PaddingMode.REFLECTION)
    [(4, 6), (6, 10)]

    A strip of many periods stays whole, for `_sum_of_periods`.
    """
    period, _ = period_and_mirror_sum(size, mode)
    if stop - first > MAX_UNROLLED * period:
        return [(first, stop)]
    cuts = {first, stop}
    for begin in range(first - first % period, stop, period):
        cuts |= {begin, begin + size}  # a direct run begins, and ends
    return list(itertools.pairwise(sorted(n for n in cuts if first <= n <= stop)))


def _join_sums(total: Array, summands: list[tuple[Array, int]], axis: int) -> Array:
    """Adds summands (array, at) to `total`, piece by piece, and joins the pieces."""
    size = total.shape[axis]
    ranges = [(at, at + part.shape[axis]) for part, at in summands]
    pieces = []
    for begin, end in itertools.pairwise(sorted({0, size}.union(*ranges))):
        piece = lax.slice_in_dim(total, begin, end, axis=axis)
        for (part, _), (first, stop) in zip(summands, ranges, strict=True):
            if first <= begin and end <= stop:
                piece += lax.slice_in_dim(part, begin - first, end - first, axis=axis)
        pieces.append(piece)
    return lax.concatenate(pieces, axis)


def _summand(
    strip: Array, first: int, size: int, axis: int, mode: PaddingMode
) -> tuple[Array, int]:
    """Returns a summand (array, at) for the strip that begins at coordinate `first`.

    Coordinate 0 is the first element of the inside. The array is to be added to the
    input's gradient from element `at` on.
    """
    length = strip.shape[axis]
    if mode is PaddingMode.EDGE:
        # The sum keeps the type of the cotangent: JAX would widen integers.
        total = strip.sum(axis, keepdims=True, dtype=strip.dtype)
        edge = 0 if surely_le(first, 0) else size - 1
        return total, edge
    period, mirror_sum = period_and_mirror_sum(size, mode)
    # The phase is first % period. JAX can't compare a symbolic remainder with a size:
    # if `first` or first + period is already in [0, period), we take that instead.
    candidates = (first, first + period)
    phase = next(
        (n for n in candidates if surely_le(0, n) and surely_le(n + 1, period)),
        first % period,
    )
    image = mirror_sum - phase  # the mirror image of the first element
    if surely_le(phase + length, size):  # a direct run
        return strip, phase
    # A reversed run. WRAP has none: its `image` is never below `size`.
    if surely_le(image + 1, size) and surely_le(length - 1, image):
        return lax.rev(strip, (axis,)), image - length + 1
    return _sum_of_periods(strip, phase, size, axis, mode), 0


def _sum_of_periods(
    strip: Array, phase: int, size: int, axis: int, mode: PaddingMode
) -> Array:
    """Returns what a strip of any length, from `phase` on, adds to the whole input."""
    period, mirror_sum = period_and_mirror_sum(size, mode)
    # Zeros around the strip make it a whole number of periods.
    periods = -(-(phase + strip.shape[axis]) // period)
    strip = place_in_zeros(strip, axis, phase, periods * period)
    shape = [*strip.shape[:axis], periods, period, *strip.shape[axis + 1 :]]
    total = strip.reshape(shape).sum(axis, dtype=strip.dtype)
    direct = lax.slice_in_dim(total, 0, size, axis=axis)
    if surely_le(period, size):
        return direct
    # Each phase j >= size is added to element mirror_sum - j. We reverse these phases:
    # the last one, period - 1, then comes first, at element mirror_sum - (period - 1).
    mirrored = lax.slice_in_dim(total, size, period, axis=axis)
    mirrored = lax.rev(mirrored, (axis,))
    return direct + place_in_zeros(mirrored, axis, mirror_sum - period + 1, size)
