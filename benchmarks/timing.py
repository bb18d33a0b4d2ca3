"""Clocks: interleaved medians of what runs on a device, and its copy bandwidth."""

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

COPY_BYTES = 2**28


@dataclasses.dataclass(frozen=True)
class Timing:
    """Milliseconds for one call: the median, and the 20th and 80th percentiles."""

    median: float
    p20: float
    p80: float


def measure(
    functions: Mapping[str, Callable[[], Any]], *, rounds: int, calls: int
) -> dict[str, Timing]:
    """Times all functions in turn, round after round, so that noise hits them alike.

    Each round starts with another function, as it matters whose traces are in the
    caches, and calls each once before it times it. It then makes `calls` calls of a
    function back to back and waits for the last, so that on an accelerator the time of
    the launches overlaps with that of the work.
    """
    samples: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        jax.block_until_ready(function())
    order = list(functions.items())
    for _ in range(rounds):
        order.append(order.pop(0))
        for name, function in order:
            jax.block_until_ready(function())
            start = time.perf_counter()
            for _ in range(calls):
                result = function()
            jax.block_until_ready(result)
            samples[name].append((time.perf_counter() - start) / calls * 1e3)
    return {
        name: Timing(*(float(np.percentile(times, p)) for p in (50, 20, 80)))
        for name, times in samples.items()
    }


def copy_bandwidth(device: jax.Device, *, rounds: int) -> float:
    """GB/s, read and written, of the fastest copy of a large array on `device`."""
    source = np.random.default_rng(0).integers(0, 256, COPY_BYTES // 2, np.uint8)
    on_device = jax.device_put(source.view(np.float32), device)
    copies: dict[str, Callable[[], Any]] = {"xla": lambda: negate(on_device)}
    negate = jax.jit(jnp.negative)
    if device.platform == "cpu":
        target = np.empty_like(source)
        copies["numpy"] = lambda: np.copyto(target, source)
    timings = measure(copies, rounds=rounds, calls=1 if len(copies) == 2 else 10)
    return COPY_BYTES / min(t.median for t in timings.values()) / 1e6
