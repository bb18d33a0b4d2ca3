"""Times ten programs on this machine, in dmljax and in jax.numpy.

    python -m benchmarks.compare

Each program of `benchmarks.programs.ten` runs inside `jit` in all its ways. These take
turns: whatever else the machine does then disturbs all of them alike.
"""

import os
import platform
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.programs.ten import PROGRAMS
from dmljax import __version__

# The elements of an array: more than the caches hold.
ON_CPU, ELSEWHERE = 2**22, 2**26
# For so long the ways of a program take turns, and for at least so many rounds.
SECONDS = 1.5
FEWEST = 4
# A GPU is faster than Python: so many calls are in flight, or what takes these seconds.
FLIGHT = 10
LONGEST = 0.05
# So many numbers are drawn and repeated: to draw all takes longer than the programs.
DRAWN = 99_991
COLUMNS = "{:38}{:>8}{:>10}{:>7}{:>6}  {}"


def lines(elements: int | None = None, seconds: float = SECONDS) -> Iterator[str]:
    """Yields what the machine is, and a line for each way of jax.numpy."""
    device = jax.devices()[0]
    on_cpu = device.platform == "cpu"
    cores = f"{platform.machine()} CPU, {os.cpu_count()} cores"
    yield f"{cores if on_cpu else device.device_kind}, {platform.system()}"
    yield f"dmljax {__version__}, jax {jax.__version__}, numpy {np.__version__}"
    yield "Median milliseconds of a call inside jit; ratio: theirs divided by ours;"
    yield "noise: how far the ratios of even and odd rounds are from one another.\n"
    yield COLUMNS.format("program", "dmljax", "jax.numpy", "ratio", "noise", "beside")
    elements = elements or (ON_CPU if on_cpu else ELSEWHERE)
    for name, program in PROGRAMS.items():
        # Networks use bfloat16, for which few CPUs have instructions.
        wide = on_cpu or program.operator == "nonzero_coordinates"
        inputs = program.inputs(elements, "float32" if wide else "bfloat16")
        chance = np.random.default_rng(0)
        arrays = [
            jnp.asarray(np.resize(chance.integers(high, size=DRAWN).astype(to), sizes))
            for sizes, to, high in inputs
        ]
        ways = {way: jax.jit(run) for way, run in program.spellings.items()}
        times = _in_turns(ways, arrays, seconds)
        ours = times.pop("dmljax")
        for way, theirs in times.items():
            ratio = np.median(theirs) / np.median(ours)
            even = np.median(theirs[::2]) / np.median(ours[::2])
            odd = np.median(theirs[1::2]) / np.median(ours[1::2])
            noise = max(even, odd) / min(even, odd) - 1
            figures = (_milliseconds(ours), _milliseconds(theirs), f"{ratio:.2f}")
            yield COLUMNS.format(name, *figures, f"{noise:.0%}", way)


def _milliseconds(times: Sequence[float]) -> str:
    """The median of seconds, with three digits."""
    median = 1e3 * np.median(times)
    return np.format_float_positional(median, 3, fractional=False, trim="-")


def _in_turns(
    ways: Mapping[str, Callable[..., Any]], arrays: Sequence[jax.Array], seconds: float
) -> dict[str, list[float]]:
    """The seconds of a call in each round, by way."""

    def time_calls(run: Callable[..., Any], count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            result = run(*arrays)
        jax.block_until_ready(result)
        return (time.perf_counter() - start) / count

    flights = {}
    for way, run in ways.items():
        time_calls(run, 1)  # compiles it
        flights[way] = min(int(LONGEST / time_calls(run, 1)) + 1, FLIGHT)
    times: dict[str, list[float]] = {way: [] for way in ways}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times["dmljax"]) < FEWEST:
        # The one before matters: the caches hold what it touched.
        for way in random.sample(list(ways), len(ways)):
            times[way].append(time_calls(ways[way], flights[way]))
    return times


def main() -> int:
    """Prints the table, line by line."""
    for line in lines():
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
