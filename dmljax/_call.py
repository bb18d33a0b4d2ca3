"""Compiles the functions that compute, and limits the sizes of their results."""

import math
from collections.abc import Callable

import jax

from dmljax._check import ArgumentError, T, show
from dmljax._jax import INLINE


def compiled(*static: str) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Makes a decorator that compiles a function, with static arguments of these names.

    Pass arguments by position: JAX then finds the compiled program faster. Profiles
    show the operations under the name of the function.
    """

    def wrap(function: Callable[..., T]) -> Callable[..., T]:
        scope = f"dmljax.{function.__name__.strip('_')}"
        scoped = jax.named_scope(scope)(function)
        # With `inline`, a jaxpr has the operations of the function instead of a call,
        # and is faster to trace and to lower.
        return jax.jit(scoped, static_argnames=static, inline=INLINE)

    return wrap


def check_elements(sizes: tuple[int, ...]) -> None:
    """Refuses an array whose bytes XLA can't count: XLA would end the process.

    XLA counts bytes in integers of 63 bits, and an element has up to 16 bytes.
    """
    elements = math.prod(sizes)
    if isinstance(elements, int) and elements >= 2**59:
        raise ArgumentError(
            f"the result would have sizes {show(sizes)}, {elements} "
            "elements; it must have fewer than 2^59."
        )
