"""Times every case beside jax.numpy and NumPy and appends the figures to the ledger.

    python -m benchmarks.run                       all cases, on the default device
    python -m benchmarks.run --only padding        the cases whose text has this in it
    python -m benchmarks.run --elements 1024       small arrays: what a launch costs

A line of the ledger is one figure: case, contender, device, versions, commit, bytes,
milliseconds (median, p20, p80) and the share of the copy bandwidth that was measured in
the same run. Every contender's result is compared with ours before it is timed.
"""

import argparse
import functools
import json
import pathlib
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

import dmljax
from benchmarks.cases import Case, cases
from benchmarks.timing import copy_bandwidth, measure

RESULTS = pathlib.Path(__file__).with_name("results")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the cases that were asked for."""
    parser = argparse.ArgumentParser(prog="benchmarks.run", description=__doc__)
    parser.add_argument("--elements", type=int, default=2**22, help="of an array")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="text in a case's name")
    parser.add_argument("--commit", help="of the sources, where git can't tell")
    parser.add_argument("--out", type=pathlib.Path, help="the ledger to append to")
    options = parser.parse_args(argv)
    device = jax.devices()[0]
    bandwidth = copy_bandwidth(device, rounds=options.rounds)
    run = _circumstances(device) | {"copy_gb_per_s": round(bandwidth, 1)}
    run["commit"] = options.commit or _commit()
    print(f"{run['device']}: copy {bandwidth:.0f} GB/s", file=sys.stderr)
    out = options.out or RESULTS / f"{_file_name(run['device'])}.jsonl"
    out.parent.mkdir(exist_ok=True)
    with out.open("a") as ledger:
        for case in cases(options.elements):
            text = f"{case.operator} {case.name} {case.direction}"
            if options.only not in text:
                continue
            for line in _time(case, device, bandwidth, options.rounds):
                ledger.write(json.dumps(run | line) + "\n")
    return 0


def _time(
    case: Case, device: jax.Device, bandwidth: float, rounds: int
) -> list[dict[str, Any]]:
    """The ledger lines of one case, one a contender."""
    arrays = jax.device_put(list(case.arrays), device)
    functions: dict[str, Callable[[], Any]] = {}
    contenders = {"dmljax": case.dmljax, "jnp": case.jnp}
    if device.platform == "gpu":  # elsewhere a kernel is interpreted
        contenders["dmljax, pallas"] = case.pallas
    for name, function in contenders.items():
        if function is not None:
            call = jax.jit(function) if case.compiled else function
            functions[name] = functools.partial(call, *arrays)
    if case.numpy is not None and device.platform == "cpu":
        functions["numpy"] = functools.partial(case.numpy, *case.arrays)
    _compare(case, {name: function() for name, function in functions.items()})
    small = case.bytes < 2**22
    timings = measure(functions, rounds=rounds, calls=20 if small else 2)
    lines: list[dict[str, Any]] = []
    for name, timing in timings.items():
        share = case.bytes / bandwidth / 1e6 / timing.median
        lines.append(
            {
                "operator": case.operator,
                "case": case.name,
                "direction": case.direction,
                "contender": name,
                "bytes": case.bytes,
                "ms": round(timing.median, 6),
                "ms_p20": round(timing.p20, 6),
                "ms_p80": round(timing.p80, 6),
                "share": round(share, 3),
                "launches": timing.launches,
            }
        )
    row = "  ".join(f"{line['contender']} {line['ms']:.3f} ms" for line in lines)
    share = lines[0]["share"]
    print(f"{case.operator} {case.direction} {case.name}: {row}  share {share:.2f}")
    return lines


def _compare(case: Case, results: dict[str, Any]) -> None:
    """Requires that all contenders computed the same."""
    ours = results.pop("dmljax")
    for name, result in results.items():
        if isinstance(ours, dmljax.NonzeroCoordinates):
            count = int(ours.count)
            rows = getattr(result, "coordinates", result)
            mine, other = ours.coordinates[:count], np.asarray(rows)[:count]
        else:
            mine, other = ours, result
        np.testing.assert_allclose(
            np.asarray(mine, np.float64),
            np.asarray(other, np.float64),
            rtol=1e-3 if case.direction == "gradient" else 0,
            err_msg=f"{case.operator}, {case.name}: {name} disagrees",
        )


def _circumstances(device: jax.Device) -> dict[str, Any]:
    """What a figure depends on besides the case."""
    name = device.device_kind
    if device.platform == "cpu":
        name = f"{platform.machine()} CPU"
    return {
        "device": name,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "numpy": np.__version__,
        "dmljax": dmljax.__version__,
    }


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def _file_name(device: str) -> str:
    return device.lower().replace(" ", "-")


if __name__ == "__main__":
    sys.exit(main())
