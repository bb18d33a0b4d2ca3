"""Times every case beside other libraries, and writes the figures to the ledger.

    python -m benchmarks.run                       all cases, on the default device
    python -m benchmarks.run --only padding        the cases with this in their text
    python -m benchmarks.run --elements 262144     all arrays small: a quick test

We compare some elements of all results before we time them. The columns of a figure:

    wall_ms       the host's milliseconds for a call, and two percentiles
    share         of the speed of a copy, measured in the same run
    compile_ms    from the function to the compiled program
    peak_mib      of memory: inputs, outputs and temporaries
"""

import dataclasses
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from benchmarks import ledger
from benchmarks.case import WITHOUT_KERNEL, Case
from benchmarks.cases import cases
from benchmarks.command import circumstances, device_name, named, parsed
from benchmarks.forms import replaced
from benchmarks.libraries import Library, Prepared, available
from benchmarks.programs.program import CPU, GPU, SIZES
from benchmarks.timing import copy_speed, wall_times

# Of large arrays, by platform: 256 MiB of float32 on a GPU.
ELEMENTS = {"cpu": CPU, "gpu": GPU}
# Calls in flight between two looks at the host's clock: more for small arrays. A GPU
# needs several, so that it does not wait for the host.
SMALL_BYTES, SMALL_CALLS = 2**22, 20
LARGE_CALLS = {"cpu": 2, "gpu": 10}
LEGEND = """\
A line has a case, the milliseconds of each contender by the host's clock, and the share
of the speed of a copy that dmljax reaches.
"""
# A call outside of jit is short, and its time varies most, so we time this many times
# as many rounds.
ROUNDS_OF_CALLS = 20
# We compare about this many elements of a result, and all of a smaller result.
COMPARED = 2**16


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the chosen cases."""
    own = "--elements", "--rounds", "--device", "--without"
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
    speed = run["copy_gb_per_s"] = copy_speed(libraries["jnp"], rounds=options.rounds)
    print(f"{run['device']}: a copy has {speed:.4g} GB/s\n{LEGEND}", file=sys.stderr)
    failed = 0
    for case in chosen:
        functions = {n: f for n, f in case.functions.items() if n != options.without}
        case = dataclasses.replace(case, functions=functions)
        lines, errors = time_case(case, libraries, options.rounds, speed)
        # We go on: a run takes long, and the figures of the others are right.
        failed += len(errors)
        print(*errors, sep="", end="", file=sys.stderr, flush=True)
        ledger.write(run["device"], run, lines, options.out)
        times = {line["contender"]: line["wall_ms"] for line in lines}
        share_ = lines[0]["share"] if lines else None
        print(f"{case.label}: {_shown(times)}, share {share_}", flush=True)
    return min(failed, 1)


def _shown(numbers: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {number:.4g}" for name, number in numbers.items())


def time_case(
    case: Case,
    libraries: Mapping[str, Library],
    rounds: int,
    speed: float | None = None,
) -> tuple[list[ledger.Line], list[str]]:
    """The rows of a case, one for each contender, and the errors of other contenders.

    `speed` is that of a copy, in GB/s. Without it, rows have no share of it.
    """
    calls, errors = checked(case, libraries)
    size = case.bytes
    wall = wall_times(
        calls,
        rounds=rounds * (ROUNDS_OF_CALLS if case.context == "call" else 1),
        repeats=SMALL_CALLS if size < SMALL_BYTES else LARGE_CALLS[_platform()],
    )
    lines = []
    for name, call in calls.items():
        _library(name, libraries).release()
        ms = wall[name].median
        # The time to move the fewest bytes, over this time.
        line: ledger.Line = {column: getattr(case, column) for column in ledger.CASE}
        line |= {"contender": name} | wall[name].columns("wall_ms")
        bound = speed if case.moves else None
        line["share"] = bound and round(size / bound / 1e6 / ms, 3)
        line["compile_ms"] = call.compile_ms
        line["peak_mib"] = call.peak_bytes and call.peak_bytes / 2**20
        lines.append(line)
    return lines, errors


def _platform() -> str:
    return jax.default_backend()


def _library(contender: str, libraries: Mapping[str, Library]) -> Library:
    return libraries[contender.split()[0]]


def checked(
    case: Case, libraries: Mapping[str, Library]
) -> tuple[dict[str, Prepared], list[str]]:
    """The calls of all contenders with the results of the first one, and errors."""
    arrays = case.arrays()
    put: dict[Library, list[Any]] = {}
    calls: dict[str, Prepared] = {}
    errors: list[str] = []
    samples: list[Sample] = []
    for name, function in case.functions.items():
        if name == WITHOUT_KERNEL and _platform() != "gpu":
            continue
        if name.split()[0] not in libraries:
            continue
        library = _library(name, libraries)
        if library not in put:
            put[library] = [library.put(array) for array in arrays]
        try:
            with replaced(name):
                inside = case.context != "call"
                call = library.prepare(function, put[library], jit=inside)
            library.before_check(call.run())
            result = call.run()
            call.wait(result)
            outputs = jax.tree.leaves(result)
            if not samples:
                samples = [sample(output, library) for output in outputs]
            elif not name.startswith("reference"):
                compare(samples, outputs, library, case.rtol)
        except Exception as error:
            kind = type(error).__name__
            errors.append(f"{name} in {case.label}: {kind}: {error}\n")
        else:
            calls[name] = call
    return calls, errors


# The sizes of an output, the row-major numbers of some elements, and these elements.
Sample = tuple[tuple[int, ...], np.ndarray, np.ndarray]


def sample(output: Any, library: Library) -> Sample:
    """Some elements of an output: the first, the last, and random ones."""
    size = math.prod(output.shape)
    places = np.arange(size)
    if size > COMPARED:
        random = np.random.default_rng(0).integers(0, size, COMPARED)
        places = np.unique([*random, *range(100), *range(size - 100, size)])
    return tuple(output.shape), places, library.take(output, places)


def compare(
    samples: Sequence[Sample], outputs: Sequence[Any], library: Library, rtol: float
) -> None:
    """Raises AssertionError if outputs differ from the samples.

    The samples belong to the last outputs: a library without a count has no other. The
    rows past the count may be missing: they are zero in a sample.
    """
    for output, (shape, places, wanted) in zip(
        outputs[::-1], samples[::-1], strict=False
    ):
        size, most = math.prod(output.shape), math.prod(shape)
        same = size == most or (size < most and output.shape[1:] == shape[1:])
        assert same, f"sizes {tuple(output.shape)} instead of {shape}"
        inside = places < size
        assert not wanted[~inside].any(), "rows are missing"
        found = library.take(output, places[inside]).astype(np.float64)
        wanted = wanted[inside].astype(np.float64)
        atol = rtol * np.abs(wanted).max(initial=0, where=np.isfinite(wanted))
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)


if __name__ == "__main__":
    sys.exit(main())
