"""Times every case beside other libraries and appends the figures to the ledger.

    python -m benchmarks.run                       all cases, on the default device
    python -m benchmarks.run --only padding        the cases whose text has this in it
    python -m benchmarks.run --elements 1024       all arrays small: a quick test
    python -m benchmarks.run --resume              what was not timed at this commit yet

A line of the ledger is one figure: case, contender, device, versions, commit, bytes,
the device's milliseconds (median, p20, p80), the wall time in milliseconds, the share
of the ceiling, a bandwidth that was measured in the same run, what a call launches, the
time to compile and the peak of memory. Every result is compared with NumPy's before it
is timed.
"""

import argparse
import datetime
import pathlib
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import jax
import numpy as np

import dmljax
from benchmarks import ledger
from benchmarks.case import Case
from benchmarks.cases import cases
from benchmarks.libraries import Library, Prepared, available, versions
from benchmarks.oracles import compare
from benchmarks.timing import ceilings, measure

_T = TypeVar("_T")
# Of large arrays: 256 MiB of float32 on a GPU.
ELEMENTS = {"cpu": 2**22, "gpu": 2**26}
# Calls in flight, between two looks at the host's clock: more if the arrays have few
# bytes. A GPU needs several, so that it does not wait for the host.
SMALL_BYTES, SMALL_CALLS = 2**22, 20
LARGE_CALLS = {"cpu": 2, "gpu": 10}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the cases that were asked for."""
    options = parsed(argv, "benchmarks.run", __doc__, resumes=True)
    device = jax.devices()[0]
    elements = options.elements or ELEMENTS[device.platform]
    chosen = named(cases(elements), options.only, lambda case: case.label)
    libraries = available(device.platform)
    run = circumstances(device, libraries) | {"commit": options.commit or commit()}
    out = ledger.ready(options.out, run["device"])
    if options.resume:
        timed = _labels(out, run["commit"])
        chosen = [case for case in chosen if case.label not in timed]
    bandwidths = ceilings(libraries, rounds=options.rounds)
    run |= {f"{kind}_gb_per_s": round(gb, 1) for kind, gb in bandwidths.items()}
    print(f"{run['device']}: {_shown(bandwidths)} GB/s", file=sys.stderr)
    for case in chosen:
        with jax.enable_x64(np.dtype(case.dtype).itemsize == 8):
            lines = time_case(case, libraries, bandwidths, options.rounds)
        ledger.append(out, (run | line for line in lines))
        for clock in ("ms", "wall_ms"):
            times = _shown({line["contender"]: line[clock] for line in lines})
            print(f"{case.label}, {clock}: {times}, share {lines[0]['share']}")
    return 0


def _labels(out: pathlib.Path, commit: str) -> set[str]:
    """Returns the labels of the cases that a ledger has for a commit."""
    keys = ("operator", "case", "direction", "context")
    lines = (line for line in ledger.read(out) if line["commit"] == commit)
    return {" ".join(line[key] for key in keys) for line in lines}


def parsed(
    argv: Sequence[str] | None,
    name: str,
    about: str | None,
    *,
    rounds: int = 15,
    sized: bool = True,
    resumes: bool = False,
) -> argparse.Namespace:
    """The arguments of this module, which .scaling, .calls and .forms share."""
    parser = argparse.ArgumentParser(prog=name, description=about)
    if sized:
        words = "of a large array on one device"
        parser.add_argument("--elements", type=int, help=words)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--only", default="", help="text in a case's name")
    parser.add_argument("--commit", help="of the sources, where git can't tell")
    parser.add_argument("--out", type=pathlib.Path, help="the ledger to append to")
    if resumes:
        parser.add_argument("--resume", action="store_true", help="skip what was timed")
    return parser.parse_args(argv)


def named(cases: Iterable[_T], only: str, text: Callable[[_T], str]) -> list[_T]:
    """The cases with `only` in their text; ends the program if there are none."""
    chosen = [case for case in cases if only in text(case)]
    if not chosen:
        sys.exit(f"no case has {only!r} in its text")
    return chosen


def _shown(numbers: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {number:.4g}" for name, number in numbers.items())


def time_case(
    case: Case,
    libraries: Mapping[str, Library],
    bandwidths: Mapping[str, float],
    rounds: int,
) -> list[dict[str, Any]]:
    """The ledger lines of one case, one a contender; all are checked first."""
    calls = _checked(case, libraries)
    repeats = LARGE_CALLS[jax.default_backend()]
    if case.bytes < SMALL_BYTES:
        repeats = SMALL_CALLS
    timings, wall = measure(calls, rounds=rounds, repeats=repeats)
    lines = []
    for name, timing in timings.items():
        libraries[name].release()
        compile_ms = calls[name].compile_ms
        lines.append(
            {
                "operator": case.operator,
                "case": case.name,
                "direction": case.direction,
                "context": case.context,
                "dtype": case.dtype,
                "elements": case.elements,
                "contender": name,
                "bytes": case.bytes,
                "ceiling": case.ceiling,
                "ms": round(timing.median, 6),
                "ms_p20": round(timing.p20, 6),
                "ms_p80": round(timing.p80, 6),
                "wall_ms": round(wall[name].median, 6),
                "wall_ms_p20": round(wall[name].p20, 6),
                "wall_ms_p80": round(wall[name].p80, 6),
                "share": share(case, bandwidths, timing.median),
                "launches": timing.launches,
                "compile_ms": None if compile_ms is None else round(compile_ms, 1),
                "peak_bytes": calls[name].peak_bytes,
            }
        )
    return lines


def share(case: Case, bandwidths: Mapping[str, float], ms: float) -> float | None:
    """The time to move the fewest bytes, over this time; None for a program."""
    if case.ceiling is None:
        return None
    return round(case.bytes / bandwidths[case.ceiling] / 1e6 / ms, 3)


def _checked(case: Case, libraries: Mapping[str, Library]) -> dict[str, Prepared]:
    """The calls of all contenders, whose results are what the oracle says."""
    arrays = case.arrays()
    samples = case.oracle(*arrays)
    put: dict[Library, list[Any]] = {}
    calls = {}
    for name, function in case.functions.items():
        if name not in libraries:
            continue
        library = libraries[name]
        if library not in put:
            put[library] = [library.put(array) for array in arrays]
        calls[name] = library.prepare(function, put[library], case.wrt)
        library.before_check(calls[name].run())
        outputs = jax.tree.leaves(calls[name].run())
        try:
            ours = name.startswith("dmljax")
            compare(samples, outputs, library.take, typed=ours)
        except AssertionError as error:
            raise RuntimeError(f"{name} is wrong in {case.label}: {error}") from error
    return calls


def circumstances(
    device: jax.Device, libraries: Mapping[str, Library]
) -> dict[str, Any]:
    """What a figure depends on besides the case."""
    name = device.device_kind
    if device.platform == "cpu":
        name = f"{platform.machine()} CPU"
    return {
        "device": name,
        "date": datetime.date.today().isoformat(),
        "python": platform.python_version(),
        "dmljax": dmljax.__version__,
        **versions(libraries),
    }


def commit() -> str:
    """Of the sources, as git names it."""
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(
        command, capture_output=True, check=True, text=True
    ).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
