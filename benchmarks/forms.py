"""Each form that exists for speed beside the plain form that it replaces.

A second form, a threshold or a branch for speed stays in dmljax only if it is at least
15 % faster in work that users do, or if a goal is not reached without it. Each such
form has a case here, with the contenders "dmljax special" and "dmljax plain". Its
context is "form", and both run inside `jit`. `benchmarks.cases` has the cases.
"""

import functools
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import oracles
from benchmarks.case import Case
from benchmarks.data import Data
from benchmarks.others import numpy_mode
from dmljax import PaddingMode
from dmljax._operators import OPERATORS
from dmljax.pallas.gpu import _nonzero_coordinates, _padding
from dmljax.pallas.gpu._nonzero_plan import NonzeroPlan

CHANNELS = 16
Form = Callable[..., Any]


def cases(platform: str, elements: int) -> Iterator[Case]:
    """The forms of a platform, for arrays of about so many elements of 4 bytes."""
    yield from {"cpu": _on_cpu, "gpu": _on_gpu}[platform](elements)


def _on_cpu(elements: int) -> Iterator[Case]:
    for mode in (PaddingMode.REFLECTION, PaddingMode.EDGE, PaddingMode.WRAP):
        for dtype, side in (("int8", 512), ("float16", 192)):
            yield _joined(mode, dtype, side)
    for density in (0.001, 0.1, 1.0):
        primitive = OPERATORS["nonzero_coordinates"].primitive
        x = Data((elements,), "float32", density=density)
        special, plain = primitive.on_platform["cpu"], primitive.xla
        yield _nonzero(f"{100 * density:g} % not zero", x, None, special, plain)


def _on_gpu(elements: int) -> Iterator[Case]:
    for dtype in ("int8", "float16"):
        yield _copied(elements, dtype)
    for dtype in ("uint8", "float32"):
        some = functools.partial(_some_rows, elements, dtype)
        for density in (0.001, 0.01, 0.1):
            words = "a piece has several tiles"
            yield some(density, 1.25 * density, words, _OneTile)
        for rank in (1, 4):
            words = f"rank {rank}, a sixteenth of the rows: "
            words += "programs claim parts of the tail"
            yield some(0.01, 1 / 16, words, _NoClaims, rank)


def _pair(
    operator: str,
    name: str,
    x: Data,
    output: Data,
    oracle: oracles.Oracle,
    special: Form,
    plain: Form,
) -> Case:
    functions = {"dmljax special": special, "dmljax plain": plain}
    return Case(operator, name, (x,), output, functions, oracle, context="form")


# PADDING


def _images(elements: int) -> tuple[int, ...]:
    side = int((elements / CHANNELS) ** 0.5) // 4
    return (16, CHANNELS, side, side)


def _padded(
    name: str, x: Data, pads: tuple[int, ...], mode: PaddingMode, *forms: Form
) -> Case:
    sizes = tuple(size + 2 * pad for size, pad in zip(x.shape, pads, strict=True))
    around = [(pad, pad) for pad in pads]
    oracle = functools.partial(oracles.padding, pads=around, mode=numpy_mode(mode))
    static = {"start": pads, "end": pads, "mode": mode}
    return _pair(
        *("padding", name, x, Data(sizes, x.dtype), oracle),
        *(functools.partial(form, **static) for form in forms),
    )


def _joined(mode: PaddingMode, dtype: str, side: int) -> Case:
    """An array that is small enough to have its strips joined to it."""
    primitive = OPERATORS["padding"].primitive
    name = f"{mode.name} of {dtype} {side} x {side}"
    x, forms = (
        Data((side, side, 3), dtype),
        (primitive.on_platform["cpu"], primitive.xla),
    )
    return _padded(name, x, (3, 3, 0), mode, *forms)


class _NothingCopied(_padding.PaddingPlan):
    """A plan of a row without an inside: every element is looked up by itself."""

    @property
    def inside(self) -> tuple[int, int]:
        return 0, 0


def _copied(elements: int, dtype: str) -> Case:
    """Padding whose kernel copies what lies in the inside of a row."""
    kernel = OPERATORS["padding"].primitive.kernels["cuda"].form
    special = functools.partial(kernel, interpret=False)
    plain = _patched(special, _padding, PaddingPlan=_NothingCopied)
    images = max(elements * 4 // np.dtype(dtype).itemsize // 2**16, 1)
    x, name = Data((images, 256, 256), dtype), f"chunks of {dtype} are copied"
    return _padded(name, x, (0, 3, 3), PaddingMode.REFLECTION, special, plain)


def _patched(form: Form, module: Any, **names: Any) -> Form:
    """The form with other values of these names in a module that it uses."""

    def plain(*arrays: Any, **static: Any) -> Any:
        with mock.patch.multiple(module, **names):
            return form(*arrays, **static)

    return plain


# NONZERO_COORDINATES
#
# A plan is replaced, and no function of the kernel: these are called when a program is
# lowered, which is after the time of a patch.


class _OneTile(NonzeroPlan):
    """The plan of coordinates all of whose pieces have one tile."""

    @property
    def pieces(self) -> tuple[int, ...]:
        """No larger ones."""
        return ()


class _NoClaims(NonzeroPlan):
    """The plan of coordinates whose programs know which rows they fill."""

    @property
    def claims(self) -> bool:
        """None."""
        return False


def _some_rows(
    elements: int,
    dtype: str,
    density: float,
    part: float,
    words: str,
    plan: type[NonzeroPlan],
    rank: int = 1,
) -> Case:
    """Coordinates, with this part of the number of elements as rows."""
    kernel = OPERATORS["nonzero_coordinates"].primitive.kernels["cuda"].form
    special = functools.partial(kernel, interpret=False)
    plain = _patched(special, _nonzero_coordinates, NonzeroPlan=plan)
    shape = (elements,) if rank == 1 else _images(elements)
    x = Data(shape, dtype, density=density)
    name = f"{dtype}, {100 * density:g} % not zero: {words}"
    return _nonzero(name, x, round(part * x.size), special, plain)


def _nonzero(name: str, x: Data, size: int | None, *forms: Form) -> Case:
    rank = len(x.shape)
    static = {"rank": rank, "size": size, "columns": rank, "fill": 0}
    return _pair(
        *("nonzero_coordinates", name, x),
        Data((x.size if size is None else size, rank), "uint32"),
        functools.partial(oracles.nonzero_coordinates, size=size),
        *(functools.partial(form, **static) for form in forms),
    )
