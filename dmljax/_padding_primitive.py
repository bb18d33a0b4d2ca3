"""PADDING and its adjoint as primitives: forms, kernels and derivatives.

Each is the transpose of the other: every derivative of padding, in forward and in
reverse mode, is padding or its adjoint. The forms are in `_padding_forms`.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from dmljax import _padding_forms as forms
from dmljax._coordinates import PaddingMode
from dmljax._padding_forms import Pads
from dmljax._primitive import Kernel, OperatorPrimitive, needs_cotangent, unbroadcast
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


def _independent(x: jax.Array, *_: Any, start: Pads, end: Pads, **__: Any) -> set[int]:
    """Returns the dimensions that are not padded."""
    padded = {axis for axis, _, _ in forms.padded_axes(x.ndim, start, end)}
    return {*range(x.ndim)} - padded


def _gpu_kernel(*operands: jax.Array, **static: Any) -> Outputs:
    from dmljax.pallas.gpu._padding import padding

    return padding(*operands, **static)


PADDING = OperatorPrimitive(
    "padding",
    forms.by_axes(forms.gather),
    _independent,
    sizes=forms.padded_sizes,
    # A gather on a TPU moves up to 3.3 times the bytes (results/tpu.csv, "[gather]").
    on_platform={"cpu": forms.on_cpu, "tpu": forms.by_axes(forms.join)},
    divisible=forms.divisible,
    linear=2,  # the input, and under CONSTANT the value
    transpose=_transpose,
    kernels={"cuda": Kernel(_gpu_kernel)},
)
ADJOINT = OperatorPrimitive(
    "padding_adjoint",
    forms.adjoint,
    _independent,
    sizes=forms.unpadded_sizes,
    linear=1,
    # The adjoint under CONSTANT cuts, and its transpose pads with 0.
    transpose=lambda _, static, cotangents, operands: PADDING(
        *_operands_with_zero(cotangents[0], static["mode"]), **static
    ),
)
