"""Clocks: interleaved medians of what runs on a device, and its copy bandwidth."""

import collections
import dataclasses
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

COPY_BYTES = 2**28
Functions = Mapping[str, Callable[[], Any]]


@dataclasses.dataclass(frozen=True)
class Timing:
    """Milliseconds for one call, and the kernels that it launches on a GPU.

    Attributes:
      median: of all calls.
      p20: the 20th percentile.
      p80: the 80th percentile.
      launches: kernels in one call; None on a CPU.
    """

    median: float
    p20: float
    p80: float
    launches: int | None = None


def measure(functions: Functions, *, rounds: int, calls: int) -> dict[str, Timing]:
    """Times all functions in turn, round after round, so that noise hits them alike.

    Each round starts with another function, as it matters whose traces are in the
    caches. On a CPU a function is called once before it is timed, and then `calls`
    times; a GPU's own clock times each kernel.
    """
    for function in functions.values():
        jax.block_until_ready(function())
    clock = _on_cpu if jax.default_backend() == "cpu" else _on_gpu
    return clock(functions, rounds, calls)


def _in_turn(functions: Functions, rounds: int) -> Iterable[tuple[str, Any]]:
    order = list(functions.items())
    for _ in range(rounds):
        order.append(order.pop(0))
        yield from list(order)


def _on_cpu(functions: Functions, rounds: int, calls: int) -> dict[str, Timing]:
    samples: dict[str, list[float]] = {name: [] for name in functions}
    for name, function in _in_turn(functions, rounds):
        jax.block_until_ready(function())
        start = time.perf_counter()
        for _ in range(calls):
            result = function()
        jax.block_until_ready(result)
        samples[name].append((time.perf_counter() - start) / calls * 1e3)
    return {name: _timing(_percentiles(times)) for name, times in samples.items()}


def _on_gpu(functions: Functions, rounds: int, calls: int) -> dict[str, Timing]:
    """The device's clock: a call's kernels, each timed by the profiler."""
    timings = {}
    for name, function in functions.items():
        with tempfile.TemporaryDirectory() as folder:
            with jax.profiler.trace(folder):
                for _ in range(rounds * calls):
                    jax.block_until_ready(function())
            kernels = _kernels(folder)
        count = rounds * calls
        # A kernel that runs several times in a call counts as often.
        parts = [len(t) / count * _percentiles(t) for t in kernels.values()]
        launches = round(sum(map(len, kernels.values())) / count)
        timings[name] = _timing(np.sum(parts, axis=0), launches)
    return timings


def _kernels(folder: str) -> dict[str, list[float]]:
    """Milliseconds of every run of every kernel in a trace, by the kernel's name."""
    kernels = collections.defaultdict(list)
    (path,) = Path(folder).rglob("*.xplane.pb")
    for plane in jax.profiler.ProfileData.from_file(str(path)).planes:
        if not plane.name.startswith("/device:GPU"):
            continue
        for line in plane.lines:
            if line.name.startswith("Stream"):
                for event in line.events:
                    kernels[event.name].append(event.duration_ns / 1e6)
    return kernels


def _percentiles(times: list[float]) -> np.ndarray:
    return np.percentile(times, (50, 20, 80))


def _timing(percentiles: np.ndarray, launches: int | None = None) -> Timing:
    median, p20, p80 = map(float, percentiles)
    return Timing(median, p20, p80, launches)


def copy_bandwidth(device: jax.Device, *, rounds: int) -> float:
    """GB/s, read and written, of the fastest copy of a large array on `device`."""
    source = np.random.default_rng(0).integers(0, 256, COPY_BYTES // 2, np.uint8)
    on_device = jax.device_put(source.view(np.float32), device)
    negate = jax.jit(jnp.negative)
    copies: dict[str, Callable[[], Any]] = {
        "negate": lambda: negate(on_device),
        "copy": lambda: jnp.copy(on_device),
    }
    if device.platform == "cpu":
        target = np.empty_like(source)
        copies["numpy"] = lambda: np.copyto(target, source)
    timings = measure(copies, rounds=rounds, calls=1)
    return COPY_BYTES / min(t.median for t in timings.values()) / 1e6
