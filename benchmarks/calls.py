"""Times calls on small arrays outside of jit, beside jax.numpy's, and keeps a ledger.

    python -m benchmarks.calls                      on the default device
    python -m benchmarks.calls --rounds 20          a quick test

A line is the time of one call of one contender: the function, jax.numpy's function for
the same, or a descriptor's callable, on packed tensors or on strided ones. The arrays
are so small that the work around a call takes most of it. Contenders take turns in one
process, so that noise hits them alike; `ratio` is the median, over the rounds, of the
time over that of the contender named in `beside`. The function of jax.numpy for
non-zero elements is a program of many calls, so it also runs inside of jit.
"""

import dataclasses
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from benchmarks import ledger
from benchmarks.libraries import ALL
from benchmarks.run import circumstances, commit, named, parsed
from dmljax import DataType, PaddingMode, TensorDesc

SIDES = {"4 KiB": 32, "64 KiB": 128}  # rows of a square float32 matrix
ROUNDS = 300
# Calls of one contender in its turn. JAX dispatches them asynchronously, and only the
# last one is waited for.
CALLS = 10
LOWEST = -(2**31)
GAP = 8  # elements at the end of each row of a strided tensor, which belong to none


@dataclasses.dataclass(frozen=True)
class Contender:
    """One way to call an operator.

    Attributes:
      name: the name in the ledger.
      run: makes the call. Its arrays are on the device already.
      beside: the name of the contender that it is compared with; None for jax.numpy's.
    """

    name: str
    run: Callable[[], Any]
    beside: str | None = None


def contenders(side: int) -> Iterator[tuple[str, str, list[Contender]]]:
    """Yields operator, case and contenders for square matrices with so many rows."""
    x, flat = jnp.ones((side, side)), jnp.ones(side * (side + GAP))
    yield "element_wise_if", "two tensors", _selects(x)
    yield "element_wise_if", "a tensor and 0.0", _selects_of_a_scalar(x)
    yield "diagonal_matrix1", "upper triangle", _triangles(x, flat)
    yield "nonzero_coordinates", "10 % not zero", _finders(x)
    for mode, name in ((PaddingMode.CONSTANT, "constant"), (2, "reflect")):
        yield "padding", name, _padders(x, flat, PaddingMode(mode), name)


def _selects(x: jax.Array) -> list[Contender]:
    matrix, condition = _tensor(x.shape[0]), jnp.ones(x.shape, jnp.uint8)
    mask = TensorDesc(DataType.UINT8, x.shape)
    select = dmljax.create_operator(
        dmljax.ElementWiseIfDesc(mask, matrix, matrix, matrix)
    )
    return [
        Contender("jnp", lambda: jnp.where(condition, x, x)),
        Contender("dmljax", lambda: dmljax.element_wise_if(condition, x, x), "jnp"),
        Contender("descriptor", lambda: select(condition, x, x), "dmljax"),
    ]


def _selects_of_a_scalar(x: jax.Array) -> list[Contender]:
    condition = jnp.ones(x.shape, jnp.uint8)
    return [
        Contender("jnp", lambda: jnp.where(condition, x, 0.0)),
        Contender("dmljax", lambda: dmljax.element_wise_if(condition, x, 0.0), "jnp"),
    ]


def _triangles(x: jax.Array, flat: jax.Array) -> list[Contender]:
    packed, strided = (
        dmljax.create_operator(
            dmljax.DiagonalMatrix1Desc(item, item, DataType.FLOAT32, 0, LOWEST, 0)
        )
        for item in (_tensor(x.shape[0]), _tensor(x.shape[0], GAP))
    )
    return [
        Contender("jnp", lambda: jnp.triu(x)),
        Contender(
            "dmljax",
            lambda: dmljax.diagonal_matrix1(x, value=0, fill_begin=LOWEST, fill_end=0),
            "jnp",
        ),
        Contender("descriptor", lambda: packed(x), "dmljax"),
        Contender("strided", lambda: strided(flat), "dmljax"),
    ]


def _finders(x: jax.Array) -> list[Contender]:
    sparse = jnp.asarray(np.resize(np.arange(x.size) % 10 == 3, x.shape), x.dtype)
    packed = dmljax.create_operator(
        dmljax.NonzeroCoordinatesDesc(
            _tensor(x.shape[0]),
            TensorDesc(DataType.UINT32, (1,)),
            TensorDesc(DataType.UINT32, (x.size, 2)),
        )
    )

    def argwhere(x: jax.Array) -> jax.Array:
        return jnp.argwhere(x, size=x.size, fill_value=0)

    jitted = jax.jit(argwhere)
    return [
        Contender("jnp", lambda: argwhere(sparse)),
        Contender("jnp, inside jit", lambda: jitted(sparse)),
        Contender(
            "dmljax", lambda: dmljax.nonzero_coordinates(sparse), "jnp, inside jit"
        ),
        Contender("descriptor", lambda: packed(sparse), "dmljax"),
    ]


def _padders(
    x: jax.Array, flat: jax.Array, mode: PaddingMode, name: str
) -> list[Contender]:
    side, one = x.shape[0], (1, 1)
    packed, strided = (
        dmljax.create_operator(
            dmljax.PaddingDesc(
                _tensor(side, gap), _tensor(side + 2, gap), mode, 0.0, 2, one, one
            )
        )
        for gap in (0, GAP)
    )
    return [
        Contender("jnp", lambda: jnp.pad(x, 1, mode=name)),
        Contender("dmljax", lambda: dmljax.padding(x, one, one, mode=mode), "jnp"),
        Contender("descriptor", lambda: packed(x), "dmljax"),
        Contender("strided", lambda: strided(flat), "dmljax"),
    ]


def _tensor(side: int, gap: int = 0) -> TensorDesc:
    """Describes a square matrix whose rows are followed by `gap` elements."""
    strides = (side + gap, 1) if gap else None
    return TensorDesc(DataType.FLOAT32, (side, side), strides)


def main(argv: Sequence[str] | None = None) -> int:
    """Times all calls that were asked for, and appends their lines."""
    options = parsed(argv, "benchmarks.calls", __doc__, rounds=ROUNDS, sized=False)
    libraries = {"dmljax": ALL["dmljax"], "jnp": ALL["jnp"]}
    run = circumstances(jax.devices()[0], libraries)
    run |= {"commit": options.commit or commit()}
    work = ((size, *one) for size, side in SIDES.items() for one in contenders(side))
    chosen = named(work, options.only, lambda one: f"{one[1]} {one[2]}")
    out = ledger.ready(options.out, f"{run['device']}_calls")
    for size, operator, case, ways in chosen:
        lines = time_ways(ways, options.rounds)
        about = {"operator": operator, "case": case, "size": size}
        ledger.append(out, (run | about | line for line in lines))
        shown = "  ".join(f"{x['contender']} {x['us']:.1f}" for x in lines)
        ratios = "  ".join(f"{x['ratio']}" for x in lines if x["beside"])
        print(f"{operator} {case} {size}: {shown} us, ratios {ratios}")
    return 0


def time_ways(ways: Sequence[Contender], rounds: int) -> list[dict[str, Any]]:
    """Times contenders that take turns, and returns their lines of the ledger."""
    for way in ways:
        jax.block_until_ready(way.run())
    turns: dict[str, list[float]] = {way.name: [] for way in ways}
    order = list(ways)
    # Each round begins with another contender: the first one of a round finds the
    # caches as the last one has left them.
    for _ in range(rounds):
        order.append(order.pop(0))
        for way in order:
            turns[way.name].append(_turn(way.run))
    lines = []
    for way in ways:
        times = np.array(turns[way.name])
        p20, median, p80 = np.percentile(times, (20, 50, 80))
        ratio = np.median(times / turns[way.beside]) if way.beside else None
        lines.append(
            {
                "contender": way.name,
                "beside": way.beside,
                "us": round(float(median), 2),
                "us_p20": round(float(p20), 2),
                "us_p80": round(float(p80), 2),
                "ratio": None if ratio is None else round(float(ratio), 3),
                "rounds": rounds,
            }
        )
    return lines


def _turn(run: Callable[[], Any]) -> float:
    """Returns the microseconds of one of several calls, until the last has a result."""
    jax.block_until_ready(run())
    start = time.perf_counter()
    for _ in range(CALLS):
        result = run()
    jax.block_until_ready(result)
    return (time.perf_counter() - start) / CALLS * 1e6


if __name__ == "__main__":
    sys.exit(main())
