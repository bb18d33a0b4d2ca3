"""The work that is timed: one table, from which every figure of the ledger comes."""

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from dmljax import PaddingMode

JNP_MODES = {
    PaddingMode.CONSTANT: "constant",
    PaddingMode.EDGE: "edge",
    PaddingMode.REFLECTION: "reflect",
    PaddingMode.SYMMETRIC: "symmetric",
    PaddingMode.WRAP: "wrap",
}


@dataclasses.dataclass(frozen=True)
class Case:
    """One piece of work and the contenders that do it.

    Attributes:
      operator: its name.
      name: what is done, in words; unique with `direction`.
      arrays: the inputs.
      dmljax: our function of the inputs.
      jnp: the jax.numpy way of writing the same, if there is one.
      numpy: the NumPy way, if there is one.
      bytes: the fewest that must be read and written.
      pallas: our function with its kernel, where there is one.
      direction: "forward" or "gradient".
      compiled: whether the functions are called inside jit.
    """

    operator: str
    name: str
    arrays: Sequence[np.ndarray]
    dmljax: Callable[..., Any]
    jnp: Callable[..., Any] | None
    numpy: Callable[..., Any] | None
    bytes: int
    pallas: Callable[..., Any] | None = None
    direction: str = "forward"
    compiled: bool = True


def cases(elements: int) -> Iterator[Case]:
    """All cases, for arrays of about `elements` elements."""
    generators = (
        element_wise_if_cases,
        diagonal_matrix1_cases,
        one_hot_cases,
        padding_cases,
        nonzero_coordinates_cases,
        lambda elements: call_cases(),
    )
    for generator in generators:
        yield from generator(elements)


def _random(shape: Sequence[int], dtype: Any = np.float32) -> np.ndarray:
    return (np.random.default_rng(0).random(shape) * 100).astype(dtype)


def _square(elements: int) -> tuple[int, int]:
    return (math.isqrt(elements), math.isqrt(elements))


def _bytes(*arrays: Any) -> int:
    return sum(math.prod(a.shape) * a.dtype.itemsize for a in arrays)


def _gradient(forward: Case, wrt: int, *, bytes_: int) -> Case:
    """The cotangent of input `wrt` of a case, for a cotangent of its output."""
    structs = jax.eval_shape(forward.dmljax, *forward.arrays)

    def transposed(function: Callable[..., Any]) -> Callable[..., Any]:
        def pullback(cotangent: jax.Array, *arrays: jax.Array) -> Any:
            def of_input(x: jax.Array) -> Any:
                return function(*arrays[:wrt], x, *arrays[wrt + 1 :])

            return jax.vjp(of_input, arrays[wrt])[1](cotangent)[0]

        return pullback

    return dataclasses.replace(
        forward,
        arrays=[_random(structs.shape, structs.dtype), *forward.arrays],
        dmljax=transposed(forward.dmljax),
        jnp=None if forward.jnp is None else transposed(forward.jnp),
        numpy=None,
        bytes=bytes_,
        direction="gradient",
    )


def element_wise_if_cases(elements: int) -> Iterator[Case]:
    """Selects of three types, and the gradient of the first."""
    for dtype in (np.float32, np.float16, np.int8):
        condition = _random((elements,), np.uint8) % 2
        a, b = _random((elements,), dtype), _random((elements,), dtype)
        case = Case(
            "element_wise_if",
            f"{a.dtype} x {elements}",
            (condition, a, b),
            dmljax.element_wise_if,
            lambda c, a, b: jnp.where(c != 0, a, b),
            lambda c, a, b: np.where(c != 0, a, b),
            _bytes(condition, a, b, a),
        )
        yield case
        if dtype is np.float32:
            yield _gradient(case, 1, bytes_=_bytes(condition, a, a))


def diagonal_matrix1_cases(elements: int) -> Iterator[Case]:
    """The upper triangle of three types, its gradient, and an identity matrix."""
    shape = _square(elements)
    upper = functools.partial(
        dmljax.diagonal_matrix1, value=0, fill_begin=-(2**31), fill_end=0
    )
    for dtype in (np.float32, np.float16, np.int8):
        x = _random(shape, dtype)
        name = f"upper triangle, {x.dtype} {shape}"
        case = Case(
            "diagonal_matrix1", name, (x,), upper, jnp.triu, np.triu, _bytes(x, x)
        )
        yield case
        if dtype is np.float32:
            yield _gradient(case, 0, bytes_=_bytes(x, x))
    yield Case(
        "diagonal_matrix1",
        f"identity, float32 {shape}",
        (),
        lambda: dmljax.diagonal_matrix1(shape=shape),
        lambda: jnp.eye(*shape, dtype=np.float32),
        lambda: np.eye(*shape, dtype=np.float32),
        4 * math.prod(shape),
    )


def one_hot_cases(elements: int) -> Iterator[Case]:
    """Shallow and deep sequences along the last and the first axis."""
    off_on = np.array([0, 1], np.float32)
    for depth, axis in ((8, -1), (128, -1), (128, 0), (4096, -1)):
        count = max(elements // depth, 1)
        indices = (np.arange(count, dtype=np.int32) * 7) % depth
        expanded = np.expand_dims(indices, axis)
        output = np.empty((count * depth,), np.float32)

        def other(indices: Any, values: Any, *, depth: int, axis: int, xp: Any) -> Any:
            shape = (-1, 1) if axis == 0 else (1, -1)
            position = xp.arange(depth, dtype=np.int32).reshape(shape)
            return xp.where(indices == position, values[1], values[0])

        contender = functools.partial(other, depth=depth, axis=axis)
        case = Case(
            "one_hot",
            f"{count} x {depth}, axis {axis}",
            (expanded, off_on),
            functools.partial(dmljax.one_hot, size=depth, axis=axis),
            functools.partial(contender, xp=jnp),
            functools.partial(contender, xp=np),
            _bytes(expanded, output),
        )
        yield case
        if (depth, axis) == (128, -1):
            yield _gradient(case, 1, bytes_=_bytes(expanded, output))


def padding_cases(elements: int) -> Iterator[Case]:
    """All modes, of few and of many elements, on images and on a leading axis."""
    side = max(2 ** (int(math.log2(max(elements // 256, 1))) // 2), 4)
    image = (max(elements // (16 * side * side), 1), 16, side, side)
    for pads in ((0, 0, 3, 3), (0, 0, 0, side - 1), (3, 0, 0, 0)):
        for mode, jnp_mode in JNP_MODES.items():
            x = _random(image)
            both = [(pad, pad) for pad in pads]
            if image[0] <= pads[0]:
                continue  # more folds than one: another piece of work
            case = Case(
                "padding",
                f"{mode.name} {pads} of {image}",
                (x,),
                functools.partial(_pad, pads=pads, mode=mode),
                functools.partial(jnp.pad, pad_width=both, mode=jnp_mode),
                functools.partial(np.pad, pad_width=both, mode=jnp_mode),
                0,
            )
            padded = jax.eval_shape(case.dmljax, x)
            case = dataclasses.replace(case, bytes=_bytes(x, padded))
            yield case
            yield _gradient(case, 0, bytes_=case.bytes)


def _pad(x: Any, *, pads: tuple[int, ...], mode: PaddingMode) -> jax.Array:
    return dmljax.padding(x, pads, pads, mode=mode)


def nonzero_coordinates_cases(elements: int) -> Iterator[Case]:
    """From almost empty to full, as a line and as a batch of images."""
    side = 2 ** (int(math.log2(elements)) // 2)
    for shape in ((elements,), (1, elements // (side * side), side, side)):
        for density in (0.001, 0.01, 0.1, 0.5, 1.0):
            x = _random(shape) + 1
            x *= np.random.default_rng(1).random(shape) < density
            rows = np.empty((x.size, max(len(shape), 1)), np.uint32)
            yield Case(
                "nonzero_coordinates",
                f"{shape}, {density:.1%} non-zero",
                (x,),
                dmljax.nonzero_coordinates,
                lambda x: jnp.stack(jnp.nonzero(x, size=x.size, fill_value=0), -1),
                np.argwhere,
                _bytes(x, rows),
                functools.partial(dmljax.nonzero_coordinates, implementation="pallas"),
            )


def call_cases() -> Iterator[Case]:
    """What a call outside jit costs: arrays so small that nothing else does."""
    x = _random((4, 4))
    for mode, jnp_mode in JNP_MODES.items():
        yield Case(
            "padding",
            f"{mode.name} 1 of (4, 4), outside jit",
            (x,),
            functools.partial(_pad, pads=(1, 1), mode=mode),
            functools.partial(jnp.pad, pad_width=1, mode=jnp_mode),
            functools.partial(np.pad, pad_width=1, mode=jnp_mode),
            4 * (16 + 36),
            compiled=False,
        )
