"""PADDING: inflates a tensor with constant, edge, mirrored or repeated values."""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike

from dmljax._axis import PaddingMode, axes_of, fold, merged, rows_of, source_index
from dmljax._check import require, require_one_of, show
from dmljax._descriptor import OperatorDesc, cast_float_value
from dmljax._operator import (
    Choice,
    Constant,
    Context,
    Implementation,
    Operator,
    Outputs,
    as_array,
    as_integer,
    as_operand,
    as_scalar,
    as_sizes,
    in_context,
    is_integer,
    kernel,
    needs_cotangent,
    strong,
    unbroadcast,
)
from dmljax._partition import Partition, Place
from dmljax._support import (
    FLOATS,
    UP_TO_32_BITS,
    UP_TO_64_BITS,
    FeatureLevel,
    Support,
    SupportTable,
)
from dmljax._tensor import DataType, TensorDesc, index_mode

NAME = "PADDING"
BOTH = ("InputTensor", "OutputTensor")
SUPPORT: SupportTable = {
    FeatureLevel.V1_0: dict.fromkeys(BOTH, Support(4, 5, FLOATS)),
    FeatureLevel.V2_1: dict.fromkeys(BOTH, Support(4, 5, UP_TO_32_BITS)),
    FeatureLevel.V3_1: dict.fromkeys(BOTH, Support(1, 8, UP_TO_32_BITS)),
    FeatureLevel.V5_0: dict.fromkeys(BOTH, Support(1, 8, UP_TO_64_BITS)),
}
PADDING1_SUPPORT: SupportTable = {
    FeatureLevel.V5_0: dict.fromkeys(BOTH, Support(1, 8, UP_TO_64_BITS))
}


MODE_LEVELS = {
    PaddingMode.CONSTANT: FeatureLevel.V1_0,
    PaddingMode.EDGE: FeatureLevel.V1_0,
    PaddingMode.REFLECTION: FeatureLevel.V1_0,
    PaddingMode.SYMMETRIC: FeatureLevel.V3_0,
    PaddingMode.WRAP: FeatureLevel.V6_4,
}


# XLA's fused loops have blocks of 512 elements, of whatever type, and on an H200 start
# no more than one in 0.6 ns. A concatenation has one of each part in a block.
PARTS_BYTES, PARTS_FROM = 4, 2**20
# By kernel a row of the output is cheap, where it has many bytes of the input and few
# besides: that many, and one in so many. On an H200, as the next one.
LONG_ROW, FEW_ADDED = 192, 4
# EDGE's sums over two axes are cheaper apart, if so much is read that launches are not.
APART_FROM = 2**23
IN_PLACE = (PaddingMode.REFLECTION, PaddingMode.SYMMETRIC, PaddingMode.WRAP)


def _xla(
    x: jax.Array,
    *value: jax.Array,
    start: tuple[int, ...],
    end: tuple[int, ...],
    mode: PaddingMode,
) -> Outputs:
    if mode is PaddingMode.CONSTANT:
        return (_constant(x, *value, start=start, end=end),)
    batch = x.ndim - len(start)
    for axis, (before, after) in enumerate(zip(start, end, strict=True), batch):
        if before or after:
            size, stop = x.shape[axis], before + x.shape[axis] + after
            # Places are at most a period past the end; JAX counts all sizes it knows.
            known = (n for n in x.shape if isinstance(n, int))
            with index_mode(max(stop + 2 * size, *known)) as integer:
                position = lax.iota(integer, stop)
                index = source_index(position, stop, before, size, mode)
                where = (*[slice(None)] * axis, index)
                x = x.at[where].get(
                    mode="promise_in_bounds", wrap_negative_indices=False
                )
    return (x,)


def _xla_in_parts(
    x: jax.Array,
    *value: jax.Array,
    start: tuple[int, ...],
    end: tuple[int, ...],
    mode: PaddingMode,
) -> Outputs:
    """The same for elements of 1 and 2 bytes, joined of parts that are made at once.

    They are cut along an axis that is not padded. It is for a program of its own: what
    uses a part of a concatenation, as a stencil does, XLA fuses with it badly.
    """
    pad = functools.partial(_xla, start=start, end=end, mode=mode)
    axes, parts = axes_of(x.shape, start, end), max(PARTS_BYTES // x.dtype.itemsize, 1)
    whole = [i for i, a in enumerate(axes) if a.size % parts == 0 and not a.is_padded]
    small = math.prod(axis.output for axis in axes) < PARTS_FROM
    if parts == 1 or not whole or small or any(v.size > 1 for v in value):
        return pad(x, *value)
    padded = [pad(part, *value)[0] for part in jnp.split(x, parts, whole[0])]
    return (lax.concatenate(padded, whole[0]),)


def _constant(
    x: jax.Array, value: jax.Array, *, start: tuple[int, ...], end: tuple[int, ...]
) -> jax.Array:
    batch = x.ndim - len(start)
    config = [(0, 0, 0)] * batch + [(s, e, 0) for s, e in zip(start, end, strict=True)]
    if value.size == 1:
        return lax.pad(x, value.reshape(()), config)
    padded = lax.pad(x, _zero(x), config)
    return jnp.where(_inside(padded.shape, start, end), padded, value)


def _zero(x: jax.Array) -> jax.Array:
    return jnp.zeros((), x.dtype)


def _inside(
    shape: tuple[int, ...], start: tuple[int, ...], end: tuple[int, ...]
) -> jax.Array:
    """Which elements of an output of `shape` come from the input.

    The batch dimensions, in which all elements are alike, have size 1.
    """
    inside = jnp.ones((1,) * len(shape), bool)
    for axis, (before, after) in enumerate(
        zip(start, end, strict=True), len(shape) - len(start)
    ):
        if before == after == 0:
            continue
        line = tuple(n if i == axis else 1 for i, n in enumerate(shape))
        with index_mode(shape[axis]) as integer:
            position = lax.broadcasted_iota(integer, line, axis)
            inside &= (position >= before) & (position < shape[axis] - after)
    return inside


def _adjoint_xla(
    cotangent: jax.Array,
    *,
    start: tuple[int, ...],
    end: tuple[int, ...],
    mode: PaddingMode,
) -> Outputs:
    """Each input element's sum over the output elements that repeat it.

    The padding is folded onto the inside, one axis after the other. There is no
    scatter-add, so the order of summation is fixed; and the program has the same size
    whatever the padding.
    """
    batch = cotangent.ndim - len(start)
    pads = list(enumerate(zip(start, end, strict=True), batch))
    for axis, (before, after) in reversed(pads):  # what is folded last is asked first
        cotangent = _unpadded(cotangent, axis, before, after, mode)
    return (cotangent,)


def _adjoint_xla_cpu(
    cotangent: jax.Array,
    *,
    start: tuple[int, ...],
    end: tuple[int, ...],
    mode: PaddingMode,
) -> Outputs:
    """The same, with little padding added in place and cut off at the end.

    A core then passes over the inside twice, and not once for each axis. Where a single
    axis is padded, or the padding is larger than the inside, or summed up as EDGE's is,
    cutting first is cheaper.
    """
    one_axis = (
        sum(before + after > 0 for before, after in zip(start, end, strict=True)) == 1
    )
    batch = cotangent.ndim - len(start)
    offsets, sizes = [0] * cotangent.ndim, list(cotangent.shape)
    for axis, (before, after) in enumerate(zip(start, end, strict=True), batch):
        size = sizes[axis] = sizes[axis] - before - after
        if one_axis or before + after > size or mode not in IN_PLACE:
            cotangent = _unpadded(cotangent, axis, before, after, mode)
            continue
        offsets[axis] = before
        for first, last in _sides(before, size, after):
            part = lax.slice_in_dim(cotangent, first, last, axis=axis)
            part, place = _fold(part, first - before, size, axis, mode)
            cotangent = _add_at(cotangent, part, before + place, axis)
    stops = [offset + size for offset, size in zip(offsets, sizes, strict=True)]
    return (lax.slice(cotangent, offsets, stops),)


def _adjoint_xla_cuda(
    cotangent: jax.Array,
    *,
    start: tuple[int, ...],
    end: tuple[int, ...],
    mode: PaddingMode,
) -> Outputs:
    """The same; what EDGE's sums over two axes add is made apart.

    In one fusion each element would have the sums of sums beside it.
    """
    pads = list(zip(start, end, strict=True))
    axes = sum(before + after > 0 for before, after in pads)
    sums = max(map(max, pads), default=0) > 1
    size = cotangent.size
    large = isinstance(size, int) and size >= APART_FROM  # if it is known
    if not (mode is PaddingMode.EDGE and axes > 1 and sums and large):
        return _adjoint_xla(cotangent, start=start, end=end, mode=mode)
    for axis, (before, after) in enumerate(pads, cotangent.ndim - len(pads)):
        cotangent = _unpadded(cotangent, axis, before, after, mode, apart=True)
    return (cotangent,)


def _unpadded(
    cotangent: jax.Array,
    axis: int,
    before: int,
    after: int,
    mode: PaddingMode,
    *,
    apart: bool = False,
) -> jax.Array:
    """The adjoint along one axis: the inside, and the padding folded onto it."""
    size = cotangent.shape[axis] - before - after
    inside = lax.slice_in_dim(cotangent, before, before + size, axis=axis)
    if mode is PaddingMode.CONSTANT:
        return inside
    for first, last in _sides(before, size, after):
        part = lax.slice_in_dim(cotangent, first, last, axis=axis)
        part, place = _fold(part, first - before, size, axis, mode)
        part = lax.optimization_barrier(part) if apart else part
        inside += _extend(part, axis, place, size)
    return inside


def _sides(before: int, size: int, after: int) -> list[tuple[int, int]]:
    """Where the padding begins and ends, on each side that has any."""
    sides = ((0, before), (before + size, before + size + after))
    return [(first, last) for first, last in sides if first < last]


def _fold(
    part: jax.Array, first: int, size: int, axis: int, mode: PaddingMode
) -> tuple[jax.Array, int]:
    """What a stretch of padding adds to the `size` elements that it repeats, and where.

    Its coordinates start at `first`, counted from the first input element.
    """
    length = part.shape[axis]
    if mode is PaddingMode.EDGE:
        total = part.sum(axis, keepdims=True, dtype=part.dtype)
        return total, 0 if first < 0 else size - 1
    period, mirror = fold(size, mode)
    place = first % period
    if place + length <= size:
        return part, place
    last = mirror - place  # the element that the first of the stretch mirrors
    if last < size and last - length >= -1:
        return lax.rev(part, (axis,)), last - length + 1
    folds = -(-(place + length) // period)
    part = _extend(part, axis, place, folds * period)
    shape = (*part.shape[:axis], folds, period, *part.shape[axis + 1 :])
    part = part.reshape(shape).sum(axis, dtype=part.dtype)
    direct = lax.slice_in_dim(part, 0, size, axis=axis)
    if period <= size:
        return direct, 0
    mirrored = lax.rev(lax.slice_in_dim(part, size, period, axis=axis), (axis,))
    return direct + _extend(mirrored, axis, mirror - period + 1, size), 0


def _add_at(x: jax.Array, part: jax.Array, place: int, axis: int) -> jax.Array:
    """`x` with `part` added from `place` on along `axis`, in place."""
    old = lax.slice_in_dim(x, place, place + part.shape[axis], axis=axis)
    return lax.dynamic_update_slice_in_dim(x, old + part, place, axis)


def _extend(part: jax.Array, axis: int, low: int, size: int) -> jax.Array:
    """`part` from position `low` on, in zeros of `size` along `axis`."""
    config = [(0, 0, 0)] * part.ndim
    config[axis] = (low, size - low - part.shape[axis], 0)
    return lax.pad(part, _zero(part), config)


def _transpose(
    operator: Operator,
    static: dict[str, Any],
    cotangents: Sequence[jax.Array],
    operands: Sequence[Any],
) -> list[jax.Array | None]:
    (cotangent,) = cotangents
    x, *value = operands
    result: list[jax.Array | None] = [None] * len(operands)
    if needs_cotangent(x):
        # The adjoint has no kernel: that of a padding by kernel is XLA's form as well.
        by_kernel = static["implementation"] == "pallas"
        choice = static | {"implementation": "xla"} if by_kernel else static
        (folded,) = ADJOINT(cotangent, **choice)
        result[0] = unbroadcast(folded, x)
    if value and needs_cotangent(value[0]):
        inside = _inside(cotangent.shape, static["start"], static["end"])
        outside = jnp.where(inside, _zero(cotangent), cotangent)
        result[1] = unbroadcast(outside, value[0])
    return result


def _transpose_adjoint(
    operator: Operator,
    static: dict[str, Any],
    cotangents: Sequence[jax.Array],
    operands: Sequence[Any],
) -> Outputs:
    (cotangent,) = cotangents
    constant = static["mode"] is PaddingMode.CONSTANT
    value = [jnp.zeros((1,) * cotangent.ndim, cotangent.dtype)] if constant else []
    return OPERATOR(cotangent, *value, **static)


def _shard(
    place: Place,
    x: jax.Array,
    *value: jax.Array,
    start: tuple[int, ...],
    end: tuple[int, ...],
    **static: Any,
) -> Outputs:
    """Pads what is whole on the device, then each axis that is divided."""
    pads = list(zip(start, end, strict=True))
    batch = x.ndim - len(pads)
    divided = [
        place.parts(axis) > 1 and any(own) for axis, own in enumerate(pads, batch)
    ]
    if any(divided) and static["implementation"] is Context.ALONE:
        static["implementation"] = None  # more operations follow
    here = [(0, 0) if away else own for away, own in zip(divided, pads, strict=True)]
    x = _pad(x, value, here, **static)
    for axis, away in enumerate(divided, batch):
        if away:
            x = _pad_divided(place, x, value, axis, *pads[axis - batch], **static)
    return (x,)


def _pad(
    x: jax.Array,
    value: Sequence[jax.Array],
    pads: Sequence[tuple[int, int]],
    **static: Any,
) -> jax.Array:
    """`x` with its last axes padded by these, before and after."""
    start, end = zip(*pads, strict=True) if pads else ((), ())
    (padded,) = OPERATOR(x, *value, start=start, end=end, **static)
    return padded


def _pad_divided(
    place: Place,
    x: jax.Array,
    value: Sequence[jax.Array],
    axis: int,
    before: int,
    after: int,
    *,
    mode: PaddingMode,
    **static: Any,
) -> jax.Array:
    """The device's part of `x` padded along an axis that is divided among devices.

    A part of the output lies within that of the input and as much of its neighbours as
    is padded: only that is exchanged. What is more than a part is gathered.
    """
    parts, size = place.parts(axis), x.shape[axis]
    part = -(-(before + parts * size + after) // parts)
    after = parts * part - parts * size - before  # the last part reaches past the end

    def pad(x: jax.Array, before: int, after: int) -> jax.Array:
        pads = [(before, after)] + [(0, 0)] * (x.ndim - axis - 1)
        return _pad(x, value, pads, mode=mode, **static)

    index = place.index(axis)
    if max(before, after) > size - (mode is PaddingMode.REFLECTION):
        padded = pad(place.gathered(x, axis), before, after)
        return lax.dynamic_slice_in_dim(padded, index * part, part, axis)

    def cut(x: jax.Array, first: int, last: int) -> jax.Array:
        return lax.slice_in_dim(x, first, last, axis=axis)

    window, around = [x], mode is PaddingMode.WRAP
    if before:
        halo = place.shift(cut(x, size - before, size), axis, 1, around=around)
        if not around:
            edge = pad(cut(x, 0, min(size, before + 1)), before, 0)
            halo = jnp.where(index == 0, cut(edge, 0, before), halo)
        window.insert(0, halo)
    if after:
        halo = place.shift(cut(x, 0, after), axis, -1, around=around)
        if not around:
            near = min(size, after + 1)
            edge = pad(cut(x, size - near, size), 0, after)
            halo = jnp.where(index == parts - 1, cut(edge, near, near + after), halo)
        window.append(halo)
    joined = lax.concatenate(window, axis)
    return lax.dynamic_slice_in_dim(joined, index * (part - size), part, axis)


def _shard_adjoint(
    place: Place,
    cotangent: jax.Array,
    *,
    start: tuple[int, ...],
    end: tuple[int, ...],
    **static: Any,
) -> Outputs:
    """The transpose of what the devices do together to pad."""
    batch = cotangent.ndim - len(start)
    x = jax.ShapeDtypeStruct(place.outputs[0], cotangent.dtype)
    for axis, pads in enumerate(zip(start, end, strict=True), batch):
        parts = place.parts(axis)
        size = x.shape[axis] * parts + sum(pads)
        if size % parts:  # the last part reaches past the end
            position = lax.broadcasted_iota(np.int32, cotangent.shape, axis)
            position += place.index(axis) * cotangent.shape[axis]
            cotangent = jnp.where(position < size, cotangent, _zero(cotangent))

    def pad(x: jax.Array) -> jax.Array:
        constant = static["mode"] is PaddingMode.CONSTANT
        value = [jnp.zeros((1,) * x.ndim, x.dtype)] if constant else []
        (padded,) = _shard(place, x, *value, start=start, end=end, **static)
        return padded

    return tuple(jax.linear_transpose(pad, x)(cotangent))


def _moves(*, start: tuple[int, ...], end: tuple[int, ...], **static: Any) -> bool:
    del static
    return any(start + end)


def _measured_as(platform: str, operands: Sequence[Any], static: dict[str, Any]) -> str:
    """By what makes a kernel fast or slow.

    On a TPU, CONSTANT alone is one operation of XLA's. On a GPU, rows may be short or
    words of several elements not fit; that has no figures, and so no kernel by default.
    """
    if platform == "tpu":
        constant = static["mode"] is PaddingMode.CONSTANT
        return "padding constant" if constant else "padding"
    x, start, end = operands[0], static["start"], static["end"]
    if not all(isinstance(n, int) for n in x.shape):  # known when it runs
        return "padding otherwise"
    axes = axes_of(x.shape, start, end)
    *_, row, unit = rows_of(merged(axes), x.dtype.itemsize)
    long = row.size * unit * x.dtype.itemsize >= LONG_ROW
    few = FEW_ADDED * (row.before + row.after) <= row.size
    words = PARTS_BYTES // x.dtype.itemsize
    whole = x.dtype != bool and all(
        math.prod(sizes) % max(words, 1) == 0
        for sizes in (x.shape, [axis.output for axis in axes])
    )
    return "padding" if long and few and whole else "padding otherwise"


OPERATOR = Operator(
    "padding",
    _xla,
    Partition(_shard, moves=_moves),
    xla_alone={"cuda": _xla_in_parts},
    transpose=_transpose,
    kernels={"cuda": kernel("padding"), "tpu": kernel("padding", "tpu")},
    measured_as=_measured_as,
)
ADJOINT = Operator(
    "padding_adjoint",
    _adjoint_xla,
    Partition(_shard_adjoint, moves=_moves),
    xla_on={"cpu": _adjoint_xla_cpu, "cuda": _adjoint_xla_cuda},
    transpose=_transpose_adjoint,
)


def padding(
    x: ArrayLike,
    start_padding: Sequence[int],
    end_padding: Sequence[int],
    /,
    *,
    mode: PaddingMode = PaddingMode.CONSTANT,
    value: ArrayLike = 0,
    implementation: Implementation = None,
) -> jax.Array:
    """Inflates `x` by the padding, which is filled according to `mode`.

    ``output[c] = x[source(c - start_padding)]``, where CONSTANT takes `value` outside
    of `x` and the other modes take, on each axis, what ``PaddingMode`` says.
    The padding may be larger than `x`: mirrored and repeated modes go on periodically.

    Args:
      x: (...) of any type and rank (InputTensor).
      start_padding: how much to add before each axis, not negative (StartPadding).
      end_padding: how much to add after each axis, not negative (EndPadding).
      mode: a ``PaddingMode`` (PaddingMode).
      value: scalar of the type of `x`, used by CONSTANT alone (PaddingValue). A Python
        number takes the type; a Python float is truncated toward zero and saturated
        for an integer tensor, and NaN becomes 0.
      implementation: None for the fastest, "xla" or "pallas".

    Returns:
      Sizes ``start + size + end``, of the type of `x`. Differentiable in `x` and, under
      CONSTANT, in `value`; the gradient has the same bits in every run.

    Raises:
      DescriptorError: if a padding list has not an element for each axis or is
        negative, the mode is unknown, the value has another type, or an axis of size 0
        would have to be repeated.
      TypeError: if `x` is not an array or a padding not an integer.

    >>> import jax.numpy as jnp
    >>> padding(jnp.array([1, 2, 3]), (2,), (4,), mode=PaddingMode.REFLECTION)
    Array([3, 2, 1, 2, 3, 2, 1, 2, 3], dtype=int32)
    >>> padding(jnp.array([[1, 2]]), (1, 0), (0, 1), value=9)
    Array([[9, 9, 9],
           [1, 2, 9]], dtype=int32)

    See DML_PADDING_OPERATOR_DESC in directml.h.
    """
    x = as_array(NAME, "InputTensor", x)
    start = as_sizes(NAME, "StartPadding", start_padding)
    end = as_sizes(NAME, "EndPadding", end_padding)
    operands: tuple[Any, ...] = (x,)
    if isinstance(mode, (jax.Array, np.ndarray)):
        mode = PaddingMode(as_integer(NAME, "PaddingMode", mode))
    if mode == PaddingMode.CONSTANT:
        if type(value) is float and is_integer(x.dtype):
            value = cast_float_value(value, x.dtype)
        operands = (x, as_operand(NAME, "PaddingValue", value, x.dtype))
    output: jax.Array = _padding(operands, start, end, mode, in_context(implementation))
    return output


@functools.partial(jax.jit, static_argnums=(1, 2, 3, 4))
def _padding(
    operands: tuple[jax.Array | Constant, ...],
    start: tuple[int, ...],
    end: tuple[int, ...],
    mode: PaddingMode,
    implementation: Choice,
) -> jax.Array:
    require_one_of(NAME, "PaddingMode", mode, tuple(PaddingMode))
    mode = PaddingMode(mode)
    x, *value = map(strong, operands)
    output_sizes(NAME, x.shape, start, end, mode)
    with jax.named_scope("dmljax.padding"):
        (output,) = OPERATOR(
            x,
            *(v.reshape((1,) * x.ndim) for v in value),
            start=start,
            end=end,
            mode=mode,
            implementation=implementation,
        )
    return output


def output_sizes(
    operator: str,
    sizes: tuple[int, ...],
    start: tuple[int, ...],
    end: tuple[int, ...],
    mode: PaddingMode,
) -> tuple[int, ...]:
    """The sizes of the output; checks the padding against those of the input."""
    for name, pads in (("StartPadding", start), ("EndPadding", end)):
        require(
            operator,
            len(pads) == len(sizes),
            f"{name} has {len(pads)} elements, while tensor 'InputTensor' has "
            f"{len(sizes)} dimensions; both must be the same.",
        )
        require(
            operator,
            all(pad >= 0 for pad in pads),
            f"{name} is {show(pads)}; no element may be negative.",
        )
    padded = tuple(map(sum, zip(start, sizes, end, strict=True)))
    empty = [axis for axis, n in enumerate(sizes) if n == 0 < padded[axis]]
    require(
        operator,
        mode == PaddingMode.CONSTANT or not empty,
        f"tensor 'InputTensor' has sizes {show(sizes)}; {mode.name} has nothing to "
        f"repeat along axis {empty[:1]}, whose size is 0.",
    )
    return padded


@dataclasses.dataclass(frozen=True)
class PaddingDesc(OperatorDesc):
    """DML_PADDING_OPERATOR_DESC: see ``padding``.

    Attributes:
      input_tensor: what is inflated.
      output_tensor: of its type, with the padding added to its sizes.
      padding_mode: where the values of the padding come from.
      padding_value: FLOAT, used by CONSTANT alone; for an integer tensor it is
        truncated toward zero and saturated, and NaN gives 0.
      dimension_count: the rank of both tensors and the length of both lists.
      start_padding: how much to add before each axis.
      end_padding: how much to add after each axis.
    """

    __module__ = "dmljax"
    operator: ClassVar[str] = NAME
    support: ClassVar[SupportTable] = SUPPORT
    same_type: ClassVar[tuple[str, ...]] = ("input_tensor", "output_tensor")

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    padding_mode: PaddingMode
    padding_value: float
    dimension_count: int
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]

    def output_shapes(self, level: FeatureLevel) -> tuple[tuple[int, ...]]:
        """The sizes of the input with the padding added."""
        return (_described_sizes(self, level),)

    def evaluate(self, *arrays: jax.Array) -> tuple[jax.Array]:
        """The output for the input."""
        dtype = self.output_tensor.dtype
        value = cast_float_value(self.padding_value, dtype)
        return _described_padding(self, value, *arrays)


@dataclasses.dataclass(frozen=True)
class Padding1Desc(OperatorDesc):
    """DML_PADDING1_OPERATOR_DESC: PADDING with a value that keeps all its bits.

    Attributes:
      input_tensor: what is inflated.
      output_tensor: of its type, with the padding added to its sizes.
      padding_mode: where the values of the padding come from.
      padding_value_data_type: the type of both tensors.
      padding_value: of that type, used by CONSTANT alone.
      dimension_count: the rank of both tensors and the length of both lists.
      start_padding: how much to add before each axis.
      end_padding: how much to add after each axis.
    """

    __module__ = "dmljax"
    operator: ClassVar[str] = "PADDING1"
    support: ClassVar[SupportTable] = PADDING1_SUPPORT
    same_type: ClassVar[tuple[str, ...]] = ("input_tensor", "output_tensor")

    input_tensor: TensorDesc
    output_tensor: TensorDesc
    padding_mode: PaddingMode
    padding_value_data_type: DataType
    padding_value: int | float
    dimension_count: int
    start_padding: tuple[int, ...]
    end_padding: tuple[int, ...]

    def output_shapes(self, level: FeatureLevel) -> tuple[tuple[int, ...]]:
        """The sizes of the input with the padding added."""
        self.check_value_type(self.padding_value_data_type, "PaddingValueDataType")
        dtype = self.output_tensor.dtype
        as_scalar(self.operator, "PaddingValue", self.padding_value, dtype)
        return (_described_sizes(self, level),)

    def evaluate(self, *arrays: jax.Array) -> tuple[jax.Array]:
        """The output for the input."""
        dtype = self.output_tensor.dtype
        value = as_scalar(self.operator, "PaddingValue", self.padding_value, dtype)
        return _described_padding(self, value, *arrays)


def _described_sizes(
    desc: PaddingDesc | Padding1Desc, level: FeatureLevel
) -> tuple[int, ...]:
    sizes = desc.input_tensor.sizes
    first = MODE_LEVELS[desc.padding_mode]
    require(
        desc.operator,
        level >= first,
        f"PaddingMode {desc.padding_mode.name} exists from feature level {first.label} "
        f"on, while the feature level asked for is {level.label}.",
    )
    require(
        desc.operator,
        desc.dimension_count == len(sizes),
        f"DimensionCount is {desc.dimension_count}, while tensor 'InputTensor' has "
        f"{len(sizes)} dimensions; both must be the same.",
    )
    pads = desc.start_padding, desc.end_padding
    return output_sizes(desc.operator, sizes, *pads, desc.padding_mode)


def _described_padding(
    desc: PaddingDesc | Padding1Desc, value: ArrayLike, x: jax.Array
) -> tuple[jax.Array]:
    start, end = desc.start_padding, desc.end_padding
    return (padding(x, start, end, mode=desc.padding_mode, value=value),)
