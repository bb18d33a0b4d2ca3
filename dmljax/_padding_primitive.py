"""PADDING and its adjoint as primitives: forms, kernels, derivatives, partition.

Each is the transpose of the other: every derivative of padding, in forward and in
reverse mode, is padding or its adjoint. The forms are in `_padding_forms`.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from dmljax import _padding_forms as forms
from dmljax._coordinates import PaddingMode
from dmljax._jax import varying_alike
from dmljax._padding_forms import Pads
from dmljax._primitive import Kernel, OperatorPrimitive, needs_cotangent, unbroadcast
from dmljax._sharding import Part, Partition, aligned
from dmljax._types import Outputs


def _operands_with_zero(x: jax.Array, mode: PaddingMode) -> list[jax.Array]:
    """Returns the operands that pad `x`, with 0 for the value of CONSTANT."""
    if mode is not PaddingMode.CONSTANT:
        return [x]
    return [x, jnp.zeros((1,) * x.ndim, x.dtype)]


def _transpose(
    operator: OperatorPrimitive,
    static: dict[str, Any],
    cotangents: Sequence[jax.Array],
    operands: Sequence[Any],
) -> list[jax.Array | None]:
    """Gives the input the adjoint, and the value the sum over the padding."""
    (cotangent,) = cotangents
    x, *value = operands
    result: list[jax.Array | None] = [None] * len(operands)
    if needs_cotangent(x):
        # The adjoint has no kernel, and runs XLA's form whatever the caller asked for.
        (sums,) = ADJOINT(cotangent, **static | {"implementation": "xla"})
        result[0] = unbroadcast(sums, x)
    if value and needs_cotangent(value[0]):
        inside = forms.is_inside(cotangent.shape, static["start"], static["end"])
        outside = jnp.where(inside, cotangent.dtype.type(0), cotangent)
        result[1] = unbroadcast(outside, value[0])
    return result


# THE PARTITION


def _shard(
    part: Part, x: jax.Array, *value: jax.Array, start: Pads, end: Pads, **static: Any
) -> Outputs:
    """Pads the axes that are whole on the device, then each axis that is divided."""
    batch = x.ndim - len(start)
    padded = [i for i in range(len(start)) if start[i] or end[i]]
    divided = [i for i in padded if part.count(batch + i) > 1]
    start_here, end_here = (
        tuple(0 if i in divided else n for i, n in enumerate(pads))
        for pads in (start, end)
    )
    (x,) = PADDING(x, *value, start=start_here, end=end_here, **static)
    for i in divided:
        x = _pad_across_devices(part, x, value, batch + i, start[i], end[i], **static)
    return (x,)


def _pad_across_devices(
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
    """Pads an axis that is divided among devices, and returns the device's part.

    This part lies in a window of the device's part of the input and its *halo*: as many
    elements of its neighbours as are padded. Only the halo is exchanged. If the padding
    is larger than a part, the axis is gathered.
    """
    index = part.index(axis)
    count = part.count(axis)
    size = x.shape[axis]
    own = (before + count * size + after) // count  # the size of the output's part

    def pad(x: jax.Array, before: int, after: int) -> jax.Array:
        others = (0,) * (x.ndim - axis - 1)
        start = (before, *others)
        end = (after, *others)
        (padded,) = PADDING(x, *value, start=start, end=end, mode=mode, **static)
        return padded

    def cut(x: jax.Array, first: int, last: int | None = None) -> jax.Array:
        return lax.slice_in_dim(x, first, last, axis=axis)

    # A neighbour has `size` elements. REFLECTION at the ends needs one more than it
    # pads, because it does not repeat the edge.
    if max(before, after) > size - (mode is PaddingMode.REFLECTION):
        return part.cut(pad(part.gathered(x, axis), before, after), axis)
    # A device at an end of the whole axis has no neighbour there, and needs padding.
    # Under WRAP its neighbour is the device at the other end. All devices run the same
    # program: each of them computes both, and selects by its index.
    window = [x]
    cyclic = mode is PaddingMode.WRAP
    if before:
        halo = part.neighbour(cut(x, -before), axis, 1, cyclic=cyclic)
        if not cyclic:
            edge = pad(cut(x, 0, min(size, before + 1)), before, 0)
            halo = jnp.where(index == 0, cut(edge, 0, before), halo)
        window.insert(0, halo)
    if after:
        halo = part.neighbour(cut(x, 0, after), axis, -1, cyclic=cyclic)
        if not cyclic:
            edge = pad(cut(x, -min(size, after + 1)), 0, after)
            halo = jnp.where(index == count - 1, cut(edge, -after), halo)
        window.append(halo)
    # In coordinates of the output, the window of part k begins at k * size, and the
    # part of the output at k * own.
    joined = lax.concatenate(window, axis)
    return lax.dynamic_slice_in_dim(joined, index * (own - size), own, axis)


def _shard_adjoint(part: Part, cotangent: jax.Array, **static: Any) -> Outputs:
    """Transposes `_shard`. JAX makes the exchange of halos one that adds them up."""

    def pad(x: jax.Array) -> Outputs:
        return _shard(part, *_operands_with_zero(x, static["mode"]), **static)

    # The input varies over the mesh axes as the cotangent does. Otherwise its cotangent
    # would be the sum over the devices.
    x = jnp.zeros(part.outputs[0], cotangent.dtype)
    x, cotangent = varying_alike(x, cotangent)
    return tuple(jax.linear_transpose(pad, x)((cotangent,)))


def _gpu_kernel(*operands: jax.Array, **static: Any) -> Outputs:
    from dmljax.pallas.gpu._padding import padding

    return padding(*operands, **static)


PADDING = OperatorPrimitive(
    "padding",
    forms.by_axes(forms.gather),
    Partition(_shard, aligned),
    forms.padded_sizes,
    # A gather on a TPU moves up to 3.3 times the bytes (results/tpu.csv, "[gather]").
    on_platform={"cpu": forms.on_cpu, "tpu": forms.by_axes(forms.join)},
    divisible=forms.by_axes(forms.select),
    linear=2,  # the input, and under CONSTANT the value
    transpose=_transpose,
    kernels={"cuda": Kernel(_gpu_kernel)},
)
ADJOINT = OperatorPrimitive(
    "padding_adjoint",
    forms.adjoint,
    Partition(_shard_adjoint, aligned),
    forms.unpadded_sizes,
    linear=1,
    # The adjoint under CONSTANT cuts, and its transpose pads with 0.
    transpose=lambda _, static, cotangents, operands: PADDING(
        *_operands_with_zero(cotangents[0], static["mode"]), **static
    ),
)
