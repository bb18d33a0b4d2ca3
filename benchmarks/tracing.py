"""Times the cost of a program before it runs: tracing, lowering and compiling.

    python -m benchmarks.tracing                 on the default device
    python -m benchmarks.tracing --only padding  the work with this in its text

Each operator stands beside jax.numpy, forward and with its gradient, once in a program
and 20 times with arrays of different sizes. They take turns. Each time the function is
new and all caches are empty. The rows of the ledger have the context "tracing":

    lower_ms      to trace and to lower
    compile_ms    to trace, to lower and to compile
"""

import dataclasses
import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import dmljax
from benchmarks import ledger
from benchmarks.command import circumstances, device_name, named, parsed
from benchmarks.libraries import ALL
from benchmarks.programs.diagonal_matrix1 import causal, causal_by_tril
from dmljax import numpy as dnp
from dmljax._operators import OPERATORS

Struct = jax.ShapeDtypeStruct
Function = Callable[[jax.Array], jax.Array]
MANY = 20
CLASSES = 50
ROWS = 100
AROUND = ((0, 0), (3, 3), (3, 3))
ON = np.array([0, 1], np.float32)
LABELS = np.arange(64, dtype=np.int32)
# Enough for a median: a program of 20 calls can take seconds.
MOST_SECONDS, FEWEST = 3.0, 2


@dataclasses.dataclass(frozen=True)
class Work:
    """A program to compile, by contender.

    Attributes:
      operator: its name.
      name: the work in words.
      functions: by contender, a function of one array.
      dtype: the array's type.
      gradient: whether we compile the gradient of a sum of squares.
      calls: the number of calls in the program, with arrays of different sizes.
    """

    operator: str
    name: str
    functions: dict[str, Function]
    dtype: str = "float32"
    gradient: bool = False
    calls: int = 1

    @property
    def direction(self) -> str:
        """The direction, as in the ledger of one device."""
        return "gradient" if self.gradient else "forward"

    @property
    def label(self) -> str:
        """The unique name, in the order of the ledger."""
        return f"{self.operator} {self.words} {self.direction} tracing"

    @property
    def words(self) -> str:
        """The work, the number of calls, and the type."""
        return f"{self.name}, {self.calls} of {self.dtype}"

    def milliseconds(self, contender: str) -> tuple[float, float]:
        """Times to lower, and to lower and compile, a function that is new to JAX."""
        one = self.functions[contender]

        def squares(*arrays: jax.Array) -> jax.Array:
            total: jax.Array = jnp.zeros((), jnp.float32)
            for x in arrays:
                total += (one(x) ** 2).sum()
            return total

        def run(*arrays: jax.Array) -> Any:
            if self.gradient:
                return jax.grad(squares, tuple(range(len(arrays))))(*arrays)
            return [one(x) for x in arrays]

        structs = [Struct((8, 64, 64 + i), self.dtype) for i in range(self.calls)]
        jax.clear_caches()
        gc.collect()  # otherwise the same contender would pay in every round
        start = time.perf_counter()
        lowered = jax.jit(run).lower(*structs)
        middle = time.perf_counter()
        lowered.compile()
        return (middle - start) * 1e3, (time.perf_counter() - start) * 1e3


def _select(select: Callable[..., jax.Array]) -> Function:
    return lambda x: select(x > 0, x, 0.0)


def _ours_hot(indices: jax.Array) -> jax.Array:
    return dmljax.one_hot(indices[..., None], ON, size=CLASSES)


def _ours_of_values(x: jax.Array) -> jax.Array:
    return dmljax.one_hot(LABELS[:, None], x[0, 0, :2], size=x.shape[-1])


def _theirs_of_values(x: jax.Array) -> jax.Array:
    hot = LABELS[:, None] == jnp.arange(x.shape[-1])
    return jnp.where(hot, x[0, 0, 1], x[0, 0, 0])


def _pad(pad: Callable[..., jax.Array], mode: str) -> Function:
    return lambda x: pad(x, AROUND, mode)


def _ours_nonzero(x: jax.Array, size: int | None = None) -> jax.Array:
    return dmljax.nonzero_coordinates(x, size=size).coordinates


PAIRS = (
    Work(
        "element_wise_if",
        "a scalar beside an array",
        {"dmljax": _select(dmljax.element_wise_if), "jnp": _select(jnp.where)},
    ),
    Work(
        "diagonal_matrix1",
        "causal mask",
        {"dmljax": causal, "jnp": causal_by_tril},
    ),
    Work(
        "one_hot",
        f"{CLASSES} classes",
        {"dmljax": _ours_hot, "jnp": lambda i: jax.nn.one_hot(i, CLASSES)},
        "int32",
    ),
    Work(
        "one_hot",
        "of values",
        {"dmljax": _ours_of_values, "jnp": _theirs_of_values},
    ),
    Work(
        "padding",
        "constant by 3",
        {"dmljax": _pad(dnp.pad, "constant"), "jnp": _pad(jnp.pad, "constant")},
    ),
    Work(
        "padding",
        "reflect by 3",
        {"dmljax": _pad(dnp.pad, "reflect"), "jnp": _pad(jnp.pad, "reflect")},
    ),
    Work(
        "nonzero_coordinates",
        "all rows",
        {
            "dmljax": _ours_nonzero,
            "jnp": lambda x: jnp.argwhere(x, size=x.size, fill_value=0),
        },
    ),
    Work(
        "nonzero_coordinates",
        f"{ROWS} rows",
        {
            "dmljax": lambda x: _ours_nonzero(x, ROWS),
            "jnp": lambda x: jnp.argwhere(x, size=ROWS, fill_value=0),
        },
    ),
)


def work() -> Iterator[Work]:
    """All work: every pair, once and many times, and the gradients."""
    for pair in PAIRS:
        differentiable = OPERATORS[pair.operator].primitive.linear
        for calls in (1, MANY):
            yield dataclasses.replace(pair, calls=calls)
            if differentiable and pair.dtype == "float32":
                yield dataclasses.replace(pair, calls=calls, gradient=True)


def lines(one: Work, rounds: int) -> list[ledger.Line]:
    """The rows of a piece of work, one for each contender."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in one.functions}
    start = time.perf_counter()
    for done in range(rounds):
        if done >= FEWEST and time.perf_counter() - start > MOST_SECONDS:
            break
        for name, found in times.items():
            found.append(one.milliseconds(name))
    rows = []
    for name, found in times.items():
        lower, both = zip(*found, strict=True)
        row = {
            "operator": one.operator,
            "name": one.words,
            "direction": one.direction,
            "context": "tracing",
            "dtype": one.dtype,
            "contender": name,
            "lower_ms": statistics.median(lower),
            "compile_ms": statistics.median(both),
        }
        rows.append(row)
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Times all work, and writes the figures to the ledger."""
    options = parsed(argv, "benchmarks.tracing", __doc__, "--rounds", "--device")
    chosen = named(work(), options.only, lambda one: one.label)
    ledger.ready(options.out)
    device = device_name(jax.devices()[0])
    run = circumstances(options, device, {"dmljax": ALL["dmljax"]})
    chosen[0].milliseconds("jnp")  # the compiler starts up
    for one in chosen:
        found = lines(one, options.rounds)
        ledger.write(run["device"], run, found, options.out)
        ours, theirs = found
        for column in ("lower_ms", "compile_ms"):
            pair = f"{ours[column]:.0f} / {theirs[column]:.0f}"
            ratio = ours[column] / theirs[column]
            print(f"{one.label}, {column} {pair}, {ratio:.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
