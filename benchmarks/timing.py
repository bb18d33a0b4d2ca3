"""Clocks: the times of calls, and the speed of a device's memory."""

import random
import time
from collections.abc import Iterable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.libraries import Library, Prepared

# Bytes of the array that we copy: far more than the caches hold.
COPIED_BYTES = {"cpu": 2**27, "gpu": 2**29}
# For a slow contender: the seconds of its calls in flight, and the seconds after which
# it makes no more rounds, once it has made FEWEST.
FLIGHT_SECONDS, MOST_SECONDS, FEWEST = 0.1, 0.5, 3


def columns(name: str, times: Sequence[float]) -> dict[str, float]:
    """The median of all rounds and two percentiles, as columns of the ledger."""
    p20, median, p80 = map(float, np.percentile(times, (20, 50, 80)))
    return {name: median, f"{name}_p20": p20, f"{name}_p80": p80}


Calls = Mapping[str, Prepared]


def wall_times(calls: Calls, *, rounds: int, repeats: int) -> dict[str, list[float]]:
    """The host's milliseconds for each call, by rounds, of calls in flight.

    A contender makes `repeats` calls, or fewer if they are slow, and waits for the last
    result. Contenders take turns, round after round: noise hits them alike.
    """
    samples: dict[str, list[float]] = {name: [] for name in calls}
    flights, spent = dict.fromkeys(calls, 1), dict.fromkeys(calls, 0.0)
    for name, call in calls.items():
        seconds = _seconds(call, 1)
        flights[name] = max(min(repeats, int(FLIGHT_SECONDS / seconds)), 1)
    for name, call in _in_turn(calls, rounds):
        if spent[name] < MOST_SECONDS or len(samples[name]) < FEWEST:
            call.wait(call.run())
            seconds = _seconds(call, flights[name])
            samples[name].append(seconds / flights[name] * 1e3)
            spent[name] += seconds
    return samples


def _seconds(call: Prepared, repeats: int) -> float:
    """The seconds that `repeats` calls take together."""
    start = time.perf_counter()
    for _ in range(repeats):
        result = call.run()
    call.wait(result)
    return time.perf_counter() - start


def _in_turn(calls: Calls, rounds: int) -> Iterable[tuple[str, Prepared]]:
    """Yields the calls; each round has a new order, the same in every run.

    The contender before another one matters: the caches hold the arrays that it
    touched. On a CPU, the next contender gets the memory that it freed, or else new
    pages, which are slow.
    """
    order = list(calls.items())
    chance = random.Random(0)
    for _ in range(rounds):
        chance.shuffle(order)
        yield from order


def copy_speed(library: Library, *, rounds: int) -> float:
    """GB/s of a copy, read and written."""
    size = COPIED_BYTES[jax.default_backend()]
    call = library.prepare(jnp.negative, [library.put(np.ones(size // 4, np.float32))])
    timed = wall_times({"copy": call}, rounds=rounds, repeats=10)
    return 2 * size / 1e6 / float(np.median(timed["copy"]))
