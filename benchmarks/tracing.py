"""Times the cost of a program before it runs: tracing, lowering and compiling.

    python -m benchmarks.tracing

Each program of `PROGRAMS` stands beside its spelling in jax.numpy, on small arrays.
They take turns, and each time all caches are empty. A line has the milliseconds of
dmljax to trace and to lower, and to compile as well, and how they compare.
"""

import functools
import gc
import time
from typing import Any

import jax
import numpy as np

from benchmarks.programs import PROGRAMS
from benchmarks.programs.program import QUICK, cases_of

ROUNDS = 5


def milliseconds(function: Any, structs: Any) -> tuple[float, float]:
    """Times to lower, and to lower and compile, a function that is new to JAX."""
    jax.clear_caches()
    gc.collect()  # otherwise the same contender would pay in every round
    start = time.perf_counter()
    lowered = jax.jit(functools.partial(function)).lower(*structs)
    middle = time.perf_counter()
    lowered.compile()
    return (middle - start) * 1e3, (time.perf_counter() - start) * 1e3


def main() -> None:
    """Prints a line for each program."""
    for name, program in PROGRAMS.items():
        for case in cases_of(jax.default_backend(), name, program, QUICK):
            jnp = next(n for n in case.functions if n.startswith("jnp"))
            pair = case.functions["dmljax"], case.functions[jnp]
            rounds = [
                [milliseconds(function, case.structs) for function in pair]
                for _ in range(ROUNDS + 1)
            ]
            # The compiler starts up in the first round.
            ours, theirs = np.median(rounds[1:], axis=0)
            lower, both = ours / theirs
            print(
                f"{case.label}: {ours[0]:.0f} ms, {lower:.2f} of {jnp}'s time; "
                f"{ours[1]:.0f} ms, {both:.2f}"
            )


if __name__ == "__main__":
    main()
