"""PADDING and its adjoint as primitives: forms, kernels, derivatives, partition.

Each is the transpose of the other. So padding has derivatives of every order in forward
and in reverse mode, and each of them is again padding or its adjoint. What the forms
compute is in `_padding_forms`.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from dmljax import _padding_forms as forms
from dmljax._coordinates import PaddingMode
from dmljax._primitive import Kernel, OperatorPrimitive
from dmljax._sharding import Part, Partition, aligned
from dmljax._transpose import needs_cotangent, unbroadcast
from dmljax._types import Outputs


def _zero_value(cotangent: jax.Array, mode: PaddingMode) -> list[jax.Array]:
    """Returns the value operand of padding with 0: a list, empty but for CONSTANT."""
    if mode is not PaddingMode.CONSTANT:
        return []
    return [jnp.zeros((1,) * cotangent.ndim, cotangent.dtype)]


def _transpose(
    operator: OperatorPrimitive,
    static: dict[str, Any],
    cotangents: Sequence[jax.Array],
    operands: Sequence[Any],
) -> list[jax.Array | None]:
    """Transposes padding.

    The input's cotangent is the adjoint. The value's cotangent is the sum over the
    padding.
    """
    (cotangent,) = cotangents
    x, *value = operands
    result: list[jax.Array | None] = [None] * len(operands)
    if needs_cotangent(x):
        # The adjoint has no kernel, so the gradient of a padding for which the caller
        # asked for the kernel runs XLA's form.
        by_kernel = static["implementation"] == "pallas"
        own = static | {"implementation": "xla"} if by_kernel else static
        (folded,) = ADJOINT(cotangent, **own)
        result[0] = unbroadcast(folded, x)
    if value and needs_cotangent(value[0]):
        inside = forms.inside(cotangent.shape, static["start"], static["end"])
        outside = jnp.where(inside, cotangent.dtype.type(0), cotangent)
        result[1] = unbroadcast(outside, value[0])
    return result


def _transpose_adjoint(
    operator: OperatorPrimitive,
    static: dict[str, Any],
    cotangents: Sequence[jax.Array],
    operands: Sequence[Any],
) -> Outputs:
    # The adjoint under CONSTANT cuts, so its transpose pads with 0.
    (cotangent,) = cotangents
    return PADDING(cotangent, *_zero_value(cotangent, static["mode"]), **static)


# THE PARTITION


def _shard(
    part: Part,
    x: jax.Array,
    *value: jax.Array,
    start: tuple[int, ...],
    end: tuple[int, ...],
    **static: Any,
) -> Outputs:
    """Pads the axes that are whole on the device, then each axis that is divided."""
    pads = list(zip(start, end, strict=True))
    batch = x.ndim - len(pads)
    divided = [
        part.count(axis) > 1 and any(own) for axis, own in enumerate(pads, batch)
    ]
    here = [(0, 0) if away else own for away, own in zip(divided, pads, strict=True)]
    x = _pad(x, value, here, **static)
    for axis, away in enumerate(divided, batch):
        if away:
            x = _pad_divided(part, x, value, axis, *pads[axis - batch], **static)
    return (x,)


def _pad(
    x: jax.Array,
    value: Sequence[jax.Array],
    pads: Sequence[tuple[int, int]],
    **static: Any,
) -> jax.Array:
    """Pads the last axes of `x` by these amounts, before and after."""
    start, end = zip(*pads, strict=True) if pads else ((), ())
    (padded,) = PADDING(x, *value, start=start, end=end, **static)
    return padded


def _pad_divided(
    part: Part,
    x: jax.Array,
    value: Sequence[jax.Array],
    axis: int,
    before: int,
    after: int,
    *,
    mode: PaddingMode,
    **static: Any,
) -> jax.Array:
    """Pads `x` along an axis that is divided among devices: the device's part of it.

    A part of the output lies within the part of the input and its *halo*: as many
    elements of its neighbours as are padded. Only the halo is exchanged. If the padding
    is larger than a part, the axis is gathered.
    """
    count, size = part.count(axis), x.shape[axis]
    own = (before + count * size + after) // count  # the size of the output's part

    def pad(x: jax.Array, before: int, after: int) -> jax.Array:
        pads = [(before, after)] + [(0, 0)] * (x.ndim - axis - 1)
        return _pad(x, value, pads, mode=mode, **static)

    # A neighbour has `size` elements. REFLECTION at the ends needs one more than it
    # pads, because it does not repeat the edge.
    index = part.index(axis)
    if max(before, after) > size - (mode is PaddingMode.REFLECTION):
        padded = pad(part.gathered(x, axis), before, after)
        return lax.dynamic_slice_in_dim(padded, index * own, own, axis)

    def cut(x: jax.Array, first: int, last: int) -> jax.Array:
        return lax.slice_in_dim(x, first, last, axis=axis)

    # At the ends of the whole axis a device has no neighbour, and computes the padding.
    # Under WRAP its neighbour is the device at the other end. All devices run the same
    # program, so every one computes both, and selects by its index.
    window, cyclic = [x], mode is PaddingMode.WRAP
    if before:
        halo = part.neighbour(cut(x, size - before, size), axis, 1, cyclic=cyclic)
        if not cyclic:
            edge = pad(cut(x, 0, min(size, before + 1)), before, 0)
            halo = jnp.where(index == 0, cut(edge, 0, before), halo)
        window.insert(0, halo)
    if after:
        halo = part.neighbour(cut(x, 0, after), axis, -1, cyclic=cyclic)
        if not cyclic:
            near = min(size, after + 1)
            edge = pad(cut(x, size - near, size), 0, after)
            halo = jnp.where(index == count - 1, cut(edge, near, near + after), halo)
        window.append(halo)
    # In coordinates of the output, the window of part k begins at k * size, and the
    # part of the output at k * own.
    joined = lax.concatenate(window, axis)
    return lax.dynamic_slice_in_dim(joined, index * (own - size), own, axis)


def _shard_adjoint(part: Part, cotangent: jax.Array, **static: Any) -> Outputs:
    """Transposes what the devices do together to pad.

    JAX transposes the exchange of halos into one that adds them up.
    """
    x = jax.ShapeDtypeStruct(part.outputs[0], cotangent.dtype)

    def pad(x: jax.Array) -> jax.Array:
        (padded,) = _shard(part, x, *_zero_value(x, static["mode"]), **static)
        return padded

    return tuple(jax.linear_transpose(pad, x)(cotangent))


def _gpu_kernel(*operands: jax.Array, **static: Any) -> Outputs:
    from dmljax.pallas.gpu._padding import padding

    return padding(*operands, **static)


def _tpu_kernel(*operands: jax.Array, **static: Any) -> Outputs:
    from dmljax.pallas.tpu._padding import padding

    return padding(*operands, **static)


PADDING = OperatorPrimitive(
    "padding",
    forms.by_axes(forms.gather),
    Partition(_shard, aligned),
    on_platform={"cpu": forms.by_axes(forms.join_if_small)},
    divisible=forms.by_axes(forms.select),
    linear=2,  # the input, and under CONSTANT the value
    transpose=_transpose,
    kernels={"cuda": Kernel(_gpu_kernel), "tpu": Kernel(_tpu_kernel)},
)
ADJOINT = OperatorPrimitive(
    "padding_adjoint",
    forms.adjoint,
    Partition(_shard_adjoint, aligned),
    on_platform={"cpu": forms.adjoint_on_cpu},
    linear=1,
    transpose=_transpose_adjoint,
)
