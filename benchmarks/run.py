"""Times every case beside other libraries, and writes the figures to the ledger.

    python -m benchmarks.run                       all cases, on the default device
    python -m benchmarks.run --only padding        the cases with this in their text
    python -m benchmarks.run --elements 1024       all arrays small: a quick test

We compare every result with NumPy's before we time it. The columns of a figure:

    ms            the device's milliseconds, by its own clock, and two percentiles
    wall_ms       the host's milliseconds for a call, and two percentiles
    share         of the speed of a copy or a fill, measured in the same run
    launches      how many kernels, copies and fills a call launches on a GPU
    compile_ms    from the function to the compiled program
    peak_mib      of memory: inputs, outputs and temporaries
"""

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import jax

from benchmarks import ledger
from benchmarks.case import FORMS, Case, Functions
from benchmarks.cases import cases
from benchmarks.command import circumstances, device_name, named, parsed
from benchmarks.forms import replaced
from benchmarks.libraries import Library, Prepared, available
from benchmarks.oracles import compare
from benchmarks.programs.program import CPU, GPU, SIZES
from benchmarks.timing import ceilings, device_times, has_clock, wall_times

# Of large arrays, by platform: 256 MiB of float32 on a GPU.
ELEMENTS = {"cpu": CPU, "gpu": GPU}
# Calls in flight between two looks at the host's clock: more for small arrays. A GPU
# needs several, so that it does not wait for the host.
SMALL_BYTES, SMALL_CALLS = 2**22, 20
LARGE_CALLS = {"cpu": 2, "gpu": 10}
LEGEND = """\
A line has a case, the clock (ms: the device's, wall_ms: the host's), the milliseconds
of each contender, and the share of the speed of a copy or a fill that dmljax reaches.
"""
# A call outside of jit is short, and its time varies most, so we time this many times
# as many rounds.
ROUNDS_OF_CALLS = 20


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the chosen cases."""
    own = "--elements", "--rounds", "--device"
    options = parsed(argv, "benchmarks.run", __doc__, *own)
    device = jax.devices()[0]
    elements = options.elements or ELEMENTS[device.platform]
    if elements not in SIZES:
        sys.exit(f"--elements {elements}: programs have shapes for {SIZES}")
    every = cases(device.platform, elements)
    chosen = named(every, options.only, lambda case: case.label)
    ledger.ready(options.out)
    libraries = available(device.platform)
    run = circumstances(options, device_name(device), libraries)
    bandwidths = ceilings(libraries, rounds=options.rounds)
    run |= {f"{kind}_gb_per_s": speed for kind, speed in bandwidths.items()}
    print(f"{run['device']}: {_shown(bandwidths)} GB/s\n{LEGEND}", file=sys.stderr)
    failed = 0
    for case in chosen:
        lines: list[ledger.Line] = []
        while not lines and case.functions:
            try:
                lines = time_case(case, libraries, bandwidths, options.rounds)
            except ContenderError as error:
                # We go on: a run takes long, and the figures of the others are right.
                print(error, file=sys.stderr, flush=True)
                failed += 1
                case = dataclasses.replace(
                    case, functions=_without(case.functions, error.contender)
                )
        ledger.write(run["device"], run, lines, options.out)
        for clock in ("ms", "wall_ms"):
            times = {x["contender"]: x[clock] for x in lines if x[clock] is not None}
            if times:
                share_ = f"share {lines[0]['share']}"
                print(f"{case.label}, {clock}: {_shown(times)}, {share_}", flush=True)
    return min(failed, 1)


class ContenderError(RuntimeError):
    """A contender raised an error or returned a wrong result."""

    def __init__(self, contender: str, message: str) -> None:
        super().__init__(message)
        self.contender = contender


def _without(functions: Functions, contender: str) -> Functions:
    return {name: one for name, one in functions.items() if name != contender}


def _shown(numbers: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {number:.4g}" for name, number in numbers.items())


def time_case(
    case: Case,
    libraries: Mapping[str, Library],
    bandwidths: Mapping[str, float],
    rounds: int,
) -> list[ledger.Line]:
    """The rows of a case, one for each contender, after all are checked."""
    calls = checked(case, libraries)
    outside = case.context == "call"
    small = case.bytes < SMALL_BYTES
    wall = wall_times(
        calls,
        rounds=rounds * (ROUNDS_OF_CALLS if outside else 1),
        repeats=SMALL_CALLS if small else LARGE_CALLS[jax.default_backend()],
    )
    on_device = {}
    if has_clock() and case.context not in ("call", "program"):
        on_device = device_times(calls, rounds=rounds)
    lines = []
    for name, call in calls.items():
        _library(name, libraries).release()
        own = on_device.get(name)
        peak = call.peak_bytes
        lines.append(
            {column: getattr(case, column) for column in ledger.CASE}
            | {"contender": name}
            | (own.columns("ms") if own else {"ms": None})
            | wall[name].columns("wall_ms")
            | {
                "share": share(case, bandwidths, (own or wall[name]).median),
                "launches": own and own.launches,
                "compile_ms": call.compile_ms,
                "peak_mib": None if peak is None else peak / 2**20,
            }
        )
    return lines


def _library(contender: str, libraries: Mapping[str, Library]) -> Library:
    return libraries[contender.split()[0]]


def share(case: Case, bandwidths: Mapping[str, float], ms: float) -> float | None:
    """The time to move the fewest bytes, over this time; None for a program."""
    if case.ceiling is None:
        return None
    return round(case.bytes / bandwidths[case.ceiling] / 1e6 / ms, 3)


def checked(case: Case, libraries: Mapping[str, Library]) -> dict[str, Prepared]:
    """The calls of all contenders. We have compared their results with the oracle."""
    arrays = case.arrays()
    samples = case.oracle(*arrays)
    put: dict[Library, list[Any]] = {}
    calls = {}
    for name, function in case.functions.items():
        # A CPU has no kernels.
        compared = name not in FORMS or jax.default_backend() == "gpu"
        if not compared or name.split()[0] not in libraries:
            continue
        library = _library(name, libraries)
        if library not in put:
            put[library] = [library.put(array) for array in arrays]
        inside = case.context != "call"
        try:
            with replaced(name):
                call = library.prepare(function, put[library], jit=inside)
            library.before_check(call.run())
            outputs = jax.tree.leaves(call.run())
            if not name.startswith("reference"):
                ours = name.startswith("dmljax")
                compare(samples, outputs, library.take, typed=ours)
        except AssertionError as error:
            message = f"{name} is wrong in {case.label}: {error}"
            raise ContenderError(name, message) from error
        except Exception as error:
            message = f"{name} fails in {case.label}: {type(error).__name__}: {error}"
            raise ContenderError(name, message) from error
        calls[name] = call
    return calls


if __name__ == "__main__":
    sys.exit(main())
