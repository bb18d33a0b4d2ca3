"""Functions that the transpose rules of several operators share.

The rules of single operators do not belong here.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import ad

from dmljax._types import Outputs


def needs_cotangent(operand: Any) -> bool:
    """Whether a transpose rule has to return a cotangent for this operand."""
    return isinstance(operand, ad.UndefinedPrimal)


def unbroadcast(cotangent: jax.Array, operand: ad.UndefinedPrimal) -> jax.Array:
    """Sums the cotangent along the dimensions in which `operand` is shared."""
    shape = operand.aval.shape
    shared = [i for i, n in enumerate(shape) if n != cotangent.shape[i]]
    return cotangent.sum(shared, keepdims=True, dtype=cotangent.dtype)


def transpose_select(
    operator: Callable[..., Outputs],
    static: dict[str, Any],
    cotangents: Sequence[jax.Array],
    operands: Sequence[Any],
) -> list[jax.Array | None]:
    """Transposes an operator that selects between its last two operands.

    The selected side gets the cotangent and the other side gets zero. That is the same
    operator again, with the cotangent and a shared zero in place of both sides.
    """
    (cotangent,) = cotangents
    *data, _, _ = operands
    zero = jnp.zeros((1,) * cotangent.ndim, cotangent.dtype)
    results: list[jax.Array | None] = [None] * len(data)
    for operand, sides in zip(
        operands[-2:], [(cotangent, zero), (zero, cotangent)], strict=True
    ):
        if not needs_cotangent(operand):
            results.append(None)
            continue
        (selected,) = operator(*data, *sides, **static)
        selected = jnp.broadcast_to(selected, cotangent.shape)
        results.append(unbroadcast(selected, operand))
    return results
