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

import argparse
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from benchmarks import ledger
from benchmarks.case import Case
from benchmarks.cases import cases
from benchmarks.command import circumstances, device_name, named, parsed
from benchmarks.forms import replaced
from benchmarks.libraries import Library, Prepared, available
from benchmarks.programs.program import CPU, GPU, SIZES
from benchmarks.timing import columns, copy_speed, wall_times

# Of large arrays, by platform: 256 MiB of float32 on a GPU.
ELEMENTS = {"cpu": CPU, "gpu": GPU}
# Calls in flight between two looks at the host's clock: few for large arrays on a CPU.
# A GPU needs many, because the host starts the first and waits for the last: on an
# H200, "elements above a limit" takes 0.137 ms with 10 in flight, and 0.131 with 20.
SMALL_BYTES, CALLS, LARGE_ON_CPU = 2**22, 20, 2
# A call outside of jit is short, and its time varies most, so we time this many times
# as many rounds.
ROUNDS_OF_CALLS = 20
# We compare about this many elements of a result, and all of a smaller result.
COMPARED = 2**16
# We are behind where we take more than this part of the best other time.
BEHIND = 1.15


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the chosen cases."""
    own = "--elements", "--rounds", "--device"
    options = parsed(argv, "benchmarks.run", __doc__, *own)
    platform = jax.default_backend()
    elements = options.elements or ELEMENTS[platform]
    if elements not in SIZES:
        sys.exit(f"--elements {elements}: programs have shapes for {SIZES}")
    chosen = named(cases(platform, elements), options.only)
    return time_cases(chosen, available(platform), options, "{}")


def time_cases(
    chosen: Sequence[Case],
    libraries: Mapping[str, Library],
    options: argparse.Namespace,
    table: str = "",
) -> int:
    """Prints the times of cases, and where we are behind; writes a table, if any."""
    if table:
        ledger.ready(options.out)
    run = circumstances(options, device_name(jax.devices()[0]), libraries)
    speed = run["copy_gb_per_s"] = copy_speed(libraries["jnp"], rounds=options.rounds)
    known = ", ".join(f"{n} {run[n]}" for n in ledger.VERSIONED if n in run)
    print(f"{run['device']}, {known}: milliseconds, and ours in theirs")
    behind, failed = [], False
    for case in chosen:
        rows, errors = time_case(case, libraries, options.rounds, speed)
        # We go on: a run takes long, and the figures of the others are right.
        failed |= bool(errors)
        times = {row["contender"]: row["wall_ms"] for row in rows}
        ours = times.get("dmljax", math.nan)
        label = f"{case.name}, {case.direction}"
        print(f"{label}: dmljax {ours:.3g}", *errors)
        others = [n for n in times if not n.startswith(("dmljax", "reference"))]
        for name in others:
            print(f"    {name} {times[name]:.3g} ({ours / times[name]:.2f})")
        ratio = ours / min((times[name] for name in others), default=math.inf)
        if ratio > BEHIND:
            behind.append(f"{label}: {ratio:.2f}")
        sys.stdout.flush()
        if table:
            ledger.write(table.format(run["device"]), run, rows, options.out)
    print(f"behind in {len(behind)} of {len(chosen)}", *behind, sep="\n  ")
    return int(failed)


def time_case(
    case: Case, libraries: Mapping[str, Library], rounds: int, speed: float
) -> tuple[list[ledger.Line], list[str]]:
    """The rows of a case, one for each contender, and the errors of other contenders.

    `speed` is that of a copy, in GB/s.
    """
    calls, errors = checked(case, libraries)
    size = case.bytes
    few = jax.default_backend() == "cpu" and size >= SMALL_BYTES
    wall = wall_times(
        calls,
        rounds=rounds * (ROUNDS_OF_CALLS if case.context == "call" else 1),
        repeats=LARGE_ON_CPU if few else CALLS,
    )
    lines = []
    for name, call in calls.items():
        libraries[name.split()[0]].release()
        line: ledger.Line = {column: getattr(case, column) for column in ledger.CASE}
        line |= {"contender": name} | columns("wall_ms", wall[name])
        if case.moves:
            # The time to move the fewest bytes, over this time.
            line["share"] = round(size / speed / 1e6 / line["wall_ms"], 3)
        line["compile_ms"] = call.compile_ms
        line["peak_mib"] = call.peak_bytes and call.peak_bytes / 2**20
        lines.append(line)
    return lines, errors


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
        library = libraries.get(name.split()[0])
        if not library:
            continue
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
