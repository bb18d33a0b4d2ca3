"""Times each form that exists for speed beside the plain form that it replaces.

    python -m benchmarks.forms                      on the default device
    python -m benchmarks.forms --elements 4096      small arrays: a quick test

A second form, a threshold or a branch for speed stays in dmljax only if it is at least
15 % faster on work that users do, or if a target is not reached without it. Each such
form has a `Pair` here, and its two lines in the ledger `results/<device>_forms.jsonl`:
contender "special" and contender "plain". All run inside jit, in turns where the host's
clock measures.
"""

import dataclasses
import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import ledger
from benchmarks.libraries import ALL
from benchmarks.run import circumstances, commit, named, parsed
from benchmarks.timing import measure
from dmljax import PaddingMode, _padding_forms
from dmljax._operators import OPERATORS
from dmljax.pallas import (
    _diagonal_matrix1,
    _elementwise,
    _nonzero_coordinates,
    _one_hot,
    _padding,
)
from dmljax.pallas.gpu._nonzero_plan import NonzeroPlan

# Of an array: 256 MiB of float32 on a GPU, 16 MiB on a CPU.
ELEMENTS = {"cpu": 2**22, "gpu": 2**26}
CHANNELS = 16


@dataclasses.dataclass(frozen=True)
class Pair:
    """A special form and the plain one, on the same work.

    Attributes:
      platform: where the special form runs by default.
      operator: the name of the primitive.
      case: what is done, in words.
      special: the form for speed, a function of the arrays.
      plain: the form that would run instead.
      shape: of the array, given its number of elements.
      dtype: its data type.
      density: the part of its elements that are not zero.
    """

    platform: str
    operator: str
    case: str
    special: Callable[..., Any]
    plain: Callable[..., Any]
    shape: Callable[[int], Sequence[int]]
    dtype: str = "float32"
    density: float = 1.0

    def array(self, elements: int) -> jax.Array:
        """The array, the same in every run."""
        shape = tuple(self.shape(elements))
        keys = jax.random.split(jax.random.key(0))
        drawn = jax.random.uniform(keys[0], shape) < self.density
        numbers = jax.random.randint(keys[1], shape, 1, 100, np.int8)
        return jnp.where(drawn, numbers, np.int8(0)).astype(self.dtype)


def _line(elements: int) -> tuple[int, ...]:
    return (1, elements)


def _images(elements: int) -> tuple[int, ...]:
    side = int((elements / CHANNELS) ** 0.5) // 4
    return (16, CHANNELS, side, side)


def _adjoint_on_cpu(mode: PaddingMode, pad: int) -> Pair:
    pads = (0, 0, pad, pad)
    special, plain = (
        functools.partial(form, start=pads, end=pads, mode=mode)
        for form in (_padding_forms.adjoint_on_cpu, _padding_forms.adjoint)
    )
    return Pair(
        *("cpu", "padding_adjoint", f"{mode.name} {pad}", special, plain),
        _images,
    )


def _joined(mode: PaddingMode, dtype: str, side: int) -> Pair:
    """Padding of an array that is small enough to have its strips joined to it."""
    primitive = OPERATORS["padding"].primitive
    static = {"start": (3, 3, 0), "end": (3, 3, 0), "mode": mode}
    special, plain = (
        functools.partial(form, **static)
        for form in (primitive.on_platform["cpu"], primitive.xla)
    )
    return Pair(
        *("cpu", "padding", f"{mode.name} of {dtype} {side} x {side}", special, plain),
        lambda _: (side, side, 3),
        dtype=dtype,
    )


def _rows(dtype: str, row: int, pad: int) -> Pair:
    """Padding of rows of so many bytes, in the form that is the default for them."""
    primitive = OPERATORS["padding"].primitive
    pads = (0, pad)
    static = {"start": pads, "end": pads, "mode": PaddingMode.REFLECTION}
    kernel = functools.partial(primitive.kernels["cuda"], **static, interpret=False)
    xla = functools.partial(primitive.xla, **static)
    itemsize = np.dtype(dtype).itemsize
    rows = jax.ShapeDtypeStruct((1024, row // itemsize), dtype)
    assert primitive.measured_as is not None
    by_kernel = primitive.measured_as("cuda", (rows,), static) == "padding"
    special, plain = (kernel, xla) if by_kernel else (xla, kernel)
    return Pair(
        *("gpu", "padding", f"rows of {row} bytes of {dtype}, {pad} before and after"),
        *(special, plain),
        lambda elements: (elements * 4 // row, row // itemsize),
        dtype=dtype,
    )


def _patched(form: Callable[..., Any], module: Any, **names: Any) -> Callable[..., Any]:
    """The form with other values of these names in a module that it uses."""

    def plain(*arrays: jax.Array) -> Any:
        with mock.patch.multiple(module, **names):
            return form(*arrays)

    return plain


class _NothingCopied(_padding.PaddingPlan):
    """A plan of a row without an inside: every element is looked up by itself."""

    @property
    def inside(self) -> tuple[int, int]:
        return 0, 0


def _copied(dtype: str) -> Pair:
    """Padding whose kernel copies what lies in the inside of a row."""
    special = functools.partial(
        _padding.padding,
        start=(3, 3),
        end=(3, 3),
        mode=PaddingMode.REFLECTION,
        interpret=False,
    )
    itemsize = np.dtype(dtype).itemsize
    return Pair(
        *("gpu", "padding", f"chunks of {dtype} are copied", special),
        _patched(special, _padding, PaddingPlan=_NothingCopied),
        lambda elements: (max(elements * 4 // itemsize // 2**16, 1), 256, 256),
        dtype=dtype,
    )


def _filled(dtype: str, axis: int, case: str, **names: Any) -> Pair:
    """One-hot sequences of 128, whose threads have several chunks."""

    def special(indices: jax.Array) -> Any:
        pair = jnp.array([1, 0], dtype)
        return _one_hot.one_hot(
            indices,
            *(pair[i].reshape((1,) * indices.ndim) for i in range(2)),
            size=128,
            axis=axis,
            interpret=False,
        )

    def shape(elements: int) -> tuple[int, ...]:
        sequences = elements * 4 // np.dtype(dtype).itemsize // 128
        side = math.isqrt(sequences)
        return (sequences, 1) if axis == -1 else (side, 1, side)

    return Pair(
        *("gpu", "one_hot", f"{dtype}, axis {axis}: {case}", special),
        *(_patched(special, _elementwise, **names), shape),
        dtype="int32",
    )


# A thread has one chunk, whatever the bytes of an element are.
ONE_CHUNK = dict.fromkeys((1, 2, 4), 1)


def _triangle(dtype: str) -> Pair:
    """A triangle of odd size, whose chunks are single elements."""

    def special(x: jax.Array) -> Any:
        return _diagonal_matrix1.diagonal_matrix1(
            jnp.zeros((1, 1), dtype),
            x,
            matrix=x.shape,
            fill_begin=-(2**31),
            fill_end=1,
            interpret=False,
        )

    def shape(elements: int) -> tuple[int, int]:
        side = math.isqrt(elements * 4 // np.dtype(dtype).itemsize) // 2 * 2 - 1
        return side, side

    return Pair(
        *("gpu", "diagonal_matrix1", f"{dtype}, odd: a thread has more chunks"),
        *(special, _patched(special, _elementwise, MOST=1), shape),
        dtype=dtype,
    )


def _kept(groups: Sequence[Any], each: int) -> tuple[list[Any], int]:
    """Makes no runs, in the place of `in_runs`."""
    return list(groups), each


class _OneTile(NonzeroPlan):
    """The plan of coordinates all of whose pieces have one tile.

    A plan, because a kernel's functions are called when a program is lowered, which is
    after the time of a patch.
    """

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


class _AllWriteFirst(NonzeroPlan):
    """The plan of coordinates whose programs all write rows before they fill others."""

    @property
    def fill_first(self) -> int:
        """None."""
        return 0


def _some_rows(
    dtype: str,
    density: float,
    size: float,
    words: str,
    plain: type[NonzeroPlan],
    rank: int = 1,
) -> Pair:
    """Coordinates, with this part of the number of elements as rows."""

    def special(x: jax.Array) -> Any:
        rows, options = round(size * x.size), {"fill": 0, "interpret": False}
        return _nonzero_coordinates.nonzero_coordinates(
            x, rank=rank, size=rows, columns=rank, **options
        )

    return Pair(
        *("gpu", "nonzero_coordinates"),
        f"{dtype}, {100 * density:g} % not zero: {words}",
        special,
        _patched(special, _nonzero_coordinates, NonzeroPlan=plain),
        _line if rank == 1 else _images,
        dtype=dtype,
        density=density,
    )


def _pieces(dtype: str, density: float) -> Pair:
    words = "a piece has several tiles"
    return _some_rows(dtype, density, 1.25 * density, words, _OneTile)


def _claims(dtype: str, rank: int) -> Pair:
    words = f"rank {rank}, a sixteenth of the rows: programs claim parts of the tail"
    return _some_rows(dtype, 0.01, 1 / 16, words, _NoClaims, rank)


def _fill_first(dtype: str, density: float) -> Pair:
    words = "half of the programs fill rows before they write any"
    return _some_rows(dtype, density, 1, words, _AllWriteFirst)


def _coordinates(density: float) -> Pair:
    primitive = OPERATORS["nonzero_coordinates"].primitive
    static = {"rank": 1, "size": None, "columns": 1, "fill": 0}
    return Pair(
        "cpu",
        primitive.name,
        f"{100 * density:g} % not zero",
        functools.partial(primitive.on_platform["cpu"], **static),
        functools.partial(primitive.xla, **static),
        _line,
        density=density,
    )


PAIRS = (
    # LONG_ROW of `_padding_primitive` chooses between kernel and XLA.
    *(
        _rows(dtype, elements * np.dtype(dtype).itemsize, pad)
        for dtype in ("int8", "float16")
        for elements in (8, 16, 32, 256, 1024)
        for pad in (4, elements - 1)
    ),
    *map(_copied, ("int8", "float16")),
    *(
        _filled(dtype, -1, "a thread has several chunks", FILLED=ONE_CHUNK)
        for dtype in ("int8", "float16", "float32")
    ),
    *(
        _filled(dtype, 1, "a thread has a run of chunks", in_runs=_kept)
        for dtype in ("int8", "float16", "float32")
    ),
    *map(_triangle, ("int8", "float16")),
    *(
        _pieces(dtype, density)
        for dtype in ("uint8", "float32")
        for density in (0.001, 0.01, 0.1)
    ),
    *(_claims(dtype, rank) for dtype in ("uint8", "float32") for rank in (1, 4)),
    # uint8 does not reach its target without this.
    *(
        _fill_first(dtype, density)
        for dtype in ("uint8", "float32")
        for density in (0.1, 0.5)
    ),
    *(
        _joined(mode, dtype, side)
        for mode in (PaddingMode.REFLECTION, PaddingMode.EDGE, PaddingMode.WRAP)
        for dtype, side in (("int8", 512), ("float16", 192))
    ),
    *(
        _adjoint_on_cpu(mode, pad)
        for mode in (PaddingMode.REFLECTION, PaddingMode.WRAP)
        for pad in (1, 8)
    ),
    *map(_coordinates, (0.001, 0.1, 1.0)),
)


def time_pair(pair: Pair, elements: int, rounds: int) -> list[ledger.Line]:
    """The two lines of the ledger; both results are compared first."""
    library, array = ALL["jnp"], pair.array(elements)
    forms = {"special": pair.special, "plain": pair.plain}
    calls = {name: library.prepare(form, [array], None) for name, form in forms.items()}
    for one, other in zip(
        *(jax.tree.leaves(c.run()) for c in calls.values()), strict=True
    ):
        if not jnp.array_equal(one, other):
            raise RuntimeError(f"the forms of {pair.operator} {pair.case} differ")
    timings, _ = measure(calls, rounds=rounds, repeats=2)
    return [
        {
            "operator": pair.operator,
            "case": pair.case,
            "direction": "forward",
            "context": "inside jit",
            "dtype": pair.dtype,
            "elements": int(np.prod(array.shape)),
            "contender": name,
            "ms": round(timing.median, 6),
            "ms_p20": round(timing.p20, 6),
            "ms_p80": round(timing.p80, 6),
        }
        for name, timing in timings.items()
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Times the pairs of this platform."""
    options = parsed(argv, "benchmarks.forms", __doc__)
    device = jax.devices()[0]
    run = circumstances(device, {"jnp": ALL["jnp"]})
    run |= {"commit": options.commit or commit()}
    here = (pair for pair in PAIRS if pair.platform == device.platform)
    chosen = named(here, options.only, lambda pair: f"{pair.operator} {pair.case}")
    out = ledger.ready(options.out, f"{run['device']}_forms")
    elements = options.elements or ELEMENTS[device.platform]
    for pair in chosen:
        lines = time_pair(pair, elements, options.rounds)
        ledger.append(out, (run | line for line in lines))
        special, plain = (line["ms"] for line in lines)
        print(
            f"{pair.operator} {pair.case}: {special:.4f} ms, plain {plain:.4f} ms, "
            f"{plain / special - 1:+.0%}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
