"""Clocks: medians of what runs on a device, and the ceilings of its memory."""

import dataclasses
import itertools
import random
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.libraries import Library, Prepared
from benchmarks.others import module, torch_device

# Of the arrays that are copied and filled: far more than the caches hold.
CEILING_BYTES = {"cpu": 2**27, "gpu": 2**29}
# A trace now and then has an event more than the calls made.
TRACES = 3


@dataclasses.dataclass(frozen=True)
class Timing:
    """Milliseconds for one call.

    Attributes:
      median: of all calls.
      p20: the 20th percentile.
      p80: the 80th percentile.
      launches: kernels, copies and fills in one call on a GPU, whose own clock measured
        them; None if the host's clock measured.
    """

    median: float
    p20: float
    p80: float
    launches: int | None = None


Calls = Mapping[str, Prepared]
Timings = dict[str, Timing]


def measure(calls: Calls, *, rounds: int, repeats: int) -> tuple[Timings, Timings]:
    """Returns the time that the device works, and the wall time, for each call.

    The wall time is that of calls in flight: a contender makes `repeats` calls, and the
    last result is waited for. Contenders take turns, round after round, so that noise
    hits them alike. A CPU has no clock of its own, so there both times are the same.
    """
    for call in calls.values():
        call.wait(call.run())
    wall = _wall(calls, rounds, repeats)
    if jax.default_backend() == "cpu":
        return wall, wall
    return _on_gpu(calls, rounds), wall


def _in_turn(calls: Calls, rounds: int) -> Iterable[tuple[str, Prepared]]:
    """Each round has an order of its own, the same in every run.

    The contender before another one matters. The caches hold what it touched. On a CPU,
    the next one gets the memory that it freed, or else new pages, which are slow.
    """
    order, chance = list(calls.items()), random.Random(0)
    for _ in range(rounds):
        chance.shuffle(order)
        yield from order


def _wall(calls: Calls, rounds: int, repeats: int) -> Timings:
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for name, call in _in_turn(calls, rounds):
        call.wait(call.run())
        start = time.perf_counter()
        for _ in range(repeats):
            result = call.run()
        call.wait(result)
        samples[name].append((time.perf_counter() - start) / repeats * 1e3)
    return {name: timing(times) for name, times in samples.items()}


def _on_gpu(calls: Calls, rounds: int) -> Timings:
    """The device's clock: what one call launches, summed."""
    for _ in range(TRACES):
        found = dict(zip(calls, _traced(calls, rounds), strict=True))
        if all(times and len(times) % rounds == 0 for times in found.values()):
            return {
                name: timing(
                    np.reshape(times, (rounds, -1)).sum(1), len(times) // rounds
                )
                for name, times in found.items()
            }
    counts = {name: len(times) for name, times in found.items()}
    raise RuntimeError(
        f"the traces of {rounds} calls have these numbers of events on the GPU's "
        f"streams: {counts}; each call must have as many, and at least one."
    )


def _traced(calls: Calls, rounds: int) -> list[list[float]]:
    """Milliseconds of each kernel, copy and fill of all calls, in a list for each.

    To start and to read a trace takes longer than the calls, so there is one trace for
    all, in which a program that does nothing else stands before each contender.
    """
    marker = jax.jit(before_a_contender)
    one = jnp.ones(1, jnp.int32)
    jax.block_until_ready(marker(one))

    def run() -> None:
        for call in calls.values():
            jax.block_until_ready(marker(one))
            for _ in range(rounds):
                call.wait(call.run())

    # With several GPUs, a library's first one need not be the first one of the trace.
    # Only one call runs at a time, so the events of all GPUs have one order.
    events = itertools.chain.from_iterable(traced_by_device(run))
    found: list[list[float]] = []
    for event in sorted(events, key=lambda event: event.start):
        if event.of_marker:
            found.append([])
        else:
            found[-1].append(event.ms)
    return found


def before_a_contender(x: jax.Array) -> jax.Array:
    """The marker in a trace, which is found by the name of this function."""
    return x + 1


@dataclasses.dataclass(frozen=True)
class Event:
    """A kernel, copy or fill on a GPU.

    Attributes:
      start: its time in nanoseconds.
      ms: how long it takes.
      of_marker: whether it is the marker's.
    """

    start: float
    ms: float
    of_marker: bool


def traced_by_device(run: Callable[[], None]) -> list[list[Event]]:
    """Returns what `run` launches on each GPU, in the order of the starts.

    The profiler sees all of the process, and so other libraries' as well as JAX's.
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
    # Python 3.12 warns of the types of the profiler, which name no module. Where
    # warnings are errors, as in the tests, the profiler then ends the process.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "builtin type", DeprecationWarning)
        found = [
            Event(event.start_ns, event.duration_ns / 1e6, _of_marker(event))
            for line in plane.lines
            if line.name.startswith("Stream")
            for event in line.events
        ]
    return sorted(found, key=lambda event: event.start)


def _of_marker(event: Any) -> bool:
    name = before_a_contender.__name__
    return any(name in str(value) for _, value in event.stats)


def timing(times: Any, launches: int | None = None) -> Timing:
    """The median and two percentiles of some times."""
    median, p20, p80 = map(float, np.percentile(times, (50, 20, 80)))
    return Timing(median, p20, p80, launches)


def ceilings(libraries: Mapping[str, Library], *, rounds: int) -> dict[str, float]:
    """GB/s of the fastest copy (read and written) and of the fastest fill (written)."""
    size = CEILING_BYTES[jax.default_backend()]
    ways = _jax_ways(size // 4, libraries["jnp"])
    if "torch" in libraries:
        ways = _joined(ways, _torch_ways(size // 4, libraries["torch"]))
    if "numpy" in libraries:
        ways = _joined(ways, _numpy_ways(size // 4, libraries["numpy"]))
    moved = {"copy": 2 * size, "fill": size}
    return {
        kind: moved[kind] / 1e6 / _fastest(calls, rounds)
        for kind, calls in ways.items()
    }


def _fastest(calls: Calls, rounds: int) -> float:
    on_device, _ = measure(calls, rounds=rounds, repeats=1)
    return min(timing.median for timing in on_device.values())


Ways = dict[str, dict[str, Prepared]]


def _joined(first: Ways, second: Ways) -> Ways:
    return {kind: calls | second[kind] for kind, calls in first.items()}


def _prepared(library: Library, function: Callable[..., Any], *arrays: Any) -> Prepared:
    return library.prepare(function, arrays, None)


def _jax_ways(elements: int, library: Library) -> Ways:
    source = library.put(np.ones(elements, np.float32))
    one = library.put(np.array(1, np.float32))
    return {
        "copy": {
            "negate": _prepared(library, jnp.negative, source),
            "copy": Prepared(lambda: jnp.copy(source), library.wait),
        },
        "fill": {"full": _prepared(library, lambda x: jnp.full(elements, x), one)},
    }


def _torch_ways(elements: int, library: Library) -> Ways:
    torch = module("torch")
    source = torch.ones(elements, device=torch_device())
    target = torch.ones_like(source)
    return {
        "copy": {"copy_": _prepared(library, target.copy_, source)},
        "fill": {"fill_": _prepared(library, lambda: target.fill_(2))},
    }


def _numpy_ways(elements: int, library: Library) -> Ways:
    source, target = np.ones(elements, np.float32), np.ones(elements, np.float32)
    return {
        "copy": {"copyto": _prepared(library, np.copyto, target, source)},
        "fill": {"fill": _prepared(library, target.fill, np.float32(2))},
    }
