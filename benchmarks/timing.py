"""Clocks: the times of calls, and the speed of a device's memory."""

import dataclasses
import itertools
import random
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.libraries import Library, Prepared

# Bytes of the arrays that we copy and fill: far more than the caches hold.
CEILING_BYTES = {"cpu": 2**27, "gpu": 2**29}
# For a slow contender: the seconds of its calls in flight, and the seconds after which
# it makes no more rounds, once it has made FEWEST.
FLIGHT_SECONDS, MOST_SECONDS, FEWEST = 0.1, 1.0, 3
# Now and then a trace has an event more than the calls made. We take another trace.
TRACES = 3


@dataclasses.dataclass(frozen=True)
class Timing:
    """Milliseconds of a call, one number for each round.

    Attributes:
      times: one for each round.
      launches: kernels, copies and fills in one call on a GPU. The GPU's own clock
        measured them. None if the host's clock measured.
    """

    times: tuple[float, ...]
    launches: int | None = None

    @property
    def median(self) -> float:
        """The median of all rounds."""
        return float(np.median(self.times))

    def columns(self, name: str) -> dict[str, float]:
        """The median and two percentiles, as columns of the ledger."""
        p20, p80 = map(float, np.percentile(self.times, (20, 80)))
        return {name: self.median, f"{name}_p20": p20, f"{name}_p80": p80}


Calls = Mapping[str, Prepared]
Timings = dict[str, Timing]


def has_clock() -> bool:
    """Whether the device has a clock of its own. A CPU has only the host's clock."""
    return jax.default_backend() != "cpu"


def wall_times(calls: Calls, *, rounds: int, repeats: int) -> Timings:
    """The host's time for each call, of calls in flight.

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
    return {name: Timing(tuple(times)) for name, times in samples.items()}


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


def device_times(calls: Calls, *, rounds: int) -> Timings:
    """The device's time for each call: the sum over its launches."""
    for call in calls.values():
        call.wait(call.run())
    for _ in range(TRACES):
        found = dict(zip(calls, _traced(calls, rounds), strict=True))
        if all(times and len(times) % rounds == 0 for times in found.values()):
            return {name: in_rounds(times, rounds) for name, times in found.items()}
    counts = {name: len(times) for name, times in found.items()}
    raise RuntimeError(
        f"the traces of {rounds} calls have these numbers of events on the GPU's "
        f"streams: {counts}; each call must have as many, and at least one."
    )


def in_rounds(times: Sequence[float], rounds: int) -> Timing:
    """The times of calls, from the times of all their launches."""
    launches = len(times) // rounds
    sums = np.reshape(times, (rounds, launches)).sum(1)
    return Timing(tuple(sums.tolist()), launches)


def _traced(calls: Calls, rounds: int) -> list[list[float]]:
    """For each contender, the milliseconds of all its kernels, copies and fills.

    A trace takes longer to start and to read than the calls, so we make one trace for
    all. A marker stands before each contender: a program that launches nothing else.
    """
    marker = jax.jit(before_a_contender)
    one = jnp.ones(1, jnp.int32)
    jax.block_until_ready(marker(one))

    def run() -> None:
        for call in calls.values():
            jax.block_until_ready(marker(one))
            for _ in range(rounds):
                call.wait(call.run())

    # With several GPUs, a library's first GPU need not be the trace's first. Only one
    # call runs at a time, so the events of all GPUs have one order.
    events = itertools.chain.from_iterable(traced_by_device(run))
    found: list[list[float]] = []
    for event in sorted(events, key=lambda event: event.start):
        if event.of_marker:
            found.append([])
        else:
            found[-1].append(event.ms)
    return found


def before_a_contender(x: jax.Array) -> jax.Array:
    """The marker in a trace. We find it by this function's name."""
    return x + 1


@dataclasses.dataclass(frozen=True)
class Event:
    """A kernel, copy or fill on a GPU.

    Attributes:
      start: its time in nanoseconds.
      ms: its duration in milliseconds.
      of_marker: whether it belongs to the marker.
    """

    start: float
    ms: float
    of_marker: bool


def traced_by_device(run: Callable[[], None]) -> list[list[Event]]:
    """Returns the launches of `run` on each GPU, in the order of their starts.

    The profiler sees the whole process: other libraries' launches as well as JAX's.
    """
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = options.host_tracer_level = 0
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            run()
        (path,) = Path(folder).rglob("*.xplane.pb")
        planes = list(jax.profiler.ProfileData.from_file(str(path)).planes)
    return [_events(plane) for plane in planes if plane.name.startswith("/device:GPU")]


def _events(plane: Any) -> list[Event]:
    """The events of one device, in the order of their starts."""
    marker = before_a_contender.__name__
    # Python 3.12 warns of the profiler's types, because they name no module. Where
    # warnings are errors, as in the tests, the profiler ends the process.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "builtin type", DeprecationWarning)
        found = [
            Event(
                event.start_ns,
                event.duration_ns / 1e6,
                any(marker in str(value) for _, value in event.stats),
            )
            for line in plane.lines
            if line.name.startswith("Stream")
            for event in line.events
        ]
    return sorted(found, key=lambda event: event.start)


def ceilings(libraries: Mapping[str, Library], *, rounds: int) -> dict[str, float]:
    """GB/s of the fastest copy (read and written) and of the fastest fill (written)."""
    size = CEILING_BYTES[jax.default_backend()]
    ones = np.ones(size // 4, np.float32)
    library = libraries["jnp"]
    source = library.put(ones)
    one = library.put(np.array(1, np.float32))
    copies = {
        "negate": library.prepare(jnp.negative, [source]),
        "copy": Prepared(lambda: jnp.copy(source), library.wait),
    }
    fills = {"full": library.prepare(lambda x: jnp.full(ones.size, x), [one])}
    if "torch" in libraries:
        torch = libraries["torch"]
        target = torch.put(ones.copy())
        copies["copy_"] = torch.prepare(target.copy_, [torch.put(ones)])
        fills["fill_"] = torch.prepare(target.fill_, [2])
    if "numpy" in libraries:
        numpy = libraries["numpy"]
        array = ones.copy()
        copies["copyto"] = numpy.prepare(np.copyto, [array, ones])
        fills["fill"] = numpy.prepare(array.fill, [np.float32(2)])
    moved = {"copy": 2 * size, "fill": size}
    return {
        kind: moved[kind] / 1e6 / _fastest(calls, rounds)
        for kind, calls in (("copy", copies), ("fill", fills))
    }


def _fastest(calls: Calls, rounds: int) -> float:
    timings = (
        device_times(calls, rounds=rounds)
        if has_clock()
        else wall_times(calls, rounds=rounds, repeats=1)
    )
    return min(timing.median for timing in timings.values())
