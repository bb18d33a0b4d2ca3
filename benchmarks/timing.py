"""Clocks: medians of what runs on a device, and the ceilings of its memory."""

import dataclasses
import tempfile
import time
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
    """Milliseconds for one call, and what it launches on a GPU.

    Attributes:
      median: of all calls.
      p20: the 20th percentile.
      p80: the 80th percentile.
      launches: kernels, copies and fills in one call; None on a CPU.
    """

    median: float
    p20: float
    p80: float
    launches: int | None = None


Calls = Mapping[str, Prepared]


def measure(calls: Calls, *, rounds: int, repeats: int) -> dict[str, Timing]:
    """Times all calls, once they are warm.

    On a CPU they take turns, round after round, so that noise hits them alike, and each
    is repeated in its turn. On a GPU its own clock times each run of each kernel.
    """
    for call in calls.values():
        call.wait(call.run())
    if jax.default_backend() == "cpu":
        return _on_cpu(calls, rounds, repeats)
    return {name: _on_gpu(name, call, rounds) for name, call in calls.items()}


def _in_turn(calls: Calls, rounds: int) -> Iterable[tuple[str, Prepared]]:
    """Each round starts with another: it matters whose traces are in the caches."""
    order = list(calls.items())
    for _ in range(rounds):
        order.append(order.pop(0))
        yield from list(order)


def _on_cpu(calls: Calls, rounds: int, repeats: int) -> dict[str, Timing]:
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for name, call in _in_turn(calls, rounds):
        call.wait(call.run())
        start = time.perf_counter()
        for _ in range(repeats):
            result = call.run()
        call.wait(result)
        samples[name].append((time.perf_counter() - start) / repeats * 1e3)
    return {name: timing(times) for name, times in samples.items()}


def _on_gpu(name: str, call: Prepared, rounds: int) -> Timing:
    """The device's clock: what one call launches, summed."""
    for _ in range(TRACES):
        times = _traced(call, rounds)
        if times and len(times) % rounds == 0:
            sums = np.reshape(times, (rounds, -1)).sum(1)
            return timing(sums, len(times) // rounds)
    raise RuntimeError(
        f"{name}: the trace has {len(times)} events on the GPU's streams for {rounds} "
        "calls; each call must have as many, and at least one."
    )


def _traced(call: Prepared, rounds: int) -> list[float]:
    """Milliseconds of each kernel, copy and fill of `rounds` calls, as they started."""

    def run() -> None:
        for _ in range(rounds):
            call.wait(call.run())

    return [time for times in traced_by_device(run) for time in times]


def traced_by_device(run: Callable[[], None]) -> list[list[float]]:
    """Milliseconds of what `run` launches on each GPU, in the order of their starts.

    The profiler sees all of the process, and so other libraries' as well as JAX's.
    """
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = options.host_tracer_level = 0
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            run()
        (path,) = Path(folder).rglob("*.xplane.pb")
        planes = list(jax.profiler.ProfileData.from_file(str(path)).planes)
    events = [
        sorted(
            (event.start_ns, event.duration_ns / 1e6)
            for line in plane.lines
            if line.name.startswith("Stream")
            for event in line.events
        )
        for plane in planes
        if plane.name.startswith("/device:GPU")
    ]
    return [[duration for _, duration in device] for device in events]


def timing(times: Any, launches: int | None = None) -> Timing:
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
    timings = measure(calls, rounds=rounds, repeats=1).values()
    return min(timing.median for timing in timings)


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
